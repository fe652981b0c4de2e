"""One impulse step (seed 000, section 4): collisions, velocities, control, contact, positions.

    1  collisions, with restitution; joints are held, so that blows pass through them
    2  velocities obey the joints (the same solve)
    3  gravity, pushes, gyroscopic terms
    4  velocities obey joints and controls; the controller knows neither contacts nor the bodies outside its world
    5  contacts, and bodies outside: controls push as in 4 and give way; then positions, by Newton's method on the
       gaps of joints and the aims of controls together
    6  velocities obey the joints at the new positions; controls keep the mean velocity of the step

`begin` makes 1 and 2 and measures the controls' errors, `finish` the rest; a stage without work is left out.

Positions (seed 000, appendix A): impulses p at the step's start, along the rows J of the poses there, are to make the
errors C of rows vanish at its end,

    C(poses at the start moved by h v') = 0,     v' = v + M^-1 J^T p.

Such impulses change no momentum, and a body that moves by h v' keeps its angular momentum: pendulums lose no energy to
it. With -C / h for the velocity that is lacking, and J for the derivative of C, each iteration is one more solve with
the factors of stage 4; the error falls by about the angle that bodies turn in the step. Where that is too large, the
rows and masses of the poses at hand are taken, and turns are composed: Newton's method, for turns of any size.
"""

from __future__ import annotations

from math import sqrt

