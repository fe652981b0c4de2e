"""Equal steps of order 8 against closed forms; systems that they do not resolve are left to the adaptive method."""

import numpy as np
import pytest

pytest.importorskip("casadi")

from borelli.optimal.casadi_import import ca
from borelli.optimal.certificate.fixed_steps import SUBSTEPS, FixedSteps, Tolerance

POINTS = 5
TOLERANCE = 1e-10


def steps_of(rate, states, controls=1, tolerance=TOLERANCE):
    """Return steps of a system whose rate is a function of t, x, u and p."""
    t, x, u, p = (ca.SX.sym(n, size) for n, size in zip("txup", (1, states, controls, 1), strict=True))
    explicit = ca.Function("explicit", [t, x, u, p], [rate(t, x, u, p), ca.SX(0, 1)])
    return FixedSteps(explicit, ca.DM([2.0]), POINTS, Tolerance(tolerance, np.full(states, tolerance)))


def oscillator(t, x, u, p):
    """Return the rates of x'' = -p^2 x + u + t."""
    return ca.vertcat(x[1], -(p**2) * x[0] + u + t)


def closed_form(t, x, start, slope, first, w=2.0):
    """Return the state at t with u = first + slope (t - start)."""
    constant, linear = (first - slope * start) / w**2, (slope + 1.0) / w**2  # of the particular solution
    a, b = x[0] - constant - linear * start, (x[1] - linear) / w
    c, s = np.cos(w * (t - start)), np.sin(w * (t - start))
    return np.array([a * c + b * s + constant + linear * t, w * (b * c - a * s) + linear])


def test_all_elements_agree_with_the_closed_form():
    rng = np.random.default_rng(0)
    x, start, duration = rng.normal(size=(6, 2)), rng.uniform(0.0, 3.0, 6), rng.uniform(0.05, 0.4, 6)
    first, last = rng.normal(size=(2, 6, 1))
    states, accurate = steps_of(oscillator, 2).integrate(x, start, duration, first, last)
    assert accurate.all() and states.shape == (6, POINTS + 1, 2)
    for k in range(6):
        slope = (last[k, 0] - first[k, 0]) / duration[k]
        for t, found in zip(start[k] + duration[k] * np.linspace(0, 1, POINTS + 1), states[k], strict=True):
            # errors of at most TOLERANCE in each of up to POINTS x 16 steps
            assert found == pytest.approx(closed_form(t, x[k], start[k], slope, first[k, 0]), abs=10 * TOLERANCE)


def test_the_error_falls_with_the_eighth_power_of_the_step():
    steps = steps_of(oscillator, 2, tolerance=1e30)  # accepted at the first number of steps
    errors = []
    for duration in (4.0, 2.0):
        x, one = np.array([[1.0, 0.0]]), np.ones((1, 1))
        states, _ = steps.integrate(x, np.zeros(1), np.array([duration]), 0 * one, 0 * one)
        errors.append(np.abs(states[0, -1] - closed_form(duration, x[0], 0.0, 0.0, 0.0)).max())
    assert 6.5 < np.log2(errors[0] / errors[1]) < 9.5


@pytest.mark.parametrize("rate", [lambda t, x, u, p: -1e6 * (x - ca.cos(t)), lambda t, x, u, p: ca.sqrt(x - 2.0)])
def test_stiff_and_undefined_rates_are_not_accurate(rate):
    one = np.ones((1, 1))
    _, accurate = steps_of(rate, 1).integrate(one, np.zeros(1), np.ones(1), one, one)
    assert not accurate[0]


def test_a_kink_takes_more_steps():
    """The rate |t - 1/3| has a kink within the element: the first number of steps is not enough."""
    counts = []

    def run(substeps, *arguments):
        counts.append(substeps)
        return FixedSteps._run(steps, substeps, *arguments)

    steps = steps_of(lambda t, x, u, p: ca.fabs(t - 1 / 3), 1, tolerance=1e-5)
    steps._run = run
    one = np.zeros((1, 1))
    states, accurate = steps.integrate(one, np.zeros(1), np.ones(1), one, one)
    assert accurate[0] and counts == list(SUBSTEPS[: len(counts)]) and len(counts) > 1
    assert states[0, -1, 0] == pytest.approx((1 / 3) ** 2 / 2 + (2 / 3) ** 2 / 2, abs=1e-4)
