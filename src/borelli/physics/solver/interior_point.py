"""Interior-point search for the active pieces, for steps on which Newton would change them one at a time.

A chain of N links with stiff saturating drives needs about N Newton iterations; Mehrotra's predictor-corrector needs
about fifteen for any N. It uses the same elimination: each sloped piece of a law is a variable x between bounds,
p = p0 + sum_j x_j, with slacks s, multipliers w and complementarity w s -> 0,

    u + beta_j x_j - c_j = w_lo - w_hi        w_lo s_lo = w_hi s_hi = mu -> 0

whose linearization is theta_j dx_j = e_j - du, theta_j = beta_j + w_lo/s_lo + w_hi/s_hi. Pieces of one row act in
parallel, so the row enters the elimination as a single slope: 1/beta = sum_j 1/theta_j. Because a law is monotone, the
pieces fill in their order by themselves. When mu is small each piece is at an end or inside, which identifies the
active one.

Every iteration solves for changes, from fresh defects, and stores slacks as such: s = x - lo would lose them at
1e-16 of x, and rows exactly on a kink, where w and s vanish together like the root of mu, need far smaller ones.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.rows.rows import MAX_PIECES
from borelli.physics.solver.blocks import DIAGONAL, axpy6, load6, store6
from borelli.physics.solver.elimination import factor_bodies_by_pointer, solve_factored_by_pointer
from borelli.physics.solver.elimination_order import DIRTY, mark_for_factoring
from borelli.physics.solver.factor_arrays import (
    ACTIVE_PIECE,
    BETA,
    FACTORIZATIONS,
    FLAT_ROW,
    IMPULSE,
    INTERIOR_STEPS,
    KIND,
    MASS,
    MODE,
    MOMENTUM,
    P_NOW,
    SOLUTION,
    SWITCHING,
    U_NOW,
    VELOCITY,
    C,
    use_piece,
)
from borelli.physics.solver.iterative_refinement import load_defects, load_row_defect, row_response, row_velocity

MAX_ITERATIONS = 100
GAP_TOLERANCE = 1e-15
"""Tolerance of mu, relative to the velocity scale squared over a typical J M^-1 J^T; more leaves work to Newton."""
MIN_GAP = 1e-24
"""Gap at which to stop though some row is not clearly on one side of its kink: its slack is 1e-12 of the others."""
MAX_GAP_RATIO = 0.5
"""Ratio of two successive mu below GAP_TOLERANCE at which rounding dominates."""
COMPLEMENTARITY_RATIO = 1e3
"""Ratio of multiplier to slack (in units of J M^-1 J^T) that decides for a side."""
SNAP_TO_BREAK = 1e-11
"""Slack, relative to the velocity scale, below which a row is put on the break."""
BOUNDARY_FRACTION = 0.995
"""Fraction of the step to the nearest bound that is taken."""

# columns of `piece`, by row and piece; an absent bound has an infinite slack and no multiplier
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
    """Return work arrays for so many rows."""
    return Interior(np.zeros((rows, MAX_PIECES, PIECE_COLUMNS)), np.zeros((rows, LINE_COLUMNS)))


@kernel_function
def run_interior_point(pointers, work, switching):
    """Set every switching row's active piece by the interior-point method; its result is in SOLUTION and IMPULSE."""
    rows, graph, factor, interior = load_shared(work.rows, work.graph, work.factor, work.interior)
    node, count, counts = graph.node, graph.count[0], work.search.counts
    block, mark, value, row_list = factor.block, factor.mark, factor.value, factor.row_list
    piece, line = interior.piece, interior.line
    total = 0.0
    for index in range(switching):
        k = row_list[index, SWITCHING]
        size = row_response(rows, node, block, k)
        line[k, RESPONSE] = size if size > 0.0 else 1.0
        total += log(line[k, RESPONSE])
    typical = exp(total / switching)
    bounds = _init_pieces(rows, mark, value, row_list, piece, line, switching, _free_speed(block, count))
    infeasibility, before = 1.0, inf
    for _ in range(MAX_ITERATIONS):
        mu = _gap(rows, row_list, piece, switching, 0.0)
        unit = _speed(block, count) ** 2 / typical * bounds
        if not MIN_GAP * unit < mu < inf:
            break
        small = mu < GAP_TOLERANCE * unit and infeasibility < SNAP_TO_BREAK
        if small and (mu > MAX_GAP_RATIO * before or _is_complementary(rows, row_list, piece, line, switching)):
            break
        before = mu
        counts[INTERIOR_STEPS] += 1
        _set_slopes(rows, mark, value, row_list, piece, switching)
        mark_for_factoring(graph, 1)
        if factor_bodies_by_pointer(pointers, work) < 0:
            break
        counts[FACTORIZATIONS] += 1
        target, step = 0.0, 0.0
        for corrector in range(2):
            load_defects(rows, graph, factor)
            _load_targets(rows, node, block, mark, value, row_list, piece, switching, target, corrector > 0)
            solve_factored_by_pointer(pointers, work)
            _compute_changes(rows, node, block, mark, value, row_list, piece, line, switching)
            step = _max_step(rows, row_list, piece, switching)
            if corrector == 0:
                ahead = _gap(rows, row_list, piece, switching, min(1.0, step))
                target = (ahead / mu) ** 3 * mu / bounds
        step = min(1.0, BOUNDARY_FRACTION * step)
        _move(rows, mark, value, row_list, piece, switching, step)
        infeasibility *= 1.0 - step
        for k in range(count):
            store6(block, k, VELOCITY, axpy6(step, load6(block, k, SOLUTION), load6(block, k, VELOCITY)))
        for k in range(rows.used[0]):
            if rows.pieces[k] == 1 and mark[k, MODE] != FLAT_ROW:
                value[k, P_NOW] += step * value[k, IMPULSE]
    _choose_pieces(rows, mark, value, row_list, piece, line, switching, _speed(block, count))
    for k in range(count):
        store6(block, k, SOLUTION, load6(block, k, VELOCITY))
        node[k, DIRTY] = 1
    for k in range(rows.used[0]):
        if rows.pieces[k] == 1:
            use_piece(rows, mark, value, k, 0)
        value[k, IMPULSE] = value[k, C] if mark[k, MODE] == FLAT_ROW else value[k, P_NOW]


