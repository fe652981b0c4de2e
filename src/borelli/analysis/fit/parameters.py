"""Fit parameters: joint centers on their parents and marker offsets on their bodies.

They are one vector p, joints first, three numbers each. Their prior is normal about the given model; joint centers are
tied to landmarks (`anatomical_ties`); the two sides of the body are alike; kept lengths and offsets are exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.anatomical_ties import Tie, add_ties, find_ties
from borelli.analysis.fit.segment_zeros import FootPrior, mean_rotation
from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import tree_links
from borelli.model.model import GROUND, Joint, Model, Vector
from borelli.model.transforms import orientation_matrix, vector
from borelli.numerics.vectors import Array
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.recording import Recording

MARKER_SD = 0.005
"""[m] of a marker about its offset: what skin and cameras leave."""
JOINT_SD, TIED_JOINT_SD = 0.020, 0.040
"""[m] of a joint center about that of a body of this height; wider if landmarks determine the joints of the legs."""
LONG_AXIS_JOINTS, LONG_AXIS_SD = ("knee", "ankle"), 0.010
"""[m] of knees and ankles before or behind the long axes of thigh and shank of `human`.

These axes are through the joint centers by convention (Wu et al. 2002), which determines the zero of flexion.
"""
OFFSET_SD = 0.030
"""[m] of a marker offset about that of the marker set."""
TIED_OFFSET_SD = {"landmark": 0.080, "cluster": 0.100, "wand": 0.100}
"""[m] The same, by kind of marker, if landmarks act through ties: clusters may be anywhere on a segment."""
SYMMETRY_SD = 0.003
"""[m] of the difference between left and right."""
PELVIS_ROTATION_SD = 0.005
"""[rad] of the pelvis in its markers, about their mean rotation from the marker set: 0.3 degrees, a convention."""
KEPT_SD = 1e-6
"""[m] of values that the user states."""


@dataclass(frozen=True)
class Segment:
    """Length on one body: between two joint centers on it, or from the body's own joint to one of them."""

    name: str
    distal: int
    """Index of a joint among those whose centers are parameters."""
    proximal: int | Vector
    """Index of another, or the center of the body's own joint [m]."""


