"""Interior-point search for the segments, for steps on which Newton would change them one at a time.

A chain of N links with stiff saturating drives needs about N Newton iterations; Mehrotra's predictor-corrector needs
about fifteen whatever N. It runs on the same elimination: each sloped piece of a law is a variable x between bounds,
p = p0 + sum_j x_j, with slacks s and multipliers w,

    u + beta_j x_j - c_j = w_lo - w_hi        w_lo s_lo = w_hi s_hi = mu -> 0

whose linearisation is theta_j dx_j = e_j - du, theta_j = beta_j + w_lo/s_lo + w_hi/s_hi. Pieces of one row act in
parallel, so the row enters the elimination as a single slope: 1/beta = sum_j 1/theta_j. Because a law is monotone, the
pieces fill in their order by themselves. When mu is small each piece is at an end or inside, which names the segment.

Every iteration solves for changes, from fresh residuals, and slacks are kept as such: s = x - lo would lose them at
1e-16 of x, and rows exactly on a kink, where w and s vanish together like the root of mu, need far smaller ones.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.rows.rows import MAX_SEGMENTS
from borelli.physics.solver.blocks import DIAGONAL, axpy6, load6, store6
from borelli.physics.solver.elimination import factor_bodies_by_pointer, solve_factored_by_pointer
from borelli.physics.solver.elimination_order import DIRTY
from borelli.physics.solver.factor_arrays import (
    BETA,
    FLAT_ROW,
    IMPULSE,
    KIND,
    MASS,
    MODE,
    MOMENTUM,
    P_NOW,
    SEGMENT,
    SOLUTION,
    SWITCHING,
    U_NOW,
    VELOCITY,
    C,
    use_segment,
)
from borelli.physics.solver.iterative_refinement import load_residuals, load_row, response, row_velocity

ITERATIONS = 100
GAP = 1e-15
"""Of mu, relative to the velocity scale squared over a typical J M^-1 J^T (spec: looser leaves work to Newton)."""
LAST_GAP = 1e-24
"""Where to stop though some row is not clearly on one side of its kink; its slack is then 1e-12 of the others."""
SLOW = 0.5
"""Ratio of two successive mu below GAP at which rounding has the upper hand."""
CLEAR = 1e3
"""Ratio of multiplier to slack (in units of J M^-1 J^T) that names a side."""
NEAR = 1e-11
"""Slack, relative to the velocity scale, below which a row is put on the break."""
TO_BOUNDARY = 0.995

# columns of `piece`, by row and segment; a bound that is not there has an infinite slack and no multiplier
X, S_LO, S_HI, W_LO, W_HI, THETA, E, DX, DW_LO, DW_HI, BASE = range(11)
PIECE_COLUMNS = 11
# columns of `line`, by row
RESPONSE = 0  # J M^-1 J^T
LINE_COLUMNS = 1


class Interior(NamedTuple):
    """Work arrays of the interior-point method."""

    piece: NDArray[np.float64]
    """(rows, 5, PIECE_COLUMNS); BASE is the impulse of the row where the piece's x is zero; THETA 0: not a variable."""
    line: NDArray[np.float64]
    """(rows, LINE_COLUMNS)"""


def make_interior(rows: int) -> Interior:
    """Work arrays for so many rows."""
    return Interior(np.zeros((rows, MAX_SEGMENTS, PIECE_COLUMNS)), np.zeros((rows, LINE_COLUMNS)))


