"""Joints, constraints, muscles and wrap objects as elements of an .osim file, with names that OpenSim allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from borelli.files.xml import Element, make_element
from borelli.model.formats.osim.frames import xyz_angles
from borelli.model.formats.osim.functions import function_element
from borelli.model.formats.osim.joints import ROTATIONS, TRANSLATIONS, UNLIMITED
from borelli.model.formats.osim.muscles import FIELDS
from borelli.model.formats.parsing import Namer
from borelli.model.functions import Function, constant, linear
from borelli.model.model import (
    GROUND,
    Body,
    Coordinate,
    Coupling,
    Frame,
    Joint,
    Ligament,
    Model,
    Muscle,
    PathPoint,
    PathWrap,
    TransformAxis,
    Vector,
    WrapObject,
    names_by_kind,
)
from borelli.model.transforms import AXES, compose, orientation_from_matrix

ILLEGAL = re.compile(r"[\s/\\*+\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that OpenSim does not allow in names, or XML in text."""
# kind of joint: OpenSim's class, and for each of its coordinates the index in the joint
CLASSES = {
    "fixed": ("WeldJoint", ()),
    "hinge": ("PinJoint", (0,)),
    "slider": ("SliderJoint", (0,)),
    "universal": ("UniversalJoint", (0, 1)),
    "ball": ("GimbalJoint", (0, 1, 2)),  # not BallJoint, whose speeds are not derivatives of its angles
    "planar": ("PlanarJoint", (2, 0, 1)),
}
OPENSIM_AXIS = {"hinge": 2, "slider": 0}
"""Axis of OpenSim's frame used by a joint with one axis."""
COMPLETE_CLASSES = ("Thelen2003Muscle", "Millard2012EquilibriumMuscle", "DeGrooteFregly2016Muscle")
"""Classes that have every property of `FIELDS`."""
KINDS = (*COMPLETE_CLASSES, "Millard2012AccelerationMuscle", "RigidTendonMuscle")
DEFAULT_CLASS = "Millard2012EquilibriumMuscle"
COMPLETE_ONLY = ("activation_time_constant", "deactivation_time_constant", "default_activation")


Value = str | bool | float | Sequence[float]


def properties(**values: Value | None) -> list[Element]:
    """Return properties with text, a boolean or numbers; those that are None are left out."""
    return [make_element(tag, text=_text(value)) for tag, value in values.items() if value is not None]


