"""Rows on coordinates: stops keep them in range, drives pull them to targets, couplings tie them together.

A coordinate's row has the direction that makes its velocity the coordinate's speed, so its impulse is the coordinate's
force (or torque) times the step. `pose_joints` and `coordinates_from_poses` come first, `fill_given_motion` after.
"""

from __future__ import annotations

from math import cos, inf, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import inline, kernel_function
from borelli.numerics.rotation_kernels import cross, quaternion_product, rotation_logarithm
from borelli.physics.arrays.joints import BALL, HINGE
from borelli.physics.joints.coordinates import cardan_quaternion
from borelli.physics.joints.custom_joint import evaluate
from borelli.physics.joints.joint_frames import relative_quaternion
from borelli.physics.rows.joint_rows import put_row, put_turn
from borelli.physics.rows.laws import no_law, one_sided_law, soft_law
from borelli.physics.rows.rows import FLAT

STOP_REACH_TURN = 0.1
"""A stop farther away than this [rad], beyond two steps' travel, is left out of the step."""
STOP_REACH_TRAVEL = 0.05
"""The same for sliding coordinates [m]."""


class Drives(NamedTuple):
    """What pulls each coordinate: one entry per coordinate; those without a drive row are not read."""

    target: NDArray[np.float64]
    """[rad or m] at the start of the step."""
    velocity: NDArray[np.float64]
    """Of the target [rad/s or m/s]."""
    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    """Of the spring and damper at this step, `Softness.at_step`; infinite: only the rest impulse acts."""
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """Bounds of the impulse: force limit times step [N s or N m s]."""
    rest: NDArray[np.float64]
    """Impulse added to the spring's and damper's [N s or N m s]; the bounds hold for the sum."""
    dead_zone: NDArray[np.float64]
    """Error [rad or m] within which spring and damper do nothing."""


def make_drives(coordinates: int) -> Drives:
    """Drives that do nothing."""
    zero = [np.zeros(coordinates) for _ in range(5)]
    return Drives(
        target=zero[0],
        velocity=zero[1],
        alpha=zero[2],
        beta=np.full(coordinates, inf),
        lo=np.full(coordinates, -inf),
        hi=np.full(coordinates, inf),
        rest=zero[3],
        dead_zone=zero[4],
    )


@inline
def put_coordinate_row(joints, i, sign, jacobian, e):
    """The row of coordinate i's speed times `sign`, its first entry at e."""
    j, d = joints.joint[i], joints.direction
    slot_c, slot_p, kind = joints.child_slot[j], joints.parent_slot[j], joints.kind[j]
    nx, ny, nz = sign * d[i, 3], sign * d[i, 4], sign * d[i, 5]
    if BALL <= kind <= HINGE:
        put_turn(jacobian, e, slot_c, slot_p, nx, ny, nz)
    else:
        x, y, z = sign * d[i, 0], sign * d[i, 1], sign * d[i, 2]
        put_row(
            joints.arm_child, joints.arm_parent, joints.gap, j, slot_c, slot_p, jacobian, e, x, y, z, nx, ny, nz
        )  # fmt: skip


@kernel_function
def fill_stop_rows(joints, coordinate, speed, rows, h):
    """One-sided rows at the limit each coordinate will be nearer to at the end of the step.

    With C the distance left, a coordinate inside may just reach its limit (u >= -C / h); one beyond is pushed back by
    its share (u >= -(alpha / h) C). Limits out of reach cost nothing: their rows are absent.
    """
    for i in range(joints.stop_row.shape[0]):
        k = joints.stop_row[i]
        if k < 0:
            continue
        ahead = coordinate[i] + h * speed[i]
        at_lower = ahead - joints.lower[i] < joints.upper[i] - ahead
        distance = coordinate[i] - joints.lower[i] if at_lower else joints.upper[i] - coordinate[i]
        reach = 2.0 * h * abs(speed[i]) + (STOP_REACH_TURN if joints.rotational[i] else STOP_REACH_TRAVEL)
        if distance > reach:
            no_law(rows, k)
            continue
        share = 1.0 if distance > 0.0 else joints.stop_alpha[i]
        one_sided_law(rows, k, -share / h * distance, joints.stop_beta[i])
        put_coordinate_row(joints, i, 1.0 if at_lower else -1.0, rows.jacobian, rows.first[k])


