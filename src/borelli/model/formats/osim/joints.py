"""Joints and coordinates of an .osim file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import copysign, inf

import numpy as np

from borelli.errors import unknown_name
from borelli.model.formats.osim.frames import Frames, turned
from borelli.model.formats.osim.functions import function_in
from borelli.model.formats.osim.properties import Item, Namer
from borelli.model.functions import constant, linear
from borelli.model.model import GROUND, Coordinate, Frame, Joint, TransformAxis, Vector

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

# OpenSim's class: our kind, our axes, and for each of our coordinates the place of it among OpenSim's
SIMPLE: dict[str, tuple[str, tuple[Vector, ...], tuple[int, ...]]] = {
    "WeldJoint": ("fixed", (), ()),
    "PinJoint": ("hinge", (Z,), (0,)),
    "SliderJoint": ("slider", (X,), (0,)),
    "UniversalJoint": ("universal", (X, Y), (0, 1)),
    "BallJoint": ("ball", (X, Y, Z), (0, 1, 2)),
    "GimbalJoint": ("ball", (X, Y, Z), (0, 1, 2)),
    "PlanarJoint": ("planar", (X, Y), (1, 2, 0)),
    "FreeJoint": ("free", (X, Y, Z), (3, 4, 5, 0, 1, 2)),
}
SHIFTS = {"slider": 1, "planar": 2, "free": 3}
REFUSED = {
    "EllipsoidJoint": "its child slides on an ellipsoid, which no joint of borelli does",
    "ScapulothoracicJoint": "its child slides on an ellipsoid, which no joint of borelli does",
}
ROTATIONS = ("rotation1", "rotation2", "rotation3")
TRANSLATIONS = ("translation1", "translation2", "translation3")
AXES = (X, Y, Z, X, Y, Z)
UNLIMITED = 99999.9
"""What OpenSim's users write where a coordinate has no bound."""
DEFAULT_RANGE = (-10.0, 10.0)
"""What OpenSim takes where a file gives no range: it says nothing."""


