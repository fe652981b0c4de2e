"""Labels of points of an unknown marker set: patterns of segments, assignment and poses that together cost least.

The cost [m^2] of an assignment of points to places, with a pattern for each segment and the body posed to it, is

    sum_points min(d^2 + c, MAX_DISTANCE^2) + cost of unused and of rare patterns + prior of pose and height

where d is the distance of a point from its place and c the cost of the place. From a given pose, points are assigned,
then patterns change and points move to other places, the body is posed after each change, as long as the cost falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from borelli.analysis.labeling.generic_body import HEIGHT, Places, Poses, PoseSearch, prior_energies
from borelli.analysis.labeling.posing import (
    MAX_DISTANCE,
    HeightPrior,
    Posing,
    fit_poses,
    mean_squared_distances,
)
from borelli.analysis.labeling.refine_posing import HEIGHT_SD
from borelli.analysis.labeling.segment_patterns import segment_patterns
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

POSE_DISTANCE = 0.05
"""[m] A pose one standard deviation from the prior in one angle costs the square of this: the width of posing."""
HEIGHT_DISTANCE = 0.03
"""[m] A height one standard deviation from the expected one costs the square of this."""
CHANGE_WIDTHS = np.geomspace(0.1, 0.05, 3)
"""Widths [m] with which the body is posed after each change."""
MAX_ROUNDS, MAX_PASSES = 8, 3
"""Rounds of changes with posing, and passes over the segments in one pose."""
MAX_CHANGES = 48
"""Changes, the most promising ones, that are posed in a round."""
MAX_MOVE, MAX_TARGETS = 0.10, 6
"""Places to which a point moves: within this distance [m], and the nearest ones."""
LATERAL_WEIGHT = 4.0
"""Weight of squared lateral distances of markers on the midline: 3 to 8 mm (SD) of public recordings, else 10 to 30."""
FORBIDDEN = 1.0
"""[m^2] Cost that is never chosen."""


class PatternLabels(NamedTuple):
    """Places with their costs, posing (one start) and its cost [m^2]."""

    places: Places
    posing: Posing
    cost: float


class _State(NamedTuple):
    place: NDArray[np.int64]
    patterns: dict[str, int]
    posing: Posing
    cost: float


def label_by_patterns(
    points: Array, part: str, poses: Poses, prior: HeightPrior, without: tuple[str, ...] = ()
) -> PatternLabels:
    """Label points (frames, points, 3) [m] by patterns on the segments of a part of the body.

    Args:
        points: Points, NaN where missing.
        part: Part of the body.
        poses: Poses (one start) from which the search begins.
        prior: Prior of the height.
        without: Marker sets and conventions that are not known.
    """
    search = _PatternSearch(points, part, prior, without)
    state = search.improve(search.begin(poses))
    cost = search.patterns.cost(state.patterns).place
    places = search.places._replace(cost=cost)
    return PatternLabels(places, state.posing._replace(cost=cost), state.cost)


class _PatternSearch:
    """Search for patterns, assignment and poses."""

    def __init__(self, points: Array, part: str, prior: HeightPrior, without: tuple[str, ...]) -> None:
        self.points, self.prior = points, prior
        self.patterns = segment_patterns(part, without)
        self.places = self.patterns.places
        self.mirror = self.patterns.mirror
        self.search = PoseSearch(self.places)
        self.middle = np.flatnonzero(np.array(self.places.side) == "middle")
        self.seen = visible(points)
        self.filled = np.where(self.seen[..., None], points, 0.0)

    def begin(self, poses: Poses) -> _State:
        """Return the best patterns and assignment in given poses, posed."""
        squared = self.squared_distances(poses)
        chosen = dict.fromkeys(self.patterns.patterns, 0)
        place, best = self.assign(squared, chosen)
        for _ in range(MAX_PASSES):
            before = best
            for segment, patterns in self.patterns.patterns.items():
                for number in range(len(patterns)):
                    trial = chosen | {segment: number}
                    other, cost = self.assign(squared, trial)
                    if cost < best:
                        place, best, chosen = other, cost, trial
            if best == before:
                break
        return self.pose(poses, [place])[0]

    def improve(self, state: _State) -> _State:
        """Return the state after changes that lower the cost."""
        for _ in range(MAX_ROUNDS):
            squared = self.squared_distances(state.posing.poses)
            changes = {tuple(place): place for place in self.changes(state, squared)}
            changes.pop(tuple(state.place), None)
            if not changes:
                break
            ranked = sorted(changes.values(), key=lambda place: self.assignment_cost(place, squared)[0])[:MAX_CHANGES]
            best = min(self.pose(state.posing.poses, ranked), key=lambda one: one.cost)
            if best.cost >= state.cost:
                break
            state = best
        return state

    def changes(self, state: _State, squared: Array) -> Iterator[NDArray[np.int64]]:
        """Yield assignments with another pattern of a segment, and with points at other places."""
        for segment, patterns in self.patterns.patterns.items():
            for number in range(len(patterns)):
                if number != state.patterns[segment]:
                    yield self.assign(squared, state.patterns | {segment: number})[0]
        owner = {int(place): point for point, place in enumerate(state.place) if place >= 0}
        yield from self.moves(state.place, owner, squared)
        yield from self.moves_to_midline(state.place, owner, squared)

    def moves(self, place: NDArray[np.int64], owner: Mapping[int, int], squared: Array) -> Iterator[NDArray[np.int64]]:
        """Yield assignments with a point, and its twin on the other side, at a free place near it."""
        for point, own in enumerate(place):
            twin = owner.get(int(self.mirror[own])) if own >= 0 else None
            if own < 0 or self.patterns.loose[own] or (twin is not None and twin < point):
                continue
            near = np.flatnonzero((squared[point] < MAX_MOVE**2) & ~self.patterns.loose)
            free = [k for k in near[np.argsort(squared[point, near], kind="stable")] if int(k) not in owner]
            for target in free[:MAX_TARGETS]:
                moved = place.copy()
                moved[point] = target
                image = int(self.mirror[target])
                if twin is not None and image != target and image not in owner:
                    moved[twin] = image
                yield moved

    def moves_to_midline(
        self, place: NDArray[np.int64], owner: Mapping[int, int], squared: Array
    ) -> Iterator[NDArray[np.int64]]:
        """Yield assignments with all points of a segment that are on one side only at landmarks of its midline."""
        for segment in self.patterns.patterns:
            free = [i for i in self.middle if self.patterns.segment[i] == segment and int(i) not in owner]
            single = [
                point
                for point, own in enumerate(place)
                if own >= 0
                and self.patterns.segment[own] == segment
                and int(self.mirror[own]) not in owner
                and not self.patterns.loose[own]
            ]
            if single and free:
                rows, columns = linear_sum_assignment(squared[single][:, free])
                moved = place.copy()
                moved[np.array(single)[rows]] = np.array(free)[columns]
                yield moved

    def squared_distances(self, poses: Poses, start: int = 0) -> Array:
        """Return squared distances (points, places) [m^2] in the poses of a start; lateral ones count more."""
        scale = poses.scale[start]
        _, rotation, place = self.search.body_poses(poses.q[start])
        squared = mean_squared_distances(scale * place, self.filled, self.seen, MAX_DISTANCE)
        middle = self.middle
        lateral = rotation[..., 1][:, self.search.points.body[middle]]
        across = np.einsum("fpi,fmi->fpm", self.filled, lateral) - scale * (place[:, middle] * lateral).sum(-1)[:, None]
        mean = (across**2 * self.seen[..., None]).sum(axis=0) / np.maximum(self.seen.sum(axis=0), 1)[:, None]
        squared[:, middle] += (LATERAL_WEIGHT - 1.0) * mean
        return np.asarray(np.minimum(squared, MAX_DISTANCE**2))

    def assign(self, squared: Array, chosen: dict[str, int]) -> tuple[NDArray[np.int64], float]:
        """Return the place of each point that costs least with given patterns, and the cost without the prior."""
        cost = self.patterns.cost(chosen)
        total = np.minimum(squared + cost.place, MAX_DISTANCE**2) - cost.unused
        total[~self.seen.any(axis=0)] = FORBIDDEN
        rows, columns = linear_sum_assignment(total)
        place = np.full(len(squared), -1)
        place[rows] = columns
        place[~self.seen.any(axis=0)] = -1
        kept = place >= 0
        return place, float(total[kept, place[kept]].sum() + cost.unused.sum() + cost.rarity)

    def assignment_cost(self, place: NDArray[np.int64], squared: Array) -> tuple[float, dict[str, int]]:
        """Return the least cost of an assignment with squared distances (points, places), and its patterns."""
        used = np.zeros(len(self.places.cost), bool)
        kept = np.flatnonzero(place >= 0)
        used[place[kept]] = True
        chosen = self.patterns.best(used)
        cost = self.patterns.cost(chosen)
        points = np.minimum(squared[kept, place[kept]] + cost.place[place[kept]], MAX_DISTANCE**2).sum()
        missing = MAX_DISTANCE**2 * int((self.seen.any(axis=0) & (place < 0)).sum())
        patterns = cost.unused[~used].sum() + cost.rarity + self.patterns.asymmetry(used)
        return float(points + missing + patterns), chosen

    def pose(self, poses: Poses, places: list[NDArray[np.int64]]) -> list[_State]:
        """Return the states of several assignments, each posed from poses of one start."""
        starts = poses.select([0] * len(places))
        near = HeightPrior(HEIGHT * float(poses.scale[0]), HEIGHT_SD)
        posing = fit_poses(self.search, self.points, starts, self.places, np.array(places), near, CHANGE_WIDTHS)
        found = self.costs(posing)
        return [
            _State(place, patterns, posing.select(np.array([i])), cost)
            for i, (place, (cost, patterns)) in enumerate(zip(places, found, strict=True))
        ]

    def costs(self, posing: Posing) -> list[tuple[float, dict[str, int]]]:
        """Return cost and patterns of each start of a posing."""
        pose = POSE_DISTANCE**2 * prior_energies(posing.poses.q).mean(axis=1)
        deviation = (HEIGHT * posing.poses.scale - self.prior.height) / self.prior.sd
        prior = pose + (HEIGHT_DISTANCE * deviation) ** 2
        result = []
        for start, (place, extra) in enumerate(zip(posing.place, prior, strict=True)):
            cost, chosen = self.assignment_cost(place, self.squared_distances(posing.poses, start))
            result.append((cost + float(extra), chosen))
        return result
