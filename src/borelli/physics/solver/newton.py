"""Newton with an exact line search: the impulses and velocities that satisfy every row's law at once.

The step minimises the kinetic distance to the free motion plus each row's piecewise quadratic potential; the optimality
conditions are the mixed LCP of seed 004 (eq. 10 with its bounds). For one choice of segments the minimum is a linear
solve (`elimination`); the search walks over the breakpoints where rows change segments. Impulses are tracked
along the search, never recomputed from velocities: p = (c - u)/beta loses 1e-16/beta of its digits.
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
    BETA,
    CROSSED,
    CROSSING,
    DU,
    FLAT_ROW,
    FLIPS,
    FOLDED,
    FOLDED_RIGHT,
    IMPULSE,
    KIND,
    MASS,
    MODE,
    MOMENTUM,
    P_NOW,
    RIGHT,
    SEGMENT,
    SOLUTION,
    SWITCHING,
    U_NOW,
    VELOCITY,
    C,
    use_segment,
)
from borelli.physics.solver.interior_point import interior_point_by_pointer
from borelli.physics.solver.iterative_refinement import (
    IMPULSE_TOLERANCE,
    move_row,
    push,
    refine_by_pointer,
    row_velocity,
)

# status of a solve
SOLVED, NO_PIVOT, NO_END, NOT_FINITE, TOO_SMALL = 0, 1, 2, 3, 4

VELOCITY_TOLERANCE = 1e-13
# a row on its kink flips for ever by rounding: (flips of every crossing row, gain relative to the kinetic energy)
ENDINGS = ((0, 1e-23), (3, 1e-18), (8, 1e-13))

# what is counted
NEWTON_STEPS, BLOCKS_FACTORED, FACTORISATIONS, INTERIOR_STEPS = 0, 1, 2, 3


class Search(NamedTuple):
    """Work arrays of the line search."""

    event_alpha: NDArray[np.float64]
    """(4 rows,) where along the search a row meets its next break."""
    event_row: NDArray[np.int64]
    """(4 rows,)"""
    heap: NDArray[np.int64]
    """(4 rows,) events, nearest first."""
    counts: NDArray[np.int64]
    """(4,) NEWTON_STEPS, BLOCKS_FACTORED, FACTORISATIONS, INTERIOR_STEPS."""


def make_search(rows: int) -> Search:
    """Work arrays for so many rows."""
    return Search(
        event_alpha=np.zeros(4 * rows),
        event_row=np.zeros(4 * rows, np.int64),
        heap=np.zeros(4 * rows, np.int64),
        counts=np.zeros(4, np.int64),
    )


@kernel_function
def begin_segments(rows, factor):
    """Put every present row on its warm-start segment; the number of rows that can switch."""
    mark, value, roll = factor.mark, factor.value, factor.roll
    switching = 0
    for k in range(rows.used[0]):
        if mark[k, KIND] == ABSENT:
            value[k, IMPULSE] = 0.0
            mark[k, SEGMENT] = 0
            continue
        count = rows.segments[k]
        if mark[k, SEGMENT] >= count:
            mark[k, SEGMENT] = count - 1
        use_segment(rows, mark, value, k, mark[k, SEGMENT])
        if count > 1 or mark[k, MODE] == FLAT_ROW:
            roll[switching, SWITCHING] = k
            mark[k, FLIPS] = 0
            value[k, CROSSED] = -1.0
            switching += 1
    return switching


@kernel_function
def solve_piece(pointers, rows_at, graph_at, factor_at, fill_at, counts, switching):
    """Velocities and impulses of the present segments; False when a pivot is missing."""
    rows, graph, factor = load_shared(rows_at, graph_at, factor_at)
    node, block, mark, value, roll = graph.node, factor.block, factor.mark, factor.value, factor.roll
    factored = factor_bodies_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at)
    if factored < 0:
        return False
    counts[BLOCKS_FACTORED] += factored
    counts[FACTORISATIONS] += factored > 0
    for k in range(graph.count[0]):
        store6(block, k, RIGHT, axpy6(1.0, load6(block, k, MOMENTUM), load6(block, k, FOLDED_RIGHT)))
    for index in range(switching):
        k = roll[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            q = value[k, C]
            value[k, IMPULSE] = q
            if q != 0.0:
                push(rows, node, block, k, q)
    solve_factored_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at)
    return True


solve_piece_by_pointer = by_pointer(solve_piece)


@inline
def find_crossings(rows, node, block, mark, value, roll, switching):
    """Compare the candidate with each row's segment; the number of rows beyond it. Fills DU."""
    crossing = 0
    for index in range(switching):
        k = roll[index, SWITCHING]
        s = mark[k, SEGMENT]
        if mark[k, MODE] == FLAT_ROW:
            x = row_velocity(rows, node, block, SOLUTION, k)
            value[k, DU] = x - value[k, U_NOW]
            slack = VELOCITY_TOLERANCE * (1.0 + abs(x))
            beyond = (s > 0 and x < rows.break_u[k, s - 1] - slack) or (
                s < rows.segments[k] - 1 and x > rows.break_u[k, s] + slack
            )
        else:
            x = value[k, IMPULSE]
            value[k, DU] = value[k, BETA] * (value[k, P_NOW] - x)
            slack = IMPULSE_TOLERANCE * (1.0 + abs(x))
            beyond = (s > 0 and x > rows.break_p[k, s - 1] + slack) or (
                s < rows.segments[k] - 1 and x < rows.break_p[k, s] - slack
            )
        if beyond:
            roll[crossing, CROSSING] = k
            crossing += 1
    return crossing


