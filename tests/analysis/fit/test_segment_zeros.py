"""Zero of the ankle from feet that are flat, on heights whose flat frames are known."""

import numpy as np
import pytest

from borelli.analysis.fit.segment_zeros import (
    DIRECTION_SD,
    HEIGHT_SD,
    SIDE_SD,
    FootPrior,
    find_feet,
    find_held_frames,
)
from borelli.people.human import human
from borelli.recording.recording import Recording, make_dataset

RATE = 100.0
STRIDE, FLAT = 1.0, 0.3
"""[s] of a stride, and of it with a flat foot."""
SHOE = 0.02
"""[m] by which the heel of the subject is higher than the marker set says."""


def strides(rate, lift, lag=0.0, seconds=4.0):
    """Return heights (frames,) [m] of a marker that rests for `FLAT` and rises by `lift`, and whether it rests."""
    phase = np.mod(np.arange(round(seconds * rate)) / rate - lag, STRIDE)
    swing = np.maximum(phase - FLAT, 0.0) / (STRIDE - FLAT)
    return 0.5 * lift * (1.0 - np.cos(2.0 * np.pi * swing)), swing == 0.0


def person():
    return human(70.0, 1.75, markers="cmu41")


def feet_of(**heights):
    """Return a recording of the markers of both feet, at given heights (frames,) [m] above those of the marker set."""
    model = person()
    markers = [m for m in model.markers if m.body.startswith("foot")]
    frames = len(next(iter(heights.values())))
    at = np.tile([m.position for m in markers], (frames, 1, 1))
    for i, marker in enumerate(markers):
        at[:, i, 2] += heights.get(marker.name, 0.0)
    names = [m.name for m in markers]
    return Recording(make_dataset({"marker_position": at}, {"marker": names}, rate=RATE), "feet")


def heel_above_toe(foot):
    """Return how much higher the heel of a foot is than in the marker set, relative to the other marker [m]."""
    model = person()
    names = [model.markers[i].name for i in foot.markers]
    more = {name: z - model.markers[i].position[2] for name, z, i in zip(names, foot.height, foot.markers, strict=True)}
    heel, other = sorted(more, key=lambda name: "HEE" not in name)
    return more[heel] - more[other]


@pytest.mark.parametrize("rate", [60.0, 120.0, 1000.0])
def test_held_frames_are_those_of_the_flat_foot(rate):
    """With noise of 0.3 mm, and whatever the markers do along the ground; the ends of rest are hardly in motion."""
    heel, flat = strides(rate, 0.25)
    toe, _ = strides(rate, 0.08, lag=0.1)
    resting = flat & strides(rate, 0.08, lag=0.1)[1]
    noise = 3e-4 * np.random.default_rng(1).standard_normal((len(heel), 2))
    found = find_held_frames(np.stack([heel, toe], axis=1) + noise, rate)
    near = max(1, round(0.06 * rate))
    late = np.convolve(resting, np.ones(2 * near + 1), "same") > 0.0
    assert found[resting].mean() > 0.95
    assert not found[~late].any()


def test_frames_with_gaps_and_recordings_without_rest_have_no_flat_foot():
    heel, flat = strides(RATE, 0.25)
    toe, _ = strides(RATE, 0.08)
    heights = np.stack([heel, toe], axis=1)
    heights[50:, 0] = np.nan
    found = find_held_frames(heights, RATE)
    assert found[5:25].all() and not found[50:].any() and flat[120]
    assert not find_held_frames(np.stack([heel, toe], axis=1)[: round(0.04 * RATE)], RATE).any()  # shorter than a rest


def test_flat_feet_of_a_walk_give_the_heights():
    lift, _ = strides(RATE, 0.25)
    feet = find_feet(person(), [feet_of(RHEE=SHOE + lift, RMT5=0.3 * lift, LHEE=SHOE + lift, LMT5=0.3 * lift)], None)
    for foot in feet:
        assert heel_above_toe(foot) == pytest.approx(SHOE, abs=1e-3) and (foot.height_sd == HEIGHT_SD).all()


def test_a_foot_in_the_air_or_on_its_toes_is_not_flat():
    """The right foot stands on its toes for most of the time; the left foot is held in the air."""
    lift, flat = strides(RATE, 0.25)
    toes = np.where(np.arange(len(lift)) < 100, SHOE + lift, SHOE + 0.06)
    right, left = find_feet(
        person(), [feet_of(RHEE=toes, RMT5=0.3 * lift, LHEE=0 * lift + 0.3, LMT5=0 * lift + 0.2)], None
    )
    assert flat.any() and heel_above_toe(right) == pytest.approx(SHOE, abs=2e-3)
    assert (left.height_sd > 2.0 * HEIGHT_SD).all()
    assert 0.0 < heel_above_toe(left) < SHOE  # that of its landmarks


def test_a_static_trial_has_precedence_and_wrong_labels_do_not_count():
    lift, _ = strides(RATE, 0.25)
    walk = feet_of(RHEE=SHOE + lift, RMT5=0.3 * lift, LHEE=lift, LMT5=0.3 * lift)
    still = feet_of(RHEE=np.full(3, 2.0 * SHOE), LHEE=np.full(3, 0.15))
    right, left = find_feet(person(), [walk], still)
    assert heel_above_toe(right) == pytest.approx(2.0 * SHOE)
    assert (left.height_sd > 2.0 * HEIGHT_SD).all()


def test_heights_of_unknown_mean():
    """The energy of the precision is the least over all means, as a slow search finds."""
    rng = np.random.default_rng(4)
    foot = FootPrior((0, 1, 2), np.zeros(3), np.array([0.01, 0.02, 0.003]), np.zeros(3))
    for _ in range(5):
        z = 0.02 * rng.standard_normal(3)
        means = np.linspace(-0.1, 0.1, 20001)
        slow = (0.5 * ((z[:, None] - means) / foot.height_sd[:, None]) ** 2).sum(axis=0).min()
        assert 0.5 * z @ foot.height_precision() @ z == pytest.approx(slow, rel=1e-3)


def test_a_foot_that_points_outward_is_no_evidence_of_its_roll():
    """By Monte Carlo: positions of markers whose foot has a random direction have the covariance of the prior."""
    rng = np.random.default_rng(6)
    forward = np.array([-0.06, 0.07, 0.12])
    foot = FootPrior((0, 1, 2), np.zeros(3), np.ones(3), forward)
    y = SIDE_SD * rng.standard_normal((200_000, 3)) + DIRECTION_SD * rng.standard_normal((200_000, 1)) * forward
    assert np.linalg.inv(foot.side_precision()) == pytest.approx(np.cov(y.T), rel=0.02, abs=2e-6)
