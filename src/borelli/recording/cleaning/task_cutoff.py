"""Cutoff of the low-pass filter by task: short contacts and landings need more than walking.

| task | evidence | cutoff |
|---|---|---|
| walking, standing | no flight | 6 Hz |
| running, jumping, landing | flight | 10 Hz |
| sprinting, and contacts of T < 0.15 s | flight | 1.5 / T |

A half-sine pulse of duration T has the first zero of its spectrum at 1.5 / T, below which lie 99.5 % of its energy.
Contacts are those of the force plates. In flight the markers fall with gravity, which is visible without plates too.
"""

from __future__ import annotations

import numpy as np

from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording

FLIGHT_CUTOFF = 10.0
"""Cutoff [Hz] for movements with flight: running and jumping (Bisseling and Hof 2006; Kristianslund et al. 2012 compare
10 to 20 Hz, and require the same cutoff for motion and forces)."""
PULSE_BANDWIDTH = 1.5
"""Bandwidth times duration of a half-sine pulse: its spectrum first vanishes at 1.5 / T."""
MIN_CONTACT_DURATION = 0.05
"""Least duration [s] of a contact on a plate; shorter loads are noise. Sprinters take 0.08 to 0.1 s."""
FREE_FALL = 7.0
"""[m/s^2] Downward acceleration of the markers' mean in flight: 0.7 of gravity; walking reaches 0.3."""
FALL_WINDOW = 0.05
"""[s] Time step of the second differences that measure it: shorter than half the flight of a run."""
MIN_FALL_DURATION = 0.03
"""[s] Least time with such an acceleration."""
LOW_CUTOFF = "cutoff_low"
"""Code of notes on a cutoff that is too low for the task."""
CHUNK_FRAMES = 8_000
"""Frames of markers that are read at a time."""


def task_cutoff(recording: Recording | None) -> tuple[float, Note]:
    """Return the cutoff [Hz] for motion and force plates of a recording, and a note with the evidence."""
    contact = np.inf if recording is None else contact_duration(recording)
    flight = recording is not None and has_flight(recording)
    cutoff = max(CUTOFF, round(PULSE_BANDWIDTH / contact, 1), FLIGHT_CUTOFF if flight else 0.0)
    evidence = [f"contacts last {contact:.2f} s"] if np.isfinite(contact) else []
    evidence += ["the body is in flight"] if flight else []
    reason = " and ".join(evidence) or "usual for walking"
    if recording is not None and not cutoff < 0.5 * recording.rate:
        text = (
            f"Low-pass cutoff: {CUTOFF:g} Hz. {reason.capitalize()}, which requires {cutoff:g} Hz, above the Nyquist "
            f"frequency of the recording ({0.5 * recording.rate:g} Hz). Impacts are flattened."
        )
        return CUTOFF, Note(text, "problem", "record at a higher rate", code="cutoff")
    text = f"Low-pass cutoff: {cutoff:g} Hz ({reason})."
    return cutoff, Note(text, "inferred", "--cutoff", code="cutoff")


def low_cutoff_notes(cutoff: float, needed: float, evidence: Note) -> tuple[Note, ...]:
    """Return a note if a specified cutoff [Hz] is below the one that `task_cutoff` found, with its evidence."""
    if not cutoff < needed:
        return ()
    text = (
        f"The cutoff of {cutoff:g} Hz, as specified, is too low for this task and flattens its impacts. "
        f"By the recording: {evidence.text}"
    )
    return (Note(text, "problem", f"--cutoff {needed:g}", code=LOW_CUTOFF),)


def contact_duration(recording: Recording) -> float:
    """Return the median duration of the complete contacts with plates [s]; infinite if there are none."""
    data, rate = recording.data, recording.analog_rate
    name = next((name for name in ("ground_reaction_force", "plate_force") if name in data), None)
    if name is None or not rate > 0.0:
        return np.inf
    loaded = data[name].values[..., 2] >= MIN_PLATE_FORCE
    contacts = [b - a for foot in loaded.T for a, b in find_runs(foot) if a > 0 and b < len(foot)]
    lasting = [contact for contact in contacts if contact >= MIN_CONTACT_DURATION * rate]
    return float(np.median(lasting)) / rate if lasting else np.inf


def has_flight(recording: Recording) -> bool:
    """Return whether the markers fall freely for a moment."""
    if "marker_position" not in recording.data or not recording.rate > 0.0:
        return False
    lag = max(1, round(FALL_WINDOW * recording.rate))
    least = max(1, round(MIN_FALL_DURATION * recording.rate))
    position = recording.data["marker_position"]
    for start in range(0, recording.frames, CHUNK_FRAMES):
        part = position.isel(time=slice(max(0, start - 2 * lag), start + CHUNK_FRAMES))
        height = np.asarray(part.values[..., 2], dtype=float)
        falling = _acceleration(height, lag / recording.rate, lag) < -FREE_FALL
        if any(end - begin >= least for begin, end in find_runs(falling)):
            return True
    return False


def _acceleration(height: Array, step: float, lag: int) -> Array:
    """Return the mean over markers of the second differences of heights (frames, markers) over `lag` frames [m/s^2]."""
    if len(height) <= 2 * lag:
        return np.zeros(0)
    change = (height[2 * lag :] - 2.0 * height[lag:-lag] + height[: -2 * lag]) / step**2
    known = np.isfinite(change)
    count = known.sum(axis=1)
    total = np.where(known, change, 0.0).sum(axis=1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), 0.0))
