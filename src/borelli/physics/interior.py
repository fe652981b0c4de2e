"""Interior-point search for the segments, for steps on which Newton would change them one at a time.

A chain of N links with stiff saturating drives needs about N Newton iterations; Mehrotra's predictor-corrector needs
about fifteen whatever N. It runs on the same elimination: each sloped piece of a law is a variable x between bounds,
p = p0 + sum_j x_j, with slacks s and multipliers w,

    u + beta_j x_j - c_j = w_lo - w_hi        w_lo (x_j - lo_j) = w_hi (hi_j - x_j) = mu -> 0

whose linearisation is u + theta_j x_j = rhs_j, theta_j = beta_j + w_lo/s_lo + w_hi/s_hi. Pieces of one row act in
parallel, so the row enters the elimination as a single slope: 1/beta = sum_j 1/theta_j. Because a law is monotone, the
pieces fill in their order by themselves. When mu is small each piece is at an end or inside, which names the segment.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.jit import kernel, leaf
from borelli.physics.blocks import DIAGONAL, axpy6, load6, store6
from borelli.physics.elimination import factor_bodies, solve_factored
from borelli.physics.factor import (
    BETA,
    FOLD_ROW,
    FOLDED,
    IMPULSE,
    KIND,
    MASS,
    MODE,
    MOMENTUM,
    OWNER,
    RIGHT,
    SEGMENT,
    SOLUTION,
    SWITCHING,
    C,
    use_segment,
)
from borelli.physics.graph import DIRTY, FOLDS, PLACE
from borelli.physics.rows import MAX_SEGMENTS

ITERATIONS = 60
GAP = 1e-15  # of mu, relative to the velocity scale squared over the median J M^-1 J^T (spec: looser leaves work to Newton)
TO_BOUNDARY = 0.995
SOLVED, NO_PIVOT = 0, 1


# columns of `piece`, by row and segment
X, LO, HI, W_LO, W_HI, THETA, RHS, DX, DW_LO, DW_HI, BASE = range(11)
PIECE_COLUMNS = 11
# columns of `line`, by row
START = 0  # p0
RESPONSE = 1  # J M^-1 J^T
SORTED = 2  # work
LINE_COLUMNS = 3


class Interior(NamedTuple):
    """Work arrays of the interior-point method."""

    piece: NDArray[np.float64]
    """(rows, 5, PIECE_COLUMNS); BASE is the impulse of the row where the piece's x is zero."""
    line: NDArray[np.float64]
    """(rows, LINE_COLUMNS)"""


def make_interior(rows: int) -> Interior:
    """Work arrays for so many rows."""
    return Interior(np.zeros((rows, MAX_SEGMENTS, PIECE_COLUMNS)), np.zeros((rows, LINE_COLUMNS)))


@kernel
def find_segments_by_interior_point(rows, graph, factor, fill, interior, counts, switching):
    """Set every switching row's segment from an interior-point run; a status."""
    node, count = graph.node, graph.count[0]
    block, mark, value, roll = factor.block, factor.mark, factor.value, factor.roll
    piece, line = interior.piece, interior.line
    scale = _velocity_scale(block, count)
    for index in range(switching):
        k = roll[index, SWITCHING]
        line[k, RESPONSE] = _response(rows, node, block, k)
        line[index, SORTED] = line[k, RESPONSE]
    median = np.median(line[:switching, SORTED])
    pieces = _begin(rows, roll, piece, line, switching, scale)
    goal = GAP * scale * scale / median
    for _ in range(ITERATIONS):
        mu = _gap(rows, roll, piece, switching, 0.0)
        if mu < goal * pieces:
            break
        counts[3] += 1
        mean = mu / pieces
        _set_slopes(rows, mark, value, roll, piece, switching)
        _set_targets(rows, value, roll, piece, line, switching, 0.0, False)
        for k in range(count):
            node[k, DIRTY] = 1
        if factor_bodies(rows, graph, factor, fill) < 0:
            return NO_PIVOT
        counts[2] += 1
        _solve(rows, graph, factor, fill)
        _find_changes(rows, value, roll, piece, switching, 0.0, False)
        reach = min(1.0, _reach(rows, roll, piece, switching))
        ahead = _gap(rows, roll, piece, switching, reach)
        sigma = (ahead / mu) ** 3
        _set_targets(rows, value, roll, piece, line, switching, sigma * mean, True)
        _solve(rows, graph, factor, fill)
        _find_changes(rows, value, roll, piece, switching, sigma * mean, True)
        reach = min(1.0, TO_BOUNDARY * _reach(rows, roll, piece, switching))
        _move(rows, roll, piece, switching, reach)
    _choose_segments(rows, mark, value, roll, piece, line, switching)
    for k in range(count):
        node[k, DIRTY] = 1
    return SOLVED


