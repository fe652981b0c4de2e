"""Storage of the elimination, and the rows each body owns.

Numbers used together share an array, one row of it per body or per constraint row, with named columns: kernels with
few arrays compile and run faster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import inline, kernel_function
from borelli.physics.solver.elimination_order import (
    CORNER,
    DIRTY,
    DUALS,
    FOLDS,
    FRONT,
    LISTED,
    NEIGHBOR,
    NEIGHBORS,
    OUTER,
    POSITION,
    WIDE,
)

# columns of `block`, by position; triangles are packed as in `blocks`
MASS = 0  # 21: mass block
MOMENTUM = 21  # 6: free momentum
LOWER = 27  # 21: L
RIGHT = 48  # 6: right side, then y
FOLDED_RIGHT = 54  # 6: part of the folded rows in the right side
SOLUTION = 60  # 6: v
UPDATE = 66  # 21: part of U^T U - Y^T Y on the first neighbor, with the children's updates
UPDATE_RIGHT = 87  # 6: part of U^T z - Y^T y on the first neighbor, with the children's updates
VELOCITY = 93  # 6: current iterate
BLOCK_COLUMNS = 99

# columns of `dual`, by index in the list of rows kept as unknowns
W, U, Z = 0, 6, 12
DUAL_COLUMNS = 13

# columns of `mark`, by row
KIND = 0  # treatment on a sloped piece: FOLDED or DUAL; ABSENT
MODE = 1  # present treatment: ABSENT, FLAT_ROW, FOLDED or DUAL
OWNER = 2  # its entry on the body that owns it
OTHER = 3  # its other entry if it has two, else -1
ACTIVE_PIECE = 4  # index of its active piece: the warm start
FLIPS = 5  # number of changes of its active piece in this solve
MARK_COLUMNS = 6
ABSENT, FLAT_ROW, FOLDED, DUAL = 0, 1, 2, 3

# columns of `value`, by row
BETA = 0  # active slope
C = 1  # sloped: c less the offset; flat: the impulse
IMPULSE = 2  # p of the candidate
U_NOW, P_NOW = 3, 4  # current iterate
DU = 5  # velocity change to the candidate
CROSSED = 6  # step length at which the row last changed piece, -1 if it did not
MIN_FOLD_SLOPE = 7  # slope at or below which a row on one body is kept as an unknown
VALUE_COLUMNS = 8

# columns of `row_list`
LIST_ROW = 0  # rows kept as unknowns, by owner
FOLD_ROW = 1  # rows folded into their body, by owner
DUAL_ROW = 2  # active rows of LIST_ROW
SWITCHING = 3  # rows whose law has several pieces
CROSSING = 4  # rows beyond their active piece
ROW_LIST_COLUMNS = 5

# entries of `Search.counts`
NEWTON_STEPS, BLOCKS_FACTORED, FACTORIZATIONS, INTERIOR_STEPS = 0, 1, 2, 3


class Capacity(NamedTuple):
    """Capacity for neighbors, update matrices, row corners and outer parts."""

    neighbors: int
    front: int
    corner: int
    outer: int

    @classmethod
    def initial(cls, bodies: int, rows: int) -> Capacity:
        """Return a capacity for a tree with some contacts; a solve that needs more returns CAPACITY_EXCEEDED."""
        return cls(neighbors=2 * bodies + 8, front=72 * bodies + 288, corner=12 * rows + 64, outer=12 * rows + 64)

    def doubled(self) -> Capacity:
        """Return twice the capacity."""
        return Capacity(*(2 * n for n in self))


class Factor(NamedTuple):
    """Work arrays of the elimination and of the line search."""

    block: NDArray[np.float64]
    """(n, BLOCK_COLUMNS)"""
    dual: NDArray[np.float64]
    """(rows, DUAL_COLUMNS)"""
    mark: NDArray[np.int64]
    """(rows, MARK_COLUMNS)"""
    value: NDArray[np.float64]
    """(rows, VALUE_COLUMNS)"""
    row_list: NDArray[np.int64]
    """(rows or n, ROW_LIST_COLUMNS)"""
    column: NDArray[np.int64]
    """(entries,) owner's entry: its position; other entries: index among the owner's neighbors."""
    corner: NDArray[np.float64]
    """C of each position, row by row, reciprocal diagonal."""


class Fill(NamedTuple):
    """Work arrays for fill-in: positions that are part of a loop."""

    outer: NDArray[np.float64]
    """U, one dual row after another, 6 numbers per neighbor."""
    front: NDArray[np.float64]
    """U^T U - Y^T Y plus the children's updates; lower triangle used."""
    update_right: NDArray[np.float64]
    """U^T z - Y^T y plus the children's updates; 6 numbers per neighbor."""
    coupling: NDArray[np.float64]
    """B, then Y; six lines, one column per velocity component of the neighbors."""
    neighbor_velocity: NDArray[np.float64]
    """Velocities of the neighbors."""


