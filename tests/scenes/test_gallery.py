"""Every scene of the gallery does what its description says."""

from math import cos, radians, sin

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.model.validate import validate
from borelli.scenes.gallery import GALLERY, bouncing_balls, chain, four_bar, gallery_scene, ramp, spinning_top, stack
from borelli.scenes.scene import run_scene, validate_scene
from borelli.scenes.scene_files import with_changes
from borelli.scenes.summary import summary

GRAVITY = 9.81


@pytest.mark.parametrize("name", GALLERY)
def test_scene_is_sound_and_starts(name):
    scene = gallery_scene(name)
    validate(scene.model)
    validate_scene(scene)
    assert scene.name == name and scene.description
    result = run_scene(with_changes(scene, duration=20 * scene.step))
    assert np.isfinite(result["body_position"].values).all()
    assert (result["solver_status"].values == 0).all()
    assert float(result["joint_gap"].max()) < 1e-3  # [m]: the scene starts with its joints closed


@pytest.mark.parametrize("make", [lambda: chain(0), lambda: four_bar(rocker=0.05), lambda: spinning_top(spin=20.0)])
def test_impossible_scene_is_refused(make):
    with pytest.raises(SettingsError):
        make()


def test_box_on_the_ramp_slides_as_coulomb_says():
    slope, friction = radians(25.0), 0.3
    result = run_scene(ramp(25.0, friction))
    moved = np.linalg.norm(result["body_position"].values[-1, 0] - result["body_position"].values[0, 0])
    acceleration = GRAVITY * (sin(slope) - friction * cos(slope))
    time = float(result["time"][-1])
    # first order in the step: v grows by a h per step, so the error is about a h t / 2
    assert moved == pytest.approx(acceleration * time**2 / 2, rel=0.01)


def test_box_on_the_ramp_sticks_when_friction_exceeds_the_slope():
    result = run_scene(ramp(25.0, friction=0.6))
    assert np.abs(result["body_position"].values[-1] - result["body_position"].values[0]).max() < 1e-3  # [m]


def test_belt_carries_the_boxes_at_its_speed():
    result = run_scene(with_changes(gallery_scene("conveyor"), duration=0.8))
    velocity = result["body_com_velocity"].values[-1]
    assert np.allclose(velocity[:2, 0], 0.8, atol=0.01)  # the first two are still on the belt


def test_balls_rebound_by_the_square_of_their_restitution():
    scene = bouncing_balls(4)
    result = run_scene(scene)
    height = result["body_position"].values[:, :, 2] - 0.1
    drop = 0.9
    for ball in range(1, 4):
        landed = int(np.argmax(height[:, ball] < 2e-2))
        rebound = height[landed + 5 :, ball].max()
        assert rebound == pytest.approx((ball / 3) ** 2 * drop, rel=0.05)


def test_stack_stands():
    result = run_scene(with_changes(stack(10), duration=1.0))
    moved = np.linalg.norm(result["body_position"].values[-1] - result["body_position"].values[0], axis=-1)
    assert moved.max() < 1e-3  # [m]
    assert summary(result)["vertical ground force, last quarter second [N]"] == pytest.approx(
        summary(result)["weight [N]"], rel=1e-3
    )


def test_all_dominoes_fall():
    result = run_scene(gallery_scene("dominoes"))
    # a domino that has fallen lies lower than half its standing height, or leans on the next
    assert (result["body_position"].values[-1, :, 2] < 0.085).all()


def test_top_precesses_at_the_steady_rate_without_nodding():
    scene = with_changes(spinning_top(), duration=1.0)
    result = run_scene(scene)
    x, y, z = result["center_of_mass"].values.T
    rate = np.polyfit(result["time"].values, np.unwrap(np.arctan2(y, x)), 1)[0]
    assert rate == pytest.approx(scene.twists["top"][0] / -y[0], rel=0.01)
    assert np.ptp(z) < 0.02 * z[0]


def test_crank_turns_the_loop_and_the_loop_stays_closed():
    scene = four_bar()
    result = run_scene(scene)
    crank = result["coordinate_value"].sel(coordinate="crank").values
    turned = abs(crank[-1] - crank[0])
    assert turned == pytest.approx(2 * np.pi * scene.duration, rel=0.03)
    assert float(result["joint_gap"].max()) < 1e-3  # [m]
    assert np.ptp(result["coordinate_value"].sel(coordinate="rocker").values) < np.pi  # it rocks, it does not turn


def test_dropped_human_ends_at_rest_carrying_its_weight():
    scene = with_changes(gallery_scene("human_drop"), duration=4.0)
    result = run_scene(scene)
    weight = scene.model.mass * GRAVITY
    # the push of the ground in the whole run is what weight and momentum account for
    pushed = float(result["ground_reaction_force"].sel(axis="z").values[1:].sum()) * scene.step
    gained = np.diff(result["linear_momentum"].sel(axis="z").values[[0, -1]])[0]
    assert pushed == pytest.approx(weight * float(result["time"][-1]) + gained, rel=1e-9)
    figures = summary(result)
    assert figures["vertical ground force, last quarter second [N]"] == pytest.approx(figures["weight [N]"], rel=0.02)
    assert float(result["kinetic_energy"][-1]) < 1.0  # [J], of 216 at the landing
