"""Frames in which a body is easiest to recognize: upright, with many visible points; and its heading between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

MAX_CANDIDATES = 400
"""Frames that are compared, evenly spread over the recording."""
MIN_VISIBLE_FRACTION = 0.9
"""Least number of visible points in a frame, as a fraction of the largest number in any."""
MAX_COMPARED = 40
"""Frames that are compared with each other."""
MAX_DIFFERENCE = 0.3
"""[m] RMS distance between the points of two frames above which a body is in another posture."""
UPRIGHT_FRACTION = 0.5
"""Fraction of the candidates, those of largest vertical extent, among which frames are chosen."""


def choose_upright_frames(points: Array, count: int, phase: float = 0.5) -> NDArray[np.int64]:
    """Return frames of many visible points and large vertical extent, spread over the recording, in order of time.

    Args:
        points: Points (frames, points, 3) [m], z up; NaN where missing.
        count: Number of frames; fewer if the recording has fewer.
        phase: 0 to 1; other values give other frames.
    """
    step = max(1, len(points) // MAX_CANDIDATES)
    frames = np.arange(0, len(points), step)
    seen = visible(points[frames])
    number = seen.sum(axis=1)
    enough = number >= max(MIN_VISIBLE_FRACTION * number.max(initial=0), 3)
    frames, seen = frames[enough], seen[enough]
    if not len(frames):
        return frames
    height = np.where(seen, points[frames][..., 2], np.nan)
    extent = np.nanmax(height, axis=1) - np.nanmin(height, axis=1)
    kept = max(count, int(np.ceil(UPRIGHT_FRACTION * len(frames))))
    upright = frames[np.sort(np.argsort(-extent, kind="stable")[:kept])]
    upright = _similar_frames(points, upright)
    count = min(count, len(upright))
    picks = ((np.arange(count) + phase) / count * len(upright)).astype(np.int64)
    return upright[np.minimum(picks, len(upright) - 1)]


def _similar_frames(points: Array, frames: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the frames that resemble most others up to a rotation about the vertical: not upside down, not lying."""
    sample = frames[:: max(1, len(frames) // MAX_COMPARED)][:MAX_COMPARED]
    unlike = np.array([_differences(points[sample], points[frame]) for frame in sample])
    medoid = sample[int(np.median(unlike, axis=0).argmin())]
    return frames[_differences(points[frames], points[medoid]) <= MAX_DIFFERENCE]


def _differences(points: Array, reference: Array) -> Array:
    """Return the RMS distance [m] of points (frames, points, 3) from a reference, rotated and moved onto it."""
    both = visible(points) & visible(reference)
    weight = both[..., None] / np.maximum(both.sum(axis=1), 1)[:, None, None]
    own, other = np.where(both[..., None], points, 0.0), np.where(both[..., None], reference, 0.0)
    own = own - (weight * own).sum(axis=1, keepdims=True)
    other = other - (weight * other).sum(axis=1, keepdims=True)
    cross = (weight[..., 0] * (own[..., 0] * other[..., 1] - own[..., 1] * other[..., 0])).sum(axis=1)
    dot = (weight * own[..., :2] * other[..., :2]).sum(axis=(1, 2))
    size = (weight * (own**2 + other**2)).sum(axis=(1, 2))
    vertical = (weight[..., 0] * own[..., 2] * other[..., 2]).sum(axis=1)
    squared = size - 2.0 * (np.hypot(cross, dot) + vertical)
    return np.sqrt(np.maximum(squared, 0.0))


def relative_headings(points: Array) -> Array:
    """Return the rotation (frames,) [rad] about the vertical of the points from the first frame to each.

    It is the least-squares rotation of the horizontal positions about their centroids; 0 with fewer than two points.
    """
    yaw = np.zeros(len(points))
    for i in range(1, len(points)):
        both = visible(points[0]) & visible(points[i])
        if both.sum() >= 2:
            first, other = (p[both, :2] - p[both, :2].mean(axis=0) for p in (points[0], points[i]))
            cross = (first[:, 0] * other[:, 1] - first[:, 1] * other[:, 0]).sum()
            yaw[i] = np.arctan2(cross, (first * other).sum())
    return yaw
