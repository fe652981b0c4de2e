"""One soft step (Liu, Cooper and Ballard): semi-implicit Euler with implicit springs, all rows solved at once.

`step` lists the stages; each is a kernel function of its own.
"""

from __future__ import annotations

from math import isnan, sqrt

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.arrays.indices import (
    CONTACT_COUNT,
    CONTACT_MARGIN,
    COUPLING_ROWS,
    DRIVE_ROWS,
    FRICTION_SOLVES,
    FRICTION_TOLERANCE,
    GAUSS_SEIDEL_SWEEPS,
    LIMIT_ROWS,
    MAX_FRICTION_SOLVES,
    NEWTON_ITERATIONS,
    REFINEMENTS,
    ROWS_END,
    SQUARED_MARKER_SPEED,
    STATUS,
    STEP_SIZE,
)
from borelli.physics.collision.detect import find_contacts_by_pointer
from borelli.physics.group_momentum import IN_CONTACT, restore_angular_momentum, tally_groups
from borelli.physics.joints.coordinates import coordinates_from_poses
from borelli.physics.rigid_bodies import (
    add_wrenches,
    compute_rotations,
    compute_target_twists,
    integrate_poses,
    is_finite,
    load_bodies,
    move_body,
    sum_applied_forces,
)
from borelli.physics.rows.contact_rows import (
    BODY_A,
    BODY_B,
    CONTACTS_LISTED,
    CONTACTS_NOW,
    SLOT,
    TANGENT,
    fill_contact_rows_by_pointer,
)
from borelli.physics.rows.coordinate_rows import (
    fill_coupling_rows,
    fill_drive_rows,
    fill_limit_rows,
    set_drive_targets_from_twists,
)
from borelli.physics.rows.joint_rows import fill_joint_rows, fill_prescribed_motion, pose_joints, put_point_arm
from borelli.physics.rows.laws import (
    bounded_law,
    fixed_impulse,
    no_law,
    one_sided_law,
    put_break,
    put_piece,
    soft_law,
)
from borelli.physics.rows.rows import FLAT, copy_rows
from borelli.physics.solver.coulomb_newton import ACCEPTED, TOO_MANY_BODIES, solve_contacts_by_pointer
from borelli.physics.solver.elimination_order import BODY, mark_for_factoring, order_bodies
from borelli.physics.solver.factor_arrays import (
    ABSENT,
    ACTIVE_PIECE,
    BLOCK_COLUMNS,
    IMPULSE,
    KIND,
    MOMENTUM,
    NEWTON_STEPS,
    SOLUTION,
    list_rows,
)
from borelli.physics.solver.friction import friction_defect_by_pointer, update_friction_by_pointer
from borelli.physics.solver.gauss_seidel import sweep_rows_by_pointer
from borelli.physics.solver.iterative_refinement import refine_by_pointer, row_velocity
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, NOT_FINITE, SOLVED, init_active_pieces, newton_by_pointer
from borelli.physics.vectors import to_world

NEWTON_BEFORE_INTERIOR_POINT = 15
"""Newton iterations before the interior-point method takes over."""
MAX_NEWTON_ITERATIONS = 200
"""Newton iterations in all."""
PLAIN_SOLVES = 3
"""Solves for the friction bounds after which all contacts are solved together; again after as many."""
MAX_QUICK_ITERATIONS = 4
"""Newton iterations of a solve above which contacts are changing and are solved together at once."""
BOUND_DAMPING = 0.5
"""Fraction of their change by which friction bounds that have not converged in PLAIN_SOLVES are updated."""
MAX_JOINT_GAP = 5e-5
"""Errors of hard joints [m or rad] that are left to the next step, which corrects a fraction of them."""
CLOSED_JOINT_GAP = 1e-5
"""Errors to which larger ones are reduced."""
MAX_PROJECTIONS = 200
"""Maximum number of projections that close the joints."""
MAX_WORSE_PROJECTIONS = 20
"""Number of them that do not lower the errors by a tenth after which joints are left open."""
MAX_ROTATION = 0.5
"""Maximum angle [rad] by which one of them rotates a body."""
JOINTS_LEFT_OPEN = 16
"""Status added when joints could not be closed: taut nets and contradictory contacts have no pose without errors."""
ENERGY_NOT_KEPT = 32
"""Status added when an impulse step did not keep its energy, which was only prevented from rising."""
FRICTION_NOT_CONVERGED = 8
"""Status added when friction bounds have not converged: the step is valid, its bounds are slightly off."""


