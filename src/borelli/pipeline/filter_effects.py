"""Effects of unusual low-pass filters: how much joint torques would change with the cutoff that suits the trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from borelli.analysis.dynamics.torques import Torques
from borelli.model.kinematics import root_coordinates
from borelli.recording.cleaning.task_cutoff import LOW_CUTOFF
from borelli.recording.recording import Note

MISMATCH = "cutoff_mismatch"
"""Code of notes on coordinates and force plates with different filters."""
MIN_EFFECT = 0.05
"""[N m/kg] Change of a peak torque below which different filters are not a problem: two filters of the same cutoff
differ by as much in walking."""


class PeakChange(NamedTuple):
    """Peak torque of a joint that differs the most between two results [N m/kg]."""

    coordinate: str
    first: float
    second: float


def mismatch_notes(cutoff: float | None, plate_cutoff: float | None) -> tuple[Note, ...]:
    """Return a note on coordinates and plates whose filters have different cutoffs [Hz]; 0 or None: no filter."""
    motion, plates = (f"filtered at {value:g} Hz" if value else "not filtered" for value in (cutoff, plate_cutoff))
    text = (
        f"Coordinates are {motion}, force plates are {plates}. Different filters make artifacts in joint torques at "
        "impacts, such as foot strike."
    )
    return (Note(text, "problem", "omit --plate-cutoff", code=MISMATCH),)


def add_filter_effects(
    torques: Torques, notes: Sequence[Note], needed: float, run: Callable[[float], Torques]
) -> tuple[Note, ...]:
    """Return the notes with the effect of the filter on peak torques in those on a low cutoff and on a mismatch.

    `needed` is the cutoff [Hz] that suits the trial; `run` computes the torques with one cutoff for motion and plates.
    """
    result = []
    for note in notes:
        if note.code in (MISMATCH, LOW_CUTOFF):
            cutoff = needed if note.code == LOW_CUTOFF else (torques.settings["cutoff_hz"] or needed)
            change = compare_peaks(torques, run(cutoff))
            if change is not None:
                text = (
                    f"{note.text} The peak torque that differs the most, of {change.coordinate}, is {change.first:.2f} "
                    f"N m/kg, and {change.second:.2f} N m/kg with {cutoff:g} Hz for both."
                )
                small = abs(change.first - change.second) < MIN_EFFECT
                note = replace(note, text=text, kind="stated" if small else note.kind)
        result.append(note)
    return tuple(result)


def compare_peaks(first: Torques, second: Torques) -> PeakChange | None:
    """Return the largest difference of the least or largest torque of a joint; None without joints or known forces."""
    model = first.motion.model
    root = set(root_coordinates(model))
    joints = [c.name for c in model.coordinates if c.rotational and c.name not in root]
    known = first.grf_known & second.grf_known
    if not joints or not known.any():
        return None
    values = [one.data["torque"].sel(coordinate=joints).values[known] / model.mass for one in (first, second)]
    if not all(np.isfinite(one).any() for one in values):
        return None
    peaks = np.array([[reduce(one, axis=0) for reduce in (np.nanmin, np.nanmax)] for one in values])
    end, joint = np.unravel_index(int(np.nanargmax(np.abs(peaks[0] - peaks[1]))), peaks.shape[1:])
    return PeakChange(joints[joint], float(peaks[0, end, joint]), float(peaks[1, end, joint]))
