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

from borelli.analysis.tree_kernels.smoothing_kernels import (
    CENTER,
    COEFFICIENT,
    add_snap_force,
    apply_snap,
    compute_rotational_snap,
    rotate_joints,
)
from borelli.model.kinematics import Link, tree_links
from borelli.model.model import Model
from borelli.numerics.banded import BandedMatrix
from borelli.numerics.vectors import Array
from borelli.tree.kinematic_tree import Tree

COEFFICIENTS = np.array(COEFFICIENT)
DIFFERENCE_ORDER = len(COEFFICIENTS) - 1


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
    variables: NDArray[np.int64]
    """(joints, 3) of the joints."""
    plain: NDArray[np.int64]
    """Variables."""
    family: NDArray[np.int64]
    """Of each plain variable: those of one family (the translations of one joint) have the same weight."""


def group_variables(model: Model, tree: Tree) -> Grouping:
    """Return how the snap of a model's variables is computed."""
    joints, family = [], np.arange(len(tree.free))
    for link in tree_links(model):
        columns = tuple(part.column for part in link.rotations)
        moved = tuple(int(tree.variable[c]) if c >= 0 else -1 for c in columns)
        own = [c for c in columns if c >= 0 and c in tree.free]
        if len(own) == len(set(moved)) == 3:
            (a, b, c), (i, j, k) = columns, moved
            joints.append(SphericalJoint(link, (a, b, c), (i, j, k)))
        translations = [
            int(tree.variable[p.column]) for p in link.translations if p.column >= 0 and p.column in tree.free
        ]
        family[[v for v in translations if v >= 0]] = min(translations, default=0)
    rotational = {v for joint in joints for v in joint.variables}
    plain = np.array([v for v in range(len(tree.free)) if v not in rotational], np.int64)
    variables = np.array([joint.variables for joint in joints], np.int64).reshape(-1, 3)
    return Grouping(tuple(joints), variables, plain, family[plain])


def find_snap(grouping: Grouping, tree: Tree, q: Array) -> tuple[Array, Array]:
    """Return the snap (frames - 4, variables) of coordinates q, and the Jacobian of that of spherical joints.

    A joint's three entries are along the child's axes; the Jacobian (joints, frames - 4, 5, 3, 3) is by the joint's
    variables in each of the five frames.
    """
    windows, joints = len(q) - DIFFERENCE_ORDER, grouping.joints
    snap = np.empty((windows, len(tree.free)))
    rotation, angular_velocity = joint_rotations(joints, q)
    jacobian, own = np.empty((len(joints), windows, len(COEFFICIENTS), 3, 3)), np.empty((len(joints), windows, 3))
    apply_snap(jacobian[:0], grouping.variables[:0], np.ascontiguousarray(q[:, tree.free]), snap)
    compute_rotational_snap(rotation, angular_velocity, own, jacobian)
    snap[:, grouping.variables] = own.swapaxes(0, 1)
    return snap, jacobian


def snap_gradient(grouping: Grouping, jacobian: Array, force: Array) -> Array:
    """Return the gradient (frames, variables) of sum weight snap^2 / 2, with force = weight snap; overwrites it."""
    gradient = np.zeros((len(force) + DIFFERENCE_ORDER, force.shape[1]))
    add_snap_force(jacobian, grouping.variables, force, gradient)
    return gradient


def snap_hessian_product(grouping: Grouping, jacobian: Array, weight: Array, x: Array) -> Array:
    """Return the Gauss-Newton Hessian of sum weight snap^2 / 2 times x (frames, variables)."""
    snap = np.empty((len(x) - DIFFERENCE_ORDER, x.shape[1]))
    apply_snap(jacobian, grouping.variables, x, snap)
    snap *= weight
    return snap_gradient(grouping, jacobian, snap)


def mean_weight(grouping: Grouping, jacobian: Array, weight: Array) -> Array:
    """Return the weight (variables, variables) of the fourth difference of the variables, as a mean over frames.

    The rotations of neighboring frames differ little, so the Jacobian is that of the center frame times c_k / c_center.
    """
    result = np.diag(weight)
    for variables, own in zip(grouping.variables, jacobian[:, :, CENTER] / COEFFICIENTS[CENTER], strict=True):
        result[np.ix_(variables, variables)] = np.einsum("tik,i,til->kl", own, weight[variables], own) / len(own)
    return result


def square_of_differences(frames: int) -> Array:
    """Return the entries (5, frames) of D^T D by lag, D the fourth difference."""
    windows = frames - DIFFERENCE_ORDER
    square = np.zeros((DIFFERENCE_ORDER + 1, frames))
    for early in range(DIFFERENCE_ORDER + 1):
        for late in range(early, DIFFERENCE_ORDER + 1):
            square[late - early, early : early + windows] += COEFFICIENTS[early] * COEFFICIENTS[late]
    return square


def add_snap(grouping: Grouping, jacobian: Array, weight: Array, hessian: BandedMatrix) -> None:
    """Add the Gauss-Newton Hessian of sum weight snap^2 / 2 to a banded matrix of bandwidth 4 frames."""
    frames, n = hessian.entry.shape[:2]
    windows, square = frames - DIFFERENCE_ORDER, square_of_differences(frames)
    for later in range(DIFFERENCE_ORDER + 1):
        hessian.entry[:, grouping.plain, later * n] += square[later][:, None] * weight[grouping.plain]
    for variables, own in zip(grouping.variables, jacobian, strict=True):
        blocks = np.zeros((DIFFERENCE_ORDER + 1, frames, 3, 3))
        for early in range(DIFFERENCE_ORDER + 1):
            weighted = own[:, early] * weight[variables][:, None]
            for late in range(early, DIFFERENCE_ORDER + 1):
                blocks[late - early, early : early + windows] += own[:, late].swapaxes(1, 2) @ weighted
        for later in range(DIFFERENCE_ORDER + 1):
            for i, a in enumerate(variables):
                for j, b in enumerate(variables):
                    hessian.add_entries(later, a, b, blocks[later, :, i, j])


def joint_rotations(joints: tuple[SphericalJoint, ...], q: Array) -> tuple[Array, Array]:
    """Return rotations (joints, frames, 3, 3) of the joints' children, and their angular velocities per variable.

    Angular velocities, by columns, are in the child's axes.
    """
    axis, (angle, slope) = np.empty((len(joints), 3, 3)), np.empty((2, len(joints), 3, len(q)))
    for i, joint in enumerate(joints):
        for k, part in enumerate(joint.link.rotations):
            axis[i, k] = part.axis
            angle[i, k], slope[i, k], _ = part.values(q)
    rotation, angular_velocity = np.empty((2, len(joints), len(q), 3, 3))
    rotate_joints(axis, angle, slope, rotation, angular_velocity)
    return rotation, angular_velocity
