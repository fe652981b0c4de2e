"""Joint by joint (seed 000, single-joint post-stabilisation): each joint in turn is made to keep while others wait.

The rows of one joint, at most six, and the bodies it joins give

    (K_p + K_c) j = d        K_b = J_b M_b^-1 J_b^T

positive definite as long as one of the two bodies is solved for, whatever loops the joint is part of. Free directions
have no rows: J holds the seed's projection P. A sweep costs little and stores nothing but the blocks, and the
impulses never leave the range of A, so that redundant joints need no ridge. But an error spreads by one joint a sweep:
for nets of many loose loops, not for controlled chains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import axpy6, dot6, load6, store6
from borelli.physics.solver.elimination_order import PLACE
from borelli.physics.solver.factor_arrays import IMPULSE, MOMENTUM, SOLUTION
from borelli.physics.solver.redundant_rows import inverse_mass_times

MOST_ROWS = 6


class JointBlocks(NamedTuple):
    """Rows in groups that are solved at once, a joint's in one."""

    first: NDArray[np.int64]
    """(groups + 1,) rows of group g: row[first[g] : first[g + 1]]."""
    row: NDArray[np.int64]
    lower: NDArray[np.float64]
    """(groups, 36) L of L E L^T = K_p + K_c, six numbers a line, reciprocals of E on the diagonal."""
    answer: NDArray[np.float64]
    """(entries, 6) M^-1 J^T."""
    right: NDArray[np.float64]
    """(6,) scratch."""
    lacking: NDArray[np.float64]
    """(sweeps,) what rows lacked of their velocities when their turn came, root mean square."""


def make_joint_blocks(groups: list[list[int]], entries: int, sweeps: int) -> JointBlocks:
    """Work arrays for groups of rows and at most so many sweeps."""
    return JointBlocks(
        first=np.cumsum([0, *map(len, groups)]).astype(np.int64),
        row=np.array([k for group in groups for k in group], np.int64),
        lower=np.zeros((len(groups), MOST_ROWS * MOST_ROWS)),
        answer=np.zeros((entries, 6)),
        right=np.zeros(MOST_ROWS),
        lacking=np.zeros(sweeps),
    )


@inline
def _find_answers(rows, node, block, answer):
    for k in range(rows.used[0]):
        if rows.segments[k] > 0:
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    place = node[rows.body[e], PLACE]
                    store6(answer, e, 0, inverse_mass_times(block, place, load6(rows.jacobian, e, 0)))


@inline
def _shared(rows, answer, k, n):
    """Entry of A for rows k and n: the sum over bodies that both touch."""
    total = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        for f in range(rows.first[n], rows.first[n + 1]):
            if rows.body[e] >= 0 and rows.body[e] == rows.body[f]:
                total += dot6(load6(rows.jacobian, e, 0), load6(answer, f, 0))
    return total


@inline
def _factor_groups(rows, blocks):
    """L and E of every group; False when one has no pivot: its rows repeat each other."""
    lower, good = blocks.lower, True
    for g in range(len(blocks.first) - 1):
        start = blocks.first[g]
        for i in range(blocks.first[g + 1] - start):
            for j in range(i + 1):
                s = _shared(rows, blocks.answer, blocks.row[start + i], blocks.row[start + j])
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
def _lacking_of(rows, node, block, k):
    """What row k lacks of the velocity it asks for."""
    lacks = rows.c[k, 0] - rows.offset[k]
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            lacks -= dot6(load6(rows.jacobian, e, 0), load6(block, node[rows.body[e], PLACE], SOLUTION))
    return lacks


@inline
def _push_bodies(rows, node, block, answer, k, p):
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            place = node[rows.body[e], PLACE]
            store6(block, place, SOLUTION, axpy6(p, load6(answer, e, 0), load6(block, place, SOLUTION)))


@inline
def _keep_joint(rows, node, block, value, blocks, g):
    """Bring the rows of group g to their velocities; the sum of squares of what they lacked."""
    lower, x, start = blocks.lower, blocks.right, blocks.first[g]
    size, total = blocks.first[g + 1] - start, 0.0
    for i in range(size):
        x[i] = _lacking_of(rows, node, block, blocks.row[start + i])
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
        _push_bodies(rows, node, block, blocks.answer, k, x[i])
    return total


@kernel_function
def sweep_joints(rows_at, graph_at, factor_at, blocks_at, most, tolerance):
    """Sweep over the groups until rows lack less than `tolerance` of what they did; sweeps made, -1 without a pivot.

    Impulses and velocities are written where Newton writes them.
    """
    rows, graph, factor, blocks = load_shared(rows_at, graph_at, factor_at, blocks_at)
    node, block, value = graph.node, factor.block, factor.value
    for k in range(graph.count[0]):
        store6(block, k, SOLUTION, inverse_mass_times(block, k, load6(block, k, MOMENTUM)))
    for k in range(rows.used[0]):
        value[k, IMPULSE] = 0.0
    _find_answers(rows, node, block, blocks.answer)
    if not _factor_groups(rows, blocks):
        return -1
    for sweep in range(most):
        total = 0.0
        for g in range(len(blocks.first) - 1):
            total += _keep_joint(rows, node, block, value, blocks, g)
        blocks.lacking[sweep] = np.sqrt(total / max(len(blocks.row), 1))
        if blocks.lacking[sweep] <= tolerance * blocks.lacking[0]:
            return sweep + 1
    return most


sweep_joints_by_pointer = by_pointer(sweep_joints)
