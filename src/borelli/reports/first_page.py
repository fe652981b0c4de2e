"""First page of the report: the subject and the trial, the main results, and warnings by the results they affect."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from html import escape
from typing import Any

import numpy as np

from borelli.analysis.dynamics.residual_limits import judge_residuals
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.muscle_forces import MAX_UNATTAINED
from borelli.analysis.strides import Statistic, is_jump, parameters_by_side
from borelli.export.gait_curves import SIDES, Gait
from borelli.export.gait_profile import PEAKS, curve_values, gait_profile
from borelli.export.muscle_curves import contact_curves, known_frames
from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.people.partial import is_partial
from borelli.reports.html_parts import scroll, warning_items, with_deviation
from borelli.reports.muscle_sections import IMPLANT_PEAKS
from borelli.reports.overview_sections import GRF_SOURCES, words_of
from borelli.reports.parameter_sections import TYPICAL_ADULT, gait_title, norm_text
from borelli.reports.report_warnings import MAX_MARKER_RMS, group_warnings, report_warnings

KEY_PARAMETERS = (  # name, title, unit, unit in summary.json, digits, whether by side
    ("speed", "Walking speed", "m/s", "m_per_s", 2, False),
    ("cadence", "Cadence", "steps/min", "steps_per_min", 0, False),
    ("step_length", "Step length", "m", "m", 3, True),
    ("stance", "Stance", "% of the stride", "percent", 1, True),
    ("double_support", "Double support", "% of the stride", "percent", 1, False),
)


def movement(energy: Energy, gait: Gait) -> str:
    """Return the kind of movement in a word or two."""
    if gait.strides:
        return "Running" if gait.running else "Walking"
    return "Jump" if is_jump(energy.torques.motion) else "Movement without a complete stride"


def first_page(
    energy: Energy, gait: Gait, uncertainty: AnalysisUncertainty | None, provenance: Mapping[str, Any]
) -> str:
    """Return subject and trial, the main results with their intervals, and the warnings."""
    warnings = warning_section(energy, uncertainty)
    return (
        f"{_facts(energy, gait, provenance)}"
        f'<div class="first"><div><h3>Main results</h3>{_results(energy, gait, uncertainty)}</div>'
        f'<div id="warnings"><h3>Warnings</h3>{warnings}</div></div>'
    )


def warning_section(energy: Energy, uncertainty: AnalysisUncertainty | None) -> str:
    """Return the warnings by the results they affect, each with what to do."""
    groups = group_warnings(report_warnings(energy), uncertainty.notes if uncertainty is not None else ())
    if not groups:
        return '<ul class="warnings"><li class="fine">No warnings.</li></ul>'
    text = words_of(energy)
    return "".join(
        f'<h4>Affected: {escape(title[:1].lower() + title[1:])}</h4><ul class="warnings">'
        f"{warning_items(own, text)}</ul>"
        for title, own in groups.items()
    )


def _facts(energy: Energy, gait: Gait, provenance: Mapping[str, Any]) -> str:
    """Return who was recorded, and what."""
    torques, motion = energy.torques, energy.torques.motion
    subject = dict(motion.recording.subject) if motion.recording is not None else {}
    settings = dict(provenance.get("settings", {}))
    height, sex = (settings.get(name) or subject.get(name) for name in ("height", "sex"))
    person = [str(subject["name"])] if subject.get("name") else []
    person.append(f"{motion.model.mass:.1f} kg")
    if isinstance(height, int | float) and height > 0.0:
        person.append(f"{height:.2f} m")
    person += [str(sex)] if sex in ("male", "female") else []
    counts = [f"{sum(one.side == side for one in gait.strides)} {side}" for side in SIDES]
    trial = f"{np.ptp(motion.data['time'].values):.2f} s at {motion.rate:g} Hz"
    facts = {
        "Subject": ", ".join(person),
        "Movement": movement(energy, gait) + (f", {counts[0]} and {counts[1]} strides" if gait.strides else ""),
        "Trial": trial,
        "Ground reaction forces": GRF_SOURCES.get(torques.grf_source, torques.grf_source),
        "Date of the report": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
    }
    items = "".join(f"<div><dt>{key}</dt><dd>{escape(value)}</dd></div>" for key, value in facts.items())
    return f'<dl class="who">{items}</dl>'


def _results(energy: Energy, gait: Gait, uncertainty: AnalysisUncertainty | None) -> str:
    """Return the table of main results and that of the quality of the analysis."""
    intervals = uncertainty.summary if uncertainty is not None else {}
    if gait.strides:
        rows, lead = _gait_rows(gait, intervals), "Mean ± standard deviation over strides. "
        norm = "Typical"
    else:
        rows, lead, norm = _movement_rows(energy, gait, intervals), "", ""
    rows += _muscle_rows(energy, gait)
    if uncertainty is not None:
        lead += f"In small type: 95 % interval of {uncertainty.repeats} repeats."
    head = f'<tr><th></th><th class="n">Right</th><th class="n">Left</th><th class="n">{norm}</th></tr>'
    note = f'<p class="small">{lead}{_typical_note(energy, gait) if gait.strides else ""}</p>'
    return scroll(f'<table class="results">{head}{rows}</table>') + note + _quality(energy)


def _typical_note(energy: Energy, gait: Gait) -> str:
    if gait.running:
        return " Typical values of walking do not apply to running."
    implants = "; contact forces: instrumented implants (Bergmann et al. 2001; Kutzner et al. 2010)"
    return (
        f" Typical: adults at free speed (Perry and Burnfield 2010); angles, moments and gait profile score: "
        f"{norm_text(gait)}{'' if energy.muscles is None else implants}."
    )


def _gait_rows(gait: Gait, intervals: Mapping[str, Mapping[str, float]]) -> str:
    rows = ""
    by_side = parameters_by_side(gait.parameters)
    for name, title, unit, key, digits, sided in KEY_PARAMETERS:
        typical = "" if gait.running else f"{TYPICAL_ADULT[name]:.3g}"
        values = by_side[name]
        if sided:
            cells = [_cell(values[side], digits, intervals.get(f"gait.{name}_{side}_{key}")) for side in SIDES]
        else:
            cells = [_cell(values["both"], digits, intervals.get(f"gait.{name}_{key}"), wide=True)]
        rows += _row(f"{gait_title(gait, title)} [{unit}]", cells, typical)
    profile = gait_profile(gait)
    if profile is not None and profile.total:
        cells = [
            _cell(profile.total.get(side), 1, intervals.get(f"gait.gait_profile_score_{side}_deg")) for side in SIDES
        ]
        rows += _row("Gait profile score [deg]", cells, f"{profile.normative_total:.1f}")
    for curve in gait.curves:
        if curve.name not in PEAKS:
            continue
        digits, norm = (1 if curve.unit == "deg" else 2), gait.normative(curve)
        peaks = {side: curve_values(gait, curve, side).maximum for side in curve.sides}
        if any(one.strides for one in peaks.values()):
            keys = {side: f"gait.{curve.name}_max_{side}_{PEAKS[curve.name]}" for side in SIDES}
            cells = [_cell(peaks.get(side), digits, intervals.get(keys[side])) for side in SIDES]
            typical = "" if norm is None else f"{norm.mean.max():.{digits}f} ± {norm.sd[norm.mean.argmax()]:.{digits}f}"
            rows += _row(f"{curve.title}, maximum [{curve.unit}]", cells, typical)
    return rows


def _movement_rows(energy: Energy, gait: Gait, intervals: Mapping[str, Mapping[str, float]]) -> str:
    """Return rows on a movement without strides: ranges of leg angles, peak ground reaction force, work."""
    rows = ""
    for curve in gait.curves:
        flexion = curve.name in ("hip_flexion", "knee_flexion", "ankle_dorsiflexion")
        if flexion or curve.name == "ground_force_vertical":
            known = {side: own[np.isfinite(own)] for side, own in curve.sides.items() if np.isfinite(own).any()}
            values = {side: own.max() - (own.min() if flexion else 0.0) for side, own in known.items()}
            cells = [f'<td class="n">{values[side]:.0f}</td>' if side in values else "<td></td>" for side in SIDES]
            rows += _row(f"{curve.title}, {'range' if flexion else 'peak'} [{curve.unit}]", cells, "")
    work = energy.summary.get("positive_work_j", float("nan"))
    if np.isfinite(work) and not is_partial(energy.torques.motion.model):
        value = Statistic(work, float("nan"), 1)
        rows += _row("Positive joint work [J]", [_cell(value, 0, intervals.get("positive_work_j"), wide=True)], "")
    return rows


def _muscle_rows(energy: Energy, gait: Gait) -> str:
    """Return rows on the peaks of joint contact forces, over strides or over the trial, and on metabolic power."""
    if energy.muscles is None:
        return ""
    rows, known = "", known_frames(energy.muscles)
    for curve in contact_curves(energy.muscles):
        if gait.strides:
            peaks = {side: curve_values(gait, curve, side).maximum for side in curve.sides}
        else:
            peaks = {side: Statistic(float(own[known].max()), float("nan"), 1) for side, own in curve.sides.items()}
        walking = gait.strides and not gait.running and curve.name in IMPLANT_PEAKS
        typical = f"{IMPLANT_PEAKS[curve.name]:.2f}" if walking else ""
        rows += _row(f"{curve.title}, maximum [BW]", [_cell(peaks.get(side), 2, None) for side in SIDES], typical)
    power = energy.summary.get("metabolic_power_w", float("nan")) / energy.torques.motion.model.mass
    if np.isfinite(power):
        cell = _cell(Statistic(power, float("nan"), 1), 2, None, wide=True)
        rows += _row("Metabolic power [W/kg]", [cell], "")
    return rows


def _row(title: str, cells: list[str], typical: str) -> str:
    return f'<tr><th>{escape(title)}</th>{"".join(cells)}<td class="n soft">{typical}</td></tr>'


def _cell(value: Statistic | None, digits: int, interval: Mapping[str, float] | None, *, wide: bool = False) -> str:
    """Return a cell with a value, its standard deviation over strides, and its 95 % interval in small type."""
    spread = ""
    if interval is not None and interval["low"] == interval["low"]:
        spread = f"<small>{interval['low']:.{digits}f} to {interval['high']:.{digits}f}</small>"
    columns = ' colspan="2"' if wide else ""
    return f'<td class="n"{columns}>{with_deviation(value, digits)}{spread}</td>'


def _quality(energy: Energy) -> str:
    """Return marker error and residuals with their recommended limits."""
    motion = energy.torques.motion
    rows = []
    if "marker_error" in motion.data:
        rows.append(("Marker error, RMS", 1e3 * motion.marker_rms, 1e3 * MAX_MARKER_RMS, "mm"))
    if energy.torques.grf_source != "none" and not is_partial(motion.model):
        peaks = judge_residuals(energy.torques)
        rows.append(("Residual force, peak", peaks.force_peak, peaks.force_limit, "N"))
        rows.append(("Residual moment, peak", peaks.moment_peak, peaks.moment_limit, "N m"))
    if energy.muscles is not None:
        worst = energy.muscles.worst_unattained
        rows.append(("Unattained torque, largest", 100.0 * worst[1] if worst else 0.0, 100.0 * MAX_UNATTAINED, "%"))
    body = "".join(
        f'<tr><th>{name}</th><td class="n {"ok" if value <= limit else "off"}">{value:.1f} {unit}</td>'
        f'<td class="n soft">{limit:.0f} {unit}</td></tr>'
        for name, value, limit, unit in rows
    )
    if not body:
        return ""
    head = '<tr><th>Quality</th><th class="n">Value</th><th class="n">Limit (Hicks et al. 2015)</th></tr>'
    return scroll(f'<table class="results">{head}{body}</table>')
