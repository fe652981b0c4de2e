"""Joints, coordinates and constraints as OpenSim writes them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from borelli.files.xml import Element, make_element
from borelli.model.formats.osim.functions import function_element
from borelli.model.formats.osim.joints import ROTATIONS, TRANSLATIONS, UNLIMITED
from borelli.model.formats.osim.write_common import Names, flag, offset_frame, value, words
from borelli.model.functions import constant, linear
from borelli.model.model import GROUND, Body, Coordinate, Coupling, Frame, Joint, TransformAxis, Vector
from borelli.model.transforms import compose, orientation_from_matrix

AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))

# our kind: OpenSim's class, and for each of its coordinates the place of it among ours
CLASSES = {
    "fixed": ("WeldJoint", ()),
    "hinge": ("PinJoint", (0,)),
    "slider": ("SliderJoint", (0,)),
    "universal": ("UniversalJoint", (0, 1)),
    "ball": ("GimbalJoint", (0, 1, 2)),  # not BallJoint, whose speeds are no derivatives of its angles
    "planar": ("PlanarJoint", (2, 0, 1)),
}
FIRST = {"hinge": 2, "slider": 0}
"""The axis of OpenSim's frame that a joint of one axis uses."""


def joint_element(joint: Joint, names: Names) -> Element:
    """A joint of the tree."""
    turn = None if joint.kind == "coordinate" else _turn(joint)
    name = names.of("joint", joint.name)
    ends = []
    for end, body, frame in (
        ("parent", joint.parent, joint.parent_frame),
        ("child", joint.child, joint.child_frame),
    ):
        turned = frame if turn is None or turn == Frame() else compose(frame, turn)
        ends.append(offset_frame(f"{end}_offset", names.body_path(body), turned))
    kind, order = CLASSES.get(joint.kind, ("CustomJoint", tuple(range(len(joint.coordinates)))))
    motion = joint.motion
    if turn is None and joint.kind != "coordinate":
        kind, order = "CustomJoint", tuple(range(len(joint.coordinates)))
    if kind == "CustomJoint" and joint.kind != "coordinate":
        motion = _motion(joint, AXES if turn is not None else joint.axes)
        order = (*order[-3:], *order[:-3])
    coordinates = [_coordinate(joint.coordinates[i], names) for i in order]
    return make_element(
        kind,
        words("socket_parent_frame", "parent_offset"),
        words("socket_child_frame", "child_offset"),
        make_element("coordinates", *coordinates) if coordinates else None,
        make_element("frames", *ends),
        _transform(joint, motion, names) if motion else None,
        name=name,
    )


def free_joint(body: Body, names: Names) -> Element:
    """A joint that lets a body without one move freely from where it is."""
    name = names.of("body", body.name)
    return make_element(
        "FreeJoint",
        words("socket_parent_frame", "parent_offset"),
        words("socket_child_frame", names.body_path(body.name)),
        make_element("coordinates", *(make_element("Coordinate", name=f"free_{name}_coord_{i}") for i in range(6))),
        make_element("frames", offset_frame("parent_offset", f"/{GROUND}", body.frame)),
        name=f"free_{name}",
    )


def loop_element(joint: Joint, names: Names) -> Element | None:
    """A joint that closes a loop, as a constraint; None if OpenSim has none such."""
    name = names.of("joint", joint.name)
    first, second = names.body_path(joint.parent), names.body_path(joint.child)
    if joint.kind == "fixed":
        return make_element(
            "WeldConstraint",
            words("socket_frame1", "first_offset"),
            words("socket_frame2", "second_offset"),
            make_element(
                "frames",
                offset_frame("first_offset", first, joint.parent_frame),
                offset_frame("second_offset", second, joint.child_frame),
            ),
            flag("isEnforced", True),
            name=name,
        )
    if joint.kind == "ball":
        return make_element(
            "PointConstraint",
            words("socket_body_1", first),
            words("socket_body_2", second),
            value("location_body_1", *joint.parent_frame.position),
            value("location_body_2", *joint.child_frame.position),
            flag("isEnforced", True),
            name=name,
        )
    return None


