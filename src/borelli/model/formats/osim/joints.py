"""Joints, coordinates and constraints of an .osim file.

Constraints are couplings of coordinates, and weld and point constraints, which become joints that close loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import copysign, inf

import numpy as np

from borelli.errors import unknown_name
from borelli.model.formats.osim.frames import Frames, compose_offset, frame_from_angles
from borelli.model.formats.osim.functions import function_in
from borelli.model.formats.osim.properties import Item
from borelli.model.formats.parsing import LossNote, Namer
from borelli.model.functions import constant, linear
from borelli.model.model import GROUND, Coordinate, Coupling, Frame, Joint, TransformAxis, Vector
from borelli.model.transforms import AXES, X, Y, Z

# OpenSim's class: kind and axes of the joint, and for each coordinate its index in OpenSim's class
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
TRANSLATION_COUNTS = {"slider": 1, "planar": 2, "free": 3}
ROTATIONS = ("rotation1", "rotation2", "rotation3")
TRANSLATIONS = ("translation1", "translation2", "translation3")
UNLIMITED = 99999.9
"""Value that OpenSim users write for a coordinate without limits."""
DEFAULT_RANGE = (-10.0, 10.0)
"""OpenSim's default range, which carries no information."""


@dataclass(slots=True)
class JointReader:
    """Reader of joints in the order of the file, which renames repeated names."""

    model: Item
    frames: Frames
    notes: list[str]
    joints: list[Joint] = field(default_factory=list)
    coordinate_names: dict[str, str] = field(default_factory=dict)
    """Name in the model by path `joint/coordinate`, and by plain name of the first coordinate with that name."""
    _coordinates: Namer = field(default_factory=Namer)
    _joints: Namer = field(default_factory=Namer)

    def read_all(self) -> None:
        """Read every joint of the model."""
        for body in self.frames.bodies:
            holder = body.child("Joint")
            for item in holder.children() if holder is not None else ():
                self._add(item, *self._nested_ends(item, body))
        for item in self.model.listed("JointSet", "components"):
            if item.kind.endswith("Joint"):
                self._add(item, *self._socket_ends(item))

    def add_free(self, body: str) -> None:
        """Add a free joint for a body without a joint, as OpenSim does."""
        name = self.new_joint(f"free_{body}")
        coordinates = tuple(self._unnamed_coordinate(f"{name}_coord_{i}", rotational=i < 3) for i in (3, 4, 5, 0, 1, 2))
        self.joints.append(Joint(name, "free", GROUND, body, axes=(X, Y, Z), coordinates=coordinates))
        self.notes.append(f"Body {body!r} has no joint: it gets a free joint, as in OpenSim.")

    def coordinate(self, owner: Item, stated: str) -> str:
        """Return the model's name of the coordinate that a path or name refers to."""
        words = stated.strip("/").split("/")
        for key in ("/".join(words[-2:]), words[-1]):
            if key in self.coordinate_names:
                return self.coordinate_names[key]
        raise owner.error(unknown_name("coordinate", stated[:80], dict.fromkeys(self.coordinate_names.values())))

    def _nested_ends(self, item: Item, body: Item) -> tuple[tuple[str, Frame], tuple[str, Frame]]:
        """Return parent and child of a joint nested in its child (before 4.0)."""
        parent, _ = self.frames.locate(item, "", item.text("parent_body"))
        parent_frame = frame_from_angles(item.vector("location_in_parent"), item.vector("orientation_in_parent"))
        location, orientation = ("location", "orientation")
        if item.child(location) is None and item.child("location_in_child") is not None:
            location, orientation = "location_in_child", "orientation_in_child"
        ends = (parent, parent_frame), (body.name, frame_from_angles(item.vector(location), item.vector(orientation)))
        return (ends[1], ends[0]) if item.flag("reverse") else ends

    def _socket_ends(self, item: Item) -> tuple[tuple[str, Frame], tuple[str, Frame]]:
        path = f"/jointset/{item.name}"
        parent, child = item.socket("parent_frame"), item.socket("child_frame")
        if not parent or not child:
            raise item.error("The frames it connects are missing. Give socket_parent_frame and socket_child_frame.")
        return self.frames.locate(item, path, parent), self.frames.locate(item, path, child)

    def _add(self, item: Item, parent: tuple[str, Frame], child: tuple[str, Frame]) -> None:
        known = [c for c in item.listed("CoordinateSet", "coordinates") if c.kind == "Coordinate"]
        if len({c.name for c in known}) < len(known):
            names = ", ".join(c.name for c in known)[:80]
            raise item.error(f"Two coordinates have the same name ({names}). Rename one.")
        name = self.new_joint(item.name or f"{child[0]}_joint")
        if item.kind == "CustomJoint":
            joint = self._custom(item, name, known)
        elif item.kind in SIMPLE:
            joint = self._simple(item, name, known)
        else:
            known_classes = f"CustomJoint, {', '.join(SIMPLE)}"
            raise item.error(f"Joints of this class are not supported ({known_classes} are). Use a CustomJoint.")
        self.joints.append(
            replace(joint, parent=parent[0], parent_frame=parent[1], child=child[0], child_frame=child[1])
        )

    def _simple(self, item: Item, name: str, known: Sequence[Item]) -> Joint:
        kind, axes, order = SIMPLE[item.kind]
        if len(known) not in (0, len(order)):
            raise item.error(f"The joint has {len(known)} coordinates. A {item.kind} has {len(order)}.")
        translations = TRANSLATION_COUNTS.get(kind, 0)
        coordinates = tuple(
            self._coordinate(known[k], name, rotational=i >= translations)
            if known
            else self._unnamed_coordinate(f"{name}_coord_{k}", rotational=i >= translations)
            for i, k in enumerate(order)
        )
        return Joint(name, kind, "", "", axes=axes, coordinates=coordinates)

    def _custom(self, item: Item, name: str, known: Sequence[Item]) -> Joint:
        transform = item.child("SpatialTransform")
        parts = {axis.name: axis for axis in transform.children()} if transform is not None else {}
        own = {c.name: c for c in known}
        read = [_transform_axis(parts.get(tag), own, AXES[i % 3]) for i, tag in enumerate(ROTATIONS + TRANSLATIONS)]
        rotating = {part.coordinate for part in read[:3] if not part.function.is_constant}
        coordinates = [self._coordinate(c, name, rotational=c.name in rotating) for c in known]
        renamed: dict[str | None, str] = dict(zip(own, (c.name for c in coordinates), strict=True))
        motion = tuple(replace(part, coordinate=renamed.get(part.coordinate)) for part in read)
        if _is_free(motion, coordinates):
            axes = tuple(part.axis for part in motion[:3])
            return Joint(name, "free", "", "", axes=axes, coordinates=(*coordinates[3:], *coordinates[:3]))
        return Joint(name, "coordinate", "", "", coordinates=tuple(coordinates), motion=motion)

    def _coordinate(self, item: Item, joint: str, rotational: bool) -> Coordinate:
        name = self.new_coordinate(item.name, joint)
        low, high = (n if abs(n) < UNLIMITED else copysign(inf, n) for n in item.pair("range", DEFAULT_RANGE))
        clamped, default = item.flag("clamped"), item.number("default_value", 0.0)
        if low > high:
            self.notes.append(f"Coordinate {name!r}: The range {low:g} to {high:g} is reversed; its ends are swapped.")
            low, high = high, low
        if clamped and not low <= default <= high:
            moved = min(max(default, low), high)
            self.notes.append(f"Coordinate {name!r}: The default {default:g} is outside the range; {moved:g} is used.")
            default = moved
        if item.flag("prescribed"):
            self.notes.append(LossNote(f"Coordinate {name!r}: The prescribed motion in the file is ignored."))
        limits = (low, high) if clamped else (-inf, inf)
        usual = None if clamped or (low, high) in (DEFAULT_RANGE, (-inf, inf)) else (low, high)
        return Coordinate(name, default, *limits, locked=item.flag("locked"), rotational=rotational, usual_range=usual)

    def _unnamed_coordinate(self, name: str, rotational: bool) -> Coordinate:
        return Coordinate(self.new_coordinate(name, name), rotational=rotational)

    def new_coordinate(self, name: str, joint: str) -> str:
        """Return a unique name for a coordinate of a joint."""
        unique = self._coordinates.unique(name)
        if unique != name:
            self.notes.append(
                f"Coordinate {name!r} of joint {joint!r} is renamed {unique!r}: the name is already used."
            )
        self.coordinate_names.setdefault(name, unique)
        self.coordinate_names[f"{joint}/{name}"] = unique
        return unique

    def new_joint(self, name: str) -> str:
        """Return a unique name for a joint."""
        return self._joints.unique(name)


