"""Validation of models: the first problem is reported in one sentence that names the element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from math import inf, isfinite, pi, sqrt
from typing import Any

import numpy as np

from borelli.errors import ModelError, unknown_name
from borelli.model.functions import Function
from borelli.model.model import (
    GROUND,
    JOINT_KINDS,
    SHAPE_KINDS,
    WRAP_KINDS,
    WRAP_METHODS,
    WRAP_SIDES,
    Body,
    Coordinate,
    CoordinateRange,
    Coupling,
    Frame,
    Joint,
    Model,
    Muscle,
    PathPoint,
    PathWrap,
    Shape,
    Softness,
    TransformAxis,
    WrapObject,
)

MAX_NAME_LENGTH = 1000
"""Characters of a name; messages about an element repeat its name."""
UNIT_TOLERANCE = 1e-6
"""Largest difference of a quaternion's length from one: six typed digits pass."""
ORTHOGONAL_TOLERANCE = 1e-6
"""Largest cosine between axes that must be perpendicular."""
PARALLEL_TOLERANCE = 1e-6
"""Sine below which two axes count as parallel."""
INERTIA_TOLERANCE = 1e-6
"""Fraction of the trace by which an inertia may be asymmetric or violate the triangle inequality, from rounding."""

AXIS_COUNTS = {"free": 3, "ball": 3, "universal": 2, "hinge": 1, "slider": 1, "planar": 2, "fixed": 0, "coordinate": 0}
ROTATIONAL_COORDINATES = {  # kind of joint: rotational flag of each coordinate
    "free": (False, False, False, True, True, True),
    "ball": (True, True, True),
    "universal": (True, True),
    "hinge": (True,),
    "slider": (False,),
    "planar": (False, False, True),
    "fixed": (),
}
MAY_BE_INFINITE = {
    (Softness, "stiffness"),
    (Coordinate, "lower"),
    (Coordinate, "upper"),
    (Coordinate, "usual_range"),
    (CoordinateRange, "lower"),
    (CoordinateRange, "upper"),
}


def validate(model: Model, *, sound_masses: bool = True) -> Model:
    """Return the model after checking every part of it.

    Args:
        model: Model to check.
        sound_masses: False accepts what files of other programs contain and inverse dynamics allows: massless bodies,
            and inertias that no mass distribution has. Forward simulation requires sound masses.

    Raises:
        ModelError: if a part is inconsistent; the message names the first one.

    Examples:
        >>> from dataclasses import replace
        >>> model = bo.human()
        >>> bo.validate(model) == model
        True
        >>> bo.validate(replace(model, bodies=model.bodies[1:]))
        Traceback (most recent call last):
        borelli.errors.ModelError: ...
    """
    if not model.name:
        raise ModelError("The model has no name. Give it one.")
    _check_names(model)
    _refuse_bad_numbers(model)
    for body in model.bodies:
        _check_body(body, sound_masses)
    for index, shape in enumerate(model.ground):
        check_shape(shape, f"Ground: Shape {index}")
    bodies = {body.name for body in model.bodies} | {GROUND}
    for joint in model.joints:
        _check_joint(joint, bodies)
    _check_tree(model.joints)
    _check_couplings(model)
    for marker in model.markers:
        _known_body(marker.body, bodies, f"Marker {marker.name!r}")
    _check_muscles(model, bodies)
    return model


def _check_names(model: Model) -> None:
    _refuse_duplicates("body", (body.name for body in model.bodies))
    _refuse_duplicates("joint", (joint.name for joint in model.joints))
    _refuse_duplicates("coordinate", (coordinate.name for coordinate in model.coordinates))
    _refuse_duplicates("marker", (marker.name for marker in model.markers))
    _refuse_duplicates("coupling", (coupling.name for coupling in model.couplings))
    _refuse_duplicates("muscle", (muscle.name for muscle in model.muscles))
    _refuse_duplicates("wrap object", (wrap.name for wrap in model.wrap_objects))
    if any(body.name == GROUND for body in model.bodies):
        raise ModelError(f"Body {GROUND!r}: This name is reserved for the world. Rename the body.")


def _check_body(body: Body, sound_masses: bool) -> None:
    where = f"Body {body.name!r}"
    if body.mass < 0.0 or (sound_masses and body.mass == 0.0):
        allowed = "be positive" if sound_masses else "not be negative"
        raise ModelError(f"{where}: Mass is {body.mass} kg. It must {allowed}.")
    inertia = _symmetric_inertia(body, where)
    if sound_masses and (problem := inertia_problem(inertia)):
        raise ModelError(f"{where}: {problem}")
    _check_frame(body.frame, f"{where}: frame")
    for index, shape in enumerate(body.shapes):
        if shape.kind == "plane":
            raise ModelError(f"{where}: Shape {index} is a plane, which only the ground can have. Use a box.")
        check_shape(shape, f"{where}: Shape {index}")


