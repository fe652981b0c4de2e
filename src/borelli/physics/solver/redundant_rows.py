"""Rows that repeat or contradict each other: the velocities nearest to what all ask, by the smallest impulses.

With A = J M^-1 J^T the impulses of hard rows are A p = d, where d is the change of velocity they ask for (seed 000,
"global post-stabilisation"). A closed loop makes A singular; a target too many makes it contradictory as well. The
seed takes a pivoted QR of A, cubic in the rows. Here a *ridge* E = eps W, one weight per row, is added, so that the
elimination has all its pivots, and is taken out again (spec 3.2):

    p <- p + (A + E)^-1 A (A + E)^-1 (d - A p)

from p = 0. A vector n that moves no body, A n = 0, is never added to p, whatever part of d asks for it; in any other
direction of eigenvalue a (of A against W) a round leaves 2 eps / (a + eps) of the error. The fixed point is

    p^T W p least among all p with (d - A p)^T W^-1 (d - A p) least

the seed's minimum norm, weighted. A row of small weight gives way to no other and takes load from the others: what a
joint lacks is to what a contradictory target lacks as their weights. Rounds that leave out what the *yielding* rows
lack then bring the others' to nothing.

With (A + E) q = d - A p, the inner A q is d - A p - E q: a round is two solves with factors that are there.
Velocities are M^-1 (r + J^T p), so that what the rows do to momentum is rounding, however far the rounds got.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import backward6, factor6, forward6, load6, load21, scale6, store6
from borelli.physics.solver.elimination import factor_bodies_by_pointer, solve_factored_by_pointer
from borelli.physics.solver.elimination_order import DIRTY
from borelli.physics.solver.factor_arrays import (
    BETA,
    FLAT_ROW,
    FOLDED,
    IMPULSE,
    MASS,
    MODE,
    MOMENTUM,
    P_NOW,
    RIGHT,
    SEGMENT,
    SOLUTION,
    VELOCITY,
    C,
    use_segment,
)
from borelli.physics.solver.iterative_refinement import load_row, push, row_velocity

HALVED = 0.25
"""A round that changes impulses by more than half as much as the one before (squared) is rounding: the last."""


class Ridge(NamedTuple):
    """What is added to the slopes of rows in the factors, and taken out by refinement."""

    slope: NDArray[np.float64]
    """(rows,) E: velocity per impulse."""
    yields: NDArray[np.uint8]
    """(rows,) 1 for rows that may be left lacking where others need not: targets beside joints."""
    lacking: NDArray[np.float64]
    """(rows,) scratch: d - A p."""
    told: NDArray[np.float64]
    """(3,) the last round's change of the impulses, of their size; the largest velocity that a yielding and that any
    other row lacks."""


def make_ridge(rows: int) -> Ridge:
    """No ridge, for so many rows."""
    return Ridge(np.zeros(rows), np.zeros(rows, np.uint8), np.zeros(rows), np.zeros(3))


@inline
def inverse_mass_times(block, k, x):
    """M^-1 x of the body at position k."""
    L, _ = factor6(load21(block, k, MASS))
    return backward6(L, scale6(L, forward6(L, x)))


@inline
def _find_lacking(rows, node, block, mark, value, ridge, count):
    """VELOCITY: M^-1 (r + J^T p); d - A p of every sloped row, and the largest of each kind."""
    for k in range(count):
        store6(block, k, RIGHT, load6(block, k, MOMENTUM))
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FLAT_ROW and value[k, P_NOW] != 0.0:
            push(rows, node, block, k, value[k, P_NOW])
    for k in range(count):
        store6(block, k, VELOCITY, inverse_mass_times(block, k, load6(block, k, RIGHT)))
    ridge.told[1], ridge.told[2] = 0.0, 0.0
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            lacks = rows.c[k, mark[k, SEGMENT]] - row_velocity(rows, node, block, VELOCITY, k)
            ridge.lacking[k] = lacks
            kind = 1 if ridge.yields[k] else 2
            ridge.told[kind] = max(ridge.told[kind], abs(lacks))


@inline
def _load_rights(rows, node, block, mark, value, ridge, firm, share, count):
    """Right sides: rows ask for what they lack less `share` times E times the impulse at hand; bodies for nothing.

    With `firm`, yielding rows lack nothing.
    """
    for k in range(count):
        store6(block, k, RIGHT, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            asked = 0.0 if firm and ridge.yields[k] else ridge.lacking[k]
            load_row(rows, node, block, mark, value, k, asked - share * ridge.slope[k] * value[k, IMPULSE])


@inline
def _put_slopes(rows, node, mark, value, slope, count):
    """Rows in force have the ridge for a slope, their impulses start at nothing; every position is to be factored."""
    for k in range(rows.used[0]):
        value[k, P_NOW] = 0.0
        if mark[k, MODE] >= FOLDED:
            value[k, BETA] = slope[k]
        elif mark[k, MODE] == FLAT_ROW:
            value[k, P_NOW] = value[k, C]
    for k in range(count):
        node[k, DIRTY] = 1


@inline
def _take_over(rows, node, block, mark, value, count):
    """Leave the state where Newton does, the laws as they were and every position dirty."""
    for k in range(count):
        store6(block, k, SOLUTION, load6(block, k, VELOCITY))
        node[k, DIRTY] = 1
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FLAT_ROW:
            value[k, IMPULSE] = value[k, P_NOW]
            use_segment(rows, mark, value, k, mark[k, SEGMENT])


@inline
def _add_round(rows, mark, value, slope):
    """Add the impulses of a round; the squares of the change and of the sum, weighted by E."""
    change, size = 0.0, 0.0
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            value[k, P_NOW] += value[k, IMPULSE]
            change += slope[k] * value[k, IMPULSE] ** 2
            size += slope[k] * value[k, P_NOW] ** 2
    return change, size


@kernel_function
def solve_redundant(pointers, rows_at, graph_at, factor_at, fill_at, ridge_at, most, tolerance):
    """Velocities and impulses of the rows in force, all taken as hard; rounds used, -1 when a pivot is missing.

    Ends when no row lacks more than `tolerance` of what was lacking, or a round changes the impulses by less than
    `tolerance` of their size (both weighted by E), or by rounding alone, or after `most` rounds; and as many more while
    rows that do not yield lack too much.
    """
    rows, graph, factor, ridge = load_shared(rows_at, graph_at, factor_at, ridge_at)
    node, block, mark, value, count = graph.node, factor.block, factor.mark, factor.value, graph.count[0]
    told = ridge.told
    _put_slopes(rows, node, mark, value, ridge.slope, count)
    if factor_bodies_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at) < 0:
        return -1
    _find_lacking(rows, node, block, mark, value, ridge, count)
    asked = max(told[1], told[2])
    told[0] = 0.0
    used, firm, before = 0, False, np.inf
    for _ in range(2 * most if asked > 0.0 else 0):
        used += 1
        _load_rights(rows, node, block, mark, value, ridge, firm, 0.0, count)
        solve_factored_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at)
        _load_rights(rows, node, block, mark, value, ridge, firm, 1.0, count)
        solve_factored_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at)
        change, size = _add_round(rows, mark, value, ridge.slope)
        _find_lacking(rows, node, block, mark, value, ridge, count)
        told[0] = np.sqrt(change / size) if size > 0.0 else 0.0
        kept = told[2] <= tolerance * asked
        ended = (kept and told[1] <= tolerance * asked) or told[0] <= tolerance or not change < HALVED * before
        before = change
        if (ended or used >= most) and (firm or kept or told[1] == 0.0):
            break
        if ended or used == most:
            firm, before = True, np.inf
    _take_over(rows, node, block, mark, value, count)
    return used


solve_redundant_by_pointer = by_pointer(solve_redundant)
