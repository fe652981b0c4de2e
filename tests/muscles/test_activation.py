"""Activation dynamics: closed forms, order of other steps, OpenSim and MuJoCo as referees."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from borelli.muscles.activation import activation_rate, simulate_activation
from borelli.muscles.excitations import Excitations
from borelli.muscles.hill import make_muscle_arrays

from .muscle_cases import DE_GROOTE, KINDS, MILLARD, MUJOCO, PARK, THELEN, model, muscle

ARRAYS = make_muscle_arrays(model(*(muscle(kind, kind) for kind in KINDS)))
fractions = st.floats(0.0, 1.0)


def one(kind, **parameters):
    return make_muscle_arrays(model(muscle(kind, kind, **parameters)))


def end_of_step(arrays, a, u, step):
    return simulate_activation(arrays, [0.0, step], np.full((2, len(arrays.names)), u), np.full(len(arrays.names), a))[
        1
    ]


@given(a=fractions, u=fractions, step=st.floats(1e-4, 0.5))
@settings(deadline=None, max_examples=60)
def test_park_follows_its_exponential(a, u, step):
    rise, fall = 0.02, 0.06
    rate = u / rise + (1.0 - u) / fall
    steady = u * fall / (u * fall + (1.0 - u) * rise)
    found = end_of_step(one(PARK, activation_time=rise, deactivation_time=fall), a, u, step)
    assert found == pytest.approx(steady + (a - steady) * exp(-rate * step), abs=1e-14)


@given(a=st.floats(0.01, 1.0), u=st.floats(0.01, 1.0), step=st.floats(1e-5, 0.3))
@settings(deadline=None, max_examples=200)
def test_winters_step_takes_the_time_of_its_integral(a, u, step):
    """The time from a to the new activation, integrated in closed form from da/dt, is the step."""
    rise, fall = 0.01, 0.04
    (b,) = end_of_step(one(MILLARD), a, u, step)
    assert min(a, u) <= b <= max(a, u)
    left, right = abs(u - a), abs(u - b)
    if right < 1e-9 or left == right:  # arrived, or too near to measure
        return
    p = 0.5 + 1.5 * u
    if u > a:
        time = rise * (p * log(left / right) - 1.5 * (b - a))
    else:
        time = fall / p * log(left * (0.5 + 1.5 * b) / (right * (0.5 + 1.5 * a)))
    # rounding of u - b relative to itself
    assert time == pytest.approx(step, rel=1e-9, abs=1e-16 / right)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [(DE_GROOTE, {}), (DE_GROOTE, {"activation_dynamics_smoothing": 10.0}), (MUJOCO, {"tausmooth": 0.3})],
)
def test_steps_without_closed_form_are_of_order_four(kind, parameters):
    arrays = one(kind, activation_time=0.015, deactivation_time=0.06, **parameters)
    u = 0.7

    def rate(_, a):
        return activation_rate(arrays, a[:, None], np.full((len(a), 1), u))[0][:, 0]

    truth = solve_ivp(rate, (0.0, 0.04), [0.1], rtol=1e-11, atol=1e-12, method="LSODA").y[0, -1]
    errors = []
    for steps in (4, 8, 16, 32):
        time = np.linspace(0.0, 0.04, steps + 1)
        errors.append(abs(simulate_activation(arrays, time, np.full((steps + 1, 1), u), [0.1])[-1, 0] - truth))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders[-1] == pytest.approx(4.0, abs=0.5)
    assert errors[-1] < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_large_steps_stay_between_activation_and_excitation(kind):
    for a, u in ((0.05, 1.0), (1.0, 0.02), (0.3, 0.4)):
        found = end_of_step(one(kind), a, u, 1.0 / 30.0)[0]
        goal = u * 0.04 / (u * 0.04 + (1.0 - u) * 0.01) if kind == PARK else u
        assert min(a, goal) <= found <= max(a, goal)
        assert end_of_step(one(kind), a, u, 50.0)[0] == pytest.approx(goal, abs=2e-3)  # L-stable


def test_rate_derivatives():
    rng = np.random.default_rng(3)
    a, u = rng.uniform(0.05, 0.95, (200, len(KINDS))), rng.uniform(0.05, 0.95, (200, len(KINDS)))
    arrays = ARRAYS._replace(activation_smoothing=np.full(len(KINDS), 0.4))
    step = 1e-6
    high, low = (activation_rate(arrays, a + s, u)[0] for s in (step, -step))
    near = np.abs(u - a) > 2.0 * step  # Winters' rate has a kink at u = a
    slope = activation_rate(arrays, a, u)[1]
    np.testing.assert_allclose(((high - low) / (2.0 * step))[near], slope[near], rtol=1e-5, atol=1e-5)


@pytest.mark.crosscheck
@pytest.mark.parametrize("width", (0.0, 0.25))
def test_rates_of_mujoco(width):
    mujoco = pytest.importorskip("mujoco")
    arrays = one(MUJOCO, tausmooth=width)
    rng = np.random.default_rng(1)
    for a, u in rng.uniform(0.0, 1.0, (50, 2)):
        expected = mujoco.mju_muscleDynamics(u, a, np.array([0.01, 0.04, width]))
        assert activation_rate(arrays, [[a]], [[u]])[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_activation_stays_above_its_minimum():
    found = end_of_step(one(THELEN), 0.5, 0.0, 10.0)
    assert found == pytest.approx(0.01, abs=1e-12)
    assert one(THELEN, minimum_activation=0.05).min_activation[0] == 0.05


def test_muscles_without_activation_dynamics_follow_the_excitation():
    assert end_of_step(one(MILLARD, ignore_activation_dynamics=1.0), 0.2, 0.8, 1e-3)[0] == 0.8


def test_constant_table_steps_inside_an_interval():
    table = Excitations((MILLARD,), [0.0, 0.013], [[0.2], [0.9]], "constant")
    direct = simulate_activation(one(MILLARD), [0.0, 0.05], table, [0.2])[-1]
    by_hand = end_of_step(one(MILLARD), 0.2, 0.9, 0.037)
    assert direct == pytest.approx(by_hand, abs=1e-14)
