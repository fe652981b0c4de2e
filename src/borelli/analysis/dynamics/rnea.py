"""Newton's and Euler's laws for a whole motion at once: what every joint carries, and why.

Plain numpy with time along the last axis, so that every operation runs over all frames. Velocities, accelerations and
wrenches (moment, force) are counted about the origin of the world: those of a branch are then plain sums. With w the
spin of a body and v the velocity of its point at the world's origin, a joint at o with shifts b_i s_i and turns
A_i f_i, each carried by those before it, adds

    w += sum A_i f_i'                    w' += sum A_i f_i'' + sum w_i x A_i f_i'       (w_i: the spin before turn i)
    v += sum b_i s_i' + o x sum A_i f_i'

and v' is its derivative, with o' the velocity of the joint. A turn's share of a wrench is A_i . moment about o, a
shift's b_i . force. `model.kinematics.generalized_forces` says the same, frame by frame easier to follow and slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.model.kinematics import Link, tree_links
from borelli.model.model import Model
from borelli.model.transforms import orientation_matrix
from borelli.numerics.vectors import cross

Array = NDArray[np.float64]

_UNTURNED = np.eye(3).tolist()


@dataclass(frozen=True)
class BodyKinematics:
    """Every body and part in every frame, in the model's axes; time last.

    Attributes:
        model: Whose bodies they are.
        coordinates: (frames, coordinates) [rad or m] that put them there.
        speeds: (frames, coordinates)
        links: Joints of the tree, parents first.
        position: (bodies, 3, frames) of the body frames' origins [m].
        rotation: (bodies, 3, 3, frames)
        spin: (bodies, 3, frames) [rad/s]
        velocity: (bodies, 3, frames) of the point of the body at the world's origin [m/s].
        spin_change: (bodies, 3, frames) [rad/s^2]
        velocity_change: (bodies, 3, frames) [m/s^2] of `velocity`, in time.
        origin: (links, 3, frames) of the child's joint frame [m].
        axis: (parts, 3, frames) of shifts, then turns, link by link, times the slopes of their functions.
        column: (parts,) coordinate of each part; -1: it is constant.
        link: (parts,) to which each belongs.
        turns: (parts,) whether it is a turn.
    """

    model: Model
    coordinates: Array
    speeds: Array
    links: tuple[Link, ...]
    position: Array
    rotation: Array
    spin: Array
    velocity: Array
    spin_change: Array
    velocity_change: Array
    origin: Array
    axis: Array
    column: NDArray[np.int64]
    link: NDArray[np.int64]
    rotations: NDArray[np.bool_]

    @cached_property
    def center(self) -> Array:
        """(bodies, 3, frames) centres of mass [m]."""
        local = np.array([body.center_of_mass for body in self.model.bodies])
        return self.position + np.einsum("bijf,bj->bif", self.rotation, local)

    @cached_property
    def masses(self) -> Array:
        """Of the bodies [kg]."""
        return np.array([body.mass for body in self.model.bodies])

    @cached_property
    def center_velocity(self) -> Array:
        """(bodies, 3, frames) of the centres of mass [m/s]."""
        return self.velocity + cross(self.spin, self.center)

    @cached_property
    def center_acceleration(self) -> Array:
        """(bodies, 3, frames) of the centres of mass [m/s^2]."""
        return self.velocity_change + cross(self.spin_change, self.center) + cross(self.spin, self.center_velocity)

    @cached_property
    def demand(self) -> Array:
        """(2, bodies, 6, frames): the wrenches of whole branches that motion, and that gravity asks for."""
        return subtree_wrenches(self, np.stack([inertial_wrenches(self), weight_wrenches(self)]))

    @cached_property
    def demanded(self) -> Array:
        """(2, frames, coordinates): the forces that supply them, as if no coordinate were coupled."""
        return coordinate_forces(self, self.demand)

    def angular_momentum(self, of: Array) -> Array:
        """Inertia about the centres of mass times a vector of every body, world axes: (bodies, 3, frames)."""
        inertia = np.array([body.inertia for body in self.model.bodies])
        local = np.einsum("bijf,bif->bjf", self.rotation, of)
        return np.asarray(np.einsum("bijf,bjf->bif", self.rotation, np.einsum("bij,bjf->bif", inertia, local)))

    def point_velocity(self, body: int, points: Array) -> Array:
        """Velocity (frames, 3) [m/s] of the points (frames, 3) of a body that are at these places of the world."""
        return np.asarray((self.velocity[body] + cross(self.spin[body], points.T)).T)


def forward_kinematics(model: Model, coordinates: Array, speeds: Array, accelerations: Array) -> BodyKinematics:
    """Where everything is, how it moves and how that changes, for coordinates (frames, coordinates)."""
    q, u, a = (np.ascontiguousarray(values.T) for values in (coordinates, speeds, accelerations))
    links = tree_links(model)
    placed = _place(model, links, q)
    origin, parts = placed.origin, placed.span
    bodies, frames = len(model.bodies) + 1, q.shape[1]  # the ground is last
    # the column -1 of a constant part finds some speed, which its slope of zero takes away
    rate, rate_change = u[placed.column], a[placed.column]
    step = placed.axis * (placed.slope * rate)[:, None]
    grown = placed.axis * (placed.slope * rate_change + placed.curvature * rate**2)[:, None]
    spin, velocity, spin_change, velocity_change = (np.zeros((bodies, 3, frames)) for _ in range(4))
    before = np.zeros_like(step)
    for link, (first, middle, last) in zip(links, parts, strict=True):
        before[first:middle] = spin[link.parent]
        w = spin[link.child]
        w[:] = spin[link.parent]
        for p in range(middle, last):
            before[p] = w
            w += step[p]
    grown += cross(before, step)
    (shift, turn), (shift_grown, turn_grown) = (_by_link(values, parts) for values in (step, grown))
    about = cross(origin, turn)
    about += shift
    for k, link in enumerate(links):
        np.add(velocity[link.parent], about[k], out=velocity[link.child])
    parents = [link.parent for link in links]
    at_joint = cross(spin[parents], origin)
    at_joint += velocity[parents]
    at_joint += shift
    moving = cross(at_joint, turn)
    moving += cross(origin, turn_grown)
    moving += shift_grown
    for k, link in enumerate(links):
        np.add(spin_change[link.parent], turn_grown[k], out=spin_change[link.child])
        np.add(velocity_change[link.parent], moving[k], out=velocity_change[link.child])
    return BodyKinematics(
        model, coordinates, speeds, links, placed.position, placed.rotation, spin[:-1], velocity[:-1],
        spin_change[:-1], velocity_change[:-1], origin, placed.axis * placed.slope[:, None], placed.column,
        placed.link, placed.rotations,
    )  # fmt: skip


def _by_link(values: Array, span: Sequence[tuple[int, int, int]]) -> tuple[Array, Array]:
    """Sums (links, 3, frames) of values (parts, 3, frames) over the shifts and over the turns of each link."""
    result = np.zeros((2, len(span), *values.shape[1:]))
    edges = [
        (kind, k, start)
        for k, (first, middle, last) in enumerate(span)
        for kind, start, stop in ((0, first, middle), (1, middle, last))
        if stop > start
    ]
    if edges:
        kinds, owners, starts = zip(*edges, strict=True)
        result[list(kinds), list(owners)] = np.add.reduceat(values, starts)
    return result[0], result[1]


class _Placed(NamedTuple):
    """Bodies, joints and parts in every frame."""

    position: Array
    rotation: Array
    origin: Array
    axis: Array
    """(parts, 3, frames) unit vectors."""
    slope: Array
    """(parts, frames)"""
    curvature: Array
    column: NDArray[np.int64]
    link: NDArray[np.int64]
    rotations: NDArray[np.bool_]
    span: tuple[tuple[int, int, int], ...]
    """First part, first turn and last part (exclusive) of each link."""


def _place(model: Model, links: tuple[Link, ...], q: Array) -> _Placed:
    frames, bodies = q.shape[1], len(model.bodies)
    position, rotation = np.empty((bodies, 3, frames)), np.empty((bodies, 3, 3, frames))
    carried = {link.child for link in links}
    for i, body in enumerate(model.bodies):
        if i not in carried:
            position[i] = np.array(body.frame.position)[:, None]
            rotation[i] = orientation_matrix(body.frame.orientation)[..., None]
    parts = [(part, k) for k, link in enumerate(links) for part in (*link.translations, *link.rotations)]
    axis = np.empty((len(parts), 3, frames))
    slope, curvature = np.ones((len(parts), frames)), np.zeros((len(parts), frames))
    origin = np.empty((len(links), 3, frames))
    still = np.zeros((3, frames)), np.broadcast_to(np.eye(3)[..., None], (3, 3, frames))
    # of all at once: most parts turn by a coordinate as it is
    sines, versines = np.sin(q), np.sin(0.5 * q)
    versines *= versines
    versines *= 2.0
    span, p = [], 0
    for k, link in enumerate(links):
        x, base = (position[link.parent], rotation[link.parent]) if link.parent >= 0 else still
        o, turn = _along(base, link.parent_position), _turned_by(base, link.parent_rotation)
        o += x
        first, middle = p, p + len(link.translations)
        for part in (*link.translations, *link.rotations):
            plain = part.function is None and part.column >= 0
            if plain:
                value = q[part.column]
            else:
                value, slope[p], curvature[p] = part.values(q.T)
            axis[p] = _along(turn, part.axis)
            if p < middle:
                o += value * axis[p]
            elif plain:
                turn = _turn(turn, part.axis, sines[part.column], versines[part.column])
            else:
                turn = _turn(turn, part.axis, np.sin(value), 2.0 * np.sin(0.5 * value) ** 2)
            p += 1
        span.append((first, middle, p))
        rotation[link.child] = _turned_by(turn, link.child_rotation.T)
        np.subtract(o, _along(rotation[link.child], link.child_position), out=position[link.child])
        origin[k] = o
    column = np.array([part.column for part, _ in parts], dtype=np.int64)
    owner = np.array([k for _, k in parts], dtype=np.int64)
    turns = np.zeros(len(parts), bool)
    for _, middle, last in span:
        turns[middle:last] = True
    return _Placed(position, rotation, origin, axis, slope, curvature, column, owner, turns, tuple(span))


def inertial_wrenches(moved: BodyKinematics) -> Array:
    """(bodies, 6, frames): moment about the world's origin [N m] and force [N] that make the bodies move so."""
    force = moved.masses[:, None, None] * moved.center_acceleration
    spun = moved.angular_momentum(moved.spin)
    moment = moved.angular_momentum(moved.spin_change) + cross(moved.spin, spun) + cross(moved.center, force)
    return np.concatenate([moment, force], axis=1)


