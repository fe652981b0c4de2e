"""One soft step (Liu, Cooper and Ballard): semi-implicit Euler with implicit springs, all rows solved at once.

`step` lists the stages; each is a kernel function of its own.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.arrays.indices import (
    CONTACT_COUNT,
    CONTACT_MARGIN,
    FRICTION_SOLVES,
    FRICTION_TOLERANCE,
    GAUSS_SEIDEL_SWEEPS,
    MAX_FRICTION_SOLVES,
    NEWTON_ITERATIONS,
    REFINEMENTS,
    STATUS,
    STEP_SIZE,
)
from borelli.physics.collision.detect import find_contacts_by_pointer
from borelli.physics.joint_closing import close_joints_by_pointer, needs_closing
from borelli.physics.rigid_bodies import (
    add_wrenches,
    compute_rotations,
    compute_target_twists,
    copy_poses,
    copy_twists,
    integrate_poses,
    is_finite,
    load_bodies,
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
from borelli.physics.rows.persistent_rows import fill_persistent_rows_by_pointer
from borelli.physics.solver.coulomb_newton import ACCEPTED, TOO_MANY_BODIES, solve_contacts_by_pointer
from borelli.physics.solver.elimination_order import mark_for_factoring, order_bodies
from borelli.physics.solver.factor_arrays import (
    ABSENT,
    ACTIVE_PIECE,
    IMPULSE,
    KIND,
    NEWTON_STEPS,
    list_rows,
)
from borelli.physics.solver.friction import friction_defect_by_pointer, update_friction_by_pointer
from borelli.physics.solver.gauss_seidel import sweep_rows_by_pointer
from borelli.physics.solver.iterative_refinement import refine_by_pointer
from borelli.physics.solver.newton import (
    CAPACITY_EXCEEDED,
    MAX_NEWTON_ITERATIONS,
    NEWTON_BEFORE_INTERIOR_POINT,
    NOT_FINITE,
    SOLVED,
    init_active_pieces,
    newton_by_pointer,
)

PLAIN_SOLVES = 3
"""Solves for the friction bounds after which all contacts are solved together; again after as many."""
MAX_QUICK_ITERATIONS = 4
"""Newton iterations of a solve above which contacts are changing and are solved together at once."""
BOUND_DAMPING = 0.5
"""Fraction of their change by which friction bounds that have not converged in PLAIN_SOLVES are updated."""
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
        is_exact = tables.iteration_limits[GAUSS_SEIDEL_SWEEPS] == 0 and not aimed and len(inputs.marker) == 0
        if is_exact and len(tables.joints.hard_alpha) > 0:
            copy_poses(state.position, state.quaternion, scratch.begin_position, scratch.begin_quaternion)
            copy_twists(state.twist, scratch.begin_twist)
        integrate_poses(work.graph, factor.block, state_at, h)
        state.clock[0] += 1
        scratch.solver_stats[STATUS] = status
        if is_exact and len(tables.joints.hard_alpha) > 0 and needs_closing(tables.joints, rows.c, state.twist, h):
            scratch.solver_stats[STATUS] += close_joints_by_pointer(pointers, tables, state_at, inputs, work, index)
    return status


step_by_pointer = by_pointer(step)


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
