"""Contact forces within friction cones that fit a wrench (cone-constrained least squares), one problem per frame.

    minimize 1/2 |sum_p B_p f_p - b|^2 + 1/2 sum_p d_p |f_p|^2     |t_p| <= mu n_p,  f_p = (t_p, n_p)

The residual y = b - sum B_p f_p determines each force, f_p = P(B_p^T y) / d_p, where P projects a vector on the cone.
So y minimizes a function without constraints, whose size is that of the wrench for any number of points,

    phi(y)  = 1/2 |y|^2 - b.y + sum_p |P(B_p^T y)|^2 / (2 d_p)
    grad    = y - b + sum_p B_p P(B_p^T y) / d_p
    Hessian = 1 + sum_p B_p P' B_p^T / d_p

by Newton's method with a line search: phi is strongly convex and its gradient is strongly semismooth (Qi and Sun 1993).
The solution of the previous frame is the start, so a few steps suffice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.marker_energy import compute_points
from borelli.kernels.jit import inline, inline_into_caller, kernel, kernel_function
from borelli.tree.forward_kinematics import compute_poses

Floats = NDArray[np.float64]

GRADIENT_TOLERANCE = 1e-12
"""Largest entry of the gradient, relative to that of the required wrench."""
MAX_STEPS = 100
MIN_STEP_LENGTH = 1e-8


class Buffers(NamedTuple):
    """Work arrays for m rows."""

    residual: Floats
    """(m,) y, kept from frame to frame."""
    trial: Floats
    """(m,) y at the end of a step."""
    gradient: Floats
    """(m,)"""
    step: Floats
    """(m,)"""
    hessian: Floats
    """(m, m)"""
    projected: Floats
    """(3, m) P' B_p^T / d_p of one point."""


def make_buffers(m: int) -> Buffers:
    """Return work arrays for m rows."""
    return Buffers(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros((m, m)), np.zeros((3, m)))


@inline
def _project_to_cone(x, y, z, mu):
    """Return the projection of a vector on the cone and the coefficients of its derivative.

    The derivative is c1 I + c2 e e^T + c3 (across) (across)^T, e the cone's edge there: c1 inside the cone, c2 and c3
    outside, none in the polar cone.
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
def _transposed_product(B, p, y):
    """Return B_p^T y of point p."""
    a, b, c = 0.0, 0.0, 0.0
    for k in range(len(B)):
        a += B[k, 3 * p] * y[k]
        b += B[k, 3 * p + 1] * y[k]
        c += B[k, 3 * p + 2] * y[k]
    return a, b, c


@kernel_function
def _objective(B, b, ridge, max_ridge, mu, y):
    """Return phi(y)."""
    value = 0.0
    for k in range(len(y)):
        value += (0.5 * y[k] - b[k]) * y[k]
    for p in range(len(ridge)):
        if ridge[p] <= max_ridge:
            s = _transposed_product(B, p, y)
            x, y_, z, _, _, _ = _project_to_cone(s[0], s[1], s[2], mu)
            value += (x * x + y_ * y_ + z * z) / (2.0 * ridge[p])
    return value


@inline_into_caller
def _compute_derivatives(B, b, ridge, max_ridge, mu, buffers):
    """Compute gradient and Hessian at `residual`; return the gradient's largest entry."""
    y, gradient, C, T = buffers.residual, buffers.gradient, buffers.hessian, buffers.projected
    m = len(y)
    for k in range(m):
        gradient[k] = y[k] - b[k]
        for j in range(k):
            C[k, j] = 0.0
        C[k, k] = 1.0
    for p in range(len(ridge)):
        if not ridge[p] <= max_ridge:
            continue
        s0, s1, s2 = _transposed_product(B, p, y)
        f0, f1, f2, inside, edge, across = _project_to_cone(s0, s1, s2, mu)
        if f2 == 0.0:
            continue
        compliance = 1.0 / ridge[p]
        slant = np.sqrt(s0 * s0 + s1 * s1)
        for k in range(m):
            t0, t1, n = B[k, 3 * p], B[k, 3 * p + 1], B[k, 3 * p + 2]
            gradient[k] += compliance * (t0 * f0 + t1 * f1 + n * f2)
            # the edge has the direction (mu s0, mu s1, slant), across it is (-s1, s0, 0)
            e = edge * (mu * (s0 * t0 + s1 * t1) + slant * n)
            a = across * (s0 * t1 - s1 * t0)
            T[0, k] = compliance * (inside * t0 + e * mu * s0 - a * s1)
            T[1, k] = compliance * (inside * t1 + e * mu * s1 + a * s0)
            T[2, k] = compliance * (inside * n + e * slant)
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
def _solve_cholesky(C, x):
    """Replace x by C^-1 x by Cholesky; overwrites the lower half of C."""
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
def _minimize(B, b, ridge, max_ridge, mu, buffers):
    """Minimize phi from `residual`; return the number of steps."""
    y, m = buffers.residual, len(buffers.residual)
    scale = 0.0
    for k in range(m):
        scale = max(scale, abs(b[k]))
    for count in range(MAX_STEPS):
        if _compute_derivatives(B, b, ridge, max_ridge, mu, buffers) <= GRADIENT_TOLERANCE * scale:
            return count
        slope = 0.0
        for k in range(m):
            buffers.step[k] = -buffers.gradient[k]
        _solve_cholesky(buffers.hessian, buffers.step)
        for k in range(m):
            slope += buffers.gradient[k] * buffers.step[k]
        start, step_length = _objective(B, b, ridge, max_ridge, mu, y), 1.0
        while step_length > MIN_STEP_LENGTH:
            for k in range(m):
                buffers.trial[k] = y[k] + step_length * buffers.step[k]
            # near the end phi is flat to its last digit
            value = _objective(B, b, ridge, max_ridge, mu, buffers.trial)
            if value <= start + 1e-4 * step_length * slope + 1e-14 * abs(start):
                break
            step_length *= 0.5
        for k in range(m):
            y[k] = buffers.trial[k]
    return MAX_STEPS