def _is_free(motion: Sequence[TransformAxis], coordinates: Sequence[Coordinate]) -> bool:
    """Return True if six coordinates in order rotate about three perpendicular axes and translate along them."""
    if len(coordinates) != 6:
        return False
    axes = [part.axis for part in motion[:3]] * 2
    free = [TransformAxis(axis, linear(1.0), c.name) for axis, c in zip(axes, coordinates, strict=True)]
    return free == list(motion) and bool(np.allclose(np.array(axes[:3]) @ np.transpose(axes[:3]), np.eye(3), atol=1e-9))


def _transform_axis(item: Item | None, own: dict[str, Item], axis: Vector) -> TransformAxis:
    if item is None:
        return TransformAxis(axis, constant(0.0))
    names = item.text("coordinates").split()
    if len(names) > 1:
        raise item.error(f"The function has {len(names)} coordinates. Functions of one coordinate are supported.")
    if names and names[0] not in own:
        raise item.error(unknown_name("coordinate", names[0], own))
    return TransformAxis(item.vector("axis", axis), function_in(item) or constant(0.0), names[0] if names else None)


def read_constraints(model: Item, joints: JointReader, notes: list[str]) -> tuple[list[Coupling], list[Joint]]:
    """Return couplings of coordinates and joints that close loops; unsupported constraints are noted."""
    couplings: dict[str, Coupling] = {}
    loops: list[Joint] = []
    namer = Namer()
    for item in model.listed("ConstraintSet", "components"):
        if not item.kind.endswith("Constraint"):
            continue
        if not item.flag("isEnforced", not item.flag("isDisabled")):
            notes.append(LossNote(f"{item.title} is disabled in the file and not read."))
        elif item.kind == "CoordinateCouplerConstraint":
            coupling = _coupling(item, joints, notes)
            if coupling is not None and coupling.coordinate in couplings:
                why = f"{coupling.coordinate!r} already depends on another constraint"
                notes.append(LossNote(f"{item.title} is not read: {why}."))
            elif coupling is not None:
                couplings[coupling.coordinate] = replace(coupling, name=namer.unique(coupling.name))
        elif item.kind in ("WeldConstraint", "PointConstraint"):
            loop = _loop(item, joints.frames, notes)
            if loop is not None:
                loops.append(_named_loop(loop, joints.new_joint(loop.name), joints))
        else:
            notes.append(LossNote(f"{item.title} is not read: this class is not supported."))
    return list(couplings.values()), loops


