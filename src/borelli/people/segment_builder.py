"""Segments of a person under construction: in world coordinates of the standing pose, x forward, y left, z up.

The frame of the resulting body is parallel to the world, with its origin at the joint towards the pelvis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import radians
from typing import NamedTuple

import numpy as np

from borelli.model.inertia import MassProperties
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Quaternion, Shape, Vector
from borelli.model.transforms import Array, vector

NOT_X, NOT_Y = (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0)
SIDES = (("r", -1.0), ("l", 1.0))
"""Letter of a side, and the sign of its y."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Body under construction, in world coordinates."""

    name: str
    origin: Array
    solid: MassProperties
    shapes: tuple[Shape, ...]

    def body(self) -> Body:
        """Return the body, stated in its own frame."""
        local = replace(self.solid, center=self.solid.center - self.origin)
        shapes = tuple(
            replace(shape, frame=replace(shape.frame, position=vector(np.array(shape.frame.position) - self.origin)))
            for shape in self.shapes
        )
        return Body(self.name, *local.fields(), shapes, Frame(vector(self.origin)))


class JointRow(NamedTuple):
    """Joint of the midline, or of the right side and its mirror image (`*` stands for the side's letter)."""

    name: str
    kind: str
    parent: str
    child: str
    axes: tuple[Vector, ...]
    angles: tuple[str, ...]


def joints_of(
    rows: Iterable[JointRow], origins: Mapping[str, Array], ranges: Mapping[str, tuple[float, float]]
) -> list[Joint]:
    """Return the joints of the rows, each at its child's origin; `ranges` are ranges of motion [deg] by angle."""
    return [
        Joint(
            name=row.name.replace("*", side),
            kind=row.kind,
            parent=(parent := row.parent.replace("*", side)),
            child=(child := row.child.replace("*", side)),
            parent_frame=Frame(vector(origins[child] - origins[parent])),
            axes=tuple(mirrored(axis) for axis in row.axes) if side == "l" else row.axes,
            coordinates=tuple(_angle(name, side, ranges[name]) for name in row.angles),
        )
        for row in rows
        for side in (("r", "l") if "*" in row.name else ("",))
    ]


def person(
    title: str, segments: Sequence[Segment], rows: Iterable[JointRow], ranges: Mapping[str, tuple[float, float]]
) -> Model:
    """Return a person on level ground from its segments, which begin with the pelvis, and joints."""
    origins = {segment.name: segment.origin for segment in segments}
    bodies = tuple(segment.body() for segment in segments)
    joints = (root_joint(origins["pelvis"]), *joints_of(rows, origins, ranges))
    return Model(title, bodies, joints, ground=(Shape("plane"),))


def _angle(name: str, side: str, limits: tuple[float, float]) -> Coordinate:
    lower, upper = limits
    return Coordinate(f"{name}_{side}" if side else name, lower=radians(lower), upper=radians(upper))


def root_joint(pelvis: Array) -> Joint:
    """Return the free joint of the pelvis."""
    translations = (
        Coordinate(f"root_{axis}", float(at), rotational=False) for axis, at in zip("xyz", pelvis, strict=True)
    )
    rotations = (Coordinate(f"root_{angle_name}") for angle_name in ("roll", "pitch", "yaw"))
    return Joint("root", "free", GROUND, "pelvis", coordinates=(*translations, *rotations))


def mirrored(axis: Vector) -> Vector:
    """Return the axis for the left side that corresponds to `axis` on the right side."""
    return vector((0.0 - axis[0], axis[1], 0.0 - axis[2]))


def offset(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Array:
    """Return a vector [m] from some of its components."""
    return np.array([x, y, z])


def limb(start: Array, end: Array, radius: float) -> Shape:
    """Return a capsule whose rounded ends extend half a radius beyond both points."""
    length = float(np.linalg.norm(end - start))
    return rod(start, end, radius, (length - float(radius)) / 2.0)


def bone(start: Array, end: Array, radius: float) -> Shape:
    """Return a capsule that ends in the points; a ball if their distance is less than its diameter."""
    half = float(np.linalg.norm(end - start)) / 2.0 - float(radius)
    if half <= 0.0:
        return Shape("sphere", (float(radius),), Frame(vector((start + end) / 2.0)))
    return rod(start, end, radius, half)


def rod(start: Array, end: Array, radius: float, half: float) -> Shape:
    """Return a capsule midway between two points, along the line through them."""
    return Shape("capsule", (float(radius), half), Frame(vector((start + end) / 2.0), _from_z(end - start)))


def box(bottom: Array, top: Array, half: Sequence[float] | Array) -> Shape:
    """Return a box as high as the distance between two points, with the given half depth and half breadth."""
    size = vector((half[0], half[1], (top - bottom)[2] / 2.0))
    return Shape("box", size, Frame(vector((bottom + top) / 2.0)))


def slab(back: Array, front: Array, breadth: float, height: float) -> Shape:
    """Return a box that lies on the ground between two points of it."""
    size = vector(((front - back)[0] / 2.0, breadth / 2.0, height / 2.0))
    return Shape("box", size, Frame(vector((back + front) / 2.0 + offset(z=height / 2.0))))


def _from_z(direction: Array) -> Quaternion:
    """Return the smallest rotation of z to a line."""
    x, y, z = direction / np.linalg.norm(direction)
    if z < 0.0 or (z == 0.0 and y < 0.0):
        x, y, z = -x, -y, -z
    scale = float((2.0 * (1.0 + z)) ** -0.5)  # half-angle formulas: (1 + cos, axis sin), normalized
    return float(1.0 + z) * scale, 0.0 - float(y) * scale, 0.0 + float(x) * scale, 0.0
