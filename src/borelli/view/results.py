"""Results that can be drawn: lookup of the function for a result, and the poses of any result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import to_model_axes
from borelli.dynamics.running_simulation import simulation_state
from borelli.errors import ModelError, SettingsError
from borelli.files.argument_checks import shown
from borelli.model.formats.native import model_from_text
from borelli.model.kinematics import coupled_coordinates, marker_positions, poses
from borelli.model.model import Body, Frame, Joint, Model, Shape
from borelli.model.transforms import compose, orientation_from_matrix
from borelli.numerics.quaternions import quaternion_from_matrix, quaternion_product, quaternion_series, rotate
from borelli.view.force_arrows import ForceArrow, force_arrows
from borelli.view.muscle_lines import MuscleLines, muscle_lines

if TYPE_CHECKING:
    from xarray import Dataset

    from borelli.analysis.energetics.energy import Energy
    from borelli.analysis.motion import Motion
    from borelli.analysis.muscle_forces import MuscleForces
    from borelli.control.targets import Targets
    from borelli.recording.recording import Recording

Array = NDArray[np.float64]
T = TypeVar("T")

MARKER_RADIUS = 0.015
"""[m] of the sphere that represents a marker."""
PLATE_THICKNESS = 0.01
"""[m]"""
TARGET_RATE = 60.0
"""[Hz] of the poses of targets."""


def handler(table: Mapping[str, T], result: object, action: str, hints: Mapping[str, str] | None = None) -> T:
    """Return the entry of a table for the class of a result or for one of its base classes.

    Tables name classes instead of importing them, since some are in packages above this one.

    Raises:
        SettingsError: The table has no entry; the message is the hint for the class, or lists the entries.
    """
    kinds = [kind for kind in type(result).__mro__ if kind.__module__.split(".")[0] in ("borelli", "xarray")]
    for kind in kinds:
        if kind.__name__ in table:
            return table[kind.__name__]
    got, first = shown(result), ""
    if isinstance(result, str | PathLike):
        first = "Read the file first with bo.read_recording, bo.read_model, bo.read_scene or bo.read_stage. "
    others = f"{first}Use one of: {', '.join(sorted(table))}."
    hint = next((hints[kind.__name__] for kind in kinds if hints and kind.__name__ in hints), others)
    raise SettingsError(f"result: {got[0].upper()}{got[1:]} cannot be {action}. {hint}")


class PosedModel(NamedTuple):
    """Poses of a model in time, z up."""

    model: Model
    """Its ground is in lab axes; the reference poses of its bodies are not used."""
    time: Array
    """(frames,) [s]"""
    position: Array
    """(frames, bodies, 3) origins of the body frames [m], lab axes; NaN: not present."""
    orientation: Array
    """(frames, bodies, 4) unit quaternions, body to lab."""
    focus_on_bodies: bool = False
    """True if cameras need not show the ground."""
    muscles: MuscleLines | None = None
    """Muscles, if the model has any."""
    arrows: tuple[ForceArrow, ...] = ()
    """Forces that act on bodies for a time."""
    caption: str = ""
    """Text at the bottom of images and videos."""
    ghost: tuple[Array, Array] | None = None
    """`position` and `orientation` without perturbations; NaN where a body has none."""

    def nearest_frame(self, time: float) -> int:
        """Return the index of the frame nearest to a time [s]."""
        return int(np.abs(self.time - np.clip(time, self.time[0], self.time[-1])).argmin())

    def displaced(self, offset: Array) -> PosedModel:
        """Return the poses displaced by an offset [m]; the ground stays."""
        lines = self.muscles
        moved = None if lines is None else lines._replace(offset=lines.offset + offset)
        ghost = None if self.ghost is None else (self.ghost[0] + offset, self.ghost[1])
        return self._replace(position=self.position + offset, muscles=moved, ghost=ghost)

    @property
    def center_of_mass(self) -> Array:
        """(frames, 3) center of mass [m] of the bodies that move by themselves, or of all if none does, lab axes."""
        bodies = self.model.bodies
        own = [i for i, body in enumerate(bodies) if not body.kinematic] or list(range(len(bodies)))
        offset, mass = (np.array([getattr(bodies[i], name) for i in own]) for name in ("center_of_mass", "mass"))
        position = self.position[:, own]
        centers = position + rotate(self.orientation[:, own], np.broadcast_to(offset, position.shape))
        return np.asarray(np.einsum("b,fbi->fi", mass, centers) / mass.sum())


def posed_model(result: Any) -> PosedModel:
    """Return the poses that images, videos and the browser viewer draw of a result.

    Raises:
        SettingsError: The result has no poses, or no bodies.
    """
    posed: PosedModel = handler(POSES, result, "drawn in 3-D", WITHOUT_POSES)(result)
    if not posed.model.bodies:
        raise SettingsError(f"{posed.model.name}: There are no bodies to draw. Add a body to the model.")
    return posed


def dataset_model(data: Dataset) -> Model:
    """Return the model a simulation was computed with."""
    if "model" not in data.attrs:
        raise SettingsError(
            "The dataset has no attribute 'model'. Use a dataset of borelli's simulate, track_targets or run_scene."
        )
    return model_from_text(data.attrs["model"])


def _simulation_poses(data: Dataset) -> PosedModel:
    """Return the poses of a simulation, or the one of a dataset of `simulation_state`, which is at one time."""
    model = dataset_model(data)
    if "time" not in data.dims:
        data = data.expand_dims("time")
    posed = _in_lab(model, data["time"].values, data["body_position"].values, data["body_orientation"].values)
    posed = posed._replace(arrows=force_arrows(data, model, _lab_rotation(model)[0]), ghost=_target_poses(data, model))
    if "root_support_percent" in data.attrs:
        posed = posed._replace(caption=f"The root carries {data.attrs['root_support_percent']:.0f} % of the weight")
    if not model.muscles or "coordinate_value" not in data:
        return posed
    activation = data["muscle_activation"].values if "muscle_activation" in data else None
    lines = muscle_lines(model, data["coordinate_value"].values, activation, _lab_rotation(model)[0])
    return posed._replace(muscles=lines)


def _target_poses(data: Dataset, model: Model) -> tuple[Array, Array] | None:
    """Return the poses of the targets of a perturbed animation, lab axes; None without perturbations."""
    if not json.loads(data.attrs.get("perturbations", "[]")) or "coordinate_target" not in data:
        return None
    target, value = data["coordinate_target"].values, data["coordinate_value"].values
    posed = _coordinate_poses(model, data["time"].values, np.where(np.isfinite(target), target, value))
    jointed = [body.name in {joint.child for joint in model.joints} for body in model.bodies]
    posed.position[:, ~np.array(jointed)] = np.nan
    return posed.position, posed.orientation


def _coordinate_poses(model: Model, time: Array, coordinates: Array) -> PosedModel:
    """Return the poses with coordinates (times, coordinates) [rad or m]; coupled ones are computed."""
    position, rotation = poses(model, coupled_coordinates(model, coordinates))
    orientation = np.stack([quaternion_series(rotation[:, b]) for b in range(len(model.bodies))], axis=1)
    return _in_lab(model, time, position, orientation)


def _in_lab(model: Model, time: Array, position: Array, orientation: Array) -> PosedModel:
    """Return poses that are given in model axes."""
    rotation, turned = _lab_rotation(model)
    if turned is model:
        return PosedModel(model, time, position, orientation)
    orientation = quaternion_product(quaternion_from_matrix(rotation), orientation)
    return PosedModel(turned, time, position @ rotation.T, orientation)


def _lab_rotation(model: Model) -> tuple[Array, Model]:
    """Return the rotation from model axes to lab axes, and the model with its ground in lab axes."""
    try:
        rotation = to_model_axes(model).T
    except ModelError:  # gravity is zero or oblique, so the model's own z is up
        return np.eye(3), model
    if np.array_equal(rotation, np.eye(3)):
        return rotation, model
    frame = Frame(orientation=orientation_from_matrix(rotation))
    return rotation, replace(model, ground=tuple(replace(s, frame=compose(frame, s.frame)) for s in model.ground))


def _motion_poses(motion: Motion, activation: Array | None = None) -> PosedModel:
    """Return the poses of a motion; activations (frames, muscles) color its muscles."""
    data, (rotation, model) = motion.data, _lab_rotation(motion.model)
    posed = PosedModel(model, data["time"].values, data["body_position"].values, data["body_orientation"].values)
    if motion.model.muscles:
        lines = muscle_lines(motion.model, data["coordinate_value"].values, activation, rotation)
        posed = posed._replace(muscles=lines)
    if "marker_position" not in data:
        return posed
    return _with_markers(posed, [str(name) for name in data["marker"].values], data["marker_position"].values)


def activation_at(muscles: MuscleForces, time: Array) -> Array:
    """Return activations (times, muscles) at times [s]; NaN outside those of the muscle forces."""
    clock, values = muscles.data["time"].values, muscles.data["muscle_activation"].values
    inside = (time >= clock[0] - 1e-9) & (time <= clock[-1] + 1e-9)
    nearest = np.clip(np.searchsorted(clock, time - 1e-9), 0, len(clock) - 1)
    return np.where(inside[:, None], values[nearest], np.nan)


def _energy_poses(energy: Energy) -> PosedModel:
    return _motion_poses(energy.torques.motion) if energy.muscles is None else _muscle_poses(energy.muscles)


def _muscle_poses(muscles: MuscleForces) -> PosedModel:
    motion = muscles.torques.motion
    return _motion_poses(motion, activation_at(muscles, motion.data["time"].values))


def _tracked_poses(tracked: Any) -> PosedModel:
    motion = tracked.motion()
    return _motion_poses(motion, tracked.activations(motion.data["time"].values - tracked.reference.start))


def _what_if_poses(result: Any) -> PosedModel:
    """Return the poses of the changed person, with the original behind."""
    posed, original = _tracked_poses(result.changed), _tracked_poses(result.original)
    caption = f"changed: {', '.join(map(str, result.changes))}; gray: original"
    return posed._replace(ghost=(original.position, original.orientation), caption=caption)


def _walk_poses(walk: Any) -> PosedModel:
    motion = walk.motion()
    return _motion_poses(motion, walk.activations(motion.data["time"].values))


def _targets_poses(targets: Targets) -> PosedModel:
    """Return the poses with target values, other coordinates at their defaults, and the muscles."""
    model, time = targets.model, sampled_times(targets)
    values = np.tile([c.default for c in model.coordinates], (len(time), 1))
    names = [c.name for c in model.coordinates]
    values[:, [names.index(name) for name in targets.coordinates]] = targets.at(time)
    posed = _coordinate_poses(model, time, values)
    lines = muscle_lines(model, coupled_coordinates(model, values), None, _lab_rotation(model)[0])
    return posed._replace(muscles=lines)


def sampled_times(targets: Targets) -> Array:
    """Return times [s] from the start to the end of targets; those that do not end are shown for a second."""
    start = targets.start if np.isfinite(targets.start) else min(0.0, targets.end - 1.0)
    end = targets.end if np.isfinite(targets.end) else max(1.0, start + 1.0)
    return np.linspace(start, end, max(1, round((end - start) * TARGET_RATE)) + 1) if end > start else np.array([start])


def _synthetic_poses(synthetic: Any) -> PosedModel:
    """Return the true motion with the markers and force plates of the recording."""
    recording = synthetic.recording
    measured, data = _recording_poses(recording), recording.data
    posed = _coordinate_poses(synthetic.model, data["time"].values, synthetic.coordinates)
    posed = posed._replace(model=replace(posed.model, ground=measured.model.ground), focus_on_bodies=True)
    return _with_markers(posed, [str(name) for name in data["marker"].values], data["marker_position"].values)


def _model_poses(model: Model, coordinates: Mapping[str, float] | None = None) -> PosedModel:
    """Return the pose with the given coordinates [rad or m], others at their defaults, and the model's markers."""
    q = [[(coordinates or {}).get(c.name, c.default) for c in model.coordinates]]
    position, rotation = poses(model, q)
    orientation = np.array([[quaternion_from_matrix(matrix) for matrix in rotation[0]]]).reshape(1, -1, 4)
    posed = _in_lab(model, np.zeros(1), position, orientation)
    rotation = _lab_rotation(model)[0]
    posed = posed._replace(muscles=muscle_lines(model, np.array(q, float), None, rotation))
    points = marker_positions(model, q) @ rotation.T
    return _with_markers(posed, [marker.name for marker in model.markers], points)


