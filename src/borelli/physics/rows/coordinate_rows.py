"""Rows on joint coordinates: joint limits, drives (PD servos with a force limit) and couplings.

A coordinate's row has the direction that makes its velocity the rate of the coordinate, so its impulse is the
generalized force times the step. `pose_joints` and `coordinates_from_poses` come first, `fill_prescribed_motion` after.
"""

from __future__ import annotations

from math import cos, inf, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import cross, quaternion_product, rotation_logarithm
from borelli.physics.arrays.joints import BALL, HINGE
from borelli.physics.joints.coordinates import cardan_quaternion
from borelli.physics.joints.custom_joint import evaluate
from borelli.physics.joints.joint_frames import relative_quaternion
from borelli.physics.rows.joint_rows import put_angular_row, put_row
from borelli.physics.rows.laws import fixed_impulse, no_law, one_sided_law, put_break, put_piece, soft_law
from borelli.physics.rows.rows import FLAT

LIMIT_RANGE_ROTATION = 0.1
"""A joint limit farther away than this [rad], beyond two steps of motion, is left out of the step."""
LIMIT_RANGE_TRANSLATION = 0.05
"""The same for translational coordinates [m]."""


class Drives(NamedTuple):
    """Joint drives: one entry per coordinate; entries without a drive row are not read."""

    target: NDArray[np.float64]
    """Reference [rad or m] at the start of the step."""
    velocity: NDArray[np.float64]
    """Rate of the reference [rad/s or m/s]."""
    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    """With alpha: spring and damper at this step, `Softness.at_step`; infinite: only the rest impulse acts."""
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """With lo: bounds of the impulse, force limit times step [N s or N m s]."""
    rest: NDArray[np.float64]
    """Impulse added to those of spring and damper [N s or N m s]; the bounds apply to the sum."""
    dead_zone: NDArray[np.float64]
    """Error [rad or m] within which spring and damper do nothing."""


def make_drives(coordinates: int) -> Drives:
    """Return drives that do nothing."""
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
    """Write the row of coordinate i's rate times `sign`, its first entry at e."""
    j, d = joints.joint[i], joints.direction
    slot_c, slot_p, kind = joints.child_slot[j], joints.parent_slot[j], joints.kind[j]
    nx, ny, nz = sign * d[i, 3], sign * d[i, 4], sign * d[i, 5]
    if BALL <= kind <= HINGE:
        put_angular_row(jacobian, e, slot_c, slot_p, nx, ny, nz)
    else:
        x, y, z = sign * d[i, 0], sign * d[i, 1], sign * d[i, 2]
        put_row(joints.arm_child, joints.arm_parent, joints.gap, j, slot_c, slot_p, jacobian, e, x, y, z, nx, ny, nz)


@kernel_function
def fill_limit_rows(joints, coordinate, speed, rows, h):
    """Write one-sided rows at the joint limit each coordinate will be nearer to at the end of the step.

    With C the distance left, a coordinate inside may just reach its limit (u >= -C / h); one beyond is corrected by
    a fraction (u >= -(alpha / h) C). Rows of distant limits are absent.
    """
    joints, rows = load_shared(joints, rows)
    for i in range(joints.limit_row.shape[0]):
        k = joints.limit_row[i]
        if k < 0:
            continue
        ahead = coordinate[i] + h * speed[i]
        at_lower = ahead - joints.lower[i] < joints.upper[i] - ahead
        distance = coordinate[i] - joints.lower[i] if at_lower else joints.upper[i] - coordinate[i]
        extent = LIMIT_RANGE_ROTATION if joints.rotational[i] else LIMIT_RANGE_TRANSLATION
        if distance > 2.0 * h * abs(speed[i]) + extent:
            no_law(rows, k)
            continue
        fraction = 1.0 if distance > 0.0 else joints.limit_alpha[i]
        one_sided_law(rows, k, -fraction / h * distance, joints.limit_beta[i])
        put_coordinate_row(joints, i, 1.0 if at_lower else -1.0, rows.jacobian, rows.first[k])


@inline
def drive_law(rows, k, c, width, beta, rest, lo, hi):
    """Write the law of a drive: u = c - beta (p - rest) beyond `width` of c, p = rest within it, lo <= p <= hi.

    Infinite bounds take no piece; with infinite beta only the rest impulse acts.
    """
    rest = min(max(rest, lo), hi)
    if beta == inf:
        fixed_impulse(rows, k, rest)
        return
    s = 0
    if hi < inf:
        put_piece(rows, k, s, FLAT, hi)
        put_break(rows, k, s, c - width - beta * (hi - rest), hi)
        s += 1
    put_piece(rows, k, s, beta, c - width + beta * rest)
    if width > 0.0:
        put_break(rows, k, s, c - width, rest)
        put_piece(rows, k, s + 1, FLAT, rest)
        put_break(rows, k, s + 1, c + width, rest)
        s += 2
        put_piece(rows, k, s, beta, c + width + beta * rest)
    if lo > -inf:
        put_break(rows, k, s, c + width - beta * (lo - rest), lo)
        s += 1
        put_piece(rows, k, s, FLAT, lo)
    rows.pieces[k] = s + 1


@inline
def set_drive_target(drives, i, rows, k, c, h):
    """Set the target velocity c of the drive of coordinate i.

    The dead zone |C + h (u - velocity)| < D of the spring's error is, at velocity level, |u - c| < (alpha / h) D.
    """
    width = drives.alpha[i] / h * drives.dead_zone[i]
    drive_law(rows, k, c, width, drives.beta[i], drives.rest[i], drives.lo[i], drives.hi[i])


