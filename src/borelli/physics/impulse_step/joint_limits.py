"""Stops of controlled coordinates in an impulse step.

A stop is struck as contacts are: a coordinate that would pass it in this step may just reach it (stage 1), and its
control learns of that by the speed it lost. Aims are then put within stops, so that a control that reaches its aim
respects them. The stop's own row would only ask for the same again (of joints that turn freely, to first order: two
hard rows that contradict each other), so it is left out wherever the control decides where its coordinate goes. A
control at its limit does not, and the stop stays.
"""

from __future__ import annotations

from math import atan2, pi, sqrt

from borelli.kernels.jit import inline, inline_into_caller
from borelli.physics.impulse_step.stage_laws import leave_out, velocity_along
from borelli.physics.joints.coordinates import LOCKED_COSINE, cardan_quaternion, nearest_turn

UNFELT = 1e-12
"""Speed [rad/s or m/s] by which a stop may be passed by rounding."""


@inline_into_caller
def are_stops_struck(joints, rows, twist):
    """Whether a coordinate would pass a stop in this step."""
    for i in range(len(joints.stop_row)):
        k = joints.stop_row[i]
        if k >= 0 and rows.pieces[k] == 2 and velocity_along(rows, k, twist) < rows.c[k, 0] - UNFELT:
            return True
    return False


@inline
def within_stops(joints, i, value):
    """The value of coordinate i, or the stop that it is beyond."""
    return min(max(value, joints.lower[i]), joints.upper[i]) if joints.stop_row[i] >= 0 else value


@inline_into_caller
def turn_within_stops(joints, j, q, present):
    """The rotation q of a ball's child in its parent, with Cardan angles that stops allow.

    Of the two sets of angles that mean q those nearest to the present ones are taken. Near gimbal lock, where they say
    little, q is left as it is.
    """
    i = joints.coordinate_first[j]
    if joints.stop_row[i] < 0 and joints.stop_row[i + 1] < 0 and joints.stop_row[i + 2] < 0:
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
    a1, b1, c1 = nearest_turn(a, a0), nearest_turn(b, b0), nearest_turn(c, c0)
    a2, b2, c2 = nearest_turn(a + pi, a0), nearest_turn(pi - b, b0), nearest_turn(c + pi, c0)
    if abs(a2 - a0) + abs(b2 - b0) + abs(c2 - c0) < abs(a1 - a0) + abs(b1 - b0) + abs(c1 - c0):
        a1, b1, c1 = a2, b2, c2
    a, b = within_stops(joints, i, a1), within_stops(joints, i + 1, b1)
    c = sign * within_stops(joints, i + 2, sign * c1)
    if a == a1 and b == b1 and c == c1:
        return q
    return cardan_quaternion(a, b, c)


@inline_into_caller
def leave_out_stops(joints, controls, rows, decided):
    """Leave out the stops of controlled coordinates that are `decided` (by coordinate)."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        _leave_out_stop(joints, rows, i, decided)
    for n in range(len(controls.ball)):
        first = joints.coordinate_first[controls.ball[n]]
        for i in range(first, first + 3):
            _leave_out_stop(joints, rows, i, decided)


@inline
def _leave_out_stop(joints, rows, i, decided):
    k = joints.stop_row[i]
    if k >= 0 and decided[i] and rows.pieces[k] > 0:
        leave_out(rows, k)
