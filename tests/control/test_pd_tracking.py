"""Springs and dampers compared with impulse-based PD; reference values are from an independent prototype."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from borelli.control.pd_step_responses import StableResponse, TraditionalResponse
from borelli.control.pd_tracking import outboard_inertia, track_with_springs
from borelli.control.response import PD, error_after, next_velocity
from borelli.errors import SettingsError
from borelli.experiments.control.planks import planks
from borelli.physics.arrays.compile_model import compile_model
from borelli.scenes.gallery import chain, four_bar

STILL = (0.0, 0.0, 0.0)
GRAVITY = 9.8  # [m/s^2] of the table


def responses(response, step, steps):
    """Errors at the end of every step, from 1 at rest."""
    x, v, errors = 1.0, 0.0, []
    for _ in range(steps):
        v = next_velocity(response, x, v, STILL, step)
        x = x + step * v
        errors.append(float(x))
    return np.array(errors)


def worst(response, step):
    """Return the largest difference from the analytic response of stiffness 25, over 2 s."""
    errors = responses(response, step, round(2.0 / step))
    return np.abs(errors - error_after(25.0, 10.0, step * np.arange(1, len(errors) + 1), 1.0, 0.0)[0]).max()


def test_traditional_control_is_of_first_order():
    # prototype
    found = [worst(TraditionalResponse(PD(25.0)), step) for step in (0.04, 0.02, 0.01, 0.005)]
    np.testing.assert_allclose(found, [6.46e-2, 3.17e-2, 1.57e-2, 7.81e-3], rtol=5e-3)


def test_traditional_control_diverges_beyond_its_limit():
    # the limit of sqrt(kp) h is 2 sqrt 2 - 2; prototype: 6.3e7 after 40 steps of 1
    assert np.abs(responses(TraditionalResponse(PD(1.0)), 1.0, 40)[-1]) == pytest.approx(6.3e7, rel=0.02)
    for ratio in (0.3, 1.0, 4.0):
        # kp h^2 + 2 kv h = 4
        limit = brentq(lambda h, r=ratio: h * h + 4.0 * r * h - 4.0, 0.0, 2.0)
        response = TraditionalResponse(PD(1.0, ratio))
        assert abs(responses(response, 0.995 * limit, 4000)[-1]) < 1e-3
        assert abs(responses(response, 1.005 * limit, 4000)[-1]) > 1e3


@pytest.mark.parametrize("ratio", [0.1, 1.0, 5.0])
def test_stable_control_never_diverges(ratio):
    for step in (0.01, 0.3, 1.0, 3.0, 20.0, 1000.0):
        errors = np.abs(responses(StableResponse(PD(1.0, ratio)), step, 2000))
        assert errors.max() <= 1.0 and errors[-1] < 0.2


def tan_liu_turk(stiffness, step, steps):
    """Stable PD as printed: the coordinate at the step's end is predicted from the previous rate."""
    damping = 2.0 * np.sqrt(stiffness)
    x, v, errors = 1.0, 0.0, []
    for _ in range(steps):
        acceleration = (-stiffness * (x + step * v) - damping * v) / (1.0 + step * damping)
        v += step * acceleration
        x += step * v
        errors.append(x)
    return np.array(errors)


def test_stable_control_is_that_of_tan_liu_and_turk_but_for_the_second_order():
    apart = []
    for step in (0.02, 0.01, 0.005):
        errors = responses(StableResponse(PD(25.0)), step, round(0.4 / step))
        apart.append(abs(errors[-1] - tan_liu_turk(25.0, step, len(errors))[-1]))
    assert apart[0] < 1e-2
    assert np.log2(apart[-2] / apart[-1]) > 0.9
    # the printed form is stable up to sqrt(kp) h = 2
    assert abs(tan_liu_turk(1.0, 1.99, 4000)[-1]) < 1e-3
    assert abs(tan_liu_turk(1.0, 2.01, 4000)[-1]) > 1e3


def targets(model, steps, value=0.0):
    return np.full((steps + 1, len(model.coordinates)), value)


@pytest.mark.parametrize("implicit", [False, True])
def test_one_plank_without_gravity_obeys_the_response(implicit):
    # but for the error of the soft step, of second order: 8.1e-4 or 6.4e-4 rad at 0.02 s
    model, apart = planks(1, 1.0, gravity=0.0), []
    response = (StableResponse if implicit else TraditionalResponse)(PD(25.0))
    for step in (0.02, 0.01, 0.005):
        steps = round(1.0 / step)
        data = track_with_springs(
            model,
            {"joint_1": PD(25.0)},
            targets(model, steps),
            step=step,
            implicit=implicit,
            initial_coordinates={"joint_1": -1.2},
        )
        apart.append(np.abs(data["coordinate_value"].values[1:, 0] + 1.2 * responses(response, step, steps)).max())
    assert apart[0] < 1e-3
    assert np.log2(apart[-2] / apart[-1]) == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize("implicit", [False, True])
def test_a_plank_droops_until_its_spring_supports_it(implicit):
    # prototype: 51.92, 29.35, 8.33 degrees at kp 10, 25, 100: the root of kp E = 3 g / (2 L) cos E is 51.932, 29.362
    for stiffness, droop in ((10.0, 51.92), (25.0, 29.35), (100.0, 8.33)):
        model = planks(1, 1.0, gravity=GRAVITY)
        data = track_with_springs(
            model, {"joint_1": PD(stiffness)}, targets(model, 960), step=1 / 240, implicit=implicit,
            initial_coordinates={"joint_1": -np.pi / 2}, record_every=960,
        )  # fmt: skip
        root = np.degrees(brentq(lambda e, k=stiffness: k * e - 1.5 * GRAVITY * np.cos(e), 0.0, np.pi / 2))
        found = -np.degrees(data["coordinate_value"].values[-1, 0])
        assert found == pytest.approx(root, abs=1e-3)
        assert found == pytest.approx(droop, abs=0.015)


