"""Closing of joints after a soft step: positions and velocities that satisfy hard joints.

Velocities that satisfy the joints end off them, by the curvature of the bodies' paths. With the rows J and masses M of
the poses at hand and C the errors of hard rows,

    M dx = J^T p        J dx = -C        repeated, each time shortened until errors decrease
    M dv = J^T p        J (v + dv) = 0   at the closed poses

where all other rows act for changes from the result of the step: limits and contacts are not passed, springs and drives
yield by their slopes. Both projections remove energy, of first order in the step. It is given back to groups of bodies
that no moving support carries: with Z as in `group_momentum`, v becomes Z + s (v - Z). Groups that only hard joints and
gravity act on get the energy, and free ones the angular momentum, before the step and the work of gravity; others the
kinetic energy before joints were closed.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.arrays.compile_model import DRIVEN
from borelli.physics.arrays.compile_model import FREE as FREE_GROUP
from borelli.physics.arrays.indices import DRIVE_ROWS, LIMIT_ROWS, STEP_SIZE
from borelli.physics.arrays.joints import BALL, COORDINATE, PLANAR, SLIDER
from borelli.physics.group_momentum import (
    CENTER,
    GROUP_MASS,
    IN_CONTACT,
    INERTIA,
    IS_FORCED,
    KINETIC,
    MAX_SCALE,
    REQUIRED,
    restore_angular_momentum,
    scale_groups,
    scale_to_energy,
    tally_groups,
    translational_energy,
)
from borelli.physics.rigid_bodies import compute_rotations, is_finite, load_bodies, move_body
from borelli.physics.rows.laws import fixed_impulse, one_sided_law, put_break, put_piece, soft_law
from borelli.physics.rows.persistent_rows import fill_persistent_rows_by_pointer
from borelli.physics.rows.rows import FLAT, copy_rows
from borelli.physics.solver.elimination_order import BODY, mark_for_factoring
from borelli.physics.solver.factor_arrays import ABSENT, DUAL, FOLDED, IMPULSE, KIND, MODE, MOMENTUM, SOLUTION
from borelli.physics.solver.iterative_refinement import row_velocity
from borelli.physics.solver.newton import (
    MAX_NEWTON_ITERATIONS,
    NEWTON_BEFORE_INTERIOR_POINT,
    SOLVED,
    init_active_pieces,
    newton_by_pointer,
)

MIN_BEND = 1e-10
"""Errors [m or rad] by curved paths up to which a step closes no joints: bodies are nearly at rest."""
MAX_JOINT_GAP = 5e-5
"""Errors [m or rad] up to which bodies nearly at rest are left to the next step, which corrects a fraction of them."""
CLOSED_JOINT_GAP = 1e-5
"""Errors to which projections reduce larger ones; there is at least one."""
MAX_PROJECTIONS = 100
"""Maximum number of projections that close the joints."""
MAX_RATIO = 0.999
"""Ratio of the sums of squared errors after and before a projection above which it is shortened by half."""
MAX_REUSE_RATIO = 0.01
"""Ratio of these sums above which rows are factored again."""
MAX_REUSE_ROTATION = 0.1
"""Rotation of a body in a step [rad] up to which the factors of the step are used."""
SLOW_RATIO = 0.25
"""Ratio of these sums above which errors decrease slowly: bars align, or joints contradict each other."""
MAX_SLOW = 30
"""Number of slow projections, not limited by rotations, after which joints are left open."""
MAX_SLOW_OF_LOOPS = 3
"""The same where joints close loops: taut nets have no pose without errors."""
MIN_SCALE = 1e-4
"""Fraction of a projection below which joints are left open."""
ENERGY_RESERVE = 1e-12
"""Fraction of the kinetic energy that is not given back, so that rounding does not add any."""
MAX_FORCED_SCALE = 1.001
"""Maximum s of groups on which more than joints and gravity acts: what vibrations lose is not given back."""
ROUNDING_UNIT = 1e-15
"""The same of the potential energy."""
PARTS = 4
"""Number of parts of a step whose joints cannot be closed at once; parts are divided again, twice."""
MAX_ROTATION = 0.5
"""Maximum angle [rad] by which one of them rotates a body."""
KEPT_COLUMNS = MOMENTUM + 6
"""Columns of blocks, mass and momentum, that are kept besides the solution."""
JOINTS_LEFT_OPEN = 16
"""Status added when joints could not be closed: taut nets and contradictory contacts have no pose without errors."""


@inline
def _joint_errors(hard_alpha, c, h):
    """Return the largest error of a hard row [m or rad], and the sum of squares of all."""
    largest, squares = 0.0, 0.0
    for k in range(len(hard_alpha)):
        if hard_alpha[k] > 0.0:
            error = h * abs(c[k, 0]) / hard_alpha[k]
            largest = max(largest, error)
            squares += error * error
    return largest, squares


@inline
def _velocity_of(twist, b):
    """Return velocity and angular velocity of body b; zeros for the ground."""
    if b < 0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    return twist[b, 0], twist[b, 1], twist[b, 2], twist[b, 3], twist[b, 4], twist[b, 5]


@inline
def _square(x, y, z):
    return x * x + y * y + z * z


@inline
def _largest_bend(joints, twist, h):
    """Return about the largest error [m or rad] that curved paths cause in a joint whose velocities satisfy it.

    With t = h w the rotation of a body, a point at an arm r leaves its tangent by r t^2 / 2, and the rotations of two
    bodies compose to their difference and half their vector product. Axes along which bodies slide rotate, and
    coordinates are functions of rotations.
    """
    largest, related = 0.0, len(joints.coupling_row) > 0 or joints.locked.any()
    for j in range(len(joints.kind)):
        kind, first = joints.kind[j], joints.row_first[j]
        if first == joints.row_first[j + 1] or not (joints.hard_alpha[first] > 0.0 or related):
            continue
        vx, vy, vz, wx, wy, wz = _velocity_of(twist, joints.child[j])
        sx, sy, sz, ux, uy, uz = _velocity_of(twist, joints.parent[j])
        child, parent = _square(wx, wy, wz), _square(ux, uy, uz)
        r, s = joints.arm_child, joints.arm_parent
        bend = 0.5 * child * sqrt(_square(r[j, 0], r[j, 1], r[j, 2]))
        bend += 0.5 * parent * sqrt(_square(s[j, 0], s[j, 1], s[j, 2]))
        if kind != BALL:
            bend = max(bend, 0.5 * sqrt(parent * _square(wx - ux, wy - uy, wz - uz)))
        if related or kind == SLIDER or kind == PLANAR or kind == COORDINATE:
            bend += 2.0 * (child + parent) + sqrt(parent * _square(vx - sx, vy - sy, vz - sz))
        largest = max(largest, bend)
    return h * h * largest


@inline
def needs_closing(joints, c, twist, h):
    """Return True if hard rows may be open after the step: by curved paths, or by their errors before it."""
    bend = _largest_bend(joints, twist, h)
    return not (bend <= MIN_BEND and _joint_errors(joints.hard_alpha, c, h)[0] <= MAX_JOINT_GAP)


@inline
def _fastest_rotation(graph, block):
    """Return the largest angular velocity in the solution; not zero."""
    fastest = 1e-300
    for k in range(graph.count[0]):
        fastest = max(fastest, _square(block[k, SOLUTION + 3], block[k, SOLUTION + 4], block[k, SOLUTION + 5]))
    return sqrt(fastest)


@inline
def _scale_solution(rows, graph, factor, scale):
    for k in range(graph.count[0]):
        for n in range(6):
            factor.block[k, SOLUTION + n] *= scale
    for k in range(rows.used[0]):
        factor.value[k, IMPULSE] *= scale


@inline
def _move_by_solution(graph, block, state, velocity, h):
    """Move bodies by the solved velocities for a time h."""
    position, quaternion = state.position, state.quaternion
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        for n in range(6):
            velocity[b, n] = block[k, SOLUTION + n]
        move_body(b, h, velocity, position, quaternion, position, quaternion)


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


@inline
def _mark_groups(group, rows, first, last, value, hard_alpha, column, tally):
    """Mark the groups on which rows other than hard ones act."""
    for k in range(first, last):
        if value[k, IMPULSE] != 0.0 and not (k < len(hard_alpha) and hard_alpha[k] > 0.0):
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    tally[group[rows.body[e]], column] = 1.0


@inline_into_caller
def _tally_step(tables, graph, factor, state, rows, scratch):
    """Write what groups are to have after joints are closed: kinetic energy, angular momentum, and what acts on them.

    Groups on which only hard joints and gravity act keep the values before the step, others those of its result.
    """
    bodies, tally, other, first = tables.bodies, scratch.tally_before, scratch.tally, tables.contacts.first_row[0]
    group, hard_alpha, forced = bodies.group, tables.joints.hard_alpha, False
    tally_groups(bodies, graph, scratch.rotation, scratch.begin_position, scratch.begin_twist, tally)
    compute_rotations(state.quaternion, scratch.rotation)
    _mark_groups(group, rows, first, rows.used[0], factor.value, hard_alpha, IN_CONTACT, tally)
    _mark_groups(group, rows, 0, first, factor.value, hard_alpha, IS_FORCED, tally)
    for b in range(len(group)):
        for n in range(6):
            if scratch.wrench[b, n] != 0.0:
                tally[group[b], IS_FORCED] = 1.0
    for g in range(len(tally)):
        forced = forced or tally[g, IS_FORCED] + tally[g, IN_CONTACT] > 0.0
    if forced:
        tally_groups(bodies, graph, scratch.rotation, state.position, state.twist, other)
        for g in range(len(tally)):
            if tally[g, IS_FORCED] + tally[g, IN_CONTACT] > 0.0:
                for n in range(KINETIC, INERTIA):
                    tally[g, n] = other[g, n]


@inline_into_caller
def _keep_step(tables, work, state, rows, graph, factor, scratch):
    """Store rows and results of the step before joints are closed."""
    _tally_step(tables, graph, factor, state, rows, scratch)
    copy_rows(rows, work.kept_rows)
    for k in range(rows.used[0]):
        scratch.impulse[k] = factor.value[k, IMPULSE]
    for k in range(graph.count[0]):
        for n in range(KEPT_COLUMNS):
            scratch.block[k, n] = factor.block[k, n]
        for n in range(6):
            scratch.block[k, KEPT_COLUMNS + n] = factor.block[k, SOLUTION + n]


@inline_into_caller
def _restore_step(work, rows, graph, factor, scratch):
    """Restore rows and results of the step."""
    copy_rows(work.kept_rows, rows)
    for k in range(rows.used[0]):
        factor.value[k, IMPULSE] = scratch.impulse[k]
    for k in range(graph.count[0]):
        for n in range(KEPT_COLUMNS):
            factor.block[k, n] = scratch.block[k, n]
        for n in range(6):
            factor.block[k, SOLUTION + n] = scratch.block[k, KEPT_COLUMNS + n]


@inline
def _load_changes(joints, state, rows, graph, factor, impulse, first, of_velocities):
    """Set the laws of rows to those of changes after the step: hard ones correct all of their errors.

    A row that acted with a slope keeps it, a saturated one exerts no more; a limit is not passed, and a loaded one is
    not left while its impulse in the step lasts.
    """
    limits, drives = joints.row_ranges[LIMIT_ROWS], joints.row_ranges[DRIVE_ROWS]
    for k in range(first):
        u = rows.offset[k]
        rows.offset[k] = 0.0
        if factor.mark[k, KIND] == ABSENT:
            continue
        if rows.pieces[k] == 0:
            fixed_impulse(rows, k, 0.0)
        elif k < len(joints.hard_alpha) and joints.hard_alpha[k] > 0.0:
            rows.c[k, 0] /= joints.hard_alpha[k]
            if of_velocities:
                for e in range(rows.first[k], rows.first[k + 1]):
                    if rows.body[e] >= 0:
                        for n in range(6):
                            u += rows.jacobian[e, n] * state.twist[rows.body[e], n]
                rows.c[k, 0] = -u
        elif of_velocities:
            fixed_impulse(rows, k, 0.0)
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


@kernel_function
def solve_changes(pointers, tables, state_at, work, of_velocities, dirty):
    """Solve for changes of poses, or of velocities, at the poses of the present rows; return True if solved.

    Without `dirty` the present factors are used, those of poses nearby.
    """
    state, rows, scratch, graph, factor = load_shared(state_at, work.rows, work.scratch, work.graph, work.factor)
    first = tables.contacts.first_row[0]
    for k in range(rows.used[0]):
        is_hard = k < len(tables.joints.hard_alpha) and tables.joints.hard_alpha[k] > 0.0
        if factor.mark[k, KIND] == FOLDED or (of_velocities and not is_hard and factor.mark[k, MODE] == DUAL):
            dirty = 1  # the right side of folded rows is part of the factors; others change
    if dirty:
        load_bodies(tables.bodies, tables.gravity, state_at, work.scratch, work.graph, factor.block, 0.0, False)
    _load_changes(tables.joints, state, rows, graph, factor, scratch.impulse, first, of_velocities)
    mark_for_factoring(graph, dirty)
    switching = init_active_pieces(work.rows, work.factor)
    status = newton_by_pointer(pointers, work, switching, NEWTON_BEFORE_INTERIOR_POINT, MAX_NEWTON_ITERATIONS)
    return status == SOLVED and is_finite(graph, factor.block)


solve_changes_by_pointer = by_pointer(solve_changes)


@kernel_function
def close_positions(pointers, tables, state_at, inputs, work, index, turn):
    """Move bodies until hard joints are closed; return their largest error [m or rad], and 0 if there are factors.

    `turn` is the largest rotation [rad] in the step: factors and rows of poses from which bodies rotate by it leave
    about that fraction of errors.
    """
    state, rows, scratch, graph, factor = load_shared(state_at, work.rows, work.scratch, work.graph, work.factor)
    joints, h, first = tables.joints, tables.parameters[STEP_SIZE], tables.contacts.first_row[0]
    error, before, scale, dirty, fresh, slow, is_limited = 0.0, 1e300, 1.0, 0, True, 0, False
    if turn > MAX_REUSE_ROTATION or rows.used[0] > first:
        dirty = 1
    has_loops = False
    for k in range(len(joints.hard_alpha)):
        has_loops = has_loops or (joints.hard_alpha[k] > 0.0 and rows.beta[k, 0] > 0.0)
    for _ in range(MAX_PROJECTIONS):
        compute_rotations(state.quaternion, scratch.rotation)
        fill_persistent_rows_by_pointer(pointers, tables, state_at, inputs, work.rows, work.scratch, index, False)
        error, squares = _joint_errors(joints.hard_alpha, rows.c, h)
        if error <= (CLOSED_JOINT_GAP if before < 1e300 else MIN_BEND):
            break
        if squares > MAX_RATIO * before and not fresh:
            _move_by_solution(graph, factor.block, state, scratch.aim, -h)
            before, dirty = 1e299, 1
            continue
        if squares > MAX_RATIO * before:
            scale *= 0.5
            if scale < MIN_SCALE:
                break
            _scale_solution(rows, graph, factor, 0.5)
            _move_by_solution(graph, factor.block, state, scratch.aim, -h)
            continue
        slow += not is_limited and squares > SLOW_RATIO * before
        if slow > (MAX_SLOW_OF_LOOPS if has_loops else MAX_SLOW):
            break
        if squares > MAX_REUSE_RATIO * before:
            dirty = 1
        is_quick = dirty == 0 and error <= MAX_JOINT_GAP and 2.0 * turn * error <= CLOSED_JOINT_GAP
        before, scale, fresh = squares, 1.0, dirty == 1
        shift_laws_to_solution(rows, graph.node, factor, first, rows.used[0], 1.0)
        if not solve_changes_by_pointer(pointers, tables, state_at, work, False, dirty):
            break
        rotation = h * _fastest_rotation(graph, factor.block)
        is_limited = rotation > MAX_ROTATION
        if is_limited:
            _scale_solution(rows, graph, factor, MAX_ROTATION / rotation)
        _move_by_solution(graph, factor.block, state, scratch.aim, h)
        dirty = 0
        if is_quick and rotation <= turn:
            compute_rotations(state.quaternion, scratch.rotation)
            error *= 2.0 * turn
            break
    return error, dirty


close_positions_by_pointer = by_pointer(close_positions)


@inline_into_caller
def _close_in_parts(pointers, tables, state_at, inputs, work, state, graph, scratch, index, turn):
    """Move bodies from their poses before the step in parts, and close joints after each; return as `close_positions`.

    Each time that fails there are PARTS times as many.
    """
    h, parts, error, dirty = tables.parameters[STEP_SIZE], 1, 1e300, 1
    while error > MAX_JOINT_GAP and turn > MAX_ROTATION * parts / PARTS and parts < PARTS**3:
        parts *= PARTS
        for k in range(graph.count[0]):
            b = graph.node[k, BODY]
            for n in range(3):
                state.position[b, n] = scratch.begin_position[b, n]
            for n in range(4):
                state.quaternion[b, n] = scratch.begin_quaternion[b, n]
        for _ in range(parts):
            for k in range(graph.count[0]):
                b = graph.node[k, BODY]
                move_body(
                    b, h / parts, state.twist, state.position, state.quaternion, state.position, state.quaternion
                )
            error, dirty = close_positions_by_pointer(pointers, tables, state_at, inputs, work, index, turn)
            if error > MAX_JOINT_GAP:
                break
    return error, dirty


@inline
def _are_supports_still(kinematic, twist):
    """Return True if no body with prescribed motion moves."""
    for b in range(len(kinematic)):
        if kinematic[b]:
            for n in range(6):
                if twist[b, n] != 0.0:
                    return False
    return True


@inline_into_caller
def _close_velocities(pointers, tables, state_at, work, state, rows, graph, factor, scratch, dirty, is_closed):
    """Let velocities satisfy hard joints at the closed poses, and give the energy back that this removes.

    Only hard rows act, so that no momentum is exchanged. Where joints were left open, energy gained is removed, but
    none given back.
    """
    bodies, first = tables.bodies, tables.contacts.first_row[0]
    before, tally = scratch.tally_before, scratch.tally
    for k in range(first, rows.used[0]):
        if rows.pieces[k] > 0:
            fixed_impulse(rows, k, 0.0)
    if solve_changes_by_pointer(pointers, tables, state_at, work, True, dirty):
        for k in range(graph.count[0]):
            for n in range(6):
                state.twist[graph.node[k, BODY], n] += factor.block[k, SOLUTION + n]
    tally_groups(bodies, graph, scratch.rotation, state.position, state.twist, tally)
    restore_angular_momentum(bodies, graph, state, before, tally)
    supported = _are_supports_still(bodies.kinematic, state.twist)
    for g in range(len(tally)):
        if bodies.group_kind[g] == DRIVEN and not supported:
            tally[g, KINETIC] = 0.0
            continue
        is_forced = before[g, IS_FORCED] + before[g, IN_CONTACT] > 0.0
        tally[g, REQUIRED] = before[g, KINETIC]
        if bodies.group_kind[g] == FREE_GROUP:
            tally[g, REQUIRED] += translational_energy(tally, g) - translational_energy(before, g)
        elif not is_forced:
            for n in range(3):
                moved = tally[g, CENTER + n] - before[g, CENTER + n]
                weight = before[g, GROUP_MASS] * tables.gravity[n]
                tally[g, REQUIRED] += weight * moved - ROUNDING_UNIT * abs(weight * tally[g, CENTER + n])
        tally[g, REQUIRED] *= 1.0 - ENERGY_RESERVE
        largest = MAX_FORCED_SCALE if is_forced else MAX_SCALE
        if not is_closed:
            largest = 1.0
        tally[g, KINETIC] = min(scale_to_energy(tally, bodies.group_kind[g], g), largest) - 1.0
    scale_groups(bodies, graph, tally, state)


@kernel_function
def close_joints(pointers, tables, state_at, inputs, work, index):
    """Close hard joints if they are open after the step; return SOLVED or JOINTS_LEFT_OPEN."""
    state, rows, scratch = load_shared(state_at, work.rows, work.scratch)
    graph, factor = load_shared(work.graph, work.factor)
    turn = tables.parameters[STEP_SIZE] * _fastest_rotation(graph, factor.block)
    _keep_step(tables, work, state, rows, graph, factor, scratch)
    error, dirty = close_positions_by_pointer(pointers, tables, state_at, inputs, work, index, turn)
    if error > MAX_JOINT_GAP and turn > MAX_ROTATION / PARTS:
        error, dirty = _close_in_parts(
            pointers, tables, state_at, inputs, work, state, graph, scratch, index, turn
        )
    is_closed = error <= MAX_JOINT_GAP
    _close_velocities(pointers, tables, state_at, work, state, rows, graph, factor, scratch, dirty, is_closed)
    _restore_step(work, rows, graph, factor, scratch)
    return SOLVED if is_closed else JOINTS_LEFT_OPEN


close_joints_by_pointer = by_pointer(close_joints)
