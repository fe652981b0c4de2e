"""Marker energy, the objective of inverse kinematics: a spring per marker, rest-pose springs and joint limits.

    E(q) = 1/2 sum_m k_m |x_m(q) - y_m|^2 + 1/2 sum_i s_i (q_i - rest_i)^2 + limits

Its derivatives are computed like the mass matrix of a tree: the subtree of a part acts through sums over its markers,
with f = k (x - y),

    k, sum k x, sum k x x^T      stiffness: a force k (v + w x x) and its moment per unit of a direction (w, v)
    F = sum f, N = sum x f^T     the spring force itself

and with S_i, S_j the directions of parts i on the path to part j, and N' = N - o_j F^T,

    dE/dq_j        = S_j . (sum x x f, F)
    d2E/dq_i dq_j  = S_i . (stiffness of j) S_j                                  Gauss-Newton part
                     + w_i^T N' w_j - (w_i . w_j) tr N'      (j a rotation)      the remainder, exact
                     + (w_i x v_j) . F                        (j a translation)
                     + direction_rate_j . (sum x x f, F)      (i = j)

because a point x in the subtree of rotation j moves by w_j x (x - o_j), which an earlier rotation i rotates as well.
The cost is that of the number of pairs of parts on one path, for any number of markers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import cross
from borelli.tree.forward_kinematics import TreePose, compute_poses, make_tree_pose
from borelli.tree.kinematic_tree import Tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# columns of `subtree`: k, sum k x, sum k x x^T (xx, xy, xz, yy, yz, zz), F, N by rows
K, KX, KXX, FORCE, MOMENT = 0, 1, 4, 10, 13
SUBTREE_COLUMNS = 22


class Points(NamedTuple):
    """Points fixed to bodies: the markers of the model."""

    body: Integers
    """-1: the ground."""
    position: Floats
    """(points, 3) in the body's frame [m]."""


class RestSprings(NamedTuple):
    """Springs to a rest pose and joint limits: one entry per variable [N m/rad or N/m; rad or m]."""

    stiffness: Floats
    rest: Floats
    lower: Floats
    upper: Floats
    limit_stiffness: Floats
    """Stiffness beyond the joint limits; infinite: the variable cannot pass them."""


class MarkerEnergy(NamedTuple):
    """Tree, points and rest springs, with work arrays and derivatives."""

    tree: Tree
    points: Points
    rest_springs: RestSprings
    pose: TreePose
    point_position: Floats
    """(points, 3) world positions of the points [m]."""
    subtree: Floats
    """(bodies, SUBTREE_COLUMNS) sums over the markers of each body and its subtree."""
    gradient: Floats
    hessian: Floats
    """(n, n) second derivatives, rows as in the tree."""
    gauss_diagonal: Floats
    """(n,) diagonal of the Gauss-Newton part."""


def make_marker_energy(tree: Tree, points: Points, rest_springs: RestSprings | None = None) -> MarkerEnergy:
    """Return arrays for a tree and its points; without `rest_springs`, only markers act on the variables."""
    n = len(tree.free)
    free = RestSprings(np.zeros(n), np.zeros(n), np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n))
    return MarkerEnergy(
        tree, points, rest_springs or free, make_tree_pose(tree), np.zeros((len(points.body), 3)),
        np.zeros((len(tree.body_part), SUBTREE_COLUMNS)), np.zeros(n), np.zeros((n, n)), np.zeros(n),
    )  # fmt: skip


@kernel_function
def compute_points(energy_at):
    """Compute the world positions of the points from the body poses."""
    points, pose, point_position = load_shared(energy_at.points), load_shared(energy_at.pose), energy_at.point_position
    for m in range(len(points.body)):
        b = points.body[m]
        x, y, z = points.position[m, 0], points.position[m, 1], points.position[m, 2]
        if b < 0:
            point_position[m, 0], point_position[m, 1], point_position[m, 2] = x, y, z
            continue
        R, o = pose.rotation[b], pose.position[b]
        # all sums before the first write, which could change R as far as the compiler knows
        px = o[0] + R[0, 0] * x + R[0, 1] * y + R[0, 2] * z
        py = o[1] + R[1, 0] * x + R[1, 1] * y + R[1, 2] * z
        pz = o[2] + R[2, 0] * x + R[2, 1] * y + R[2, 2] * z
        point_position[m, 0], point_position[m, 1], point_position[m, 2] = px, py, pz


