"""One impulse step (Weinstein et al. 2008, section 4): collisions, velocities, control, contact, positions.

    1  applied forces, and collisions with restitution; joints are fixed, so that impacts propagate through them
    2  velocities satisfy the joints (the same solve)
    3  gravity, gyroscopic terms, muscles
    4  velocities satisfy joints and controls; the controller knows neither contacts nor the bodies outside its world
    5  contacts, and bodies outside: controls apply the impulses of 4 and yield; then positions, by Newton's method on
       the gaps of joints and the targets of controls together
    6  velocities satisfy the joints at the new positions; controls keep the mean velocity of the step

`begin_step` makes 1 and 2 and computes the controls' errors, `finish_step` the rest; a stage without work is skipped.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.physics.arrays.indices import (
    CONTACT_COUNT,
    CONTACT_MARGIN,
    DRIVE_ROWS,
    LIMIT_ROWS,
    STATUS,
    STEP_SIZE,
)
from borelli.physics.group_momentum import GROUP_MASS, KINETIC, REQUIRED, tally_groups
from borelli.physics.impulse_step.controlled_joints import (
    compute_ball_rotations_by_pointer,
    compute_control_errors,
    compute_control_velocities,
    disable_controls,
    fix_control_velocities,
    fix_controls,
    mark_feasible_controls,
    set_control_targets,
    store_history,
    yield_to_contacts,
)
from borelli.physics.impulse_step.curvature import predict_curvature, require_curvature
from borelli.physics.impulse_step.energy_balance import (
    EXACT,
    NOT_BALANCED,
    balance_energy,
    require_energy,
)
from borelli.physics.impulse_step.energy_momentum import advance_mean_motion_by_pointer
from borelli.physics.impulse_step.joint_limits import are_limits_hit, disable_limits
from borelli.physics.impulse_step.modes import (
    CONTACTS,
    CONTROL,
    EQUATIONS,
    FINISH,
    IN_PARTS,
    LIMITED,
    POSITION,
    REPLACE,
)
from borelli.physics.impulse_step.position_correction import correct_positions_by_pointer
from borelli.physics.impulse_step.stage_laws import (
    disable_contacts,
    disable_marked,
    fill_contact_laws_by_pointer,
    fix_joints,
    keep_listed_rows,
)
from borelli.physics.impulse_step.stage_solve import (
    are_factors_valid,
    discard_factors,
    load_momenta_by_pointer,
    solve_and_add_impulses,
)
from borelli.physics.joint_closing import JOINTS_LEFT_OPEN, shift_laws_to_solution
from borelli.physics.rigid_bodies import compute_rotations, copy_bodies, copy_poses, copy_twists, copy_velocities
from borelli.physics.rows.contact_rows import CONTACTS_NOW
from borelli.physics.rows.coordinate_rows import fill_limit_rows
from borelli.physics.rows.persistent_rows import fill_persistent_rows_by_pointer
from borelli.physics.soft_step import (
    ENERGY_NOT_KEPT,
    FRICTION_NOT_CONVERGED,
    fill_rows,
    is_order_current,
    prepare_solve_by_pointer,
    store_warm_start,
)
from borelli.physics.solver.elimination_order import BODY
from borelli.physics.solver.factor_arrays import ACTIVE_PIECE, IMPULSE, MOMENTUM
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, SOLVED

CORRECTION_SOFTENING = 1e10
"""Ratio by which contacts and joint limits are softened while positions are corrected: about as soft as bodies are
heavy. A fixed control would meet a hard one with any force there (1e7 N where planks slid along a block that 160 N
pressed on); the overlap left, of second order in the step, is corrected by the next step."""

MAX_CORRECTION_GAIN = 0.05
"""Fraction of its kinetic energy that the correction of positions may add to a group; above it the step is reported."""
NEGLIGIBLE_ENERGY = 1e-4
"""Kinetic energy [J/kg] below which it is not."""
IN_PARTS_STEPS = 2
"""Steps from which curvature is extrapolated where contacts or muscles react to it: three would amplify oscillations
sevenfold."""


@inline
def _contact_margin(margin, extent, twist, h):
    """Return the margin plus the largest distance that a point of a body moves in the step."""
    fastest = 0.0
    for b in range(len(twist)):
        v = sqrt(twist[b, 0] ** 2 + twist[b, 1] ** 2 + twist[b, 2] ** 2)
        w = sqrt(twist[b, 3] ** 2 + twist[b, 4] ** 2 + twist[b, 5] ** 2)
        fastest = max(fastest, v + w * extent[b])
    return margin + h * fastest


@inline
def _reset_stages(state, stages, used):
    copy_bodies(state, stages)
    stages.ground[:, :] = 0.0
    stages.impulse[:used] = 0.0
    stages.solver_stats[:] = 0


@inline
def _apply_forces(graph, block, wrench, h):
    """Add the momenta of forces on the bodies."""
    for k in range(graph.count[0]):
        for n in range(6):
            block[k, MOMENTUM + n] += h * wrench[graph.node[k, BODY], n]


@kernel_function
def begin_step(pointers, tables, state, inputs, work, controls, targets, history, stages, index):
    """Make stages 1 and 2 of step `index`, compute the errors of controls, and return a status.

    All tuples are shared, and stay so: unpacking the tables of joints would cost seconds of compilation.
    """
    joints, rows, graph, factor, contact_arrays = tables.joints, work.rows, work.graph, work.factor, work.contact_arrays
    scratch, parameters, first = work.scratch, tables.parameters, tables.contacts.first_row[0]
    h = parameters[STEP_SIZE]
    margin = _contact_margin(parameters[CONTACT_MARGIN], controls.extent, state.twist, h)
    contact_count = fill_rows(pointers, tables, state, inputs, work, margin, index, False)
    if contact_count > len(work.contacts.depth):
        return CAPACITY_EXCEEDED
    # rows are listed by the laws they have when they act: hard
    fix_joints(joints, rows)
    fix_controls(joints, controls, rows)
    if not is_order_current(rows, graph, factor, contact_arrays, first, contact_count):
        discard_factors(stages)
        if not prepare_solve_by_pointer(pointers, tables.bodies, work, first, contact_count):
            return CAPACITY_EXCEEDED
    _reset_stages(state, stages, rows.used[0])
    stages.solver_stats[CONTACT_COUNT] = contact_count
    compute_control_velocities(joints, controls, rows, state.twist, stages.velocity)
    if len(controls.ball) > 0:
        compute_ball_rotations_by_pointer(pointers, joints, controls, stages.rotation)
    colliding, status = 0, SOLVED
    if contact_count > 0:
        colliding = fill_contact_laws_by_pointer(pointers, tables, state, work, True)
    impact = colliding > 0 or scratch.wrench.any() or are_limits_hit(joints, rows, state.twist)
    if impact or history.has_previous[0] == 0:
        discard_factors(stages)
        disable_controls(joints, controls, rows)
        load_momenta_by_pointer(pointers, tables, state, work, 0.0, 1)
        # the controller notices applied forces by the velocities they change
        _apply_forces(graph, factor.block, scratch.wrench, h)
        scratch.wrench[:, :] = 0.0
        status = solve_and_add_impulses(pointers, tables, state, work, stages)
        copy_velocities(graph, factor.block, state.twist)
    compute_control_errors(joints, controls, targets, history, stages, state.coordinate, rows, state.twist, index, h)
    return status


begin_step_by_pointer = by_pointer(begin_step)


@inline
def _step_mode(controls, contact_count, part):
    """Return the mode of a step with `contact_count` contacts."""
    if part > FINISH:
        return IN_PARTS
    if contact_count > 0:
        return CONTACTS
    for k in range(len(controls.outside)):
        if controls.outside[k] > 0:
            return CONTACTS
    for i in range(len(controls.slope)):
        if controls.slope[i] > 0.0:
            return LIMITED
    return EQUATIONS


@inline_into_caller
def _solve_controls(pointers, tables, state, inputs, work, controls, targets, history, stages, index, mode):
    """Make stages 3 and 4, without contacts unless the controller knows them, and return a status."""
    joints, rows, graph, factor = tables.joints, work.rows, work.graph, work.factor
    h, first = tables.parameters[STEP_SIZE], tables.contacts.first_row[0]
    if work.contact_arrays.count[CONTACTS_NOW] > 0:
        fill_contact_laws_by_pointer(pointers, tables, state, work, False)
    else:
        disable_contacts(rows, first)
    if mode == CONTACTS:
        disable_marked(rows, controls.outside)
    set_control_targets(joints, controls, targets, stages, state.coordinate, rows, index, h)
    disable_limits(joints, controls, rows, controls.unlimited)
    dirty = 1
    if mode == EQUATIONS:
        predict_curvature(joints.row_ranges, history, rows, 3, stages.curvature)
    elif mode == IN_PARTS:
        fix_joints(joints, rows)  # the solve may be repeated
        predict_curvature(joints.row_ranges, history, rows, IN_PARTS_STEPS, stages.curvature)
        for n in range(len(controls.every)):
            i = controls.every[n]
            stages.velocity[i] += stages.curvature[joints.drive_row[i]]
    if mode == EQUATIONS:
        dirty = 0 if are_factors_valid(joints, rows, state, stages) else 1
    discard_factors(stages)
    load_momenta_by_pointer(pointers, tables, state, work, h, dirty)
    _apply_forces(graph, factor.block, inputs.body_wrench, h)
    status = solve_and_add_impulses(pointers, tables, state, work, stages)
    if status == SOLVED or status == FRICTION_NOT_CONVERGED:
        mark_feasible_controls(joints, controls, stages, factor.mark)
        for k in range(first):
            stages.active_piece[k] = factor.mark[k, ACTIVE_PIECE]
        copy_velocities(graph, factor.block, state.twist)
    return status


@inline_into_caller
def _apply_muscles(pointers, tables, state, inputs, work, controls, stages, h):
    """Add the impulses of muscles at the start, where they change no momentum; joints are fixed. Return a status."""
    discard_factors(stages)
    disable_controls(tables.joints, controls, work.rows)
    load_momenta_by_pointer(pointers, tables, state, work, 0.0, 1)
    _apply_forces(work.graph, work.factor.block, inputs.body_wrench, h)
    status = solve_and_add_impulses(pointers, tables, state, work, stages)
    if status == SOLVED:
        copy_velocities(work.graph, work.factor.block, state.twist)
    return status


@inline_into_caller
def _begin_mean_motion(tables, work, controls, targets, stages, state, index, h):
    """Reset the given impulses of the mean motion and set the targets of controls."""
    mean = stages.mean
    mean.wrench[:, :] = 0.0
    copy_twists(state.twist, mean.begin_twist)
    for k in range(len(mean.impulse)):
        mean.begin_impulse[k] = stages.impulse[k]
    mean.balance[:] = EXACT
    mean.is_replaced[0] = 0
    if len(controls.every) > 0:
        set_control_targets(tables.joints, controls, targets, stages, state.coordinate, work.rows, index, h)
        for n in range(len(controls.every)):
            stages.feasible[controls.every[n]] = 1


@kernel_function
def _note_given_impulses(tables, work, mean):
    """Add the impulses of contacts in the last solve to the wrenches of the mean motion.

    Contacts exchange energy between groups, so that none has a balance of its own.
    """
    rows, value = work.rows, work.factor.value
    for k in range(tables.contacts.first_row[0], rows.used[0]):
        p = value[k, IMPULSE]
        if rows.pieces[k] > 0 and p != 0.0:
            for e in range(rows.first[k], rows.first[k + 1]):
                b = rows.body[e]
                if b >= 0:
                    mean.balance[tables.bodies.group[b]] = NOT_BALANCED
                    for n in range(6):
                        mean.wrench[b, n] += p * rows.jacobian[e, n]


@inline_into_caller
def _solve_contacts(pointers, tables, state, work, controls, stages, part):
    """Make stage 5 up to positions: contacts and bodies outside, with free controls; return a status.

    Of part REPLACE, forces of `scratch.wrench` replace the impulses of controls: stage 3 is made again with them.
    """
    joints, rows, graph, factor, contact_arrays = tables.joints, work.rows, work.graph, work.factor, work.contact_arrays
    h, first = tables.parameters[STEP_SIZE], tables.contacts.first_row[0]
    if part != REPLACE:
        compute_control_velocities(joints, controls, rows, state.twist, stages.velocity)
    fix_joints(joints, rows)
    disable_controls(joints, controls, rows)
    if part == REPLACE:
        require_curvature(joints.row_ranges, rows, stages.curvature)
    fill_limit_rows(joints, state.coordinate, work.scratch.speed, rows, h)
    keep_listed_rows(rows, factor.mark, first)
    if contact_arrays.count[CONTACTS_NOW] > 0:
        fill_contact_laws_by_pointer(pointers, tables, state, work, False)
    load_momenta_by_pointer(pointers, tables, state, work, h if part == REPLACE else 0.0, 1)
    status = solve_and_add_impulses(pointers, tables, state, work, stages)
    if status == SOLVED or status == FRICTION_NOT_CONVERGED:
        copy_velocities(graph, factor.block, state.twist)
    return status


@inline_into_caller
def _solve_end_velocities(pointers, tables, state, work, controls, stages):
    """Make stage 6 and return a status."""
    joints, rows = tables.joints, work.rows
    disable_limits(joints, controls, rows, stages.feasible)
    fix_joints(joints, rows)
    fix_control_velocities(joints, controls, stages, state.coordinate, rows, tables.parameters[STEP_SIZE])
    disable_contacts(rows, tables.contacts.first_row[0])
    load_momenta_by_pointer(pointers, tables, state, work, 0.0, 1)
    return solve_and_add_impulses(pointers, tables, state, work, stages)


@inline
def _store_replaced(joints, controls, value, replaced):
    """Store the impulses of controls in stage 4."""
    for n in range(len(controls.every)):
        k = joints.drive_row[controls.every[n]]
        replaced[k] = value[k, IMPULSE]


@inline
def _subtract_replaced(joints, controls, replaced, impulse):
    """Subtract the impulses that other forces exert in place of controls."""
    for n in range(len(controls.every)):
        k = joints.drive_row[controls.every[n]]
        impulse[k] -= replaced[k]


@inline
def _has_mean_motion(joints, controls, free, rows, feasible, contact_count, mode, part):
    """Return True if the step is made by the energy-momentum equations.

    Controls with force limits, and those that yield to contacts, need impulses along the rows of the start, as do
    those of models with other coordinates near a limit; a net may have no pose without gaps. Where
    other forces replace the impulses of controls and attain them all, the motion is that of the controls.
    """
    if controls.is_net[0]:
        return False
    if len(controls.every) > 0:
        for i in range(len(joints.limit_row)):
            if joints.limit_row[i] >= 0 and free[i] and rows.pieces[joints.limit_row[i]] > 0:
                return False
    if mode == IN_PARTS:
        if part != POSITION or contact_count > 0:
            return False
        for n in range(len(controls.every)):
            if not feasible[controls.every[n]]:
                return False
        return True
    return mode == EQUATIONS or (mode == CONTACTS and len(controls.every) == 0)


@inline_into_caller
def _solve_mean_motion(pointers, tables, state, inputs, work, controls, history, stages, index, is_solved):
    """Make stages 3 to 6 by the energy-momentum equations and return a status.

    `is_solved`: stages 4 and 5 were solved; of their impulses, those in `stages.mean.wrench` act.
    """
    rows, first, mean, contact_arrays = work.rows, tables.contacts.first_row[0], stages.mean, work.contact_arrays
    contact_count = contact_arrays.count[CONTACTS_NOW]
    if is_solved:
        store_warm_start(tables.contacts.rows_each[0], first, state, work.factor, contact_arrays)
        for k in range(first):
            state.active_piece[k] = stages.active_piece[k]
            stages.impulse[k] = mean.begin_impulse[k]
        copy_twists(mean.begin_twist, state.twist)
    disable_contacts(rows, first)
    contact_arrays.count[CONTACTS_NOW] = 0
    status = advance_mean_motion_by_pointer(pointers, tables, state, inputs, work, controls, history, stages, index)
    contact_arrays.count[CONTACTS_NOW] = contact_count
    return status


@inline_into_caller
def _return_to_start(pointers, tables, state, inputs, work, stages, index):
    """Write the rows of the step's start again, and remove the impulses since."""
    discard_factors(stages)
    compute_rotations(state.quaternion, work.scratch.rotation)
    fill_persistent_rows_by_pointer(pointers, tables, state, inputs, work.rows, work.scratch, index, False)
    keep_listed_rows(work.rows, work.factor.mark, tables.contacts.first_row[0])
    for k in range(tables.contacts.first_row[0]):
        stages.impulse[k] = stages.mean.begin_impulse[k]


