"""Labels of a recording and geometry: unnamed points get names, and named markers are checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from borelli.analysis.labeling.check_labels import LabelCheck, check_labels
from borelli.analysis.labeling.label_points import RUNS, PointLabel, PointLabels, label_points
from borelli.model.landmark_atlas import MarkerLandmark
from borelli.recording.labels.conventions import MIDDLE, own_label
from borelli.recording.labels.interpret import MIN_SURE, LabelReading, LabelReadings, interpret_labels
from borelli.recording.recording import Note, Recording

MIN_NAMED_MARKERS = 4
"""With as many markers that have a known landmark, unnamed points are left alone."""
MAX_DISTANCE = 0.15
"""[m] Points farther from the usual position of their landmark have no label."""
MAX_UNSURE = 0.8
"""Certainty of a label of geometry on which all runs agree, but that is not sure."""
ONE_LEG = ("right leg", "left leg")
ACTION = "borelli markers FILE --write map.toml lists them; correct it and use --markers map.toml"


def name_unlabeled_points(recording: Recording, height: float = np.nan) -> Recording:
    """Return the recording with unnamed points named by the landmarks at which geometry finds them, and a note.

    Recordings with names are not changed. Points stay unnamed if no label is sure, and those of one leg, whose side
    cannot be found.

    Args:
        recording: Recording with markers, z up.
        height: Height of the subject [m], if known.
    """
    unnamed, found = _label_unnamed(recording, height)
    if found is None:
        return recording
    if found.part in ONE_LEG:
        text = "The points without names are those of one leg; geometry does not show its side."
        return recording.with_notes(Note(text, "problem", ACTION, code="labels_by_geometry"))
    if not any(_is_near(label) and label.sure_segment for label in found.labels if label is not None):
        return recording.with_notes(_note(found))
    names, counts = list(recording.markers), Counter[tuple[str, str]]()
    for i, label in zip(unnamed, found.labels, strict=True):
        if label is not None and _is_near(label):
            counts[label.landmark, label.side] += 1
            names[i] = own_label(label.landmark, label.side, counts[label.landmark, label.side])
    data = recording.data.assign_coords(marker=np.array(names, dtype=str))
    return recording.with_data(data, _note(found))


def read_markers(recording: Recording, height: float = np.nan) -> tuple[LabelReadings, tuple[Note, ...]]:
    """Return the meanings of a recording's labels, from geometry where they have no names, and notes on both."""
    readings = interpret_labels(recording.markers)
    unnamed, found = _label_unnamed(recording, height)
    if found is None:
        return readings, finding_notes(check_recording_labels(recording, height))
    result = list(readings.readings)
    for i, label in zip(unnamed, found.labels, strict=True):
        if label is not None and _is_near(label):
            certainty = MIN_SURE if label.sure_segment else MAX_UNSURE * label.agreeing_runs / len(RUNS)
            evidence = f"geometry: {1e3 * label.distance:.0f} mm from its usual position"
            side = MIDDLE if found.part in ONE_LEG else label.side
            result[i] = LabelReading(
                result[i].label, label.landmark, side, label.segment, label.kind, certainty, evidence
            )
    return replace(readings, readings=tuple(result)), (_note(found),)


def _label_unnamed(recording: Recording, height: float) -> tuple[list[int], PointLabels | None]:
    """Return the columns of points without names, and their labels if the recording has too few named markers."""
    readings = interpret_labels(recording.markers).readings
    unnamed = [i for i, one in enumerate(readings) if one.kind in ("unnamed", "unknown")]
    named = [one for one in readings if one.landmark and one.kind != "virtual center"]
    if len(named) >= MIN_NAMED_MARKERS or "marker_position" not in recording.data or not recording.frames:
        return unnamed, None
    return unnamed, label_points(recording.data["marker_position"].values[:, unnamed], height) if unnamed else None


def check_recording_labels(recording: Recording, height: float = np.nan) -> LabelCheck:
    """Check by geometry whether the markers of a recording lie where their labels state; z must be up.

    Joint centers of a skeleton are not checked: their names and positions come from one program.
    """
    readings = interpret_labels(recording.markers)
    if readings.keypoints or "marker_position" not in recording.data:
        return LabelCheck((), (), np.nan, np.nan, "the labels are those of joints")
    points = recording.data["marker_position"].values
    return check_labels(points, [_landmark(one) for one in readings.readings], height)


def finding_notes(check: LabelCheck) -> tuple[Note, ...]:
    """Return the findings of a check as notes."""
    return tuple(
        Note(f"Labels contradict geometry: {one.evidence}.", "problem", one.action, code=one.code)
        for one in check.findings
        if one.severity == "error"
    )


def _is_near(label: PointLabel) -> bool:
    return bool(label.landmark) and label.distance <= MAX_DISTANCE


def _landmark(reading: LabelReading) -> MarkerLandmark | None:
    if not reading.landmark or reading.contested or reading.kind == "virtual center":
        return None
    return MarkerLandmark(reading.label, reading.landmark, reading.side, reading.kind)


def _note(found: PointLabels) -> Note:
    read = [one for one in found.labels if one is not None and _is_near(one)]
    sure = sum(one.sure_segment for one in read)
    text = (
        f"{len(found.labels)} points without names are labeled by geometry ({found.part}, {1e3 * found.score:.0f} mm "
        f"from their usual positions): {len(read)} have a landmark, the segments of {sure} are certain"
    )
    text += f"; {'; '.join(found.doubts)}." if found.doubts else "."
    kind = "problem" if found.doubts or sure < len(found.labels) else "inferred"
    return Note(text, kind, ACTION, code="labels_by_geometry")
