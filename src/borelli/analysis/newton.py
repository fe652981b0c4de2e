"""Newton's and Euler's laws for a whole motion at once: what every joint carries, and why.

Plain numpy with time along the last axis, so that every operation runs over all frames. Velocities, accelerations and
wrenches are counted about the origin of the world: those of a branch are then plain sums. A part's *direction*
S = (w, v) says how it moves what it carries: a point x with w x x + v. The wrench (n, f) of a branch does the work
S.(n, f) on it, which is the share of the part's coordinate.

`model.kinematics.generalized_forces` says the same, frame by frame easier to follow and slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.model.frames import orientation_matrix
from borelli.model.kinematics import Link, tree_links
from borelli.model.model import Model

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moved:
    """Every body and part in every frame, in the model's axes; time last.

    Attributes:
        model: Whose bodies they are.
        links: Joints of the tree, parents first.
        position: (bodies, 3, frames) of the body frames' origins [m].
        rotation: (bodies, 3, 3, frames)
        spin: (bodies, 3, frames) [rad/s]
        velocity: (bodies, 3, frames) of the point of the body at the world's origin [m/s].
        spin_change: (bodies, 3, frames) [rad/s^2]
        velocity_change: (bodies, 3, frames) [m/s^2] of `velocity`, in time.
        origin: (links, 3, frames) of the child's joint frame [m].
        direction: (parts, 6, frames) w, v of every part, in the order of the links.
        column: (parts,) coordinate of each part; -1: it is constant.
        owner: (parts,) the body each part moves.
    """

    model: Model
    links: tuple[Link, ...]
    position: Array
    rotation: Array
    spin: Array
    velocity: Array
    spin_change: Array
    velocity_change: Array
    origin: Array
    direction: Array
    column: NDArray[np.int64]
    owner: NDArray[np.int64]

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

    def angular_momentum(self, of: Array) -> Array:
        """Inertia about the centres of mass times a vector of every body, world axes: (bodies, 3, frames)."""
        inertia = np.array([body.inertia for body in self.model.bodies])
        local = np.einsum("bijf,bif->bjf", self.rotation, of)
        return np.asarray(np.einsum("bijf,bjf->bif", self.rotation, np.einsum("bij,bjf->bif", inertia, local)))

    def point_velocity(self, body: int, points: Array) -> Array:
        """Velocity (frames, 3) [m/s] of the points (frames, 3) of a body that are at these places of the world."""
        return np.asarray((self.velocity[body] + cross(self.spin[body], points.T)).T)


def move(model: Model, coordinates: Array, speeds: Array, accelerations: Array) -> Moved:
    """Where everything is, how it moves and how that changes, for coordinates (frames, coordinates)."""
    q, u, a = (np.ascontiguousarray(values.T) for values in (coordinates, speeds, accelerations))
    links = tree_links(model)
    placed = _place(model, links, q)
    column, frames = placed.column, q.shape[1]
    # the column -1 of a constant part finds some speed, which its slope of zero takes away
    rate, rate_change = u[column], a[column]
    direction = np.concatenate([placed.turning, placed.shifting + cross(placed.at, placed.turning)], axis=1)
    step = direction * (placed.slope * rate)[:, None]
    before = np.zeros_like(step)
    motion = np.zeros((len(model.bodies) + 1, 6, frames))  # the ground is last
    for link, (first, last) in zip(links, placed.span, strict=True):
        twist = motion[link.parent].copy()
        for p in range(first, last):
            before[p] = twist
            twist += step[p]
        motion[link.child] = twist
    # a direction changes with the slope of its part, and because what carries it moves
    grown = direction * (placed.slope * rate_change + placed.curvature * rate**2)[:, None]
    grown[:, :3] += cross(before[:, :3], step[:, :3])
    grown[:, 3:] += cross(before[:, :3], step[:, 3:]) + cross(before[:, 3:], step[:, :3])
    change = np.zeros_like(motion)
    for link, (first, last) in zip(links, placed.span, strict=True):
        change[link.child] = change[link.parent] + grown[first:last].sum(axis=0)
    direction *= placed.slope[:, None]
    return Moved(
        model, links, placed.position, placed.rotation, motion[:-1, :3], motion[:-1, 3:], change[:-1, :3],
        change[:-1, 3:], placed.origin, direction, column, placed.owner,
    )  # fmt: skip


class _Placed(NamedTuple):
    """Bodies, joints and parts in every frame; parts are shifts along or turns about unit vectors."""

    position: Array
    rotation: Array
    origin: Array
    turning: Array
    """(parts, 3, frames) axes of turns; zero for shifts."""
    shifting: Array
    """(parts, 3, frames) directions of shifts; zero for turns."""
    at: Array
    """(parts, 3, frames) a point on each turn's axis."""
    slope: Array
    """(parts, frames)"""
    curvature: Array
    column: NDArray[np.int64]
    owner: NDArray[np.int64]
    span: tuple[tuple[int, int], ...]
    """First and last (exclusive) part of each link."""


