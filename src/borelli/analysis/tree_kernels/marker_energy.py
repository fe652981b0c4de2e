"""The energy of a pose: a spring from each marker to where it was seen, weak springs to a rest pose, stops.

    E(q) = 1/2 sum_m k_m |x_m(q) - y_m|^2 + 1/2 sum_i s_i (q_i - rest_i)^2 + stops

Its derivatives are found as a tree's mass matrix is: what hangs on a part acts through sums over its markers, with
f = k (x - y),

    k, sum k x, sum k x x^T      stiffness: a force k (v + w x x) and its moment per unit of a direction (w, v)
    F = sum f, N = sum x f^T     the pull itself

and with S_i, S_j the directions of parts i on the way to part j, and N' = N - o_j F^T,

    dE/dq_j        = S_j . (sum x x f, F)
    d2E/dq_i dq_j  = S_i . (stiffness of j) S_j                                  Gauss and Newton's part
                     + w_i^T N' w_j - (w_i . w_j) tr N'      (j a turn)          the rest, exact
                     + (w_i x v_j) . F                        (j a shift)
                     + bend_j . (sum x x f, F)                (i = j)

because a point x that turn j carries moves by w_j x (x - o_j), which a turn i before it turns along. The cost is that
of the number of pairs of parts on one path, whatever the number of markers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.forward_kinematics import Placed, make_placed, place
from borelli.analysis.tree_kernels.kinematic_tree import Tree
from borelli.kernels.jit import inline, inline_into_caller, kernel_function
from borelli.kernels.shared_tuples import load_shared

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# columns of `carried`: k, sum k x, sum k x x^T (xx, xy, xz, yy, yz, zz), F, N by rows
K, KX, KXX, PULL, SPREAD = 0, 1, 4, 10, 13
CARRIED = 22


class Points(NamedTuple):
    """What is seen: points fixed to bodies."""

    body: Integers
    """-1: the ground."""
    place: Floats
    """(points, 3) in the body's frame [m]."""


class Holds(NamedTuple):
    """What holds the variables besides markers: one entry each [N m/rad or N/m; rad or m]."""

    stiffness: Floats
    rest: Floats
    lower: Floats
    upper: Floats
    stop: Floats
    """Stiffness beyond the stops; infinite: the variable cannot go there."""


class Springs(NamedTuple):
    """What is posed, seen and held, work arrays, and the derivatives found."""

    tree: Tree
    points: Points
    holds: Holds
    placed: Placed
    seen: Floats
    """(points, 3) where the points are."""
    carried: Floats
    """(bodies, CARRIED) sums over the markers of each body and of all that hangs on it."""
    gradient: Floats
    curve: Floats
    """(n, n) second derivatives, as the tree keeps rows."""
    own: Floats
    """(n,) the diagonal of Gauss and Newton's part."""


def make_springs(tree: Tree, points: Points, holds: Holds | None = None) -> Springs:
    """Springs with room to work; without `holds`, nothing but markers holds the variables."""
    n = len(tree.free)
    free = Holds(np.zeros(n), np.zeros(n), np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n))
    return Springs(
        tree, points, holds or free, make_placed(tree), np.zeros((len(points.body), 3)),
        np.zeros((len(tree.body_part), CARRIED)), np.zeros(n), np.zeros((n, n)), np.zeros(n),
    )  # fmt: skip


@kernel_function
def find_points(springs_at):
    """Where the points are, with the bodies placed."""
    points, placed, seen = load_shared(springs_at.points), load_shared(springs_at.placed), springs_at.seen
    for m in range(len(points.body)):
        b = points.body[m]
        x, y, z = points.place[m, 0], points.place[m, 1], points.place[m, 2]
        if b < 0:
            seen[m, 0], seen[m, 1], seen[m, 2] = x, y, z
            continue
        R, o = placed.rotation[b], placed.position[b]
        seen[m, 0] = o[0] + R[0, 0] * x + R[0, 1] * y + R[0, 2] * z
        seen[m, 1] = o[1] + R[1, 0] * x + R[1, 1] * y + R[1, 2] * z
        seen[m, 2] = o[2] + R[2, 0] * x + R[2, 1] * y + R[2, 2] * z