@kernel_function
def fill_drive_rows(joints, drives, coordinate, rows, h):
    """Write drive rows, c = velocity - (alpha / h) (coordinate - target), and rows of locked coordinates."""
    joints, drives, rows = load_shared(joints, drives, rows)
    for i in range(joints.drive_row.shape[0]):
        k, j = joints.drive_row[i], joints.joint[i]
        if k < 0:
            continue
        if joints.rotation_driven[j]:
            if i == joints.coordinate_first[j]:
                fill_ball_drive(joints, drives, j, i, rows, k, h)
            continue
        put_coordinate_row(joints, i, 1.0, rows.jacobian, rows.first[k])
        if joints.locked[i]:
            soft_law(rows, k, -joints.alpha[j] / h * (coordinate[i] - joints.default[i]), joints.beta[j])
        else:
            c = drives.velocity[i] - drives.alpha[i] / h * (coordinate[i] - drives.target[i])
            set_drive_target(drives, i, rows, k, c, h)


@inline
def cardan_angular_velocity(b, c, adot, bdot, cdot):
    """Return the relative angular velocity of Rx(a) Ry(b) Rz(c) in the child's axes."""
    return (
        adot * cos(c) * cos(b) + bdot * sin(c),
        -adot * sin(c) * cos(b) + bdot * cos(c),
        adot * sin(b) + cdot,
    )


@inline
def fill_ball_drive(joints, drives, j, i, rows, k, h):
    """Write three rows on the angular velocity of ball joint j along the child's joint axes, never singular.

    C = log(Rt^-1 R): the rotation vector from the target to the present orientation, the same in either's axes. As for
    fixed joints, C . dC/dt = C . (relative angular velocity). The third row has the sign of the third coordinate.
    """
    sign, axes = joints.sign[i + 2], joints.axes_child
    a, b, c = drives.target[i], drives.target[i + 1], sign * drives.target[i + 2]
    tw, tx, ty, tz = cardan_quaternion(a, b, c)
    w, x, y, z = relative_quaternion(joints.axes_parent, axes, j)
    w, x, y, z = quaternion_product(tw, -tx, -ty, -tz, w, x, y, z)
    x, y, z = rotation_logarithm(w, x, y, z)
    rate = drives.velocity
    wx, wy, wz = cardan_angular_velocity(b, c, rate[i], rate[i + 1], sign * rate[i + 2])
    for axis in range(3):
        error = x if axis == 0 else (y if axis == 1 else sign * z)
        aim = wx if axis == 0 else (wy if axis == 1 else sign * wz)
        s = sign if axis == 2 else 1.0
        put_angular_row(
            rows.jacobian, rows.first[k + axis], joints.child_slot[j], joints.parent_slot[j],
            s * axes[j, axis, 0], s * axes[j, axis, 1], s * axes[j, axis, 2],
        )
        set_drive_target(drives, i + axis, rows, k + axis, aim - drives.alpha[i + axis] / h * error, h)


@kernel_function
def set_drive_targets_from_twists(joints, drives, target_twist, rows, h):
    """Set the target velocity of every drive to the one its row has when the bodies have the given twists.

    Comes after `fill_drive_rows` and `fill_prescribed_motion`; bounds, compliance and dead zone stay the drive's.
    """
    joints, drives, rows = load_shared(joints, drives, rows)
    for i in range(joints.drive_row.shape[0]):
        k = joints.drive_row[i]
        if k >= 0 and not joints.locked[i]:
            c = rows.offset[k]
            for e in range(rows.first[k], rows.first[k + 1]):
                b = rows.body[e]
                for a in range(6):
                    c += rows.jacobian[e, a] * target_twist[b, a]
            set_drive_target(drives, i, rows, k, c, h)


@inline
def add_coupled_body(jacobian, e, slot, b, twist, scale, d, i, rx, ry, rz):
    """Add scale (l, r x l + n), a body's part of coordinate i's rate; return it as velocity if kinematic."""
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
    """Write rows of couplings q = f(q_on): C = q - f(q_on), Cdot = qdot - f'(q_on) qdot_on."""
    joints, rows = load_shared(joints, rows)
    motion, d, jacobian = joints.motion, joints.direction, rows.jacobian
    arm_child, arm_parent, gap = joints.arm_child, joints.arm_parent, joints.gap
    for n in range(joints.coupling_row.shape[0]):
        k, i, on = joints.coupling_row[n], joints.coupling_coordinate[n], joints.coupling_on[n]
        value, slope = evaluate(
            motion.function_first, motion.function_end, motion.piece_start, motion.piece_coefficient,
            joints.coupling_function[n], coordinate[on],
        )
        soft_law(rows, k, -joints.coupling_alpha[n] / h * (coordinate[i] - value), joints.coupling_beta[n])
        first, given = rows.first[k], 0.0
        jacobian[first : rows.first[k + 1], :] = 0.0
        for side in range(2):
            q, scale = (i, 1.0) if side == 0 else (on, -slope)
            j = joints.joint[q]
            given += add_coupled_body(
                jacobian, first, joints.coupling_slot[n, 2 * side], joints.child[j], twist, scale, d, q,
                arm_child[j, 0], arm_child[j, 1], arm_child[j, 2],
            )
            given += add_coupled_body(
                jacobian, first, joints.coupling_slot[n, 2 * side + 1], joints.parent[j], twist, -scale, d, q,
                arm_parent[j, 0] + gap[j, 0], arm_parent[j, 1] + gap[j, 1], arm_parent[j, 2] + gap[j, 2],
            )
        rows.offset[k] = given
