"""Sparse columns of actuators: torques of each actuator per unit of control, coordinates sorted for little fill-in.

A muscle crosses few joints, so the matrix A D A^T of the dual Newton method is sparse, and its factor stays sparse if
coordinates are eliminated in order of minimum degree (Markowitz 1957).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.numerics.vectors import Array

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


class ColumnPattern(NamedTuple):
    """Nonzero entries of the columns, sorted by column, then by position of their coordinate in the order."""

    order: Indices
    """(coordinates,) coordinate at each position."""
    start: Indices
    """(columns + 1,) first entry of each column."""
    column: Indices
    """(entries,)"""
    position: Indices
    """(entries,) position of the entry's coordinate."""


def find_pattern(nonzero: Mask) -> ColumnPattern:
    """Return the pattern of columns from a mask (columns, coordinates) of what may differ from zero."""
    order = elimination_order(nonzero)
    column, position = np.nonzero(nonzero[:, order])
    start = np.concatenate(([0], np.cumsum(nonzero.sum(axis=1)))).astype(np.int64)
    return ColumnPattern(order, start, column.astype(np.int64), position.astype(np.int64))


def elimination_order(nonzero: Mask) -> Indices:
    """Return the coordinates in order of minimum degree, the first one on a tie."""
    joined = (nonzero.T.astype(np.int64) @ nonzero.astype(np.int64)) > 0
    remaining = np.ones(len(joined), bool)
    order = []
    for _ in range(len(joined)):
        degree = np.where(remaining, joined[:, remaining].sum(axis=1), len(joined) + 1)
        chosen = int(degree.argmin())
        remaining[chosen] = False
        neighbors = joined[chosen] & remaining
        joined[np.ix_(neighbors, neighbors)] = True
        order.append(chosen)
    return np.array(order, np.int64)


def gather(pattern: ColumnPattern, matrix: Array, first: int) -> Array:
    """Return the entries (frames, entries) of dense columns (frames, columns, coordinates).

    They are columns `first`, `first` + 1, ... of the pattern.
    """
    inside = (pattern.column >= first) & (pattern.column < first + matrix.shape[1])
    columns, coordinates = pattern.column[inside] - first, pattern.order[pattern.position[inside]]
    return np.ascontiguousarray(matrix[:, columns, coordinates])
