"""Contact detection: confidence that each point of the soles is on the ground, from its height and speed.

Every point's ground level is its own lowest height, since a fitted foot may be tilted by some degrees relative to the
real one. Speed is relative to the belt of a treadmill, whose velocity is the median of that of the lowest points. A
foot may also stand on a step or a box: where nothing else supports the body, and a foot above the ground is stationary,
the ground is at that foot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import lengths
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array, geometric_median

LOW_PERCENTILE = 5.0
"""Percentile of a point's heights that is the height of its ground."""
MAX_UNEVENNESS = 0.05
"""Largest height of a point's ground above that of the lowest point [m]: a heel that never comes down stays up."""
CONTACT_HEIGHT, CONTACT_HEIGHT_WIDTH = 0.020, 0.008
"""Height above its ground at which a point has a confidence of one half, and the width of that change [m]."""
CONTACT_SPEED, CONTACT_SPEED_WIDTH = 0.6, 0.25
"""The same of its speed [m/s]."""
MIN_BELT_SPEED = 0.15
"""Speed below which there is no moving belt [m/s]."""
MAX_STANCE_SPEED, MIN_STANCE_DURATION = 0.3, 0.1
"""A foot is stationary if the median speed of its points is below this [m/s] for this time [s]."""
MIN_UNSUPPORTED_FRACTION = 0.5
"""Fraction of the weight that must be missing in an unsupported frame."""


def ground_levels(position: Array) -> Array:
    """Return the height [m] of the ground under each point (points,), from positions (frames, points, 3)."""
    level = np.percentile(position[..., 2], LOW_PERCENTILE, axis=0)
    return np.asarray(np.minimum(level, level.min() + MAX_UNEVENNESS))


def belt_velocity(height: Array, velocity: Array) -> Array:
    """Return the belt's velocity (3,) [m/s]: the geometric median of that of the lowest points, zero if slow.

    Points have heights above the ground (frames, points) [m] and velocities (frames, points, 3) [m/s].
    """
    lowest = height.argmin(axis=1)[:, None]
    near = np.take_along_axis(height, lowest, axis=1)[:, 0] < CONTACT_HEIGHT
    moves = np.take_along_axis(velocity, lowest[..., None], axis=1)[near, 0, :2]
    if not len(moves):
        return np.zeros(3)
    belt = geometric_median(moves, np.ones(len(moves)))
    return np.array([*belt, 0.0]) if np.linalg.norm(belt) >= MIN_BELT_SPEED else np.zeros(3)


def contact_confidence(height: Array, velocity: Array, belt: Array) -> Array:
    """Return the confidence of contact (frames, points), from 0 in the air to 1 on the ground."""
    speed = lengths(velocity - belt)
    low = _falling(height, CONTACT_HEIGHT, CONTACT_HEIGHT_WIDTH)
    return low * _falling(speed, CONTACT_SPEED, CONTACT_SPEED_WIDTH)


def step_heights(
    height: Array, velocity: Array, belt: Array, unsupported: NDArray[np.bool_], rate: float, feet: int
) -> Array:
    """Return how far [m] the ground of each foot is raised (frames, feet), from feet stationary without support.

    `height` (frames, points) above the level ground [m] is foot by foot; in `unsupported` frames the level ground does
    not support the body.
    """
    frames = len(height)
    if not unsupported.any():
        return np.zeros((frames, feet))
    lowest = height.reshape(frames, feet, -1).min(axis=2)
    speed = np.median(lengths(velocity - belt).reshape(frames, feet, -1), axis=2)
    lift = np.zeros((frames, feet))
    for foot in range(feet):
        for start, stop in find_runs(speed[:, foot] < MAX_STANCE_SPEED):
            raised = float(np.median(lowest[start:stop, foot]))
            brief = stop - start < MIN_STANCE_DURATION * rate
            supported = unsupported[start:stop].mean() < MIN_UNSUPPORTED_FRACTION
            if brief or supported or raised <= 2.0 * CONTACT_HEIGHT:
                continue
            for first, last in find_runs(np.abs(lowest[:, foot] - raised) < 2.0 * CONTACT_HEIGHT):
                if first < stop and start < last:
                    lift[first:last, foot] = raised
    return lift


def _falling(x: Array, midpoint: float, width: float) -> Array:
    """Return a logistic curve from 1 at zero to 0 far beyond the midpoint."""
    rising = np.exp(np.minimum((np.maximum(x, 0.0) - midpoint) / width, 500.0))
    return (1.0 + np.exp(-midpoint / width)) / (1.0 + rising)
