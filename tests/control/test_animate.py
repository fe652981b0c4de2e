"""Animated characters: tracking, reaction to perturbations, recovery, and reported root residuals."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.control.animate import DEFAULT_TRACKING, TrackingSettings, animate
from borelli.control.perturbations import CarriedLoad, Obstacle, Push, WeakenedJoint
from borelli.control.response import PD, error_after
from borelli.control.tracking_error import free_root_coordinates, recovery_time
from borelli.errors import SettingsError
from borelli.model.kinematics import generalized_forces, point_positions
from borelli.model.model import Frame, Shape
from borelli.numerics.quaternions import rotate
from borelli.people.human import human
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


def test_without_perturbation_the_motion_is_tracked():
    found = animate(walk(0.5))
    # the motion is filtered at 6 Hz before it is tracked, and tracked to rounding
    assert found.data["body_tracking_error"].max() < 1e-6
    assert found.metrics["recovered within 5 mm after [s]"] == 0.0


def accelerations(body, force):
    """Accelerations of all coordinates while standing, M^-1 J^T F, under a force on a body's center of mass."""
    count = len(MODEL.coordinates)
    q, point = np.array([c.default for c in MODEL.coordinates]), MODEL.body(body).center_of_mass
    still = np.zeros((count, count))
    mass = generalized_forces(MODEL, np.tile(q, (count, 1)), still, np.eye(count), gravity=False)
    e = 1e-6 * np.eye(count)
    ahead, behind = (point_positions(MODEL, q + s * e, [body], [point])[:, 0] for s in (1.0, -1.0))
    return np.linalg.solve(mass, (ahead - behind) / 2e-6 @ np.array(force))


def gains():
    """PD gains of each coordinate."""
    root = free_root_coordinates(MODEL)
    return [
        PD.from_settling_time(
            DEFAULT_TRACKING.root_settling_time if c.name in root else DEFAULT_TRACKING.joint_settling_time
        )
        for c in MODEL.coordinates
    ]


def test_a_push_accelerates_every_joint_and_each_recovers_by_its_response():
    """E'' + k_v E' + k_p E = a during the push, with a the acceleration of free joints; then 0."""
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


def test_a_pushed_character_yields_and_recovers():
    found = animate(walk(), [Push("pelvis", (0.0, 200.0, 0.0), 0.5, 0.1)])
    recovery = found.metrics["recovered within 5 mm after [s]"]
    assert found.metrics["largest tracking error [m]"] > 0.01
    # 2 % of an error are left after the root's settling time of 0.6 s
    assert recovery is not None and recovery < 0.6
    residual = found.data["coordinate_value"].sel(coordinate="root_y") - found.data["coordinate_target"].sel(
        coordinate="root_y"
    )
    assert residual.max() > 10.0 * abs(residual.min())


def test_a_push_after_the_end_of_the_motion_is_reported():
    motion = standing(0.5)
    pushes = [Push("pelvis", (1.0, 0.0, 0.0), start=when, duration=0.1) for when in (0.1, 0.45, 3.0)]
    notes = [note for note in animate(motion, pushes).notes if note.code == "perturbation_time"]
    assert ["cut short" in note.text for note in notes] == [True, False]
    assert "begins at 3 s, after the end of the motion" in notes[1].text and notes[1].kind == "problem"


def test_a_load_known_to_the_controller_causes_no_tracking_error():
    assert animate(standing(), [CarriedLoad("hand_r", 5.0)]).data["body_tracking_error"].max() < 1e-9


def test_a_load_unknown_to_the_controller_displaces_every_joint_until_its_stiffness_supports_it():
    """At rest the response restores in a step what the load's weight takes: E - E(h) = h^2 a."""
    step, mass = 1 / 240, 0.1
    data = animate(standing(), [CarriedLoad("hand_r", mass, outside=True)], step=step).data
    one, none = np.ones(1), np.zeros(1)
    residual = np.array([1.0 - float(pd.after(one, none, step)[0]) for pd in gains()])
    expected = step**2 * accelerations("hand_r", (0.0, 0.0, -9.81 * mass)) / residual
    got = (data["coordinate_value"] - data["coordinate_target"]).values[-1]
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=0.01 * np.abs(expected).max())


