"""Where the bodies are, and what force moves them so, for many sets of coordinates at once.

Plain numpy: no kernels to compile, one pass over the joints whatever the number of frames. Every joint is read as up to
three shifts t = sum b_i s_i in the parent's joint frame and up to three turns R = R1(f1) R2(f2) R3(f3), each about an
axis carried by those before it; s_i and f_i are functions of one coordinate each. With A_i the axis of turn i as the
turns before it have left it, the child's frame has, in the parent's,

    spin  w = sum A_i f_i'          its change  sum A_i f_i'' + sum (sum_{k<i} A_k f_k') x A_i f_i'

Joints that close loops are not followed, couplings only where `coupled` is asked; a body that hangs on no joint stays
where its frame says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from math import hypot

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.functions import Function
from borelli.model.model import GROUND, Frame, Joint, Model, Vector
from borelli.model.model_cache import cached_per_model
from borelli.model.transforms import orientation_matrix, orientation_from_matrix, vector

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """One turn about, or shift along, an axis."""

    axis: Array
    function: Function | None
    """None: the coordinate itself."""
    column: int
    """Of the coordinate; -1: none, the function is constant."""

    def values(self, coordinates: Array) -> tuple[Array, Array, Array]:
        """Value, slope and curvature of the part in every frame."""
        frames = len(coordinates)
        x = coordinates[:, self.column] if self.column >= 0 else np.zeros(frames)
        if self.function is None:
            return x, np.ones(frames), np.zeros(frames)
        value, slope, curvature = evaluate(self.function, x)
        return (value, slope, curvature) if self.column >= 0 else (value, np.zeros(frames), np.zeros(frames))


@dataclass(frozen=True, slots=True)
class Link:
    """A joint of the tree with what it carries."""

    child: int
    parent: int
    """-1: the ground."""
    parent_position: Array
    parent_rotation: Array
    child_position: Array
    child_rotation: Array
    rotations: tuple[Part, ...]
    translations: tuple[Part, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Turns, then shifts."""
        return self.rotations + self.translations


@dataclass(frozen=True, slots=True)
class _Placed:
    """A link in every frame, in world axes; `a` rows are the turns' axes A_i, `b` the shifts'."""

    origin: Array
    """(frames, 3) of the child's joint frame."""
    a: Array
    """(turns, frames, 3)"""
    b: Array
    """(shifts, frames, 3)"""
    slope: Array
    """(parts, frames) turns first."""
    curvature: Array


@dataclass(frozen=True, slots=True)
class _Posed:
    """All bodies and links in every frame."""

    links: tuple[Link, ...]
    placed: tuple[_Placed, ...]
    position: Array
    """(bodies, frames, 3) of the body frames' origins."""
    rotation: Array
    """(bodies, frames, 3, 3)"""


def poses(model: Model, coordinates: ArrayLike) -> tuple[Array, Array]:
    """Positions (frames, bodies, 3) [m] of the body frames' origins and their rotations (frames, bodies, 3, 3).

    Args:
        model: a model that `validate` accepts.
        coordinates: (frames, coordinates) [rad or m] in the order of `model.coordinates`; or one such row.
    """
    posed = _pose(model, _table(model, coordinates, "coordinates"))
    return posed.position.swapaxes(0, 1), posed.rotation.swapaxes(0, 1)


def point_positions(model: Model, coordinates: ArrayLike, bodies: Sequence[str], points: ArrayLike) -> Array:
    """Positions (frames, points, 3) [m] in the world of points fixed to bodies.

    Args:
        model: a model that `validate` accepts.
        coordinates: (frames, coordinates) [rad or m].
        bodies: the body each point is fixed to; `ground` is the world.
        points: (points, 3) [m] in the frames of those bodies.
    """
    posed = _pose(model, _table(model, coordinates, "coordinates"))
    return _world_points(model, posed, bodies, points)[0]


def marker_positions(model: Model, coordinates: ArrayLike) -> Array:
    """Positions (frames, markers, 3) [m] of the model's markers in the world."""
    bodies, points = _markers(model)
    return point_positions(model, coordinates, bodies, points)


