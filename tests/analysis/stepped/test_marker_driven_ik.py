"""Marker-driven inverse kinematics: accuracy, and the effect of gaps, speed, joint limits and the ground."""

import numpy as np
import pytest

from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import make_motion
from borelli.analysis.stepped.marker_driven_ik import find_lag
from borelli.errors import SettingsError

from ..job_motion import job, job_model, job_recording, job_truth

START_FRAMES = 6  # until the start has decayed


@pytest.fixture(scope="module")
def driven():
    return inverse_kinematics(job_model(), job_recording(), method="marker_driven")


def test_the_body_tracks_its_markers(driven):
    assert driven.marker_rms < 0.3e-3  # [m]; bench: 41 markers at one step a frame, 0.13 mm
    errors = (driven.coordinates - job_truth()[0])[START_FRAMES:, 6:]
    assert np.degrees(np.sqrt(np.mean(errors**2))) < 0.6
    assert driven.settings["method"] == "marker_driven"


def test_more_steps_per_frame_are_more_accurate(driven):
    """Markers pull equally hard in each step, so they pull more often: the lag falls."""
    nearer = [inverse_kinematics(job_model(), job_recording(), method="marker_driven", substeps=n) for n in (2, 4)]
    marker_errors = [motion.marker_rms for motion in (driven, *nearer)]
    assert marker_errors[0] > marker_errors[1] > marker_errors[2]
    errors = [np.sqrt(np.mean((m.coordinates - job_truth()[0])[START_FRAMES:, 6:] ** 2)) for m in (driven, *nearer)]
    assert errors[0] > errors[1] > errors[2]


def test_lag_is_found_and_that_of_moving_marker_springs_is_small(driven):
    q = job_truth()[0]
    late = make_motion(job_model(), np.concatenate([np.repeat(q[:1], 2, axis=0), q[:-2]]), np.arange(len(q)) / 120, 120)
    assert find_lag(late, job()) == pytest.approx(2 / 120, abs=1e-3)
    assert abs(find_lag(driven, job())) < 1e-3  # springs move with their markers: fixed ones lag by frames


def test_a_missing_or_too_fast_marker_does_not_pull():
    recording = job_recording()
    data = recording.data.copy(deep=True)
    data["marker_position"].values[40:60, 5] = np.nan
    data["marker_position"].values[80, 9] += 1.0  # one frame 1 m away: 120 m/s
    driven = inverse_kinematics(job_model(), recording.with_data(data), method="marker_driven")
    errors = (driven.coordinates - job_truth()[0])[START_FRAMES:, 6:]
    assert np.degrees(np.abs(errors).max()) < 3.0


def test_frames_without_markers_at_the_start_have_no_pose():
    recording = job_recording()
    data = recording.data.copy(deep=True)
    data["marker_position"].values[:10] = np.nan
    driven = inverse_kinematics(job_model(), recording.with_data(data), method="marker_driven")
    assert np.isnan(driven.coordinates[:10]).all()
    assert np.isfinite(driven.coordinates[10:]).all()


def test_the_ground_supports_the_body_if_requested():
    lifted = inverse_kinematics(job_model(), job_recording(), method="marker_driven", ground=0.02)
    without = inverse_kinematics(job_model(), job_recording(), method="marker_driven")
    rise = (_height(lifted, "left_foot") - _height(without, "left_foot"))[20:]
    assert rise.mean() > 0.01  # [m] of 0.02: the markers pull down


def test_feet_without_markers_stay_on_the_ground():
    recording = job_recording()
    data = recording.data.copy(deep=True)
    lost = [m.name for m in job_model().markers if m.body.endswith(("_shin", "_foot", "_toes"))]
    data["marker_position"].values[30:, [recording.markers.index(name) for name in lost]] = np.nan
    blind = recording.with_data(data)
    true = _height(job(), "left_foot")
    sunk, supported = (
        _height(inverse_kinematics(job_model(), blind, method="marker_driven", ground=ground), "left_foot") - true
        for ground in (False, True)
    )
    assert sunk.min() < -0.01  # [m]: 19 mm, its own weight
    assert np.abs(supported).max() < 0.001


def test_invalid_options_raise():
    with pytest.raises(SettingsError, match="substeps"):
        inverse_kinematics(job_model(), job_recording(), method="marker_driven", substeps=0)
    with pytest.raises(SettingsError, match=r"[Uu]nknown option of method \"marker_driven\" 'steps'"):
        inverse_kinematics(job_model(), job_recording(), method="marker_driven", steps=2)
    with pytest.raises(SettingsError, match="Unknown option of method \"framewise\" 'ground'"):
        inverse_kinematics(job_model(), job_recording(), ground=True)


def _height(motion, body):
    bodies = [str(b) for b in motion.data["body"].values]
    return motion.data["body_position"].values[:, bodies.index(body), 2]
