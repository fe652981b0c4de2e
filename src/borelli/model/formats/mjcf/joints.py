"""The joints of one MJCF body as joints of ours.

MuJoCo lets a body carry several joints, done one after the other: with B the body's place in its parent and J_i the
turn about joint i's axis through its anchor (or the shift along its axis), both stated in the body's frame, the body
stands at B J_1 J_2 ... J_n. Joints are put together as long as they are shifts followed by turns whose axes meet in
one point; that is one of our joints. Where they are not, a body without mass that moves with the joints so far is put
between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from borelli.model.functions import constant, linear
from borelli.model.model import Body, Coordinate, Frame, Joint, TransformAxis, Vector
from borelli.model.transforms import compose, orientation_matrix, orientation_from_matrix, vector

MEETING = 1e-9
"""Axes that pass each other at less than this [m] meet, and sines below it are zero: far below what files round to."""
SPANNING = 1e-3
"""Volume that three unit axes must span for one joint to hold them: below it its coordinates cannot be told apart."""
NO_INERTIA = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Move:
    """One turn or shift of a body: a joint of MJCF, or one of the three turns of its ball."""

    coordinate: Coordinate
    turns: bool
    anchor: Vector
    axis: Vector
    """Unit length, like the anchor in the body's frame."""
    offset: float = 0.0
    """The coordinate's value at which the body has not moved (MJCF's ref)."""


def free_joint(name: str, body: str, parent: str, place: Frame, coordinates: Sequence[str]) -> Joint:
    """The free joint whose shifts are the body's place in the world and whose angles are zero as the file has it."""
    turn = orientation_matrix(place.orientation)
    values = (*place.position, 0.0, 0.0, 0.0)
    named = tuple(
        Coordinate(coordinate, default=value, rotational=i >= 3)
        for i, (coordinate, value) in enumerate(zip(coordinates, values, strict=True))
    )
    return Joint(name, "free", parent, body, child_frame=Frame(orientation=orientation_from_matrix(turn.T)), coordinates=named)


def chain(
    body: str, parent: str, place: Frame, moves: Sequence[Move], joint_name: str = ""
) -> tuple[list[Joint], list[Body]]:
    """Joints that carry a body by these moves, and the bodies without mass between them.

    Args:
        body: name of the moved body.
        parent: name of the body it moves in.
        place: the body's frame in its parent before any move.
        moves: in the order in which MuJoCo makes them.
        joint_name: of the only joint; where there are several moves or joints, they are named after the body.
    """
    groups = _groups(moves)
    joints: list[Joint] = []
    between: list[Body] = []
    for number, group in enumerate(groups, 1):
        last = number == len(groups)
        child = body if last else f"{body}_carrier{number}"
        name = joint_name if len(moves) <= 1 and joint_name else (body if len(groups) == 1 else f"{body}_{number}")
        outer = place if number == 1 else Frame()
        joints.append(_joint(name, parent, child, outer, group))
        if not last:
            between.append(Body(child, 0.0, inertia=NO_INERTIA))
        parent = child
    return joints, between


@dataclass(frozen=True, slots=True)
class _Group:
    """Moves that one joint can make: shifts, then turns about axes through one point."""

    shifts: tuple[Move, ...] = ()
    turns: tuple[Move, ...] = ()
    point: Vector = (0.0, 0.0, 0.0)

    def with_move(self, move: Move) -> _Group | None:
        """The group with one more move, or None if one joint cannot make them all."""
        if move.turns:
            turns = (*self.turns, move)
            point = _meeting_point(turns)
            return replace(self, turns=turns, point=vector(point)) if point is not None and _span(turns) else None
        # a shift along the axis of a turn may as well be made before it
        if any(np.linalg.norm(np.cross(turn.axis, move.axis)) > MEETING for turn in self.turns):
            return None
        shifts = (*self.shifts, move)
        return replace(self, shifts=shifts) if _span(shifts) else None


def _groups(moves: Sequence[Move]) -> list[_Group]:
    groups = [_Group()]
    for move in moves:
        larger = groups[-1].with_move(move)
        if larger is None:
            groups.append(_Group())
            larger = groups[-1].with_move(move)
            assert larger is not None  # one move alone always fits
        groups[-1] = larger
    return groups


def _span(moves: Sequence[Move]) -> bool:
    """Whether the axes of up to three moves are independent."""
    if len(moves) > 3:
        return False
    return abs(float(np.linalg.det(np.array(_completed([move.axis for move in moves]))))) > SPANNING


