"""Snap penalty: roughness of a motion, independent of lab axes and of the choice of joint angles.

The *snap* of a variable is its fourth difference in time. The three angles of a joint with three rotation axes (a ball
joint, the root) are no measure of roughness: they depend on the axes and diverge near gimbal lock. There, rotations of
the neighboring frames are taken relative to the center frame,

    y = sum c_k s(R_m^T R_k)        s(M): half the axial vector of M - M^T, the sine of the angle along the axis

with c the coefficients of the difference, k the frames, m the center frame. A rotation of the lab cancels. With E_k a
small rotation of the child in its own axes, ds = (tr M - M^T) E_k / 2 - (tr M - M) E_m / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.model.kinematics import Link, tree_links
from borelli.model.model import Model
from borelli.numerics.banded import BandedMatrix
from borelli.numerics.vectors import Array
from borelli.tree.kinematic_tree import Tree

COEFFICIENTS = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
"""Of the fourth difference."""
DIFFERENCE_ORDER = len(COEFFICIENTS) - 1
CENTER = DIFFERENCE_ORDER // 2


@dataclass(frozen=True)
class SphericalJoint:
    """Joint with three rotation axes."""

    link: Link
    columns: tuple[int, int, int]
    """Of its coordinates."""
    variables: tuple[int, int, int]


@dataclass(frozen=True)
class Grouping:
    """Variables whose snap is their own, and joints whose snap is that of a rotation."""

    joints: tuple[SphericalJoint, ...]
    plain: NDArray[np.int64]
    """Variables."""
    family: NDArray[np.int64]
    """Of each plain variable: those of one family (the translations of one joint) have the same weight."""


def group_variables(model: Model, tree: Tree) -> Grouping:
    """Return how the snap of a model's variables is computed."""
    joints, family = [], np.arange(len(tree.free))
    for link in tree_links(model):
        columns = tuple(part.column for part in link.rotations)
        variables = tuple(int(tree.variable[c]) if c >= 0 else -1 for c in columns)
        own = [c for c in columns if c >= 0 and c in tree.free]
        if len(own) == len(set(variables)) == 3:
            (a, b, c), (i, j, k) = columns, variables
            joints.append(SphericalJoint(link, (a, b, c), (i, j, k)))
        translations = [
            int(tree.variable[p.column]) for p in link.translations if p.column >= 0 and p.column in tree.free
        ]
        family[[v for v in translations if v >= 0]] = min(translations, default=0)
    rotational = {v for joint in joints for v in joint.variables}
    plain = np.array([v for v in range(len(tree.free)) if v not in rotational], np.int64)
    return Grouping(tuple(joints), plain, family[plain])


def find_snap(grouping: Grouping, tree: Tree, q: Array) -> tuple[Array, list[Array]]:
    """Return the snap (frames - 4, variables) of coordinates q, and the Jacobian of that of each spherical joint.

    A joint's three entries are along the child's axes; its Jacobian (5, frames - 4, 3, 3) is by its variables in each
    of the five frames.
    """
    windows = len(q) - DIFFERENCE_ORDER
    snap = np.zeros((windows, len(tree.free)))
    values = q[:, tree.free[grouping.plain]]
    for k, c in enumerate(COEFFICIENTS):
        snap[:, grouping.plain] += c * values[k : k + windows]
    jacobians = []
    for joint in grouping.joints:
        rotation, angular_velocity = joint_rotation(joint, q)
        center = rotation[CENTER : CENTER + windows]
        jacobian = np.zeros((DIFFERENCE_ORDER + 1, windows, 3, 3))
        total = np.zeros((windows, 3))
        for k, c in enumerate(COEFFICIENTS):
            if k == CENTER:
                continue
            M = center.swapaxes(1, 2) @ rotation[k : k + windows]
            total += 0.5 * c * _axial(M - M.swapaxes(1, 2))
            trace = np.trace(M, axis1=1, axis2=2)[:, None, None] * np.eye(3)
            jacobian[k] = 0.5 * c * (trace - M.swapaxes(1, 2)) @ angular_velocity[k : k + windows]
            jacobian[CENTER] -= 0.5 * c * (trace - M) @ angular_velocity[CENTER : CENTER + windows]
        snap[:, joint.variables] = total
        jacobians.append(jacobian)
    return snap, jacobians


