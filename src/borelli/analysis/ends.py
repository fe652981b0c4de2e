"""How a series of samples goes on beyond its ends, for filters and splines that look past them.

Reflected in its end points, y(-t) = 2 y(0) - y(t), a series has no acceleration there, whatever it had before. So the
smooth curve s of the series is taken out, which goes on by itself, and only what is left is reflected:

    y(-t) = s(-t) + r(-t)          r(-t) = 2 r(0) - r(t)          r = y - s

The acceleration a of s is a process that forgets itself within a time T (Ornstein and Uhlenbeck's), the samples have
white noise; the likeliest s minimises, with f = exp(-h/T) for samples h apart and a in units of its own spread,

    sum (y - s)^2 / noise^2 + a_1^2 + sum (a_{i+1} - f a_i)^2 / (1 - f^2)          h^2 a_i = s_{i+1} - 2 s_i + s_{i-1}

Beyond the end a dies away, a_{i+1} = f a_i. All this is linear, and the same for every column: turning or mirroring
the lab commutes with it.

Walks and a drop jump cut where they go on, and what is found in the 0.1 s before the cut held against what the whole
trial gives: the centre of mass errs upward by 7.3 % of g where reflection alone errs by 8.8 %, accelerations of joints
by 0.47 of their spread instead of 0.49, with no more noise. (Less noise in the law: 4 to 5 %, and cubics fitted to the
ends 3 to 5 %, but both take noise of the poses for bends.) What happens at an end is therefore in part a guess: a heel
that strikes 0.04 s before the last frame is not seen at all. Comparisons leave the outer `UNSURE` out, and say so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MEMORY = 0.25
"""T, in periods of the cutoff."""
NOISE = 0.02
"""Spread of one sample's noise, if there were one in each period, in spreads of acceleration times period squared."""

UNSURE = 0.1
"""Time [s] at each end in which accelerations follow from how the series is continued as much as from its samples."""


def away_from_ends(time: Array) -> NDArray[np.bool_]:
    """(frames,) whether a frame is farther than `UNSURE` from both ends; all of them where none is."""
    inner = np.asarray((time >= time[0] + UNSURE - 1e-9) & (time <= time[-1] - UNSURE + 1e-9))
    return inner if inner.any() else np.ones(len(time), bool)


def reflected(q: Array, pad: int) -> Array:
    """The series with so many samples more at each end, reflected in its end points."""
    return np.concatenate([2.0 * q[0] - q[pad:0:-1], q, 2.0 * q[-1] - q[-2 : -pad - 2 : -1]])


def continued(q: Array, pad: int, period: float, *, noisy: bool) -> Array:
    """The series with so many samples more at each end, where its smooth part goes on and what is left is reflected.

    Args:
        q: (samples, columns)
        pad: How many; fewer than there are.
        period: Samples in a period of the cutoff.
        noisy: Whether the samples have noise; if not, the smooth part is all of them.
    """
    left = _left(q, period) if noisy else np.zeros_like(q)
    smooth = q - left
    before, after = (_ahead(s, pad, period) for s in (smooth, smooth[::-1]))
    going = np.concatenate([before[::-1], smooth, after])
    return going + reflected(left, pad)


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
