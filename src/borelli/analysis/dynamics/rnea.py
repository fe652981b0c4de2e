"""Forward kinematics and the recursive Newton-Euler algorithm (RNEA), for all frames of a motion at once.

Plain numpy with time along the last axis, so that every operation runs over all frames. Velocities, accelerations and
wrenches (moment, force) are taken at the world origin: those of a subtree are then plain sums. With w the angular
velocity of a body and v the velocity of its point at the world origin, a joint at o with translations b_i s_i and
rotations A_i f_i, each carried by those before it, adds

    w += sum A_i f_i'                    w' += sum A_i f_i'' + sum w_i x A_i f_i'       (w_i: w before rotation i)
    v += sum b_i s_i' + o x sum A_i f_i'

and v' is its derivative, with o' the velocity of the joint. The generalized force of a rotation is A_i . moment about
o, of a translation b_i . force (Featherstone 2008, chapter 5). `model.kinematics.generalized_forces` computes the same
in body frames: it is slower, easier to follow, and checks this module in the tests.
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
from borelli.numerics.vectors import Array, cross

_IDENTITY = np.eye(3).tolist()


@dataclass(frozen=True)
class BodyKinematics:
    """Pose, velocity and acceleration of every body and joint axis in every frame, in model axes; time last."""

    model: Model
    coordinates: Array
    """(frames, coordinates) [rad or m]."""
    speeds: Array
    """(frames, coordinates) [rad/s or m/s]."""
    links: tuple[Link, ...]
    """Joints of the tree, parents first."""
    position: Array
    """(bodies, 3, frames) origins of the body frames [m]."""
    rotation: Array
    """(bodies, 3, 3, frames) body to world."""
    angular_velocity: Array
    """(bodies, 3, frames) [rad/s]."""
    velocity: Array
    """(bodies, 3, frames) of the body's point at the world origin [m/s]."""
    angular_acceleration: Array
    """(bodies, 3, frames) [rad/s^2]."""
    acceleration: Array
    """(bodies, 3, frames) time derivative of `velocity` [m/s^2]."""
    origin: Array
    """(links, 3, frames) of the child's joint frame [m]."""
    axis: Array
    """(axes, 3, frames) of translations, then rotations, link by link, times the slopes of their functions."""
    column: NDArray[np.int64]
    """(axes,) coordinate of each axis; -1: constant."""
    link: NDArray[np.int64]
    """(axes,) link of each axis."""
    rotational: NDArray[np.bool_]
    """(axes,) whether the axis is one of rotation."""

    @cached_property
    def center(self) -> Array:
        """(bodies, 3, frames) centers of mass [m]."""
        local = np.array([body.center_of_mass for body in self.model.bodies])
        return self.position + np.einsum("bijf,bj->bif", self.rotation, local)

    @cached_property
    def masses(self) -> Array:
        """(bodies,) [kg]."""
        return np.array([body.mass for body in self.model.bodies])

    @cached_property
    def center_velocity(self) -> Array:
        """(bodies, 3, frames) of the centers of mass [m/s]."""
        return self.velocity + cross(self.angular_velocity, self.center)

    @cached_property
    def center_acceleration(self) -> Array:
        """(bodies, 3, frames) of the centers of mass [m/s^2]."""
        centripetal = cross(self.angular_velocity, self.center_velocity)
        return self.acceleration + cross(self.angular_acceleration, self.center) + centripetal

    @cached_property
    def required_wrench(self) -> Array:
        """(2, bodies, 6, frames) wrenches that the inertia and the weight of each subtree require."""
        return subtree_wrenches(self, np.stack([inertial_wrenches(self), weight_wrenches(self)]))

    @cached_property
    def required_force(self) -> Array:
        """(2, frames, coordinates) generalized forces of `required_wrench`, couplings not considered [N m or N]."""
        return coordinate_forces(self, self.required_wrench)

    def angular_momentum(self, vectors: Array) -> Array:
        """Return the bodies' inertias about their centers of mass times vectors (bodies, 3, frames), world axes."""
        inertia = np.array([body.inertia for body in self.model.bodies])
        local = np.einsum("bijf,bif->bjf", self.rotation, vectors)
        return np.asarray(np.einsum("bijf,bjf->bif", self.rotation, np.einsum("bij,bjf->bif", inertia, local)))

    def point_velocity(self, body: int, points: Array) -> Array:
        """Return the velocity (frames, 3) [m/s] of the points of a body at these world positions (frames, 3) [m]."""
        return np.asarray((self.velocity[body] + cross(self.angular_velocity[body], points.T)).T)


