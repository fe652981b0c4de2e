"""One impulse step (seed 000, section 4): collisions, velocities, control, contact, positions.

    1  collisions, with restitution; joints are held, so that blows pass through them
    2  velocities obey the joints (the same solve)
    3  gravity, pushes, gyroscopic terms
    4  velocities obey joints and controls; the controller knows neither contacts nor the bodies outside its world
    5  contacts, and bodies outside: controls push as in 4 and give way; then positions, by Newton's method on the
       gaps of joints and the aims of controls together
    6  velocities obey the joints at the new positions; controls keep the mean velocity of the step

`begin` makes 1 and 2 and measures the controls' errors, `finish` the rest; a stage without work is left out. In 5 the
poses are corrected, not the velocities that led to them: with u the velocity along rows J at the poses at hand and C
their errors there, each iteration solves u = -C / h for the bodies' masses, from rest, moves the bodies by it and adds
it to their velocities. Turns are composed, so the iteration is Newton's for turns of any size, and the impulses,
applied where the bodies are, change no momentum.
"""

from __future__ import annotations

from math import sqrt

from borelli.jit import far, leaf, part
from borelli.physics.bodies import aim_at_poses, apply_pushes, is_finite, load_bodies, move_bodies, turn_bodies
from borelli.physics.collide import far_find_contacts
from borelli.physics.contact import far_fill_contact_rows, far_read_contacts
from borelli.physics.factor import IMPULSE, MOMENTUM, SEGMENT, SOLUTION
from borelli.physics.graph import BODY, DIRTY
from borelli.physics.impulse.controls import (
    aim_controls,
    correct_controls,
    free_controls,
    give_way,
    hold_controls,
    lock_controls,
    measure_errors,
    note_limits,
    read_speeds,
    remember_controls,
)
from borelli.physics.impulse.laws import (
    count_from_solution,
    hold_joints,
    keep_listed,
    leave_out_contacts,
    leave_out_marked,
    meet_halfway,
    press,
    strike,
)
from borelli.physics.simulation import add_contact_impulses
from borelli.physics.solver import NO_END, NOT_FINITE, SOLVED, TOO_SMALL
from borelli.physics.step import (
    CONTACTS,
    FRICTION,
    NEWTON,
    STATUS,
    UNSETTLED,
    far_fill_standing_rows,
    far_prepare_solve,
    is_laid_out,
    keep_contacts,
    solve_step,
)
from borelli.rotations import quaternion_product, rotation_exponential
from borelli.sharing import read

CLOSED = 1e-14
"""Errors of positions [m or rad] at which Newton's method ends."""
NEARLY_CLOSED = 1e-9
"""And with which the step is made if they fall no further."""
MOST_CORRECTIONS = 50


@leaf
def _contact_margin(margin, reach, twist, h):
    """How far before they touch contacts are seen: what the fastest point of a body travels in the step is added."""
    fastest = 0.0
    for b in range(len(twist)):
        v = sqrt(twist[b, 0] ** 2 + twist[b, 1] ** 2 + twist[b, 2] ** 2)
        w = sqrt(twist[b, 3] ** 2 + twist[b, 4] ** 2 + twist[b, 5] ** 2)
        fastest = max(fastest, v + w * reach[b])
    return margin + h * fastest


@leaf
def _mark_all(graph):
    """Have all bodies factored again."""
    for k in range(graph.count[0]):
        graph.node[k, DIRTY] = 1


@part
def solve(calls, tables, state_at, work, stages_at):
    """Velocities that obey the rows, from the momenta loaded, in SOLUTION; impulses are added up. A status."""
    state, rows, graph, factor, touch = read(state_at, work.rows, work.graph, work.factor, work.touch)
    scratch, stages = read(work.scratch, stages_at)
    status = solve_step(calls, tables, state, work, rows, factor, touch, scratch.told)
    if not is_finite(graph, factor.block):
        return NOT_FINITE
    stages.told[NEWTON] += scratch.told[NEWTON]
    stages.told[FRICTION] = max(stages.told[FRICTION], scratch.told[FRICTION])
    for k in range(rows.used[0]):
        stages.total[k] += factor.value[k, IMPULSE]
    first, each = tables.contacts.first_row[0], tables.contacts.rows_each[0]
    contacts = (rows.used[0] - first) // each
    add_contact_impulses(
        factor.value, rows, touch.who, work.contacts.point, first, each, contacts, stages.ground
    )  # fmt: skip
    return status


far_solve = far(solve)


@part
def load(tables, state_at, work, h):
    """Masses and momenta after h of gravity and pushes; all bodies are marked for factoring."""
    bodies, state, scratch = read(tables.bodies, state_at, work.scratch)
    graph, factor = read(work.graph, work.factor)
    load_bodies(bodies, tables.gravity, state, scratch, graph, factor.block, h, False)
    _mark_all(graph)


far_load = far(load)


