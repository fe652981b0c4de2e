"""Mean motion of an impulse step: the energy-momentum equations of bodies and joints, by Newton's method.

Unknown are the mean velocities (v, w) of the step and the impulses p of joints and controls. With v-, v+ the velocities
before and after the step, O = R^T w in body axes, f and t forces and torques that are given,

    x' = x + h v                                       R' = cay(h w) R        (Cayley's map)
    m (v+ - v-) = h f + J^T p                          v = (v- + v+) / 2
    R' I O+ - R I O- = h t + J^T p                     w = R (O- + O+) / 2    (Simo and Wong 1991)
    C(x', R') = 0

The rows J have the means of the arms and axes of both ends. For gaps, which are linear in arms, and for products of two
axes, h J (v, w) = C' - C exactly: impulses of closed joints do no work, and energy, momentum and angular momentum are
conserved at any step size. Newton's matrix has, besides masses, the gyroscopic terms and the geometric stiffness
(h/2) d(J^T p) / d(rotation) of each body; the coupling of two bodies by the stiffness is left out.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.numerics.rotation_kernels import quaternion_product, rotation_matrix
from borelli.physics.arrays.indices import DRIVE_ROWS, LIMIT_ROWS, STEP_SIZE
from borelli.physics.arrays.joints import HINGE, UNIVERSAL
from borelli.physics.impulse_step.controlled_joints import compute_ball_rotations_by_pointer, set_control_corrections
from borelli.physics.impulse_step.position_correction import (
    ACCEPTED_ERROR,
    ROUNDING_UNIT,
    TARGET_TOLERANCE,
    limit_rotation,
)
from borelli.physics.impulse_step.stage_laws import copy_errors, disable_row, largest_joint_error
from borelli.physics.impulse_step.stage_solve import solve_stage_by_pointer
from borelli.physics.rigid_bodies import compute_rotations, move_body
from borelli.physics.rows.laws import soft_law
from borelli.physics.rows.persistent_rows import fill_persistent_rows_by_pointer
from borelli.physics.solver.elimination_order import BODY, mark_for_factoring
from borelli.physics.solver.factor_arrays import ABSENT, IMPULSE, KIND, MASS, MOMENTUM, SOLUTION
from borelli.physics.solver.newton import NOT_CONVERGED, SOLVED
from borelli.physics.vectors import invert_matrix, multiply_vector

MAX_ITERATIONS = 30
"""Maximum number of Newton iterations; a step that needs more is divided."""
MEAN_GAP_TOLERANCE = 5e-14
"""Errors of joints [m or rad] at which Newton's method ends; at least rounding of the farthest body's position."""
MOMENTUM_TOLERANCE = 1e-14
"""The same for the balance of angular momentum, relative to the largest term of a body."""
LIMIT_TOLERANCE = 1e-12
"""Distance beyond a joint limit [rad or m] that is rounding."""
MAX_WORSE = 6
"""Number of iterations without a smaller error after which Newton's method is given up."""
ACCEPTED_RATIO = 100.0
"""Ratio to the tolerances of errors that are accepted if they decrease no further: rounding of long chains."""
ACCEPTED_DEFECT = 1e-8
"""The same, relative, as MOMENTUM_TOLERANCE after MAX_WORSE iterations: the impulses of redundant rows are not
determined; gaps then are at most ACCEPTED_ERROR."""


@inline
def _multiply_matrices(a, b):
    """Return a b, nine entries each, row by row."""
    return (
        a[0] * b[0] + a[1] * b[3] + a[2] * b[6],
        a[0] * b[1] + a[1] * b[4] + a[2] * b[7],
        a[0] * b[2] + a[1] * b[5] + a[2] * b[8],
        a[3] * b[0] + a[4] * b[3] + a[5] * b[6],
        a[3] * b[1] + a[4] * b[4] + a[5] * b[7],
        a[3] * b[2] + a[4] * b[5] + a[5] * b[8],
        a[6] * b[0] + a[7] * b[3] + a[8] * b[6],
        a[6] * b[1] + a[7] * b[4] + a[8] * b[7],
        a[6] * b[2] + a[7] * b[5] + a[8] * b[8],
    )


@inline
def _symmetric_part(a):
    x, y, z = 0.5 * (a[1] + a[3]), 0.5 * (a[2] + a[6]), 0.5 * (a[5] + a[7])
    return a[0], x, y, x, a[4], z, y, z, a[8]


