"""Force curves of Park, Fussell, Pandy and Browne (1992): bell, arctangent, exponential and linear tendon.

The report gives the shapes without constants; `borelli.muscles.force_curves` has those used here.
Row: 0 width of the active curve, 1 A, 2 B, 3 C, 4 v0 of fv = A + B atan(C (v - v0)), 5 passive shape, 6 passive strain
at one normalized force, 7 tendon strain at one normalized force.
"""

from __future__ import annotations

from math import atan, exp, pi, tan

from borelli.kernels.jit import inline
from borelli.muscles.hill_kernels.exponential import bounded_exp

STEEPEST_ANGLE = 0.5 * pi * (1.0 - 1e-9)
"""[rad] beyond which the inverse ends: forces outside the curve's asymptotes have no velocity."""


@inline
def park_active(row, length):
    """Return the active force-length multiplier exp(-(l - 1)^2 / width) and its slope."""
    value = exp(-((length - 1.0) ** 2) / row[0])
    return value, -2.0 * (length - 1.0) / row[0] * value


@inline
def park_passive(row, length):
    """Return the passive force-length multiplier and its slope; zero below the optimal length."""
    if length <= 1.0:
        return 0.0, 0.0
    scale = 1.0 / (exp(row[5]) - 1.0)
    power, slope = bounded_exp(row[5] * (length - 1.0) / row[6])
    return scale * (power - 1.0), scale * slope * row[5] / row[6]


@inline
def park_tendon(row, length):
    """Return the force of a linear tendon and its slope at a length in slack lengths."""
    if length <= 1.0:
        return 0.0, 0.0
    return (length - 1.0) / row[7], 1.0 / row[7]


@inline
def park_velocity(row, velocity):
    """Return the force-velocity multiplier A + B atan(C (v - v0)) and its slope."""
    x = row[3] * (velocity - row[4])
    return row[1] + row[2] * atan(x), row[2] * row[3] / (1.0 + x * x)


@inline
def park_inverse(row, force):
    """Return the velocity at which the force-velocity multiplier has a value."""
    angle = min(max((force - row[1]) / row[2], -STEEPEST_ANGLE), STEEPEST_ANGLE)
    return row[4] + tan(angle) / row[3]
