"""Joints as a tree that grows from the ground: turned round or cut where a file has them otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from borelli.errors import ModelError
from borelli.model.model import GROUND, Joint, TransformAxis, Vector


def as_tree(joints: Sequence[Joint], bodies: Iterable[str], notes: list[str]) -> tuple[list[Joint], list[str]]:
    """The joints, each with the body nearer to the ground as its parent, and the bodies that hang on nothing.

    A joint stated the other way is turned round (its coordinates keep their meaning); one between bodies that both
    hang already closes a loop.
    """
    names = list(bodies)
    touching: dict[str, list[int]] = {name: [] for name in (GROUND, *names)}
    for number, joint in enumerate(joints):
        touching[joint.parent].append(number)
        touching[joint.child].append(number)
    children = {joint.child for joint in joints}
    roots = [GROUND, *(name for name in names if name not in children), *names]
    placed: dict[int, Joint] = {}
    hung: set[str] = set()
    loose: list[str] = []
    for root in roots:
        if root in hung:
            continue
        if root != GROUND:
            loose.append(root)
        hung.add(root)
        layer = [root]
        while layer:
            layer = [body for parent in layer for body in _grow(parent, touching, joints, placed, hung, notes)]
    return [placed[number] for number in range(len(joints))], loose


def _grow(
    body: str,
    touching: dict[str, list[int]],
    joints: Sequence[Joint],
    placed: dict[int, Joint],
    hung: set[str],
    notes: list[str],
) -> list[str]:
    """Hangs the neighbours of a body on it; those that were not hanging are given back."""
    new = []
    for number in touching[body]:
        if number in placed:
            continue
        joint = joints[number]
        if joint.parent != body:
            joint = reversed_joint(joint)
            notes.append(f"joint {joint.name!r} is turned round: in the file its child is nearer to the ground")
        if joint.child in hung:
            joint = replace(joint, closes_loop=True)
            notes.append(f"joint {joint.name!r} closes a loop between {joint.parent!r} and {joint.child!r}")
        else:
            new.append(joint.child)
            hung.add(joint.child)
        placed[number] = joint
    return new


def reversed_joint(joint: Joint) -> Joint:
    """The joint with parent and child exchanged: the same coordinates put the same bodies at the same places.

    Raises:
        ModelError: if the joint both turns and shifts, so that no joint of ours does this.
    """
    swapped = replace(
        joint,
        parent=joint.child,
        child=joint.parent,
        parent_frame=joint.child_frame,
        child_frame=joint.parent_frame,
    )
    if joint.kind in ("fixed", "hinge", "slider", "universal", "ball"):
        axes = tuple(_opposite(axis) for axis in reversed(joint.axes))
        return replace(swapped, axes=axes, coordinates=joint.coordinates[::-1])
    turns, shifts = joint.motion[:3], joint.motion[3:]
    if joint.kind == "coordinate" and all(_is_zero(part) for part in shifts):
        return replace(swapped, motion=(*(_turned_round(part) for part in reversed(turns)), *shifts))
    if joint.kind == "coordinate" and all(_is_zero(part) for part in turns):
        return replace(swapped, motion=(*turns, *(_turned_round(part) for part in shifts)))
    raise ModelError(
        f"joint {joint.name!r}: its child {joint.child!r} is nearer to the ground than its parent {joint.parent!r}, "
        "and it both turns and shifts; state it with the two exchanged"
    )


def _opposite(axis: Vector) -> Vector:
    x, y, z = axis
    return -x, -y, -z


def _turned_round(part: TransformAxis) -> TransformAxis:
    return replace(part, axis=_opposite(part.axis))


def _is_zero(part: TransformAxis) -> bool:
    return part.function.is_constant and part.function(0.0) == 0.0