def test_a_hanging_load_starts_straight_below_its_attachment():
    time = np.arange(21) / RATE
    table = np.tile([c.default for c in MODEL.coordinates], (21, 1))
    table[:, [c.name for c in MODEL.coordinates].index("shoulder_flexion_r")] = 1.2
    data = animate(make_motion(MODEL, table, time, RATE), [CarriedLoad("hand_r", 2.0, hanging=True)]).data
    hand = MODEL.body("hand_r")
    attachment = data["body_position"].sel(body="hand_r").values + rotate(
        data["body_orientation"].sel(body="hand_r").values, hand.center_of_mass
    )
    # two radii of a ball of 4000 kg/m^3
    below = 2.0 * (3.0 * 2.0 / (4.0 * np.pi * 4000.0)) ** (1 / 3)
    expected = attachment - [0.0, 0.0, below]
    np.testing.assert_allclose(data["body_position"].sel(body="load on hand_r").values, expected, atol=1e-9)


def test_a_weakened_joint_has_the_stated_fraction_of_its_strength():
    data, calm = animate(walk(), [WeakenedJoint("knee_flexion_r", 0.3, 0.5)]).data, animate(walk()).data
    force, needed = (np.abs(d["torque"].sel(coordinate="knee_flexion_r").values) for d in (data, calm))
    late = data["time"].values > 0.5 + 1e-9
    np.testing.assert_allclose(force[~late], needed[~late], rtol=0.0, atol=1e-6 * needed.max())
    assert needed[late].max() > 0.3 * needed.max()
    assert force[late].max() <= 0.3 * needed.max() * (1.0 + 1e-9)
    assert data["body_tracking_error"].values[late].max() > 1e-3


def test_an_obstacle_is_in_contact_while_it_is_present():
    """A wall in front of the right hand of a standing character; it disappears, and the hand recovers."""
    hand = MODEL.body("hand_r").frame.position
    wall = Obstacle(Shape("box", (0.05, 0.2, 0.3)), Frame((hand[0] + 0.06, hand[1], hand[2] - 0.1)), 0.0, 0.6)
    found = animate(standing(), [wall])
    contact = np.abs(found.data["contact_force"].sel(body="hand_r").values).sum(axis=1)
    time, error = found.data["time"].values, found.data["body_tracking_error"].values
    assert contact[time < 0.6].max() > 0.0 and not contact[time > 0.61].any()
    assert error.max() > 0.01
    # 0.9 s are one and a half times the root's settling time, in which (1 + w t) exp(-w t), w = 9.72/s, falls to 0.0015
    assert error[-1] < 0.005 * error.max()


def test_ground_and_root_together_support_the_weight():
    """Momentum: the applied impulse minus that of the weight is the change of momentum."""
    settings = TrackingSettings(joint_settling_time=0.1, max_root_force=0.5, max_root_torque=0.3, ground_contact=True)
    data = animate(standing(), tracking=settings).data
    step = float(data.attrs["step_s"])
    pushed = data["ground_reaction_force"].values[1:].sum(axis=(0, 1))[2]
    pushed += data["torque"].sel(coordinate="root_z").values[1:].sum()
    gained = np.diff(data["linear_momentum"].values[[0, -1], 2])[0]
    assert pushed * step == pytest.approx(WEIGHT * float(data["time"][-1]) + gained, rel=1e-6)
    assert data["ground_reaction_force"].values.any()


def test_the_root_force_stays_within_its_limits_and_is_reported():
    found = animate(
        walk(),
        [Push("upper_torso", (800.0, 0.0, 0.0), 0.5, 0.1)],
        tracking=replace(DEFAULT_TRACKING, max_root_force=1.5),
    )
    force = np.abs(found.data["torque"].sel(coordinate=["root_x", "root_y", "root_z"]).values)
    assert force.max() <= 1.5 * WEIGHT * (1.0 + 1e-9)
    reported = found.metrics["root residual force, largest [N]"]
    assert reported == pytest.approx(float(np.linalg.norm(force, axis=1).max()), rel=1e-9)
    assert json.loads(found.data.attrs["tracking"])["max_root_force"] == 1.5


