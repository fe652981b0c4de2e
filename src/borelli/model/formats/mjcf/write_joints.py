"""Our joints as those of MJCF: one hinge or slide for each coordinate, called and counted like it.

A joint P J(q) C^-1 (P and C its frames on parent and child) is written as B C J(q) C^-1: the body's place B = P C^-1,
then turns and shifts about axes seen from the body. Still parts of a motion go into the frames: R1 K R3(a) is
R1 R3(K a) K. A part that is not its coordinate itself becomes a joint of its own, held at a polynomial of the
coordinate, which is all MJCF has: other functions are fitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, pi

import numpy as np
from numpy.typing import NDArray

from borelli.model.formats.mjcf.joints import Move
from borelli.model.functions import Function, polynomial
from borelli.model.kinematics import evaluate
from borelli.model.model import Coordinate, Frame, Joint, Model, Vector
from borelli.model.transforms import compose, inverse, orientation_matrix, orientation_from_matrix, vector

ORDER = 4
"""Highest power of MJCF's polycoef."""
FITTED = 201
"""Places at which a function is fitted and its error looked for."""
REACH = pi
"""How far [rad or m] a function is fitted where its coordinate has no range."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Follower:
    """A joint's coordinate held at a polynomial of another; the powers count from zero of both."""

    coordinate: str
    on: str
    powers: tuple[float, ...]