def forward_kinematics(model: Model, coordinates: Array, speeds: Array, accelerations: Array) -> BodyKinematics:
    """Compute the kinematics of all bodies from coordinates (frames, coordinates) that satisfy the couplings."""
    q, u, a = (np.ascontiguousarray(values.T) for values in (coordinates, speeds, accelerations))
    links = tree_links(model)
    poses = _poses(model, links, q)
    origin, spans = poses.origin, poses.span
    bodies, frames = len(model.bodies) + 1, q.shape[1]  # the ground is last
    # the column -1 of a constant axis picks some speed, which its slope of zero cancels
    rate, rate_change = u[poses.column], a[poses.column]
    step = poses.axis * (poses.slope * rate)[:, None]
    step_change = poses.axis * (poses.slope * rate_change + poses.curvature * rate**2)[:, None]
    angular_velocity, velocity, angular_acceleration, acceleration = (np.zeros((bodies, 3, frames)) for _ in range(4))
    before = np.zeros_like(step)
    for link, (first, first_rotation, last) in zip(links, spans, strict=True):
        before[first:first_rotation] = angular_velocity[link.parent]
        w = angular_velocity[link.child]
        w[:] = angular_velocity[link.parent]
        for p in range(first_rotation, last):
            before[p] = w
            w += step[p]
    step_change += cross(before, step)
    (linear, angular), (linear_change, angular_change) = (_sum_by_link(v, spans) for v in (step, step_change))
    about_origin = cross(origin, angular)
    about_origin += linear
    for k, link in enumerate(links):
        np.add(velocity[link.parent], about_origin[k], out=velocity[link.child])
    parents = [link.parent for link in links]
    joint_velocity = cross(angular_velocity[parents], origin)
    joint_velocity += velocity[parents]
    joint_velocity += linear
    relative = cross(joint_velocity, angular)
    relative += cross(origin, angular_change)
    relative += linear_change
    for k, link in enumerate(links):
        np.add(angular_acceleration[link.parent], angular_change[k], out=angular_acceleration[link.child])
        np.add(acceleration[link.parent], relative[k], out=acceleration[link.child])
    return BodyKinematics(
        model, coordinates, speeds, links, poses.position, poses.rotation, angular_velocity[:-1], velocity[:-1],
        angular_acceleration[:-1], acceleration[:-1], origin, poses.axis * poses.slope[:, None], poses.column,
        poses.link, poses.rotational,
    )  # fmt: skip


def _sum_by_link(values: Array, span: Sequence[tuple[int, int, int]]) -> tuple[Array, Array]:
    """Return sums (links, 3, frames) of values (axes, 3, frames) over the translations and rotations of each link."""
    result = np.zeros((2, len(span), *values.shape[1:]))
    edges = [
        (kind, k, start)
        for k, (first, first_rotation, last) in enumerate(span)
        for kind, start, end in ((0, first, first_rotation), (1, first_rotation, last))
        if end > start
    ]
    if edges:
        kinds, owners, starts = zip(*edges, strict=True)
        result[list(kinds), list(owners)] = np.add.reduceat(values, starts)
    return result[0], result[1]


class _Poses(NamedTuple):
    """Poses of bodies, joints and joint axes in every frame."""

    position: Array
    rotation: Array
    origin: Array
    axis: Array
    """(axes, 3, frames) unit vectors."""
    slope: Array
    """(axes, frames)"""
    curvature: Array
    column: NDArray[np.int64]
    link: NDArray[np.int64]
    rotational: NDArray[np.bool_]
    span: tuple[tuple[int, int, int], ...]
    """First axis, first rotation and last axis (exclusive) of each link."""