def _text(value: Value) -> str:
    """Return a value as text, numbers with all their digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(repr(float(number)) for number in np.ravel(np.asarray(value, dtype=float)))


def objects(tag: str, members: Iterable[Element]) -> Element:
    """Return a set of objects."""
    return make_element(tag, make_element("objects", *members), make_element("groups"), name=tag.lower())


def offset_frame(name: str, body_path: str, frame: Frame) -> Element:
    """Return a frame fixed to a body."""
    own = properties(socket_parent=body_path, translation=frame.position, orientation=xyz_angles(frame))
    return make_element("PhysicalOffsetFrame", *own, name=name)


Notes = dict[str, list[str]]
"""Elements concerned, by what cannot be written."""


@dataclass(slots=True)
class Names:
    """Names that OpenSim allows, one for each element of the model."""

    known: dict[tuple[str, str], str]
    joint_of: dict[str, str]
    """Joint of each coordinate."""

    def of(self, kind: str, name: str) -> str:
        """Return the name to write."""
        return self.known[kind, name]

    def body_path(self, name: str) -> str:
        """Return the path of a body, or of the ground."""
        return f"/{GROUND}" if name == GROUND else f"/bodyset/{self.of('body', name)}"

    def coordinate_path(self, name: str) -> str:
        """Return the path of a coordinate."""
        return f"/jointset/{self.of('joint', self.joint_of[name])}/{self.of('coordinate', name)}"


def legal_names(model: Model, notes: Notes) -> Names:
    """Return legal names for all elements of a model; changed names are added to the notes."""
    known = {}
    for kind, names in names_by_kind(model).items():
        namer = Namer()
        for name in names:
            known[kind, name] = legal = namer.unique(ILLEGAL.sub("_", name))
            if legal != name:
                text = f"Names of kind {kind!r} are changed, because OpenSim does not allow them"
                notes.setdefault(text, []).append(f"{name!r} as {legal!r}")
    return Names(known, {c.name: joint.name for joint in model.joints for c in joint.coordinates})


def joint_element(joint: Joint, names: Names) -> Element:
    """Return the element of a joint of the tree."""
    axes_frame = None if joint.kind == "coordinate" else _axes_frame(joint)
    ends = []
    for end, body, frame in (("parent", joint.parent, joint.parent_frame), ("child", joint.child, joint.child_frame)):
        rotated = frame if axes_frame is None or axes_frame == Frame() else compose(frame, axes_frame)
        ends.append(offset_frame(f"{end}_offset", names.body_path(body), rotated))
    kind, order = CLASSES.get(joint.kind, ("CustomJoint", tuple(range(len(joint.coordinates)))))
    motion = joint.motion
    if axes_frame is None and joint.kind != "coordinate":
        kind, order = "CustomJoint", tuple(range(len(joint.coordinates)))
    if kind == "CustomJoint" and joint.kind != "coordinate":
        motion = _custom_motion(joint, AXES if axes_frame is not None else joint.axes)
        order = (*order[-3:], *order[:-3])
    coordinates = [_coordinate_element(joint.coordinates[i], names) for i in order]
    return make_element(
        kind,
        *properties(socket_parent_frame="parent_offset", socket_child_frame="child_offset"),
        make_element("coordinates", *coordinates) if coordinates else None,
        make_element("frames", *ends),
        _transform(joint, motion, names) if motion else None,
        name=names.of("joint", joint.name),
    )


def is_rotational(joint: Joint, coordinate: Coordinate) -> bool:
    """Return whether OpenSim treats a written coordinate as an angle, and reads degrees for it.

    A coordinate of a CustomJoint is one if it is itself the angle about an axis, or its negative.
    """
    if joint.kind != "coordinate":
        return coordinate.rotational
    own = [part.function for part in joint.motion[:3] if part.coordinate == coordinate.name]
    lines = [f.coefficients[0] for f in own if len(f.coefficients) == 1 and not any(f.coefficients[0][2:])]
    return any(len(line) > 1 and abs(line[1]) == 1.0 for line in lines)


def free_joint(body: Body, names: Names) -> Element:
    """Return a free joint for a body without a joint, at the body's pose."""
    name = names.of("body", body.name)
    return make_element(
        "FreeJoint",
        *properties(socket_parent_frame="parent_offset", socket_child_frame=names.body_path(body.name)),
        make_element("coordinates", *(make_element("Coordinate", name=f"free_{name}_coord_{i}") for i in range(6))),
        make_element("frames", offset_frame("parent_offset", f"/{GROUND}", body.frame)),
        name=f"free_{name}",
    )


def loop_element(joint: Joint, names: Names) -> Element | None:
    """Return a joint that closes a loop as a constraint; None if OpenSim has no such constraint."""
    name = names.of("joint", joint.name)
    first, second = names.body_path(joint.parent), names.body_path(joint.child)
    enforced = properties(isEnforced=True)
    if joint.kind == "fixed":
        sockets = properties(socket_frame1="first_offset", socket_frame2="second_offset")
        frame1 = offset_frame("first_offset", first, joint.parent_frame)
        frame2 = offset_frame("second_offset", second, joint.child_frame)
        return make_element("WeldConstraint", *sockets, make_element("frames", frame1, frame2), *enforced, name=name)
    if joint.kind == "ball":
        sockets = properties(socket_body_1=first, socket_body_2=second)
        places = joint.parent_frame.position, joint.child_frame.position
        locations = properties(location_body_1=places[0], location_body_2=places[1])
        return make_element("PointConstraint", *sockets, *locations, *enforced, name=name)
    return None


def coupling_element(coupling: Coupling, names: Names) -> Element:
    """Return the element of a coupling."""
    function = function_element(coupling.function, f"Coupling {coupling.name!r}")
    return make_element(
        "CoordinateCouplerConstraint",
        *properties(isEnforced=True),
        make_element("coupled_coordinates_function", function),
        *properties(
            independent_coordinate_names=names.of("coordinate", coupling.on),
            dependent_coordinate_name=names.of("coordinate", coupling.coordinate),
            scale_factor=1.0,
        ),
        name=names.of("coupling", coupling.name),
    )


def _axes_frame(joint: Joint) -> Frame | None:
    """Return the rotation of both joint frames from the axes of OpenSim's class to the joint's axes.

    None if there is no such rotation, because the axes are left-handed: this requires a CustomJoint.
    """
    axes = [np.array(axis) / np.linalg.norm(axis) for axis in joint.axes]
    if joint.kind == "fixed" or not axes:
        # the default axis is x, while a PinJoint rotates about z
        axes = [np.array(AXES[0])] if joint.kind in OPENSIM_AXIS else []
    if not axes:
        return Frame()
    if joint.kind in OPENSIM_AXIS:
        matrix = _with_axis(axes[0], OPENSIM_AXIS[joint.kind])
    else:
        x, y = axes[:2]
        z = axes[2] if len(axes) > 2 else np.cross(x, y)
        matrix = np.stack([x, y, z], axis=1)
    if np.linalg.det(matrix) < 0.0:
        return None
    if np.array_equal(matrix, np.eye(3)):
        return Frame()
    return Frame(orientation=orientation_from_matrix(matrix))


