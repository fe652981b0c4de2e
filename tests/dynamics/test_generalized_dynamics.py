"""Mass matrix, bias forces, Jacobians and accelerations against MuJoCo, Pinocchio and the laws of mechanics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from borelli.dynamics.generalized_dynamics import bias_forces, body_jacobian, forward_dynamics, linearize, mass_matrix
from borelli.dynamics.model_dynamics import ModelDynamics
from borelli.errors import DivergedError, ModelError, SettingsError
from borelli.model.io import read_model
from borelli.model.kinematics import coupled_motion, generalized_forces, point_positions
from borelli.model.mechanisms import four_bar
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model
from borelli.people.human import human
from borelli.physics.force_elements.elements import Spring
from borelli.physics.inputs import AppliedForce
from borelli.scenes.gallery import gallery_scene

from ..shared_data import shared
from .peers import PEERS, axes_of
from .sample_trees import KINDS, coupled_tree, random_state, tree_of

SAME = 1e-10
"""Relative to the largest entry: rounding of other orders of summation."""
RAJAGOPAL = "opensim/rajagopal2016/Rajagopal2016.osim"


MODELS = [
    *(pytest.param(lambda kind=kind: tree_of(kind), id=kind) for kind in KINDS),
    pytest.param(coupled_tree, id="coupled"),
    pytest.param(human, id="human"),
    pytest.param(lambda: read_model(shared(RAJAGOPAL)), id="Rajagopal2016", marks=pytest.mark.data),
]


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-300))


@pytest.mark.crosscheck
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("make", MODELS)
def test_other_engines_agree(make, peer):
    """Mass matrix, bias forces, inverse dynamics, accelerations and Jacobians of every body."""
    pytest.importorskip(peer)
    model = make()
    q, speeds = random_state(model, 3)
    one = ModelDynamics(model)
    u, rng = speeds[None, one.free], np.random.default_rng(4)
    axes, engine = axes_of(model, q, speeds, one.free), PEERS[peer](model)
    acceleration = rng.normal(size=u.shape)
    found = one.evaluate(q[None], u, acceleration)
    mass, force = engine.mass(axes), engine.force(axes, acceleration[0])
    assert relative_error(found.mass[0], mass) < SAME
    assert relative_error(found.force[0], force) < SAME
    assert np.array_equal(one.required_forces(q[None], u, acceleration), found.force)
    given = rng.normal(size=len(one.free)) * np.abs(force).max()
    expected = np.linalg.solve(mass, given - engine.force(axes, np.zeros(len(one.free))))
    forces = np.zeros((1, len(q)))
    forces[0, one.free] = given
    condition = np.linalg.cond(mass)
    assert relative_error(one.accelerations(q[None], u, forces)[0], expected) < max(SAME, 1e-15 * condition)
    for b, body in enumerate(model.bodies):
        point = rng.normal(scale=0.2, size=3)
        jacobian = one.jacobians(q[None], [body.name], [point])[0, 0]
        np.testing.assert_allclose(jacobian, engine.jacobian(axes, b, point), atol=SAME)


@pytest.mark.parametrize("make", MODELS)
def test_inverse_dynamics_gives_back_the_forces(make):
    """The slow recursive algorithm in body frames, with the chain rule of couplings, requires the forces given."""
    model = make()
    q, speeds = random_state(model, 5)
    rng, one = np.random.default_rng(6), ModelDynamics(model)
    forces = rng.normal(size=len(q)) * (one.variable >= 0)
    result = forward_dynamics(model, q, speeds, forces=forces)
    names = ("coordinate_value", "coordinate_velocity", "coordinate_acceleration")
    change = result["coordinate_acceleration"].values
    full = coupled_motion(
        model, q[None], speeds[None], np.where(np.isin(np.arange(len(q)), one.free), change, 0.0)[None]
    )
    for name, value in zip(names[1:], full[1:], strict=True):
        np.testing.assert_allclose(result[name].values, value[0], rtol=1e-12, atol=1e-12 * np.abs(value).max())
    required = generalized_forces(model, *full)
    slope = one.evaluate(full[0], speeds[None, one.free], change[None, one.free]).slope
    difference = one.variable_forces(required * (one.variable >= 0), slope) - one.variable_forces(forces[None], slope)
    assert np.abs(difference).max() < 1e-9 * max(1.0, np.abs(required).max())


def test_jacobian_is_the_slope_of_positions():
    model = coupled_tree()
    q, _ = random_state(model, 7)
    one, point, step = ModelDynamics(model), (0.1, -0.2, 0.3), 1e-5
    found = body_jacobian(model, "hand", q, point=point)
    for k, i in enumerate(one.free):
        ends = []
        for sign in (1.0, -1.0):
            moved = q.copy()
            moved[i] += sign * step
            moved = coupled_motion(model, moved[None], np.zeros((1, len(q))), np.zeros((1, len(q))))[0]
            ends.append(point_positions(model, moved, ["hand"], [point])[0, 0])
        slope = (ends[0] - ends[1]) / (2.0 * step)
        np.testing.assert_allclose(found["velocity_jacobian"].values[:, k], slope, atol=1e-9)


def test_kinetic_energy_is_half_of_u_m_u():
    model = human()
    q, speeds = random_state(model, 8)
    one = ModelDynamics(model)
    found = one.evaluate(q[None], speeds[None, one.free], np.zeros((1, len(one.free))))
    u = speeds[one.free]
    rotation = one.poses(q)[1]
    energy = 0.0
    for b, body in enumerate(model.bodies):
        v, w = found.motion[0, b, :3], rotation[b].T @ found.motion[0, b, 3:6]
        energy += 0.5 * body.mass * v @ v + 0.5 * w @ np.array(body.inertia) @ w
    assert 0.5 * u @ found.mass[0] @ u == pytest.approx(energy, rel=1e-13)


def test_pendulum_has_its_closed_form():
    """I phi'' = -m g c sin phi with I about the pivot; a horizontal load adds F l cos phi."""
    c, m = 0.4, 2.0
    bob = Body("bob", m, (0.0, 0.0, -c), ((0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1)))
    pivot = Joint("pivot", "hinge", GROUND, "bob", axes=((0.0, 1.0, 0.0),), coordinates=(Coordinate("angle"),))
    model = Model("pendulum", (bob,), (pivot,))
    inertia, phi = 0.1 + m * c * c, 0.7
    assert float(mass_matrix(model, {"angle": phi})[0, 0]) == pytest.approx(inertia, rel=1e-14)
    assert float(bias_forces(model, {"angle": phi})[0]) == pytest.approx(m * 9.81 * c * np.sin(phi), rel=1e-14)
    load = AppliedForce("bob", (-3.0, 0.0, 0.0), point=(0.0, 0.0, -1.0))
    result = forward_dynamics(model, {"angle": phi}, {"angle": 1.5}, forces={"angle": 0.5}, loads=[load])
    expected = (0.5 + 3.0 * np.cos(phi) - m * 9.81 * c * np.sin(phi)) / inertia
    assert float(result["coordinate_acceleration"][0]) == pytest.approx(expected, rel=1e-13)
    assert result["coordinate_acceleration"].attrs["units"] == "rad/s^2"


def test_springs_act_in_forward_dynamics():
    """A mass on a vertical spring: a = -g - k (x - x0) / m."""
    block = Body("block", 2.0)
    rail = Joint(
        "rail", "slider", GROUND, "block", axes=((0.0, 0.0, 1.0),), coordinates=(Coordinate("z", rotational=False),)
    )
    model = Model("mass", (block,), (rail,))
    spring = Spring("spring", "block", GROUND, to_point=(0.0, 0.0, 3.0), rest_length=1.0, stiffness=50.0, damping=4.0)
    result = forward_dynamics(model, {"z": 0.5}, {"z": -0.25}, elements=[spring])
    expected = -9.81 + (50.0 * (2.5 - 1.0) + 4.0 * 0.25) / 2.0
    assert float(result["coordinate_acceleration"][0]) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("make", [coupled_tree, human, lambda: tree_of("ball odd")])
def test_linearization_predicts_nearby_accelerations(make):
    """The error of the linear prediction falls with the square of the deviation."""
    model = make()
    q, speeds = random_state(model, 9)
    one, rng = ModelDynamics(model), np.random.default_rng(10)
    n = len(one.free)
    forces = np.where(one.variable >= 0, rng.normal(size=len(q)), 0.0)
    linear = linearize(model, q, speeds, forces=forces)
    A, B, rate = (linear[name].values for name in ("state_matrix", "input_matrix", "state_rate"))
    dx, df = rng.normal(size=2 * n), rng.normal(size=n)
    errors = []
    for size in (1e-3, 1e-4):
        moved, fast, pushed = q.copy(), speeds.copy(), forces.copy()
        moved[one.free] += size * dx[:n]
        fast[one.free] += size * dx[n:]
        pushed[one.free] += size * df
        found = forward_dynamics(model, moved, fast, forces=pushed)["coordinate_acceleration"].values[one.free]
        errors.append(np.abs(found - rate[n:] - size * (A @ dx + B @ df)[n:]).max())
    assert errors[1] < 0.02 * errors[0]
    np.testing.assert_allclose(A[:n], np.hstack([np.zeros((n, n)), np.eye(n)]))


@pytest.mark.crosscheck
def test_linearization_agrees_with_pinocchio():
    """Analytical derivatives of the articulated body algorithm (Carpentier and Mansard 2018)."""
    pin = pytest.importorskip("pinocchio")
    model = tree_of("universal odd")
    q, speeds = random_state(model, 11)
    one = ModelDynamics(model)
    axes, engine = axes_of(model, q, speeds, one.free), PEERS["pinocchio"](model)
    torque = np.random.default_rng(12).normal(size=len(one.free))
    order = axes.map @ np.arange(len(one.free))  # every axis is one coordinate
    index = np.round(order).astype(int)
    pin.computeABADerivatives(engine.peer, engine.data, axes.value, axes.rate, torque[index])
    linear = linearize(model, q, speeds, forces=torque)
    n = len(one.free)
    for start, expected in ((0, engine.data.ddq_dq), (n, engine.data.ddq_dv)):
        found = linear["state_matrix"].values[n:, start : start + n]
        assert relative_error(found[np.ix_(index, index)], np.array(expected)) < 1e-9


def test_gimbal_lock_is_an_error():
    model = tree_of("ball")
    with pytest.raises(DivergedError, match="gimbal lock"):
        forward_dynamics(model, {"middle.1": np.pi / 2})


def test_models_that_coordinates_do_not_describe_are_refused():
    with pytest.raises(ModelError, match="closes a loop"):
        mass_matrix(four_bar()[0])
    with pytest.raises(ModelError, match="has no joint"):
        mass_matrix(Model("loose", (Body("stone", 1.0, frame=Frame()),)))


def test_bad_input_is_named():
    model = gallery_scene("pendulum").model
    with pytest.raises(ModelError, match="pivott"):
        forward_dynamics(model, {"pivott": 1.0})
    with pytest.raises(SettingsError, match="finite"):
        forward_dynamics(model, {"pivot": np.nan})
    locked = tree_of("hinge")
    joints = list(locked.joints)
    joints[1] = replace(joints[1], coordinates=(replace(joints[1].coordinates[0], locked=True),))
    with pytest.raises(SettingsError, match="locked"):
        forward_dynamics(replace(locked, joints=tuple(joints)), forces={"middle.0": 1.0})
