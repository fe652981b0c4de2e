"""Redundant and contradictory rows: the least-squares velocities by the least-norm impulses.

With A = J M^-1 J^T (the Delassus operator) the impulses of hard rows are A p = d, where d is the required change of
their velocities (global post-stabilization, Weinstein et al. 2008). A closed loop makes A singular; an extra target
makes it contradictory as well. The paper uses a pivoted QR of A, cubic in the rows. Here a *ridge* E = eps W, one
weight per row, is added, so that the elimination has all its pivots, and its effect removed by iteration:

    p <- p + (A + E)^-1 A (A + E)^-1 (d - A p)

from p = 0. A vector n that moves no body, A n = 0, is never added to p, for any d; in any other direction of
eigenvalue a (of A against W) a round leaves 2 eps / (a + eps) of the error. The fixed point is

    p^T W p least among all p with (d - A p)^T W^-1 (d - A p) least

the paper's minimum norm, weighted. A row of small weight yields to no other and takes load from the others: defects of
joint and contradictory target are in the ratio of their weights. Rounds that ignore the defects of the *yielding* rows
then bring those of the others to zero.

With (A + E) q = d - A p, the inner A q is d - A p - E q: a round is two solves with existing factors.
Velocities are M^-1 (r + J^T p), so that the rows conserve momentum to rounding after any number of rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import factor6, load6, load21, solve6, store6
from borelli.physics.solver.elimination import factor_bodies_by_pointer, solve_factored_by_pointer
from borelli.physics.solver.elimination_order import DIRTY
from borelli.physics.solver.factor_arrays import (
    ACTIVE_PIECE,
    BETA,
    FLAT_ROW,
    FOLDED,
    IMPULSE,
    MASS,
    MODE,
    MOMENTUM,
    P_NOW,
    RIGHT,
    SOLUTION,
    VELOCITY,
    C,
    use_piece,
)
from borelli.physics.solver.iterative_refinement import apply_impulse, load_row_defect, row_velocity

MAX_CHANGE_RATIO = 0.25
"""Squared ratio of successive changes of the impulses above which a round is rounding: the last."""

# entries of `solver_stats`
IMPULSE_CHANGE, YIELDING_DEFECT, HARD_DEFECT = 0, 1, 2


class Ridge(NamedTuple):
    """Slopes added to rows in the factors, removed by refinement."""

    slope: NDArray[np.float64]
    """(rows,) E: velocity per impulse."""
    yields: NDArray[np.uint8]
    """(rows,) 1 for rows that may keep a defect where others need not: targets as opposed to joints."""
    defect: NDArray[np.float64]
    """(rows,) scratch: d - A p."""
    solver_stats: NDArray[np.float64]
    """(3,) IMPULSE_CHANGE: of the last round, relative; YIELDING_DEFECT, HARD_DEFECT: largest velocity defects."""


def make_ridge(rows: int) -> Ridge:
    """Return a zero ridge for so many rows."""
    return Ridge(np.zeros(rows), np.zeros(rows, np.uint8), np.zeros(rows), np.zeros(3))


@inline
def inverse_mass_times(block, k, x):
    """Return M^-1 x of the body at position k."""
    L, _ = factor6(load21(block, k, MASS))
    return solve6(L, x)


@inline
def _compute_defects(rows, node, block, mark, value, ridge, count):
    """Compute M^-1 (r + J^T p) into VELOCITY, d - A p of every sloped row, and the largest of each kind."""
    for k in range(count):
        store6(block, k, RIGHT, load6(block, k, MOMENTUM))
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FLAT_ROW and value[k, P_NOW] != 0.0:
            apply_impulse(rows, node, block, k, value[k, P_NOW])
    for k in range(count):
        store6(block, k, VELOCITY, inverse_mass_times(block, k, load6(block, k, RIGHT)))
    ridge.solver_stats[YIELDING_DEFECT], ridge.solver_stats[HARD_DEFECT] = 0.0, 0.0
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            defect = rows.c[k, mark[k, ACTIVE_PIECE]] - row_velocity(rows, node, block, VELOCITY, k)
            ridge.defect[k] = defect
            kind = YIELDING_DEFECT if ridge.yields[k] else HARD_DEFECT
            ridge.solver_stats[kind] = max(ridge.solver_stats[kind], abs(defect))


@inline
def _load_right_sides(rows, node, block, mark, value, ridge, hard_only, ridge_factor, count):
    """Load right sides: defects less `ridge_factor` times E times the impulse for rows, zero for bodies.

    With `hard_only`, yielding rows have no defect.
    """
    for k in range(count):
        store6(block, k, RIGHT, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            defect = 0.0 if hard_only and ridge.yields[k] else ridge.defect[k]
            defect = defect - ridge_factor * ridge.slope[k] * value[k, IMPULSE]
            load_row_defect(rows, node, block, mark, value, k, defect)


@inline
def _set_ridge_slopes(rows, node, mark, value, slope, count):
    """Give active rows the ridge as slope and zero impulse; mark every position for factorization."""
    for k in range(rows.used[0]):
        value[k, P_NOW] = 0.0
        if mark[k, MODE] >= FOLDED:
            value[k, BETA] = slope[k]
        elif mark[k, MODE] == FLAT_ROW:
            value[k, P_NOW] = value[k, C]
    for k in range(count):
        node[k, DIRTY] = 1


@inline
def _store_solution(rows, node, block, mark, value, count):
    """Store the state where Newton does, restore the laws and mark every position dirty."""
    for k in range(count):
        store6(block, k, SOLUTION, load6(block, k, VELOCITY))
        node[k, DIRTY] = 1
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FLAT_ROW:
            value[k, IMPULSE] = value[k, P_NOW]
            use_piece(rows, mark, value, k, mark[k, ACTIVE_PIECE])


@inline
def _add_round(rows, mark, value, slope):
    """Add the impulses of a round; return the squares of the change and of the sum, weighted by E."""
    change, size = 0.0, 0.0
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            value[k, P_NOW] += value[k, IMPULSE]
            change += slope[k] * value[k, IMPULSE] ** 2
            size += slope[k] * value[k, P_NOW] ** 2
    return change, size


@kernel_function
def solve_redundant(pointers, work, ridge_at, max_rounds, tolerance):
    """Solve the active rows as hard; return rounds used, -1 without a pivot.

    Ends when no defect exceeds `tolerance` of the first, or a round changes the impulses by less than `tolerance` of
    their size (both weighted by E), or by rounding alone, or after `max_rounds`; and as many more rounds while rows
    that do not yield have too large a defect.
    """
    rows, graph, factor, ridge = load_shared(work.rows, work.graph, work.factor, ridge_at)
    node, block, mark, value, count = graph.node, factor.block, factor.mark, factor.value, graph.count[0]
    stats = ridge.solver_stats
    _set_ridge_slopes(rows, node, mark, value, ridge.slope, count)
    if factor_bodies_by_pointer(pointers, work) < 0:
        return -1
    _compute_defects(rows, node, block, mark, value, ridge, count)
    required = max(stats[YIELDING_DEFECT], stats[HARD_DEFECT])
    stats[IMPULSE_CHANGE] = 0.0
    used, hard_only, before = 0, False, np.inf
    for _ in range(2 * max_rounds if required > 0.0 else 0):
        used += 1
        _load_right_sides(rows, node, block, mark, value, ridge, hard_only, 0.0, count)
        solve_factored_by_pointer(pointers, work)
        _load_right_sides(rows, node, block, mark, value, ridge, hard_only, 1.0, count)
        solve_factored_by_pointer(pointers, work)
        change, size = _add_round(rows, mark, value, ridge.slope)
        _compute_defects(rows, node, block, mark, value, ridge, count)
        stats[IMPULSE_CHANGE] = np.sqrt(change / size) if size > 0.0 else 0.0
        hard_solved = stats[HARD_DEFECT] <= tolerance * required
        solved = hard_solved and stats[YIELDING_DEFECT] <= tolerance * required
        ended = solved or stats[IMPULSE_CHANGE] <= tolerance or not change < MAX_CHANGE_RATIO * before
        before = change
        if (ended or used >= max_rounds) and (hard_only or hard_solved or stats[YIELDING_DEFECT] == 0.0):
            break
        if ended or used == max_rounds:
            hard_only, before = True, np.inf
    _store_solution(rows, node, block, mark, value, count)
    return used


solve_redundant_by_pointer = by_pointer(solve_redundant)
