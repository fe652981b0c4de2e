"""Hessian of parameters that all frames share, with each frame's pose eliminated (Schur complement).

The shared parameters are positions p: of joints on their parents, of points on their bodies, three numbers each in the
axes of a body b. With f_m = k (x_m - y_m) and the points m that a position moves,

    dx_m/dp = R_b         g_p = R_b^T F, F = sum f_m         H_pp = R_b^T R_c sum k over the points that both move
    H_pq    = R_b^T (sum k dx_m/dq + F x w)                  w: rotation of body b by q; only if `exact`

and a frame whose pose has least energy adds the Schur complement H_pp - H_pq H_qq^-1 H_qp.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.marker_energy import (
    Points,
    RestSprings,
    compute_energy,
    compute_gradient,
    compute_hessian,
)
from borelli.analysis.tree_kernels.newton_ik import IkSearch, factor_in_place, make_ik_search, solve_in_place
from borelli.kernels.jit import inline_into_caller, kernel
from borelli.kernels.shared_tuples import load_shared
from borelli.tree.kinematic_tree import Tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class SharedPositions(NamedTuple):
    """Positions that all frames share."""

    body: Integers
    """(positions,) body in whose axes each is expressed; -1: the ground."""
    moves_point: NDArray[np.uint8]
    """(positions, points) 1 if the position moves the point."""


class Buffers(NamedTuple):
    """Shared positions and the poses to eliminate, with work arrays."""

    positions: SharedPositions
    search: IkSearch
    rotation: Floats
    """(positions, 3, 3) of the bodies."""
    force: Floats
    """(positions, 3)"""
    coupling: Floats
    """(positions, 3, n)"""
    cross_hessian: Floats
    """(3 positions, n) H_pq."""
    column: Floats
    """(n,)"""


def make_buffers(tree: Tree, points: Points, rest_springs: RestSprings, positions: SharedPositions) -> Buffers:
    """Return arrays to eliminate the poses."""
    n, count = len(tree.free), len(positions.body)
    return Buffers(
        positions, make_ik_search(tree, points, rest_springs), np.zeros((count, 3, 3)), np.zeros((count, 3)),
        np.zeros((count, 3, n)), np.zeros((3 * count, n)), np.zeros(n),
    )  # fmt: skip


@inline_into_caller
def _fill_coupling(buffers_at, target, weight, exact):
    """Compute the rotation of each position's body, the force on it, and its coupling to each variable."""
    marker_energy, positions = buffers_at.search.energy, load_shared(buffers_at.positions)
    body_rotation, direction = marker_energy.pose.rotation, marker_energy.pose.direction
    point_position, body = marker_energy.point_position, marker_energy.points.body
    tree = marker_energy.tree
    body_part, part_variable, previous = tree.body_part, tree.part_variable, tree.previous
    rotation, force, coupling = buffers_at.rotation, buffers_at.force, buffers_at.coupling
    force[:], coupling[:] = 0.0, 0.0
    for u in range(len(positions.body)):
        b, G = positions.body[u], coupling[u]
        for i in range(3):
            for j in range(3):
                rotation[u, i, j] = body_rotation[b, i, j] if b >= 0 else (1.0 if i == j else 0.0)
        for m in range(len(weight)):
            k = weight[m]
            if not (positions.moves_point[u, m] and k > 0.0):
                continue
            x, y, z = point_position[m, 0], point_position[m, 1], point_position[m, 2]
            force[u, 0] += k * (x - target[m, 0])
            force[u, 1] += k * (y - target[m, 1])
            force[u, 2] += k * (z - target[m, 2])
            p = body_part[body[m]] if body[m] >= 0 else -1
            while p >= 0:
                v = part_variable[p]
                if v >= 0:
                    S = direction[p]
                    G[0, v] += k * (S[1] * z - S[2] * y + S[3])
                    G[1, v] += k * (S[2] * x - S[0] * z + S[4])
                    G[2, v] += k * (S[0] * y - S[1] * x + S[5])
                p = previous[p]
        if exact and b >= 0:
            fx, fy, fz = force[u, 0], force[u, 1], force[u, 2]
            p = body_part[b]
            while p >= 0:
                v = part_variable[p]
                if v >= 0:
                    S = direction[p]
                    G[0, v] += fy * S[2] - fz * S[1]
                    G[1, v] += fz * S[0] - fx * S[2]
                    G[2, v] += fx * S[1] - fy * S[0]
                p = previous[p]