def weight_wrenches(moved: BodyKinematics) -> Array:
    """(bodies, 6, frames): moment about the world's origin [N m] and force [N] that hold the bodies against gravity."""
    force = np.broadcast_to(-moved.masses[:, None, None] * np.array(moved.model.gravity)[:, None], moved.center.shape)
    return np.concatenate([cross(moved.center, force), force], axis=1)


def load_wrenches(moved: BodyKinematics, bodies: Sequence[int], force: Array, point: Array, moment: Array) -> Array:
    """(bodies, 6, frames): what loads on bodies take off what the joints must supply; model axes.

    Args:
        moved: The motion.
        bodies: The body each load acts on.
        force: (frames, loads, 3) on the bodies [N].
        point: (frames, loads, 3) where they act [m].
        moment: (frames, loads, 3) about those points [N m].
    """
    result = np.zeros((len(moved.position), 6, moved.position.shape[-1]))
    for k, body in enumerate(bodies):
        f = force[:, k].T
        result[body, :3] -= cross(point[:, k].T, f) + moment[:, k].T
        result[body, 3:] -= f
    return result


def subtree_wrenches(moved: BodyKinematics, wrenches: Array) -> Array:
    """Wrenches (..., bodies, 6, frames) of whole branches: each body's with those of all it carries."""
    total = wrenches.copy()
    for link in reversed(moved.links):
        if link.parent >= 0:
            total[..., link.parent, :, :] += total[..., link.child, :, :]
    return total