@inline
def _is_positive(a):
    """Return True if the symmetric part of a matrix is positive definite, by a margin."""
    s = _symmetric_part(a)
    second = s[0] * s[4] - s[1] * s[1]
    third = s[0] * (s[4] * s[8] - s[5] * s[5]) - s[1] * (s[1] * s[8] - s[5] * s[2]) + s[2] * (s[1] * s[5] - s[4] * s[2])
    product = s[0] * s[4]
    return s[0] > 0.0 and s[4] > 0.0 and s[8] > 0.0 and second > 1e-3 * product and third > 1e-3 * product * s[8]


@inline
def _load_matrix(rotation, b):
    R = rotation
    return (
        R[b, 0, 0], R[b, 0, 1], R[b, 0, 2], R[b, 1, 0], R[b, 1, 1], R[b, 1, 2], R[b, 2, 0], R[b, 2, 1], R[b, 2, 2],
    )  # fmt: skip


@inline
def _transpose(a):
    return a[0], a[3], a[6], a[1], a[4], a[7], a[2], a[5], a[8]


@inline_into_caller
def store_start(tables, state, scratch, mean):
    """Store poses and velocities as those before the step, or a part of it."""
    compute_rotations(state.quaternion, mean.rotation)
    for b in range(len(state.position)):
        for n in range(3):
            mean.position[b, n] = state.position[b, n]
        for n in range(4):
            mean.quaternion[b, n] = state.quaternion[b, n]
        for n in range(6):
            mean.twist[b, n] = state.twist[b, n]


@inline
def _move_bodies(kinematic, state, mean, rotation, h):
    """Write the poses after the step to the state, and the means of positions and rotations."""
    for b in range(len(kinematic)):
        if kinematic[b]:
            move_body(b, h, mean.twist, mean.position, mean.quaternion, state.position, state.quaternion)
        else:
            x, y, z = 0.5 * h * mean.velocity[b, 3], 0.5 * h * mean.velocity[b, 4], 0.5 * h * mean.velocity[b, 5]
            s = 1.0 / sqrt(1.0 + x * x + y * y + z * z)
            q = mean.quaternion
            w, x, y, z = quaternion_product(s, s * x, s * y, s * z, q[b, 0], q[b, 1], q[b, 2], q[b, 3])
            scale = 1.0 / sqrt(w * w + x * x + y * y + z * z)
            state.quaternion[b, 0], state.quaternion[b, 1] = scale * w, scale * x
            state.quaternion[b, 2], state.quaternion[b, 3] = scale * y, scale * z
            for n in range(3):
                state.position[b, n] = mean.position[b, n] + h * mean.velocity[b, n]
        q = state.quaternion
        m = rotation_matrix(q[b, 0], q[b, 1], q[b, 2], q[b, 3])
        for i in range(3):
            for j in range(3):
                mean.end_rotation[b, i, j] = m[3 * i + j]
                rotation[b, i, j] = 0.5 * (mean.rotation[b, i, j] + m[3 * i + j])


@inline
def _fill_limits(joints, trial, mark, rows, mean, h, ratio):
    """Write rows that end the step on the limits that act, disable the others; return the largest error."""
    largest = 0.0
    for k in range(joints.row_ranges[LIMIT_ROWS], joints.row_ranges[DRIVE_ROWS]):
        if mean.at_limit[k] and trial.pieces[k] == 2:
            soft_law(rows, k, ratio * trial.c[k, 0], trial.beta[k, 0])
            largest = max(largest, abs(h * rows.c[k, 0]))
        elif mark[k, KIND] != ABSENT:
            disable_row(rows, k)
    return largest


@inline_into_caller
def choose_limits(joints, trial, mark, free, mean, h):
    """Let limits act that the coordinates pass, and no longer those that would pull; return True if some changed."""
    changed = False
    for i in range(len(joints.limit_row)):
        k = joints.limit_row[i]
        if k < 0 or mark[k, KIND] == ABSENT or not free[i]:
            continue
        passed = trial.pieces[k] == 2 and h * trial.c[k, 0] > LIMIT_TOLERANCE
        acts = mean.impulse[k] >= 0.0 if mean.at_limit[k] else passed
        if acts != (mean.at_limit[k] > 0):
            changed = True
            mean.at_limit[k] = acts
            mean.impulse[k] = 0.0
    return changed


