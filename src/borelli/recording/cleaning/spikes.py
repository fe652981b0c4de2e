"""Spikes: a marker that leaves its path for a few frames and returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible
from borelli.recording.recording import Note, Recording, assign_values

MAX_SPIKE_FRAMES = 3
"""Longest duration of a spike [frames]."""
MIN_SPIKE_HEIGHT = 0.025
"""Least distance [m] from the path through the adjacent frames."""
MIN_SPIKE_RATIO = 12.0
"""Least ratio of that distance to its median for the marker."""


class Spike(NamedTuple):
    """Frames start to stop (exclusive) in which a marker is off its path by up to `height` [m]."""

    marker: str
    start: int
    stop: int
    height: float


def find_spikes(recording: Recording) -> tuple[Spike, ...]:
    """Return all spikes, by marker and then by time.

    Args:
        recording: Recording with markers.
    """
    if "marker_position" not in recording.data:
        return ()
    points = recording.data["marker_position"].values
    return tuple(
        Spike(name, start, start + width, height)
        for index, name in enumerate(recording.markers)
        for start, width, height in _spikes(points[:, index])
    )


def remove_spikes(recording: Recording) -> Recording:
    """Return the recording with spikes replaced by gaps, and a note for each affected marker.

    Args:
        recording: Recording with markers.
    """
    spikes = find_spikes(recording)
    if not spikes:
        return recording
    points = recording.data["marker_position"].values.copy()
    names = recording.markers
    notes = []
    for name in dict.fromkeys(spike.marker for spike in spikes):
        own = [spike for spike in spikes if spike.marker == name]
        for spike in own:
            points[spike.start : spike.stop, names.index(name)] = np.nan
        frames, highest = sum(spike.stop - spike.start for spike in own), max(spike.height for spike in own)
        text = (
            f"{len(own)} spikes of {name} are removed ({frames} frames, the first at {own[0].start}, "
            f"up to {1000.0 * highest:.0f} mm off its path)."
        )
        notes.append(Note(text, "changed", "clean(spikes=False)", code="spikes_removed"))
    return assign_values(recording, {"marker_position": points}, *notes)


def _spikes(path: Array) -> list[tuple[int, int, float]]:
    """Return start, width and height of a marker's spikes; the highest is removed first, with its side effects."""
    candidates: list[tuple[float, int, int]] = []
    for width in range(1, MAX_SPIKE_FRAMES + 1):
        height = _heights(path, width)
        known = np.isfinite(height)
        if known.any():
            least = max(MIN_SPIKE_HEIGHT, MIN_SPIKE_RATIO * float(np.median(height[known])))
            candidates += [
                (-float(height[start]), width, int(start)) for start in np.flatnonzero(known & (height > least))
            ]
    removed = np.zeros(len(path), bool)
    spikes = []
    for negative, width, start in sorted(candidates):
        # the two frames on either side must not belong to a spike
        if not removed[start - 2 : start + width + 2].any() and _continues_after(path, start, width, -negative):
            removed[start : start + width] = True
            spikes.append((start, width, -negative))
    return sorted(spikes)


def _heights(path: Array, width: int) -> Array:
    """Return the least distance [m] of `width` frames from the cubic through two frames on either side."""
    count = len(path) - width - 3
    height = np.full(len(path), np.nan)
    if count < 1:
        return height
    knots = np.array([-2.0, -1.0, width, width + 1.0])
    frames = [path[2 + int(k) : 2 + int(k) + count] for k in knots]
    worst = np.full(count, np.inf)
    for step in range(width):
        weights = [np.prod([(step - b) / (a - b) for b in knots if b != a]) for a in knots]
        interpolated = sum(weight * frame for weight, frame in zip(weights, frames, strict=True))
        worst = np.minimum(worst, np.linalg.norm(path[2 + step : 2 + step + count] - interpolated, axis=1))
    height[2 : 2 + count] = worst
    return height


def _continues_after(path: Array, start: int, width: int, height: float) -> bool:
    """Return whether the marker continues its path after the spike; otherwise it is a jump, not a spike."""
    before, after = path[start - 1], path[start + width]
    step = (before - path[start - 2] + path[start + width + 1] - after) / 2.0
    jump = np.linalg.norm(after - before - (width + 1) * step)
    return bool(visible(after) and jump < 0.5 * height)