def _coupling(item: Item, joints: JointReader, notes: list[str]) -> Coupling | None:
    independent = item.text("independent_coordinate_names").split()
    if len(independent) != 1:
        several = f"it depends on {len(independent)} coordinates, and only one is supported"
        notes.append(LossNote(f"{item.title} is not read: {several}."))
        return None
    holder = item.child("coupled_coordinates_function")
    function = None if holder is None else function_in(holder)
    if function is None:
        raise item.error("coupled_coordinates_function is missing.")
    dependent = joints.coordinate(item, item.text("dependent_coordinate_name"))
    on, scale = joints.coordinate(item, independent[0]), item.number("scale_factor", 1.0)
    return Coupling(item.name or f"{dependent}_coupling", dependent, on, function.scaled(scale))


def _loop(item: Item, frames: Frames, notes: list[str]) -> Joint | None:
    ends = []
    for side in ("1", "2"):
        stated = item.socket(f"frame{side}") or item.socket(f"body_{side}", f"body_{side}")
        body, frame = frames.locate(item, f"/constraintset/{item.name}", stated)
        offset = frame_from_angles(item.vector(f"location_body_{side}"), item.vector(f"orientation_body_{side}"))
        ends.append((body, compose_offset(frame, offset)))
    (first, first_frame), (second, second_frame) = ends
    if first == second:
        notes.append(LossNote(f"{item.title} is not read: it connects {first!r} to itself."))
        return None
    if second == GROUND:
        first, first_frame, second, second_frame = second, second_frame, first, first_frame
    kind = "fixed" if item.kind == "WeldConstraint" else "ball"
    name, axes = item.name or f"{second}_{kind}", AXES if kind == "ball" else ()
    return Joint(name, kind, first, second, first_frame, second_frame, axes, closes_loop=True)


def _named_loop(loop: Joint, name: str, joints: JointReader) -> Joint:
    """Return the joint with a unique name; the angles of a ball joint, which OpenSim does not have, get names too."""
    letters = "xyz" if loop.kind == "ball" else ""
    coordinates = tuple(Coordinate(joints.new_coordinate(f"{name}_{axis}", name)) for axis in letters)
    return replace(loop, name=name, coordinates=coordinates)
