"""Constraint rows: everything that acts on the bodies in one step, as directions and force-velocity laws.

Row k has one entry per dynamic body it acts on, `first[k] <= e < first[k + 1]`: the body and the six numbers by which
that body's velocity (linear, angular; world frame, about the center of mass) enters the row's velocity

    u_k = sum_e jacobian[e] . v[body[e]] + offset[k]

The law between u and the impulse p is a monotone polyline of up to five pieces in order of rising u. A piece is
sloped, u = c - beta p (beta >= 0), or flat, p = c, marked by beta = FLAT. Break s between pieces s and s + 1 is
stored both as velocity and as impulse: deriving one from the other loses digits when beta is tiny.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import kernel_function

MAX_PIECES = 5
FLAT = -1.0


class Rows(NamedTuple):
    """Rows of one step. Arrays have fixed size; an absent row has `pieces` 0."""

    used: NDArray[np.int64]
    """(1,) number of rows in this step; rows beyond it are ignored."""

    first: NDArray[np.int64]
    """(rows + 1,) entries of row k are first[k] to first[k + 1]."""
    body: NDArray[np.int64]
    """(entries,) dynamic body of an entry; -1: unused entry."""
    jacobian: NDArray[np.float64]
    """(entries, 6) linear then angular part, world frame, about the center of mass."""
    offset: NDArray[np.float64]
    """(rows,) velocity from motion that is not solved for (kinematic bodies, marker targets)."""
    pieces: NDArray[np.int64]
    """(rows,) number of pieces of the law; 0: absent row."""
    beta: NDArray[np.float64]
    """(rows, 5) slope of each piece [velocity per impulse], FLAT for a flat one."""
    c: NDArray[np.float64]
    """(rows, 5) sloped: velocity at zero impulse; flat: the impulse."""
    break_u: NDArray[np.float64]
    """(rows, 4) velocity at the break after piece s."""
    break_p: NDArray[np.float64]
    """(rows, 4) impulse at the break after piece s."""


def make_rows(entries_per_row: NDArray[np.int64]) -> Rows:
    """Return empty rows with the given number of entries each."""
    count = len(entries_per_row)
    first = np.zeros(count + 1, np.int64)
    np.cumsum(entries_per_row, out=first[1:])
    entries = int(first[-1])
    return Rows(
        used=np.array([count], np.int64),
        first=first,
        body=np.full(entries, -1, np.int64),
        jacobian=np.zeros((entries, 6)),
        offset=np.zeros(count),
        pieces=np.zeros(count, np.int64),
        beta=np.zeros((count, MAX_PIECES)),
        c=np.zeros((count, MAX_PIECES)),
        break_u=np.zeros((count, MAX_PIECES - 1)),
        break_p=np.zeros((count, MAX_PIECES - 1)),
    )


@kernel_function
def copy_rows(source, out):
    """Copy directions and laws of the rows of a step."""
    used = source.used[0]
    for e in range(source.first[used]):
        for n in range(6):
            out.jacobian[e, n] = source.jacobian[e, n]
    for k in range(used):
        out.offset[k], out.pieces[k] = source.offset[k], source.pieces[k]
        for s in range(source.pieces[k]):
            out.beta[k, s], out.c[k, s] = source.beta[k, s], source.c[k, s]
        for s in range(source.pieces[k] - 1):
            out.break_u[k, s], out.break_p[k, s] = source.break_u[k, s], source.break_p[k, s]
