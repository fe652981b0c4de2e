"""Curves, activation and forces of symbolic muscles are those of `borelli.muscles`."""

import casadi as ca
import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.muscles.activation import activation_rate
from borelli.muscles.hill import (
    elastic_tendon_force,
    evaluate_curve,
    fiber_velocity,
    make_muscle_arrays,
    rigid_tendon_force,
)
from borelli.optimal.symbolic_dynamics.force_curves import with_de_groote_muscles
from borelli.optimal.symbolic_dynamics.hill_muscle import SLACK_SMOOTHING, hill_muscles

from ...muscles.muscle_cases import DE_GROOTE, MILLARD, MUJOCO, OLD_THELEN, PARK, RAJAGOPAL, THELEN, model, muscle

KINDS = (DE_GROOTE, THELEN, PARK)
SAME = 1e-12
"""Of curves: the same equations."""
SMOOTHED = 1e-7
"""[max isometric forces]: the smooth positive part lengthens fibers by up to (1e-4)^2 of their length, steep curves
multiply it by ten."""
POINTS = 200


def function(name, inputs, outputs):
    return ca.Function(name, inputs, [ca.SX(one) for one in outputs])


def rows(function, *columns):
    """Return each output of a function at rows of numbers."""
    return [np.array(one).ravel() for one in function.call([np.reshape(c, (1, -1)) for c in columns])]


def made(kind, **parameters):
    own = model(muscle(kind, **parameters))
    arrays = make_muscle_arrays(own)
    return arrays, hill_muscles(arrays)[0]


@pytest.mark.parametrize(
    ("kind", "parameters"), [(DE_GROOTE, {"active_force_width_scale": 1.3}), (THELEN, OLD_THELEN), (PARK, {})]
)
def test_curves_are_those_of_the_kernels(kind, parameters):
    arrays, own = made(kind, **parameters)
    x, a = ca.SX.sym("x"), ca.SX.sym("a")
    curves = own.curves
    length, speed, force = np.linspace(0.3, 1.8, POINTS), np.linspace(-1.2, 1.2, POINTS), np.linspace(0.02, 1.3, POINTS)
    activation = np.full((POINTS, 1), 0.37)
    for name, expression, at in (
        ("active", curves.active(x), length),
        ("passive", curves.passive(x), length),
        ("velocity", curves.velocity(x, a), speed),
        ("inverse_velocity", curves.inverse_velocity(x, a), force),
    ):
        expected = evaluate_curve(arrays, name, at[:, None], activation)[0][:, 0]
        (found,) = rows(function(name, [x, a], [expression]), at, activation)
        assert found == pytest.approx(expected, abs=SAME, rel=SAME), name


@pytest.mark.parametrize("kind", KINDS)
def test_tendon_length_inverts_the_tendon_curve(kind):
    arrays, own = made(kind)
    x = ca.SX.sym("x")
    value, slope = own.curves.tendon_length(x)
    force = np.linspace(0.01, 1.5, POINTS)
    length, own_slope, gradient = rows(function("t", [x], [value, slope, ca.gradient(ca.SX(value), x)]), force)
    reached, stiffness = evaluate_curve(arrays, "tendon", length[:, None])
    assert reached[:, 0] == pytest.approx(force, abs=1e-11)
    assert own_slope * stiffness[:, 0] == pytest.approx(1.0, abs=1e-9)
    assert own_slope == pytest.approx(gradient, rel=1e-11)


def states(rng, own):
    """Return path lengths, path velocities and activations with fibers of 0.6 to 1.5 optimal lengths."""
    fiber = own.optimal_fiber_length * rng.uniform(0.6, 1.5, POINTS)
    length = own.tendon_slack_length + np.sqrt(fiber**2 - own.width**2)
    return length, rng.uniform(-0.6, 0.6, POINTS) * own.max_velocity, rng.uniform(0.05, 1.0, POINTS)


