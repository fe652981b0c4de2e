"""The human of the Human Dynamic Model (Liu, Cooper and Ballard): 21 bodies, 20 joints, 48 internal degrees of freedom.

It stands upright on z = 0, x forward, y left, arms hanging, thumbs forward; every body frame is parallel to the world
and has its origin at the joint towards the pelvis (the pelvis: midway between the hips). Lengths, masses, inertias
and ranges of motion come from published tables, kept with their sources in `data/human.toml`.

Angles count positive as their names say, on both sides of the body alike: flexion of the spine, neck and head is
forward, bending and rotation to the left; of shoulder and hip, flexion is forward, adduction and (inward) rotation
towards the midline; knee and elbow flexion close the joint; `ankle_flexion` lifts the toes, `ankle_inversion` turns the
sole inward, `toe_extension` lifts them; `wrist_flexion` is towards the palm, `wrist_deviation` towards the thumb;
`elbow_pronation` turns the palm back; a clavicle protracts forward, elevates up, rotates its front edge up.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import isfinite, radians
from typing import Any

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.model.frames import Array, vector
from borelli.model.inertia import MassProperties, mass_of_shapes
from borelli.model.markers import with_markers
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Shape, Vector
from borelli.model.validate import validate

SEXES = ("male", "female")
MASS_RANGE = (1.0, 500.0)  # kg: anything outside is a slip of units
HEIGHT_RANGE = (0.3, 3.0)  # m

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
NOT_X, NOT_Y = (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0)
ALONG_Y = (0.5**0.5, -(0.5**0.5), 0.0, 0.0)  # turns a capsule's z axis to y

# name, kind, parent, child, axes, angles; of the right side where there are two (`*` stands for the side's letter)
JOINTS = (
    ("sacral", "ball", "pelvis", "lower_torso", (Y, NOT_X, Z), ("sacral_flexion", "sacral_bending", "sacral_rotation")),
    (
        "lumbar", "ball", "lower_torso", "upper_torso", (Y, NOT_X, Z),
        ("lumbar_flexion", "lumbar_bending", "lumbar_rotation"),
    ),
    ("thoracic", "ball", "upper_torso", "neck", (Y, NOT_X, Z), ("neck_flexion", "neck_bending", "neck_rotation")),
    ("cervical", "ball", "neck", "head", (Y, NOT_X, Z), ("head_flexion", "head_bending", "head_rotation")),
    (
        "clavicle_*", "ball", "upper_torso", "collar_*", (Z, NOT_X, NOT_Y),
        ("clavicle_protraction", "clavicle_elevation", "clavicle_rotation"),
    ),
    (
        "shoulder_*", "ball", "collar_*", "upper_arm_*", (NOT_Y, X, Z),
        ("shoulder_flexion", "shoulder_adduction", "shoulder_rotation"),
    ),
    ("elbow_*", "universal", "upper_arm_*", "forearm_*", (NOT_Y, Z), ("elbow_flexion", "elbow_pronation")),
    ("wrist_*", "universal", "forearm_*", "hand_*", (X, NOT_Y), ("wrist_flexion", "wrist_deviation")),
    ("hip_*", "ball", "pelvis", "thigh_*", (NOT_Y, X, Z), ("hip_flexion", "hip_adduction", "hip_rotation")),
    ("knee_*", "universal", "thigh_*", "shank_*", (Y, Z), ("knee_flexion", "knee_rotation")),
    ("ankle_*", "universal", "shank_*", "foot_*", (NOT_Y, X), ("ankle_flexion", "ankle_inversion")),
    ("toe_*", "hinge", "foot_*", "toes_*", (NOT_Y,), ("toe_extension",)),
)  # fmt: skip


def human(
    mass: float = 75.0,
    height: float = 1.75,
    sex: str = "male",
    *,
    markers: str | os.PathLike[str] | None = None,
) -> Model:
    """A standing human on level ground.

    Args:
        mass: Of the whole body [kg].
        height: Stature [m].
        sex: Whose segment parameters are taken, "male" or "female".
        markers: A marker set to wear: one of `marker_sets()`, or a file of your own.
    """
    _check_settings(mass, height, sex)
    segments = _segments(_Proportions(mass, height, sex))
    origins = {segment.name: segment.origin for segment in segments}
    model = Model(
        name=f"human, {sex}, {mass:g} kg, {height:g} m",
        bodies=tuple(segment.body() for segment in segments),
        joints=(_root(origins["pelvis"]), *_joints(origins)),
        ground=(Shape("plane"),),
    )
    return validate(with_markers(model, markers) if markers is not None else model)


@dataclass(frozen=True, slots=True)
class _Segment:
    """A body while it is being put together: everything in world coordinates of the standing pose."""

    name: str
    origin: Array
    solid: MassProperties
    shapes: tuple[Shape, ...]

    def body(self) -> Body:
        local = replace(self.solid, center=self.solid.center - self.origin)
        shapes = tuple(
            replace(shape, frame=replace(shape.frame, position=vector(np.array(shape.frame.position) - self.origin)))
            for shape in self.shapes
        )
        return Body(self.name, *local.fields(), shapes, Frame(vector(self.origin)))


class _Proportions:
    """The published numbers turned into lengths [m] and solids of one person."""

    def __init__(self, mass: float, height: float, sex: str) -> None:
        data = _data()
        self.segments: dict[str, Any] = data[sex]
        self.share: dict[str, float] = data["share"]
        self.mass, self.height = mass, height
        # a length [m] at the tables' mean stature becomes one of this person
        self.growth = height / self.segments["stature"]
        total = sum(
            self.segments[name]["mass"] * (1 if name.endswith(("head", "trunk")) else 2)
            for name in self.segments
            if name != "stature"
        )
        self.mass_unit = mass / total  # the women's shares add up to 0.9999

        s = {name: height * fraction for name, fraction in data["stature"].items()}
        s |= {name: s["foot_length"] * fraction for name, fraction in data["foot"].items()}
        s["cervicale_height"] = height - self.growth * self.segments["head"]["length"]
        # the trunk parts were measured along its curve: they share the straight way from hips to neck
        trunk = [self.segments[f"{part}_trunk"]["length"] for part in ("lower", "middle", "upper")]
        straight = (s["cervicale_height"] - s["hip_height"]) / sum(trunk)
        s["navel_height"] = s["hip_height"] + straight * trunk[0]
        s["xiphion_height"] = s["navel_height"] + straight * trunk[1]
        self.length = s
        self.shape: dict[str, Any] = {name: height * np.array(size) for name, size in data["shape"].items()}

    def solid(self, segment: str, start: Array, end: Array) -> MassProperties:
        """A segment of the tables laid from its first end to its second."""
        numbers = self.segments[segment]
        mass = numbers["mass"] * self.mass_unit
        radii = np.array(numbers["gyration"]) * numbers["length"] * self.growth
        center = start + numbers["center"] * (end - start) - _offset(x=numbers.get("behind", 0.0) * self.growth)
        return MassProperties(mass, center, mass * np.diag(radii**2))

    def part(self, segment: str, share: str, shape: Shape) -> MassProperties:
        """A share of a segment, spread evenly over a shape."""
        mass = self.segments[segment]["mass"] * self.mass_unit * self.share[share]
        even = mass_of_shapes([shape])
        return even.scaled(mass / even.mass)


def _segments(p: _Proportions) -> list[_Segment]:
    """All 21, parents before children."""
    sides = [("r", -1.0), ("l", 1.0)]
    collars = [_collar(p, letter, side) for letter, side in sides]
    arms = [segment for letter, side in sides for segment in _arm(p, letter, side)]
    legs = [segment for letter, side in sides for segment in _leg(p, letter, side)]
    return [*_trunk(p, collars), *_head(p), *collars, *arms, *legs]


def _trunk(p: _Proportions, collars: list[_Segment]) -> list[_Segment]:
    hip, navel, xiphion, cervicale = (
        np.array([0.0, 0.0, p.length[f"{name}_height"]]) for name in ("hip", "navel", "xiphion", "cervicale")
    )
    crotch = hip - 0.25 * (navel - hip)  # the pelvis reaches below the hip joints
    both = collars[0].solid + collars[1].solid  # added first, so that what is left of the trunk is symmetric to the bit
    upper = p.solid("upper_trunk", cervicale, xiphion) - both
    return [
        _Segment("pelvis", hip, p.solid("lower_trunk", navel, hip), (_box(crotch, navel, p.shape["pelvis"]),)),
        _Segment(
            "lower_torso", navel, p.solid("middle_trunk", xiphion, navel),
            (_box(navel, xiphion, p.shape["lower_torso"]),),
        ),
        _Segment("upper_torso", xiphion, upper, (_box(xiphion, cervicale, p.shape["upper_torso"]),)),
    ]  # fmt: skip


def _head(p: _Proportions) -> list[_Segment]:
    cervicale, base, crown = (
        np.array([0.0, 0.0, z]) for z in (p.length["cervicale_height"], p.length["cranial_base_height"], p.height)
    )
    neck_shape = _limb(cervicale, base, p.shape["neck"])
    neck = p.part("head", "neck", neck_shape)
    radius = p.length["head"] / 2.0
    skull = Shape("sphere", (radius,), Frame((0.0, 0.0, p.height - radius)))
    return [
        _Segment("neck", cervicale, neck, (neck_shape,)),
        _Segment("head", base, p.solid("head", crown, cervicale) - neck, (skull,)),
    ]


def _collar(p: _Proportions, letter: str, side: float) -> _Segment:
    inner = np.array([0.0, side * p.length["clavicle_half_width"], p.length["shoulder_height"]])
    outer = np.array([0.0, side * p.length["shoulder_half_width"], p.length["shoulder_height"]])
    shape = _limb(inner, outer, p.shape["collar"])
    return _Segment(f"collar_{letter}", inner, p.part("upper_trunk", "collar", shape), (shape,))


def _arm(p: _Proportions, letter: str, side: float) -> list[_Segment]:
    shoulder = np.array([0.0, side * p.length["shoulder_half_width"], p.length["shoulder_height"]])
    elbow = shoulder - _offset(z=p.length["upper_arm"])
    wrist = elbow - _offset(z=p.length["forearm"])
    fingertip = wrist - _offset(z=p.length["hand"])
    return [
        _Segment(
            f"upper_arm_{letter}", shoulder, p.solid("upper_arm", shoulder, elbow),
            (_limb(shoulder, elbow, p.shape["upper_arm"]),),
        ),
        _Segment(
            f"forearm_{letter}", elbow, p.solid("forearm", elbow, wrist), (_limb(elbow, wrist, p.shape["forearm"]),)
        ),
        _Segment(
            f"hand_{letter}", wrist, p.solid("hand", wrist, fingertip), (_box(fingertip, wrist, p.shape["hand"]),)
        ),
    ]  # fmt: skip


def _leg(p: _Proportions, letter: str, side: float) -> list[_Segment]:
    hip, knee, ankle = (
        np.array([0.0, side * p.length["hip_half_width"], p.length[f"{name}_height"]])
        for name in ("hip", "knee", "ankle")
    )
    sole = ankle * [1.0, 1.0, 0.0]
    heel = sole - _offset(x=p.length["ankle_from_heel"])
    ball = heel + _offset(x=p.length["ball_from_heel"])
    tip = heel + _offset(x=p.length["foot_length"])
    foot_shape = _slab(heel, ball, p.length["foot_breadth"], p.length["ankle_height"])
    toes_shape = _slab(ball, tip, p.length["foot_breadth"], p.shape["toes_height"])
    middle = _offset(z=p.length["ankle_height"] / 2.0)  # the table does not say how high the centre of mass lies
    toes = p.part("foot", "toes", toes_shape)
    toe_joint = ball + _offset(z=p.shape["toes_height"] / 2.0)
    return [
        _Segment(f"thigh_{letter}", hip, p.solid("thigh", hip, knee), (_limb(hip, knee, p.shape["thigh"]),)),
        _Segment(f"shank_{letter}", knee, p.solid("shank", knee, ankle), (_limb(knee, ankle, p.shape["shank"]),)),
        _Segment(f"foot_{letter}", ankle, p.solid("foot", heel + middle, tip + middle) - toes, (foot_shape,)),
        _Segment(f"toes_{letter}", toe_joint, toes, (toes_shape,)),
    ]


def _offset(x: float = 0.0, z: float = 0.0) -> Array:
    return np.array([x, 0.0, z])


def _limb(start: Array, end: Array, radius: float) -> Shape:
    """A capsule along y or z, rounded ends reaching half a radius beyond both points."""
    length = float(np.linalg.norm(end - start))
    orientation = ALONG_Y if start[1] != end[1] else (1.0, 0.0, 0.0, 0.0)
    size = (float(radius), (length - float(radius)) / 2.0)
    return Shape("capsule", size, Frame(vector((start + end) / 2.0), orientation))


def _box(bottom: Array, top: Array, half: Array) -> Shape:
    size = vector((half[0], half[1], (top - bottom)[2] / 2.0))
    return Shape("box", size, Frame(vector((bottom + top) / 2.0)))


def _slab(back: Array, front: Array, breadth: float, height: float) -> Shape:
    size = vector(((front - back)[0] / 2.0, breadth / 2.0, height / 2.0))
    return Shape("box", size, Frame(vector((back + front) / 2.0 + _offset(z=height / 2.0))))


def _root(pelvis: Array) -> Joint:
    shifts = (Coordinate(f"root_{axis}", float(at), rotational=False) for axis, at in zip("xyz", pelvis, strict=True))
    turns = (Coordinate(f"root_{turn}") for turn in ("roll", "pitch", "yaw"))
    return Joint("root", "free", GROUND, "pelvis", coordinates=(*shifts, *turns))


def _joints(origins: dict[str, Array]) -> list[Joint]:
    joints = []
    for name, kind, parent, child, axes, angles in JOINTS:
        for side in ("r", "l") if "*" in name else ("",):
            parent_name, child_name = parent.replace("*", side), child.replace("*", side)
            joints.append(
                Joint(
                    name=name.replace("*", side),
                    kind=kind,
                    parent=parent_name,
                    child=child_name,
                    parent_frame=Frame(vector(origins[child_name] - origins[parent_name])),
                    axes=tuple(_mirrored(axis) for axis in axes) if side == "l" else axes,
                    coordinates=tuple(_angle(angle, side) for angle in angles),
                )
            )
    return joints


def _mirrored(axis: Vector) -> Vector:
    """The axis about which the left side turns as the right side does about `axis`."""
    return vector((0.0 - axis[0], axis[1], 0.0 - axis[2]))


def _angle(name: str, side: str) -> Coordinate:
    lower, upper = _data()["range"][name]
    return Coordinate(f"{name}_{side}" if side else name, lower=radians(lower), upper=radians(upper))


def _check_settings(mass: float, height: float, sex: str) -> None:
    for name, value, unit, (low, high) in (("mass", mass, "kg", MASS_RANGE), ("height", height, "m", HEIGHT_RANGE)):
        if not (isfinite(value) and low <= value <= high):
            raise SettingsError(f"{name} of the human is {value}, but must be from {low:g} to {high:g} {unit}")
    if sex not in SEXES:
        raise SettingsError(unknown_name("sex", sex, SEXES))


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files("borelli.model") / "data" / "human.toml").read_text(encoding="utf-8"))
