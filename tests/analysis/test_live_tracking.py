"""Live tracking: the same poses as from the recording, dropped frames, and latency."""

import itertools

import numpy as np
import pytest

from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.live_tracking import live_inverse_kinematics
from borelli.bench.metrics import torque_error
from borelli.errors import SettingsError
from borelli.recording.live import FileSource

from .job_motion import job_model, job_recording, job_truth


def test_live_poses_are_those_of_the_recording():
    found = list(live_inverse_kinematics(job_model(), FileSource(job_recording(), speed=np.inf)))
    whole = inverse_kinematics(job_model(), job_recording())
    assert np.array([pose.coordinates for pose in found]) == pytest.approx(whole.coordinates, abs=1e-6)
    assert all(0.0 < pose.latency < 60.0 for pose in found)
    assert np.median([pose.latency for pose in found]) < 1 / 120  # keeps pace


def test_live_torques_are_delayed_by_the_window():
    found = list(
        live_inverse_kinematics(job_model(), FileSource(job_recording(), speed=np.inf), torques=True, window=4)
    )
    delayed = [pose for pose in found if pose.torque is not None]
    assert len(delayed) == len(found) - 8
    assert delayed[0].time - delayed[0].torque_time == pytest.approx(4 / 120)
    q, truth = job_truth()
    from borelli.analysis.stepped.stepper import StepOptions, compile_stepped, drive_axis_forces

    compiled = compile_stepped(job_model(), 1 / 120, False, StepOptions())[0]
    frames = [round(pose.torque_time * 120) for pose in delayed]
    torque = drive_axis_forces(compiled, q[frames], np.array([pose.torque for pose in delayed]))[:, 6:]
    assert torque_error(torque, truth[frames]) < 10.0  # [%]: no ground, springs to rest, a cubic through nine frames


def test_a_frame_without_markers_keeps_the_last_pose():
    recording = job_recording()
    data = recording.data.copy(deep=True)
    data["marker_position"].values[50:53] = np.nan
    found = list(live_inverse_kinematics(job_model(), FileSource(recording.with_data(data), speed=np.inf)))
    assert np.array_equal(found[51].coordinates, found[49].coordinates)
    assert np.isnan(found[51].marker_rms)
    assert found[60].coordinates == pytest.approx(inverse_kinematics(job_model(), recording).coordinates[60], abs=1e-6)


def test_a_slow_receiver_drops_frames():
    clock = itertools.count()
    quick = FileSource(job_recording(), speed=1e6, sleep=lambda seconds: next(clock))
    assert sum(1 for _ in quick.frames()) + quick.dropped == job_recording().frames
    with pytest.raises(SettingsError, match="speed"):
        FileSource(job_recording(), speed=0.0)
