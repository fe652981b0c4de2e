"""Characters: they follow, give way as mechanics says, come back, and say what led them."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.control.animate import DEFAULT_TRACKING, TrackingSettings, animate
from borelli.control.perturbations import CarriedLoad, Obstacle, Push, WeakenedJoint
from borelli.control.response import PD, error_after
from borelli.control.tracking_error import returned_after, root_coordinates
from borelli.errors import SettingsError
from borelli.model.kinematics import generalized_forces, point_positions
from borelli.model.model import Frame, Shape
from borelli.model.people.human import human
from borelli.numerics.quaternions import rotate
from borelli.synthetic.walk import walk_coordinates

RATE = 100.0
MODEL = human(mass=70.0, height=1.75)
WEIGHT = 70.0 * 9.81


@cache
def walk(duration=2.0):
    time = np.arange(round(duration * RATE) + 1) / RATE
    return make_motion(MODEL, walk_coordinates(MODEL, time).coordinates, time, RATE)


@cache
def standing(duration=1.5):
    time = np.arange(round(duration * RATE) + 1) / RATE
    return make_motion(MODEL, np.tile([c.default for c in MODEL.coordinates], (len(time), 1)), time, RATE)


def test_undisturbed_it_does_what_the_motion_does():
    found = animate(walk(0.5))
    # the motion's frames are filtered at 6 Hz before they are followed, and followed to rounding
    assert found.data["deviation"].max() < 1e-6
    assert found.metrics["back within 5 mm after [s]"] == 0.0


def accelerations(body, force):
    """Of all coordinates of one who stands, M^-1 J^T F, under a force on a body's centre of mass, joints free."""
    count = len(MODEL.coordinates)
    q, point = np.array([c.default for c in MODEL.coordinates]), MODEL.body(body).center_of_mass
    still = np.zeros((count, count))
    mass = generalized_forces(MODEL, np.tile(q, (count, 1)), still, np.eye(count), gravity=False)
    e = 1e-6 * np.eye(count)
    ahead, behind = (point_positions(MODEL, q + s * e, [body], [point])[:, 0] for s in (1.0, -1.0))
    return np.linalg.solve(mass, (ahead - behind) / 2e-6 @ np.array(force))


def gains():
    """Of each coordinate."""
    root = root_coordinates(MODEL)
    return [PD.from_settling_time(DEFAULT_TRACKING.root if c.name in root else DEFAULT_TRACKING.joints) for c in MODEL.coordinates]


def test_a_push_moves_every_joint_by_its_acceleration_and_each_comes_back_as_its_response_says():
    """E'' + k_v E' + k_p E = a while it is pushed with what gives it the acceleration a, joints free; then 0."""
    data = animate(standing(), [Push("pelvis", (0.5, 0.0, 0.0), 0.2, 0.1)], step=1 / 960).data
    time = data["time"].values
    got = (data["coordinate_value"] - data["coordinate_target"]).values
    expected = np.empty_like(got)
    for i, (a, pd) in enumerate(zip(accelerations("pelvis", (0.5, 0.0, 0.0)), gains(), strict=True)):
        rest = a / pd.stiffness
        error, rate = error_after(pd.stiffness, pd.damping, np.clip(time - 0.2, 0.0, 0.1), -rest, 0.0)
        expected[:, i] = error_after(pd.stiffness, pd.damping, np.maximum(time - 0.3, 0.0), error + rest, rate)[0]
    # of first order in the step: 1.1 % at 1/960 s, 4.3 % at 1/240 s
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=0.012 * np.abs(expected).max())


def test_a_push_gives_way_and_comes_back():
    found = animate(walk(), [Push("pelvis", (0.0, 200.0, 0.0), 0.5, 0.1)])
    back = found.metrics["back within 5 mm after [s]"]
    assert found.metrics["largest deviation [m]"] > 0.01
    # 2 % of an error are left after the root's settling time of 0.6 s
    assert back is not None and back < 0.6
    left = found.data["coordinate_value"].sel(coordinate="root_y") - found.data["coordinate_target"].sel(coordinate="root_y")
    assert left.max() > 10.0 * abs(left.min())


def test_a_load_inside_the_controllers_world_is_held_without_effort():
    assert animate(standing(), [CarriedLoad("hand_r", 5.0)]).data["deviation"].max() < 1e-9


