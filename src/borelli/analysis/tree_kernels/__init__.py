"""Reduced coordinates: the model as a kinematic tree, for inverse kinematics and per-frame derivatives."""