def _scene_poses(scene: Any) -> PosedModel:
    return _model_poses(replace(scene.model, markers=()), scene.coordinates)


def _recording_poses(recording: Recording) -> PosedModel:
    """Return the markers, or joint centers, and the force plates."""
    data = recording.data
    variable = next((name for name in ("marker_position", "joint_center") if name in data and recording.frames), None)
    if variable is None:
        raise SettingsError(
            f"{recording.name or 'The recording'}: There are no markers or joint centers to draw. Use plot(), or "
            "inverse_kinematics() with a model."
        )
    points = data[variable].values
    low = min(0.0, float(np.nanpercentile(points[..., 2], 1.0)) if np.isfinite(points).any() else 0.0)
    ground = [Shape("plane", frame=Frame((0.0, 0.0, low - PLATE_THICKNESS)))]
    for corners in data["plate_corners"].values if "plate_corners" in data else ():
        box = np.concatenate([corners, corners - [0.0, 0.0, PLATE_THICKNESS]])
        ground.append(Shape("mesh", vertices=tuple((float(x), float(y), float(z)) for x, y, z in box)))
    frames = len(points)
    empty = PosedModel(
        Model(recording.name or "recording", (), ground=tuple(ground)),
        data["time"].values, np.zeros((frames, 0, 3)), np.zeros((frames, 0, 4)), True,
    )  # fmt: skip
    return _with_markers(empty, [str(name) for name in data[data[variable].dims[1]].values], points)


