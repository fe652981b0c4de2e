"""Muscles of `human`: 40 of each leg and 13 of each side of the trunk, placed on a person's own segments.

The table (`data/human_muscles.toml`, with sources) states points and wrap objects of the right side as offsets from
the proximal joint center of their segment in the source model. Each segment of the source is moved, rotated and scaled
so that its joint centers lie on those of the person: thigh and shank by their own joints, the pelvis by the distance of
the hips, the foot by the distance from ankle to toe joint. The patella is no body of `human`: points on it move in the
thigh as functions of knee flexion. The left side is the mirror image.

Fibers and tendons are tuned to the normalized fiber lengths of the source at reference poses (`tune_fibers`).
Strength follows muscle volume, F l ~ V, and volume of the legs mass times height (Handsfield et al. 2014).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import cos, sin
from typing import Any

import numpy as np

from borelli.errors import ModelError, list_names
from borelli.model.functions import natural_cubic_spline
from borelli.model.model import Frame, Model, Muscle, PathPoint, PathWrap, TransformAxis, WrapObject
from borelli.model.transforms import AXES, Array, orientation_from_matrix, orientation_matrix, vector
from borelli.model.validate import validate
from borelli.muscles.paths import muscle_paths
from borelli.muscles.tune_fibers import tuned_lengths
from borelli.people.anthropometry import table

Table = dict[str, Any]
VOLUME_PER_MASS_AND_HEIGHT, VOLUME_OFFSET = 47.05, 1289.6
"""Muscle volume of one leg [cm^3] = 47.05 mass [kg] height [m] + 1289.6 (Handsfield et al. 2014)."""
TRUNK = ("pelvis", "lower_torso", "upper_torso")
MIRROR = np.diag([1.0, -1.0, 1.0])
FLIP_Z = np.diag([1.0, 1.0, -1.0])
"""Reverses the axis of a cylinder: the same surface, and with `MIRROR` a rotation again."""
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


def add_muscles(model: Model, *, height: float | None = None) -> Model:
    """Return a model made by `human`, fitted or not, with muscles of its legs and trunk.

    Args:
        model: Model with the bodies and joints of `human`. Muscles that it has already are replaced.
        height: Stature [m], for strength. Default: from the length of the legs.

    Raises:
        ModelError: if a leg or the trunk of `human` is missing.
    """
    data = table("human_muscles")
    maps = {side: _segment_maps(model, side, data) for side in "rl"}
    muscles: list[Muscle] = []
    wraps: list[WrapObject] = []
    for side in "rl":
        wraps += [_wrap_object(name, row, maps[side], side) for name, row in data["wrap"].items()]
        muscles += [_muscle(row, maps[side], side, data) for row in data["muscle"]]
    bare = replace(model, muscles=tuple(muscles), wrap_objects=tuple(wraps))
    stature = height or data["height"] * np.mean([maps[side]["leg"].scale for side in "rl"])
    return validate(_tuned(bare, data, _strength(model.mass, float(stature), data)))


def _segment_maps(model: Model, side: str, data: Table) -> dict[str, SegmentMap]:
    joints = {joint.name: joint for joint in model.joints}
    names = [f"{name}_{side}" for name in ("hip", "knee", "ankle", "toe")] + ["hip_r", "hip_l", "lumbar", "thoracic"]
    if missing := [name for name in names if name not in joints]:
        raise ModelError(
            f"Model {model.name!r} lacks the joints {list_names(missing)} of `human`, so its muscles cannot be placed. "
            "Use a model made by `human`, or a model file with muscles."
        )
    mirror = np.eye(3) if side == "r" else MIRROR

    def vector_of(distal: str, proximal: str | None) -> tuple[Array, Array]:
        """Return the position of a body's own joint, and the next joint's offset from it."""
        own = np.array(joints[proximal].child_frame.position) if proximal else np.zeros(3)
        return own, np.array(joints[distal].parent_frame.position) - own

    hips = [np.array(joints[f"hip_{one}"].parent_frame.position) for one in "rl"]
    width = float(np.linalg.norm(hips[0] - hips[1])) / 2.0
    maps = {"pelvis": SegmentMap("pelvis", (hips[0] + hips[1]) / 2.0, mirror, width / data["hip_half_width"])}
    for segment, distal, proximal in (("thigh", "knee", "hip"), ("shank", "ankle", "knee")):
        own, to = vector_of(f"{distal}_{side}", f"{proximal}_{side}")
        source = mirror @ np.array(data[distal])
        scale = float(np.linalg.norm(to) / np.linalg.norm(source))
        maps[segment] = SegmentMap(f"{segment}_{side}", own, _rotation_between(source, to) @ mirror, scale)
    own, to = vector_of(f"toe_{side}", f"ankle_{side}")
    scale = float(np.linalg.norm(to[:2]) / np.linalg.norm(data["toe"][:2]))
    maps["foot"] = SegmentMap(f"foot_{side}", own, mirror, scale)
    maps["toes"] = SegmentMap(f"toes_{side}", np.array(joints[f"toe_{side}"].child_frame.position), mirror, scale)
    for segment, distal, proximal in (("lower_torso", "lumbar", "sacral"), ("upper_torso", "thoracic", "lumbar")):
        own, to = vector_of(distal, proximal)
        maps[segment] = SegmentMap(segment, own, mirror, float(np.linalg.norm(to)) / data[segment])
    leg = sum(maps[s].scale * np.linalg.norm(data[j]) for s, j in (("thigh", "knee"), ("shank", "ankle")))
    reference = sum(float(np.linalg.norm(data[j])) for j in ("knee", "ankle"))
    maps["leg"] = replace(maps["thigh"], scale=float(leg / reference))
    return maps


def _rotation_between(a: Array, b: Array) -> Array:
    """Return the smallest rotation that turns a into the direction of b."""
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    v, c = np.cross(a, b), float(a @ b)
    skew = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.asarray(np.eye(3) + skew + skew @ skew / (1.0 + c))


def _wrap_object(name: str, row: Table, maps: dict[str, SegmentMap], side: str) -> WrapObject:
    at = maps[row["body"]]
    rotation = at.rotation @ orientation_matrix(tuple(row["orientation"]))
    if side == "l":
        rotation = rotation @ FLIP_Z
    size = tuple(float(at.scale * value) for value in row["size"])
    frame = Frame(vector(at.point(np.array(row["at"]))), orientation_from_matrix(rotation))
    return WrapObject(f"{name}_{side}", "cylinder", at.body, size, frame, row["side"])


def _muscle(row: Table, maps: dict[str, SegmentMap], side: str, data: Table) -> Muscle:
    path = tuple(
        _patella_point(np.array(at), maps["thigh"], side, data) if segment == "patella"
        else PathPoint(maps[segment].body, vector(maps[segment].point(np.array(at))))
        for segment, *at in row["path"]
    )  # fmt: skip
    wraps = tuple(PathWrap(f"{name}_{side}", first, last) for name, first, last in row.get("wraps", ()))
    return Muscle(
        f"{row['name']}_{side}", path, row["force"], row["fiber"], row["tendon"], row["pennation"], KIND, wraps=wraps
    )


def _patella_point(local: Array, thigh: SegmentMap, side: str, data: Table) -> PathPoint:
    """Return a point of the patella as a point that moves in the thigh with knee flexion."""
    rows = np.array(data["patella"])
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


def _strength(mass: float, height: float, data: Table) -> float:
    """Return the muscle volume of the person's legs, as a multiple of the source's."""
    own, reference = (
        VOLUME_PER_MASS_AND_HEIGHT * m * h + VOLUME_OFFSET for m, h in ((mass, height), (data["mass"], data["height"]))
    )
    return own / reference


def _tuned(model: Model, data: Table, volume: float) -> Model:
    """Return the model with fibers, tendons and strength of the person."""
    names = [c.name for c in model.coordinates]
    poses = np.array([c.default for c in model.coordinates]) * np.ones((len(data["pose"]), 1))
    for k, pose in enumerate(data["pose"]):
        for name, degrees in pose.items():
            for side in "rl":
                poses[k, names.index(f"{name}_{side}")] = np.radians(degrees)
    length = muscle_paths(model, poses).length
    return replace(model, muscles=tuple(_tuned_muscles(model, data, length, volume)))


def _tuned_muscles(model: Model, data: Table, length: Array, volume: float) -> Iterator[Muscle]:
    rows = [*data["muscle"], *data["muscle"]]
    for muscle, row, own in zip(model.muscles, rows, length.T, strict=True):
        source = np.array(row["length"])
        own = own[: len(source)]
        fiber, tendon = tuned_lengths(source, own, row["fiber"], row["tendon"])
        force = row["force"] * volume * row["fiber"] / fiber
        yield replace(muscle, optimal_fiber_length=fiber, tendon_slack_length=tendon, max_isometric_force=force)