@inline_into_caller
def _remove_gained_energy(tables, state, work, stages):
    """Remove the energy that position correction added to groups without controls; return False if there was any."""
    mean, graph = stages.mean, work.graph
    copy_poses(stages.position, stages.quaternion, mean.position, mean.quaternion)
    compute_rotations(mean.quaternion, mean.rotation)
    compute_rotations(state.quaternion, work.scratch.rotation)
    for b in range(len(state.twist)):
        for n in range(6):
            mean.twist[b, n] = mean.begin_twist[b, n]
    require_energy(tables.bodies, tables.gravity, graph, mean, state)
    return balance_energy(tables.bodies, graph, mean, work.scratch.rotation, state, True)


@inline_into_caller
def _store_kinetic_energy(tables, state, work, mean):
    """Store the kinetic energy of each group before positions are corrected."""
    tally = mean.tally
    tally_groups(tables.bodies, work.graph, work.scratch.rotation, state.position, state.twist, tally)
    for g in range(len(tally)):
        tally[g, REQUIRED] = tally[g, KINETIC]


@inline_into_caller
def _is_kinetic_energy_kept(tables, state, work, mean):
    """Return False if the correction of positions added kinetic energy to a group: its equations had no root."""
    tally, kept = mean.tally, True
    compute_rotations(state.quaternion, work.scratch.rotation)
    tally_groups(tables.bodies, work.graph, work.scratch.rotation, state.position, state.twist, tally)
    for g in range(len(tally)):
        before = tally[g, REQUIRED] + NEGLIGIBLE_ENERGY * tally[g, GROUP_MASS]
        if tally[g, KINETIC] > (1.0 + MAX_CORRECTION_GAIN) * before:
            kept = False
    return kept


