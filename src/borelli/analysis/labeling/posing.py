"""Posing of the generic human to points, with given correspondences or with those found on the way.

Robust Newton steps with a width sigma that decreases from body size to marker size: a point farther than three widths
from its place does not act. Without given correspondences, each step first assigns points to places (one assignment for
all frames, by the mean squared distance; Kuhn 1955).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from borelli.analysis.labeling.generic_body import (
    HEIGHT,
    HEIGHT_SD,
    MEAN_HEIGHT,
    Places,
    Poses,
    PoseSearch,
    fit_scale,
    rest_pose,
    start_poses,
)
from borelli.analysis.labeling.upright_frames import relative_headings
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

WIDTHS = np.geomspace(0.3, 0.05, 14)
"""Widths sigma [m] of the successive steps."""
CUTOFF = 3.0
"""Widths beyond which a point does not act."""
NEWTON_STEPS = 3
"""Newton steps per width."""
MAX_OFFSET = 0.06
"""Largest distance [m] by which a place may move on its body."""


SCALE_RANGE = (0.5, 1.4)
"""Heights of posed bodies over that of the generic one."""


class HeightPrior(NamedTuple):
    """Expected height and its standard deviation [m]."""

    height: float = MEAN_HEIGHT
    sd: float = HEIGHT_SD


class Posing(NamedTuple):
    """Poses of one or several starts, and the place of each point."""

    poses: Poses
    place: NDArray[np.int64]
    """(starts, points) index of the place; -1: none."""
    distance: Array
    """(starts, points) RMS distance [m] between point and place over the frames, NaN for points without a place."""
    cost: Array
    """(places,) squared distance [m^2] that a place costs."""

    @property
    def score(self) -> Array:
        """Mean distance [m] of each start with the costs of places, at most `MAX_DISTANCE` for each point."""
        squared = np.nan_to_num(self.distance, nan=MAX_DISTANCE) ** 2 + self.cost[self.place]
        return np.asarray(np.sqrt(np.minimum(squared, MAX_DISTANCE**2)).mean(axis=1))

    def select(self, starts: NDArray[np.int64]) -> Posing:
        """Return some of the starts."""
        return Posing(self.poses.select(starts), self.place[starts], self.distance[starts], self.cost)


MAX_DISTANCE = 0.15
"""[m] Largest distance that counts in a score."""


def make_starts(
    points: Array,
    places: Places,
    headings: Array,
    height: float = np.nan,
    changes: tuple[dict[str, float], ...] = ({},),
) -> Poses:
    """Return upright poses with several headings [rad] at points (frames, points, 3); NaN height: from their extent."""
    search = PoseSearch(places)
    upright = search.body_poses(rest_pose()[None])[2][0]
    low, high = np.percentile(upright[:, 2], [0.0, 100.0])
    bottom, top = (np.array([f(p[visible(p), 2]) for p in points]) for f in (np.min, np.max))
    extent = float(np.median(top - bottom))
    scale = height / HEIGHT if np.isfinite(height) else float(np.clip(extent / (high - low), *SCALE_RANGE))
    root = np.array([np.append(p[visible(p), :2].mean(axis=0), 0.0) for p in points])
    root[:, 2] = bottom - low * scale
    yaw = headings[:, None] + relative_headings(points)
    return start_poses(yaw, root, scale, changes)


def fit_poses(
    search: PoseSearch,
    points: Array,
    poses: Poses,
    places: Places,
    given: NDArray[np.int64] | None = None,
    prior: HeightPrior | None = None,
    widths: Array = WIDTHS,
) -> Posing:
    """Fit poses and scale to points (frames, points, 3) [m] with decreasing widths.

    Args:
        search: Search with the places.
        points: Points, NaN where missing.
        poses: Initial poses of all starts.
        places: Candidate positions of markers.
        given: Place of each point (points,) or (starts, points), -1 for none; default: points are assigned to places.
        prior: Prior of the height.
        widths: Widths sigma [m].
    """
    prior = prior or HeightPrior()
    seen = visible(points)
    filled = np.where(seen[..., None], points, 0.0)
    place = np.zeros((len(poses.q), points.shape[1]), np.int64)
    if given is not None:
        place[:] = given
    for step, width in enumerate(widths):
        positions = search.place_positions(poses)
        if given is None:
            place = np.array([assign(one, filled, seen, CUTOFF * width, places.cost) for one in positions])
        target, weight = correspondences(positions, filled, seen, place, width)
        poses = search.solve(poses, target, weight, NEWTON_STEPS)
        unscaled = search.place_positions(Poses(poses.q, np.ones(len(poses.scale))))
        scale = fit_scale(unscaled, target, weight, *prior)
        poses = Poses(poses.q, np.clip(scale, *SCALE_RANGE))
        if given is None and step in (4, 8) and len(poses.q) > 3:
            kept = _best_half(search, poses, filled, seen, place, places.cost)
            poses, place = poses.select(kept), place[kept]
    positions = search.place_positions(poses)
    return Posing(poses, place, point_distances(positions, filled, seen, place), places.cost)


def _best_half(
    search: PoseSearch, poses: Poses, points: Array, seen: NDArray[np.bool_], place: NDArray[np.int64], cost: Array
) -> NDArray[np.int64]:
    distance = point_distances(search.place_positions(poses), points, seen, place)
    order = np.argsort(Posing(poses, place, distance, cost).score, kind="stable")
    return np.asarray(order[: max(3, (len(order) + 1) // 2)])


def assign(positions: Array, points: Array, seen: NDArray[np.bool_], cutoff: float, extra: Array) -> NDArray[np.int64]:
    """Return the place of each point (points,) that minimizes the total of squared distances.

    Args:
        positions: Places (frames, places, 3) [m].
        points: Points (frames, points, 3) [m].
        seen: Visible points (frames, points).
        cutoff: Distance [m] beyond which a point counts as at this distance.
        extra: Cost (places,) [m^2] of each place.
    """
    cost = mean_squared_distances(positions, points, seen, cutoff) + extra
    cost[~seen.any(axis=0)] = cutoff**2
    result = np.full(points.shape[1], -1)
    rows, columns = linear_sum_assignment(cost)
    result[rows] = columns
    result[~seen.any(axis=0)] = -1
    return result


def mean_squared_distances(positions: Array, points: Array, seen: NDArray[np.bool_], cutoff: float) -> Array:
    """Return the mean over frames of squared distances (points, places) [m^2], at most the square of `cutoff`."""
    squared = (points**2).sum(-1)[:, :, None] + (positions**2).sum(-1)[:, None]
    squared = squared - 2.0 * points @ positions.swapaxes(1, 2)
    squared = np.where(seen[..., None], np.minimum(squared, cutoff**2), 0.0)
    return np.asarray(squared.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)[:, None])


def correspondences(
    positions: Array, points: Array, seen: NDArray[np.bool_], place: NDArray[np.int64], width: float
) -> tuple[Array, Array]:
    """Return targets and weights of all places (starts, frames, places, ...); the biweight of Tukey (Huber 1981)."""
    target, weight = np.zeros_like(positions), np.zeros(positions.shape[:3])
    for i, own in enumerate(place):
        rows = np.flatnonzero(own >= 0)
        chosen = own[rows]
        target[i][:, chosen] = points[:, rows]
        squared = ((positions[i][:, chosen] - points[:, rows]) ** 2).sum(-1)
        robust = np.maximum(1.0 - squared / (CUTOFF * width) ** 2, 0.0) ** 2
        weight[i][:, chosen] = seen[:, rows] * robust / width**2
    return target, weight


def point_distances(positions: Array, points: Array, seen: NDArray[np.bool_], place: NDArray[np.int64]) -> Array:
    """Return the RMS distance [m] of each point from its place (starts, points); NaN without one."""
    result = np.full(place.shape, np.nan)
    for i, own in enumerate(place):
        rows = np.flatnonzero((own >= 0) & seen.any(axis=0))
        squared = ((positions[i][:, own[rows]] - points[:, rows]) ** 2).sum(-1)
        result[i, rows] = np.sqrt((squared * seen[:, rows]).sum(axis=0) / seen[:, rows].sum(axis=0))
    return result


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