@part
def _take_velocities(state_at, work):
    state, graph, factor = read(state_at, work.graph, work.factor)
    for k in range(graph.count[0]):
        for n in range(6):
            state.twist[graph.node[k, BODY], n] = factor.block[k, SOLUTION + n]


@leaf
def _clear(state, stages, used):
    for b in range(len(state.position)):
        for n in range(3):
            stages.position[b, n] = state.position[b, n]
        for n in range(4):
            stages.quaternion[b, n] = state.quaternion[b, n]
        for n in range(6):
            stages.twist[b, n] = state.twist[b, n]
        for n in range(7):
            stages.ground[b, n] = 0.0
    for k in range(used):
        stages.total[k] = 0.0
    for n in range(4):
        stages.told[n] = 0


@part
def begin(calls, tables, state_at, inputs, work, controls_at, course, memory, stages_at, index):
    """Stages 1 and 2 of step `index`, and the errors of controls; a status. All tuples are shared."""
    bodies, joints, state, rows = read(tables.bodies, tables.joints, state_at, work.rows)
    graph, factor, touch, scratch = read(work.graph, work.factor, work.touch, work.scratch)
    controls, stages, shapes = read(controls_at, stages_at, tables.shapes)
    contacts, numbers = tables.contacts, tables.numbers
    h, first = numbers[5], contacts.first_row[0]
    turn_bodies(state.quaternion, scratch.rotation)
    found = 0
    if len(shapes.pair_a) > 0:
        margin = _contact_margin(numbers[0], controls.reach, state.twist, h)
        found = far_find_contacts(calls, tables.shapes, state.position, scratch.rotation, margin, work.contacts)
        if found > len(work.contacts.depth):
            return TOO_SMALL
    aim_at_poses(bodies.kinematic, inputs.pose, inputs.substeps[0], index, h, state, scratch.aim)
    apply_pushes(inputs.pushes, bodies.kinematic, h * state.clock[0], scratch.rotation, scratch.wrench)
    far_fill_standing_rows(
        calls, tables.joints, tables.anchors, tables.residuals, numbers, state_at, inputs, work.rows, work.scratch,
        index, False,
    )  # fmt: skip
    touch.count[0], rows.used[0] = found, first
    if found > 0:
        far_read_contacts(
            calls, tables.shapes, contacts, work.contacts, found, state_at, scratch.rotation, bodies.kinematic,
            work.touch,
        )  # fmt: skip
        far_fill_contact_rows(
            calls, tables.shapes, contacts, numbers, work.contacts, state_at, bodies.kinematic, work.touch, work.rows
        )  # fmt: skip
    # rows are listed by the laws they have when they act: hard
    hold_joints(joints, rows)
    hold_controls(joints, controls, rows)
    if not is_laid_out(rows, graph, factor, touch, first, found):
        if not far_prepare_solve(calls, tables.bodies, work, first, found):
            return TOO_SMALL
    _clear(state, stages, rows.used[0])
    stages.told[CONTACTS] = found
    read_speeds(joints, controls, rows, state.twist, stages.speed)
    struck = strike(tables.shapes, contacts, work.contacts, touch, rows, state.twist, numbers)
    status = SOLVED
    if struck > 0 or memory.known[0] == 0:
        free_controls(joints, controls, rows)
        far_load(calls, tables, state_at, work, 0.0)
        status = far_solve(calls, calls, tables, state_at, work, stages_at)
        _take_velocities(state_at, work)
    measure_errors(joints, controls, read(course), read(memory), stages, state.coordinate, rows, state.twist, index, h)
    return status


far_begin = far(begin)


@leaf
def rewind(state, stages):
    """Bodies as they were when the step began."""
    for b in range(len(state.position)):
        for n in range(3):
            state.position[b, n] = stages.position[b, n]
        for n in range(4):
            state.quaternion[b, n] = stages.quaternion[b, n]
        for n in range(6):
            state.twist[b, n] = stages.twist[b, n]


@leaf
def _widest_gap(joints, rows, h):
    """The largest error of joints, couplings, locked coordinates and stops [m or rad]."""
    widest = 0.0
    for k in range(joints.row_ranges[0], joints.row_ranges[2]):
        widest = max(widest, abs(rows.c[k, 0]))
    for k in range(joints.row_ranges[2], joints.row_ranges[3]):
        if rows.segments[k] == 2:
            widest = max(widest, rows.c[k, 0])
    for i in range(len(joints.drive_row)):
        if joints.drive_row[i] >= 0 and joints.locked[i]:
            widest = max(widest, abs(rows.c[joints.drive_row[i], 0]))
    return h * widest


