"""Placement of the muscles of published models on a person's own segments.

A table (`data/*_muscles.toml`, with sources) states points and wrap objects of the right side as offsets from a joint
center of their segment in the source model. Each segment of the source is moved, rotated and scaled so that its joint
centers lie on those of the person. The left side is the mirror image.

Fibers and tendons are tuned to the normalized fiber lengths of the source at reference poses (`tune_fibers`).
Strength follows muscle volume, F l ~ V, and volume of the legs mass times height (Handsfield et al. 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import cos, sin
from typing import Any

import numpy as np

from borelli.errors import ModelError, list_names
from borelli.model.functions import natural_cubic_spline
from borelli.model.kinematics import poses
from borelli.model.model import Frame, Model, Muscle, PathPoint, PathWrap, TransformAxis, WrapObject
from borelli.model.transforms import AXES, Array, orientation_from_matrix, orientation_matrix, vector
from borelli.muscles.fiber_tuning import tuned_lengths
from borelli.muscles.paths import muscle_paths
from borelli.numerics.quaternions import smallest_rotation

Table = dict[str, Any]
VOLUME_PER_MASS_AND_HEIGHT, VOLUME_OFFSET = 47.05, 1289.6
"""Muscle volume of one leg [cm^3] = 47.05 mass [kg] height [m] + 1289.6 (Handsfield et al. 2014)."""
MIRROR = np.diag([1.0, -1.0, 1.0])
FLIP_Z = np.diag([1.0, 1.0, -1.0])
"""Reverses the axis of a wrap object: the same surface, and with `MIRROR` a rotation again."""
KIND = "Millard2012EquilibriumMuscle"
"""Force curves of the source of the legs."""


@dataclass(frozen=True)
class SegmentMap:
    """Map of a segment of the source, right side, to a body of the person: x -> origin + scale rotation x."""

    body: str
    origin: Array
    rotation: Array
    scale: float

    def point(self, x: Array) -> Array:
        """Return a point of the body's frame [m]."""
        return self.origin + self.scale * self.rotation @ x


class Stance:
    """Joint centers of a person in the zero pose, and segment maps stated there."""

    def __init__(self, model: Model, joints: Iterable[str], maker: str) -> None:
        self.model = model
        known = {joint.name: joint for joint in model.joints}
        if missing := [name for name in joints if name not in known]:
            raise ModelError(
                f"Model {model.name!r} lacks the joints {list_names(missing)} of `{maker}`, so its muscles cannot be "
                f"placed. Use a model made by `{maker}`, or a model file with muscles."
            )
        position, rotation = poses(model, np.zeros((1, len(model.coordinates))))
        self.body = {body.name: (position[0, b], rotation[0, b]) for b, body in enumerate(model.bodies)}
        self.center = {
            name: self.body[joint.parent][0] + self.body[joint.parent][1] @ np.array(joint.parent_frame.position)
            for name, joint in known.items()
            if joint.parent in self.body
        }

    def segment(self, body: str, anchor: Array, rotation: Array, scale: float) -> SegmentMap:
        """Return the map that puts the source's anchor on a point of the world [m]."""
        position, own = self.body[body]
        return SegmentMap(body, own.T @ (anchor - position), own.T @ rotation, float(scale))

    def between(self, body: str, start: Array, end: Array, source: Array, mirror: Array) -> SegmentMap:
        """Return the map that puts a vector of the source, between two joint centers, on the person's."""
        source = mirror @ source
        scale = np.linalg.norm(end - start) / np.linalg.norm(source)
        return self.segment(body, start, smallest_rotation(source, end - start) @ mirror, float(scale))


def mirror_of(side: str) -> Array:
    """Return the matrix that mirrors the right side's table for a side."""
    return np.eye(3) if side == "r" else MIRROR


def leg_maps(stance: Stance, side: str, data: Table, ball: Array) -> dict[str, SegmentMap]:
    """Return the maps of pelvis, thigh, shank and foot; `ball` is the person's toe joint in the world [m].

    The pelvis is scaled by the distance of the hips, thigh and shank by their own joints, the foot by the distance
    from ankle to toe joint on the ground.
    """
    mirror, center = mirror_of(side), stance.center
    hips = [center[f"hip_{one}"] for one in "rl"]
    width = float(np.linalg.norm(hips[0] - hips[1])) / 2.0
    maps = {"pelvis": stance.segment("pelvis", (hips[0] + hips[1]) / 2.0, mirror, width / data["hip_half_width"])}
    hip, knee, ankle = (center[f"{name}_{side}"] for name in ("hip", "knee", "ankle"))
    maps["thigh"] = stance.between(f"thigh_{side}", hip, knee, np.array(data["knee"]), mirror)
    maps["shank"] = stance.between(f"shank_{side}", knee, ankle, np.array(data["ankle"]), mirror)
    scale = float(np.linalg.norm((ball - ankle)[:2]) / np.linalg.norm(data["toe"][:2]))
    maps["foot"] = stance.segment(f"foot_{side}", ankle, mirror, scale)
    return maps


