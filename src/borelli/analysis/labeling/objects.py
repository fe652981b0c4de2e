"""Objects among unnamed points: far from the body, and at steady distances from each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.labeling.label_points import PointLabels, label_points
from borelli.numerics.vectors import Array

MIN_OBJECT_DISTANCE = 0.15
"""[m] Distance from all free places of the body beyond which a point may belong to an object."""
MAX_RIGID_SD = 0.005
"""[m] Standard deviation of the distance of two points of an object."""
MIN_OBJECT_POINTS = 3
"""Points of an object: two points at a steady distance are found on a body as well."""
MIN_COMMON_FRAMES = 10
"""Frames in which both of two points are visible, without which they are not compared."""
MAX_CANDIDATES = 100
"""Points that are compared."""


def label_body(
    points: Array, height: float = np.nan, without: tuple[str, ...] = ()
) -> tuple[PointLabels | None, NDArray[np.int64]]:
    """Label the points of a body; return also the object (points,) to which each other point belongs, -1 for none.

    Args:
        points: Points (frames, points, 3) [m], z up; NaN where missing. A column is the same marker in all frames.
        height: Height of the subject [m], if known.
        without: Marker sets that are treated as unknown.
    """
    found = label_points(points, height, without)
    if found is None:
        return None, np.full(points.shape[1], -1)
    far = np.array([one is None or not one.distance < MIN_OBJECT_DISTANCE for one in found.labels])
    objects = find_objects(points, far)
    if not (objects >= 0).any():
        return found, objects
    # objects took places of the body, and its height from their extent
    body = np.flatnonzero(objects < 0)
    again = label_points(points[:, body], height, without)
    if again is None:
        return None, objects
    labels = dict(zip(body.tolist(), again.labels, strict=True))
    return replace(again, labels=tuple(labels.get(i) for i in range(points.shape[1]))), objects


def find_objects(points: Array, far: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the object (points,) of each point that moves with others as one rigid body, -1 for none.

    Args:
        points: Points (frames, points, 3) [m], NaN where missing.
        far: Points (points,) that are far from the body.
    """
    result = np.full(points.shape[1], -1)
    left, number = [int(i) for i in np.flatnonzero(far)[:MAX_CANDIDATES]], 0
    while left:
        first = left.pop(0)
        mates = [first]
        for other in left:
            if all(_is_rigid(points[:, one], points[:, other]) for one in mates):
                mates.append(other)
        if len(mates) >= MIN_OBJECT_POINTS:
            result[mates] = number
            number += 1
            left = [one for one in left if one not in mates]
    return result


def _is_rigid(first: Array, second: Array) -> bool:
    distance = np.linalg.norm(first - second, axis=1)
    distance = distance[np.isfinite(distance)]
    return len(distance) >= MIN_COMMON_FRAMES and bool(distance.std() < MAX_RIGID_SD)
