"""What the elimination writes to, and which rows each body owns.

Numbers that belong together share an array, one row of it per body or per row of the step, with named columns: they are
used together, and kernels that take few arrays compile and run faster.
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
    NEAR,
    NEIGHBOUR,
    OUTER,
    PLACE,
    WIDE,
)

# columns of `block`, by position; triangles are packed as in `blocks`
MASS = 0  # 21: mass block
MOMENTUM = 21  # 6: free momentum
LOWER = 27  # 21: L
RIGHT = 48  # 6: right side, then y
FOLDED_RIGHT = 54  # 6: share of the folded rows in the right side
SOLUTION = 60  # 6: v
UPDATE = 66  # 21: part of U^T U - Y^T Y on the first neighbour, with what children pass on
HANDED = 87  # 6: part of U^T z - Y^T y on the first neighbour, with what children pass on
VELOCITY = 93  # 6: where the search stands
BLOCK_COLUMNS = 99

# columns of `dual`, by place in the list of rows kept as unknowns
W, U, Z = 0, 6, 12
DUAL_COLUMNS = 13

# columns of `mark`, by row
KIND = 0  # how the row enters on a sloped segment: FOLDED or DUAL; ABSENT
MODE = 1  # how it enters now: ABSENT, FLAT_ROW, FOLDED or DUAL
OWNER = 2  # its entry on the body that owns it
OTHER = 3  # its other entry if it has two, else -1
SEGMENT = 4  # the segment it is on: the warm start
FLIPS = 5  # how often it changed segment in this solve
MARK_COLUMNS = 6
ABSENT, FLAT_ROW, FOLDED, DUAL = 0, 1, 2, 3

# columns of `value`, by row
BETA = 0  # slope in force
C = 1  # sloped: c less the offset; flat: the impulse
IMPULSE = 2  # p of the candidate
U_NOW, P_NOW = 3, 4  # where the search stands
DU = 5  # velocity change to the candidate
CROSSED = 6  # where along the search the row last changed segment, -1 if it did not
STIFF = 7  # slope at or below which a row on one body is kept as an unknown
VALUE_COLUMNS = 8

# columns of `roll`: lists of rows
LIST_ROW = 0  # rows kept as unknowns, by owner
FOLD_ROW = 1  # rows folded into their body, by owner
DUAL_ROW = 2  # of those kept, the ones in force
SWITCHING = 3  # rows whose law has several segments
CROSSING = 4  # rows beyond their segment
ROLL_COLUMNS = 5


class Capacity(NamedTuple):
    """Room for neighbours, update matrices, row corners and outer parts."""

    neighbours: int
    front: int
    corner: int
    outer: int

    def grown(self) -> Capacity:
        """Twice the room."""
        return Capacity(*(2 * n for n in self))


class Factor(NamedTuple):
    """Work arrays of the elimination and of the search above it."""

    block: NDArray[np.float64]
    """(n, BLOCK_COLUMNS)"""
    dual: NDArray[np.float64]
    """(rows, DUAL_COLUMNS)"""
    mark: NDArray[np.int64]
    """(rows, MARK_COLUMNS)"""
    value: NDArray[np.float64]
    """(rows, VALUE_COLUMNS)"""
    roll: NDArray[np.int64]
    """(rows or n, ROLL_COLUMNS)"""
    column: NDArray[np.int64]
    """(entries,) owner's entry: its position; other entries: index among the owner's neighbours."""
    corner: NDArray[np.float64]
    """C of each position, row by row, reciprocal diagonal."""


class Fill(NamedTuple):
    """Work arrays for positions that a loop passes through."""

    outer: NDArray[np.float64]
    """U, one dual row after another, 6 numbers per neighbour."""
    front: NDArray[np.float64]
    """U^T U - Y^T Y plus what children pass on; lower triangle used."""
    passed: NDArray[np.float64]
    """U^T z - Y^T y plus what children pass on; 6 numbers per neighbour."""
    coupling: NDArray[np.float64]
    """B, then Y; six lines, one column per number of the neighbours' velocities."""
    spread: NDArray[np.float64]
    """Velocities of the neighbours."""


def make_factor(bodies: int, rows: int, entries: int, capacity: Capacity) -> Factor:
    """Work arrays of the given capacities."""
    return Factor(
        block=np.zeros((bodies, BLOCK_COLUMNS)),
        dual=np.zeros((rows, DUAL_COLUMNS)),
        mark=np.zeros((rows, MARK_COLUMNS), np.int64),
        value=np.zeros((rows, VALUE_COLUMNS)),
        roll=np.zeros((max(rows, bodies), ROLL_COLUMNS), np.int64),
        column=np.zeros(entries, np.int64),
        corner=np.zeros(capacity.corner),
    )


