"""Vector algebra on many vectors at once."""

from __future__ import annotations

from math import hypot

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MEDIAN_STEPS, MEDIAN_TOLERANCE = 200, 1e-6
"""Largest number of steps of the geometric median, and a last step that is small enough, in units of the vectors."""


def cross(a: Array, b: Array) -> Array:
    """Return the cross products of vectors (..., 3, frames)."""
    result = np.empty(np.broadcast_shapes(a.shape, b.shape))
    product = np.empty_like(result[..., 0, :])
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out = result[..., i, :]
        np.multiply(a[..., j, :], b[..., k, :], out=out)
        np.multiply(a[..., k, :], b[..., j, :], out=product)
        np.subtract(out, product, out=out)
    return result


def geometric_median(vectors: Array, weights: Array) -> Array:
    """Return the point (2,) with the least weighted sum of distances from vectors (count, 2): Weiszfeld (1937).

    Unlike medians along the axes, it turns with them.
    """
    x, y = np.ascontiguousarray(vectors.T)
    median = weights @ vectors / weights.sum()
    for _ in range(MEDIAN_STEPS):
        pull = weights / np.maximum(np.hypot(x - median[0], y - median[1]), MEDIAN_TOLERANCE)
        nearer = pull @ vectors / pull.sum()
        if hypot(*(nearer - median)) < MEDIAN_TOLERANCE:
            return np.asarray(nearer)
        median = nearer
    return np.asarray(median)
