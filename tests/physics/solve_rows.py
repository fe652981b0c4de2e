"""Solution of one set of constraint rows by itself, from a cold start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.shared_tuples import SharedTuple, load_shared
from borelli.physics.function_pointers import make_sample, pointers
from borelli.physics.rows.rows import Rows
from borelli.physics.solver.elimination_order import BODY, POSITION, make_graph, make_graph_work, order_bodies
from borelli.physics.solver.factor_arrays import (
    ACTIVE_PIECE,
    FACTORIZATIONS,
    IMPULSE,
    INTERIOR_STEPS,
    MASS,
    MIN_FOLD_SLOPE,
    MOMENTUM,
    NEWTON_STEPS,
    SOLUTION,
    Capacity,
    list_rows,
    make_factor,
    make_fill,
)
from borelli.physics.solver.interior_point import make_interior
from borelli.physics.solver.iterative_refinement import refine_by_pointer
from borelli.physics.solver.newton import (
    CAPACITY_EXCEEDED,
    NOT_CONVERGED,
    SOLVED,
    init_active_pieces,
    make_search,
    newton_by_pointer,
)
from borelli.physics.work_arrays import FOLD_SOFTNESS, Work

from .called import compile_uncached

PATIENCE = 15
"""Newton iterations before the interior-point method starts."""
MAX_ITERATIONS = 60
"""Newton iterations in all."""


class SolveInfo(NamedTuple):
    """Status and effort of a solve."""

    status: int
    """SOLVED, NO_PIVOT, NOT_CONVERGED, NOT_FINITE or CAPACITY_EXCEEDED."""
    iterations: int
    factorizations: int
    interior_iterations: int


def solve_rows(
    mass: NDArray[np.float64],
    momentum: NDArray[np.float64],
    rows: Rows,
    parent: NDArray[np.int64],
    patience: int = PATIENCE,
) -> tuple[NDArray[np.float64], NDArray[np.float64], SolveInfo]:
    """Solve rows from a cold start.

    Args:
        mass: (n, 6, 6) mass blocks of the bodies.
        momentum: (n, 6) free momenta of the bodies.
        rows: Constraint rows.
        parent: (n,) parent body by joint rows; -1: none.
        patience: Newton iterations before the interior-point method starts.

    Returns:
        Velocities (n, 6), impulses (rows,) and status.
    """
    bodies, count = len(mass), len(rows.pieces)
    capacity = Capacity.initial(bodies, count)
    links = row_links(rows)
    kinematic = np.zeros(bodies, np.uint8)
    while True:
        work = make_solver_work(bodies, rows, capacity)
        status = _solve_cold(
            pointers(), mass, momentum, np.asarray(parent, np.int64), kinematic, links, SharedTuple(work), patience
        )
        if status != CAPACITY_EXCEEDED:
            break
        capacity = capacity.doubled()
    counts = work.search.counts
    info = SolveInfo(
        int(status), int(counts[NEWTON_STEPS]), int(counts[FACTORIZATIONS]), int(counts[INTERIOR_STEPS])
    )  # fmt: skip
    positions = work.graph.node[:bodies, POSITION]
    velocities = work.factor.block[positions, SOLUTION : SOLUTION + 6]
    return velocities, work.factor.value[:, IMPULSE].copy(), info


def make_solver_work(bodies: int, rows: Rows, capacity: Capacity) -> Work:
    """Return work arrays of a solve without contacts."""
    count = len(rows.pieces)
    return make_sample().work._replace(
        rows=rows,
        graph=make_graph(bodies, capacity.neighbors),
        graph_work=make_graph_work(bodies),
        factor=make_factor(bodies, count, len(rows.body), capacity),
        fill=make_fill(capacity),
        search=make_search(count),
        interior=make_interior(count),
    )


def row_links(rows: Rows) -> NDArray[np.int64]:
    """Return every pair of bodies that have a row in common, (links, 2)."""
    pairs: set[tuple[int, int]] = set()
    for k in range(rows.used[0]):
        bodies_of_row = [int(b) for b in rows.body[rows.first[k] : rows.first[k + 1]] if b >= 0]
        pairs.update((a, b) for i, a in enumerate(bodies_of_row) for b in bodies_of_row[:i])
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


@compile_uncached
def _solve_cold(pointers, mass, momentum, parent, kinematic, links, work, patience):
    rows, graph, graph_work = load_shared(work.rows, work.graph, work.graph_work)
    factor, fill = load_shared(work.factor, work.fill)
    if order_bodies(parent, kinematic, links, len(links), graph, graph_work) < 0:
        return CAPACITY_EXCEEDED
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        for i in range(6):
            factor.block[k, MOMENTUM + i] = momentum[b, i]
            for j in range(i + 1):
                factor.block[k, MASS + i * (i + 1) // 2 + j] = mass[b, i, j]
    for k in range(rows.used[0]):
        response = 0.0
        for e in range(rows.first[k], rows.first[k + 1]):
            if rows.body[e] >= 0:
                for i in range(6):
                    response += rows.jacobian[e, i] ** 2 / mass[rows.body[e], i, i]
        factor.value[k, MIN_FOLD_SLOPE] = FOLD_SOFTNESS * response
        factor.mark[k, ACTIVE_PIECE] = rows.pieces[k] // 2
    if not list_rows(rows, graph, factor, fill):
        return CAPACITY_EXCEEDED
    switching = init_active_pieces(rows, factor)
    for first in (patience, 0):
        status = newton_by_pointer(pointers, work, switching, first, MAX_ITERATIONS)
        if status != SOLVED or refine_by_pointer(pointers, work) >= 0:
            return status
    return NOT_CONVERGED
