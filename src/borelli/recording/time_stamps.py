"""Time stamps: uniform ones restored to the last bit from the rate, others kept and reported.

Rounded stamps (a millisecond in many files) are fatal for second derivatives: at 60 Hz they make the acceleration of a
walking body wrong by several times its size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.recording.recording import Note

Array = NDArray[np.float64]

MAX_RATE = 1e7
"""[Hz]"""
MAX_TIME = 1e12
"""[s]; what is beyond is no time, not even one counted from 1970 in milliseconds."""


class Times(NamedTuple):
    """Times [s], their rate [Hz] (None where the steps differ), and what was found out about them."""

    times: Array
    rate: float | None
    notes: tuple[Note, ...]


def usable_rate(rate: float | None) -> float | None:
    """The rate [Hz] if it is one."""
    return rate if rate is not None and np.isfinite(rate) and 1e-6 < rate < MAX_RATE else None


def rate_of_period(period: float, decimals: int) -> float:
    """The rate [Hz] that was meant by a frame time [s] written with so many decimals: 0.0083333 means 120 Hz."""
    rate = 1.0 / period
    half = 0.51 * 10.0**-decimals
    for candidate in _candidates(rate) if half < 0.02 * period else ():
        if abs(1.0 / candidate - period) <= half:
            return candidate
    return rate


def repair_time_stamps(stamps: Array, decimals: int, stated_rate: float | None = None) -> Times:
    """Times that a constant rate explains, to the last bit; or the stamps themselves where none does.

    Args:
        stamps: As the file gives them [s]; not-a-number where it gives none.
        decimals: How many decimals they are written with.
        stated_rate: What the file's header says [Hz].
    """
    stated_rate = usable_rate(stated_rate)
    seen = np.abs(stamps) < MAX_TIME
    index = np.arange(len(stamps))
    first, last = (index[seen][0], index[seen][-1]) if seen.any() else (0, 0)
    span = float(stamps[last] - stamps[first]) if seen.any() else 0.0
    mean_rate = float(last - first) / span if span > 1e-9 else 0.0
    if usable_rate(mean_rate) is None:
        return _without_stamps(stamps, seen, stated_rate)
    quantum = 10.0**-decimals
    for rate in ([stated_rate] if stated_rate else []) + _candidates(mean_rate):
        start = _start(stamps[first] - first / rate, rate, quantum)
        times = start + index / rate if start else index / rate
        off = float(np.max(np.abs(times - stamps)[seen]))
        # a rate that nobody stated must explain the stamps to well within a frame, or a dropped frame would pass
        tolerance = 0.999 * (quantum if rate == stated_rate else min(quantum, 0.2 / rate))
        if off <= max(tolerance, 1e-4 / rate) + 1e-12 * float(np.max(np.abs(stamps[seen]))):
            notes = []
            if stated_rate and rate != stated_rate:
                notes.append(_contradiction(stated_rate, rate))
            if off > 1e-7 or not seen.all():
                what = f"time stamps, written with {decimals} decimals and up to {1e3 * off:.2g} ms off, "
                notes.append(Note(f"{what}are restored from the rate of {rate:.6g} Hz", "changed"))
            return Times(times, rate, tuple(notes))
    return _odd_stamps(stamps, seen, mean_rate, quantum, stated_rate)


def event_origin(seconds: Array, first: int, frames: int, rate: float | None) -> tuple[float, list[Note]]:
    """Time [s] of the file's first frame as its events count, and what is to be said of it.

    Events count from frame 1 of the trial, which need not be in the file; but some programs count from the file's.

    Args:
        seconds: Times of the events, as the file gives them.
        first: Number of the file's first frame.
        frames: How many frames it has.
        rate: Frames per second [Hz].
    """
    if rate is None:
        return 0.0, []
    since, end, slack = (first - 1) / rate, (frames - 1) / rate, 1.0 / rate
    inside = [((seconds - shift > -slack) & (seconds - shift < end + slack)).sum() for shift in (since, 0.0)]
    if inside[1] <= inside[0]:
        return since, []
    return 0.0, [Note("event times are taken to count from the file's first frame, so that they lie in it", "inferred")]


def _candidates(rate: float) -> list[float]:
    """Rates people choose, near the one measured."""
    return [r for r in (round(rate), round(rate * 1.001) / 1.001, round(rate, 1), round(rate, 2)) if r > 0.0]


def _start(first: float, rate: float, quantum: float) -> float:
    """The time of the first frame: a whole number of frames where that explains what was written."""
    whole = round(first * rate) / rate
    return whole if abs(whole - first) <= 0.51 * quantum else first


def _contradiction(stated: float, found: float) -> Note:
    what = f"the header says {stated:.6g} Hz, but the time column advances at {found:.6g} Hz, which is believed"
    return Note(what, "problem")


def _without_stamps(stamps: Array, seen: NDArray[np.bool_], stated_rate: float | None) -> Times:
    """Times counted from the stated rate, because the file's stamps do not advance."""
    start = float(stamps[seen][0]) if seen.any() else 0.0
    rate = stated_rate or 1.0
    notes = []
    if len(stamps) > 1 or not stated_rate:
        what = "the time stamps do not advance" if len(stamps) > 1 else "one frame has no rate"
        if stated_rate:
            notes.append(Note(f"{what}; times are counted from the rate of {rate:.6g} Hz", "problem"))
        elif len(stamps) > 1:
            notes.append(Note(f"{what} and no rate is stated; times count frames as seconds", "problem"))
    return Times(start + np.arange(len(stamps)) / rate, stated_rate, tuple(notes))


def _odd_stamps(
    stamps: Array, seen: NDArray[np.bool_], mean_rate: float, quantum: float, stated_rate: float | None
) -> Times:
    """The stamps as they are: their steps differ, or are even at a rate nobody chooses."""
    index = np.arange(len(stamps))
    times = stamps if seen.all() else np.interp(index, index[seen], stamps[seen])
    notes = []
    if stated_rate and abs(stated_rate - mean_rate) > 0.01 * mean_rate:
        notes.append(_contradiction(stated_rate, mean_rate))
    steps = np.diff(times)
    even = float(np.ptp(steps)) <= min(4.0 * quantum, 0.2 / mean_rate) + 1e-9
    if not even:
        backward = int(np.count_nonzero(steps <= 0.0))
        what = f"time steps differ ({1e3 * steps.min():.4g} to {1e3 * steps.max():.4g} ms) and are kept as they are"
        if backward:
            what += f"; {backward} of them do not advance"
        notes.append(Note(what, "problem" if backward else "stated", "resample"))
    if not seen.all():
        notes.append(Note(f"{np.count_nonzero(~seen)} missing time stamps are interpolated", "changed"))
    return Times(times, mean_rate if even else None, tuple(notes))