@kernel_function
def step(pointers, tables, state_at, inputs, work, index):
    """Advance the state by step number `index` and return a status (0: solved). All tuples are shared."""
    state, rows, scratch = load_shared(state_at, work.rows, work.scratch)
    graph, factor, contact_arrays = load_shared(work.graph, work.factor, work.contact_arrays)
    h, first, aimed = tables.parameters[STEP_SIZE], tables.contacts.first_row[0], len(inputs.pose) > 0
    contact_count = fill_rows(pointers, tables, state_at, inputs, work, tables.parameters[CONTACT_MARGIN], index, aimed)
    if contact_count > len(work.contacts.depth):
        return CAPACITY_EXCEEDED
    if not is_order_current(rows, graph, factor, contact_arrays, first, contact_count):
        if not prepare_solve_by_pointer(pointers, tables.bodies, work, first, contact_count):
            return CAPACITY_EXCEEDED
    add_wrenches(inputs.body_wrench, scratch.wrench)
    load_bodies(tables.bodies, tables.gravity, state_at, work.scratch, work.graph, factor.block, h, aimed)
    status = solve_step(pointers, tables, state, work, rows, factor, contact_arrays, scratch.solver_stats)
    if not is_finite(graph, factor.block):
        status = NOT_FINITE
    if status == SOLVED or status == FRICTION_NOT_CONVERGED:
        store_warm_start(tables.contacts.rows_each[0], first, state, factor, contact_arrays)
        integrate_poses(work.graph, factor.block, state_at, h)
        state.clock[0] += 1
        scratch.solver_stats[STATUS] = status
        is_measured = aimed or len(inputs.marker) > 0
        is_exact = tables.iteration_limits[GAUSS_SEIDEL_SWEEPS] == 0
        if is_exact and not is_measured and _may_open(tables.joints.hard_alpha, rows.c, state.twist, h):
            scratch.solver_stats[STATUS] += close_joints_by_pointer(pointers, tables, state_at, inputs, work, index)
    return status


step_by_pointer = by_pointer(step)


@inline
def _largest_joint_error(hard_alpha, c, h):
    """Return the largest error of a hard row [m or rad]."""
    largest = 0.0
    for k in range(len(hard_alpha)):
        if hard_alpha[k] > 0.0:
            largest = max(largest, abs(c[k, 0]) / hard_alpha[k])
    return h * largest


@inline
def _may_open(hard_alpha, c, twist, h):
    """Return True if hard rows may be open after a step: by their errors before it, and by curved paths.

    A point at an arm r [m] of a body with angular velocity w leaves its tangent by r (h w)^2 / 2; there are two bodies,
    and axes along which bodies slide rotate.
    """
    fastest, speed = 0.0, 0.0
    for b in range(len(twist)):
        fastest = max(fastest, twist[b, 3] ** 2 + twist[b, 4] ** 2 + twist[b, 5] ** 2)
        speed = max(speed, twist[b, 0] ** 2 + twist[b, 1] ** 2 + twist[b, 2] ** 2)
    bend = 2.0 * h * h * sqrt(fastest) * (sqrt(fastest) + sqrt(speed))
    return not _largest_joint_error(hard_alpha, c, h) + bend <= MAX_JOINT_GAP