@leaf
def _velocity_scale(block, count):
    largest = 1e-9
    for k in range(count):
        for i in range(6):
            free = block[k, MOMENTUM + i] / block[k, MASS + DIAGONAL[i]]
            largest = max(largest, abs(free), abs(block[k, SOLUTION + i]))
    return largest


@leaf
def _response(rows, node, block, k):
    """J M^-1 J^T of row k with the diagonal of M: a scale, not a solve."""
    total = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            position = node[rows.body[e], PLACE]
            for i in range(6):
                total += rows.jacobian[e, i] ** 2 / block[position, MASS + DIAGONAL[i]]
    return total


@leaf
def _begin(rows, roll, piece, line, switching, scale):
    """Bounds, starting values and products w s = mu of every piece; the number of bounds."""
    bounds = 0
    for index in range(switching):
        k = roll[index, SWITCHING]
        last = rows.segments[k] - 1
        highest, lowest = inf, -inf
        if rows.beta[k, 0] < 0.0:
            highest = rows.c[k, 0]
        if rows.beta[k, last] < 0.0:
            lowest = rows.c[k, last]
        line[k, START] = min(max(0.0, lowest), highest)
        impulse = scale / line[k, RESPONSE]
        mu = scale * impulse
        for s in range(last + 1):
            if rows.beta[k, s] < 0.0:
                continue
            top = inf if s == 0 else rows.break_p[k, s - 1]
            bottom = -inf if s == last else rows.break_p[k, s]
            base = min(max(0.0, bottom), top)
            lo, hi = bottom - base, top - base
            piece[k, s, BASE] = base
            piece[k, s, LO], piece[k, s, HI] = lo, hi
            if lo > -inf and hi < inf:
                width = hi - lo
                x = lo + max(min(max(-lo, 0.1 * width), 0.9 * width), 0.0)
            elif lo > -inf:
                x = max(0.0, lo + impulse)
            elif hi < inf:
                x = min(0.0, hi - impulse)
            else:
                x = 0.0
            piece[k, s, X] = x
            piece[k, s, W_LO] = mu / (x - lo) if lo > -inf else 0.0
            piece[k, s, W_HI] = mu / (hi - x) if hi < inf else 0.0
            bounds += (lo > -inf) + (hi < inf)
    return bounds


@leaf
def _gap(rows, roll, piece, switching, reach):
    """Sum of the products w s after a move of `reach` along the changes."""
    total = 0.0
    for index in range(switching):
        k = roll[index, SWITCHING]
        for s in range(rows.segments[k]):
            if rows.beta[k, s] < 0.0:
                continue
            x = piece[k, s, X]
            w_lo, w_hi = piece[k, s, W_LO], piece[k, s, W_HI]
            if reach > 0.0:
                x += reach * piece[k, s, DX]
                w_lo += reach * piece[k, s, DW_LO]
                w_hi += reach * piece[k, s, DW_HI]
            if piece[k, s, LO] > -inf:
                total += w_lo * (x - piece[k, s, LO])
            if piece[k, s, HI] < inf:
                total += w_hi * (piece[k, s, HI] - x)
    return total


@leaf
def _set_slopes(rows, mark, value, roll, piece, switching):
    for index in range(switching):
        k = roll[index, SWITCHING]
        stiffness = 0.0
        for s in range(rows.segments[k]):
            if rows.beta[k, s] < 0.0:
                continue
            theta = rows.beta[k, s]
            if piece[k, s, LO] > -inf:
                theta += piece[k, s, W_LO] / (piece[k, s, X] - piece[k, s, LO])
            if piece[k, s, HI] < inf:
                theta += piece[k, s, W_HI] / (piece[k, s, HI] - piece[k, s, X])
            piece[k, s, THETA] = theta
            stiffness += 1.0 / theta
        mark[k, MODE] = mark[k, KIND]
        value[k, BETA] = 1.0 / stiffness