def coordinate_forces(moved: BodyKinematics, carried: Array) -> Array:
    """Forces (..., frames, coordinates) [N m or N] that supply the wrenches of branches (..., bodies, 6, frames)."""
    force, moment = joint_reactions(moved, carried)
    result = np.zeros((*carried.shape[:-3], len(moved.model.coordinates), carried.shape[-1]))
    for kind, wrench in ((moved.rotations, moment), (~moved.rotations, force)):
        parts = np.flatnonzero(kind & (moved.column >= 0))
        x, y, z = (moved.axis[parts, i] * wrench[..., moved.link[parts], i, :] for i in range(3))
        given = x + y + z
        for k, column in enumerate(moved.column[parts]):
            result[..., column, :] += given[..., k, :]
    return np.ascontiguousarray(result.swapaxes(-1, -2))


def joint_reactions(moved: BodyKinematics, carried: Array) -> tuple[Array, Array]:
    """Force [N] and moment [N m] (..., links, 3, frames) of joints on their children, about the joints' origins."""
    wrench = carried[..., [link.child for link in moved.links], :, :]
    force = wrench[..., 3:, :]
    return force, wrench[..., :3, :] - cross(moved.origin, force)


def mechanical_energy(moved: BodyKinematics) -> tuple[Array, Array]:
    """Kinetic and potential energy (frames,) [J]; the latter is zero at the world's origin."""
    v = moved.center_velocity
    linear = np.einsum("b,bif,bif->f", moved.masses, v, v)
    turning = np.einsum("bif,bif->f", moved.spin, moved.angular_momentum(moved.spin))
    height = np.einsum("b,bif,i->f", moved.masses, moved.center, -np.array(moved.model.gravity))
    return 0.5 * (linear + turning), height