def _symmetric_inertia(body: Body, where: str) -> np.ndarray:
    inertia = np.array(body.inertia, dtype=float)
    if inertia.shape != (3, 3):
        raise ModelError(f"{where}: Inertia has shape {inertia.shape}. It must be 3 by 3.")
    if np.abs(inertia - inertia.T).max() > INERTIA_TOLERANCE * abs(np.trace(inertia)):
        raise ModelError(f"{where}: Inertia {body.inertia} is not symmetric. Make the products of inertia equal.")
    return inertia


def inertia_problem(inertia: np.ndarray) -> str:
    """Return why no mass distribution has this inertia [kg m^2]; empty if one has."""
    smallest, middle, largest = np.linalg.eigvalsh(inertia)
    if not smallest > 0.0:
        return f"A principal moment of inertia is {smallest:g} kg m^2. All three must be positive."
    if largest > smallest + middle + INERTIA_TOLERANCE * abs(np.trace(inertia)):
        return (
            f"Principal moments {smallest:g}, {middle:g}, {largest:g} kg m^2 violate the triangle inequality. "
            "Each must be at most the sum of the other two."
        )
    return ""


def check_shape(shape: Shape, where: str) -> None:
    """Raise ModelError for an inconsistent shape; `where` begins the message."""
    if shape.kind not in SHAPE_KINDS:
        raise ModelError(f"{where}: {unknown_name('kind', shape.kind, SHAPE_KINDS)}")
    count = SHAPE_KINDS[shape.kind]
    if len(shape.size) != count:
        raise ModelError(f"{where}: A {shape.kind} has {count} sizes (found {len(shape.size)}).")
    if any(size <= 0.0 for size in shape.size):
        raise ModelError(f"{where}: Sizes are {shape.size} m. All must be positive.")
    if not shape.density > 0.0:
        raise ModelError(f"{where}: Density is {shape.density} kg/m^3. It must be positive.")
    _check_vertices(shape, where)
    _check_frame(shape.frame, f"{where}: frame")
    surface = shape.surface
    for name in ("friction", "rolling_friction"):
        if getattr(surface, name) < 0.0:
            raise ModelError(f"{where}: {name} is {getattr(surface, name)}. It must not be negative.")
    if not 0.0 <= surface.restitution <= 1.0:
        raise ModelError(f"{where}: restitution is {surface.restitution}. It must be from 0 to 1.")
    _check_softness(surface.softness, f"{where}: softness")


def _check_vertices(shape: Shape, where: str) -> None:
    if shape.kind != "mesh":
        if shape.vertices:
            raise ModelError(
                f"{where}: A {shape.kind} has {len(shape.vertices)} vertices. Use kind 'mesh', or remove them."
            )
        return
    vertices = np.array(shape.vertices, dtype=float).reshape(-1, 3)
    if len(vertices) < 4 or np.linalg.matrix_rank(vertices - vertices.mean(axis=0), tol=1e-9) < 3:
        raise ModelError(f"{where}: The {len(vertices)} vertices of a mesh span no volume. Give four or more that do.")


def _check_frame(frame: Frame, where: str) -> None:
    length = sqrt(sum(c * c for c in frame.orientation))
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise ModelError(
            f"{where}: Orientation {frame.orientation} has length {length:.6g}. It must be a unit quaternion."
        )


def _check_softness(softness: Softness, where: str) -> None:
    for name in ("stiffness", "damping", "cfm"):
        value = getattr(softness, name)
        if value is not None and value < 0.0:
            raise ModelError(f"{where}: {name} is {value}. It must not be negative.")
    if not 0.0 <= softness.erp <= 1.0:
        raise ModelError(f"{where}: erp is {softness.erp}. It must be from 0 to 1.")
    if softness.cfm is None and softness.stiffness == 0.0 and softness.damping == 0.0:
        raise ModelError(f"{where}: Stiffness and damping are both zero. Set at least one of them.")