@dataclass(frozen=True)
class FitParameters:
    """Joint centers and marker offsets of a model, and their prior distribution."""

    model: Model
    joints: tuple[Joint, ...]
    """Joints whose centers on their parents are parameters."""
    sides: tuple[tuple[int, int], ...]
    """Pairs of joints that mirror each other."""
    lateral_axis: int
    """Index of the axis from one side of the body to the other."""
    kept_lengths: Mapping[int, float]
    """By index of the segment [m]."""
    kept_offsets: tuple[int, ...]
    """Indices of the markers whose offsets are known."""
    feet: tuple[FootPrior, ...] = ()
    """Where the markers of feet lie on them."""
    pelvis: tuple[int, ...] = ()
    """Markers that define the axes of the pelvis."""
    ties: tuple[Tie, ...] = ()
    """Ties of joint centers to landmarks."""
    offset_sd: tuple[float, ...] = ()
    """Standard deviation of each marker offset about that of the marker set [m]."""

    @cached_property
    def start(self) -> Array:
        """(parameters,) of the given model."""
        centers = [joint.parent_frame.position for joint in self.joints]
        return np.array([*centers, *(marker.position for marker in self.model.markers)], dtype=float).ravel()

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """All lengths between joints, named by body, or by body and joints where it has several.

        The root body has no joint of its own to measure from: its lengths are between the joints on it.
        """
        own = {joint.child: joint for joint in self.model.joints if not joint.closes_loop}
        parents = [joint.parent for joint in self.joints]
        result = []
        for i, joint in enumerate(self.joints):
            body = joint.parent
            if own[body].parent != GROUND:
                name = body if parents.count(body) == 1 else f"{body} to {joint.name}"
                result.append(Segment(name, i, own[body].child_frame.position))
            else:
                others = [k for k in range(i) if parents[k] == body]
                result += [Segment(f"{body}: {self.joints[k].name} to {joint.name}", i, k) for k in others]
        return tuple(result)

    @cached_property
    def precision(self) -> Array:
        """(parameters, parameters) Hessian of the prior without kept lengths, in units of 1 / `MARKER_SD`^2."""
        n, joints = len(self.start), len(self.joints)
        sd = np.full(n // 3, TIED_JOINT_SD if self.ties else JOINT_SD)
        sd[joints:] = self.offset_sd
        sd[joints + np.array(self.kept_offsets, dtype=int)] = KEPT_SD
        diagonal = np.repeat((MARKER_SD / sd) ** 2, 3)
        for i, joint in enumerate(self.joints):
            if self.ties and joint.name[:-2] in LONG_AXIS_JOINTS:
                diagonal[3 * i] = (MARKER_SD / LONG_AXIS_SD) ** 2
        result = np.diag(diagonal)
        mirror = np.ones(3)
        mirror[self.lateral_axis] = -1.0
        k = (MARKER_SD / SYMMETRY_SD) ** 2
        for a, b in self.sides:
            for axis in range(3):
                i, j = 3 * a + axis, 3 * b + axis
                result[[i, j], [i, j]] += k
                result[[i, j], [j, i]] -= k * mirror[axis]
        for foot in self.feet:
            _, y, z = 3 * (joints + np.array(foot.markers)) + np.arange(3)[:, None]
            result[np.ix_(y, y)] += MARKER_SD**2 * foot.side_precision()
            result[np.ix_(z, z)] += MARKER_SD**2 * foot.height_precision()
        if self.pelvis:
            at = (3 * (joints + np.array(self.pelvis))[:, None] + np.arange(3)).ravel()
            slope = (MARKER_SD / PELVIS_ROTATION_SD) * mean_rotation(self.start[at].reshape(-1, 3))
            result[np.ix_(at, at)] += slope.T @ slope
        return result

    def prior(self, p: Array) -> tuple[float, Array, Array]:
        """Return energy, gradient and Hessian of the prior."""
        off = p - self.start
        matrix = self.precision.copy()
        gradient = matrix @ off
        energy = 0.5 * float(off @ gradient) + add_ties(self.ties, p, MARKER_SD, gradient, matrix)
        k = (MARKER_SD / KEPT_SD) ** 2
        for index, length in self.kept_lengths.items():
            value, slope = self.length(p, index)
            energy += 0.5 * k * (value - length) ** 2
            gradient += k * (value - length) * slope
            matrix += k * np.outer(slope, slope)
        return energy, gradient, matrix

    @cached_property
    def displacements(self) -> Array:
        """(joints, 3) displacement [m] of each child's joint frame from its center on the parent, default pose."""
        return np.array([default_displacement(self.model, joint) for joint in self.joints]).reshape(-1, 3)

    def length(self, p: Array, index: int) -> tuple[float, Array]:
        """Return a segment's length [m] and its gradient (parameters,) by p."""
        segment, points = self.segments[index], p.reshape(-1, 3)
        centers = points[: len(self.joints)] + self.displacements
        proximal = segment.proximal
        line = centers[segment.distal] - (centers[proximal] if isinstance(proximal, int) else proximal)
        value = float(np.linalg.norm(line))
        slope = np.zeros_like(points)
        if value > 0.0:
            slope[segment.distal] = line / value
            if isinstance(proximal, int):
                slope[proximal] = -line / value
        return value, slope.reshape(-1)

    def model_at(self, p: Array) -> Model:
        """Return the model with joint centers and marker offsets p; nothing else is changed."""
        points = p.reshape(-1, 3)
        centers = {joint.name: vector(at) for joint, at in zip(self.joints, points, strict=False)}
        joints = tuple(
            replace(joint, parent_frame=replace(joint.parent_frame, position=centers[joint.name]))
            if joint.name in centers
            else joint
            for joint in self.model.joints
        )
        markers = tuple(
            replace(marker, position=vector(at))
            for marker, at in zip(self.model.markers, points[len(self.joints) :], strict=True)
        )
        return replace(self.model, joints=joints, markers=markers)

    @cached_property
    def moved_markers(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Body in whose frame each three parameters are (-1: ground), and the markers that they move."""
        index = {body.name: i for i, body in enumerate(self.model.bodies)} | {GROUND: -1}
        subtree = np.eye(len(self.model.bodies), dtype=bool)
        for link in reversed(tree_links(self.model)):
            if link.parent >= 0:
                subtree[link.parent] |= subtree[link.child]
        owner = np.array([index[marker.body] for marker in self.model.markers], dtype=np.int64)
        parent = np.array([index[joint.parent] for joint in self.joints], dtype=np.int64)
        moved = [subtree[index[joint.child]][owner] & (owner >= 0) for joint in self.joints]
        return np.concatenate([parent, owner]), np.array([*moved, *np.eye(len(owner), dtype=bool)], dtype=bool)


def make_parameters(
    model: Model,
    symmetric: bool,
    keep: Mapping[str, float | Sequence[float]],
    feet: tuple[FootPrior, ...] = (),
    pelvis: tuple[int, ...] = (),
    *,
    recordings: Sequence[Recording] = (),
    hip_regression: str = "harrington",
    widths: Mapping[str, float] | None = None,
) -> FitParameters:
    """Return the parameters of a model with markers.

    `keep` and `hip_regression` are as in `fit_model`, `recordings` and `widths` as in `find_ties`, the rest as in
    `FitParameters`.
    """
    positions = {i: z for foot in feet for i, z in zip(foot.markers, foot.height, strict=True)}
    raised = (
        replace(m, position=(*m.position[:2], float(positions[i]))) if i in positions else m
        for i, m in enumerate(model.markers)
    )
    model = replace(model, markers=tuple(raised))
    joints = tuple(
        joint for joint in model.joints if joint.parent != GROUND and joint.kind != "fixed" and not joint.closes_loop
    )
    sides, lateral_axis = mirrored_joints(joints)
    ties = find_ties(model, joints, recordings, regression=hip_regression, widths=widths)
    # each side of a tied joint has its own landmarks, whatever was recorded of the other
    tied = {tie.joint for tie in ties}
    sides = tuple(pair for pair in sides if not {joints[i].name for i in pair} <= tied)
    plain = FitParameters(model, joints, sides if symmetric else (), lateral_axis, {}, ())
    segments = [segment.name for segment in plain.segments]
    names = [marker.name for marker in model.markers]
    lengths: dict[int, float] = {}
    offsets: dict[int, tuple[float, float, float]] = {}
    for name, value in keep.items():
        if name in segments and isinstance(value, int | float):
            if not 0.0 < value < 10.0:
                raise SettingsError(f"keep: The length of {name!r} is {value} m. Use a positive length in meters.")
            lengths[segments.index(name)] = float(value)
        elif name in names and not isinstance(value, int | float) and np.shape(value) == (3,):
            offsets[names.index(name)] = vector(value)
        elif name in segments or name in names:
            raise SettingsError(
                f"keep: {name!r} is {value}. Pass a length [m] for a segment, or three numbers [m] for a marker."
            )
        else:
            raise SettingsError(f"keep: {unknown_name('segment or marker', name, [*segments, *names])}")
    markers = tuple(
        replace(marker, position=offsets[i]) if i in offsets else marker for i, marker in enumerate(model.markers)
    )
    model = replace(model, markers=markers)
    kinds = [one.kind for one in interpret_labels(names).readings]
    return replace(
        plain, model=model, kept_lengths=lengths, kept_offsets=tuple(offsets), feet=feet, pelvis=pelvis,
        ties=ties,
        offset_sd=tuple(
            TIED_OFFSET_SD.get(kind, TIED_OFFSET_SD["landmark"]) if ties else OFFSET_SD for kind in kinds
        ),
    )  # fmt: skip


def default_displacement(model: Model, joint: Joint) -> Array:
    """Return the translation (3,) [m] of a joint's child in the default pose, in the parent's axes: knees may roll."""
    parts = (
        [*zip(joint.axes or np.eye(3), joint.coordinates, strict=False)] if joint.kind in ("slider", "planar") else []
    )
    total = sum((c.default * np.array(axis) for axis, c in parts if not c.rotational), start=np.zeros(3))
    defaults = {c.name: c.default for c in model.coordinates}
    for one in joint.motion[3:]:
        x = defaults[one.coordinate] if one.coordinate else 0.0
        total = total + one.function(x) * np.array(one.axis) / np.linalg.norm(one.axis)
    return np.asarray(orientation_matrix(joint.parent_frame.orientation) @ total)


def left_name(name: str) -> str | None:
    """Return the name of the left counterpart of a name for the right (`_r`, `r_`, `right`); None for other names."""
    for right, left in ((r"_r$", "_l"), (r"^r_", "l_"), ("right", "left"), ("Right", "Left")):
        if re.search(right, name):
            return re.sub(right, left, name)
    return None


def mirrored_joints(joints: Sequence[Joint]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Return pairs of joints (right, left) and the index of the axis on which they are opposite."""
    index = {joint.name: i for i, joint in enumerate(joints)}
    pairs = [(i, index[twin]) for name, i in index.items() if (twin := left_name(name)) in index and twin is not None]
    if not pairs:
        return (), 1
    right = np.array([joints[i].parent_frame.position for i, _ in pairs])
    left = np.array([joints[i].parent_frame.position for _, i in pairs])
    together, apart = ((right - left) ** 2).sum(axis=0), ((right + left) ** 2).sum(axis=0)
    return tuple(pairs), int(np.argmin(apart - together))