def _along(turns: Array, vector: Array) -> Array:
    """A constant vector turned: (3, frames)."""
    used = [(i, length) for i, length in enumerate(vector.tolist()) if length]
    if not used:
        return np.zeros((3, turns.shape[-1]))
    result = np.asarray(turns[:, used[0][0]] * used[0][1])
    for i, length in used[1:]:
        result += turns[:, i] * length
    return result


def _turn(turns: Array, axis: Array, sine: Array, versine: Array) -> Array:
    """Rotations (3, 3, frames) followed by those about a unit axis of their own, by angles of this sine and versine."""
    x, y, z = axis.tolist()
    if (x != 0.0) + (y != 0.0) + (z != 0.0) == 1:
        i = 0 if x else 1 if y else 2
        j, k = (i + 1) % 3, (i + 2) % 3
        sine, cosine, result = (x + y + z) * sine, 1.0 - versine, np.empty_like(turns)
        result[:, i] = turns[:, i]
        np.add(cosine * turns[:, j], sine * turns[:, k], out=result[:, j])
        np.subtract(cosine * turns[:, k], sine * turns[:, j], out=result[:, k])
        return result
    k1 = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return turns + sine * np.einsum("ijf,jk->ikf", turns, k1) + versine * np.einsum("ijf,jk->ikf", turns, k1 @ k1)


def _turned_by(turns: Array, turn: Array) -> Array:
    """Rotations (3, 3, frames) after a constant one."""
    return turns if turn.tolist() == _UNTURNED else np.asarray(np.einsum("ijf,jk->ikf", turns, turn))
