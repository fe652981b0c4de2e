"""Every method gives the known answers of small problems."""

import numpy as np
import pytest

from borelli.optimal import solve

from .example_problems import DRAG_TABLE, METHODS, car, drag_cost, fastest, fastest_time
from .swing import swing_up

EXACT = 1e-9
"""The car's optimum is linear in time and inside every method: only rounding remains."""
TABLE = 1e-6
"""Integration error of 40 elements, and IPOPT's barrier on active bounds."""


@pytest.mark.parametrize("nodes", [2, 3, 21])
@pytest.mark.parametrize("method", METHODS)
def test_car(method, nodes):
    solution = solve(car(nodes), method=method)
    assert solution.solved, solution.certificate
    assert solution.objective == pytest.approx(1.5, abs=EXACT)  # 12 m^2 d^2 / T^3, by the calculus of variations
    time = solution.dataset["time"].values
    np.testing.assert_allclose(solution.value("force"), 1.5 * (1.0 - time), atol=1e-6)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_car_with_every_radau_order_that_integrates_it_exactly(order):
    assert solve(car(3), order=order).objective == pytest.approx(1.5, abs=EXACT)


@pytest.mark.parametrize("nodes", [2, 3, 21])
def test_car_with_perturbed_gradients(nodes):
    solution = solve(car(nodes), method="single-shooting", gradients="perturbed")
    assert solution.solved, solution.certificate
    assert solution.objective == pytest.approx(1.5, abs=EXACT)


@pytest.mark.parametrize("nodes", sorted(DRAG_TABLE))
def test_drag_table_is_the_closed_form(nodes):
    assert drag_cost(nodes) == pytest.approx(DRAG_TABLE[nodes], abs=1e-9)


@pytest.mark.parametrize("nodes", sorted(DRAG_TABLE))
@pytest.mark.parametrize("method", METHODS)
def test_car_with_drag(method, nodes):
    solution = solve(car(nodes, elements=-(-40 // (nodes - 1)), drag=1.0), method=method)
    assert solution.solved, solution.certificate
    assert solution.objective == pytest.approx(drag_cost(nodes), abs=TABLE)


@pytest.mark.parametrize("nodes", [3, 21, 28])
@pytest.mark.parametrize("method", METHODS)
def test_least_time(method, nodes):
    solution = solve(fastest(nodes), method=method)
    assert solution.solved, solution.certificate
    assert solution.objective == pytest.approx(fastest_time(nodes), abs=TABLE)
    assert any("force" in name for name in solution.certificate.active_bounds)


@pytest.mark.parametrize("method", METHODS)
def test_sliding_mass(method):
    """Moco's example: 2 kg, 50 N, 1 m: 2 sqrt(m d / F) = 0.4 s with the force free to switch (constant intervals)."""
    nodes = 21 if method == "single-shooting" else 101  # its dense programs take a minute with 101
    solution = solve(fastest(nodes, max_force=50.0, mass=2.0, control="constant"), method=method)
    assert solution.solved, solution.certificate
    assert solution.duration == pytest.approx(0.4, abs=1e-4)


def test_methods_agree_on_a_nonlinear_problem():
    """A pendulum swung up with least squared torque: from one first solution, all methods find the same motion."""
    problem = swing_up(11, elements=4)
    first = solve(problem, method="single-shooting")
    solutions = [solve(problem, method=method, warm_start=first) for method in METHODS]
    assert all(solution.solved for solution in solutions), [s.certificate for s in solutions]
    np.testing.assert_allclose([s.objective for s in solutions], first.objective, rtol=1e-5)
    ends = [s.dataset["state_value"].values[s.dataset["element_end"].values == 1] for s in solutions]
    for states in ends:
        np.testing.assert_allclose(states, ends[0], atol=1e-3)


def test_starts_find_the_better_of_two_swings():
    """From a straight line to the top collocation ends in a swing that costs 4 % more than the best known one."""
    problem = swing_up(11, elements=4)
    one, many = solve(problem), solve(problem, starts=4, seed=1)
    assert one.solved and many.solved
    assert many.objective < one.objective - 1.0
    assert many.dataset["start_objective"].values[0] == one.objective


def test_threads_change_nothing():
    one, two = (solve(car(21, drag=1.0), threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.dataset["state_value"].values, two.dataset["state_value"].values)