def _with_markers(posed: PosedModel, names: list[str], points: Array) -> PosedModel:
    """Return the poses with a small sphere for every marker (frames, markers, 3) [m]."""
    if not names:
        return posed
    labels = [f"marker {name}" for name in names]
    bodies = tuple(Body(label, 0.0, shapes=(Shape("sphere", (MARKER_RADIUS,)),)) for label in labels)
    # one tree of joints has one color
    joints = tuple(Joint(label, "fixed", labels[0], label) for label in labels[1:])
    model = replace(posed.model, bodies=(*posed.model.bodies, *bodies), joints=(*posed.model.joints, *joints))
    upright = np.broadcast_to([1.0, 0.0, 0.0, 0.0], (len(points), len(names), 4))
    position = np.concatenate([posed.position, points], axis=1)
    orientation = np.concatenate([posed.orientation, upright], axis=1)
    return posed._replace(model=model, position=position, orientation=orientation)


POSES: Mapping[str, Callable[[Any], PosedModel]] = {
    "Analysis": lambda analysis: _energy_poses(analysis.energy),
    "Animation": lambda animation: _simulation_poses(animation.data),
    "Dataset": _simulation_poses,
    "Energy": _energy_poses,
    "Fit": lambda fit: _model_poses(fit.model),
    "Model": _model_poses,
    "Motion": _motion_poses,
    "MuscleForces": _muscle_poses,
    "PredictedWalk": _walk_poses,
    "Recording": _recording_poses,
    "ScaleResult": lambda result: _model_poses(result.model),
    "Scene": _scene_poses,
    "Simulation": lambda simulation: _simulation_poses(simulation_state(simulation)),
    "SyntheticRecording": _synthetic_poses,
    "Targets": _targets_poses,
    "Torques": lambda torques: _motion_poses(torques.motion),
    "TrackedMotion": _tracked_poses,
    "WhatIf": _what_if_poses,
}
"""Poses by class of result."""

WITHOUT_POSES: Mapping[str, str] = {
    "MusclePaths": "It has lengths and moment arms only. Use plot(), or the model, a motion or muscle forces.",
    "Solution": "It has no model. Use plot(), or the tracked motion or predicted walk that it belongs to.",
}
"""What to do instead, by class of results without poses."""
