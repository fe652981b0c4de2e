"""Human movement as physics: recordings and models; bodies, joints, contacts and drives, solved together and exactly.

    import borelli as bo

    recording = bo.clean(bo.read_recording("walk.c3d"))
    result = bo.simulate(bo.human(mass=72.6, height=1.78), duration=1.0)
    bo.picture(result, "human.png")

Names load when they are first used, so that `import borelli` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name: the module it lives in
_HOMES = {
    "Analysis": "borelli.pipeline.analyze",
    "Animation": "borelli.control.animate",
    "MonteCarloResult": "borelli.analysis.monte_carlo",
    "AnalysisUncertainty": "borelli.export.uncertainty_files",
    "Body": "borelli.model.model",
    "BorelliError": "borelli.errors",
    "CarriedLoad": "borelli.control.perturbations",
    "Control": "borelli.control.controls",
    "Coordinate": "borelli.model.model",
    "Coupling": "borelli.model.model",
    "DivergedError": "borelli.errors",
    "Drive": "borelli.physics.inputs",
    "Energy": "borelli.analysis.energetics.energy",
    "Event": "borelli.recording.recording",
    "Issue": "borelli.recording.quality_checks",
    "FileFormatError": "borelli.errors",
    "FileSource": "borelli.recording.live",
    "Fit": "borelli.analysis.fit.fit_model",
    "AppliedForce": "borelli.physics.inputs",
    "Frame": "borelli.model.model",
    "Function": "borelli.model.functions",
    "Joint": "borelli.model.model",
    "TrackingSettings": "borelli.control.animate",
    "LivePose": "borelli.analysis.live_tracking",
    "Marker": "borelli.model.model",
    "Measurement": "borelli.analysis.scaling.scale_model",
    "MinimumJerk": "borelli.control.response",
    "Model": "borelli.model.model",
    "ModelError": "borelli.errors",
    "Motion": "borelli.analysis.motion",
    "TransformAxis": "borelli.model.model",
    "MoveGround": "borelli.control.perturbations",
    "Muscle": "borelli.model.model",
    "Note": "borelli.recording.recording",
    "Obstacle": "borelli.control.perturbations",
    "PD": "borelli.control.response",
    "ModelComparison": "borelli.model.compare",
    "PathPoint": "borelli.model.model",
    "AnalysisSettings": "borelli.pipeline.analysis_settings",
    "DragResult": "borelli.control.drag_posing",
    "Push": "borelli.control.perturbations",
    "Recording": "borelli.recording.recording",
    "ScaleResult": "borelli.analysis.scaling.scale_model",
    "Scene": "borelli.scenes.scene",
    "SolverSettings": "borelli.physics.solver_settings",
    "SettingsError": "borelli.errors",
    "Shape": "borelli.model.model",
    "Softness": "borelli.model.model",
    "CoordinateRange": "borelli.model.model",
    "Surface": "borelli.model.model",
    "Torques": "borelli.analysis.dynamics.torques",
    "WeakenedJoint": "borelli.control.perturbations",
    "WrapObject": "borelli.model.model",
    "add_events": "borelli.recording.forces.gait_events",
    "add_plates": "borelli.recording.forces.assign_to_feet",
    "analyze": "borelli.pipeline.analyze",
    "animate": "borelli.control.animate",
    "assign_plates": "borelli.recording.forces.assign_to_feet",
    "body_from_shapes": "borelli.model.inertia",
    "clean": "borelli.recording.clean",
    "make_controls": "borelli.control.controls",
    "crop": "borelli.recording.cleaning.filtering",
    "drag_point": "borelli.control.drag_posing",
    "compute_energy": "borelli.analysis.energetics.energy",
    "swap_markers": "borelli.recording.cleaning.label_swaps",
    "swap_plates": "borelli.recording.forces.assign_to_feet",
    "swap_sides": "borelli.recording.cleaning.label_swaps",
    "fill_gaps": "borelli.recording.cleaning.gaps",
    "propagate_uncertainty": "borelli.pipeline.uncertainty",
    "check_recording": "borelli.recording.quality_checks",
    "find_gaps": "borelli.recording.cleaning.gaps",
    "fit_model": "borelli.analysis.fit.fit_model",
    "live_inverse_kinematics": "borelli.analysis.live_tracking",
    "inverse_kinematics": "borelli.analysis.kinematics.framewise_ik",
    "track_targets": "borelli.control.track_targets",
    "full_skeleton": "borelli.model.people.full_skeleton",
    "gait_events": "borelli.recording.forces.gait_events",
    "gallery_scene": "borelli.scenes.gallery",
    "human": "borelli.model.people.human",
    "inverse_dynamics": "borelli.analysis.dynamics.torques",
    "keyframes": "borelli.control.targets",
    "loads_from_setup": "borelli.analysis.opensim_setup",
    "list_marker_sets": "borelli.model.marker_sets",
    "monte_carlo": "borelli.analysis.monte_carlo",
    "compare_models": "borelli.model.compare",
    "parse_perturbation": "borelli.control.parse_perturbations",
    "picture": "borelli.view.picture",
    "plot": "borelli.view.plots",
    "plot_deviation": "borelli.view.plots",
    "plot_recording": "borelli.view.recording_plots",
    "read_external_loads": "borelli.analysis.opensim_setup",
    "read_id_setup": "borelli.analysis.opensim_setup",
    "read_ik_setup": "borelli.analysis.opensim_setup",
    "read_model": "borelli.model.io",
    "read_pagoda": "borelli.model.formats.pagoda",
    "read_qtvr": "borelli.model.formats.qtvr",
    "read_recording": "borelli.recording.io",
    "read_scale_setup": "borelli.analysis.scaling.opensim_scale_setup",
    "read_scene": "borelli.scenes.scene_files",
    "read_stage": "borelli.export.stage_files",
    "identify_marker_set": "borelli.recording.identify_marker_set",
    "remove_spikes": "borelli.recording.cleaning.spikes",
    "write_report": "borelli.reports.report",
    "resample": "borelli.recording.cleaning.filtering",
    "resize_body": "borelli.model.resize",
    "repair_time_stamps": "borelli.recording.cleaning.filtering",
    "run_scene": "borelli.scenes.scene",
    "scale_mass": "borelli.model.resize",
    "scale_model": "borelli.analysis.scaling.scale_model",
    "show": "borelli.view.browser_viewer",
    "simulate": "borelli.physics.simulate",
    "lowpass_filter": "borelli.recording.cleaning.filtering",
    "strobe": "borelli.view.picture",
    "synthetic_recording": "borelli.synthetic.recordings",
    "threshold_plates": "borelli.recording.forces.assign_to_feet",
    "repair_label_swaps": "borelli.recording.cleaning.label_swaps",
    "validate": "borelli.model.validate",
    "video": "borelli.view.video",
    "add_marker_set": "borelli.model.marker_sets",
    "write_frames": "borelli.view.video",
    "write_model": "borelli.model.io",
    "write_recording": "borelli.recording.io",
    "write_scene": "borelli.scenes.scene_files",
    "write_stage": "borelli.export.stage_files",
    "zero_plates": "borelli.recording.forces.assign_to_feet",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    """The public name, its module loaded now."""
    if name not in _HOMES:
        raise AttributeError(f"module 'borelli' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, loaded or not."""
    return list(__all__)
