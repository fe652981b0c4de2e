"""Positions at the end of an impulse step (seed 000, appendix A).

Impulses p at the step's start, along the rows J of the poses there, are to make the errors C of rows vanish at its end,

    C(poses at the start moved by h v') = 0,     v' = v + M^-1 J^T p.

Such impulses change no momentum, and a body that moves by h v' keeps its angular momentum: pendulums lose no energy to
it. With -C / h for the velocity that is lacking, and J for the derivative of C, each iteration is one more solve with
the factors of stage 4; the error falls by about the angle that bodies turn in the step. Where that is too large, the
rows and masses of the poses at hand are taken, and turns are composed: Newton's method, for turns of any size.
"""

from __future__ import annotations

from math import sqrt

from borelli.jit import far, leaf, part
from borelli.physics.bodies import turn_bodies
from borelli.physics.factor import MOMENTUM, SOLUTION
from borelli.physics.graph import BODY
from borelli.physics.impulse.controls import correct_controls, far_find_turns
from borelli.physics.impulse.laws import count_from_solution, keep_listed, meet_halfway, take_errors, widest_gap
from borelli.physics.impulse.solves import far_load, far_solve, mark_all
from borelli.physics.solver import NO_END, SOLVED
from borelli.physics.step import far_fill_standing_rows
from borelli.rotations import quaternion_product, rotation_exponential

CLOSED = 1e-15
"""Errors of positions [m or rad] at which Newton's method ends. What is left of them in every step adds up, since the
rate of an error is found from two of them: to 100 times as much."""
NEARLY_CLOSED = 1e-9
"""And with which the step is made if they fall no further."""
PATIENCE = 40
"""Corrections with the factors of stage 4, as long as errors fall; after them, those of the poses at hand."""
MOST_CORRECTIONS = 60


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


@leaf
def _start_from_rest(rows, first, block, count):
    """Solve for changes: no momentum, and nothing else moves."""
    for k in range(first):
        rows.offset[k] = 0.0
    for k in range(count):
        for n in range(6):
            block[k, MOMENTUM + n] = 0.0


@part
def correct_positions(calls, tables, state, inputs, work, controls, stages, index, same):
    """Move the bodies so that joints are closed and controls at their aims; rows and velocities are left there.

    `same`: rows act as in the last solve, whose factors hold.
    """
    joints, rows, graph, factor, scratch = tables.joints, work.rows, work.graph, work.factor, work.scratch
    numbers, first = tables.numbers, tables.contacts.first_row[0]
    h, last, at_start = numbers[5], 1e300, True
    if not same:
        mark_all(graph)
    _start_from_rest(rows, first, factor.block, graph.count[0])
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
            _start_from_rest(rows, first, factor.block, graph.count[0])
        status = far_solve(calls, calls, tables, state, work, stages)
        if status != SOLVED:
            return status
        for k in range(graph.count[0]):
            for n in range(6):
                state.twist[graph.node[k, BODY], n] += factor.block[k, SOLUTION + n]
        if not at_start:
            _move_further(graph, factor.block, state, h)
        count_from_solution(rows, graph.node, factor, joints.row_ranges[2], joints.row_ranges[3], 1.0)
        count_from_solution(rows, graph.node, factor, first, rows.used[0], 1.0)
    if worst > NEARLY_CLOSED:
        return NO_END
    if at_start:
        far_fill_standing_rows(
            calls, joints, tables.anchors, tables.residuals, numbers, state, inputs, rows, scratch, index, False
        )  # fmt: skip
        keep_listed(rows, factor.mark, first)
    return SOLVED


far_correct_positions = far(correct_positions)
