"""Uncertain labels: geometry chooses among their readings, or finds the segment; sure labels are left alone."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.labeling.recording_labels import label_notes, name_markers
from borelli.analysis.labeling.uncertain_labels import read_uncertain_labels
from borelli.recording.io import read_recording
from borelli.recording.labels.conventions import Meaning
from borelli.recording.labels.interpret import LabelReading, LabelReadings, interpret_labels
from borelli.recording.marker_map import apply_marker_map
from borelli.recording.recording import Recording
from borelli.synthetic import synthetic_recording
from tests.shared_data import shared

WALK = synthetic_recording("walk", seed=6).recording
POINTS = WALK.data["marker_position"].values
KNEE, ELBOW = Meaning("knee_lateral", "right"), Meaning("elbow_lateral", "right")


def with_reading(label: str, meaning: Meaning, certainty: float, *others: tuple[Meaning, float]) -> LabelReadings:
    readings = interpret_labels(WALK.markers)
    changed = LabelReading(label, *meaning[:2], meaning.segment, meaning.kind, certainty, others=others)
    return replace(readings, readings=tuple(changed if one.label == label else one for one in readings.readings))


@pytest.mark.parametrize(("first", "second"), [(KNEE, ELBOW), (ELBOW, KNEE)])
def test_a_contested_label_gets_the_reading_that_is_near(first: Meaning, second: Meaning) -> None:
    readings = with_reading("RKNE", first, 0.5, (second, 0.45))
    assert next(one for one in readings.readings if one.label == "RKNE").contested
    (found,), unread = read_uncertain_labels(POINTS, readings)
    assert (found.label, found.landmark, found.side) == ("RKNE", "knee_lateral", "right") and not unread
    assert not found.contested and found.certainty < 0.9
    assert "knee_lateral" in found.evidence and "elbow_lateral" in found.evidence and "mm" in found.evidence


def test_a_contested_label_between_its_readings_is_not_read() -> None:
    plateau = Meaning("fibular_head", "left")
    found, unread = read_uncertain_labels(POINTS, with_reading("RTHI", Meaning("asis", "left"), 0.5, (plateau, 0.45)))
    assert not unread and found[0].segment == "thigh" and found[0].side == "right"
    far = POINTS.copy()
    far[:, WALK.markers.index("RKNE")] += (0.0, -1.0, 0.0)
    assert read_uncertain_labels(far, with_reading("RKNE", KNEE, 0.5, (ELBOW, 0.45))) == ((), ("RKNE",))


def test_an_uncertain_label_far_from_what_it_names_is_read_by_segment() -> None:
    (found,), unread = read_uncertain_labels(POINTS, with_reading("RSHN", Meaning("upper_arm", "left", "cluster"), 0.6))
    assert (found.label, found.segment, found.side, found.kind) == ("RSHN", "shank", "right", "cluster") and not unread
    assert found.certainty <= 0.5 and "left upper_arm" in found.evidence
    # a sure label is not changed: the check of labels reports it
    assert read_uncertain_labels(POINTS, with_reading("RSHN", Meaning("upper_arm", "left", "cluster"), 1.0)) == ((), ())
    near = with_reading("RSHN", Meaning("shank", "right", "cluster"), 0.6)
    assert read_uncertain_labels(POINTS, near) == ((), ())


def test_without_a_body_nothing_is_read() -> None:
    readings = with_reading("RKNE", KNEE, 0.5, (ELBOW, 0.45))
    few = replace(readings, readings=tuple(one for one in readings.readings if one.label in ("RKNE", "LKNE")))
    columns = [WALK.markers.index("RKNE"), WALK.markers.index("LKNE")]
    columns = [i for i, name in enumerate(WALK.markers) if i in columns]
    assert read_uncertain_labels(POINTS[:, columns], few) == ((), ("RKNE",))
    assert read_uncertain_labels(np.full_like(POINTS, np.nan), readings) == ((), ())


@pytest.mark.data
def test_clusters_on_the_trunk_that_are_named_like_those_of_a_shank() -> None:
    recording = read_recording(shared("c3d/format_variants/sample02/pc_real.c3d"))
    misread = ("RTA1", "RTA2", "RTA3")
    assert {one.segment for one in interpret_labels(recording.markers).readings if one.label in misread} == {"shank"}
    named = name_markers(recording)
    others = [label for label in recording.markers if label not in misread]
    assert [label for label in named.markers if label in others] == others
    new = [one for one in interpret_labels(named.markers).readings if one.label not in others]
    assert [one.segment for one in new] == ["torso"] * 3
    (note,) = label_notes(recording)
    assert note.kind == "inferred" and all(label in note.text for label in misread) and note.action


def test_a_map_settles_a_contested_label(monkeypatch: pytest.MonkeyPatch) -> None:
    contested = with_reading("RKNE", KNEE, 0.5, (ELBOW, 0.45))
    monkeypatch.setattr("borelli.recording.marker_map.interpret_labels", lambda labels: contested)
    renamed: Recording = apply_marker_map(WALK, {"RKNE": KNEE})
    assert renamed.markers[WALK.markers.index("RKNE")].startswith("right.knee_lateral")
