"""Tracklets: points of a recording whose columns were lost, joined over time as far as there is no alternative.

A point continues a tracklet if each is the other's nearest by constant velocity, and all alternatives are much farther.
Otherwise the tracklet ends: a label is given to tracklets as a whole, so that a wrong join would cost more than a gap.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

MAX_STEP = 0.03
"""[m] Largest distance between a point and its prediction, plus `STEP_FRACTION` of its last step."""
STEP_FRACTION = 0.5
MIN_RATIO = 2.0
"""Least ratio of the distance of the next nearest point to that of the nearest."""
MAX_ENTRIES = 20_000_000
"""Frames times tracklets that are returned; the shortest tracklets are left out."""
MAX_TRACKLETS = 20_000
"""Tracklets that are followed; a recording without order in time ends here."""


def split_into_tracklets(points: Array) -> NDArray[np.int64]:
    """Return the tracklets (frames, tracklets) of points: pieces of columns, or points joined, whichever are fewer.

    A column of a trajectory without a name is one marker from gap to gap. Columns of points in any order are not.
    """
    columns, joined = _column_pieces(points), join_tracklets(points)
    return columns if columns.shape[1] <= joined.shape[1] else joined


def _column_pieces(points: Array) -> NDArray[np.int64]:
    """Return the index (frames, tracklets) of pieces of columns without gaps and jumps, the longest first."""
    seen = visible(points)
    step = np.linalg.norm(np.diff(points, axis=0), axis=-1)
    before = np.concatenate([np.zeros((1, points.shape[1])), step[:-1]])
    jump = ~(step < MAX_STEP + (1.0 + STEP_FRACTION) * np.nan_to_num(before))
    starts = seen & np.concatenate([np.ones((1, points.shape[1]), bool), jump | ~seen[:-1]])
    pieces = []
    for column in range(points.shape[1]):
        first = [*np.flatnonzero(starts[:, column]).tolist(), len(points)]
        for begin, end in pairwise(first):
            gone = np.flatnonzero(~seen[begin:end, column])
            pieces.append((begin, begin + int(gone[0]) if len(gone) else end, column))
    pieces.sort(key=lambda piece: (piece[0] - piece[1], piece[0], piece[2]))
    pieces = pieces[: max(1, MAX_ENTRIES // max(len(points), 1))]
    result = np.full((len(points), len(pieces)), -1)
    for i, (begin, end, column) in enumerate(pieces):
        result[begin:end, i] = column
    return result


def join_tracklets(points: Array) -> NDArray[np.int64]:
    """Return the index (frames, tracklets) of the point of each tracklet, -1 outside its life, the longest first.

    Args:
        points: Points (frames, points, 3) [m] in any order within a frame; NaN where missing.
    """
    members: list[list[int]] = []
    first: list[int] = []
    active: NDArray[np.int64] = np.zeros(0, np.int64)
    last, step = np.zeros((0, 3)), np.zeros((0, 3))
    for frame, row in enumerate(points):
        index = np.flatnonzero(visible(row))
        found = _continuations(last + step, np.linalg.norm(step, axis=1), row[index])
        continued = np.flatnonzero(found >= 0)
        for tracklet, point in zip(active[continued], index[found[continued]], strict=True):
            members[tracklet].append(int(point))
        new = np.setdiff1d(np.arange(len(index)), found)
        if len(members) + len(new) > MAX_TRACKLETS:
            break
        ids = np.arange(len(members), len(members) + len(new))
        members += [[int(index[i])] for i in new]
        first += [frame] * len(new)
        now = row[index[found[continued]]]
        step = np.concatenate([now - last[continued], np.zeros((len(new), 3))])
        last = np.concatenate([now, row[index[new]]])
        active = np.concatenate([active[continued], ids])
    order = sorted(range(len(members)), key=lambda i: (-len(members[i]), first[i], members[i][0]))
    order = order[: max(1, MAX_ENTRIES // max(len(points), 1))]
    result = np.full((len(points), len(order)), -1)
    for column, i in enumerate(order):
        result[first[i] : first[i] + len(members[i]), column] = members[i]
    return result


def tracklet_points(points: Array, index: NDArray[np.int64]) -> Array:
    """Return the points (frames, tracklets, 3) [m] of tracklets, NaN outside their lives."""
    rows = np.arange(len(points))[:, None]
    return np.asarray(np.where((index >= 0)[..., None], points[rows, np.maximum(index, 0)], np.nan))


def _continuations(predicted: Array, speed: Array, points: Array) -> NDArray[np.int64]:
    """Return the point that continues each tracklet, -1 if none does with certainty."""
    found = np.full(len(predicted), -1)
    if not len(predicted) or not len(points):
        return found
    distance = np.linalg.norm(predicted[:, None] - points[None], axis=2)
    nearest = distance.argmin(axis=1)
    own = distance[np.arange(len(predicted)), nearest]
    padded = np.pad(distance, ((0, 1), (0, 1)), constant_values=np.inf)
    next_point = np.partition(padded[:-1], 1, axis=1)[:, 1]
    next_tracklet = np.partition(padded[:, :-1], 1, axis=0)[1][nearest]
    mutual = distance.argmin(axis=0)[nearest] == np.arange(len(predicted))
    certain = np.minimum(next_point, next_tracklet) > MIN_RATIO * own
    chosen = mutual & certain & (own < MAX_STEP + STEP_FRACTION * speed)
    found[chosen] = nearest[chosen]
    return found