def marker_jacobians(model: Model, coordinates: ArrayLike) -> Array:
    """How markers move with coordinates: (frames, markers, 3, coordinates) [m/rad or m/m]."""
    bodies, points = _markers(model)
    posed = _pose(model, _table(model, coordinates, "coordinates"))
    places, owners = _world_points(model, posed, bodies, points)
    result = np.zeros((*places.shape, len(model.coordinates)))
    carried = _carried(posed.links, len(model.bodies))
    for link, placed in zip(posed.links, posed.placed, strict=True):
        moved = np.flatnonzero(carried[link.child][owners])
        if not len(moved):
            continue
        arm = places[:, moved] - placed.origin[:, None]
        for i, part in enumerate(link.parts):
            if part.column < 0:
                continue
            turns = i < len(link.rotations)
            way = np.cross(placed.a[i][:, None], arm) if turns else placed.b[i - len(link.rotations)][:, None]
            of_coordinate = result[..., part.column]
            of_coordinate[:, moved] += placed.slope[i][:, None, None] * way
    return result


def center_of_mass(model: Model, coordinates: ArrayLike) -> Array:
    """Positions (frames, 3) [m] of the centre of mass of all bodies."""
    position, rotation = poses(model, coordinates)
    masses = np.array([body.mass for body in model.bodies])
    if not masses.sum() > 0.0:
        raise ModelError(f"model {model.name!r}: its bodies have no mass, so there is no centre of mass")
    centers = position + np.einsum("fbij,bj->fbi", rotation, [body.center_of_mass for body in model.bodies])
    return np.asarray(np.einsum("b,fbi->fi", masses, centers) / masses.sum())


def generalized_forces(
    model: Model, coordinates: ArrayLike, speeds: ArrayLike, accelerations: ArrayLike, *, gravity: bool = True
) -> Array:
    """Inverse dynamics: forces (frames, coordinates) [N m or N] that give the coordinates these accelerations.

    Q = M(q) a + c(q, u) - gravity, with no contacts, stops, couplings or loops; coordinate i's share of power is
    Q_i u_i. Newton's and Euler's laws per body, forces summed from the tips to the root.

    Args:
        model: a model that `validate` accepts.
        coordinates: (frames, coordinates) q [rad or m].
        speeds: (frames, coordinates) u, the time derivative of q.
        accelerations: (frames, coordinates) a, the time derivative of u.
        gravity: whether the model's gravity acts.
    """
    q, u, a = (
        _table(model, values, what)
        for values, what in ((coordinates, "coordinates"), (speeds, "speeds"), (accelerations, "accelerations"))
    )
    if not len(q) == len(u) == len(a):
        raise SettingsError(f"coordinates, speeds, accelerations have {len(q)}, {len(u)}, {len(a)} frames; must agree")
    if not q.size:
        return np.zeros_like(q)
    posed = _pose(model, q)
    spin, spin_change, acceleration = _accelerations(model, posed, u, a)
    if gravity:
        acceleration -= np.array(model.gravity)
    force, moment = _inertial_forces(model, posed, spin, spin_change, acceleration)
    result = np.zeros_like(q)
    for link, placed in zip(reversed(posed.links), reversed(posed.placed), strict=True):
        f = force[link.child]
        n = moment[link.child] + np.cross(posed.position[link.child] - placed.origin, f)  # about the joint
        for i, part in enumerate(link.parts):
            if part.column >= 0:
                turns = i < len(link.rotations)
                share = _dot(placed.a[i], n) if turns else _dot(placed.b[i - len(link.rotations)], f)
                result[:, part.column] += placed.slope[i] * share
        if link.parent >= 0:
            force[link.parent] += f
            moment[link.parent] += n + np.cross(placed.origin - posed.position[link.parent], f)
    return result


def coupled_coordinates(model: Model, coordinates: ArrayLike) -> Array:
    """The coordinates (frames, coordinates) with the coupled ones set to the functions that hold them."""
    q = _table(model, coordinates, "coordinates")
    return coupled_motion(model, q, np.zeros_like(q), np.zeros_like(q))[0]


