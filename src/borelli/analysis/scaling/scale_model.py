"""Scaling: a model stretched body by body until distances between its markers are those that were measured.

As OpenSim does it: a *measure* is one or more pairs of markers and the bodies that they size. Its factor is the mean
over the pairs of the measured distance (mean over time) divided by the distance on the model in its default pose.
Then, if wanted, the model is posed on a static trial and its markers are moved to where they were seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS, POSE_STIFFNESS, solve_framewise, make_ik_problem
from borelli.analysis.motion import match_markers, to_model_axes
from borelli.errors import SettingsError, list_names, unknown_name
from borelli.model.inertia import mass_of_body
from borelli.model.kinematics import marker_positions, poses, with_default_frames
from borelli.model.model import Body, Joint, Model, Vector
from borelli.model.resize import resize_body, scale_mass
from borelli.model.transforms import vector
from borelli.model.validate import validate
from borelli.recording.recording import Note, Recording

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Measurement:
    """Pairs of markers whose distance sizes bodies.

    Attributes:
        pairs: Names of two markers each.
        bodies: The axes along which each body is stretched, such as "xyz" or "y", by the body's name.
        name: What it is called in messages.
    """

    pairs: tuple[tuple[str, str], ...]
    bodies: Mapping[str, str]
    name: str = ""


@dataclass(frozen=True)
class ScaleResult:
    """A scaled model.

    Attributes:
        model: The model, as large and heavy as the subject.
        factors: How much each body was stretched along its x, y, z.
        notes: What was decided or noticed.
    """

    model: Model
    factors: Mapping[str, Vector]
    notes: tuple[Note, ...] = ()


def scale_model(
    model: Model,
    recording: Recording,
    measures: Sequence[Measurement] | None = None,
    *,
    factors: Mapping[str, Sequence[float]] | None = None,
    mass: float | None = None,
    keep_mass_shares: bool = True,
    time: tuple[float, float] = (-inf, inf),
) -> ScaleResult:
    """The model stretched to the distances between markers.

    Args:
        model: A model that wears markers.
        recording: Where the markers were seen; usually a static trial.
        measures: What sizes what; by default every body is sized by all pairs of its own markers.
        factors: Stretch along x, y, z by body, stated instead of measured.
        mass: Of the whole [kg]; by default that of the model.
        keep_mass_shares: Whether each body keeps its share of the mass; else masses go with the volumes.
        time: From and to [s], what of the recording counts.

    Raises:
        SettingsError: a marker or axis that is not there.
    """
    measures = own_pairs(model, recording) if measures is None else tuple(measures)
    notes: list[Note] = []
    found: dict[str, Vector] = {}
    lengths = _Distances(model, recording, time)
    known = {body.name for body in model.bodies}
    strangers: list[str] = []
    for measure in measures:
        ratio, skipped = lengths.ratio(measure)
        if skipped:
            notes.append(Note(f"pairs of measure {measure.name!r} that were not seen: {list_names(skipped)}", "problem"))
        if ratio is None:
            continue
        for body, axes in measure.bodies.items():
            _check_axes(measure, axes)
            if body not in known:
                strangers.append(body)
                continue
            before = found.get(body, (1.0, 1.0, 1.0))
            x, y, z = (ratio if axis in axes.lower() else old for axis, old in zip("xyz", before, strict=True))
            found[body] = (x, y, z)
    for body, stated in (factors or {}).items():
        if body not in known:
            strangers.append(body)
            continue
        if len(stated) != 3 or not all(0.0 < f < inf for f in stated):
            raise SettingsError(f"factors of body {body!r} are {tuple(stated)}, but must be three positive numbers")
        found[body] = vector(stated)
    if strangers:
        notes.append(Note(f"bodies that the model has not are passed over: {list_names(strangers)}", "problem"))
    unsized = [body.name for body in model.bodies if body.name not in found]
    if unsized:
        notes.append(Note(f"bodies that nothing sizes keep their size: {list_names(unsized)}", "stated"))
    if model.muscles:
        notes.append(Note("fibre and tendon lengths of muscles are those of the unscaled model", "stated"))
    result = model
    for body, stretch in found.items():
        result = _stretched(result, body, stretch)
        if keep_mass_shares:
            result = _reweighed(result, body, model.body(body).mass)
    total = model.mass if mass is None else mass
    if result.mass > 0.0:
        result = scale_mass(result, total)
    return ScaleResult(validate(with_default_frames(result), sound_masses=False), found, tuple(notes))


def place_markers(
    model: Model,
    static: Recording,
    *,
    weights: Mapping[str, float] | float = MARKER_STIFFNESS,
    pose_stiffness: Mapping[str, float] | float = POSE_STIFFNESS,
    rest: Mapping[str, float] | None = None,
    fixed: Sequence[str] = (),
    time: tuple[float, float] = (-inf, inf),
) -> Model:
    """The model with its markers where a static trial has them, once it is posed on that as well as it can be.

    Args:
        model: A model that wears markers, scaled to the subject.
        static: A trial in which the subject stands still; the mean over time counts.
        weights: Stiffness of the markers while posing [N/m], as in `inverse_kinematics`.
        pose_stiffness: Of the springs to the rest pose [N m/rad or N/m].
        rest: The pose in which the subject stands, by coordinate [rad or m]; the model's defaults by default.
        fixed: Markers that stay where the model has them.
        time: From and to [s], what of the trial counts.
    """
    for name in fixed:
        model.marker(name)
    seen = _within(static, time)
    with np.errstate(invalid="ignore"):
        mean = np.nanmean(np.where(np.isfinite(seen), seen, np.nan), axis=0, keepdims=True)
    still = static.with_data(static.data.isel(time=[0]).assign(marker_position=(("time", "marker", "axis"), mean)))
    problem = make_ik_problem(model, still, weights, pose_stiffness, rest, hard_limits=True)
    q, _ = solve_framewise(problem)
    position, rotation = poses(model, q)
    index = {body.name: i for i, body in enumerate(model.bodies)}
    column = match_markers(model.markers, static.markers)
    turn = to_model_axes(model)
    markers = []
    for marker, k in zip(model.markers, column, strict=True):
        at = turn @ mean[0, k] if k >= 0 else np.full(3, np.nan)
        if marker.name not in fixed and marker.body in index and np.isfinite(at).all():
            body = index[marker.body]
            marker = replace(marker, position=vector(rotation[0, body].T @ (at - position[0, body])))
        markers.append(marker)
    return replace(model, markers=tuple(markers))


def own_pairs(model: Model, recording: Recording) -> tuple[Measurement, ...]:
    """One measure per body that wears at least two markers of the recording: all pairs of them, all axes."""
    found = match_markers(model.markers, recording.markers)
    worn: dict[str, list[str]] = {}
    for marker, k in zip(model.markers, found, strict=True):
        if k >= 0:
            worn.setdefault(marker.body, []).append(marker.name)
    return tuple(
        Measurement(tuple(combinations(names, 2)), {body: "xyz"}, body)
        for body, names in worn.items()
        if len(names) > 1 and body in {b.name for b in model.bodies}
    )


class _Distances:
    """Distances between markers, on the model and as measured."""

    def __init__(self, model: Model, recording: Recording, time: tuple[float, float]) -> None:
        self.model, self.recording = model, recording
        self.names = [marker.name for marker in model.markers]
        self.columns = match_markers(model.markers, recording.markers)
        self.seen = _within(recording, time)
        self.on_model = marker_positions(model, [[c.default for c in model.coordinates]])[0]

    def ratio(self, measure: Measurement) -> tuple[float | None, list[str]]:
        """Measured distance by the model's, the mean over pairs; and pairs that were not seen."""
        ratios, skipped = [], []
        for first, second in measure.pairs:
            for name in (first, second):
                if name not in self.names:
                    raise SettingsError(f"measure {measure.name!r}: {unknown_name('marker', name, self.names)}")
            a, b = self.names.index(first), self.names.index(second)
            i, k = self.columns[a], self.columns[b]
            apart = np.linalg.norm(self.seen[:, i] - self.seen[:, k], axis=-1) if i >= 0 and k >= 0 else np.zeros(0)
            apart = apart[np.isfinite(apart)]
            own = float(np.linalg.norm(self.on_model[a] - self.on_model[b]))
            if not len(apart) or not own > 0.0:
                skipped.append(f"{first} to {second}")
                continue
            ratios.append(float(apart.mean()) / own)
        return (float(np.mean(ratios)) if ratios else None), skipped


