"""Gaps and spikes: detected, filled exactly where the motion allows it, left open otherwise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borelli.errors import SettingsError
from borelli.numerics.runs import find_runs
from borelli.recording.cleaning.gaps import (
    Gap,
    fill_gaps,
    find_gaps,
    fit_rigid_motion,
    segment_neighbors,
    zeros_as_missing,
)
from borelli.recording.cleaning.spikes import find_spikes, remove_spikes
from borelli.recording.recording import Recording, make_dataset

from ..walker import real, recording, with_markers

RATE = 100.0


def of_points(points, names=None):
    names = names or [f"M{k}" for k in range(points.shape[1])]
    return Recording(make_dataset({"marker_position": points}, {"marker": names}, rate=RATE))


def tumbling_body(frames=200, count=5, seed=0):
    """Return points of a rigid body that rotates and moves."""
    rng = np.random.default_rng(seed)
    shape = rng.uniform(-0.15, 0.15, (count, 3))
    time = np.arange(frames) / RATE
    angle = 3.0 * time + np.sin(5.0 * time)
    rotation = np.array([[np.cos(angle), -np.sin(angle), 0 * angle], [np.sin(angle), np.cos(angle), 0 * angle],
                     [0 * angle, 0 * angle, 1 + 0 * angle]]).transpose(2, 0, 1)  # fmt: skip
    path = np.stack([2.0 * time, np.sin(3 * time), 1.0 + time**3], axis=1)
    return np.einsum("fab,pb->fpa", rotation, shape) + path[:, None]


@given(st.lists(st.booleans(), max_size=40))
def test_spans_are_the_runs_of_true(values):
    mask = np.array(values, bool)
    rebuilt = np.zeros(len(mask), bool)
    found = find_runs(mask)
    for start, stop in found:
        assert start < stop
        rebuilt[start:stop] = True
    assert np.array_equal(rebuilt, mask)
    assert all(earlier[1] < later[0] for earlier, later in pairwise(found))


def test_gaps_are_found_inside_and_at_the_ends():
    points = np.ones((50, 3, 3))
    points[10:15, 0] = points[:5, 1] = points[:, 2] = np.nan
    found = find_gaps(of_points(points))
    assert found == (Gap("M0", 10, 15, True), Gap("M1", 0, 5, False), Gap("M2", 0, 50, False))


@given(st.lists(st.floats(-1, 1), min_size=12, max_size=12), st.integers(1, 10))
def test_a_short_gap_in_a_cubic_is_filled_exactly(coefficients, length):
    time = np.arange(60) / RATE
    path = np.polynomial.polynomial.polyval(time, np.reshape(coefficients, (4, 3))).T
    points = path[:, None].copy()
    points[25 : 25 + length, 0] = np.nan
    filled = fill_gaps(of_points(points))
    assert np.allclose(filled.data["marker_position"].values[:, 0], path, atol=1e-9)


def test_a_long_gap_in_a_rigid_body_is_filled_exactly_from_its_other_markers():
    truth = tumbling_body()
    points = truth.copy()
    points[60:140, 2] = np.nan
    filled = fill_gaps(of_points(points))
    assert np.allclose(filled.data["marker_position"].values, truth, atol=1e-9)
    (note,) = filled.notes
    assert note.kind == "changed"
    assert "80 frames from" in note.text


@pytest.mark.parametrize("gap", [slice(0, 30), slice(170, 200)])
def test_a_rigid_body_fills_gaps_at_the_ends_too(gap):
    truth = tumbling_body()
    points = truth.copy()
    points[gap, 1] = np.nan
    assert np.allclose(fill_gaps(of_points(points)).data["marker_position"].values, truth, atol=1e-9)


def test_a_gap_beyond_the_limit_or_without_a_segment_stays_open():
    points = tumbling_body(400)
    points[100:250, 0] = np.nan
    assert len(find_gaps(fill_gaps(of_points(points)))) == 1
    assert not find_gaps(fill_gaps(of_points(points), max_rigid_gap=2.0))
    lonely = tumbling_body()[:, :2].copy()
    lonely[60:100, 0] = np.nan
    assert find_gaps(fill_gaps(of_points(lonely))) == (Gap("M0", 60, 100, True),)


def test_a_marker_on_another_segment_is_not_a_neighbor():
    still, moving = tumbling_body(seed=1), tumbling_body(seed=2)[::-1]
    points = np.concatenate([still, moving], axis=1)
    assert set(segment_neighbors(points, 0)) <= set(range(1, still.shape[1]))
    assert len(segment_neighbors(points, 0)) >= 3


def test_a_rigid_fit_is_a_rotation_and_has_no_misfit_on_a_rigid_body():
    body = tumbling_body()
    rotations, translations, misfit = fit_rigid_motion(body[0], body)
    assert np.allclose(np.linalg.det(rotations), 1.0)
    assert misfit.max() < 1e-12
    assert np.allclose(np.einsum("fab,pb->fpa", rotations, body[0]) + translations[:, None], body)


def test_limits_must_make_sense():
    with pytest.raises(SettingsError, match="must not be negative"):
        fill_gaps(recording(), max_spline_gap=-1.0)


def test_markers_at_the_origin_are_missing():
    points = np.ones((20, 2, 3))
    points[5:8, 1] = 0.0
    cleaned = zeros_as_missing(of_points(points))
    assert find_gaps(cleaned) == (Gap("M1", 5, 8, True),)
    assert "3 positions" in cleaned.notes[-1].text
    assert zeros_as_missing(of_points(np.ones((5, 1, 3)))).notes == ()


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_spike_is_found_removed_and_filled(width):
    walk = recording(plates=False)
    truth = walk.data["marker_position"].values
    index = walk.markers.index("LTOE")
    points = truth.copy()
    points[80 : 80 + width, index] += (0.05, -0.04, 0.03)
    spiked = with_markers(walk, points)
    (spike,) = find_spikes(spiked)
    assert (spike.marker, spike.start, spike.stop) == ("LTOE", 80, 80 + width)
    assert abs(spike.height - np.linalg.norm([0.05, 0.04, 0.03])) < 0.005
    mended = fill_gaps(remove_spikes(spiked)).data["marker_position"].values
    assert np.abs(mended - truth).max() < 0.01


def test_a_permanent_jump_and_fast_motion_are_not_spikes():
    walk = recording(plates=False)
    points = walk.data["marker_position"].values.copy()
    points[120:, 3] += (0.0, 0.2, 0.0)
    assert find_spikes(with_markers(walk, points)) == ()
    assert find_spikes(recording(plates=False, noise=0.001)) == ()


@pytest.mark.data
def test_forty_frames_removed_from_real_recordings_are_filled_within_millimeters():
    from borelli.recording.formats.c3d.reader import read_c3d

    for name in ("hdm/data.c3d", "c3d/qualisys_walk/Qualisys.c3d"):
        truth = read_c3d(real(name))
        points = truth.data["marker_position"].values
        errors = []
        for index in range(0, len(truth.markers), 3):
            cut = points.copy()
            cut[100:140, index] = np.nan
            filled = fill_gaps(with_markers(truth, cut)).data["marker_position"].values[100:140, index]
            errors.append(np.sqrt(((filled - points[100:140, index]) ** 2).sum(axis=1).mean()))
        done = np.isfinite(errors)
        assert done.mean() > 0.7
        assert np.median(np.array(errors)[done]) < 0.005
        assert np.max(np.array(errors)[done]) < 0.025