def test_a_load_outside_pulls_every_joint_until_its_stiffness_holds_it():
    """At rest the response gives back in a step what the load's weight takes: E - E(h) = h^2 a."""
    step, mass = 1 / 240, 0.1
    data = animate(standing(), [CarriedLoad("hand_r", mass, outside=True)], step=step).data
    one, none = np.ones(1), np.zeros(1)
    left = np.array([1.0 - float(pd.after(one, none, step)[0]) for pd in gains()])
    expected = step**2 * accelerations("hand_r", (0.0, 0.0, -9.81 * mass)) / left
    got = (data["coordinate_value"] - data["coordinate_target"]).values[-1]
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=0.01 * np.abs(expected).max())


def test_a_hanging_load_starts_straight_below_where_it_is_held():
    time = np.arange(21) / RATE
    table = np.tile([c.default for c in MODEL.coordinates], (21, 1))
    table[:, [c.name for c in MODEL.coordinates].index("shoulder_flexion_r")] = 1.2
    data = animate(make_motion(MODEL, table, time, RATE), [CarriedLoad("hand_r", 2.0, hanging=True)]).data
    hand = MODEL.body("hand_r")
    held = data["body_position"].sel(body="hand_r").values + rotate(
        data["body_orientation"].sel(body="hand_r").values, hand.center_of_mass
    )
    # two radii of a ball of 4000 kg/m^3
    below = 2.0 * (3.0 * 2.0 / (4.0 * np.pi * 4000.0)) ** (1 / 3)
    expected = held - [0.0, 0.0, below]
    np.testing.assert_allclose(data["body_position"].sel(body="load on hand_r").values, expected, atol=1e-9)


def test_a_weak_joint_has_the_share_it_says_and_no_more():
    data, calm = animate(walk(), [WeakenedJoint("knee_flexion_r", 0.3, 0.5)]).data, animate(walk()).data
    force, needed = (np.abs(d["torque"].sel(coordinate="knee_flexion_r").values) for d in (data, calm))
    late = data["time"].values > 0.5 + 1e-9
    np.testing.assert_allclose(force[~late], needed[~late], rtol=0.0, atol=1e-6 * needed.max())
    assert needed[late].max() > 0.3 * needed.max()
    assert force[late].max() <= 0.3 * needed.max() * (1.0 + 1e-9)
    assert data["deviation"].values[late].max() > 1e-3


def test_an_obstacle_is_pressed_against_while_it_is_there():
    """A wall in the way of the right hand of one who stands; it goes, and the hand comes back."""
    hand = MODEL.body("hand_r").frame.position
    wall = Obstacle(Shape("box", (0.05, 0.2, 0.3)), Frame((hand[0] + 0.06, hand[1], hand[2] - 0.1)), 0.0, 0.6)
    found = animate(standing(), [wall])
    touched = np.abs(found.data["ground_reaction_force"].sel(body="hand_r").values).sum(axis=1)
    time, off = found.data["time"].values, found.data["deviation"].values
    assert touched[time < 0.6].max() > 0.0 and not touched[time > 0.61].any()
    assert off.max() > 0.01
    # 0.9 s are one and a half times the root's settling time, in which (1 + w t) exp(-w t), w = 9.72/s, falls to 0.0015
    assert off[-1] < 0.005 * off.max()


def test_ground_and_root_together_carry_the_weight():
    """Momentum: what they push, less the weight, is what the body gains."""
    data = animate(standing(), tracking=TrackingSettings(joints=0.1, force=0.5, torque=0.3, ground=True)).data
    step = float(data.attrs["step_s"])
    pushed = data["ground_reaction_force"].values[1:].sum(axis=(0, 1))[2]
    pushed += data["torque"].sel(coordinate="root_z").values[1:].sum()
    gained = np.diff(data["linear_momentum"].values[[0, -1], 2])[0]
    assert pushed * step == pytest.approx(WEIGHT * float(data["time"][-1]) + gained, rel=1e-6)
    assert data["ground_reaction_force"].values.any()


