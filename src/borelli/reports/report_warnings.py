"""Warnings of the report: problems of the data, assumptions, and results beyond recommended thresholds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from borelli.analysis.dynamics.residual_limits import judge_residuals
from borelli.analysis.energetics.energy import Energy
from borelli.errors import list_names
from borelli.people.partial import is_partial
from borelli.recording.recording import Note
from borelli.reports.consequences import (
    ALL,
    ANGLES,
    FORCES,
    GROUPS,
    INTERVALS,
    MUSCLES,
    WORK,
    affected_results,
    plain_action,
)

MAX_MARKER_RMS, MAX_MARKER_ERROR = 0.02, 0.04
"""Recommended limits of RMS and maximum marker error [m] (Hicks et al. 2015)."""
MAX_BALANCE_ERROR = 0.1
"""Energy balance error [% of positive work] beyond which the computation is not reliable."""

MAX_JOINT_TORQUE = 5.6
"""Peak joint torque [N m/kg] beyond which torques are implausible.

Twice the largest mean voluntary maximum: knee extension of young men, 0.163 times weight and height (Anderson et al.
2007), at a height of 1.75 m. The factor allows for eccentric action and for athletes.
"""
PREDICTED_VERTICAL_RMS = (4, 10)
"""RMS error of the predicted vertical force of a foot over stance [% of body weight], least and largest of the walks in
six laboratories whose plates it was compared with.
"""


class ReportWarning(NamedTuple):
    """Warning of the report."""

    text: str
    grade: str
    """ "bad" or "warn"."""
    action: str = ""
    code: str = ""
    results: str = ALL
    """Affected results, one of `GROUPS`."""


def all_notes(energy: Energy) -> tuple[Note, ...]:
    """Return the notes of all stages in order, without duplicates."""
    torques, motion = energy.torques, energy.torques.motion
    recorded = motion.recording.notes if motion.recording is not None else ()
    return tuple(dict.fromkeys((*recorded, *motion.notes, *torques.notes, *_muscle_notes(energy), *energy.notes)))


def report_warnings(energy: Energy) -> tuple[ReportWarning, ...]:
    """Return the warnings of an analysis, the most severe first."""
    warnings = [*_marker_warnings(energy), *_residual_warnings(energy), *_torque_warnings(energy)]
    warnings += _prediction_warnings(energy)
    if energy.balance_error > MAX_BALANCE_ERROR:
        text = (
            f"The energy balance error is {energy.balance_error:.2f} % of positive work; the limit is "
            f"{MAX_BALANCE_ERROR:g} %."
        )
        warnings.append(ReportWarning(text, "bad", code="energy_balance"))
    known: dict[Note, str] = {}
    torques, motion = energy.torques, energy.torques.motion
    recorded = motion.recording.notes if motion.recording is not None else ()
    stages = (
        (recorded, ALL), (motion.notes, ANGLES), (torques.notes, FORCES), (_muscle_notes(energy), MUSCLES),
        (energy.notes, WORK),
    )  # fmt: skip
    for notes, results in stages:
        for note in notes:
            if note.kind == "problem":
                known.setdefault(note, results)
    warnings += [ReportWarning(note.text, "warn", note.action, note.code, results) for note, results in known.items()]
    placed = [one._replace(results=affected_results(one.code, one.results)) for one in warnings]
    return tuple(sorted(placed, key=lambda warning: warning.grade != "bad"))


def group_warnings(
    warnings: Iterable[ReportWarning], uncertain: Iterable[Note] = ()
) -> dict[str, tuple[ReportWarning, ...]]:
    """Return warnings by the results that they affect, with actions in words; `uncertain` are notes on uncertainty."""
    every = [*warnings]
    every += [
        ReportWarning(note.text, "warn", note.action, note.code, INTERVALS)
        for note in uncertain
        if note.kind == "problem"
    ]
    plain = [one._replace(action=plain_action(one.code, one.action)) for one in every]
    groups = {title: tuple(one for one in plain if one.results == title) for title in GROUPS}
    return {title: own for title, own in groups.items() if own}


def _muscle_notes(energy: Energy) -> tuple[Note, ...]:
    return energy.muscles.notes if energy.muscles is not None else ()


def assumptions(energy: Energy) -> tuple[Note, ...]:
    """Return the notes on assumptions and on quantities that the data do not determine."""
    return tuple(note for note in all_notes(energy) if note.kind == "inferred")


def _marker_warnings(energy: Energy) -> list[ReportWarning]:
    data = energy.torques.motion.data
    if "marker_error" not in data:
        return []
    errors = data["marker_error"].values
    largest = np.nanmax(np.where(np.isfinite(errors), errors, 0.0), axis=0)
    rms = float(np.sqrt(np.nanmean(errors**2)))
    warnings = []
    if rms > MAX_MARKER_RMS:
        text = (
            f"Marker error is {1e3 * rms:.0f} mm RMS; the recommended limit is {1e3 * MAX_MARKER_RMS:.0f} mm (Hicks et "
            "al. 2015)."
        )
        warnings.append(ReportWarning(text, "bad", "Check the marker names and the fit.", "marker_rms"))
    far = [str(name) for name, value in zip(data["marker"].values, largest, strict=True) if value > MAX_MARKER_ERROR]
    if far:
        text = (
            f"The error of {len(far)} markers exceeds {1e3 * MAX_MARKER_ERROR:.0f} mm, with a maximum of "
            f"{1e3 * largest.max():.0f} mm: {list_names(far)}."
        )
        warnings.append(ReportWarning(text, "warn", "Look for swapped labels with borelli doctor.", "marker_error"))
    return warnings


def _torque_warnings(energy: Energy) -> list[ReportWarning]:
    """Return a warning if a joint torque is larger than a person can produce, whatever the residual is."""
    peak = energy.torques.peak_joint_torque
    if energy.torques.grf_source == "none" or peak is None or peak.per_mass <= MAX_JOINT_TORQUE:
        return []
    text = (
        f"The torque of {peak.coordinate} peaks at {peak.per_mass:.3g} N m/kg ({peak.time:.2f} s); twice the voluntary "
        f"maximum of young men is {MAX_JOINT_TORQUE:g} N m/kg (Anderson et al. 2007)."
    )
    return [ReportWarning(text, "warn", "Check the ground reaction forces and the filter.", "joint_torque")]


def _prediction_warnings(energy: Energy) -> list[ReportWarning]:
    """Return a warning on the expected error of predicted forces, of which small residuals show nothing."""
    if energy.torques.grf_source != "predicted":
        return []
    low, high = PREDICTED_VERTICAL_RMS
    text = (
        "Ground reaction forces are predicted from the motion: the vertical force of a foot is expected to err by "
        f"{low} to {high} % of body weight (RMS over stance, walks in six laboratories), and leg moments accordingly. "
        "Residuals are small by construction and do not show this error."
    )
    return [ReportWarning(text, "warn", "Use force plates, or see the intervals of --monte-carlo.", "grf_predicted")]


def _residual_warnings(energy: Energy) -> list[ReportWarning]:
    if is_partial(energy.torques.motion.model):
        return []
    if energy.torques.grf_source == "none":
        text = "No ground reaction force is available: the residuals contain it all, and leg torques are not valid."
        return [ReportWarning(text, "bad", "Use a recording with force plates.", "grf_unavailable")]
    peaks = judge_residuals(energy.torques)
    warnings = []
    if peaks.force_peak > peaks.force_limit:
        text = (
            f"Residual force peaks at {peaks.force_peak:.3g} N ({peaks.force_time:.2f} s); the recommended limit is "
            f"{peaks.force_limit:.3g} N, 5 % of the net external force (Hicks et al. 2015)."
        )
        warnings.append(ReportWarning(text, "warn", "See Residuals.", "residual_force"))
    if peaks.moment_peak > peaks.moment_limit:
        text = (
            f"Residual moment peaks at {peaks.moment_peak:.3g} N m ({peaks.moment_time:.2f} s); the recommended limit "
            f"is {peaks.moment_limit:.3g} N m, 1 % of the net external force times the height of the center of mass "
            "(Hicks et al. 2015)."
        )
        warnings.append(ReportWarning(text, "warn", "See Residuals.", "residual_moment"))
    return warnings
