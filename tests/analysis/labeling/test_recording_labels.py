"""Recordings without names: named by geometry with a note, refused when uncertain; names that contradict geometry."""

import numpy as np
import pytest

from borelli.analysis.labeling.recording_labels import check_marker_labels, name_markers, read_by_geometry
from borelli.errors import SettingsError
from borelli.recording import rename_markers
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.recording import Recording
from borelli.synthetic import synthetic_recording

WALK = synthetic_recording("walk", seed=6).recording


def numbered(recording: Recording) -> Recording:
    order = np.random.default_rng(3).permutation(len(recording.markers))
    mixed = recording.select_markers([recording.markers[i] for i in order])
    return rename_markers(mixed, {name: f"{i:04d}" for i, name in enumerate(mixed.markers)})


def test_numbers_get_names_with_evidence() -> None:
    numbers = numbered(WALK)
    named = name_markers(numbers)
    (note,) = [note for note in named.notes if note.code == "labels_by_geometry"]
    assert "41 markers" in note.text and note.action and len(named.markers) == len(WALK.markers)
    truth = {one.label: one for one in interpret_labels(WALK.markers).readings}
    for name, reading in zip(named.markers, interpret_labels(named.markers).readings, strict=True):
        column = named.data["marker_position"].sel(marker=name).values
        same = [
            label for label in WALK.markers if _equal(column, WALK.data["marker_position"].sel(marker=label).values)
        ]
        if reading.landmark:
            assert (reading.segment, reading.side) == (truth[same[0]].segment, truth[same[0]].side), same


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.array_equal(one, other, equal_nan=True))


def test_names_are_kept() -> None:
    assert name_markers(WALK) is WALK and read_by_geometry(WALK) == ()
    assert check_marker_labels(WALK) is WALK


def test_uncertainty_is_an_error_with_a_remedy() -> None:
    legs = [
        name
        for name in WALK.markers
        if name[0] == "R" and name[1:] in ("THI", "KNE", "SHN", "ANK", "HEE", "MT5", "TOE")
    ]
    one_leg = numbered(WALK.select_markers(legs))
    with pytest.raises(SettingsError, match=r"one leg.*borelli markers FILE --write map\.toml"):
        name_markers(one_leg)
    assert all(reading.certainty < 0.5 for reading in read_by_geometry(one_leg))


def test_swapped_labels_are_noted() -> None:
    swapped = rename_markers(WALK, {"RKNE": "LKNE", "LKNE": "RKNE"})
    (note,) = [note for note in check_marker_labels(swapped).notes if note.code == "swapped_labels"]
    assert note.kind == "problem" and "RKNE" in note.text and "swap_markers" in note.action
