"""Modal preconditioner: exact where stiffness does not vary, limits included; and the parts of a model step."""

import numpy as np
import pytest

from borelli.analysis.kinematics.modal_preconditioner import Preconditioner, find_modes, solve_by_conjugate_gradients
from borelli.analysis.kinematics.smoothing_system import _minimum_along, limit_violation
from borelli.analysis.kinematics.snap_penalty import COEFFICIENTS
from borelli.analysis.tree_kernels.marker_energy import RestSprings
from borelli.analysis.tree_kernels.smoothing_kernels import trace_determined

FRAMES, N, SCALE = 30, 4, 7.0


def positive(rng, n=N):
    half = rng.normal(size=(n, n))
    return half @ half.T + 0.1 * np.eye(n)


def dense_hessian(markers, springs, weight, limits):
    """Return the Hessian of all frames with every entry, by Kronecker products."""
    D = sum(c * np.eye(FRAMES - 4, FRAMES, k) for k, c in enumerate(COEFFICIENTS))
    H = SCALE * np.kron(D.T @ D, weight) + np.kron(np.eye(FRAMES), markers + np.diag(springs))
    return H + np.diag(limits.ravel())


@pytest.mark.parametrize("active", [0, 1, 9])
def test_constant_stiffness_is_inverted_exactly(active):
    rng = np.random.default_rng(active)
    markers, weight, springs = positive(rng), positive(rng), rng.uniform(0.01, 0.1, N)
    limits = np.zeros((FRAMES, N))
    limits.flat[rng.choice(FRAMES * N, active, replace=False)] = 1e3
    right = rng.normal(size=(FRAMES, N))
    exact = np.linalg.solve(dense_hessian(markers, springs, weight, limits), right.ravel()).reshape(FRAMES, N)
    found = Preconditioner(find_modes(markers, springs, weight), SCALE, limits).solve(right)
    assert np.abs(found - exact).max() < 1e-8 * np.abs(exact).max()  # condition numbers of 1e5


def test_conjugate_gradients_correct_what_varies():
    rng = np.random.default_rng(3)
    markers, weight, springs = positive(rng), np.diag(rng.uniform(1.0, 9.0, N)), np.full(N, 0.05)
    H = dense_hessian(markers, springs, weight, np.zeros((FRAMES, N)))
    H += np.diag(rng.uniform(0.0, 2.0, FRAMES * N))  # what the modes do not know
    right = rng.normal(size=(FRAMES, N))
    precondition = Preconditioner(find_modes(markers, springs, weight), SCALE, np.zeros((FRAMES, N))).solve

    def product(x):
        return (H @ x.ravel()).reshape(x.shape)

    solution = solve_by_conjugate_gradients(product, precondition, right, 0.0, 1e-20)
    assert solution.convex and solution.gain > 0.0
    assert np.abs(product(solution.step) - right).max() < 1e-8
    assert np.abs(right - product(solution.step) - solution.residual).max() < 1e-10
    assert not solve_by_conjugate_gradients(lambda x: -product(x), precondition, right, 0.0, 1e-20).convex


def test_degrees_of_freedom_are_the_trace_of_constant_stiffness():
    rng = np.random.default_rng(4)
    markers, weight, springs = positive(rng), positive(rng), rng.uniform(0.01, 0.1, N)
    H = dense_hessian(markers, springs, weight, np.zeros((FRAMES, N)))
    exact = np.trace(np.linalg.solve(H, np.kron(np.eye(FRAMES), markers)))
    found = find_modes(markers, springs, weight).degrees_of_freedom(FRAMES, SCALE)
    assert found == pytest.approx(exact, rel=1e-9)


def test_energy_is_least_at_the_end_of_a_step_along_limits():
    rng = np.random.default_rng(5)
    springs = RestSprings(np.zeros(N), np.zeros(N), np.full(N, -0.5), np.full(N, 0.5), np.full(N, 50.0))
    H, x, fractions = positive(rng, FRAMES * N), rng.uniform(-0.6, 0.6, (FRAMES, N)), np.linspace(0.0, 1.0, 20001)
    gradient = rng.normal(size=(FRAMES, N))
    step = -np.linalg.solve(H, gradient.ravel()).reshape(x.shape) + 0.3 * rng.normal(size=x.shape)
    change = (H @ step.ravel()).reshape(x.shape)

    def energy(f):
        beyond = limit_violation(springs, x + f * step)
        return f * (gradient * step).sum() + 0.5 * f * f * (change * step).sum() + 25.0 * (beyond**2).sum()

    found = _minimum_along(springs, x, step, gradient, change)
    scanned = fractions[np.argmin([energy(f) for f in fractions])]
    assert 0.0 < found < 1.0 and found == pytest.approx(scanned, abs=1e-4)


def test_trace_of_tree_matrices():
    """Variables 2 and 3 are children of 1, which is a child of 0: the entry between 2 and 3 is zero."""
    rng = np.random.default_rng(6)
    first, column = np.array([0, 0, 1, 3, 5]), np.array([0, 0, 1, 0, 1])
    stiffness = np.stack([positive(rng) + 3.0 * np.eye(N) for _ in range(3)])
    stiffness[:, 2, 3] = stiffness[:, 3, 2] = 0.0
    springs, found = rng.uniform(0.5, 2.0, N), np.empty(3)
    trace_determined(first, column, stiffness, springs, np.zeros((N, N)), np.zeros((N, N)), found)
    exact = [np.trace(np.linalg.solve(K + np.diag(springs), K)) for K in stiffness]
    assert found == pytest.approx(exact, rel=1e-12)
    stiffness[1] *= -1.0
    trace_determined(first, column, stiffness, springs, np.zeros((N, N)), np.zeros((N, N)), found)
    assert np.isnan(found[1]) and np.isfinite(found[[0, 2]]).all()
