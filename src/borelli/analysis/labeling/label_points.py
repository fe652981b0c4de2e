"""Labels of unnamed points: landmark and side of each, found by posing the generic human to them.

Runs that share little (other frames, other starts, places that do not move), and other marker sets, decide the
certainty: a label is sure only where all of them agree and all further conditions hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from borelli.analysis.labeling.hypotheses import Run, RunSettings, is_known_set, run_all_hypotheses, run_hypotheses
from borelli.analysis.labeling.posing import HeightPrior
from borelli.analysis.labeling.rivals import Margins, rival_margins
from borelli.analysis.labeling.upright_frames import choose_upright_frames
from borelli.kernels.compile_cache import ensure_compiled
from borelli.model.model import Vector
from borelli.model.transforms import vector
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

RUNS = (
    RunSettings(7, 0.5, 8, further=False, move=True),
    RunSettings(6, 0.15, 8, further=True, move=True),
    RunSettings(5, 0.85, 12, further=False, move=False),
)
"""Runs that share little."""
COMPARED_HYPOTHESES = 4
"""Hypotheses, the best of the first run, that the other runs compare."""
MIN_POINTS, MAX_POINTS = 6, 300
"""Numbers of points with which a body is looked for."""
HEIGHT_RANGE = (1.4, 2.05)
"""[m] Heights of the posed body outside of which no label is sure."""
MAX_SURE_DISTANCE = 0.04
"""[m] Distance between a point and its place beyond which its label is not sure."""
MAX_SURE_SCORE = 0.042
"""[m] Mean distance of all points beyond which no label is sure."""
MIN_EXTENT = 0.2
"""[m] Points nearer to each other are not those of a body: a forearm with hand is longer."""
MIN_MARGIN = 0.01
"""[m] A label is sure only if free places of other landmarks are farther by this than its own."""
UNKNOWN_SET_MARGIN = 0.04
"""[m] The same for segments if the points are not those of a known marker set; landmarks are never sure then."""
UNSURE_SEGMENTS = ("forearm", "hand", "head")
"""Segments that are never sure if the marker set is not known.

A marker at the wrist may be on the forearm or the hand. Four markers at the corners of a head look like front, back and
sides of a head that is turned.
"""
UNSURE_LANDMARKS = (
    "wrist_radial", "wrist_ulnar", "wrist", "mt1", "mt1_base", "mt2", "mt5", "mt5_base", "hallux", "midfoot_lateral",
)  # fmt: skip
"""Landmarks that are never sure: the forearm may be rotated, and those of the forefoot are near each other."""


@dataclass(frozen=True)
class PointLabel:
    """Landmark of a point, found by geometry.

    Attributes:
        landmark: Landmark, or segment for a point of a cluster; "" if none was found.
        side: "left", "right" or "middle".
        kind: "landmark" or "cluster".
        body: Body of `human`.
        segment: Segment of the body.
        position: Position [m] of its place on the body of the generic human.
        distance: Distance [m] from the place of the landmark on the generic body.
        agreeing_runs: Number of runs, of `len(RUNS)`, that found the same segment and side.
        sure_segment: Whether segment and side are sure.
        sure_landmark: Whether the landmark is sure as well.
    """

    landmark: str
    side: str
    kind: str
    body: str
    segment: str
    position: Vector
    distance: float
    agreeing_runs: int
    sure_segment: bool
    sure_landmark: bool


@dataclass(frozen=True)
class PointLabels:
    """Labels of unnamed points.

    Attributes:
        labels: One per point; None where nothing was found.
        marker_set: Marker set or convention that the points resemble; "" if none.
        part: Part of the body that has markers, one of `candidate_places.PARTS`.
        height: Height [m] of the posed body.
        score: Mean distance [m] of the points from their places.
        next_part: The next best part and its score [m].
        uncertainties: Reasons why no label is sure; empty if there are none.
    """

    labels: tuple[PointLabel | None, ...]
    marker_set: str
    part: str
    height: float
    score: float
    next_part: tuple[str, float]
    uncertainties: tuple[str, ...]


def label_points(points: Array, height: float = np.nan, without: tuple[str, ...] = ()) -> PointLabels | None:
    """Find the landmarks of unnamed points by posing the generic human to them.

    Args:
        points: Points (frames, points, 3) [m], z up; NaN where missing. A column is the same marker in all frames.
        height: Height of the subject [m], if known.
        without: Marker sets and conventions that are treated as unknown.

    Returns:
        A label per point; None if the points are too few or too many for a body.
    """
    ensure_compiled()
    count = int(visible(points).any(axis=0).sum())
    if not MIN_POINTS <= count <= MAX_POINTS or not len(choose_upright_frames(points, RUNS[0].frames)):
        return None
    prior = HeightPrior(height, 0.03) if np.isfinite(height) else HeightPrior()
    first = run_all_hypotheses(points, RUNS[0], prior, without)
    compared = tuple(first.scores)[:COMPARED_HYPOTHESES]
    runs = [first, *(run_hypotheses(points, settings, compared, prior, without) for settings in RUNS[1:])]
    uncertainties = (*_uncertainties(runs), *_extent_reasons(points))
    margins = [rival_margins(points, run) for run in runs]
    labels = tuple(_point_label(runs, margins, point, not uncertainties) for point in range(points.shape[1]))
    other = next(one for one in first.scores if one.part != first.hypothesis.part)
    next_part = (other.part, first.scores[other])
    return PointLabels(labels, *first.hypothesis, first.height, first.mean_distance, next_part, uncertainties)


def _uncertainties(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the reasons why no label of these runs is sure."""
    reasons = []
    parts = [run.hypothesis.part for run in runs]
    if len(set(parts)) > 1:
        reasons.append(f"runs disagree about the part of the body ({', '.join(parts)})")
    if not all(HEIGHT_RANGE[0] <= run.height <= HEIGHT_RANGE[1] for run in runs):
        shown = ", ".join(f"{run.height:.2f}" for run in runs)
        reasons.append(f"the height would be {shown} m (expected {HEIGHT_RANGE[0]} to {HEIGHT_RANGE[1]})")
    worst = max(run.mean_distance for run in runs)
    if worst > MAX_SURE_SCORE:
        reasons.append(f"points are {1e3 * worst:.0f} mm from their places (at most {1e3 * MAX_SURE_SCORE:.0f})")
    if parts[0] in ("right leg", "left leg"):
        reasons.append("one leg alone does not show its side")
    return tuple(reasons)


