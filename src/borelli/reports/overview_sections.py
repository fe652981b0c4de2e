"""The parts of the report about the run, its markers and its body, each a piece of HTML; "" where there is nothing."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli import __version__
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.motion import Motion
from borelli.export.summary import grf_agreement
from borelli.reports.html_parts import settings_text, action_html, sentence
from borelli.reports.report_warnings import MARKER_MAX, all_notes, assumptions, report_warnings
from borelli.reports.svg import Line, bar_plot, line_plot

if TYPE_CHECKING:
    from xarray import Dataset

CHANGES_SHOWN = 60
"""Notes of what was read and changed that are listed."""
UNSURE = np.radians(3.0)
"""Angles whose zero is known no better are named."""


def warning_section(energy: Energy) -> str:
    """What is to be known first, and all notes in a fold."""
    warned = report_warnings(energy)
    rows = "".join(f'<li class="{one.grade}">{escape(sentence(one.text))}{action_html(one.action)}</li>' for one in warned)
    rows = rows or '<li class="fine">No warnings.</li>'
    doubts = "".join(
        f"<li>{escape(sentence(note.text))}{action_html(note.action)}</li>" for note in assumptions(energy)
    )  # fmt: skip
    if doubts:
        doubts = f'<h3>Guessed, or not told by the data</h3><ul class="doubts">{doubts}</ul>'
    notes = [note for note in all_notes(energy) if note.kind in ("stated", "changed")]
    items = "".join(f"<li>{escape(sentence(note.text))}</li>" for note in notes[:CHANGES_SHOWN])
    more = f"<li>and {len(notes) - CHANGES_SHOWN} more</li>" if len(notes) > CHANGES_SHOWN else ""
    fold = f"<details><summary>{len(notes)} things that were read or changed</summary><ul>{items}{more}</ul></details>"
    rest = f"{doubts}{fold if notes else ''}"
    return f'<section id="warnings"><h2>Warnings</h2><ul class="warnings">{rows}</ul>{rest}</section>'


def tiles(energy: Energy, contacts: Dataset | None) -> str:
    """The key figures."""
    torques, motion = energy.torques, energy.torques.motion
    weight = motion.model.mass * float(np.linalg.norm(motion.model.gravity))
    found: list[tuple[str, str, str]] = []
    if "marker_error" in motion.data:
        found.append((f"{1e3 * motion.marker_rms:.1f}", "mm", "markers, root mean square"))
    if torques.grf_source != "none":
        share = 100.0 * torques.residual_force_rms / weight
        found.append((f"{share:.1f}", "% BW", "residual force, rms"))
        found.append((f"{torques.residual_moment_rms:.1f}", "N m", "residual moment, rms"))
    feet = grf_agreement(energy, contacts)
    if feet:
        rms = float(np.mean([foot.vertical_rms for foot in feet]))
        found.append((f"{rms:.1f}", "% BW", "vertical force from motion against plates"))
    found.append((f"{energy.summary['positive_work_j']:.0f}", "J", "positive work of the joints"))
    cost = energy.summary.get("cost_of_transport_j_per_kg_m", float("nan"))
    if np.isfinite(cost):
        found.append((f"{cost:.2f}", "J/(kg m)", "mechanical cost of transport"))
        found.append((f"{energy.summary['speed_m_per_s']:.2f}", "m/s", "speed"))
    boxes = "".join(
        f'<div class="tile"><b>{value} <i>{escape(unit)}</i></b><span>{escape(what)}</span></div>'
        for value, unit, what in found
    )
    return f'<div class="tiles">{boxes}</div>'


def source_section(energy: Energy, about: Mapping[str, Any]) -> str:
    """File, hash, settings, version, model."""
    torques, motion = energy.torques, energy.torques.motion
    recording, model = motion.recording, motion.model
    rows: dict[str, str] = {}
    if recording is not None:
        form = f" ({recording.format})" if recording.format else ""
        rows["recording"] = f"{about.get('file') or recording.path or recording.name}{form}"
    if "sha256" in about:
        rows["SHA-256"] = f"<code>{escape(str(about['sha256']))}</code>"
    frames = int(motion.data.sizes["time"])
    rows["frames"] = f"{frames} at {motion.rate:g} Hz, {np.ptp(motion.data['time'].values):.2f} s"
    rows["markers"] = f"{motion.data.sizes.get('marker', 0)} followed"
    if recording is not None:
        rows["markers"] += f" of {len(recording.markers)} in the recording; {len(recording.plates)} plates"
    rows["model"] = (
        f"{model.name}: {len(model.bodies)} bodies, {len(model.coordinates)} coordinates, {model.mass:.1f} kg"
    )
    rows["poses"] = settings_text(motion.settings)
    rows["torques"] = f"{settings_text(torques.settings)}; ground forces: {_source_words(torques.grf_source)}"
    given = {k: v for k, v in dict(about.get("settings", {})).items() if v not in (None, {}, [])}
    if given:
        rows["settings"] = settings_text(given)
    seconds = {k: v for k, v in dict(about.get("seconds", {})).items() if v is not None}
    if seconds:
        rows["seconds"] = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    code = f", code {about['code']}" if "code" in about else ""
    rows["version"] = f"borelli {about.get('version', __version__)}{code}"
    body = "".join(
        f"<tr><th>{key}</th><td>{text if text.startswith('<code>') else escape(text)}</td></tr>"
        for key, text in rows.items()
    )
    return f'<section id="source"><h2>What was analysed</h2><table class="facts">{body}</table></section>'


def _source_words(source: str) -> str:
    words = {
        "plates": "measured by plates", "contacts": "computed from the motion", "none": "not known",
        "plates and predicted": "measured by plates, computed of steps beside them",
    }  # fmt: skip
    return words.get(source, source)


def marker_section(motion: Motion) -> str:
    """How far each marker is from where it was seen."""
    if "marker_error" not in motion.data:
        return ""
    errors = 1e3 * motion.data["marker_error"].values
    names = [str(name) for name in motion.data["marker"].values]
    with np.errstate(invalid="ignore"):
        count = np.maximum(np.isfinite(errors).sum(axis=0), 1)
        rms = np.sqrt(np.nansum(errors**2, axis=0) / count)
        over_time = np.sqrt(np.nansum(errors**2, axis=1) / np.maximum(np.isfinite(errors).sum(axis=1), 1))
    worst = np.max(np.where(np.isfinite(errors), errors, 0.0), axis=0, initial=0.0)
    rms[~np.isfinite(errors).any(axis=0)] = np.nan
    order = np.argsort(-np.nan_to_num(rms))
    half = -(-len(order) // 2)
    hot = float(1.5 * np.nanmedian(rms))
    bars = [
        bar_plot(title, "distance [mm]", [names[i] for i in part], rms[part], worst[part], hot)
        for title, part in (("Each marker, rms and largest", order[:half]), ("", order[half:]))
        if len(part)
    ]
    line = Line("all markers", motion.data["time"].values, over_time, "dark")
    plot = line_plot("All markers, rms in each frame", "time [s]", "distance [mm]", [line], wide=True)
    return (
        '<section id="markers"><h2>Markers</h2>'
        '<p class="lead">Distance of the model\'s markers from the measured ones: '
        f"{1e3 * motion.marker_rms:.1f} mm rms, at most {worst.max():.1f} mm ({escape(names[int(worst.argmax())])}); "
        f"up to {1e3 * MARKER_MAX:.0f} mm is usual. Bars that stand out are half as much again as the middle one.</p>"
        f'<div class="plots wide">{"".join(bars)}</div><div class="plots wide">{plot}</div></section>'
    )


def body_section(fit: Fit) -> str:
    """Lengths that were fitted, with their uncertainty."""
    data = fit.data
    rows = ""
    for segment in map(str, data["segment"].values):
        one = data.sel(segment=segment)
        length, sd, given = (1e3 * float(one[name]) for name in ("length", "length_sd", "length_given"))
        rows += (
            f'<tr><td>{escape(segment.replace("_", " "))}</td><td class="n">{length:.0f}</td>'
            f'<td class="n">± {sd:.0f}</td><td class="n">{length - given:+.0f}</td></tr>'
        )
    held = f", {1e3 * fit.held_out_rms:.1f} mm in frames kept apart" if np.isfinite(fit.held_out_rms) else ""
    doubts = [
        (str(name), float(sd))
        for name, sd, unit in zip(
            data["coordinate"].values, data["zero_sd"].values, data["coordinate_units"].values, strict=True
        )
        if str(unit) == "rad" and sd > UNSURE
    ]
    doubts.sort(key=lambda pair: -pair[1])
    unsure = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">± {np.degrees(sd):.0f}°</td></tr>' for name, sd in doubts[:14]
    )
    table = f"<div><h3>Angles whose zero is not well known</h3><table>{unsure}</table></div>" if unsure else ""
    return (
        f'<section id="body"><h2>Body</h2><p class="lead">The model was fitted to the recording: markers '
        f"{1e3 * fit.train_rms:.1f} mm rms in the frames fitted{held}.</p>"
        '<div class="plots wide"><div><h3>Lengths</h3><table><tr><th>segment</th><th class="n">mm</th>'
        f'<th class="n">sd</th><th class="n">changed by</th></tr>{rows}</table></div>{table}</div></section>'
    )