def _with_axis(axis: np.ndarray, index: int) -> np.ndarray:
    """Return a right-handed frame with one given axis; the identity if that is the axis already."""
    if np.array_equal(axis, np.eye(3)[index]):
        return np.eye(3)
    other = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    other /= np.linalg.norm(other)
    columns = np.zeros((3, 3))
    columns[:, index], columns[:, (index + 1) % 3], columns[:, (index + 2) % 3] = axis, other, np.cross(axis, other)
    return columns


def _custom_motion(joint: Joint, axes: Sequence[Vector]) -> tuple[TransformAxis, ...]:
    *translations, first, second, third = (c.name for c in joint.coordinates)
    rotations = [TransformAxis(axis, linear(1.0), c) for axis, c in zip(axes, (first, second, third), strict=True)]
    if not translations:
        return (*rotations, *(TransformAxis(axis, constant(0.0)) for axis in AXES))
    return (*rotations, *(TransformAxis(axis, linear(1.0), c) for axis, c in zip(axes, translations, strict=True)))


def _transform(joint: Joint, motion: tuple[TransformAxis, ...], names: Names) -> Element:
    axes = []
    for tag, part in zip(ROTATIONS + TRANSLATIONS, motion, strict=True):
        function = function_element(part.function, f"Joint {joint.name!r}")
        function.attributes["name"] = "function"
        coordinate = "" if part.coordinate is None else names.of("coordinate", part.coordinate)
        own = properties(coordinates=coordinate, axis=part.axis)
        axes.append(make_element("TransformAxis", *own, function, name=tag))
    return make_element("SpatialTransform", *axes)


def _coordinate_element(coordinate: Coordinate, names: Names) -> Element:
    clamped = coordinate.lower > -inf or coordinate.upper < inf
    span = (coordinate.lower, coordinate.upper) if clamped else coordinate.usual_range
    limits = None if span is None else [float(np.clip(s, -UNLIMITED, UNLIMITED)) for s in span]
    own = properties(default_value=coordinate.default, range=limits, clamped=clamped, locked=coordinate.locked)
    return make_element("Coordinate", *own, name=names.of("coordinate", coordinate.name))


def muscle_element(muscle: Muscle, names: Names, notes: Notes) -> Element:
    """Return the element of a muscle with its path and parameters."""
    kind = muscle.kind if muscle.kind in KINDS else DEFAULT_CLASS
    if kind != muscle.kind:
        text = f"Muscles of class {muscle.kind or '(none)'} are written as {kind}, without their own parameters"
        notes.setdefault(text, []).append(muscle.name)
    if muscle.pulleys:
        notes.setdefault("Pulleys are not written: branches are in sequence", []).append(muscle.name)
    tags = (tag for tag in FIELDS if kind in COMPLETE_CLASSES or tag not in COMPLETE_ONLY)
    return make_element(
        kind,
        _geometry_path(muscle, names.of("muscle", muscle.name), names, notes),
        *properties(**{tag: getattr(muscle, FIELDS[tag][0]) for tag in tags}),
        *(_parameters(muscle) if kind == muscle.kind else ()),
        name=names.of("muscle", muscle.name),
    )


def ligament_element(ligament: Ligament, names: Names, notes: Notes) -> Element:
    """Return the element of a ligament with its path and force-length function."""
    function = function_element(ligament.force_length, f"Ligament {ligament.name!r}")
    function.attributes["name"] = "force_length_curve"
    name = names.of("ligament", ligament.name)
    return make_element(
        "Ligament",
        _geometry_path(ligament, name, names, notes),
        *properties(resting_length=ligament.resting_length, pcsa_force=ligament.force_scale),
        function,
        name=name,
    )


def _geometry_path(element: Muscle | Ligament, name: str, names: Names, notes: Notes) -> Element:
    points = [_point(point, f"{name}-P{i + 1}", element, names, notes) for i, point in enumerate(element.path)]
    wraps = [_wrap(wrap, i, element, names, notes) for i, wrap in enumerate(element.wraps)]
    return make_element(
        "GeometryPath", objects("PathPointSet", points), objects("PathWrapSet", wraps), name="geometrypath"
    )


