"""Scaling: bodies of a model scaled so that distances between its markers match the measured ones, as OpenSim does.

A *measurement* is one or more pairs of markers and the bodies that they scale. Its factor is the mean over the pairs of
the measured distance (mean over time) divided by the distance on the model in its default pose. Then `place_markers`
can move the markers to where a static trial has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf

import numpy as np

from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS, POSE_STIFFNESS, make_ik_problem, solve_framewise
from borelli.analysis.motion import match_markers, to_model_axes
from borelli.errors import SettingsError, list_names, unknown_name
from borelli.files.html_repr import Summary, fields_repr, summary_html, summary_repr
from borelli.model.inertia import mass_of_body
from borelli.model.kinematics import marker_positions, poses, with_default_frames
from borelli.model.model import Body, Joint, Model, Vector
from borelli.model.resize import resize_body, scale_mass
from borelli.model.transforms import vector
from borelli.model.validate import validate
from borelli.muscles.fiber_tuning import tune_fibers
from borelli.numerics.vectors import Array
from borelli.recording.recording import Note, Recording


@dataclass(frozen=True)
class Measurement:
    """Pairs of markers whose distance scales bodies.

    Attributes:
        pairs: Names of two markers each.
        bodies: Axes along which each body is scaled, such as "xyz" or "y", by body.
        name: Name in messages.
    """

    pairs: tuple[tuple[str, str], ...]
    bodies: Mapping[str, str]
    name: str = ""

    __repr__ = fields_repr


@dataclass(frozen=True)
class ScaleResult:
    """Scaled model.

    Attributes:
        model: The model with the subject's size and mass.
        factors: Scale factors along x, y, z, by body.
        notes: Assumptions and problems.
    """

    model: Model
    factors: Mapping[str, Vector]
    notes: tuple[Note, ...] = ()

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        factors = [f"{body} {x:.2f} {y:.2f} {z:.2f}" for body, (x, y, z) in self.factors.items()]
        return Summary("ScaleResult", [("model", repr(self.model)), ("factors", list_names(factors))])


def scale_model(
    model: Model,
    recording: Recording,
    measurements: Sequence[Measurement] | None = None,
    *,
    factors: Mapping[str, Sequence[float]] | None = None,
    mass: float | None = None,
    keep_mass_fractions: bool = True,
    time: tuple[float, float] = (-inf, inf),
) -> ScaleResult:
    """Scale a model to measured distances between markers.

    Args:
        model: A model with markers.
        recording: A recording of the markers, usually a static trial.
        measurements: Marker pairs and the bodies that they scale. Default: every body by all pairs of its own markers.
        factors: Scale factors along x, y, z by body, stated instead of measured.
        mass: Of the scaled model [kg]. Default: that of the model.
        keep_mass_fractions: Whether each body keeps its fraction of the mass; else masses scale with volumes.
        time: First and last time [s] of the recording to use.

    Returns:
        The scaled model and its factors.

    Raises:
        SettingsError: Unknown marker or axis, or a factor that is not positive.

    Examples:
        >>> walk = bo.synthetic_recording("walk", noise=0.0)
        >>> scaled = bo.scale_model(walk.model, walk.recording, mass=70.0)
        >>> round(scaled.model.mass, 6)
        70.0
    """
    measurements = own_pairs(model, recording) if measurements is None else tuple(measurements)
    notes: list[Note] = []
    applied: dict[str, Vector] = {}
    distances = _Distances(model, recording, time)
    known = {body.name for body in model.bodies}
    unknown: list[str] = []
    for measurement in measurements:
        ratio, skipped = distances.ratio(measurement)
        if skipped:
            text = f"Measurement {measurement.name!r}: marker pairs that were not recorded: {list_names(skipped)}."
            notes.append(Note(text, "problem", code="missing_pairs"))
        if ratio is None:
            continue
        for body, axes in measurement.bodies.items():
            if not axes or any(axis not in "xyz" for axis in axes.lower()):
                raise SettingsError(f"Measurement {measurement.name!r}: {unknown_name('axes', axes, 'xyz')}")
            if body not in known:
                unknown.append(body)
                continue
            before = applied.get(body, (1.0, 1.0, 1.0))
            x, y, z = (ratio if axis in axes.lower() else old for axis, old in zip("xyz", before, strict=True))
            applied[body] = (x, y, z)
    for body, stated in (factors or {}).items():
        if body not in known:
            unknown.append(body)
            continue
        if len(stated) != 3 or not all(0.0 < f < inf for f in stated):
            raise SettingsError(
                f"factors: Body {body!r} has {', '.join(map(str, stated))}. Use three positive numbers."
            )
        applied[body] = vector(stated)
    if unknown:
        text = f"Bodies that the model does not have are not scaled: {list_names(unknown)}."
        notes.append(Note(text, "problem", code="unknown_bodies"))
    unscaled = [body.name for body in model.bodies if body.name not in applied]
    if unscaled:
        text = f"Bodies without a measurement keep their size: {list_names(unscaled)}."
        notes.append(Note(text, "stated", code="unscaled_bodies"))
    if model.muscles:
        text = "Fiber and tendon lengths of muscles were scaled to keep the normalized lengths of the fibers."
        notes.append(Note(text, "changed", code="tuned_muscles"))
    if model.ligaments:
        text = "Resting lengths of ligaments are those of the unscaled model."
        notes.append(Note(text, "stated", code="unscaled_ligaments"))
    result = model
    for body, scale in applied.items():
        result = _scale_body(result, body, scale)
        if keep_mass_fractions:
            result = _with_body_mass(result, body, model.body(body).mass)
    total = model.mass if mass is None else mass
    if result.mass > 0.0:
        result = scale_mass(result, total)
    result = tune_fibers(validate(with_default_frames(result), sound_masses=False), model)
    return ScaleResult(result, applied, tuple(notes))


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
    """Move the markers of a model to where a static trial, its mean over time, has them in the model's best pose.

    Springs and rest pose are those of `inverse_kinematics`. The markers `fixed` keep their offset; `time` is the first
    and last time [s] of the trial to use.
    """
    for name in fixed:
        model.marker(name)
    measured = _within(static, time)
    with np.errstate(invalid="ignore"):
        mean = np.nanmean(np.where(np.isfinite(measured), measured, np.nan), axis=0, keepdims=True)
    still = static.with_data(static.data.isel(time=[0]).assign(marker_position=(("time", "marker", "axis"), mean)))
    problem = make_ik_problem(model, still, weights, pose_stiffness, rest)
    q, _ = solve_framewise(problem)
    position, rotation = poses(model, q)
    index = {body.name: i for i, body in enumerate(model.bodies)}
    column = match_markers(model.markers, static.markers)
    to_model = to_model_axes(model)
    markers = []
    for marker, k in zip(model.markers, column, strict=True):
        at = to_model @ mean[0, k] if k >= 0 else np.full(3, np.nan)
        if marker.name not in fixed and marker.body in index and np.isfinite(at).all():
            body = index[marker.body]
            marker = replace(marker, position=vector(rotation[0, body].T @ (at - position[0, body])))
        markers.append(marker)
    return replace(model, markers=tuple(markers))


def own_pairs(model: Model, recording: Recording) -> tuple[Measurement, ...]:
    """Return one measurement per body with at least two recorded markers: all pairs of them, all axes."""
    column = match_markers(model.markers, recording.markers)
    by_body: dict[str, list[str]] = {}
    for marker, k in zip(model.markers, column, strict=True):
        if k >= 0:
            by_body.setdefault(marker.body, []).append(marker.name)
    return tuple(
        Measurement(tuple(combinations(names, 2)), {body: "xyz"}, body)
        for body, names in by_body.items()
        if len(names) > 1 and body in {b.name for b in model.bodies}
    )


class _Distances:
    """Distances between markers, on the model and as measured."""

    def __init__(self, model: Model, recording: Recording, time: tuple[float, float]) -> None:
        self.names = [marker.name for marker in model.markers]
        self.columns = match_markers(model.markers, recording.markers)
        self.measured = _within(recording, time)
        self.on_model = marker_positions(model, [[c.default for c in model.coordinates]])[0]

    def ratio(self, measurement: Measurement) -> tuple[float | None, list[str]]:
        """Return measured distance by the model's, the mean over pairs, and the pairs that were not recorded."""
        ratios, skipped = [], []
        for first, second in measurement.pairs:
            for name in (first, second):
                if name not in self.names:
                    raise SettingsError(f"Measurement {measurement.name!r}: {unknown_name('marker', name, self.names)}")
            a, b = self.names.index(first), self.names.index(second)
            i, k = self.columns[a], self.columns[b]
            distance = np.zeros(0)
            if i >= 0 and k >= 0:
                distance = np.linalg.norm(self.measured[:, i] - self.measured[:, k], axis=-1)
            distance = distance[np.isfinite(distance)]
            own = float(np.linalg.norm(self.on_model[a] - self.on_model[b]))
            if not len(distance) or not own > 0.0:
                skipped.append(f"{first} to {second}")
                continue
            ratios.append(float(distance.mean()) / own)
        return (float(np.mean(ratios)) if ratios else None), skipped


