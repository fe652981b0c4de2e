"""Gait events: foot strike and foot off, from plates and from markers.

From markers, after Zeni, Richards and Higginson 2008: a foot strikes when its heel is farthest ahead of the pelvis, and
leaves when its toe is farthest behind it. This needs no plates and works on treadmills. The heel is farthest ahead 0 to
100 ms before the strike, in the median of ten walks 35 ms: it then gathers speed backward, and strikes when it has
about half the speed of stance. Compared with plates and events in files, strikes so found are 21 ms early in the median
of these walks (RMS 40 ms; 52 ms without the second step); offs are within 20 ms in walking, but 40 to 120 ms late in
running, where the toe moves on backward after foot off. Where plates measure some of the steps of a recording, events
of the others are moved by the median difference of both methods on the steps that have both.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.numerics.filters import lowpass
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.forces.assign_to_feet import SIDES, assign_plates, find_steps
from borelli.recording.landmarks import facing_direction, find_foot_markers, find_landmarks, mean_position, visible
from borelli.recording.recording import Event, Note, Recording, with_layout
from borelli.recording.units_and_axes import MIN_TRAVEL_DISTANCE

STRIKE, OFF = "Foot Strike", "Foot Off"
MIN_STRIDE_TIME = 0.4
"""Least time [s] between two strikes of one foot."""
MIN_PROMINENCE = 0.35
"""Least prominence of a peak as a fraction of the foot's excursion relative to the pelvis."""
STRIKE_WINDOW = 0.3
"""Time [s] after a heel is farthest ahead in which its strike is sought, and in whose second half the foot stands."""
MIN_EXCURSION = 0.1
"""Least excursion [m] of a foot relative to the pelvis in gait."""


def gait_events(recording: Recording, source: str = "auto") -> tuple[Event, ...]:
    """Return the foot strikes ("Foot Strike") and foot offs ("Foot Off"), in order of time.

    Args:
        recording: Recording with plates and foot markers, or with heel, toe and pelvis markers.
        source: "plates", "markers", or "auto": plates for steps on a plate, markers for the rest.

    Raises:
        SettingsError: if the source is unknown, or its data are missing.
    """
    if source not in ("plates", "markers", "auto"):
        raise SettingsError(unknown_name("source", source, ("plates", "markers", "auto")))
    plates = events_from_plates(recording) if source != "markers" else ()
    markers = events_from_markers(recording) if source != "plates" else ()
    if source == "plates" and "plate_force" not in recording.data:
        raise SettingsError('The recording has no plates. Use source="markers".')
    measured = {kind: [event.time for event in plates if event[1:] == kind] for kind in {event[1:] for event in plates}}
    delays = {label: _delay([event for event in markers if event.label == label], measured) for label in (STRIKE, OFF)}
    kept = [event for event in markers if _nearest(event.time, measured.get(event[1:], [])) is None]
    return tuple(sorted([*plates, *(event._replace(time=event.time + delays[event.label]) for event in kept)]))


def add_events(recording: Recording, source: str = "auto") -> Recording:
    """Return the recording with its events replaced by detected gait events.

    Args:
        recording: Recording of a walk or run.
        source: "plates", "markers", or "auto": plates for steps on a plate, markers for the rest.
    """
    events = gait_events(recording, source)
    if not events:
        return recording
    times = np.array([event.time for event in events])
    data = recording.data.drop_dims("event", errors="ignore").assign(with_layout({"event_time": times}))
    data = data.assign_coords(
        event=np.arange(len(events)),
        event_label=("event", [event.label for event in events]),
        event_context=("event", [event.context for event in events]),
    )
    text = f"{len(events)} gait events are detected (source: {source})."
    return recording.with_data(data, Note(text, "changed", code="gait_events"))


def events_from_plates(recording: Recording) -> tuple[Event, ...]:
    """Return strikes and offs on plates at the threshold of 20 N, except at the ends of the recording."""
    assigned = assign_plates(recording)
    if "ground_reaction_force" not in assigned.data:
        return ()
    times = assigned.data["analog_time"].values
    events = []
    for foot, side in enumerate(SIDES):
        for start, stop in find_steps(assigned.data["ground_reaction_force"].values[:, foot, 2], assigned.analog_rate):
            if start > 0:
                events.append(Event(float(times[start]), STRIKE, side.capitalize()))
            if stop < len(times):
                events.append(Event(float(times[stop]), OFF, side.capitalize()))
    return tuple(sorted(events))