@inline_into_caller
def _rest_energy(free, springs, q):
    energy = 0.0
    for v in range(len(free)):
        x = q[free[v]]
        energy += 0.5 * springs.stiffness[v] * (x - springs.rest[v]) ** 2
        beyond = _limit_violation(springs.lower[v], springs.upper[v], x)
        if beyond != 0.0 and springs.limit_stiffness[v] < 1e300:
            energy += 0.5 * springs.limit_stiffness[v] * beyond * beyond
    return energy


@kernel_function
def compute_energy(energy_at, target, weight, q_inout):
    """Return the energy of a pose [J]; computes the body poses."""
    compute_poses(energy_at.tree, q_inout, energy_at.pose)
    compute_points(energy_at)
    energy = _rest_energy(energy_at.tree.free, load_shared(energy_at.rest_springs), q_inout)
    point_position = energy_at.point_position
    for m in range(len(weight)):
        if weight[m] > 0.0:
            for n in range(3):
                energy += 0.5 * weight[m] * (point_position[m, n] - target[m, n]) ** 2
    return energy


@kernel_function
def compute_gradient(energy_at, target, weight, q):
    """Compute first derivatives of the energy at the pose of the last `compute_energy`."""
    tree_at = energy_at.tree
    free, part_variable, part_body = tree_at.free, tree_at.part_variable, tree_at.part_body
    springs = load_shared(energy_at.rest_springs)
    subtree, direction, gradient = energy_at.subtree, energy_at.pose.direction, energy_at.gradient
    _sum_subtrees(energy_at, target, weight)
    for v in range(len(free)):
        x = q[free[v]]
        gradient[v] = springs.stiffness[v] * (x - springs.rest[v])
        if springs.limit_stiffness[v] < 1e300:
            gradient[v] += springs.limit_stiffness[v] * _limit_violation(springs.lower[v], springs.upper[v], x)
    for j in range(len(part_variable)):
        v = part_variable[j]
        if v >= 0:
            S, load = direction[j], subtree[part_body[j]]
            gx, gy, gz = _force_moment(load)
            fx, fy, fz = load[FORCE], load[FORCE + 1], load[FORCE + 2]
            gradient[v] += S[0] * gx + S[1] * gy + S[2] * gz + S[3] * fx + S[4] * fy + S[5] * fz


