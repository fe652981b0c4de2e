"""Exponential that does not overflow."""

from __future__ import annotations

from math import exp

from borelli.kernels.jit import inline

MAX_EXPONENT = 50.0
"""Exponent beyond which the function goes on as a line; forces are then 1e20 times a muscle's."""


@inline
def bounded_exp(x):
    """Return exp(x) and its slope, with the tangent beyond the largest exponent."""
    if x <= MAX_EXPONENT:
        value = exp(x)
        return value, value
    slope = exp(MAX_EXPONENT)
    return slope * (1.0 + x - MAX_EXPONENT), slope