def _poses(model: Model, links: tuple[Link, ...], q: Array) -> _Poses:
    frames, bodies = q.shape[1], len(model.bodies)
    position, rotation = np.empty((bodies, 3, frames)), np.empty((bodies, 3, 3, frames))
    jointed = {link.child for link in links}
    for i, body in enumerate(model.bodies):
        if i not in jointed:
            position[i] = np.array(body.frame.position)[:, None]
            rotation[i] = orientation_matrix(body.frame.orientation)[..., None]
    parts = [
        (part.column, k, rotational)
        for k, link in enumerate(links)
        for rotational, axes in enumerate((link.translations, link.rotations))
        for part in axes
    ]
    axis = np.empty((len(parts), 3, frames))
    slope, curvature = np.ones((len(parts), frames)), np.zeros((len(parts), frames))
    origin = np.empty((len(links), 3, frames))
    ground = np.zeros((3, frames)), np.broadcast_to(np.eye(3)[..., None], (3, 3, frames))
    # of all coordinates at once: most axes rotate by a coordinate itself
    sines, versines = np.sin(q), np.sin(0.5 * q)
    versines *= versines
    versines *= 2.0
    span, p = [], 0
    for k, link in enumerate(links):
        x, base = (position[link.parent], rotation[link.parent]) if link.parent >= 0 else ground
        o, frame = _rotated_vector(base, link.parent_position), _rotated_by_constant(base, link.parent_rotation)
        o += x
        first, first_rotation = p, p + len(link.translations)
        for part in (*link.translations, *link.rotations):
            plain = part.function is None and part.column >= 0
            if plain:
                value = q[part.column]
            else:
                value, slope[p], curvature[p] = part.values(q.T)
            axis[p] = _rotated_vector(frame, part.axis)
            if p < first_rotation:
                o += value * axis[p]
            elif plain:
                frame = _rotated_about(frame, part.axis, sines[part.column], versines[part.column])
            else:
                frame = _rotated_about(frame, part.axis, np.sin(value), 2.0 * np.sin(0.5 * value) ** 2)
            p += 1
        span.append((first, first_rotation, p))
        rotation[link.child] = _rotated_by_constant(frame, link.child_rotation.T)
        np.subtract(o, _rotated_vector(rotation[link.child], link.child_position), out=position[link.child])
        origin[k] = o
    column, owner, rotational = np.array(parts, dtype=np.int64).reshape(-1, 3).T
    return _Poses(position, rotation, origin, axis, slope, curvature, column, owner, rotational > 0, tuple(span))


def inertial_wrenches(kinematics: BodyKinematics) -> Array:
    """Return the wrenches (bodies, 6, frames) of inertia: moment about the world origin [N m] and force [N]."""
    force = kinematics.masses[:, None, None] * kinematics.center_acceleration
    w, center = kinematics.angular_velocity, kinematics.center
    momentum = kinematics.angular_momentum(w)
    moment = kinematics.angular_momentum(kinematics.angular_acceleration) + cross(w, momentum) + cross(center, force)
    return np.concatenate([moment, force], axis=1)


def weight_wrenches(kinematics: BodyKinematics) -> Array:
    """Return the wrenches (bodies, 6, frames) that balance gravity: moment about the world origin [N m], force [N]."""
    center, gravity = kinematics.center, np.array(kinematics.model.gravity)
    force = np.broadcast_to(-kinematics.masses[:, None, None] * gravity[:, None], center.shape)
    return np.concatenate([cross(center, force), force], axis=1)


def load_wrenches(
    kinematics: BodyKinematics, bodies: Sequence[int], force: Array, point: Array, moment: Array
) -> Array:
    """Return the wrenches (bodies, 6, frames) by which loads (frames, loads, 3) relieve the joints, model axes."""
    result = np.zeros((len(kinematics.position), 6, kinematics.position.shape[-1]))
    for k, body in enumerate(bodies):
        f = force[:, k].T
        result[body, :3] -= cross(point[:, k].T, f) + moment[:, k].T
        result[body, 3:] -= f
    return result


