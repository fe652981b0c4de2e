"""Gauss-Seidel: constraint rows, or the rows of one joint, are solved in turn with the others fixed.

Projected Gauss-Seidel (`sweep_rows`) solves each row for its law. Linear cost per sweep for any rows and no factors,
but slow convergence along chains and under stiff drives (the error after any number of sweeps is not bounded); for very
large, loose systems such as heaps.

Gauss-Seidel by joints (`sweep_joints`; single-joint post-stabilization of Weinstein et al. 2008) solves each joint. Its
rows, at most six, and the bodies it joins give

    (K_p + K_c) j = d        K_b = J_b M_b^-1 J_b^T

the joint's block of the Delassus operator A = J M^-1 J^T, positive definite as long as one of the two bodies is solved
for, even in loops. Free directions have no rows: J contains the paper's projection P. A sweep is cheap and stores only
the blocks, and the impulses never leave the range of A, so that redundant joints need no ridge. But an error spreads by
one joint a sweep: for nets of many loose loops, not for controlled chains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import axpy6, dot6, factor6, forward6, load6, load21, scale6, solve6, store6, store21
from borelli.physics.solver.elimination_order import POSITION
from borelli.physics.solver.factor_arrays import (
    ABSENT,
    ACTIVE_PIECE,
    IMPULSE,
    KIND,
    LOWER,
    MASS,
    MOMENTUM,
    SOLUTION,
    use_piece,
)
from borelli.physics.solver.redundant_rows import inverse_mass_times

MAX_GROUP_ROWS = 6


class JointBlocks(NamedTuple):
    """Groups of rows that are solved together, one per joint."""

    first: NDArray[np.int64]
    """(groups + 1,) rows of group g: row[first[g] : first[g + 1]]."""
    row: NDArray[np.int64]
    lower: NDArray[np.float64]
    """(groups, 36) L of L E L^T = K_p + K_c, six numbers a line, reciprocals of E on the diagonal."""
    response: NDArray[np.float64]
    """(entries, 6) M^-1 J^T."""
    right: NDArray[np.float64]
    """(6,) scratch."""
    defect: NDArray[np.float64]
    """(sweeps,) RMS velocity defect of the rows, each before its own solve."""


def make_joint_blocks(groups: list[list[int]], entries: int, sweeps: int) -> JointBlocks:
    """Return work arrays for groups of rows and at most so many sweeps."""
    return JointBlocks(
        first=np.cumsum([0, *map(len, groups)]).astype(np.int64),
        row=np.array([k for group in groups for k in group], np.int64),
        lower=np.zeros((len(groups), MAX_GROUP_ROWS * MAX_GROUP_ROWS)),
        response=np.zeros((entries, 6)),
        right=np.zeros(MAX_GROUP_ROWS),
        defect=np.zeros(sweeps),
    )


@inline
def _solve_law(rows, k, u, p, response):
    """Return impulse and piece at which the line u + response (p' - p) meets the law of row k."""
    last = rows.pieces[k] - 1
    at_zero = u - response * p  # velocity the row would have without its impulse
    for s in range(last + 1):
        beta, c = rows.beta[k, s], rows.c[k, s]
        q = c if beta < 0.0 else (c - at_zero) / (response + beta)
        v = at_zero + response * q
        if beta < 0.0:
            inside = (s == 0 or v >= rows.break_u[k, s - 1]) and (s == last or v <= rows.break_u[k, s])
        else:
            inside = (s == 0 or q <= rows.break_p[k, s - 1]) and (s == last or q >= rows.break_p[k, s])
        if inside:
            return q, s
    return p, 0


@kernel_function
def sweep_rows(work, sweeps):
    """Compute impulses and velocities after so many sweeps from zero impulses; stored where Newton stores them."""
    rows, graph, factor = load_shared(work.rows, work.graph, work.factor)
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    for k in range(graph.count[0]):
        L, _ = factor6(load21(block, k, MASS))
        store21(block, k, LOWER, L)
        store6(block, k, SOLUTION, solve6(L, load6(block, k, MOMENTUM)))
    for k in range(rows.used[0]):
        if mark[k, KIND] != ABSENT:
            value[k, IMPULSE] = 0.0
    for _ in range(sweeps):
        for k in range(rows.used[0]):
            if mark[k, KIND] == ABSENT:
                continue
            u, response = rows.offset[k], 0.0
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    position = node[rows.body[e], POSITION]
                    J = load6(rows.jacobian, e, 0)
                    L = load21(block, position, LOWER)
                    w = forward6(L, J)
                    response += dot6(w, scale6(L, w))
                    u += dot6(J, load6(block, position, SOLUTION))
            p, s = _solve_law(rows, k, u, value[k, IMPULSE], response)
            change = p - value[k, IMPULSE]
            value[k, IMPULSE] = p
            mark[k, ACTIVE_PIECE] = s
            use_piece(rows, mark, value, k, s)
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    position = node[rows.body[e], POSITION]
                    L = load21(block, position, LOWER)
                    unit_change = solve6(L, load6(rows.jacobian, e, 0))
                    store6(block, position, SOLUTION, axpy6(change, unit_change, load6(block, position, SOLUTION)))


sweep_rows_by_pointer = by_pointer(sweep_rows)


@inline
def _fill_response(rows, node, block, response):
    for k in range(rows.used[0]):
        if rows.pieces[k] > 0:
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    position = node[rows.body[e], POSITION]
                    store6(response, e, 0, inverse_mass_times(block, position, load6(rows.jacobian, e, 0)))


@inline
def _delassus_entry(rows, response, k, n):
    """Return the entry of A = J M^-1 J^T for rows k and n: the sum over their common bodies."""
    total = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        for f in range(rows.first[n], rows.first[n + 1]):
            if rows.body[e] >= 0 and rows.body[e] == rows.body[f]:
                total += dot6(load6(rows.jacobian, e, 0), load6(response, f, 0))
    return total


@inline
def _factor_groups(rows, blocks):
    """Compute L and E of every group; return False if one has no pivot: its rows are redundant."""
    lower, good = blocks.lower, True
    for g in range(len(blocks.first) - 1):
        start = blocks.first[g]
        for i in range(blocks.first[g + 1] - start):
            for j in range(i + 1):
                s = _delassus_entry(rows, blocks.response, blocks.row[start + i], blocks.row[start + j])
                full = s
                for n in range(j):
                    s -= lower[g, 6 * i + n] * lower[g, 6 * j + n] / lower[g, 7 * n]
                if i == j:
                    good = good and s > 1e-13 * full
                    lower[g, 7 * i] = 1.0 / s
                else:
                    lower[g, 6 * i + j] = s * lower[g, 7 * j]
    return good


@inline
def _row_defect(rows, node, block, k):
    """Return target velocity minus velocity of row k."""
    defect = rows.c[k, 0] - rows.offset[k]
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            defect -= dot6(load6(rows.jacobian, e, 0), load6(block, node[rows.body[e], POSITION], SOLUTION))
    return defect


@inline
def _apply_impulse(rows, node, block, response, k, p):
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            position = node[rows.body[e], POSITION]
            store6(block, position, SOLUTION, axpy6(p, load6(response, e, 0), load6(block, position, SOLUTION)))


@inline
def _solve_group(rows, node, block, value, blocks, g):
    """Solve the rows of group g for their target velocities; return the sum of squares of their defects before."""
    lower, x, start = blocks.lower, blocks.right, blocks.first[g]
    size, total = blocks.first[g + 1] - start, 0.0
    for i in range(size):
        x[i] = _row_defect(rows, node, block, blocks.row[start + i])
        total += x[i] * x[i]
        for j in range(i):
            x[i] -= lower[g, 6 * i + j] * x[j]
    for i in range(size - 1, -1, -1):
        x[i] *= lower[g, 7 * i]
        for j in range(i + 1, size):
            x[i] -= lower[g, 6 * j + i] * x[j]
    for i in range(size):
        k = blocks.row[start + i]
        value[k, IMPULSE] += x[i]
        _apply_impulse(rows, node, block, blocks.response, k, x[i])
    return total


@kernel_function
def sweep_joints(work, blocks_at, max_sweeps, tolerance):
    """Sweep over the groups until the defect falls to `tolerance` of the first; return sweeps made, -1 without a pivot.

    Impulses and velocities are stored where Newton stores them.
    """
    rows, graph, factor, blocks = load_shared(work.rows, work.graph, work.factor, blocks_at)
    node, block, value = graph.node, factor.block, factor.value
    for k in range(graph.count[0]):
        store6(block, k, SOLUTION, inverse_mass_times(block, k, load6(block, k, MOMENTUM)))
    for k in range(rows.used[0]):
        value[k, IMPULSE] = 0.0
    _fill_response(rows, node, block, blocks.response)
    if not _factor_groups(rows, blocks):
        return -1
    for sweep in range(max_sweeps):
        total = 0.0
        for g in range(len(blocks.first) - 1):
            total += _solve_group(rows, node, block, value, blocks, g)
        blocks.defect[sweep] = np.sqrt(total / max(len(blocks.row), 1))
        if blocks.defect[sweep] <= tolerance * blocks.defect[0]:
            return sweep + 1
    return max_sweeps


sweep_joints_by_pointer = by_pointer(sweep_joints)
