"""The pose of least energy, frame by frame: Newton's method with exact second derivatives.

Where the second derivative is not positive, far from the answer, Gauss and Newton's part of it is used, with as much
damping as makes the energy fall (Levenberg and Marquardt). Variables that cannot pass their stops are kept at them
while the energy pushes outwards (a projected Newton step; Bertsekas 1982). A step that is too long is shortened
before it is damped, and the matrix of a short one is used again with a new gradient (the chord method; Kelley 1995).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.forward_kinematics import place
from borelli.analysis.tree_kernels.kinematic_tree import Tree
from borelli.analysis.tree_kernels.marker_energy import (
    Holds,
    Points,
    Springs,
    compute_energy,
    find_curvature,
    find_gradient,
    find_points,
    make_springs,
)
from borelli.kernels.jit import inline, inline_into_caller, kernel, kernel_function
from borelli.kernels.shared_tuples import load_shared

Floats = NDArray[np.float64]

LITTLE = 1e-9
"""A last step [rad or m] no longer than this ends the search."""
SHORT = 1e-6
"""Energies before and after a step of exact Newton no longer than this can hardly be told apart."""
LEFT = 1e-12
"""So little left ends it too. Exact Newton leaves about the square of its step; a further step with the same matrix,
the share of itself that it was of the step before."""
NEAR = 1e-4
"""After a step no longer than this the matrix is used again."""
LEAD = 0.6
"""Share of the last change that the next frame is taken to have: markers are noisy, and all of it overshoots."""
MOST_DAMPING = 1e12
LEAST_SHARE = 0.2
"""A step that is too long is shortened to less than this before it is damped."""
LEAST_DAMPING = 1e-8
FIRST_DAMPING = 1e-3
"""Share of the diagonal added when a step fails."""


class Search(NamedTuple):
    """The springs, and work arrays of the search for one pose."""

    springs: Springs
    matrix: Floats
    """(n, n) as the tree keeps rows; then its factors."""
    step: Floats
    trial: Floats
    """(coordinates,)"""
    blocked: NDArray[np.uint8]
    """(n,) whether a variable is kept at its stop."""


def make_search(tree: Tree, points: Points, holds: Holds | None = None) -> Search:
    """Springs and room for a search; arguments as those of `make_springs`."""
    n = len(tree.free)
    return Search(
        make_springs(tree, points, holds), np.zeros((n, n)), np.zeros(n), np.zeros(len(tree.variable)),
        np.zeros(n, np.uint8),
    )  # fmt: skip


@kernel_function
def factor_in_place(search_at):
    """The matrix A = L^T D L, L unit and lower, D where the diagonal was; False where a pivot is not positive.

    From the last row to the first, leaves before what carries them, so that a tree fills nothing in. Two rows of which
    one hangs on the other alone are taken together: what both change is then read and written once.
    """
    A, tree_at = search_at.matrix, search_at.springs.tree
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
    """x = A^-1 x, with the matrix A factored."""
    A, tree_at = search_at.matrix, search_at.springs.tree
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
def _block_at_stops(search_at, q):
    """Find the variables that are kept at their stops; whether they are others than before."""
    springs, blocked = search_at.springs, search_at.blocked
    free, holds, gradient = springs.tree.free, load_shared(springs.holds), springs.gradient
    changed = False
    for v in range(len(blocked)):
        x = q[free[v]]
        low = x <= holds.lower[v] and gradient[v] > 0.0
        high = x >= holds.upper[v] and gradient[v] < 0.0
        now = 1 if (low or high) and not holds.stop[v] < 1e300 else 0
        changed = changed or now != blocked[v]
        blocked[v] = now
    return changed


@kernel_function
def _load_matrix(search_at, damping):
    springs_at, matrix, blocked = search_at.springs, search_at.matrix, search_at.blocked
    first, column = springs_at.tree.row_first, springs_at.tree.row_column
    curve, own, gradient = springs_at.curve, springs_at.own, springs_at.gradient
    some = False
    for i in range(len(blocked)):
        some = some or blocked[i] != 0
        length = first[i + 1] - first[i]
        for s in range(length):
            matrix[i, s] = curve[i, s]
        # a variable that nothing holds stays
        if blocked[i] or (own[i] == 0.0 and gradient[i] == 0.0):
            matrix[i, length] = 1.0
        else:
            matrix[i, length] = curve[i, length] + damping * (own[i] + 1e-12)
    if some:
        for i in range(len(blocked)):
            start = first[i]
            for s in range(first[i + 1] - start):
                if blocked[i] or blocked[column[start + s]]:
                    matrix[i, s] = 0.0


@kernel_function
def _aim(search_at, q, share):
    """Where a share of the step by the factored matrix leads, within the stops: `trial`; its longest entry."""
    step, trial, blocked, springs_at = search_at.step, search_at.trial, search_at.blocked, search_at.springs
    gradient, free, holds = springs_at.gradient, springs_at.tree.free, load_shared(springs_at.holds)
    if share == 1.0:
        for v in range(len(step)):
            step[v] = 0.0 if blocked[v] else -gradient[v]
        solve_in_place(search_at, step)
    for c in range(len(trial)):
        trial[c] = q[c]
    longest = 0.0
    for v in range(len(step)):
        c = free[v]
        trial[c] += share * step[v]
        if not holds.stop[v] < 1e300:
            trial[c] = min(max(trial[c], holds.lower[v]), holds.upper[v])
        longest = max(longest, abs(trial[c] - q[c]))
    return longest


@inline_into_caller
def _settle(search_at, target, weight, q_inout, most):
    """Bring a pose to its least energy: the energy, the number of iterations (negative: it did not get there)."""
    springs_at, trial = search_at.springs, search_at.trial
    free, holds = springs_at.tree.free, load_shared(springs_at.holds)
    for v in range(len(free)):
        if not holds.stop[v] < 1e300:
            c = free[v]
            q_inout[c] = min(max(q_inout[c], holds.lower[v]), holds.upper[v])
    energy = compute_energy(springs_at, target, weight, q_inout)
    damping = 0.0
    for iteration in range(1, most + 1):
        find_gradient(springs_at, target, weight, q_inout)
        # far from the answer Newton's matrix is seldom positive: it is not tried first
        exact, fresh, found, ended, before, share = iteration > 1, True, False, False, 0.0, 1.0
        find_curvature(springs_at, q_inout, 1.0, 1.0 if exact else 0.0)
        _block_at_stops(search_at, q_inout)
        while damping < MOST_DAMPING:
            if fresh and share == 1.0:
                _load_matrix(search_at, damping)
                if not factor_in_place(search_at):
                    damping = 0.0 if exact else max(10.0 * damping, FIRST_DAMPING)
                    if exact:
                        find_curvature(springs_at, q_inout, 1.0, 0.0)
                    exact = False
                    continue
            longest = _aim(search_at, q_inout, share)
            tried = compute_energy(springs_at, target, weight, trial)
            newton = exact and damping == 0.0 and share == 1.0
            # what a short step gains may be less than the energy's last digit
            if not (tried < energy or longest <= (SHORT if newton else LITTLE)):
                if not fresh:
                    compute_energy(springs_at, target, weight, q_inout)
                    break
                if share > LEAST_SHARE:
                    share *= 0.3
                else:
                    if exact:
                        compute_energy(springs_at, target, weight, q_inout)
                        find_curvature(springs_at, q_inout, 1.0, 0.0)
                    exact, share, damping = False, 1.0, max(10.0 * damping, FIRST_DAMPING)
                continue
            found = True
            if newton or tried <= energy:
                energy = tried
                for c in range(len(trial)):
                    q_inout[c] = trial[c]
            left = longest * (longest if fresh else longest / before)
            ended = longest <= LITTLE or (newton and left <= LEFT)
            if ended or not newton or longest > (NEAR if fresh else 0.1 * before):
                break
            fresh, before = False, longest
            find_gradient(springs_at, target, weight, q_inout)
            if _block_at_stops(search_at, q_inout):
                break
        if ended:
            return energy, iteration
        if not found:
            return energy, -iteration
        damping = 0.1 * damping if damping > LEAST_DAMPING else 0.0
    return energy, -most


@kernel
def settle_frames(search_at, rest, target, weight, q_inout, most, chained, energy_out, count_out):
    """Settle every frame; with `chained`, each from where the frames before lead, else from what is given.

    `rest` (frames, n) has the rest pose of every frame, or one row for all.
    """
    free, resting = search_at.springs.tree.free, search_at.springs.holds.rest
    for t in range(len(q_inout)):
        if chained and t > 0:
            for v in range(len(free)):
                c = free[v]
                q_inout[t, c] = q_inout[t - 1, c]
                if t > 1:
                    q_inout[t, c] += LEAD * (q_inout[t - 1, c] - q_inout[t - 2, c])
        for v in range(len(free)):
            resting[v] = rest[min(t, len(rest) - 1), v]
        energy_out[t], count_out[t] = _settle(search_at, target[t], weight[t], q_inout[t], most)


@kernel_function
def unpack(springs_at, matrix):
    """The second derivatives as a full matrix."""
    rows, first, column = springs_at.curve, springs_at.tree.row_first, springs_at.tree.row_column
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
def find_derivatives(search_at, rest, target, weight, q_inout, energy_out, gradient_out, matrix_out):
    """Energy, gradient (frames, n) and Gauss and Newton's second derivative (frames, n, n) of every frame."""
    springs_at = search_at.springs
    gradient, resting = springs_at.gradient, springs_at.holds.rest
    for t in range(len(q_inout)):
        for v in range(len(gradient)):
            resting[v] = rest[min(t, len(rest) - 1), v]
        energy_out[t] = compute_energy(springs_at, target[t], weight[t], q_inout[t])
        find_gradient(springs_at, target[t], weight[t], q_inout[t])
        find_curvature(springs_at, q_inout[t], 1.0, 0.0)
        for i in range(len(gradient)):
            gradient_out[t, i] = gradient[i]
        unpack(springs_at, matrix_out[t])


@kernel
def find_bodies(search_at, q_inout, position_out, rotation_out, seen_out):
    """Where bodies (frames, bodies, 3 and 3, 3) and points (frames, points, 3) are; coupled coordinates are set."""
    springs_at = search_at.springs
    position, rotation, seen = springs_at.placed.position, springs_at.placed.rotation, springs_at.seen
    for t in range(len(q_inout)):
        place(springs_at.tree, q_inout[t], springs_at.placed)
        find_points(springs_at)
        for b in range(len(position)):
            for i in range(3):
                position_out[t, b, i] = position[b, i]
                for j in range(3):
                    rotation_out[t, b, i, j] = rotation[b, i, j]
        for m in range(len(seen)):
            for i in range(3):
                seen_out[t, m, i] = seen[m, i]
