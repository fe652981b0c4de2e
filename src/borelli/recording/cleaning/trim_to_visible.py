"""The part of a recording in which the subject is in view.

People walk into the cameras' room and out of it. Before all markers are there, poses are guesses: a leg without markers
hangs as it likes, and what is differentiated twice makes forces of it.
"""

from __future__ import annotations

import numpy as np

from borelli.recording.cleaning.filtering import crop
from borelli.recording.landmarks import identify_landmark, visible
from borelli.recording.recording import Note, Recording

IN_VIEW = 0.8
"""Part of the markers that are seen at once, the most that are, below which the subject is only half in view."""
KNOWN = 6
"""With fewer names that tell a part of the body, all markers count."""


def trim_to_visible(recording: Recording, start: bool = True, stop: bool = True) -> Recording:
    """The recording without the frames at its ends in which many markers are not yet, or no longer, seen.

    Args:
        recording: Cleaned: what can be filled is.
        start: Whether the start may be cut off.
        stop: Whether the end may be.
    """
    if "marker_position" not in recording.data or not recording.frames:
        return recording
    named = [i for i, name in enumerate(recording.markers) if identify_landmark(name) is not None]
    chosen = named if len(named) >= KNOWN else list(range(len(recording.markers)))
    count = visible(recording.data["marker_position"].values[:, chosen]).sum(axis=1)
    enough = np.flatnonzero(count >= IN_VIEW * count.max(initial=1))
    time = recording.data["time"].values
    if not len(enough):
        return recording
    first = int(enough[0]) if start else 0
    last = int(enough[-1]) if stop else len(time) - 1
    if first == 0 and last == len(time) - 1:
        return recording
    parts = [f"before {time[first]:.2f} s"] * (first > 0) + [f"after {time[last]:.2f} s"] * (last < len(time) - 1)
    said = (
        f"{' and '.join(parts)} fewer than {100 * IN_VIEW:.0f} % of the markers are seen: "
        f"{len(time) - (last - first + 1)} of {len(time)} frames are cut off"
    )
    cut = crop(recording, float(time[first]), float(time[last]))
    return cut.with_notes(Note(said, "problem", "--start and --stop keep what they name"))
