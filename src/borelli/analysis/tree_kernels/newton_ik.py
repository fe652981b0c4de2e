"""Inverse kinematics frame by frame: the pose of least marker energy by Newton's method with exact second derivatives.

Where the Hessian is not positive, far from the solution, its Gauss-Newton part is used, with as much damping as makes
the energy fall (Levenberg and Marquardt). Variables that cannot pass their limits are fixed at them while the gradient
points outward (a projected Newton step; Bertsekas 1982). A step that is too long is shortened before it is damped, and
the matrix of a short one is reused with a new gradient (the chord method; Kelley 1995).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.marker_energy import (
    MarkerEnergy,
    Points,
    RestSprings,
    compute_energy,
    compute_gradient,
    compute_hessian,
    compute_points,
    make_marker_energy,
)
from borelli.kernels.array_checks import check_array
from borelli.kernels.jit import inline, inline_into_caller, kernel, kernel_function
from borelli.kernels.shared_tuples import SharedTuple, load_shared
from borelli.tree.forward_kinematics import compute_poses
from borelli.tree.kinematic_tree import Tree

Floats = NDArray[np.float64]

STEP_TOLERANCE = 1e-9
"""Length of a step [rad or m] at which the search ends."""
ENERGY_RESOLUTION_STEP = 1e-6
"""Length of an exact Newton step [rad or m] below which the energy change is lost in rounding."""
ERROR_TOLERANCE = 1e-12
"""Estimated error [rad or m] at which the search ends too: about the square of an exact Newton step; of a further step
with the same matrix, its length times its ratio to the step before.
"""
REUSE_STEP = 1e-4
"""Length of a step [rad or m] below which its matrix is reused."""
EXTRAPOLATION = 0.6
"""Fraction of the last change by which the next frame's start is extrapolated: markers are noisy, 1 overshoots."""
MAX_DAMPING = 1e12
MIN_STEP_FRACTION = 0.2
"""Fraction below which a step that is too long is damped instead of shortened."""
MIN_DAMPING = 1e-8
INITIAL_DAMPING = 1e-3
"""Fraction of the diagonal added when a step fails."""


class IkSearch(NamedTuple):
    """Marker energy, and work arrays of the search for one pose."""

    energy: MarkerEnergy
    matrix: Floats
    """(n, n) rows as in the tree; then its factors."""
    step: Floats
    trial: Floats
    """(coordinates,)"""
    blocked: NDArray[np.uint8]
    """(n,) 1 if a variable is fixed at its limit."""


def make_ik_search(tree: Tree, points: Points, rest_springs: RestSprings | None = None) -> IkSearch:
    """Return marker energy and work arrays; arguments as those of `make_marker_energy`."""
    n = len(tree.free)
    return IkSearch(
        make_marker_energy(tree, points, rest_springs), np.zeros((n, n)), np.zeros(n), np.zeros(len(tree.variable)),
        np.zeros(n, np.uint8),
    )  # fmt: skip


@kernel_function
def factor_in_place(search_at):
    """Factor the matrix A = L^T D L, L unit lower, D on the diagonal; return False if a pivot is not positive.

    From the last row to the first, leaves before ancestors, so that a tree has no fill-in. A row and its only child's
    row are eliminated together: common rows are then read and written once.
    """
    A, tree_at = search_at.matrix, search_at.energy.tree
    first, column = tree_at.row_first, tree_at.row_column
    k = len(A) - 1
    while k >= 0:
        start = first[k]
        length = first[k + 1] - start
        K, d = A[k], A[k, length]
        if not d > 0.0:
            return False
        if length > 0 and column[start + length - 1] == k - 1:
            J, length = A[k - 1], length - 1
            a = K[length] / d
            for r in range(length):
                J[r] -= a * K[r]
            e = J[length] - a * K[length]
            K[length], J[length] = a, e
            if not e > 0.0:
                return False
            for s in range(length - 1, -1, -1):
                row = A[column[start + s]]
                a, b = K[s] / d, J[s] / e
                for r in range(s + 1):
                    row[r] -= a * K[r] + b * J[r]
                K[s], J[s] = a, b
            k -= 2
        else:
            for s in range(length - 1, -1, -1):
                row = A[column[start + s]]
                a = K[s] / d
                for r in range(s + 1):
                    row[r] -= a * K[r]
                K[s] = a
            k -= 1
    return True


@kernel_function
def solve_in_place(search_at, x):
    """Replace x by A^-1 x, with the matrix A factored."""
    A, tree_at = search_at.matrix, search_at.energy.tree
    first, column = tree_at.row_first, tree_at.row_column
    for k in range(len(A) - 1, -1, -1):
        start, known = first[k], x[k]
        for s in range(first[k + 1] - start):
            x[column[start + s]] -= A[k, s] * known
    for k in range(len(A)):
        start = first[k]
        length = first[k + 1] - start
        known = x[k] / A[k, length]
        for s in range(length):
            known -= A[k, s] * x[column[start + s]]
        x[k] = known


