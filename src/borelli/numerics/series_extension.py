"""Extension of a series of samples past its ends, for filters and splines.

Reflection in the end points, y(-t) = 2 y(0) - y(t), removes all acceleration there. So the smooth part s of the series
is extrapolated by itself, and only the remainder r is reflected:

    y(-t) = s(-t) + r(-t)          r(-t) = 2 r(0) - r(t)          r = y - s

The acceleration a of s is modeled as an Ornstein-Uhlenbeck process with correlation time T, the samples have white
noise; the most likely s minimizes, with f = exp(-h/T) for samples h apart and a in units of its standard deviation,

    sum (y - s)^2 / noise^2 + a_1^2 + sum (a_{i+1} - f a_i)^2 / (1 - f^2)          h^2 a_i = s_{i+1} - 2 s_i + s_{i-1}

Beyond the end a decays, a_{i+1} = f a_i. All this is linear and the same for every column, so rotating or mirroring
the lab commutes with it.

Walking is periodic. On request, where strides are alike (`find_stride`), the neighboring stride predicts the samples
beyond an end, and only the difference d from it is extrapolated as above:

    y(-t) = s(P - t) + d(-t)          d(t) = y(t) - s(t + P)

Events near an end are partly extrapolated: a heel strike 0.04 s before the last frame appears through the previous
stride or not at all. Comparisons leave out the outer `EDGE_DURATION` and say so. Validation: docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from borelli.numerics.vectors import Array

MIN_POWER = 1e-300
"""Lower bound of the sum of squared accelerations, for a series at rest."""
CORRELATION_TIME = 0.25
"""T, in periods of the cutoff."""
NOISE_SD = 0.02
"""Standard deviation of the noise of one sample, for one sample a period, in units of acceleration times period^2."""

EDGE_DURATION = 0.1
"""Time [s] at each end in which accelerations depend on the extension as much as on the samples."""

MAX_STRIDE_DIFFERENCE = 0.15
"""Largest difference of strides, as a fraction of the squared accelerations."""
MIN_STRIDE, MIN_OVERLAP = 3.0, 0.4
"""Shortest stride in periods of the cutoff, and smallest fraction of a stride that must be recorded twice."""


def mask_inner_frames(time: Array) -> NDArray[np.bool_]:
    """Return a mask (frames,) of frames farther than `EDGE_DURATION` from both ends; all true if there are none."""
    inner = np.asarray((time >= time[0] + EDGE_DURATION - 1e-9) & (time <= time[-1] - EDGE_DURATION + 1e-9))
    return inner if inner.any() else np.ones(len(time), bool)


def reflect(q: Array, pad: int) -> Array:
    """Return the series with `pad` more samples at each end, reflected in its end points."""
    return np.concatenate([2.0 * q[0] - q[pad:0:-1], q, 2.0 * q[-1] - q[-2 : -pad - 2 : -1]])


def find_stride(smooth: Array, period: float) -> int | None:
    """Return the number of samples after which a smooth series repeats itself; None if it does not or is too short.

    Strides differ by sum (a(t + P) - a(t))^2 of sum a(t)^2 + a(t + P)^2; the products come from one Fourier transform.
    `period` is the number of samples in a period of the cutoff.
    """
    a = np.diff(smooth, 2, axis=0)
    lags = np.arange(int(np.ceil(MIN_STRIDE * period)), int(len(a) / (1.0 + MIN_OVERLAP)) + 1)
    if len(lags) == 0 or a.shape[1] == 0:
        return None
    power = np.concatenate([[0.0], np.cumsum(np.sum(a**2, axis=1))])
    spectrum = np.sum(np.abs(np.fft.rfft(a, 2 * len(a), axis=0)) ** 2, axis=1)
    products = np.fft.irfft(spectrum, 2 * len(a))[lags]
    both = power[len(a) - lags] + power[-1] - power[lags]
    difference = 1.0 - 2.0 * products / np.maximum(both, MIN_POWER)
    best = int(np.argmin(difference))
    return int(lags[best]) if difference[best] < MAX_STRIDE_DIFFERENCE else None


def extend_series(
    q: Array, pad: int, period: float, *, noisy: bool, stride_columns: Sequence[int] | NDArray[np.int64] = ()
) -> Array:
    """Return the series with `pad` more samples at each end: smooth part extrapolated, remainder reflected.

    Args:
        q: (samples, columns)
        pad: Number of samples; fewer than there are.
        period: Samples in a period of the cutoff.
        noisy: Whether the samples have noise; if not, all of them are the smooth part.
        stride_columns: Columns in which to look for a repeated stride; empty: strides are not used.
    """
    remainder = _remainder(q, period) if noisy else np.zeros_like(q)
    smooth = q - remainder
    stride = find_stride(smooth[:, np.asarray(stride_columns, int)], period)
    if stride is None or stride < pad:
        before, after = (_extrapolate(s, pad, period) for s in (smooth, smooth[::-1]))
    else:
        before, after = (
            _extrapolate_stride(y, s, pad, period, stride, noisy) for y, s in ((q, smooth), (q[::-1], smooth[::-1]))
        )
    return np.concatenate([before[::-1], smooth, after]) + reflect(remainder, pad)


def _extrapolate_stride(q: Array, smooth: Array, pad: int, period: float, stride: int, noisy: bool) -> Array:
    """Return the samples before the first, nearest first: those a stride later plus the extrapolated difference."""
    difference = q[:-stride] - smooth[stride:]
    if noisy:
        difference = difference - _remainder(difference, period)
    return np.asarray(smooth[stride - 1 - np.arange(pad)] + _extrapolate(difference, pad, period))


def _extrapolate(smooth: Array, pad: int, period: float) -> Array:
    """Return the samples before the first, nearest first, with decaying acceleration."""
    decay = np.exp(-1.0 / (CORRELATION_TIME * period)) ** np.arange(1, pad + 1)
    acceleration = smooth[0] - 2.0 * smooth[1] + smooth[2]
    step = (smooth[0] - smooth[1]) + np.cumsum(decay)[:, None] * acceleration
    return np.asarray(smooth[0] + np.cumsum(step, axis=0))


def _remainder(q: Array, period: float) -> Array:
    """Return the samples minus their smooth part, (1 / noise^2 + R^T R)^-1 R^T R y with R the rows of the penalty."""
    from scipy.linalg import solveh_banded

    count, f = len(q), np.exp(-1.0 / (CORRELATION_TIME * period))
    innovation = np.array([-f, 1.0 + 2.0 * f, -(2.0 + f), 1.0]) * period**2 / np.sqrt(1.0 - f * f)
    first = np.array([1.0, -2.0, 1.0]) * period**2
    band, right = np.zeros((4, count)), np.zeros_like(q)
    # the first row, then as many as fit, each a sample further
    rows = count - 3
    cost = sum(innovation[k] * q[k : k + rows] for k in range(4))
    for k in range(4):
        right[k : k + rows] += innovation[k] * cost
        for below in range(4 - k):
            band[below, k : k + rows] += innovation[k] * innovation[k + below]
    right[:3] += np.outer(first, first @ q[:3])
    for k in range(3):
        band[: 3 - k, k] += first[k] * first[k:]
    band[0] += 1.0 / (NOISE_SD**2 * period)
    return np.asarray(solveh_banded(band, right, lower=True))
