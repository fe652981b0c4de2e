"""Summary of an analysis: its key values under stable names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli import __version__
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.muscle_forces import MuscleForces
from borelli.export.gait_curves import SIDES, Gait
from borelli.export.gait_profile import gait_values
from borelli.export.grf_agreement import Agreement, compare_feet
from borelli.export.stage_files import to_json_values
from borelli.export.uncertainty_files import AnalysisUncertainty

if TYPE_CHECKING:
    from xarray import Dataset

STAGES = ("load", "read", "fit", "ik", "id", "muscles", "energy", "report")


def summarize(
    energy: Energy,
    *,
    fit: Fit | None = None,
    predicted_grf: Dataset | None = None,
    uncertainty: AnalysisUncertainty | None = None,
    runtime: Mapping[str, float] | None = None,
    warnings: Sequence[str] = (),
    gait: Gait | None = None,
) -> dict[str, Any]:
    """Return the key values of an analysis as plain values; None where a value does not apply.

    `predicted_grf` are ground reaction forces predicted from the motion where plates measured them too; `runtime` is
    that of each stage [s]. `gait` adds spatiotemporal parameters and profile scores.
    """
    torques, motion = energy.torques, energy.torques.motion
    errors = 1e3 * motion.data["marker_error"].values if "marker_error" in motion.data else np.full((1, 1), np.nan)
    known = errors[np.isfinite(errors)]
    weight = motion.model.mass * float(np.linalg.norm(motion.model.gravity))
    inner, complete = (grf_agreement(energy, predicted_grf, ends=ends) for ends in (False, True))
    peak = torques.peak_joint_torque
    complete_share = torques.data.get("grf_complete")
    values: dict[str, Any] = {
        "version": __version__,
        "recording": motion.recording.name if motion.recording is not None else None,
        "model": motion.model.name,
        "mass_kg": motion.model.mass,
        "frames": int(motion.data.sizes["time"]),
        "rate_hz": motion.rate,
        "duration_s": float(np.ptp(motion.data["time"].values)),
        "markers": int(motion.data.sizes.get("marker", 0)),
        "marker_rms_mm": float(np.sqrt((known**2).mean())) if len(known) else None,
        "marker_max_mm": float(known.max()) if len(known) else None,
        "fit_rms_mm": 1e3 * fit.train_rms if fit is not None else None,
        "fit_held_out_rms_mm": 1e3 * fit.held_out_rms if fit is not None else None,
        "ik_method": motion.settings.get("method"),
        "id_method": torques.settings.get("method"),
        "filter": torques.settings.get("filter"),
        "cutoff_hz": torques.settings.get("cutoff_hz"),
        "plate_cutoff_hz": torques.settings.get("plate_cutoff_hz"),
        "grf_source": torques.grf_source,
        "grf_complete_percent": None if complete_share is None else 100.0 * float(complete_share.mean()),
        "grf_known_percent": 100.0 * float(torques.grf_known.mean()) if torques.grf_source != "none" else None,
        "residual_reduction": torques.settings.get("residual_reduction"),
        "residual_force_rms_n": torques.residual_force_rms,
        "residual_moment_rms_nm": torques.residual_moment_rms,
        "peak_torque_nm_per_kg": peak.per_mass if peak is not None else None,
        "peak_torque_coordinate": peak.coordinate if peak is not None else None,
        "residual_force_rms_bw": 100.0 * torques.residual_force_rms / weight,
        "grf_vertical_rms_bw": float(np.mean([foot.vertical_rms for foot in inner])) if inner else None,
        "grf_vertical_rms_bw_with_ends": float(np.mean([foot.vertical_rms for foot in complete])) if complete else None,
        "grf_vertical_r": float(np.mean([foot.vertical_r for foot in inner])) if inner else None,
        "grf_by_foot": {foot.foot: foot._asdict() for foot in inner},
        **{key: float(value) for key, value in energy.summary.items()},
        **(_muscles(energy.muscles) if energy.muscles is not None else {}),
        "gait": _gait(gait) if gait is not None else {},
        "monte_carlo": uncertainty.method if uncertainty is not None else None,
        "uncertainty": uncertainty.summary if uncertainty is not None else {},
        "warnings": list(warnings),
        "runtime_s": {stage: (runtime or {}).get(stage) for stage in STAGES},
    }
    if uncertainty is not None:
        values["runtime_s"]["uncertainty"] = (runtime or {}).get("uncertainty")
    result: dict[str, Any] = to_json_values(values)
    return result


def _muscles(muscles: MuscleForces) -> dict[str, Any]:
    worst = muscles.worst_unattained
    return {
        "muscles": int(muscles.data.sizes["muscle"]),
        "unattained_torque_percent": 0.0 if worst is None else 100.0 * worst[1],
        "unattained_torque_coordinate": None if worst is None else worst[0],
    }


def _gait(gait: Gait) -> dict[str, Any]:
    """Return the number of strides, the normative class of the speed, and values by stride and side."""
    strides = {f"strides_{side}": sum(one.side == side for one in gait.strides) for side in SIDES}
    speed = {"normative_speed": gait.speed} if gait.strides else {}
    return {**strides, **speed, **gait_values(gait)}


def grf_agreement(energy: Energy, predicted_grf: Dataset | None, *, ends: bool = False) -> tuple[Agreement, ...]:
    """Compare predicted with measured ground reaction forces; () unless there are both.

    With `ends`, the outer 0.1 s of the motion are included: see `compare_feet`.
    """
    torques = energy.torques
    if predicted_grf is None or not torques.on_plates:
        return ()
    weight = torques.motion.model.mass * float(np.linalg.norm(torques.motion.model.gravity))
    return compare_feet(torques.data, predicted_grf, weight, ends=ends)
