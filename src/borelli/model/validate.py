"""Whether a model holds together; the first fault found is told in one sentence that names the culprit."""

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

LONGEST_NAME = 1000
"""Letters of a name; every sentence about a part repeats its name."""
UNIT_TOLERANCE = 1e-6
"""How far a quaternion's length may be from one: six typed digits pass."""
ORTHOGONAL_TOLERANCE = 1e-6
"""Cosine allowed between axes that must be perpendicular."""
PARALLEL_TOLERANCE = 1e-6
"""Sine below which two axes count as parallel."""
INERTIA_TOLERANCE = 1e-6
"""Share of the trace by which an inertia may be asymmetric or break the triangle inequality: rounding in files."""

AXIS_COUNTS = {"free": 3, "ball": 3, "universal": 2, "hinge": 1, "slider": 1, "planar": 2, "fixed": 0, "coordinate": 0}
ROTATIONAL_COORDINATES = {  # which coordinates of each kind turn, in order
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
    """The model itself, once every part has been found sound.

    Args:
        model: The model to look at.
        sound_masses: False lets through what files of other programs contain and inverse dynamics can live with:
            bodies without mass, and inertias that no mass distribution has. Forward simulation needs sound ones.

    Raises:
        ModelError: naming the first part that is not.
    """
    if not model.name:
        raise ModelError("the model has no name; give it one")
    _check_names(model)
    _refuse_bad_numbers(model)
    for body in model.bodies:
        _check_body(body, sound_masses)
    for index, shape in enumerate(model.ground):
        check_shape(shape, f"ground: shape {index}")
    bodies = {body.name for body in model.bodies} | {GROUND}
    for joint in model.joints:
        _check_joint(joint, bodies)
    _check_tree(model.joints)
    _check_couplings(model)
    for marker in model.markers:
        _known_body(marker.body, bodies, f"marker {marker.name!r}")
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
        raise ModelError(f"body {GROUND!r}: this name is reserved for the world; choose another")


def _check_body(body: Body, sound_masses: bool) -> None:
    where = f"body {body.name!r}"
    if body.mass < 0.0 or (sound_masses and body.mass == 0.0):
        allowed = "be positive" if sound_masses else "not be negative"
        raise ModelError(f"{where}: mass is {body.mass} kg, but must {allowed}")
    inertia = _symmetric_inertia(body, where)
    if sound_masses and (fault := inertia_problem(inertia)):
        raise ModelError(f"{where}: {fault}")
    _check_frame(body.frame, f"{where}: frame")
    for index, shape in enumerate(body.shapes):
        if shape.kind == "plane":
            raise ModelError(f"{where}: shape {index} is a plane, which only the ground can have; use a box")
        check_shape(shape, f"{where}: shape {index}")


def _symmetric_inertia(body: Body, where: str) -> np.ndarray:
    inertia = np.array(body.inertia, dtype=float)
    if inertia.shape != (3, 3):
        raise ModelError(f"{where}: inertia has shape {inertia.shape}, but must be 3 by 3")
    if np.abs(inertia - inertia.T).max() > INERTIA_TOLERANCE * abs(np.trace(inertia)):
        raise ModelError(f"{where}: inertia {body.inertia} is not symmetric; make the products of inertia agree")
    return inertia


def inertia_problem(inertia: np.ndarray) -> str:
    """Why no mass distribution has this inertia [kg m^2], in words; empty if one does."""
    smallest, middle, largest = np.linalg.eigvalsh(inertia)
    if not smallest > 0.0:
        return f"inertia has the principal moment {smallest:g} kg m^2, but all three must be positive"
    if largest > smallest + middle + INERTIA_TOLERANCE * abs(np.trace(inertia)):
        return (
            f"principal moments {smallest:g}, {middle:g}, {largest:g} kg m^2 break the triangle inequality; "
            "no mass distribution has a moment larger than the sum of the other two"
        )
    return ""


def check_shape(shape: Shape, where: str) -> None:
    """Refuses a shape that is unsound by itself; `where` begins the sentence."""
    if shape.kind not in SHAPE_KINDS:
        raise ModelError(f"{where}: {unknown_name('kind', shape.kind, SHAPE_KINDS)}")
    count = SHAPE_KINDS[shape.kind]
    if len(shape.size) != count:
        raise ModelError(f"{where}: a {shape.kind} takes {count} sizes, got {len(shape.size)}")
    if any(size <= 0.0 for size in shape.size):
        raise ModelError(f"{where}: sizes {shape.size} m must all be positive")
    if not shape.density > 0.0:
        raise ModelError(f"{where}: density is {shape.density} kg/m^3, but must be positive")
    _check_vertices(shape, where)
    _check_frame(shape.frame, f"{where}: frame")
    surface = shape.surface
    for name in ("friction", "rolling_friction"):
        if getattr(surface, name) < 0.0:
            raise ModelError(f"{where}: {name} is {getattr(surface, name)}, but must not be negative")
    if not 0.0 <= surface.restitution <= 1.0:
        raise ModelError(f"{where}: restitution is {surface.restitution}, but must be from 0 to 1")
    _check_softness(surface.softness, f"{where}: softness")


def _check_vertices(shape: Shape, where: str) -> None:
    if shape.kind != "mesh":
        if shape.vertices:
            raise ModelError(f"{where}: a {shape.kind} has no vertices, got {len(shape.vertices)}; use kind 'mesh'")
        return
    vertices = np.array(shape.vertices, dtype=float).reshape(-1, 3)
    if len(vertices) < 4 or np.linalg.matrix_rank(vertices - vertices.mean(axis=0), tol=1e-9) < 3:
        raise ModelError(f"{where}: the {len(vertices)} vertices of a mesh must span a volume; give four or more")


def _check_frame(frame: Frame, where: str) -> None:
    length = sqrt(sum(c * c for c in frame.orientation))
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise ModelError(
            f"{where}: orientation {frame.orientation} has length {length:.6g}, but must be a unit quaternion"
        )


def _check_softness(softness: Softness, where: str) -> None:
    for name in ("stiffness", "damping", "cfm"):
        value = getattr(softness, name)
        if value is not None and value < 0.0:
            raise ModelError(f"{where}: {name} is {value}, but must not be negative")
    if not 0.0 <= softness.erp <= 1.0:
        raise ModelError(f"{where}: erp is {softness.erp}, but must be from 0 to 1")
    if softness.cfm is None and softness.stiffness == 0.0 and softness.damping == 0.0:
        raise ModelError(f"{where}: stiffness and damping are both zero, so the row does nothing; give one of them")


def _check_joint(joint: Joint, bodies: set[str]) -> None:
    where = f"joint {joint.name!r}"
    if joint.kind not in JOINT_KINDS:
        raise ModelError(f"{where}: {unknown_name('kind', joint.kind, JOINT_KINDS)}")
    _known_body(joint.parent, bodies, where)
    _known_body(joint.child, bodies, where)
    if joint.parent == joint.child:
        raise ModelError(f"{where}: parent and child are both {joint.parent!r}; a joint needs two bodies")
    if joint.child == GROUND:
        raise ModelError(f"{where}: the child is {GROUND!r}, which cannot move; swap parent and child")
    _check_frame(joint.parent_frame, f"{where}: parent_frame")
    _check_frame(joint.child_frame, f"{where}: child_frame")
    _check_softness(joint.softness, f"{where}: softness")
    _check_axes(joint, where)
    _check_coordinates(joint, where)
    if joint.kind == "coordinate":
        _check_motion(joint, where)
    elif joint.motion:
        raise ModelError(f"{where}: motion belongs to kind 'coordinate', but this is a {joint.kind} joint")


def _check_axes(joint: Joint, where: str) -> None:
    count = AXIS_COUNTS[joint.kind]
    if joint.axes and len(joint.axes) != count:
        raise ModelError(f"{where}: a {joint.kind} joint takes {count} axes or none, got {len(joint.axes)}")
    axes = [_unit(axis, where) for axis in joint.axes]
    for i, first in enumerate(axes):
        for second in axes[i + 1 :]:
            if np.linalg.norm(np.cross(first, second)) < PARALLEL_TOLERANCE:
                raise ModelError(f"{where}: two axes of this {joint.kind} joint are parallel; make them perpendicular")
            if abs(first @ second) > ORTHOGONAL_TOLERANCE:
                angle = np.degrees(np.arccos(np.clip(first @ second, -1.0, 1.0)))
                raise ModelError(
                    f"{where}: two axes of this {joint.kind} joint are {angle:.4g} deg apart, but must be perpendicular"
                )


def _unit(axis: Iterable[float], where: str) -> np.ndarray:
    vector = np.array(tuple(axis), dtype=float)
    # beyond these its square is infinite or zero
    if vector.shape != (3,) or not 1e-100 < np.abs(vector).max() < 1e100:
        raise ModelError(f"{where}: axis {tuple(axis)} is no direction; give three numbers that are not all zero")
    return np.asarray(vector / np.linalg.norm(vector))


def _check_coordinates(joint: Joint, where: str) -> None:
    count = JOINT_KINDS[joint.kind]
    if count is not None and len(joint.coordinates) != count:
        raise ModelError(
            f"{where}: a {joint.kind} joint has {count} coordinates, got {len(joint.coordinates)}; name each one"
        )
    for coordinate, turns in zip(joint.coordinates, ROTATIONAL_COORDINATES.get(joint.kind, ()), strict=False):
        if coordinate.rotational != turns:
            kind = "an angle" if turns else "a shift"
            raise ModelError(
                f"{where}: coordinate {coordinate.name!r} is {kind} by its place in a {joint.kind} joint; "
                f"set rotational = {str(turns).lower()} (shifts come before angles)"
            )
    for coordinate in joint.coordinates:
        _check_coordinate(coordinate)


def _check_coordinate(coordinate: Coordinate) -> None:
    where = f"coordinate {coordinate.name!r}"
    lower, upper = coordinate.lower, coordinate.upper
    if lower > upper:
        raise ModelError(f"{where}: lower stop {lower} lies above upper stop {upper}; swap them")
    if lower == inf or upper == -inf:
        raise ModelError(f"{where}: stops {lower} and {upper} leave no room")
    if not lower <= coordinate.default <= upper:
        raise ModelError(f"{where}: default {coordinate.default} lies outside the stops {lower} to {upper}")
    usual = coordinate.usual_range
    if usual is not None and not usual[0] <= usual[1]:
        raise ModelError(f"{where}: usual range {usual[0]} to {usual[1]} runs backwards; swap its ends")
    _check_softness(coordinate.limit_softness, f"{where}: stop")


def _check_motion(joint: Joint, where: str) -> None:
    if len(joint.motion) != 6:
        raise ModelError(
            f"{where}: motion has {len(joint.motion)} parts, but must have six: three rotations, then three shifts"
        )
    own = [coordinate.name for coordinate in joint.coordinates]
    for index, part in enumerate(joint.motion):
        _check_part(part, own, f"{where}: motion {index}")
    for what, parts in (("rotation", joint.motion[:3]), ("shift", joint.motion[3:])):
        axes = np.array([_unit(part.axis, where) for part in parts])
        if abs(np.linalg.det(axes)) < PARALLEL_TOLERANCE:
            raise ModelError(f"{where}: the three {what} axes of the motion lie in one plane; they must span space")
    moving = {part.coordinate for part in joint.motion}
    for name in own:
        if name not in moving:
            raise ModelError(f"{where}: coordinate {name!r} moves nothing; use it in the motion or remove it")


def _check_part(part: TransformAxis, known: Iterable[str], where: str) -> None:
    _check_function(part.function, where)
    if part.coordinate is None:
        if not part.function.is_constant:
            raise ModelError(f"{where}: its function is not constant; say of which coordinate it is a function")
    elif part.coordinate not in known:
        raise ModelError(f"{where}: {unknown_name('coordinate', part.coordinate, known)}")


def _check_function(function: Function, where: str) -> None:
    breaks, pieces = function.breaks, function.coefficients
    if not pieces or len(breaks) != len(pieces) + 1 or not all(pieces):
        raise ModelError(
            f"{where}: {len(breaks)} breaks and {len(pieces)} pieces; a function has one break more than pieces"
        )
    if any(b <= a for a, b in pairwise(breaks)):
        raise ModelError(f"{where}: the breaks of a function must increase, got {breaks}")


def _check_tree(joints: Iterable[Joint]) -> None:
    inboard: dict[str, Joint] = {}
    for joint in joints:
        if joint.closes_loop:
            continue
        if other := inboard.get(joint.child):
            raise ModelError(
                f"body {joint.child!r}: it is the child of two joints, {other.name!r} and {joint.name!r}; "
                "mark one of them closes_loop"
            )
        inboard[joint.child] = joint
    cycle = _cycle({child: joint.parent for child, joint in inboard.items()})
    if cycle:
        raise ModelError(
            f"bodies {' -> '.join(map(repr, cycle))}: each is the parent of the one before, in a circle; "
            "mark one of their joints closes_loop"
        )


def _check_couplings(model: Model) -> None:
    known = [coordinate.name for coordinate in model.coordinates]
    source: dict[str, str] = {}
    for coupling in model.couplings:
        where = f"coupling {coupling.name!r}"
        _check_coupling(coupling, known, where)
        if coupling.coordinate in source:
            raise ModelError(f"{where}: coordinate {coupling.coordinate!r} is already held by another coupling")
        source[coupling.coordinate] = coupling.on
    if cycle := _cycle(source):
        raise ModelError(f"coordinates {' -> '.join(map(repr, cycle))}: coupled in a circle; remove one coupling")


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
        where = f"muscle {muscle.name!r}"
        _check_muscle(muscle, where)
        for point in muscle.path:
            _check_path_point(point, bodies, coordinates, where)
        for over in muscle.wraps:
            _check_path_wrap(over, len(muscle.path), wraps, where)
            if over.side_point is not None:
                _check_path_point(over.side_point, bodies, coordinates, where)


def _check_muscle(muscle: Muscle, where: str) -> None:
    if len(muscle.path) < 2:
        raise ModelError(f"{where}: its path has {len(muscle.path)} points, but needs an origin and an insertion")
    for name in ("max_isometric_force", "optimal_fiber_length", "max_contraction_velocity"):
        if not getattr(muscle, name) > 0.0:
            raise ModelError(f"{where}: {name} is {getattr(muscle, name)}, but must be positive")
    for name in ("tendon_slack_length", "activation_time", "deactivation_time", "default_activation"):
        if getattr(muscle, name) < 0.0:
            raise ModelError(f"{where}: {name} is {getattr(muscle, name)}, but must not be negative")
    if not 0.0 <= muscle.pennation_angle < pi / 2:
        raise ModelError(f"{where}: pennation_angle is {muscle.pennation_angle} rad, but must be from 0 to below pi/2")


def _check_path_point(point: PathPoint, bodies: set[str], coordinates: Mapping[str, None], where: str) -> None:
    _known_body(point.body, bodies, where)
    for part in point.motion:
        _unit(part.axis, where)
        _check_part(part, coordinates, f"{where}: point {point.name!r}")
    span = point.only_within
    if span is not None and span.coordinate not in coordinates:
        raise ModelError(f"{where}: point {point.name!r}: {unknown_name('coordinate', span.coordinate, coordinates)}")


def _check_path_wrap(wrap: PathWrap, points: int, wraps: Mapping[str, None], where: str) -> None:
    if wrap.wrap_object not in wraps:
        raise ModelError(f"{where}: {unknown_name('wrap object', wrap.wrap_object, wraps)}")
    if wrap.method not in WRAP_METHODS:
        raise ModelError(f"{where}: {unknown_name('wrap method', wrap.method, WRAP_METHODS)}")
    last = wrap.last if wrap.last >= 0 else points - 1
    if wrap.last < -1 or not 0 <= wrap.first <= last < points:
        raise ModelError(
            f"{where}: it wraps over {wrap.wrap_object!r} from point {wrap.first} to {wrap.last}, "
            f"but its points are numbered 0 to {points - 1}"
        )


def _check_wrap_object(wrap: WrapObject, bodies: set[str]) -> None:
    where = f"wrap object {wrap.name!r}"
    _known_body(wrap.body, bodies, where)
    if wrap.kind not in WRAP_KINDS:
        raise ModelError(f"{where}: {unknown_name('kind', wrap.kind, WRAP_KINDS)}")
    if len(wrap.size) != WRAP_KINDS[wrap.kind]:
        raise ModelError(f"{where}: a {wrap.kind} takes {WRAP_KINDS[wrap.kind]} sizes, got {len(wrap.size)}")
    if not all(size > 0.0 for size in wrap.size):
        raise ModelError(f"{where}: sizes {wrap.size} m must all be positive")
    if wrap.side not in WRAP_SIDES:
        raise ModelError(f"{where}: {unknown_name('side', wrap.side, WRAP_SIDES)}")
    _check_frame(wrap.frame, f"{where}: frame")


def _refuse_duplicates(what: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if not name:
            raise ModelError(f"a {what} has no name; give it one")
        if len(name) > LONGEST_NAME:
            what = f"the name of a {what}, {name[:40]!r}..., has {len(name)} letters"
            raise ModelError(f"{what}, but at most {LONGEST_NAME} are allowed; shorten it")
        if count > 1:
            raise ModelError(f"{what} {name!r}: the name is used {count} times; names must differ")


def _known_body(name: str, bodies: set[str], where: str) -> None:
    if name not in bodies:
        raise ModelError(f"{where}: {unknown_name('body', name, sorted(bodies))}")


def _cycle(up: Mapping[str, str]) -> list[str]:
    """The nodes of the first circle met when following `up` from every node, the first one repeated; else empty."""
    done: set[str] = set()
    for start in up:
        path: dict[str, None] = {}
        node: str | None = start
        while node is not None and node not in done and node not in path:
            path[node] = None
            node = up.get(node)
        if node is not None and node in path:
            nodes = list(path)
            return [*nodes[nodes.index(node) :], node]
        done.update(path)
    return []


def _refuse_bad_numbers(element: Any, where: str = "model", may_be_infinite: bool = False) -> None:
    """Refuses NaN anywhere, and infinity except where it has a meaning."""
    if is_dataclass(element):
        name = getattr(element, "name", None)
        here = f"{type(element).__name__.lower()} {name!r}" if name else where
        for item in fields(element):
            allowed = (type(element), item.name) in MAY_BE_INFINITE
            _refuse_bad_numbers(getattr(element, item.name), f"{here}: {item.name}", allowed)
    elif isinstance(element, tuple):
        if all(type(part) is float and isfinite(part) for part in element):
            return
        for part in element:
            _refuse_bad_numbers(part, where, may_be_infinite)
    elif isinstance(element, float) and not isfinite(element) and not (may_be_infinite and element == element):
        raise ModelError(f"{where} is {element}, but must be a {'' if may_be_infinite else 'finite '}number")
