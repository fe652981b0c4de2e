"""Positions at the end of an impulse step (seed 000, appendix A).

Impulses p at the step's start, along the rows J of the poses there, are to make the errors C of rows vanish at its end,

    C(poses at the start moved by h v') = 0,     v' = v + M^-1 J^T p.

Such impulses change no momentum, and a body that moves by h v' keeps its angular momentum: pendulums lose no energy to
it. By Newton's method: with J' the rows at the end and T what a change of a turn becomes after it (`_carried`),

    J' T M^-1 J^T p = -C / h

is solved by refinement with the factors of J M^-1 J^T from stage 4; each solve leaves about the angle that bodies turn
in the step of what is lacking. Where that is too much, the rows and masses of the poses at hand are taken, and turns
are composed: for turns of any size.
"""

from __future__ import annotations

from math import cos, sin, sqrt

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.numerics.rotation_kernels import cross, quaternion_product, rotation_exponential
from borelli.physics.impulse_step.controlled_joints import (
    correct_controls,
    find_turns_by_pointer,
    lessen_controls,
    note_limits,
)
from borelli.physics.impulse_step.curvature import add_bend, remember_bend
from borelli.physics.impulse_step.joint_limits import leave_out_stops
from borelli.physics.impulse_step.stage_laws import (
    count_from_solution,
    keep_listed,
    lessen_joints,
    meet_halfway,
    take_errors,
    widest_gap,
)
from borelli.physics.impulse_step.stage_solve import (
    add_impulses_by_pointer,
    load_by_pointer,
    mark_all,
    solve_by_pointer,
)
from borelli.physics.rigid_bodies import turn_bodies
from borelli.physics.soft_step import fill_standing_rows_by_pointer
from borelli.physics.solver.elimination_order import BODY
from borelli.physics.solver.factor_arrays import IMPULSE, MOMENTUM, SOLUTION
from borelli.physics.solver.newton import NOT_CONVERGED, SOLVED

CLOSED = 2e-15
"""Errors of positions [m or rad] at which Newton's method ends. What is left of them in every step adds up, since the
rate of an error is found from two of them: to 100 times as much."""
SHUT = 5e-15
"""The same for gaps of joints, which do not add up; at least GRAIN of the distance of the farthest body."""
GRAIN = 4.5e-16
"""Two units in the last place of a number."""
ROUNDING = 1e-12
"""Errors that may be rounding, of bodies far from the origin, if they fall no further."""
NEARLY_CLOSED = 1e-9
"""Errors with which the step is made if they fall no further whatever is factored."""
AJAR = 0.05
"""Errors up to this are left to the next step, which begins with them; the step is told apart by its status."""
LEFT_OPEN = 16
"""Status added when errors of positions were left: taut nets and contradictory contacts have no pose without."""
FALLING = 0.9
"""Share of the errors that a correction with the factors of stage 4 may leave, else those of poses at hand serve."""
NET_FALLING = 0.25
"""The same for nets, in which bars that come into a line let no patience help."""
PATIENCE = 40
"""Corrections with the factors of stage 4 at most."""
KEEP = 0.05
"""Share of the errors that a correction may leave before the poses at hand are factored again."""
WIDEST_TURN = 0.5
"""Angle [rad] that a body may turn in one solve: small gaps turn bars in a line by any angle."""
MOST_SOLVES = 5
"""Of one correction."""
CURVED = 3.0
"""Errors that a correction leaves because paths bend, of their square [1/m or 1/rad]: it is solved no better."""
MOST_CORRECTIONS = 100


@inline
def _turn(quaternion, b, h, x, y, z, w0, x0, y0, z0):
    """Body b turned from an orientation by h times a spin."""
    ew, ex, ey, ez = rotation_exponential(h * x, h * y, h * z)
    w, x, y, z = quaternion_product(ew, ex, ey, ez, w0, x0, y0, z0)
    scale = 1.0 / sqrt(w * w + x * x + y * y + z * z)
    quaternion[b, 0], quaternion[b, 1] = scale * w, scale * x
    quaternion[b, 2], quaternion[b, 3] = scale * y, scale * z


@inline
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


@inline
def _move_further(graph, moved, state, h):
    """Bodies moved from where they are by the velocities that a correction has solved for."""
    position, quaternion = state.position, state.quaternion
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        for n in range(3):
            position[b, n] += h * moved[b, n]
        _turn(
            quaternion, b, h, moved[b, 3], moved[b, 4], moved[b, 5],
            quaternion[b, 0], quaternion[b, 1], quaternion[b, 2], quaternion[b, 3],
        )  # fmt: skip


@inline
def _start_from_rest(rows, first, block, count):
    """Solve for changes: no momentum, and nothing else moves."""
    for k in range(first):
        rows.offset[k] = 0.0
    for k in range(count):
        for n in range(6):
            block[k, MOMENTUM + n] = 0.0


@inline
def _carried(x, y, z, dx, dy, dz):
    """The turn that a change d of the turn (x, y, z) makes after it.

    exp(r + d) = exp(T d) exp(r), T = 1 + (1 - cos a) / a^2 [r] + (a - sin a) / a^3 [r]^2 with a = |r|.
    """
    a2 = x * x + y * y + z * z
    first, second = 0.5 - a2 / 24.0, 1.0 / 6.0 - a2 / 120.0
    if a2 > 1e-4:
        a = sqrt(a2)
        first, second = (1.0 - cos(a)) / a2, (a - sin(a)) / (a2 * a)
    cx, cy, cz = cross(x, y, z, dx, dy, dz)
    ex, ey, ez = cross(x, y, z, cx, cy, cz)
    return dx + first * cx + second * ex, dy + first * cy + second * ey, dz + first * cz + second * ez