@leaf
def _shift_bodies(graph, block, state, h):
    """Add the solved velocities to those of the bodies, and move them by what was added."""
    position, quaternion, twist = state.position, state.quaternion, state.twist
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        for n in range(6):
            twist[b, n] += block[k, SOLUTION + n]
        for n in range(3):
            position[b, n] += h * block[k, SOLUTION + n]
        ew, ex, ey, ez = rotation_exponential(
            h * block[k, SOLUTION + 3], h * block[k, SOLUTION + 4], h * block[k, SOLUTION + 5]
        )
        w, x, y, z = quaternion_product(
            ew, ex, ey, ez, quaternion[b, 0], quaternion[b, 1], quaternion[b, 2], quaternion[b, 3]
        )
        scale = 1.0 / sqrt(w * w + x * x + y * y + z * z)
        quaternion[b, 0], quaternion[b, 1] = scale * w, scale * x
        quaternion[b, 2], quaternion[b, 3] = scale * y, scale * z


@part
def correct_positions(calls, tables, state_at, inputs, work, controls_at, stages_at, index):
    """Move the bodies, and correct them until joints are closed and controls at their aims; rows are left there."""
    bodies, joints, state, rows = read(tables.bodies, tables.joints, state_at, work.rows)
    graph, factor, scratch = read(work.graph, work.factor, work.scratch)
    controls, stages = read(controls_at, stages_at)
    numbers, first = tables.numbers, tables.contacts.first_row[0]
    h, last = numbers[5], 1e300
    move_bodies(graph, factor.block, bodies.kinematic, state, h)
    for _ in range(MOST_CORRECTIONS):
        turn_bodies(state.quaternion, scratch.rotation)
        far_fill_standing_rows(
            calls, tables.joints, tables.anchors, tables.residuals, numbers, state_at, inputs, work.rows,
            work.scratch, index, False,
        )  # fmt: skip
        keep_listed(rows, factor.mark, first)
        meet_halfway(joints, rows, h)
        worst = max(
            _widest_gap(joints, rows, h), correct_controls(joints, controls, stages, state.coordinate, rows, h)
        )
        if worst <= CLOSED or (worst <= NEARLY_CLOSED and worst > 0.5 * last):
            return SOLVED
        last = worst
        for k in range(first):
            rows.offset[k] = 0.0
        far_load(calls, tables, state_at, work, 0.0)
        for k in range(graph.count[0]):
            for n in range(6):
                factor.block[k, MOMENTUM + n] = 0.0
        status = far_solve(calls, calls, tables, state_at, work, stages_at)
        if status != SOLVED:
            return status
        _shift_bodies(graph, factor.block, state, h)
        count_from_solution(rows, graph.node, factor, first)
    return NO_END


far_correct_positions = far(correct_positions)


@part
def finish(calls, tables, state_at, inputs, work, controls_at, course, memory, stages_at, index):
    """Stages 3 to 6 of step `index`; a status."""
    joints, state, rows = read(tables.joints, state_at, work.rows)
    graph, factor, touch = read(work.graph, work.factor, work.touch)
    controls, stages = read(controls_at, stages_at)
    numbers, first, each = tables.numbers, tables.contacts.first_row[0], tables.contacts.rows_each[0]
    h, found = numbers[5], touch.count[0]
    apart = False
    for k in range(len(controls.outside)):
        apart = apart or controls.outside[k] > 0
    touch.count[0] = 0  # no friction to settle
    leave_out_contacts(rows, first)
    if apart:
        leave_out_marked(rows, controls.outside)
    aim_controls(joints, controls, read(course), stages, rows, index, h)
    far_load(calls, tables, state_at, work, h)
    status = far_solve(calls, calls, tables, state_at, work, stages_at)
    touch.count[0] = found
    if status != SOLVED:
        return status
    note_limits(joints, controls, stages, factor.mark)
    for k in range(first):
        stages.segment[k] = factor.mark[k, SEGMENT]
    _take_velocities(state_at, work)
    unsettled = SOLVED
    if found > 0 or apart:
        read_speeds(joints, controls, rows, state.twist, stages.speed)
        hold_joints(joints, rows)
        free_controls(joints, controls, rows)
        press(tables.contacts, work.contacts, touch, rows, numbers)
        far_load(calls, tables, state_at, work, 0.0)
        unsettled = far_solve(calls, calls, tables, state_at, work, stages_at)
        if unsettled != SOLVED and unsettled != UNSETTLED:
            return unsettled
        _take_velocities(state_at, work)
        give_way(joints, controls, stages, rows, state.twist, h)
        count_from_solution(rows, graph.node, factor, first)
    keep_contacts(each, first, state, factor, touch)
    for k in range(first):
        state.segment[k] = stages.segment[k]
    touch.count[0] = 0
    status = far_correct_positions(calls, calls, tables, state_at, inputs, work, controls_at, stages_at, index)
    if status == SOLVED:
        hold_joints(joints, rows)
        lock_controls(joints, controls, stages, state.coordinate, rows, h)
        leave_out_contacts(rows, first)
        far_load(calls, tables, state_at, work, 0.0)
        status = far_solve(calls, calls, tables, state_at, work, stages_at)
    touch.count[0] = found
    if status != SOLVED:
        return status
    _take_velocities(state_at, work)
    remember_controls(controls, read(memory), stages)
    state.clock[0] += 1
    stages.told[STATUS] = unsettled
    return unsettled


far_finish = far(finish)
