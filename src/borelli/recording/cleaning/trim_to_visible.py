"""Trimming to the frames in which the subject is visible.

Subjects enter and leave the capture volume. Poses of segments without markers are arbitrary, and their second
derivatives cause wrong forces.
"""

from __future__ import annotations

import numpy as np

from borelli.recording.cleaning.filtering import crop
from borelli.recording.landmarks import identify_landmarks, visible
from borelli.recording.recording import Note, Recording

MIN_VISIBLE_FRACTION = 0.8
"""Least fraction of the largest number of simultaneously visible markers in a kept frame."""
MIN_BODY_MARKERS = 6
"""With fewer recognized body markers, all markers count."""


def trim_to_visible(recording: Recording, start: bool = True, end: bool = True) -> Recording:
    """Return the recording (gaps filled) without the frames at these ends in which many markers are missing."""
    if "marker_position" not in recording.data or not recording.frames:
        return recording
    named = [i for i, mark in enumerate(identify_landmarks(recording.markers)) if mark is not None]
    chosen = named if len(named) >= MIN_BODY_MARKERS else list(range(len(recording.markers)))
    count = visible(recording.data["marker_position"].values)[:, chosen].sum(axis=1)
    enough = np.flatnonzero(count >= MIN_VISIBLE_FRACTION * count.max(initial=1))
    time = recording.data["time"].values
    if not len(enough):
        return recording
    first = int(enough[0]) if start else 0
    last = int(enough[-1]) if end else len(time) - 1
    if first == 0 and last == len(time) - 1:
        return recording
    parts = [f"before {time[first]:.2f} s"] * (first > 0) + [f"after {time[last]:.2f} s"] * (last < len(time) - 1)
    where = " and ".join(parts).capitalize()
    text = (
        f"{where}, fewer than {100 * MIN_VISIBLE_FRACTION:.0f} % of the markers are visible: "
        f"{len(time) - (last - first + 1)} of {len(time)} frames are removed."
    )
    trimmed = crop(recording, float(time[first]), float(time[last]))
    return trimmed.with_notes(Note(text, "problem", "--start and --end keep the frames they state", code="trimmed"))