@kernel_function
def compute_hessian(energy_at, q, gauss, rest):
    """Compute second derivatives after `compute_gradient`, with given weights of Gauss-Newton part and remainder."""
    tree_at, springs = energy_at.tree, load_shared(energy_at.rest_springs)
    free, first, part_variable, part_body, previous = (
        tree_at.free, tree_at.row_first, tree_at.part_variable, tree_at.part_body, tree_at.previous,
    )  # fmt: skip
    subtree, direction, origin = energy_at.subtree, energy_at.pose.direction, energy_at.pose.origin
    hessian, gauss_diagonal, rates = energy_at.hessian, energy_at.gauss_diagonal, energy_at.pose.direction_rate
    for i in range(len(free)):
        gauss_diagonal[i] = springs.stiffness[i]
        limit_stiffness = springs.limit_stiffness[i]
        if limit_stiffness < 1e300 and _limit_violation(springs.lower[i], springs.upper[i], q[free[i]]) != 0.0:
            gauss_diagonal[i] += limit_stiffness
        length = first[i + 1] - first[i]
        for s in range(length):
            hessian[i, s] = 0.0
        hessian[i, length] = gauss * gauss_diagonal[i]
    for j in range(len(part_variable)):
        vj = part_variable[j]
        if vj < 0:
            continue
        S, load = direction[j], subtree[part_body[j]]
        fx, fy, fz = load[FORCE], load[FORCE + 1], load[FORCE + 2]
        gx, gy, gz = _force_moment(load)
        rotates = S[0] != 0.0 or S[1] != 0.0 or S[2] != 0.0
        k, mx, my, mz = load[K], load[KX], load[KX + 1], load[KX + 2]
        # force and moment of the stiffness along S
        px = k * S[3] + S[1] * mz - S[2] * my
        py = k * S[4] + S[2] * mx - S[0] * mz
        pz = k * S[5] + S[0] * my - S[1] * mx
        xx, xy, xz, yy, yz, zz = load[KXX], load[KXX + 1], load[KXX + 2], load[KXX + 3], load[KXX + 4], load[KXX + 5]
        tx = my * S[5] - mz * S[4] + (yy + zz) * S[0] - xy * S[1] - xz * S[2]
        ty = mz * S[3] - mx * S[5] - xy * S[0] + (xx + zz) * S[1] - yz * S[2]
        tz = mx * S[4] - my * S[3] - xz * S[0] - yz * S[1] + (xx + yy) * S[2]
        gauss_diagonal[vj] += S[0] * tx + S[1] * ty + S[2] * tz + S[3] * px + S[4] * py + S[5] * pz
        column_j = first[vj + 1] - first[vj]
        rate = rates[j]
        hessian[vj, column_j] += rest * (
            rate[0] * gx + rate[1] * gy + rate[2] * gz + rate[3] * fx + rate[4] * fy + rate[5] * fz
        )
        # y = N' w_j - tr(N') w_j for a rotation, v_j x F for a translation: both are multiplied by w_i
        if rotates:
            ox, oy, oz = origin[j, 0], origin[j, 1], origin[j, 2]
            trace = load[MOMENT] + load[MOMENT + 4] + load[MOMENT + 8] - ox * fx - oy * fy - oz * fz
            along = fx * S[0] + fy * S[1] + fz * S[2]
            yx = load[MOMENT] * S[0] + load[MOMENT + 1] * S[1] + load[MOMENT + 2] * S[2] - ox * along - trace * S[0]
            yy_ = (
                load[MOMENT + 3] * S[0] + load[MOMENT + 4] * S[1] + load[MOMENT + 5] * S[2] - oy * along - trace * S[1]
            )
            yz_ = (
                load[MOMENT + 6] * S[0] + load[MOMENT + 7] * S[1] + load[MOMENT + 8] * S[2] - oz * along - trace * S[2]
            )
        else:
            yx, yy_, yz_ = cross(S[3], S[4], S[5], fx, fy, fz)
        cx, cy, cz = gauss * tx + rest * yx, gauss * ty + rest * yy_, gauss * tz + rest * yz_
        dx, dy, dz = gauss * px, gauss * py, gauss * pz
        i = j
        while i >= 0:
            vi = part_variable[i]
            if vi >= 0:
                T = direction[i]
                value = T[0] * cx + T[1] * cy + T[2] * cz + T[3] * dx + T[4] * dy + T[5] * dz
                if vi == vj and i != j:  # both orders of two parts of one variable
                    value *= 2.0
                    gauss_diagonal[vj] += 2.0 * (T[0] * tx + T[1] * ty + T[2] * tz + T[3] * px + T[4] * py + T[5] * pz)
                if vi <= vj:
                    hessian[vj, first[vi + 1] - first[vi]] += value
                else:
                    hessian[vi, column_j] += value
            i = previous[i]


@inline
def _force_moment(load):
    """Return the moment of the spring forces about the world's origin."""
    return load[MOMENT + 5] - load[MOMENT + 7], load[MOMENT + 6] - load[MOMENT + 2], load[MOMENT + 1] - load[MOMENT + 3]


@inline
def _limit_violation(lower, upper, x):
    """Return by how much a coordinate is beyond its limits."""
    return max(x - upper, 0.0) + min(x - lower, 0.0)


@inline_into_caller
def _sum_subtrees(energy_at, target, weight):
    body, point_position, subtree = energy_at.points.body, energy_at.point_position, energy_at.subtree
    child, parent = energy_at.tree.child, energy_at.tree.parent
    subtree[:] = 0.0
    for m in range(len(weight)):
        k, b = weight[m], body[m]
        if not k > 0.0 or b < 0:
            continue
        load = subtree[b]
        # values, not views: a write to `load` could change an array as far as the compiler knows
        x = (point_position[m, 0], point_position[m, 1], point_position[m, 2])
        force = (k * (x[0] - target[m, 0]), k * (x[1] - target[m, 1]), k * (x[2] - target[m, 2]))
        load[K] += k
        n = KXX
        for i in range(3):
            load[KX + i] += k * x[i]
            load[FORCE + i] += force[i]
            for j in range(3):
                load[MOMENT + 3 * i + j] += x[i] * force[j]
            for j in range(i, 3):
                load[n] += k * x[i] * x[j]
                n += 1
    for link in range(len(child) - 1, -1, -1):
        b, a = child[link], parent[link]
        if a >= 0:
            for n in range(SUBTREE_COLUMNS):
                subtree[a, n] += subtree[b, n]