def _check_joint(joint: Joint, bodies: set[str]) -> None:
    where = f"Joint {joint.name!r}"
    if joint.kind not in JOINT_KINDS:
        raise ModelError(f"{where}: {unknown_name('kind', joint.kind, JOINT_KINDS)}")
    _known_body(joint.parent, bodies, where)
    _known_body(joint.child, bodies, where)
    if joint.parent == joint.child:
        raise ModelError(f"{where}: Parent and child are both {joint.parent!r}. A joint connects two bodies.")
    if joint.child == GROUND:
        raise ModelError(f"{where}: The child is {GROUND!r}, which cannot move. Swap parent and child.")
    _check_frame(joint.parent_frame, f"{where}: parent_frame")
    _check_frame(joint.child_frame, f"{where}: child_frame")
    _check_softness(joint.softness, f"{where}: softness")
    _check_axes(joint, where)
    _check_coordinates(joint, where)
    if joint.kind == "coordinate":
        _check_motion(joint, where)
    elif joint.motion:
        raise ModelError(f"{where}: A {joint.kind} joint has no motion. Remove it, or use kind 'coordinate'.")


def _check_axes(joint: Joint, where: str) -> None:
    count = AXIS_COUNTS[joint.kind]
    if joint.axes and len(joint.axes) != count:
        raise ModelError(f"{where}: A {joint.kind} joint has {count} axes or none (found {len(joint.axes)}).")
    axes = [_unit(axis, where) for axis in joint.axes]
    for i, first in enumerate(axes):
        for second in axes[i + 1 :]:
            if np.linalg.norm(np.cross(first, second)) < PARALLEL_TOLERANCE:
                raise ModelError(
                    f"{where}: Two axes of the {joint.kind} joint are parallel. They must be perpendicular."
                )
            if abs(first @ second) > ORTHOGONAL_TOLERANCE:
                angle = np.degrees(np.arccos(np.clip(first @ second, -1.0, 1.0)))
                raise ModelError(f"{where}: Two {joint.kind} axes are {angle:.4g} deg apart. Make them perpendicular.")


def _unit(axis: Iterable[float], where: str) -> np.ndarray:
    vector = np.array(tuple(axis), dtype=float)
    # beyond these its square is infinite or zero
    if vector.shape != (3,) or not 1e-100 < np.abs(vector).max() < 1e100:
        raise ModelError(f"{where}: Axis {tuple(axis)} has no direction. Give three numbers that are not all zero.")
    return np.asarray(vector / np.linalg.norm(vector))


def _check_coordinates(joint: Joint, where: str) -> None:
    count = JOINT_KINDS[joint.kind]
    if count is not None and len(joint.coordinates) != count:
        raise ModelError(
            f"{where}: A {joint.kind} joint has {count} coordinates (found {len(joint.coordinates)}). Name each one."
        )
    for coordinate, rotational in zip(joint.coordinates, ROTATIONAL_COORDINATES.get(joint.kind, ()), strict=False):
        if coordinate.rotational != rotational:
            kind = "an angle" if rotational else "a translation"
            raise ModelError(
                f"{where}: Coordinate {coordinate.name!r} must be {kind} at its index in a {joint.kind} joint. "
                f"Set rotational = {str(rotational).lower()} (translations come before angles)."
            )
    for coordinate in joint.coordinates:
        _check_coordinate(coordinate)


def _check_coordinate(coordinate: Coordinate) -> None:
    where = f"Coordinate {coordinate.name!r}"
    lower, upper = coordinate.lower, coordinate.upper
    if lower > upper:
        raise ModelError(f"{where}: The lower joint limit {lower} is above the upper one {upper}. Swap them.")
    if lower == inf or upper == -inf:
        raise ModelError(f"{where}: The range of motion from {lower} to {upper} is empty. Correct the joint limits.")
    if not lower <= coordinate.default <= upper:
        raise ModelError(
            f"{where}: Default {coordinate.default} is outside the joint limits {lower} to {upper}. Correct it."
        )
    usual = coordinate.usual_range
    if usual is not None and not usual[0] <= usual[1]:
        raise ModelError(f"{where}: usual_range {usual[0]} to {usual[1]} is reversed. Swap its ends.")
    _check_softness(coordinate.limit_softness, f"{where}: limit_softness")


