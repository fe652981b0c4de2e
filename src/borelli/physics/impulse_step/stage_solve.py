"""One solve of an impulse step: the momenta it starts from, and what it leaves."""

from __future__ import annotations

from math import nan

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.rigid_bodies import is_finite, load_bodies
from borelli.physics.run_soft_steps import add_contact_impulses
from borelli.physics.soft_step import FRICTION, NEWTON, solve_step
from borelli.physics.solver.elimination_order import DIRTY
from borelli.physics.solver.factor_arrays import IMPULSE
from borelli.physics.solver.newton import NOT_FINITE


@inline
def mark_all(graph, dirty):
    """Have all bodies factored again, or none."""
    for k in range(graph.count[0]):
        graph.node[k, DIRTY] = dirty


@inline
def copy_poses(position, quaternion, position_out, quaternion_out):
    """Write down where all bodies are."""
    for b in range(len(position)):
        for n in range(3):
            position_out[b, n] = position[b, n]
        for n in range(4):
            quaternion_out[b, n] = quaternion[b, n]


@inline
def forget_factored(stages):
    """Let the factors at hand be for no poses."""
    for b in range(len(stages.factored)):
        stages.factored[b, 0] = nan


@inline_into_caller
def are_factors_good(joints, rows, state, stages):
    """Whether the last step ended with factors for where bodies are now, of rows that act now: equations alone."""
    for b in range(len(state.position)):
        for n in range(3):
            if state.position[b, n] != stages.factored[b, n]:
                return False
        for n in range(4):
            if state.quaternion[b, n] != stages.factored_turn[b, n]:
                return False
    for k in range(joints.row_ranges[4]):
        if rows.pieces[k] > 1:
            return False
    return True


@kernel_function
def solve(pointers, tables, state_at, work, stages_at):
    """Velocities that obey the rows, from the momenta loaded, in SOLUTION. A status."""
    state, rows, graph, factor, touch = load_shared(state_at, work.rows, work.graph, work.factor, work.touch)
    scratch, stages = load_shared(work.scratch, stages_at)
    status = solve_step(pointers, tables, state, work, rows, factor, touch, scratch.told)
    if not is_finite(graph, factor.block):
        return NOT_FINITE
    stages.told[NEWTON] += scratch.told[NEWTON]
    stages.told[FRICTION] = max(stages.told[FRICTION], scratch.told[FRICTION])
    return status


solve_by_pointer = by_pointer(solve)


@kernel_function
def add_impulses(tables, work, stages_at):
    """Add the impulses at hand to those of the step."""
    rows, factor, touch, stages = load_shared(work.rows, work.factor, work.touch, stages_at)
    for k in range(rows.used[0]):
        stages.total[k] += factor.value[k, IMPULSE]
    first, each = tables.contacts.first_row[0], tables.contacts.rows_each[0]
    contacts = (rows.used[0] - first) // each
    add_contact_impulses(
        factor.value, rows, touch.contact_body, work.contacts.point, first, each, contacts, stages.ground
    )  # fmt: skip


add_impulses_by_pointer = by_pointer(add_impulses)


@inline
def solve_and_add(pointers, tables, state_at, work, stages_at):
    """Solve, and add the impulses to those of the step; a status."""
    status = solve_by_pointer(pointers, tables, state_at, work, stages_at)
    add_impulses_by_pointer(pointers, tables, work, stages_at)
    return status


@kernel_function
def load(tables, state_at, work, h, dirty):
    """Masses and momenta after h of gravity and pushes; all bodies, or none, are marked for factoring."""
    bodies, state, scratch = load_shared(tables.bodies, state_at, work.scratch)
    graph, factor = load_shared(work.graph, work.factor)
    load_bodies(bodies, tables.gravity, state, scratch, graph, factor.block, h, False)
    mark_all(graph, dirty)


load_by_pointer = by_pointer(load)
