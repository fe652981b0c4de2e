"""Zero of feet and pelvis from their own markers, whatever else of the body has markers.

While the sole is flat on the ground, the heights of foot markers above one another determine the zero of the ankle. The
sole is flat in the static trial, and in a motion while no marker of the foot moves up or down: in walking for 0.1 to
0.4 s of every step, on a treadmill too. Where a foot is never flat, as in a run, the heights are those of its
landmarks. The axes of the pelvis are those of the markers on its iliac spines, as the ISB recommends (Wu et al. 2002).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import match_markers
from borelli.model.landmark_atlas import find_in_atlas
from borelli.model.model import Model
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.recording import Recording

FEET = ("foot_r", "foot_l")
"""Bodies of `human()`, whose z axis is the normal of the sole."""
HEIGHT_SD = 0.003
"""[m] of a marker's height above the others of a flat foot: a sole is flat to about one degree."""
MAX_SPEED, MIN_DURATION = 0.1, 0.05
"""[m/s] Upward or downward speed of the markers of a flat foot, and for how long [s]. In swing, heel and toe are that
slow together for 0.02 s at most.
"""
LEVEL_TOLERANCE, MAX_STEP = 0.010, 0.05
"""[m] Height of a foot above its lowest position, and above the lowest of either foot: a foot on its heel or toes is
higher than flat, and one in the air higher than the other.
"""
HEEL_RISE = 0.010
"""[m] by which markers on the heel are higher above those of the forefoot than in the atlas: mean of flat feet in six
recordings (subject01, Rajagopal 2016, Plug-in Gait, Qualisys, walking2, Gait.c3d: -6 to 28 mm); 15 mm in six others.
"""
UNKNOWN_SD = 0.02
"""[m] of the height of a marker whose landmark the atlas does not have: that of soft tissue there."""
SIDE_SD, DIRECTION_SD = 0.010, 0.3
"""[m] of a marker on the foot to the side, that of bone in the atlas, and [rad] of the foot about the long axis of the
shank, an estimate for tibial torsion, which the model does not have.
"""
SPINES = ("asis", "psis")
MIN_PELVIS_WIDTH = 0.05
"""[m] Root of the summed squared distances of markers on the pelvis from a line; nearer to it they show no rotation."""
MAX_CORRECTION = 0.05
"""[m] A marker that is farther from the height of its landmark is not where its label says."""


class FootPrior(NamedTuple):
    """Where the markers of one foot lie on it.

    Attributes:
        markers: Indices of the markers.
        height: Their heights [m] in the axes of the foot, of which only differences are known.
        height_sd: Standard deviations of the heights [m].
        forward: Their positions [m] before the ankle.
    """

    markers: tuple[int, ...]
    height: Array
    height_sd: Array
    forward: Array

    def side_precision(self) -> Array:
        """Return the inverse covariance (markers, markers) [1/m^2] of positions to the side about the marker set's.

        A foot that points outward by an angle a moves them by a x: the covariance is s^2 1 + sd(a)^2 x x^T. Nothing
        else shows the rotation of a foot with two markers about the line between them, and so a part of flexion.
        """
        covariance = SIDE_SD**2 * np.eye(len(self.forward)) + DIRECTION_SD**2 * np.outer(self.forward, self.forward)
        return np.asarray(np.linalg.inv(covariance))

    def height_precision(self) -> Array:
        """Return the inverse covariance (markers, markers) [1/m^2] of the heights, whose mean is unknown.

        The mean that fits best is eliminated from 1/2 sum w_i (z_i - mean)^2, w = 1 / sd^2: W - w w^T / sum w.
        """
        w = self.height_sd**-2
        return np.asarray(np.diag(w) - np.outer(w, w) / w.sum())


def find_feet(model: Model, recordings: Sequence[Recording], static: Recording | None) -> tuple[FootPrior, ...]:
    """Return what is known of the markers of a person's feet: those of a foot with one marker are left out.

    Heights in the static trial have precedence over those of a flat foot in a motion, and these over landmarks.
    """
    feet = {
        body: own
        for body in FEET
        if len(own := tuple(i for i, marker in enumerate(model.markers) if marker.body == body)) > 1
    }
    measured: dict[str, Array] = {}
    if static is not None:
        stands = {body: z[np.isfinite(z).all(axis=1)] for body, z in _recorded(model, feet, static).items()}
        measured = {body: np.median(z, axis=0) for body, z in stands.items() if len(z)}
    for recording in recordings:
        measured = _flat_heights(_recorded(model, feet, recording), recording.rate) | measured
    result = []
    for body, own in feet.items():
        foot = _foot_of_landmarks(model, own)
        if body in measured:
            height = measured[body] - measured[body].mean() + foot.height.mean()
            if np.abs(height - foot.height).max() < MAX_CORRECTION:
                foot = foot._replace(height=height, height_sd=np.full(len(own), HEIGHT_SD))
        result.append(foot)
    return tuple(result)


