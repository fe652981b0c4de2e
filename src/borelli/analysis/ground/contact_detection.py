"""Contact: how surely each point of the soles stands on the ground, from how low and how slow it is.

Every point's ground is where it is when it is lowest, since a fitted foot may be tilted by some degrees against the
real one. Slow means slow against the belt, which on a treadmill moves: its velocity is the median of that of the
lowest points. A foot may also stand on a step or a box: where the body is held by nothing else, and a foot
above the ground keeps still, the ground is where that foot is.
"""

from __future__ import annotations

from math import hypot

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import lengths
from borelli.numerics.runs import find_runs

Array = NDArray[np.float64]

LOW_PERCENTILE = 5.0
"""Of a point's heights: the height of its ground."""
UNEVEN = 0.05
"""[m] By how much a point's ground may lie above that of the lowest: a heel that never comes down stays up."""
NEAR, NEAR_WIDTH = 0.020, 0.008
"""[m] Height above its ground at which a point counts half, and the width of that change."""
SLOW, SLOW_WIDTH = 0.6, 0.25
"""[m/s] The same of its speed."""
STANDING = 0.15
"""[m/s] A slower belt is none."""
SAME_SPEED = 1e-6
"""[m/s] Guesses of the belt's speed that differ less are one."""
STILL, STILL_TIME = 0.3, 0.1
"""A foot stands if the median speed of its points is less [m/s] for so long [s]."""
UNHELD = 0.5
"""A frame is one that nothing holds if so much of the weight is missing."""


def ground_levels(place: Array) -> Array:
    """(points,) height [m] of the ground under each point, from (frames, points, 3) places."""
    level = np.percentile(place[..., 2], LOW_PERCENTILE, axis=0)
    return np.asarray(np.minimum(level, level.min() + UNEVEN))


def belt_velocity(height: Array, velocity: Array) -> Array:
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
    speed = lengths(velocity - belt)
    return _falling(height, NEAR, NEAR_WIDTH) * _falling(speed, SLOW, SLOW_WIDTH)


def find_steps(height: Array, velocity: Array, belt: Array, unheld: NDArray[np.bool_], rate: float, feet: int) -> Array:
    """(frames, feet) how far [m] the ground of each foot is raised, by feet that stand while nothing holds the body.

    Args:
        height: (frames, points) above the level ground [m], foot by foot.
        velocity: (frames, points, 3) [m/s].
        belt: (3,) [m/s]
        unheld: (frames,) whether the level ground leaves the body unheld.
        rate: [Hz]
        feet: How many.
    """
    frames = len(height)
    if not unheld.any():
        return np.zeros((frames, feet))
    lowest = height.reshape(frames, feet, -1).min(axis=2)
    speed = np.median(lengths(velocity - belt).reshape(frames, feet, -1), axis=2)
    lift = np.zeros((frames, feet))
    for foot in range(feet):
        for start, stop in find_runs(speed[:, foot] < STILL):
            raised = float(np.median(lowest[start:stop, foot]))
            held = stop - start < STILL_TIME * rate or unheld[start:stop].mean() < UNHELD
            if held or raised <= 2.0 * NEAR:
                continue
            for first, last in find_runs(np.abs(lowest[:, foot] - raised) < 2.0 * NEAR):
                if first < stop and start < last:
                    lift[first:last, foot] = raised
    return lift


def _falling(x: Array, middle: float, width: float) -> Array:
    """From 1 at zero to 0 far beyond the middle (a logistic curve)."""
    return (1.0 + np.exp(-middle / width)) / (1.0 + np.exp(np.minimum((np.maximum(x, 0.0) - middle) / width, 500.0)))


def _geometric_median(vectors: Array) -> Array:
    """The point of the plane with the least sum of distances (Weiszfeld 1937): a median that turns with the axes."""
    x, y = np.ascontiguousarray(vectors.T)
    middle = np.array([x.mean(), y.mean()])
    for _ in range(200):
        weight = 1.0 / np.maximum(np.hypot(x - middle[0], y - middle[1]), 1e-6)
        nearer = weight @ vectors / weight.sum()
        if hypot(*(nearer - middle)) < SAME_SPEED:
            return np.asarray(nearer)
        middle = nearer
    return np.asarray(middle)
