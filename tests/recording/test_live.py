"""A recording played at its own pace."""

import time

import numpy as np
import pytest

from borelli.recording.live import FileSource
from borelli.recording.recording import Recording, make_dataset


@pytest.fixture
def recording():
    places = np.arange(20.0)[:, None, None] * np.ones((1, 2, 3))
    return Recording(make_dataset({"marker_position": places}, {"marker": ["a", "b"]}, rate=100.0))


def test_frames_come_when_they_are_due(recording):
    begun = time.perf_counter()
    source = FileSource(recording)
    frames = list(source.frames())
    assert time.perf_counter() - begun >= 0.19  # 20 frames at 100 Hz
    assert len(frames) + source.left_out == 20
    assert all(frame.arrived - begun >= frame.time - 1e-3 for frame in frames)
    assert source.markers == ("a", "b") and source.rate == 100.0


def test_frames_due_while_the_receiver_is_busy_are_left_out(recording):
    source = FileSource(recording)
    taken = []
    for frame in source.frames():
        taken.append(frame.time)
        if len(taken) == 3:
            time.sleep(0.06)
    assert source.left_out >= 3
    assert taken == sorted(taken)


def test_as_fast_as_possible_leaves_none_out(recording):
    source = FileSource(recording, speed=np.inf)
    assert [frame.markers[0, 0] for frame in source.frames()] == list(range(20))
    assert source.left_out == 0
