"""Constraint rows of joints: direction and error of every motion a joint prevents.

Letters: x_c, x_p centers of mass; r_c, r_p the arms from them to the joint's two anchors (world axes);
d = x_c + r_c - x_p - r_p the gap; s = r_p + d the parent's arm to the child's anchor; v, w linear and angular
velocities; a and b unit axes fixed in parent and child. A row's velocity is counted child minus parent.

All joints consist of two kinds of row:

    along an axis a of the parent   C = a . d   Cdot = a . (v_c + w_c x r_c - v_p - w_p x s)
    about an axis n                             Cdot = n . (w_c - w_p)

In the first the axis rotates, da/dt = w_p x a, which changes r_p into s. A gap prevented in all three directions is
expressed along the constant world axes instead: r_p stays r_p and the linear part is constant.

Each step `pose_joints` comes first, `fill_prescribed_motion` last.
"""

from __future__ import annotations

from collections.abc import Iterable

from borelli.kernels.jit import inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import cross, rotation_logarithm
from borelli.physics.arrays.joints import BALL, FIXED, HINGE, PLANAR, SLIDER, UNIVERSAL, JointTables
from borelli.physics.joints.custom_joint import fit_custom_joint
from borelli.physics.joints.joint_frames import (
    along_axis,
    axes_dot,
    compute_joint_frames,
    from_axes,
    relative_quaternion,
)
from borelli.physics.rows.rows import Rows
from borelli.physics.vectors import load3, store3

POINT_KINDS = (BALL, UNIVERSAL, HINGE, FIXED)
"""Joint kinds whose anchors coincide; their first three rows constrain the gap."""


@kernel_function
def pose_joints(joints, position, rotation, coordinate_inout):
    """Update the joint frames to the bodies' poses, and the coordinates of custom joints.

    `coordinate_inout` has start and result of the search for a custom joint's values; others are unchanged.
    """
    joints = load_shared(joints)
    compute_joint_frames(joints, position, rotation)
    axes_parent, axes_child, gap, motion = joints.axes_parent, joints.axes_child, joints.gap, joints.motion
    for m in range(motion.joint.shape[0]):
        j = motion.joint[m]
        w, x, y, z = relative_quaternion(axes_parent, axes_child, j)
        dx = along_axis(axes_parent, j, 0, gap[j, 0], gap[j, 1], gap[j, 2])
        dy = along_axis(axes_parent, j, 1, gap[j, 0], gap[j, 1], gap[j, 2])
        dz = along_axis(axes_parent, j, 2, gap[j, 0], gap[j, 1], gap[j, 2])
        fit_custom_joint(motion, m, w, x, y, z, dx, dy, dz, coordinate_inout)


@inline
def put_angular_row(jacobian, e, slot_c, slot_p, x, y, z):
    """Write a row about n = (x, y, z): child +n, parent -n; the linear parts stay zero."""
    if slot_c >= 0:
        store3(jacobian, e, 3, x, y, z)
    if slot_p >= 0:
        store3(jacobian, e + slot_p, 3, -x, -y, -z)


@inline
def put_body_entry(jacobian, e, sign, x, y, z, nx, ny, nz, rx, ry, rz):
    """Write one body's entry of a row along l = (x, y, z) and about n, with the arm r: sign (l, r x l + n)."""
    ax, ay, az = cross(rx, ry, rz, x, y, z)
    store3(jacobian, e, 0, sign * x, sign * y, sign * z)
    store3(jacobian, e, 3, sign * (ax + nx), sign * (ay + ny), sign * (az + nz))


