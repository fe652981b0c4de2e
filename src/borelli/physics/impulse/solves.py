"""One solve of an impulse step: the momenta it starts from, and what it leaves."""

from __future__ import annotations

from borelli.jit import far, leaf, part
from borelli.physics.bodies import is_finite, load_bodies
from borelli.physics.factor import IMPULSE
from borelli.physics.graph import DIRTY
from borelli.physics.simulation import add_contact_impulses
from borelli.physics.solver import NOT_FINITE
from borelli.physics.step import FRICTION, NEWTON, solve_step
from borelli.sharing import read


@leaf
def mark_all(graph):
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
    mark_all(graph)


far_load = far(load)