def subtree_wrenches(kinematics: BodyKinematics, wrenches: Array) -> Array:
    """Return wrenches (..., bodies, 6, frames), each body's with those of all bodies outboard of it."""
    total = wrenches.copy()
    for link in reversed(kinematics.links):
        if link.parent >= 0:
            total[..., link.parent, :, :] += total[..., link.child, :, :]
    return total


def coordinate_forces(kinematics: BodyKinematics, wrenches: Array) -> Array:
    """Return generalized forces (..., frames, coordinates) [N m or N] of subtree wrenches (..., bodies, 6, frames)."""
    force, moment = joint_reactions(kinematics, wrenches)
    result = np.zeros((*wrenches.shape[:-3], len(kinematics.model.coordinates), wrenches.shape[-1]))
    for kind, wrench in ((kinematics.rotational, moment), (~kinematics.rotational, force)):
        axes = np.flatnonzero(kind & (kinematics.column >= 0))
        x, y, z = (kinematics.axis[axes, i] * wrench[..., kinematics.link[axes], i, :] for i in range(3))
        by_axis = x + y + z
        for k, column in enumerate(kinematics.column[axes]):
            result[..., column, :] += by_axis[..., k, :]
    return np.ascontiguousarray(result.swapaxes(-1, -2))


def joint_reactions(kinematics: BodyKinematics, wrenches: Array) -> tuple[Array, Array]:
    """Return force [N] and moment [N m] (..., links, 3, frames) of joints on their children, at the joint centers."""
    wrench = wrenches[..., [link.child for link in kinematics.links], :, :]
    force = wrench[..., 3:, :]
    return force, wrench[..., :3, :] - cross(kinematics.origin, force)


def mechanical_energy(kinematics: BodyKinematics) -> tuple[Array, Array]:
    """Return kinetic and potential energy (frames,) [J]; the latter is zero at the world origin."""
    v, w, masses = kinematics.center_velocity, kinematics.angular_velocity, kinematics.masses
    linear = np.einsum("b,bif,bif->f", masses, v, v)
    angular = np.einsum("bif,bif->f", w, kinematics.angular_momentum(w))
    potential = np.einsum("b,bif,i->f", masses, kinematics.center, -np.array(kinematics.model.gravity))
    return 0.5 * (linear + angular), potential


def _rotated_vector(rotations: Array, vector: Array) -> Array:
    """Return a constant vector rotated: (3, frames)."""
    used = [(i, length) for i, length in enumerate(vector.tolist()) if length]
    if not used:
        return np.zeros((3, rotations.shape[-1]))
    result = np.asarray(rotations[:, used[0][0]] * used[0][1])
    for i, length in used[1:]:
        result += rotations[:, i] * length
    return result


def _rotated_about(rotations: Array, axis: Array, sine: Array, versine: Array) -> Array:
    """Return rotations (3, 3, frames) times rotations about a unit axis, by angles of this sine and versine."""
    x, y, z = axis.tolist()
    if (x != 0.0) + (y != 0.0) + (z != 0.0) == 1:
        i = 0 if x else 1 if y else 2
        j, k = (i + 1) % 3, (i + 2) % 3
        sine, cosine, result = (x + y + z) * sine, 1.0 - versine, np.empty_like(rotations)
        result[:, i] = rotations[:, i]
        np.add(cosine * rotations[:, j], sine * rotations[:, k], out=result[:, j])
        np.subtract(cosine * rotations[:, k], sine * rotations[:, j], out=result[:, k])
        return result
    k1 = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    once, twice = (np.einsum("ijf,jk->ikf", rotations, k) for k in (k1, k1 @ k1))
    return np.asarray(rotations + sine * once + versine * twice)


def _rotated_by_constant(rotations: Array, constant: Array) -> Array:
    """Return rotations (3, 3, frames) times a constant one."""
    return rotations if constant.tolist() == _IDENTITY else np.asarray(np.einsum("ijf,jk->ikf", rotations, constant))
