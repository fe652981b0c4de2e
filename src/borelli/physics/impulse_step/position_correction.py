"""Correction of positions at the end of an impulse step (Weinstein et al. 2008, appendix A).

Impulses p at the step's start, along the rows J of the poses there, are to make the errors C of rows vanish at its end,

    C(poses at the start moved by h v') = 0,     v' = v + M^-1 J^T p.

Such impulses change no momentum, and a body that moves by h v' keeps its angular momentum: pendulums lose no energy to
it. By Newton's method: with J' the rows at the end and T the tangent map of rotations (`_tangent_map`),

    J' T M^-1 J^T p = -C / h

is solved by iterative refinement with the factors of J M^-1 J^T from stage 4; each solve leaves a fraction of the
defect that is about the angle [rad] by which bodies rotate in the step. Where that is too much, the rows and masses of
the present poses are used, and rotations are composed: for rotations of any size.
"""

from __future__ import annotations

from math import cos, sin, sqrt

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.numerics.rotation_kernels import cross
from borelli.physics.arrays.indices import DRIVE_ROWS, LIMIT_ROWS, STEP_SIZE
from borelli.physics.impulse_step.controlled_joints import (
    compute_ball_rotations_by_pointer,
    mark_feasible_controls,
    reduce_control_defects,
    set_control_corrections,
)
from borelli.physics.impulse_step.curvature import add_curvature, forget_saturated, store_curvature
from borelli.physics.impulse_step.joint_limits import disable_limits
from borelli.physics.impulse_step.modes import EQUATIONS, FROM_START, IN_PARTS, REFACTOR, REUSE
from borelli.physics.impulse_step.stage_laws import (
    center_joint_rows,
    copy_errors,
    keep_listed_rows,
    largest_joint_error,
    reduce_joint_defects,
)
from borelli.physics.impulse_step.stage_solve import (
    add_impulses_by_pointer,
    load_momenta_by_pointer,
    solve_stage_by_pointer,
)
from borelli.physics.joint_closing import JOINTS_LEFT_OPEN, shift_laws_to_solution
from borelli.physics.rigid_bodies import compute_rotations, move_body
from borelli.physics.rows.persistent_rows import fill_persistent_rows_by_pointer
from borelli.physics.solver.elimination_order import BODY, mark_for_factoring
from borelli.physics.solver.factor_arrays import IMPULSE, MOMENTUM, SOLUTION
from borelli.physics.solver.newton import NOT_CONVERGED, SOLVED

TARGET_TOLERANCE = 2e-15
"""Errors of controls [m or rad] at which Newton's method ends. Errors left in every step add up to 100 times as much,
since the rate of an error is computed from two of them."""
GAP_TOLERANCE = 5e-15
"""The same for gaps of joints, which do not add up; at least ROUNDING_UNIT times the distance of the farthest body."""
ROUNDING_UNIT = 4.5e-16
"""Two units in the last place of a number."""
ROUNDING_ERROR = 1e-12
"""Errors that may be rounding, of bodies far from the origin, if they decrease no further."""
ACCEPTED_ERROR = 1e-9
"""Errors with which the step is made if they decrease no further with any factors."""
MAX_ERROR_LEFT = 0.05
"""Errors up to this are left to the next step, which begins with them; the status reports it."""
MAX_RATIO = 0.9
"""Ratio of errors after and before a correction above which the factors of stage 4 are replaced."""
MAX_NET_RATIO = 0.25
"""The same for nets, whose bars can align: there further corrections do not help."""
MAX_REUSE_RATIO = 0.05
"""The same for factors of later poses."""
MAX_START_CORRECTIONS = 40
"""Maximum number of corrections with the factors of stage 4."""
MAX_ROTATION = 0.5
"""Maximum angle [rad] by which one solve rotates a body: small gaps rotate aligned bars by any angle."""
MAX_SOLVES = 5
"""Maximum number of solves of one correction."""
CURVATURE_ERROR = 3.0
"""Error that a correction leaves because paths are curved, relative to its square [1/m or 1/rad]: further solves are
of no use."""
MAX_CORRECTIONS = 100


@inline
def _start_from_rest(rows, first, block, count):
    """Set momenta and offsets to 0: the solve is for changes."""
    rows.offset[:first] = 0.0
    block[:count, MOMENTUM : MOMENTUM + 6] = 0.0


