"""The recursive Newton-Euler algorithm (RNEA) by causes, for all frames of a motion at once.

The kernels of `tree` move the bodies; wrenches are plain numpy with time along the last axis, so that every operation
runs over all frames. Velocities, accelerations and wrenches (moment, force) are taken at the world origin: those of a
subtree are then plain sums. The generalized force of a rotation about A through o is A . moment about o, of a
translation along b it is b . force (Featherstone 2008, chapter 5). `model.kinematics.generalized_forces` computes the
same in body frames: it is slower, easier to follow, and checks this module in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.kinematics import Link, tree_links
from borelli.model.model import Model
from borelli.numerics.vectors import Array, cross
from borelli.tree.body_motion import compute_body_motion
from borelli.tree.forward_kinematics import make_tree_pose
from borelli.tree.kinematic_tree import make_coordinate_tree
from borelli.tree.tree_dynamics import make_dynamics_work


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
    tree = make_coordinate_tree(model)
    bodies, links, parts, frames = len(tree.body_part), len(tree.child), len(tree.axis), len(coordinates)
    body, origin, axis = np.empty((bodies, 24, frames)), np.empty((links, 3, frames)), np.empty((parts, 3, frames))
    arrays = (SharedTuple(table) for table in (tree, make_tree_pose(tree), make_dynamics_work(tree)))
    given = (np.array(values, float, order="C") for values in (coordinates, speeds, accelerations))
    compute_body_motion(*(*arrays, *given, body, origin, axis))
    link = np.repeat(np.arange(links), np.diff(tree.first))
    rotational = np.arange(parts) >= (tree.first[1:] - tree.rotations)[link]
    return BodyKinematics(
        model, coordinates, speeds, tree_links(model), body[:, :3], body[:, 3:12].reshape(bodies, 3, 3, frames),
        body[:, 12:15], body[:, 15:18], body[:, 18:21], body[:, 21:], origin, axis, tree.coordinate, link, rotational,
    )  # fmt: skip


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