def _within(recording: Recording, time: tuple[float, float]) -> Array:
    """Return the marker positions (frames, markers, 3) [m] from one time to another."""
    at = recording.data["time"].values
    frames = (at >= time[0] - 1e-9) & (at <= time[1] + 1e-9)
    if not frames.any():
        raise SettingsError(
            f"Recording {recording.name!r}: No frame lies between {time[0]:g} and {time[1]:g} s. Change the time range."
        )
    return np.asarray(recording.data["marker_position"].values[frames])


def _scale_body(model: Model, body: str, factors: Vector) -> Model:
    """Return the model with one body scaled, and with it the translations of the joints on it."""
    scale = np.array(factors)

    def scale_translations(joint: Joint) -> Joint:
        if joint.parent != body or joint.kind != "coordinate":
            return joint
        translations = []
        for one in joint.motion[3:]:
            factor = np.linalg.norm(scale * one.axis) / np.linalg.norm(one.axis)
            translations.append(replace(one, function=one.function.scaled(float(factor))))
        return replace(joint, motion=(*joint.motion[:3], *translations))

    model = replace(model, joints=tuple(map(scale_translations, model.joints)))
    return resize_body(model, body, factors)


def _with_body_mass(model: Model, name: str, mass: float) -> Model:
    def new(body: Body) -> Body:
        if body.name != name or not body.mass > 0.0:
            return body
        weight, _, inertia = mass_of_body(body).scaled(mass / body.mass).fields()
        return replace(body, mass=weight, inertia=inertia)

    return replace(model, bodies=tuple(map(new, model.bodies)))
