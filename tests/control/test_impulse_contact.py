"""Controlled bodies in contact with others: obstacles, impacts, loads, force limits."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.experiments.control.curl_obstacle import obstacle_run
from borelli.model.model import Body, Frame, Joint, Shape, Surface

from .impulse_worlds import follow, planks


def solid(model):
    """Return planks with collision shapes."""
    shape = Shape("box", (0.24, 0.05, 0.02), surface=Surface(friction=0.5))
    return replace(model, bodies=tuple(replace(body, shapes=(shape,)) for body in model.bodies))


@pytest.mark.parametrize("rate", [60, 240])
def test_planks_press_on_a_block_and_recover_when_it_goes(rate):
    block = Body("block", 1.0, shapes=(Shape("box", (0.1, 0.2, 0.1)),), frame=Frame((1.2, 0.0, -0.3)), kinematic=True)
    model = solid(planks(3))
    model = replace(model, bodies=(*model.bodies, block))

    def steer(state, time):
        state.position[3] = (1.2, 0.0, -0.3) if time < 2.0 else (0.0, 0.0, -1e4)

    data = follow(
        model,
        {f"q{k}": -0.4 for k in range(3)},
        duration=6.0,
        step=1 / rate,
        initial_coordinates={"q0": 0.0},
        steer=steer,
    )
    time, error = data["time"].values, (data["coordinate_value"] - data["coordinate_target"]).values
    pressing = (time > 1.5) & (time < 2.0)
    assert np.abs(error[pressing]).max(axis=1).min() > 0.5
    assert np.ptp(error[pressing], axis=0).max() < 1e-3  # it is at rest
    pushed = data["contact_force"].values[pressing, 2, 2]
    assert pushed.min() > 10.0 and np.ptp(pushed) < 0.01 * pushed.mean()
    assert np.abs(error[-1]).max() < 1e-5
    # without overshoot: nothing passes its target on return
    assert (error[time > 2.0] > -1e-9).all()
    assert data["joint_gap"].max() < 1e-13


def test_chain_is_deflected_by_a_ball_and_recovers():
    """It hangs; the ball comes from the side, hits the lowest plank, and rebounds."""
    model = solid(planks(5))
    round_ = Shape("sphere", (0.1,), surface=Surface(friction=0.0, restitution=0.5))
    inertia = ((0.008, 0.0, 0.0), (0.0, 0.008, 0.0), (0.0, 0.0, 0.008))
    ball = Body("ball", 2.0, inertia=inertia, shapes=(round_,), frame=Frame((0.6, 0.0, -2.2)))
    model = replace(model, bodies=(*model.bodies, ball))
    hanging = {"q0": -0.5 * np.pi} | {f"q{k}": 0.0 for k in range(1, 5)}
    data = follow(
        model, hanging, duration=6.0, initial_coordinates=hanging, initial_twists={"ball": (-4.0, 0.0, 2.0, 0, 0, 0)}
    )
    error = np.abs((data["coordinate_value"] - data["coordinate_target"]).values)
    assert error[0].max() < 1e-12 and error.max() > 0.05
    assert data["body_com_velocity"].values[-1, -1, 0] > 0.0
    assert error[-1].max() < 1e-6
    # after the largest deflection the error only falls
    after = np.abs(error).max(axis=1)[np.abs(error).max(axis=1).argmax() :]
    assert (np.diff(after[: len(after) // 2]) < 1e-4).all()


def carrying(mass):
    model = planks(2)
    stone = Body("stone", mass, inertia=((0.05, 0.0, 0.0), (0.0, 0.05, 0.0), (0.0, 0.0, 0.05)))
    hand = Joint("hand", "fixed", "plank_1", "stone", Frame((0.25, 0.0, 0.0)), Frame())
    return replace(model, bodies=(*model.bodies, stone), joints=(*model.joints, hand))


def test_load_known_to_the_controller_is_supported():
    data = follow(carrying(5.0), {"q0": 0.0, "q1": 0.0}, duration=2.0, initial_coordinates={"q0": 0.0})
    assert np.abs(data["coordinate_value"]).max() < 1e-12
    # the weights times their arms: planks at 0.25 and 0.75 m, the stone at 1 m
    moments = [9.8 * (0.25 + 0.75 + 5.0 * 1.0), 9.8 * (0.25 + 5.0 * 0.5)]
    np.testing.assert_allclose(data["torque"].values[-1], moments, rtol=1e-9)


def test_load_unknown_to_the_controller_sags_to_rest():
    data = follow(
        carrying(0.5), {"q0": 0.0, "q1": 0.0}, duration=8.0, initial_coordinates={"q0": 0.0}, outside=["stone"]
    )
    value = data["coordinate_value"].values
    assert (value[-1] < -0.05).all()
    np.testing.assert_allclose(value[-1], value[-240], atol=1e-3)
    assert data["joint_gap"].max() < 1e-13


@pytest.mark.parametrize("fraction", [0.8, 1.5])
def test_torque_stays_within_its_limit(fraction):
    """A plank of 1 kg and 1 m needs 9.8/2 N m to be level."""
    limit = fraction * 4.9
    data = follow(planks(1, 1.0), {"q0": 0.0}, duration=4.0, initial_coordinates={"q0": -1.2}, max_force=limit)
    assert np.abs(data["torque"]).max() <= limit * (1.0 + 1e-9)
    left = data["coordinate_value"].values[-1, 0]
    if fraction > 1.0:
        assert abs(left) < 1e-6
    else:
        assert left < -0.3


def test_the_force_limit_may_vary_in_time():
    data = follow(
        planks(1, 1.0),
        {"q0": 0.0},
        duration=3.0,
        initial_coordinates={"q0": 0.0},
        max_force=lambda t: 10.0 if t < 1.0 else 2.0,
    )
    strong, weak = data.sel(time=0.99, method="nearest"), data.isel(time=-1)
    assert abs(strong["coordinate_value"].item()) < 1e-9 and weak["coordinate_value"].item() < -0.3
    assert abs(weak["torque"].item()) <= 2.0 * (1.0 + 1e-9)


def test_joint_limit_stops_a_free_joint():
    model = planks(2)
    limited = replace(model.joints[1], coordinates=(replace(model.joints[1].coordinates[0], lower=-0.3, upper=0.3),))
    model = replace(model, joints=(model.joints[0], limited))
    data = follow(model, {"q0": 0.0}, duration=2.0, initial_coordinates={"q0": 0.0})
    assert data["coordinate_value"].values[:, 1].min() > -0.3 - 1e-9
    assert data["coordinate_value"].values[-1, 1] == pytest.approx(-0.3, abs=1e-6)
    assert np.abs(data["coordinate_value"].values[:, 0]).max() < 1e-12


def test_planks_that_slide_along_a_block_have_bounded_contact_forces():
    """The impact is 1.4 kN; with hard contacts in position correction, single steps after it had 1e7 N."""
    data = obstacle_run("impulse", 1.5, 2.0)
    force = np.linalg.norm(data["contact_force"].values, axis=-1).max(axis=1)
    assert 1e3 < force.max() < 3e3
    assert 0.0 < force[-60:].max() < 1e3
