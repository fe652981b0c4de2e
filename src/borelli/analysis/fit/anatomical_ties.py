"""Ties of joint centers to anatomical landmarks: what anatomy says about the parameters of a fit.

Markers slide on the skin in step with the gait, so that many frames of a walk move joint centers by centimeters at a
marker error of millimeters. Landmarks do not depend on motion: hips follow from the iliac spines by regression
(`hip_regressions`), knees, ankles, elbows and wrists lie between their medial and lateral landmarks or, with one
landmark, where the marker set has them relative to it.

A tie is a deviation d(p) [m], zero where anatomy holds, with its standard deviation s along each axis; it adds
1/2 sum (d / s)^2 to the prior. Jacobians are by complex steps, exact to rounding (Squire and Trapp 1998).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.hip_regressions import HIP_SD, regress_hip, spine_axes
from borelli.analysis.motion import match_markers
from borelli.model.model import Joint, Model
from borelli.numerics.vectors import Array
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.recording import Recording

SIDES = {"right": "r", "left": "l"}
VIRTUAL_SD = 0.010
"""[m] of a hip about the virtual center in a file, along each axis, which a regression or a functional trial gave."""
CENTER_SD = 0.006
"""[m] of a joint center about the midpoint of its medial and lateral landmarks."""
AXIS_SD = {"knee": 0.010, "ankle": 0.015, "elbow": 0.010, "wrist": 0.015}
"""[m] of the line between medial and lateral landmark, across the flexion axis."""
LATERAL_SD = (0.010, 0.006, 0.010)
"""[m] of a joint center relative to one landmark: forward, sideways, up."""
LANDMARKS = {
    "knee": ("knee_lateral", "knee_medial"),
    "ankle": ("malleolus_lateral", "malleolus_medial"),
    "elbow": ("elbow_lateral", "elbow_medial"),
    "wrist": ("wrist_radial", "wrist_ulnar"),
}
"""Lateral and medial landmark of joints."""
MAX_VIRTUAL_FRAMES = 200
"""Frames from which the position of a virtual center is taken."""
MIN_SPINE_SPREAD = 0.05
"""[m] Markers on the spines that are nearer to a line define no axes."""
MARKER_RADIUS = 0.007
"""[m]"""
COMPLEX_STEP = 1e-30


@dataclass(frozen=True)
class HipFromSpines:
    """Deviation of a hip center from the regression on the iliac spines."""

    side: float
    """-1 right, 1 left."""
    regression: str
    """One of `HIP_REGRESSIONS`."""

    def __call__(self, points: Array) -> Array:
        """Return the deviation (3,) [m] of the hip center, points[0], from that of the spines."""
        return points[0] - regress_hip(points[1], points[2], points[3:].mean(axis=0), self.side, self.regression)


@dataclass(frozen=True, eq=False)
class HipFromVirtualCenter:
    """Deviation of a hip center from the virtual center of a file."""

    local: Array
    """(3,) The virtual center in the axes of the spines [m]."""

    def __call__(self, points: Array) -> Array:
        """Return the deviation (3,) [m] of the hip center, points[0], relative to the spines."""
        middle, axes = spine_axes(points[1], points[2], points[3:].mean(axis=0))
        return np.asarray(points[0] - middle - self.local @ axes)


@dataclass(frozen=True, eq=False)
class CenterFromLandmark:
    """Deviation of a joint center from its offset to one landmark."""

    center: Array | None
    """(3,) Joint center [m] where it is fixed on the body of the landmarks; None: it is the first point."""
    offset: Array
    """(3,) Joint center relative to the landmark [m]."""

    def __call__(self, points: Array) -> Array:
        """Return the deviation (3,) [m]."""
        center, landmarks = _split(self.center, points)
        return np.asarray(center - landmarks[0] - self.offset)


@dataclass(frozen=True, eq=False)
class CenterFromMidpoint:
    """Deviation of a joint center from the midpoint of its landmarks."""

    center: Array | None
    """As of `CenterFromLandmark`."""

    def __call__(self, points: Array) -> Array:
        """Return the deviation (3,) [m]."""
        center, landmarks = _split(self.center, points)
        return np.asarray(center - landmarks.mean(axis=0))


@dataclass(frozen=True, eq=False)
class LandmarkLine:
    """Deviation of the line between two landmarks from that of the marker set."""

    center: Array | None
    """As of `CenterFromLandmark`."""
    line: Array
    """(3,) Second landmark relative to the first [m]."""

    def __call__(self, points: Array) -> Array:
        """Return the deviation (3,) [m]."""
        center, landmarks = _split(self.center, points)
        return np.asarray(landmarks[1] - landmarks[0] - self.line + 0.0 * center)


def _split(center: Array | None, points: Array) -> tuple[Array, Array]:
    """Return the joint center and the landmarks."""
    return (points[0], points[1:]) if center is None else (center, points)


class Tie(NamedTuple):
    """Deviation of joint centers and landmarks from anatomy.

    Attributes:
        joint: Name of the joint.
        source: Landmarks or regression that it comes from.
        points: Indices of its points among the parameters: joint centers first, then marker offsets.
        deviation: Function from points (points, 3) to the deviation (3,) [m]; a dataclass, so that fits can be pickled.
        sd: (3,) Standard deviation of the deviation [m]; inf: not tied along this axis.
    """

    joint: str
    source: str
    points: NDArray[np.int64]
    deviation: Callable[[Array], Array]
    sd: Array

    def evaluate(self, p: Array) -> tuple[Array, Array]:
        """Return the deviation (3,) [m] and its Jacobian (3, 3 points)."""
        points = p.reshape(-1, 3)[self.points]
        step = np.zeros((points.size, *points.shape), complex)
        step.reshape(points.size, -1)[np.diag_indices(points.size)] = 1j * COMPLEX_STEP
        jacobian = [np.imag(self.deviation(points + one)) / COMPLEX_STEP for one in step]
        return self.deviation(points), np.array(jacobian).T


def add_ties(ties: Sequence[Tie], p: Array, unit_sd: float, gradient: Array, matrix: Array) -> float:
    """Add gradient and Gauss-Newton Hessian of the ties in place, in units of 1 / unit_sd^2; return their energy."""
    energy = 0.0
    for tie in ties:
        deviation, jacobian = tie.evaluate(p)
        weight = (unit_sd / tie.sd) ** 2
        at = (3 * tie.points[:, None] + np.arange(3)).ravel()
        energy += 0.5 * float(weight @ deviation**2)
        gradient[at] += jacobian.T @ (weight * deviation)
        matrix[np.ix_(at, at)] += jacobian.T @ (weight[:, None] * jacobian)
    return energy


def shared_errors(ties: Sequence[Tie], p: Array, unit_sd: float) -> Array:
    """Return what common errors of both sides add to the squared gradients of the ties (see `skin_motion`).

    A regression errs alike on both sides, forward, outward and up: two ties are one measurement. With the weighted
    Jacobians A, B of right and left, and M the mirror image, that adds A^T M B + B^T M A to A^T A + B^T B.
    """
    result = np.zeros((len(p), len(p)))
    mirror = np.array([1.0, -1.0, 1.0])
    right = {tie.source: tie for tie in ties if tie.joint == "hip_r"}
    for left in ties:
        if left.joint == "hip_l" and left.source in right:
            sides = np.zeros((2, 3, len(p)))
            for slope, tie in zip(sides, (right[left.source], left), strict=True):
                at = (3 * tie.points[:, None] + np.arange(3)).ravel()
                slope[:, at] = tie.evaluate(p)[1] * (unit_sd / tie.sd)[:, None]
            cross = (sides[0] * mirror[:, None]).T @ sides[1]
            result += cross + cross.T
    return result


def find_ties(
    model: Model,
    joints: Sequence[Joint],
    recordings: Sequence[Recording] = (),
    *,
    regression: str = "harrington",
    widths: Mapping[str, float] | None = None,
) -> tuple[Tie, ...]:
    """Return the ties of a person's joints to the landmarks that its markers are on.

    Args:
        model: Model with the bodies of `human` and markers.
        joints: Joints whose centers are parameters.
        recordings: Recordings whose virtual hip centers, if any, are used too.
        regression: Regression of the hips: one of `HIP_REGRESSIONS`.
        widths: Measured widths [m] of joints, by "knee" and "ankle". Default: from the marker set, scaled to stature.
    """
    if not {"pelvis", "thigh_r", "shank_r"} <= {body.name for body in model.bodies}:
        return ()
    marks: dict[tuple[str, str], int] = {}
    for i, one in enumerate(interpret_labels([marker.name for marker in model.markers]).readings):
        if one.kind == "landmark":
            marks.setdefault((one.landmark, one.side), i)
    index = {joint.name: i for i, joint in enumerate(joints)}
    ties = _hip_ties(model, index, find_spines(model), regression, recordings)
    for name, (lateral, medial) in LANDMARKS.items():
        for side, letter in SIDES.items():
            joint = index.get(f"{name}_{letter}")
            if joint is not None:
                outer, inner = marks.get((lateral, side)), marks.get((medial, side))
                ties += _landmark_ties(model, joints, joint, outer, inner, (widths or {}).get(name))
    return tuple(ties)


def find_spines(model: Model) -> tuple[int, ...]:
    """Return the markers on the right and left anterior spines and on the posterior ones or the sacrum; () if missing.

    A marker on the sacrum lies between the posterior spines.
    """
    marks = {
        (one.landmark, one.side): i
        for i, one in enumerate(interpret_labels([marker.name for marker in model.markers]).readings)
        if one.kind == "landmark" and model.markers[i].body == "pelvis"
    }
    front = [marks[key] for key in (("asis", "right"), ("asis", "left")) if key in marks]
    for keys in ((("psis", "right"), ("psis", "left")), (("sacrum", "middle"),), (("psis", "middle"),)):
        if len(front) == 2 and all(key in marks for key in keys):
            return (*front, *(marks[key] for key in keys))
    return ()


def _hip_ties(
    model: Model, index: Mapping[str, int], spines: tuple[int, ...], regression: str, recordings: Sequence[Recording]
) -> list[Tie]:
    """Return the ties of both hips to the spines, by regression and by virtual centers; none without spines."""
    if not spines:
        return []
    ties = []
    for letter, side in (("r", -1.0), ("l", 1.0)):
        joint = index.get(f"hip_{letter}")
        if joint is None:
            continue
        at = np.array([joint, *(len(index) + i for i in spines)])

        deviation = HipFromSpines(side, regression)
        ties.append(Tie(f"hip_{letter}", f"regression ({regression})", at, deviation, np.full(3, HIP_SD)))
        local = virtual_hip(model, spines, letter, recordings)
        if local is not None:
            ties.append(Tie(f"hip_{letter}", "virtual center", at, HipFromVirtualCenter(local), np.full(3, VIRTUAL_SD)))
    return ties


def virtual_hip(model: Model, spines: tuple[int, ...], letter: str, recordings: Sequence[Recording]) -> Array | None:
    """Return the virtual hip center (3,) [m] of the recordings in the axes of the spines; None if there is none."""
    side = {letter: side for side, letter in SIDES.items()}[letter]
    measured = []
    for recording in recordings:
        columns = match_markers([model.markers[i] for i in spines], recording.markers)
        centers = [
            k
            for k, one in enumerate(interpret_labels(recording.markers).readings)
            if one.kind == "virtual center" and one.landmark == "hip_center" and one.side == side
        ]
        if not centers or min(columns) < 0:
            continue
        some = recording.data["marker_position"].isel(
            time=slice(None, None, -(-recording.frames // MAX_VIRTUAL_FRAMES))
        )
        at = some.values[:, [*columns, centers[0]]]
        for right, left, *back, center in at[np.isfinite(at).all(axis=(1, 2))]:
            spread = np.linalg.svd(np.array([left, np.mean(back, axis=0)]) - right, compute_uv=False)
            if spread[1] > MIN_SPINE_SPREAD:
                middle, axes = spine_axes(right, left, np.mean(back, axis=0))
                measured.append(axes @ (center - middle))
    return np.median(measured, axis=0) if measured else None


def _landmark_ties(
    model: Model, joints: Sequence[Joint], i: int, outer: int | None, inner: int | None, width: float | None
) -> list[Tie]:
    """Return the ties of one joint to its lateral and medial landmarks; none without a lateral one on its bodies."""
    joint, count = joints[i], len(joints)
    if outer is None or model.markers[outer].body not in (joint.parent, joint.child):
        return []
    body = model.markers[outer].body
    own = body == joint.parent  # else the center is fixed on the body
    center = np.array(joint.parent_frame.position if own else joint.child_frame.position)
    lateral = np.array(model.markers[outer].position)
    fixed, name = None if own else center, joint.name[:-2]

    def points(*markers: int) -> NDArray[np.int64]:
        return np.array([*([i] if own else []), *(count + k for k in markers)])

    if inner is None or model.markers[inner].body != body:
        offset = center - lateral
        if width is not None:
            offset[1] = np.sign(offset[1]) * (0.5 * width + MARKER_RADIUS)
        deviation = CenterFromLandmark(fixed, offset)
        return [Tie(joint.name, "lateral landmark", points(outer), deviation, np.array(LATERAL_SD))]
    line = np.array(model.markers[inner].position) - lateral
    across = np.where(np.arange(3) == np.abs(line).argmax(), inf, AXIS_SD[name])
    source, at = "medial and lateral landmarks", points(outer, inner)
    return [
        Tie(joint.name, source, at, CenterFromMidpoint(fixed), np.full(3, CENTER_SD)),
        Tie(joint.name, source, at, LandmarkLine(fixed, line), across),
    ]
