"""Joints of a model as joints of MJCF: one hinge or slide for each coordinate, with its name and value.

A joint P J(q) C^-1 (P and C its frames on parent and child) is written as B C J(q) C^-1: the body's pose B = P C^-1,
then rotations and translations about axes in the body's frame. Constant parts of a motion are moved to the frames:
R1 K R3(a) is R1 R3(K a) K. An axis whose function is not its coordinate itself becomes a joint of its own, which
depends on the coordinate by a polynomial, the only function of MJCF: other functions are fitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, pi

import numpy as np

from borelli.model.formats.mjcf.joints import AxisMotion
from borelli.model.functions import Function, polynomial
from borelli.model.kinematics import evaluate
from borelli.model.model import Coordinate, Frame, Joint, Model, Vector
from borelli.model.transforms import (
    AXES,
    Array,
    axis_angle,
    compose,
    inverse,
    orientation_from_matrix,
    orientation_matrix,
    vector,
)

ORDER = 4
"""Highest power of MJCF's polycoef."""
FIT_POINTS = 201
"""Points at which a function is fitted and its error evaluated."""
DEFAULT_RANGE = pi
"""Range [rad or m] on both sides of zero in which a function is fitted where its coordinate has no range."""


@dataclass(frozen=True, slots=True)
class DependentCoordinate:
    """Coordinate given by a polynomial of another; the powers count from zero of both."""

    coordinate: str
    on: str
    powers: tuple[float, ...]


@dataclass(slots=True)
class BodyMotion:
    """Motion of a body: its pose in the parent and its axes, all in the body's frame."""

    pose: Frame
    moves: list[AxisMotion]
    dependents: list[DependentCoordinate] = field(default_factory=list)
    drivers: list[Coordinate] = field(default_factory=list)
    """Coordinates that no axis equals."""
    fit_error: dict[str, float] = field(default_factory=dict)
    """Largest error [rad or m] of a fitted polynomial, by coordinate."""

    def before(self, inner: BodyMotion) -> BodyMotion:
        """Return both motions as one, with `inner` following this one directly."""
        back = inverse(inner.pose)
        rotation = orientation_matrix(back.orientation)
        moves = []
        for move in self.moves:
            anchor = compose(back, Frame(move.anchor)).position
            moves.append(replace(move, anchor=anchor, axis=vector(rotation @ np.array(move.axis))))
        return BodyMotion(
            compose(self.pose, inner.pose),
            moves + inner.moves,
            self.dependents + inner.dependents,
            self.drivers + inner.drivers,
            self.fit_error | inner.fit_error,
        )


@dataclass(frozen=True, slots=True)
class _Axis:
    """Rotation or translation that depends on a coordinate."""

    axis: Array
    rotational: bool
    function: Function | None
    """None: the coordinate itself."""
    coordinate: Coordinate


Ranges = Mapping[str, tuple[float, float]]
"""Ranges of coordinates [rad or m], by name."""


def body_motion(joint: Joint, ranges: Ranges) -> BodyMotion:
    """Return the motion of the child of a joint in the tree."""
    translations, rotations, start, end = _axes(joint)
    parent = compose(joint.parent_frame, Frame(vector(start)))
    child = compose(joint.child_frame, Frame(orientation=orientation_from_matrix(end.T)))
    rotation = orientation_matrix(child.orientation)
    result = BodyMotion(compose(parent, inverse(child)), [])
    moved: set[str] = set()
    for part in (*translations, *rotations):
        sign, offset = _as_coordinate(part.function)
        own = sign != 0.0 and part.coordinate.name not in moved
        axis = vector(rotation @ part.axis * (sign if own else 1.0))
        if own:
            moved.add(part.coordinate.name)
            result.moves.append(AxisMotion(part.coordinate, part.rotational, child.position, axis, offset))
        else:
            _add_dependent(result, part, AxisMotion(part.coordinate, part.rotational, child.position, axis), ranges)
    result.drivers.extend(c for c in joint.coordinates if c.name not in moved)
    return result


def _add_dependent(result: BodyMotion, part: _Axis, move: AxisMotion, ranges: Ranges) -> None:
    assert part.function is not None
    name = f"{part.coordinate.name}_{'turn' if part.rotational else 'shift'}{len(result.dependents) + 1}"
    powers, fit_error = fit_polynomial(part.function, ranges[part.coordinate.name])
    result.moves.append(replace(move, coordinate=Coordinate(name, rotational=part.rotational)))
    result.dependents.append(DependentCoordinate(name, part.coordinate.name, powers))
    if fit_error > 0.0:
        result.fit_error[name] = fit_error


def _axes(joint: Joint) -> tuple[list[_Axis], list[_Axis], Array, Array]:
    """Return variable translations and rotations, and the constant translation before and rotation after them."""
    known = {c.name: c for c in joint.coordinates}
    if joint.kind != "coordinate":
        translations, rotations = _simple_axes(joint)
        return translations, rotations, np.zeros(3), np.eye(3)
    start, constant = np.zeros(3), np.eye(3)
    translations, rotations = [], []
    for part in joint.motion[3:]:
        axis = _unit(part.axis)
        if part.coordinate is None or part.function.is_constant:
            start = start + part.function(0.0) * axis
        else:
            translations.append(_Axis(axis, False, part.function, known[part.coordinate]))
    for part in joint.motion[:3]:
        axis = constant @ _unit(part.axis)
        if part.coordinate is None or part.function.is_constant:
            constant = orientation_matrix(axis_angle(axis, part.function(0.0))) @ constant
        else:
            rotations.append(_Axis(axis, True, part.function, known[part.coordinate]))
    return translations, rotations, start, constant