@inline
def put_row(arm_child, arm_parent, gap, j, slot_c, slot_p, jacobian, e, x, y, z, nx, ny, nz):
    """Write a row along l = (x, y, z) and about n: l . (v_c + w_c x r_c - v_p - w_p x s) + n . (w_c - w_p)."""
    if slot_c >= 0:
        rx, ry, rz = load3(arm_child, j, 0)
        put_body_entry(jacobian, e, 1.0, x, y, z, nx, ny, nz, rx, ry, rz)
    if slot_p >= 0:
        sx, sy, sz = arm_parent[j, 0] + gap[j, 0], arm_parent[j, 1] + gap[j, 1], arm_parent[j, 2] + gap[j, 2]
        put_body_entry(jacobian, e + slot_p, -1.0, x, y, z, nx, ny, nz, sx, sy, sz)


@inline
def put_point_arm(jacobian, e, stride, x, y, z):
    """Write three rows of w x r, r = (x, y, z), along the world axes, `stride` entries apart: row i is r x e_i."""
    jacobian[e, 4], jacobian[e, 5] = z, -y
    e += stride
    jacobian[e, 3], jacobian[e, 5] = -z, x
    e += stride
    jacobian[e, 3], jacobian[e, 4] = y, -x


@inline
def fill_point_rows(arm_child, arm_parent, gap, j, slot_c, slot_p, stride, rate, jacobian, target, k, e):
    """Keep the anchors together along the world axes: C = d, Cdot = v_c + w_c x r_c - v_p - w_p x (r_p + d).

    This is the rate of C relative to the parent. The impulse acts on both bodies at the child's anchor: the impulse of
    an open joint must not produce a couple.

    The identity in the linear part is written once, by `init_joint_rows`.
    """
    for n in range(3):
        target[k + n, 0] = -rate * gap[j, n]
    if slot_c >= 0:
        put_point_arm(jacobian, e, stride, arm_child[j, 0], arm_child[j, 1], arm_child[j, 2])
    if slot_p >= 0:
        put_point_arm(
            jacobian, e + slot_p, stride,
            -arm_parent[j, 0] - gap[j, 0], -arm_parent[j, 1] - gap[j, 1], -arm_parent[j, 2] - gap[j, 2],
        )


@inline
def fill_perpendicular_row(axes_parent, a, axes_child, b, j, slot_c, slot_p, rate, jacobian, target, k, e):
    """Keep a parent axis a and a child axis b perpendicular: C = a . b, Cdot = (b x a) . (w_c - w_p)."""
    x, y, z = cross(
        axes_child[j, b, 0], axes_child[j, b, 1], axes_child[j, b, 2],
        axes_parent[j, a, 0], axes_parent[j, a, 1], axes_parent[j, a, 2],
    )
    target[k, 0] = -rate * axes_dot(axes_parent, a, axes_child, b, j)
    put_angular_row(jacobian, e, slot_c, slot_p, x, y, z)


@inline
def fill_rotation_error(axes_parent, axes_child, j, rate, target, k):
    """Prevent all rotation: C = the rotation vector phi from parent to child frame, rows w_c - w_p along world axes.

    dphi/dt is w_c - w_p where phi = 0; elsewhere phi . dphi/dt = phi . (w_c - w_p) still holds, so a soft row's torque
    is the gradient of |phi|^2 / 2 at any angle. The directions are constant, written once by `init_joint_rows`.
    """
    w, x, y, z = relative_quaternion(axes_parent, axes_child, j)
    x, y, z = rotation_logarithm(w, x, y, z)
    x, y, z = from_axes(axes_parent, j, x, y, z)
    target[k, 0], target[k + 1, 0], target[k + 2, 0] = -rate * x, -rate * y, -rate * z


