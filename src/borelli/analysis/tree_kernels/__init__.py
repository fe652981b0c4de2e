"""Compiled marker energy, Newton steps and elimination on the kinematic tree, for inverse kinematics and fitting."""
