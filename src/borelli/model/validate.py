"""Validation of models: the first problem is reported in one sentence that names the element.

The generators yield sentences, of which only the first is used: a check may rely on the ones before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import combinations, pairwise
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
    Frame,
    Joint,
    Ligament,
    Model,
    Muscle,
    PathPoint,
    PathWrap,
    Shape,
    Softness,
    TransformAxis,
    WrapObject,
    names_by_kind,
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
    _raise_first(_problems(model, sound_masses))
    return model


def check_shape(shape: Shape, where: str) -> None:
    """Raise ModelError for an inconsistent shape; `where` begins the message."""
    _raise_first(_at(where, _shape_problems(shape)))


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


def _raise_first(problems: Iterator[str]) -> None:
    if problem := next(problems, None):
        raise ModelError(problem)


def _at(where: str, problems: Iterable[str]) -> Iterator[str]:
    return (f"{where}: {problem}" for problem in problems)


def _problems(model: Model, sound_masses: bool) -> Iterator[str]:
    if not model.name:
        yield "The model has no name. Give it one."
    yield from _name_problems(model)
    _refuse_bad_numbers(model)
    for body in model.bodies:
        yield from _at(f"Body {body.name!r}", _body_problems(body, sound_masses))
    for index, shape in enumerate(model.ground):
        yield from _at(f"Ground: Shape {index}", _shape_problems(shape))
    bodies = dict.fromkeys(sorted({body.name for body in model.bodies} | {GROUND}))
    coordinates = dict.fromkeys(coordinate.name for coordinate in model.coordinates)
    for joint in model.joints:
        yield from _joint_problems(joint, bodies)
    yield from _tree_problems(model.joints)
    yield from _coupling_problems(model, coordinates)
    for marker in model.markers:
        yield from _at(f"Marker {marker.name!r}", _unknown("body", marker.body, bodies))
    for wrap in model.wrap_objects:
        yield from _at(f"Wrap object {wrap.name!r}", _wrap_object_problems(wrap, bodies))
    wraps = dict.fromkeys(wrap.name for wrap in model.wrap_objects)
    for muscle in model.muscles:
        yield from _at(f"Muscle {muscle.name!r}", _muscle_problems(muscle, bodies, coordinates, wraps))
    for ligament in model.ligaments:
        yield from _at(f"Ligament {ligament.name!r}", _ligament_problems(ligament, bodies, coordinates, wraps))


def _name_problems(model: Model) -> Iterator[str]:
    for kind, names in names_by_kind(model).items():
        for name, count in Counter(names).items():
            if not name:
                yield f"A {kind} has no name. Give it one."
            if len(name) > MAX_NAME_LENGTH:
                found = f"The name of a {kind}, {name[:40]!r}..., has {len(name)} characters"
                yield f"{found} (at most {MAX_NAME_LENGTH}). Shorten it."
            if count > 1:
                yield f"{kind.capitalize()} {name!r}: The name is used {count} times. Give each {kind} its own name."
    if any(body.name == GROUND for body in model.bodies):
        yield f"Body {GROUND!r}: This name is reserved for the world. Rename the body."


def _body_problems(body: Body, sound_masses: bool) -> Iterator[str]:
    if body.mass < 0.0 or (sound_masses and body.mass == 0.0):
        yield f"Mass is {body.mass} kg. It must {'be positive' if sound_masses else 'not be negative'}."
    inertia = np.array(body.inertia, dtype=float)
    if inertia.shape != (3, 3):
        yield f"Inertia has shape {inertia.shape}. It must be 3 by 3."
    if np.abs(inertia - inertia.T).max() > INERTIA_TOLERANCE * abs(np.trace(inertia)):
        yield f"Inertia {body.inertia} is not symmetric. Make the products of inertia equal."
    if sound_masses and (problem := inertia_problem(inertia)):
        yield problem
    yield from _frame_problems(body.frame)
    for index, shape in enumerate(body.shapes):
        if shape.kind == "plane":
            yield f"Shape {index} is a plane, which only the ground can have. Use a box."
        yield from _at(f"Shape {index}", _shape_problems(shape))


def _shape_problems(shape: Shape) -> Iterator[str]:
    yield from _size_problems(shape, SHAPE_KINDS)
    if not shape.density > 0.0:
        yield f"Density is {shape.density} kg/m^3. It must be positive."
    if shape.kind == "mesh":
        vertices = np.array(shape.vertices, dtype=float).reshape(-1, 3)
        if len(vertices) < 4 or np.linalg.matrix_rank(vertices - vertices.mean(axis=0), tol=1e-9) < 3:
            yield f"The {len(vertices)} vertices of a mesh span no volume. Give four or more that do."
    elif shape.vertices:
        yield f"A {shape.kind} has {len(shape.vertices)} vertices. Use kind 'mesh', or remove them."
    yield from _frame_problems(shape.frame)
    yield from _negative(shape.surface, "friction", "rolling_friction")
    yield from _not_fraction(shape.surface, "restitution")
    yield from _softness_problems(shape.surface.softness)


def _size_problems(element: Shape | WrapObject, kinds: Mapping[str, int]) -> Iterator[str]:
    yield from _unknown("kind", element.kind, kinds)
    if len(element.size) != kinds[element.kind]:
        yield f"A {element.kind} has {kinds[element.kind]} sizes (found {len(element.size)})."
    if any(size <= 0.0 for size in element.size):
        yield f"Sizes are {element.size} m. All must be positive."


def _frame_problems(frame: Frame, name: str = "frame") -> Iterator[str]:
    length = sqrt(sum(c * c for c in frame.orientation))
    if abs(length - 1.0) > UNIT_TOLERANCE:
        yield f"{name}: Orientation {frame.orientation} has length {length:.6g}. It must be a unit quaternion."


def _softness_problems(softness: Softness, name: str = "softness") -> Iterator[str]:
    yield from _at(name, _negative(softness, "stiffness", "damping"))
    if softness.cfm is not None:
        yield from _at(name, _negative(softness, "cfm"))
    yield from _at(name, _not_fraction(softness, "erp"))
    if softness.cfm is None and softness.stiffness == 0.0 and softness.damping == 0.0:
        yield f"{name}: Stiffness and damping are both zero. Set at least one of them."


def _negative(element: object, *names: str) -> Iterator[str]:
    for name in names:
        if getattr(element, name) < 0.0:
            yield f"{name} is {getattr(element, name)}. It must not be negative."


def _not_fraction(element: object, name: str) -> Iterator[str]:
    if not 0.0 <= getattr(element, name) <= 1.0:
        yield f"{name} is {getattr(element, name)}. It must be from 0 to 1."


def _unknown(kind: str, name: str, known: Collection[str]) -> Iterator[str]:
    if name not in known:
        yield unknown_name(kind, name, known)


def _joint_problems(joint: Joint, bodies: Collection[str]) -> Iterator[str]:
    where = f"Joint {joint.name!r}"
    yield from _at(where, _joint_end_problems(joint, bodies))
    yield from _at(where, _axis_problems(joint))
    yield from _at(where, _coordinate_count_problems(joint))
    for coordinate in joint.coordinates:
        yield from _at(f"Coordinate {coordinate.name!r}", _coordinate_problems(coordinate))
    if joint.kind == "coordinate":
        yield from _at(where, _motion_problems(joint))
    elif joint.motion:
        yield f"{where}: A {joint.kind} joint has no motion. Remove it, or use kind 'coordinate'."


def _joint_end_problems(joint: Joint, bodies: Collection[str]) -> Iterator[str]:
    yield from _unknown("kind", joint.kind, JOINT_KINDS)
    yield from _unknown("body", joint.parent, bodies)
    yield from _unknown("body", joint.child, bodies)
    if joint.parent == joint.child:
        yield f"Parent and child are both {joint.parent!r}. A joint connects two bodies."
    if joint.child == GROUND:
        yield f"The child is {GROUND!r}, which cannot move. Swap parent and child."
    yield from _frame_problems(joint.parent_frame, "parent_frame")
    yield from _frame_problems(joint.child_frame, "child_frame")
    yield from _softness_problems(joint.softness)


def _axis_problems(joint: Joint) -> Iterator[str]:
    count = AXIS_COUNTS[joint.kind]
    if joint.axes and len(joint.axes) != count:
        yield f"A {joint.kind} joint has {count} axes or none (found {len(joint.axes)})."
    for axis in joint.axes:
        yield from _direction_problems(axis)
    for first, second in combinations(map(_unit, joint.axes), 2):
        if np.linalg.norm(np.cross(first, second)) < PARALLEL_TOLERANCE:
            yield f"Two axes of the {joint.kind} joint are parallel. They must be perpendicular."
        if abs(first @ second) > ORTHOGONAL_TOLERANCE:
            angle = np.degrees(np.arccos(np.clip(first @ second, -1.0, 1.0)))
            yield f"Two {joint.kind} axes are {angle:.4g} deg apart. Make them perpendicular."


def _direction_problems(axis: Iterable[float]) -> Iterator[str]:
    vector = np.array(tuple(axis), dtype=float)
    # beyond these its square is infinite or zero
    if vector.shape != (3,) or not 1e-100 < np.abs(vector).max() < 1e100:
        yield f"Axis {tuple(axis)} has no direction. Give three numbers that are not all zero."


def _unit(axis: Iterable[float]) -> np.ndarray:
    vector = np.array(tuple(axis), dtype=float)
    return np.asarray(vector / np.linalg.norm(vector))


def _coordinate_count_problems(joint: Joint) -> Iterator[str]:
    count = JOINT_KINDS[joint.kind]
    if count is not None and len(joint.coordinates) != count:
        yield f"A {joint.kind} joint has {count} coordinates (found {len(joint.coordinates)}). Name each one."
    for coordinate, rotational in zip(joint.coordinates, ROTATIONAL_COORDINATES.get(joint.kind, ()), strict=False):
        if coordinate.rotational != rotational:
            kind = "an angle" if rotational else "a translation"
            yield (
                f"Coordinate {coordinate.name!r} must be {kind} at its index in a {joint.kind} joint. "
                f"Set rotational = {str(rotational).lower()} (translations come before angles)."
            )


def _coordinate_problems(coordinate: Coordinate) -> Iterator[str]:
    lower, upper = coordinate.lower, coordinate.upper
    if lower > upper:
        yield f"The lower joint limit {lower} is above the upper one {upper}. Swap them."
    if lower == inf or upper == -inf:
        yield f"The range of motion from {lower} to {upper} is empty. Correct the joint limits."
    if not lower <= coordinate.default <= upper:
        yield f"Default {coordinate.default} is outside the joint limits {lower} to {upper}. Correct it."
    usual = coordinate.usual_range
    if usual is not None and not usual[0] <= usual[1]:
        yield f"usual_range {usual[0]} to {usual[1]} is reversed. Swap its ends."
    yield from _softness_problems(coordinate.limit_softness, "limit_softness")


def _motion_problems(joint: Joint) -> Iterator[str]:
    if len(joint.motion) != 6:
        yield f"motion has {len(joint.motion)} axes. Give three rotations, then three translations."
    own = [coordinate.name for coordinate in joint.coordinates]
    for index, part in enumerate(joint.motion):
        yield from _at(f"motion {index}", _transform_axis_problems(part, own))
    for kind, parts in (("rotation", joint.motion[:3]), ("translation", joint.motion[3:])):
        for part in parts:
            yield from _direction_problems(part.axis)
        if abs(np.linalg.det([_unit(part.axis) for part in parts])) < PARALLEL_TOLERANCE:
            yield f"The three {kind} axes of the motion lie in one plane. They must span space."
    moving = {part.coordinate for part in joint.motion}
    for name in own:
        if name not in moving:
            yield f"Coordinate {name!r} moves nothing. Use it in the motion, or remove it."


def _transform_axis_problems(part: TransformAxis, known: Collection[str]) -> Iterator[str]:
    yield from _function_problems(part.function)
    if part.coordinate is not None:
        yield from _unknown("coordinate", part.coordinate, known)
    elif not part.function.is_constant:
        yield "The function is not constant and has no coordinate. Name its coordinate."


def _function_problems(function: Function) -> Iterator[str]:
    breaks, pieces = function.breaks, function.coefficients
    if not pieces or len(breaks) != len(pieces) + 1 or not all(pieces):
        yield f"A function has {len(breaks)} breaks and {len(pieces)} pieces. Give one break more than pieces."
    if any(b <= a for a, b in pairwise(breaks)):
        yield f"The breaks of a function do not increase (found {breaks}). Sort them."


def _tree_problems(joints: Iterable[Joint]) -> Iterator[str]:
    inboard: dict[str, Joint] = {}
    for joint in joints:
        if joint.closes_loop:
            continue
        if other := inboard.get(joint.child):
            yield (
                f"Body {joint.child!r} is the child of two joints, {other.name!r} and {joint.name!r}. "
                "Set closes_loop = true on one of them."
            )
        inboard[joint.child] = joint
    if cycle := _cycle({child: joint.parent for child, joint in inboard.items()}):
        bodies = ", ".join(map(repr, cycle))
        yield f"Joints form a closed loop through bodies {bodies}. Set closes_loop = true on one of these joints."


def _coupling_problems(model: Model, coordinates: Collection[str]) -> Iterator[str]:
    source: dict[str, str] = {}
    for coupling in model.couplings:
        where = f"Coupling {coupling.name!r}"
        for name in (coupling.coordinate, coupling.on):
            yield from _at(where, _unknown("coordinate", name, coordinates))
        yield from _at(where, _function_problems(coupling.function))
        yield from _at(where, _softness_problems(coupling.softness))
        if coupling.coordinate in source:
            yield f"{where}: Coordinate {coupling.coordinate!r} already depends on another coupling. Remove one."
        source[coupling.coordinate] = coupling.on
    if cycle := _cycle(source):
        yield f"Couplings form a cycle through coordinates {', '.join(map(repr, cycle))}. Remove one coupling."


def _muscle_problems(
    muscle: Muscle, bodies: Collection[str], coordinates: Collection[str], wraps: Collection[str]
) -> Iterator[str]:
    for name in ("max_isometric_force", "optimal_fiber_length", "max_contraction_velocity"):
        if not getattr(muscle, name) > 0.0:
            yield f"{name} is {getattr(muscle, name)}. It must be positive."
    yield from _negative(muscle, "tendon_slack_length", "activation_time", "deactivation_time", "default_activation")
    if not 0.0 <= muscle.pennation_angle < pi / 2:
        yield f"pennation_angle is {muscle.pennation_angle} rad. It must be from 0 to below pi/2."
    yield from _path_problems(muscle, bodies, coordinates, wraps)
    yield from _pulley_problems(muscle)


def _ligament_problems(
    ligament: Ligament, bodies: Collection[str], coordinates: Collection[str], wraps: Collection[str]
) -> Iterator[str]:
    if not ligament.resting_length > 0.0:
        yield f"resting_length is {ligament.resting_length}. It must be positive."
    yield from _negative(ligament, "force_scale")
    yield from _function_problems(ligament.force_length)
    yield from _path_problems(ligament, bodies, coordinates, wraps)


def _path_problems(
    element: Muscle | Ligament, bodies: Collection[str], coordinates: Collection[str], wraps: Collection[str]
) -> Iterator[str]:
    if len(element.path) < 2:
        yield f"The path has {len(element.path)} points. Give at least an origin and an insertion."
    for point in element.path:
        yield from _path_point_problems(point, bodies, coordinates)
    for wrap in element.wraps:
        yield from _path_wrap_problems(wrap, len(element.path), wraps)
        if wrap.side_point is not None:
            yield from _path_point_problems(wrap.side_point, bodies, coordinates)


def _pulley_problems(muscle: Muscle) -> Iterator[str]:
    if any(not pulley.divisor > 0.0 for pulley in muscle.pulleys):
        yield f"Divisors of pulleys are {[pulley.divisor for pulley in muscle.pulleys]}. All must be positive."
    first = [pulley.first for pulley in muscle.pulleys]
    if any(not 0 <= i < len(muscle.path) for i in first) or any(b <= a for a, b in pairwise(first)):
        yield (
            f"Pulleys begin at points {first}, but the points are numbered 0 to {len(muscle.path) - 1}. "
            "Give increasing indices of path points."
        )


def _path_point_problems(point: PathPoint, bodies: Collection[str], coordinates: Collection[str]) -> Iterator[str]:
    yield from _unknown("body", point.body, bodies)
    where = f"Point {point.name!r}"
    for part in point.motion:
        yield from _direction_problems(part.axis)
        yield from _at(where, _transform_axis_problems(part, coordinates))
    if point.only_within is not None:
        yield from _at(where, _unknown("coordinate", point.only_within.coordinate, coordinates))


def _path_wrap_problems(wrap: PathWrap, points: int, wraps: Collection[str]) -> Iterator[str]:
    yield from _unknown("wrap object", wrap.wrap_object, wraps)
    yield from _unknown("wrap method", wrap.method, WRAP_METHODS)
    last = wrap.last if wrap.last >= 0 else points - 1
    if wrap.last < -1 or not 0 <= wrap.first <= last < points:
        yield (
            f"The wrap over {wrap.wrap_object!r} is from point {wrap.first} to {wrap.last}, "
            f"but the points are numbered 0 to {points - 1}. Correct first and last."
        )


def _wrap_object_problems(wrap: WrapObject, bodies: Collection[str]) -> Iterator[str]:
    yield from _unknown("body", wrap.body, bodies)
    yield from _size_problems(wrap, WRAP_KINDS)
    yield from _unknown("side", wrap.side, WRAP_SIDES)
    yield from _frame_problems(wrap.frame)


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