def coupled_motion(
    model: Model, coordinates: ArrayLike, speeds: ArrayLike, accelerations: ArrayLike
) -> tuple[Array, Array, Array]:
    """Coordinates, speeds and accelerations with the coupled ones as the functions that hold them make them."""
    q, u, a = (_table(model, v, "coordinates").copy() for v in (coordinates, speeds, accelerations))
    for held, on, function in coupling_order(model):
        q[:, held], slope, curvature = evaluate(function, q[:, on])
        u[:, held] = slope * u[:, on]
        a[:, held] = slope * a[:, on] + curvature * u[:, on] ** 2
    return q, u, a


def coupled_forces(model: Model, coordinates: ArrayLike, forces: ArrayLike) -> Array:
    """Generalized forces with those of coupled coordinates counted at the coordinates they follow, and zero there."""
    q, result = coupled_coordinates(model, coordinates), _table(model, forces, "forces").copy()
    for held, on, function in reversed(coupling_order(model)):
        result[:, on] += evaluate(function, q[:, on])[1] * result[:, held]
        result[:, held] = 0.0
    return result


def coupling_order(model: Model) -> list[tuple[int, int, Function]]:
    """Columns of held coordinate and of the one it follows, each after those it depends on; with the function."""
    column = {c.name: i for i, c in enumerate(model.coordinates)}
    couplings = {coupling.coordinate: coupling for coupling in model.couplings}
    order = TopologicalSorter({c.coordinate: (c.on,) for c in model.couplings}).static_order()
    try:
        held = [couplings[name] for name in order if name in couplings]
    except CycleError as error:
        circle = " -> ".join(map(repr, error.args[1]))
        raise ModelError(f"coordinates {circle}: coupled in a circle; remove one coupling") from None
    return [(column[c.coordinate], column[c.on], c.function) for c in held]


def with_default_frames(model: Model) -> Model:
    """The model with each body's frame at the pose its joints give it when all coordinates have their defaults."""
    position, rotation = poses(model, [[c.default for c in model.coordinates]])
    hung = {joint.child for joint in model.joints if not joint.closes_loop}
    frames = (Frame(vector(place), orientation_from_matrix(turn)) for place, turn in zip(position[0], rotation[0], strict=True))
    bodies = (
        replace(body, frame=frame) if body.name in hung else body
        for body, frame in zip(model.bodies, frames, strict=True)
    )
    return replace(model, bodies=tuple(bodies))


def evaluate(function: Function, x: Array) -> tuple[Array, Array, Array]:
    """Values, slopes and curvatures of a function at many places; it is straight beyond its breaks."""
    inside = np.clip(x, function.breaks[0], function.breaks[-1])
    last = len(function.coefficients) - 1
    piece = np.clip(np.searchsorted(function.breaks, inside, side="right") - 1, 0, last)
    order = max(len(c) for c in function.coefficients)
    table = np.zeros((last + 1, order))
    for row, coefficients in zip(table, function.coefficients, strict=True):
        row[: len(coefficients)] = coefficients
    s = inside - np.asarray(function.breaks)[piece]
    value, slope, half = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for column in table.T[::-1]:
        half = half * s + slope
        slope = slope * s + value
        value = value * s + column[piece]
    return value + slope * (x - inside), slope, np.where(x == inside, 2.0 * half, 0.0)


def _table(model: Model, values: ArrayLike, what: str) -> Array:
    """Values per frame and coordinate as an array of two dimensions."""
    table = np.atleast_2d(np.asarray(values, dtype=float))
    count = len(model.coordinates)
    if count == 0 and table.size == 0:
        return np.zeros((max(len(table), 1), 0))
    if table.ndim != 2 or table.shape[1] != count:
        raise SettingsError(f"{what} have shape {np.shape(values)}, but model {model.name!r} wants (frames, {count})")
    return table


def _markers(model: Model) -> tuple[list[str], Array]:
    points = np.array([marker.position for marker in model.markers], dtype=float).reshape(-1, 3)
    return [marker.body for marker in model.markers], points


def _world_points(
    model: Model, posed: _Posed, bodies: Sequence[str], points: ArrayLike
) -> tuple[Array, NDArray[np.int64]]:
    """Places (frames, points, 3) and the index of each point's body; the ground's is one past the last."""
    index = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: len(model.bodies)}
    for name in bodies:
        if name not in index:
            raise ModelError(unknown_name("body", name, index))
    owners = np.array([index[name] for name in bodies], dtype=np.int64)
    frames = posed.position.shape[1]
    position = np.concatenate([posed.position, np.zeros((1, frames, 3))])
    rotation = np.concatenate([posed.rotation, np.broadcast_to(np.eye(3), (1, frames, 3, 3))])
    local = np.asarray(points, dtype=float).reshape(-1, 3)
    places = position[owners] + np.einsum("pfij,pj->pfi", rotation[owners], local)
    return places.swapaxes(0, 1), owners


