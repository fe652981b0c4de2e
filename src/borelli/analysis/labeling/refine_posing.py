"""Refinement of a posing whose correspondences were found: frames and limbs that the search lost, and midline points.

One assignment holds for all frames, but a leg that is bent in some frames only, and an arm that was given the points of
another segment, are local minima of the search. Each is left by a start from elsewhere, and kept if the score is less.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.labeling.generic_body import HEIGHT, Places, Poses, PoseSearch, limb_angles
from borelli.analysis.labeling.posing import WIDTHS, HeightPrior, Posing, fit_poses, local_positions
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

HEIGHT_SD = 0.05
"""[m] by which the height of a posed body changes in a refinement."""
WIDE_WIDTHS = np.geomspace(0.5, 0.05, 8)
"""Widths [m] with the assignment held: it cannot be lost, so that a straight leg is found bent."""
LIMB_WIDTHS = np.geomspace(0.2, 0.05, 8)
"""Widths [m] with which limbs are started again."""
LAST_WIDTHS = 3
"""Widths, the last ones of a search, with which points are assigned again."""
LIMB_STARTS: dict[str, tuple[dict[str, float], ...]] = {
    "arm": (
        {"shoulder_flexion": 0.0, "elbow_flexion": 0.3},
        {"shoulder_flexion": 0.0, "elbow_flexion": 1.6},
        {"shoulder_flexion": -0.6, "elbow_flexion": 1.4},
        {"shoulder_flexion": 0.5, "elbow_flexion": 2.0},
        {"shoulder_flexion": 1.2, "elbow_flexion": 0.4},
        {"shoulder_flexion": 2.6, "elbow_flexion": 0.3},
        {"shoulder_adduction": -1.3, "elbow_flexion": 0.2},
    ),
    "leg": (
        {"hip_flexion": 0.1, "knee_flexion": 0.1},
        {"hip_flexion": -0.2, "knee_flexion": 0.6},
        {"hip_flexion": 0.9, "knee_flexion": 0.3},
        {"hip_flexion": 0.9, "knee_flexion": 1.2},
    ),
}
"""Angles [rad] from which limbs are started again: hanging, bent, forward, up and aside; straight, back and lifted."""
MIDLINE_FRACTION = 0.5
"""A point nearer to the midline than this fraction of its place's distance from it is on the midline."""
MAX_MIDLINE_DISTANCE = 0.08
"""[m] Distance within which a point on the midline takes a midline landmark."""
ONE_SIDED = ("back_offset", "scapula")
"""Landmarks that are marked on one side only."""

Score = Callable[[Posing], float]


def refine_posing(points: Array, places: Places, posing: Posing, score: Score) -> Posing:
    """Return the posing after starts from elsewhere, each kept if its score is less.

    Args:
        points: Points (frames, points, 3) [m] of the posed frames, NaN where missing.
        places: Candidate positions of markers.
        posing: Posing of one start.
        score: Score [m] of a posing of one start.
    """
    prior = HeightPrior(HEIGHT * float(posing.poses.scale[0]), HEIGHT_SD)
    best = min(posing, _repose_widely(points, places, posing, prior), key=score)
    best = min(best, *_restart_limbs(points, places, best, prior), key=score)
    return min(best, _repose_widely(points, places, best, prior), key=score)


def _repose_widely(points: Array, places: Places, posing: Posing, prior: HeightPrior) -> Posing:
    """Pose with the assignment held, from wide to narrow; then assign the points again."""
    search = PoseSearch(places)
    held = fit_poses(search, points, posing.poses, places, posing.place[0], prior, WIDE_WIDTHS)
    return fit_poses(search, points, held.poses, places, None, prior, WIDTHS[-LAST_WIDTHS:])


def _restart_limbs(points: Array, places: Places, posing: Posing, prior: HeightPrior) -> list[Posing]:
    """Pose with single limbs, and both of a kind, at other angles in all frames; the rest of the body as it is."""
    starts = []
    for limb, changes in LIMB_STARTS.items():
        for sides in ("r", "l", "rl"):
            for change in changes:
                q = posing.poses.q[0].copy()
                for index, value in limb_angles(limb, sides, change).items():
                    q[:, index] = value
                starts.append(q)
    poses = Poses(np.array(starts), np.full(len(starts), posing.poses.scale[0]))
    found = fit_poses(PoseSearch(places), points, poses, places, None, prior, LIMB_WIDTHS)
    return [found.select(np.array([i])) for i in range(len(found.place))]


def put_on_midline(points: Array, places: Places, mirror: NDArray[np.int64], posing: Posing) -> Posing:
    """Return the posing with points near the midline at midline landmarks, if the mirror image of their place has none.

    The middle of the posterior spines is the sacrum, not one of them.
    """
    search, seen = PoseSearch(places), visible(points)
    filled = np.where(seen[..., None], points, 0.0)
    place, distance = posing.place.copy(), posing.distance.copy()
    local = local_positions(search, filled, seen, posing.poses, place[0])
    used = set(place[0].tolist())
    for point, own in enumerate(place[0]):
        width = abs(places.position[own, 1])
        alone = own >= 0 and places.side[own] != "middle" and int(mirror[own]) not in used | {int(own)}
        if not alone or places.landmark[own] in ONE_SIDED or not abs(local[point, 1]) < MIDLINE_FRACTION * width:
            continue
        free = [
            i
            for i, (body, side) in enumerate(zip(places.body, places.side, strict=True))
            if body == places.body[own] and side == "middle" and i not in used
        ]
        offset = np.linalg.norm(places.position[free] - local[point], axis=1)
        if len(free) and offset.min() < MAX_MIDLINE_DISTANCE:
            best = int(np.argmin(offset**2 + places.cost[free]))
            place[0, point], distance[0, point] = free[best], offset[best] * posing.poses.scale[0]
            used.add(free[best])
    return Posing(posing.poses, place, distance, posing.cost)
