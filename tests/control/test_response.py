"""Response of one coordinate (Weinstein et al. 2008), compared with an independent prototype."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from borelli.control.response import (
    PD,
    SETTLED_FRACTION,
    MinimumJerk,
    coefficients,
    error_after,
    next_velocity,
    wrap_angle,
)
from borelli.control.stability import MIN_RATIO, spectral_radius
from borelli.errors import SettingsError

STILL = (0.0, 0.0, 0.0)
STEPS = (0.04, 0.02, 0.01, 0.005)


class SingleGains:
    """PD whose closed form uses the gains as given, not doubled."""

    def __init__(self, stiffness, damping):
        self.gains = stiffness, damping

    def after(self, error, rate, step, time):
        return error_after(*self.gains, step, error, rate)[0]


def run(response, step, duration, error=1.0, rate=0.0, target=lambda t: 0.0):
    """Return the errors at the end of every step."""
    x, v, errors = error + target(0.0), rate, []
    for k in range(round(duration / step)):
        t = k * step
        v = next_velocity(response, x, v, (target(t - step), target(t), target(t + step)), step, t)
        x = x + step * v
        errors.append(float(x - target(t + step)))
    return np.array(errors)


def worst(errors, stiffness, damping, step):
    times = step * np.arange(1, len(errors) + 1)
    return np.abs(errors - error_after(stiffness, damping, times, 1.0, 0.0)[0]).max()


def is_stable(a, b, step):
    """Return True where errors decay in repeated steps of one length, by Jury's conditions."""
    ratio = b / step
    return (np.abs(ratio) < 1.0) & (a < 1.0) & (1.0 + a + 2.0 * ratio > 0.0)


def exact_exponential(matrix):
    """Return the exponential by its series in integers: 300 binary digits, far more than it loses."""
    unit = 2**300
    term = [[unit, 0], [0, unit]]
    total = [row[:] for row in term]
    factors = [[Fraction(entry) for entry in row] for row in matrix]
    for n in range(1, 400):
        term = [[int(sum(term[i][k] * factors[k][j] for k in (0, 1)) / n) for j in (0, 1)] for i in (0, 1)]
        total = [[total[i][j] + term[i][j] for j in (0, 1)] for i in (0, 1)]
    return np.array([[float(Fraction(entry, unit)) for entry in row] for row in total])


@pytest.mark.parametrize(
    ("stiffness", "damping"), [(25.0, 10.0), (25.0, 2.0), (25.0, 40.0), (0.0, 3.0), (25.0, 0.0), (0.0, 0.0)]
)
def test_closed_forms_equal_the_matrix_exponential(stiffness, damping):
    # prototype: at most 4.0e-15; scipy's own is off by up to 1.9e-14
    for time in (0.01, 0.1, 0.7, 2.0):
        computed = np.stack(
            [error_after(stiffness, damping, time, *start) for start in ((1.0, 0.0), (0.0, 1.0))], axis=1
        )
        exact = exact_exponential(
            [[0, Fraction(time)], [-Fraction(stiffness) * Fraction(time), -Fraction(damping) * Fraction(time)]]
        )
        assert np.abs(computed - exact).max() < 4e-15  # that of scipy is 2.6e-14 off
        assert np.abs(computed - expm(time * np.array([[0.0, 1.0], [-stiffness, -damping]]))).max() < 5e-14


@given(st.floats(-2, 8), st.floats(0.03, 1e4), st.floats(-5, 0))
def test_closed_forms_are_valid_for_all_gains(power, ratio, step_power):
    # kp from 0.01 to 1e8 and steps from 1e-5 to 1 s: finite, and two steps are one of twice the length
    stiffness, time = 10.0**power, 10.0**step_power
    damping = 2.0 * ratio * np.sqrt(stiffness)
    a, b = coefficients(stiffness, damping, time)
    twice = coefficients(stiffness, damping, 2.0 * time)
    assert np.isfinite(a) and np.isfinite(b)
    assert abs(a) <= 1.0 and abs(b) <= time
    rounding = 1e-15 * (1.0 + np.sqrt(stiffness) * time)  # of the phase of a swing
    assert abs(twice[0] - (a * a - stiffness * b * b)) <= 10.0 * rounding * (a * a + stiffness * b * b) + 1e-300
    assert abs(twice[1] - (2.0 * a * b - damping * b * b)) <= 10.0 * rounding * (abs(a * b) + damping * b * b) + 1e-300