def _place(model: Model, links: tuple[Link, ...], q: Array) -> _Placed:
    frames, bodies = q.shape[1], len(model.bodies)
    position, rotation = np.zeros((bodies, 3, frames)), np.zeros((bodies, 3, 3, frames))
    for i, body in enumerate(model.bodies):
        position[i] = np.array(body.frame.position)[:, None]
        rotation[i] = orientation_matrix(body.frame.orientation)[..., None]
    parts = [(part, link.child) for link in links for part in (*link.shifts, *link.turns)]
    turning, shifting, at = (np.zeros((len(parts), 3, frames)) for _ in range(3))
    slope, curvature = np.ones((len(parts), frames)), np.zeros((len(parts), frames))
    origin = np.zeros((len(links), 3, frames))
    still = np.zeros((3, frames)), np.broadcast_to(np.eye(3)[..., None], (3, 3, frames))
    span, p = [], 0
    for k, link in enumerate(links):
        x, base = (position[link.parent], rotation[link.parent]) if link.parent >= 0 else still
        o, turn = x + _along(base, link.parent_place), _turned_by(base, link.parent_turn)
        first = p
        for part in (*link.shifts, *link.turns):
            if part.function is None and part.column >= 0:
                value = q[part.column]
            else:
                value, slope[p], curvature[p] = part.values(q.T)
            if p < first + len(link.shifts):
                shifting[p] = _along(turn, part.axis)
                o = o + value * shifting[p]
            else:
                turning[p], at[p] = _along(turn, part.axis), o
                turn = _turn(turn, part.axis, value)
            p += 1
        span.append((first, p))
        rotation[link.child] = _turned_by(turn, link.child_turn.T)
        position[link.child] = o - _along(rotation[link.child], link.child_place)
        origin[k] = o
    column = np.array([part.column for part, _ in parts], dtype=np.int64)
    owner = np.array([child for _, child in parts], dtype=np.int64)
    return _Placed(position, rotation, origin, turning, shifting, at, slope, curvature, column, owner, tuple(span))


def inertial_wrenches(moved: Moved) -> Array:
    """(bodies, 6, frames): moment about the world's origin [N m] and force [N] that make the bodies move so."""
    force = moved.masses[:, None, None] * moved.center_acceleration
    spun = moved.angular_momentum(moved.spin)
    moment = moved.angular_momentum(moved.spin_change) + cross(moved.spin, spun) + cross(moved.center, force)
    return np.concatenate([moment, force], axis=1)


def weight_wrenches(moved: Moved) -> Array:
    """(bodies, 6, frames): moment about the world's origin [N m] and force [N] that hold the bodies against gravity."""
    force = np.broadcast_to(-moved.masses[:, None, None] * np.array(moved.model.gravity)[:, None], moved.center.shape)
    return np.concatenate([cross(moved.center, force), force], axis=1)


def load_wrenches(moved: Moved, bodies: Sequence[int], force: Array, point: Array, moment: Array) -> Array:
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


def carried_wrenches(moved: Moved, wrenches: Array) -> Array:
    """Wrenches (..., bodies, 6, frames) of whole branches: each body's with those of all it carries."""
    total = wrenches.copy()
    for link in reversed(moved.links):
        if link.parent >= 0:
            total[..., link.parent, :, :] += total[..., link.child, :, :]
    return total


def coordinate_forces(moved: Moved, carried: Array) -> Array:
    """Forces (..., frames, coordinates) [N m or N] that supply the wrenches of branches (..., bodies, 6, frames)."""
    shares = np.einsum("pif,...pif->...pf", moved.direction, carried[..., moved.owner, :, :])
    result = np.zeros((*carried.shape[:-3], carried.shape[-1], len(moved.model.coordinates)))
    for p, column in enumerate(moved.column):
        if column >= 0:
            result[..., column] += shares[..., p, :]
    return result


def reactions(moved: Moved, carried: Array) -> tuple[Array, Array]:
    """Force [N] and moment [N m] (links, 3, frames) that joints exert on their children, about the joints' origins."""
    wrench = carried[[link.child for link in moved.links]]
    force = wrench[:, 3:]
    return force, wrench[:, :3] - cross(moved.origin, force)


def mechanical_energy(moved: Moved) -> tuple[Array, Array]:
    """Kinetic and potential energy (frames,) [J]; the latter is zero at the world's origin."""
    v = moved.center_velocity
    linear = np.einsum("b,bif,bif->f", moved.masses, v, v)
    turning = np.einsum("bif,bif->f", moved.spin, moved.angular_momentum(moved.spin))
    height = np.einsum("b,bif,i->f", moved.masses, moved.center, -np.array(moved.model.gravity))
    return 0.5 * (linear + turning), height


def cross(a: Array, b: Array) -> Array:
    """Cross products of vectors (..., 3, frames)."""
    result = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        np.multiply(a[..., j, :], b[..., k, :], out=result[..., i, :])
        result[..., i, :] -= a[..., k, :] * b[..., j, :]
    return result


def _along(turns: Array, vector: Array) -> Array:
    """A constant vector turned: (3, frames)."""
    used = np.flatnonzero(vector)
    if not len(used):
        return np.zeros((3, turns.shape[-1]))
    result = turns[:, used[0]] * vector[used[0]]
    for i in used[1:]:
        result += turns[:, i] * vector[i]
    return result


def _turn(turns: Array, axis: Array, angle: Array) -> Array:
    """Rotations (3, 3, frames) followed by those about a unit axis of their own."""
    sine = np.sin(angle)
    versine = 2.0 * np.sin(0.5 * angle) ** 2
    if np.count_nonzero(axis) == 1:
        i = int(np.flatnonzero(axis)[0])
        j, k = (i + 1) % 3, (i + 2) % 3
        sine, cosine, result = axis[i] * sine, 1.0 - versine, turns.copy()
        result[:, j] *= cosine
        result[:, j] += sine * turns[:, k]
        result[:, k] *= cosine
        result[:, k] -= sine * turns[:, j]
        return result
    x, y, z = axis
    k1 = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return turns + sine * np.einsum("ijf,jk->ikf", turns, k1) + versine * np.einsum("ijf,jk->ikf", turns, k1 @ k1)


def _turned_by(turns: Array, turn: Array) -> Array:
    """Rotations (3, 3, frames) after a constant one."""
    return turns if np.array_equal(turn, np.eye(3)) else np.asarray(np.einsum("ijf,jk->ikf", turns, turn))
