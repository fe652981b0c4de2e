"""Limits of controlled coordinates in an impulse step.

A limit acts as contacts do: a coordinate that would pass it in this step may just reach it (stage 1), and its control
notices that by the velocity it lost. Targets are then clamped to limits, so that a control that reaches its target
satisfies them. The row of the limit would only require the same again (of ball joints, to first order: two
contradictory hard rows), so it is disabled wherever the control determines its coordinate. A saturated control does
not, and the limit stays.
"""

from __future__ import annotations

from math import atan2, pi, sqrt

from borelli.kernels.jit import inline, inline_into_caller
from borelli.physics.impulse_step.stage_laws import disable_row, velocity_on_row
from borelli.physics.joints.coordinates import LOCKED_COSINE, cardan_quaternion, nearest_angle

LIMIT_TOLERANCE = 1e-12
"""Velocity [rad/s or m/s] that is rounding."""


@inline_into_caller
def are_limits_hit(joints, rows, twist):
    """Return True if a coordinate would pass a limit in this step."""
    for i in range(len(joints.limit_row)):
        k = joints.limit_row[i]
        if k >= 0 and rows.pieces[k] == 2 and velocity_on_row(rows, k, twist) < rows.c[k, 0] - LIMIT_TOLERANCE:
            return True
    return False


@inline
def clamp_to_limits(joints, i, value):
    """Return the value of coordinate i, clamped to its limits."""
    return min(max(value, joints.lower[i]), joints.upper[i]) if joints.limit_row[i] >= 0 else value


@inline_into_caller
def clamp_rotation_to_limits(joints, j, q, present):
    """Return the rotation q of a ball's child in its parent with Cardan angles clamped to limits.

    Of the two sets of angles that describe q, the one nearest to the present angles is used. Near gimbal lock, where
    the angles are not determined, q is not changed.
    """
    i = joints.coordinate_first[j]
    if joints.limit_row[i] < 0 and joints.limit_row[i + 1] < 0 and joints.limit_row[i + 2] < 0:
        return q
    w, x, y, z = q
    r02, r12, r22 = 2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)
    r00, r01 = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z)
    cosine = sqrt(r12 * r12 + r22 * r22)
    if cosine < LOCKED_COSINE:
        return q
    sign = joints.sign[i + 2]
    a0, b0, c0 = present[i], present[i + 1], sign * present[i + 2]
    a, b, c = atan2(-r12, r22), atan2(r02, cosine), atan2(-r01, r00)
    a1, b1, c1 = nearest_angle(a, a0), nearest_angle(b, b0), nearest_angle(c, c0)
    a2, b2, c2 = nearest_angle(a + pi, a0), nearest_angle(pi - b, b0), nearest_angle(c + pi, c0)
    if abs(a2 - a0) + abs(b2 - b0) + abs(c2 - c0) < abs(a1 - a0) + abs(b1 - b0) + abs(c1 - c0):
        a1, b1, c1 = a2, b2, c2
    a, b = clamp_to_limits(joints, i, a1), clamp_to_limits(joints, i + 1, b1)
    c = sign * clamp_to_limits(joints, i + 2, sign * c1)
    if a == a1 and b == b1 and c == c1:
        return q
    return cardan_quaternion(a, b, c)


@inline_into_caller
def disable_limits(joints, controls, rows, selected):
    """Disable the limits of controlled coordinates that are `selected` (by coordinate)."""
    for n in range(len(controls.every)):
        i = controls.every[n]
        k = joints.limit_row[i]
        if k >= 0 and selected[i] and rows.pieces[k] > 0:
            disable_row(rows, k)
