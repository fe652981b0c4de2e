"""Smooth contact: closed forms of rest, damping and friction, and what is left of a force in the air."""

import casadi as ca
import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.model.model import Body, Coordinate, Joint, Model
from borelli.optimal.symbolic_dynamics.contact import SphereContact, contact_force, up_direction
from borelli.optimal.symbolic_dynamics.tree_system import tree_system
from borelli.optimal.symbolic_dynamics.vectors import column

UP = [0.0, 1.0, 0.0]
BALL = SphereContact("ball", "b", (0.0, 0.0, 0.0), 0.1, smoothing=1e-6)


def force_of(contact, center, velocity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0)):
    symbols = [ca.SX.sym(name, 3) for name in ("c", "v", "w")]
    found = contact_force(contact, UP, *([s[0], s[1], s[2]] for s in symbols))
    return np.array(ca.Function("f", symbols, [column(found.force)])(center, velocity, spin)).ravel()


def test_normal_force_is_that_of_hunt_and_crossley():
    depth, rate = 0.01, 0.2
    found = force_of(BALL, (0.0, 0.1 - depth, 0.0), (0.0, -rate, 0.0))
    # the smooth positive part of 1 + 1.5 c d' adds (0.01)^2 / 4 of it at most
    assert found[1] == pytest.approx(BALL.stiffness * depth**1.5 * (1.0 + 1.5 * BALL.dissipation * rate), rel=3e-5)
    assert np.abs(found[[0, 2]]).max() < 1e-12


def test_friction_saturates_and_opposes_slip():
    center = (0.0, 0.09, 0.0)
    normal = force_of(BALL, center)[1]
    fast = force_of(BALL, center, (3.0, 0.0, -4.0))
    assert np.hypot(fast[0], fast[2]) == pytest.approx(BALL.friction * normal, rel=1e-6)
    assert fast[[0, 2]] == pytest.approx(-BALL.friction * normal * np.array([0.6, -0.8]), rel=1e-6)
    slow = force_of(BALL, center, (0.05, 0.0, 0.0))
    assert slow[0] == pytest.approx(-BALL.friction * normal * np.tanh(0.05 / BALL.slip_velocity), rel=1e-5)


def test_a_rolling_sphere_does_not_slip():
    speed = 2.0
    rolling = force_of(BALL, (0.0, 0.09, 0.0), (speed, 0.0, 0.0), (0.0, 0.0, -speed / BALL.radius))
    assert abs(rolling[0]) < 1e-9


def test_force_in_the_air_is_of_the_order_of_the_smoothing():
    soft = SphereContact("s", "b", (0.0, 0.0, 0.0), smoothing=4e-3)
    touching, high = (force_of(soft, (0.0, y, 0.0))[1] for y in (0.0, 0.05))
    assert touching == pytest.approx(soft.stiffness * 0.002**1.5, rel=1e-3)
    assert 0.0 < high < 0.01 * touching


def falling_ball(**more) -> Model:
    coordinates = (Coordinate("x", rotational=False), Coordinate("y", rotational=False), Coordinate("angle"))
    body = Body("b", 3.0, inertia=((0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01)))
    joint = Joint("root", "planar", "ground", "b", coordinates=coordinates)
    return Model("ball", (body,), (joint,), gravity=(0.0, -9.81, 0.0), **more)


def test_a_resting_ball_does_not_accelerate_and_the_ground_has_its_weight():
    system = tree_system(falling_ball(), contacts=[BALL])
    depth = (3.0 * 9.81 / BALL.stiffness) ** (2.0 / 3.0)
    x = [0.3, BALL.radius - depth, 0.5, 0.0, 0.0, 0.0]
    rates = np.array(system.explicit(0.0, x, [], [])[0]).ravel()
    assert np.abs(rates).max() < 1e-3  # smoothing of depth and damping: 2.5e-5 of 9.81
    outputs = system.outputs(t=0.0, x=x, z=[], u=[], p=[], xdot=rates)
    assert float(outputs["ball_force_y"]) == pytest.approx(3.0 * 9.81, rel=1e-4)
    assert float(outputs["ball_depth"]) == pytest.approx(depth, rel=1e-9)


def test_friction_rolls_a_sliding_ball():
    """Force and spin of the first moment: a = -mu g, angular acceleration = mu m g r / I about -z."""
    system = tree_system(falling_ball(), contacts=[BALL])
    depth = (3.0 * 9.81 / BALL.stiffness) ** (2.0 / 3.0)
    x = [0.0, BALL.radius - depth, 0.0, 5.0, 0.0, 0.0]
    rates = np.array(system.explicit(0.0, x, [], [])[0]).ravel()
    assert rates[3] == pytest.approx(-BALL.friction * 9.81, rel=1e-4)
    # the point of contact is the lowest one, a radius below the center
    assert rates[5] == pytest.approx(-BALL.friction * 3.0 * 9.81 * BALL.radius / 0.01, rel=1e-4)


def test_contacts_need_gravity_and_sensible_numbers():
    with pytest.raises(ModelError, match="no gravity"):
        up_direction(Model("m", (), gravity=(0.0, 0.0, 0.0)))
    with pytest.raises(SettingsError, match="stiffness"):
        SphereContact("heel", "foot", (0.0, 0.0, 0.0), stiffness=0.0)
    with pytest.raises(SettingsError, match="radius"):
        SphereContact("heel", "foot", (0.0, 0.0, 0.0), radius=-1.0)
    with pytest.raises(ModelError, match="foot"):
        tree_system(falling_ball(), contacts=[SphereContact("heel", "foot", (0.0, 0.0, 0.0))])