@inline
def fill_sliding_rows(joints, rows, h):
    """Write rows of sliders (no translation across the axis, no rotation) and planar joints.

    Planar joints prevent translation along the normal and tilt of it. No gap along an axis a of the parent: C = a . d.
    """
    axes_parent, axes_child, gap = joints.axes_parent, joints.axes_child, joints.gap
    for j in range(joints.kind.shape[0]):
        kind, k = joints.kind[j], joints.row_first[j]
        if joints.row_first[j + 1] == k or (kind != SLIDER and kind != PLANAR):
            continue
        e, rate, slot_c, slot_p = rows.first[k], joints.alpha[j] / h, joints.child_slot[j], joints.parent_slot[j]
        stride = rows.first[k + 1] - e
        for axis in range(1 if kind == SLIDER else 2, 3):
            x, y, z = axes_parent[j, axis, 0], axes_parent[j, axis, 1], axes_parent[j, axis, 2]
            rows.c[k, 0] = -rate * (x * gap[j, 0] + y * gap[j, 1] + z * gap[j, 2])
            put_row(
                joints.arm_child, joints.arm_parent, gap, j, slot_c, slot_p,
                rows.jacobian, e, x, y, z, 0.0, 0.0, 0.0,
            )
            k += 1
            e += stride
        if kind == SLIDER:
            fill_rotation_error(axes_parent, axes_child, j, rate, rows.c, k)
        else:
            for axis in range(2):
                fill_perpendicular_row(
                    axes_parent, axis, axes_child, 2, j, slot_c, slot_p, rate, rows.jacobian, rows.c, k, e
                )
                k += 1
                e += stride


@inline
def fill_custom_joint_rows(joints, rows, h):
    """Write rows along the directions in which a custom joint cannot move.

    With the pose X(q), its velocity S(q) qdot and e the pose error that remains at the best q (S^T e = 0): N spans the
    complement of S (N^T S = 0, N^T N = 1), C = N^T e, Cdot = N^T (relative velocity) where e = 0.
    """
    motion, axes = joints.motion, joints.axes_parent
    basis, residual = motion.basis, motion.residual
    for m in range(motion.joint.shape[0]):
        j = motion.joint[m]
        start, rate = joints.row_first[j], joints.alpha[j] / h
        for k in range(start, joints.row_first[j + 1]):
            i = motion.freedom[m] + k - start
            error = 0.0
            for a in range(6):
                error += basis[m, a, i] * residual[m, a]
            rows.c[k, 0] = -rate * error
            lx, ly, lz = from_axes(axes, j, basis[m, 0, i], basis[m, 1, i], basis[m, 2, i])
            nx, ny, nz = from_axes(axes, j, basis[m, 3, i], basis[m, 4, i], basis[m, 5, i])
            put_row(
                joints.arm_child, joints.arm_parent, joints.gap, j, joints.child_slot[j], joints.parent_slot[j],
                rows.jacobian, rows.first[k], lx, ly, lz, nx, ny, nz,
            )


@kernel_function
def fill_joint_rows(joints, rows, h):
    """Write directions and target velocities c = -(alpha / h) C of all joint rows for a step h."""
    joints, rows = load_shared(joints, rows)
    jacobian, target, first, row_first = rows.jacobian, rows.c, rows.first, joints.row_first
    kinds, child_slot, parent_slot, alpha = joints.kind, joints.child_slot, joints.parent_slot, joints.alpha
    arm_child, arm_parent, gap = joints.arm_child, joints.arm_parent, joints.gap
    axes_child, axes_parent = joints.axes_child, joints.axes_parent
    others = False
    for j in range(kinds.shape[0]):
        kind, k = kinds[j], row_first[j]
        if row_first[j + 1] == k:
            continue
        if kind not in POINT_KINDS:
            others = True
            continue
        e, rate, slot_c, slot_p = first[k], alpha[j] / h, child_slot[j], parent_slot[j]
        stride = first[k + 1] - e
        fill_point_rows(arm_child, arm_parent, gap, j, slot_c, slot_p, stride, rate, jacobian, target, k, e)
        k += 3
        e += 3 * stride
        if kind == UNIVERSAL:
            fill_perpendicular_row(axes_parent, 0, axes_child, 1, j, slot_c, slot_p, rate, jacobian, target, k, e)
        elif kind == HINGE:
            fill_perpendicular_row(axes_parent, 1, axes_child, 0, j, slot_c, slot_p, rate, jacobian, target, k, e)
            fill_perpendicular_row(
                axes_parent, 2, axes_child, 0, j, slot_c, slot_p, rate, jacobian, target, k + 1, e + stride
            )
        elif kind == FIXED:
            fill_rotation_error(axes_parent, axes_child, j, rate, target, k)
    if others:
        fill_sliding_rows(joints, rows, h)
        fill_custom_joint_rows(joints, rows, h)


