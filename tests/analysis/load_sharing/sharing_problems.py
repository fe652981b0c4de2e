"""Random load-sharing problems, and slow solvers as referees."""

from typing import NamedTuple

import daqp
import numpy as np
from scipy.optimize import lsq_linear


class Problem(NamedTuple):
    """Input of `share_loads`: moment arms [m], torques [N m], forces at full activation [N]."""

    moment_arm: np.ndarray
    torque: np.ndarray
    max_force: np.ndarray

    def matrix(self, frame):
        """Return the torque per unit of activation, (coordinates, muscles)."""
        return (self.moment_arm[frame] * self.max_force[frame][:, None]).T


def make_problem(rng, frames, muscles, coordinates, *, span=3, peak=0.9, demand=1.0):
    """Return a body of muscles that cross up to `span` neighboring coordinates, with smooth motion over the frames.

    Torques are those of some activations up to `peak`, times `demand`: above 1 they may be unattainable.
    """
    t = np.linspace(0.0, 1.0, frames)[:, None]

    def wave(size, count):
        return 1.0 + size * np.sin(2.0 * np.pi * t + rng.uniform(0.0, 6.0, count))

    arm = np.zeros((frames, muscles, coordinates))
    for i in range(muscles):
        first = rng.integers(0, max(coordinates - span, 0) + 1)
        crossed = range(first, min(first + rng.integers(1, span + 1), coordinates))
        for k in crossed:
            arm[:, i, k] = 0.04 * rng.normal() * wave(0.2, 1)[:, 0]
    force = 1000.0 * rng.uniform(0.3, 3.0, muscles) * wave(0.2, muscles)
    activation = peak * np.clip(0.5 * wave(1.0, muscles), 0.0, 1.0)
    return Problem(arm, demand * np.einsum("fm,fmc->fc", activation * force, arm), force)


def strengths(problem, upper=1.0):
    """Return the strength of each coordinate: the largest torque of all its muscles pulling with one sign."""
    torque = np.einsum("fm,fmc->fc", upper * problem.max_force, np.abs(problem.moment_arm)).max(axis=0)
    return np.where(torque > 0.0, torque, 1.0)


def solve_qp(A, b, weight, pull, lower, upper):
    """Return argmin sum weight x^2 - pull x, A x = b, lower <= x <= upper, by daqp; None if it finds none."""
    scale = np.abs(A).max(axis=1)
    rows = scale > 0.0
    A, b = A[rows] / scale[rows, None], b[rows] / scale[rows]
    n, m = A.shape[1], A.shape[0]
    sense = np.concatenate([np.zeros(n), np.full(m, 5)]).astype(np.int32)
    high, low = np.concatenate([upper, b]), np.concatenate([lower, b])
    x, _, flag, _ = daqp.solve(2.0 * np.diag(weight), -pull, np.ascontiguousarray(A), high, low, sense)
    return np.array(x) if flag == 1 else None


def nearest_distance(A, b, strength, lower, upper):
    """Return the least sqrt(sum ((b - A x) / strength)^2) within the bounds, by scipy's bounded least squares."""
    fit = lsq_linear(A / strength[:, None], b / strength, (lower, upper), method="bvls", tol=1e-14, max_iter=1000)
    return np.sqrt(2.0 * fit.cost)


def stationarity_error(A, gradient, x, lower, upper):
    """Return the least |gradient - A^T y - (multipliers of active bounds, of their sign)| over all multipliers."""
    scale = np.abs(A).max(axis=1)
    rows = scale > 0.0
    n, m = len(x), int(rows.sum())
    near = 1e-9
    low, high = x <= lower + near, x >= upper - near
    columns = np.concatenate([(A[rows] / scale[rows, None]).T, np.eye(n)[:, low], -np.eye(n)[:, high]], axis=1)
    bounds = (np.concatenate([np.full(m, -np.inf), np.zeros(low.sum() + high.sum())]), np.inf)
    fit = lsq_linear(columns, gradient, bounds, tol=1e-15, max_iter=2000)
    return np.abs(columns @ fit.x - gradient).max()