def _carried(links: Sequence[Link], count: int) -> NDArray[np.bool_]:
    """(bodies, bodies + 1): which bodies move with which; the ground, last, with none."""
    carried = np.zeros((count, count + 1), dtype=bool)
    carried[np.arange(count), np.arange(count)] = True
    for link in reversed(links):
        if link.parent >= 0:
            carried[link.parent] |= carried[link.child]
    return carried


@cached_per_model
def tree_links(model: Model) -> tuple[Link, ...]:
    """The joints that do not close loops, each after the one that carries its parent."""
    index = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: -1}
    first = np.cumsum([0, *(len(joint.coordinates) for joint in model.joints)])
    inboard = {
        joint.child: (joint, int(k)) for joint, k in zip(model.joints, first, strict=False) if not joint.closes_loop
    }
    order = TopologicalSorter({child: (joint.parent,) for child, (joint, _) in inboard.items()}).static_order()
    links = []
    for joint, column in (inboard[body] for body in order if body in inboard):
        turns, shifts = _parts(joint, column)
        links.append(
            Link(
                index[joint.child],
                index[joint.parent],
                np.array(joint.parent_frame.position),
                orientation_matrix(joint.parent_frame.orientation),
                np.array(joint.child_frame.position),
                orientation_matrix(joint.child_frame.orientation),
                turns,
                shifts,
            )
        )
    return tuple(links)


def _parts(joint: Joint, column: int) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Turns and shifts of a joint of any kind, its first coordinate in that column."""
    if joint.kind == "coordinate":
        columns: dict[str | None, int] = {c.name: column + i for i, c in enumerate(joint.coordinates)}
        parts = tuple(Part(_unit(m.axis), m.function, columns.get(m.coordinate, -1)) for m in joint.motion)
        return parts[:3], parts[3:]
    axes = [_unit(axis) for axis in joint.axes or ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    if joint.kind == "planar":
        axes = [axes[0], axes[1], _unit(vector(np.cross(axes[0], axes[1])))]
        travel, turn = axes[:2], axes[2:]
    else:
        shifting = {"free": 3, "slider": 1}.get(joint.kind, 0)
        turning = {"free": 3, "ball": 3, "universal": 2, "hinge": 1}.get(joint.kind, 0)
        travel, turn = axes[:shifting], axes[:turning]
    shifts = tuple(Part(axis, None, column + i) for i, axis in enumerate(travel))
    return tuple(Part(axis, None, column + len(travel) + i) for i, axis in enumerate(turn)), shifts


def _unit(axis: Vector) -> Array:
    return np.array(axis, dtype=float) / hypot(*axis)


def _pose(model: Model, q: Array) -> _Posed:
    """Every body and link in every frame."""
    frames = len(q)
    position = np.zeros((len(model.bodies), frames, 3))
    rotation = np.zeros((len(model.bodies), frames, 3, 3))
    for i, body in enumerate(model.bodies):
        position[i], rotation[i] = body.frame.position, orientation_matrix(body.frame.orientation)
    links, placed = tree_links(model), []
    for link in links:
        origin, base = np.zeros((frames, 3)), np.broadcast_to(np.eye(3), (frames, 3, 3))
        if link.parent >= 0:
            origin, base = position[link.parent], rotation[link.parent]
        place, turn = _place(link, q, origin + base @ link.parent_position, base @ link.parent_rotation)
        rotation[link.child] = turn @ link.child_rotation.T
        position[link.child] = place.origin - rotation[link.child] @ link.child_position
        placed.append(place)
    return _Posed(links, tuple(placed), position, rotation)


def _place(link: Link, q: Array, origin: Array, turn: Array) -> tuple[_Placed, Array]:
    """The link whose parent's joint frame is at `origin` and `turn`; and the rotation of the child's."""
    slopes, curvatures, a, b = [], [], [], []
    base = turn
    for part in link.rotations:
        value, slope, curvature = part.values(q)
        a.append(turn @ part.axis)
        turn = turn @ _turn_about(part.axis, value)
        slopes.append(slope)
        curvatures.append(curvature)
    for part in link.translations:
        value, slope, curvature = part.values(q)
        b.append(base @ part.axis)
        origin = origin + value[:, None] * b[-1]
        slopes.append(slope)
        curvatures.append(curvature)
    shape = (len(link.parts), len(q))
    return (
        _Placed(
            origin,
            np.array(a).reshape(-1, len(q), 3),
            np.array(b).reshape(-1, len(q), 3),
            np.array(slopes).reshape(shape),
            np.array(curvatures).reshape(shape),
        ),
        turn,
    )


def _turn_about(axis: Array, angle: Array) -> Array:
    """Rotations (frames, 3, 3) about a unit axis (Rodrigues)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, versine = np.sin(angle), 2.0 * np.sin(0.5 * angle) ** 2
    return np.asarray(np.eye(3) + sine[:, None, None] * cross + versine[:, None, None] * (cross @ cross))


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("fi,fi->f", a, b))


