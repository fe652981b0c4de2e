"""How a series of samples goes on beyond its ends, for filters and splines that look past them.

Reflected in its end points, y(-t) = 2 y(0) - y(t), a series has no acceleration there, whatever it had before. So the
smooth curve s of the series is taken out, which goes on by itself, and only what is left is reflected:

    y(-t) = s(-t) + r(-t)          r(-t) = 2 r(0) - r(t)          r = y - s

The acceleration a of s is a process that forgets itself within a time T (Ornstein and Uhlenbeck's), the samples have
white noise; the likeliest s minimises, with f = exp(-h/T) for samples h apart and a in units of its own spread,

    sum (y - s)^2 / noise^2 + a_1^2 + sum (a_{i+1} - f a_i)^2 / (1 - f^2)          h^2 a_i = s_{i+1} - 2 s_i + s_{i-1}

Beyond the end a dies away, a_{i+1} = f a_i. All this is linear, and the same for every column: turning or mirroring
the lab commutes with it.

Somebody who walks repeats himself. Where that is asked and strides are alike (`find_stride`), the stride before, or
after, tells what comes beyond an end, and only what differs from it goes on as above:

    y(-t) = s(P - t) + d(-t)          d(t) = y(t) - s(t + P)

Walks and a drop jump cut where they go on, and what is found in the 0.1 s before the cut held against what the whole
trial gives: the centre of mass errs upward by 7.3 % of g where reflection alone errs by 8.8 %, accelerations of joints
by 0.47 of their spread instead of 0.49, with no more noise. (Less noise in the law: 4 to 5 %, and cubics fitted to the
ends 3 to 5 %, but both take noise of the poses for bends.) With strides three walks err by 4.0, 4.6 and 4.7 %, without
by 6.3, 7.0 and 5.8 %. What happens at an end is therefore in part a guess: a heel that strikes 0.04 s before the last
frame is seen by its last stride or not at all. Comparisons leave the outer `EDGE_DURATION` out, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TINY = 1e-300
"""Squared accelerations of what does not move."""
MEMORY = 0.25
"""T, in periods of the cutoff."""
NOISE = 0.02
"""Spread of one sample's noise, if there were one in each period, in spreads of acceleration times period squared."""

EDGE_DURATION = 0.1
"""Time [s] at each end in which accelerations follow from how the series is continued as much as from its samples."""

ALIKE = 0.15
"""Share of the squared accelerations by which strides may differ."""
LEAST_STRIDE, LEAST_OVERLAP = 3.0, 0.4
"""Periods of the cutoff in the shortest stride, and the share of a stride that must be there twice to be compared."""


def mask_inner_frames(time: Array) -> NDArray[np.bool_]:
    """(frames,) whether a frame is farther than `EDGE_DURATION` from both ends; all of them where none is."""
    inner = np.asarray((time >= time[0] + EDGE_DURATION - 1e-9) & (time <= time[-1] - EDGE_DURATION + 1e-9))
    return inner if inner.any() else np.ones(len(time), bool)


def reflect(q: Array, pad: int) -> Array:
    """The series with so many samples more at each end, reflected in its end points."""
    return np.concatenate([2.0 * q[0] - q[pad:0:-1], q, 2.0 * q[-1] - q[-2 : -pad - 2 : -1]])


def find_stride(smooth: Array, period: float) -> int | None:
    """Samples after which a smooth series repeats itself; None if it does not, or is too short to tell.

    Strides differ by sum (a(t + P) - a(t))^2, of sum a(t)^2 + a(t + P)^2; the products are those of one transform.

    Args:
        smooth: (samples, columns)
        period: Samples in a period of the cutoff.
    """
    a = np.diff(smooth, 2, axis=0)
    lags = np.arange(int(np.ceil(LEAST_STRIDE * period)), int(len(a) / (1.0 + LEAST_OVERLAP)) + 1)
    if len(lags) == 0 or a.shape[1] == 0:
        return None
    power = np.concatenate([[0.0], np.cumsum(np.sum(a**2, axis=1))])
    spectrum = np.sum(np.abs(np.fft.rfft(a, 2 * len(a), axis=0)) ** 2, axis=1)
    products = np.fft.irfft(spectrum, 2 * len(a))[lags]
    both = power[len(a) - lags] + power[-1] - power[lags]
    differ = 1.0 - 2.0 * products / np.maximum(both, TINY)
    best = int(np.argmin(differ))
    return int(lags[best]) if differ[best] < ALIKE else None


def extend_series(
    q: Array, pad: int, period: float, *, noisy: bool, telling: Sequence[int] | NDArray[np.int64] = ()
) -> Array:
    """The series with so many samples more at each end, where its smooth part goes on and what is left is reflected.

    Args:
        q: (samples, columns)
        pad: How many; fewer than there are.
        period: Samples in a period of the cutoff.
        noisy: Whether the samples have noise; if not, the smooth part is all of them.
        telling: The columns that tell whether the series repeats itself; none: it is not asked.
    """
    left = _left(q, period) if noisy else np.zeros_like(q)
    smooth = q - left
    stride = find_stride(smooth[:, np.asarray(telling, int)], period)
    if stride is None or stride < pad:
        before, after = (_ahead(s, pad, period) for s in (smooth, smooth[::-1]))
    else:
        before, after = (_repeated(y, s, pad, period, stride, noisy) for y, s in ((q, smooth), (q[::-1], smooth[::-1])))
    going = np.concatenate([before[::-1], smooth, after])
    return going + reflect(left, pad)


def _repeated(q: Array, smooth: Array, pad: int, period: float, stride: int, noisy: bool) -> Array:
    """What comes before the first sample, nearest first: as a stride later, and what differs from it goes on."""
    differ = q[:-stride] - smooth[stride:]
    if noisy:
        differ = differ - _left(differ, period)
    return np.asarray(smooth[stride - 1 - np.arange(pad)] + _ahead(differ, pad, period))


def _ahead(smooth: Array, pad: int, period: float) -> Array:
    """What comes before the first sample, nearest first: the acceleration dies away."""
    kept = np.exp(-1.0 / (MEMORY * period)) ** np.arange(1, pad + 1)
    bend = smooth[0] - 2.0 * smooth[1] + smooth[2]
    step = (smooth[0] - smooth[1]) + np.cumsum(kept)[:, None] * bend
    return np.asarray(smooth[0] + np.cumsum(step, axis=0))


def _left(q: Array, period: float) -> Array:
    """What the smooth curve leaves of the samples: (1 / noise^2 + R^T R)^-1 R^T R y, R the rows whose squares cost."""
    from scipy.linalg import solveh_banded

    count, f = len(q), np.exp(-1.0 / (MEMORY * period))
    news = np.array([-f, 1.0 + 2.0 * f, -(2.0 + f), 1.0]) * period**2 / np.sqrt(1.0 - f * f)
    first = np.array([1.0, -2.0, 1.0]) * period**2
    band, right = np.zeros((4, count)), np.zeros_like(q)
    # the first row, then as many as fit, each a sample further
    rows = count - 3
    cost = sum(news[k] * q[k : k + rows] for k in range(4))
    for k in range(4):
        right[k : k + rows] += news[k] * cost
        for below in range(4 - k):
            band[below, k : k + rows] += news[k] * news[k + below]
    right[:3] += np.outer(first, first @ q[:3])
    for k in range(3):
        band[: 3 - k, k] += first[k] * first[k:]
    band[0] += 1.0 / (NOISE**2 * period)
    return np.asarray(solveh_banded(band, right, lower=True))