def _check_motion(joint: Joint, where: str) -> None:
    if len(joint.motion) != 6:
        raise ModelError(
            f"{where}: motion has {len(joint.motion)} axes. Give three rotations, then three translations."
        )
    own = [coordinate.name for coordinate in joint.coordinates]
    for index, part in enumerate(joint.motion):
        _check_axis(part, own, f"{where}: motion {index}")
    for kind, parts in (("rotation", joint.motion[:3]), ("translation", joint.motion[3:])):
        axes = np.array([_unit(part.axis, where) for part in parts])
        if abs(np.linalg.det(axes)) < PARALLEL_TOLERANCE:
            raise ModelError(f"{where}: The three {kind} axes of the motion lie in one plane. They must span space.")
    moving = {part.coordinate for part in joint.motion}
    for name in own:
        if name not in moving:
            raise ModelError(f"{where}: Coordinate {name!r} moves nothing. Use it in the motion, or remove it.")


def _check_axis(part: TransformAxis, known: Iterable[str], where: str) -> None:
    _check_function(part.function, where)
    if part.coordinate is None:
        if not part.function.is_constant:
            raise ModelError(f"{where}: The function is not constant and has no coordinate. Name its coordinate.")
    elif part.coordinate not in known:
        raise ModelError(f"{where}: {unknown_name('coordinate', part.coordinate, known)}")


def _check_function(function: Function, where: str) -> None:
    breaks, pieces = function.breaks, function.coefficients
    if not pieces or len(breaks) != len(pieces) + 1 or not all(pieces):
        raise ModelError(
            f"{where}: A function has {len(breaks)} breaks and {len(pieces)} pieces. Give one break more than pieces."
        )
    if any(b <= a for a, b in pairwise(breaks)):
        raise ModelError(f"{where}: The breaks of a function do not increase (found {breaks}). Sort them.")


def _check_tree(joints: Iterable[Joint]) -> None:
    inboard: dict[str, Joint] = {}
    for joint in joints:
        if joint.closes_loop:
            continue
        if other := inboard.get(joint.child):
            raise ModelError(
                f"Body {joint.child!r} is the child of two joints, {other.name!r} and {joint.name!r}. "
                "Set closes_loop = true on one of them."
            )
        inboard[joint.child] = joint
    cycle = _cycle({child: joint.parent for child, joint in inboard.items()})
    if cycle:
        raise ModelError(
            f"Joints form a closed loop through bodies {', '.join(map(repr, cycle))}. "
            "Set closes_loop = true on one of these joints."
        )


def _check_couplings(model: Model) -> None:
    known = [coordinate.name for coordinate in model.coordinates]
    source: dict[str, str] = {}
    for coupling in model.couplings:
        where = f"Coupling {coupling.name!r}"
        _check_coupling(coupling, known, where)
        if coupling.coordinate in source:
            raise ModelError(
                f"{where}: Coordinate {coupling.coordinate!r} already depends on another coupling. Remove one."
            )
        source[coupling.coordinate] = coupling.on
    if cycle := _cycle(source):
        raise ModelError(
            f"Couplings form a cycle through coordinates {', '.join(map(repr, cycle))}. Remove one coupling."
        )


def _check_coupling(coupling: Coupling, known: list[str], where: str) -> None:
    for name in (coupling.coordinate, coupling.on):
        if name not in known:
            raise ModelError(f"{where}: {unknown_name('coordinate', name, known)}")
    _check_function(coupling.function, where)
    _check_softness(coupling.softness, f"{where}: softness")


def _check_muscles(model: Model, bodies: set[str]) -> None:
    for wrap in model.wrap_objects:
        _check_wrap_object(wrap, bodies)
    wraps = {wrap.name: None for wrap in model.wrap_objects}
    coordinates = {coordinate.name: None for coordinate in model.coordinates}
    for muscle in model.muscles:
        where = f"Muscle {muscle.name!r}"
        _check_muscle(muscle, where)
        for point in muscle.path:
            _check_path_point(point, bodies, coordinates, where)
        for path_wrap in muscle.wraps:
            _check_path_wrap(path_wrap, len(muscle.path), wraps, where)
            if path_wrap.side_point is not None:
                _check_path_point(path_wrap.side_point, bodies, coordinates, where)


def _check_muscle(muscle: Muscle, where: str) -> None:
    if len(muscle.path) < 2:
        raise ModelError(f"{where}: The path has {len(muscle.path)} points. Give at least an origin and an insertion.")
    for name in ("max_isometric_force", "optimal_fiber_length", "max_contraction_velocity"):
        if not getattr(muscle, name) > 0.0:
            raise ModelError(f"{where}: {name} is {getattr(muscle, name)}. It must be positive.")
    for name in ("tendon_slack_length", "activation_time", "deactivation_time", "default_activation"):
        if getattr(muscle, name) < 0.0:
            raise ModelError(f"{where}: {name} is {getattr(muscle, name)}. It must not be negative.")
    if not 0.0 <= muscle.pennation_angle < pi / 2:
        raise ModelError(f"{where}: pennation_angle is {muscle.pennation_angle} rad. It must be from 0 to below pi/2.")


