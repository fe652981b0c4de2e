"""Rival landmarks: other landmarks at which a labeled point could be, whatever the marker set."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from borelli.analysis.labeling.check_labels import labeled_places
from borelli.analysis.labeling.generic_body import Places, PoseSearch
from borelli.analysis.labeling.hypotheses import Run
from borelli.analysis.labeling.posing import mean_squared_distances
from borelli.model.landmark_atlas import MarkerLandmark, landmark_atlas
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

MIN_CONVENTIONS = 2
"""Landmarks of fewer conventions are no rivals."""


class Margins(NamedTuple):
    """Distances [m] (points,) by which the nearest free rival is farther than the point's own place."""

    segment: Array
    """Rivals on another segment or side."""
    landmark: Array
    """All rivals."""


@cache
def _rival_places() -> Places:
    common = (one for one in landmark_atlas() if one.kind == "landmark" and one.conventions >= MIN_CONVENTIONS)
    return labeled_places([MarkerLandmark("", one.name, one.side, one.kind) for one in common])[1]


def rival_margins(points: Array, run: Run) -> Margins:
    """Return how much nearer each point (frames, points, 3) is to its place than to rivals.

    A rival that is nearer to another point, which has its label, is not free.
    """
    chosen, rivals = points[run.frames], _rival_places()
    seen = visible(chosen)
    filled = np.where(seen[..., None], chosen, 0.0)
    positions = PoseSearch(rivals).place_positions(run.posing.poses)[0]
    distance = np.sqrt(mean_squared_distances(positions, filled, seen, 1.0))
    place = run.posing.place[0]
    names, bodies = (list(zip(column, rivals.side, strict=True)) for column in (rivals.landmark, rivals.segment))
    own_bodies = list(zip(run.places.segment, run.places.side, strict=True))
    taken: dict[tuple[str, str], float] = {}
    for point in np.flatnonzero(place >= 0):
        key = (run.places.landmark[place[point]], run.places.side[place[point]])
        columns = [k for k, name in enumerate(names) if name == key]
        taken[key] = min([taken.get(key, np.inf), *(float(distance[point, k]) for k in columns)])
    segment, landmark = np.full((2, len(place)), -np.inf)
    for point in np.flatnonzero((place >= 0) & seen.any(axis=0)):
        i, own = place[point], run.posing.distance[0, point]
        mine = (run.places.landmark[i], run.places.side[i])
        segment[point] = landmark[point] = np.inf
        for k, key in enumerate(names):
            margin = float(distance[point, k] - own)
            if key != mine and not taken.get(key, np.inf) < distance[point, k]:
                landmark[point] = min(landmark[point], margin)
                if bodies[k] != own_bodies[i]:
                    segment[point] = min(segment[point], margin)
    return Margins(segment, landmark)
