"""One impulse step (seed 000, section 4): collisions, velocities, control, contact, positions.

    1  pushes, and collisions with restitution; joints are held, so that blows pass through them
    2  velocities obey the joints (the same solve)
    3  gravity, gyroscopic terms
    4  velocities obey joints and controls; the controller knows neither contacts nor the bodies outside its world
    5  contacts, and bodies outside: controls push as in 4 and give way; then positions, by Newton's method on the
       gaps of joints and the aims of controls together
    6  velocities obey the joints at the new positions; controls keep the mean velocity of the step

`begin` makes 1 and 2 and measures the controls' errors, `finish` the rest; a stage without work is left out.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.physics.collision.detect import find_contacts_by_pointer
from borelli.physics.impulse_step.controlled_joints import (
    aim_controls,
    find_turns_by_pointer,
    free_controls,
    give_way,
    hold_controls,
    lock_controls,
    measure_errors,
    note_limits,
    read_speeds,
    remember_controls,
)
from borelli.physics.impulse_step.curvature import expect_bend
from borelli.physics.impulse_step.joint_limits import are_stops_struck, leave_out_stops
from borelli.physics.impulse_step.position_correction import LEFT_OPEN, correct_positions_by_pointer
from borelli.physics.impulse_step.stage_laws import (
    count_from_solution,
    fill_contact_laws_by_pointer,
    hold_joints,
    keep_listed,
    leave_out_contacts,
    leave_out_marked,
)
from borelli.physics.impulse_step.stage_solve import (
    are_factors_good,
    copy_poses,
    forget_factored,
    load_by_pointer,
    solve_and_add,
)
from borelli.physics.rigid_bodies import aim_at_poses, apply_pushes, turn_bodies
from borelli.physics.rows.contact_rows import fill_contact_arrays_by_pointer, fill_contact_rows_by_pointer
from borelli.physics.rows.coordinate_rows import fill_limit_rows
from borelli.physics.soft_step import (
    CONTACTS,
    STATUS,
    UNSETTLED,
    fill_standing_rows_by_pointer,
    is_laid_out,
    keep_contacts,
    prepare_solve_by_pointer,
)
from borelli.physics.solver.elimination_order import BODY
from borelli.physics.solver.factor_arrays import ACTIVE_PIECE, MOMENTUM, SOLUTION
from borelli.physics.solver.newton import CAPACITY_EXCEEDED, SOLVED

YIELDING = 1e10
"""How much softer contacts and stops are while positions are corrected: about as soft as bodies are heavy. A control
that is held would meet a hard one with any force there (1e7 N where planks slid along a block that 160 N pressed on);
what they overlap, of second order in the step, the next step pushes apart."""


@inline
def _contact_margin(margin, reach, twist, h):
    """How far before they touch contacts are seen: what the fastest point of a body travels in the step is added."""
    fastest = 0.0
    for b in range(len(twist)):
        v = sqrt(twist[b, 0] ** 2 + twist[b, 1] ** 2 + twist[b, 2] ** 2)
        w = sqrt(twist[b, 3] ** 2 + twist[b, 4] ** 2 + twist[b, 5] ** 2)
        fastest = max(fastest, v + w * reach[b])
    return margin + h * fastest


@kernel_function
def _take_velocities(twist, node, block, count):
    for k in range(count):
        for n in range(6):
            twist[node[k, BODY], n] = block[k, SOLUTION + n]


@inline
def _clear(state, stages, used):
    copy_poses(state.position, state.quaternion, stages.position, stages.quaternion)
    for b in range(len(state.position)):
        for n in range(6):
            stages.twist[b, n] = state.twist[b, n]
        for n in range(7):
            stages.ground[b, n] = 0.0
    for k in range(used):
        stages.total[k] = 0.0
    for n in range(4):
        stages.told[n] = 0


@inline
def _push(graph, block, wrench, h):
    """Add the momenta that pushes give in a step, which the controller learns of by what they change."""
    for k in range(graph.count[0]):
        for n in range(6):
            block[k, MOMENTUM + n] += h * wrench[graph.node[k, BODY], n]
    wrench[:, :] = 0.0


@kernel_function
def begin(pointers, tables, state, inputs, work, controls, course, memory, stages, index):
    """Stages 1 and 2 of step `index`, and the errors of controls; a status.

    All tuples are shared, and stay so: taking the tables of joints apart would cost seconds of compiling.
    """
    bodies, joints, shapes, rows = tables.bodies, tables.joints, tables.shapes, work.rows
    graph, factor, touch, scratch = work.graph, work.factor, work.touch, work.scratch
    contacts, numbers = tables.contacts, tables.numbers
    h, first = numbers[5], contacts.first_row[0]
    turn_bodies(state.quaternion, scratch.rotation)
    found = 0
    if len(shapes.pair_a) > 0:
        margin = _contact_margin(numbers[0], controls.reach, state.twist, h)
        found = find_contacts_by_pointer(pointers, shapes, state.position, scratch.rotation, margin, work.contacts)
        if found > len(work.contacts.depth):
            return CAPACITY_EXCEEDED
    aim_at_poses(bodies.kinematic, inputs.pose, inputs.substeps[0], index, h, state, scratch.aim)
    apply_pushes(inputs.pushes, bodies.kinematic, h * state.clock[0], scratch.rotation, scratch.wrench)
    fill_standing_rows_by_pointer(
        pointers, joints, tables.anchors, tables.residuals, numbers, state, inputs, rows, scratch,
        index, False,
    )  # fmt: skip
    touch.count[0], rows.used[0] = found, first
    if found > 0:
        fill_contact_arrays_by_pointer(
            pointers, shapes, contacts, work.contacts, found, state, scratch.rotation, bodies.kinematic, touch
        )  # fmt: skip
        fill_contact_rows_by_pointer(
            pointers, shapes, contacts, numbers, work.contacts, state, bodies.kinematic, touch, rows
        )  # fmt: skip
    # rows are listed by the laws they have when they act: hard
    hold_joints(joints, rows)
    hold_controls(joints, controls, rows)
    if not is_laid_out(rows, graph, factor, touch, first, found):
        forget_factored(stages)
        if not prepare_solve_by_pointer(pointers, tables.bodies, work, first, found):
            return CAPACITY_EXCEEDED
    _clear(state, stages, rows.used[0])
    stages.told[CONTACTS] = found
    read_speeds(joints, controls, rows, state.twist, stages.speed)
    if len(controls.ball) > 0:
        find_turns_by_pointer(pointers, joints, controls, stages.turn)
    struck, status = 0, SOLVED
    if found > 0:
        struck = fill_contact_laws_by_pointer(
            pointers, shapes, contacts, work.contacts, touch, rows, state.twist, tables.gravity, numbers, True
        )  # fmt: skip
    blow = struck > 0 or scratch.wrench.any() or are_stops_struck(joints, rows, state.twist)
    if blow or memory.known[0] == 0:
        forget_factored(stages)
        free_controls(joints, controls, rows)
        load_by_pointer(pointers, tables, state, work, 0.0, 1)
        _push(graph, factor.block, scratch.wrench, h)
        status = solve_and_add(pointers, tables, state, work, stages)
        _take_velocities(state.twist, graph.node, factor.block, graph.count[0])
    measure_errors(joints, controls, course, memory, stages, state.coordinate, rows, state.twist, index, h)
    return status


begin_by_pointer = by_pointer(begin)


@inline
def rewind(state, stages):
    """Bodies as they were when the step began."""
    copy_poses(stages.position, stages.quaternion, state.position, state.quaternion)
    for b in range(len(state.twist)):
        for n in range(6):
            state.twist[b, n] = stages.twist[b, n]


@kernel_function
def finish(pointers, tables, state, inputs, work, controls, course, memory, stages, index):
    """Stages 3 to 6 of step `index`; a status."""
    joints, rows, graph, factor, touch = tables.joints, work.rows, work.graph, work.factor, work.touch
    numbers, first, each = tables.numbers, tables.contacts.first_row[0], tables.contacts.rows_each[0]
    h, found = numbers[5], touch.count[0]
    apart = False
    for k in range(len(controls.outside)):
        apart = apart or controls.outside[k] > 0
    limited = False
    for i in range(len(controls.slope)):
        limited = limited or controls.slope[i] > 0.0
    touch.count[0] = 0  # no friction to settle
    leave_out_contacts(rows, first)
    if apart:
        leave_out_marked(rows, controls.outside)
    aim_controls(joints, controls, course, stages, state.coordinate, rows, index, h)
    leave_out_stops(joints, controls, rows, controls.unlimited)
    same = found == 0 and not apart and not limited
    dirty = 1
    if same:
        expect_bend(joints.row_ranges, memory, rows, stages.bend)
        dirty = 0 if are_factors_good(joints, rows, state, stages) else 1
    forget_factored(stages)
    load_by_pointer(pointers, tables, state, work, h, dirty)
    status = solve_and_add(pointers, tables, state, work, stages)
    touch.count[0] = found
    if status != SOLVED:
        return status
    note_limits(joints, controls, stages, factor.mark)
    for k in range(first):
        stages.segment[k] = factor.mark[k, ACTIVE_PIECE]
    _take_velocities(state.twist, graph.node, factor.block, graph.count[0])
    unsettled = SOLVED
    if found > 0 or apart:
        read_speeds(joints, controls, rows, state.twist, stages.speed)
        hold_joints(joints, rows)
        free_controls(joints, controls, rows)
        fill_limit_rows(joints, state.coordinate, work.scratch.speed, rows, h)
        keep_listed(rows, factor.mark, first)
        if found > 0:
            fill_contact_laws_by_pointer(
                pointers, tables.shapes, tables.contacts, work.contacts, touch, rows, state.twist, tables.gravity,
                numbers, False,
            )  # fmt: skip
        load_by_pointer(pointers, tables, state, work, 0.0, 1)
        unsettled = solve_and_add(pointers, tables, state, work, stages)
        if unsettled != SOLVED and unsettled != UNSETTLED:
            return unsettled
        _take_velocities(state.twist, graph.node, factor.block, graph.count[0])
        give_way(joints, controls, stages, state.coordinate, rows, state.twist, h)
        count_from_solution(rows, graph.node, factor, first, rows.used[0], YIELDING)
    count_from_solution(rows, graph.node, factor, joints.row_ranges[2], joints.row_ranges[3], YIELDING)
    keep_contacts(each, first, state, factor, touch)
    for k in range(first):
        state.segment[k] = stages.segment[k]
    leave_out_stops(joints, controls, rows, stages.held)
    touch.count[0] = 0
    closed = correct_positions_by_pointer(
        pointers, tables, state, inputs, work, controls, memory, stages, index, same
    )  # fmt: skip
    status = closed
    if closed == SOLVED or closed == LEFT_OPEN:
        leave_out_stops(joints, controls, rows, stages.held)
        hold_joints(joints, rows)
        lock_controls(joints, controls, stages, state.coordinate, rows, h)
        leave_out_contacts(rows, first)
        load_by_pointer(pointers, tables, state, work, 0.0, 1)
        status = solve_and_add(pointers, tables, state, work, stages)
    touch.count[0] = found
    if status != SOLVED:
        return status
    _take_velocities(state.twist, graph.node, factor.block, graph.count[0])
    if same:
        copy_poses(state.position, state.quaternion, stages.factored, stages.factored_turn)
    remember_controls(controls, memory, stages)
    state.clock[0] += 1
    stages.told[STATUS] = unsettled + closed
    return unsettled


finish_by_pointer = by_pointer(finish)
