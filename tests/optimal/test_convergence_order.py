"""Transcriptions converge with the order that theory gives them."""

import numpy as np
import pytest

from borelli.optimal import Phase, Problem, Variable, make_system, solve
from borelli.optimal.node_sensitivity import node_sensitivity

from .example_problems import car, drag_cost

ELEMENTS = (4, 8, 16)
ROUNDING = 1e-11
"""Errors below this are those of the solver."""


def decay(elements):
    """A linear system without a free control: xdot = y, ydot = -x, whose end (cos 2, -sin 2) is known."""
    system = make_system(
        "oscillator",
        states=[Variable("x"), Variable("y")],
        controls=[Variable("unused", "1", -1.0, 1.0)],
        rates=lambda s: {"x": s.y, "y": -s.x},
    )
    phase = Phase("fall", system, 2.0, 2, elements, start={"x": 1, "y": 0}, cost=lambda s: s.unused**2)
    return Problem("oscillator", [phase])


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        ({"method": "radau", "order": 1}, 1),  # 2 d - 1
        ({"method": "radau", "order": 2}, 3),
        ({"method": "radau", "order": 3}, 5),
        ({"method": "radau", "order": 4}, 7),
        ({"method": "hermite-simpson"}, 4),
        ({"method": "multiple-shooting", "steps": 1}, 4),
        ({"method": "single-shooting", "steps": 1}, 4),
    ],
)
def test_order(settings, order):
    errors = []
    for elements in ELEMENTS:
        solution = solve(decay(elements), **settings)
        end = solution.dataset["state_value"].values[-1]
        errors.append(np.abs(end - [np.cos(2.0), -np.sin(2.0)]).max())
    errors = [error for error in errors if error > ROUNDING]
    assert len(errors) >= 2
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(order, abs=0.2), errors


def test_suboptimality_gap_falls_with_the_fourth_power_of_nodes():
    """Park's knob: the cost of few nodes above the optimum of the car with drag."""
    optimum = 2.0972640247  # limit of drag_cost, as the next line shows
    assert drag_cost(161) == pytest.approx(optimum, abs=1e-9)
    gaps = [drag_cost(nodes) - optimum for nodes in (6, 11, 21)]
    np.testing.assert_allclose(np.log2(np.array(gaps[:-1]) / gaps[1:]), 4.0, atol=0.2)


def test_node_sensitivity_is_the_gap_of_the_closed_form():
    problem = car(3, elements=20, drag=1.0)
    solution = solve(problem)
    found = node_sensitivity(problem, solution)
    assert found.nodes == (5,)
    assert found.finer.solved
    expected = (drag_cost(5) - drag_cost(3)) / drag_cost(3)
    assert found.change == pytest.approx(expected, abs=1e-7)
