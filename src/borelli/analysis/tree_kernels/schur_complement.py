"""Second derivatives by what all frames share, with each frame's pose eliminated.

What is shared are places p: of joints on their parents, of points on their bodies, three numbers each in the axes of a
body b. With f_m = k (x_m - y_m) and the points m that a place moves,

    dx_m/dp = R_b         g_p = R_b^T F, F = sum f_m         H_pp = R_b^T R_c sum k over the points that both move
    H_pq    = R_b^T (sum k dx_m/dq + F x w)                  w: spin of body b by q; only where `exact`

and a frame whose pose is at its least energy adds H_pp - H_pq H_qq^-1 H_qp (the Schur complement).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.kinematic_tree import Tree
from borelli.analysis.tree_kernels.marker_energy import Holds, Points, compute_energy, find_curvature, find_gradient
from borelli.analysis.tree_kernels.newton_ik import Search, factor_in_place, make_search, solve_in_place
from borelli.kernels.jit import inline_into_caller, kernel
from borelli.kernels.shared_tuples import load_shared

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Places(NamedTuple):
    """The places that all frames share."""

    body: Integers
    """(places,) in whose axes each is stated; -1: the ground."""
    moved: NDArray[np.uint8]
    """(places, points) whether it moves a point."""


class Room(NamedTuple):
    """What is eliminated and for what, and work arrays."""

    places: Places
    search: Search
    turn: Floats
    """(places, 3, 3) of the bodies."""
    force: Floats
    """(places, 3)"""
    gathered: Floats
    """(places, 3, n)"""
    mixed: Floats
    """(3 places, n) H_pq."""
    column: Floats
    """(n,)"""


def make_room(tree: Tree, points: Points, holds: Holds, places: Places) -> Room:
    """Room to eliminate the poses of these springs."""
    n, count = len(tree.free), len(places.body)
    return Room(
        places, make_search(tree, points, holds), np.zeros((count, 3, 3)), np.zeros((count, 3)),
        np.zeros((count, 3, n)), np.zeros((3 * count, n)), np.zeros(n),
    )  # fmt: skip


@inline_into_caller
def _gather(room_at, target, weight, exact):
    """The turn of each place's body, the force on it, and how the points it moves pull with each variable."""
    springs, places = room_at.search.springs, load_shared(room_at.places)
    rotation, direction = springs.placed.rotation, springs.placed.direction
    seen, body = springs.seen, springs.points.body
    body_part, moves, before = springs.tree.body_part, springs.tree.moves, springs.tree.before
    turn, force, gathered = room_at.turn, room_at.force, room_at.gathered
    n = gathered.shape[2]
    for u in range(len(places.body)):
        b = places.body[u]
        for i in range(3):
            force[u, i] = 0.0
            for v in range(n):
                gathered[u, i, v] = 0.0
            for j in range(3):
                turn[u, i, j] = rotation[b, i, j] if b >= 0 else (1.0 if i == j else 0.0)
        G = gathered[u]
        for m in range(len(weight)):
            k = weight[m]
            if not (places.moved[u, m] and k > 0.0):
                continue
            x, y, z = seen[m, 0], seen[m, 1], seen[m, 2]
            force[u, 0] += k * (x - target[m, 0])
            force[u, 1] += k * (y - target[m, 1])
            force[u, 2] += k * (z - target[m, 2])
            p = body_part[body[m]] if body[m] >= 0 else -1
            while p >= 0:
                v = moves[p]
                if v >= 0:
                    S = direction[p]
                    G[0, v] += k * (S[1] * z - S[2] * y + S[3])
                    G[1, v] += k * (S[2] * x - S[0] * z + S[4])
                    G[2, v] += k * (S[0] * y - S[1] * x + S[5])
                p = before[p]
        if exact and b >= 0:
            fx, fy, fz = force[u, 0], force[u, 1], force[u, 2]
            p = body_part[b]
            while p >= 0:
                v = moves[p]
                if v >= 0:
                    S = direction[p]
                    G[0, v] += fy * S[2] - fz * S[1]
                    G[1, v] += fz * S[0] - fx * S[2]
                    G[2, v] += fx * S[1] - fy * S[0]
                p = before[p]