def _extent_reasons(points: Array) -> list[str]:
    """Return a reason if the points of all frames are too near to each other for a body."""
    seen = points[visible(points).sum(axis=1) >= MIN_POINTS]
    extent = float(np.nanmax(np.nanmax(seen, axis=1) - np.nanmin(seen, axis=1), initial=0.0))
    if extent >= MIN_EXTENT:
        return []
    return [f"the points are within {1e3 * extent:.0f} mm of each other (at least {1e3 * MIN_EXTENT:.0f} expected)"]


def _point_label(runs: Sequence[Run], margins: Sequence[Margins], point: int, sure: bool) -> PointLabel | None:
    found = [int(run.posing.place[0, point]) for run in runs]
    if found[0] < 0:
        return None
    places, i = runs[0].places, found[0]
    segment, side, landmark = places.segment[i], places.side[i], places.landmark[i]
    same = [
        (run, k)
        for run, k in zip(runs, found, strict=True)
        if k >= 0 and (run.places.segment[k], run.places.side[k]) == (segment, side)
    ]
    near = all(run.posing.distance[0, point] < MAX_SURE_DISTANCE for run in runs)
    known = is_known_set(runs[0].hypothesis, runs[0].places, runs[0].posing)
    margin = MIN_MARGIN if known else UNKNOWN_SET_MARGIN
    alone = all(one.segment[point] > margin for one in margins) and (known or segment not in UNSURE_SEGMENTS)
    others = [(one.places, int(one.place[point])) for one in runs[0].alternatives]
    confirmed = all(k >= 0 and (one.segment[k], one.side[k]) == (segment, side) for one, k in others)
    sure_segment = sure and len(same) == len(runs) and near and alone and confirmed
    sure_landmark = (
        sure_segment
        and known
        and all(one.landmark[k] == landmark for one, k in others)
        and all(run.places.landmark[k] == landmark and run.places.cost[k] == 0.0 for run, k in same)
        and all(margin.landmark[point] > MIN_MARGIN for margin in margins)
        and places.kind[i] == "landmark"
        and landmark not in UNSURE_LANDMARKS
    )
    return PointLabel(
        landmark=landmark,
        side=side,
        kind=places.kind[i],
        body=places.body[i],
        segment=segment,
        position=vector(places.position[i]),
        distance=float(runs[0].posing.distance[0, point]),
        agreeing_runs=len(same),
        sure_segment=sure_segment,
        sure_landmark=sure_landmark,
    )
