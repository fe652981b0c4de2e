"""Labels of a recording and geometry: labels that name landmarks are checked, points without names get labels."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.labeling.check_labels import LabelFinding, check_labels
from borelli.analysis.labeling.label_cloud import label_cloud
from borelli.analysis.labeling.label_points import RUNS, PointLabel, PointLabels
from borelli.analysis.labeling.objects import (
    MAX_CANDIDATES,
    MIN_OBJECT_DISTANCE,
    MIN_OBJECT_POINTS,
    find_objects,
    label_body,
)
from borelli.analysis.labeling.uncertain_labels import marker_landmark, read_uncertain_labels
from borelli.errors import SettingsError, list_names
from borelli.numerics.vectors import Array
from borelli.recording.labels.conventions import Meaning
from borelli.recording.labels.interpret import LabelReading, interpret_labels
from borelli.recording.landmarks import visible
from borelli.recording.marker_map import apply_marker_map
from borelli.recording.recording import Note, Recording

MIN_KNOWN = 4
"""Labels that name landmarks, from which on a recording is not labeled by geometry."""
MAX_USED_DISTANCE = 0.08
"""[m] Points farther from their place are not used."""
MIN_TRACKLET_RATIO = 1.2
"""Ratio of the number of columns to that of points visible at once, from which on markers continue in other columns."""
OBJECT_FRAMES = 200
"""Frames in which points without names are compared with each other, to find objects."""
CERTAINTIES = {"landmark": 0.95, "segment": 0.8, "agreed": 0.6, "found": 0.3}
"""Certainty of a reading: landmark or segment sure, all runs agree, found by one run."""
MAX_UNCERTAIN = 0.4
"""Largest certainty of a reading if there are uncertainties about the body as a whole."""
GEOMETRY_CODES = ("labels_by_geometry", "objects")
"""Codes of notes on what geometry finds."""
ACTION = "borelli markers FILE --write map.toml, --markers map.toml"


class UnnamedPoints(NamedTuple):
    """Points of columns without names, and what geometry finds for them."""

    columns: list[int]
    """Columns of the recording."""
    found: PointLabels
    marker: NDArray[np.int64]
    """Marker (frames, columns) of each point, an index of the labels that were found; -1: none."""
    objects: NDArray[np.int64]
    """Object (frames, columns) of each point; -1: none."""
    in_pieces: bool
    """Whether markers continue in other columns."""

    def columns_of(self, marker: int) -> list[int]:
        """Return the columns of the recording that contain a marker."""
        own = (self.marker == marker).any(axis=0)
        return [column for column, contains in zip(self.columns, own, strict=True) if contains]


def read_by_geometry(recording: Recording, height: float = np.nan) -> tuple[LabelReading, ...]:
    """Return readings that geometry gives: of labels that name no landmark if few others do, else of uncertain labels.

    Args:
        recording: Recording in the lab frame.
        height: Height of the subject [m], if known.
    """
    unnamed = label_unnamed(recording, height)
    if unnamed is None:
        return _read_uncertain(recording, height)[0]
    result = []
    for i, column in enumerate(unnamed.columns):
        own = unnamed.marker[:, i]
        label = recording.markers[column]
        if (unnamed.objects[:, i] >= 0).any() and not (own >= 0).any():
            result.append(LabelReading(label, evidence="geometry: moves with others as one rigid object"))
        elif (own >= 0).any():
            marker = int(np.bincount(own[own >= 0]).argmax())
            one = unnamed.found.labels[marker]
            if one is not None:
                reading = _reading(label, one, bool(unnamed.found.uncertainties))
                others = [recording.markers[k] for k in unnamed.columns_of(marker) if k != column]
                more = f"; the same marker as {list_names(others)}" if others else ""
                result.append(replace(reading, evidence=reading.evidence + more))
    return tuple(result)


def name_markers(recording: Recording, height: float = np.nan) -> Recording:
    """Return the recording with names of landmarks where geometry must read its labels.

    Labels that name no landmark are read by geometry if few others do; otherwise the uncertain ones are. A marker that
    continues in other columns is gathered in one.

    Args:
        recording: Recording in the lab frame.
        height: Height of the subject [m], if known.

    Returns:
        The recording, with a note of what was found; unchanged if its labels name landmarks, or it has too few points.

    Raises:
        SettingsError: The points do not show a body with certainty.
    """
    unnamed = label_unnamed(recording, height)
    if unnamed is None:
        notes = _object_notes(recording)
        named = _name_uncertain(recording, height)
        return named.with_notes(*notes) if notes else named
    found, labels = unnamed.found, [recording.markers[i] for i in unnamed.columns]
    if found.uncertainties:
        raise SettingsError(
            f"{recording.name or 'The recording'}: The labels {list_names(labels)} name no landmarks, and geometry "
            f"leaves uncertainties: {'; '.join(found.uncertainties)}. State what they mean: "
            "borelli markers FILE --write map.toml, correct the map, and use --markers map.toml."
        )
    notes = _notes(unnamed, labels)
    if unnamed.in_pieces:
        recording, labels = _gather(recording, unnamed)
    used = {label: one for label, one in zip(labels, found.labels, strict=True) if one is not None and _is_usable(one)}
    meanings: dict[str, Meaning | None] = {
        label: Meaning(one.landmark, one.side, one.kind) for label, one in used.items()
    }
    meanings |= {
        labels[i]: None for i in range(len(labels)) if not unnamed.in_pieces and (unnamed.objects[:, i] >= 0).any()
    }
    return apply_marker_map(recording, meanings).with_notes(*notes)


def label_notes(recording: Recording, height: float = np.nan) -> tuple[Note, ...]:
    """Return notes on the labels that geometry reads, or cannot read with certainty.

    Args:
        recording: Recording in the lab frame.
        height: Height of the subject [m], if known.
    """
    try:
        named = name_markers(recording, height)
    except SettingsError as error:
        return (Note(str(error), "problem", ACTION, code="labels_by_geometry"),)
    return tuple(note for note in named.notes if note not in recording.notes and note.code in GEOMETRY_CODES)


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
    markers = [marker_landmark(one, readings.keypoints) for one in readings.readings]
    return check_labels(_points(recording), markers, height).findings


def label_unnamed(recording: Recording, height: float = np.nan) -> UnnamedPoints | None:
    """Return what geometry finds for labels that name no landmark; None if others do, or no body is found.

    Args:
        recording: Recording in the lab frame.
        height: Height of the subject [m], if known.
    """
    if "marker_position" not in recording.data:
        return None
    readings = interpret_labels(recording.markers)
    points = _points(recording)
    seen = visible(points)
    unknown = [i for i, one in enumerate(readings.readings) if one.kind in ("unnamed", "unknown") and seen[:, i].any()]
    if len(readings.known) >= MIN_KNOWN or not unknown:
        return None
    own = points[:, unknown]
    if len(unknown) > MIN_TRACKLET_RATIO * seen[:, unknown].sum(axis=1).max():
        cloud = label_cloud(own, height)
        return None if cloud is None else UnnamedPoints(unknown, cloud.points, cloud.marker, cloud.objects, True)
    found, objects = label_body(own, height)
    if found is None:
        return None
    labeled = np.array([one is not None for one in found.labels])
    marker = np.where(seen[:, unknown] & labeled, np.arange(len(unknown)), -1)
    return UnnamedPoints(unknown, found, marker, np.where(seen[:, unknown], objects, -1), False)


def _gather(recording: Recording, unnamed: UnnamedPoints) -> tuple[Recording, list[str]]:
    """Return the recording with one column for each marker in place of columns without names, and their labels."""
    data, count = recording.data, len(unnamed.found.labels)
    kept = [i for i in range(len(recording.markers)) if i not in set(unnamed.columns)]
    labels = [f"*{i + 1}" for i in range(count)]
    chosen = data.isel(marker=[*kept, *unnamed.columns[:count]])
    chosen = chosen.assign_coords(marker=[*(recording.markers[i] for i in kept), *labels])
    for name, variable in data.data_vars.items():
        if "marker" in variable.dims:
            values = chosen[name].values.copy()
            own = variable.values[:, unnamed.columns]
            values[:, len(kept) :] = np.nan
            rows, columns = np.nonzero(unnamed.marker >= 0)
            values[rows, len(kept) + unnamed.marker[rows, columns]] = own[rows, columns]
            chosen[name] = chosen[name].copy(data=values)
    return recording.with_data(chosen), labels


def _notes(unnamed: UnnamedPoints, labels: list[str]) -> tuple[Note, ...]:
    """Return notes on the labels that geometry gives to points without names, and on objects."""
    found = unnamed.found
    used = [i for i, one in enumerate(found.labels) if one is not None and _is_usable(one)]
    unsure = [i for i in used if not found.labels[i].sure_segment]  # type: ignore[union-attr]
    like = f"a marker set like {found.marker_set}, " if found.marker_set else ""
    evidence = f"({found.part}, {like}height {found.height:.2f} m, {1e3 * found.score:.0f} mm from a generic body)"
    if unnamed.in_pieces:
        fraction = 100.0 * (unnamed.marker >= 0).sum() / (len(unnamed.marker) * len(found.labels))
        count = int((unnamed.marker >= 0).any(axis=0).sum())
        text = (
            f"Labels name no landmarks, and markers continue in other columns: {len(used)} markers are gathered from "
            f"{count} columns and labeled by geometry {evidence}; each is visible in {fraction:.0f} % of the "
            "frames on average"
        )
        names = [f"{found.labels[i].side} {found.labels[i].landmark}" for i in unsure]  # type: ignore[union-attr]
    else:
        text = f"Labels name no landmarks: {len(used)} of {len(labels)} markers are labeled by geometry {evidence}"
        names = [labels[i] for i in unsure]
    text += f"; segment and side are not certain of {list_names(names)}." if unsure else "."
    notes = [Note(text, "inferred", ACTION, code="labels_by_geometry")]
    return (*notes, *_notes_on_objects(unnamed.objects, labels))


def _notes_on_objects(objects: NDArray[np.int64], labels: list[str]) -> tuple[Note, ...]:
    """Return a note on each object, from the object (frames, columns) of each point."""
    notes = []
    for number in range(int(objects.max(initial=-1)) + 1):
        own = objects == number
        columns = [label for label, contains in zip(labels, own.any(axis=0), strict=True) if contains]
        text = (
            f"{own.sum(axis=1).max()} points move as one rigid object far from the body and are left out: "
            f"{list_names(columns)}."
        )
        notes.append(Note(text, "inferred", ACTION, code="objects"))
    return tuple(notes)


def _object_notes(recording: Recording) -> tuple[Note, ...]:
    """Return notes on objects among the points without a name of a recording whose other labels name landmarks."""
    if "marker_position" not in recording.data:
        return ()
    readings = interpret_labels(recording.markers).readings
    unnamed = [i for i, one in enumerate(readings) if one.kind == "unnamed"][:MAX_CANDIDATES]
    named = [i for i, one in enumerate(readings) if one.landmark]
    if len(unnamed) < MIN_OBJECT_POINTS or len(named) < MIN_KNOWN:
        return ()
    points = _points(recording)[:: max(1, recording.frames // OBJECT_FRAMES)]
    own = points[:, unnamed]
    away = np.stack([np.linalg.norm(own - points[:, i : i + 1], axis=2) for i in named])
    nearest = np.where(np.isfinite(away), away, np.inf).min(axis=0)
    seen = visible(own) & np.isfinite(nearest)
    far = np.array(
        [
            bool(one.any()) and np.median(at[one]) > MIN_OBJECT_DISTANCE
            for at, one in zip(nearest.T, seen.T, strict=True)
        ]
    )
    objects = np.where(visible(own), find_objects(own, far), -1)
    return _notes_on_objects(objects, [recording.markers[i] for i in unnamed])


def _read_uncertain(recording: Recording, height: float) -> tuple[tuple[LabelReading, ...], tuple[str, ...]]:
    """Return readings of uncertain labels by geometry, and the uncertain labels that it cannot read."""
    if "marker_position" not in recording.data:
        return (), ()
    return read_uncertain_labels(_points(recording), interpret_labels(recording.markers), height)


def _name_uncertain(recording: Recording, height: float) -> Recording:
    """Return the recording with uncertain labels named by what geometry reads; those it cannot read are left out."""
    readings, unread = _read_uncertain(recording, height)
    if not readings and not unread:
        return recording
    meanings: dict[str, Meaning | None] = {one.label: Meaning(one.landmark, one.side, one.kind) for one in readings}
    shown = [f"{one.label}: {one.side} {one.landmark} ({one.evidence})" for one in readings]
    text = (
        f"Labels that are contested or contradict geometry are read by geometry: {'; '.join(shown)}." if shown else ""
    )
    left = (
        f"Labels that are contested or contradict geometry are left out: {list_names(list(unread))}." if unread else ""
    )
    notes = [Note(one, "inferred", ACTION, code="labels_by_geometry") for one in (text, left) if one]
    return apply_marker_map(recording, meanings | dict.fromkeys(unread)).with_notes(*notes)


def _points(recording: Recording) -> Array:
    """Return the positions of markers, which callers do not change; those of a long recording fill memory once."""
    points = np.asarray(recording.data["marker_position"].values, dtype=float)
    zero = (points == 0.0).all(axis=-1)  # many systems write the origin for a missing marker
    return np.where(zero[..., None], np.nan, points) if zero.any() else points


def _is_usable(one: PointLabel) -> bool:
    return one.agreeing_runs == len(RUNS) and one.distance < MAX_USED_DISTANCE


def _reading(label: str, one: PointLabel, uncertain: bool) -> LabelReading:
    level = "landmark" if one.sure_landmark else "segment" if one.sure_segment else "agreed"
    certainty = CERTAINTIES[level if one.agreeing_runs == len(RUNS) else "found"]
    evidence = f"geometry: {1e3 * one.distance:.0f} mm from its place, {one.agreeing_runs} of {len(RUNS)} runs agree"
    if uncertain:
        certainty = min(certainty, MAX_UNCERTAIN)
    return LabelReading(label, one.landmark, one.side, one.segment, one.kind, certainty, evidence)