def events_from_markers(recording: Recording) -> tuple[Event, ...]:
    """Return strikes and offs after Zeni et al. 2008; empty if heel, toe or pelvis markers are missing."""
    if "marker_position" not in recording.data or not recording.rate > 2.0 * CUTOFF:
        return ()
    points, labels = recording.data["marker_position"].values, recording.markers
    hips = find_landmarks(labels, ("pelvis",)) or find_landmarks(labels, ("hip",))
    forward = walking_direction(points, labels, hips)
    if not hips or forward is None:
        return ()
    pelvis = mean_position(points, hips)
    events = []
    for side in SIDES:
        heels, toes = find_foot_markers(labels, side)
        for label, group, sign in ((STRIKE, heels, 1.0), (OFF, toes, -1.0)):
            if group:
                along = ((mean_position(points, group) - pelvis) * forward).sum(axis=1)
                peaks = _peaks(sign * along, recording.rate)
                frames = [_half_speed(along, peak, recording.rate) for peak in peaks] if label == STRIKE else peaks
                times = np.interp(frames, np.arange(len(along)), recording.data["time"].values)
                events += [Event(float(time), label, side.capitalize()) for time in times]
    return tuple(sorted(events))


def walking_direction(points: Array, labels: Sequence[str], hips: Sequence[int]) -> Array | None:
    """Return the horizontal unit vector of walking, one for all frames or one per frame; None if unknown."""
    path = mean_position(points, hips) if hips else np.empty((0, 3))
    path = path[visible(path)]
    if len(path) > 1:
        displacement = (path[-1] - path[0]) * (1.0, 1.0, 0.0)
        if np.linalg.norm(displacement) >= MIN_TRAVEL_DISTANCE:
            return displacement / np.linalg.norm(displacement)
    directions = facing_direction(points, labels)
    return directions if visible(directions).any() else None


def standardize_event(event: Event) -> Event | None:
    """Return an event of a file ("LHS", "Foot Strike" of the "Right"...) with standard label and context, or None."""
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
    """Return the frames in which a coordinate has a peak, run by run."""
    from scipy.signal import find_peaks

    finite = along[np.isfinite(along)]
    if len(finite) < 4:
        return []
    excursion = float(np.percentile(finite, 97) - np.percentile(finite, 3))
    if excursion < MIN_EXCURSION:
        return []
    frames: list[int] = []
    for start, stop in find_runs(np.isfinite(along)):
        if stop - start >= 0.2 * rate:
            curve = lowpass(along[start:stop], rate, CUTOFF)
            peaks, _ = find_peaks(
                curve, prominence=MIN_PROMINENCE * excursion, distance=max(1, round(MIN_STRIDE_TIME * rate))
            )
            frames += [start + int(peak) for peak in peaks]
    return frames


def _half_speed(along: Array, peak: int, rate: float) -> float:
    """Return the time [frames] after a peak at which the heel has half the backward speed of the stance to come."""
    count = round(STRIKE_WINDOW * rate)
    part = along[peak : peak + count + 1]
    if len(part) <= count or not np.isfinite(part).all():
        return peak
    start = max(0, peak - count)
    before = along[start:peak]
    lead = len(before) if np.isfinite(before).all() else 0
    speed = np.gradient(lowpass(along[peak - lead : peak + count + 1], rate, CUTOFF), 1.0 / rate)[lead:]
    stance = float(np.median(speed[len(speed) // 2 :]))
    faster = np.flatnonzero(speed <= 0.5 * stance)
    if stance >= 0.0 or not len(faster) or faster[0] == 0:
        return peak
    k = int(faster[0])
    return peak + k - float((speed[k] - 0.5 * stance) / (speed[k] - speed[k - 1]))


def _delay(events: Sequence[Event], measured: Mapping[tuple[str, str], Sequence[float]]) -> float:
    """Return the median time [s] from events of markers to the same events of plates; 0 if they have none in common."""
    near = [(event.time, _nearest(event.time, measured.get(event[1:], []))) for event in events]
    delays = [other - time for time, other in near if other is not None]
    return float(np.median(delays)) if delays else 0.0


def _nearest(time: float, others: Sequence[float]) -> float | None:
    """Return the one of other times [s], in order, that is that of the same event; None if there is none."""
    after = bisect_left(others, time)
    near = [other for other in others[max(0, after - 1) : after + 1] if abs(time - other) < MIN_STRIDE_TIME / 2]
    return min(near, key=lambda other: abs(other - time)) if near else None
