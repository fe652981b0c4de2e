"""Laws of rows in the stages of an impulse step.

The rows are the same in all stages, so that bodies are ordered and rows assigned to them once a step: a row that does
not act in a stage is disabled by the law p = 0.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import cross
from borelli.physics.arrays.indices import BOUNCE_SPEED, DRIVE_ROWS, LIMIT_ROWS, PUSH_OUT_SPEED, STEP_SIZE
from borelli.physics.arrays.joints import HINGE
from borelli.physics.rows.contact_rows import CONTACTS_NOW, NORMAL_OF_BOUND, put_tangents, set_rolling
from borelli.physics.rows.joint_rows import POINT_KINDS, put_angular_row, put_point_arm
from borelli.physics.rows.laws import fixed_impulse, one_sided_law, soft_law
from borelli.physics.solver.factor_arrays import ABSENT, KIND


@inline
def disable_row(rows, k):
    """Set the law of row k to p = 0."""
    fixed_impulse(rows, k, 0.0)


@inline
def project_on_row(rows, k, twist):
    """Return J v of row k."""
    u = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        b = rows.body[e]
        if b >= 0:
            for n in range(6):
                u += rows.jacobian[e, n] * twist[b, n]
    return u


@inline
def velocity_on_row(rows, k, twist):
    """Return the velocity of row k: its offset plus J v."""
    return rows.offset[k] + project_on_row(rows, k, twist)


@kernel_function
def fix_joints(joints, rows):
    """Set the law of joints, couplings and locked coordinates to u = 0."""
    for j in range(len(joints.kind)):
        for k in range(joints.row_first[j], joints.row_first[j + 1]):
            soft_law(rows, k, 0.0, joints.beta[j])
    for n in range(len(joints.coupling_row)):
        soft_law(rows, joints.coupling_row[n], 0.0, joints.coupling_beta[n])
    for i in range(len(joints.drive_row)):
        if joints.drive_row[i] >= 0 and joints.locked[i]:
            soft_law(rows, joints.drive_row[i], 0.0, joints.beta[joints.joint[i]])


@inline_into_caller
def disable_marked(rows, marked):
    """Disable the marked rows that act."""
    for k in range(len(marked)):
        if marked[k] and rows.pieces[k] > 0:
            disable_row(rows, k)


@kernel_function
def disable_contacts(rows, first):
    """Disable all contact rows."""
    for k in range(first, rows.used[0]):
        if rows.pieces[k] > 0:
            disable_row(rows, k)


@inline
def _perpendicular_to(x, y, z):
    """Return a unit vector perpendicular to (x, y, z)."""
    if abs(x) < abs(y):
        px, py, pz = cross(x, y, z, 1.0, 0.0, 0.0)
    else:
        px, py, pz = cross(x, y, z, 0.0, 1.0, 0.0)
    scale = 1.0 / sqrt(px * px + py * py + pz * pz)
    return scale * px, scale * py, scale * pz


@inline_into_caller
def center_joint_rows(joints, rows, h):
    """Apply impulses of open joints midway between their anchors, and of hinges about axes perpendicular to both.

    The soft step applies them at the child's anchor and about the parent's axes. With d the gap, arms r_c - d/2 and
    r_p + d/2 do not depend on which body is the child, and neither do the rotation b x a that aligns the child's axis b
    with the parent's axis a, and a hinge's own rotation about a + b.
    """
    for j in range(len(joints.kind)):
        kind, k = joints.kind[j], joints.row_first[j]
        if joints.row_first[j + 1] == k or kind not in POINT_KINDS:
            continue
        e, slot_c, slot_p = rows.first[k], joints.child_slot[j], joints.parent_slot[j]
        stride = rows.first[k + 1] - e
        arm_c, arm_p, gap = joints.arm_child, joints.arm_parent, joints.gap
        if slot_c >= 0:
            put_point_arm(
                rows.jacobian, e, stride,
                arm_c[j, 0] - 0.5 * gap[j, 0], arm_c[j, 1] - 0.5 * gap[j, 1], arm_c[j, 2] - 0.5 * gap[j, 2],
            )
        if slot_p >= 0:
            put_point_arm(
                rows.jacobian, e + slot_p, stride,
                -arm_p[j, 0] - 0.5 * gap[j, 0], -arm_p[j, 1] - 0.5 * gap[j, 1], -arm_p[j, 2] - 0.5 * gap[j, 2],
            )
        if kind != HINGE:
            continue
        a, b = joints.axes_parent, joints.axes_child
        tx, ty, tz = cross(b[j, 0, 0], b[j, 0, 1], b[j, 0, 2], a[j, 0, 0], a[j, 0, 1], a[j, 0, 2])
        mx, my, mz = a[j, 0, 0] + b[j, 0, 0], a[j, 0, 1] + b[j, 0, 1], a[j, 0, 2] + b[j, 0, 2]
        x, y, z = _perpendicular_to(mx, my, mz)
        scale = 1.0 / sqrt(mx * mx + my * my + mz * mz)
        mx, my, mz = scale * mx, scale * my, scale * mz
        for side in range(2):
            put_angular_row(rows.jacobian, e + (3 + side) * stride, slot_c, slot_p, x, y, z)
            rows.c[k + 3 + side, 0] = (x * tx + y * ty + z * tz) / h
            x, y, z = cross(mx, my, mz, x, y, z)
        driven = joints.drive_row[joints.coordinate_first[j]]
        if driven >= 0:
            put_angular_row(rows.jacobian, rows.first[driven], slot_c, slot_p, mx, my, mz)


@inline
def copy_errors(joints, trial, rows):
    """Copy the errors of joints, couplings and locked coordinates from the trial rows."""
    for n in range(len(joints.equation_row)):
        k = joints.equation_row[n]
        rows.c[k, 0] = trial.c[k, 0]


@inline
def reduce_joint_defects(joints, trial, change, rows):
    """Subtract a change from the defects of joints, couplings and locked coordinates; return the largest one left."""
    largest = 0.0
    for n in range(len(joints.equation_row)):
        k = joints.equation_row[n]
        rows.c[k, 0] -= project_on_row(trial, k, change)
        largest = max(largest, abs(rows.c[k, 0]))
    return largest


@inline
def largest_joint_error(joints, rows, h, with_limits):
    """Return the largest error of joints, couplings and locked coordinates, and of limits [m or rad]."""
    largest = 0.0
    for n in range(len(joints.equation_row)):
        largest = max(largest, abs(rows.c[joints.equation_row[n], 0]))
    if with_limits:
        for k in range(joints.row_ranges[LIMIT_ROWS], joints.row_ranges[DRIVE_ROWS]):
            if rows.pieces[k] == 2:
                largest = max(largest, rows.c[k, 0])
    return h * largest


@inline_into_caller
def keep_listed_rows(rows, mark, first):
    """Disable persistent rows that no longer act (distant limits) but are listed."""
    for k in range(first):
        if rows.pieces[k] == 0 and mark[k, KIND] != ABSENT:
            disable_row(rows, k)


@inline
def _free_acceleration(rows, k, gravity):
    """Return the acceleration of row k in free fall."""
    acceleration = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            for n in range(3):
                acceleration += rows.jacobian[e, n] * gravity[n]
    return acceleration


@kernel_function
def fill_contact_laws(tables, state, work, colliding):
    """Write the laws of contacts, in collisions or in resting contact, and return the number of colliding contacts.

    In collisions, contacts that approach and would close in this step, gravity included, separate with their
    restitution, u_n >= -e u_n(before); below the bounce speed, e = 0. All others may close, u_n >= -gap / h. In resting
    contact all may close, and overlaps are corrected.
    """
    shapes, laws, contacts, rows = load_shared(tables.shapes, tables.contacts, work.contacts, work.rows)
    arrays, twist, gravity, parameters = work.contact_arrays, state.twist, tables.gravity, tables.parameters
    contact, contact_body = arrays.contact, arrays.contact_body
    each, k, h = laws.rows_each[0], laws.first_row[0], parameters[STEP_SIZE]
    collisions = 0
    for i in range(arrays.count[CONTACTS_NOW]):
        pair, depth = contacts.pair[i], contacts.depth[i]
        c = min(depth / h, 0.0)
        if colliding:
            u = velocity_on_row(rows, k, twist)
            if u < 0.0 and u + h * _free_acceleration(rows, k, gravity) < c:
                collisions += 1
                c = -shapes.pair_restitution[pair] * u if u < -parameters[BOUNCE_SPEED] else 0.0
        elif depth > 0.0:
            c = min(laws.alpha[pair] * depth / h, parameters[PUSH_OUT_SPEED])
        one_sided_law(rows, k, c, laws.beta[pair])
        put_tangents(rows, contact, contact_body, i, k + 1)
        if each == 6 and rows.pieces[k + 3] > 0:
            set_rolling(rows, contact, i, k + 3, contact[i, NORMAL_OF_BOUND])
        k += each
    return collisions


fill_contact_laws_by_pointer = by_pointer(fill_contact_laws)