@kernel_function
def find_segments_by_interior_point(pointers, rows_at, graph_at, factor_at, fill_at, interior_at, counts, switching):
    """Set every switching row's segment from an interior-point run, whose answer is left in SOLUTION and IMPULSE."""
    rows, graph, factor, interior = load_shared(rows_at, graph_at, factor_at, interior_at)
    node, count = graph.node, graph.count[0]
    block, mark, value, roll = factor.block, factor.mark, factor.value, factor.roll
    piece, line = interior.piece, interior.line
    total = 0.0
    for index in range(switching):
        k = roll[index, SWITCHING]
        size = response(rows, node, block, k)
        line[k, RESPONSE] = size if size > 0.0 else 1.0
        total += log(line[k, RESPONSE])
    typical = exp(total / switching)
    bounds = _begin(rows, mark, value, roll, piece, line, switching, _free_speed(block, count))
    lacking, before = 1.0, inf
    for _ in range(ITERATIONS):
        mu = _gap(rows, roll, piece, switching, 0.0)
        unit = _speed(block, count) ** 2 / typical * bounds
        if not LAST_GAP * unit < mu < inf:
            break
        small = mu < GAP * unit and lacking < NEAR
        if small and (mu > SLOW * before or _clear(rows, roll, piece, line, switching)):
            break
        before = mu
        counts[3] += 1
        _set_slopes(rows, mark, value, roll, piece, switching)
        for k in range(count):
            node[k, DIRTY] = 1
        if factor_bodies_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at) < 0:
            break
        counts[2] += 1
        target, reach = 0.0, 0.0
        for corrector in range(2):
            load_residuals(rows, graph, factor)
            _load_targets(rows, node, block, mark, value, roll, piece, switching, target, corrector > 0)
            solve_factored_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at)
            _find_changes(rows, node, block, mark, value, roll, piece, line, switching)
            reach = _reach(rows, roll, piece, switching)
            if corrector == 0:
                ahead = _gap(rows, roll, piece, switching, min(1.0, reach))
                target = (ahead / mu) ** 3 * mu / bounds
        reach = min(1.0, TO_BOUNDARY * reach)
        _move(rows, mark, value, roll, piece, switching, reach)
        lacking *= 1.0 - reach
        for k in range(count):
            store6(block, k, VELOCITY, axpy6(reach, load6(block, k, SOLUTION), load6(block, k, VELOCITY)))
        for k in range(rows.used[0]):
            if rows.segments[k] == 1 and mark[k, MODE] != FLAT_ROW:
                value[k, P_NOW] += reach * value[k, IMPULSE]
    _choose_segments(rows, mark, value, roll, piece, line, switching, _speed(block, count))
    for k in range(count):
        store6(block, k, SOLUTION, load6(block, k, VELOCITY))
        node[k, DIRTY] = 1
    for k in range(rows.used[0]):
        if rows.segments[k] == 1:
            use_segment(rows, mark, value, k, 0)
        value[k, IMPULSE] = value[k, C] if mark[k, MODE] == FLAT_ROW else value[k, P_NOW]


interior_point_by_pointer = by_pointer(find_segments_by_interior_point)


@inline
def _speed(block, count):
    """The largest velocity."""
    largest = 1e-9
    for k in range(count):
        for i in range(6):
            largest = max(largest, abs(block[k, VELOCITY + i]))
    return largest


@inline
def _free_speed(block, count):
    """The largest velocity, now or without rows."""
    largest = _speed(block, count)
    for k in range(count):
        for i in range(6):
            largest = max(largest, abs(block[k, MOMENTUM + i] / block[k, MASS + DIAGONAL[i]]))
    return largest


