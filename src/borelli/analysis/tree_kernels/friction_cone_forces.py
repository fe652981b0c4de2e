"""What holds a body up: forces within friction cones that fit a wrench, one small problem per frame.

    minimize 1/2 |sum_p B_p f_p - b|^2 + 1/2 sum_p d_p |f_p|^2     |t_p| <= mu n_p,  f_p = (t_p, n_p)

With y = b - sum B_p f_p, what is left over, each force is found from it alone, f_p = P(B_p^T y) / d_p, where P puts a
vector at the nearest place of the cone. So y is where a function without constraints is least, as long as there are
rows, however many points there are,

    phi(y) = 1/2 |y|^2 - b.y + sum_p |P(B_p^T y)|^2 / (2 d_p)
    grad   = y - b + sum_p B_p P(B_p^T y) / d_p
    curve  = 1 + sum_p B_p P' B_p^T / d_p

and Newton's method with a line search finds it: phi is strongly convex and its gradient is strongly semismooth (Qi and
Sun 1993). The answer of the frame before is the start, so a few steps do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.forward_kinematics import place
from borelli.analysis.tree_kernels.marker_energy import find_points
from borelli.kernels.jit import inline, inline_into_caller, kernel, kernel_function

Floats = NDArray[np.float64]

PRECISION = 1e-12
"""Of the gradient, as a part of what is needed."""
MOST_STEPS = 100
LEAST_STRIDE = 1e-8


class Room(NamedTuple):
    """Work arrays for m rows."""

    left: Floats
    """(m,) y, kept from frame to frame."""
    tried: Floats
    """(m,) y at the end of a stride."""
    gradient: Floats
    """(m,)"""
    step: Floats
    """(m,)"""
    curve: Floats
    """(m, m)"""
    turned: Floats
    """(3, m) P' B_p^T / d_p of one point."""


def make_room(m: int) -> Room:
    """Work arrays for m rows."""
    return Room(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros((m, m)), np.zeros((3, m)))


@inline
def _nearest(x, y, z, mu):
    """The place of the cone nearest to a vector, and what its derivative is made of.

    That is c1 I + c2 e e^T + c3 (across) (across)^T, e the cone's edge there: c1 inside, c2 and c3 beside, none below.
    """
    slant = np.sqrt(x * x + y * y)
    if slant <= mu * z:
        return x, y, z, 1.0, 0.0, 0.0
    if mu * slant <= -z:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    along = (mu * slant + z) / (1.0 + mu * mu)
    scale = along * mu / slant
    return scale * x, scale * y, along, 0.0, 1.0 / ((1.0 + mu * mu) * slant * slant), scale / (slant * slant)


@inline
def _pull(B, p, y):
    """The product of a point's rows with y: B_p^T y."""
    a, b, c = 0.0, 0.0, 0.0
    for k in range(len(B)):
        a += B[k, 3 * p] * y[k]
        b += B[k, 3 * p + 1] * y[k]
        c += B[k, 3 * p + 2] * y[k]
    return a, b, c


@kernel_function
def _value(B, b, ridge, most, mu, y):
    """The function that is least: phi(y)."""
    value = 0.0
    for k in range(len(y)):
        value += (0.5 * y[k] - b[k]) * y[k]
    for p in range(len(ridge)):
        if ridge[p] <= most:
            s = _pull(B, p, y)
            x, y_, z, _, _, _ = _nearest(s[0], s[1], s[2], mu)
            value += (x * x + y_ * y_ + z * z) / (2.0 * ridge[p])
    return value


@inline_into_caller
def _differentiate(B, b, ridge, most, mu, room):
    """Gradient and curve at `left`; the gradient's largest entry."""
    y, gradient, C, T = room.left, room.gradient, room.curve, room.turned
    m = len(y)
    for k in range(m):
        gradient[k] = y[k] - b[k]
        for j in range(k):
            C[k, j] = 0.0
        C[k, k] = 1.0
    for p in range(len(ridge)):
        if not ridge[p] <= most:
            continue
        s0, s1, s2 = _pull(B, p, y)
        f0, f1, f2, whole, edge, across = _nearest(s0, s1, s2, mu)
        if f2 == 0.0:
            continue
        share = 1.0 / ridge[p]
        slant = np.sqrt(s0 * s0 + s1 * s1)
        for k in range(m):
            t0, t1, n = B[k, 3 * p], B[k, 3 * p + 1], B[k, 3 * p + 2]
            gradient[k] += share * (t0 * f0 + t1 * f1 + n * f2)
            # the edge has the direction (mu s0, mu s1, slant), across it is (-s1, s0, 0)
            e = edge * (mu * (s0 * t0 + s1 * t1) + slant * n)
            a = across * (s0 * t1 - s1 * t0)
            T[0, k] = share * (whole * t0 + e * mu * s0 - a * s1)
            T[1, k] = share * (whole * t1 + e * mu * s1 + a * s0)
            T[2, k] = share * (whole * n + e * slant)
        for k in range(m):
            t0, t1, n = B[k, 3 * p], B[k, 3 * p + 1], B[k, 3 * p + 2]
            if t0 == 0.0 and t1 == 0.0 and n == 0.0:  # the other leg
                continue
            for j in range(k + 1):
                C[k, j] += t0 * T[0, j] + t1 * T[1, j] + n * T[2, j]
    largest = 0.0
    for k in range(m):
        largest = max(largest, abs(gradient[k]))
    return largest