def test_the_roots_force_keeps_to_its_limits_and_is_told():
    found = animate(walk(), [Push("upper_torso", (800.0, 0.0, 0.0), 0.5, 0.1)], tracking=replace(DEFAULT_TRACKING, force=1.5))
    force = np.abs(found.data["torque"].sel(coordinate=["root_x", "root_y", "root_z"]).values)
    assert force.max() <= 1.5 * WEIGHT * (1.0 + 1e-9)
    told = found.metrics["root's force, largest [N]"]
    assert told == pytest.approx(float(np.linalg.norm(force, axis=1).max()), rel=1e-9)
    assert json.loads(found.data.attrs["leading"])["force"] == 1.5


def test_stops_that_the_motion_passes_are_moved_and_told():
    time = np.arange(101) / RATE
    table = np.tile([c.default for c in MODEL.coordinates], (101, 1))
    knee = [c.name for c in MODEL.coordinates].index("knee_flexion_r")
    table[:, knee] = -0.5
    found = animate(make_motion(MODEL, table, time, RATE))
    assert any("passes the stops of knee_flexion_r" in note.text for note in found.notes)
    assert found.data["deviation"].max() < 1e-6


def test_times_of_return_are_those_after_which_nothing_strays():
    time, off = np.arange(6.0), np.array([0.0, 0.1, 0.001, 0.1, 0.001, 0.0])
    assert returned_after(time, off, 1.0, 0.01) == 3.0
    assert returned_after(time, off, 4.5, 0.01) == 0.0
    assert returned_after(time, off + np.nan, 1.0, 0.01) is None
    assert returned_after(time, off[::-1] + 0.05, 1.0, 0.01) is None


def test_only_what_shifts_on_the_ground_is_led():
    assert root_coordinates(MODEL) == ("root_x", "root_y", "root_z", "root_roll", "root_pitch", "root_yaw")
    from borelli.scenes.gallery import gallery_scene

    assert root_coordinates(gallery_scene("four_bar").model) == ()


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"leading": TrackingSettings(joints=0.0)}, "settling time is 0.0 s; it must be positive"),
        ({"step": 5.0}, "the motion is shorter than a step of 5 s"),
        ({"perturbations": [Push("pelvs", (1.0, 0.0, 0.0))]}, "push: unknown body 'pelvs'"),
    ],
)
def test_what_cannot_be_is_refused(change, match):
    with pytest.raises(SettingsError, match=match):
        animate(walk(), **change)


def test_negative_limits_are_refused():
    with pytest.raises(SettingsError, match="limit of the root's force is -1; it must be 0 or larger"):
        TrackingSettings(force=-1.0)


def shoved(seed, back_within):
    """Figures of a walk with a random push on a random body, once it ends with `back_within` seconds to return in."""
    random = np.random.default_rng(seed)
    body = MODEL.bodies[random.integers(len(MODEL.bodies))].name
    way = random.normal(size=3)
    force = random.uniform(20.0, 300.0) * way / np.linalg.norm(way)
    start, duration = random.uniform(0.1, 0.4), random.uniform(0.02, 0.1)
    push = Push(body, tuple(force.tolist()), float(start), float(duration))
    found = animate(walk(0.5 + back_within), [push], record_every=4)
    for name in ("value", "speed", "position", "control_force", "deviation"):
        assert np.isfinite(found.data[name].values).all(), f"seed {seed}: {push}: {name} is not finite"
    return push, found.metrics


RETURN = 1.0
"""Seconds after a push within which a character is back within 5 mm, whatever was pushed."""


def check_return(seeds):
    times, strayed = [], []
    for seed in seeds:
        push, figures = shoved(seed, RETURN)
        back = figures["back within 5 mm after [s]"]
        assert back is not None and back <= RETURN, f"seed {seed}: {push}: {figures}"
        times.append(back)
        strayed.append(figures["largest deviation [m]"])
    return np.array(times), np.array(strayed)


def test_a_few_random_pushes_are_survived():
    check_return(range(4))


@pytest.mark.slow
def test_a_thousand_random_pushes_are_survived():
    times, strayed = check_return(range(1000))
    print(f"back after {np.median(times):.2f} s (median), {times.max():.2f} s at most")
    print(f"strayed by {1e3 * np.median(strayed):.0f} mm (median), {1e3 * strayed.max():.0f} mm at most")