@inline_into_caller
def _correct_positions(pointers, tables, state, inputs, work, controls, history, stages, index, mode):
    """Make stages 5, from positions on, and 6 by impulses along the rows of the start; return statuses."""
    joints, rows, graph, factor, contact_arrays = tables.joints, work.rows, work.graph, work.factor, work.contact_arrays
    first, each = tables.contacts.first_row[0], tables.contacts.rows_each[0]
    contact_count = contact_arrays.count[CONTACTS_NOW]
    if mode == CONTACTS or mode == IN_PARTS:
        shift_laws_to_solution(rows, graph.node, factor, first, rows.used[0], CORRECTION_SOFTENING)
    shift_laws_to_solution(
        rows, graph.node, factor, joints.row_ranges[LIMIT_ROWS], joints.row_ranges[DRIVE_ROWS], CORRECTION_SOFTENING
    )
    store_warm_start(each, first, state, factor, contact_arrays)
    for k in range(first):
        state.active_piece[k] = stages.active_piece[k]
    disable_limits(joints, controls, rows, stages.feasible)
    contact_arrays.count[CONTACTS_NOW] = 0
    _store_kinetic_energy(tables, state, work, stages.mean)
    position_status = correct_positions_by_pointer(
        pointers, tables, state, inputs, work, controls, history, stages, index, mode
    )
    status = position_status
    if position_status == SOLVED or position_status == JOINTS_LEFT_OPEN:
        status = _solve_end_velocities(pointers, tables, state, work, controls, stages)
    contact_arrays.count[CONTACTS_NOW] = contact_count
    if status == SOLVED:
        copy_velocities(graph, factor.block, state.twist)
    return status, position_status, _is_kinetic_energy_kept(tables, state, work, stages.mean)


