"""Forward kinematics and inverse dynamics of a model, for many sets of coordinates at once.

Plain numpy: no kernels to compile, and one pass over the joints for all frames. Every joint is read as up to three
translations t = sum b_i s_i in the parent's joint frame and up to three rotations R = R1(f1) R2(f2) R3(f3), each about
an axis rotated by those before it; s_i and f_i are functions of one coordinate each. With A_i the axis of rotation i
after the rotations before it, the child's frame has, in the parent's,

    angular velocity  w = sum A_i f_i'
    angular acceleration  sum A_i f_i'' + sum (sum_{k<i} A_k f_k') x A_i f_i'

Joints that close loops are ignored, and couplings apply in the `coupled_*` functions only. A body without a joint
stays at its frame.
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
from borelli.model.transforms import AXES, Array, orientation_from_matrix, orientation_matrix, vector


@dataclass(frozen=True, slots=True)
class LinkAxis:
    """Rotation about, or translation along, one axis of a joint."""

    axis: Array
    function: Function | None
    """Amount of the motion as a function of the coordinate; None: the coordinate itself."""
    column: int
    """Index of the coordinate; -1: none, the function is constant."""

    def values(self, coordinates: Array) -> tuple[Array, Array, Array]:
        """Return value, slope and curvature in every frame."""
        zero = np.zeros(len(coordinates))
        x = coordinates[:, self.column] if self.column >= 0 else zero
        value, slope, curvature = (x, zero + 1.0, zero) if self.function is None else evaluate(self.function, x)
        return (value, slope, curvature) if self.column >= 0 else (value, zero, zero)


@dataclass(frozen=True, slots=True)
class Link:
    """Joint of the kinematic tree: joint frames in the parent and child, and its axes."""

    child: int
    parent: int
    """Index of a body; -1: the ground."""
    parent_position: Array
    parent_rotation: Array
    child_position: Array
    child_rotation: Array
    rotations: tuple[LinkAxis, ...]
    translations: tuple[LinkAxis, ...]

    @property
    def axes(self) -> tuple[LinkAxis, ...]:
        """Rotation axes, then translation axes."""
        return self.rotations + self.translations


@dataclass(frozen=True, slots=True)
class _LinkState:
    """Joint in every frame, in world axes."""

    origin: Array
    """Origin (frames, 3) of the child's joint frame."""
    rotation: Array
    """Rotation (frames, 3, 3) of the child's joint frame."""
    axes: Array
    """Rotation axes A_i, then translation axes (axes, frames, 3)."""
    slope: Array
    """(axes, frames)"""
    curvature: Array


@dataclass(frozen=True, slots=True)
class _ModelState:
    """Bodies and joints in every frame."""

    links: tuple[Link, ...]
    link_states: tuple[_LinkState, ...]
    position: Array
    """Origins of the body frames (bodies, frames, 3)."""
    rotation: Array
    """(bodies, frames, 3, 3)"""


def poses(model: Model, coordinates: ArrayLike) -> tuple[Array, Array]:
    """Compute forward kinematics: the poses of all bodies.

    Args:
        model: Model that `validate` accepts.
        coordinates: Coordinates (frames, coordinates) [rad or m] in the order of `model.coordinates`, or one such row.

    Returns:
        Positions (frames, bodies, 3) [m] of the body frames' origins, and their rotations (frames, bodies, 3, 3).
    """
    state = _forward_kinematics(model, _table(model, coordinates, "coordinates"))
    return state.position.swapaxes(0, 1), state.rotation.swapaxes(0, 1)


def point_positions(model: Model, coordinates: ArrayLike, bodies: Sequence[str], points: ArrayLike) -> Array:
    """Return the positions (frames, points, 3) [m] in the world of points fixed to bodies.

    Args:
        model: Model that `validate` accepts.
        coordinates: Coordinates (frames, coordinates) [rad or m].
        bodies: Body of each point; `ground` is the world.
        points: Points (points, 3) [m] in the frames of those bodies.
    """
    state = _forward_kinematics(model, _table(model, coordinates, "coordinates"))
    return _world_points(model, state, bodies, points)[0]


def marker_positions(model: Model, coordinates: ArrayLike) -> Array:
    """Return the positions (frames, markers, 3) [m] of the model's markers in the world.

    Args:
        model: Model with markers.
        coordinates: Values (frames, coordinates) [rad or m], or one row, in the order of the model's coordinates.
    """
    return point_positions(model, coordinates, *_markers(model))


