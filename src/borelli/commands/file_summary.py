"""Summary of each kind of file as plain values: counts, then every element by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.commands.detect_file import Content

if TYPE_CHECKING:
    from xarray import Dataset

    from borelli.analysis.dynamics.torques import Torques
    from borelli.analysis.energetics.energy import Energy
    from borelli.analysis.fit.fit_model import Fit
    from borelli.analysis.motion import Motion
    from borelli.analysis.muscle_forces import MuscleForces
    from borelli.model.model import Model
    from borelli.recording.recording import Recording
    from borelli.scenes.scene import Scene

DECISION_CODES = {"units": "length_unit", "up": "up_axis", "forward": "forward_axis"}
"""Codes of the notes on the units and axes of a recording."""


def summarize_file(content: Content) -> dict[str, Any]:
    """Return a complete summary of a file's content, ready for JSON."""
    summaries: dict[str, Callable[[Any], dict[str, Any]]] = {
        "recording": summarize_recording,
        "model": summarize_model,
        "scene": summarize_scene,
        "result": summarize_result,
        "stage": summarize_stage,
        "fit": summarize_fit,
    }
    return {"kind": content.kind, **summaries[content.kind](content.value)}


def summarize_stage(stage: Motion | Torques | MuscleForces | Energy) -> dict[str, Any]:
    """Return the key values of a motion, of torques, of muscle forces or of energy."""
    from borelli.analysis.dynamics.torques import Torques
    from borelli.analysis.energetics.energy import Energy
    from borelli.analysis.muscle_forces import MuscleForces
    from borelli.export.summary import summarize

    if isinstance(stage, Energy):
        return {"stage": "energy", **summarize(stage)}
    if isinstance(stage, MuscleForces):
        worst = stage.worst_unattained
        return summarize_stage(stage.torques) | {
            "stage": "muscle forces",
            "muscles": int(stage.data.sizes["muscle"]),
            "largest activation": float(stage.data["muscle_activation"].max()),
            "largest unattained torque [% of peak]": 0.0 if worst is None else 100.0 * worst[1],
        }
    if isinstance(stage, Torques):
        return summarize_stage(stage.motion) | {
            "stage": "torques",
            "ground reaction force": stage.grf_source,
            "residual force, RMS [N]": stage.residual_force_rms,
            "residual moment, RMS [N m]": stage.residual_moment_rms,
        }
    errors = {"marker error, RMS [mm]": 1e3 * stage.marker_rms} if "marker_error" in stage.data else {}
    return {
        "stage": "motion",
        "model": stage.model.name,
        "frames": int(stage.data.sizes["time"]),
        "rate [Hz]": stage.rate,
        **errors,
    }


def summarize_fit(fit: Fit) -> dict[str, Any]:
    """Return the errors, segment lengths and notes of a fit."""
    return {
        "model": fit.model.name,
        "error, RMS [mm]": 1e3 * fit.train_rms,
        "error in held-out frames, RMS [mm]": 1e3 * fit.held_out_rms,
        "segment lengths [m]": fit.lengths,
        "notes": [note.text for note in fit.notes],
    }


def summarize_result(dataset: Dataset) -> dict[str, Any]:
    """Return the key values of a simulation."""
    from borelli.scenes.summary import summary

    return {"created by": f"borelli {dataset.attrs.get('version', '?')}", **summary(dataset)}


def summarize_scene(scene: Scene) -> dict[str, Any]:
    """Return the settings of a scene and the summary of its model."""
    return {
        "name": scene.name,
        "description": scene.description,
        "step [s]": scene.step,
        "duration [s]": scene.duration,
        "drives": len(scene.drives),
        "forces": len(scene.forces),
        **{f"model {key}": value for key, value in summarize_model(scene.model).items()},
    }


def summarize_model(model: Model) -> dict[str, Any]:
    """Return counts, then every element of a model by name."""
    return {
        "name": model.name,
        "mass [kg]": model.mass,
        "gravity [m/s^2]": list(model.gravity),
        "bodies": len(model.bodies),
        "joints": len(model.joints),
        "coordinates": len(model.coordinates),
        "locked coordinates": sum(coordinate.locked for coordinate in model.coordinates),
        "couplings": len(model.couplings),
        "markers": len(model.markers),
        "muscles": len(model.muscles),
        "ligaments": len(model.ligaments),
        "wrap objects": len(model.wrap_objects),
        "shapes": sum(len(body.shapes) for body in model.bodies),
        "ground shapes": len(model.ground),
        "self-collision": model.self_collision,
        "body masses [kg]": {body.name: body.mass for body in model.bodies},
        "joint kinds": {joint.name: joint.kind for joint in model.joints},
        "coordinate ranges [rad or m]": {c.name: [c.lower, c.upper] for c in model.coordinates},
        "marker bodies": {marker.name: marker.body for marker in model.markers},
        "muscle maximum isometric forces [N]": {muscle.name: muscle.max_isometric_force for muscle in model.muscles},
        "simulation problem": simulation_problem(model),
        "notes": list(model.notes),
    }


def simulation_problem(model: Model) -> str | None:
    """Return why a model cannot be simulated, only used for inverse dynamics; None if it can."""
    from borelli.errors import ModelError
    from borelli.model.validate import validate

    try:
        validate(model)
    except ModelError as error:
        return str(error)
    return None