def test_gains_may_be_arrays():
    stiffness, damping = np.array([25.0, 25.0, 25.0, 0.0]), np.array([2.0, 10.0, 40.0, 0.0])
    a, b = coefficients(stiffness, damping, 0.1)
    for i in range(4):
        assert (a[i], b[i]) == coefficients(stiffness[i], damping[i], 0.1)


def test_critical_damping_is_the_limit_of_both_sides():
    at = np.array(coefficients(25.0, 10.0, 0.3))
    for nudge in (1e-3, 1e-6, 1e-9, 1e-12):
        for sign in (-1.0, 1.0):
            near = np.array(coefficients(25.0, 10.0 * (1.0 + sign * nudge), 0.3))
            assert np.abs(near - at).max() < 3.0 * nudge + 1e-15


def test_doubled_gains_converge_to_the_specified_response():
    # prototype: 2.33e-2, 1.25e-2, 6.45e-3, 3.28e-3, of first order
    errors = [worst(run(PD(25.0), step, 2.0), 25.0, 10.0, step) for step in STEPS]
    np.testing.assert_allclose(errors, [2.33e-2, 1.25e-2, 6.45e-3, 3.28e-3], rtol=5e-3)
    assert np.log2(errors[-2] / errors[-1]) == pytest.approx(1.0, abs=0.05)


def test_single_gains_converge_to_half_of_them():
    # prototype: 2.20e-2, 1.14e-2, 5.80e-3, 2.93e-3 from half the gains; from the full ones it tends to 0.110
    single = SingleGains(25.0, 10.0)
    errors = [worst(run(single, step, 2.0), 12.5, 5.0, step) for step in STEPS]
    np.testing.assert_allclose(errors, [2.20e-2, 1.14e-2, 5.80e-3, 2.93e-3], rtol=5e-3)
    assert worst(run(single, 1e-4, 2.0), 25.0, 10.0, 1e-4) == pytest.approx(0.110, abs=5e-4)


def explicit(stiffness, step, steps):
    x, v, errors = 1.0, 0.0, []
    for _ in range(steps):
        v -= step * (stiffness * x + 2.0 * np.sqrt(stiffness) * v)
        x += step * v
        errors.append(x)
    return np.array(errors)


def test_explicit_control_is_worse_and_diverges():
    # prototype: 6.46e-2, 3.17e-2, 1.57e-2, 7.81e-3; prototype: after 40 steps of sqrt(kp) h = 1, 6.3e7 against 1.6e-15
    errors = [worst(explicit(25.0, step, round(2.0 / step)), 25.0, 10.0, step) for step in STEPS]
    np.testing.assert_allclose(errors, [6.46e-2, 3.17e-2, 1.57e-2, 7.81e-3], rtol=5e-3)
    assert np.abs(explicit(1.0, 1.0, 40)).max() == pytest.approx(6.3e7, rel=0.02)
    assert abs(run(PD(1.0), 1.0, 40.0)[-1]) < 2e-15
    limit = 2.0 * np.sqrt(2.0) - 2.0
    assert abs(explicit(1.0, 0.999 * limit, 9000)[-1]) < 1e-3 < 1.0 < abs(explicit(1.0, 1.001 * limit, 9000)[-1])