def marker_jacobians(model: Model, coordinates: ArrayLike) -> Array:
    """Return the derivatives (frames, markers, 3, coordinates) [m/rad or m/m] of marker positions.

    Args:
        model: Model with markers.
        coordinates: Values (frames, coordinates) [rad or m], or one row, in the order of the model's coordinates.
    """
    state = _forward_kinematics(model, _table(model, coordinates, "coordinates"))
    positions, owners = _world_points(model, state, *_markers(model))
    result = np.zeros((*positions.shape, len(model.coordinates)))
    subtree = _subtrees(state.links, len(model.bodies))
    for link, joint in zip(state.links, state.link_states, strict=True):
        moved = np.flatnonzero(subtree[link.child][owners])
        arm = positions[:, moved] - joint.origin[:, None]
        for i, part in enumerate(link.axes):
            if part.column >= 0:
                axis = joint.axes[i][:, None]
                velocity = np.cross(axis, arm) if i < len(link.rotations) else axis
                result[..., part.column][:, moved] += joint.slope[i][:, None, None] * velocity
    return result


def center_of_mass(model: Model, coordinates: ArrayLike) -> Array:
    """Return the positions (frames, 3) [m] of the model's center of mass.

    Args:
        model: Model with mass.
        coordinates: Values (frames, coordinates) [rad or m], or one row, in the order of the model's coordinates.

    Raises:
        ModelError: if the model has no mass.
    """
    position, rotation = poses(model, coordinates)
    masses = np.array([body.mass for body in model.bodies])
    if not masses.sum() > 0.0:
        raise ModelError(
            f"Model {model.name!r} has no mass, so its center of mass is undefined. Give its bodies masses."
        )
    centers = position + np.einsum("fbij,bj->fbi", rotation, [body.center_of_mass for body in model.bodies])
    return np.asarray(np.einsum("b,fbi->fi", masses, centers) / masses.sum())


def generalized_forces(
    model: Model, coordinates: ArrayLike, speeds: ArrayLike, accelerations: ArrayLike, *, gravity: bool = True
) -> Array:
    """Compute inverse dynamics: the generalized forces [N m or N] that cause these accelerations.

    Q = M(q) a + c(q, u) - gravity, without contacts, joint limits, couplings or loops; the power of coordinate i is
    Q_i u_i. Recursive Newton-Euler algorithm: forces per body, summed from the tips to the root.

    Args:
        model: Model that `validate` accepts.
        coordinates: Coordinates q (frames, coordinates) [rad or m].
        speeds: Time derivative u of q (frames, coordinates).
        accelerations: Time derivative a of u (frames, coordinates).
        gravity: False leaves out the model's gravity.

    Returns:
        Generalized forces (frames, coordinates).
    """
    q, u, a = (
        _table(model, values, name)
        for values, name in ((coordinates, "coordinates"), (speeds, "speeds"), (accelerations, "accelerations"))
    )
    if not len(q) == len(u) == len(a):
        raise SettingsError(
            f"coordinates, speeds and accelerations have {len(q)}, {len(u)} and {len(a)} frames. Give equal numbers."
        )
    if not q.size:
        return np.zeros_like(q)
    state = _forward_kinematics(model, q)
    angular_velocity, angular_acceleration, acceleration = _accelerations(model, state, u, a)
    if gravity:
        acceleration -= np.array(model.gravity)
    force, moment = _inertial_forces(model, state, angular_velocity, angular_acceleration, acceleration)
    result = np.zeros_like(q)
    for link, joint in zip(reversed(state.links), reversed(state.link_states), strict=True):
        f = force[link.child]
        n = moment[link.child] + np.cross(state.position[link.child] - joint.origin, f)  # about the joint
        for i, part in enumerate(link.axes):
            if part.column >= 0:
                force_on_axis = np.einsum("fi,fi->f", joint.axes[i], n if i < len(link.rotations) else f)
                result[:, part.column] += joint.slope[i] * force_on_axis
        if link.parent >= 0:
            force[link.parent] += f
            moment[link.parent] += n + np.cross(joint.origin - state.position[link.parent], f)
    return result


def coupled_coordinates(model: Model, coordinates: ArrayLike) -> Array:
    """Return the coordinates (frames, coordinates) with the coupled ones computed from their functions.

    Args:
        model: Model with couplings.
        coordinates: Values (frames, coordinates) [rad or m], or one row, in the order of the model's coordinates.
    """
    q = _table(model, coordinates, "coordinates")
    return coupled_motion(model, q, np.zeros_like(q), np.zeros_like(q))[0]