def _simple_axes(joint: Joint) -> tuple[list[_Axis], list[_Axis]]:
    """Return translations and rotations of a joint whose coordinates move one axis each."""
    axes = [_unit(axis) for axis in joint.axes or AXES]
    displacements = [c for c in joint.coordinates if not c.rotational]
    angles = [c for c in joint.coordinates if c.rotational]
    rotation_axes = [_unit(np.cross(axes[0], axes[1]))] if joint.kind == "planar" else axes
    translations = [_Axis(axis, False, None, c) for axis, c in zip(axes, displacements, strict=False)]
    return translations, [_Axis(axis, True, None, c) for axis, c in zip(rotation_axes, angles, strict=False)]


def _as_coordinate(function: Function | None) -> tuple[float, float]:
    """Return sign s and offset r if the function is s (x - r) everywhere; sign 0 if it is not."""
    if function is None:
        return 1.0, 0.0
    if len(function.coefficients) > 1 or len(function.coefficients[0]) < 2 or any(function.coefficients[0][2:]):
        return 0.0, 0.0
    value, slope = function.coefficients[0][:2]
    if abs(slope) != 1.0:
        return 0.0, 0.0
    return slope, function.breaks[0] - slope * value


def polynomial_powers(function: Function) -> tuple[float, ...] | None:
    """Return the powers of x that equal the function everywhere; None if it is no polynomial of MJCF's order."""
    if len(function.coefficients) == 1 and len(function.coefficients[0]) <= 2:
        value, *slope = function.coefficients[0]
        return value - sum(slope) * function.breaks[0], sum(slope)
    if 0.0 in function.breaks[:-1]:
        powers = function.coefficients[function.breaks.index(0.0)]
        if len(powers) <= ORDER + 1 and polynomial(powers) == function:
            return powers
    return None


def working_ranges(model: Model) -> Ranges:
    """Return the ranges of coordinates: usual range, joint limits, range of the coupling, or `DEFAULT_RANGE`."""
    stated: dict[str, tuple[float, float]] = {}
    for coordinate in model.coordinates:
        span = coordinate.usual_range or (coordinate.lower, coordinate.upper)
        if -inf < span[0] < span[1] < inf:
            stated[coordinate.name] = span
    for coupling in model.couplings:
        if coupling.coordinate not in stated and coupling.on in stated:
            values = evaluate(coupling.function, np.linspace(*stated[coupling.on], FIT_POINTS))[0]
            stated[coupling.coordinate] = float(values.min()), float(values.max())
    return {c.name: stated.get(c.name, (-DEFAULT_RANGE, DEFAULT_RANGE)) for c in model.coordinates}


def fit_polynomial(function: Function, span: tuple[float, float]) -> tuple[tuple[float, ...], float]:
    """Return the powers of x that best fit a function in a range, and the largest error."""
    if (powers := polynomial_powers(function)) is not None:
        return powers, 0.0
    lower, upper = span
    center, half = 0.5 * (lower + upper), max(0.5 * (upper - lower), 1e-6)
    # dense at the ends, where fits are worst
    x = center + half * np.cos(pi * (np.arange(FIT_POINTS) + 0.5) / FIT_POINTS)
    y = evaluate(function, x)[0]
    fit = np.polynomial.Polynomial.fit(x, y, ORDER, domain=[center - half, center + half])
    error = float(np.abs(fit(x) - y).max())
    powers = tuple(float(c) for c in fit.convert().coef)
    return powers + (0.0,) * (2 - len(powers)), error


def shift_polynomial(powers: Sequence[float], x0: float, y0: float) -> tuple[float, ...]:
    """Return powers of x - x0 for y - y0, from powers of x for y."""
    shifted = np.polynomial.Polynomial(powers)(np.polynomial.Polynomial([x0, 1.0])).coef
    padded = np.zeros(ORDER + 1)
    padded[: len(shifted)] = shifted
    padded[0] -= y0
    return tuple(float(c) for c in padded)


def massless_bodies(model: Model) -> set[str]:
    """Return massless bodies between two joints with nothing attached, which MJCF does not need."""
    inboard = {joint.child: joint for joint in model.joints if not joint.closes_loop}
    outboard = Counter(joint.parent for joint in inboard.values())
    attached = {marker.body for marker in model.markers} | {wrap.body for wrap in model.wrap_objects}
    attached |= {point.body for muscle in model.muscles for point in muscle.path}
    attached |= {point.body for ligament in model.ligaments for point in ligament.path}
    attached |= {end for joint in model.joints if joint.closes_loop for end in (joint.parent, joint.child)}
    return {
        body.name
        for body in model.bodies
        if body.mass == 0.0
        and not (body.shapes or body.kinematic or body.name in attached)
        and outboard[body.name] == 1
        and body.name in inboard
        and inboard[body.name].coordinates  # a fixed body can stay: only moving bodies need mass
    }


def _unit(axis: Vector | Array) -> Array:
    return np.asarray(axis, dtype=float) / np.linalg.norm(axis)