@inline_into_caller
def _add_places(room_at, weight, gradient, matrix):
    """g_p, the lower half of H_pp, and H_pq into its room."""
    room, places = load_shared(room_at, room_at.places)
    turn, force, mixed, gathered = room.turn, room.force, room.mixed, room.gathered
    n = mixed.shape[1]
    for u in range(len(places.body)):
        for a in range(3):
            row = 3 * u + a
            gradient[row] += turn[u, 0, a] * force[u, 0] + turn[u, 1, a] * force[u, 1] + turn[u, 2, a] * force[u, 2]
            for v in range(n):
                mixed[row, v] = (
                    turn[u, 0, a] * gathered[u, 0, v] + turn[u, 1, a] * gathered[u, 1, v]
                    + turn[u, 2, a] * gathered[u, 2, v]
                )  # fmt: skip
        for w in range(u + 1):
            k = 0.0
            for m in range(len(weight)):
                if places.moved[u, m] and places.moved[w, m]:
                    k += weight[m]
            if k > 0.0:
                for a in range(3):
                    for c in range(3):
                        matrix[3 * u + a, 3 * w + c] += k * (
                            turn[u, 0, a] * turn[w, 0, c] + turn[u, 1, a] * turn[w, 1, c]
                            + turn[u, 2, a] * turn[w, 2, c]
                        )  # fmt: skip


@inline_into_caller
def _solve_rows(room_at, X):
    """X = H_qq^-1 mixed^T by the factors of H_qq: whole rows at a time, as many numbers as there are unknowns."""
    A, mixed, tree_at = room_at.search.matrix, room_at.mixed, room_at.search.springs.tree
    first, column = tree_at.row_first, tree_at.row_column
    n, m = X.shape
    for v in range(n):
        for i in range(m):
            X[v, i] = mixed[i, v]
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
def _subtract(mixed, follow, matrix):
    """The lower half of `matrix` less H_pq H_qq^-1 H_qp."""
    for i in range(len(mixed)):
        row = matrix[i]
        for v in range(mixed.shape[1]):
            a = mixed[i, v]
            if a != 0.0:
                other = follow[v]
                for j in range(i + 1):
                    row[j] -= a * other[j]


@kernel
def eliminate_poses(
    room_at, rest, target, weight, q_inout, exact, gradient_inout, matrix_inout, follow_out, spread_out
):  # fmt: skip
    """Add every frame's share of the gradient (places) and of the lower half of the matrix, its pose eliminated.

    `follow_out` (frames, n, places): H_qq^-1 H_qp, by which a pose follows p, with opposite sign. `spread_out`
    (frames, n, or of no length): the diagonal of H_qq^-1. False: a frame's H_qq is not positive.
    """
    search_at, springs_at, x = room_at.search, room_at.search.springs, room_at.column
    A, curve, own, resting = search_at.matrix, springs_at.curve, springs_at.own, springs_at.holds.rest
    first, n = springs_at.tree.row_first, len(x)
    for t in range(len(q_inout)):
        for v in range(n):
            resting[v] = rest[min(t, len(rest) - 1), v]
        compute_energy(springs_at, target[t], weight[t], q_inout[t])
        find_gradient(springs_at, target[t], weight[t], q_inout[t])
        find_curvature(springs_at, q_inout[t], 1.0, 1.0 if exact else 0.0)
        _gather(room_at, target[t], weight[t], exact)
        _add_places(room_at, weight[t], gradient_inout, matrix_inout)
        for i in range(n):
            length = first[i + 1] - first[i]
            for s in range(length + 1):
                A[i, s] = curve[i, s]
            if own[i] == 0.0:  # a variable that nothing holds stays
                A[i, length] = 1.0
        if not factor_in_place(search_at):
            return False
        _solve_rows(room_at, follow_out[t])
        if len(spread_out):
            for i in range(n):
                for v in range(n):
                    x[v] = 1.0 if v == i else 0.0
                solve_in_place(search_at, x)
                spread_out[t, i] = x[i]
        _subtract(room_at.mixed, follow_out[t], matrix_inout)
    return True


@kernel
def solve_positive(matrix_inout, rows_inout):
    """Each row x becomes A^-1 x, by Cholesky's factors, which take the place of A's lower half.

    For a few hundred unknowns this is done before a library has its threads awake. False: A is not positive.
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