@leaf
def _set_targets(rows, value, roll, piece, line, switching, target, corrected):
    for index in range(switching):
        k = roll[index, SWITCHING]
        pull = line[k, START]
        for s in range(rows.segments[k]):
            if rows.beta[k, s] < 0.0:
                continue
            x = piece[k, s, X]
            rhs = rows.c[k, s] - rows.beta[k, s] * piece[k, s, BASE] + (piece[k, s, THETA] - rows.beta[k, s]) * x
            if piece[k, s, LO] > -inf:
                a = piece[k, s, DX] * piece[k, s, DW_LO] if corrected else 0.0
                rhs += (target - a) / (x - piece[k, s, LO])
            if piece[k, s, HI] < inf:
                a = -piece[k, s, DX] * piece[k, s, DW_HI] if corrected else 0.0
                rhs -= (target - a) / (piece[k, s, HI] - x)
            piece[k, s, RHS] = rhs
            pull += rhs / piece[k, s, THETA]
        value[k, C] = pull * value[k, BETA] - rows.offset[k]


@kernel
def _solve(rows, graph, factor, fill):
    node, block, mark, value, roll = graph.node, factor.block, factor.mark, factor.value, factor.roll
    for k in range(graph.count[0]):
        right = load6(block, k, MOMENTUM)
        for index in range(node[k, FOLDS], node[k + 1, FOLDS]):
            row = roll[index, FOLD_ROW]
            if mark[row, MODE] == FOLDED:
                right = axpy6(value[row, C] / value[row, BETA], load6(rows.jacobian, mark[row, OWNER], 0), right)
        store6(block, k, RIGHT, right)
    solve_factored(rows, graph, factor, fill)


@leaf
def _find_changes(rows, value, roll, piece, switching, target, corrected):
    for index in range(switching):
        k = roll[index, SWITCHING]
        u = value[k, C] + rows.offset[k] - value[k, BETA] * value[k, IMPULSE]
        for s in range(rows.segments[k]):
            if rows.beta[k, s] < 0.0:
                continue
            x = piece[k, s, X]
            before = piece[k, s, DX]
            change = (piece[k, s, RHS] - u) / piece[k, s, THETA] - x
            if piece[k, s, LO] > -inf:
                w = piece[k, s, W_LO]
                a = before * piece[k, s, DW_LO] if corrected else 0.0
                piece[k, s, DW_LO] = (target - a - w * change) / (x - piece[k, s, LO]) - w
            if piece[k, s, HI] < inf:
                w = piece[k, s, W_HI]
                a = -before * piece[k, s, DW_HI] if corrected else 0.0
                piece[k, s, DW_HI] = (target - a + w * change) / (piece[k, s, HI] - x) - w
            piece[k, s, DX] = change


@leaf
def _reach(rows, roll, piece, switching):
    """How far along the changes the first slack or multiplier vanishes."""
    reach = 1e300
    for index in range(switching):
        k = roll[index, SWITCHING]
        for s in range(rows.segments[k]):
            if rows.beta[k, s] < 0.0:
                continue
            x, dx = piece[k, s, X], piece[k, s, DX]
            if piece[k, s, LO] > -inf:
                if dx < 0.0:
                    reach = min(reach, (piece[k, s, LO] - x) / dx)
                if piece[k, s, DW_LO] < 0.0:
                    reach = min(reach, -piece[k, s, W_LO] / piece[k, s, DW_LO])
            if piece[k, s, HI] < inf:
                if dx > 0.0:
                    reach = min(reach, (piece[k, s, HI] - x) / dx)
                if piece[k, s, DW_HI] < 0.0:
                    reach = min(reach, -piece[k, s, W_HI] / piece[k, s, DW_HI])
    return reach


@leaf
def _move(rows, roll, piece, switching, reach):
    for index in range(switching):
        k = roll[index, SWITCHING]
        for s in range(rows.segments[k]):
            if rows.beta[k, s] < 0.0:
                continue
            piece[k, s, X] += reach * piece[k, s, DX]
            piece[k, s, W_LO] += reach * piece[k, s, DW_LO]
            piece[k, s, W_HI] += reach * piece[k, s, DW_HI]


@leaf
def _choose_segments(rows, mark, value, roll, piece, line, switching):
    """Walk the pieces by rising u: a piece at its lower end lies behind, at its upper end ahead, else it is the one."""
    for index in range(switching):
        k = roll[index, SWITCHING]
        response = line[k, RESPONSE]
        chosen = rows.segments[k] - 1
        for s in range(rows.segments[k]):
            if rows.beta[k, s] < 0.0:
                continue
            x = piece[k, s, X]
            behind = piece[k, s, LO] > -inf and piece[k, s, W_LO] > (x - piece[k, s, LO]) * response
            if behind:
                continue
            ahead = piece[k, s, HI] < inf and piece[k, s, W_HI] > (piece[k, s, HI] - x) * response
            chosen = s - 1 if ahead and s > 0 and rows.beta[k, s - 1] < 0.0 else s
            break
        mark[k, SEGMENT] = chosen
        use_segment(rows, mark, value, k, chosen)
