"""Joints of one MJCF body as joints of the model.

A body in MJCF can have several joints, applied in sequence: with B the body's pose in its parent and J_i the rotation
about joint i's axis through its anchor (or the translation along its axis), both in the body's frame, the body has the
pose B J_1 J_2 ... J_n. Joints are merged as long as they are translations followed by rotations whose axes meet in one
point; that is one joint of the model. Otherwise, a massless body that moves with the joints so far is inserted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from borelli.model.functions import constant, linear
from borelli.model.model import Body, Coordinate, Frame, Joint, TransformAxis, Vector
from borelli.model.transforms import Array, axis_angle, compose, orientation_from_matrix, orientation_matrix, vector

AXIS_TOLERANCE = 1e-9
"""Largest distance [m] of axes that meet, and largest sine of parallel axes: far below the rounding in files."""
MIN_AXES_VOLUME = 1e-3
"""Smallest volume spanned by three unit axes of one joint: below it the coordinates are nearly dependent."""
NO_INERTIA = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@dataclass(frozen=True, slots=True)
class AxisMotion:
    """Rotation or translation of a body about one axis: a joint of MJCF, or one of the three rotations of its ball."""

    coordinate: Coordinate
    rotational: bool
    anchor: Vector
    axis: Vector
    """Unit vector in the body's frame, like the anchor."""
    offset: float = 0.0
    """Value of the coordinate in the reference pose (MJCF's ref)."""


def free_joint(name: str, body: str, parent: str, pose: Frame, coordinates: Sequence[str]) -> Joint:
    """Return the free joint whose translations are the body's position and whose angles are zero in the file's pose."""
    child_frame = Frame(orientation=orientation_from_matrix(orientation_matrix(pose.orientation).T))
    values = zip(coordinates, (*pose.position, 0.0, 0.0, 0.0), strict=True)
    named = tuple(Coordinate(coordinate, value, rotational=i >= 3) for i, (coordinate, value) in enumerate(values))
    return Joint(name, "free", parent, body, child_frame=child_frame, coordinates=named)


def joint_chain(
    body: str, parent: str, pose: Frame, moves: Sequence[AxisMotion], joint_name: str = ""
) -> tuple[list[Joint], list[Body]]:
    """Return the joints that give a body these motions, in MuJoCo's order, and the massless bodies between them.

    `pose` is that of the body in its parent before any motion. A single joint has the name `joint_name`; several
    motions or joints are named after the body.
    """
    groups = _groups(moves)
    joints: list[Joint] = []
    between: list[Body] = []
    for number, group in enumerate(groups, 1):
        last = number == len(groups)
        child = body if last else f"{body}_carrier{number}"
        name = joint_name if len(moves) <= 1 and joint_name else (body if len(groups) == 1 else f"{body}_{number}")
        outer = pose if number == 1 else Frame()
        joints.append(_joint(name, parent, child, outer, group))
        if not last:
            between.append(Body(child, 0.0, inertia=NO_INERTIA))
        parent = child
    return joints, between


@dataclass(frozen=True, slots=True)
class _Group:
    """Motions of one joint: translations, then rotations about axes through one point."""

    translations: tuple[AxisMotion, ...] = ()
    rotations: tuple[AxisMotion, ...] = ()
    point: Vector = (0.0, 0.0, 0.0)

    def with_move(self, move: AxisMotion) -> _Group | None:
        """Return the group with one more motion, or None if one joint cannot have them all."""
        if move.rotational:
            rotations = (*self.rotations, move)
            point = _meeting_point(rotations) if _span(rotations) else None
            return None if point is None else replace(self, rotations=rotations, point=vector(point))
        # a translation along the axis of a rotation commutes with it
        if any(np.linalg.norm(np.cross(rotation.axis, move.axis)) > AXIS_TOLERANCE for rotation in self.rotations):
            return None
        translations = (*self.translations, move)
        return replace(self, translations=translations) if _span(translations) else None


def _groups(moves: Sequence[AxisMotion]) -> list[_Group]:
    groups = [_Group()]
    for move in moves:
        larger = groups[-1].with_move(move)
        if larger is None:
            groups.append(_Group())
            larger = groups[-1].with_move(move)
            assert larger is not None  # a single motion always fits
        groups[-1] = larger
    return groups


def _span(moves: Sequence[AxisMotion]) -> bool:
    """Return True if the axes of up to three motions are independent."""
    if len(moves) > 3:
        return False
    return abs(float(np.linalg.det(np.array(_completed([move.axis for move in moves]))))) > MIN_AXES_VOLUME


