"""Report of an analysis as one HTML file: warnings, input and settings, then all results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from os import PathLike
from typing import TYPE_CHECKING, Any

from borelli import __version__
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.motion import Motion
from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.files.atomic import write_atomic
from borelli.model.people.partial import is_partial
from borelli.reports.energy_sections import coordinate_section, energy_section, residual_section, uncertainty_section
from borelli.reports.gait_curves import gait_curves
from borelli.reports.gait_sections import gait_section, ground_section
from borelli.reports.motion_player import pack_motion, shown_frames
from borelli.reports.overview_sections import marker_section, model_section, source_section, tiles, warning_section

if TYPE_CHECKING:
    from xarray import Dataset

PLAYER = """
<p class="lead">Motion of the model with markers and ground reaction forces. Click a plot over time to show that time;
vertical lines in the plots mark the time shown here.</p>
<div id="stage"><canvas></canvas><div class="clock"></div><div class="hint">drag: rotate · shift-drag: move · wheel:
zoom</div></div>
<div class="controls"><button type="button">Play</button><input type="range" min="0" value="0" aria-label="time">
<select aria-label="speed"><option value="1">1 x</option><option value="0.5">0.5 x</option>
<option value="0.25">0.25 x</option><option value="0.1">0.1 x</option></select>
<label><input type="checkbox" name="bodies" checked>bodies</label>
<label><input type="checkbox" name="measured" checked><i style="background:#ed6b1a"></i>measured markers</label>
<label><input type="checkbox" name="modeled"><i style="background:#263342"></i>model markers</label>
<label><input type="checkbox" name="errors"><i style="background:#c71a1a"></i>marker errors, 10 x</label>
<label><input type="checkbox" name="forces" checked><i style="background:#1a8552"></i>ground reaction forces</label>
</div>"""
REFERENCES = (
    "Normative gait: Schwartz, Rozumalski and Trost, J. Biomech. 41 (2008) 1639, typically developing children, by "
    "walking speed; second source: Pinzone, Schwartz, Thomason and Baker, Gait &amp; Posture 40 (2014) 286. "
    "Thresholds: Hicks, Uchida, Seth, Rajagopal and Delp, J. Biomech. Eng. 137 (2015) 020905."
)


def write_report(
    energy: Energy,
    path: str | PathLike[str],
    *,
    fit: Fit | None = None,
    predicted_grf: Dataset | None = None,
    uncertainty: AnalysisUncertainty | None = None,
    provenance: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the report of an analysis as one HTML file that needs no network.

    Args:
        energy: Energy, with the torques and the motion it was computed from.
        path: Path of the file.
        fit: Fit of the model; None: the model was not fitted.
        predicted_grf: Ground reaction forces predicted from the motion where plates measured them too.
        uncertainty: Uncertainty of the outputs; None: not computed.
        provenance: Further facts to show: `file`, `sha256`, `settings`, `runtime_s`, `version`, `code`.
        overwrite: Replace an existing file.

    Examples:
        >>> walk = bo.synthetic_recording("walk")
        >>> torques = bo.inverse_dynamics(bo.inverse_kinematics(walk.model, walk.recording))
        >>> bo.write_report(bo.compute_energy(torques), "walk.html")
    """
    motion = energy.torques.motion
    recording = motion.recording
    name = recording.name if recording is not None and recording.name else motion.model.name
    synthetic = recording is not None and recording.metadata.get("synthetic")
    gait, partial = gait_curves(energy), is_partial(motion.model)
    sections = [
        ("warnings", "Warnings", warning_section(energy)),
        ("source", "Input and settings", source_section(energy, provenance or {})),
        ("playback", "Motion", _excerpt_note(motion) + PLAYER),
        ("gait", "Angles, moments, powers", gait_section(gait, uncertainty)),
        ("ground", "Ground reaction forces", ground_section(energy, gait, predicted_grf, uncertainty)),
        ("residuals", "Residuals", "" if partial else residual_section(energy, uncertainty)),
        ("energy", "Energy", "" if partial else energy_section(energy, uncertainty)),
        ("uncertainty", "Uncertainty", "" if uncertainty is None else uncertainty_section(energy, uncertainty)),
        ("markers", "Markers", marker_section(motion)),
        ("model", "Model", "" if fit is None else model_section(fit)),
        ("coordinates", "All coordinates", coordinate_section(energy, uncertainty)),
    ]
    sections = [one for one in sections if one[2]]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    first, *others = (f'<section id="{key}"><h2>{title}</h2>{body}</section>' for key, title, body in sections)
    badge = ' <span class="badge">synthetic data, not measured</span>' if synthetic else ""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)} - borelli</title><style>{_asset('page.css')}</style></head><body><main>"
        f'<header class="top"><h1>{escape(name)}<small>movement analysis</small>{badge}</h1><nav>{links}</nav></header>'
        f"{first}{tiles(energy, predicted_grf)}{''.join(others)}"
        f"<footer>{REFERENCES} Created by borelli {__version__}.</footer></main>"
        f'<script type="application/json" id="motion">{_json(pack_motion(energy))}</script>'
        f"<script>{_asset('page.js')}</script></body></html>\n"
    )
    write_atomic(page, path, overwrite=overwrite)


def _excerpt_note(motion: Motion) -> str:
    """Return a sentence on the part of a long trial that the player shows."""
    shown, count = shown_frames(motion), int(motion.data.sizes["time"])
    if shown == count:
        return ""
    time = motion.data["time"].values
    return (
        f"<p>The trial has {count} frames; the player shows an excerpt, from {time[0]:.0f} to {time[shown - 1]:.0f} s."
        "</p>"
    )


def _asset(name: str) -> str:
    return (files("borelli.reports") / "data" / name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
