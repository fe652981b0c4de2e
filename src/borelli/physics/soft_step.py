"""One soft step (seed 004, S1): semi-implicit Euler with implicit springs, all rows solved at once.

`step` is the table of contents; each stage is a kernel of its own in the module that holds its idea.
"""

from __future__ import annotations

from math import isnan

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.collision.detect import find_contacts_by_pointer
from borelli.physics.joints.coordinates import coordinates_from_poses
from borelli.physics.rigid_bodies import (
    aim_at_poses,
    apply_pushes,
    is_finite,
    load_bodies,
    move_bodies,
    turn_bodies,
)
from borelli.physics.rows.contact_rows import (
    BODY_A,
    BODY_B,
    SLOT,
    TANGENT,
    fill_contact_arrays_by_pointer,
    fill_contact_rows_by_pointer,
)
from borelli.physics.rows.coordinate_rows import (
    fill_coupling_rows,
    fill_drive_rows,
    fill_limit_rows,
    set_drive_targets_from_twists,
)
from borelli.physics.rows.joint_rows import fill_joint_rows, fill_prescribed_motion, pose_joints
from borelli.physics.rows.laws import bounded_law, no_law, soft_law
from borelli.physics.solver.coulomb_newton import ACCEPTED, TOO_MANY_BODIES, solve_contacts_by_pointer
from borelli.physics.solver.elimination_order import DIRTY, order_bodies
from borelli.physics.solver.factor_arrays import ABSENT, ACTIVE_PIECE, IMPULSE, KIND, list_rows
from borelli.physics.solver.friction import friction_defect_by_pointer, update_friction_by_pointer
from borelli.physics.solver.gauss_seidel import sweep_rows_by_pointer
from borelli.physics.solver.iterative_refinement import refine_by_pointer
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, NOT_FINITE, SOLVED, init_active_pieces, newton_by_pointer

PATIENCE = 15
"""Newton iterations before the interior-point method takes over."""
CAP = 200
"""Newton iterations in all."""
PLAIN_SOLVES = 3
"""Solves for the friction bounds after which all contacts are solved against each other; again after as many."""
QUICK = 4
"""Newton iterations of a solve beyond which contacts are changing, and are solved against each other at once."""
DAMPING = 0.5
"""Share of their change that bounds are given when they did not settle in PLAIN_SOLVES."""
UNSETTLED = 8
"""Status added when friction bounds did not settle: the step is valid, its bounds are slightly off."""

# columns of `told`
NEWTON, FRICTION, CONTACTS, STATUS = 0, 1, 2, 3


@kernel_function
def step(pointers, tables, state_at, inputs, work, index):
    """Advance the state by one step, number `index` of this run; a status (0: fine). All are shared."""
    bodies, state, rows, scratch = load_shared(tables.bodies, state_at, work.rows, work.scratch)
    graph, factor, touch = load_shared(work.graph, work.factor, work.touch)
    shapes, contacts, numbers = tables.shapes, tables.contacts, tables.numbers
    h, first = numbers[5], contacts.first_row[0]
    turn_bodies(state.quaternion, scratch.rotation)
    # calls without work are left out
    found = 0
    if len(shapes.pair_a) > 0:
        found = find_contacts_by_pointer(pointers, shapes, state.position, scratch.rotation, numbers[0], work.contacts)
        if found > len(work.contacts.depth):
            return CAPACITY_EXCEEDED
    aimed = aim_at_poses(bodies.kinematic, inputs.pose, inputs.substeps[0], index, h, state, scratch.aim)
    apply_pushes(inputs.pushes, bodies.kinematic, h * state.clock[0], scratch.rotation, scratch.wrench)
    fill_standing_rows_by_pointer(
        pointers, tables.joints, tables.anchors, tables.residuals, numbers, state_at, inputs, work.rows, work.scratch,
        index, aimed,
    )  # fmt: skip
    touch.count[0], rows.used[0] = found, first
    if found > 0:
        fill_contact_arrays_by_pointer(
            pointers, shapes, contacts, work.contacts, found, state_at, scratch.rotation, bodies.kinematic, work.touch
        )  # fmt: skip
        fill_contact_rows_by_pointer(
            pointers, shapes, contacts, numbers, work.contacts, state_at, bodies.kinematic, work.touch, work.rows
        )  # fmt: skip
    if not is_laid_out(rows, graph, factor, touch, first, found):
        if not prepare_solve_by_pointer(pointers, tables.bodies, work, first, found):
            return CAPACITY_EXCEEDED
    load_bodies(bodies, tables.gravity, state, scratch, graph, factor.block, h, aimed)
    status = solve_step(pointers, tables, state, work, rows, factor, touch, scratch.told)
    if not is_finite(graph, factor.block):
        status = NOT_FINITE
    if status == SOLVED or status == UNSETTLED:
        keep_contacts(contacts.rows_each[0], first, state, factor, touch)
        move_bodies(graph, factor.block, bodies.kinematic, state, h)
        state.clock[0] += 1
    scratch.told[STATUS] = status
    return status