def test_joint_limits_that_the_motion_exceeds_are_widened_and_reported():
    time = np.arange(101) / RATE
    table = np.tile([c.default for c in MODEL.coordinates], (101, 1))
    knee = [c.name for c in MODEL.coordinates].index("knee_flexion_r")
    table[:, knee] = -0.5
    found = animate(make_motion(MODEL, table, time, RATE))
    assert any(note.code == "joint_limits" and "knee_flexion_r" in note.text for note in found.notes)
    assert found.data["body_tracking_error"].max() < 1e-6


def test_recovery_time_is_the_start_of_the_last_stretch_within_the_bound():
    time, error = np.arange(6.0), np.array([0.0, 0.1, 0.001, 0.1, 0.001, 0.0])
    assert recovery_time(time, error, 1.0, 0.01) == 3.0
    assert recovery_time(time, error, 4.5, 0.01) == 0.0
    assert recovery_time(time, error + np.nan, 1.0, 0.01) is None
    assert recovery_time(time, error[::-1] + 0.05, 1.0, 0.01) is None


def test_only_joints_that_translate_on_the_ground_are_root_joints():
    assert free_root_coordinates(MODEL) == ("root_x", "root_y", "root_z", "root_roll", "root_pitch", "root_yaw")
    from borelli.scenes.gallery import gallery_scene

    assert free_root_coordinates(gallery_scene("four_bar").model) == ()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"tracking": TrackingSettings(joint_settling_time=0.0)}, r"The settling time is 0.0 s\. Pass a positive"),
        ({"step": 5.0}, "The motion is shorter than one step of 5 s"),
        ({"perturbations": [Push("pelvs", (1.0, 0.0, 0.0))]}, "push: [Uu]nknown body 'pelvs'"),
    ],
)
def test_invalid_arguments_raise(change, match):
    with pytest.raises(SettingsError, match=match):
        animate(walk(), **change)


def test_negative_limits_raise():
    with pytest.raises(SettingsError, match="max_root_force: The limit is -1, but it must be 0 or larger"):
        TrackingSettings(max_root_force=-1.0)


def shoved(seed, recovery_time):
    """Metrics of a walk with a random push on a random body, simulated for `recovery_time` [s] after the push."""
    random = np.random.default_rng(seed)
    body = MODEL.bodies[random.integers(len(MODEL.bodies))].name
    direction = random.normal(size=3)
    force = random.uniform(20.0, 300.0) * direction / np.linalg.norm(direction)
    start, duration = random.uniform(0.1, 0.4), random.uniform(0.02, 0.1)
    push = Push(body, tuple(force.tolist()), float(start), float(duration))
    found = animate(walk(0.5 + recovery_time), [push], record_every=4)
    for name in ("coordinate_value", "coordinate_velocity", "body_position", "torque", "body_tracking_error"):
        assert np.isfinite(found.data[name].values).all(), f"seed {seed}: {push}: {name} is not finite"
    return push, found.metrics


MAX_RECOVERY_TIME = 1.0
"""Time [s] after a push within which a character has recovered to 5 mm, for any push."""


def check_recovery(seeds):
    times, errors = [], []
    for seed in seeds:
        push, metrics = shoved(seed, MAX_RECOVERY_TIME)
        recovery = metrics["recovered within 5 mm after [s]"]
        assert recovery is not None and recovery <= MAX_RECOVERY_TIME, f"seed {seed}: {push}: {metrics}"
        times.append(recovery)
        errors.append(metrics["largest tracking error [m]"])
    return np.array(times), np.array(errors)


def test_the_character_recovers_from_a_few_random_pushes():
    check_recovery(range(4))


@pytest.mark.slow
def test_the_character_recovers_from_a_thousand_random_pushes():
    times, errors = check_recovery(range(1000))
    print(f"recovered after {np.median(times):.2f} s (median), {times.max():.2f} s at most")
    print(f"tracking error {1e3 * np.median(errors):.0f} mm (median), {1e3 * errors.max():.0f} mm at most")