@kernel_function
def finish_step(pointers, tables, state, inputs, work, controls, targets, history, stages, index, part):
    """Make stages 3 to 6 of step `index`, or a part of them, and return a status."""
    rows, contact_arrays, mean = work.rows, work.contact_arrays, stages.mean
    h, contact_count = tables.parameters[STEP_SIZE], contact_arrays.count[CONTACTS_NOW]
    mode, known = _step_mode(controls, contact_count, part), controls.knows_contacts[0] > 0
    status, energy_status = stages.solver_stats[STATUS], SOLVED
    exact = _has_mean_motion(tables.joints, controls, mean.free, rows, stages.feasible, contact_count, mode, part)
    if exact and part <= FINISH and contact_count == 0 and inputs.body_wrench.any():
        status = _apply_muscles(pointers, tables, state, inputs, work, controls, stages, h)
        if status != SOLVED:
            return status
    if part <= FINISH or part == CONTROL:
        _begin_mean_motion(tables, work, controls, targets, stages, state, index, h)
    while True:
        is_solved = part != POSITION and (not exact or contact_count > 0)
        if part == REPLACE:
            status = _solve_contacts(pointers, tables, state, work, controls, stages, part)
            mean.is_replaced[0] = 1
        elif is_solved:
            if not known:
                contact_arrays.count[CONTACTS_NOW] = 0  # without contacts no friction bounds are solved for
            status = _solve_controls(
                pointers, tables, state, inputs, work, controls, targets, history, stages, index, mode
            )
            contact_arrays.count[CONTACTS_NOW] = contact_count
            if mode == CONTACTS and status == SOLVED:
                status = _solve_contacts(pointers, tables, state, work, controls, stages, part)
                _note_given_impulses(tables, work, mean)
        stages.solver_stats[STATUS] = status
        if part == CONTROL:
            _store_replaced(tables.joints, controls, work.factor.value, mean.replaced)
        if part == CONTROL or part == REPLACE or (status != SOLVED and status != FRICTION_NOT_CONVERGED):
            return status
        if (mode == CONTACTS or mode == IN_PARTS) and energy_status == SOLVED:
            yield_to_contacts(tables.joints, controls, stages, state.coordinate, rows, state.twist, h)
        if not exact:
            break
        if part == POSITION:
            copy_twists(state.twist, stages.total_change)
        if part == POSITION and mean.is_replaced[0]:
            _subtract_replaced(tables.joints, controls, mean.replaced, mean.begin_impulse)
        energy_status = _solve_mean_motion(
            pointers, tables, state, inputs, work, controls, history, stages, index, is_solved or part == POSITION
        )
        if energy_status == SOLVED or energy_status == ENERGY_NOT_KEPT:
            break
        exact, energy_status = False, ENERGY_NOT_KEPT
        _return_to_start(pointers, tables, state, inputs, work, stages, index)
        if part == POSITION:
            copy_twists(stages.total_change, state.twist)
    contact_status, position_status = status, SOLVED
    if not exact:
        status, position_status, kept = _correct_positions(
            pointers, tables, state, inputs, work, controls, history, stages, index, mode
        )
        if status != SOLVED:
            return status
        if part <= FINISH and not _remove_gained_energy(tables, state, work, stages):
            kept = False
        if not kept:
            energy_status = ENERGY_NOT_KEPT
        if mode == EQUATIONS:
            copy_poses(state.position, state.quaternion, stages.factored_position, stages.factored_quaternion)
    else:
        discard_factors(stages)
    store_history(controls, history, stages)
    state.clock[0] += 1
    stages.solver_stats[STATUS] = contact_status + position_status + energy_status
    return contact_status


finish_step_by_pointer = by_pointer(finish_step)
