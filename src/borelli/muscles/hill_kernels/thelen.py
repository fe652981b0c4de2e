"""Force curves of Thelen (2003), with OpenSim's linear extension of the force-velocity curve.

Row: 0 width of the active curve, 1 Af, 2 largest lengthening force, 3 fraction of it at which the extension begins,
4 passive shape, 5 passive strain at one normalized force, 6 end of the tendon's toe [strain], 7 slope of the tendon
beyond the toe.
"""

from __future__ import annotations

from math import exp

from borelli.kernels.jit import inline
from borelli.muscles.hill_kernels.exponential import bounded_exp

TOE_SHAPE = 3.0
"""Exponent of the toe (Thelen 2003, eq. 5)."""
TOE_FORCE = 0.33
"""Normalized tendon force at the end of the toe (Thelen 2003, eq. 5)."""
SLOW_FRACTION = 0.25
"""Maximum contraction velocity without activation, as a fraction of that at full activation (Thelen 2003, eq. 6)."""


@inline
def thelen_active(row, length):
    """Return the active force-length multiplier (eq. 4) and its slope."""
    value = exp(-((length - 1.0) ** 2) / row[0])
    return value, -2.0 * (length - 1.0) / row[0] * value


@inline
def thelen_passive(row, length):
    """Return the passive force-length multiplier (eq. 3) and its slope; zero below the optimal length."""
    if length <= 1.0:
        return 0.0, 0.0
    scale = 1.0 / (exp(row[4]) - 1.0)
    power, slope = bounded_exp(row[4] * (length - 1.0) / row[5])
    return scale * (power - 1.0), scale * slope * row[4] / row[5]


@inline
def thelen_tendon(row, length):
    """Return the tendon force (eq. 5) and its slope at a length in slack lengths."""
    strain = length - 1.0
    if strain <= 0.0:
        return 0.0, 0.0
    if strain > row[6]:
        return TOE_FORCE + row[7] * (strain - row[6]), row[7]
    scale = TOE_FORCE / (exp(TOE_SHAPE) - 1.0)
    power = exp(TOE_SHAPE * strain / row[6])
    return scale * (power - 1.0), scale * power * TOE_SHAPE / row[6]


# Equations 6 and 7 give the velocity v of the force F = a fl fv. Divided by a fl they contain the activation only in
# the factor 0.25 + 0.75 a, so w = v / (0.25 + 0.75 a) is a function of fv alone. Both branches have a closed inverse:
#
#     w = (fv - 1) / (1 + fv / Af)                              fv <= 1
#     w = (fv - 1) (Flen - 1) / ((2 + 2 / Af) (Flen - fv))      fv > 1, up to the extension


@inline
def thelen_velocity(row, velocity, activation):
    """Return the force-velocity multiplier and its slope."""
    af, most = row[1], row[2]
    factor = 1.0 / (SLOW_FRACTION + (1.0 - SLOW_FRACTION) * activation)
    w = velocity * factor
    if w <= -1.0:
        slope = af / (1.0 + af)
        return slope * (w + 1.0), slope * factor
    if w <= 0.0:
        divisor = 1.0 - w / af
        return (1.0 + w) / divisor, (1.0 + 1.0 / af) / divisor**2 * factor
    k = (2.0 + 2.0 / af) / (most - 1.0)
    limit = row[3] * most
    w_limit = (limit - 1.0) / (k * (most - limit))
    if w <= w_limit:
        return (1.0 + k * most * w) / (1.0 + k * w), k * (most - 1.0) / (1.0 + k * w) ** 2 * factor
    slope = k * (most - limit) ** 2 / (most - 1.0)
    return limit + slope * (w - w_limit), slope * factor


@inline
def thelen_inverse(row, force, activation):
    """Return the velocity at which the force-velocity multiplier has a value."""
    af, most = row[1], row[2]
    k = (2.0 + 2.0 / af) / (most - 1.0)
    limit = row[3] * most
    if force <= 0.0:
        w = -1.0 + force * (1.0 + af) / af
    elif force <= 1.0:
        w = (force - 1.0) / (1.0 + force / af)
    elif force <= limit:
        w = (force - 1.0) / (k * (most - force))
    else:
        w = (limit - 1.0) / (k * (most - limit)) + (force - limit) * (most - 1.0) / (k * (most - limit) ** 2)
    return w * (SLOW_FRACTION + (1.0 - SLOW_FRACTION) * activation)