@inline
def accept_candidate(rows, node, block, mark, value, column, roll, switching, count):
    """Take the candidate as it is and move each row to the segment in which its velocity lies."""
    for k in range(count):
        store6(block, k, VELOCITY, load6(block, k, SOLUTION))
    for k in range(rows.used[0]):
        if rows.segments[k] == 1:
            value[k, P_NOW] = value[k, IMPULSE]
    for index in range(switching):
        k = roll[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            u = row_velocity(rows, node, block, SOLUTION, k)
        else:
            u = rows.c[k, mark[k, SEGMENT]] - value[k, BETA] * value[k, IMPULSE]
        s = 0
        while s < rows.segments[k] - 1 and u > rows.break_u[k, s]:
            s += 1
        value[k, U_NOW] = u
        value[k, P_NOW] = value[k, IMPULSE]
        if s != mark[k, SEGMENT]:
            move_row(rows, node, mark, value, column, k, s)
            value[k, P_NOW] = rows.c[k, s] if rows.beta[k, s] < 0.0 else (rows.c[k, s] - u) / rows.beta[k, s]


@inline
def gain(rows, block, mark, value, roll, switching, count):
    """Minus the slope of the objective towards the candidate, d^T M d + sum (p - p')(u' - u); every term >= 0."""
    g = 0.0
    for k in range(count):
        d = axpy6(-1.0, load6(block, k, VELOCITY), load6(block, k, SOLUTION))
        g += dot6(d, multiply6(load21(block, k, MASS), d))
    for index in range(switching):
        k = roll[index, SWITCHING]
        if mark[k, MODE] != FLAT_ROW:
            g += (value[k, P_NOW] - value[k, IMPULSE]) * value[k, DU]
    for k in range(rows.used[0]):
        if rows.segments[k] == 1 and mark[k, MODE] >= FOLDED:
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
def _collect_events(rows, mark, value, roll, search, crossing):
    """Where each crossing row meets its breaks, as a list of events."""
    events = 0
    for index in range(crossing):
        k = roll[index, CROSSING]
        du = value[k, DU]
        s = mark[k, SEGMENT]
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
            if (rising and s == rows.segments[k] - 1) or (not rising and s == 0):
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
def _walk(rows, node, mark, value, column, search, events, g):
    """Walk over the events until the slope of the objective vanishes; the step alpha. Moves the rows that cross."""
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
        # the first event is always taken, so that every iteration changes a segment
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
        move_row(rows, node, mark, value, column, k, mark[k, SEGMENT] + (1 if du > 0.0 else -1))
        if mark[k, MODE] != FLAT_ROW:
            curvature += du * du / value[k, BETA]
        value[k, CROSSED] = alpha
        mark[k, FLIPS] += 1
        curvature = max(curvature, 0.0)
    if slope < 0.0:
        alpha = min(1.0, alpha - slope / curvature) if curvature > 0.0 else 1.0
    return alpha


@inline
def _advance(rows, block, mark, value, roll, switching, count, alpha):
    """Move velocities and impulses by alpha towards the candidate, following each row's law."""
    for k in range(count):
        now = load6(block, k, VELOCITY)
        store6(block, k, VELOCITY, axpy6(alpha, axpy6(-1.0, now, load6(block, k, SOLUTION)), now))
    for index in range(switching):
        k = roll[index, SWITCHING]
        s, du, at = mark[k, SEGMENT], value[k, DU], value[k, CROSSED]
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
        if rows.segments[k] == 1:
            value[k, P_NOW] += alpha * (value[k, IMPULSE] - value[k, P_NOW])


@inline
def _ends(mark, roll, crossing, g, energy):
    fewest = mark[roll[0, CROSSING], FLIPS]
    for index in range(1, crossing):
        fewest = min(fewest, mark[roll[index, CROSSING], FLIPS])
    return (
        g <= ENDINGS[0][1] * energy
        or (fewest >= ENDINGS[1][0] and g <= ENDINGS[1][1] * energy)
        or (fewest >= ENDINGS[2][0] and g <= ENDINGS[2][1] * energy)
    )


@kernel_function
def newton(pointers, rows_at, graph_at, factor_at, fill_at, search_at, interior_at, switching, patience, cap):
    """Solve the rows from the segments at hand; a status. The answer is in SOLUTION and IMPULSE.

    After `patience` iterations the interior-point method finds the segments, and Newton goes on from those.
    """
    rows, graph, factor, search = load_shared(rows_at, graph_at, factor_at, search_at)
    node, count, counts = graph.node, graph.count[0], search.counts
    block, mark, value, roll, column = factor.block, factor.mark, factor.value, factor.roll, factor.column
    for iteration in range(cap):
        counts[NEWTON_STEPS] += 1
        if iteration == patience:
            interior_point_by_pointer(
                pointers, rows_at, graph_at, factor_at, fill_at, interior_at, counts, switching
            )  # fmt: skip
        else:
            if not solve_piece(pointers, rows_at, graph_at, factor_at, fill_at, counts, switching):
                return NO_PIVOT
            crossing = find_crossings(rows, node, block, mark, value, roll, switching)
            if crossing == 0:
                return SOLVED
            if iteration == 0 or iteration == patience + 1:
                accept_candidate(rows, node, block, mark, value, column, roll, switching, count)
                continue
            g = gain(rows, block, mark, value, roll, switching, count)
            if not g < np.inf:
                return NOT_FINITE
            if not _ends(mark, roll, crossing, g, _energy(block, count)):
                events = _collect_events(rows, mark, value, roll, search, crossing)
                alpha = _walk(rows, node, mark, value, column, search, events, g)
                _advance(rows, block, mark, value, roll, switching, count, alpha)
                continue
        # all but solved: the interior point is done, or rows flip on their kinks by rounding
        used = refine_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at)
        if used >= 0:
            counts[FACTORISATIONS] += used
            counts[BLOCKS_FACTORED] += used * count
            return SOLVED
        # it was not: let the interior point try if it has not, else start anew from the present segments
        patience = iteration + 1 if iteration < patience else iteration
    return NO_END


newton_by_pointer = by_pointer(newton)
