"""What `info` says about each kind of file, as plain values: counts under plain names, then every element by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.commands.detect_file import Content

if TYPE_CHECKING:
    from xarray import Dataset

    from borelli.analysis.dynamics.torques import Torques
    from borelli.analysis.energetics.energy import Energy
    from borelli.analysis.fit.fit_model import Fit
    from borelli.analysis.motion import Motion
    from borelli.model.model import Model
    from borelli.recording.recording import Note, Recording
    from borelli.scenes.scene import Scene


def facts_of(content: Content) -> dict[str, Any]:
    """What is in a file, complete, ready for JSON."""
    sorts: dict[str, Callable[[Any], dict[str, Any]]] = {
        "recording": recording_facts,
        "model": model_facts,
        "scene": scene_facts,
        "result": result_facts,
        "stage": stage_facts,
        "fit": fit_facts,
    }
    return {"kind": content.kind, **sorts[content.kind](content.thing)}


def stage_facts(stage: Motion | Torques | Energy) -> dict[str, Any]:
    """Key figures of a motion, of torques or of energy."""
    from borelli.analysis.dynamics.torques import Torques
    from borelli.analysis.energetics.energy import Energy
    from borelli.export.summary import summarize

    if isinstance(stage, Energy):
        return {"stage": "energy", **summarize(stage)}
    torques = stage if isinstance(stage, Torques) else None
    motion = torques.motion if torques is not None else stage
    facts: dict[str, Any] = {
        "stage": "motion" if torques is None else "torques",
        "model": motion.model.name,  # type: ignore[union-attr]
        "frames": int(motion.data.sizes["time"]),
        "rate [Hz]": motion.rate,  # type: ignore[union-attr]
        "marker rms [mm]": 1e3 * motion.marker_rms,  # type: ignore[union-attr]
    }
    if torques is not None:
        facts |= {
            "ground forces": torques.grf_source,
            "residual force rms [N]": torques.residual_force_rms,
            "residual moment rms [N m]": torques.residual_moment_rms,
        }
    return facts


def fit_facts(fit: Fit) -> dict[str, Any]:
    """How a model was fitted."""
    return {
        "model": fit.model.name,
        "rms [mm]": 1e3 * fit.train_rms,
        "held out rms [mm]": 1e3 * fit.held_out_rms,
        "lengths [m]": fit.lengths,
        "notes": [note.text for note in fit.notes],
    }


def result_facts(dataset: Dataset) -> dict[str, Any]:
    """Key figures of a simulation."""
    from borelli.scenes.summary import summary

    return {"made by": f"borelli {dataset.attrs.get('version', '?')}", **summary(dataset)}


def scene_facts(scene: Scene) -> dict[str, Any]:
    """A scene and its model."""
    return {
        "name": scene.name,
        "description": scene.description,
        "step [s]": scene.step,
        "duration [s]": scene.duration,
        "drives": len(scene.drives),
        "forces": len(scene.forces),
        **{f"model {key}": value for key, value in model_facts(scene.model).items()},
    }


def model_facts(model: Model) -> dict[str, Any]:
    """Counts, then every part by name."""
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
        "wrap objects": len(model.wrap_objects),
        "shapes": sum(len(body.shapes) for body in model.bodies),
        "ground shapes": len(model.ground),
        "self-collision": model.self_collision,
        "body masses [kg]": {body.name: body.mass for body in model.bodies},
        "joint kinds": {joint.name: joint.kind for joint in model.joints},
        "coordinate ranges [rad or m]": {c.name: [c.lower, c.upper] for c in model.coordinates},
        "marker bodies": {marker.name: marker.body for marker in model.markers},
        "muscle peak forces [N]": {muscle.name: muscle.max_isometric_force for muscle in model.muscles},
        "why not simulated": why_not_simulated(model),
        "notes": list(model.notes),
    }


def why_not_simulated(model: Model) -> str | None:
    """Why forward simulation refuses a model that inverse dynamics takes; None if it does not refuse it."""
    from borelli.errors import ModelError
    from borelli.model.validate import validate

    try:
        validate(model)
    except ModelError as error:
        return str(error)
    return None


def recording_facts(recording: Recording) -> dict[str, Any]:
    """What was measured, how long, how completely; and what the reader decided about it."""
    attrs = recording.data.attrs
    facts: dict[str, Any] = {
        "format": recording.format,
        "name": recording.name,
        "encoding": attrs.get("encoding"),
        "subject": dict(recording.subject),
        "frames": recording.frames,
        "rate [Hz]": recording.rate,
        "duration [s]": recording.duration,
        "analog samples": int(recording.data.sizes.get("analog_time", 0)),
        "analog rate [Hz]": recording.analog_rate,
        "units": _decided(recording, "units"),
        "up": _decided(recording, "up"),
        "forward": _decided(recording, "forward"),
    }
    for part in (_markers, _quantities, _plates, _channels, _coordinates):
        facts |= part(recording)
    facts["events"] = [event._asdict() for event in recording.events]
    facts["notes"] = [{"kind": note.kind, "text": note.text, "action": note.action} for note in recording.notes]
    return {key: value for key, value in facts.items() if value is not None}


def topic_of(note: Note) -> str:
    """Whether a note says what units, up or forward was taken; "" for other notes."""
    if note.kind not in ("stated", "inferred"):
        return ""
    if "lengths are taken" in note.text or "--units" in note.action:
        return "units"
    if " is up" in note.text or "--up" in note.action:
        return "up"
    return "forward" if note.text.startswith("forward") or " is made x" in note.text else ""


def _decided(recording: Recording, topic: str) -> dict[str, Any] | None:
    """What was taken, whether the file states it or it is a guess, why, and what overrides it."""
    note = next((note for note in recording.notes if topic_of(note) == topic), None)
    taken = recording.data.attrs.get(f"file_{topic}")
    if topic == "forward" and note is not None and note.text.startswith("forward is "):
        taken = note.text.split()[2]  # the way the subject goes, whether or not it was turned into x
    if taken is None or (topic == "forward" and note is None):
        return None
    basis = "default" if note is None else "asked" if "as asked" in note.text else note.kind
    return {
        "taken": str(taken),
        "basis": basis,
        "evidence": "" if note is None else note.text,
        "override": f"--{topic}" if note is None else note.action,
    }


def _markers(recording: Recording) -> dict[str, Any]:
    from borelli.recording.cleaning.gaps import find_gaps
    from borelli.recording.identify_marker_set import identify_marker_set

    facts: dict[str, Any] = {"markers": len(recording.markers)}
    if not recording.markers:
        return facts
    seen = np.isfinite(recording.data["marker_position"].values).all(axis=2).mean(axis=0)
    facts["markers seen"] = dict(zip(recording.markers, map(float, seen), strict=True))
    longest: dict[str, int] = {}
    for gap in find_gaps(recording):
        longest[gap.marker] = max(longest.get(gap.marker, 0), gap.frames)
    facts["longest gaps [frames]"] = longest
    known = identify_marker_set(recording.markers)
    facts["marker set"] = known and {
        "name": known.set.name,
        "names": len(known.set.names),
        "missing": list(known.missing),
        "others": list(known.extra),
    }
    return facts


def _quantities(recording: Recording) -> dict[str, Any]:
    data = recording.data
    if "model_output" not in data:
        return {"computed quantities": 0}
    names, kinds, units = (data[key].values.tolist() for key in ("quantity", "quantity_kind", "quantity_units"))
    about = {n: {"kind": k, "units": u} for n, k, u in zip(names, kinds, units, strict=True)}
    return {"computed quantities": len(names), "computed": about}


def _plates(recording: Recording) -> dict[str, Any]:
    from borelli.recording.recording import MIN_PLATE_FORCE

    facts: dict[str, Any] = {"plates": len(recording.plates)}
    if not recording.plates:
        return facts
    normal = recording.data["plate_force"].values[:, :, 2]
    corners = recording.data["plate_corners"].values if "plate_corners" in recording.data else None
    about = {}
    for k, name in enumerate(recording.plates):
        own = normal[np.isfinite(normal[:, k]), k]
        about[name] = {
            "peak vertical force [N]": float(own.max()) if len(own) else None,
            "loaded [s]": float((own > MIN_PLATE_FORCE).sum() / recording.analog_rate),
            "center [m]": None if corners is None else corners[k].mean(axis=0).tolist(),
        }
    return facts | {"plate loads": about}


def _channels(recording: Recording) -> dict[str, Any]:
    facts: dict[str, Any] = {"channels": len(recording.channels)}
    if not recording.channels:
        return facts
    data = recording.data
    kinds, units = (data[key].values.tolist() for key in ("channel_kind", "channel_units"))
    values = data["analog"].values
    with np.errstate(all="ignore"):
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    facts["channel kinds"] = dict(Counter(kinds))
    facts["channel ranges"] = {
        name: {"kind": kinds[k], "units": units[k], "lowest": float(low[k]), "highest": float(high[k])}
        for k, name in enumerate(recording.channels)
    }
    return facts


def _coordinates(recording: Recording) -> dict[str, Any]:
    data = recording.data
    facts: dict[str, Any] = {}
    for variable, name in (("coordinate_value", "coordinate"), ("column_value", "column")):
        count = int(data.sizes.get(name, 0))
        facts[f"{name}s" if name == "coordinate" else "other columns"] = count
        if variable in data and count:
            units = data[f"{name}_units"].values if f"{name}_units" in data.coords else [""] * count
            values = data[variable].values
            low, high = np.fmin.reduce(values), np.fmax.reduce(values)
            facts[f"{name} ranges"] = {
                str(label): {"units": str(unit), "lowest": float(a), "highest": float(b)}
                for label, unit, a, b in zip(data[name].values, units, low, high, strict=True)
            }
    if "joint_center" in data:
        facts["joint centers"] = [str(name) for name in data["joint"].values]
    return facts