interior_point_by_pointer = by_pointer(run_interior_point)


@inline
def _speed(block, count):
    """Return the largest velocity."""
    largest = 1e-9
    for k in range(count):
        for i in range(6):
            largest = max(largest, abs(block[k, VELOCITY + i]))
    return largest


@inline
def _free_speed(block, count):
    """Return the largest velocity, now or without rows."""
    largest = _speed(block, count)
    for k in range(count):
        for i in range(6):
            largest = max(largest, abs(block[k, MOMENTUM + i] / block[k, MASS + DIAGONAL[i]]))
    return largest


@inline
def _init_pieces(rows, mark, value, row_list, piece, line, switching, scale):
    """Initialize slacks, variables and products w s = mu of every piece; return the number of bounds.

    A row all of whose pieces are closed (friction without load) stays flat.
    """
    bounds = 0
    for index in range(switching):
        k = row_list[index, SWITCHING]
        last = rows.pieces[k] - 1
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
def _gap(rows, row_list, piece, switching, step):
    """Return the sum of the products w s (complementarity gap) after a step along the changes."""
    total = 0.0
    for index in range(switching):
        k = row_list[index, SWITCHING]
        for s in range(rows.pieces[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            dx = step * piece[k, s, DX]
            if piece[k, s, S_LO] < inf:
                total += (piece[k, s, W_LO] + step * piece[k, s, DW_LO]) * (piece[k, s, S_LO] + dx)
            if piece[k, s, S_HI] < inf:
                total += (piece[k, s, W_HI] + step * piece[k, s, DW_HI]) * (piece[k, s, S_HI] - dx)
    return total


@inline
def _is_complementary(rows, row_list, piece, line, switching):
    """Return True if every bound is clearly active or clearly free."""
    for index in range(switching):
        k = row_list[index, SWITCHING]
        for s in range(rows.pieces[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            lo = piece[k, s, W_LO] / (piece[k, s, S_LO] * line[k, RESPONSE])
            hi = piece[k, s, W_HI] / (piece[k, s, S_HI] * line[k, RESPONSE])
            if 1.0 / COMPLEMENTARITY_RATIO < lo < COMPLEMENTARITY_RATIO:
                return False
            if 1.0 / COMPLEMENTARITY_RATIO < hi < COMPLEMENTARITY_RATIO:
                return False
    return True


@inline
def _set_slopes(rows, mark, value, row_list, piece, switching):
    for index in range(switching):
        k = row_list[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            continue
        stiffness = 0.0
        for s in range(rows.pieces[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            theta = rows.beta[k, s] + piece[k, s, W_LO] / piece[k, s, S_LO] + piece[k, s, W_HI] / piece[k, s, S_HI]
            piece[k, s, THETA] = theta
            stiffness += 1.0 / theta
        value[k, BETA] = 1.0 / stiffness


@inline
def _load_targets(rows, node, block, mark, value, row_list, piece, switching, target, corrected):
    """Load the right sides of the rows for w s = target; `corrected` by the product of the last changes."""
    for index in range(switching):
        k = row_list[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            continue
        total = 0.0
        for s in range(rows.pieces[k]):
            theta = piece[k, s, THETA]
            if theta == 0.0:
                continue
            e = rows.c[k, s] - value[k, U_NOW] - rows.beta[k, s] * (piece[k, s, BASE] + piece[k, s, X])
            at_lo, at_hi = target, target
            if corrected:
                at_lo -= piece[k, s, DX] * piece[k, s, DW_LO]
                at_hi += piece[k, s, DX] * piece[k, s, DW_HI]
            # for _compute_changes: the multipliers of a piece with zero change
            piece[k, s, DW_LO], piece[k, s, DW_HI] = at_lo / piece[k, s, S_LO], at_hi / piece[k, s, S_HI]
            e += piece[k, s, DW_LO] - piece[k, s, DW_HI]
            piece[k, s, E] = e
            total += e / theta
        load_row_defect(rows, node, block, mark, value, k, total * value[k, BETA])


@inline
def _compute_changes(rows, node, block, mark, value, row_list, piece, line, switching):
    """Compute the changes of each piece from those of velocities and impulses."""
    for index in range(switching):
        k = row_list[index, SWITCHING]
        if mark[k, MODE] == FLAT_ROW:
            continue
        dp = value[k, IMPULSE]
        stiff = value[k, BETA] < line[k, RESPONSE]
        if stiff:
            du = value[k, C] - value[k, BETA] * dp
        else:
            du = row_velocity(rows, node, block, SOLUTION, k) - rows.offset[k]
        stiffest = -1
        for s in range(rows.pieces[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            piece[k, s, DX] = (piece[k, s, E] - du) / piece[k, s, THETA]
            dp -= piece[k, s, DX]
            if stiffest < 0 or piece[k, s, THETA] < piece[k, stiffest, THETA]:
                stiffest = s
        # e and du nearly cancel on a stiff piece; the impulse is more accurate
        if stiff:
            piece[k, stiffest, DX] += dp
        for s in range(rows.pieces[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            dx, w_lo, w_hi = piece[k, s, DX], piece[k, s, W_LO], piece[k, s, W_HI]
            piece[k, s, DW_LO] -= w_lo + w_lo * dx / piece[k, s, S_LO]
            piece[k, s, DW_HI] -= w_hi - w_hi * dx / piece[k, s, S_HI]


@inline
def _max_step(rows, row_list, piece, switching):
    """Return the step length along the changes at which the first slack or multiplier vanishes."""
    step = 1e300
    for index in range(switching):
        k = row_list[index, SWITCHING]
        for s in range(rows.pieces[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            dx = piece[k, s, DX]
            if dx < 0.0:
                step = min(step, -piece[k, s, S_LO] / dx)
            elif dx > 0.0:
                step = min(step, piece[k, s, S_HI] / dx)
            if piece[k, s, DW_LO] < 0.0:
                step = min(step, -piece[k, s, W_LO] / piece[k, s, DW_LO])
            if piece[k, s, DW_HI] < 0.0:
                step = min(step, -piece[k, s, W_HI] / piece[k, s, DW_HI])
    return step


@inline
def _move(rows, mark, value, row_list, piece, switching, step):
    for index in range(switching):
        k = row_list[index, SWITCHING]
        for s in range(rows.pieces[k]):
            if piece[k, s, THETA] == 0.0:
                continue
            dx = step * piece[k, s, DX]
            piece[k, s, X] += dx
            piece[k, s, S_LO] += dx
            piece[k, s, S_HI] -= dx
            piece[k, s, W_LO] += step * piece[k, s, DW_LO]
            piece[k, s, W_HI] += step * piece[k, s, DW_HI]
            value[k, P_NOW] += dx


@inline
def _choose_pieces(rows, mark, value, row_list, piece, line, switching, speed):
    """Choose each row's active piece by rising u: a piece at its lower end lies behind, at its upper end ahead.

    Between two sloped pieces the impulse decides: next to a stiff one the multiplier of a full piece is tiny.
    """
    for index in range(switching):
        k = row_list[index, SWITCHING]
        snap = SNAP_TO_BREAK * speed
        chosen = rows.pieces[k] - 1
        for s in range(rows.pieces[k]):
            if rows.beta[k, s] < 0.0:
                continue
            if piece[k, s, THETA] == 0.0:
                behind = value[k, U_NOW] > rows.c[k, s] - rows.beta[k, s] * rows.break_p[k, s]
                ahead = not behind
            else:
                behind = piece[k, s, S_LO] * line[k, RESPONSE] < max(piece[k, s, W_LO], snap)
                ahead = piece[k, s, S_HI] * line[k, RESPONSE] < max(piece[k, s, W_HI], snap)
            if s < rows.pieces[k] - 1 and rows.beta[k, s + 1] >= 0.0:
                behind = value[k, P_NOW] < rows.break_p[k, s]
            if behind:
                continue
            chosen = s - 1 if ahead and s > 0 and rows.beta[k, s - 1] < 0.0 else s
            break
        mark[k, ACTIVE_PIECE] = chosen
        use_piece(rows, mark, value, k, chosen)
