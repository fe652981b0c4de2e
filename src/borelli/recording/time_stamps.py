"""Time stamps: uniform ones are recomputed exactly from the rate, others are kept and reported.

Rounded stamps (to a millisecond in many files) ruin second derivatives: at 60 Hz they cause errors of several times the
acceleration of a walking body.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError
from borelli.numerics.vectors import Array
from borelli.recording.recording import Note

MAX_RATE = 1e7
"""Largest plausible rate [Hz]."""
MAX_TIME = 1e12
"""Largest plausible time [s], beyond milliseconds counted from 1970."""


class Times(NamedTuple):
    """Times [s], their rate [Hz] (None for uneven steps), and notes."""

    times: Array
    rate: float | None
    notes: tuple[Note, ...]


def usable_rate(rate: float | None) -> float | None:
    """Return the rate [Hz], or None if it is not plausible."""
    return rate if rate is not None and np.isfinite(rate) and 1e-6 < rate < MAX_RATE else None


def check_rate(rate: float | None) -> None:
    """Raise `SettingsError` for a specified rate [Hz] that is not plausible."""
    if rate is not None and usable_rate(rate) is None:
        raise SettingsError(f"rate: {rate} Hz is not positive.")


def specified_rate_note(rate: float) -> Note:
    """Return the note on a rate [Hz] specified by the user."""
    return Note(f"Frame rate: {rate:g} Hz, as specified.", "stated", code="frame_rate")


def rate_of_period(period: float, decimals: int) -> float:
    """Return the rate [Hz] intended by a frame time [s] with so many decimals: 0.0083333 means 120 Hz."""
    rate = 1.0 / period
    half = 0.51 * 10.0**-decimals
    for candidate in _candidates(rate) if half < 0.02 * period else ():
        if abs(1.0 / candidate - period) <= half:
            return candidate
    return rate


def repair_time_stamps(stamps: Array, decimals: int, stated_rate: float | None = None) -> Times:
    """Return exact times of a constant rate that explains the stamps, or the stamps themselves if none does.

    Args:
        stamps: Time stamps of the file [s]; NaN where missing.
        decimals: Number of decimals they are written with.
        stated_rate: Rate stated by the header [Hz].
    """
    stated_rate = usable_rate(stated_rate)
    valid = np.abs(stamps) < MAX_TIME
    index = np.arange(len(stamps))
    first, last = (index[valid][0], index[valid][-1]) if valid.any() else (0, 0)
    span = float(stamps[last] - stamps[first]) if valid.any() else 0.0
    mean_rate = float(last - first) / span if span > 1e-9 else 0.0
    if usable_rate(mean_rate) is None:
        return _count_frames(stamps, valid, stated_rate)
    quantum = 10.0**-decimals
    for rate in ([stated_rate] if stated_rate else []) + _candidates(mean_rate):
        start = _start(stamps[first] - first / rate, rate, quantum)
        times = start + index / rate if start else index / rate
        error = float(np.max(np.abs(times - stamps)[valid]))
        # an inferred rate must explain the stamps well within a frame, or a dropped frame would pass
        tolerance = 0.999 * (quantum if rate == stated_rate else min(quantum, 0.2 / rate))
        if error <= max(tolerance, 1e-4 / rate) + 1e-12 * float(np.max(np.abs(stamps[valid]))):
            notes = []
            if stated_rate and rate != stated_rate:
                notes.append(_rate_note(stated_rate, rate))
            if error > 1e-7 or not valid.all():
                text = f"Time stamps with {decimals} decimals and errors of up to {1e3 * error:.2g} ms are recomputed"
                notes.append(Note(f"{text} from the rate of {rate:.6g} Hz.", "changed", code="time_stamps_repaired"))
            return Times(times, rate, tuple(notes))
    return _keep_stamps(stamps, valid, mean_rate, quantum, stated_rate)


def event_origin(seconds: Array, first: int, frames: int, rate: float | None) -> tuple[float, list[Note]]:
    """Return the time [s] of the file's first frame, of this number, on the clock of its events, and notes.

    Events count from frame 1 of the trial, which need not be in the file; some programs count from the file's.
    """
    if rate is None:
        return 0.0, []
    origin, end, margin = (first - 1) / rate, (frames - 1) / rate, 1.0 / rate
    inside = [((seconds - start > -margin) & (seconds - start < end + margin)).sum() for start in (origin, 0.0)]
    if inside[1] <= inside[0]:
        return origin, []
    text = "Event times are assumed to count from the first frame of the file, because they then lie within it."
    return 0.0, [Note(text, "inferred", code="event_times")]


def _candidates(rate: float) -> list[float]:
    """Return common rates near the measured one."""
    return [r for r in (round(rate), round(rate * 1.001) / 1.001, round(rate, 1), round(rate, 2)) if r > 0.0]


def _start(first: float, rate: float, quantum: float) -> float:
    """Return the time of the first frame, rounded to a whole number of frames where that explains the stamp."""
    rounded = round(first * rate) / rate
    return rounded if abs(rounded - first) <= 0.51 * quantum else first


def backward_notes(*times: Array) -> list[Note]:
    """Return a note on time steps that are not positive, if there are any."""
    count = sum(int(np.count_nonzero(np.diff(stamps) <= 0.0)) for stamps in times)
    text = f"{count} time steps are not positive."
    return [Note(text, "problem", "resample", code="time_not_increasing")] if count else []


def _rate_note(stated: float, measured: float) -> Note:
    text = f"The header states {stated:.6g} Hz, but the time stamps show {measured:.6g} Hz, which is used."
    return Note(text, "problem", code="frame_rate")


def _count_frames(stamps: Array, valid: NDArray[np.bool_], stated_rate: float | None) -> Times:
    """Return times that follow from the stated rate, because the stamps do not increase."""
    start = float(stamps[valid][0]) if valid.any() else 0.0
    rate = stated_rate or 1.0
    notes = []
    if len(stamps) > 1:
        clock = "No rate is stated: one frame counts as 1 s"
        clock = f"Times follow from the rate of {rate:.6g} Hz" if stated_rate else clock
        notes.append(Note(f"The time stamps do not increase. {clock}.", "problem", code="time_not_increasing"))
    return Times(start + np.arange(len(stamps)) / rate, stated_rate, tuple(notes))


def _keep_stamps(
    stamps: Array, valid: NDArray[np.bool_], mean_rate: float, quantum: float, stated_rate: float | None
) -> Times:
    """Return the stamps unchanged: their steps are uneven, or even at an unusual rate."""
    index = np.arange(len(stamps))
    times = stamps if valid.all() else np.interp(index, index[valid], stamps[valid])
    notes = []
    if stated_rate and abs(stated_rate - mean_rate) > 0.01 * mean_rate:
        notes.append(_rate_note(stated_rate, mean_rate))
    steps = np.diff(times)
    even = float(np.ptp(steps)) <= min(4.0 * quantum, 0.2 / mean_rate) + 1e-9
    if not even:
        backward = int(np.count_nonzero(steps <= 0.0))
        text = f"Time steps are uneven ({1e3 * steps.min():.4g} to {1e3 * steps.max():.4g} ms) and are kept."
        if backward:
            text = f"{text} {backward} of them are not positive."
        code = "time_not_increasing" if backward else "uneven_time_steps"
        notes.append(Note(text, "problem" if backward else "stated", "resample", code=code))
    if not valid.all():
        text = f"{np.count_nonzero(~valid)} missing time stamps are interpolated."
        notes.append(Note(text, "changed", code="time_stamps_interpolated"))
    return Times(times, mean_rate if even else None, tuple(notes))
