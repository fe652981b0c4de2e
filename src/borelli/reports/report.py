"""One HTML file that shows an analysis: warnings first, then what was analysed, then everything that came out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from borelli import __version__
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.fit.fit_model import Fit
from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.files.atomic import write_atomic
from borelli.reports.energy_sections import energy_section, other_section, residual_section
from borelli.reports.gait_curves import gait_curves
from borelli.reports.gait_sections import gait_section, ground_section
from borelli.reports.motion_player import pack_motion
from borelli.reports.overview_sections import body_section, marker_section, source_section, tiles, warning_section
from borelli.reports.uncertainty_section import uncertainty_section

if TYPE_CHECKING:
    from xarray import Dataset

STAGE = """<section id="playback"><h2>Motion</h2>
<p class="lead">The model as it followed the markers, and the ground's forces on it. Click into any plot over time to
go there; lines in the plots follow what is shown here.</p>
<div id="stage"><canvas></canvas><div class="clock"></div><div class="hint">drag: turn · shift-drag: move · wheel:
nearer</div></div>
<div class="controls"><button type="button">Play</button><input type="range" min="0" value="0" aria-label="time">
<select aria-label="speed"><option value="1">1 x</option><option value="0.5">0.5 x</option>
<option value="0.25">0.25 x</option><option value="0.1">0.1 x</option></select>
<label><input type="checkbox" name="bodies" checked>bodies</label>
<label><input type="checkbox" name="measured" checked><i style="background:#ed6b1a"></i>measured markers</label>
<label><input type="checkbox" name="modelled"><i style="background:#263342"></i>model's markers</label>
<label><input type="checkbox" name="errors"><i style="background:#c71a1a"></i>errors, 10 x</label>
<label><input type="checkbox" name="forces" checked><i style="background:#1a8552"></i>ground forces</label></div>
</section>"""


def write_report(
    energy: Energy,
    path: str | PathLike[str],
    *,
    fit: Fit | None = None,
    contacts: Dataset | None = None,
    bands: AnalysisUncertainty | None = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Writes the report of an analysis as one HTML file that needs no network.

    Args:
        energy: The last stage, which holds the others.
        path: Of the file.
        fit: How the model was fitted; None: it was not.
        contacts: `foot_force` and `foot_center_of_pressure` computed from the motion, where plates measured them too.
        bands: How sure outputs are; None: that was not asked for.
        about: What else is known of the run: `file`, `sha256`, `settings`, `seconds`.
    """
    motion = energy.torques.motion
    recording = motion.recording
    name = recording.name if recording is not None and recording.name else motion.model.name
    made_up = recording is not None and recording.metadata.get("synthetic")
    gait = gait_curves(energy)
    sections = [
        ("warnings", "Warnings", warning_section(energy)),
        ("source", "What was analysed", source_section(energy, about or {})),
        ("playback", "Motion", STAGE),
        ("gait", "Angles, moments, powers", gait_section(gait, bands)),
        ("ground", "Ground forces", ground_section(energy, gait, contacts, bands)),
        ("residuals", "Residuals", residual_section(energy, bands)),
        ("energy", "Energy", energy_section(energy, bands)),
        ("bands", "How sure", "" if bands is None else uncertainty_section(energy, bands)),
        ("markers", "Markers", marker_section(motion)),
        ("body", "Body", "" if fit is None else body_section(fit)),
        ("others", "All coordinates", other_section(energy, bands)),
    ]
    sections = [one for one in sections if one[2]]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    badge = ' <span class="badge">synthetic: made, not measured</span>' if made_up else ""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)} - borelli</title><style>{_part('page.css')}</style></head><body><main>"
        f'<header class="top"><h1>{escape(name)}<small>movement analysis</small>{badge}</h1><nav>{links}</nav></header>'
        + sections[0][2]
        + tiles(energy, contacts)
        + "".join(text for _, _, text in sections[1:])
        + f"<footer>{_sources()} Made by borelli {__version__}.</footer></main>"
        + f'<script type="application/json" id="motion">{_json(pack_motion(energy))}</script>'
        + f"<script>{_part('page.js')}</script></body></html>\n"
    )
    write_atomic(page, Path(path))


def _sources() -> str:
    return (
        "Normal gait: Schwartz, Rozumalski and Trost, J. Biomech. 41 (2008) 1639, typically developing children, by "
        "walking speed; second mean: Pinzone, Schwartz, Thomason and Baker, Gait &amp; Posture 40 (2014) 286. "
        "Thresholds: Hicks, Uchida, Seth, Rajagopal and Delp, J. Biomech. Eng. 137 (2015) 020905."
    )


def _part(name: str) -> str:
    return (files("borelli.reports") / "data" / name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON that can stand in a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