@dataclass(slots=True)
class Carried:
    """How a body is carried: its place in the parent and its moves, all seen from the body."""

    place: Frame
    moves: list[Move]
    followers: list[Follower] = field(default_factory=list)
    drivers: list[Coordinate] = field(default_factory=list)
    """Coordinates that no move is equal to."""
    misfit: dict[str, float] = field(default_factory=dict)
    """How far [rad or m] a fitted polynomial is off, by coordinate."""

    def before(self, inner: Carried) -> Carried:
        """Both as one, `inner` carried by this, with nothing between."""
        back = inverse(inner.place)
        turn = orientation_matrix(back.orientation)
        moves = [
            replace(move, anchor=compose(back, Frame(move.anchor)).position, axis=vector(turn @ np.array(move.axis)))
            for move in self.moves
        ]
        return Carried(
            compose(self.place, inner.place),
            moves + inner.moves,
            self.followers + inner.followers,
            self.drivers + inner.drivers,
            self.misfit | inner.misfit,
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """A turn or shift that follows a coordinate."""

    axis: Array
    turns: bool
    function: Function | None
    """None: the coordinate itself."""
    coordinate: Coordinate


Ranges = Mapping[str, tuple[float, float]]
"""Where coordinates lie [rad or m], by name."""


def carried_by(joint: Joint, ranges: Ranges) -> Carried:
    """The moves of a joint that hangs in the tree."""
    shifts, turns, start, end = _parts(joint)
    parent = compose(joint.parent_frame, Frame(vector(start)))
    child = compose(joint.child_frame, Frame(orientation=orientation_from_matrix(end.T)))
    turn = orientation_matrix(child.orientation)
    result = Carried(compose(parent, inverse(child)), [])
    moved: set[str] = set()
    for part in (*shifts, *turns):
        sign, offset = _as_itself(part.function)
        own = sign != 0.0 and part.coordinate.name not in moved
        axis = vector(turn @ part.axis * (sign if own else 1.0))
        if own:
            moved.add(part.coordinate.name)
            result.moves.append(Move(part.coordinate, part.turns, child.position, axis, offset))
        else:
            _follow(result, part, Move(part.coordinate, part.turns, child.position, axis), ranges)
    result.drivers.extend(c for c in joint.coordinates if c.name not in moved)
    return result


def _follow(result: Carried, part: _Part, move: Move, ranges: Ranges) -> None:
    """Adds a move that is a function of its coordinate."""
    assert part.function is not None
    name = f"{part.coordinate.name}_{'turn' if part.turns else 'shift'}{len(result.followers) + 1}"
    powers, misfit = fitted(part.function, ranges[part.coordinate.name])
    result.moves.append(replace(move, coordinate=Coordinate(name, rotational=part.turns)))
    result.followers.append(Follower(name, part.coordinate.name, powers))
    if misfit > 0.0:
        result.misfit[name] = misfit


def _parts(joint: Joint) -> tuple[list[_Part], list[_Part], Array, Array]:
    """Shifts and turns that follow coordinates; the still shift before them and the still turn after them."""
    known = {c.name: c for c in joint.coordinates}
    if joint.kind != "coordinate":
        shifts, turns = _simple_parts(joint)
        return shifts, turns, np.zeros(3), np.eye(3)
    start, still = np.zeros(3), np.eye(3)
    shifts, turns = [], []
    for part in joint.motion[3:]:
        axis = _unit(part.axis)
        if part.coordinate is None or part.function.is_constant:
            start = start + part.function(0.0) * axis
        else:
            shifts.append(_Part(axis, False, part.function, known[part.coordinate]))
    for part in joint.motion[:3]:
        axis = still @ _unit(part.axis)
        if part.coordinate is None or part.function.is_constant:
            still = _turn(axis, part.function(0.0)) @ still
        else:
            turns.append(_Part(axis, True, part.function, known[part.coordinate]))
    return shifts, turns, start, still


def _simple_parts(joint: Joint) -> tuple[list[_Part], list[_Part]]:
    """Shifts and turns of a joint whose coordinates move one axis each."""
    axes = [_unit(axis) for axis in joint.axes or ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    travels = [c for c in joint.coordinates if not c.rotational]
    angles = [c for c in joint.coordinates if c.rotational]
    turned = [_unit(np.cross(axes[0], axes[1]))] if joint.kind == "planar" else axes
    shifts = [_Part(axis, False, None, c) for axis, c in zip(axes, travels, strict=False)]
    return shifts, [_Part(axis, True, None, c) for axis, c in zip(turned, angles, strict=False)]


def _as_itself(function: Function | None) -> tuple[float, float]:
    """Sign s and offset r if the function is s (x - r) everywhere; sign 0 if it is not."""
    if function is None:
        return 1.0, 0.0
    if len(function.coefficients) > 1 or len(function.coefficients[0]) < 2 or any(function.coefficients[0][2:]):
        return 0.0, 0.0
    value, slope = function.coefficients[0][:2]
    if abs(slope) != 1.0:
        return 0.0, 0.0
    return slope, function.breaks[0] - slope * value


def powers_of(function: Function) -> tuple[float, ...] | None:
    """The powers of x that are the function everywhere, as many as MJCF has; None if it is no such polynomial."""
    if len(function.coefficients) == 1 and len(function.coefficients[0]) <= 2:
        value, *slope = function.coefficients[0]
        return value - sum(slope) * function.breaks[0], sum(slope)
    if 0.0 in function.breaks[:-1]:
        powers = function.coefficients[function.breaks.index(0.0)]
        if len(powers) <= ORDER + 1 and polynomial(powers) == function:
            return powers
    return None


def working_ranges(model: Model) -> Ranges:
    """Where the coordinates lie: between their stops, else as usual, else as coupled, else within `REACH`."""
    stated: dict[str, tuple[float, float]] = {}
    for coordinate in model.coordinates:
        span = coordinate.usual_range or (coordinate.lower, coordinate.upper)
        if -inf < span[0] < span[1] < inf:
            stated[coordinate.name] = span
    for coupling in model.couplings:
        if coupling.coordinate not in stated and coupling.on in stated:
            values = evaluate(coupling.function, np.linspace(*stated[coupling.on], FITTED))[0]
            stated[coupling.coordinate] = float(values.min()), float(values.max())
    return {c.name: stated.get(c.name, (-REACH, REACH)) for c in model.coordinates}


def fitted(function: Function, span: tuple[float, float]) -> tuple[tuple[float, ...], float]:
    """The powers of x nearest to a function between two places, and the largest error left."""
    if (powers := powers_of(function)) is not None:
        return powers, 0.0
    lower, upper = span
    middle, half = 0.5 * (lower + upper), max(0.5 * (upper - lower), 1e-6)
    x = middle + half * np.cos(
        pi * (np.arange(FITTED) + 0.5) / FITTED
    )  # close together at the ends, where fits are worst
    y = evaluate(function, x)[0]
    fit = np.polynomial.Polynomial.fit(x, y, ORDER, domain=[middle - half, middle + half])
    error = float(np.abs(fit(x) - y).max())
    powers = tuple(float(c) for c in fit.convert().coef)
    return powers + (0.0,) * (2 - len(powers)), error


def counted_from(powers: Sequence[float], x0: float, y0: float) -> tuple[float, ...]:
    """Powers of x - x0 for y - y0, from powers of x for y."""
    shifted = np.polynomial.Polynomial(powers)(np.polynomial.Polynomial([x0, 1.0])).coef
    padded = np.zeros(ORDER + 1)
    padded[: len(shifted)] = shifted
    padded[0] -= y0
    return tuple(float(c) for c in padded)


def passed_over(model: Model) -> set[str]:
    """Bodies without mass between two joints, to which nothing is fixed: MJCF does without them."""
    inboard = {joint.child: joint for joint in model.joints if not joint.closes_loop}
    outboard = Counter(joint.parent for joint in inboard.values())
    held = {marker.body for marker in model.markers} | {wrap.body for wrap in model.wrap_objects}
    held |= {point.body for muscle in model.muscles for point in muscle.path}
    held |= {end for joint in model.joints if joint.closes_loop for end in (joint.parent, joint.child)}
    return {
        body.name
        for body in model.bodies
        if body.mass == 0.0
        and not (body.shapes or body.kinematic or body.name in held)
        and outboard[body.name] == 1
        and body.name in inboard
        and inboard[body.name].coordinates  # one that is fixed may stay: only moving bodies need mass
    }


def _unit(axis: Vector | Array) -> Array:
    return np.asarray(axis, dtype=float) / np.linalg.norm(axis)


def _turn(axis: Array, angle: float) -> Array:
    x, y, z = np.sin(0.5 * angle) * axis
    return orientation_matrix((float(np.cos(0.5 * angle)), float(x), float(y), float(z)))
