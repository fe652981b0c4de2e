"""Recordings without names are labeled by geometry, those with names are not changed, and findings become notes."""

import numpy as np
import pytest

from borelli.analysis.labeling.label_recording import (
    check_recording_labels,
    finding_notes,
    name_unlabeled_points,
    read_markers,
)
from borelli.recording.clean import clean
from borelli.recording.io import rename_markers
from borelli.recording.labels.interpret import interpret_labels
from borelli.synthetic.recordings import synthetic_recording


@pytest.fixture(scope="module")
def walk():
    return clean(synthetic_recording("walk").recording)


@pytest.fixture(scope="module")
def numbered(walk):
    return walk.with_data(walk.data.assign_coords(marker=[f"{i:04d}" for i in range(len(walk.markers))]))


def test_numbers_get_the_landmarks_of_their_names(walk, numbered):
    named = name_unlabeled_points(numbered)
    readings = interpret_labels(named.markers).readings
    truths = interpret_labels(walk.markers).readings
    right = [(a.segment, a.side) == (b.segment, b.side) for a, b in zip(readings, truths, strict=True)]
    assert np.mean(right) >= 0.97
    assert named.notes[-1].code == "labels_by_geometry"
    listed, notes = read_markers(numbered)
    assert [one.label for one in listed.readings] == list(numbered.markers)
    assert notes[0].code == "labels_by_geometry"
    assert not any(one.sure and not ok for one, ok in zip(listed.readings, right, strict=True))


def test_named_recordings_are_not_changed(walk):
    assert name_unlabeled_points(walk) is walk


def test_right_names_pass_and_swapped_ones_become_notes(walk):
    assert not finding_notes(check_recording_labels(walk))
    swapped = rename_markers(walk, {"RKNE": "LSHO", "LSHO": "RKNE"})
    notes = finding_notes(check_recording_labels(swapped))
    assert notes and all(note.kind == "problem" for note in notes)
    assert any("RKNE" in note.text and "LSHO" in note.text for note in notes)


def test_points_that_are_no_body_stay_unnamed():
    points = synthetic_recording("walk").recording
    chosen = points.with_data(points.data.isel(marker=slice(0, 8)))
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.8, size=(8, 3))
    data = chosen.data.assign_coords(marker=[f"*{i}" for i in range(8)]).copy(deep=True)
    data["marker_position"].values[:] = noise
    named = name_unlabeled_points(chosen.with_data(data))
    assert named.markers == tuple(f"*{i}" for i in range(8))
