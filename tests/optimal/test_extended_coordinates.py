"""Extended coordinates: the tensor form of Park et al., finite differences, redundancy, singularities, runs by them."""

import casadi as ca
import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.model.mechanisms import chain
from borelli.model.model import Shape
from borelli.optimal.dynamics_runs import run_forward, run_inverse, torque_function
from borelli.optimal.extended_coordinates import ExtendedCoordinates
from borelli.optimal.symbolic_dynamics.tree_system import tree_system
from borelli.optimal.system import Variable, make_system

NAMES = ("a", "b", "c", "d")
Q = np.array([0.4, 0.5, -0.3, 0.6])


def tip(s):
    """Return tip position of a planar chain of four links of 1 m."""
    angles = [s.a, s.a + s.b, s.a + s.b + s.c, s.a + s.b + s.c + s.d]
    return {"x": sum(ca.cos(t) for t in angles), "y": sum(ca.sin(t) for t in angles)}


def tip_and_shape(s):
    return tip(s) | {"bend": s.b - s.c, "curl": s.c + 0.5 * s.d**2}


def test_accelerations_equal_the_tensor_form():
    """Eqs. 6 and 7: q'' = G u'' - G ((G u')' H (G u')), with the Hessian tensor H formed in full."""
    coordinates = ExtendedCoordinates(NAMES, tip_and_shape)
    u_rate, u_acceleration = np.array([0.3, -0.2, 0.5, 0.1]), np.array([1.0, 2.0, -1.0, 0.4])
    q = ca.SX.sym("q", 4)
    space = type("Space", (), dict(zip(NAMES, ca.vertsplit(q), strict=True)))
    u = ca.vertcat(*tip_and_shape(space).values())
    jacobian = np.array(ca.Function("j", [q], [ca.jacobian(u, q)])(Q))
    tensor = np.array([np.array(ca.Function("h", [q], [ca.hessian(u[i], q)[0]])(Q)) for i in range(4)])
    g = np.linalg.inv(jacobian)
    v = g @ u_rate
    expected = g @ u_acceleration - g @ np.einsum("ijk,j,k->i", tensor, v, v)
    rates = coordinates.rates(Q, u_rate)
    np.testing.assert_allclose(rates, v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(coordinates.accelerations(Q, rates, u_acceleration), expected, rtol=0, atol=1e-12)


def test_acceleration_is_the_second_derivative_of_u():
    coordinates = ExtendedCoordinates(NAMES, tip_and_shape)
    v, a, h = np.array([0.5, -0.2, 0.3, 0.7]), np.array([0.1, 0.4, -0.6, 0.2]), 1e-4
    values = [coordinates.values(Q + v * t + 0.5 * a * t * t) for t in (-h, 0.0, h)]
    u_acceleration = (values[2] - 2.0 * values[1] + values[0]) / h**2
    np.testing.assert_allclose(coordinates.accelerations(Q, v, u_acceleration), a, atol=1e-6)


def test_redundant_rates_are_the_weighted_pseudo_inverse():
    weights = {"a": 4.0, "c": 0.5}
    coordinates = ExtendedCoordinates(NAMES, tip, weights=weights)
    u_rate = np.array([0.3, -0.2])
    rates = coordinates.rates(Q, u_rate)
    square = ExtendedCoordinates(NAMES, tip_and_shape)
    jacobian = np.array(square._built[1](Q, np.zeros(4))[1])[:2]
    inverse = np.diag([1.0 / weights.get(name, 1.0) for name in NAMES])
    expected = inverse @ jacobian.T @ np.linalg.solve(jacobian @ inverse @ jacobian.T, u_rate)
    np.testing.assert_allclose(rates, expected, rtol=0, atol=1e-13)
    # a preferred motion that already moves the tip as planned is kept
    np.testing.assert_allclose(coordinates.rates(Q, jacobian @ np.ones(4), np.ones(4)), 1.0, atol=1e-13)


def test_rates_stay_bounded_at_a_singularity():
    coordinates = ExtendedCoordinates(NAMES, tip)
    stretched = np.zeros(4)  # the tip cannot move along the chain
    rates = coordinates.rates(stretched, [1.0, 0.0])
    assert np.abs(rates).max() < 1e-6
    undamped = ExtendedCoordinates(NAMES, tip, singular_value=0.0)
    assert np.abs(undamped.rates(np.array([0.0, 0.0, 0.0, 1e-7]), [1.0, 0.0])).max() > 1e5


@pytest.mark.parametrize(
    ("expressions", "weights"), [(lambda s: {}, {}), (lambda s: tip_and_shape(s) | {"e": s.a}, {}), (tip, {"z": 1.0})]
)
def test_wrong_statements_are_refused(expressions, weights):
    with pytest.raises(SettingsError, match="Extended coordinates"):
        ExtendedCoordinates(NAMES, expressions, weights=weights)


def test_forward_run_is_the_closed_form():
    swing = make_system("swing", states=[Variable("x"), Variable("v")], controls=[Variable("f")],
                        rates=lambda s: {"x": s.v, "v": s.f - s.x})  # fmt: skip
    run = run_forward(swing, lambda t, x: np.array([0.5]), {"x": 1.0}, 2.0, step=1e-2)
    np.testing.assert_allclose(run.state[:, 0], 0.5 + 0.5 * np.cos(run.time), atol=1e-9)
    with pytest.raises(SettingsError, match="Unknown state"):
        run_forward(swing, lambda t, x: np.array([0.5]), {"y": 1.0}, 2.0)


def worm_chain():
    return tree_system(chain(3, Shape("capsule", (0.02, 0.1)), 0.25, kind="hinge"))


def test_torques_give_the_accelerations_they_were_computed_for():
    system = worm_chain()
    q, v, a = np.array([0.3, -0.4, 0.5]), np.array([1.0, 2.0, -1.0]), np.array([3.0, -2.0, 1.0])
    torques = np.array(torque_function(system)(q, v, a)).ravel()
    xdot, _ = system.explicit(0.0, np.concatenate([q, v]), torques, [])
    np.testing.assert_allclose(np.array(xdot).ravel()[3:], a, atol=1e-9)


def test_inverse_run_follows_its_plan():
    """The tip of a chain moves on a line as planned; the error falls with the step, as torques are held over it."""
    system = worm_chain()
    names = tuple(v.name for v in system.states[:3])

    def expressions(s):
        sums = [s[names[0]], s[names[0]] + s[names[1]], s[names[0]] + s[names[1]] + s[names[2]]]
        return {"x": sum(ca.cos(t) for t in sums), "y": sum(ca.sin(t) for t in sums), "bend": s[names[1]] - s[names[2]]}

    coordinates = ExtendedCoordinates(names, expressions)
    start = dict(zip(names, (1.0, -0.6, -0.5), strict=True))
    first = coordinates.values(list(start.values()))

    def plan(t):
        way = np.array([-0.3, -0.2, 0.1])
        wave = np.pi / 0.3
        return (first + way * (1 - np.cos(wave * t)) / 2, way * wave * np.sin(wave * t) / 2,
                way * wave**2 * np.cos(wave * t) / 2)  # fmt: skip

    errors = []
    for step in (2e-3, 1e-3):
        run = run_inverse(system, coordinates, plan, start, 0.3, step=step)
        planned = np.array([plan(t)[0] for t in run.time])
        errors.append(np.abs(np.array([coordinates.values(x[:3]) for x in run.state]) - planned).max())
    assert errors[1] < 5e-3
    assert errors[1] < 0.6 * errors[0]
