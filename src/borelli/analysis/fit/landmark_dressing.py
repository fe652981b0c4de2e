"""Markers of a model from the meanings of labels, for recordings whose marker set is not among the known ones.

A landmark lies where the atlas has it. A marker of a cluster may be anywhere on its segment: the model is posed by the
landmarks first, and the marker is put where it is seen on the posed segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from borelli.analysis.kinematics.framewise_ik import MIN_VISIBLE_MARKERS, make_ik_problem, solve_framewise
from borelli.analysis.motion import match_markers, rotate, to_model_axes
from borelli.analysis.tree_kernels.newton_ik import find_body_poses
from borelli.errors import SettingsError, list_names
from borelli.model.landmark_atlas import AtlasLandmark, MarkerLandmark, find_in_atlas, landmark_markers
from borelli.model.model import Marker, Model
from borelli.model.transforms import vector
from borelli.numerics.vectors import Array
from borelli.recording.labels.conventions import MIDDLE
from borelli.recording.labels.interpret import LIMBS, LabelReading, LabelReadings, interpret_labels
from borelli.recording.recording import Note, Recording

MIN_LANDMARKS, MIN_BODIES = 4, 2
"""Least number of landmarks that pose a model, and of bodies that they are on."""
MAX_LANDMARK_SD = 0.025
"""[m] Markers whose position on the body varies more are put where they are seen."""
MAX_DISPLACEMENT = 0.25
"""[m] Largest distance from the atlas at which a marker still belongs to its segment."""
SEEN_SD = 0.06
"""[m] Standard deviation of where a marker is seen on a body that does not have the subject's size yet."""
MAX_LOST_FRACTION = 0.1
"""Largest fraction of markers that are seen elsewhere, and omitted."""
REMEDY = "State what they mean: `borelli markers FILE --write map.toml`, edit the map, and use --markers map.toml."
POSED_FRAMES = 60
"""Frames in which the model is posed by its landmarks."""
MAX_RIGID_SD, MIN_PAIR_DISTANCE = 0.010, 0.015
"""[m] Standard deviation of the distance of two markers on one segment, and their least distance."""


def dress_by_landmarks(model: Model, recordings: Sequence[Recording]) -> tuple[Model, tuple[Note, ...]]:
    """Return the model with a marker for each label whose landmark it has, and notes on what labels mean.

    Raises:
        SettingsError: The labels name too few landmarks of the model's bodies.
    """
    labels = list(dict.fromkeys(label for recording in recordings for label in recording.markers))
    readings = interpret_labels(labels)
    chosen = _choose(model, readings, recordings)
    if len({place.body for _, place in chosen}) < MIN_BODIES or len(chosen) < MIN_LANDMARKS:
        _refuse(readings, labels, len(chosen))
    fixed = [one for one, place in chosen if max(place.sd) <= MAX_LANDMARK_SD]
    free = [one for one, place in chosen if max(place.sd) > MAX_LANDMARK_SD]
    # a set of clusters alone is posed by their mean positions
    posing = fixed if len(fixed) >= MIN_LANDMARKS else [one for one, _ in chosen]
    dressed = replace(model, markers=landmark_markers(model, map(_marker_landmark, posing)))
    placed, lost = _place_where_seen(dressed, free, recordings)
    if len(lost) > MAX_LOST_FRACTION * len(chosen):
        raise SettingsError(
            f"The markers {list_names(lost)} are not on the segments that their labels mean (at most "
            f"{1e3 * MAX_DISPLACEMENT:.0f} mm from their usual positions is allowed): some labels are misread. "
            f"{REMEDY}"
        )
    markers = (*landmark_markers(model, map(_marker_landmark, fixed)), *placed)
    return replace(model, markers=markers), _notes(readings, {marker.name for marker in markers}, lost)


def further_landmarks(model: Model, labels: Sequence[str], known: Sequence[str]) -> tuple[Marker, ...]:
    """Return markers of bony landmarks that labels name with certainty and that no known label already has."""
    readings = interpret_labels(labels)
    taken = {(one.landmark, one.side) for one in readings.known if one.label in known}
    own = [
        one
        for one, place in _choose(model, readings, ())
        if one.label not in known
        and one.sure
        and max(place.sd) <= MAX_LANDMARK_SD
        and (one.landmark, one.side) not in taken
    ]
    return landmark_markers(model, map(_marker_landmark, own))


def _choose(
    model: Model, readings: LabelReadings, recordings: Sequence[Recording]
) -> list[tuple[LabelReading, AtlasLandmark]]:
    """Return the readings of markers on the model's bodies, with their places in the atlas; one for each landmark."""
    bodies = {body.name for body in model.bodies}
    result: dict[tuple[str, ...], tuple[LabelReading, AtlasLandmark]] = {}
    for one in sorted(readings.known, key=lambda one: -one.certainty):
        if one.contested or (one.kind == "virtual center" and not readings.keypoints):
            continue
        place = _atlas_place(one)
        if place is None or place.body not in bodies:
            continue
        key: tuple[str, ...] = (one.landmark, one.side)
        if max(place.sd) > MAX_LANDMARK_SD:
            key = (one.label,)
        elif key in result:
            if not _is_rigid_pair(one.label, result[key][0].label, recordings):
                continue
            key = (one.label,)
        result[key] = one, place
    order = {one.label: i for i, one in enumerate(readings.readings)}
    return sorted(result.values(), key=lambda pair: order[pair[0].label])


