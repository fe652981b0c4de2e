"""Uncertain labels read by geometry: contested ones, and unsure ones whose markers are far from what they name.

The generic human is posed by the other labels. An uncertain label gets the reading whose place on the posed body is
near its marker; if none of its readings is, the segment at which the marker is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.labeling.check_labels import FRAMES, MIN_MARKERS, MIN_SEGMENTS, labeled_places, pose_labeled
from borelli.analysis.labeling.generic_body import Places, Poses, PoseSearch
from borelli.analysis.labeling.posing import HeightPrior, mean_squared_distances
from borelli.analysis.labeling.upright_frames import choose_upright_frames
from borelli.kernels.compile_cache import ensure_compiled
from borelli.model.landmark_atlas import MarkerLandmark, find_in_atlas, landmark_atlas
from borelli.numerics.vectors import Array
from borelli.recording.labels.conventions import MIDDLE, Meaning
from borelli.recording.labels.interpret import LIMBS, LabelReading, LabelReadings
from borelli.recording.landmarks import visible

MIN_MISPLACED = 0.25
"""[m] Distance from its place beyond which a marker is not at what its uncertain label names."""
MAX_MISPLACED_FRACTION = 0.25
"""Largest fraction of misplaced markers; with more, the body is not posed well enough to decide."""
MAX_POSED_DISTANCE = 0.08
"""[m] Largest mean distance of the other markers from their places."""
MAX_DISTANCE = {"landmark": 0.10, "loose": 0.20}
"""[m] Largest distance from the place of a reading on bone, and on a segment at no fixed place."""
MAX_FIXED_SD = 0.025
"""[m] Standard deviation above which a landmark has no fixed place."""
MIN_RATIO = 2.0
"""Least ratio of the distance of the next reading, relative to its largest, to that of the best."""
MIN_SEGMENT_RATIO = 1.3
"""Least ratio of the distance of the nearest place on another segment to that on the nearest segment."""
CERTAINTIES = {"reading": 0.7, "segment": 0.5}
"""Certainty of a reading that geometry chooses among those of the label, and of one by the segment alone."""


def read_uncertain_labels(
    points: Array, readings: LabelReadings, height: float = np.nan
) -> tuple[tuple[LabelReading, ...], tuple[str, ...]]:
    """Return readings of uncertain labels by geometry, and the uncertain labels that it cannot read.

    Args:
        points: Marker positions (frames, markers, 3) [m], z up; NaN where missing.
        readings: Readings of the labels.
        height: Height of the subject [m], if known.
    """
    contested = [i for i, one in enumerate(readings.readings) if one.contested and visible(points[:, i]).any()]
    if not contested and all(one.sure for one in readings.known):
        return (), ()
    body = _pose(points, readings, height)
    if body is None:
        return (), tuple(readings.readings[i].label for i in contested)
    frames, poses, misplaced = body
    found, unread = [], []
    for i in sorted([*contested, *misplaced]):
        one = readings.readings[i]
        new = _read(points[frames][:, [i]], one, poses)
        unread += [one.label] if new is None else []
        found += [new] if new is not None else []
    return tuple(found), tuple(unread)


def marker_landmark(one: LabelReading, keypoints: bool) -> MarkerLandmark | None:
    """Return the landmark of a marker that its label names without contest; None if there is none."""
    if not one.landmark or one.contested or (one.kind == "virtual center" and not keypoints):
        return None
    return MarkerLandmark(one.label, one.landmark, one.side, one.kind)


def _pose(points: Array, readings: LabelReadings, height: float) -> tuple[NDArray[np.int64], Poses, list[int]] | None:
    """Return frames, poses by the undisputed labels, and the columns of misplaced markers; None without a body."""
    markers = [marker_landmark(one, readings.keypoints) for one in readings.readings]
    columns, places = labeled_places(markers)
    kept = [k for k, column in enumerate(columns) if visible(points[:, column]).any()]
    columns, places = [columns[k] for k in kept], places.select(kept)
    if len(columns) < MIN_MARKERS or len(set(places.segment)) < MIN_SEGMENTS:
        return None
    ensure_compiled()
    frames = choose_upright_frames(points[:, columns], FRAMES)
    if not len(frames):
        return None
    prior = HeightPrior(height, 0.03) if np.isfinite(height) else HeightPrior()
    own = points[frames][:, columns]
    posing = pose_labeled(own, places, prior)
    far = [
        k
        for k, distance in enumerate(posing.distance[0])
        if distance > MIN_MISPLACED and not readings.readings[columns[k]].sure
    ]
    if len(far) > MAX_MISPLACED_FRACTION * len(columns):
        return None
    if far:
        others = [k for k in range(len(columns)) if k not in far]
        posing = pose_labeled(own[:, others], places.select(others), prior)
    if posing.score[0] > MAX_POSED_DISTANCE:
        return None
    return frames, posing.poses, [columns[k] for k in far]


def _read(point: Array, reading: LabelReading, poses: Poses) -> LabelReading | None:
    """Return the reading of a label whose place is near the point (frames, 1, 3); None if none is nearest."""
    meanings = [Meaning(reading.landmark, reading.side, reading.kind), *(other for other, _ in reading.others)]
    meanings = [one for one in meanings if find_in_atlas(one.landmark, one.side, one.kind) is not None]
    distance = _distances(point, labeled_places([MarkerLandmark("", *one) for one in meanings])[1], poses)
    relative = distance / np.array([_max_distance(one) for one in meanings])
    order = np.argsort(relative, kind="stable")
    shown = ", ".join(f"{_text(meanings[i])} {1e3 * distance[i]:.0f} mm" for i in order[:2])
    if len(order) and relative[order[0]] < 1.0:
        if len(order) > 1 and relative[order[1]] < MIN_RATIO * relative[order[0]]:
            return None
        return _changed(reading, meanings[order[0]], "reading", f"distance from {shown}")
    near = _segment_reading(point, poses)
    if near is None:
        return None
    meaning, nearest = near
    evidence = f"{1e3 * nearest:.0f} mm from a place on this segment; from what it names: {shown}"
    return _changed(reading, meaning, "segment", evidence)


def _changed(reading: LabelReading, meaning: Meaning, how: str, evidence: str) -> LabelReading:
    return replace(
        reading, landmark=meaning.landmark, side=meaning.side, segment=meaning.segment, kind=meaning.kind,
        certainty=CERTAINTIES[how], evidence=f"geometry: {evidence}", others=(),
    )  # fmt: skip


@cache
def _atlas() -> tuple[tuple[Meaning, ...], Places]:
    """Return all landmarks on skin with their places."""
    common = [one for one in landmark_atlas() if one.kind in ("landmark", "cluster") and one.conventions]
    meanings = tuple(Meaning(one.name, one.side, one.kind) for one in common)
    return meanings, labeled_places([MarkerLandmark("", *one) for one in meanings])[1]


def _segment_reading(point: Array, poses: Poses) -> tuple[Meaning, float] | None:
    """Return a landmark without a fixed place on the segment at a point, and the distance [m] that shows it."""
    meanings, places = _atlas()
    distance = _distances(point, places, poses)
    limbs = [(one.segment, one.side if one.segment in LIMBS else "") for one in meanings]
    nearest = int(np.argmin(distance))
    same = [i for i in range(len(meanings)) if limbs[i] == limbs[nearest]]
    others = min(distance[i] for i in range(len(meanings)) if limbs[i] != limbs[nearest])
    if distance[nearest] > MAX_DISTANCE["loose"] or others < MIN_SEGMENT_RATIO * distance[nearest]:
        return None
    loose = [i for i in same if _max_distance(meanings[i]) == MAX_DISTANCE["loose"]] or same
    loose = [i for i in loose if meanings[i].side == MIDDLE] or loose
    return meanings[loose[int(np.argmin(distance[loose]))]], float(distance[nearest])


def _distances(point: Array, places: Places, poses: Poses) -> Array:
    """Return the RMS distance [m] (places,) of a point (frames, 1, 3) from places on the posed body."""
    seen = visible(point)
    filled = np.where(seen[..., None], point, 0.0)
    if not seen.any() or not len(places.landmark):
        return np.full(len(places.landmark), np.inf)
    return np.sqrt(mean_squared_distances(PoseSearch(places).place_positions(poses)[0], filled, seen, 10.0)[0])


def _max_distance(meaning: Meaning) -> float:
    place = find_in_atlas(meaning.landmark, meaning.side, meaning.kind)
    fixed = place is not None and max(place.sd) <= MAX_FIXED_SD
    return MAX_DISTANCE["landmark" if fixed else "loose"]


def _text(meaning: Meaning | Sequence[str]) -> str:
    return f"{meaning[1]} {meaning[0]}"
