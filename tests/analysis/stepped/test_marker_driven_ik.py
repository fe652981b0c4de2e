"""Dragging a body by its markers: how near it comes, what gaps, speed, stops and the ground do."""

import numpy as np
import pytest

from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.motion import make_motion
from borelli.analysis.stepped.marker_driven_ik import find_lag
from borelli.errors import SettingsError

from ..job_motion import job, job_model, job_recording, job_truth

SETTLED = 6  # frames


@pytest.fixture(scope="module")
def dragged():
    return inverse_kinematics(job_model(), job_recording(), method="marker_driven")


def test_dragged_body_follows_its_markers(dragged):
    assert dragged.marker_rms < 0.3e-3  # [m]; bench: 41 markers at one step a frame, 0.13 mm
    errors = (dragged.coordinates - job_truth()[0])[SETTLED:, 6:]
    assert np.degrees(np.sqrt(np.mean(errors**2))) < 0.6
    assert dragged.settings["method"] == "marker_driven"


def test_more_steps_a_frame_come_nearer(dragged):
    """Markers pull as stiffly in each step, so they pull more often: what the body lags behind them gets less."""
    nearer = [inverse_kinematics(job_model(), job_recording(), method="marker_driven", substeps=n) for n in (2, 4)]
    misses = [motion.marker_rms for motion in (dragged, *nearer)]
    assert misses[0] > misses[1] > misses[2]
    errors = [np.sqrt(np.mean((m.coordinates - job_truth()[0])[SETTLED:, 6:] ** 2)) for m in (dragged, *nearer)]
    assert errors[0] > errors[1] > errors[2]


def test_lag_is_found_and_that_of_moving_anchors_is_small(dragged):
    q = job_truth()[0]
    late = make_motion(job_model(), np.concatenate([np.repeat(q[:1], 2, axis=0), q[:-2]]), np.arange(len(q)) / 120, 120)
    assert find_lag(late, job()) == pytest.approx(2 / 120, abs=1e-3)
    assert abs(find_lag(dragged, job())) < 1e-3  # anchors move with their markers: the paper's springs lag by frames


def test_a_marker_not_seen_or_too_fast_does_not_pull():
    recording = job_recording()
    data = recording.data.copy(deep=True)
    data["marker_position"].values[40:60, 5] = np.nan
    data["marker_position"].values[80, 9] += 1.0  # one frame 1 m away: 120 m/s
    dragged = inverse_kinematics(job_model(), recording.with_data(data), method="marker_driven")
    errors = (dragged.coordinates - job_truth()[0])[SETTLED:, 6:]
    assert np.degrees(np.abs(errors).max()) < 3.0


def test_frames_that_show_nothing_at_the_start_have_no_pose():
    recording = job_recording()
    data = recording.data.copy(deep=True)
    data["marker_position"].values[:10] = np.nan
    dragged = inverse_kinematics(job_model(), recording.with_data(data), method="marker_driven")
    assert np.isnan(dragged.coordinates[:10]).all()
    assert np.isfinite(dragged.coordinates[10:]).all()


def test_the_ground_carries_if_asked_to():
    lifted = inverse_kinematics(job_model(), job_recording(), method="marker_driven", ground=0.02)
    without = inverse_kinematics(job_model(), job_recording(), method="marker_driven")
    rise = (_height(lifted, "left_foot") - _height(without, "left_foot"))[20:]
    assert rise.mean() > 0.01  # [m] of 0.02: the markers pull down


def test_feet_whose_markers_are_lost_stay_on_the_ground():
    recording = job_recording()
    data = recording.data.copy(deep=True)
    lost = [m.name for m in job_model().markers if m.body.endswith(("_shin", "_foot", "_toes"))]
    data["marker_position"].values[30:, [recording.markers.index(name) for name in lost]] = np.nan
    blind = recording.with_data(data)
    true = _height(job(), "left_foot")
    sunk, held = (
        _height(inverse_kinematics(job_model(), blind, method="marker_driven", ground=ground), "left_foot") - true
        for ground in (False, True)
    )
    assert sunk.min() < -0.01  # [m]: 19 mm, its own weight
    assert np.abs(held).max() < 0.001


def test_settings_of_the_drag_are_its_own():
    with pytest.raises(SettingsError, match="substeps"):
        inverse_kinematics(job_model(), job_recording(), method="marker_driven", substeps=0)
    with pytest.raises(SettingsError, match="unknown setting of the dynamic method 'steps'"):
        inverse_kinematics(job_model(), job_recording(), method="marker_driven", steps=2)
    with pytest.raises(SettingsError, match="converged method has no setting 'ground'"):
        inverse_kinematics(job_model(), job_recording(), ground=True)


def _height(motion, body):
    bodies = [str(b) for b in motion.data["body"].values]
    return motion.data["body_position"].values[:, bodies.index(body), 2]