@dataclass(slots=True)
class JointReader:
    """Reads joints one after another, so that names repeated in the file can be told apart."""

    model: Item
    frames: Frames
    notes: list[str]
    joints: list[Joint] = field(default_factory=list)
    coordinate_names: dict[str, str] = field(default_factory=dict)
    """Path `joint/coordinate`, and plain name of the first so called, to our name."""
    _coordinates: Namer = field(default_factory=Namer)
    _joints: Namer = field(default_factory=Namer)

    def read_all(self) -> None:
        """Reads every joint of the model."""
        for body in self.frames.bodies:
            holder = body.child("Joint")
            for item in holder.children() if holder is not None else ():
                self._add(item, *self._nested_ends(item, body))
        for item in self.model.listed("JointSet", "components"):
            if item.kind.endswith("Joint"):
                self._add(item, *self._socket_ends(item))

    def add_free(self, body: str) -> None:
        """Lets a body that hangs on no joint move freely, as OpenSim does."""
        name = self.new_joint(f"free_{body}")
        coordinates = tuple(self._unnamed_coordinate(f"{name}_coord_{i}", turns=i < 3) for i in (3, 4, 5, 0, 1, 2))
        self.joints.append(Joint(name, "free", GROUND, body, axes=(X, Y, Z), coordinates=coordinates))
        self.notes.append(f"body {body!r} hangs on no joint; it moves freely, as in OpenSim")

    def coordinate(self, owner: Item, stated: str) -> str:
        """Our name of the coordinate that a path or name refers to."""
        words = stated.strip("/").split("/")
        for key in ("/".join(words[-2:]), words[-1]):
            if key in self.coordinate_names:
                return self.coordinate_names[key]
        raise owner.error(unknown_name("coordinate", stated[:80], dict.fromkeys(self.coordinate_names.values())))

    def _nested_ends(self, item: Item, body: Item) -> tuple[tuple[str, Frame], tuple[str, Frame]]:
        """Parent and child of a joint that stands inside its child (before 4.0)."""
        parent, _ = self.frames.locate(item, "", item.text("parent_body"))
        parent_frame = turned(item.vector("location_in_parent"), item.vector("orientation_in_parent"))
        location, orientation = ("location", "orientation")
        if item.child(location) is None and item.child("location_in_child") is not None:
            location, orientation = "location_in_child", "orientation_in_child"
        ends = (parent, parent_frame), (body.name, turned(item.vector(location), item.vector(orientation)))
        return (ends[1], ends[0]) if item.flag("reverse") else ends

    def _socket_ends(self, item: Item) -> tuple[tuple[str, Frame], tuple[str, Frame]]:
        path = f"/jointset/{item.name}"
        parent, child = item.socket("parent_frame"), item.socket("child_frame")
        if not parent or not child:
            raise item.error("it does not say which frames it joins (socket_parent_frame, socket_child_frame)")
        return self.frames.locate(item, path, parent), self.frames.locate(item, path, child)

    def _add(self, item: Item, parent: tuple[str, Frame], child: tuple[str, Frame]) -> None:
        known = [c for c in item.listed("CoordinateSet", "coordinates") if c.kind == "Coordinate"]
        if len({c.name for c in known}) < len(known):
            raise item.error(f"two of its coordinates have the same name: {', '.join(c.name for c in known)[:80]}")
        name = self.new_joint(item.name or f"{child[0]}_joint")
        if item.kind == "CustomJoint":
            joint = self._custom(item, name, known)
        elif item.kind in SIMPLE:
            joint = self._simple(item, name, known)
        else:
            why = REFUSED.get(item.kind, f"known: CustomJoint, {', '.join(SIMPLE)}")
            raise item.error(f"joints of this class are not read: {why}; replace it by a CustomJoint")
        self.joints.append(
            replace(joint, parent=parent[0], parent_frame=parent[1], child=child[0], child_frame=child[1])
        )

    def _simple(self, item: Item, name: str, known: Sequence[Item]) -> Joint:
        kind, axes, order = SIMPLE[item.kind]
        if len(known) not in (0, len(order)):
            raise item.error(f"it has {len(known)} coordinates, but a {item.kind} has {len(order)}")
        shifts = SHIFTS.get(kind, 0)
        coordinates = tuple(
            self._coordinate(known[k], name, turns=i >= shifts)
            if known
            else self._unnamed_coordinate(f"{name}_coord_{k}", turns=i >= shifts)
            for i, k in enumerate(order)
        )
        return Joint(name, kind, "", "", axes=axes, coordinates=coordinates)

    def _custom(self, item: Item, name: str, known: Sequence[Item]) -> Joint:
        transform = item.child("SpatialTransform")
        parts = {axis.name: axis for axis in transform.children()} if transform is not None else {}
        own = {c.name: c for c in known}
        read = [_transform_axis(parts.get(tag), own, AXES[i]) for i, tag in enumerate(ROTATIONS + TRANSLATIONS)]
        turning = {part.coordinate for part in read[:3] if not part.function.is_constant}
        coordinates = [self._coordinate(c, name, turns=c.name in turning) for c in known]
        renamed: dict[str | None, str] = dict(zip(own, (c.name for c in coordinates), strict=True))
        motion = tuple(replace(part, coordinate=renamed.get(part.coordinate)) for part in read)
        if _is_free(motion, coordinates):
            axes = tuple(part.axis for part in motion[:3])
            return Joint(name, "free", "", "", axes=axes, coordinates=(*coordinates[3:], *coordinates[:3]))
        return Joint(name, "coordinate", "", "", coordinates=tuple(coordinates), motion=motion)

    def _coordinate(self, item: Item, joint: str, turns: bool) -> Coordinate:
        name = self.new_coordinate(item.name, joint)
        low, high = (_bound(number) for number in item.pair("range", DEFAULT_RANGE))
        clamped, default = item.flag("clamped"), item.number("default_value", 0.0)
        if low > high:
            self.notes.append(f"coordinate {name!r}: its range {low:g} to {high:g} runs backwards and is turned round")
            low, high = high, low
        if clamped and not low <= default <= high:
            moved = min(max(default, low), high)
            self.notes.append(f"coordinate {name!r}: default {default:g} lies outside its range; {moved:g} is taken")
            default = moved
        if item.flag("prescribed"):
            self.notes.append(f"coordinate {name!r}: the file prescribes its motion in time, which is left out")
        stops = (low, high) if clamped else (-inf, inf)
        usual = None if clamped or (low, high) in (DEFAULT_RANGE, (-inf, inf)) else (low, high)
        return Coordinate(name, default, *stops, locked=item.flag("locked"), rotational=turns, usual_range=usual)

    def _unnamed_coordinate(self, name: str, turns: bool) -> Coordinate:
        return Coordinate(self.new_coordinate(name, name), rotational=turns)

    def new_coordinate(self, name: str, joint: str) -> str:
        """Our name for a coordinate of a joint: its own, unless another coordinate has that."""
        ours = self._coordinates.unique(name)
        if ours != name:
            self.notes.append(f"coordinate {name!r} of joint {joint!r} is called {ours!r}: another has its name")
        self.coordinate_names.setdefault(name, ours)
        self.coordinate_names[f"{joint}/{name}"] = ours
        return ours

    def new_joint(self, name: str) -> str:
        """Our name for a joint: its own, unless another joint has that."""
        return self._joints.unique(name)


def _is_free(motion: Sequence[TransformAxis], coordinates: Sequence[Coordinate]) -> bool:
    """Whether six coordinates in order turn about three axes at right angles and shift along them: a free joint."""
    if len(coordinates) != 6:
        return False
    axes = [part.axis for part in motion[:3]] * 2
    free = [TransformAxis(axis, linear(1.0), c.name) for axis, c in zip(axes, coordinates, strict=True)]
    return free == list(motion) and bool(np.allclose(np.array(axes[:3]) @ np.transpose(axes[:3]), np.eye(3), atol=1e-9))


def _bound(number: float) -> float:
    return number if abs(number) < UNLIMITED else copysign(inf, number)


def _transform_axis(item: Item | None, own: dict[str, Item], axis: Vector) -> TransformAxis:
    """One of the six parts of a custom joint."""
    if item is None:
        return TransformAxis(axis, constant(0.0))
    names = item.text("coordinates").split()
    if len(names) > 1:
        raise item.error(f"it is a function of {len(names)} coordinates, but only functions of one are read")
    if names and names[0] not in own:
        raise item.error(unknown_name("coordinate", names[0], own))
    return TransformAxis(item.vector("axis", axis), function_in(item) or constant(0.0), names[0] if names else None)