@inline_into_caller
def _fill_mean_rows(pointers, tables, state, inputs, work, controls, stages, index, h):
    """Write mean rows with the errors of the step's end; return the largest errors of joints and of controls."""
    joints, rows, scratch, mean = tables.joints, work.rows, work.scratch, stages.mean
    mark, ratio = work.factor.mark, tables.parameters[STEP_SIZE] / h
    _move_bodies(tables.bodies.kinematic, state, mean, scratch.rotation, h)
    for b in range(len(state.position)):
        for n in range(3):
            mean.end_position[b, n] = state.position[b, n]
            state.position[b, n] = 0.5 * (mean.position[b, n] + state.position[b, n])
    fill_persistent_rows_by_pointer(pointers, tables, state, inputs, rows, scratch, index, False)
    for b in range(len(state.position)):
        for i in range(3):
            state.position[b, i] = mean.end_position[b, i]
            for j in range(3):
                scratch.rotation[b, i, j] = mean.end_rotation[b, i, j]
    fill_persistent_rows_by_pointer(pointers, tables, state, inputs, stages.trial_rows, scratch, index, False)
    copy_errors(joints, stages.trial_rows, rows)
    for n in range(len(joints.equation_row)):
        rows.c[joints.equation_row[n], 0] *= ratio
    beyond = _fill_limits(joints, stages.trial_rows, mark, rows, mean, h, ratio)
    for k in range(tables.contacts.first_row[0]):
        rows.offset[k] = 0.0
    if len(controls.ball) > 0:
        compute_ball_rotations_by_pointer(pointers, joints, controls, stages.trial_rotation)
    gap = max(beyond, largest_joint_error(joints, rows, h, False))
    return gap, set_control_corrections(joints, controls, stages, state.coordinate, rows, h)


@inline
def _add_impulses(rows, first, impulse, wrench):
    """Add J^T p of all rows to the wrenches of bodies."""
    for k in range(first):
        p = impulse[k]
        if p != 0.0:
            for e in range(rows.first[k], rows.first[k + 1]):
                b = rows.body[e]
                if b >= 0:
                    for n in range(6):
                        wrench[b, n] += p * rows.jacobian[e, n]


@inline
def _add_stiffness(stiffness, b, scale, rx, ry, rz, px, py, pz):
    """Add scale ((r . p) 1 - r p^T), of a force p at an arm r or of an axis r rotated against an axis p."""
    dot = rx * px + ry * py + rz * pz
    stiffness[b, 0] += scale * (dot - rx * px)
    stiffness[b, 1] -= scale * rx * py
    stiffness[b, 2] -= scale * rx * pz
    stiffness[b, 3] -= scale * ry * px
    stiffness[b, 4] += scale * (dot - ry * py)
    stiffness[b, 5] -= scale * ry * pz
    stiffness[b, 6] -= scale * rz * px
    stiffness[b, 7] -= scale * rz * py
    stiffness[b, 8] += scale * (dot - rz * pz)


@inline_into_caller
def _fill_stiffness(joints, rows, impulse, h, stiffness):
    """Write the geometric stiffness of each body: the change of J^T p as its arms and axes rotate."""
    stiffness[:, :] = 0.0
    for j in range(len(joints.kind)):
        first, end, kind = joints.row_first[j], joints.row_first[j + 1], joints.kind[j]
        slot_c, slot_p, c, p = joints.child_slot[j], joints.parent_slot[j], joints.child[j], joints.parent[j]
        fx, fy, fz = 0.0, 0.0, 0.0
        for k in range(first, end):
            e, s = rows.first[k], impulse[k] if slot_c >= 0 else -impulse[k]
            fx, fy, fz = fx + s * rows.jacobian[e, 0], fy + s * rows.jacobian[e, 1], fz + s * rows.jacobian[e, 2]
        if slot_c >= 0:
            r = joints.arm_child
            _add_stiffness(stiffness, c, 0.5 * h, r[j, 0], r[j, 1], r[j, 2], fx, fy, fz)
        if slot_p >= 0:
            r = joints.arm_parent
            _add_stiffness(stiffness, p, -0.5 * h, r[j, 0], r[j, 1], r[j, 2], fx, fy, fz)
        if end - first < 4 or (kind != HINGE and kind != UNIVERSAL):
            continue
        a, b = joints.axes_parent, joints.axes_child
        for k in range(first + 3, end):
            on_parent, on_child, s = k - first - 2, 0, 0.5 * h * impulse[k]
            if kind == UNIVERSAL:
                on_parent, on_child = 0, 1
            ax, ay, az = a[j, on_parent, 0], a[j, on_parent, 1], a[j, on_parent, 2]
            bx, by, bz = b[j, on_child, 0], b[j, on_child, 1], b[j, on_child, 2]
            if slot_c >= 0:
                _add_stiffness(stiffness, c, s, bx, by, bz, ax, ay, az)
            if slot_p >= 0:
                _add_stiffness(stiffness, p, s, ax, ay, az, bx, by, bz)


