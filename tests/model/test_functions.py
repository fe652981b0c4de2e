"""Functions of one variable against scipy and finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import polynomial as reference
from scipy.interpolate import CubicSpline

from borelli.errors import ModelError
from borelli.model.functions import (
    POLYNOMIAL_RANGE,
    Function,
    constant,
    linear,
    natural_cubic_spline,
    piecewise_linear,
    polynomial,
)

KNOTS = [-1.5, -0.2, 0.4, 1.0, 2.5]
VALUES = [0.3, -0.1, 0.7, 0.2, 1.1]
STEP = 1e-6  # central difference: error STEP^2 f''' / 6 + 1e-16 / STEP, about 1e-10

FUNCTIONS = {
    "constant": constant(2.5),
    "linear": linear(-1.5, 0.25),
    "cubic": polynomial([0.5, -1.0, 2.0, 0.7]),
    "piecewise": piecewise_linear(KNOTS, VALUES),
    "spline": natural_cubic_spline(KNOTS, VALUES),
    "scaled": natural_cubic_spline(KNOTS, VALUES).scaled(-3.0),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
@pytest.mark.parametrize("x", [-40.0, -3.3, -0.77, -0.1, 0.05, 0.6, 1.9, 3.7, 55.0])
def test_slope_is_the_derivative(function: Function, x: float) -> None:
    difference = (function(x + STEP) - function(x - STEP)) / (2 * STEP)
    assert function.slope(x) == pytest.approx(difference, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("x", np.linspace(KNOTS[0], KNOTS[-1], 37))
def test_spline_agrees_with_scipy(x: float) -> None:
    ours, theirs = natural_cubic_spline(KNOTS, VALUES), CubicSpline(KNOTS, VALUES, bc_type="natural")
    assert ours(x) == pytest.approx(float(theirs(x)), abs=1e-14)
    assert ours.slope(x) == pytest.approx(float(theirs(x, 1)), abs=1e-13)


def test_spline_goes_on_straight() -> None:
    spline = natural_cubic_spline(KNOTS, VALUES)
    end, slope = KNOTS[-1], spline.slope(KNOTS[-1])
    assert spline(end + 7.0) == pytest.approx(VALUES[-1] + 7.0 * slope, abs=1e-12)
    assert spline.slope(end + 7.0) == slope


@given(
    st.lists(st.floats(-10, 10), min_size=1, max_size=6),
    st.floats(-8.0, 8.0),
)
def test_polynomial_is_exact_near_zero_on_both_sides(coefficients: list[float], x: float) -> None:
    scale = sum(abs(c) * max(abs(x), 1.0) ** k for k, c in enumerate(coefficients))
    assert polynomial(coefficients)(x) == pytest.approx(reference.polyval(x, coefficients), abs=1e-12 * scale + 1e-300)


@pytest.mark.parametrize("x", [-1000.0, -513.0, -1.0, 999.0])
def test_polynomial_reaches_far(x: float) -> None:
    assert polynomial([1.0, 2.0, 3.0, 4.0])(x) == pytest.approx(reference.polyval(x, [1, 2, 3, 4]), rel=1e-13)


def test_polynomial_goes_on_straight_beyond_its_reach() -> None:
    square = polynomial([0.0, 0.0, 1.0])
    assert square.slope(2 * POLYNOMIAL_RANGE) == square.slope(POLYNOMIAL_RANGE) == 2 * POLYNOMIAL_RANGE


def test_points_are_met() -> None:
    for function in (piecewise_linear(KNOTS, VALUES), natural_cubic_spline(KNOTS, VALUES)):
        assert [function(x) for x in KNOTS] == pytest.approx(VALUES, abs=1e-14)


def test_is_constant() -> None:
    assert constant(3.0).is_constant
    assert not linear(1.0).is_constant
    assert not piecewise_linear([0, 1, 2], [1, 1, 2]).is_constant


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([0.0], [1.0], "at least two"),
        ([0.0, 1.0], [1.0], "as many"),
        ([1.0, 0.0], [1.0, 2.0], "increasing"),
        ([0.0, np.nan], [1.0, 2.0], "finite"),
    ],
)
@pytest.mark.parametrize("make", [piecewise_linear, natural_cubic_spline])
def test_bad_points_are_refused(make, x, y, words) -> None:
    with pytest.raises(ModelError, match=words):
        make(x, y)
