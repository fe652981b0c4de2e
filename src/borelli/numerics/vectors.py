"""Vector algebra on many vectors at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