@inline
def _begin(rows, mark, value, roll, piece, line, switching, scale):
    """Slacks, starting values and products w s = mu of every piece; the number of bounds.

    A row all of whose pieces are closed (friction without load) stays flat.
    """
    bounds = 0
    for index in range(switching):
        k = roll[index, SWITCHING]
        last = rows.segments[k] - 1
        highest, lowest = inf, -inf
        if rows.beta[k, 0] < 0.0:
            highest = rows.c[k, 0]
        if rows.beta[k, last] < 0.0:
            lowest = rows.c[k, last]
        p = min(max(0.0, lowest), highest)
        impulse = scale / line[k, RESPONSE]
        mu = scale * impulse
        mark[k, MODE] = FLAT_ROW
        for s in range(last + 1):
            top = inf if s == 0 else rows.break_p[k, s - 1]
            bottom = -inf if s == last else rows.break_p[k, s]
            piece[k, s, THETA] = 0.0
            if rows.beta[k, s] < 0.0 or not top > bottom:
                continue
            base = min(max(0.0, bottom), top)
            lo, hi = bottom - base, top - base
            if lo > -inf and hi < inf:
                width = hi - lo
                x = lo + max(min(max(-lo, 0.1 * width), 0.9 * width), 0.0)
            elif lo > -inf:
                x = max(0.0, lo + impulse)
            elif hi < inf:
                x = min(0.0, hi - impulse)
            else:
                x = 0.0
            piece[k, s, BASE] = base
            piece[k, s, X] = x
            piece[k, s, S_LO], piece[k, s, S_HI] = x - lo, hi - x
            piece[k, s, W_LO], piece[k, s, W_HI] = mu / (x - lo), mu / (hi - x)
            piece[k, s, THETA] = 1.0
            mark[k, MODE] = mark[k, KIND]
            bounds += (lo > -inf) + (hi < inf)
            p += x
        value[k, P_NOW] = p
    return max(bounds, 1)