def _meeting_point(rotations: Sequence[AxisMotion]) -> Array | None:
    """Return the intersection of all axes, nearest to the first anchor; None if there is none."""
    anchors = np.array([rotation.anchor for rotation in rotations])
    if np.abs(anchors - anchors[0]).max() == 0.0:
        return anchors[0]
    across = [np.eye(3) - np.outer(rotation.axis, rotation.axis) for rotation in rotations]
    required = np.concatenate([a @ (anchor - anchors[0]) for a, anchor in zip(across, anchors, strict=True)])
    offset, *_ = np.linalg.lstsq(np.concatenate(across), required, rcond=1e-9)
    distance = np.abs(np.concatenate(across) @ offset - required).max()
    return anchors[0] + offset if distance < AXIS_TOLERANCE else None


def _completed(axes: Sequence[Vector]) -> list[Vector]:
    """Return the axes, extended to three by axes perpendicular to those before."""
    result = [np.array(axis) for axis in axes]
    if not result:
        result.append(np.array([1.0, 0.0, 0.0]))
    if len(result) == 1:
        x = result[0]
        y = np.roll(np.eye(3)[int(np.argmax(np.abs(x)))], 1)
        y = y - (y @ x) * x / (x @ x)
        result.append(y / np.linalg.norm(y))
    if len(result) == 2:
        z = np.cross(result[0], result[1])
        length = np.linalg.norm(z)
        result.append(z / length if length > 0.0 else z)
    return [vector(axis) for axis in result]


def _joint(name: str, parent: str, child: str, pose: Frame, group: _Group) -> Joint:
    """Return the simplest joint for the motions of a group; `pose` is the child's in the parent before them."""
    moves = group.translations + group.rotations
    parent_frame, child_frame = compose(pose, Frame(group.point)), Frame(group.point)
    coordinates = tuple(move.coordinate for move in moves)
    axes = tuple(move.axis for move in moves)
    kind = _simple_kind(group)
    if len(moves) == 1:  # a single offset is moved to the frame
        (move,) = moves
        if move.rotational:
            kind, offset = "hinge", Frame(orientation=axis_angle(move.axis, -move.offset))
        else:
            kind, offset = "slider", Frame(vector(-move.offset * np.array(move.axis)))
        parent_frame = compose(parent_frame, offset)
    if kind is not None:
        axes = axes[:2] if kind == "planar" else axes[:3]
        return Joint(name, kind, parent, child, parent_frame, child_frame, axes, coordinates)
    motion = (*_motion(group.rotations), *_motion(group.translations))
    return Joint(name, "coordinate", parent, child, parent_frame, child_frame, (), coordinates, motion)


def _simple_kind(group: _Group) -> str | None:
    """Return the kind of joint, other than a coordinate joint, with these motions in this order."""
    translations, rotations = group.translations, group.rotations
    if any(move.offset != 0.0 for move in translations + rotations) or not (
        _perpendicular(translations) and _perpendicular(rotations)
    ):
        return None
    count = len(translations), len(rotations)
    if count == (2, 1):
        normal = np.cross(translations[0].axis, translations[1].axis)
        return "planar" if _same([normal], [rotations[0].axis]) else None
    if count == (3, 3):
        return "free" if _same([m.axis for m in translations], [m.axis for m in rotations]) else None
    return {(0, 0): "fixed", (0, 2): "universal", (0, 3): "ball"}.get(count)


def _perpendicular(moves: Sequence[AxisMotion]) -> bool:
    axes = np.array([move.axis for move in moves]).reshape(-1, 3)
    return bool(np.abs(axes @ axes.T - np.eye(len(axes))).max(initial=0.0) < AXIS_TOLERANCE)


def _same(first: Sequence[Vector | Array], second: Sequence[Vector | Array]) -> bool:
    return bool(np.abs(np.array(first) - np.array(second)).max() < AXIS_TOLERANCE)


def _motion(moves: Sequence[AxisMotion]) -> Iterator[TransformAxis]:
    """Yield three axes of a coordinate joint's motion: these motions, then constant ones."""
    for axis, move in zip_longest(_completed([move.axis for move in moves]), moves):
        if move is None:
            yield TransformAxis(axis, constant(0.0))
        else:
            yield TransformAxis(axis, linear(1.0, -move.offset), move.coordinate.name)