@inline
def _block_at_limits(search_at, q):
    """Find the variables to fix at their limits; return True if they changed."""
    marker_energy, blocked = search_at.energy, search_at.blocked
    free, springs, gradient = marker_energy.tree.free, load_shared(marker_energy.rest_springs), marker_energy.gradient
    changed = False
    for v in range(len(blocked)):
        x = q[free[v]]
        low = x <= springs.lower[v] and gradient[v] > 0.0
        high = x >= springs.upper[v] and gradient[v] < 0.0
        block = 1 if (low or high) and not springs.limit_stiffness[v] < 1e300 else 0
        changed = changed or block != blocked[v]
        blocked[v] = block
    return changed


@kernel_function
def _load_matrix(search_at, damping):
    energy_at, matrix, blocked = search_at.energy, search_at.matrix, search_at.blocked
    first, column = energy_at.tree.row_first, energy_at.tree.row_column
    hessian, gauss_diagonal, gradient = energy_at.hessian, energy_at.gauss_diagonal, energy_at.gradient
    any_blocked = False
    for i in range(len(blocked)):
        any_blocked = any_blocked or blocked[i] != 0
        length = first[i + 1] - first[i]
        for s in range(length):
            matrix[i, s] = hessian[i, s]
        # a variable that nothing acts on stays
        if blocked[i] or (gauss_diagonal[i] == 0.0 and gradient[i] == 0.0):
            matrix[i, length] = 1.0
        else:
            matrix[i, length] = hessian[i, length] + damping * (gauss_diagonal[i] + 1e-12)
    if any_blocked:
        for i in range(len(blocked)):
            start = first[i]
            for s in range(first[i + 1] - start):
                if blocked[i] or blocked[column[start + s]]:
                    matrix[i, s] = 0.0


@kernel_function
def _take_step(search_at, q, fraction):
    """Write into `trial` the pose after a fraction of the Newton step, within the limits; return its longest entry."""
    step, trial, blocked, energy_at = search_at.step, search_at.trial, search_at.blocked, search_at.energy
    gradient, free, springs = energy_at.gradient, energy_at.tree.free, load_shared(energy_at.rest_springs)
    if fraction == 1.0:
        for v in range(len(step)):
            step[v] = 0.0 if blocked[v] else -gradient[v]
        solve_in_place(search_at, step)
    for c in range(len(trial)):
        trial[c] = q[c]
    step_length = 0.0
    for v in range(len(step)):
        c = free[v]
        trial[c] += fraction * step[v]
        if not springs.limit_stiffness[v] < 1e300:
            trial[c] = min(max(trial[c], springs.lower[v]), springs.upper[v])
        step_length = max(step_length, abs(trial[c] - q[c]))
    return step_length


@inline_into_caller
def _solve_frame(search_at, target, weight, q_inout, max_iterations):
    """Find the pose of least energy; return the energy and the number of iterations (negative: not converged)."""
    energy_at, trial = search_at.energy, search_at.trial
    free, springs = energy_at.tree.free, load_shared(energy_at.rest_springs)
    for v in range(len(free)):
        if not springs.limit_stiffness[v] < 1e300:
            c = free[v]
            q_inout[c] = min(max(q_inout[c], springs.lower[v]), springs.upper[v])
    energy = compute_energy(energy_at, target, weight, q_inout)
    damping = 0.0
    for iteration in range(1, max_iterations + 1):
        compute_gradient(energy_at, target, weight, q_inout)
        # far from the solution Newton's matrix is rarely positive: it is not tried first
        exact, new_matrix, accepted, converged, previous_length, fraction = iteration > 1, True, False, False, 0.0, 1.0
        compute_hessian(energy_at, q_inout, 1.0, 1.0 if exact else 0.0)
        _block_at_limits(search_at, q_inout)
        while damping < MAX_DAMPING:
            if new_matrix and fraction == 1.0:
                _load_matrix(search_at, damping)
                if not factor_in_place(search_at):
                    damping = 0.0 if exact else max(10.0 * damping, INITIAL_DAMPING)
                    if exact:
                        compute_hessian(energy_at, q_inout, 1.0, 0.0)
                    exact = False
                    continue
            step_length = _take_step(search_at, q_inout, fraction)
            trial_energy = compute_energy(energy_at, target, weight, trial)
            newton = exact and damping == 0.0 and fraction == 1.0
            # a short step may change the energy by less than its last digit
            if not (trial_energy < energy or step_length <= (ENERGY_RESOLUTION_STEP if newton else STEP_TOLERANCE)):
                if not new_matrix:
                    compute_energy(energy_at, target, weight, q_inout)
                    break
                if fraction > MIN_STEP_FRACTION:
                    fraction *= 0.3
                else:
                    if exact:
                        compute_energy(energy_at, target, weight, q_inout)
                        compute_hessian(energy_at, q_inout, 1.0, 0.0)
                    exact, fraction, damping = False, 1.0, max(10.0 * damping, INITIAL_DAMPING)
                continue
            accepted = True
            if newton or trial_energy <= energy:
                energy = trial_energy
                for c in range(len(trial)):
                    q_inout[c] = trial[c]
            remaining = step_length * (step_length if new_matrix else step_length / previous_length)
            converged = step_length <= STEP_TOLERANCE or (newton and remaining <= ERROR_TOLERANCE)
            if converged or not newton or step_length > (REUSE_STEP if new_matrix else 0.1 * previous_length):
                break
            new_matrix, previous_length = False, step_length
            compute_gradient(energy_at, target, weight, q_inout)
            if _block_at_limits(search_at, q_inout):
                break
        if converged:
            return energy, iteration
        if not accepted:
            return energy, -iteration
        damping = 0.1 * damping if damping > MIN_DAMPING else 0.0
    return energy, -max_iterations


