"""Sections of the report on warnings, input and settings, markers and the model; "" where there is nothing to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli import __version__
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.motion import Motion
from borelli.export.summary import grf_agreement
from borelli.model.people.partial import is_partial
from borelli.reports.html_parts import note_items, number_cells, settings_text, table
from borelli.reports.report_warnings import MAX_MARKER_ERROR, all_notes, assumptions, report_warnings
from borelli.reports.svg import Line, bar_plot, line_plot

if TYPE_CHECKING:
    from xarray import Dataset

MAX_LOG_ENTRIES = 60
"""Number of entries shown in the processing log."""
MAX_ZERO_SD = np.radians(3.0)
"""Standard deviation [rad] of an angle's neutral position above which the angle is listed."""
MAX_LISTED_ANGLES = 14
GRF_SOURCES = {
    "plates": "measured by plates",
    "predicted": "predicted from the motion",
    "contacts": "simulated contact",
    "plates and predicted": "measured by plates, predicted for steps off the plates",
    "none": "not available",
}


def warning_section(energy: Energy) -> str:
    """Return warnings, assumptions and the processing log."""
    rows = note_items(report_warnings(energy)) or '<li class="fine">No warnings.</li>'
    inferred = note_items(assumptions(energy))
    if inferred:
        title = "Assumptions and quantities the data do not determine"
        inferred = f'<h3>{title}</h3><ul class="notes">{inferred}</ul>'
    notes = [note for note in all_notes(energy) if note.kind in ("stated", "changed")]
    items = note_items(replace(note, action="") for note in notes[:MAX_LOG_ENTRIES])
    more = f"<li>and {len(notes) - MAX_LOG_ENTRIES} more</li>" if len(notes) > MAX_LOG_ENTRIES else ""
    log = f"<details><summary>Processing log ({len(notes)} entries)</summary><ul>{items}{more}</ul></details>"
    return f'<ul class="warnings">{rows}</ul>{inferred}{log if notes else ""}'


def tiles(energy: Energy, predicted_grf: Dataset | None) -> str:
    """Return the key values."""
    torques, motion = energy.torques, energy.torques.motion
    weight = motion.model.mass * float(np.linalg.norm(motion.model.gravity))
    values: list[tuple[str, str, str]] = []
    if "marker_error" in motion.data:
        values.append((f"{1e3 * motion.marker_rms:.1f}", "mm", "Marker error, RMS"))
    if torques.grf_source != "none" and not is_partial(motion.model):
        values.append((f"{100.0 * torques.residual_force_rms / weight:.1f}", "% BW", "Residual force, RMS"))
        values.append((f"{torques.residual_moment_rms:.1f}", "N m", "Residual moment, RMS"))
    feet = grf_agreement(energy, predicted_grf)
    if feet:
        rms = float(np.mean([foot.vertical_rms for foot in feet]))
        values.append((f"{rms:.1f}", "% BW", "Predicted vs. measured vertical GRF, RMS"))
    if not is_partial(motion.model):
        values.append((f"{energy.summary['positive_work_j']:.0f}", "J", "Positive joint work"))
    cost = energy.summary.get("cost_of_transport_j_per_kg_m", float("nan"))
    if np.isfinite(cost):
        values.append((f"{cost:.2f}", "J/(kg m)", "Mechanical cost of transport"))
        values.append((f"{energy.summary['speed_m_per_s']:.2f}", "m/s", "Speed"))
    boxes = "".join(
        f'<div class="tile"><b>{value} <i>{escape(unit)}</i></b><span>{escape(title)}</span></div>'
        for value, unit, title in values
    )
    return f'<div class="tiles">{boxes}</div>'


def source_section(energy: Energy, provenance: Mapping[str, Any]) -> str:
    """Return the file, its hash, the model, the settings and the version."""
    torques, motion = energy.torques, energy.torques.motion
    recording, model = motion.recording, motion.model
    rows: dict[str, str] = {}
    if recording is not None:
        form = f" ({recording.format})" if recording.format else ""
        rows["Recording"] = f"{provenance.get('file') or recording.path or recording.name}{form}"
    if "sha256" in provenance:
        rows["SHA-256"] = f"<code>{escape(str(provenance['sha256']))}</code>"
    frames = int(motion.data.sizes["time"])
    rows["Frames"] = f"{frames} at {motion.rate:g} Hz, {np.ptp(motion.data['time'].values):.2f} s"
    rows["Markers"] = f"{motion.data.sizes.get('marker', 0)} used"
    if recording is not None:
        rows["Markers"] += f" of {len(recording.markers)} in the recording; {len(recording.plates)} force plates"
    rows["Model"] = (
        f"{model.name}: {len(model.bodies)} bodies, {len(model.coordinates)} coordinates, {model.mass:.1f} kg"
    )
    rows["Inverse kinematics"] = settings_text(motion.settings)
    rows["Inverse dynamics"] = settings_text(torques.settings)
    rows["Ground reaction force"] = GRF_SOURCES.get(torques.grf_source, torques.grf_source)
    given = {k: v for k, v in dict(provenance.get("settings", {})).items() if v not in (None, {}, [])}
    if given:
        rows["Settings"] = settings_text(given)
    runtime = {k: v for k, v in dict(provenance.get("runtime_s", {})).items() if v is not None}
    if runtime:
        rows["Run time [s]"] = ", ".join(f"{name} {value:.2f}" for name, value in runtime.items())
    code = f", code {provenance['code']}" if "code" in provenance else ""
    rows["Version"] = f"borelli {provenance.get('version', __version__)}{code}"
    body = "".join(
        f"<tr><th>{key}</th><td>{text if text.startswith('<code>') else escape(text)}</td></tr>"
        for key, text in rows.items()
    )
    return f'<table class="facts">{body}</table>'


