"""What a reader must know before the figures: faults, doubts, and what passes no threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from borelli.analysis.energetics.energy import Energy
from borelli.recording.recording import Note

FORCE_LIMIT = 0.05
"""Peak residual force, as a share of the peak net external force (Hicks et al. 2015)."""
MOMENT_LIMIT = 0.01
"""Peak residual moment, as a share of that force times the height of the centre of mass (Hicks et al. 2015)."""
MARKER_RMS, MARKER_MAX = 0.02, 0.04
"""Marker errors [m] that are good enough (Hicks et al. 2015)."""
BALANCE = 0.1
"""Difference of work and energy [% of positive work] that only a fault explains."""


class ReportWarning(NamedTuple):
    """One sentence, how bad ("bad", "warn"), and what to do about it."""

    text: str
    grade: str
    action: str = ""


class Residuals(NamedTuple):
    """Peaks and what they are held against [N, N m]."""

    force: float
    force_limit: float
    moment: float
    moment_limit: float
    force_time: float
    """When the force is at its peak [s]."""
    moment_time: float


def residual_peaks(energy: Energy) -> Residuals:
    """Peak residuals, and the thresholds of Hicks et al. 2015."""
    data = energy.torques.data
    mass = energy.torques.motion.model.mass
    weight = mass * float(np.linalg.norm(energy.torques.motion.model.gravity))
    # frames that plates do not cover tell nothing of how well masses and motion fit them
    judged = energy.torques.evaluated
    force, moment = (
        np.where(judged, np.linalg.norm(data[name].values, axis=-1), np.nan)
        for name in ("residual_force", "residual_torque")
    )
    push = weight
    if "ground_reaction_force" in data:
        push = float(np.nanmax(np.linalg.norm(data["ground_reaction_force"].sum("foot").values, axis=-1)))
    height = float(np.nanmean(energy.data["center_of_mass"].sel(axis="z").values))
    time = data["time"].values
    return Residuals(
        float(np.nanmax(force)), FORCE_LIMIT * push, float(np.nanmax(moment)), MOMENT_LIMIT * abs(height) * push,
        float(time[np.nanargmax(force)]), float(time[np.nanargmax(moment)]),
    )  # fmt: skip


def all_notes(energy: Energy) -> tuple[Note, ...]:
    """Every note of every stage, once, in order."""
    torques, motion = energy.torques, energy.torques.motion
    recorded = motion.recording.notes if motion.recording is not None else ()
    return tuple(dict.fromkeys((*recorded, *motion.notes, *torques.notes, *energy.notes)))


def report_warnings(energy: Energy) -> tuple[ReportWarning, ...]:
    """What is to be told first, the worst first."""
    found = [*_of_markers(energy), *_of_residuals(energy)]
    if energy.balance_error > BALANCE:
        what = f"work and energy differ by {energy.balance_error:.2f} % of the positive work, more than {BALANCE:g} %"
        found.append(ReportWarning(what, "bad"))
    found += [ReportWarning(n.text, "warn", n.action) for n in all_notes(energy) if n.kind == "problem"]
    return tuple(sorted(found, key=lambda w: w.grade != "bad"))


def assumptions(energy: Energy) -> tuple[Note, ...]:
    """What was guessed, or cannot be told from the data."""
    return tuple(note for note in all_notes(energy) if note.kind == "inferred")


def _of_markers(energy: Energy) -> list[ReportWarning]:
    data = energy.torques.motion.data
    if "marker_error" not in data:
        return []
    errors = data["marker_error"].values
    worst = np.nanmax(np.where(np.isfinite(errors), errors, 0.0), axis=0)
    rms = float(np.sqrt(np.nanmean(errors**2)))
    found = []
    if rms > MARKER_RMS:
        said = f"markers are {1e3 * rms:.0f} mm off on average; below {1e3 * MARKER_RMS:.0f} mm is good"
        found.append(ReportWarning(said, "bad", "check names and the fit"))
    far = [str(name) for name, value in zip(data["marker"].values, worst, strict=True) if value > MARKER_MAX]
    if far:
        said = f"{len(far)} markers come {1e3 * MARKER_MAX:.0f} mm or more off, at worst {1e3 * worst.max():.0f} mm: "
        found.append(ReportWarning(said + ", ".join(far[:8]), "warn", "look for swaps with borelli doctor"))
    return found


def _of_residuals(energy: Energy) -> list[ReportWarning]:
    if energy.torques.grf_source == "none":
        what = "no force of the ground is known: residuals hold all of it, and torques of the legs mean little"
        return [ReportWarning(what, "bad", "give a recording with plates")]
    r = residual_peaks(energy)
    found = []
    if r.force > r.force_limit:
        what = (
            f"the residual force reaches {r.force:.0f} N, at {r.force_time:.2f} s; the limit is {r.force_limit:.0f} N, "
            "5 % of the net external force"
        )
        found.append(ReportWarning(what, "warn", "see Residuals below"))
    if r.moment > r.moment_limit:
        what = (
            f"the residual moment reaches {r.moment:.0f} N m, at {r.moment_time:.2f} s; the limit is "
            f"{r.moment_limit:.0f} N m, 1 % of that force times the height of the centre of mass"
        )
        found.append(ReportWarning(what, "warn", "see Residuals below"))
    return found
