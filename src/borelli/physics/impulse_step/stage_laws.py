"""The laws that rows have in the stages of an impulse step.

Which rows are there stays the same in all stages, so that bodies are ordered and rows handed to them once a step: a row
that has no part in a stage is left out by the law p = 0.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import cross
from borelli.physics.arrays.joints import HINGE
from borelli.physics.rows.contact_rows import NORMAL_OF_BOUND, put_tangents, set_rolling
from borelli.physics.rows.joint_rows import POINT_KINDS, put_angular_row, put_point_arm
from borelli.physics.rows.laws import one_sided_law, soft_law
from borelli.physics.rows.rows import FLAT
from borelli.physics.solver.factor_arrays import ABSENT, IMPULSE, KIND, SOLUTION
from borelli.physics.solver.iterative_refinement import row_velocity


@inline
def leave_out(rows, k):
    """Let row k push with nothing."""
    rows.pieces[k] = 1
    rows.beta[k, 0] = FLAT
    rows.c[k, 0] = 0.0


@inline
def along_row(rows, k, twist):
    """What velocities of bodies are along row k."""
    u = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        b = rows.body[e]
        if b >= 0:
            for n in range(6):
                u += rows.jacobian[e, n] * twist[b, n]
    return u


@inline
def velocity_along(rows, k, twist):
    """The velocity of row k for the given velocities of bodies."""
    return rows.offset[k] + along_row(rows, k, twist)


@kernel_function
def hold_joints(joints, rows):
    """Joints, couplings and locked coordinates stay as they are: u = 0."""
    for j in range(len(joints.kind)):
        for k in range(joints.row_first[j], joints.row_first[j + 1]):
            soft_law(rows, k, 0.0, joints.beta[j])
    for n in range(len(joints.coupling_row)):
        soft_law(rows, joints.coupling_row[n], 0.0, joints.coupling_beta[n])
    for i in range(len(joints.drive_row)):
        if joints.drive_row[i] >= 0 and joints.locked[i]:
            soft_law(rows, joints.drive_row[i], 0.0, joints.beta[joints.joint[i]])


@inline_into_caller
def leave_out_marked(rows, marked):
    """Leave out the marked rows, of those that are there."""
    for k in range(len(marked)):
        if marked[k] and rows.pieces[k] > 0:
            leave_out(rows, k)


@kernel_function
def leave_out_contacts(rows, first):
    """Leave out all contact rows."""
    for k in range(first, rows.used[0]):
        if rows.pieces[k] > 0:
            leave_out(rows, k)


@inline
def _square_to(x, y, z):
    """A unit vector square to (x, y, z)."""
    if abs(x) < abs(y):
        px, py, pz = cross(x, y, z, 1.0, 0.0, 0.0)
    else:
        px, py, pz = cross(x, y, z, 0.0, 1.0, 0.0)
    scale = 1.0 / sqrt(px * px + py * py + pz * pz)
    return scale * px, scale * py, scale * pz


@inline_into_caller
def meet_halfway(joints, rows, h):
    """Let open joints be pushed halfway between their anchors, and hinges turned about axes square to both of theirs.

    The soft step pushes at the child's anchor and turns about the parent's axes. With d the gap, the same with the arms
    r_c - d/2 and r_p + d/2 does not depend on which body is called the child, and neither do the turn b x a that brings
    the child's axis b upon the parent's axis a, and a hinge's own turn about a + b.
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
            )  # fmt: skip
        if slot_p >= 0:
            put_point_arm(
                rows.jacobian, e + slot_p, stride,
                -arm_p[j, 0] - 0.5 * gap[j, 0], -arm_p[j, 1] - 0.5 * gap[j, 1], -arm_p[j, 2] - 0.5 * gap[j, 2],
            )  # fmt: skip
        if kind != HINGE:
            continue
        a, b = joints.axes_parent, joints.axes_child
        tx, ty, tz = cross(b[j, 0, 0], b[j, 0, 1], b[j, 0, 2], a[j, 0, 0], a[j, 0, 1], a[j, 0, 2])
        mx, my, mz = a[j, 0, 0] + b[j, 0, 0], a[j, 0, 1] + b[j, 0, 1], a[j, 0, 2] + b[j, 0, 2]
        x, y, z = _square_to(mx, my, mz)
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
def take_errors(joints, trial, rows):
    """Let joints, couplings and locked coordinates be corrected by the errors that other rows have found."""
    for k in range(joints.row_ranges[0], joints.row_ranges[2]):
        rows.c[k, 0] = trial.c[k, 0]
    for i in range(len(joints.drive_row)):
        k = joints.drive_row[i]
        if k >= 0 and joints.locked[i]:
            rows.c[k, 0] = trial.c[k, 0]


