"""Spikes: a marker that leaps away for a few frames and comes back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.recording.landmarks import visible
from borelli.recording.recording import Note, Recording

Array = npt.NDArray[np.float64]

LONGEST = 3
"""Frames a spike may last."""
HEIGHT = 0.025
"""Least distance [m] from the path through the frames beside it."""
FACTOR = 12.0
"""Least ratio of that distance to the marker's usual one (its median)."""


class Spike(NamedTuple):
    """Frames start to stop (exclusive) in which a marker is off its path by up to `height` [m]."""

    marker: str
    start: int
    stop: int
    height: float


def find_spikes(recording: Recording) -> tuple[Spike, ...]:
    """All spikes, by marker and then by time."""
    if "marker_position" not in recording.data:
        return ()
    points = recording.data["marker_position"].values
    found = []
    for index, name in enumerate(recording.markers):
        found += [Spike(name, start, start + width, height) for start, width, height in _spikes(points[:, index])]
    return tuple(found)


def remove_spikes(recording: Recording) -> Recording:
    """The recording with its spikes taken out, which leaves short gaps, and a note for each marker that had any."""
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
        said = f"spikes of {name} taken out: {len(own)} ({frames} frames, the first at {own[0].start})"
        notes.append(Note(f"{said}, up to {1000.0 * highest:.0f} mm off its path", "changed", "clean(spikes=False)"))
    return recording.with_data(recording.data.assign(marker_position=recording.data["marker_position"].copy(data=points)), *notes)


def _spikes(path: Array) -> list[tuple[int, int, float]]:
    """Start, width and height of a marker's spikes, the highest taken first so that its echoes vanish with it."""
    candidates: list[tuple[float, int, int]] = []
    for width in range(1, LONGEST + 1):
        height = _heights(path, width)
        known = np.isfinite(height)
        if known.any():
            least = max(HEIGHT, FACTOR * float(np.median(height[known])))
            candidates += [
                (-float(height[start]), width, int(start)) for start in np.flatnonzero(known & (height > least))
            ]
    gone = np.zeros(len(path), bool)
    found = []
    for negative, width, start in sorted(candidates):
        # the two frames on either side must still be there, not part of a spike themselves
        if not gone[start - 2 : start + width + 2].any() and _returns(path, start, width, -negative):
            gone[start : start + width] = True
            found.append((start, width, -negative))
    return sorted(found)


def _heights(path: Array, width: int) -> Array:
    """Distance [m] of each frame's following `width` frames from the cubic through two frames on either side."""
    count = len(path) - width - 3
    height = np.full(len(path), np.nan)
    if count < 1:
        return height
    knots = np.array([-2.0, -1.0, width, width + 1.0])
    frames = [path[2 + int(k) : 2 + int(k) + count] for k in knots]
    worst = np.full(count, np.inf)
    for step in range(width):
        weights = [np.prod([(step - b) / (a - b) for b in knots if b != a]) for a in knots]
        guess = sum(weight * frame for weight, frame in zip(weights, frames, strict=True))
        worst = np.minimum(worst, np.linalg.norm(path[2 + step : 2 + step + count] - guess, axis=1))
    height[2 : 2 + count] = worst
    return height


def _returns(path: Array, start: int, width: int, height: float) -> bool:
    """Whether the marker goes on after the spike as before it; if not, it has jumped, which is no spike."""
    before, after = path[start - 1], path[start + width]
    pace = (before - path[start - 2] + path[start + width + 1] - after) / 2.0
    jump = np.linalg.norm(after - before - (width + 1) * pace)
    return bool(visible(after) and jump < 0.5 * height)