def make_fill(capacity: Capacity) -> Fill:
    """Work arrays of the given capacities."""
    return Fill(
        outer=np.zeros(capacity.outer),
        front=np.zeros(capacity.front),
        passed=np.zeros(6 * capacity.neighbours),
        coupling=np.zeros(36 * capacity.neighbours),
        spread=np.zeros(6 * capacity.neighbours),
    )


@inline
def use_segment(rows, mark, value, k, s):
    """Put row k on segment s of its law."""
    if rows.beta[k, s] < 0.0:
        mark[k, MODE] = FLAT_ROW
        value[k, C] = rows.c[k, s]
    else:
        mark[k, MODE] = mark[k, KIND]
        value[k, BETA] = rows.beta[k, s]
        value[k, C] = rows.c[k, s] - rows.offset[k]


@kernel_function
def list_rows(rows, graph, factor, fill):
    """Hand every present row to its owner, the body that goes first, and find room for the factors.

    A row on one body whose slopes all exceed its STIFF is folded. False when the work arrays are too small.
    """
    node, near, count = graph.node, graph.near, graph.count[0]
    mark, value, column = factor.mark, factor.value, factor.column
    for k in range(count + 1):
        node[k, LISTED] = 0
        node[k, FOLDS] = 0
    for k in range(rows.used[0]):
        mark[k, MODE] = ABSENT
        mark[k, KIND] = ABSENT
        if rows.segments[k] == 0:
            continue
        best, used = -1, 0
        for e in range(rows.first[k], rows.first[k + 1]):
            if rows.body[e] >= 0:
                column[e] = node[rows.body[e], PLACE]
                used += 1
                if best < 0 or column[e] < column[best]:
                    best = e
        if best < 0:
            rows.segments[k] = 0
            continue
        mark[k, OWNER] = best
        mark[k, OTHER] = rows.first[k] + rows.first[k + 1] - 1 - best if used == 2 else -1
        position = column[best]
        folds = used == 1
        for s in range(rows.segments[k]):
            if 0.0 <= rows.beta[k, s] <= value[k, STIFF]:
                folds = False
        if folds:
            mark[k, KIND] = FOLDED
            node[position + 1, FOLDS] += 1
            continue
        mark[k, KIND] = DUAL
        node[position + 1, LISTED] += 1
        for e in range(rows.first[k], rows.first[k + 1]):
            if e != best and rows.body[e] >= 0:
                j = node[position, NEAR]
                while near[j, NEIGHBOUR] != column[e]:
                    j += 1
                column[e] = j - node[position, NEAR]
    if not _find_room(node, count, len(factor.corner), len(fill.outer), len(fill.front)):
        return False
    _write_lists(rows.used[0], node, mark, column, factor.roll, count)
    return True


@inline
def _find_room(node, count, corner_room, outer_room, front_room):
    """Cumulate the counts into places; False when an array is too small."""
    corner, outer, front = 0, 0, 0
    for k in range(count):
        neighbours = node[k + 1, NEAR] - node[k, NEAR]
        owned = node[k + 1, LISTED]
        node[k, CORNER] = corner
        node[k, OUTER] = outer
        node[k, FRONT] = front
        node[k, DIRTY] = 1
        corner += owned * owned
        if node[k, WIDE]:
            outer += owned * 6 * neighbours
            front += 36 * neighbours * neighbours
        node[k + 1, LISTED] += node[k, LISTED]
        node[k + 1, FOLDS] += node[k, FOLDS]
    return corner <= corner_room and outer <= outer_room and front <= front_room


@inline
def _write_lists(used, node, mark, column, roll, count):
    for k in range(count):
        node[k, DUALS] = 0
        roll[k, DUAL_ROW] = 0  # counts folded rows here; rewritten by the first factorisation
    for k in range(used):
        if mark[k, KIND] == ABSENT:
            continue
        position = column[mark[k, OWNER]]
        if mark[k, KIND] == FOLDED:
            roll[node[position, FOLDS] + roll[position, DUAL_ROW], FOLD_ROW] = k
            roll[position, DUAL_ROW] += 1
        else:
            roll[node[position, LISTED] + node[position, DUALS], LIST_ROW] = k
            node[position, DUALS] += 1