def wrap_element(wrap: WrapObject, names: Names) -> Element:
    """Return the element of a wrap object."""
    match wrap.kind:
        case "sphere":
            sizes = properties(radius=wrap.size[0])
        case "cylinder":
            sizes = properties(radius=wrap.size[0], length=2.0 * wrap.size[1])
        case "torus":
            sizes = properties(inner_radius=wrap.size[0], outer_radius=wrap.size[1])
        case _:
            sizes = properties(dimensions=wrap.size)
    angles, side = xyz_angles(wrap.frame), wrap.side.lstrip("+")
    own = properties(active=wrap.active, xyz_body_rotation=angles, translation=wrap.frame.position, quadrant=side)
    return make_element(f"Wrap{wrap.kind.capitalize()}", *own, *sizes, name=names.of("wrap object", wrap.name))


def _parameters(muscle: Muscle) -> list[Element]:
    """Return the muscle's own parameters; those of curves are in nested elements."""
    result: list[Element] = []
    curves: dict[str, Element] = {}
    for key, number in muscle.parameters:
        curve, _, tag = key.rpartition(".")
        is_flag = tag == "appliesForce" or tag.startswith("ignore_")
        (element,) = properties(**{tag: bool(number) if is_flag else number})
        if curve and curve not in curves:
            curves[curve] = make_element(curve)
            result.append(curves[curve])
        (curves[curve].children if curve else result).append(element)
    return result


def _point(point: PathPoint, default: str, muscle: Muscle | Ligament, names: Names, notes: Notes) -> Element:
    name = point.name or default
    frame = properties(socket_parent_frame=names.body_path(point.body))
    functions = _components(point.motion) if point.motion else None
    if functions is not None and point.only_within is None:
        where = f"{type(muscle).__name__} {muscle.name!r}: Point {name!r}"
        sockets, locations = {}, []
        for letter, (function, on) in zip("xyz", functions, strict=True):
            sockets[f"socket_{letter}_coordinate"] = names.coordinate_path(on)
            locations.append(make_element(f"{letter}_location", function_element(function, where)))
        return make_element("MovingPathPoint", *frame, *properties(**sockets), *locations, name=name)
    if point.motion:
        text = "Moving path points that OpenSim cannot represent are written at their default positions"
        notes.setdefault(text, []).append(f"{name} of {muscle.name}")
    location = properties(location=point.position)
    if point.only_within is None:
        return make_element("PathPoint", *frame, *location, name=name)
    span = point.only_within
    limits = max(span.lower, -UNLIMITED), min(span.upper, UNLIMITED)
    condition = properties(socket_coordinate=names.coordinate_path(span.coordinate), range=limits)
    return make_element("ConditionalPathPoint", *frame, *location, *condition, name=name)


def _components(motion: tuple[TransformAxis, ...]) -> list[tuple[Function, str]] | None:
    """Return the functions of the x, y and z coordinates of a moving point.

    None if its translations are not along x, y and z, or depend on several coordinates: OpenSim requires one.
    """
    offsets = [0.0, 0.0, 0.0]
    moving: list[tuple[Function, str] | None] = [None, None, None]
    driver = next((part.coordinate for part in motion if part.coordinate is not None), None)
    for part in motion:
        if part.axis not in AXES or driver is None:
            return None
        axis = AXES.index(part.axis)
        if part.coordinate is None:
            offsets[axis] += part.function(0.0)
        elif moving[axis] is not None or part.coordinate != driver:
            return None
        else:
            moving[axis] = part.function, part.coordinate
    result = []
    for offset, one in zip(offsets, moving, strict=True):
        function, on = one or (constant(0.0), driver or "")
        if offset != 0.0:
            pieces = tuple((piece[0] + offset, *piece[1:]) for piece in function.coefficients)
            function = Function(function.breaks, pieces)
        result.append((function, on))
    return result


def _wrap(wrap: PathWrap, number: int, muscle: Muscle | Ligament, names: Names, notes: Notes) -> Element:
    if wrap.side_point is not None:
        text = "Side points of wraps are not written"
        notes.setdefault(text, []).append(f"{muscle.name} on {wrap.wrap_object}")
    method = "hybrid" if wrap.method == "tendon" else wrap.method
    first = wrap.first + 1 if wrap.first or wrap.last >= 0 else -1
    span = f"{first} {wrap.last + 1 if wrap.last >= 0 else -1}"
    own = properties(wrap_object=names.of("wrap object", wrap.wrap_object), method=method, range=span)
    return make_element("PathWrap", *own, name="pathwrap" if number == 0 else f"pathwrap_{number}")