def coupled_motion(
    model: Model, coordinates: ArrayLike, speeds: ArrayLike, accelerations: ArrayLike
) -> tuple[Array, Array, Array]:
    """Return coordinates, speeds and accelerations with the coupled ones computed from their functions.

    Args:
        model: Model with couplings.
        coordinates: Values (frames, coordinates) [rad or m], or one row, in the order of the model's coordinates.
        speeds: Their rates [rad/s or m/s].
        accelerations: Their accelerations [rad/s^2 or m/s^2].
    """
    q, u, a = (_table(model, v, "coordinates").copy() for v in (coordinates, speeds, accelerations))
    for dependent, on, function in coupling_order(model):
        q[:, dependent], slope, curvature = evaluate(function, q[:, on])
        u[:, dependent] = slope * u[:, on]
        a[:, dependent] = slope * a[:, on] + curvature * u[:, on] ** 2
    return q, u, a


def coupled_forces(model: Model, coordinates: ArrayLike, forces: ArrayLike) -> Array:
    """Return generalized forces with those of coupled coordinates moved to the coordinates they depend on.

    Args:
        model: Model with couplings.
        coordinates: Values (frames, coordinates) [rad or m], or one row, in the order of the model's coordinates.
        forces: Generalized forces (frames, coordinates) [N m or N].
    """
    q, result = coupled_coordinates(model, coordinates), _table(model, forces, "forces").copy()
    for dependent, on, function in reversed(coupling_order(model)):
        result[:, on] += evaluate(function, q[:, on])[1] * result[:, dependent]
        result[:, dependent] = 0.0
    return result


def coupling_order(model: Model) -> list[tuple[int, int, Function]]:
    """Return the columns of each dependent coordinate and of the one it depends on, and the function.

    The order is topological: a coordinate comes after those it depends on.
    """
    column = {c.name: i for i, c in enumerate(model.coordinates)}
    couplings = {coupling.coordinate: coupling for coupling in model.couplings}
    order = TopologicalSorter({c.coordinate: (c.on,) for c in model.couplings}).static_order()
    try:
        ordered = [couplings[name] for name in order if name in couplings]
    except CycleError as error:
        cycle = ", ".join(map(repr, error.args[1]))
        raise ModelError(f"Couplings form a cycle through coordinates {cycle}. Remove one coupling.") from None
    return [(column[c.coordinate], column[c.on], c.function) for c in ordered]


def with_default_frames(model: Model) -> Model:
    """Return the model with each body frame at the pose given by the default coordinates."""
    position, rotation = poses(model, [[c.default for c in model.coordinates]])
    jointed = {joint.child for joint in model.joints if not joint.closes_loop}
    frames = (Frame(vector(p), orientation_from_matrix(r)) for p, r in zip(position[0], rotation[0], strict=True))
    bodies = (
        replace(body, frame=frame) if body.name in jointed else body
        for body, frame in zip(model.bodies, frames, strict=True)
    )
    return replace(model, bodies=tuple(bodies))


def evaluate(function: Function, x: Array) -> tuple[Array, Array, Array]:
    """Return values, slopes and curvatures of a function at many x; it is straight beyond its breaks.

    Args:
        function: Piecewise polynomial.
        x: Where it is evaluated, of any shape.
    """
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


def _table(model: Model, values: ArrayLike, name: str) -> Array:
    table = np.atleast_2d(np.asarray(values, dtype=float))
    count = len(model.coordinates)
    if count == 0 and table.size == 0:
        return np.zeros((max(len(table), 1), 0))
    if table.ndim != 2 or table.shape[1] != count:
        raise SettingsError(
            f"{name} has shape {np.shape(values)}, but model {model.name!r} requires (frames, {count})."
        )
    return table


def _markers(model: Model) -> tuple[list[str], list[Vector]]:
    return [marker.body for marker in model.markers], [marker.position for marker in model.markers]


def _world_points(
    model: Model, state: _ModelState, bodies: Sequence[str], points: ArrayLike
) -> tuple[Array, NDArray[np.int64]]:
    """Return positions (frames, points, 3) and the index of each point's body; the ground is one past the last."""
    index = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: len(model.bodies)}
    for name in bodies:
        if name not in index:
            raise ModelError(unknown_name("body", name, index))
    owners = np.array([index[name] for name in bodies], dtype=np.int64)
    frames = state.position.shape[1]
    position = np.concatenate([state.position, np.zeros((1, frames, 3))])
    rotation = np.concatenate([state.rotation, np.broadcast_to(np.eye(3), (1, frames, 3, 3))])
    local = np.asarray(points, dtype=float).reshape(-1, 3)
    world = position[owners] + np.einsum("pfij,pj->pfi", rotation[owners], local)
    return world.swapaxes(0, 1), owners