@inline_into_caller
def _held_energy(free, holds, q):
    energy = 0.0
    for v in range(len(free)):
        x = q[free[v]]
        energy += 0.5 * holds.stiffness[v] * (x - holds.rest[v]) ** 2
        beyond = _beyond(holds.lower[v], holds.upper[v], x)
        if beyond != 0.0 and holds.stop[v] < 1e300:
            energy += 0.5 * holds.stop[v] * beyond * beyond
    return energy


@kernel_function
def compute_energy(springs_at, target, weight, q_inout):
    """The energy of a pose [J]; the pose is placed."""
    place(springs_at.tree, q_inout, springs_at.placed)
    find_points(springs_at)
    energy = _held_energy(springs_at.tree.free, load_shared(springs_at.holds), q_inout)
    seen = springs_at.seen
    for m in range(len(weight)):
        if weight[m] > 0.0:
            for n in range(3):
                energy += 0.5 * weight[m] * (seen[m, n] - target[m, n]) ** 2
    return energy


@kernel_function
def find_gradient(springs_at, target, weight, q):
    """First derivatives of the energy at the pose that `compute_energy` placed."""
    tree_at = springs_at.tree
    free, moves, carries, holds = tree_at.free, tree_at.moves, tree_at.carries, load_shared(springs_at.holds)
    carried, direction, gradient = springs_at.carried, springs_at.placed.direction, springs_at.gradient
    _sum_markers(springs_at, target, weight)
    for v in range(len(free)):
        x = q[free[v]]
        gradient[v] = holds.stiffness[v] * (x - holds.rest[v])
        if holds.stop[v] < 1e300:
            gradient[v] += holds.stop[v] * _beyond(holds.lower[v], holds.upper[v], x)
    for j in range(len(moves)):
        v = moves[j]
        if v >= 0:
            S, load = direction[j], carried[carries[j]]
            gx, gy, gz = _pull_moment(load)
            fx, fy, fz = load[PULL], load[PULL + 1], load[PULL + 2]
            gradient[v] += S[0] * gx + S[1] * gy + S[2] * gz + S[3] * fx + S[4] * fy + S[5] * fz


@kernel_function
def find_curvature(springs_at, q, gauss, rest):
    """Second derivatives where `find_gradient` found the first: so much of Gauss and Newton's part and of the rest."""
    tree_at, holds = springs_at.tree, load_shared(springs_at.holds)
    free, first, moves, carries, before = (
        tree_at.free, tree_at.row_first, tree_at.moves, tree_at.carries, tree_at.before,
    )  # fmt: skip
    carried, direction, origin = springs_at.carried, springs_at.placed.direction, springs_at.placed.origin
    curve, own, bends = springs_at.curve, springs_at.own, springs_at.placed.bend
    for i in range(len(free)):
        own[i] = holds.stiffness[i]
        if holds.stop[i] < 1e300 and _beyond(holds.lower[i], holds.upper[i], q[free[i]]) != 0.0:
            own[i] += holds.stop[i]
        length = first[i + 1] - first[i]
        for s in range(length):
            curve[i, s] = 0.0
        curve[i, length] = gauss * own[i]
    for j in range(len(moves)):
        vj = moves[j]
        if vj < 0:
            continue
        S, load = direction[j], carried[carries[j]]
        fx, fy, fz = load[PULL], load[PULL + 1], load[PULL + 2]
        gx, gy, gz = _pull_moment(load)
        turns = S[0] != 0.0 or S[1] != 0.0 or S[2] != 0.0
        k, mx, my, mz = load[K], load[KX], load[KX + 1], load[KX + 2]
        # force and moment of the stiffness along S
        px = k * S[3] + S[1] * mz - S[2] * my
        py = k * S[4] + S[2] * mx - S[0] * mz
        pz = k * S[5] + S[0] * my - S[1] * mx
        xx, xy, xz, yy, yz, zz = load[KXX], load[KXX + 1], load[KXX + 2], load[KXX + 3], load[KXX + 4], load[KXX + 5]
        tx = my * S[5] - mz * S[4] + (yy + zz) * S[0] - xy * S[1] - xz * S[2]
        ty = mz * S[3] - mx * S[5] - xy * S[0] + (xx + zz) * S[1] - yz * S[2]
        tz = mx * S[4] - my * S[3] - xz * S[0] - yz * S[1] + (xx + yy) * S[2]
        own[vj] += S[0] * tx + S[1] * ty + S[2] * tz + S[3] * px + S[4] * py + S[5] * pz
        place_j = first[vj + 1] - first[vj]
        bend = bends[j]
        curve[vj, place_j] += rest * (
            bend[0] * gx + bend[1] * gy + bend[2] * gz + bend[3] * fx + bend[4] * fy + bend[5] * fz
        )
        # y = N' w_j - tr(N') w_j for a turn, v_j x F for a shift: both meet w_i
        if turns:
            ox, oy, oz = origin[j, 0], origin[j, 1], origin[j, 2]
            trace = load[SPREAD] + load[SPREAD + 4] + load[SPREAD + 8] - ox * fx - oy * fy - oz * fz
            along = fx * S[0] + fy * S[1] + fz * S[2]
            yx = load[SPREAD] * S[0] + load[SPREAD + 1] * S[1] + load[SPREAD + 2] * S[2] - ox * along - trace * S[0]
            yy_ = (
                load[SPREAD + 3] * S[0] + load[SPREAD + 4] * S[1] + load[SPREAD + 5] * S[2] - oy * along - trace * S[1]
            )
            yz_ = (
                load[SPREAD + 6] * S[0] + load[SPREAD + 7] * S[1] + load[SPREAD + 8] * S[2] - oz * along - trace * S[2]
            )
        else:
            yx, yy_, yz_ = S[4] * fz - S[5] * fy, S[5] * fx - S[3] * fz, S[3] * fy - S[4] * fx
        cx, cy, cz = gauss * tx + rest * yx, gauss * ty + rest * yy_, gauss * tz + rest * yz_
        dx, dy, dz = gauss * px, gauss * py, gauss * pz
        i = j
        while i >= 0:
            vi = moves[i]
            if vi >= 0:
                T = direction[i]
                value = T[0] * cx + T[1] * cy + T[2] * cz + T[3] * dx + T[4] * dy + T[5] * dz
                if vi == vj and i != j:  # both orders of two parts of one variable
                    value *= 2.0
                    own[vj] += 2.0 * (T[0] * tx + T[1] * ty + T[2] * tz + T[3] * px + T[4] * py + T[5] * pz)
                if vi <= vj:
                    curve[vj, first[vi + 1] - first[vi]] += value
                else:
                    curve[vi, place_j] += value
            i = before[i]


