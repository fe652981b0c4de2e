"""Inverse kinematics, frame by frame or as one smooth trajectory, and differentiation."""
