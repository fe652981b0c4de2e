"""Gait events: when feet come down and leave the ground, from plates and from markers.

From markers, after Zeni, Richards and Higginson 2008: a foot comes down when its heel is farthest ahead of the pelvis,
and leaves when its toe is farthest behind it. That needs no plates and works on treadmills. Against
plates and marks in files (ten walks and runs): strikes 0 to 70 ms early; offs within 20 ms in walking, but 40 to
120 ms late in running, where the toe trails on after it has left.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError
from borelli.numerics.filters import lowpass
from borelli.numerics.runs import find_runs
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.forces.assign_to_feet import SIDES, assign_plates, loaded
from borelli.recording.landmarks import facing, mean_position, visible, find_landmarks
from borelli.recording.recording import Event, Note, Recording
from borelli.recording.units_and_axes import TRAVEL

Array = npt.NDArray[np.float64]

STRIKE, OFF = "Foot Strike", "Foot Off"
STRIDE = 0.4
"""Least time [s] between two strikes of one foot."""
RISE = 0.35
"""A foot's swing against the pelvis must be at least this part of its whole range to count."""
EXCURSION = 0.1
"""Least range [m] of a foot against the pelvis for a gait."""


def gait_events(recording: Recording, source: str = "auto") -> tuple[Event, ...]:
    """When each foot came down ("Foot Strike") and left ("Foot Off"), in order of time.

    Args:
        recording: With plates and foot markers, or with heel, toe and pelvis markers.
        source: "plates", "markers", or "auto": plates where a foot stood on one, markers for the rest.

    Raises:
        SettingsError: if the source is not one of these, or lacks what it needs.
    """
    if source not in ("plates", "markers", "auto"):
        raise SettingsError(f'source must be "plates", "markers" or "auto", got {source!r}')
    plates = events_from_plates(recording) if source != "markers" else ()
    markers = events_from_markers(recording) if source != "plates" else ()
    if source == "plates" and "plate_force" not in recording.data:
        raise SettingsError('there are no plates; use source="markers"')
    kept = [event for event in markers if not any(_same(event, other) for other in plates)]
    return tuple(sorted([*plates, *kept]))


def add_events(recording: Recording, source: str = "auto") -> Recording:
    """The recording with its gait events in place of the events it had."""
    events = gait_events(recording, source)
    if not events:
        return recording
    data = recording.data.drop_dims("event", errors="ignore")
    data = data.assign(event_time=("event", np.array([event.time for event in events]), {"units": "s", "frame": ""}))
    data = data.assign_coords(
        event=np.arange(len(events)),
        event_label=("event", [event.label for event in events]),
        event_context=("event", [event.context for event in events]),
    )
    return recording.with_data(data, Note(f"{len(events)} gait events found from {source}", "changed"))


def events_from_plates(recording: Recording) -> tuple[Event, ...]:
    """Strikes and offs of feet on plates, at the threshold of 20 N; loads that last to an end have no event there."""
    given = assign_plates(recording)
    if "ground_reaction_force" not in given.data:
        return ()
    clock = given.data["analog_time"].values
    found = []
    for foot, side in enumerate(SIDES):
        for start, stop in loaded(given.data["ground_reaction_force"].values[:, foot, 2], given.analog_rate):
            if start > 0:
                found.append(Event(float(clock[start]), STRIKE, side.capitalize()))
            if stop < len(clock):
                found.append(Event(float(clock[stop]), OFF, side.capitalize()))
    return tuple(sorted(found))


def events_from_markers(recording: Recording) -> tuple[Event, ...]:
    """Strikes and offs by Zeni's coordinates; empty where heel, toe or pelvis markers are missing."""
    if "marker_position" not in recording.data or not recording.rate > 2.0 * CUTOFF:
        return ()
    points, labels = recording.data["marker_position"].values, recording.markers
    hips = find_landmarks(labels, ("pelvis",)) or find_landmarks(labels, ("hip",))
    ahead = direction(points, labels, hips)
    if not hips or ahead is None:
        return ()
    pelvis = mean_position(points, hips)
    found = []
    for side in SIDES:
        heels = find_landmarks(labels, ("heel",), side) or find_landmarks(labels, ("ankle",), side)
        toes = find_landmarks(labels, ("toe",), side) or find_landmarks(labels, ("foot",), side)
        for label, group, sign in ((STRIKE, heels, 1.0), (OFF, toes, -1.0)):
            if group:
                along = ((mean_position(points, group) - pelvis) * ahead).sum(axis=1)
                times = recording.data["time"].values[_peaks(sign * along, recording.rate)]
                found += [Event(float(time), label, side.capitalize()) for time in times]
    return tuple(sorted(found))


def direction(points: Array, labels: Sequence[str], hips: Sequence[int]) -> Array | None:
    """Horizontal unit vectors the subject walks along in each frame, or one for all; None if nothing shows it."""
    path = mean_position(points, hips) if hips else np.empty((0, 3))
    path = path[visible(path)]
    if len(path) > 1:
        way = (path[-1] - path[0]) * (1.0, 1.0, 0.0)
        if np.linalg.norm(way) >= TRAVEL:
            return way / np.linalg.norm(way)
    faced = facing(points, labels)
    return faced if visible(faced).any() else None


def standardize_event(event: Event) -> Event | None:
    """An event as a file spells it ("LHS", "Foot Strike" of the "Right"...), in our words; None for other events."""
    text = f"{event.label} {event.context}".strip()
    match = re.search(r"\b([LR])(HS|TO|FS|FO|IC|HC)\b", text, re.IGNORECASE)
    if match:
        strike = match[2].upper() in ("HS", "FS", "IC", "HC")
        return Event(event.time, STRIKE if strike else OFF, "Left" if match[1].upper() == "L" else "Right")
    side = re.search(r"left|right", text, re.IGNORECASE)
    strike_word = re.search(r"strike|contact|heel.?down", text, re.IGNORECASE)
    off_word = re.search(r"off\b", text, re.IGNORECASE)
    if side and (strike_word or off_word):
        return Event(event.time, STRIKE if strike_word else OFF, side[0].capitalize())
    return None


def _peaks(along: Array, rate: float) -> list[int]:
    """Frames in which a coordinate is at its farthest, run by run."""
    from scipy.signal import find_peaks

    finite = along[np.isfinite(along)]
    if len(finite) < 4:
        return []
    reach = float(np.percentile(finite, 97) - np.percentile(finite, 3))
    if reach < EXCURSION:
        return []
    found: list[int] = []
    for start, stop in find_runs(np.isfinite(along)):
        if stop - start >= 0.2 * rate:
            curve = lowpass(along[start:stop], rate, CUTOFF)
            peaks, _ = find_peaks(curve, prominence=RISE * reach, distance=max(1, round(STRIDE * rate)))
            found += [start + int(peak) for peak in peaks]
    return found


def _same(event: Event, other: Event) -> bool:
    return (event.label, event.context) == (other.label, other.context) and abs(event.time - other.time) < STRIDE / 2