@pytest.mark.parametrize("pennation", [0.0, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_rigid_tendon_forces(kind, pennation):
    arrays, own = made(kind, pennation=pennation)
    length, speed, activation = states(np.random.default_rng(0), own)
    symbols = [ca.SX.sym(name) for name in ("l", "v", "a")]
    state = own.rigid_tendon(*symbols)
    found = function("rigid", symbols, [state.force, state.fiber_length, state.fiber_velocity])
    expected = rigid_tendon_force(arrays, length[:, None], speed[:, None])
    # Thelen's force-velocity curve depends on the activation, which the arrays' active force states at one
    full, fiber, velocity = rows(found, length, speed, np.ones(POINTS))
    total = expected.active_force + expected.passive_force + expected.damping_force
    assert full == pytest.approx(total[:, 0], abs=SMOOTHED * own.max_isometric_force)
    assert fiber == pytest.approx(expected.fiber_length[:, 0], abs=SMOOTHED * own.optimal_fiber_length)
    assert velocity == pytest.approx(expected.fiber_velocity[:, 0], abs=SMOOTHED * own.max_velocity)
    if kind != THELEN:
        part = activation * expected.active_force[:, 0] + (expected.passive_force + expected.damping_force)[:, 0]
        assert rows(found, length, speed, activation)[0] == pytest.approx(part, abs=SMOOTHED * own.max_isometric_force)


@pytest.mark.parametrize("kind", KINDS)
def test_force_of_a_slack_muscle_goes_to_zero(kind):
    _, own = made(kind)
    symbols = [ca.SX.sym(name) for name in ("l", "v", "a")]
    found = function("rigid", symbols, [own.rigid_tendon(*symbols).force])
    (force,) = rows(found, own.tendon_slack_length - np.array([0.02, 0.05]), np.zeros(2), np.ones(2))
    assert np.abs(force).max() < 1e2 * SLACK_SMOOTHING**2 * own.max_isometric_force


@pytest.mark.parametrize("kind", KINDS)
def test_elastic_equilibrium_is_that_of_the_kernels(kind):
    """Without tendon velocity, the equilibrium of `elastic_tendon_force` makes the residual zero."""
    arrays, own = made(kind)
    rng = np.random.default_rng(1)
    length, speed, activation = states(rng, own)
    length = length + 0.03 * own.tendon_slack_length
    expected = elastic_tendon_force(arrays, length[:, None], speed[:, None], activation[:, None])
    symbols = [ca.SX.sym(name) for name in ("l", "v", "a", "f", "rate")]
    state = own.elastic_tendon(*symbols)
    force = expected.force[:, 0] / own.max_isometric_force
    taut = (expected.status[:, 0] == 0) & (force > 1e-3)
    assert taut.sum() > POINTS / 2
    given = (length, speed, activation, force, np.zeros(POINTS))
    residual, fiber = rows(function("r", symbols, [state.residual, state.fiber_length]), *(g[taut] for g in given))
    assert np.abs(residual).max() < SMOOTHED
    assert fiber == pytest.approx(expected.fiber_length[taut, 0], rel=1e-7)


@pytest.mark.parametrize(
    ("kind", "damping"), [*((kind, 0.0) for kind in KINDS), *((DE_GROOTE, damping) for damping in (1e-3, 0.01, 0.1))]
)
def test_force_rate(kind, damping):
    """It is the rate that makes the residual zero, and its fiber velocity is that of `fiber_velocity`."""
    arrays, own = made(kind, fiber_damping=damping)
    rng = np.random.default_rng(2)
    fiber = own.optimal_fiber_length * rng.uniform(0.7, 1.3, POINTS)
    activation, speed = rng.uniform(0.3, 1.0, POINTS), rng.uniform(-0.5, 0.5, POINTS)
    tendon = own.tendon_slack_length * rng.uniform(1.01, 1.035, POINTS)
    along = np.sqrt(fiber**2 - own.width**2)
    length = tendon + along
    force = evaluate_curve(arrays, "tendon", tendon[:, None] / own.tendon_slack_length)[0][:, 0]
    velocity, status = fiber_velocity(arrays, length[:, None], fiber[:, None], activation[:, None])
    reached = (status[:, 0] == 0) & (np.abs(velocity[:, 0]) < own.max_velocity)
    assert reached.sum() > POINTS / 4
    symbols = [ca.SX.sym(name) for name in ("l", "v", "a", "f", "rate")]
    state = own.elastic_tendon(*symbols)
    closed = function("rate", symbols, [state.force_rate])
    given = [x[reached] for x in (length, speed, activation, force)]
    (rate,) = rows(closed, *given, np.zeros(reached.sum()))
    residual, found = rows(function("r", symbols, [state.residual, state.fiber_velocity]), *given, rate)
    assert np.abs(residual).max() < 1e-9
    assert found == pytest.approx(velocity[reached, 0], abs=1e-6 * own.max_velocity)


def test_damped_velocity_is_found_for_any_activation_and_force():
    """Forces from -20 to 20 times what the fiber produces, activations down to 1e-4; its slope is exact too."""
    _, own = made(DE_GROOTE)
    active, force, v = (ca.SX.sym(name) for name in ("s", "f", "v"))
    found = own.curves.damped_velocity(active, 0.01, force)
    reached = active * own.curves.velocity(v, 1.0) + 0.01 * v
    slope = ca.gradient(found, force) * ca.substitute(ca.gradient(reached, v), v, found)
    check = function("check", [active, force], [ca.substitute(reached, v, found) - force, slope])
    s, f = (x.ravel() for x in np.meshgrid(np.geomspace(1e-4, 1.0, 25), np.linspace(-20.0, 20.0, 201)))
    error, one = rows(check, s, f)
    assert np.abs(error).max() < 1e-9
    assert np.abs(one - 1.0).max() < 1e-9


def test_damped_fibers_of_other_curves_have_no_expression():
    _, own = made(THELEN, fiber_damping=0.1)
    assert own.elastic_tendon(*(ca.SX.sym(name) for name in ("l", "v", "a", "f", "rate"))).force_rate is None


@pytest.mark.parametrize(("kind", "tolerance"), [(DE_GROOTE, SAME), (PARK, SAME), (THELEN, 2e-2)])
def test_activation_rates(kind, tolerance):
    """Winters' switch is smooth here: its rate differs by 2 % of the largest at most, where u and a nearly agree."""
    arrays, own = made(kind)
    u, a = (x.ravel() for x in np.meshgrid(np.linspace(0.02, 1.0, 40), np.linspace(0.02, 1.0, 41)))
    x, y = ca.SX.sym("a"), ca.SX.sym("u")
    (found,) = rows(function("rate", [x, y], [own.activation_rate(x, y)]), a, u)
    expected = activation_rate(arrays, a[:, None], u[:, None])[0][:, 0]
    assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()


def test_parks_activation_on_request():
    _, park = made(PARK)
    other = hill_muscles(make_muscle_arrays(model(muscle(DE_GROOTE))), "park")[0]
    x, y = ca.SX.sym("a"), ca.SX.sym("u")
    both = function("rates", [x, y], [park.activation_rate(x, y), other.activation_rate(x, y)])
    first, second = rows(both, [0.2, 0.8], [0.9, 0.1])
    assert first == pytest.approx(second, rel=1e-14)
    with pytest.raises(SettingsError, match="activation"):
        hill_muscles(make_muscle_arrays(model(muscle(DE_GROOTE))), "winter")


@pytest.mark.parametrize("kind", [MILLARD, MUJOCO])
def test_curves_without_closed_form_are_refused_and_converted(kind):
    given = model(muscle(kind))
    with pytest.raises(ModelError, match="with_de_groote_muscles"):
        hill_muscles(make_muscle_arrays(given))
    (converted,) = with_de_groote_muscles(given).muscles
    assert converted.kind == DE_GROOTE
    assert len(hill_muscles(make_muscle_arrays(model(converted)))) == 1


@pytest.mark.parametrize(
    ("given", "passive", "tendon"),
    [
        (muscle(MILLARD, **RAJAGOPAL), 0.52, 0.049),
        (muscle(THELEN, **OLD_THELEN), 0.6, 0.033),
        (muscle(THELEN), 0.6, 0.04),
    ],
)
def test_conversion_keeps_the_strains_at_one_normalized_force(given, passive, tendon):
    arrays = make_muscle_arrays(with_de_groote_muscles(model(given)))
    assert evaluate_curve(arrays, "passive", [[1.0 + passive]])[0][0, 0] == pytest.approx(1.0, abs=1e-12)
    assert evaluate_curve(arrays, "tendon", [[1.0 + tendon]])[0][0, 0] == pytest.approx(1.0, abs=1e-12)
    assert arrays.damping[0] == make_muscle_arrays(model(given)).damping[0]
