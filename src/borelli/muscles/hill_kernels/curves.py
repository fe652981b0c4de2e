"""Force curves of all muscle models behind one interface: a curve kind and a row of parameters per muscle.

Lengths are in optimal fiber lengths or tendon slack lengths, velocities in maximum contraction velocities (negative:
shortening), forces in maximum isometric forces. Every curve returns its value and its slope.
"""

from __future__ import annotations

from math import nan

from borelli.kernels.jit import kernel, kernel_function
from borelli.muscles.hill_kernels.bezier import CORNER_SIZE, evaluate_corners, invert_corners
from borelli.muscles.hill_kernels.de_groote import (
    de_groote_active,
    de_groote_inverse,
    de_groote_passive,
    de_groote_tendon,
    de_groote_velocity,
)
from borelli.muscles.hill_kernels.mujoco_curves import mujoco_active, mujoco_inverse, mujoco_passive, mujoco_velocity
from borelli.muscles.hill_kernels.park import park_active, park_inverse, park_passive, park_tendon, park_velocity
from borelli.muscles.hill_kernels.thelen import (
    thelen_active,
    thelen_inverse,
    thelen_passive,
    thelen_tendon,
    thelen_velocity,
)

PARK, THELEN, MILLARD, DE_GROOTE, MUJOCO = range(5)
"""Curve kinds."""
ACTIVE_CORNERS, VELOCITY_CORNERS, PASSIVE_CORNERS, TENDON_CORNERS = 5, 4, 2, 2
"""Corners of Millard's four curves, which follow each other in a row."""
VELOCITY_FIRST = CORNER_SIZE * ACTIVE_CORNERS
PASSIVE_FIRST = VELOCITY_FIRST + CORNER_SIZE * VELOCITY_CORNERS
TENDON_FIRST = PASSIVE_FIRST + CORNER_SIZE * PASSIVE_CORNERS
MILLARD_SIZE = TENDON_FIRST + CORNER_SIZE * TENDON_CORNERS
"""Numbers in a row of Millard's curves."""


@kernel_function
def active_curve(kind, row, length):
    """Return the active force-length multiplier."""
    if kind == MILLARD:
        return evaluate_corners(row, 0, ACTIVE_CORNERS, length)
    if kind == THELEN:
        return thelen_active(row, length)
    if kind == DE_GROOTE:
        return de_groote_active(row, length)
    if kind == MUJOCO:
        return mujoco_active(row, length)
    return park_active(row, length)


@kernel_function
def passive_curve(kind, row, length):
    """Return the passive force-length multiplier."""
    if kind == MILLARD:
        return evaluate_corners(row, PASSIVE_FIRST, PASSIVE_CORNERS, length)
    if kind == THELEN:
        return thelen_passive(row, length)
    if kind == DE_GROOTE:
        return de_groote_passive(row, length)
    if kind == MUJOCO:
        return mujoco_passive(row, length)
    return park_passive(row, length)


@kernel_function
def tendon_curve(kind, row, length):
    """Return the tendon force; MuJoCo's tendons have none of their own."""
    if kind == MILLARD:
        return evaluate_corners(row, TENDON_FIRST, TENDON_CORNERS, length)
    if kind == THELEN:
        return thelen_tendon(row, length)
    if kind == DE_GROOTE:
        return de_groote_tendon(row, length)
    if kind == MUJOCO:
        return 0.0, 0.0
    return park_tendon(row, length)


@kernel_function
def velocity_curve(kind, row, velocity, activation):
    """Return the force-velocity multiplier; only Thelen's depends on the activation."""
    if kind == MILLARD:
        return evaluate_corners(row, VELOCITY_FIRST, VELOCITY_CORNERS, velocity)
    if kind == THELEN:
        return thelen_velocity(row, velocity, activation)
    if kind == DE_GROOTE:
        return de_groote_velocity(velocity)
    if kind == MUJOCO:
        return mujoco_velocity(row, velocity)
    return park_velocity(row, velocity)


@kernel_function
def inverse_velocity_curve(kind, row, force, activation):
    """Return the velocity at which the force-velocity multiplier has a value; the end of a curve that has an end."""
    if kind == MILLARD:
        return invert_corners(row, VELOCITY_FIRST, VELOCITY_CORNERS, force)
    if kind == THELEN:
        return thelen_inverse(row, force, activation)
    if kind == DE_GROOTE:
        return de_groote_inverse(force)
    if kind == MUJOCO:
        return mujoco_inverse(row, force)
    return park_inverse(row, force)


ACTIVE_CURVE, PASSIVE_CURVE, TENDON_CURVE, VELOCITY_CURVE, INVERSE_VELOCITY_CURVE = range(5)
"""Curves of `fill_curve`."""


@kernel
def fill_curve(curve, kinds, rows, x, activation, value, slope):
    """Fill value and slope of one curve for points (points, muscles); the slope of the inverse is NaN."""
    for m in range(x.shape[1]):
        kind, row = kinds[m], rows[m]
        for i in range(x.shape[0]):
            if curve == ACTIVE_CURVE:
                value[i, m], slope[i, m] = active_curve(kind, row, x[i, m])
            elif curve == PASSIVE_CURVE:
                value[i, m], slope[i, m] = passive_curve(kind, row, x[i, m])
            elif curve == TENDON_CURVE:
                value[i, m], slope[i, m] = tendon_curve(kind, row, x[i, m])
            elif curve == VELOCITY_CURVE:
                value[i, m], slope[i, m] = velocity_curve(kind, row, x[i, m], activation[i, m])
            else:
                value[i, m], slope[i, m] = inverse_velocity_curve(kind, row, x[i, m], activation[i, m]), nan
