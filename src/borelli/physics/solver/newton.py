"""Newton with exact line search: the impulses and velocities that satisfy every row's law at once.

The step minimizes the kinetic distance to the free motion plus each row's piecewise quadratic potential; the optimality
conditions are the mixed linear complementarity problem of Liu, Cooper and Ballard (eq. 10 with its bounds). For one
choice of pieces the minimum is a linear solve (`elimination`); the line search passes the breakpoints where rows change
pieces. Impulses are tracked along the search, never recomputed from velocities: p = (c - u)/beta loses 1e-16/beta of
its digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import DIAGONAL, axpy6, dot6, load6, load21, multiply6, store6
from borelli.physics.solver.elimination import factor_bodies_by_pointer, solve_factored_by_pointer
from borelli.physics.solver.factor_arrays import (
    ABSENT,
    ACTIVE_PIECE,
    BETA,
    BLOCKS_FACTORED,
    CROSSED,
    CROSSING,
    DU,
    FACTORIZATIONS,
    FLAT_ROW,
    FLIPS,
    FOLDED,
    FOLDED_RIGHT,
    IMPULSE,
    KIND,
    MASS,
    MODE,
    MOMENTUM,
    NEWTON_STEPS,
    P_NOW,
    RIGHT,
    SOLUTION,
    SWITCHING,
    U_NOW,
    VELOCITY,
    C,
    use_piece,
)
from borelli.physics.solver.interior_point import interior_point_by_pointer
from borelli.physics.solver.iterative_refinement import (
    IMPULSE_TOLERANCE,
    apply_impulse,
    refine_by_pointer,
    row_velocity,
    switch_piece,
)

# status of a solve
SOLVED, NO_PIVOT, NOT_CONVERGED, NOT_FINITE, CAPACITY_EXCEEDED = 0, 1, 2, 3, 4

NEWTON_BEFORE_INTERIOR_POINT = 15
"""Newton iterations before the interior-point method takes over."""
MAX_NEWTON_ITERATIONS = 200
"""Newton iterations in all."""
VELOCITY_TOLERANCE = 1e-13
# a row on its kink flips forever by rounding: (flips of every crossing row, decrease relative to the kinetic energy)
STOPPING_RULES = ((0, 1e-23), (3, 1e-18), (8, 1e-13))


class Search(NamedTuple):
    """Work arrays of the line search."""

    event_alpha: NDArray[np.float64]
    """(4 rows,) step length at which a row meets its next break."""
    event_row: NDArray[np.int64]
    """(4 rows,)"""
    heap: NDArray[np.int64]
    """(4 rows,) events, nearest first."""
    counts: NDArray[np.int64]
    """(4,) NEWTON_STEPS, BLOCKS_FACTORED, FACTORIZATIONS, INTERIOR_STEPS."""


def make_search(rows: int) -> Search:
    """Return work arrays for so many rows."""
    return Search(
        event_alpha=np.zeros(4 * rows),
        event_row=np.zeros(4 * rows, np.int64),
        heap=np.zeros(4 * rows, np.int64),
        counts=np.zeros(4, np.int64),
    )


@kernel_function
def init_active_pieces(rows, factor):
    """Set every present row to its warm-start piece; return the number of rows that can switch."""
    rows, factor = load_shared(rows, factor)
    mark, value, row_list = factor.mark, factor.value, factor.row_list
    switching = 0
    for k in range(rows.used[0]):
        if mark[k, KIND] == ABSENT:
            value[k, IMPULSE] = 0.0
            mark[k, ACTIVE_PIECE] = 0
            continue
        count = rows.pieces[k]
        if mark[k, ACTIVE_PIECE] >= count:
            mark[k, ACTIVE_PIECE] = count - 1
        use_piece(rows, mark, value, k, mark[k, ACTIVE_PIECE])
        if count > 1 or mark[k, MODE] == FLAT_ROW:
            row_list[switching, SWITCHING] = k
            mark[k, FLIPS] = 0
            value[k, CROSSED] = -1.0
            switching += 1
    return switching


@kernel_function
def solve_active_pieces(pointers, work, switching):
    """Compute velocities and impulses for the active pieces; return False without a pivot."""
    rows, graph, factor = load_shared(work.rows, work.graph, work.factor)
    node, block, mark, value, row_list = graph.node, factor.block, factor.mark, factor.value, factor.row_list
    counts = work.search.counts
    factored = factor_bodies_by_pointer(pointers, work)
    if factored < 0:
        return False
    counts[BLOCKS_FACTORED] += factored
    counts[FACTORIZATIONS] += factored > 0
    for k in range(graph.count[0]):
        store6(block, k, RIGHT, axpy6(1.0, load6(block, k, MOMENTUM), load6(block, k, FOLDED_RIGHT)))
    for index in range(switching):
        k = row_list[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            q = value[k, C]
            value[k, IMPULSE] = q
            if q != 0.0:
                apply_impulse(rows, node, block, k, q)
    solve_factored_by_pointer(pointers, work)
    return True


solve_active_pieces_by_pointer = by_pointer(solve_active_pieces)


@inline
def find_crossings(rows, node, block, mark, value, row_list, switching):
    """Compare the candidate with each row's active piece; return the number of rows beyond it. Fills DU."""
    crossing = 0
    for index in range(switching):
        k = row_list[index, SWITCHING]
        s = mark[k, ACTIVE_PIECE]
        if mark[k, MODE] == FLAT_ROW:
            x = row_velocity(rows, node, block, SOLUTION, k)
            value[k, DU] = x - value[k, U_NOW]
            slack = VELOCITY_TOLERANCE * (1.0 + abs(x))
            beyond = (s > 0 and x < rows.break_u[k, s - 1] - slack) or (
                s < rows.pieces[k] - 1 and x > rows.break_u[k, s] + slack
            )
        else:
            x = value[k, IMPULSE]
            value[k, DU] = value[k, BETA] * (value[k, P_NOW] - x)
            slack = IMPULSE_TOLERANCE * (1.0 + abs(x))
            beyond = (s > 0 and x > rows.break_p[k, s - 1] + slack) or (
                s < rows.pieces[k] - 1 and x < rows.break_p[k, s] - slack
            )
        if beyond:
            row_list[crossing, CROSSING] = k
            crossing += 1
    return crossing