@kernel
def solve_cone_forces(rows, required, ridge, max_ridge, mu, buffers, force_out, steps_out):
    """Compute the contact forces that best give the required wrench, in all frames.

    Args:
        rows: (frames, m, 3 points) B, wrench per unit force at each point: two tangents, then the normal.
        required: (frames, m) b.
        ridge: (frames, points) d, positive; a point whose ridge exceeds `max_ridge` has no force.
        max_ridge: See `ridge`.
        mu: Friction coefficient of the cones.
        buffers: Work arrays.
        force_out: (frames, points, 3) f
        steps_out: (frames,) number of Newton steps.
    """
    buffers.residual[:] = 0.0
    for f in range(len(rows)):
        steps_out[f] = _minimize(rows[f], required[f], ridge[f], max_ridge, mu, buffers)
        for p in range(ridge.shape[1]):
            force_out[f, p, 0], force_out[f, p, 1], force_out[f, p, 2] = 0.0, 0.0, 0.0
            if ridge[f, p] <= max_ridge:
                s = _transposed_product(rows[f], p, buffers.residual)
                x, y, z, _, _, _ = _project_to_cone(s[0], s[1], s[2], mu)
                compliance = 1.0 / ridge[f, p]
                force_out[f, p, 0] = compliance * x
                force_out[f, p, 1] = compliance * y
                force_out[f, p, 2] = compliance * z


@kernel
def compute_point_paths(search_at, slot, q_inout, position_out, jacobian_out):
    """Compute positions (frames, points, 3) of points, and their Jacobian (frames, columns, points, 3).

    `slot` (variables,) is the column of a variable in the Jacobian; -1: none. Coupled coordinates of q are set.
    """
    energy_at = search_at.energy
    direction, point_position, body = energy_at.pose.direction, energy_at.point_position, energy_at.points.body
    body_part, part_variable, previous = energy_at.tree.body_part, energy_at.tree.part_variable, energy_at.tree.previous
    for f in range(len(q_inout)):
        compute_poses(energy_at.tree, q_inout[f], energy_at.pose)
        compute_points(energy_at)
        J = jacobian_out[f]
        J[:] = 0.0
        for m in range(len(body)):
            x, y, z = point_position[m, 0], point_position[m, 1], point_position[m, 2]
            position_out[f, m, 0], position_out[f, m, 1], position_out[f, m, 2] = x, y, z
            p = body_part[body[m]] if body[m] >= 0 else -1
            while p >= 0:
                if part_variable[p] >= 0 and slot[part_variable[p]] >= 0:
                    k, S = slot[part_variable[p]], direction[p]
                    J[k, m, 0] += S[1] * z - S[2] * y + S[3]
                    J[k, m, 1] += S[2] * x - S[0] * z + S[4]
                    J[k, m, 2] += S[0] * y - S[1] * x + S[5]
                p = previous[p]
