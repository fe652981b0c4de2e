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
    "Analysis": "borelli.pipeline",
    "Animation": "borelli.control.animating",
    "Band": "borelli.analysis.uncertainty",
    "Bands": "borelli.export.bands",
    "Body": "borelli.model.model",
    "BorelliError": "borelli.errors",
    "Carry": "borelli.control.perturbations",
    "Control": "borelli.control.controls",
    "Coordinate": "borelli.model.model",
    "Coupling": "borelli.model.model",
    "DivergedError": "borelli.errors",
    "Drive": "borelli.physics.control",
    "Energy": "borelli.analysis.energy",
    "Event": "borelli.recording.recording",
    "Fault": "borelli.recording.faults",
    "FileFormatError": "borelli.errors",
    "FileSource": "borelli.recording.live",
    "Fit": "borelli.analysis.fit",
    "Force": "borelli.physics.control",
    "Frame": "borelli.model.model",
    "Function": "borelli.model.functions",
    "Joint": "borelli.model.model",
    "Leading": "borelli.control.animating",
    "LivePose": "borelli.analysis.live",
    "Marker": "borelli.model.model",
    "Measure": "borelli.analysis.scaling",
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
    "Parity": "borelli.model.parity",
    "PathPoint": "borelli.model.model",
    "Plan": "borelli.plan",
    "Posed": "borelli.control.posing",
    "Push": "borelli.control.perturbations",
    "Recording": "borelli.recording.recording",
    "Scaled": "borelli.analysis.scaling",
    "Scene": "borelli.scenes.scene",
    "Settings": "borelli.physics.control",
    "SettingsError": "borelli.errors",
    "Shape": "borelli.model.model",
    "Softness": "borelli.model.model",
    "Span": "borelli.model.model",
    "Surface": "borelli.model.model",
    "Torques": "borelli.analysis.torques",
    "Weaken": "borelli.control.perturbations",
    "WrapObject": "borelli.model.model",
    "add_events": "borelli.recording.events",
    "add_plates": "borelli.recording.plates_to_feet",
    "analyze": "borelli.pipeline",
    "animate": "borelli.control.animating",
    "assign_plates": "borelli.recording.plates_to_feet",
    "body_of_shapes": "borelli.model.inertia",
    "clean": "borelli.recording.clean",
    "controls_of": "borelli.control.controls",
    "crop": "borelli.recording.smooth",
    "drag": "borelli.control.posing",
    "energy": "borelli.analysis.energy",
    "exchange": "borelli.recording.swaps",
    "exchange_plates": "borelli.recording.plates_to_feet",
    "exchange_sides": "borelli.recording.swaps",
    "fill_gaps": "borelli.recording.gaps",
    "find_bands": "borelli.bands",
    "find_faults": "borelli.recording.faults",
    "find_gaps": "borelli.recording.gaps",
    "fit_model": "borelli.analysis.fit",
    "follow_live": "borelli.analysis.live",
    "follow_markers": "borelli.analysis.pose",
    "follow_targets": "borelli.control.following",
    "full_skeleton": "borelli.model.full_skeleton",
    "gait_events": "borelli.recording.events",
    "gallery_scene": "borelli.scenes.gallery",
    "human": "borelli.model.human",
    "inverse_dynamics": "borelli.analysis.torques",
    "keyframes": "borelli.control.targets",
    "loads_of": "borelli.analysis.opensim_setup",
    "marker_sets": "borelli.model.markers",
    "monte_carlo": "borelli.analysis.uncertainty",
    "parity": "borelli.model.parity",
    "perturbation": "borelli.control.phrases",
    "picture": "borelli.view.picture",
    "plot": "borelli.view.plots",
    "plot_deviation": "borelli.view.plots",
    "plot_recording": "borelli.view.recording_plots",
    "read_external_loads": "borelli.analysis.opensim_setup",
    "read_inverse_dynamics": "borelli.analysis.opensim_setup",
    "read_inverse_kinematics": "borelli.analysis.opensim_setup",
    "read_model": "borelli.model.read",
    "read_pagoda": "borelli.model.skeleton",
    "read_qtvr": "borelli.model.qtvr",
    "read_recording": "borelli.recording.read",
    "read_scale_setup": "borelli.analysis.scaling_setup",
    "read_scene": "borelli.scenes.files",
    "read_stage": "borelli.export.stages",
    "recognise": "borelli.recording.marker_sets",
    "remove_spikes": "borelli.recording.spikes",
    "report": "borelli.reports.report",
    "resample": "borelli.recording.smooth",
    "resize_body": "borelli.model.resize",
    "restore_times": "borelli.recording.smooth",
    "run_scene": "borelli.scenes.scene",
    "scale_mass": "borelli.model.resize",
    "scale_model": "borelli.analysis.scaling",
    "show": "borelli.view.workbench",
    "simulate": "borelli.physics.simulate",
    "smooth": "borelli.recording.smooth",
    "strobe": "borelli.view.picture",
    "synthetic_recording": "borelli.synthetic.recordings",
    "threshold_plates": "borelli.recording.plates_to_feet",
    "undo_swaps": "borelli.recording.swaps",
    "validate": "borelli.model.validate",
    "video": "borelli.view.video",
    "with_markers": "borelli.model.markers",
    "write_frames": "borelli.view.video",
    "write_model": "borelli.model.read",
    "write_recording": "borelli.recording.read",
    "write_scene": "borelli.scenes.files",
    "write_stage": "borelli.export.stages",
    "zero_plates": "borelli.recording.plates_to_feet",
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