@inline
def _pull_moment(load):
    """Moment of the pull about the world's origin."""
    return load[SPREAD + 5] - load[SPREAD + 7], load[SPREAD + 6] - load[SPREAD + 2], load[SPREAD + 1] - load[SPREAD + 3]


@inline
def _beyond(lower, upper, x):
    """How far a coordinate is beyond its stops."""
    return max(x - upper, 0.0) + min(x - lower, 0.0)


@inline_into_caller
def _sum_markers(springs_at, target, weight):
    body, seen, carried = springs_at.points.body, springs_at.seen, springs_at.carried
    child, parent = springs_at.tree.child, springs_at.tree.parent
    for b in range(len(carried)):
        for n in range(CARRIED):
            carried[b, n] = 0.0
    for m in range(len(weight)):
        k, b = weight[m], body[m]
        if not k > 0.0 or b < 0:
            continue
        load = carried[b]
        x, y, z = seen[m, 0], seen[m, 1], seen[m, 2]
        fx, fy, fz = k * (x - target[m, 0]), k * (y - target[m, 1]), k * (z - target[m, 2])
        load[K] += k
        load[KX] += k * x
        load[KX + 1] += k * y
        load[KX + 2] += k * z
        load[KXX] += k * x * x
        load[KXX + 1] += k * x * y
        load[KXX + 2] += k * x * z
        load[KXX + 3] += k * y * y
        load[KXX + 4] += k * y * z
        load[KXX + 5] += k * z * z
        load[PULL] += fx
        load[PULL + 1] += fy
        load[PULL + 2] += fz
        load[SPREAD] += x * fx
        load[SPREAD + 1] += x * fy
        load[SPREAD + 2] += x * fz
        load[SPREAD + 3] += y * fx
        load[SPREAD + 4] += y * fy
        load[SPREAD + 5] += y * fz
        load[SPREAD + 6] += z * fx
        load[SPREAD + 7] += z * fy
        load[SPREAD + 8] += z * fz
    for link in range(len(child) - 1, -1, -1):
        b, a = child[link], parent[link]
        if a >= 0:
            for n in range(CARRIED):
                carried[a, n] += carried[b, n]
