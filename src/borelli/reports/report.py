"""Report of an analysis as one HTML file: the main results and warnings first, then all results, then the evidence."""

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
from borelli.analysis.strides import event_source
from borelli.export.gait_curves import gait_curves
from borelli.export.uncertainty_files import AnalysisUncertainty
from borelli.files.atomic import write_atomic
from borelli.people.partial import is_partial
from borelli.reports.energy_sections import coordinate_section, energy_section, residual_section, uncertainty_section
from borelli.reports.first_page import first_page, movement
from borelli.reports.gait_sections import gait_section, ground_section
from borelli.reports.motion_player import pack_motion
from borelli.reports.motion_words import player_section
from borelli.reports.muscle_sections import MUSCLE_REFERENCES, muscle_section
from borelli.reports.overview_sections import assumption_section, marker_section, model_section, source_section
from borelli.reports.parameter_sections import parameter_section, profile_section

if TYPE_CHECKING:
    from xarray import Dataset

GAIT_REFERENCES = (
    "Normative gait: Schwartz, Rozumalski and Trost, J. Biomech. 41 (2008) 1639, typically developing children, by "
    "walking speed; second source: Pinzone, Schwartz, Thomason and Baker, Gait &amp; Posture 40 (2014) 286. Typical "
    "adults: Perry and Burnfield, Gait Analysis, 2010. Step length and width: Huxham, Gong, Baker, Morris and Iansek, "
    "Gait &amp; Posture 23 (2006) 159. Gait events from markers: Zeni, Richards and Higginson, Gait &amp; Posture 27 "
    "(2008) 710. Gait profile score: Baker et al., Gait &amp; Posture 30 (2009) 265 and 35 (2012) 612. "
)
REFERENCES = "Thresholds: Hicks, Uchida, Seth, Rajagopal and Delp, J. Biomech. Eng. 137 (2015) 020905."


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
    gait, partial, facts = gait_curves(energy), is_partial(motion.model), provenance or {}
    sections = [
        ("summary", "Summary", first_page(energy, gait, uncertainty, facts)),
        ("playback", "Motion", player_section(energy, gait)),
        ("parameters", "Spatiotemporal parameters", parameter_section(gait, event_source(motion))),
        ("profile", "Gait profile", profile_section(gait)),
        ("gait", "Angles, moments, powers", gait_section(gait, uncertainty)),
        ("ground", "Ground reaction forces", ground_section(energy, gait, predicted_grf, uncertainty)),
        ("energy", "Energy", "" if partial else energy_section(energy, uncertainty)),
        ("muscles", "Muscles", muscle_section(energy, gait)),
        ("residuals", "Residuals", "" if partial else residual_section(energy, uncertainty)),
        ("markers", "Markers", marker_section(motion)),
        ("model", "Model", "" if fit is None else model_section(fit)),
        ("uncertainty", "Uncertainty", "" if uncertainty is None else uncertainty_section(energy, uncertainty)),
        ("coordinates", "All coordinates", coordinate_section(energy, uncertainty)),
        ("assumptions", "Assumptions and processing", assumption_section(energy, fit is not None)),
        ("source", "Input and settings", source_section(energy, facts)),
    ]
    sections = [one for one in sections if one[2]]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections)
    bodies = "".join(f'<section id="{key}"><h2>{title}</h2>{body}</section>' for key, title, body in sections)
    badge = ' <span class="badge">synthetic data, not measured</span>' if synthetic else ""
    kind, references = movement(energy, gait).lower(), (GAIT_REFERENCES if gait.strides else "") + REFERENCES
    if energy.muscles is not None:
        references += f" {MUSCLE_REFERENCES}"
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)} - borelli</title><style>{_asset('page.css')}</style></head><body><main>"
        f'<header class="top"><h1>{escape(name)}<small>{kind}</small>{badge}</h1><nav>{links}</nav></header>{bodies}'
        f"<footer>{references} Created by borelli {__version__}.</footer></main>"
        f'<script type="application/json" id="motion">{_json(pack_motion(energy))}</script>'
        f"<script>{_asset('page.js')}</script></body></html>\n"
    )
    write_atomic(page, path, overwrite=overwrite)


def _asset(name: str) -> str:
    return (files("borelli.reports") / "data" / name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
