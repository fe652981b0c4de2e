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
    "Band": "borelli.analysis.monte_carlo",
    "Bands": "borelli.export.uncertainty_files",
    "Body": "borelli.model.model",
    "BorelliError": "borelli.errors",
    "Carry": "borelli.control.perturbations",
    "Control": "borelli.control.controls",
    "Coordinate": "borelli.model.model",
    "Coupling": "borelli.model.model",
    "DivergedError": "borelli.errors",
    "Drive": "borelli.physics.inputs",
    "Energy": "borelli.analysis.energetics.energy",
    "Event": "borelli.recording.recording",
    "Fault": "borelli.recording.quality_checks",
    "FileFormatError": "borelli.errors",
    "FileSource": "borelli.recording.live",
    "Fit": "borelli.analysis.fit.fit_model",
    "Force": "borelli.physics.inputs",
    "Frame": "borelli.model.model",
    "Function": "borelli.model.functions",
    "Joint": "borelli.model.model",
    "Leading": "borelli.control.animate",
    "LivePose": "borelli.analysis.live_tracking",
    "Marker": "borelli.model.model",
    "Measure": "borelli.analysis.scaling.scale_model",
    "MinimumJerk": "borelli.control.response",
    "Model": "borelli.model.model",
    "ModelError": "borelli.errors",
    "Motion": "borelli.analysis.motion",
    "MotionAxis": "borelli.model.model",
    "MoveGround": "borelli.control.perturbations",
    "Muscle": "borelli.model.model",
    "Note": "borelli.recording.recording",
    "Obstacle": "borelli.control.perturbations",
    "PD": "borelli.control.response",
    "Parity": "borelli.model.compare",
    "PathPoint": "borelli.model.model",
    "Plan": "borelli.pipeline.analysis_settings",
    "Posed": "borelli.control.drag_posing",
    "Push": "borelli.control.perturbations",
    "Recording": "borelli.recording.recording",
    "Scaled": "borelli.analysis.scaling.scale_model",
    "Scene": "borelli.scenes.scene",
    "Settings": "borelli.physics.inputs",
    "SettingsError": "borelli.errors",
    "Shape": "borelli.model.model",
    "Softness": "borelli.model.model",
    "Span": "borelli.model.model",
    "Surface": "borelli.model.model",
    "Torques": "borelli.analysis.dynamics.torques",
    "Weaken": "borelli.control.perturbations",
    "WrapObject": "borelli.model.model",
    "add_events": "borelli.recording.forces.gait_events",
    "add_plates": "borelli.recording.forces.assign_to_feet",
    "analyze": "borelli.pipeline.analyze",
    "animate": "borelli.control.animate",
    "assign_plates": "borelli.recording.forces.assign_to_feet",
    "body_of_shapes": "borelli.model.inertia",
    "clean": "borelli.recording.clean",
    "controls_of": "borelli.control.controls",
    "crop": "borelli.recording.cleaning.filtering",
    "drag": "borelli.control.drag_posing",
    "energy": "borelli.analysis.energetics.energy",
    "exchange": "borelli.recording.cleaning.label_swaps",
    "exchange_plates": "borelli.recording.forces.assign_to_feet",
    "exchange_sides": "borelli.recording.cleaning.label_swaps",
    "fill_gaps": "borelli.recording.cleaning.gaps",
    "find_bands": "borelli.pipeline.uncertainty",
    "find_faults": "borelli.recording.quality_checks",
    "find_gaps": "borelli.recording.cleaning.gaps",
    "fit_model": "borelli.analysis.fit.fit_model",
    "follow_live": "borelli.analysis.live_tracking",
    "follow_markers": "borelli.analysis.kinematics.framewise_ik",
    "follow_targets": "borelli.control.track_targets",
    "full_skeleton": "borelli.model.people.full_skeleton",
    "gait_events": "borelli.recording.forces.gait_events",
    "gallery_scene": "borelli.scenes.gallery",
    "human": "borelli.model.people.human",
    "inverse_dynamics": "borelli.analysis.dynamics.torques",
    "keyframes": "borelli.control.targets",
    "loads_of": "borelli.analysis.opensim_setup",
    "marker_sets": "borelli.model.marker_sets",
    "monte_carlo": "borelli.analysis.monte_carlo",
    "parity": "borelli.model.compare",
    "perturbation": "borelli.control.parse_perturbations",
    "picture": "borelli.view.picture",
    "plot": "borelli.view.plots",
    "plot_deviation": "borelli.view.plots",
    "plot_recording": "borelli.view.recording_plots",
    "read_external_loads": "borelli.analysis.opensim_setup",
    "read_inverse_dynamics": "borelli.analysis.opensim_setup",
    "read_inverse_kinematics": "borelli.analysis.opensim_setup",
    "read_model": "borelli.model.io",
    "read_pagoda": "borelli.model.formats.pagoda",
    "read_qtvr": "borelli.model.formats.qtvr",
    "read_recording": "borelli.recording.io",
    "read_scale_setup": "borelli.analysis.scaling.opensim_scale_setup",
    "read_scene": "borelli.scenes.scene_files",
    "read_stage": "borelli.export.stage_files",
    "recognise": "borelli.recording.identify_marker_set",
    "remove_spikes": "borelli.recording.cleaning.spikes",
    "report": "borelli.reports.report",
    "resample": "borelli.recording.cleaning.filtering",
    "resize_body": "borelli.model.resize",
    "restore_times": "borelli.recording.cleaning.filtering",
    "run_scene": "borelli.scenes.scene",
    "scale_mass": "borelli.model.resize",
    "scale_model": "borelli.analysis.scaling.scale_model",
    "show": "borelli.view.browser_viewer",
    "simulate": "borelli.physics.simulate",
    "smooth": "borelli.recording.cleaning.filtering",
    "strobe": "borelli.view.picture",
    "synthetic_recording": "borelli.synthetic.recordings",
    "threshold_plates": "borelli.recording.forces.assign_to_feet",
    "undo_swaps": "borelli.recording.cleaning.label_swaps",
    "validate": "borelli.model.validate",
    "video": "borelli.view.video",
    "with_markers": "borelli.model.marker_sets",
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