@inline
def lessen_joints(joints, trial, change, rows):
    """Take from what joints, couplings and locked coordinates lack what a change gives them; the largest lack left."""
    worst = 0.0
    for k in range(joints.row_ranges[0], joints.row_ranges[2]):
        rows.c[k, 0] -= along_row(trial, k, change)
        worst = max(worst, abs(rows.c[k, 0]))
    for i in range(len(joints.drive_row)):
        k = joints.drive_row[i]
        if k >= 0 and joints.locked[i]:
            rows.c[k, 0] -= along_row(trial, k, change)
            worst = max(worst, abs(rows.c[k, 0]))
    return worst


@inline
def widest_gap(joints, rows, h, with_stops):
    """The largest error of joints, couplings and locked coordinates, and of stops [m or rad]."""
    widest = 0.0
    for k in range(joints.row_ranges[0], joints.row_ranges[2]):
        widest = max(widest, abs(rows.c[k, 0]))
    for i in range(len(joints.drive_row)):
        if joints.drive_row[i] >= 0 and joints.locked[i]:
            widest = max(widest, abs(rows.c[joints.drive_row[i], 0]))
    if with_stops:
        for k in range(joints.row_ranges[2], joints.row_ranges[3]):
            if rows.pieces[k] == 2:
                widest = max(widest, rows.c[k, 0])
    return h * widest


@inline_into_caller
def keep_listed(rows, mark, first):
    """Let standing rows that have gone (stops out of reach) stay where they are listed."""
    for k in range(first):
        if rows.pieces[k] == 0 and mark[k, KIND] != ABSENT:
            leave_out(rows, k)


@inline
def _pull_along(rows, k, gravity):
    """The acceleration of row k if its bodies fell freely."""
    pull = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            for n in range(3):
                pull += rows.jacobian[e, n] * gravity[n]
    return pull


@kernel_function
def fill_contact_laws(shapes_at, tables_at, contacts_at, touch_at, rows_at, twist, gravity, numbers, striking):
    """The laws of contacts: when bodies strike, or while they press on each other; how many strike.

    Contacts that approach and would close in this step, gravity included, are to part with their restitution,
    u_n >= -e u_n(before); slower than the bounce speed, e = 0. All others may close, u_n >= -gap / h. While they press,
    all may close, and those that overlap are pushed apart.
    """
    shapes, tables, contacts, rows = load_shared(shapes_at, tables_at, contacts_at, rows_at)
    touch, who, count = touch_at.contact, touch_at.contact_body, touch_at.count[0]
    each, k, h = tables.rows_each[0], tables.first_row[0], numbers[5]
    struck = 0
    for i in range(count):
        pair, depth = contacts.pair[i], contacts.depth[i]
        c = min(depth / h, 0.0)
        if striking:
            u = velocity_along(rows, k, twist)
            if u < 0.0 and u + h * _pull_along(rows, k, gravity) < c:
                struck += 1
                c = -shapes.pair_restitution[pair] * u if u < -numbers[1] else 0.0
        elif depth > 0.0:
            c = min(tables.alpha[pair] * depth / h, numbers[2])
        one_sided_law(rows, k, c, tables.beta[pair])
        put_tangents(rows, touch, who, i, k + 1)
        if each == 6 and rows.pieces[k + 3] > 0:
            set_rolling(rows, touch, i, k + 3, touch[i, NORMAL_OF_BOUND])
        k += each
    return struck


fill_contact_laws_by_pointer = by_pointer(fill_contact_laws)


@kernel_function
def count_from_solution(rows, node, factor, first, end, softer):
    """Let rows count velocity and impulse from those of the last solve: what follows is a change of both.

    Slopes are made `softer` times as large. While positions are corrected controls hold what contacts hold too, and
    where both are all but hard, rounding of their aims would become forces.
    """
    for k in range(first, end):
        if rows.pieces[k] > 0:
            u, p = row_velocity(rows, node, factor.block, SOLUTION, k), factor.value[k, IMPULSE]
            rows.offset[k] = 0.0
            for s in range(rows.pieces[k] - 1):
                rows.break_p[k, s] -= p
            for s in range(rows.pieces[k]):
                if rows.beta[k, s] < 0.0:
                    rows.c[k, s] -= p
                    continue
                rows.c[k, s] -= u + rows.beta[k, s] * p
                rows.beta[k, s] *= softer
                if s > 0:
                    rows.break_u[k, s - 1] = rows.c[k, s] - rows.beta[k, s] * rows.break_p[k, s - 1]
                if s < rows.pieces[k] - 1:
                    rows.break_u[k, s] = rows.c[k, s] - rows.beta[k, s] * rows.break_p[k, s]
