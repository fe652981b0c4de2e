"""Smooth curves in time: periodic ones from few harmonics, and minimum-jerk pieces between key moments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def harmonics(phase: ArrayLike, values: ArrayLike, at: ArrayLike, count: int, *, every: int = 1) -> Array:
    """Fit the mean and `count` harmonics to values at phases of a cycle (0 to 1), and evaluate them at other phases.

    With `every` 2 only even harmonics are used, for curves that repeat with every step.
    """
    base = _waves(phase, count, every)
    parts = np.linalg.solve(base.T @ base, base.T @ np.asarray(values, float))
    return np.asarray(_waves(at, count, every) @ parts)


def minimum_jerk(knots: Sequence[tuple[float, ...]], at: ArrayLike) -> Array:
    """Evaluate the minimum-jerk curve between knots at times [s], constant before the first and after the last.

    A knot is (time [s], value) or (time, value, velocity, acceleration); velocity and acceleration default to zero.
    """
    from scipy.interpolate import BPoly

    full = [(*knot, *(0.0,) * (4 - len(knot))) for knot in knots]
    times = [knot[0] for knot in full]
    curve = BPoly.from_derivatives(times, [list(knot[1:]) for knot in full])
    return np.asarray(curve(np.clip(np.asarray(at, float), times[0], times[-1])))


def spline_derivatives(values: Array, step: float, order: int = 2) -> list[Array]:
    """Return equally spaced values [step in s] and their time derivatives up to an order, by a quintic spline."""
    from scipy.interpolate import make_interp_spline

    time = step * np.arange(len(values))
    spline = make_interp_spline(time, values, k=5)
    return [np.asarray(spline(time, nu)) for nu in range(order + 1)]


def _waves(phase: ArrayLike, count: int, every: int) -> Array:
    angle = 2.0 * np.pi * np.outer(np.asarray(phase, float), every * np.arange(1, count + 1))
    return np.hstack([np.ones((len(angle), 1)), np.cos(angle), np.sin(angle)])