@inline_into_caller
def _add_positions(buffers_at, weight, gradient, matrix):
    """Add g_p and the lower half of H_pp; write H_pq."""
    buffers, positions = load_shared(buffers_at, buffers_at.positions)
    rotation, force, cross_hessian, coupling = buffers.rotation, buffers.force, buffers.cross_hessian, buffers.coupling
    n = cross_hessian.shape[1]
    for u in range(len(positions.body)):
        for a in range(3):
            row = 3 * u + a
            gradient[row] += (
                rotation[u, 0, a] * force[u, 0] + rotation[u, 1, a] * force[u, 1] + rotation[u, 2, a] * force[u, 2]
            )
            for v in range(n):
                cross_hessian[row, v] = (
                    rotation[u, 0, a] * coupling[u, 0, v] + rotation[u, 1, a] * coupling[u, 1, v]
                    + rotation[u, 2, a] * coupling[u, 2, v]
                )  # fmt: skip
        for w in range(u + 1):
            k = 0.0
            for m in range(len(weight)):
                if positions.moves_point[u, m] and positions.moves_point[w, m]:
                    k += weight[m]
            if k > 0.0:
                for a in range(3):
                    for c in range(3):
                        matrix[3 * u + a, 3 * w + c] += k * (
                            rotation[u, 0, a] * rotation[w, 0, c] + rotation[u, 1, a] * rotation[w, 1, c]
                            + rotation[u, 2, a] * rotation[w, 2, c]
                        )  # fmt: skip


@inline_into_caller
def _solve_rows(buffers_at, X):
    """Compute X = H_qq^-1 H_qp by the factors of H_qq, on complete rows."""
    A, cross_hessian, tree_at = buffers_at.search.matrix, buffers_at.cross_hessian, buffers_at.search.energy.tree
    first, column = tree_at.row_first, tree_at.row_column
    n, m = X.shape
    for v in range(n):
        for i in range(m):
            X[v, i] = cross_hessian[i, v]
    for k in range(n - 1, -1, -1):
        row, start = X[k], first[k]
        for s in range(first[k + 1] - start):
            a, other = A[k, s], X[column[start + s]]
            for i in range(m):
                other[i] -= a * row[i]
    for k in range(n):
        start = first[k]
        length = first[k + 1] - start
        row, d = X[k], A[k, length]
        for i in range(m):
            row[i] /= d
        for s in range(length):
            a, other = A[k, s], X[column[start + s]]
            for i in range(m):
                row[i] -= a * other[i]


@inline_into_caller
def _subtract_product(cross_hessian, pose_response, matrix):
    """Subtract H_pq H_qq^-1 H_qp from the lower half of `matrix`."""
    for i in range(len(cross_hessian)):
        row = matrix[i]
        for v in range(cross_hessian.shape[1]):
            a = cross_hessian[i, v]
            if a != 0.0:
                other = pose_response[v]
                for j in range(i + 1):
                    row[j] -= a * other[j]


@kernel
def eliminate_poses(
    buffers_at, rest, target, weight, q_inout, exact, gradient_inout, matrix_inout, pose_response_out, variance_out
):  # fmt: skip
    """Add every frame's contribution to gradient and lower half of the matrix (positions), its pose eliminated.

    `pose_response_out` (frames, n, positions): H_qq^-1 H_qp, minus the change of a pose with p. `variance_out`
    (frames, n, or of zero length): the diagonal of H_qq^-1. Returns False if a frame's H_qq is not positive.
    """
    search_at, energy_at, x = buffers_at.search, buffers_at.search.energy, buffers_at.column
    A, hessian, gauss_diagonal = search_at.matrix, energy_at.hessian, energy_at.gauss_diagonal
    rest_position = energy_at.rest_springs.rest
    first, n = energy_at.tree.row_first, len(x)
    for t in range(len(q_inout)):
        for v in range(n):
            rest_position[v] = rest[min(t, len(rest) - 1), v]
        compute_energy(energy_at, target[t], weight[t], q_inout[t])
        compute_gradient(energy_at, target[t], weight[t], q_inout[t])
        compute_hessian(energy_at, q_inout[t], 1.0, 1.0 if exact else 0.0)
        _fill_coupling(buffers_at, target[t], weight[t], exact)
        _add_positions(buffers_at, weight[t], gradient_inout, matrix_inout)
        for i in range(n):
            length = first[i + 1] - first[i]
            for s in range(length + 1):
                A[i, s] = hessian[i, s]
            if gauss_diagonal[i] == 0.0:  # a variable that nothing acts on stays
                A[i, length] = 1.0
        if not factor_in_place(search_at):
            return False
        _solve_rows(buffers_at, pose_response_out[t])
        if len(variance_out):
            for i in range(n):
                for v in range(n):
                    x[v] = 1.0 if v == i else 0.0
                solve_in_place(search_at, x)
                variance_out[t, i] = x[i]
        _subtract_product(buffers_at.cross_hessian, pose_response_out[t], matrix_inout)
    return True


@kernel
def solve_positive(matrix_inout, rows_inout):
    """Replace each row x by A^-1 x by Cholesky; the factors overwrite A's lower half.

    Up to a few hundred unknowns this is faster than waking a library's threads. Returns False if A is not positive.
    """
    A, n = matrix_inout, len(matrix_inout)
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            if i > j:
                A[i, j] = total / A[j, j]
            elif total > 0.0:
                A[i, i] = total**0.5
            else:
                return False
    for r in range(len(rows_inout)):
        x = rows_inout[r]
        for i in range(n):
            for k in range(i):
                x[i] -= A[i, k] * x[k]
            x[i] /= A[i, i]
        for i in range(n - 1, -1, -1):
            x[i] /= A[i, i]
            for k in range(i):
                x[k] -= A[i, k] * x[i]
    return True