def test_steps_far_longer_than_the_response_do_not_overshoot():
    # prototype: sqrt(kp) h = 20: 9.9e-6 after one step, -1.4e-7 after two
    errors = run(PD(400.0), 1.0, 10.0)
    assert errors[0] == pytest.approx(9.9e-6, rel=0.01)
    assert errors[1] == pytest.approx(-1.4e-7, rel=0.05)
    assert np.abs(errors).max() < 1.0


@given(st.floats(MIN_RATIO, 100.0), st.floats(-6, 6))
@settings(max_examples=300)
def test_every_step_is_stable_from_the_minimum_ratio_on(ratio, power):
    # the step in units of the response, sqrt(kp) h
    h = 10.0**power
    a, b = coefficients(2.0, 4.0 * ratio, h)
    if ratio * h > 1e-4 and h / ratio > 1e-8:  # else 1 - a is below rounding
        assert is_stable(a, b, h)
    assert spectral_radius(a, b, h) <= 1.0 + 1e-12


def test_stability_begins_at_the_minimum_ratio():
    # prototype: 0.0293; undamped the spectral radius reaches 1.129
    h = np.linspace(0.01, 40.0, 400_001)
    stable = [is_stable(*coefficients(2.0, 4.0 * ratio, h), h).all() for ratio in (MIN_RATIO - 1e-5, MIN_RATIO, 0.05)]
    assert stable == [False, True, True]
    assert spectral_radius(*coefficients(2.0, 0.0, h), h).max() == pytest.approx(1.129, abs=5e-4)


def test_jury_conditions_agree_with_eigenvalues():
    random = np.random.default_rng(3)
    a, b, h = random.uniform(-1.5, 1.5, (3, 1000))
    matrices = np.stack([np.stack([a, b], -1), np.stack([(a - 1.0) / h, b / h], -1)], axis=-2)
    radius = np.abs(np.linalg.eigvals(matrices)).max(axis=-1)
    np.testing.assert_allclose(spectral_radius(a, b, h), radius, rtol=1e-6)
    np.testing.assert_array_equal(is_stable(a, b, h), radius < 1.0)


@pytest.mark.parametrize("ratio", [0.0, 0.0293, -1.0, np.nan, np.inf])
def test_unstable_damping_ratio_raises(ratio):
    with pytest.raises(SettingsError, match=r"damping ratio is .* below 0\.02933 .* Use at least"):
        PD(25.0, ratio)
    with pytest.raises(SettingsError, match="damping ratio"):
        PD.from_settling_time(1.0, ratio)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_gains_that_are_not_positive_raise(value):
    with pytest.raises(SettingsError, match="stiffness"):
        PD(value)
    with pytest.raises(SettingsError, match="settling time"):
        PD.from_settling_time(value)
    with pytest.raises(SettingsError, match="duration"):
        MinimumJerk(1.0, 0.0, value, PD(25.0))
    with pytest.raises(SettingsError, match="Pass a positive, finite step"):
        next_velocity(PD(25.0), 0.0, 0.0, STILL, value)


@given(st.floats(MIN_RATIO, 50.0), st.floats(0.01, 10.0))
@settings(deadline=None)
def test_error_stays_below_two_percent_after_the_settling_time(ratio, time):
    gains = PD.from_settling_time(time, ratio)
    later = np.linspace(time, 3.0 * time, 2001)
    left = np.abs(error_after(gains.stiffness, gains.damping, later, 1.0, 0.0)[0])
    assert left[0] == pytest.approx(SETTLED_FRACTION, rel=1e-6)
    assert left.max() <= SETTLED_FRACTION * (1.0 + 1e-6)


def test_critical_settling_time():
    # (1 + x) exp(-x) = 0.02 at x = 5.8339
    assert np.sqrt(PD.from_settling_time(1.0).stiffness) == pytest.approx(5.8339, abs=1e-4)


def sway(t):
    return 0.5 * np.sin(2.0 * t)