@inline
def _add_change(graph, block, state, stages, h, at_start):
    """Add the solved velocities to those of the bodies; `stages.change` has how they move them where they are tried."""
    twist, change = state.twist, stages.change
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        for n in range(6):
            change[b, n] = block[k, SOLUTION + n]
            stages.moved[b, n] += change[b, n]
        if at_start:
            change[b, 3], change[b, 4], change[b, 5] = _carried(
                h * twist[b, 3], h * twist[b, 4], h * twist[b, 5], change[b, 3], change[b, 4], change[b, 5]
            )
        for n in range(6):
            twist[b, n] += block[k, SOLUTION + n]


@inline
def _shorten(rows, factor, count, h):
    """Make of a correction that turns a body too far a part that does not: directions change with the pose."""
    block, value, widest = factor.block, factor.value, 0.0
    for k in range(count):
        x, y, z = block[k, SOLUTION + 3], block[k, SOLUTION + 4], block[k, SOLUTION + 5]
        widest = max(widest, x * x + y * y + z * z)
    share = WIDEST_TURN / (h * sqrt(widest)) if widest > 0.0 else 1.0
    if share < 1.0:
        for k in range(count):
            for n in range(6):
                block[k, SOLUTION + n] *= share
        for k in range(rows.used[0]):
            value[k, IMPULSE] *= share


@inline
def _farthest(graph, position):
    """The largest coordinate of a body that is solved for: obstacles that have gone are anywhere."""
    most = 0.0
    for k in range(graph.count[0]):
        for n in range(3):
            most = max(most, abs(position[graph.node[k, BODY], n]))
    return most


@kernel_function
def correct_positions(pointers, tables, state, inputs, work, controls, memory, stages, index, same):
    """Move the bodies so that joints are closed and controls at their aims; rows and velocities are left there.

    `same`: rows act as in the last solve, whose factors hold.
    """
    joints, rows, graph, factor, scratch = tables.joints, work.rows, work.graph, work.factor, work.scratch
    numbers, first = tables.numbers, tables.contacts.first_row[0]
    h, last, at_start, anew, far_off = numbers[5], 1e300, True, False, False
    shut = max(SHUT, GRAIN * _farthest(graph, state.position))
    if not same:
        mark_all(graph, 1)
    _start_from_rest(rows, first, factor.block, graph.count[0])
    for correction in range(MOST_CORRECTIONS):
        stages.corrections[0] = correction
        if at_start:
            _move_from_start(state, stages, h)
        turn_bodies(state.quaternion, scratch.rotation)
        filled = rows if anew else stages.trial
        fill_standing_rows_by_pointer(
            pointers, joints, tables.anchors, tables.residuals, numbers, state, inputs, filled, scratch, index, False
        )  # fmt: skip
        if not at_start:
            meet_halfway(joints, filled, h)
        if anew:
            keep_listed(rows, factor.mark, first)
            leave_out_stops(joints, controls, rows, stages.held)
        else:
            take_errors(joints, stages.trial, rows)
        if len(controls.ball) > 0:
            find_turns_by_pointer(pointers, joints, controls, stages.now)
        gap = widest_gap(joints, rows, h, anew)
        miss = correct_controls(joints, controls, stages, state.coordinate, rows, h)
        worst = max(gap, miss)
        stuck = worst > 0.5 * last and not anew
        if (gap <= shut and miss <= CLOSED) or (stuck and worst <= (ROUNDING if at_start else NEARLY_CLOSED)):
            break
        slow = worst > KEEP * last or far_off
        if at_start:
            slow = worst > NET_FALLING * last or far_off if controls.netted[0] else worst > FALLING * last
            slow = slow or (stuck and worst <= NEARLY_CLOSED)
        if not anew and (slow or correction == PATIENCE):
            # too far for the directions at hand: those of where the bodies are now
            at_start, anew = False, True
            continue
        last = worst
        if anew:
            load_by_pointer(pointers, tables, state, work, 0.0, 1)
            _start_from_rest(rows, first, factor.block, graph.count[0])
        lack, solves = worst, 1 if anew or not same else MOST_SOLVES
        anew, far_off = False, False
        stages.moved[:, :] = 0.0
        for _ in range(solves):
            if at_start:
                add_bend(joints.row_ranges, rows, stages.bend)
            status = solve_by_pointer(pointers, tables, state, work, stages)
            if status != SOLVED:
                return status
            _shorten(rows, factor, graph.count[0], h)
            add_impulses_by_pointer(pointers, tables, work, stages)
            note_limits(joints, controls, stages, factor.mark)
            count_from_solution(rows, graph.node, factor, joints.row_ranges[2], joints.row_ranges[3], 1.0)
            count_from_solution(rows, graph.node, factor, first, rows.used[0], 1.0)
            _add_change(graph, factor.block, state, stages, h, at_start)
            if solves > 1:
                before = lack
                lack = h * max(
                    lessen_joints(joints, stages.trial, stages.change, rows),
                    lessen_controls(joints, controls, stages, rows),
                )
                far_off = lack > 0.5 * before
                if far_off or lack <= max(CLOSED, CURVED * worst * worst):
                    break
        if not at_start:
            _move_further(graph, stages.moved, state, h)
    if not worst <= AJAR:
        return NOT_CONVERGED
    if not anew:
        turn_bodies(state.quaternion, scratch.rotation)  # the last correction may have moved them
        fill_standing_rows_by_pointer(
            pointers, joints, tables.anchors, tables.residuals, numbers, state, inputs, rows, scratch, index, False
        )  # fmt: skip
        keep_listed(rows, factor.mark, first)
    remember_bend(joints.row_ranges, memory, stages.bend, same and at_start)
    return SOLVED if worst <= NEARLY_CLOSED else LEFT_OPEN


correct_positions_by_pointer = by_pointer(correct_positions)
