"""Orientations of many bodies in many frames at once, as quaternions (w, x, y, z) along the last axis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def multiply(a: Array, b: Array) -> Array:
    """The turn b, then the turn a."""
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def inverse(a: Array) -> Array:
    """The turn back."""
    return a * np.array([1.0, -1.0, -1.0, -1.0])


def rotation_vector(a: Array) -> Array:
    """(..., 3) the axis times the angle [rad], at most half a turn."""
    a = np.where(a[..., :1] < 0.0, -a, a)
    sine = np.linalg.norm(a[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, a[..., :1])
    return a[..., 1:] * np.where(sine > 1e-12, angle / np.where(sine > 1e-12, sine, 1.0), 2.0)


def of_axes_change(turn: Array) -> Array:
    """The quaternion of one rotation matrix (3, 3)."""
    candidates = np.array(
        [
            [1.0 + turn[0, 0] + turn[1, 1] + turn[2, 2], turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0],
             turn[1, 0] - turn[0, 1]],
            [turn[2, 1] - turn[1, 2], 1.0 + turn[0, 0] - turn[1, 1] - turn[2, 2], turn[0, 1] + turn[1, 0],
             turn[0, 2] + turn[2, 0]],
            [turn[0, 2] - turn[2, 0], turn[0, 1] + turn[1, 0], 1.0 - turn[0, 0] + turn[1, 1] - turn[2, 2],
             turn[1, 2] + turn[2, 1]],
            [turn[1, 0] - turn[0, 1], turn[0, 2] + turn[2, 0], turn[1, 2] + turn[2, 1],
             1.0 - turn[0, 0] - turn[1, 1] + turn[2, 2]],
        ]
    )  # fmt: skip
    best = candidates[np.argmax(np.diag(candidates))]
    return best / np.linalg.norm(best)