def snap_gradient(grouping: Grouping, jacobians: list[Array], force: Array) -> Array:
    """Return the gradient (frames, variables) of sum weight snap^2 / 2, with force = weight snap."""
    windows = len(force)
    gradient = np.zeros((windows + DIFFERENCE_ORDER, force.shape[1]))
    for k, c in enumerate(COEFFICIENTS):
        gradient[k : k + windows, grouping.plain] += c * force[:, grouping.plain]
    for joint, jacobian in zip(grouping.joints, jacobians, strict=True):
        own = force[:, joint.variables][:, None]
        for k in range(DIFFERENCE_ORDER + 1):
            gradient[k : k + windows, joint.variables] += (own @ jacobian[k])[:, 0]
    return gradient


def add_snap(grouping: Grouping, jacobians: list[Array], weight: Array, hessian: BandedMatrix) -> None:
    """Add the Gauss-Newton Hessian of sum weight snap^2 / 2 to a banded matrix of bandwidth 4 frames."""
    frames, n = hessian.entry.shape[:2]
    windows = frames - DIFFERENCE_ORDER
    square = np.zeros((DIFFERENCE_ORDER + 1, frames))
    for early in range(DIFFERENCE_ORDER + 1):
        for late in range(early, DIFFERENCE_ORDER + 1):
            square[late - early, early : early + windows] += COEFFICIENTS[early] * COEFFICIENTS[late]
    for later in range(DIFFERENCE_ORDER + 1):
        hessian.entry[:, grouping.plain, later * n] += square[later][:, None] * weight[grouping.plain]
    for joint, jacobian in zip(grouping.joints, jacobians, strict=True):
        own = weight[list(joint.variables)]
        blocks = np.zeros((DIFFERENCE_ORDER + 1, frames, 3, 3))
        for early in range(DIFFERENCE_ORDER + 1):
            weighted = jacobian[early] * own[:, None]
            for late in range(early, DIFFERENCE_ORDER + 1):
                blocks[late - early, early : early + windows] += jacobian[late].swapaxes(1, 2) @ weighted
        for later in range(DIFFERENCE_ORDER + 1):
            for i, a in enumerate(joint.variables):
                for j, b in enumerate(joint.variables):
                    hessian.add_entries(later, a, b, blocks[later, :, i, j])


def joint_rotation(joint: SphericalJoint, q: Array) -> tuple[Array, Array]:
    """Return rotations (frames, 3, 3) of a joint's child, and its angular velocities per variable, in child's axes."""
    rotation = np.broadcast_to(np.eye(3), (len(q), 3, 3))
    angular_velocity = np.zeros((len(q), 3, 3))
    for i, part in enumerate(joint.link.rotations):
        value, slope, _ = part.values(q)
        step = _rotation_about(part.axis, value)
        angular_velocity = step.swapaxes(1, 2) @ angular_velocity
        angular_velocity[:, :, i] = slope[:, None] * part.axis
        rotation = rotation @ step
    return rotation, angular_velocity


def _rotation_about(axis: Array, angle: Array) -> Array:
    """Return rotations (frames, 3, 3) by angles about a unit axis (Rodrigues)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle)[:, None, None] * K + (1.0 - np.cos(angle))[:, None, None] * (K @ K)


def _axial(M: Array) -> Array:
    """Return the axial vectors (frames, 3) of skew-symmetric matrices."""
    return np.stack([M[:, 2, 1], M[:, 0, 2], M[:, 1, 0]], axis=-1)
