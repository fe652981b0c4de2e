"""Labels of a recording and geometry: labels that name landmarks are checked, points without names get labels."""

from __future__ import annotations

import numpy as np

from borelli.analysis.labeling.check_labels import LabelFinding, check_labels
from borelli.analysis.labeling.label_points import RUNS, PointLabel, PointLabels, label_points
from borelli.errors import SettingsError, list_names
from borelli.model.landmark_atlas import MarkerLandmark
from borelli.numerics.vectors import Array
from borelli.recording.labels.conventions import Meaning
from borelli.recording.labels.interpret import LabelReading, interpret_labels
from borelli.recording.marker_map import apply_marker_map
from borelli.recording.recording import Note, Recording

MIN_KNOWN = 4
"""Labels that name landmarks, from which on a recording is not labeled by geometry."""
MAX_USED_DISTANCE = 0.08
"""[m] Points farther from their place are not used."""
CERTAINTIES = {"landmark": 0.95, "segment": 0.8, "agreed": 0.6, "found": 0.3}
"""Certainty of a reading: landmark or segment sure, all runs agree, found by one run."""
MAX_UNCERTAIN = 0.4
"""Largest certainty of a reading if there are uncertainties about the body as a whole."""
ACTION = "borelli markers FILE --write map.toml, --markers map.toml"


def read_by_geometry(recording: Recording, height: float = np.nan) -> tuple[LabelReading, ...]:
    """Return readings of labels that name no landmark, from positions of markers; () if others name landmarks.

    Args:
        recording: Recording in the lab frame.
        height: Height of the subject [m], if known.
    """
    labels, found = _label(recording, height)
    if found is None:
        return ()
    pairs = zip(labels, found.labels, strict=True)
    return tuple(_reading(label, one, bool(found.uncertainties)) for label, one in pairs if one is not None)


def name_markers(recording: Recording, height: float = np.nan) -> Recording:
    """Return the recording with names of landmarks for markers whose labels name no landmark, found by geometry.

    Args:
        recording: Recording in the lab frame.
        height: Height of the subject [m], if known.

    Returns:
        The recording, with a note of what was found; unchanged if its labels name landmarks, or it has too few points.

    Raises:
        SettingsError: The points do not show a body with certainty.
    """
    labels, found = _label(recording, height)
    if found is None:
        return recording
    if found.uncertainties:
        raise SettingsError(
            f"{recording.name or 'The recording'}: The labels {list_names(labels)} name no landmarks, and geometry "
            f"leaves uncertainties: {'; '.join(found.uncertainties)}. State what they mean: "
            "borelli markers FILE --write map.toml, correct the map, and use --markers map.toml."
        )
    used = {label: one for label, one in zip(labels, found.labels, strict=True) if one is not None and _is_usable(one)}
    unsure = [label for label, one in used.items() if not one.sure_segment]
    meanings = {label: Meaning(one.landmark, one.side, one.kind) for label, one in used.items()}
    like = f"a marker set like {found.marker_set}, " if found.marker_set else ""
    text = (
        f"Labels name no landmarks: {len(used)} of {len(labels)} markers are labeled by geometry ({found.part}, {like}"
        f"height {found.height:.2f} m, {1e3 * found.score:.0f} mm from a generic body)"
    )
    text += f"; segment and side are not certain of {list_names(unsure)}." if unsure else "."
    note = Note(text, "inferred", ACTION, code="labels_by_geometry")
    return apply_marker_map(recording, meanings).with_notes(note)


def check_marker_labels(recording: Recording, height: float = np.nan) -> Recording:
    """Return the recording with a note for each contradiction between labels and the positions of markers.

    Args:
        recording: Recording in the lab frame.
        height: Height of the subject [m], if known.
    """
    notes = [
        Note(f"Labels contradict geometry: {finding.evidence}.", "problem", finding.action, code=finding.code)
        for finding in find_label_problems(recording, height)
        if finding.severity == "error"
    ]
    return recording.with_notes(*notes) if notes else recording


def find_label_problems(recording: Recording, height: float = np.nan) -> tuple[LabelFinding, ...]:
    """Return the contradictions between labels and the positions of markers, errors and warnings.

    Args:
        recording: Recording in the lab frame.
        height: Height of the subject [m], if known.
    """
    if "marker_position" not in recording.data:
        return ()
    readings = interpret_labels(recording.markers)
    markers = [_marker_landmark(one, readings.keypoints) for one in readings.readings]
    return check_labels(_points(recording), markers, height).findings


def _label(recording: Recording, height: float) -> tuple[list[str], PointLabels | None]:
    """Return labels that name no landmark, and what geometry finds for them; None if other labels name landmarks."""
    if "marker_position" not in recording.data:
        return [], None
    readings = interpret_labels(recording.markers)
    unknown = [i for i, one in enumerate(readings.readings) if one.kind in ("unnamed", "unknown")]
    if len(readings.known) >= MIN_KNOWN or not unknown:
        return [], None
    return [recording.markers[i] for i in unknown], label_points(_points(recording)[:, unknown], height)


def _points(recording: Recording) -> Array:
    points = recording.data["marker_position"].values.astype(float)
    points[(points == 0.0).all(axis=-1)] = np.nan  # many systems write the origin for a missing marker
    return points


def _is_usable(one: PointLabel) -> bool:
    return one.agreeing_runs == len(RUNS) and one.distance < MAX_USED_DISTANCE


def _reading(label: str, one: PointLabel, uncertain: bool) -> LabelReading:
    level = "landmark" if one.sure_landmark else "segment" if one.sure_segment else "agreed"
    certainty = CERTAINTIES[level if one.agreeing_runs == len(RUNS) else "found"]
    evidence = f"geometry: {1e3 * one.distance:.0f} mm from its place, {one.agreeing_runs} of {len(RUNS)} runs agree"
    if uncertain:
        certainty = min(certainty, MAX_UNCERTAIN)
    return LabelReading(label, one.landmark, one.side, one.segment, one.kind, certainty, evidence)


def _marker_landmark(one: LabelReading, keypoints: bool) -> MarkerLandmark | None:
    if not one.landmark or one.contested or (one.kind == "virtual center" and not keypoints):
        return None
    return MarkerLandmark(one.label, one.landmark, one.side, one.kind)
