"""Dragging a body by its markers: how near it comes, what gaps, speed, stops and the ground do."""

import numpy as np
import pytest

from borelli.analysis.dynamic import drag, find_lag
from borelli.analysis.motion import make_motion
from borelli.analysis.pose import follow_markers, state_problem
from borelli.errors import SettingsError

from .job_motion import job, job_model, job_recording, job_truth

SETTLED = 6  # frames


@pytest.fixture(scope="module")
def dragged():
    return follow_markers(job_model(), job_recording(), method="dynamic")


def test_dragged_body_follows_its_markers(dragged):
    assert dragged.marker_rms < 0.3e-3  # [m]; bench: 41 markers at one step a frame, 0.13 mm
    errors = (dragged.coordinates - job_truth()[0])[SETTLED:, 6:]
    assert np.degrees(np.sqrt(np.mean(errors**2))) < 0.6
    assert dragged.settings["method"] == "dynamic"


def test_more_steps_a_frame_come_nearer(dragged):
    problem = state_problem(job_model(), job_recording())
    nearer = drag(problem, job_recording(), substeps=4)
    assert nearer.marker_rms < dragged.marker_rms


def test_lag_is_found_and_that_of_moving_anchors_is_small(dragged):
    q = job_truth()[0]
    late = make_motion(job_model(), np.concatenate([np.repeat(q[:1], 2, axis=0), q[:-2]]), np.arange(len(q)) / 120, 120)
    assert find_lag(late, job()) == pytest.approx(2 / 120, abs=1e-3)
    assert abs(find_lag(dragged, job())) < 1e-3  # anchors move with their markers: the paper's springs lag by frames


def test_a_marker_not_seen_or_too_fast_does_not_pull():
    recording = job_recording()
    data = recording.data.copy(deep=True)
    data["markers"].values[40:60, 5] = np.nan
    data["markers"].values[80, 9] += 1.0  # one frame 1 m away: 120 m/s
    dragged = follow_markers(job_model(), recording.with_data(data), method="dynamic")
    errors = (dragged.coordinates - job_truth()[0])[SETTLED:, 6:]
    assert np.degrees(np.abs(errors).max()) < 3.0


def test_frames_that_show_nothing_at_the_start_have_no_pose():
    recording = job_recording()
    data = recording.data.copy(deep=True)
    data["markers"].values[:10] = np.nan
    dragged = follow_markers(job_model(), recording.with_data(data), method="dynamic")
    assert np.isnan(dragged.coordinates[:10]).all()
    assert np.isfinite(dragged.coordinates[10:]).all()


def test_the_ground_carries_if_asked_to():
    problem = state_problem(job_model(), job_recording())
    lifted = drag(problem, job_recording(), ground=0.02)
    without = drag(problem, job_recording())
    foot = [str(b) for b in without.data["body"].values].index("left_foot")
    rise = (lifted.data["body_position"].values - without.data["body_position"].values)[20:, foot, 2]
    assert rise.mean() > 0.01  # [m] of 0.02: the markers pull down


def test_steps_must_be_some():
    problem = state_problem(job_model(), job_recording())
    with pytest.raises(SettingsError, match="substeps"):
        drag(problem, job_recording(), substeps=0)
