"""Forward kinematics: body poses from coordinates, and the motion that each part of a joint causes.

A part's *direction* S = (w, v) is the velocity of a point x of its subtree, w x x + v, per unit rate of its variable.
For a rotation about the axis a through o, w = f' a and v = o x w; for a translation along b, w = 0 and v = f' b.
"""

from __future__ import annotations

from math import cos, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import cross, rotate_about_axis
from borelli.tree.kinematic_tree import Tree

Floats = NDArray[np.float64]


class TreePose(NamedTuple):
    """Pose of all bodies, filled by `compute_poses`."""

    position: Floats
    """(bodies, 3) origins of the body frames [m]."""
    rotation: Floats
    """(bodies, 3, 3)"""
    rate: Floats
    """(coordinates, 2) first and second derivative with respect to the variable of each coordinate."""
    direction: Floats
    """(parts, 6) w, v."""
    origin: Floats
    """(parts, 3) a point on the axis of a rotation."""
    direction_rate: Floats
    """(parts, 6) derivative of a part's direction by its own variable, from the curvature of its function."""


def make_tree_pose(tree: Tree) -> TreePose:
    """Return arrays for a pose."""
    parts = len(tree.axis)
    return TreePose(
        tree.body_position.copy(), tree.body_rotation.copy(), np.ones((len(tree.variable), 2)),
        np.zeros((parts, 6)), np.zeros((parts, 3)), np.zeros((parts, 6)),
    )  # fmt: skip


@inline
def evaluate_function(first_piece, start, end, coefficient, function, x):
    """Return value, slope and curvature of a function, extended linearly beyond its ends."""
    first, last = first_piece[function], first_piece[function + 1] - 1
    inside = min(max(x, start[first]), end[last])
    k = first
    while k < last and inside >= end[k]:
        k += 1
    s = inside - start[k]
    value, slope, half = 0.0, 0.0, 0.0
    for n in range(coefficient.shape[1] - 1, -1, -1):
        half = half * s + slope
        slope = slope * s + value
        value = value * s + coefficient[k, n]
    if x != inside:
        return value + slope * (x - inside), slope, 0.0
    return value, slope, 2.0 * half


@inline_into_caller
def _couple(tree, q_inout, rate):
    """Set coupled coordinates, and the derivatives of every coordinate with respect to its variable."""
    for c in range(len(tree.variable)):
        rate[c, 0], rate[c, 1] = (1.0, 0.0) if tree.variable[c] >= 0 else (0.0, 0.0)
    for i in range(len(tree.coupled)):
        c, on = tree.coupled[i], tree.coupled_to[i]
        value, slope, curvature = evaluate_function(
            tree.first_piece, tree.start, tree.end, tree.coefficient, tree.coupled_function[i], q_inout[on]
        )
        q_inout[c] = value
        rate[c, 0] = slope * rate[on, 0]
        rate[c, 1] = curvature * rate[on, 0] ** 2 + slope * rate[on, 1]


@inline_into_caller
def _part_values(tree, p, q, rate):
    """Return a part's value, slope and curvature with respect to its variable."""
    c = tree.coordinate[p]
    x, first, second = 0.0, 0.0, 0.0
    if c >= 0:
        x, first, second = q[c], rate[c, 0], rate[c, 1]
    if tree.function[p] < 0:
        return x, first, second
    value, slope, curvature = evaluate_function(
        tree.first_piece, tree.start, tree.end, tree.coefficient, tree.function[p], x
    )
    return value, slope * first, curvature * first * first + slope * second


