"""Stages 3 to 6 of an impulse step that keeps energy, momentum and angular momentum (`mean_motion`).

A step whose equations Newton's method does not solve is divided into halves, and these again.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.physics.arrays.indices import DRIVE_ROWS, LIMIT_ROWS, STEP_SIZE
from borelli.physics.impulse_step.controlled_joints import fix_control_velocities
from borelli.physics.impulse_step.energy_balance import LIMITED_ENERGY, balance_energy, require_energy
from borelli.physics.impulse_step.mean_motion import solve_mean_motion_by_pointer, store_start
from borelli.physics.impulse_step.stage_laws import fix_joints
from borelli.physics.impulse_step.stage_solve import load_momenta_by_pointer, solve_stage_by_pointer
from borelli.physics.rigid_bodies import copy_poses, copy_velocities
from borelli.physics.soft_step import ENERGY_NOT_KEPT
from borelli.physics.solver.elimination_order import BODY
from borelli.physics.solver.factor_arrays import IMPULSE
from borelli.physics.solver.newton import NOT_CONVERGED, SOLVED

MIN_FRACTION = 1.0 / 65536.0
"""Smallest fraction of a step that is tried."""
QUICK_ITERATIONS = 12
"""Newton iterations of a part up to which the next one may be twice as long."""
MAX_STEP_ITERATIONS = 50000
"""Maximum number of Newton iterations in all parts of a step: tips of whips rotate by tens of radians in 1/30 s."""


@inline
def _guess(history, mean, fraction):
    """Start from the change of velocity and the impulses of the last step."""
    known = history.mean_known[0] > 0
    for b in range(len(mean.velocity)):
        for n in range(6):
            change = fraction * history.half_change[b, n] if known else 0.0
            mean.velocity[b, n] = mean.twist[b, n] + change
    for k in range(len(mean.impulse)):
        mean.impulse[k] = fraction * history.mean_impulse[k] if known else 0.0


@inline
def _store_guess(history, mean, fraction):
    for b in range(len(mean.velocity)):
        for n in range(6):
            history.half_change[b, n] = (mean.velocity[b, n] - mean.twist[b, n]) / fraction
    for k in range(len(mean.impulse)):
        history.mean_impulse[k] = mean.impulse[k] / fraction
    history.mean_known[0] = 1


@inline
def _rotate(rotation, b, x, y, z):
    R = rotation
    return (
        R[b, 0, 0] * x + R[b, 0, 1] * y + R[b, 0, 2] * z,
        R[b, 1, 0] * x + R[b, 1, 1] * y + R[b, 1, 2] * z,
        R[b, 2, 0] * x + R[b, 2, 1] * y + R[b, 2, 2] * z,
    )


@inline
def _rotate_back(rotation, b, x, y, z):
    R = rotation
    return (
        R[b, 0, 0] * x + R[b, 1, 0] * y + R[b, 2, 0] * z,
        R[b, 0, 1] * x + R[b, 1, 1] * y + R[b, 2, 1] * z,
        R[b, 0, 2] * x + R[b, 1, 2] * y + R[b, 2, 2] * z,
    )


@inline
def _set_end_velocities(graph, mean, twist):
    """Write v+ = 2 v - v-, and the same of angular velocities in body axes."""
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        for n in range(3):
            twist[b, n] = 2.0 * mean.velocity[b, n] - mean.twist[b, n]
        u, w = mean.velocity, mean.twist
        x, y, z = 2.0 * u[b, 3] - w[b, 3], 2.0 * u[b, 4] - w[b, 4], 2.0 * u[b, 5] - w[b, 5]
        x, y, z = _rotate_back(mean.rotation, b, x, y, z)
        twist[b, 3], twist[b, 4], twist[b, 5] = _rotate(mean.end_rotation, b, x, y, z)


@inline
def _copy_rows(trial, rows, first):
    """Copy the directions and offsets of persistent rows at the step's end."""
    for e in range(trial.first[first]):
        for n in range(6):
            rows.jacobian[e, n] = trial.jacobian[e, n]
    for k in range(first):
        rows.offset[k] = trial.offset[k]