def _subtrees(links: Sequence[Link], count: int) -> NDArray[np.bool_]:
    """Return (bodies, bodies + 1): True where the second body moves with the first; the ground, last, with none."""
    subtree = np.zeros((count, count + 1), dtype=bool)
    subtree[np.arange(count), np.arange(count)] = True
    for link in reversed(links):
        if link.parent >= 0:
            subtree[link.parent] |= subtree[link.child]
    return subtree


@cached_per_model
def tree_links(model: Model) -> tuple[Link, ...]:
    """Return the joints of the tree (without those that close loops), parents first."""
    index = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: -1}
    first = np.cumsum([0, *(len(joint.coordinates) for joint in model.joints)])
    inboard = {j.child: (j, int(k)) for j, k in zip(model.joints, first, strict=False) if not j.closes_loop}
    order = TopologicalSorter({child: (joint.parent,) for child, (joint, _) in inboard.items()}).static_order()
    links = []
    for joint, column in (inboard[body] for body in order if body in inboard):
        frames = joint.parent_frame, joint.child_frame
        at_parent, at_child = (np.array(frame.position) for frame in frames)
        in_parent, in_child = (orientation_matrix(frame.orientation) for frame in frames)
        ends = index[joint.child], index[joint.parent]
        links.append(Link(*ends, at_parent, in_parent, at_child, in_child, *_link_axes(joint, column)))
    return tuple(links)


@cached_per_model
def root_coordinates(model: Model) -> tuple[str, ...]:
    """Return the names of the root joint's coordinates.

    The root joint connects the ground with the largest subtree. The result is empty if it has fewer than three
    coordinates.
    """
    sizes = _subtrees(tree_links(model), len(model.bodies)).sum(axis=1)
    size_of = {body.name: size for body, size in zip(model.bodies, sizes, strict=True)}
    on_ground = [joint for joint in model.joints if joint.parent == GROUND and not joint.closes_loop]
    root = max(on_ground, key=lambda joint: size_of[joint.child], default=None)
    return tuple(c.name for c in root.coordinates) if root is not None and len(root.coordinates) >= 3 else ()


def _link_axes(joint: Joint, column: int) -> tuple[tuple[LinkAxis, ...], tuple[LinkAxis, ...]]:
    """Return the rotation and translation axes of a joint whose first coordinate is in `column`."""
    if joint.kind == "coordinate":
        columns: dict[str | None, int] = {c.name: column + i for i, c in enumerate(joint.coordinates)}
        parts = tuple(LinkAxis(_unit(m.axis), m.function, columns.get(m.coordinate, -1)) for m in joint.motion)
        return parts[:3], parts[3:]
    axes = [_unit(axis) for axis in joint.axes or AXES]
    if joint.kind == "planar":
        axes = [axes[0], axes[1], _unit(vector(np.cross(axes[0], axes[1])))]
        translating, rotating = axes[:2], axes[2:]
    else:
        translations = {"free": 3, "slider": 1}.get(joint.kind, 0)
        rotations = {"free": 3, "ball": 3, "universal": 2, "hinge": 1}.get(joint.kind, 0)
        translating, rotating = axes[:translations], axes[:rotations]
    along = tuple(LinkAxis(axis, None, column + i) for i, axis in enumerate(translating))
    return tuple(LinkAxis(axis, None, column + len(along) + i) for i, axis in enumerate(rotating)), along


def _unit(axis: Vector) -> Array:
    return np.array(axis, dtype=float) / hypot(*axis)


def _forward_kinematics(model: Model, q: Array) -> _ModelState:
    frames = len(q)
    position = np.zeros((len(model.bodies), frames, 3))
    rotation = np.zeros((len(model.bodies), frames, 3, 3))
    for i, body in enumerate(model.bodies):
        position[i], rotation[i] = body.frame.position, orientation_matrix(body.frame.orientation)
    links, states = tree_links(model), []
    for link in links:
        origin, base = np.zeros((frames, 3)), np.broadcast_to(np.eye(3), (frames, 3, 3))
        if link.parent >= 0:
            origin, base = position[link.parent], rotation[link.parent]
        state = _link_state(link, q, origin + base @ link.parent_position, base @ link.parent_rotation)
        rotation[link.child] = state.rotation @ link.child_rotation.T
        position[link.child] = state.origin - rotation[link.child] @ link.child_position
        states.append(state)
    return _ModelState(links, tuple(states), position, rotation)