from borelli.jit import far, leaf, part
from borelli.physics.bodies import aim_at_poses, apply_pushes, is_finite, load_bodies, turn_bodies
from borelli.physics.collide import far_find_contacts
from borelli.physics.contact import far_fill_contact_rows, far_read_contacts
from borelli.physics.factor import IMPULSE, MOMENTUM, SEGMENT, SOLUTION
from borelli.physics.graph import BODY, DIRTY
from borelli.physics.impulse.controls import (
    aim_controls,
    correct_controls,
    far_find_turns,
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
    far_fill_contact_laws,
    hold_joints,
    keep_listed,
    leave_out_contacts,
    leave_out_marked,
    meet_halfway,
    take_errors,
    widest_gap,
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

CLOSED = 1e-15
"""Errors of positions [m or rad] at which Newton's method ends. What is left of them in every step adds up, since the
rate of an error is found from two of them: to 100 times as much."""
NEARLY_CLOSED = 1e-9
"""And with which the step is made if they fall no further."""
PATIENCE = 40
"""Corrections with the factors of stage 4, as long as errors fall; after them, those of the poses at hand."""
MOST_CORRECTIONS = 60


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
def _take_velocities(twist, node, block, count):
    for k in range(count):
        for n in range(6):
            twist[node[k, BODY], n] = block[k, SOLUTION + n]


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
def begin(calls, tables, state, inputs, work, controls, course, memory, stages, index):
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
        found = far_find_contacts(calls, shapes, state.position, scratch.rotation, margin, work.contacts)
        if found > len(work.contacts.depth):
            return TOO_SMALL
    aim_at_poses(bodies.kinematic, inputs.pose, inputs.substeps[0], index, h, state, scratch.aim)
    apply_pushes(inputs.pushes, bodies.kinematic, h * state.clock[0], scratch.rotation, scratch.wrench)
    far_fill_standing_rows(
        calls, joints, tables.anchors, tables.residuals, numbers, state, inputs, rows, scratch,
        index, False,
    )  # fmt: skip
    touch.count[0], rows.used[0] = found, first
    if found > 0:
        far_read_contacts(
            calls, shapes, contacts, work.contacts, found, state, scratch.rotation, bodies.kinematic, touch
        )  # fmt: skip
        far_fill_contact_rows(
            calls, shapes, contacts, numbers, work.contacts, state, bodies.kinematic, touch, rows
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
    if len(controls.ball) > 0:
        far_find_turns(calls, joints, controls, stages.turn)
    struck, status = 0, SOLVED
    if found > 0:
        struck = far_fill_contact_laws(
            calls, shapes, contacts, work.contacts, touch, rows, state.twist, tables.gravity, numbers, True
        )  # fmt: skip
    if struck > 0 or memory.known[0] == 0:
        free_controls(joints, controls, rows)
        far_load(calls, tables, state, work, 0.0)
        status = far_solve(calls, calls, tables, state, work, stages)
        _take_velocities(state.twist, graph.node, factor.block, graph.count[0])
    measure_errors(joints, controls, course, memory, stages, state.coordinate, rows, state.twist, index, h)
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
def _turn(quaternion, b, h, x, y, z, w0, x0, y0, z0):
    """Body b turned from an orientation by h times a spin."""
    ew, ex, ey, ez = rotation_exponential(h * x, h * y, h * z)
    w, x, y, z = quaternion_product(ew, ex, ey, ez, w0, x0, y0, z0)
    scale = 1.0 / sqrt(w * w + x * x + y * y + z * z)
    quaternion[b, 0], quaternion[b, 1] = scale * w, scale * x
    quaternion[b, 2], quaternion[b, 3] = scale * y, scale * z


@leaf
def _move_from_start(state, stages, h):
    """All bodies moved from where the step began by their velocities."""
    position, quaternion, twist, began = state.position, state.quaternion, state.twist, stages.quaternion
    for b in range(len(position)):
        for n in range(3):
            position[b, n] = stages.position[b, n] + h * twist[b, n]
        _turn(
            quaternion, b, h, twist[b, 3], twist[b, 4], twist[b, 5],
            began[b, 0], began[b, 1], began[b, 2], began[b, 3],
        )  # fmt: skip


@leaf
def _move_further(graph, block, state, h):
    """Bodies moved from where they are by the solved velocities."""
    position, quaternion = state.position, state.quaternion
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        for n in range(3):
            position[b, n] += h * block[k, SOLUTION + n]
        _turn(
            quaternion, b, h, block[k, SOLUTION + 3], block[k, SOLUTION + 4], block[k, SOLUTION + 5],
            quaternion[b, 0], quaternion[b, 1], quaternion[b, 2], quaternion[b, 3],
        )  # fmt: skip


@part
def correct_positions(calls, tables, state, inputs, work, controls, stages, index, same):
    """Move the bodies so that joints are closed and controls at their aims; rows and velocities are left there.

    `same`: rows act as in the last solve, whose factors hold.
    """
    joints, rows, graph, factor, scratch = tables.joints, work.rows, work.graph, work.factor, work.scratch
    numbers, first = tables.numbers, tables.contacts.first_row[0]
    h, last, at_start = numbers[5], 1e300, True
    if not same:
        _mark_all(graph)
    for k in range(first):
        rows.offset[k] = 0.0
    for k in range(graph.count[0]):
        for n in range(6):
            factor.block[k, MOMENTUM + n] = 0.0
    for correction in range(MOST_CORRECTIONS):
        if at_start:
            _move_from_start(state, stages, h)
        turn_bodies(state.quaternion, scratch.rotation)
        filled = stages.trial if at_start else rows
        far_fill_standing_rows(
            calls, joints, tables.anchors, tables.residuals, numbers, state, inputs, filled, scratch, index, False
        )  # fmt: skip
        if at_start:
            take_errors(joints, stages.trial, rows)
        else:
            keep_listed(rows, factor.mark, first)
            meet_halfway(joints, rows, h)
        if len(controls.ball) > 0:
            far_find_turns(calls, joints, controls, stages.now)
        worst = max(
            widest_gap(joints, rows, h, not at_start),
            correct_controls(joints, controls, stages, state.coordinate, rows, h),
        )
        if worst <= CLOSED or (worst <= NEARLY_CLOSED and worst > 0.5 * last):
            break
        if at_start and (worst > last or correction == PATIENCE):
            # too far for the directions of the start: from here on those of where the bodies are
            at_start, last = False, 1e300
            continue
        last = worst
        if not at_start:
            far_load(calls, tables, state, work, 0.0)
            for k in range(first):
                rows.offset[k] = 0.0
            for k in range(graph.count[0]):
                for n in range(6):
                    factor.block[k, MOMENTUM + n] = 0.0
        status = far_solve(calls, calls, tables, state, work, stages)
        if status != SOLVED:
            return status
        for k in range(graph.count[0]):
            for n in range(6):
                state.twist[graph.node[k, BODY], n] += factor.block[k, SOLUTION + n]
        if not at_start:
            _move_further(graph, factor.block, state, h)
        count_from_solution(rows, graph.node, factor, joints.row_ranges[2], joints.row_ranges[3])
        count_from_solution(rows, graph.node, factor, first, rows.used[0])
    if worst > NEARLY_CLOSED:
        return NO_END
    if at_start:
        far_fill_standing_rows(
            calls, joints, tables.anchors, tables.residuals, numbers, state, inputs, rows, scratch, index, False
        )  # fmt: skip
        keep_listed(rows, factor.mark, first)
    return SOLVED


far_correct_positions = far(correct_positions)


@part
def finish(calls, tables, state, inputs, work, controls, course, memory, stages, index):
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
    aim_controls(joints, controls, course, stages, rows, index, h)
    far_load(calls, tables, state, work, h)
    status = far_solve(calls, calls, tables, state, work, stages)
    touch.count[0] = found
    if status != SOLVED:
        return status
    note_limits(joints, controls, stages, factor.mark)
    for k in range(first):
        stages.segment[k] = factor.mark[k, SEGMENT]
    _take_velocities(state.twist, graph.node, factor.block, graph.count[0])
    unsettled = SOLVED
    if found > 0 or apart:
        read_speeds(joints, controls, rows, state.twist, stages.speed)
        hold_joints(joints, rows)
        free_controls(joints, controls, rows)
        if found > 0:
            far_fill_contact_laws(
                calls, tables.shapes, tables.contacts, work.contacts, touch, rows, state.twist, tables.gravity,
                numbers, False,
            )  # fmt: skip
        far_load(calls, tables, state, work, 0.0)
        unsettled = far_solve(calls, calls, tables, state, work, stages)
        if unsettled != SOLVED and unsettled != UNSETTLED:
            return unsettled
        _take_velocities(state.twist, graph.node, factor.block, graph.count[0])
        give_way(joints, controls, stages, rows, state.twist, h)
        count_from_solution(rows, graph.node, factor, first, rows.used[0])
    count_from_solution(rows, graph.node, factor, joints.row_ranges[2], joints.row_ranges[3])
    keep_contacts(each, first, state, factor, touch)
    for k in range(first):
        state.segment[k] = stages.segment[k]
    same = found == 0 and not apart and not limited
    touch.count[0] = 0
    status = far_correct_positions(calls, calls, tables, state, inputs, work, controls, stages, index, same)
    if status == SOLVED:
        hold_joints(joints, rows)
        lock_controls(joints, controls, stages, state.coordinate, rows, h)
        leave_out_contacts(rows, first)
        far_load(calls, tables, state, work, 0.0)
        status = far_solve(calls, calls, tables, state, work, stages)
    touch.count[0] = found
    if status != SOLVED:
        return status
    _take_velocities(state.twist, graph.node, factor.block, graph.count[0])
    remember_controls(controls, memory, stages)
    state.clock[0] += 1
    stages.told[STATUS] = unsettled
    return unsettled


far_finish = far(finish)