@inline
def drive_law(rows, k, c, width, beta, rest, lo, hi):
    """A drive's manifold: u = c - beta (p - rest) beyond `width` of c, p = rest within it, lo <= p <= hi.

    Infinite bounds take no segment; infinite beta leaves the rest impulse alone.
    """
    rest = min(max(rest, lo), hi)
    if beta == inf:
        rows.segments[k] = 1
        rows.beta[k, 0] = FLAT
        rows.c[k, 0] = rest
        return
    s = 0
    if hi < inf:
        put_segment(rows, k, s, FLAT, hi)
        put_break(rows, k, s, c - width - beta * (hi - rest), hi)
        s += 1
    put_segment(rows, k, s, beta, c - width + beta * rest)
    if width > 0.0:
        put_break(rows, k, s, c - width, rest)
        put_segment(rows, k, s + 1, FLAT, rest)
        put_break(rows, k, s + 1, c + width, rest)
        s += 2
        put_segment(rows, k, s, beta, c + width + beta * rest)
    if lo > -inf:
        put_break(rows, k, s, c + width - beta * (lo - rest), lo)
        s += 1
        put_segment(rows, k, s, FLAT, lo)
    rows.segments[k] = s + 1


@inline
def put_segment(rows, k, s, beta, c):
    """Segment s of row k."""
    rows.beta[k, s] = beta
    rows.c[k, s] = c


@inline
def put_break(rows, k, s, u, p):
    """The break after segment s of row k."""
    rows.break_u[k, s] = u
    rows.break_p[k, s] = p


@inline
def aim_drive(drives, i, rows, k, c, h):
    """Let the drive of coordinate i aim at the velocity c.

    The dead zone |C + h (u - velocity)| < D of the spring's error is, at velocity level, |u - c| < (alpha / h) D.
    """
    width = drives.alpha[i] / h * drives.dead_zone[i]
    drive_law(rows, k, c, width, drives.beta[i], drives.rest[i], drives.lo[i], drives.hi[i])


@kernel_function
def fill_drive_rows(joints, drives, coordinate, rows, h):
    """Rows that pull coordinates to targets, c = velocity - (alpha / h) (coordinate - target), or hold locked ones."""
    for i in range(joints.drive_row.shape[0]):
        k, j = joints.drive_row[i], joints.joint[i]
        if k < 0:
            continue
        if joints.spin_driven[j]:
            if i == joints.coordinate_first[j]:
                fill_spin_drive(joints, drives, j, i, rows, k, h)
            continue
        put_coordinate_row(joints, i, 1.0, rows.jacobian, rows.first[k])
        if joints.locked[i]:
            soft_law(rows, k, -joints.alpha[j] / h * (coordinate[i] - joints.default[i]), joints.beta[j])
        else:
            c = drives.velocity[i] - drives.alpha[i] / h * (coordinate[i] - drives.target[i])
            aim_drive(drives, i, rows, k, c, h)


@inline
def cardan_spin(b, c, adot, bdot, cdot):
    """The relative spin of Rx(a) Ry(b) Rz(c) in the child's axes."""
    return (
        adot * cos(c) * cos(b) + bdot * sin(c),
        -adot * sin(c) * cos(b) + bdot * cos(c),
        adot * sin(b) + cdot,
    )


