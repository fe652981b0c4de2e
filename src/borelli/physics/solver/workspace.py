"""The solver's work arrays, and solving one stand-alone set of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import kernel, kernel_function
from borelli.kernels.shared_tuples import SharedTuple, load_shared
from borelli.physics.rows.rows import Rows
from borelli.physics.solver.elimination_order import (
    BODY,
    PLACE,
    Graph,
    GraphWork,
    make_graph,
    make_graph_work,
    order_bodies,
)
from borelli.physics.solver.factor_arrays import (
    IMPULSE,
    MASS,
    MOMENTUM,
    SEGMENT,
    SOLUTION,
    STIFF,
    Capacity,
    Factor,
    Fill,
    list_rows,
    make_factor,
    make_fill,
)
from borelli.physics.solver.interior_point import Interior, make_interior
from borelli.physics.solver.iterative_refinement import refine_by_pointer
from borelli.physics.solver.newton import (
    NO_END,
    SOLVED,
    TOO_SMALL,
    Search,
    begin_segments,
    make_search,
    newton_by_pointer,
)

PATIENCE = 15
"""Newton iterations before the interior-point method takes over."""
CAP = 60
"""Newton iterations in all."""
FOLD = 1e-8
"""A one-body row softer than this share of J M^-1 J^T is folded into its body's block."""


class Workspace(NamedTuple):
    """All a solve writes to; it may be thrown away between steps, but for SEGMENT (the warm start)."""

    graph: Graph
    graph_work: GraphWork
    factor: Factor
    fill: Fill
    search: Search
    interior: Interior


def first_capacity(bodies: int, rows: int) -> Capacity:
    """Room enough for a tree with some contacts; a solve that needs more says TOO_SMALL."""
    return Capacity(neighbours=2 * bodies + 8, front=72 * bodies + 288, corner=12 * rows + 64, outer=12 * rows + 64)


def make_workspace(bodies: int, rows: int, entries: int, capacity: Capacity) -> Workspace:
    """Work arrays of the given sizes."""
    return Workspace(
        graph=make_graph(bodies, capacity.neighbours),
        graph_work=make_graph_work(bodies),
        factor=make_factor(bodies, rows, entries, capacity),
        fill=make_fill(capacity),
        search=make_search(rows),
        interior=make_interior(rows),
    )


class SolveInfo(NamedTuple):
    """How a solve went."""

    status: int
    """SOLVED, NO_PIVOT, NO_END, NOT_FINITE or TOO_SMALL."""
    iterations: int
    factorisations: int
    interior_iterations: int


def solve_rows(
    mass: NDArray[np.float64],
    momentum: NDArray[np.float64],
    rows: Rows,
    parent: NDArray[np.int64],
    patience: int = PATIENCE,
) -> tuple[NDArray[np.float64], NDArray[np.float64], SolveInfo]:
    """Velocities (n, 6), impulses (rows,) and how it went, from a cold start.

    `mass` (n, 6, 6) and `momentum` (n, 6) are by body, `parent` the body each hangs on by joint rows (-1: none).
    The interior-point method takes over after `patience` iterations.
    """
    from borelli.physics.function_pointers import pointers  # which knows every part, and so this module

    bodies, count = len(mass), len(rows.segments)
    capacity = first_capacity(bodies, count)
    links = row_links(rows)
    kinematic = np.zeros(bodies, np.uint8)
    while True:
        work = make_workspace(bodies, count, len(rows.body), capacity)
        status = _solve_cold(
            pointers(), mass, momentum, SharedTuple(rows), np.asarray(parent, np.int64), kinematic, links, SharedTuple(work),
            patience,
        )  # fmt: skip
        if status != TOO_SMALL:
            break
        capacity = capacity.grown()
    counts = work.search.counts
    info = SolveInfo(int(status), int(counts[0]), int(counts[2]), int(counts[3]))
    places = work.graph.node[:bodies, PLACE]
    velocities = work.factor.block[places, SOLUTION : SOLUTION + 6]
    return velocities, work.factor.value[:, IMPULSE].copy(), info


def row_links(rows: Rows) -> NDArray[np.int64]:
    """Every pair of bodies that some row touches together, (links, 2)."""
    pairs: set[tuple[int, int]] = set()
    for k in range(rows.used[0]):
        touched = [int(b) for b in rows.body[rows.first[k] : rows.first[k + 1]] if b >= 0]
        pairs.update((a, b) for i, a in enumerate(touched) for b in touched[:i])
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


@kernel_function
def load_bodies(node, block, count, mass, momentum):
    """Copy mass blocks (n, 6, 6) and free momenta (n, 6) into elimination order."""
    for k in range(count):
        b = node[k, BODY]
        for i in range(6):
            block[k, MOMENTUM + i] = momentum[b, i]
            for j in range(i + 1):
                block[k, MASS + i * (i + 1) // 2 + j] = mass[b, i, j]


@kernel
def _solve_cold(pointers, mass, momentum, rows_at, parent, kinematic, links, work_at, patience):
    rows, work = load_shared(rows_at, work_at)
    graph, factor = work.graph, work.factor
    if order_bodies(parent, kinematic, links, len(links), graph, work.graph_work) < 0:
        return TOO_SMALL
    load_bodies(graph.node, factor.block, graph.count[0], mass, momentum)
    for k in range(rows.used[0]):
        response = 0.0
        for e in range(rows.first[k], rows.first[k + 1]):
            if rows.body[e] >= 0:
                for i in range(6):
                    response += rows.jacobian[e, i] ** 2 / mass[rows.body[e], i, i]
        factor.value[k, STIFF] = FOLD * response
        factor.mark[k, SEGMENT] = rows.segments[k] // 2
    if not list_rows(rows, graph, factor, work.fill):
        return TOO_SMALL
    switching = begin_segments(rows, factor)
    for first in (patience, 0):
        status = newton_by_pointer(
            pointers, rows_at, work_at.graph, work_at.factor, work_at.fill, work_at.search, work_at.interior,
            switching, first, CAP,
        )  # fmt: skip
        if status != SOLVED or refine_by_pointer(pointers, rows_at, work_at.graph, work_at.factor, work_at.fill) >= 0:
            return status
    return NO_END