def stature(maps: Mapping[str, Mapping[str, SegmentMap]], data: Table) -> float:
    """Return the stature [m] of a person whose legs are as long."""
    lengths = {"thigh": float(np.linalg.norm(data["knee"])), "shank": float(np.linalg.norm(data["ankle"]))}
    legs = [sum(maps[side][name].scale * length for name, length in lengths.items()) for side in "rl"]
    return float(data["height"] * np.mean(legs) / sum(lengths.values()))


def place_wrap(name: str, row: Table, maps: Mapping[str, SegmentMap], side: str) -> WrapObject:
    """Return a wrap object of the table on the person."""
    at = maps[row["body"]]
    rotation = at.rotation @ orientation_matrix(tuple(row["orientation"]))
    if side == "l":
        rotation = rotation @ FLIP_Z
    size = tuple(float(at.scale * value) for value in row["size"])
    frame = Frame(vector(at.point(np.array(row["at"]))), orientation_from_matrix(rotation))
    return WrapObject(f"{name}_{side}", row.get("kind", "cylinder"), at.body, size, frame, row["side"])


def place_muscle(row: Table, maps: Mapping[str, SegmentMap], side: str, patella: Sequence[Sequence[float]]) -> Muscle:
    """Return a muscle of the table on the person, with the source's parameters."""
    path = tuple(
        _patella_point(np.array(at), maps["thigh"], side, patella) if segment == "patella"
        else _point(maps, segment, *at)
        for segment, *at in row["path"]
    )  # fmt: skip
    wraps = tuple(
        PathWrap(f"{name}_{side}", first, last, *(("tendon", _point(maps, *beyond[0])) if beyond else ()))
        for name, first, last, *beyond in row.get("wraps", ())
    )
    return Muscle(
        f"{row['name']}_{side}", path, row["force"], row["fiber"], row["tendon"], row["pennation"], KIND, wraps=wraps
    )


def _point(maps: Mapping[str, SegmentMap], segment: str, *at: float) -> PathPoint:
    return PathPoint(maps[segment].body, vector(maps[segment].point(np.array(at))))


def _patella_point(local: Array, thigh: SegmentMap, side: str, patella: Sequence[Sequence[float]]) -> PathPoint:
    """Return a point of the patella as a point that moves in the thigh with knee flexion."""
    rows = np.array(patella)
    points = np.array([thigh.point(row[1:4] + _about_y(row[5], local)) for row in rows])
    coordinate = f"knee_flexion_{side}"
    axes = tuple(
        TransformAxis(axis, natural_cubic_spline(rows[:, 0].tolist(), points[:, i].tolist()), coordinate)
        for i, axis in enumerate(AXES)
    )
    position = vector(axis.function(0.0) for axis in axes)
    return PathPoint(thigh.body, position, motion=axes)


def _about_y(angle: float, v: Array) -> Array:
    s, c = sin(angle), cos(angle)
    return np.array([c * v[0] + s * v[2], v[1], c * v[2] - s * v[0]])


def strength(mass: float, height: float, data: Table) -> float:
    """Return the muscle volume of the person's legs, as a multiple of the source's."""
    own, reference = (
        VOLUME_PER_MASS_AND_HEIGHT * m * h + VOLUME_OFFSET for m, h in ((mass, height), (data["mass"], data["height"]))
    )
    return own / reference


def tune_muscles(model: Model, rows: Sequence[Table], pose_table: Sequence[Table], volume: float) -> Model:
    """Return the model with fibers, tendons and strength of the person.

    Args:
        model: Model with the muscles of `rows`, in that order.
        rows: Rows of the tables, with the path lengths `length` [m] at the first poses.
        pose_table: Joint angles [deg], by name without side.
        volume: Muscle volume, as a multiple of the source's.
    """
    names = [c.name for c in model.coordinates]
    q = np.array([c.default for c in model.coordinates]) * np.ones((len(pose_table), 1))
    for k, pose in enumerate(pose_table):
        for name, degrees in pose.items():
            for column in (names.index(f"{name}_{side}") for side in "rl" if f"{name}_{side}" in names):
                q[k, column] = np.radians(degrees)
    muscles = [muscle.name for muscle in model.muscles[: len(rows)]]
    length = muscle_paths(model, q, muscles=muscles).length
    return replace(model, muscles=tuple(_tuned(model, rows, length, volume)))


def _tuned(model: Model, rows: Sequence[Table], length: Array, volume: float) -> Iterator[Muscle]:
    for muscle, row, own in zip(model.muscles, rows, length.T, strict=True):
        source = np.array(row["length"])
        own = own[: len(source)]
        fiber, tendon = tuned_lengths(source, own, row["fiber"], row["tendon"])
        force = row["force"] * volume * row["fiber"] / fiber
        yield replace(muscle, optimal_fiber_length=fiber, tendon_slack_length=tendon, max_isometric_force=force)
