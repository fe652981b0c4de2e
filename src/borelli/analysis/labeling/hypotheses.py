"""Hypotheses about unnamed points: which part of the body has markers, of which marker set, at which heading.

Each hypothesis is posed to the points, and the one with the least distance between points and places is chosen. A
marker set is a preference only: other landmarks remain possible, at a cost, so that an unknown set is labeled by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.labeling.candidate_places import (
    PARTS,
    candidate_places,
    list_candidate_sets,
    mirror_indices,
)
from borelli.analysis.labeling.generic_body import HEIGHT, Places, PoseSearch
from borelli.analysis.labeling.label_by_patterns import PatternLabels, label_by_patterns
from borelli.analysis.labeling.posing import (
    MAX_DISTANCE,
    MAX_OFFSET,
    WIDTHS,
    HeightPrior,
    Posing,
    assign,
    correspondences,
    fit_poses,
    local_positions,
    make_starts,
    point_distances,
)
from borelli.analysis.labeling.refine_posing import put_on_midline, refine_posing
from borelli.analysis.labeling.upright_frames import choose_upright_frames
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

STARTS: tuple[dict[str, float], ...] = (
    {"elbow_flexion": 1.6},
    {"shoulder_flexion": 1.4, "elbow_flexion": 0.3},
    {"shoulder_flexion": 2.7},
    {"shoulder_adduction": -1.3},
    {"hip_flexion_r": 0.9, "knee_flexion_r": 1.2, "hip_flexion_l": -0.2, "knee_flexion_l": 0.6, "elbow_flexion": 1.5},
    {"hip_flexion_l": 0.9, "knee_flexion_l": 1.2, "hip_flexion_r": -0.2, "knee_flexion_r": 0.6, "elbow_flexion": 1.5},
)
"""Angles [rad] of further starts: arms bent, forward, up and aside; running on either leg."""
GOOD_SCORE = 0.035
"""[m] Score above which further starts are tried."""
EMPTY_SEGMENT_PENALTY = 0.01
"""[m] added to the score for each segment of the part that has no point."""
HEIGHT_PENALTY = 0.01
"""[m] added to the score for a height one standard deviation from the expected one, growing as the square."""
UNUSED_PENALTY = 0.01
"""[m] added to the score if no place of the preferred marker set has a point, in proportion."""
SINGLE_PENALTY = 0.03
"""[m] added to the score if no place with a point has its mirror image, in proportion."""
PART_PENALTY = 0.003
"""[m] added to the score if only a part of the body has markers."""
COMPARED_PARTS = 3
"""Parts of the body, the best ones, with which marker sets are compared."""
MIN_PLACES = 6
"""Places of a marker set on a part of the body, without which it is not compared."""
REFINED_STARTS, REFINED_WIDTHS = 3, 5
"""Best starts of a marker set alone that are fitted again, with the last widths, with the other places."""
PATTERN_PARTS, PATTERN_MARGIN = 3, 0.03
"""Parts of the body that are labeled by patterns: the best ones, with scores [m] within this of the best."""
MAX_OTHER_FRACTION, MAX_UNUSED_FRACTION = 0.1, 0.2
"""Fractions of points at places of other sets, and of places of the set without a point, in a known marker set."""
REFINED_HYPOTHESES = 3
"""Hypotheses, the best ones, whose posing is refined."""
OFFSET_FRACTION = 0.7
"""Fraction of the offset of a point from its place by which the place moves in each round."""


class Hypothesis(NamedTuple):
    """Preferred marker set ("": none), and part of the body that has markers."""

    marker_set: str
    part: str


@dataclass(frozen=True)
class RunSettings:
    """Frames, headings and starts of a run."""

    frames: int
    phase: float
    headings: int
    further: bool
    move: bool


class Alternative(NamedTuple):
    """Places of another hypothesis, and the place of each point (points,)."""

    places: Places
    place: NDArray[np.int64]


class Run(NamedTuple):
    """Best hypothesis of a run with its places and posing (one start); scores [m] of all hypotheses, the best first.

    Scores are those of marker sets. Alternatives are the same part of the body without a preferred marker set, and the
    next best marker set.
    """

    hypothesis: Hypothesis
    places: Places
    posing: Posing
    frames: NDArray[np.int64]
    scores: dict[Hypothesis, float]
    alternatives: tuple[Alternative, ...]
    mean_distance: float
    """Mean distance [m] between points and places, of the hypothesis or of the best marker set if that is larger.

    Patterns have many places, so that wrong labels are nearer to them.
    """

    @property
    def height(self) -> float:
        """Height of the posed body [m]."""
        return HEIGHT * float(self.posing.poses.scale[0])


def run_all_hypotheses(points: Array, settings: RunSettings, prior: HeightPrior, without: tuple[str, ...] = ()) -> Run:
    """Pose all parts of the body without a preferred marker set, then all sets with the best parts."""
    parts = [Hypothesis("", part) for part in PARTS]
    rough = _score(points, settings, parts, prior, without)
    best = sorted(rough, key=lambda one: rough[one][0])[:COMPARED_PARTS]
    sets = [name for name in list_candidate_sets() if name not in without]
    results = rough | _score(
        points, settings, [Hypothesis(name, one.part) for one in best for name in sets], prior, without
    )
    return _best_run(points, settings, results, prior, without)


def run_hypotheses(
    points: Array,
    settings: RunSettings,
    hypotheses: Sequence[Hypothesis],
    prior: HeightPrior,
    without: tuple[str, ...] = (),
) -> Run:
    """Pose hypotheses to points (frames, points, 3); return the best.

    Args:
        points: Points [m], NaN where missing.
        settings: Frames, headings and starts.
        hypotheses: Hypotheses to compare.
        prior: Prior of the height.
        without: Marker sets that are not known.
    """
    results = _score(points, settings, hypotheses, prior, without)
    return _best_run(points, settings, results, prior, without)


_Results = dict[Hypothesis, tuple[float, Posing]]


def _score(
    points: Array,
    settings: RunSettings,
    hypotheses: Sequence[Hypothesis],
    prior: HeightPrior,
    without: tuple[str, ...],
    starts: tuple[dict[str, float], ...] = ({},),
) -> _Results:
    chosen = points[choose_upright_frames(points, settings.frames, settings.phase)]
    headings = np.arange(settings.headings) * 2.0 * np.pi / settings.headings
    results = {}
    for one in hypotheses:
        places = candidate_places(one.marker_set, one.part, without)
        own = np.flatnonzero(places.cost == 0.0) if one.marker_set else np.arange(len(places.cost))
        if len(own) < MIN_PLACES:
            continue
        strict = places.select(own)
        begin = make_starts(chosen, strict, headings, changes=starts)
        posing = fit_poses(PoseSearch(strict), chosen, begin, strict, None, prior)
        if one.marker_set:
            kept = np.argsort(posing.score, kind="stable")[:REFINED_STARTS]
            poses = posing.poses.select(kept)
            posing = fit_poses(PoseSearch(places), chosen, poses, places, None, prior, WIDTHS[-REFINED_WIDTHS:])
        totals = [_total_score(places, posing, i, prior, one, without) for i in range(len(posing.place))]
        best = int(np.argmin(totals))
        results[one] = (totals[best], posing.select(np.array([best])))
    return results


def _best_run(
    points: Array, settings: RunSettings, results: _Results, prior: HeightPrior, without: tuple[str, ...]
) -> Run:
    ranked = sorted(results, key=lambda one: results[one][0])
    if settings.further or results[ranked[0]][0] > GOOD_SCORE:
        for one, found in _score(points, settings, ranked[:3], prior, without, STARTS).items():
            results[one] = min(results[one], found, key=lambda pair: pair[0])
        ranked = sorted(results, key=lambda one: results[one][0])
    frames = choose_upright_frames(points, settings.frames, settings.phase)
    for one in ranked[:REFINED_HYPOTHESES]:
        results[one] = _refine(points[frames], one, results[one][1], prior, without)
    ranked = sorted(results, key=lambda one: results[one][0])
    best, places = ranked[0], candidate_places(*ranked[0], without)
    of_set = _finish(points[frames], best, results[best][1], settings, without)
    posing = of_set
    if not is_known_set(best, places, results[best][1]):
        best, by_patterns = _label_by_patterns(points[frames], ranked, results, prior, without)
        places, posing = by_patterns.places, by_patterns.posing
    others = [
        next((one for one in ranked if one.part == best.part and one.marker_set == ""), None),
        next((one for one in ranked if one.marker_set not in ("", best.marker_set)), None),
    ]
    alternatives = tuple(
        Alternative(candidate_places(*one, without), results[one][1].place[0]) for one in others if one is not None
    )
    scores = {one: results[one][0] for one in ranked}
    return Run(best, places, posing, frames, scores, alternatives, max(_mean_distance(posing), _mean_distance(of_set)))


def _finish(
    points: Array, hypothesis: Hypothesis, posing: Posing, settings: RunSettings, without: tuple[str, ...]
) -> Posing:
    """Let places move if the run does so, and put points near the midline on it."""
    places = candidate_places(*hypothesis, without)
    moved = move_places(points, places, posing) if settings.move else posing
    return put_on_midline(points, places, mirror_indices(*hypothesis, without), moved)


def _mean_distance(posing: Posing) -> float:
    """Return the mean distance [m] between points and places, at most `MAX_DISTANCE` for each."""
    return float(np.minimum(np.nan_to_num(posing.distance[0], nan=MAX_DISTANCE), MAX_DISTANCE).mean())


def _label_by_patterns(
    points: Array, ranked: Sequence[Hypothesis], results: _Results, prior: HeightPrior, without: tuple[str, ...]
) -> tuple[Hypothesis, PatternLabels]:
    """Label points by patterns of segments, from the best pose of each of the best parts of the body."""
    parts: dict[str, Hypothesis] = {}
    for one in ranked:
        if results[one][0] < results[ranked[0]][0] + PATTERN_MARGIN:
            parts.setdefault(one.part, one)
    found = {
        part: label_by_patterns(points, part, results[one][1].poses, prior, without)
        for part, one in list(parts.items())[:PATTERN_PARTS]
    }
    best = min(found, key=lambda part: found[part].cost)
    return Hypothesis("", best), found[best]


def is_known_set(hypothesis: Hypothesis, places: Places, posing: Posing) -> bool:
    """Return whether the points are those of the preferred marker set, nearly without others."""
    own = places.cost == 0.0
    used = posing.place[0][posing.place[0] >= 0]
    other, unused = (~own[used]).mean() if len(used) else 1.0, 1.0 - own[used].sum() / max(own.sum(), 1)
    known = hypothesis.marker_set in list_candidate_sets()
    return bool(known and own.any() and other <= MAX_OTHER_FRACTION and unused <= MAX_UNUSED_FRACTION)


def _refine(
    points: Array, hypothesis: Hypothesis, posing: Posing, prior: HeightPrior, without: tuple[str, ...]
) -> tuple[float, Posing]:
    """Return score and posing of a hypothesis after refinement."""
    places = candidate_places(*hypothesis, without)

    def score(one: Posing) -> float:
        return _total_score(places, one, 0, prior, hypothesis, without)

    best = refine_posing(points, places, posing, score)
    return score(best), best


def _total_score(
    places: Places, posing: Posing, start: int, prior: HeightPrior, hypothesis: Hypothesis, without: tuple[str, ...]
) -> float:
    """Return the score [m] of a start with the penalties of what contradicts the hypothesis."""
    segments, used = places.segment, np.zeros(len(places.cost), bool)
    used[posing.place[start][posing.place[start] >= 0]] = True
    empty = len(set(segments) - {segments[i] for i in np.flatnonzero(used)})
    deviation = (HEIGHT * posing.poses.scale[start] - prior.height) / prior.sd
    own = places.cost == 0.0
    unused = float((own & ~used).sum() / max(own.sum(), 1))
    single = float((used & ~used[mirror_indices(*hypothesis, without)]).sum() / max(used.sum(), 1))
    return (
        float(posing.score[start])
        + EMPTY_SEGMENT_PENALTY * empty
        + HEIGHT_PENALTY * float(deviation) ** 2
        + UNUSED_PENALTY * unused
        + SINGLE_PENALTY * single
        + (0.0 if hypothesis.part == next(iter(PARTS)) else PART_PENALTY)
    )


def move_places(points: Array, places: Places, posing: Posing, rounds: int = 3) -> Posing:
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
        offset = OFFSET_FRACTION * (local[rows] - places.position[chosen])
        length = np.linalg.norm(offset, axis=1, keepdims=True)
        search.points.position[:] = places.position
        search.points.position[chosen] += offset * np.minimum(1.0, MAX_OFFSET / np.maximum(length, 1e-9))
        target, weight = correspondences(search.place_positions(poses), filled, seen, place, float(WIDTHS[-1]))
        poses = search.solve(poses, target, weight, 5)
        place = assign(search.place_positions(poses)[0], filled, seen, 3.0 * float(WIDTHS[-1]), places.cost)[None]
    search.points.position[:] = places.position
    distance = point_distances(search.place_positions(poses), filled, seen, place)
    return Posing(poses, place, distance, places.cost)
