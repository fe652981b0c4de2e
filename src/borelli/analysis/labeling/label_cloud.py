"""Labels of points whose columns were lost: tracklets are labeled as wholes.

The tracklets of the frame with most of them are labeled as unnamed points. From there the body is followed in both
directions: each frame is posed with the tracklets that have a label, and a tracklet without one gets that of a missing
marker if it stays near the marker's place on the body, and no other missing marker is near. What stays far from the
body and keeps its own distances is an object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.labeling.check_labels import FRAMES, pose_labeled
from borelli.analysis.labeling.generic_body import HEIGHT, Places, Poses, PoseSearch
from borelli.analysis.labeling.label_points import PointLabel, PointLabels
from borelli.analysis.labeling.objects import MIN_OBJECT_DISTANCE, find_objects, label_body
from borelli.analysis.labeling.posing import HeightPrior, fit_poses, local_positions
from borelli.analysis.labeling.tracklets import split_into_tracklets, tracklet_points
from borelli.analysis.labeling.upright_frames import choose_upright_frames
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

MIN_LENGTH = 10
"""Frames of a tracklet with which the first labels are found."""
MIN_COMPARED = 5
"""Frames over which a tracklet is compared with the places of markers."""
MAX_JOIN_DISTANCE = 0.04
"""[m] Largest RMS distance between a tracklet and the place of its marker."""
MIN_JOIN_MARGIN = 0.03
"""[m] The place of the next missing marker must be farther by this."""
MIN_LABELED = 6
"""Labeled points without which a frame is not posed."""
FOLLOW_WIDTHS = np.array([0.05, 0.05])
"""Widths [m] with which each frame is posed from the one before."""


@dataclass(frozen=True)
class CloudLabels:
    """Labels of points in any order.

    Attributes:
        marker: Marker (frames, points) of each point, an index of `labels`; -1: none.
        labels: Labels of the markers.
        points: The same labels with part of the body, height and uncertainties.
        objects: Object (frames, points) of each point that moves with others as one rigid body; -1: none.
    """

    marker: NDArray[np.int64]
    labels: tuple[PointLabel, ...]
    points: PointLabels
    objects: NDArray[np.int64]


def label_cloud(points: Array, height: float = np.nan, without: tuple[str, ...] = ()) -> CloudLabels | None:
    """Label points (frames, points, 3) [m] whose order differs from frame to frame; None if they are too few.

    Args:
        points: Points, z up; NaN where missing.
        height: Height of the subject [m], if known.
        without: Marker sets that are treated as unknown.
    """
    index = split_into_tracklets(points)
    tracks = tracklet_points(points, index)
    alive = index >= 0
    long = alive.sum(axis=0) >= MIN_LENGTH
    if not long.any():
        return None
    center = int((alive & long).sum(axis=1).argmax())
    first = np.flatnonzero(alive[center] & long)
    found, _ = label_body(tracks[:, first], height, without)
    if found is None or not any(found.labels):
        return None
    labels = tuple(label for label in found.labels if label is not None)
    body = _Body(tracks, alive, first[[label is not None for label in found.labels]], labels)
    body.follow(range(body.center, len(points)))
    body.follow(range(body.center - 1, -1, -1))
    marker, objects = np.full((2, *points.shape[:2]), -1)
    own = find_objects(tracks, body.far & (body.marker < 0))
    for result, numbers in ((marker, body.marker), (objects, own)):
        rows, columns = np.nonzero(alive & (numbers >= 0))
        result[rows, index[rows, columns]] = numbers[columns]
    return CloudLabels(marker, labels, replace(found, labels=labels), objects)


class _Body:
    """Body of the subject that follows labeled tracklets from frame to frame and labels further ones."""

    def __init__(
        self, tracks: Array, alive: NDArray[np.bool_], first: NDArray[np.int64], labels: tuple[PointLabel, ...]
    ) -> None:
        self.tracks, self.alive = tracks, alive
        self.marker = np.full(tracks.shape[1], -1)
        self.marker[first] = np.arange(len(first))
        self.far = np.zeros(tracks.shape[1], bool)
        """Tracklets that were farther than `MIN_OBJECT_DISTANCE` from all markers of the body."""
        self.places = Places(
            tuple(one.landmark for one in labels),
            tuple(one.side for one in labels),
            tuple(one.kind for one in labels),
            tuple(one.body for one in labels),
            np.array([one.position for one in labels]),
            np.zeros(len(labels)),
        )
        frames = choose_upright_frames(tracks[:, first], FRAMES)
        chosen = tracks[frames][:, first]
        posing = pose_labeled(chosen, self.places, HeightPrior())
        seen = visible(chosen)
        filled = np.where(seen[..., None], chosen, 0.0)
        local = local_positions(PoseSearch(self.places), filled, seen, posing.poses, posing.place[0])
        known = np.isfinite(local[:, 0])
        self.places.position[known] = local[known]
        self.search = PoseSearch(self.places)
        middle = len(frames) // 2
        self.center = int(frames[middle])
        self.start = Poses(posing.poses.q[:, middle : middle + 1], posing.poses.scale)

    def follow(self, frames: Iterable[int]) -> None:
        """Pose the body in successive frames and label the tracklets of missing markers."""
        poses, prior = self.start, HeightPrior(HEIGHT * float(self.start.scale[0]), 1e-4)
        squared: dict[int, list[Array]] = {}
        for frame in frames:
            own = np.flatnonzero(self.alive[frame] & (self.marker >= 0))
            if len(own) < MIN_LABELED:
                continue
            points, given = self.tracks[frame][None, own], self.marker[own]
            poses = fit_poses(self.search, points, poses, self.places, given, prior, FOLLOW_WIDTHS).poses
            positions = self.search.place_positions(poses)[0, 0]
            for k in np.flatnonzero(self.alive[frame] & (self.marker < 0)):
                sums = squared.setdefault(int(k), [])
                if len(sums) < MIN_COMPARED:
                    sums.append(((positions - self.tracks[frame, k]) ** 2).sum(axis=1))
                    if len(sums) == MIN_COMPARED:
                        self._label(int(k), np.sqrt(np.mean(sums, axis=0)))

    def _label(self, tracklet: int, distance: Array) -> None:
        """Give a tracklet the label of the one missing marker that is near, if there is one."""
        self.far[tracklet] = distance.min() > MIN_OBJECT_DISTANCE
        life = self.alive[:, tracklet]
        others = np.flatnonzero((self.alive[life] & (self.marker >= 0)).any(axis=0))
        missing = np.setdiff1d(np.arange(len(distance)), self.marker[others])
        order = missing[np.argsort(distance[missing], kind="stable")]
        best, second = [*distance[order[:2]], np.inf, np.inf][:2]
        if best < MAX_JOIN_DISTANCE and second > best + MIN_JOIN_MARGIN:
            self.marker[tracklet] = order[0]