step_by_pointer = by_pointer(step)


@kernel_function
def fill_standing_rows(
    joints_at, anchors_at, residuals_at, numbers, state_at, inputs_at, rows_at, scratch_at, index, aimed
):  # fmt: skip
    """Rows that do not depend on contacts: joints, couplings, stops, drives, anchors, residuals."""
    joints, anchors, residuals = load_shared(joints_at, anchors_at, residuals_at)
    state, inputs, rows, scratch = load_shared(state_at, inputs_at, rows_at, scratch_at)
    h = numbers[5]
    pose_joints(joints, state.position, scratch.rotation, state.coordinate)
    fill_joint_rows(joints, rows, h)
    if len(joints.joint) > 0 and joints.row_ranges[4] > joints.row_ranges[1]:
        if len(inputs.drive_target) > 0:
            for i in range(len(joints.joint)):
                inputs.drives.target[i] = inputs.drive_target[index, i]
        coordinates_from_poses(joints, state.twist, state.coordinate, scratch.speed)
        fill_coupling_rows(joints, state.twist, state.coordinate, rows, h)
        fill_limit_rows(joints, state.coordinate, scratch.speed, rows, h)
        fill_drive_rows(joints, inputs.drives, state.coordinate, rows, h)
    fill_prescribed_motion(joints, state.twist, rows)
    if aimed:
        set_drive_targets_from_twists(joints, inputs.drives, scratch.aim, rows, h)
    if len(inputs.marker) > 0:
        _fill_anchor_rows(
            anchors, inputs.marker, inputs.substeps[0], index, numbers[4], h,
            state.position, scratch.rotation, rows,
        )  # fmt: skip
    _fill_residual_rows(residuals, scratch.aim, aimed, rows)


fill_standing_rows_by_pointer = by_pointer(fill_standing_rows)


@kernel_function
def _fill_anchor_rows(anchors, marker, substeps, index, fastest, h, position, rotation, rows):
    """Three rows per visible marker: C = x + R r - m, Cdot = v + w x r - dm/dt; c = dm/dt - (alpha/h) C.

    A marker acts while it is seen in this frame and the next and moves slower than the limit.
    """
    frame = index // substeps
    share = (index - frame * substeps) / substeps
    for i in range(len(anchors.body)):
        b, k = anchors.body[i], anchors.row[i]
        e = rows.first[k]
        speed = 0.0
        for n in range(3):
            speed += ((marker[frame + 1, i, n] - marker[frame, i, n]) / (h * substeps)) ** 2
        if isnan(speed) or speed > fastest:
            no_law(rows, k)
            no_law(rows, k + 1)
            no_law(rows, k + 2)
            continue
        x, y, z = anchors.offset[i, 0], anchors.offset[i, 1], anchors.offset[i, 2]
        rx = rotation[b, 0, 0] * x + rotation[b, 0, 1] * y + rotation[b, 0, 2] * z
        ry = rotation[b, 1, 0] * x + rotation[b, 1, 1] * y + rotation[b, 1, 2] * z
        rz = rotation[b, 2, 0] * x + rotation[b, 2, 1] * y + rotation[b, 2, 2] * z
        rows.jacobian[e, 4], rows.jacobian[e, 5] = rz, -ry
        rows.jacobian[e + 1, 3], rows.jacobian[e + 1, 5] = -rz, rx
        rows.jacobian[e + 2, 3], rows.jacobian[e + 2, 4] = ry, -rx
        for n in range(3):
            arm = rx if n == 0 else (ry if n == 1 else rz)
            rate = (marker[frame + 1, i, n] - marker[frame, i, n]) / (h * substeps)
            now = marker[frame, i, n] + share * (marker[frame + 1, i, n] - marker[frame, i, n])
            error = position[b, n] + arm - now
            soft_law(rows, k + n, rate - anchors.alpha[i] / h * error, anchors.beta[i])


@inline
def _fill_residual_rows(residuals, aim, aimed, rows):
    for i in range(len(residuals.body)):
        k = residuals.row[i]
        target = residuals.alpha[i] * aim[residuals.body[i], residuals.axis[i]] if aimed else 0.0
        if residuals.limit[i] < 1e300:
            bounded_law(rows, k, target, residuals.beta[i], -residuals.limit[i], residuals.limit[i])
        else:
            soft_law(rows, k, target, residuals.beta[i])


@inline
def _is_as_listed(rows, factor, first):
    for k in range(first):
        if (rows.pieces[k] > 0) != (factor.mark[k, KIND] != ABSENT):
            return False
    return True


@inline
def is_laid_out(rows, graph, factor, touch, first, found):
    """Whether the same rows act as in the last step, none of them a contact's; their bodies are marked."""
    if found > 0 or touch.count[1] != 1 or graph.count[0] == 0 or not _is_as_listed(rows, factor, first):
        return False
    for k in range(graph.count[0]):
        graph.node[k, DIRTY] = 1
    return True


