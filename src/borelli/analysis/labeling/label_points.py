"""Labels of unnamed points: landmark and side of each, found by posing the generic human to them.

Which part of the body has markers, its height and heading are hypotheses; each is posed, and the one with the least
distance between points and places is chosen. Runs that share little (other frames, other starts, places that do not
move) decide the certainty: a label is sure only where all of them agree and all further conditions hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.labeling.candidate_places import part_places
from borelli.analysis.labeling.generic_body import HEIGHT, Places, Poses, PoseSearch
from borelli.analysis.labeling.posing import (
    MAX_OFFSET,
    WIDTHS,
    HeightPrior,
    Posing,
    assign,
    correspondences,
    fit_poses,
    make_starts,
    point_distances,
)
from borelli.analysis.labeling.upright_frames import choose_upright_frames
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

ARMS = (
    {},
    {"elbow_flexion": 1.6},
    {"shoulder_flexion": 1.4, "elbow_flexion": 0.3},
    {"shoulder_flexion": 2.7},
    {"shoulder_adduction": -1.3},
)
"""Arms of further starts: hanging, bent, forward, up and aside [rad]."""
GOOD_SCORE = 0.045
"""[m] Mean distance above which further starts are tried."""
EMPTY_SEGMENT_PENALTY = 0.01
"""[m] added to the score for each segment of the part that has no point."""
HEIGHT_PENALTY = 0.01
"""[m] added to the score for a height one standard deviation from the expected one, growing as the square."""


class Run(NamedTuple):
    """Best hypothesis of one run: part of the body, places and posing (one start); and the others' scores [m]."""

    part: str
    places: Places
    posing: Posing
    frames: NDArray[np.int64]
    score: float
    others: dict[str, float]


@dataclass(frozen=True)
class RunSettings:
    """Frames, headings and starts of a run."""

    frames: int
    phase: float
    headings: int
    further: bool
    move: bool


RUNS = (
    RunSettings(7, 0.5, 8, further=False, move=True),
    RunSettings(6, 0.15, 8, further=True, move=True),
    RunSettings(5, 0.85, 12, further=False, move=False),
)
"""Runs that share little."""


def run_hypotheses(points: Array, settings: RunSettings, parts: Sequence[str], prior: HeightPrior) -> Run:
    """Pose every part of the body to the points (frames, points, 3); return the best."""
    frames = choose_upright_frames(points, settings.frames, settings.phase)
    chosen = points[frames]
    headings = np.arange(settings.headings) * 2.0 * np.pi / settings.headings
    results: dict[str, tuple[float, Posing]] = {}
    for part in parts:
        results[part] = _pose_part(chosen, part, headings, ({},), prior)
    best = min(results, key=lambda part: results[part][0])
    if settings.further or results[best][0] > GOOD_SCORE:
        for part in sorted(results, key=lambda part: results[part][0])[:2]:
            again = _pose_part(chosen, part, headings, ARMS, prior)
            results[part] = min(results[part], again, key=lambda pair: pair[0])
        best = min(results, key=lambda part: results[part][0])
    places, posing = part_places(best), results[best][1]
    if settings.move:
        posing = move_places(chosen, places, posing, prior)
    scores = {part: score for part, (score, _) in results.items()}
    return Run(best, places, posing, frames, scores.pop(best), scores)


def _pose_part(
    points: Array, part: str, headings: Array, changes: tuple[dict[str, float], ...], prior: HeightPrior
) -> tuple[float, Posing]:
    """Return the total score [m] and the best start of one part of the body."""
    places = part_places(part)
    search = PoseSearch(places)
    starts = make_starts(points, places, headings, changes=changes)
    posing = fit_poses(search, points, starts, places, None, prior)
    totals = [_total_score(places, posing, i, prior) for i in range(len(posing.place))]
    best = int(np.argmin(totals))
    return totals[best], posing.select(np.array([best]))


def _total_score(places: Places, posing: Posing, start: int, prior: HeightPrior) -> float:
    segment = list(zip(places.segment, places.side, strict=True))
    used = {segment[i][0] for i in posing.place[start] if i >= 0}
    empty = len({name for name, _ in segment} - used)
    deviation = (HEIGHT * posing.poses.scale[start] - prior.height) / prior.sd
    return float(posing.score[start]) + EMPTY_SEGMENT_PENALTY * empty + HEIGHT_PENALTY * float(deviation) ** 2


def move_places(points: Array, places: Places, posing: Posing, prior: HeightPrior, rounds: int = 3) -> Posing:
    """Let places move on their bodies towards their points, at most by `MAX_OFFSET`, and assign the points again.

    The distances of the result are from the original places.
    """
    search, seen = PoseSearch(places), visible(points)
    filled = np.where(seen[..., None], points, 0.0)
    poses, place = posing.poses, posing.place
    for _ in range(rounds):
        local = local_positions(search, filled, seen, poses, place[0])
        rows = np.flatnonzero(np.isfinite(local[:, 0]))
        chosen = place[0][rows]
        offset = (local[rows] - places.position[chosen]) * 0.7
        length = np.linalg.norm(offset, axis=1, keepdims=True)
        search.points.position[:] = places.position
        search.points.position[chosen] += offset * np.minimum(1.0, MAX_OFFSET / np.maximum(length, 1e-9))
        positions = search.place_positions(poses)
        target, weight = correspondences(positions, filled, seen, place, float(WIDTHS[-1]))
        poses = search.solve(poses, target, weight, 5)
        place = assign(search.place_positions(poses)[0], filled, seen, 0.15, places.cost)[None]
    search.points.position[:] = places.position
    return Posing(poses, place, point_distances(search.place_positions(poses), filled, seen, place))