@inline
def _body_spin(inertia, mean, b):
    """Return R I R^T-like products of body b: its angular momenta before and after the step, and E I R^T."""
    R, E = _load_matrix(mean.rotation, b), _load_matrix(mean.end_rotation, b)
    M = _load_matrix(inertia, b)
    back = _transpose(R)
    ox, oy, oz = multiply_vector(back, mean.twist[b, 3], mean.twist[b, 4], mean.twist[b, 5])
    wx, wy, wz = multiply_vector(back, mean.velocity[b, 3], mean.velocity[b, 4], mean.velocity[b, 5])
    before = multiply_vector(_multiply_matrices(R, M), ox, oy, oz)
    turned = _multiply_matrices(E, M)
    after = multiply_vector(turned, 2.0 * wx - ox, 2.0 * wy - oy, 2.0 * wz - oz)
    return before, after, _multiply_matrices(turned, back)


@inline
def _rotational_block(spin, after, stiffness, b, h, wx, wy, wz):
    """Return d(R' I O+ - J^T p) / dw of body b; without the terms that rotate if these are too large.

    dR' R'^T = T dw, T = h (1 + [h w] / 2) / (1 + (h w)^2 / 4).
    """
    x, y, z = 0.5 * h * wx, 0.5 * h * wy, 0.5 * h * wz
    s = 1.0 / (1.0 + x * x + y * y + z * z)
    T = (s, -s * z, s * y, s * z, s, -s * x, -s * y, s * x, s)
    lx, ly, lz = h * after[0], h * after[1], h * after[2]
    G = stiffness
    B = (
        G[b, 0], G[b, 1] + lz, G[b, 2] - ly,
        G[b, 3] - lz, G[b, 4], G[b, 5] + lx,
        G[b, 6] + ly, G[b, 7] - lx, G[b, 8],
    )  # fmt: skip
    B = _multiply_matrices(B, T)
    K = (
        2.0 * spin[0] + B[0], 2.0 * spin[1] + B[1], 2.0 * spin[2] + B[2],
        2.0 * spin[3] + B[3], 2.0 * spin[4] + B[4], 2.0 * spin[5] + B[5],
        2.0 * spin[6] + B[6], 2.0 * spin[7] + B[7], 2.0 * spin[8] + B[8],
    )  # fmt: skip
    return K