@inline
def _load_changes(joints, state, rows, graph, factor, impulse, first):
    """Set the laws of rows to those of changes after the step: hard ones correct all of their errors.

    A row that acted with a slope keeps it, a saturated one exerts no more; a limit is not passed, and a loaded one is
    not left while its impulse in the step lasts.
    """
    limits, drives = joints.row_ranges[LIMIT_ROWS], joints.row_ranges[DRIVE_ROWS]
    for k in range(first):
        rows.offset[k] = 0.0
        if factor.mark[k, KIND] == ABSENT:
            continue
        if rows.pieces[k] == 0:
            fixed_impulse(rows, k, 0.0)
        elif k < len(joints.hard_alpha) and joints.hard_alpha[k] > 0.0:
            rows.c[k, 0] /= joints.hard_alpha[k]
        elif k < limits:
            rows.c[k, 0] = 0.0
        elif k < drives:
            p = max(impulse[k], 0.0)
            one_sided_law(rows, k, min(rows.c[k, 0], 0.0), rows.beta[k, 0])
            put_piece(rows, k, 1, FLAT, -p)
            put_break(rows, k, 0, rows.c[k, 0] + rows.beta[k, 0] * p, -p)
        else:
            slope = rows.beta[k, state.active_piece[k]]
            if slope < 0.0:
                fixed_impulse(rows, k, 0.0)
            else:
                soft_law(rows, k, 0.0, slope)
    for k in range(graph.count[0]):
        for n in range(6):
            factor.block[k, MOMENTUM + n] = 0.0


@inline
def _move_by_solution(rows, graph, factor, state, velocity, h):
    """Move bodies by the solved velocities for a time h; scale them, and impulses, so that no body rotates by much."""
    block, fastest = factor.block, 0.0
    for k in range(graph.count[0]):
        x, y, z = block[k, SOLUTION + 3], block[k, SOLUTION + 4], block[k, SOLUTION + 5]
        fastest = max(fastest, x * x + y * y + z * z)
    scale = min(1.0, MAX_ROTATION / (h * sqrt(fastest) + 1e-300))
    for k in range(graph.count[0]):
        for n in range(6):
            block[k, SOLUTION + n] *= scale
            velocity[graph.node[k, BODY], n] = block[k, SOLUTION + n]
    for k in range(rows.used[0]):
        factor.value[k, IMPULSE] *= scale
    position, quaternion = state.position, state.quaternion
    for k in range(graph.count[0]):
        move_body(graph.node[k, BODY], h, velocity, position, quaternion, position, quaternion)


