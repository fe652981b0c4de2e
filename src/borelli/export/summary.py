"""The figures of an analysis under names that stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli import __version__
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.fit.fit_model import Fit
from borelli.export.grf_agreement import Agreement, compare_feet
from borelli.export.stage_files import to_json_values
from borelli.export.uncertainty_files import AnalysisUncertainty

if TYPE_CHECKING:
    from xarray import Dataset

STAGES = ("load", "read", "fit", "pose", "torques", "energy", "report")


def summarize(
    energy: Energy,
    *,
    fit: Fit | None = None,
    contacts: Dataset | None = None,
    bands: AnalysisUncertainty | None = None,
    seconds: Mapping[str, float] | None = None,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """What came out, as plain values; None where a figure does not apply.

    Args:
        energy: The last stage.
        fit: How the model was fitted, if it was.
        contacts: Forces of the feet computed from the motion, beside those of plates.
        bands: How sure outputs are, if that was asked for.
        seconds: What each stage took.
        warnings: What is to be told first.
    """
    torques, motion = energy.torques, energy.torques.motion
    errors = 1e3 * motion.data["marker_error"].values if "marker_error" in motion.data else np.full((1, 1), np.nan)
    seen = errors[np.isfinite(errors)]
    weight = motion.model.mass * float(np.linalg.norm(motion.model.gravity))
    against, with_ends = (grf_agreement(energy, contacts, ends=ends) for ends in (False, True))
    figures: dict[str, Any] = {
        "version": __version__,
        "recording": motion.recording.name if motion.recording is not None else None,
        "model": motion.model.name,
        "mass_kg": motion.model.mass,
        "frames": int(motion.data.sizes["time"]),
        "rate_hz": motion.rate,
        "duration_s": float(np.ptp(motion.data["time"].values)),
        "markers": int(motion.data.sizes.get("marker", 0)),
        "marker_rms_mm": float(np.sqrt((seen**2).mean())) if len(seen) else None,
        "marker_max_mm": float(seen.max()) if len(seen) else None,
        "fit_rms_mm": 1e3 * fit.train_rms if fit is not None else None,
        "fit_held_out_rms_mm": 1e3 * fit.held_out_rms if fit is not None else None,
        "pose_method": motion.settings.get("method"),
        "torque_method": torques.settings.get("method"),
        "contact_source": torques.grf_source,
        "grf_complete_percent": 100.0 * float(torques.data["grf_complete"].mean()) if "grf_complete" in torques.data else None,
        "grf_known_percent": 100.0 * float(torques.grf_known.mean()) if torques.grf_source != "none" else None,
        "residual_force_rms_n": torques.residual_force_rms,
        "residual_moment_rms_nm": torques.residual_moment_rms,
        "residual_force_rms_bw": 100.0 * torques.residual_force_rms / weight,
        "grf_vertical_rms_bw": float(np.mean([foot.vertical_rms for foot in against])) if against else None,
        "grf_vertical_rms_bw_with_ends": float(np.mean([foot.vertical_rms for foot in with_ends]))
        if with_ends
        else None,
        "grf_vertical_r": float(np.mean([foot.vertical_r for foot in against])) if against else None,
        "grf_by_foot": {foot.foot: foot._asdict() for foot in against},
        **{key: float(value) for key, value in energy.summary.items()},
        "monte_carlo": bands.about if bands is not None else None,
        "bands": bands.figures if bands is not None else {},
        "warnings": list(warnings),
        "seconds": {stage: (seconds or {}).get(stage) for stage in STAGES},
    }
    if bands is not None:
        figures["seconds"]["bands"] = (seconds or {}).get("bands")
    result: dict[str, Any] = to_json_values(figures)
    return result


def grf_agreement(energy: Energy, contacts: Dataset | None, *, ends: bool = False) -> tuple[Agreement, ...]:
    """How far forces computed from the motion agree with those that were measured; () where there are not both.

    With `ends` the outer 0.1 s of the motion count too: see `compare_feet`.
    """
    torques = energy.torques
    if contacts is None or not torques.on_plates:
        return ()
    weight = torques.motion.model.mass * float(np.linalg.norm(torques.motion.model.gravity))
    return compare_feet(torques.data, contacts, weight, ends=ends)