def summarize_recording(recording: Recording) -> dict[str, Any]:
    """Return the content of a recording, its missing data, and the decisions of its reader."""
    attrs = recording.data.attrs
    summary: dict[str, Any] = {
        "format": recording.format,
        "name": recording.name,
        "encoding": attrs.get("encoding"),
        "subject": dict(recording.subject),
        "frames": recording.frames,
        "rate [Hz]": recording.rate,
        "duration [s]": recording.duration,
        "analog samples": int(recording.data.sizes.get("analog_time", 0)),
        "analog rate [Hz]": recording.analog_rate,
        **{topic: _decision(recording, topic) for topic in DECISION_CODES},
    }
    for part in (_markers, _model_outputs, _plates, _channels, _coordinates):
        summary |= part(recording)
    summary["events"] = [event._asdict() for event in recording.events]
    summary["notes"] = [asdict(note) for note in recording.notes]
    return {key: value for key, value in summary.items() if value is not None}


def _decision(recording: Recording, topic: str) -> dict[str, Any] | None:
    """Return the unit or axis that was used, its basis, the evidence and what overrides it."""
    attrs = recording.data.attrs
    code, basis = DECISION_CODES[topic], "default"
    note = next((note for note in recording.notes if note.code == code and note.kind in ("stated", "inferred")), None)
    value = attrs.get(f"file_{topic}")
    if note is not None:
        basis = "specified" if topic in str(attrs.get("user_specified", "")).split() else note.kind
    if topic == "forward" and basis != "specified":
        value = attrs.get("subject_forward", value) if note is not None else None
    if value is None:
        return None
    action = f"--{topic}" if note is None else note.action
    return {"value": str(value), "basis": basis, "evidence": "" if note is None else note.text, "override": action}


def _markers(recording: Recording) -> dict[str, Any]:
    from borelli.recording.cleaning.gaps import find_gaps
    from borelli.recording.identify_marker_set import identify_marker_set
    from borelli.recording.labels.interpret import interpret_labels

    summary: dict[str, Any] = {"markers": len(recording.markers)}
    if not recording.markers:
        return summary
    visible = np.isfinite(recording.data["marker_position"].values).all(axis=2).mean(axis=0)
    summary["marker visibility"] = dict(zip(recording.markers, map(float, visible), strict=True))
    longest: dict[str, int] = {}
    for gap in find_gaps(recording):
        longest[gap.marker] = max(longest.get(gap.marker, 0), gap.frames)
    summary["longest gaps [frames]"] = longest
    readings = interpret_labels(recording.markers)
    summary["labels"] = {
        "read": len(readings.known),
        "sure": sum(one.sure for one in readings.known),
        "unnamed": sum(one.kind == "unnamed" for one in readings.readings),
        "unknown": [one.label for one in readings.readings if one.kind == "unknown"],
        "conventions": dict(readings.conventions[:3]),
    }
    known = identify_marker_set(recording.markers)
    summary["marker set"] = known and {
        "name": known.set.name,
        "names": len(known.set.names),
        "missing": list(known.missing),
        "others": list(known.extra),
    }
    return summary


def _model_outputs(recording: Recording) -> dict[str, Any]:
    data = recording.data
    if "model_output" not in data:
        return {"model outputs": 0}
    names, kinds, units = (data[key].values.tolist() for key in ("quantity", "quantity_kind", "quantity_units"))
    details = {n: {"kind": k, "units": u} for n, k, u in zip(names, kinds, units, strict=True)}
    return {"model outputs": len(names), "model output kinds": details}


def _plates(recording: Recording) -> dict[str, Any]:
    from borelli.recording.recording import MIN_PLATE_FORCE

    summary: dict[str, Any] = {"plates": len(recording.plates)}
    if not recording.plates:
        return summary
    normal = recording.data["plate_force"].values[:, :, 2]
    corners = recording.data["plate_corners"].values if "plate_corners" in recording.data else None
    loads = {}
    for k, name in enumerate(recording.plates):
        own = normal[np.isfinite(normal[:, k]), k]
        loads[name] = {
            "peak vertical force [N]": float(own.max()) if len(own) else None,
            "loaded [s]": float((own > MIN_PLATE_FORCE).sum() / recording.analog_rate),
            "center [m]": None if corners is None else corners[k].mean(axis=0).tolist(),
        }
    return summary | {"plate loads": loads}


def _channels(recording: Recording) -> dict[str, Any]:
    summary: dict[str, Any] = {"channels": len(recording.channels)}
    if not recording.channels:
        return summary
    data = recording.data
    kinds, units = (data[key].values.tolist() for key in ("channel_kind", "channel_units"))
    values = data["analog"].values
    with np.errstate(all="ignore"):
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    summary["channel kinds"] = dict(Counter(kinds))
    summary["channel ranges"] = {
        name: {"kind": kinds[k], "units": units[k], "lowest": float(low[k]), "highest": float(high[k])}
        for k, name in enumerate(recording.channels)
    }
    return summary


def _coordinates(recording: Recording) -> dict[str, Any]:
    data = recording.data
    summary: dict[str, Any] = {}
    for variable, name in (("coordinate_value", "coordinate"), ("column_value", "column")):
        count = int(data.sizes.get(name, 0))
        summary[f"{name}s" if name == "coordinate" else "other columns"] = count
        if variable in data and count:
            units = data[f"{name}_units"].values if f"{name}_units" in data.coords else [""] * count
            values = data[variable].values
            low, high = np.fmin.reduce(values), np.fmax.reduce(values)
            summary[f"{name} ranges"] = {
                str(label): {"units": str(unit), "lowest": float(a), "highest": float(b)}
                for label, unit, a, b in zip(data[name].values, units, low, high, strict=True)
            }
    if "joint_center" in data:
        summary["joint centers"] = [str(name) for name in data["joint"].values]
    return summary
