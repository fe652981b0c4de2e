"""Force curves of MuJoCo's muscles (MuJoCo documentation, Computation: FLV), with a tendon of constant length.

Row: 0 shortest and 1 longest normalized fiber length with active force, 2 passive force at the longest length,
3 largest lengthening force.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline


@inline
def mujoco_active(row, length):
    """Return the active force-length multiplier and its slope: four parabolas, zero outside."""
    low, high = row[0], row[1]
    if length <= low or length >= high:
        return 0.0, 0.0
    a, b = 0.5 * (low + 1.0), 0.5 * (1.0 + high)
    if length <= a:
        x = (length - low) / (a - low)
        return 0.5 * x * x, x / (a - low)
    if length <= 1.0:
        x = (1.0 - length) / (1.0 - a)
        return 1.0 - 0.5 * x * x, x / (1.0 - a)
    if length <= b:
        x = (length - 1.0) / (b - 1.0)
        return 1.0 - 0.5 * x * x, -x / (b - 1.0)
    x = (high - length) / (high - b)
    return 0.5 * x * x, -x / (high - b)


@inline
def mujoco_passive(row, length):
    """Return the passive force-length multiplier and its slope: a parabola, then a line."""
    if length <= 1.0:
        return 0.0, 0.0
    half = 0.5 * (row[1] - 1.0)
    x = (length - 1.0) / half
    if x <= 1.0:
        return 0.5 * row[2] * x * x, row[2] * x / half
    return row[2] * (x - 0.5), row[2] / half


@inline
def mujoco_velocity(row, velocity):
    """Return the force-velocity multiplier and its slope: two parabolas between constants."""
    y = row[3] - 1.0
    if velocity <= -1.0:
        return 0.0, 0.0
    if velocity <= 0.0:
        return (velocity + 1.0) ** 2, 2.0 * (velocity + 1.0)
    if velocity <= y:
        return row[3] - (y - velocity) ** 2 / y, 2.0 * (y - velocity) / y
    return row[3], 0.0


@inline
def mujoco_inverse(row, force):
    """Return the velocity at which the force-velocity multiplier has a value; beyond its values, an end."""
    y = row[3] - 1.0
    if force <= 1.0:
        return sqrt(max(force, 0.0)) - 1.0
    return y - sqrt(max(row[3] - force, 0.0) * y)
