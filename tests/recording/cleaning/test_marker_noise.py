"""Noise told from a recording: that which was put in, whatever moves beneath it."""

import numpy as np
import pytest

from borelli.recording.cleaning.gaps import fill_gaps
from borelli.recording.cleaning.marker_noise import marker_noise
from borelli.recording.recording import Recording, make_dataset

RATE = 100.0
SIZES = np.array([0.2e-3, 1e-3, 3e-3])


def moving(frames=1000, sizes=SIZES):
    """Three markers that swing by 0.2 m at 1 Hz and by 5 mm at 6 Hz, with noise."""
    time = np.arange(frames) / RATE
    swing = 0.2 * np.sin(2 * np.pi * time) + 5e-3 * np.sin(12 * np.pi * time)
    points = np.ones((frames, 3, 3)) + swing[:, None, None]
    points += sizes[:, None] * np.random.default_rng(1).normal(size=points.shape)
    return Recording(make_dataset({"marker_position": points}, {"marker": ["a", "b", "c"]}, rate=RATE))


def test_noise_is_that_which_was_put_in():
    found = marker_noise(moving())
    # 3000 differences, correlated over some 4 frames, tell a median size to 3 %
    assert list(found.values()) == pytest.approx(SIZES, rel=0.1)


def test_movement_alone_is_no_noise():
    found = marker_noise(moving(sizes=np.zeros(3)))
    # 0.0197 / sqrt(70) of the 5 mm at 6 Hz, and next to nothing of the rest: 12 um, of which the median sees 0.7 / 0.67
    assert max(found.values()) < 15e-6


def test_filled_gaps_do_not_make_markers_quieter():
    recording = moving()
    points = recording.data["marker_position"].values.copy()
    for start in range(20, 960, 40):
        points[start : start + 14, 1] = np.nan  # a third of it
    gappy = recording.with_data(recording.data.assign(marker_position=recording.data["marker_position"].copy(data=points)))
    assert marker_noise(fill_gaps(gappy))["b"] == pytest.approx(1e-3, rel=0.15)
    assert marker_noise(gappy)["b"] == pytest.approx(1e-3, rel=0.15)


def test_a_marker_hardly_seen_is_taken_to_shake_as_the_others():
    recording = moving()
    points = recording.data["marker_position"].values.copy()
    points[6:, 2] = np.nan
    found = marker_noise(
        recording.with_data(recording.data.assign(marker_position=recording.data["marker_position"].copy(data=points)))
    )
    assert found["c"] == pytest.approx(np.median([found["a"], found["b"]]))