@kernel_function
def prepare_solve(bodies_at, work_at, first, found):
    """Order bodies and hand rows to them, unless nothing changed since the last step; False when room is short."""
    bodies, work = load_shared(bodies_at, work_at)
    rows, graph, factor, touch = work.rows, work.graph, work.factor, work.touch
    contacts = work.contacts
    same = touch.count[1] == found + 1 and _is_as_listed(rows, factor, first)
    relinked = graph.count[0] == 0
    links = len(bodies.links)
    for i in range(found):
        if touch.contact_body[i, SLOT] != contacts.slot[i]:
            same = False
            touch.contact_body[i, SLOT] = contacts.slot[i]
        a, b = touch.contact_body[i, BODY_A], touch.contact_body[i, BODY_B]
        if a >= 0 and b >= 0:
            if links == len(work.links):
                return False
            if work.links[links, 0] != a or work.links[links, 1] != b:
                work.links[links, 0] = a
                work.links[links, 1] = b
                relinked = True
            links += 1
    if links != work.link_count[0]:
        work.link_count[0] = links
        relinked = True
    if relinked:
        if order_bodies(
            bodies.tree_parent, bodies.kinematic, work.links, links, graph, work.graph_work
        ) < 0:  # fmt: skip
            graph.count[0] = 0
            return False
    if relinked or not same:
        touch.count[1] = 0
        if not list_rows(rows, graph, factor, work.fill):
            return False
        touch.count[1] = found + 1
    else:
        for k in range(graph.count[0]):
            graph.node[k, DIRTY] = 1
    return True


prepare_solve_by_pointer = by_pointer(prepare_solve)


@inline_into_caller
def solve_step(pointers, tables, state, work, rows, factor, touch, told):
    """Velocities and impulses of this step, friction bounds settled; a status. Tables and work are shared."""
    each, first = tables.contacts.rows_each[0], tables.contacts.first_row[0]
    for k in range(first):
        factor.mark[k, ACTIVE_PIECE] = state.segment[k]
    for i in range(touch.count[0]):
        slot = touch.contact_body[i, SLOT]
        warm = state.slot_step[slot] == state.clock[0] - 1
        for n in range(each):
            factor.mark[first + each * i + n, ACTIVE_PIECE] = state.slot_segment[slot, n] if warm else (n > 0)
    switching = init_active_pieces(rows, factor)
    counts = work.search.counts
    counts[0] = 0
    status, solves, change, refinements = SOLVED, 0, 0.0, tables.counts[1]
    tolerance, most = tables.numbers[3], tables.counts[0]
    while True:
        solves += 1
        before = counts[0]
        if tables.counts[2] > 0:
            sweep_rows_by_pointer(pointers, work.rows, work.graph, work.factor, tables.counts[2])
            refinements = 0
        else:
            status = newton_by_pointer(
                pointers, work.rows, work.graph, work.factor, work.fill, work.search, work.interior, switching,
                PATIENCE, CAP,
            )  # fmt: skip
        if status != SOLVED or touch.count[0] == 0:
            break
        change = friction_defect_by_pointer(pointers, work.rows, work.graph, work.factor, work.touch, first, each)
        if change <= tolerance or solves >= most:
            break
        together = TOO_MANY_BODIES
        if solves % PLAIN_SOLVES == 0 or (solves < PLAIN_SOLVES and counts[0] - before > QUICK):
            together = solve_contacts_by_pointer(
                pointers, work.rows, work.graph, work.factor, work.fill, work.search, work.interior, work.touch,
                first, each, switching, PATIENCE, CAP, tolerance,
            )  # fmt: skip
        if together == ACCEPTED:
            change, refinements = 0.0, 0
            break
        if together == TOO_MANY_BODIES:
            share = 1.0 if solves <= PLAIN_SOLVES else DAMPING
            update_friction_by_pointer(pointers, work.rows, work.graph, work.factor, work.touch, first, each, share)
    if status == SOLVED:
        for _ in range(refinements):
            refine_by_pointer(pointers, work.rows, work.graph, work.factor, work.fill)
        if change > tolerance and most > 1:
            status = UNSETTLED
    told[NEWTON] = counts[0]
    told[FRICTION] = solves
    told[CONTACTS] = touch.count[0]
    return status


@inline
def keep_contacts(each, first, state, factor, touch):
    """Store what warm-starts the next step."""
    for k in range(first):
        state.segment[k] = factor.mark[k, ACTIVE_PIECE]
    for i in range(touch.count[0]):
        slot, k = touch.contact_body[i, SLOT], first + each * i
        state.slot_step[slot] = state.clock[0]
        state.slot_normal[slot] = max(factor.value[k, IMPULSE], 0.0)
        for n in range(each):
            state.slot_segment[slot, n] = factor.mark[k + n, ACTIVE_PIECE]
        for n in range(3):
            state.slot_along[slot, n] = touch.contact[i, TANGENT + n]
