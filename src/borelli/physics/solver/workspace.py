"""Work arrays of the solver."""

from __future__ import annotations

from typing import NamedTuple

from borelli.physics.solver.elimination_order import Graph, GraphWork, make_graph, make_graph_work
from borelli.physics.solver.factor_arrays import Capacity, Factor, Fill, make_factor, make_fill
from borelli.physics.solver.interior_point import Interior, make_interior
from borelli.physics.solver.newton import Search, make_search

FOLD_SOFTNESS = 1e-8
"""A one-body row softer than this fraction of J M^-1 J^T is folded into its body's block."""


class Workspace(NamedTuple):
    """Work arrays of a solve; only ACTIVE_PIECE (the warm start) matters to the next one."""

    graph: Graph
    graph_work: GraphWork
    factor: Factor
    fill: Fill
    search: Search
    interior: Interior


def initial_capacity(bodies: int, rows: int) -> Capacity:
    """Return a capacity for a tree with some contacts; a solve that needs more returns CAPACITY_EXCEEDED."""
    return Capacity(neighbors=2 * bodies + 8, front=72 * bodies + 288, corner=12 * rows + 64, outer=12 * rows + 64)


def make_workspace(bodies: int, rows: int, entries: int, capacity: Capacity) -> Workspace:
    """Return work arrays of the given sizes."""
    return Workspace(
        graph=make_graph(bodies, capacity.neighbors),
        graph_work=make_graph_work(bodies),
        factor=make_factor(bodies, rows, entries, capacity),
        fill=make_fill(capacity),
        search=make_search(rows),
        interior=make_interior(rows),
    )