def local_positions(
    search: PoseSearch, points: Array, seen: NDArray[np.bool_], poses: Poses, place: NDArray[np.int64]
) -> Array:
    """Return the mean position (points, 3) [m at scale 1] of each point in the frame of its place's body."""
    position, rotation, _ = search.body_poses(poses.q[0])
    body = search.points.body[np.maximum(place, 0)]
    offset = points / poses.scale[0] - position[:, body]
    local = np.einsum("fpij,fpi->fpj", rotation[:, body], offset)
    count = seen.sum(axis=0)
    mean = (local * seen[..., None]).sum(axis=0) / np.maximum(count, 1)[:, None]
    mean[(count == 0) | (place < 0)] = np.nan
    return np.asarray(mean)


HEIGHT_RANGE = (1.4, 2.05)
"""[m] Heights of the posed body outside of which no label is sure."""
MAX_SURE_DISTANCE = 0.04
"""[m] Distance between a point and its place beyond which its label is not sure."""
MAX_SURE_SCORE = 0.045
"""[m] Mean distance of all points beyond which no label is sure."""
UNSURE_LANDMARKS = ("wrist_radial", "wrist_ulnar", "wrist")
"""Landmarks that geometry cannot tell apart: the forearm may be rotated."""


@dataclass(frozen=True)
class PointLabel:
    """Landmark of a point, found by geometry.

    Attributes:
        landmark: Landmark, or segment for a point of a cluster; "" if none was found.
        side: "left", "right" or "middle".
        kind: "landmark" or "cluster".
        body: Body of `human`.
        segment: Segment of the body.
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
    distance: float
    agreeing_runs: int
    sure_segment: bool
    sure_landmark: bool


@dataclass(frozen=True)
class PointLabels:
    """Labels of unnamed points.

    Attributes:
        labels: One per point; None where nothing was found.
        part: Part of the body that has markers, one of `PARTS`.
        height: Height [m] of the posed body.
        score: Mean distance [m] of the points from their places.
        next_part: The next best part and its score [m].
        doubts: Reasons why no label is sure; empty if there are none.
    """

    labels: tuple[PointLabel | None, ...]
    part: str
    height: float
    score: float
    next_part: tuple[str, float]
    doubts: tuple[str, ...]


def label_points(points: Array, height: float = np.nan) -> PointLabels | None:
    """Find the landmarks of unnamed points by posing the generic human to them.

    Args:
        points: Points (frames, points, 3) [m], z up; NaN where missing. A column is the same marker in all frames.
        height: Height of the subject [m], if known.

    Returns:
        A label per point; None if the points are too few.
    """
    ensure_compiled()
    if visible(points).any(axis=0).sum() < MIN_POINTS:
        return None
    prior = HeightPrior(height, 0.03) if np.isfinite(height) else HeightPrior()
    first = run_hypotheses(points, RUNS[0], tuple(PARTS), prior)
    ranked = sorted(first.others, key=lambda part: first.others[part])
    parts = (first.part, *[part for part in ranked if first.others[part] < PART_RATIO * first.score][:1])
    runs = [first, *(run_hypotheses(points, settings, parts, prior) for settings in RUNS[1:])]
    doubts = _doubts(runs)
    labels = tuple(_point_label(runs, point, not doubts) for point in range(points.shape[1]))
    next_part = (ranked[0], first.others[ranked[0]])
    tallness = HEIGHT * float(first.posing.poses.scale[0])
    return PointLabels(labels, first.part, tallness, float(first.posing.score[0]), next_part, doubts)


MIN_POINTS = 6
"""Points without which no body is looked for."""
PART_RATIO = 1.5
"""Ratio to the best score below which the next part of the body is posed again by the other runs."""


def _doubts(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the reasons why no label of these runs is sure."""
    doubts = []
    if len({run.part for run in runs}) > 1:
        doubts.append(f"runs disagree about the part of the body ({', '.join(run.part for run in runs)})")
    heights = [HEIGHT * float(run.posing.poses.scale[0]) for run in runs]
    if not all(HEIGHT_RANGE[0] <= value <= HEIGHT_RANGE[1] for value in heights):
        shown = ", ".join(f"{value:.2f}" for value in heights)
        doubts.append(f"the height would be {shown} m (expected {HEIGHT_RANGE[0]} to {HEIGHT_RANGE[1]})")
    worst = max(float(run.posing.score[0]) for run in runs)
    if worst > MAX_SURE_SCORE:
        doubts.append(f"points are {1e3 * worst:.0f} mm from their places (at most {1e3 * MAX_SURE_SCORE:.0f})")
    if runs[0].part in ("right leg", "left leg"):
        doubts.append("one leg alone does not show its side")
    return tuple(doubts)


def _point_label(runs: Sequence[Run], point: int, sure: bool) -> PointLabel | None:
    found = [(run, int(run.posing.place[0, point])) for run in runs if run.posing.place[0, point] >= 0]
    if not found or found[0][0] is not runs[0]:
        return None
    places, i = runs[0].places, found[0][1]
    segment, side, landmark = places.segment[i], places.side[i], places.landmark[i]
    same = [(run, k) for run, k in found if (run.places.segment[k], run.places.side[k]) == (segment, side)]
    far = max(float(run.posing.distance[0, point]) for run in runs)
    sure_segment = sure and len(same) == len(runs) and far < MAX_SURE_DISTANCE
    alike = all(run.places.landmark[k] == landmark for run, k in same)
    sure_landmark = (
        sure_segment and alike and places.kind[i] == "landmark" and landmark not in UNSURE_LANDMARKS
    )
    distance = float(runs[0].posing.distance[0, point])
    return PointLabel(
        landmark, side, places.kind[i], places.body[i], segment, distance, len(same), sure_segment, sure_landmark
    )
