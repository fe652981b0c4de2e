"""Force curves of De Groote et al. (2016) with the constants of OpenSim's DeGrooteFregly2016Muscle.

Row: 0 width scale of the active curve, 1 passive strain at one normalized force, 2 tendon stiffness kT,
3 factor of the passive force (0 or 1).
"""

from __future__ import annotations

from math import exp, log, sinh, sqrt

from borelli.kernels.jit import inline
from borelli.muscles.hill_kernels.exponential import MAX_EXPONENT, bounded_exp

# OpenSim changed the published b1, c2, c3, d1 and d4 so that fl(1) = 1, fv(-1) = 0, fv(0) = 1 and fse(1) = 0
GAUSS = (
    (0.8150671134243542, 1.055033428970575, 0.162384573599574, 0.063303448465465),
    (0.433004984392647, 0.716775413397760, -0.029947116970696, 0.200356847296188),
    (0.1, 1.0, 0.353553390593274, 0.0),
)
"""Amplitude, center, and width as a linear function of length, of the active curve's three bells."""
PASSIVE_SHAPE = 4.0
"""Exponent of the passive curve."""
MIN_LENGTH = 0.2
"""Normalized fiber length at which the passive force is zero."""
TENDON_SCALE = 0.2
"""Factor c1 and offset c3 of the tendon curve."""
D1, D2, D3, D4 = -0.3211346127989808, -8.149, -0.374, 0.8825327733249912
"""Constants of the force-velocity curve."""


@inline
def de_groote_active(row, length):
    """Return the active force-length multiplier and its slope: b1 exp(-((l - b2) / (b3 + b4 l))^2 / 2) summed."""
    x = 1.0 + (length - 1.0) / row[0]
    value, slope = 0.0, 0.0
    for b1, b2, b3, b4 in GAUSS:
        width = b3 + b4 * x
        if width > 0.0:
            z = (x - b2) / width
            bell = b1 * exp(-0.5 * z * z)
            value += bell
            slope -= bell * z * (b3 + b4 * b2) / width**2
    return value, slope / row[0]


@inline
def de_groote_passive(row, length):
    """Return the passive force-length multiplier and its slope."""
    offset = exp(PASSIVE_SHAPE * (MIN_LENGTH - 1.0) / row[1])
    scale = row[3] / (exp(PASSIVE_SHAPE) - offset)
    power, slope = bounded_exp(PASSIVE_SHAPE * (length - 1.0) / row[1])
    return scale * (power - offset), scale * slope * PASSIVE_SHAPE / row[1]


@inline
def de_groote_tendon(row, length):
    """Return the tendon force and its slope at a length in slack lengths; negative below slack."""
    power, slope = bounded_exp(row[2] * (length - 1.0))
    return TENDON_SCALE * (power - 1.0), TENDON_SCALE * row[2] * slope


@inline
def de_groote_velocity(velocity):
    """Return the force-velocity multiplier and its slope."""
    x = D2 * velocity + D3
    root = sqrt(x * x + 1.0)
    # ln(x + sqrt(x^2 + 1)) is odd; for x < 0 the sum would lose digits
    value = log(x + root) if x >= 0.0 else -log(root - x)
    return D1 * value + D4, D1 * D2 / root


@inline
def de_groote_inverse(force):
    """Return the velocity at which the force-velocity multiplier has a value."""
    x = min(max((force - D4) / D1, -MAX_EXPONENT), MAX_EXPONENT)
    return (sinh(x) - D3) / D2
