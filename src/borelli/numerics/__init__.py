"""Numerical building blocks: rotations, quaternions, filters, banded solves, series extension."""
