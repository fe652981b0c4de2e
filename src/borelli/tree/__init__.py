"""Kinematic tree of a model as arrays, and compiled forward kinematics."""