@inline
def accept_candidate(rows, node, block, mark, value, column, row_list, switching, count):
    """Make the candidate the iterate and switch each row to the piece of its velocity."""
    for k in range(count):
        store6(block, k, VELOCITY, load6(block, k, SOLUTION))
    for k in range(rows.used[0]):
        if rows.pieces[k] == 1:
            value[k, P_NOW] = value[k, IMPULSE]
    for index in range(switching):
        k = row_list[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            u = row_velocity(rows, node, block, SOLUTION, k)
        else:
            u = rows.c[k, mark[k, ACTIVE_PIECE]] - value[k, BETA] * value[k, IMPULSE]
        s = 0
        while s < rows.pieces[k] - 1 and u > rows.break_u[k, s]:
            s += 1
        value[k, U_NOW] = u
        value[k, P_NOW] = value[k, IMPULSE]
        if s != mark[k, ACTIVE_PIECE]:
            switch_piece(rows, node, mark, value, column, k, s)
            value[k, P_NOW] = rows.c[k, s] if rows.beta[k, s] < 0.0 else (rows.c[k, s] - u) / rows.beta[k, s]


@inline
def expected_decrease(rows, block, mark, value, row_list, switching, count):
    """Return minus the slope of the objective to the candidate, d^T M d + sum (p - p')(u' - u); all terms >= 0."""
    g = 0.0
    for k in range(count):
        d = axpy6(-1.0, load6(block, k, VELOCITY), load6(block, k, SOLUTION))
        g += dot6(d, multiply6(load21(block, k, MASS), d))
    for index in range(switching):
        k = row_list[index, SWITCHING]
        if mark[k, MODE] != FLAT_ROW:
            g += (value[k, P_NOW] - value[k, IMPULSE]) * value[k, DU]
    for k in range(rows.used[0]):
        if rows.pieces[k] == 1 and mark[k, MODE] >= FOLDED:
            dp = value[k, P_NOW] - value[k, IMPULSE]
            g += value[k, BETA] * dp * dp
    return g


@inline
def _energy(block, count):
    total = 0.0
    for k in range(count):
        for i in range(6):
            v = max(abs(block[k, SOLUTION + i]), abs(block[k, VELOCITY + i]))
            total += block[k, MASS + DIAGONAL[i]] * v * v
    return total


@inline
def _collect_events(rows, mark, value, row_list, search, crossing):
    """List as events where each crossing row meets its breaks; return their number."""
    events = 0
    for index in range(crossing):
        k = row_list[index, CROSSING]
        du = value[k, DU]
        s = mark[k, ACTIVE_PIECE]
        rising = du > 0.0
        b = s if rising else s - 1
        if mark[k, MODE] == FLAT_ROW:
            alpha = (rows.break_u[k, b] - value[k, U_NOW]) / du
        else:
            alpha = (rows.break_p[k, b] - value[k, P_NOW]) / (value[k, IMPULSE] - value[k, P_NOW])
        alpha = max(alpha, 0.0)
        while alpha <= 1.0:
            search.event_alpha[events] = alpha
            search.event_row[events] = k
            events += 1
            s += 1 if rising else -1
            if (rising and s == rows.pieces[k] - 1) or (not rising and s == 0):
                break
            if rows.beta[k, s] < 0.0:
                length = abs(rows.break_u[k, s] - rows.break_u[k, s - 1])
            else:
                length = rows.beta[k, s] * abs(rows.break_p[k, s] - rows.break_p[k, s - 1])
            alpha += length / abs(du)
    return events


@kernel_function
def _sift_down(heap, alpha, start, size):
    root = start
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        a, b = heap[child], heap[min(child + 1, size - 1)]
        if alpha[b] < alpha[a] or (alpha[b] == alpha[a] and b < a):
            child += 1
        a, b = heap[root], heap[child]
        if not (alpha[b] < alpha[a] or (alpha[b] == alpha[a] and b < a)):
            return
        heap[root], heap[child] = b, a
        root = child


@inline
def _line_search(rows, node, mark, value, column, search, events, g):
    """Pass events until the slope of the objective vanishes; switch the rows that cross. Return the step alpha."""
    heap, event_alpha = search.heap, search.event_alpha
    for i in range(events):
        heap[i] = i
    for i in range(events // 2):
        _sift_down(heap, event_alpha, events // 2 - 1 - i, events)
    slope, curvature, alpha = -g, g, 0.0
    size = events
    while size > 0:
        event = heap[0]
        rise = curvature * (event_alpha[event] - alpha)
        # the first event is always passed, so that every iteration changes a piece
        if slope + rise >= 0.0 and size < events:
            break
        slope += rise
        alpha = event_alpha[event]
        size -= 1
        heap[0] = heap[size]
        _sift_down(heap, event_alpha, 0, size)
        k = search.event_row[event]
        du = value[k, DU]
        if mark[k, MODE] != FLAT_ROW:
            curvature -= du * du / value[k, BETA]
        switch_piece(rows, node, mark, value, column, k, mark[k, ACTIVE_PIECE] + (1 if du > 0.0 else -1))
        if mark[k, MODE] != FLAT_ROW:
            curvature += du * du / value[k, BETA]
        value[k, CROSSED] = alpha
        mark[k, FLIPS] += 1
        curvature = max(curvature, 0.0)
    if slope < 0.0:
        alpha = min(1.0, alpha - slope / curvature) if curvature > 0.0 else 1.0
    return alpha


@inline
def _advance(rows, block, mark, value, row_list, switching, count, alpha):
    """Move velocities and impulses by alpha towards the candidate, following each row's law."""
    for k in range(count):
        now = load6(block, k, VELOCITY)
        store6(block, k, VELOCITY, axpy6(alpha, axpy6(-1.0, now, load6(block, k, SOLUTION)), now))
    for index in range(switching):
        k = row_list[index, SWITCHING]
        s, du, at = mark[k, ACTIVE_PIECE], value[k, DU], value[k, CROSSED]
        value[k, U_NOW] += alpha * du
        if at < 0.0:
            value[k, P_NOW] += alpha * (value[k, IMPULSE] - value[k, P_NOW])
            continue
        value[k, CROSSED] = -1.0
        if mark[k, MODE] == FLAT_ROW:
            value[k, P_NOW] = rows.c[k, s]
        else:
            entered = rows.break_p[k, s - 1 if du > 0.0 else s]
            value[k, P_NOW] = entered - (alpha - at) * du / value[k, BETA]
    for k in range(rows.used[0]):
        if rows.pieces[k] == 1:
            value[k, P_NOW] += alpha * (value[k, IMPULSE] - value[k, P_NOW])


@inline
def _has_converged(mark, row_list, crossing, g, energy):
    fewest = mark[row_list[0, CROSSING], FLIPS]
    for index in range(1, crossing):
        fewest = min(fewest, mark[row_list[index, CROSSING], FLIPS])
    return (
        g <= STOPPING_RULES[0][1] * energy
        or (fewest >= STOPPING_RULES[1][0] and g <= STOPPING_RULES[1][1] * energy)
        or (fewest >= STOPPING_RULES[2][0] and g <= STOPPING_RULES[2][1] * energy)
    )


@kernel_function
def newton(pointers, work, switching, patience, cap):
    """Solve the rows from the active pieces; return a status. The result is in SOLUTION and IMPULSE.

    After `patience` iterations the interior-point method finds the pieces, and Newton continues from those.
    """
    rows, graph, factor, search = load_shared(work.rows, work.graph, work.factor, work.search)
    node, count, counts = graph.node, graph.count[0], search.counts
    block, mark, value, row_list, column = factor.block, factor.mark, factor.value, factor.row_list, factor.column
    for iteration in range(cap):
        counts[NEWTON_STEPS] += 1
        if iteration == patience:
            interior_point_by_pointer(pointers, work, switching)
        else:
            if not solve_active_pieces(pointers, work, switching):
                return NO_PIVOT
            crossing = find_crossings(rows, node, block, mark, value, row_list, switching)
            if crossing == 0:
                return SOLVED
            if iteration == 0 or iteration == patience + 1:
                accept_candidate(rows, node, block, mark, value, column, row_list, switching, count)
                continue
            g = expected_decrease(rows, block, mark, value, row_list, switching, count)
            if not g < np.inf:
                return NOT_FINITE
            if not _has_converged(mark, row_list, crossing, g, _energy(block, count)):
                events = _collect_events(rows, mark, value, row_list, search, crossing)
                alpha = _line_search(rows, node, mark, value, column, search, events, g)
                _advance(rows, block, mark, value, row_list, switching, count, alpha)
                continue
        # nearly solved: the interior point is done, or rows flip on their kinks by rounding
        used = refine_by_pointer(pointers, work)
        if used >= 0:
            counts[FACTORIZATIONS] += used
            counts[BLOCKS_FACTORED] += used * count
            return SOLVED
        # it was not: try the interior point if not done yet, else restart from the active pieces
        patience = iteration + 1 if iteration < patience else iteration
    return NOT_CONVERGED


newton_by_pointer = by_pointer(newton)