@inline
def _gap(rows, roll, piece, switching, reach):
    """Sum of the products w s after a move of `reach` along the changes."""
    total = 0.0
    for index in range(switching):
        k = roll[index, SWITCHING]
        for s in range(rows.segments[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            dx = reach * piece[k, s, DX]
            if piece[k, s, S_LO] < inf:
                total += (piece[k, s, W_LO] + reach * piece[k, s, DW_LO]) * (piece[k, s, S_LO] + dx)
            if piece[k, s, S_HI] < inf:
                total += (piece[k, s, W_HI] + reach * piece[k, s, DW_HI]) * (piece[k, s, S_HI] - dx)
    return total


@inline
def _clear(rows, roll, piece, line, switching):
    """Whether every bound is clearly met or clearly free."""
    for index in range(switching):
        k = roll[index, SWITCHING]
        for s in range(rows.segments[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            lo = piece[k, s, W_LO] / (piece[k, s, S_LO] * line[k, RESPONSE])
            hi = piece[k, s, W_HI] / (piece[k, s, S_HI] * line[k, RESPONSE])
            if 1.0 / CLEAR < lo < CLEAR or 1.0 / CLEAR < hi < CLEAR:
                return False
    return True


@inline
def _set_slopes(rows, mark, value, roll, piece, switching):
    for index in range(switching):
        k = roll[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            continue
        stiffness = 0.0
        for s in range(rows.segments[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            theta = rows.beta[k, s] + piece[k, s, W_LO] / piece[k, s, S_LO] + piece[k, s, W_HI] / piece[k, s, S_HI]
            piece[k, s, THETA] = theta
            stiffness += 1.0 / theta
        value[k, BETA] = 1.0 / stiffness


@inline
def _load_targets(rows, node, block, mark, value, roll, piece, switching, target, corrected):
    """Right sides of the rows for changes that lead to w s = target; `corrected` by the product of the last changes."""
    for index in range(switching):
        k = roll[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            continue
        pull = 0.0
        for s in range(rows.segments[k]):
            theta = piece[k, s, THETA]
            if theta == 0.0:
                continue
            e = rows.c[k, s] - value[k, U_NOW] - rows.beta[k, s] * (piece[k, s, BASE] + piece[k, s, X])
            at_lo, at_hi = target, target
            if corrected:
                at_lo -= piece[k, s, DX] * piece[k, s, DW_LO]
                at_hi += piece[k, s, DX] * piece[k, s, DW_HI]
            # for _find_changes: the multipliers that a piece which stays in place would get
            piece[k, s, DW_LO], piece[k, s, DW_HI] = at_lo / piece[k, s, S_LO], at_hi / piece[k, s, S_HI]
            e += piece[k, s, DW_LO] - piece[k, s, DW_HI]
            piece[k, s, E] = e
            pull += e / theta
        load_row(rows, node, block, mark, value, k, pull * value[k, BETA])


@inline
def _find_changes(rows, node, block, mark, value, roll, piece, line, switching):
    """Changes of each piece from those of velocities and impulses."""
    for index in range(switching):
        k = roll[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            continue
        dp = value[k, IMPULSE]
        stiff = value[k, BETA] < line[k, RESPONSE]
        if stiff:
            du = value[k, C] - value[k, BETA] * dp
        else:
            du = row_velocity(rows, node, block, SOLUTION, k) - rows.offset[k]
        stiffest = -1
        for s in range(rows.segments[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            piece[k, s, DX] = (piece[k, s, E] - du) / piece[k, s, THETA]
            dp -= piece[k, s, DX]
            if stiffest < 0 or piece[k, s, THETA] < piece[k, stiffest, THETA]:
                stiffest = s
        # e and du nearly cancel on a stiff piece; the impulse is the better known
        if stiff:
            piece[k, stiffest, DX] += dp
        for s in range(rows.segments[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            dx, w_lo, w_hi = piece[k, s, DX], piece[k, s, W_LO], piece[k, s, W_HI]
            piece[k, s, DW_LO] -= w_lo + w_lo * dx / piece[k, s, S_LO]
            piece[k, s, DW_HI] -= w_hi - w_hi * dx / piece[k, s, S_HI]


@inline
def _reach(rows, roll, piece, switching):
    """How far along the changes the first slack or multiplier vanishes."""
    reach = 1e300
    for index in range(switching):
        k = roll[index, SWITCHING]
        for s in range(rows.segments[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            dx = piece[k, s, DX]
            if dx < 0.0:
                reach = min(reach, -piece[k, s, S_LO] / dx)
            elif dx > 0.0:
                reach = min(reach, piece[k, s, S_HI] / dx)
            if piece[k, s, DW_LO] < 0.0:
                reach = min(reach, -piece[k, s, W_LO] / piece[k, s, DW_LO])
            if piece[k, s, DW_HI] < 0.0:
                reach = min(reach, -piece[k, s, W_HI] / piece[k, s, DW_HI])
    return reach


@inline
def _move(rows, mark, value, roll, piece, switching, reach):
    for index in range(switching):
        k = roll[index, SWITCHING]
        for s in range(rows.segments[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            dx = reach * piece[k, s, DX]
            piece[k, s, X] += dx
            piece[k, s, S_LO] += dx
            piece[k, s, S_HI] -= dx
            piece[k, s, W_LO] += reach * piece[k, s, DW_LO]
            piece[k, s, W_HI] += reach * piece[k, s, DW_HI]
            value[k, P_NOW] += dx


@inline
def _choose_segments(rows, mark, value, roll, piece, line, switching, speed):
    """Walk the pieces by rising u: a piece at its lower end lies behind, at its upper end ahead, else it is the one.

    Between two sloped pieces the impulse decides: beside a stiff one the multiplier of a full piece is tiny.
    """
    for index in range(switching):
        k = roll[index, SWITCHING]
        near = NEAR * speed
        chosen = rows.segments[k] - 1
        for s in range(rows.segments[k]):
            if rows.beta[k, s] < 0.0:
                continue
            if piece[k, s, THETA] == 0.0:
                behind = value[k, U_NOW] > rows.c[k, s] - rows.beta[k, s] * rows.break_p[k, s]
                ahead = not behind
            else:
                behind = piece[k, s, S_LO] * line[k, RESPONSE] < max(piece[k, s, W_LO], near)
                ahead = piece[k, s, S_HI] * line[k, RESPONSE] < max(piece[k, s, W_HI], near)
            if s < rows.segments[k] - 1 and rows.beta[k, s + 1] >= 0.0:
                behind = value[k, P_NOW] < rows.break_p[k, s]
            if behind:
                continue
            chosen = s - 1 if ahead and s > 0 and rows.beta[k, s - 1] < 0.0 else s
            break
        mark[k, SEGMENT] = chosen
        use_segment(rows, mark, value, k, chosen)
