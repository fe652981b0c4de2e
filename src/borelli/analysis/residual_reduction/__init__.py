"""Residual reduction: masses, kinematics or measured loads are adjusted within bounds."""