def _check_path_point(point: PathPoint, bodies: set[str], coordinates: Mapping[str, None], where: str) -> None:
    _known_body(point.body, bodies, where)
    for part in point.motion:
        _unit(part.axis, where)
        _check_axis(part, coordinates, f"{where}: Point {point.name!r}")
    span = point.only_within
    if span is not None and span.coordinate not in coordinates:
        raise ModelError(f"{where}: Point {point.name!r}: {unknown_name('coordinate', span.coordinate, coordinates)}")


def _check_path_wrap(wrap: PathWrap, points: int, wraps: Mapping[str, None], where: str) -> None:
    if wrap.wrap_object not in wraps:
        raise ModelError(f"{where}: {unknown_name('wrap object', wrap.wrap_object, wraps)}")
    if wrap.method not in WRAP_METHODS:
        raise ModelError(f"{where}: {unknown_name('wrap method', wrap.method, WRAP_METHODS)}")
    last = wrap.last if wrap.last >= 0 else points - 1
    if wrap.last < -1 or not 0 <= wrap.first <= last < points:
        raise ModelError(
            f"{where}: The wrap over {wrap.wrap_object!r} is from point {wrap.first} to {wrap.last}, "
            f"but the points are numbered 0 to {points - 1}. Correct first and last."
        )


def _check_wrap_object(wrap: WrapObject, bodies: set[str]) -> None:
    where = f"Wrap object {wrap.name!r}"
    _known_body(wrap.body, bodies, where)
    if wrap.kind not in WRAP_KINDS:
        raise ModelError(f"{where}: {unknown_name('kind', wrap.kind, WRAP_KINDS)}")
    if len(wrap.size) != WRAP_KINDS[wrap.kind]:
        raise ModelError(f"{where}: A {wrap.kind} has {WRAP_KINDS[wrap.kind]} sizes (found {len(wrap.size)}).")
    if not all(size > 0.0 for size in wrap.size):
        raise ModelError(f"{where}: Sizes are {wrap.size} m. All must be positive.")
    if wrap.side not in WRAP_SIDES:
        raise ModelError(f"{where}: {unknown_name('side', wrap.side, WRAP_SIDES)}")
    _check_frame(wrap.frame, f"{where}: frame")


def _refuse_duplicates(kind: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if not name:
            raise ModelError(f"A {kind} has no name. Give it one.")
        if len(name) > MAX_NAME_LENGTH:
            found = f"The name of a {kind}, {name[:40]!r}..., has {len(name)} characters"
            raise ModelError(f"{found} (at most {MAX_NAME_LENGTH}). Shorten it.")
        if count > 1:
            raise ModelError(
                f"{kind.capitalize()} {name!r}: The name is used {count} times. Give each {kind} its own name."
            )


def _known_body(name: str, bodies: set[str], where: str) -> None:
    if name not in bodies:
        raise ModelError(f"{where}: {unknown_name('body', name, sorted(bodies))}")


def _cycle(parents: Mapping[str, str]) -> list[str]:
    """Return the first cycle found by following `parents`, with its first node repeated; empty if there is none."""
    done: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        node: str | None = start
        while node is not None and node not in done and node not in path:
            path[node] = None
            node = parents.get(node)
        if node is not None and node in path:
            nodes = list(path)
            return [*nodes[nodes.index(node) :], node]
        done.update(path)
    return []


def _refuse_bad_numbers(element: Any, where: str = "Model", may_be_infinite: bool = False) -> None:
    """Raise ModelError for NaN anywhere, and for infinity except where it has a meaning."""
    if is_dataclass(element):
        name = getattr(element, "name", None)
        here = f"{type(element).__name__} {name!r}" if name else where
        for item in fields(element):
            allowed = (type(element), item.name) in MAY_BE_INFINITE
            _refuse_bad_numbers(getattr(element, item.name), f"{here}: {item.name}", allowed)
    elif isinstance(element, tuple):
        if all(type(part) is float and isfinite(part) for part in element):
            return
        for part in element:
            _refuse_bad_numbers(part, where, may_be_infinite)
    elif isinstance(element, float) and not isfinite(element) and not (may_be_infinite and element == element):
        raise ModelError(f"{where} is {element}. It must be a {'' if may_be_infinite else 'finite '}number.")