def _within(recording: Recording, time: tuple[float, float]) -> Array:
    """Where the markers were [m] in the frames from one time to another."""
    at = recording.data["time"].values
    frames = (at >= time[0] - 1e-9) & (at <= time[1] + 1e-9)
    if not frames.any():
        raise SettingsError(f"recording {recording.name!r} has no frame from {time[0]:g} to {time[1]:g} s")
    return np.asarray(recording.data["marker_position"].values[frames])


def _check_axes(measure: Measurement, axes: str) -> None:
    if not axes or any(axis not in "xyz" for axis in axes.lower()):
        raise SettingsError(f"measure {measure.name!r}: axes are {axes!r}, but must be some of x, y, z")


def _stretched(model: Model, body: str, factors: Vector) -> Model:
    """The model with one body stretched, and with it how far its joints travel as their coordinates change."""
    stretch = np.array(factors)

    def travels(joint: Joint) -> Joint:
        if joint.parent != body or joint.kind != "coordinate":
            return joint
        shifts = []
        for one in joint.motion[3:]:
            factor = np.linalg.norm(stretch * one.axis) / np.linalg.norm(one.axis)
            shifts.append(replace(one, function=one.function.scaled(float(factor))))
        return replace(joint, motion=(*joint.motion[:3], *shifts))

    model = replace(model, joints=tuple(map(travels, model.joints)))
    return resize_body(model, body, factors)


def _reweighed(model: Model, name: str, mass: float) -> Model:
    """The model with one body as heavy as given."""

    def new(body: Body) -> Body:
        if body.name != name or not body.mass > 0.0:
            return body
        weight, _, inertia = mass_of_body(body).scaled(mass / body.mass).fields()
        return replace(body, mass=weight, inertia=inertia)

    return replace(model, bodies=tuple(map(new, model.bodies)))
