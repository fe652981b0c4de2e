"""Cleaning: all steps together undo what was done to a known walk, and each change is written down."""

import numpy as np
import pytest

from borelli.recording.clean import changes, clean
from borelli.recording.cleaning.gaps import find_gaps
from borelli.recording.cleaning.label_swaps import swap_markers
from borelli.recording.recording import Recording, make_dataset

from .walker import real, recording, with_markers


def spoiled():
    """The walk with noise, a gap, a spike, a swap, zeros, rounded times and a plate that was not zeroed."""
    walk = swap_markers(recording(noise=0.0005), "LKNE", "RKNE", 60, 90)
    points = walk.data["marker_position"].values.copy()
    names = walk.markers
    points[40:48, names.index("LTOE")] = np.nan
    points[100:140, names.index("LASI")] = np.nan
    points[200:205, names.index("C7")] = 0.0
    points[150, names.index("RHEE")] += (0.0, 0.1, 0.0)
    spoilt = with_markers(walk, points)
    force = spoilt.data["plate_force"].values + np.array([0.0, 0.0, 6.0])
    data = spoilt.data.assign(plate_force=spoilt.data["plate_force"].copy(data=force))
    return spoilt.with_data(data.assign_coords(time=("time", np.round(data["time"].values, 3))))


def test_cleaning_brings_the_walk_back():
    truth, cleaned = recording(), clean(spoiled())
    assert find_gaps(cleaned) == ()
    inner = slice(10, -10)
    off = np.linalg.norm(cleaned.data["marker_position"].values - truth.data["marker_position"].values, axis=2)[inner]
    # the filter itself takes up to a centimetre off a foot that starts and stops
    reference = np.linalg.norm(clean(truth).data["marker_position"].values - truth.data["marker_position"].values, axis=2)[inner]
    assert off.max() < reference.max() + 0.01
    assert np.median(off) < 0.001
    assert np.abs(cleaned.data["plate_force"].values - truth.data["plate_force"].values).max() < 21.0


def test_every_change_is_in_the_history_and_the_input_is_untouched():
    before = spoiled()
    copy = before.data.copy(deep=True)
    said = " ".join(note.text for note in changes(clean(before)))
    for words in (
        "origin",
        "exchanged back",
        "spikes of RHEE",
        "gaps of LTOE",
        "low-passed at 6 Hz",
        "zeroed",
        "20 N",
        "left foot",
    ):
        assert words in said
    assert before.data.equals(copy)


def test_steps_that_are_switched_off_do_nothing():
    before = recording(noise=0.001)
    off = dict.fromkeys(("times", "zeros", "swaps", "spikes", "zero", "feet"), False)
    after = clean(before, **off, spline_limit=0.0, rigid_limit=0.0, cutoff=None, threshold=0.0)
    assert after.data["marker_position"].equals(before.data["marker_position"])
    assert np.array_equal(after.data["plate_force"].values, before.data["plate_force"].values)


def test_cleaning_a_clean_recording_twice_changes_little():
    once = clean(recording())
    twice = clean(once)
    inner = slice(20, -20)
    off = np.abs(twice.data["marker_position"].values - once.data["marker_position"].values)[inner]
    assert np.median(off) < 1e-4
    # only the filter works again
    assert {note.text.split()[0] for note in changes(twice)[len(changes(once)) :]} <= {"markers", "plates"}


def test_rate_events_and_crop_come_out_together():
    cleaned = clean(recording(4.0), rate=50.0, events="auto", start=0.5, stop=3.0)
    assert cleaned.rate == 50.0
    assert cleaned.data["time"].values[[0, -1]] == pytest.approx([0.5, 3.0])
    assert cleaned.events
    assert all(0.5 <= event.time <= 3.0 for event in cleaned.events)


@pytest.mark.parametrize(
    "data",
    [
        make_dataset({}, {}),
        make_dataset({"marker_position": np.full((5, 2, 3), np.nan)}, {"marker": ["A", "B"]}, rate=100.0),
        make_dataset({"marker_position": np.ones((1, 2, 3))}, {"marker": ["LKNE", "RKNE"]}, rate=100.0),
        make_dataset({"marker_position": np.ones((3, 1, 3))}, {"marker": ["LKNE"]}),
        make_dataset({"plate_force": np.full((20, 1, 3), np.nan)}, {"plate": ["p"]}, analog_rate=1000.0),
        make_dataset({"joint_center": np.ones((4, 2, 3))}, {"joint": ["a", "b"]}, rate=10.0),
    ],
    ids=["nothing", "unseen", "one frame", "no rate", "plate without numbers", "joints"],
)
@pytest.mark.filterwarnings("error")
def test_recordings_with_little_in_them_are_cleaned_without_a_fuss(data):
    from borelli.recording.quality_checks import check_recording

    one = Recording(data)
    cleaned = clean(one)
    assert isinstance(cleaned, Recording)
    check_recording(one)


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    [
        "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d",
        "c3d/motionanalysis_gait/Gait.c3d",
        "c3d/qualisys_walk/Qualisys.c3d",
    ],
)
def test_cleaning_moves_real_markers_by_millimetres_only(name):
    from borelli.recording.formats.c3d.reader import read_c3d

    recorded = read_c3d(real(name))
    cleaned = clean(recorded)
    seen = np.isfinite(recorded.data["marker_position"].values)
    assert (np.isfinite(cleaned.data["marker_position"].values) | ~seen).all()
    off = np.abs(cleaned.data["marker_position"].values - recorded.data["marker_position"].values)[seen]
    assert np.median(off) < 0.001
    assert np.percentile(off, 99) < 0.03
    assert "ground_reaction_force" in cleaned.data
