"""Modal preconditioner: conjugate gradients for the Newton steps of the trajectory smoother.

The Hessian of all frames is H = S + K: snap couples frames, S = scale D^T W D with D the fourth difference; markers and
springs couple the variables of one frame, K_t. With the means W and K over all frames in place of the present values,
the generalized eigenvectors V (V^T W V = 1, V^T K V = diag(k)) make H one banded system for each mode,

    P0 = V^-T (scale D^T D + k_i) V^-1

Joint limits are stiff springs c in few frames of few variables, E: they are added exactly (Woodbury),

    P^-1 = P0^-1 - P0^-1 E (c^-1 + E^T P0^-1 E)^-1 E^T P0^-1

so that 10 to 20 iterations reduce the energy that is left to gain by 1e-4, each at a hundredth of the cost of a banded
Cholesky factor of H.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from borelli.analysis.kinematics.snap_penalty import DIFFERENCE_ORDER, square_of_differences
from borelli.analysis.tree_kernels.smoothing_kernels import (
    factor_matrix,
    factor_series,
    solve_matrix,
    solve_series,
)
from borelli.numerics.vectors import Array

Operator = Callable[[Array], Array]
MAX_ITERATIONS = 500
"""Of conjugate gradients; twice the most of all recordings tried."""
MAX_PRODUCTS = 200_000
"""Multiplications in one call of BLAS; from about 260,000 on OpenBLAS waits for threads, longer than it computes."""
PIVOT_ROUNDING = 1e-14
"""Least pivot of a mode's system, in units of its largest entry."""


@dataclass(frozen=True)
class Modes:
    """Directions in which the mean stiffness and the mean weight of the snap are diagonal."""

    direction: Array
    """(n, modes)"""
    stiffness: Array
    """(modes,) of markers and springs."""
    marker_stiffness: Array
    """(modes,) of markers alone."""

    def degrees_of_freedom(self, frames: int, scale: float) -> float:
        """Return the trace of H^-1 G of the mean stiffnesses, G the markers' part of H."""
        total = scale * _square_spectrum(frames) + self.stiffness[:, None]
        return float((self.marker_stiffness[:, None] / total).sum())


def find_modes(markers: Array, springs: Array, weight: Array) -> Modes:
    """Return the modes of mean stiffnesses (n, n) of markers and (n,) of springs, and of mean weights (n, n)."""
    from scipy.linalg import eigh

    _, direction = eigh(markers + np.diag(springs), weight)
    own = np.maximum(np.einsum("vi,vw,wi->i", direction, markers, direction), 0.0)
    return Modes(direction, own + springs @ direction**2, own)


@cache
def _square_spectrum(frames: int) -> Array:
    """Return the eigenvalues (frames,) of D^T D."""
    from scipy.linalg import eigvals_banded

    return np.maximum(eigvals_banded(square_of_differences(frames), lower=True), 0.0)


def _multiply_frames(x: Array, matrix: Array) -> Array:
    """Return x (frames, n) times a matrix (n, n), by parts for which BLAS starts no threads."""
    result, rows = np.empty_like(x), max(1, MAX_PRODUCTS // matrix.size)
    for first in range(0, len(x), rows):
        np.matmul(x[first : first + rows], matrix, out=result[first : first + rows])
    return result


class Preconditioner:
    """Approximate inverse of the Hessian of all frames."""

    def __init__(self, modes: Modes, scale: float, limits: Array) -> None:
        """Factor the modes' systems; `limits` (frames, n) is the stiffness of active joint limits, 0 elsewhere."""
        frames, n = limits.shape
        self._modes = modes
        self._lower, self._flexibility = np.zeros((frames, DIFFERENCE_ORDER, n)), np.empty((frames, n))
        square = square_of_differences(frames)
        least = PIVOT_ROUNDING * scale * square.max()
        factor_series(square, scale, modes.stiffness, least, self._lower, self._flexibility)
        self._active = np.nonzero(limits)
        self._limits = np.diag(1.0 / limits[self._active])
        if len(self._limits):
            self._limits += self._limit_flexibility()
            factor_matrix(self._limits)

    def _limit_flexibility(self) -> Array:
        """Return E^T P0^-1 E (active, active): how variables at limits yield to forces on them."""
        time, variable = self._active  # in the order of time
        shape, count = self._modes.direction[variable], len(time)
        result, response = np.empty((count, count)), np.empty_like(self._flexibility)
        first = 0
        while first < count:
            t = int(time[first])
            last = int(np.searchsorted(time, t, "right"))
            response[t] = 1.0
            response[t + 1 :] = 0.0
            solve_series(self._lower, self._flexibility, t, response)
            later = (response[time[first:]] * shape[first:]) @ shape[first:last].T
            result[first:, first:last], result[first:last, first:] = later, later.T
            first = last
        return result

    def solve(self, residual: Array) -> Array:
        """Return P^-1 times a residual (frames, n)."""
        modes = self._modes
        modal = _multiply_frames(residual, modes.direction)
        response = modal.copy()
        solve_series(self._lower, self._flexibility, 0, response)
        time, variable = self._active
        if len(time):
            shape = modes.direction[variable]
            force = (response[time] * shape).sum(axis=1)
            solve_matrix(self._limits, force)
            frames, first = np.unique(time, return_index=True)
            modal[frames] -= np.add.reduceat(force[:, None] * shape, first)
            response = modal
            solve_series(self._lower, self._flexibility, 0, response)
        return _multiply_frames(response, modes.direction.T)


def inner_product(a: Array, b: Array) -> float:
    """Return the sum of products of (frames, n) by a single thread; BLAS would start others."""
    return float(np.einsum("tv,tv->", a, b))


class Solution(NamedTuple):
    """Result of conjugate gradients."""

    step: Array
    residual: Array
    gain: float
    """Estimate of what the step gains: half the squared norm of the right side in P^-1."""
    convex: bool
    """False if the matrix was found not to be positive definite: the step is what was found before."""
    converged: bool


def solve_by_conjugate_gradients(
    product: Operator, precondition: Operator, right: Array, reduction: float, enough: float
) -> Solution:
    """Solve H x = right (frames, n), until what is left to gain is below `enough` [J] or below a fraction of all."""
    x, residual = np.zeros_like(right), right.copy()
    direction = precondition(residual)
    square = first = inner_product(residual, direction)
    for _ in range(MAX_ITERATIONS):
        if not square > max(reduction * first, 2.0 * enough):
            return Solution(x, residual, 0.5 * first, True, True)
        moved = product(direction)
        curvature = inner_product(direction, moved)
        if not curvature > 0.0:
            return Solution(x, residual, 0.5 * first, False, False)
        length = square / curvature
        x += length * direction
        residual -= length * moved
        preconditioned = precondition(residual)
        last, square = square, inner_product(residual, preconditioned)
        direction *= square / last
        direction += preconditioned
    return Solution(x, residual, 0.5 * first, True, False)