def _is_rigid_pair(first: str, second: str, recordings: Sequence[Recording]) -> bool:
    """Return whether two markers are at a constant distance from each other that is more than that of one marker."""
    for recording in recordings:
        if first in recording.markers and second in recording.markers:
            pair = [recording.markers.index(first), recording.markers.index(second)]
            points = recording.data["marker_position"].values[:, pair]
            distance = np.linalg.norm(points[:, 0] - points[:, 1], axis=1)
            distance = distance[np.isfinite(distance)]
            if len(distance):
                return bool(distance.std() < MAX_RIGID_SD and distance.mean() > MIN_PAIR_DISTANCE)
    return False


def _place_where_seen(
    dressed: Model, readings: Sequence[LabelReading], recordings: Sequence[Recording]
) -> tuple[tuple[Marker, ...], list[str]]:
    """Return markers between the atlas and where they are seen on their bodies, and labels of those seen elsewhere.

    Both positions are weighted by their variances.
    """
    markers = landmark_markers(dressed, map(_marker_landmark, readings))
    variances = [np.array(place.sd) ** 2 for place in map(_atlas_place, readings) if place is not None]
    seen: dict[str, list[Array]] = {marker.name: [] for marker in markers}
    for recording in recordings:
        for name, at in _seen_positions(dressed, markers, recording).items():
            seen[name].append(at)
    placed, lost = [], []
    for marker, variance in zip(markers, variances, strict=True):
        points = np.concatenate(seen[marker.name]) if seen[marker.name] else np.zeros((0, 3))
        offset = np.median(points, axis=0) - marker.position if len(points) else np.zeros(3)
        if np.linalg.norm(offset) <= MAX_DISPLACEMENT:
            at = np.array(marker.position) + offset * variance / (variance + SEEN_SD**2)
            placed.append(replace(marker, position=vector(at)))
        else:
            lost.append(marker.name)
    return tuple(placed), lost


def _seen_positions(dressed: Model, markers: Sequence[Marker], recording: Recording) -> dict[str, Array]:
    """Return where markers are seen (frames, 3) [m] on the bodies of the model, posed by its own markers."""
    count = np.isfinite(recording.data["marker_position"].values).all(axis=2)
    own = [k for k in match_markers(dressed.markers, recording.markers) if k >= 0]
    frames = np.flatnonzero(count[:, own].sum(axis=1) >= max(MIN_VISIBLE_MARKERS, 0.8 * len(own)))
    if not len(frames):
        return {}
    some = recording.with_data(recording.data.isel(time=frames[:: -(-len(frames) // POSED_FRAMES)]))
    problem = make_ik_problem(dressed, some)
    q, _ = solve_framewise(problem)
    posed = np.isfinite(q).all(axis=1)
    position, rotation, _ = find_body_poses(problem.tree, problem.points, q[posed].copy())
    index = {body.name: i for i, body in enumerate(dressed.bodies)}
    measured = rotate(some.data["marker_position"].values[posed], to_model_axes(dressed).T)
    result = {}
    for marker, k in zip(markers, match_markers(markers, some.markers), strict=True):
        if k >= 0:
            body = index[marker.body]
            local = np.einsum("fji,fj->fi", rotation[:, body], measured[:, k] - position[:, body])
            result[marker.name] = local[np.isfinite(local).all(axis=1)]
    return result


def _atlas_place(reading: LabelReading) -> AtlasLandmark | None:
    """Return the place of a landmark; that on the midline if its segment has none on the side."""
    own = find_in_atlas(reading.landmark, reading.side, reading.kind)
    return own or (None if reading.segment in LIMBS else find_in_atlas(reading.landmark, MIDDLE, reading.kind))


def _marker_landmark(reading: LabelReading) -> MarkerLandmark:
    place = _atlas_place(reading)
    side = reading.side if place is None else place.side
    return MarkerLandmark(reading.label, reading.landmark, side, reading.kind)


def _refuse(readings: LabelReadings, labels: Sequence[str], count: int) -> None:
    read = [f"{one.label} ({one.side} {one.landmark})" for one in readings.known]
    found = f"only {list_names(read)}" if read else "none"
    raise SettingsError(
        f"The labels {list_names(labels, 12)} name {count} landmarks of the body ({found}); at least "
        f"{MIN_LANDMARKS} on {MIN_BODIES} segments are needed. "
        f"{REMEDY}"
    )


def _notes(readings: LabelReadings, used: set[str], lost: Sequence[str]) -> tuple[Note, ...]:
    unsure = [one.label for one in readings.known if one.label in used and not one.sure]
    text = (
        f"Markers are put on the model by the landmarks that their labels mean: {len(used)} of {len(readings.readings)}"
    )
    if readings.conventions:
        name, fraction = readings.conventions[0]
        text += f"; {name} contains {100.0 * fraction:.0f} % of the labels"
    notes = [Note(f"{text}.", "inferred", "--markers map.toml (borelli markers lists them)", code="marker_landmarks")]
    if unsure:
        text = f"The meaning of some labels is not certain: {list_names(unsure, 12)}."
        notes.append(Note(text, "inferred", "borelli markers, --markers map.toml", code="unsure_labels"))
    if lost:
        text = f"Markers that are far from the segments of their labels are not used: {list_names(lost)}."
        notes.append(Note(text, "problem", "borelli markers, --markers map.toml", code="misplaced_markers"))
    return tuple(notes)
