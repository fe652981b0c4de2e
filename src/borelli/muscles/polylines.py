"""Polylines of muscle paths for drawing: straight parts by their ends, arcs over surfaces by samples."""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from borelli.muscles.path_arrays import KINDS, PathArrays, PathWork

Floats = NDArray[np.float64]

SAMPLE_ANGLE = 0.1
"""Angle [rad] between drawn points of an arc."""


def polyline(arrays: PathArrays, work: PathWork, muscle: int) -> Floats:
    """Return the points (points, 3) [m] of a path; a row of NaN separates branches."""
    first = int(arrays.first_node[muscle])
    last = first + int(work.node_count[muscle]) - 1
    parts = []
    for node in range(first, last + 1):
        parts.append(work.node_position[node][None])
        if node == last:
            break
        if work.node_arc[node] > 0.0:
            parts.append(_arc(arrays, work, node))
        elif work.node_branch[node] != work.node_branch[node + 1]:
            parts.append(np.full((1, 3), np.nan))
    return np.concatenate(parts)


def _arc(arrays: PathArrays, work: PathWork, node: int) -> Floats:
    """Return interior points of the arc that begins at a tangent point."""
    k = int(arrays.wrap_object[work.node_wrap[node]])
    origin, rotation, size = work.object_position[k], work.object_rotation[k], arrays.object_size[k]
    start, end = ((work.node_position[n] - origin) @ rotation for n in (node, node + 1))
    before = (work.node_position[node - 1] - origin) @ rotation
    length, kind = float(work.node_arc[node]), KINDS[arrays.object_kind[k]]
    count = max(1, ceil(length / (SAMPLE_ANGLE * float(size[0]))))
    fraction = np.arange(1, count)[:, None] / count
    if kind == "cylinder":
        points = _helix(start, end, before, length, float(size[0]), fraction)
    elif kind == "sphere":
        points = _great_circle(start, end, before, length / float(size[0]), fraction)
    else:
        points = _geodesic(arrays, k, start, start - before, length, fraction)
    return np.asarray(origin + points @ rotation.T)


def _helix(start: Floats, end: Floats, before: Floats, length: float, radius: float, fraction: Floats) -> Floats:
    rise = end[2] - start[2]
    side = np.sign(before[0] * start[1] - before[1] * start[0]) or 1.0
    turn = side * np.sqrt(max(length**2 - rise**2, 0.0)) / radius
    angle = np.arctan2(start[1], start[0]) + fraction * turn
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle), start[2] + fraction * rise], axis=1)


def _great_circle(start: Floats, end: Floats, before: Floats, angle: float, fraction: Floats) -> Floats:
    along = start - before
    radius = np.linalg.norm(start)
    along = along * radius / max(float(np.linalg.norm(along)), 1e-12)
    return np.asarray(np.cos(fraction * angle) * start + np.sin(fraction * angle) * along)


def _geodesic(arrays: PathArrays, k: int, start: Floats, along: Floats, length: float, fraction: Floats) -> Floats:
    from borelli.muscles.path_kernels.geodesic import shoot_samples

    points = np.zeros((len(fraction), 3))
    speed = np.linalg.norm(along)
    first = np.array([*start, *(along / speed if speed > 0.0 else along), 0.0])
    shoot_samples(
        int(arrays.object_kind[k]), arrays.object_size[k], first, length * fraction[:, 0], np.zeros(10), points
    )
    return points