@kernel_function
def compute_poses(tree_at, q_inout, pose_at):
    """Compute the poses of all bodies; set coupled coordinates first."""
    tree, pose = load_shared(tree_at, pose_at)
    _couple(tree, q_inout, pose.rate)
    direction, direction_rate = pose.direction, pose.direction_rate
    for link in range(len(tree.child)):
        b, a = tree.child[link], tree.parent[link]
        offset, rotation = tree.parent_position[link], tree.parent_rotation[link]
        if a >= 0:
            R, x = pose.rotation[a], pose.position[a]
            ox = x[0] + R[0, 0] * offset[0] + R[0, 1] * offset[1] + R[0, 2] * offset[2]
            oy = x[1] + R[1, 0] * offset[0] + R[1, 1] * offset[1] + R[1, 2] * offset[2]
            oz = x[2] + R[2, 0] * offset[0] + R[2, 1] * offset[1] + R[2, 2] * offset[2]
            t00, t01, t02, t10, t11, t12, t20, t21, t22 = _matrix_product(R, rotation)
        else:
            ox, oy, oz = offset[0], offset[1], offset[2]
            t00, t01, t02 = rotation[0, 0], rotation[0, 1], rotation[0, 2]
            t10, t11, t12 = rotation[1, 0], rotation[1, 1], rotation[1, 2]
            t20, t21, t22 = rotation[2, 0], rotation[2, 1], rotation[2, 2]
        start, end = tree.first[link], tree.first[link + 1]
        first_rotation = end - tree.rotations[link]
        for p in range(start, end):
            ux, uy, uz = tree.axis[p, 0], tree.axis[p, 1], tree.axis[p, 2]
            ax, ay, az = (
                t00 * ux + t01 * uy + t02 * uz, t10 * ux + t11 * uy + t12 * uz, t20 * ux + t21 * uy + t22 * uz,
            )  # fmt: skip
            value, slope, curvature = _part_values(tree, p, q_inout, pose.rate)
            if p < first_rotation:
                ox, oy, oz = ox + value * ax, oy + value * ay, oz + value * az
                _put6(direction, p, 0.0, 0.0, 0.0, slope * ax, slope * ay, slope * az)
                _put6(direction_rate, p, 0.0, 0.0, 0.0, curvature * ax, curvature * ay, curvature * az)
                continue
            mx, my, mz = cross(ox, oy, oz, ax, ay, az)
            _put6(direction, p, slope * ax, slope * ay, slope * az, slope * mx, slope * my, slope * mz)
            _put6(
                direction_rate, p,
                curvature * ax, curvature * ay, curvature * az, curvature * mx, curvature * my, curvature * mz,
            )  # fmt: skip
            pose.origin[p, 0], pose.origin[p, 1], pose.origin[p, 2] = ox, oy, oz
            s, c = sin(value), cos(value)
            # rotating T about one of its own columns mixes the two others
            if uy == 0.0 and uz == 0.0:
                t01, t11, t21, t02, t12, t22 = _mix_columns(ux * s, c, t01, t11, t21, t02, t12, t22)
            elif ux == 0.0 and uz == 0.0:
                t02, t12, t22, t00, t10, t20 = _mix_columns(uy * s, c, t02, t12, t22, t00, t10, t20)
            elif ux == 0.0 and uy == 0.0:
                t00, t10, t20, t01, t11, t21 = _mix_columns(uz * s, c, t00, t10, t20, t01, t11, t21)
            else:  # about the world axis a: c t + s a x t + (1 - c)(a.t) a
                t00, t10, t20 = rotate_about_axis(ax, ay, az, s, c, t00, t10, t20)
                t01, t11, t21 = rotate_about_axis(ax, ay, az, s, c, t01, t11, t21)
                t02, t12, t22 = rotate_about_axis(ax, ay, az, s, c, t02, t12, t22)
        child_rotation, R, x = tree.child_rotation[link], pose.rotation[b], pose.position[b]
        for i in range(3):  # T times the transpose of the joint frame's rotation in the child
            R[0, i] = t00 * child_rotation[i, 0] + t01 * child_rotation[i, 1] + t02 * child_rotation[i, 2]
            R[1, i] = t10 * child_rotation[i, 0] + t11 * child_rotation[i, 1] + t12 * child_rotation[i, 2]
            R[2, i] = t20 * child_rotation[i, 0] + t21 * child_rotation[i, 1] + t22 * child_rotation[i, 2]
        offset = tree.child_position[link]
        x[0] = ox - R[0, 0] * offset[0] - R[0, 1] * offset[1] - R[0, 2] * offset[2]
        x[1] = oy - R[1, 0] * offset[0] - R[1, 1] * offset[1] - R[1, 2] * offset[2]
        x[2] = oz - R[2, 0] * offset[0] - R[2, 1] * offset[1] - R[2, 2] * offset[2]


@inline
def _matrix_product(A, B):
    return (
        A[0, 0] * B[0, 0] + A[0, 1] * B[1, 0] + A[0, 2] * B[2, 0],
        A[0, 0] * B[0, 1] + A[0, 1] * B[1, 1] + A[0, 2] * B[2, 1],
        A[0, 0] * B[0, 2] + A[0, 1] * B[1, 2] + A[0, 2] * B[2, 2],
        A[1, 0] * B[0, 0] + A[1, 1] * B[1, 0] + A[1, 2] * B[2, 0],
        A[1, 0] * B[0, 1] + A[1, 1] * B[1, 1] + A[1, 2] * B[2, 1],
        A[1, 0] * B[0, 2] + A[1, 1] * B[1, 2] + A[1, 2] * B[2, 2],
        A[2, 0] * B[0, 0] + A[2, 1] * B[1, 0] + A[2, 2] * B[2, 0],
        A[2, 0] * B[0, 1] + A[2, 1] * B[1, 1] + A[2, 2] * B[2, 1],
        A[2, 0] * B[0, 2] + A[2, 1] * B[1, 2] + A[2, 2] * B[2, 2],
    )


@inline
def _mix_columns(s, c, ax, ay, az, bx, by, bz):
    return c * ax + s * bx, c * ay + s * by, c * az + s * bz, c * bx - s * ax, c * by - s * ay, c * bz - s * az


@inline
def _put6(table, p, a, b, c, d, e, f):
    table[p, 0], table[p, 1], table[p, 2], table[p, 3], table[p, 4], table[p, 5] = a, b, c, d, e, f
