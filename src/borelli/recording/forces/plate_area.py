"""Area of force plates: points above them, and feet that rest on them however little they press."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.numerics.vectors import Array
from borelli.recording.landmarks import find_foot_markers, mean_position
from borelli.recording.recording import Recording

Mask = NDArray[np.bool_]

PLATE_MARGIN = 0.02
"""Distance [m] by which a point may be outside of its plate: the error of soles and markers."""
MAX_RESTING_SPEED = 0.1
"""Speed [m/s] below which a foot rests."""
SPEED_SPAN = 0.1
"""Time [s] over which the speed of a foot is measured."""
MAX_RESTING_HEIGHT = 0.15
"""Height [m] of heel and toe markers above a plate below which the foot is on it."""


def inside_plates(points: Array, corners: Array) -> Mask:
    """Return whether points (..., 3) [m] are above any of the plates with these corners (plates, 4, 3) [m]."""
    result = np.zeros(points.shape[:-1], bool)
    for plate in corners[..., :2]:
        edges = np.roll(plate, -1, axis=0) - plate
        lengths = np.maximum(np.linalg.norm(edges, axis=1), 1e-9)
        offset = points[..., None, :2] - plate
        distance = (edges[:, 0] * offset[..., 1] - edges[:, 1] * offset[..., 0]) / lengths
        # corners are listed in either direction of rotation
        result |= (distance >= -PLATE_MARGIN).all(axis=-1) | (distance <= PLATE_MARGIN).all(axis=-1)
    return result


def resting_feet(recording: Recording) -> Mask | None:
    """Return (frames, plates) where a foot rests on a plate; None if feet or the positions of plates are unknown."""
    data = recording.data
    if "plate_corners" not in data or "marker_position" not in data or recording.frames < 2:
        return None
    corners, markers = data["plate_corners"].values, data["marker_position"].values
    result = np.zeros((recording.frames, len(corners)), bool)
    for side in ("left", "right"):
        groups = [group for group in find_foot_markers(recording.markers, side) if group]
        if not groups:
            continue
        ends = np.stack([mean_position(markers, group) for group in groups], axis=1)
        still = _speed(ends.mean(axis=1), recording.rate) < MAX_RESTING_SPEED
        for k in range(len(corners)):
            height = np.abs(ends[..., 2] - corners[k, :, 2].mean()).max(axis=1)
            near = inside_plates(ends.mean(axis=1), corners[k : k + 1]) & (height < MAX_RESTING_HEIGHT)
            result[:, k] |= still & near
    return result


def _speed(path: Array, rate: float) -> Array:
    """Return the speed (frames,) [m/s] along a path, over `SPEED_SPAN` in which noise averages out."""
    index, half = np.arange(len(path)), max(1, round(0.5 * SPEED_SPAN * rate))
    before, after = np.maximum(index - half, 0), np.minimum(index + half, len(path) - 1)
    return np.asarray(np.linalg.norm(path[after] - path[before], axis=1) * rate / np.maximum(after - before, 1))