def _meeting_point(turns: Sequence[Move]) -> Array | None:
    """The point through which all axes pass, nearest to the first anchor; None if there is none."""
    anchors = np.array([turn.anchor for turn in turns])
    if np.abs(anchors - anchors[0]).max() == 0.0:
        return anchors[0]
    across = [np.eye(3) - np.outer(turn.axis, turn.axis) for turn in turns]
    wanted = np.concatenate([a @ (anchor - anchors[0]) for a, anchor in zip(across, anchors, strict=True)])
    shift, *_ = np.linalg.lstsq(np.concatenate(across), wanted, rcond=1e-9)
    missed = np.abs(np.concatenate(across) @ shift - wanted).max()
    return anchors[0] + shift if missed < MEETING else None


def _completed(axes: Sequence[Vector]) -> list[Vector]:
    """Up to three axes with as many added, square to all before, as make three."""
    found = [np.array(axis) for axis in axes]
    if not found:
        found.append(np.array([1.0, 0.0, 0.0]))
    if len(found) == 1:
        x = found[0]
        y = np.roll(np.eye(3)[int(np.argmax(np.abs(x)))], 1)
        y = y - (y @ x) * x / (x @ x)
        found.append(y / np.linalg.norm(y))
    if len(found) == 2:
        z = np.cross(found[0], found[1])
        length = np.linalg.norm(z)
        found.append(z / length if length > 0.0 else z)
    return [vector(axis) for axis in found]


def _joint(name: str, parent: str, child: str, place: Frame, group: _Group) -> Joint:
    """The simplest joint that makes the moves of a group; `place` is the child's frame in the parent before them."""
    moves = group.shifts + group.turns
    parent_frame, child_frame = compose(place, Frame(group.point)), Frame(group.point)
    coordinates = tuple(move.coordinate for move in moves)
    axes = tuple(move.axis for move in moves)
    if len(moves) == 1:  # the one offset goes into the frame
        (move,) = moves
        single = "hinge" if move.turns else "slider"
        return Joint(name, single, parent, child, compose(parent_frame, _undone(move)), child_frame, axes, coordinates)
    kind = _simple_kind(group)
    if kind is not None:
        axes = axes[:2] if kind == "planar" else axes[:3]
        return Joint(name, kind, parent, child, parent_frame, child_frame, axes, coordinates)
    motion = (*_motion(group.turns), *_motion(group.shifts))
    return Joint(name, "coordinate", parent, child, parent_frame, child_frame, (), coordinates, motion)


def _undone(move: Move) -> Frame:
    """The frame that takes back the offset of a move."""
    if not move.turns:
        return Frame(vector(-move.offset * np.array(move.axis)))
    x, y, z = -np.sin(0.5 * move.offset) * np.array(move.axis)
    return Frame(orientation=(float(np.cos(0.5 * move.offset)), float(x), float(y), float(z)))


def _simple_kind(group: _Group) -> str | None:
    """The kind of joint, other than a coordinate joint, that makes these moves in this order."""
    shifts, turns = group.shifts, group.turns
    if any(move.offset != 0.0 for move in shifts + turns) or not (_square(shifts) and _square(turns)):
        return None
    count = len(shifts), len(turns)
    if count == (2, 1):
        normal = np.cross(shifts[0].axis, shifts[1].axis)
        return "planar" if _same([normal], [turns[0].axis]) else None
    if count == (3, 3):
        return "free" if _same([m.axis for m in shifts], [m.axis for m in turns]) else None
    return {(0, 0): "fixed", (0, 2): "universal", (0, 3): "ball"}.get(count)


def _square(moves: Sequence[Move]) -> bool:
    axes = np.array([move.axis for move in moves]).reshape(-1, 3)
    return bool(np.abs(axes @ axes.T - np.eye(len(axes))).max(initial=0.0) < MEETING)


def _same(first: Sequence[Vector | Array], second: Sequence[Vector | Array]) -> bool:
    return bool(np.abs(np.array(first) - np.array(second)).max() < MEETING)


def _motion(moves: Sequence[Move]) -> Iterator[TransformAxis]:
    """Three parts of a coordinate joint's motion: these moves, then still ones."""
    axes = _completed([move.axis for move in moves])
    for i, axis in enumerate(axes):
        if i < len(moves):
            yield TransformAxis(axis, linear(1.0, -moves[i].offset), moves[i].coordinate.name)
        else:
            yield TransformAxis(axis, constant(0.0))


def limited(name: str, offset: float, span: tuple[float, float] | None, turns: bool) -> Coordinate:
    """A coordinate that begins at its offset, moved to the nearer stop where that lies outside them."""
    lower, upper = span or (-inf, inf)
    return Coordinate(name, default=min(max(offset, lower), upper), lower=lower, upper=upper, rotational=turns)