def _accelerations(model: Model, posed: _Posed, u: Array, a: Array) -> tuple[Array, Array, Array]:
    """Spins, their changes, and accelerations of the body frames' origins: each (bodies, frames, 3), world axes."""
    shape = (len(model.bodies) + 1, len(u), 3)  # the ground, last, is what index -1 finds
    spin, change, acceleration = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for link, placed in zip(posed.links, posed.placed, strict=True):
        base_spin, base_change = spin[link.parent], change[link.parent]
        rate, rate_change = _part_rates(link, placed, u, a)
        w, dw = base_spin, base_change
        for i in range(len(link.rotations)):
            # an axis carried by what turned before it changes with that spin
            dw = dw + rate_change[i][:, None] * placed.a[i] + np.cross(w, rate[i][:, None] * placed.a[i])
            w = w + rate[i][:, None] * placed.a[i]
        k = len(link.rotations)
        travel = np.einsum("pf,pfi->fi", rate[k:], placed.b)
        arm = placed.origin - (posed.position[link.parent] if link.parent >= 0 else 0.0)
        at_joint = (
            acceleration[link.parent]
            + _carried_acceleration(base_spin, base_change, arm)
            + 2.0 * np.cross(base_spin, travel)
            + np.einsum("pf,pfi->fi", rate_change[k:], placed.b)
        )
        arm = posed.position[link.child] - placed.origin
        spin[link.child], change[link.child] = w, dw
        acceleration[link.child] = at_joint + _carried_acceleration(w, dw, arm)
    return spin[:-1], change[:-1], acceleration[:-1]


def _part_rates(link: Link, placed: _Placed, u: Array, a: Array) -> tuple[Array, Array]:
    """First and second time derivatives (parts, frames) of a link's turns and shifts."""
    columns = np.array([part.column for part in link.parts], dtype=np.int64)
    rates, changes = u.T[columns], a.T[columns]  # whatever a constant part picks: its slope and curvature are zero
    return placed.slope * rates, placed.slope * changes + placed.curvature * rates**2


def _carried_acceleration(spin: Array, change: Array, arm: Array) -> Array:
    return np.asarray(np.cross(change, arm) + np.cross(spin, np.cross(spin, arm)))


def _inertial_forces(
    model: Model, posed: _Posed, spin: Array, change: Array, acceleration: Array
) -> tuple[Array, Array]:
    """Force and moment (bodies, frames, 3) about each body frame's origin that move it so."""
    masses = np.array([body.mass for body in model.bodies])[:, None, None]
    inertia = np.array([body.inertia for body in model.bodies])[:, None]
    center = np.array([body.center_of_mass for body in model.bodies])[:, None]
    turn = posed.rotation
    arm = (turn @ center[..., None])[..., 0]
    force = masses * (acceleration + _carried_acceleration(spin, change, arm))

    def times_inertia(vectors: Array) -> Array:
        return np.asarray((turn @ (inertia @ (turn.swapaxes(-1, -2) @ vectors[..., None])))[..., 0])

    moment = times_inertia(change) + np.cross(spin, times_inertia(spin)) + np.cross(arm, force)
    return force, moment