def pelvis_markers(model: Model) -> tuple[int, ...]:
    """Return the markers that define the axes of a person's pelvis; () if they are too near to a line.

    They are those on the iliac spines (Wu et al. 2002), if there are enough of them, else all.
    """
    own = tuple(i for i, marker in enumerate(model.markers) if marker.body == "pelvis")
    readings = interpret_labels([marker.name for marker in model.markers]).readings
    for chosen in (tuple(i for i in own if readings[i].landmark in SPINES), own):
        at = np.array([model.markers[i].position for i in chosen]).reshape(-1, 3)
        if len(chosen) >= 3 and np.linalg.svd(at - at.mean(axis=0), compute_uv=False)[1] > MIN_PELVIS_WIDTH:
            return chosen
    return ()


def mean_rotation(points: Array) -> Array:
    """Return the matrix (3, 3 markers) from small displacements of points (markers, 3) [m] to their rotation [rad].

    The rotation vector w minimizes sum |d_i - w x r_i|^2, with r_i from the mean point: w = A^-1 sum r_i x d_i, where
    A = sum |r_i|^2 1 - r_i r_i^T.
    """
    r = points - points.mean(axis=0)
    inertia = (r**2).sum() * np.eye(3) - r.T @ r
    cross = np.cross(r[:, None], np.eye(3)).transpose(2, 0, 1).reshape(3, -1)
    return np.asarray(np.linalg.solve(inertia, cross))


def _foot_of_landmarks(model: Model, markers: tuple[int, ...]) -> FootPrior:
    """Return what the landmarks of its markers say about a foot."""
    readings = interpret_labels([marker.name for marker in model.markers]).readings
    rise = np.array([HEEL_RISE * (readings[i].landmark == "heel") for i in markers])
    height = np.array([model.markers[i].position[2] for i in markers]) + rise - rise.mean()
    places = [find_in_atlas(one.landmark, one.side, one.kind) for one in (readings[i] for i in markers)]
    sd = np.array([UNKNOWN_SD if place is None else place.sd[2] for place in places])
    return FootPrior(markers, height, sd, np.array([model.markers[i].position[0] for i in markers]))


def _recorded(model: Model, feet: Mapping[str, tuple[int, ...]], recording: Recording) -> dict[str, Array]:
    """Return the heights (frames, markers) [m] of the markers of each foot that were all recorded."""
    result = {}
    for body, own in feet.items():
        column = match_markers([model.markers[i] for i in own], recording.markers)
        if min(column) >= 0:
            result[body] = recording.data["marker_position"].values[:, column, 2]
    return result


def _flat_heights(feet: Mapping[str, Array], rate: float) -> dict[str, Array]:
    """Return the median heights (markers,) [m] of each foot while it is flat, by heights (frames, markers)."""
    held = {body: z[find_held_frames(z, rate)] for body, z in feet.items()}
    lowest = {body: float(z.mean(axis=1).min()) for body, z in held.items() if len(z)}
    result = {}
    for body, level in lowest.items():
        if level < min(lowest.values()) + MAX_STEP:
            z = held[body]
            result[body] = np.median(z[z.mean(axis=1) < level + LEVEL_TOLERANCE], axis=0)
    return result


def find_held_frames(height: Array, rate: float) -> NDArray[np.bool_]:
    """Return the frames of runs in which no marker moves up or down; heights are (frames, markers) [m].

    Speeds are differences over the least duration of such a run, so that noise counts as little at any rate.
    """
    frames = np.arange(len(height))
    half = max(1, round(0.5 * MIN_DURATION * rate))
    after, before = np.minimum(frames + half, frames[-1:]), np.maximum(frames - half, 0)
    speed = rate * (height[after] - height[before]) / np.maximum(after - before, 1)[:, None]
    slow = (np.abs(speed) < MAX_SPEED).all(axis=1) & np.isfinite(height).all(axis=1)
    result = np.zeros(len(height), dtype=bool)
    for start, end in find_runs(slow):
        result[start:end] = end - start >= MIN_DURATION * rate
    return result
