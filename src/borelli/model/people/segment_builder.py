"""Bodies of a person while they are put together: in world coordinates of the standing pose, x forward, y left, z up.

A body's frame is then parallel to the world, with its origin at the joint towards the pelvis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from borelli.model.inertia import MassProperties
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Quaternion, Shape, Vector
from borelli.model.transforms import Array, vector

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
NOT_X, NOT_Y = (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0)
SIDES = (("r", -1.0), ("l", 1.0))
"""Letter of a side, and the sign of its y."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A body to be: all in world coordinates."""

    name: str
    origin: Array
    solid: MassProperties
    shapes: tuple[Shape, ...]

    def body(self) -> Body:
        """The body, stated in its own frame."""
        local = replace(self.solid, center=self.solid.center - self.origin)
        shapes = tuple(
            replace(shape, frame=replace(shape.frame, position=vector(np.array(shape.frame.position) - self.origin)))
            for shape in self.shapes
        )
        return Body(self.name, *local.fields(), shapes, Frame(vector(self.origin)))


class JointRow(NamedTuple):
    """A joint of the midline, or of the right side and its mirror image (`*` stands for the side's letter)."""

    name: str
    kind: str
    parent: str
    child: str
    axes: tuple[Vector, ...]
    angles: tuple[str, ...]


def joints_of(
    rows: Iterable[JointRow], origins: Mapping[str, Array], angle: Callable[[str, str], Coordinate]
) -> list[Joint]:
    """The joints of the rows, each at its child's origin; `angle` makes a coordinate from its name and its side."""
    return [
        Joint(
            name=row.name.replace("*", side),
            kind=row.kind,
            parent=(parent := row.parent.replace("*", side)),
            child=(child := row.child.replace("*", side)),
            parent_frame=Frame(vector(origins[child] - origins[parent])),
            axes=tuple(mirrored(axis) for axis in row.axes) if side == "l" else row.axes,
            coordinates=tuple(angle(name, side) for name in row.angles),
        )
        for row in rows
        for side in (("r", "l") if "*" in row.name else ("",))
    ]


def root_joint(pelvis: Array) -> Joint:
    """What leaves the pelvis free."""
    shifts = (Coordinate(f"root_{axis}", float(at), rotational=False) for axis, at in zip("xyz", pelvis, strict=True))
    turns = (Coordinate(f"root_{turn}") for turn in ("roll", "pitch", "yaw"))
    return Joint("root", "free", GROUND, "pelvis", coordinates=(*shifts, *turns))


def mirrored(axis: Vector) -> Vector:
    """The axis about which the left side turns as the right side does about `axis`."""
    return vector((0.0 - axis[0], axis[1], 0.0 - axis[2]))


def offset(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Array:
    """A vector [m] of which only some parts are named."""
    return np.array([x, y, z])


def limb(start: Array, end: Array, radius: float) -> Shape:
    """A capsule whose rounded ends reach half a radius beyond both points."""
    length = float(np.linalg.norm(end - start))
    return rod(start, end, radius, (length - float(radius)) / 2.0)


def bone(start: Array, end: Array, radius: float) -> Shape:
    """A capsule that ends in the points; a ball where they are nearer to each other than it is thick."""
    half = float(np.linalg.norm(end - start)) / 2.0 - float(radius)
    if half <= 0.0:
        return Shape("sphere", (float(radius),), Frame(vector((start + end) / 2.0)))
    return rod(start, end, radius, half)


def rod(start: Array, end: Array, radius: float, half: float) -> Shape:
    """A capsule midway between two points, along the line through them."""
    return Shape("capsule", (float(radius), half), Frame(vector((start + end) / 2.0), _from_z(end - start)))


def box(bottom: Array, top: Array, half: Sequence[float] | Array) -> Shape:
    """A box as high as the way between two points, and as deep and broad as the halves say."""
    size = vector((half[0], half[1], (top - bottom)[2] / 2.0))
    return Shape("box", size, Frame(vector((bottom + top) / 2.0)))


def slab(back: Array, front: Array, breadth: float, height: float) -> Shape:
    """A box that lies on the ground between two points of it."""
    size = vector(((front - back)[0] / 2.0, breadth / 2.0, height / 2.0))
    return Shape("box", size, Frame(vector((back + front) / 2.0 + offset(z=height / 2.0))))


def _from_z(direction: Array) -> Quaternion:
    """A turn that lays z along a line; of the two ways round, the one that turns less."""
    x, y, z = direction / np.linalg.norm(direction)
    if z < 0.0 or (z == 0.0 and y < 0.0):
        x, y, z = -x, -y, -z
    part = float((2.0 * (1.0 + z)) ** -0.5)  # half-angle formulas: (1 + cos, axis sin) made unit
    return float(1.0 + z) * part, 0.0 - float(y) * part, 0.0 + float(x) * part, 0.0