@inline
def fill_spin_drive(joints, drives, j, i, rows, k, h):
    """Three rows on the spin of ball joint j along the child's joint axes, from row k on; none is ever singular.

    C = log(Rt^-1 R): the rotation vector from the target to the present orientation, the same in either's axes. As for
    fixed joints, C . dC/dt = C . (relative spin). The third row counts with the sign of the third coordinate.
    """
    sign, axes = joints.sign[i + 2], joints.axes_child
    a, b, c = drives.target[i], drives.target[i + 1], sign * drives.target[i + 2]
    tw, tx, ty, tz = cardan_quaternion(a, b, c)
    w, x, y, z = relative_quaternion(joints.axes_parent, axes, j)
    w, x, y, z = quaternion_product(tw, -tx, -ty, -tz, w, x, y, z)
    x, y, z = rotation_logarithm(w, x, y, z)
    wx, wy, wz = cardan_spin(b, c, drives.velocity[i], drives.velocity[i + 1], sign * drives.velocity[i + 2])
    for axis in range(3):
        error = x if axis == 0 else (y if axis == 1 else sign * z)
        aim = wx if axis == 0 else (wy if axis == 1 else sign * wz)
        s = sign if axis == 2 else 1.0
        put_turn(
            rows.jacobian, rows.first[k + axis], joints.child_slot[j], joints.parent_slot[j],
            s * axes[j, axis, 0], s * axes[j, axis, 1], s * axes[j, axis, 2],
        )  # fmt: skip
        aim_drive(drives, i + axis, rows, k + axis, aim - drives.alpha[i + axis] / h * error, h)


@kernel_function
def aim_drives_at_twists(joints, drives, target_twist, rows, h):
    """Let every drive aim at the velocity its row would have if the bodies had the given twists.

    Comes after `fill_drive_rows` and `fill_given_motion`; bounds, compliance and dead zone stay the drive's.
    """
    for i in range(joints.drive_row.shape[0]):
        k = joints.drive_row[i]
        if k >= 0 and not joints.locked[i]:
            c = rows.offset[k]
            for e in range(rows.first[k], rows.first[k + 1]):
                b = rows.body[e]
                for a in range(6):
                    c += rows.jacobian[e, a] * target_twist[b, a]
            aim_drive(drives, i, rows, k, c, h)


@inline
def add_coupled_body(jacobian, e, slot, b, twist, scale, d, i, rx, ry, rz):
    """Add scale (l, r x l + n), a body's part of coordinate i's speed, to its entry; return it as velocity if given."""
    if b < 0:
        return 0.0
    ax, ay, az = cross(rx, ry, rz, d[i, 0], d[i, 1], d[i, 2])
    term = (d[i, 0], d[i, 1], d[i, 2], ax + d[i, 3], ay + d[i, 4], az + d[i, 5])
    given = 0.0
    for a in range(6):
        if slot >= 0:
            jacobian[e + slot, a] += scale * term[a]
        else:
            given += scale * term[a] * twist[b, a]
    return given


@kernel_function
def fill_coupling_rows(joints, twist, coordinate, rows, h):
    """Rows that hold a coordinate at a function of another: C = q - f(q_on), Cdot = qdot - f'(q_on) qdot_on."""
    motion, d, jacobian = joints.motion, joints.direction, rows.jacobian
    arm_child, arm_parent, gap = joints.arm_child, joints.arm_parent, joints.gap
    for n in range(joints.coupling_row.shape[0]):
        k, i, on = joints.coupling_row[n], joints.coupling_coordinate[n], joints.coupling_on[n]
        value, slope = evaluate(
            motion.function_first, motion.function_end, motion.piece_start, motion.piece_coefficient,
            joints.coupling_function[n], coordinate[on],
        )  # fmt: skip
        soft_law(rows, k, -joints.coupling_alpha[n] / h * (coordinate[i] - value), joints.coupling_beta[n])
        first, given = rows.first[k], 0.0
        for e in range(first, rows.first[k + 1]):
            for a in range(6):
                jacobian[e, a] = 0.0
        for side in range(2):
            q, scale = (i, 1.0) if side == 0 else (on, -slope)
            j = joints.joint[q]
            given += add_coupled_body(
                jacobian, first, joints.coupling_slot[n, 2 * side], joints.child[j], twist, scale, d, q,
                arm_child[j, 0], arm_child[j, 1], arm_child[j, 2],
            )  # fmt: skip
            given += add_coupled_body(
                jacobian, first, joints.coupling_slot[n, 2 * side + 1], joints.parent[j], twist, -scale, d, q,
                arm_parent[j, 0] + gap[j, 0], arm_parent[j, 1] + gap[j, 1], arm_parent[j, 2] + gap[j, 2],
            )  # fmt: skip
        rows.offset[k] = given