@inline
def _tangent_map(x, y, z, dx, dy, dz):
    """Return T d, the rotation that follows the rotation (x, y, z) when that changes by d.

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
def _add_change(graph, block, state, stages, h, mode):
    """Add the solved velocities to those of the bodies; write their effect at the trial poses to `stages.change`."""
    twist, change = state.twist, stages.change
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        for n in range(6):
            change[b, n] = block[k, SOLUTION + n]
            stages.total_change[b, n] += change[b, n]
        if mode == FROM_START:
            change[b, 3], change[b, 4], change[b, 5] = _tangent_map(
                h * twist[b, 3], h * twist[b, 4], h * twist[b, 5], change[b, 3], change[b, 4], change[b, 5]
            )
        for n in range(6):
            twist[b, n] += block[k, SOLUTION + n]


@inline
def limit_rotation(rows, factor, count, h):
    """Scale a correction that rotates a body by more than MAX_ROTATION: directions change with the pose."""
    block, value, fastest = factor.block, factor.value, 0.0
    for k in range(count):
        x, y, z = block[k, SOLUTION + 3], block[k, SOLUTION + 4], block[k, SOLUTION + 5]
        fastest = max(fastest, x * x + y * y + z * z)
    scale = MAX_ROTATION / (h * sqrt(fastest)) if fastest > 0.0 else 1.0
    if scale < 1.0:
        for k in range(count):
            for n in range(6):
                block[k, SOLUTION + n] *= scale
        for k in range(rows.used[0]):
            value[k, IMPULSE] *= scale


@inline
def _farthest(graph, position):
    """Return the largest coordinate of the bodies that are solved for; absent obstacles do not count."""
    largest = 0.0
    for k in range(graph.count[0]):
        for n in range(3):
            largest = max(largest, abs(position[graph.node[k, BODY], n]))
    return largest


@inline_into_caller
def _evaluate_errors(pointers, tables, state, inputs, work, controls, stages, index, mode):
    """Write rows and errors at the trial poses; return the largest errors of joints and of controls [m or rad]."""
    joints, rows, scratch = tables.joints, work.rows, work.scratch
    h, filled = tables.parameters[STEP_SIZE], rows if mode == REFACTOR else stages.trial_rows
    position, quaternion = state.position, state.quaternion
    if mode == FROM_START:
        for b in range(len(position)):
            move_body(b, h, state.twist, stages.position, stages.quaternion, position, quaternion)
    compute_rotations(state.quaternion, scratch.rotation)
    fill_persistent_rows_by_pointer(pointers, tables, state, inputs, filled, scratch, index, False)
    if mode != FROM_START:
        center_joint_rows(joints, filled, h)
    if mode == REFACTOR:
        keep_listed_rows(rows, work.factor.mark, tables.contacts.first_row[0])
        disable_limits(joints, controls, rows, stages.feasible)
    else:
        copy_errors(joints, stages.trial_rows, rows)
    if len(controls.ball) > 0:
        compute_ball_rotations_by_pointer(pointers, joints, controls, stages.trial_rotation)
    gap = largest_joint_error(joints, rows, h, mode == REFACTOR)
    return gap, set_control_corrections(joints, controls, stages, state.coordinate, rows, h)


@inline
def _is_converged(gap, miss, last, gap_tolerance, mode):
    """Return True if errors are within tolerance, or small and not decreasing any more."""
    if gap <= gap_tolerance and miss <= TARGET_TOLERANCE:
        return True
    error = max(gap, miss)
    rounding = ROUNDING_ERROR if mode == FROM_START else ACCEPTED_ERROR
    return mode != REFACTOR and error > 0.5 * last and error <= rounding


@inline
def _needs_factors(error, last, stalled, correction, mode, is_net):
    """Return True if errors decrease too slowly with the present factors."""
    if mode == REFACTOR:
        return False
    if correction == MAX_START_CORRECTIONS:
        return True
    if mode == REUSE:
        return error > MAX_REUSE_RATIO * last or stalled
    if error > 0.5 * last and error <= ACCEPTED_ERROR:
        return True
    return error > MAX_NET_RATIO * last or stalled if is_net else error > MAX_RATIO * last


@inline_into_caller
def _solve_correction(pointers, tables, state, work, controls, stages, error, max_solves, mode):
    """Solve for a change of velocities with the present factors; return a status and whether the defect stalled."""
    joints, rows, graph, factor = tables.joints, work.rows, work.graph, work.factor
    h, first, ranges = tables.parameters[STEP_SIZE], tables.contacts.first_row[0], tables.joints.row_ranges
    defect, stalled, status = error, False, SOLVED
    stages.total_change[:, :] = 0.0
    for _ in range(max_solves):
        if mode == FROM_START:
            add_curvature(ranges, rows, stages.curvature)
        status = solve_stage_by_pointer(pointers, tables, state, work, stages)
        if status != SOLVED:
            break
        limit_rotation(rows, factor, graph.count[0], h)
        add_impulses_by_pointer(pointers, tables, work, stages)
        mark_feasible_controls(joints, controls, stages, factor.mark)
        shift_laws_to_solution(rows, graph.node, factor, ranges[LIMIT_ROWS], ranges[DRIVE_ROWS], 1.0)
        shift_laws_to_solution(rows, graph.node, factor, first, rows.used[0], 1.0)
        _add_change(graph, factor.block, state, stages, h, mode)
        if max_solves > 1:
            before = defect
            defect = h * max(
                reduce_joint_defects(joints, stages.trial_rows, stages.change, rows),
                reduce_control_defects(joints, controls, stages, rows),
            )
            stalled = defect > 0.5 * before
            if stalled or defect <= max(TARGET_TOLERANCE, CURVATURE_ERROR * error * error):
                break
    return status, stalled


@kernel_function
def correct_positions(pointers, tables, state, inputs, work, controls, history, stages, index, step_mode):
    """Move bodies until joints are closed and controls at their targets; leave rows and velocities there.

    Returns SOLVED, JOINTS_LEFT_OPEN or the status of a failed solve.
    """
    joints, rows, graph, factor, scratch = tables.joints, work.rows, work.graph, work.factor, work.scratch
    h, first = tables.parameters[STEP_SIZE], tables.contacts.first_row[0]
    mode, last, error, stalled = FROM_START, 1e300, 0.0, False
    gap_tolerance = max(GAP_TOLERANCE, ROUNDING_UNIT * _farthest(graph, state.position))
    if step_mode != EQUATIONS:
        mark_for_factoring(graph, 1)
    _start_from_rest(rows, first, factor.block, graph.count[0])
    for correction in range(MAX_CORRECTIONS):
        stages.corrections[0] = correction
        gap, miss = _evaluate_errors(pointers, tables, state, inputs, work, controls, stages, index, mode)
        error = max(gap, miss)
        if _is_converged(gap, miss, last, gap_tolerance, mode):
            break
        if _needs_factors(error, last, stalled, correction, mode, controls.is_net[0]):
            mode = REFACTOR
            continue
        last, max_solves = error, MAX_SOLVES
        if mode == REFACTOR:
            load_momenta_by_pointer(pointers, tables, state, work, 0.0, 1)
            _start_from_rest(rows, first, factor.block, graph.count[0])
            mode = REUSE
            max_solves = 1
        if step_mode != EQUATIONS:
            max_solves = 1
        status, stalled = _solve_correction(pointers, tables, state, work, controls, stages, error, max_solves, mode)
        if status != SOLVED:
            return status
        if mode != FROM_START:
            for k in range(graph.count[0]):
                move_body(
                    graph.node[k, BODY], h, stages.total_change, state.position, state.quaternion, state.position,
                    state.quaternion,
                )
    if not error <= MAX_ERROR_LEFT:
        return NOT_CONVERGED
    if mode != REFACTOR:
        compute_rotations(state.quaternion, scratch.rotation)  # the last correction may have moved bodies
        fill_persistent_rows_by_pointer(pointers, tables, state, inputs, rows, scratch, index, False)
        keep_listed_rows(rows, factor.mark, first)
    forget_saturated(joints, controls, stages, history)
    is_curvature = mode == FROM_START and (step_mode == EQUATIONS or step_mode == IN_PARTS)
    store_curvature(joints.row_ranges, history, stages.curvature, is_curvature)
    return SOLVED if error <= ACCEPTED_ERROR else JOINTS_LEFT_OPEN


correct_positions_by_pointer = by_pointer(correct_positions)