def plank_gains(count, stiffness):
    """Scale gains by a rod of the outboard length and the mass of one plank: the k-th part of k planks."""
    beyond = {f"joint_{i + 1}": count - i for i in range(count)}
    return {name: PD(stiffness / k, ratio=k**-0.5) for name, k in beyond.items()}


def five_planks(stiffness, step, duration):
    """Simulate five planks released level."""
    model = planks(5, 0.5, gravity=GRAVITY)
    target_values = targets(model, round(duration / step))
    return track_with_springs(model, plank_gains(5, stiffness), target_values, step=step, implicit=False)


def test_a_chain_sags_under_traditional_control():
    # prototype: 37, 25, 16, 9, 5 degrees after 6 s, the last plank's center 1.98 m down (it still swings)
    data = five_planks(25.0, 1 / 480, 6.0)
    np.testing.assert_allclose(-np.degrees(data["coordinate_value"].values[-1]), [37, 25, 16, 9, 5], atol=0.5)
    assert data["body_position"].sel(body="link_5", axis="z").values[-1] == pytest.approx(-1.98, abs=0.01)


def test_a_chain_under_traditional_control_needs_ever_shorter_steps():
    # prototype: kp 25 chatters at 1/240 and not at 1/480; kp 100 at 1/480 and not at 1/1000, where it is 1.36 m down
    for stiffness, coarse, fine in ((25.0, 1 / 240, 1 / 480), (100.0, 1 / 480, 1 / 1000)):
        chatter, calm = five_planks(stiffness, coarse, 3.0), five_planks(stiffness, fine, 3.0)
        speeds = [
            np.abs(data["coordinate_velocity"].sel(time=slice(2.0, 3.0)).values).max() for data in (chatter, calm)
        ]
        # with closed joints kp 25 chatters by 25 rad/s; joints that opened took part in it, by more than 50 rad/s
        assert speeds[0] > 20.0 > 2.0 > speeds[1]  # [rad/s]
    assert calm["body_position"].sel(body="link_5", axis="z").values[-1] == pytest.approx(-1.36, abs=0.01)


def test_inertia_outboard_of_a_chain_is_that_of_a_rod():
    model = planks(5, 0.5)
    compiled = compile_model(model, step=1 / 240)
    beyond = np.arange(5, 0, -1)
    np.testing.assert_allclose(outboard_inertia(compiled, np.zeros(5)), beyond * (0.5 * beyond) ** 2 / 3.0, rtol=1e-12)
    # folded back on itself, the second plank's end is at the first hinge: 1/12 + 1/16 of two rods
    folded = outboard_inertia(compile_model(planks(2, 1.0), step=1 / 240), np.array([0.0, np.pi]))
    np.testing.assert_allclose(folded, [2.0 / 3.0, 1.0 / 3.0], rtol=1e-12)


def test_the_force_limit_is_respected():
    model = planks(1, 1.0, gravity=0.0)
    for implicit in (False, True):
        data = track_with_springs(
            model, {"joint_1": PD(100.0)}, targets(model, 20, 1.0), step=0.01, implicit=implicit,
            max_forces={"joint_1": 3.0},
        )  # fmt: skip
        force = data["torque"].values[1:, 0]
        assert force.max() == pytest.approx(3.0, abs=1e-9)
        # 3 N m on 1/3 kg m^2
        assert data["coordinate_velocity"].values[1, 0] == pytest.approx(0.09, abs=1e-9)


def test_a_joint_that_closes_a_loop_has_no_outboard_inertia():
    model = four_bar().model
    with pytest.raises(SettingsError, match=r"'loop'.* closes a loop"):
        track_with_springs(model, {"loop": PD(25.0)}, targets(model, 2), step=0.01, implicit=True)


@pytest.mark.parametrize("implicit", [False, True])
def test_a_ball_joint_tracks_a_rotating_target(implicit):
    # the torque needed is inertia times the target's acceleration: springs lag by kp E = -x_o'' (0.3 * 2^2 / 400)
    scene = chain(1)
    model = replace(scene.model, gravity=(0.0, 0.0, 0.0))
    step, steps = 1 / 480, 480
    time = step * np.arange(steps + 1)
    target_values = np.stack([np.zeros(steps + 1), 0.4 + 0.3 * np.sin(2.0 * time), 0.3 * np.sin(2.0 * time)], axis=1)
    gains = {coordinate.name: PD(400.0) for coordinate in model.coordinates}
    start = dict(zip(gains, target_values[0], strict=True))
    data = track_with_springs(model, gains, target_values, step=step, implicit=implicit, initial_coordinates=start)
    late = slice(steps // 2, None)
    assert np.abs(data["coordinate_value"].values[late] - target_values[late]).max() < 6e-3
    still = track_with_springs(model, gains, 0.0 * target_values + [0.5, -0.8, 2.0], step=step, implicit=implicit)
    # exp(-20) (1 + 20) of 2.2 rad
    np.testing.assert_allclose(still["coordinate_value"].values[-1], [0.5, -0.8, 2.0], atol=1e-6)
