"""Contact: how surely each point of the soles stands on the ground, from how low and how slow it is.

Every point's ground is where it is when it is lowest, since a fitted foot may be tilted by some degrees against the
real one. Slow means slow against the belt, which on a treadmill moves: its velocity is the median of that of the
lowest points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LOW_PERCENTILE = 5.0
"""Of a point's heights: the height of its ground."""
UNEVEN = 0.05
"""[m] By how much a point's ground may lie above that of the lowest: a heel that never comes down stays up."""
NEAR, NEAR_WIDTH = 0.020, 0.008
"""[m] Height above its ground at which a point counts half, and the width of that change (spec mocap, 2)."""
SLOW, SLOW_WIDTH = 0.6, 0.25
"""[m/s] The same of its speed (spec mocap, 2)."""
STANDING = 0.15
"""[m/s] A slower belt is none."""


def ground_levels(place: Array) -> Array:
    """(points,) height [m] of the ground under each point, from (frames, points, 3) places."""
    level = np.percentile(place[..., 2], LOW_PERCENTILE, axis=0)
    return np.asarray(np.minimum(level, level.min() + UNEVEN))


def find_belt(height: Array, velocity: Array) -> Array:
    """(3,) velocity [m/s] of the belt: the geometric median of that of the lowest points; zero where it is slow.

    Args:
        height: (frames, points) above the ground [m].
        velocity: (frames, points, 3) [m/s].
    """
    lowest = height.argmin(axis=1)[:, None]
    near = np.take_along_axis(height, lowest, axis=1)[:, 0] < NEAR
    moves = np.take_along_axis(velocity, lowest[..., None], axis=1)[near, 0, :2]
    if not len(moves):
        return np.zeros(3)
    belt = _geometric_median(moves)
    return np.array([*belt, 0.0]) if np.linalg.norm(belt) >= STANDING else np.zeros(3)


def contact_weights(height: Array, velocity: Array, belt: Array) -> Array:
    """(frames, points) from 0, surely in the air, to 1, surely on the ground."""
    speed = np.linalg.norm(velocity - belt, axis=-1)
    return _falling(height, NEAR, NEAR_WIDTH) * _falling(speed, SLOW, SLOW_WIDTH)


def _falling(x: Array, middle: float, width: float) -> Array:
    """From 1 at zero to 0 far beyond the middle (a logistic curve)."""
    return (1.0 + np.exp(-middle / width)) / (1.0 + np.exp(np.minimum((np.maximum(x, 0.0) - middle) / width, 500.0)))


def _geometric_median(vectors: Array) -> Array:
    """The point with the least sum of distances (Weiszfeld 1937): a median that turns with the axes."""
    middle = vectors.mean(axis=0)
    for _ in range(200):
        weight = 1.0 / np.maximum(np.linalg.norm(vectors - middle, axis=1), 1e-6)
        nearer = weight @ vectors / weight.sum()
        if np.linalg.norm(nearer - middle) < 1e-9:
            return np.asarray(nearer)
        middle = nearer
    return np.asarray(middle)