@inline_into_caller
def _project_velocities(pointers, tables, state, work, controls, stages, h):
    """Make stage 6: velocities satisfy the joints after the part of the step; return a status."""
    joints, rows, first, mean = tables.joints, work.rows, tables.contacts.first_row[0], stages.mean
    _copy_rows(stages.trial_rows, rows, first)
    fix_joints(joints, rows)
    for k in range(joints.row_ranges[LIMIT_ROWS], joints.row_ranges[DRIVE_ROWS]):
        if mean.at_limit[k] and rows.pieces[k] == 1:
            rows.c[k, 0] = 0.0
    fix_control_velocities(joints, controls, stages, state.coordinate, rows, h)
    load_momenta_by_pointer(pointers, tables, state, work, 0.0, 1)
    status = solve_stage_by_pointer(pointers, tables, state, work, stages)
    if status == SOLVED:
        for k in range(first):
            mean.total_impulse[k] += mean.impulse[k] + work.factor.value[k, IMPULSE]
        copy_velocities(work.graph, work.factor.block, state.twist)
    return status


@inline
def _note_limits(joints, group, rows, mean):
    """Set the balance of groups on which joint limits act: these only remove energy."""
    for k in range(joints.row_ranges[LIMIT_ROWS], joints.row_ranges[DRIVE_ROWS]):
        if mean.at_limit[k]:
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    g = group[rows.body[e]]
                    mean.balance[g] = min(mean.balance[g], LIMITED_ENERGY)


@kernel_function
def advance_mean_motion(pointers, tables, state, inputs, work, controls, history, stages, index):
    """Make a step, in parts if necessary, with the wrenches in `stages.mean`; return a status.

    If a part fails, bodies are as before the step.
    """
    graph, scratch, mean = work.graph, work.scratch, stages.mean
    h, first, ranges = tables.parameters[STEP_SIZE], tables.contacts.first_row[0], tables.joints.row_ranges
    divisible = len(controls.every) == 0
    done, fraction, kept, iterations = 0.0, 1.0, True, 0
    mean.total_impulse[:] = 0.0
    while done < 1.0:
        store_start(tables, state, scratch, mean)
        mean.at_limit[:] = 0
        _guess(history, mean, fraction)
        for k in range(ranges[LIMIT_ROWS], ranges[DRIVE_ROWS]):
            mean.impulse[k] = 0.0
        status = solve_mean_motion_by_pointer(
            pointers, tables, state, inputs, work, controls, stages, index, fraction * h, fraction
        )
        iterations += stages.corrections[0]
        if status == SOLVED:
            require_energy(tables.bodies, tables.gravity, graph, mean, state)
            _set_end_velocities(graph, mean, state.twist)
            status = _project_velocities(pointers, tables, state, work, controls, stages, h)
        if status == SOLVED:
            _note_limits(tables.joints, tables.bodies.group, work.rows, mean)
            if not balance_energy(tables.bodies, graph, mean, scratch.rotation, state, False):
                kept = False
            _store_guess(history, mean, fraction)
            done += fraction
            if stages.corrections[0] <= QUICK_ITERATIONS and (0.5 * done / fraction) % 1.0 == 0.0:
                fraction = min(2.0 * fraction, 1.0)
            continue
        copy_poses(mean.position, mean.quaternion, state.position, state.quaternion)
        for b in range(len(state.twist)):
            for n in range(6):
                state.twist[b, n] = mean.twist[b, n]
        if history.mean_known[0] > 0:
            history.mean_known[0] = 0  # once more, from the present velocities
            continue
        fraction *= 0.5
        if not divisible or fraction < MIN_FRACTION or iterations > MAX_STEP_ITERATIONS:
            copy_poses(stages.position, stages.quaternion, state.position, state.quaternion)
            for b in range(len(state.twist)):
                for n in range(6):
                    state.twist[b, n] = mean.begin_twist[b, n]
            return NOT_CONVERGED
    for k in range(first):
        stages.impulse[k] += mean.total_impulse[k]
    return SOLVED if kept else ENERGY_NOT_KEPT


advance_mean_motion_by_pointer = by_pointer(advance_mean_motion)