@kernel
def solve_ik_frames(search_at, rest, target, weight, q_inout, max_iterations, chained, energy_out, count_out):
    """Solve every frame; with `chained`, each from an extrapolation of the previous ones, else from the given pose.

    `rest` (frames, n) contains the rest pose of every frame, or one row for all.
    """
    free, rest_position = search_at.energy.tree.free, search_at.energy.rest_springs.rest
    for t in range(len(q_inout)):
        if chained and t > 0:
            for v in range(len(free)):
                c = free[v]
                q_inout[t, c] = q_inout[t - 1, c]
                if t > 1:
                    q_inout[t, c] += EXTRAPOLATION * (q_inout[t - 1, c] - q_inout[t - 2, c])
        for v in range(len(free)):
            rest_position[v] = rest[min(t, len(rest) - 1), v]
        energy_out[t], count_out[t] = _solve_frame(search_at, target[t], weight[t], q_inout[t], max_iterations)


@kernel_function
def _unpack(energy_at, matrix):
    """Write the Hessian as a full matrix."""
    rows, first, column = energy_at.hessian, energy_at.tree.row_first, energy_at.tree.row_column
    for i in range(len(rows)):
        for j in range(len(rows)):
            matrix[i, j] = 0.0
    for i in range(len(rows)):
        start = first[i]
        length = first[i + 1] - start
        for s in range(length):
            j = column[start + s]
            matrix[i, j] = rows[i, s]
            matrix[j, i] = rows[i, s]
        matrix[i, i] = rows[i, length]


@kernel
def compute_frame_derivatives(
    search_at, rest, target, weight, q_inout, energy_out, gradient_out, gauss_out, remainder_out
):  # fmt: skip
    """Compute energy, gradient (frames, n), Gauss-Newton Hessian (frames, n, n) and the remainder of the Hessian."""
    energy_at = search_at.energy
    gradient, rest_position = energy_at.gradient, energy_at.rest_springs.rest
    n = len(gradient)
    for t in range(len(q_inout)):
        for v in range(n):
            rest_position[v] = rest[min(t, len(rest) - 1), v]
        energy_out[t] = compute_energy(energy_at, target[t], weight[t], q_inout[t])
        compute_gradient(energy_at, target[t], weight[t], q_inout[t])
        for i in range(n):
            gradient_out[t, i] = gradient[i]
        for gauss in range(1, -1, -1):
            compute_hessian(energy_at, q_inout[t], float(gauss), float(1 - gauss))
            _unpack(energy_at, gauss_out[t] if gauss else remainder_out[t])


def find_body_poses(
    tree: Tree, points: Points, q_inout: Floats, search: SharedTuple | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return positions (frames, bodies, 3), rotations (frames, bodies, 3, 3) and points (frames, points, 3)."""
    check_array("coordinates", q_inout, (None, len(tree.variable)))
    frames, bodies = len(q_inout), len(tree.body_part)
    position, rotation = np.empty((frames, bodies, 3)), np.empty((frames, bodies, 3, 3))
    point = np.empty((frames, len(points.body), 3))
    compute_body_poses(search or SharedTuple(make_ik_search(tree, points)), q_inout, position, rotation, point)
    return position, rotation, point


@kernel
def compute_body_poses(search_at, q_inout, position_out, rotation_out, point_out):
    """Compute poses of bodies (frames, bodies, 3 and 3, 3) and points (frames, points, 3); set coupled coordinates."""
    energy_at = search_at.energy
    position, rotation, point_position = energy_at.pose.position, energy_at.pose.rotation, energy_at.point_position
    for t in range(len(q_inout)):
        compute_poses(energy_at.tree, q_inout[t], energy_at.pose)
        compute_points(energy_at)
        for b in range(len(position)):
            for i in range(3):
                position_out[t, b, i] = position[b, i]
                for j in range(3):
                    rotation_out[t, b, i, j] = rotation[b, i, j]
        for m in range(len(point_position)):
            for i in range(3):
                point_out[t, m, i] = point_position[m, i]