def marker_section(motion: Motion) -> str:
    """Return the error of each marker and of all markers over time."""
    if "marker_error" not in motion.data:
        return ""
    errors = 1e3 * motion.data["marker_error"].values
    names = [str(name) for name in motion.data["marker"].values]
    with np.errstate(invalid="ignore"):
        count = np.maximum(np.isfinite(errors).sum(axis=0), 1)
        rms = np.sqrt(np.nansum(errors**2, axis=0) / count)
        over_time = np.sqrt(np.nansum(errors**2, axis=1) / np.maximum(np.isfinite(errors).sum(axis=1), 1))
    largest = np.max(np.where(np.isfinite(errors), errors, 0.0), axis=0, initial=0.0)
    rms[~np.isfinite(errors).any(axis=0)] = np.nan
    order = np.argsort(-np.nan_to_num(rms))
    half = -(-len(order) // 2)
    highlight = float(1.5 * np.nanmedian(rms))
    bars = [
        bar_plot(title, "error [mm]", [names[i] for i in part], rms[part], largest[part], highlight)
        for title, part in (("Error of each marker, RMS and maximum", order[:half]), ("", order[half:]))
        if len(part)
    ]
    line = Line("all markers", motion.data["time"].values, over_time, "dark")
    plot = line_plot("Error of all markers, RMS", "time [s]", "error [mm]", [line], wide=True)
    return (
        '<p class="lead">Marker error is the distance between model markers and measured markers: '
        f"{1e3 * motion.marker_rms:.1f} mm RMS, maximum {largest.max():.1f} mm "
        f"({escape(names[int(largest.argmax())])}). The recommended maximum is {1e3 * MAX_MARKER_ERROR:.0f} mm (Hicks "
        "et al. 2015). Highlighted bars exceed 1.5 times the median.</p>"
        f'<div class="plots wide">{"".join(bars)}</div><div class="plots wide">{plot}</div>'
    )


def model_section(fit: Fit) -> str:
    """Return the fitted segment lengths and the angles with an uncertain neutral position."""
    data = fit.data
    rows = ""
    for segment in map(str, data["segment"].values):
        one = data.sel(segment=segment)
        length, sd, generic = (1e3 * float(one[name]) for name in ("length", "length_sd", "length_given"))
        cells = number_cells(f"{length:.0f}", f"± {sd:.0f}", f"{length - generic:+.0f}")
        rows += f"<tr><td>{escape(segment.replace('_', ' '))}</td>{cells}</tr>"
    held_out = f", {1e3 * fit.held_out_rms:.1f} mm RMS in held-out frames" if np.isfinite(fit.held_out_rms) else ""
    columns = (data["coordinate"].values, data["zero_sd"].values, data["coordinate_units"].values)
    uncertain = [
        (str(name), float(sd))
        for name, sd, unit in zip(*columns, strict=True)
        if str(unit) == "rad" and sd > MAX_ZERO_SD
    ]
    uncertain.sort(key=lambda pair: -pair[1])
    angles = "".join(
        f"<tr><td>{escape(name)}</td>{number_cells(f'± {np.degrees(sd):.0f}')}</tr>"
        for name, sd in uncertain[:MAX_LISTED_ANGLES]
    )
    if angles:
        angles = table(("Coordinate", "SD [deg]"), angles)
        angles = f"<div><h3>Angles with an uncertain neutral position</h3>{angles}</div>"
    lengths = table(("Segment", "Length [mm]", "SD [mm]", "Change [mm]"), rows)
    return (
        '<p class="lead">The model was fitted to the recording. Marker error is '
        f'{1e3 * fit.train_rms:.1f} mm RMS in fitted frames{held_out}.</p><div class="plots wide">'
        f"<div><h3>Segment lengths</h3>{lengths}</div>{angles}</div>"
    )