def coupling_element(coupling: Coupling, names: Names) -> Element:
    """A coordinate held at a function of another."""
    function = function_element(coupling.function, f"coupling {coupling.name!r}")
    return make_element(
        "CoordinateCouplerConstraint",
        flag("isEnforced", True),
        make_element("coupled_coordinates_function", function),
        words("independent_coordinate_names", names.of("coordinate", coupling.on)),
        words("dependent_coordinate_name", names.of("coordinate", coupling.coordinate)),
        value("scale_factor", 1.0),
        name=names.of("coupling", coupling.name),
    )


def _turn(joint: Joint) -> Frame | None:
    """The turn of both joint frames that brings the joint's axes to where OpenSim's class has them.

    None if there is no such turn, because the axes are left-handed: only a CustomJoint will do.
    """
    axes = [np.array(axis) / np.linalg.norm(axis) for axis in joint.axes]
    if joint.kind == "fixed" or not axes:
        # without axes the first of ours is x, while a pin turns about z
        axes = [np.array(AXES[0])] if joint.kind in FIRST else []
    if not axes:
        return Frame()
    if joint.kind in FIRST:
        matrix = _with_axis(axes[0], FIRST[joint.kind])
    else:
        x, y = axes[:2]
        z = axes[2] if len(axes) > 2 else np.cross(x, y)
        matrix = np.stack([x, y, z], axis=1)
    if np.linalg.det(matrix) < 0.0:
        return None
    if np.array_equal(matrix, np.eye(3)):
        return Frame()
    return Frame(orientation=orientation_from_matrix(matrix))


def _with_axis(axis: np.ndarray, place: int) -> np.ndarray:
    """A right-handed frame one of whose axes is given; the identity if that is the axis already."""
    if np.array_equal(axis, np.eye(3)[place]):
        return np.eye(3)
    other = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    other /= np.linalg.norm(other)
    columns = np.zeros((3, 3))
    columns[:, place], columns[:, (place + 1) % 3], columns[:, (place + 2) % 3] = axis, other, np.cross(axis, other)
    return columns


def _motion(joint: Joint, axes: Sequence[Vector]) -> tuple[TransformAxis, ...]:
    """The six parts of a custom joint that moves as a ball or free joint does."""
    *shifts, first, second, third = (c.name for c in joint.coordinates)
    turns = [TransformAxis(axis, linear(1.0), c) for axis, c in zip(axes, (first, second, third), strict=True)]
    if not shifts:
        return (*turns, *(TransformAxis(axis, constant(0.0)) for axis in AXES))
    return (*turns, *(TransformAxis(axis, linear(1.0), c) for axis, c in zip(axes, shifts, strict=True)))


def _transform(joint: Joint, motion: tuple[TransformAxis, ...], names: Names) -> Element:
    axes = []
    for tag, part in zip(ROTATIONS + TRANSLATIONS, motion, strict=True):
        function = function_element(part.function, f"joint {joint.name!r}")
        function.attributes["name"] = "function"
        coordinate = "" if part.coordinate is None else names.of("coordinate", part.coordinate)
        axes.append(
            make_element("TransformAxis", words("coordinates", coordinate), value("axis", *part.axis), function, name=tag)
        )
    return make_element("SpatialTransform", *axes)


def _coordinate(coordinate: Coordinate, names: Names) -> Element:
    clamped = coordinate.lower > -inf or coordinate.upper < inf
    span = (coordinate.lower, coordinate.upper) if clamped else coordinate.usual_range
    return make_element(
        "Coordinate",
        value("default_value", coordinate.default),
        None if span is None else value("range", *(float(np.clip(s, -UNLIMITED, UNLIMITED)) for s in span)),
        flag("clamped", clamped),
        flag("locked", coordinate.locked),
        name=names.of("coordinate", coordinate.name),
    )
