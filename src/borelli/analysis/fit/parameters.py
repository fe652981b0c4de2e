"""What a fit may change: the places of joints on their parents and of markers on their bodies (attachments).

They are one row of numbers p, joints first, three each. Beforehand each is known so well (a standard deviation) about
where the model has it; the two sides of the body are known to be alike; kept lengths and places are known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import tree_links
from borelli.model.model import GROUND, Joint, Model, Vector
from borelli.model.transforms import orientation_matrix, vector

Array = NDArray[np.float64]

MARKER_SD = 0.005
"""[m] of a marker about its place: what skin and cameras leave (spec mocap, 1)."""
JOINT_SD = 0.020
"""[m] of a joint about where a body of this height has it."""
ATTACHMENT_SD = 0.030
"""[m] of a marker about where the marker set puts it."""
SIDES_SD = 0.003
"""[m] by which left and right differ."""
KEPT_SD = 1e-6
"""[m] of what the user states."""


@dataclass(frozen=True)
class Segment:
    """A length on one body: between two joints that it carries, or from the joint that carries it to one of those."""

    name: str
    far: int
    """Number of a joint among those whose places are unknown."""
    near: int | Vector
    """Number of another, or the place of the joint that carries the body [m]."""


@dataclass(frozen=True)
class Unknowns:
    """The joint places and attachments of a model, and what is known of them beforehand."""

    model: Model
    joints: tuple[Joint, ...]
    """Whose places on their parents are unknown."""
    sides: tuple[tuple[int, int], ...]
    """Pairs of joints that mirror each other."""
    across: int
    """Number of the axis from one side of the body to the other."""
    kept_lengths: Mapping[int, float]
    """By number of the segment [m]."""
    kept_places: tuple[int, ...]
    """Numbers of the markers that stay."""

    @cached_property
    def start(self) -> Array:
        """(unknowns,) where the model has them."""
        places = [joint.parent_frame.position for joint in self.joints]
        return np.array([*places, *(marker.position for marker in self.model.markers)], dtype=float).ravel()

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Every length between joints; named by its body, or by body and joints where several hang on it.

        The body that the ground carries has no joint to count from: its lengths are between those it carries.
        """
        own = {joint.child: joint for joint in self.model.joints if not joint.closes_loop}
        held = [joint.parent for joint in self.joints]
        found = []
        for i, joint in enumerate(self.joints):
            body = joint.parent
            if own[body].parent != GROUND:
                name = body if held.count(body) == 1 else f"{body} to {joint.name}"
                found.append(Segment(name, i, own[body].child_frame.position))
            else:
                others = [k for k in range(i) if held[k] == body]
                found += [Segment(f"{body}: {self.joints[k].name} to {joint.name}", i, k) for k in others]
        return tuple(found)

    @cached_property
    def precision(self) -> Array:
        """(unknowns, unknowns) second derivative of what is known beforehand, in units of 1 / `MARKER_SD` ^2."""
        n, joints = len(self.start), len(self.joints)
        sd = np.full(n // 3, ATTACHMENT_SD)
        sd[:joints] = JOINT_SD
        sd[joints + np.array(self.kept_places, dtype=int)] = KEPT_SD
        result = np.diag(np.repeat((MARKER_SD / sd) ** 2, 3))
        mirror = np.ones(3)
        mirror[self.across] = -1.0
        k = (MARKER_SD / SIDES_SD) ** 2
        for a, b in self.sides:
            for axis in range(3):
                i, j = 3 * a + axis, 3 * b + axis
                result[[i, j], [i, j]] += k
                result[[i, j], [j, i]] -= k * mirror[axis]
        return result

    def known(self, p: Array) -> tuple[float, Array, Array]:
        """Energy, gradient and second derivative of what is known beforehand."""
        off = p - self.start
        matrix = self.precision.copy()
        gradient = matrix @ off
        energy = 0.5 * float(off @ gradient)
        k = (MARKER_SD / KEPT_SD) ** 2
        for number, length in self.kept_lengths.items():
            value, way = self.length(p, number)
            energy += 0.5 * k * (value - length) ** 2
            gradient += k * (value - length) * way
            matrix += k * np.outer(way, way)
        return energy, gradient, matrix

    @cached_property
    def travels(self) -> Array:
        """(joints, 3) how far each child's joint frame is from its place on the parent in the default pose [m]."""
        return np.array([travel(self.model, joint) for joint in self.joints]).reshape(-1, 3)

    def length(self, p: Array, number: int) -> tuple[float, Array]:
        """A segment's length [m] and how it changes with p."""
        segment, places = self.segments[number], p.reshape(-1, 3)
        centers = places[: len(self.joints)] + self.travels
        line = centers[segment.far] - (centers[segment.near] if isinstance(segment.near, int) else segment.near)
        value = float(np.linalg.norm(line))
        way = np.zeros_like(places)
        if value > 0.0:
            way[segment.far] = line / value
            if isinstance(segment.near, int):
                way[segment.near] = -line / value
        return value, way.reshape(-1)

    def placed(self, p: Array) -> Model:
        """The model with its joint places and attachments there; nothing else is changed."""
        places = p.reshape(-1, 3)
        found = {joint.name: vector(at) for joint, at in zip(self.joints, places, strict=False)}
        joints = tuple(
            replace(joint, parent_frame=replace(joint.parent_frame, position=found[joint.name]))
            if joint.name in found
            else joint
            for joint in self.model.joints
        )
        markers = tuple(
            replace(marker, position=vector(at))
            for marker, at in zip(self.model.markers, places[len(self.joints) :], strict=True)
        )
        return replace(self.model, joints=joints, markers=markers)

    @cached_property
    def moves(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The body in which each three unknowns are stated (-1: ground), and which markers they move."""
        index = {body.name: i for i, body in enumerate(self.model.bodies)} | {GROUND: -1}
        carried = np.eye(len(self.model.bodies), dtype=bool)
        for link in reversed(tree_links(self.model)):
            if link.parent >= 0:
                carried[link.parent] |= carried[link.child]
        owner = np.array([index[marker.body] for marker in self.model.markers], dtype=np.int64)
        parent = np.array([index[joint.parent] for joint in self.joints], dtype=np.int64)
        moved = [carried[index[joint.child]][owner] & (owner >= 0) for joint in self.joints]
        return np.concatenate([parent, owner]), np.array([*moved, *np.eye(len(owner), dtype=bool)], dtype=bool)


def make_unknowns(model: Model, symmetric: bool, keep: Mapping[str, float | Sequence[float]]) -> Unknowns:
    """What is unknown of a model that wears its markers; `keep` as in `fit_model`."""
    joints = tuple(
        joint for joint in model.joints if joint.parent != GROUND and joint.kind != "fixed" and not joint.closes_loop
    )
    sides, across = mirrored_joints(joints)
    plain = Unknowns(model, joints, sides if symmetric else (), across, {}, ())
    segments = [segment.name for segment in plain.segments]
    names = [marker.name for marker in model.markers]
    lengths: dict[int, float] = {}
    places: dict[int, tuple[float, float, float]] = {}
    for name, value in keep.items():
        if name in segments and isinstance(value, int | float):
            if not 0.0 < value < 10.0:
                raise SettingsError(f"keep: {name!r} is {value} m long, but a length must be positive, in metres")
            lengths[segments.index(name)] = float(value)
        elif name in names and not isinstance(value, int | float) and np.shape(value) == (3,):
            places[names.index(name)] = vector(value)
        elif name in segments or name in names:
            raise SettingsError(f"keep: {name!r} is {value!r}, but a segment takes a length [m], a marker a place (3)")
        else:
            raise SettingsError(f"keep: {unknown_name('segment or marker', name, [*segments, *names])}")
    markers = tuple(
        replace(marker, position=places[i]) if i in places else marker for i, marker in enumerate(model.markers)
    )
    return replace(plain, model=replace(model, markers=markers), kept_lengths=lengths, kept_places=tuple(places))


def travel(model: Model, joint: Joint) -> Array:
    """How far a joint has shifted its child along the parent's axes in the default pose [m]: knees that roll do."""
    parts = (
        [*zip(joint.axes or np.eye(3), joint.coordinates, strict=False)] if joint.kind in ("slider", "planar") else []
    )
    shift = sum((c.default * np.array(axis) for axis, c in parts if not c.rotational), start=np.zeros(3))
    defaults = {c.name: c.default for c in model.coordinates}
    for one in joint.motion[3:]:
        x = defaults[one.coordinate] if one.coordinate else 0.0
        shift = shift + one.function(x) * np.array(one.axis) / np.linalg.norm(one.axis)
    return np.asarray(orientation_matrix(joint.parent_frame.orientation) @ shift)


def other_side(name: str) -> str | None:
    """The name of a thing's twin on the left, if the name says right as models do (`_r`, `r_`, `right`)."""
    if name.endswith("_r"):
        return f"{name[:-2]}_l"
    if name.startswith("r_"):
        return f"l_{name[2:]}"
    for right, left in (("right", "left"), ("Right", "Left")):
        if right in name:
            return name.replace(right, left)
    return None


def mirrored_joints(joints: Sequence[Joint]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Pairs of joints (right, left) and the axis on which they are opposite."""
    index = {joint.name: i for i, joint in enumerate(joints)}
    pairs = [(i, index[twin]) for name, i in index.items() if (twin := other_side(name)) in index and twin is not None]
    if not pairs:
        return (), 1
    right = np.array([joints[i].parent_frame.position for i, _ in pairs])
    left = np.array([joints[i].parent_frame.position for _, i in pairs])
    together, apart = ((right - left) ** 2).sum(axis=0), ((right + left) ** 2).sum(axis=0)
    return tuple(pairs), int(np.argmin(apart - together))