def test_moving_target_is_tracked_without_lag():
    # prototype: 8e-8 to 9e-8 rad (what a first error leaves after 4 s); released on the target, rounding
    for step in (1 / 30, 1 / 60, 1 / 120):
        assert np.abs(run(PD(25.0), step, 4.0, error=0.0, rate=1.0, target=sway)[-1]) < 9e-8
        on_it = (sway(0.0) - sway(-step)) / step
        assert np.abs(run(PD(25.0), step, 4.0, error=0.0, rate=on_it, target=sway)).max() < 1e-14


def test_exact_velocity_of_the_target_would_leave_an_error():
    # prototype: 0.0307, 0.0325, 0.0335 rad at 1/30, 1/60, 1/120; predicted: E'' + kv E' + kp E = -x_o''/2, 0.0345
    found = []
    for step in (1 / 30, 1 / 60, 1 / 120):
        x, v, errors = 0.0, 1.0, []
        for k in range(round(10.0 / step)):
            t = k * step
            error = x - sway(t)
            after = PD(25.0).after(error, v - np.cos(2.0 * t), step)
            v = (sway(t + step) + after - x) / step
            x += step * v
            errors.append(x - sway(t + step))
        found.append(np.abs(errors[len(errors) // 2 :]).max())
    np.testing.assert_allclose(found, [0.0307, 0.0325, 0.0335], rtol=0.01)
    assert 0.5 * 2.0 / abs(25.0 - 4.0 + 20.0j) == pytest.approx(0.0345, abs=1e-4)


@pytest.mark.parametrize("step", [0.1, 1 / 60, 1 / 240])
def test_minimum_jerk_arrives_on_time_along_its_path(step):
    # Flash and Hogan 1985: 1 - 10 s^3 + 15 s^4 - 6 s^5 of the distance, from rest to rest
    response = MinimumJerk(0.8, 0.0, 1.5, PD(100.0))
    errors = run(response, step, 3.0, error=0.8, target=sway, rate=(sway(0.0) - sway(-step)) / step)
    s = np.minimum(step * np.arange(1, len(errors) + 1) / 1.5, 1.0)
    np.testing.assert_allclose(errors, 0.8 * (1.0 - 10.0 * s**3 + 15.0 * s**4 - 6.0 * s**5), atol=1e-13)


def test_minimum_jerk_starts_with_the_initial_rate_and_ends_at_rest():
    response, step = MinimumJerk(0.8, -2.0, 1.0, PD(100.0), start=0.5), 1e-4
    ends = [(response.path(t + step) - response.path(t - step)) / (2.0 * step) for t in (0.5 + step, 1.5 - step)]
    assert ends[0] == pytest.approx(-2.0, abs=1e-3) and ends[1] == pytest.approx(0.0, abs=1e-6)
    assert response.path(1.5) == pytest.approx(0.0, abs=1e-15)


def test_minimum_jerk_recovers_from_a_disturbance():
    response, step = MinimumJerk(0.8, 0.0, 1.5, PD(100.0)), 1 / 120
    x, v, errors = 0.8, 0.0, []
    for k in range(480):
        v = next_velocity(response, x, v + (3.0 if k == 60 else 0.0), STILL, step, k * step)
        x = x + step * v
        errors.append(float(x))
    path = [float(response.path((k + 1) * step)) for k in range(480)]
    off = np.abs(np.subtract(errors, path))
    assert off[60:].max() > 0.05 and off[-1] < 1e-9


def test_wrapped_angles_use_the_shorter_direction():
    np.testing.assert_allclose(
        wrap_angle([0.0, np.pi, -np.pi, 3.5, 7.0]), [0.0, np.pi, np.pi, 3.5 - 2 * np.pi, 7 - 2 * np.pi]
    )
    plain = next_velocity(PD(25.0), 0.1, 0.0, STILL, 0.01)
    turned = next_velocity(PD(25.0), 0.1 + 4 * np.pi, 0.0, (2 * np.pi, 0.0, -2 * np.pi), 0.01, wrap=True)
    assert turned == pytest.approx(float(plain), abs=1e-10)
