"""One solve of an impulse step: its initial momenta and its results."""

from __future__ import annotations

from math import nan

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.arrays.indices import FRICTION_SOLVES, NEWTON_ITERATIONS, ROWS_END
from borelli.physics.rigid_bodies import is_finite, load_bodies
from borelli.physics.run_soft_steps import add_contact_impulses
from borelli.physics.soft_step import solve_step
from borelli.physics.solver.elimination_order import mark_for_factoring
from borelli.physics.solver.factor_arrays import IMPULSE
from borelli.physics.solver.newton import NOT_FINITE


@inline
def discard_factors(stages):
    """Mark the present factors as valid for no poses."""
    for b in range(len(stages.factored_position)):
        stages.factored_position[b, 0] = nan


@inline_into_caller
def are_factors_valid(joints, rows, state, stages):
    """Return True if the factors of the last step are those of the present poses and rows, which are all equations."""
    for b in range(len(state.position)):
        for n in range(3):
            if state.position[b, n] != stages.factored_position[b, n]:
                return False
        for n in range(4):
            if state.quaternion[b, n] != stages.factored_quaternion[b, n]:
                return False
    for k in range(joints.row_ranges[ROWS_END]):
        if rows.pieces[k] > 1:
            return False
    return True


@kernel_function
def solve_stage(pointers, tables, state_at, work, stages_at):
    """Solve for velocities that satisfy the rows, from the loaded momenta, and return a status."""
    state, scratch, stages = load_shared(state_at, work.scratch, stages_at)
    rows, graph, factor, contact_arrays = load_shared(work.rows, work.graph, work.factor, work.contact_arrays)
    status = solve_step(pointers, tables, state, work, rows, factor, contact_arrays, scratch.solver_stats)
    if not is_finite(graph, factor.block):
        return NOT_FINITE
    total, last = stages.solver_stats, scratch.solver_stats
    total[NEWTON_ITERATIONS] += last[NEWTON_ITERATIONS]
    total[FRICTION_SOLVES] = max(total[FRICTION_SOLVES], last[FRICTION_SOLVES])
    return status


solve_stage_by_pointer = by_pointer(solve_stage)


@kernel_function
def add_impulses(tables, work, stages_at):
    """Add the impulses of the last solve to those of the step."""
    rows, factor, contact_arrays, stages = load_shared(work.rows, work.factor, work.contact_arrays, stages_at)
    for k in range(rows.used[0]):
        stages.impulse[k] += factor.value[k, IMPULSE]
    first, each = tables.contacts.first_row[0], tables.contacts.rows_each[0]
    contacts = (rows.used[0] - first) // each
    add_contact_impulses(
        factor.value, rows, contact_arrays.contact_body, work.contacts.point, first, each, contacts, stages.ground
    )


add_impulses_by_pointer = by_pointer(add_impulses)


@inline
def solve_and_add_impulses(pointers, tables, state_at, work, stages_at):
    """Solve, add the impulses to those of the step, and return a status."""
    status = solve_stage_by_pointer(pointers, tables, state_at, work, stages_at)
    add_impulses_by_pointer(pointers, tables, work, stages_at)
    return status


@kernel_function
def load_momenta(tables, state_at, work, h, dirty):
    """Write masses, and momenta after h of gravity; mark all bodies, or none, for factoring."""
    load_bodies(tables.bodies, tables.gravity, state_at, work.scratch, work.graph, work.factor.block, h, False)
    mark_for_factoring(work.graph, dirty)


load_momenta_by_pointer = by_pointer(load_momenta)
