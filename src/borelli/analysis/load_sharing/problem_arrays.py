"""Arrays of load sharing for its kernels: problems of all frames, and work arrays (symbols as in `dual_newton`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class SharingProblem(NamedTuple):
    """Problems of all frames. Arrays of (1 or frames, n) have one row if it is that of every frame."""

    start: NDArray[np.int64]
    """(n + 1,) column i of A has the entries start[i] to start[i + 1]."""
    row: NDArray[np.int64]
    """(entries,) row of each entry, ascending in each column."""
    entry: Floats
    """(frames, entries)"""
    required: Floats
    """(frames, m) b; NaN: the frame is missing."""
    lower: Floats
    """(1 or frames, n)"""
    upper: Floats
    """(1 or frames, n)"""
    exponent: Floats
    """(n,) p, above 1."""
    join: Floats
    """(n,) x_join."""
    join_slope: Floats
    """(n,) x_join^(p - 2)."""
    power_weight: Floats
    """(1 or frames, n) w; 0: no power."""
    quadratic: Floats
    """(1 or frames, n) k"""
    linear: Floats
    """(1 or frames, n) l"""
    pull: Floats
    """(1 or frames, n) g"""
    softness: Floats
    """(1,) e relative to the diagonal of A A^T."""
    rise: Floats
    """(frames or 0,) least factor of 1 - x from the frame before to this one; no entries: no bounds on rates."""
    decay: Floats
    """(frames or 0,) least factor of x."""
    rated: NDArray[np.int64]
    """(1,) number of actuators, from the first, that have bounds on rates."""


class Buffers(NamedTuple):
    """Work arrays for n actuators and m rows."""

    y: Floats
    """(m,) multipliers, kept from frame to frame."""
    other_y: Floats
    """(m,) those of the nearest torque."""
    required: Floats
    """(m,) b of the frame, or the nearest attainable torque."""
    center: Floats
    """(m,) y0"""
    softness: Floats
    """(m,) e of each row"""
    diagonal: Floats
    """(m,) that of A A^T; 1 where it is 0."""
    gradient: Floats
    """(m,)"""
    step: Floats
    """(m,)"""
    unattained: Floats
    """(m,) b - A x"""
    total: Floats
    """(m,) that of the required torque, where b is the nearest one."""
    hessian: Floats
    """(m, m) upper triangle."""
    filled_columns: NDArray[np.int64]
    """(m, m) columns of the entries of each row of its factor that are not zero."""
    filled: NDArray[np.int64]
    """(m,) number of these."""
    control: Floats
    """(n,) x"""
    slope: Floats
    """(n,) D"""
    drive: Floats
    """(n,) s"""
    drive_step: Floats
    """(n,) change of s along the step."""
    lower: Floats
    """(n,) bounds of the frame, with those on rates."""
    upper: Floats
    """(n,)"""
    power_weight: Floats
    """(n,) coefficients of the frame, as those below."""
    quadratic: Floats
    """(n,)"""
    linear: Floats
    """(n,)"""
    pull: Floats
    """(n,)"""


def make_buffers(n: int, m: int) -> Buffers:
    """Return work arrays for n actuators and m rows."""
    by_row = ("y", "other_y", "required", "center", "softness", "diagonal", "gradient", "step", "unattained", "total")
    arrays: dict[str, Any] = {name: np.zeros(m if name in by_row else n) for name in Buffers._fields}
    whole = {"filled_columns": np.zeros((m, m), np.int64), "filled": np.zeros(m, np.int64)}
    return Buffers(**arrays | whole | {"hessian": np.zeros((m, m))})