@kernel_function
def fill_prescribed_motion(joints, twist, rows):
    """Write the part of the velocity of joint, limit and drive rows that comes from kinematic bodies.

    The body that is solved for has the entry (l, r x l + n), up to sign; l and n follow from it and give, with the
    other body's arm, its part of the same row.
    """
    joints, rows = load_shared(joints, rows)
    arm_child, arm_parent, gap = joints.arm_child, joints.arm_parent, joints.gap
    for i in range(joints.prescribed_row.shape[0]):
        k, j = joints.prescribed_row[i], joints.prescribed_joint[i]
        e = rows.first[k]
        cx, cy, cz = load3(arm_child, j, 0)
        px, py, pz = arm_parent[j, 0] + gap[j, 0], arm_parent[j, 1] + gap[j, 1], arm_parent[j, 2] + gap[j, 2]
        b = joints.parent[j]
        if joints.child_slot[j] < 0:
            b = joints.child[j]
            cx, cy, cz, px, py, pz = px, py, pz, cx, cy, cz
        lx, ly, lz = load3(rows.jacobian, e, 0)
        ax, ay, az = cross(px - cx, py - cy, pz - cz, lx, ly, lz)
        rows.offset[k] = -(
            lx * twist[b, 0] + ly * twist[b, 1] + lz * twist[b, 2]
            + (rows.jacobian[e, 3] + ax) * twist[b, 3]
            + (rows.jacobian[e, 4] + ay) * twist[b, 4]
            + (rows.jacobian[e, 5] + az) * twist[b, 5]
        )


def init_joint_rows(joints: JointTables, rows: Rows) -> None:
    """Write once what no step changes: bodies of all joint rows, laws and constants of constraint rows."""
    for j, kind in enumerate(joints.kind):
        start, end = joints.row_first[j], joints.row_first[j + 1]
        rows.pieces[start:end] = 1
        rows.beta[start:end, 0] = joints.beta[j]
        for k in range(start, end):
            _init_bodies(joints, j, rows, k)
        if end > start and kind in POINT_KINDS:
            _init_units(joints, j, rows, start, range(6 if kind == FIXED else 3))
        elif end > start and kind == SLIDER:
            _init_units(joints, j, rows, start + 2, range(3, 6))
    for row in (joints.limit_row, joints.drive_row):
        for j, k in zip(joints.joint, row, strict=True):
            if k >= 0:
                _init_bodies(joints, j, rows, k)
    for k, i, on, slots in zip(
        joints.coupling_row, joints.coupling_coordinate, joints.coupling_on, joints.coupling_slot, strict=True
    ):
        owners = joints.joint[i], joints.joint[on]
        for slot, body in zip(slots, [b for j in owners for b in (joints.child[j], joints.parent[j])], strict=True):
            if slot >= 0:
                rows.body[rows.first[k] + slot] = body


def _init_bodies(joints: JointTables, j: int, rows: Rows, k: int) -> None:
    """Set the bodies of row k, which belongs to joint j."""
    for slot, body in ((joints.child_slot[j], joints.child[j]), (joints.parent_slot[j], joints.parent[j])):
        if slot >= 0:
            rows.body[rows.first[k] + slot] = body


def _init_units(joints: JointTables, j: int, rows: Rows, start: int, components: Iterable[int]) -> None:
    """Make the rows from `start` on single components of the relative velocity, child minus parent."""
    for k, component in enumerate(components, start):
        for slot, sign in ((joints.child_slot[j], 1.0), (joints.parent_slot[j], -1.0)):
            if slot >= 0:
                rows.jacobian[rows.first[k] + slot, component] = sign
