"""Example motions of the full skeleton: within joint limits, smooth, and recognizable."""

import numpy as np
import pytest

from borelli.control.example_motions import (
    CURL_TIME,
    FINGERS,
    MOTIONS,
    PUSH_UP_TIME,
    STEP_TIME,
    count_fingers,
    curl,
    march,
    push_up,
    push_up_start,
    wave,
)
from borelli.errors import SettingsError
from borelli.model import Frame
from borelli.model.kinematics import center_of_mass, poses
from borelli.model.mechanisms import with_mace
from borelli.people.full_skeleton import full_skeleton
from borelli.people.human import human

MODEL = full_skeleton(mass=68.0, height=1.7, sex="female")
INDEX = {body.name: i for i, body in enumerate(MODEL.bodies)}
NAMES = [c.name for c in MODEL.coordinates]
DURATION = {"wave": 5.0, "count_fingers": 7.0, "march": STEP_TIME, "curl": CURL_TIME, "push_up": PUSH_UP_TIME}
STEP = 1e-3
MAX_ACCELERATION = 60.0
"""Largest angular acceleration of a hand in waving [rad/s^2]: 1 rad in 0.4 s with minimum jerk needs 36."""


def rows(targets, times, **others) -> np.ndarray:
    """Return coordinates (times, all) with those of the targets, some others, and the rest at default."""
    q = np.repeat([[others.get(c.name, c.default) for c in MODEL.coordinates]], len(times), axis=0)
    q[:, [NAMES.index(name) for name in targets.coordinates]] = targets.at(times)
    return q


def tips(q, *bodies) -> list[np.ndarray]:
    position, rotation = poses(MODEL, q)
    offsets = {name: 2.0 * np.array(MODEL.body(name).center_of_mass) for name in bodies}
    return [position[:, INDEX[name]] + rotation[:, INDEX[name]] @ offsets[name] for name in bodies]


@pytest.mark.parametrize("name", MOTIONS)
def test_motions_are_smooth_and_within_joint_limits(name: str) -> None:
    targets = MOTIONS[name](MODEL)
    assert len(targets.coordinates) == 118 and not any(c.startswith("root") for c in targets.coordinates)
    times = np.arange(0.0, DURATION[name] + STEP, STEP)
    values = targets.at(times)  # raises beyond a joint limit
    acceleration = np.diff(values, 2, axis=0) / STEP**2
    assert np.abs(acceleration).max() < MAX_ACCELERATION
    assert np.abs(np.diff(acceleration, axis=0)).max() < 0.05 * MAX_ACCELERATION  # no jumps: a thousandth of a second
    assert np.abs(values[0] - values[-1]).max() < 1e-2  # as it began: key-framed ones rest, others continue
    assert np.count_nonzero(np.ptp(values, axis=0) > 0.3) >= 4  # and something moves


def test_hand_waves_above_the_shoulder() -> None:
    times = np.linspace(1.0, 3.4, 241)
    (hand,) = tips(rows(wave(MODEL), times), "middle_distal_r")
    shoulder = MODEL.body("upper_arm_r").frame.position
    assert (hand[:, 2] > shoulder[2] + 0.2).all()
    sideways = np.diff(np.sign(np.diff(hand[:, 1])))
    assert np.count_nonzero(sideways) >= 5  # there and back three times


def test_fingers_count_to_five() -> None:
    """At k + 1 seconds k fingertips are far from the wrist, the others in the palm."""
    q = rows(count_fingers(MODEL), np.arange(1.0, 7.0))
    wrist = poses(MODEL, q)[0][:, INDEX["hand_r"]]
    straight = poses(MODEL, rows(count_fingers(MODEL), [0.0]))[0][0]
    for finger, tip in zip(FINGERS, tips(q, *(f"{finger}_distal_r" for finger in FINGERS)), strict=True):
        (extended,) = tips(rows(count_fingers(MODEL), [0.0]), f"{finger}_distal_r")
        full = np.linalg.norm(extended[0] - straight[INDEX["hand_r"]])
        shown = np.linalg.norm(tip - wrist, axis=1) > 0.97 * full
        assert shown.tolist() == [FINGERS.index(finger) < count for count in range(6)], finger


def test_marching_lifts_one_foot_after_the_other() -> None:
    times = np.linspace(0.0, STEP_TIME, 121)
    right, left = tips(rows(march(MODEL), times), "foot_r", "foot_l")
    assert np.ptp(right[:, 2]) > 0.15
    assert right[:, 2].argmax() == 60 and left[:, 2].argmax() in (0, 120)
    np.testing.assert_allclose(march(MODEL).at(times + 3 * STEP_TIME), march(MODEL).at(times), atol=1e-9)


def test_curling_brings_head_and_knees_together() -> None:
    head, knee = tips(rows(curl(MODEL), [0.0, 0.5 * CURL_TIME]), "head", "shank_r")
    apart = np.linalg.norm(head - knee, axis=1)
    assert apart[1] < 0.45 * apart[0]


def test_push_up_begins_on_hands_and_toes() -> None:
    start = push_up_start(MODEL)
    q = rows(push_up(MODEL), [0.0], **start)
    position = poses(MODEL, q)[0][0]
    limit = 0.06  # [m]: no joint of hands and toes is higher than a palm is long
    assert 0.0 < position[INDEX["toe_1_r"], 2] < limit and 0.0 < position[INDEX["middle_middle_r"], 2] < limit
    # the weight is between hands and toes
    ahead = center_of_mass(MODEL, q)[0, 0]
    assert position[INDEX["toe_1_r"], 0] < ahead < position[INDEX["hand_r"], 0]
    # elbows bend and bring the chest down: shoulders come nearer to the hands
    low = poses(MODEL, rows(push_up(MODEL), [0.5 * PUSH_UP_TIME], **start))[0][0]
    apart = [np.linalg.norm(p[INDEX["hand_r"]] - p[INDEX["upper_arm_r"]]) for p in (position, low)]
    assert apart[1] < 0.8 * apart[0]


def test_objects_attached_to_the_body_stay_free() -> None:
    armed = with_mace(MODEL, "hand_r", at=Frame((0.0, 0.0, -0.08)))
    assert wave(armed).coordinates == wave(MODEL).coordinates


def test_other_models_raise() -> None:
    with pytest.raises(SettingsError, match=r"This motion needs a full skeleton: [Uu]nknown coordinate"):
        wave(human())