@inline_into_caller
def _load_balance(bodies, gravity, graph, block, mean, h, fraction):
    """Write the blocks and residuals of all bodies for a Newton step; return the largest residual, relative.

    The elimination needs symmetric blocks: with K the block, S^-1 is the symmetric part of K^-1, and the residual r is
    replaced by S K^-1 r, so that a body without rows is solved exactly.
    """
    largest, scale = 0.0, 1e-300
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        m = bodies.mass[b]
        for n in range(21):
            block[k, MASS + n] = 0.0
        block[k, MASS], block[k, MASS + 2], block[k, MASS + 5] = 2.0 * m, 2.0 * m, 2.0 * m
        for n in range(3):
            block[k, MOMENTUM + n] = (
                h * m * gravity[n] + fraction * mean.wrench[b, n] + mean.reaction[b, n]
                - 2.0 * m * (mean.velocity[b, n] - mean.twist[b, n])
            )  # fmt: skip
        before, after, spin = _body_spin(bodies.inertia, mean, b)
        rx = before[0] - after[0] + fraction * mean.wrench[b, 3] + mean.reaction[b, 3]
        ry = before[1] - after[1] + fraction * mean.wrench[b, 4] + mean.reaction[b, 4]
        rz = before[2] - after[2] + fraction * mean.wrench[b, 5] + mean.reaction[b, 5]
        largest = max(largest, abs(rx), abs(ry), abs(rz))
        inertia = bodies.inertia[b, 0, 0] + bodies.inertia[b, 1, 1] + bodies.inertia[b, 2, 2]
        radius = sqrt(inertia / m)
        for n in range(3):
            scale = max(scale, abs(after[n]), abs(mean.reaction[b, 3 + n]), radius * abs(mean.reaction[b, n]))
        w = mean.velocity
        K = _rotational_block(spin, after, mean.stiffness, b, h, w[b, 3], w[b, 4], w[b, 5])
        if not _is_positive(K):
            E = _load_matrix(mean.end_rotation, b)
            K = _multiply_matrices(spin, _multiply_matrices(_load_matrix(mean.rotation, b), _transpose(E)))
            K = (
                2.0 * K[0], 2.0 * K[1], 2.0 * K[2], 2.0 * K[3], 2.0 * K[4], 2.0 * K[5], 2.0 * K[6], 2.0 * K[7],
                2.0 * K[8],
            )  # fmt: skip
        inverse = invert_matrix(K)
        S = invert_matrix(_symmetric_part(inverse))
        rx, ry, rz = multiply_vector(inverse, rx, ry, rz)
        rx, ry, rz = multiply_vector(S, rx, ry, rz)
        block[k, MASS + 9], block[k, MASS + 13], block[k, MASS + 14] = S[0], S[3], S[4]
        block[k, MASS + 18], block[k, MASS + 19], block[k, MASS + 20] = S[6], S[7], S[8]
        block[k, MOMENTUM + 3], block[k, MOMENTUM + 4], block[k, MOMENTUM + 5] = rx, ry, rz
    return largest / scale


@kernel_function
def solve_mean_motion(pointers, tables, state, inputs, work, controls, stages, index, h, fraction):
    """Solve for the mean velocities and impulses of a part h [s] of the step, from those in `stages.mean`.

    Returns SOLVED, NOT_CONVERGED or the status of a failed solve; the poses after the part are in the state. `fraction`
    is the fraction of the step, and so of the given wrenches.
    """
    joints, rows, graph, factor, mean = tables.joints, work.rows, work.graph, work.factor, stages.mean
    first, last, farthest, best, best_iteration = tables.contacts.first_row[0], 1e300, 0.0, 1e300, 0
    for b in range(len(mean.position)):
        for n in range(3):
            farthest = max(farthest, abs(mean.position[b, n]))
    gap_tolerance = max(MEAN_GAP_TOLERANCE, 4.0 * ROUNDING_UNIT * farthest)
    for iteration in range(MAX_ITERATIONS):
        stages.corrections[0] = iteration
        gap, miss = _fill_mean_rows(pointers, tables, state, inputs, work, controls, stages, index, h)
        mean.reaction[:, :] = 0.0
        _add_impulses(rows, first, mean.impulse, mean.reaction)
        _fill_stiffness(joints, rows, mean.impulse, h, mean.stiffness)
        defect = _load_balance(tables.bodies, tables.gravity, graph, factor.block, mean, h, fraction)
        error = max(gap / gap_tolerance, miss / TARGET_TOLERANCE, defect / MOMENTUM_TOLERANCE)
        if iteration > 0 and (error <= 1.0 or (error <= ACCEPTED_RATIO and error > 0.5 * last)):
            if not choose_limits(joints, stages.trial_rows, factor.mark, mean.free, mean, h):
                return SOLVED
            best, best_iteration, error = 1e300, iteration, 1e200
            continue
        if error < best:
            best, best_iteration = error, iteration
        if not error < 1e250:
            return NOT_CONVERGED
        if iteration > best_iteration + MAX_WORSE:
            return SOLVED if max(gap, miss) <= ACCEPTED_ERROR and defect <= ACCEPTED_DEFECT else NOT_CONVERGED
        last = error
        mark_for_factoring(graph, 1)
        status = solve_stage_by_pointer(pointers, tables, state, work, stages)
        if status != SOLVED:
            return status
        limit_rotation(rows, factor, graph.count[0], h)
        for k in range(graph.count[0]):
            for n in range(6):
                mean.velocity[graph.node[k, BODY], n] += factor.block[k, SOLUTION + n]
        for k in range(first):
            mean.impulse[k] += factor.value[k, IMPULSE]
    return NOT_CONVERGED


solve_mean_motion_by_pointer = by_pointer(solve_mean_motion)