@kernel_function
def shift_laws_to_solution(rows, node, factor, first, end, softer):
    """Shift the laws of rows to the velocity and impulse of the last solve: later solves are for changes of both.

    Slopes are multiplied by `softer`. While positions are corrected, controls and contacts constrain the same bodies,
    and where both are nearly hard, rounding of their targets would become forces.
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


@inline_into_caller
def _keep_step(tables, work, state, rows, graph, factor, scratch):
    """Store rows and results of the step, and the momenta of groups, before joints are closed."""
    copy_rows(rows, work.kept_rows)
    for k in range(rows.used[0]):
        scratch.impulse[k] = factor.value[k, IMPULSE]
    for k in range(graph.count[0]):
        for n in range(BLOCK_COLUMNS):
            scratch.block[k, n] = factor.block[k, n]
    tally_groups(tables.bodies, graph, scratch.rotation, state, scratch.tally_before)
    for k in range(tables.contacts.first_row[0], rows.used[0]):
        if factor.value[k, IMPULSE] != 0.0:
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    scratch.tally_before[tables.bodies.group[rows.body[e]], IN_CONTACT] = 1.0


@inline_into_caller
def _restore_step(work, rows, graph, factor, scratch):
    """Restore rows and results of the step."""
    copy_rows(work.kept_rows, rows)
    for k in range(rows.used[0]):
        factor.value[k, IMPULSE] = scratch.impulse[k]
    for k in range(graph.count[0]):
        for n in range(BLOCK_COLUMNS):
            factor.block[k, n] = scratch.block[k, n]


@kernel_function
def close_joints(pointers, tables, state_at, inputs, work, index):
    """Move bodies until hard joints are closed, by the least kinetic distance, and keep their angular momentum.

    With the rows J and masses M of the poses at hand and C the errors, M dx = J^T p, J dx = -C, repeated. All other
    rows act as in the step, for changes from its result. Returns SOLVED or JOINTS_LEFT_OPEN.
    """
    state, rows, scratch = load_shared(state_at, work.rows, work.scratch)
    graph, factor = load_shared(work.graph, work.factor)
    joints, h, first = tables.joints, tables.parameters[STEP_SIZE], tables.contacts.first_row[0]
    best, best_projection = 1e300, 0
    compute_rotations(state.quaternion, scratch.rotation)
    fill_persistent_rows_by_pointer(pointers, tables, state_at, inputs, work.kept_rows, work.scratch, index, False)
    error = _largest_joint_error(joints.hard_alpha, work.kept_rows.c, h)
    if error <= MAX_JOINT_GAP:
        return SOLVED
    _keep_step(tables, work, state, rows, graph, factor, scratch)
    for projection in range(MAX_PROJECTIONS):
        fill_persistent_rows_by_pointer(pointers, tables, state_at, inputs, work.rows, work.scratch, index, False)
        error = _largest_joint_error(joints.hard_alpha, rows.c, h)
        if error < 0.9 * best:
            best, best_projection = error, projection
        if error <= CLOSED_JOINT_GAP or projection >= best_projection + MAX_WORSE_PROJECTIONS:
            break
        shift_laws_to_solution(rows, graph.node, factor, first, rows.used[0], 1.0)
        load_bodies(tables.bodies, tables.gravity, state_at, work.scratch, work.graph, factor.block, 0.0, False)
        _load_changes(joints, state, rows, graph, factor, scratch.impulse, first)
        mark_for_factoring(graph, 1)
        switching = init_active_pieces(work.rows, work.factor)
        solved = newton_by_pointer(pointers, work, switching, NEWTON_BEFORE_INTERIOR_POINT, MAX_NEWTON_ITERATIONS)
        if solved != SOLVED or not is_finite(graph, factor.block):
            break
        _move_by_solution(rows, graph, factor, state, scratch.aim, h)
        compute_rotations(state.quaternion, scratch.rotation)
    restore_angular_momentum(tables.bodies, graph, scratch.rotation, state, scratch.tally_before, scratch.tally)
    _restore_step(work, rows, graph, factor, scratch)
    return SOLVED if error <= MAX_JOINT_GAP else JOINTS_LEFT_OPEN


close_joints_by_pointer = by_pointer(close_joints)


@inline_into_caller
def fill_rows(pointers, tables, state_at, inputs, work, margin, index, aimed):
    """Detect contacts and write all rows; return the number of contacts, which may exceed the capacity.

    `aimed`: drives and residuals track the poses of the next frame.
    """
    bodies, state, scratch, shapes = tables.bodies, load_shared(state_at), load_shared(work.scratch), tables.shapes
    h, contact_count = tables.parameters[STEP_SIZE], 0
    compute_rotations(state.quaternion, scratch.rotation)
    if len(shapes.pair_a) > 0:
        contact_count = find_contacts_by_pointer(
            pointers, shapes, state.position, scratch.rotation, margin, work.contacts
        )
        if contact_count > len(work.contacts.depth):
            return contact_count
    compute_target_twists(bodies.kinematic, inputs.pose, inputs.substeps[0], index, h, state, scratch.aim)
    sum_applied_forces(inputs.applied_forces, bodies.kinematic, h * state.clock[0], scratch.rotation, scratch.wrench)
    fill_persistent_rows_by_pointer(pointers, tables, state_at, inputs, work.rows, work.scratch, index, aimed)
    work.contact_arrays.count[CONTACTS_NOW], work.rows.used[0] = contact_count, tables.contacts.first_row[0]
    if contact_count > 0:
        fill_contact_rows_by_pointer(pointers, tables, state_at, work, contact_count)
    return contact_count


@kernel_function
def fill_persistent_rows(tables, state, inputs, rows, scratch, index, aimed):
    """Write all rows but those of contacts: joints, couplings, limits, drives, marker springs, residuals."""
    joints, h = tables.joints, tables.parameters[STEP_SIZE]
    pose_joints(joints, state.position, scratch.rotation, state.coordinate)
    fill_joint_rows(joints, rows, h)
    if len(joints.joint) > 0 and joints.row_ranges[ROWS_END] > joints.row_ranges[COUPLING_ROWS]:
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
        _fill_marker_rows(
            tables.marker_springs, inputs.marker, inputs.substeps[0], index, tables.parameters[SQUARED_MARKER_SPEED], h,
            state.position, scratch.rotation, rows,
        )
    _fill_residual_rows(tables.residuals, scratch.aim, aimed, rows)


fill_persistent_rows_by_pointer = by_pointer(fill_persistent_rows)


@kernel_function
def _fill_marker_rows(springs, marker, substeps, index, max_squared_speed, h, position, rotation, rows):
    """Write three rows per visible marker: C = x + R r - m, Cdot = v + w x r - dm/dt; c = dm/dt - (alpha/h) C.

    A marker acts while it is visible in this frame and the next and moves slower than the limit.
    """
    springs, rows = load_shared(springs, rows)
    frame = index // substeps
    fraction = (index - frame * substeps) / substeps
    for i in range(len(springs.body)):
        b, k = springs.body[i], springs.row[i]
        e = rows.first[k]
        squared_speed = 0.0
        for n in range(3):
            squared_speed += ((marker[frame + 1, i, n] - marker[frame, i, n]) / (h * substeps)) ** 2
        if isnan(squared_speed) or squared_speed > max_squared_speed:
            for n in range(3):
                no_law(rows, k + n)
            continue
        rx, ry, rz = to_world(rotation, b, springs.offset[i, 0], springs.offset[i, 1], springs.offset[i, 2])
        put_point_arm(rows.jacobian, e, 1, rx, ry, rz)
        for n in range(3):
            arm = rx if n == 0 else (ry if n == 1 else rz)
            rate = (marker[frame + 1, i, n] - marker[frame, i, n]) / (h * substeps)
            now = marker[frame, i, n] + fraction * (marker[frame + 1, i, n] - marker[frame, i, n])
            error = position[b, n] + arm - now
            soft_law(rows, k + n, rate - springs.alpha[i] / h * error, springs.beta[i])


@inline
def _fill_residual_rows(residuals, aim, aimed, rows):
    for i in range(len(residuals.body)):
        k = residuals.row[i]
        target = residuals.alpha[i] * aim[residuals.body[i], residuals.axis[i]] if aimed else 0.0
        if residuals.max_impulse[i] < 1e300:
            bounded_law(rows, k, target, residuals.beta[i], -residuals.max_impulse[i], residuals.max_impulse[i])
        else:
            soft_law(rows, k, target, residuals.beta[i])


@inline
def _are_listed_rows_current(rows, factor, first):
    for k in range(first):
        if (rows.pieces[k] > 0) != (factor.mark[k, KIND] != ABSENT):
            return False
    return True


@inline
def is_order_current(rows, graph, factor, contact_arrays, first, contact_count):
    """Return True, and mark all bodies for factoring, if there are no contacts and the same rows act as before."""
    if contact_count > 0 or contact_arrays.count[CONTACTS_LISTED] != 1 or graph.count[0] == 0:
        return False
    if not _are_listed_rows_current(rows, factor, first):
        return False
    mark_for_factoring(graph, 1)
    return True


@kernel_function
def prepare_solve(bodies_at, work_at, first, contact_count):
    """Order bodies and assign rows to them if they changed since the last step; return False if capacity is short."""
    bodies, work = load_shared(bodies_at, work_at)
    rows, graph, factor, contact_arrays = work.rows, work.graph, work.factor, work.contact_arrays
    contacts = work.contacts
    same = contact_arrays.count[CONTACTS_LISTED] == contact_count + 1 and _are_listed_rows_current(rows, factor, first)
    relinked = graph.count[0] == 0
    links = len(bodies.links)
    for i in range(contact_count):
        if contact_arrays.contact_body[i, SLOT] != contacts.slot[i]:
            same = False
            contact_arrays.contact_body[i, SLOT] = contacts.slot[i]
        a, b = contact_arrays.contact_body[i, BODY_A], contact_arrays.contact_body[i, BODY_B]
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
        if order_bodies(bodies.tree_parent, bodies.kinematic, work.links, links, graph, work.graph_work) < 0:
            graph.count[0] = 0
            return False
    if relinked or not same:
        contact_arrays.count[CONTACTS_LISTED] = 0
        if not list_rows(rows, graph, factor, work.fill):
            return False
        contact_arrays.count[CONTACTS_LISTED] = contact_count + 1
    else:
        mark_for_factoring(graph, 1)
    return True


prepare_solve_by_pointer = by_pointer(prepare_solve)


@inline_into_caller
def solve_step(pointers, tables, state, work, rows, factor, contact_arrays, solver_stats):
    """Solve for velocities, impulses and friction bounds; return a status. Tables and work are shared."""
    each, first = tables.contacts.rows_each[0], tables.contacts.first_row[0]
    for k in range(first):
        factor.mark[k, ACTIVE_PIECE] = state.active_piece[k]
    for i in range(contact_arrays.count[CONTACTS_NOW]):
        slot = contact_arrays.contact_body[i, SLOT]
        warm = state.slot_step[slot] == state.clock[0] - 1
        for n in range(each):
            factor.mark[first + each * i + n, ACTIVE_PIECE] = state.slot_active_piece[slot, n] if warm else (n > 0)
    switching = init_active_pieces(work.rows, work.factor)
    counts = work.search.counts
    counts[NEWTON_STEPS] = 0
    status, solves, change, refinements = SOLVED, 0, 0.0, tables.iteration_limits[REFINEMENTS]
    tolerance, max_solves = tables.parameters[FRICTION_TOLERANCE], tables.iteration_limits[MAX_FRICTION_SOLVES]
    sweeps = tables.iteration_limits[GAUSS_SEIDEL_SWEEPS]
    while True:
        solves += 1
        before = counts[NEWTON_STEPS]
        if sweeps > 0:
            sweep_rows_by_pointer(pointers, work, sweeps)
            refinements = 0
        else:
            status = newton_by_pointer(pointers, work, switching, NEWTON_BEFORE_INTERIOR_POINT, MAX_NEWTON_ITERATIONS)
        if status != SOLVED or contact_arrays.count[CONTACTS_NOW] == 0:
            break
        change = friction_defect_by_pointer(pointers, work, first, each)
        if change <= tolerance or solves >= max_solves:
            break
        together = TOO_MANY_BODIES
        changing = counts[NEWTON_STEPS] - before > MAX_QUICK_ITERATIONS
        if solves % PLAIN_SOLVES == 0 or (solves < PLAIN_SOLVES and changing):
            together = solve_contacts_by_pointer(
                pointers, work, first, each, switching, NEWTON_BEFORE_INTERIOR_POINT, MAX_NEWTON_ITERATIONS, tolerance
            )
        if together == ACCEPTED:
            change, refinements = 0.0, 0
            break
        if together == TOO_MANY_BODIES:
            update_friction_by_pointer(pointers, work, first, each, 1.0 if solves <= PLAIN_SOLVES else BOUND_DAMPING)
    if status == SOLVED:
        for _ in range(refinements):
            refine_by_pointer(pointers, work)
        if change > tolerance and max_solves > 1:
            status = FRICTION_NOT_CONVERGED
    solver_stats[NEWTON_ITERATIONS] = counts[NEWTON_STEPS]
    solver_stats[FRICTION_SOLVES] = solves
    solver_stats[CONTACT_COUNT] = contact_arrays.count[CONTACTS_NOW]
    return status


@inline
def store_warm_start(each, first, state, factor, contact_arrays):
    """Store active pieces, normal impulses and tangents for the next step."""
    for k in range(first):
        state.active_piece[k] = factor.mark[k, ACTIVE_PIECE]
    for i in range(contact_arrays.count[CONTACTS_NOW]):
        slot, k = contact_arrays.contact_body[i, SLOT], first + each * i
        state.slot_step[slot] = state.clock[0]
        state.slot_normal_impulse[slot] = max(factor.value[k, IMPULSE], 0.0)
        for n in range(each):
            state.slot_active_piece[slot, n] = factor.mark[k + n, ACTIVE_PIECE]
        for n in range(3):
            state.slot_tangent[slot, n] = contact_arrays.contact[i, TANGENT + n]