@kernel_function
def _solve(C, x):
    """x = C^-1 x by Cholesky, from C's lower half, which is lost."""
    m = len(x)
    for i in range(m):
        d = C[i, i]
        root = np.sqrt(d)
        C[i, i] = root
        for k in range(i + 1, m):
            C[k, i] /= root
        for k in range(i + 1, m):
            a = C[k, i]
            if a != 0.0:
                for j in range(i + 1, k + 1):
                    C[k, j] -= a * C[j, i]
    for i in range(m):
        for k in range(i):
            x[i] -= C[i, k] * x[k]
        x[i] /= C[i, i]
    for i in range(m - 1, -1, -1):
        x[i] /= C[i, i]
        for k in range(i):
            x[k] -= C[i, k] * x[i]


@inline_into_caller
def _descend(B, b, ridge, most, mu, room):
    """Bring `left` to where phi is least; the number of steps."""
    y, m = room.left, len(room.left)
    needed = 0.0
    for k in range(m):
        needed = max(needed, abs(b[k]))
    for count in range(MOST_STEPS):
        if _differentiate(B, b, ridge, most, mu, room) <= PRECISION * needed:
            return count
        slope = 0.0
        for k in range(m):
            room.step[k] = -room.gradient[k]
        _solve(room.curve, room.step)
        for k in range(m):
            slope += room.gradient[k] * room.step[k]
        start, stride = _value(B, b, ridge, most, mu, y), 1.0
        while stride > LEAST_STRIDE:
            for k in range(m):
                room.tried[k] = y[k] + stride * room.step[k]
            # near the end phi is flat to its last digit
            if _value(B, b, ridge, most, mu, room.tried) <= start + 1e-4 * stride * slope + 1e-14 * abs(start):
                break
            stride *= 0.5
        for k in range(m):
            y[k] = room.tried[k]
    return MOST_STEPS


@kernel
def find_support(rows, need, ridge, most, mu, room, force_out, steps_out):
    """Forces of points that give what is needed, in all frames.

    Args:
        rows: (frames, m, 3 points) B, what a force at each point does: two directions across the normal, then it.
        need: (frames, m) b.
        ridge: (frames, points) d, positive; a point whose ridge exceeds `most` bears nothing.
        most: See there.
        mu: Of the cones.
        room: Work arrays.
        force_out: (frames, points, 3) f
        steps_out: (frames,) how many were taken.
    """
    room.left[:] = 0.0
    for f in range(len(rows)):
        steps_out[f] = _descend(rows[f], need[f], ridge[f], most, mu, room)
        for p in range(ridge.shape[1]):
            force_out[f, p, 0], force_out[f, p, 1], force_out[f, p, 2] = 0.0, 0.0, 0.0
            if ridge[f, p] <= most:
                s = _pull(rows[f], p, room.left)
                x, y, z, _, _, _ = _nearest(s[0], s[1], s[2], mu)
                share = 1.0 / ridge[f, p]
                force_out[f, p, 0], force_out[f, p, 1], force_out[f, p, 2] = share * x, share * y, share * z


@kernel
def find_paths(search_at, slot, q_inout, place_out, jacobian_out):
    """Where points are in all frames, and how the points move with some of the variables.

    Args:
        search_at: Of the model and its points.
        slot: (variables,) which column of the Jacobian a variable has; -1: none.
        q_inout: (frames, coordinates); coupled coordinates are set.
        place_out: (frames, points, 3) [m]
        jacobian_out: (frames, columns, points, 3) [m/rad or 1]
    """
    springs_at = search_at.springs
    direction, seen, body = springs_at.placed.direction, springs_at.seen, springs_at.points.body
    body_part, moves, before = springs_at.tree.body_part, springs_at.tree.moves, springs_at.tree.before
    for f in range(len(q_inout)):
        place(springs_at.tree, q_inout[f], springs_at.placed)
        find_points(springs_at)
        J = jacobian_out[f]
        J[:] = 0.0
        for m in range(len(body)):
            x, y, z = seen[m, 0], seen[m, 1], seen[m, 2]
            place_out[f, m, 0], place_out[f, m, 1], place_out[f, m, 2] = x, y, z
            p = body_part[body[m]] if body[m] >= 0 else -1
            while p >= 0:
                if moves[p] >= 0 and slot[moves[p]] >= 0:
                    k, S = slot[moves[p]], direction[p]
                    J[k, m, 0] += S[1] * z - S[2] * y + S[3]
                    J[k, m, 1] += S[2] * x - S[0] * z + S[4]
                    J[k, m, 2] += S[0] * y - S[1] * x + S[5]
                p = before[p]