def make_factor(bodies: int, rows: int, entries: int, capacity: Capacity) -> Factor:
    """Return work arrays of the given capacities."""
    return Factor(
        block=np.zeros((bodies, BLOCK_COLUMNS)),
        dual=np.zeros((rows, DUAL_COLUMNS)),
        mark=np.zeros((rows, MARK_COLUMNS), np.int64),
        value=np.zeros((rows, VALUE_COLUMNS)),
        row_list=np.zeros((max(rows, bodies), ROW_LIST_COLUMNS), np.int64),
        column=np.zeros(entries, np.int64),
        corner=np.zeros(capacity.corner),
    )


def make_fill(capacity: Capacity) -> Fill:
    """Return work arrays of the given capacities."""
    return Fill(
        outer=np.zeros(capacity.outer),
        front=np.zeros(capacity.front),
        update_right=np.zeros(6 * capacity.neighbors),
        coupling=np.zeros(36 * capacity.neighbors),
        neighbor_velocity=np.zeros(6 * capacity.neighbors),
    )


@inline
def use_piece(rows, mark, value, k, s):
    """Make piece s of its law the active one of row k."""
    if rows.beta[k, s] < 0.0:
        mark[k, MODE] = FLAT_ROW
        value[k, C] = rows.c[k, s]
    else:
        mark[k, MODE] = mark[k, KIND]
        value[k, BETA] = rows.beta[k, s]
        value[k, C] = rows.c[k, s] - rows.offset[k]


@kernel_function
def list_rows(rows, graph, factor, fill):
    """Assign every present row to its owner, the body eliminated first, and reserve storage for the factors.

    A row on one body whose slopes all exceed its MIN_FOLD_SLOPE is folded. Returns False if an array is too small.
    """
    node, neighbor, count = graph.node, graph.neighbor, graph.count[0]
    mark, value, column = factor.mark, factor.value, factor.column
    for k in range(count + 1):
        node[k, LISTED] = 0
        node[k, FOLDS] = 0
    for k in range(rows.used[0]):
        mark[k, MODE] = ABSENT
        mark[k, KIND] = ABSENT
        if rows.pieces[k] == 0:
            continue
        best, used = -1, 0
        for e in range(rows.first[k], rows.first[k + 1]):
            if rows.body[e] >= 0:
                column[e] = node[rows.body[e], POSITION]
                used += 1
                if best < 0 or column[e] < column[best]:
                    best = e
        if best < 0:
            rows.pieces[k] = 0
            continue
        mark[k, OWNER] = best
        mark[k, OTHER] = rows.first[k] + rows.first[k + 1] - 1 - best if used == 2 else -1
        position = column[best]
        folds = used == 1
        for s in range(rows.pieces[k]):
            if 0.0 <= rows.beta[k, s] <= value[k, MIN_FOLD_SLOPE]:
                folds = False
        if folds:
            mark[k, KIND] = FOLDED
            node[position + 1, FOLDS] += 1
            continue
        mark[k, KIND] = DUAL
        node[position + 1, LISTED] += 1
        for e in range(rows.first[k], rows.first[k + 1]):
            if e != best and rows.body[e] >= 0:
                j = node[position, NEIGHBORS]
                while neighbor[j, NEIGHBOR] != column[e]:
                    j += 1
                column[e] = j - node[position, NEIGHBORS]
    if not _assign_offsets(node, count, len(factor.corner), len(fill.outer), len(fill.front)):
        return False
    _write_lists(rows.used[0], node, mark, column, factor.row_list, count)
    return True


@inline
def _assign_offsets(node, count, corner_capacity, outer_capacity, front_capacity):
    """Cumulate the counts into offsets; return False if an array is too small."""
    corner, outer, front = 0, 0, 0
    for k in range(count):
        neighbors = node[k + 1, NEIGHBORS] - node[k, NEIGHBORS]
        owned = node[k + 1, LISTED]
        node[k, CORNER] = corner
        node[k, OUTER] = outer
        node[k, FRONT] = front
        node[k, DIRTY] = 1
        corner += owned * owned
        if node[k, WIDE]:
            outer += owned * 6 * neighbors
            front += 36 * neighbors * neighbors
        node[k + 1, LISTED] += node[k, LISTED]
        node[k + 1, FOLDS] += node[k, FOLDS]
    return corner <= corner_capacity and outer <= outer_capacity and front <= front_capacity


@inline
def _write_lists(used, node, mark, column, row_list, count):
    for k in range(count):
        node[k, DUALS] = 0
        row_list[k, DUAL_ROW] = 0  # counts folded rows here; rewritten by the first factorization
    for k in range(used):
        if mark[k, KIND] == ABSENT:
            continue
        position = column[mark[k, OWNER]]
        if mark[k, KIND] == FOLDED:
            row_list[node[position, FOLDS] + row_list[position, DUAL_ROW], FOLD_ROW] = k
            row_list[position, DUAL_ROW] += 1
        else:
            row_list[node[position, LISTED] + node[position, DUALS], LIST_ROW] = k
            node[position, DUALS] += 1