def _link_state(link: Link, q: Array, origin: Array, rotation: Array) -> _LinkState:
    """Return the state of a joint whose parent frame has this origin and rotation."""
    axes, base = np.zeros((len(link.axes), len(q), 3)), rotation
    value, slope, curvature = np.zeros((3, len(link.axes), len(q)))
    for i, part in enumerate(link.axes):
        value[i], slope[i], curvature[i] = part.values(q)
        if i < len(link.rotations):
            axes[i] = rotation @ part.axis
            rotation = rotation @ _rotation_about(part.axis, value[i])
        else:
            axes[i] = base @ part.axis
            origin = origin + value[i][:, None] * axes[i]
    return _LinkState(origin, rotation, axes, slope, curvature)


def _rotation_about(axis: Array, angle: Array) -> Array:
    """Return rotations (frames, 3, 3) about a unit axis (Rodrigues)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, versine = np.sin(angle), 2.0 * np.sin(0.5 * angle) ** 2
    return np.asarray(np.eye(3) + sine[:, None, None] * cross + versine[:, None, None] * (cross @ cross))


def _accelerations(model: Model, state: _ModelState, u: Array, a: Array) -> tuple[Array, Array, Array]:
    """Return angular velocities, angular accelerations and accelerations of origins (bodies, frames, 3), world axes."""
    shape = (len(model.bodies) + 1, len(u), 3)  # the last row is the ground, at index -1
    angular_velocity, angular_acceleration, acceleration = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for link, joint in zip(state.links, state.link_states, strict=True):
        base_velocity, base_acceleration = angular_velocity[link.parent], angular_acceleration[link.parent]
        # a constant axis has zero slope and curvature, so its column does not matter
        columns = np.array([part.column for part in link.axes], dtype=np.int64)
        rate = joint.slope * u.T[columns]
        rate_derivative = joint.slope * a.T[columns] + joint.curvature * u.T[columns] ** 2
        w, dw, k = base_velocity, base_acceleration, len(link.rotations)
        for axis, first, second in zip(joint.axes[:k], rate[:k, :, None], rate_derivative[:k, :, None], strict=True):
            # the axis rotates with the angular velocity of the rotations before it
            dw = dw + second * axis + np.cross(w, first * axis)
            w = w + first * axis
        translation = np.einsum("pf,pfi->fi", rate[k:], joint.axes[k:])
        arm = joint.origin - (state.position[link.parent] if link.parent >= 0 else 0.0)
        at_joint = (
            acceleration[link.parent]
            + _rotating_acceleration(base_velocity, base_acceleration, arm)
            + 2.0 * np.cross(base_velocity, translation)
            + np.einsum("pf,pfi->fi", rate_derivative[k:], joint.axes[k:])
        )
        arm = state.position[link.child] - joint.origin
        angular_velocity[link.child], angular_acceleration[link.child] = w, dw
        acceleration[link.child] = at_joint + _rotating_acceleration(w, dw, arm)
    return angular_velocity[:-1], angular_acceleration[:-1], acceleration[:-1]


def _rotating_acceleration(angular_velocity: Array, angular_acceleration: Array, arm: Array) -> Array:
    return np.asarray(np.cross(angular_acceleration, arm) + np.cross(angular_velocity, np.cross(angular_velocity, arm)))


def _inertial_forces(
    model: Model, state: _ModelState, angular_velocity: Array, angular_acceleration: Array, acceleration: Array
) -> tuple[Array, Array]:
    """Return force and moment (bodies, frames, 3) about each body frame's origin that cause the motion."""
    masses = np.array([body.mass for body in model.bodies])[:, None, None]
    inertia = np.array([body.inertia for body in model.bodies])[:, None]
    center = np.array([body.center_of_mass for body in model.bodies])[:, None]
    rotation = state.rotation
    arm = (rotation @ center[..., None])[..., 0]
    force = masses * (acceleration + _rotating_acceleration(angular_velocity, angular_acceleration, arm))

    def times_inertia(vectors: Array) -> Array:
        return np.asarray((rotation @ (inertia @ (rotation.swapaxes(-1, -2) @ vectors[..., None])))[..., 0])

    moment = (
        times_inertia(angular_acceleration)
        + np.cross(angular_velocity, times_inertia(angular_velocity))
        + np.cross(arm, force)
    )
    return force, moment
