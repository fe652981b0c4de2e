"""Sections of the report on assumptions, input and settings, markers and the model; "" if there is nothing to show."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np

from borelli import __version__
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.motion import Motion
from borelli.export.clinical_names import clinical_name, in_clinical_names, model_names
from borelli.model.kinematics import root_coordinates
from borelli.reports.consequences import plain_option
from borelli.reports.html_parts import folded, number_cells, scroll, sentence, settings_text, table
from borelli.reports.report_warnings import MAX_MARKER_ERROR, all_notes, assumptions
from borelli.reports.svg import Line, bar_plot, line_plot

MAX_LOG_ENTRIES = 60
"""Number of entries shown in the processing log."""
MAX_ANGLE_SD = np.radians(3.0)
"""Standard deviation [rad] of an angle or of its neutral position above which the angle is listed."""
FIT_CODES = ("uncertain_angles", "uncertain_zeros", "uncertain_lengths")
"""Notes whose content is in the tables of the fitted model."""
GRF_SOURCES = {
    "plates": "measured by plates",
    "predicted": "predicted from the motion",
    "contacts": "simulated contact",
    "plates and predicted": "measured by plates, predicted for steps off the plates",
    "none": "not available",
}


def assumption_section(energy: Energy, fitted: bool) -> str:
    """Return assumptions and the processing log, folded; angles and lengths of a fitted model are in its section."""
    text = words_of(energy)
    shown = [note for note in assumptions(energy) if not (fitted and note.code in FIT_CODES)]
    rows = "".join(
        f"<tr><td>{escape(sentence(text(note.text)))}</td><td>{escape(plain_option(note.action))}</td></tr>"
        for note in shown
    )
    inferred = ""
    if rows:
        head = "<tr><th>Assumption</th><th>Option or remedy</th></tr>"
        title = f"Assumptions and quantities the data do not determine ({len(shown)})"
        inferred = folded(title, scroll(f"<table>{head}{rows}</table>"))
    notes = [note for note in all_notes(energy) if note.kind in ("stated", "changed")]
    items = "".join(
        f"<tr><td>{'changed' if note.kind == 'changed' else 'read'}</td>"
        f"<td>{escape(sentence(text(note.text)))}</td></tr>"
        for note in notes[:MAX_LOG_ENTRIES]
    )
    more = f"<p>and {len(notes) - MAX_LOG_ENTRIES} more</p>" if len(notes) > MAX_LOG_ENTRIES else ""
    log = folded(f"Processing log ({len(notes)} entries)", scroll(f"<table>{items}</table>") + more)
    return inferred + (log if notes else "")


def words_of(energy: Energy) -> Callable[[str], str]:
    """Return a function that puts names of the model and of the program in a text into words, but not marker labels."""
    motion = energy.torques.motion
    names = [*model_names(motion.model), *(muscle.name for muscle in motion.model.muscles)]
    labels = set(motion.recording.markers) if motion.recording is not None else set()

    def words(match: re.Match[str]) -> str:
        return match[0] if match[0] in labels else match[0].replace("_", " ")

    return lambda text: re.sub(r"(?<![\w/.])[a-z]+(?:_[a-z]+)+(?![\w/.])", words, in_clinical_names(text, names))


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
    name = model.name.replace("_", " ")
    rows["Model"] = f"{name}: {len(model.bodies)} bodies, {len(model.coordinates)} coordinates, {model.mass:.1f} kg"
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
    return folded("File, model, methods, settings and version", scroll(f'<table class="facts">{body}</table>'))


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
    end = float(np.nanmax([*largest, *rms]))
    bars = [
        bar_plot(title, "error [mm]", [names[i] for i in part], rms[part], largest[part], highlight, end)
        for title, part in (("Error of each marker, RMS and maximum", order[:half]), ("Continued", order[half:]))
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
    """Return the fitted segment lengths, and the angles that markers determine poorly, folded."""
    data = fit.data
    rows = ""
    for segment in map(str, data["segment"].values):
        one = data.sel(segment=segment)
        length, sd, generic = (1e3 * float(one[name]) for name in ("length", "length_sd", "length_given"))
        cells = number_cells(f"{length:.0f}", f"± {sd:.0f}", f"{length - generic:+.0f}")
        rows += f"<tr><td>{escape(clinical_name(segment))}</td>{cells}</tr>"
    held_out = f", {1e3 * fit.held_out_rms:.1f} mm RMS in held-out frames" if np.isfinite(fit.held_out_rms) else ""
    lengths = folded("Segment lengths", table(("Segment", "Length [mm]", "SD [mm]", "Change [mm]"), rows))
    return (
        '<p class="lead">The model was fitted to the recording. Marker error is '
        f"{1e3 * fit.train_rms:.1f} mm RMS in fitted frames{held_out}.</p>{lengths}{_uncertain_angles(fit)}"
    )


def _uncertain_angles(fit: Fit) -> str:
    """Return a table of the angles that the markers determine poorly, the most uncertain first."""
    root = set(root_coordinates(fit.model))
    names = [str(name) for name in fit.data["coordinate"].values]
    units = [str(unit) for unit in fit.data["coordinate_units"].values]
    pose, zero = (np.nan_to_num(fit.data[name].values) for name in ("pose_sd", "zero_sd"))
    largest = np.maximum(pose, zero)
    listed = [
        k for k in np.argsort(-largest)
        if units[k] == "rad" and names[k] not in root and largest[k] > MAX_ANGLE_SD
    ]  # fmt: skip
    if not listed:
        return ""
    rows = "".join(
        f"<tr><td>{escape(clinical_name(names[k]))}</td>"
        f"{number_cells(*(f'± {np.degrees(sd[k]):.0f}' for sd in (pose, zero)))}</tr>"
        for k in listed
    )
    lead = (
        "<p>A large standard deviation of the angle: markers do not determine it, and it stays near the rest pose. A "
        "large one of the neutral position: only changes of the angle are reliable; a static trial determines it.</p>"
    )
    head = ("Angle", "SD of the angle [deg]", "SD of the neutral position [deg]")
    return folded(f"Poorly determined angles ({len(listed)})", lead + table(head, rows))
