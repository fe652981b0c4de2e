"""Joints as a tree rooted at the ground: joints of a file are reversed or cut where necessary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from borelli.errors import ModelError
from borelli.model.model import GROUND, Joint, TransformAxis, Vector


def make_tree(joints: Sequence[Joint], bodies: Iterable[str], notes: list[str]) -> tuple[list[Joint], list[str]]:
    """Return the joints, each with the body nearer to the ground as its parent, and the bodies without a joint.

    A joint stated the other way is reversed (its coordinates keep their meaning). A joint between two bodies that are
    already in the tree closes a loop.
    """
    names = list(bodies)
    joints_of: dict[str, list[int]] = {name: [] for name in (GROUND, *names)}
    for number, joint in enumerate(joints):
        joints_of[joint.parent].append(number)
        joints_of[joint.child].append(number)
    children = {joint.child for joint in joints}
    roots = [GROUND, *(name for name in names if name not in children), *names]
    result: dict[int, Joint] = {}
    connected: set[str] = set()
    unconnected: list[str] = []
    for root in roots:
        if root in connected:
            continue
        if root != GROUND:
            unconnected.append(root)
        connected.add(root)
        layer = [root]
        while layer:
            layer = [body for parent in layer for body in _grow(parent, joints_of, joints, result, connected, notes)]
    return [result[number] for number in range(len(joints))], unconnected


def _grow(
    body: str,
    joints_of: dict[str, list[int]],
    joints: Sequence[Joint],
    result: dict[int, Joint],
    connected: set[str],
    notes: list[str],
) -> list[str]:
    """Add the neighbors of a body to the tree and return those that are new."""
    added = []
    for number in joints_of[body]:
        if number in result:
            continue
        joint = joints[number]
        if joint.parent != body:
            joint = reversed_joint(joint)
            notes.append(f"Joint {joint.name!r} is reversed: in the file its child is nearer to the ground.")
        if joint.child in connected:
            joint = replace(joint, closes_loop=True)
            notes.append(f"Joint {joint.name!r} closes a loop between {joint.parent!r} and {joint.child!r}.")
        else:
            added.append(joint.child)
            connected.add(joint.child)
        result[number] = joint
    return added


def reversed_joint(joint: Joint) -> Joint:
    """Return the joint with parent and child swapped: the same coordinates give the same poses.

    Raises:
        ModelError: if the joint both rotates and translates, so that it cannot be reversed.
    """
    swapped = replace(
        joint, parent=joint.child, child=joint.parent, parent_frame=joint.child_frame, child_frame=joint.parent_frame
    )
    if joint.kind in ("fixed", "hinge", "slider", "universal", "ball"):
        axes = tuple(_opposite(axis) for axis in reversed(joint.axes))
        return replace(swapped, axes=axes, coordinates=joint.coordinates[::-1])
    rotations, translations = joint.motion[:3], joint.motion[3:]
    if joint.kind == "coordinate" and all(map(_is_zero, translations)):
        return replace(swapped, motion=(*map(_reversed_axis, reversed(rotations)), *translations))
    if joint.kind == "coordinate" and all(map(_is_zero, rotations)):
        return replace(swapped, motion=(*rotations, *map(_reversed_axis, translations)))
    raise ModelError(
        f"Joint {joint.name!r}: The child {joint.child!r} is nearer to the ground than the parent {joint.parent!r}, "
        "and the joint both rotates and translates. Swap parent and child in the file."
    )


def _opposite(axis: Vector) -> Vector:
    x, y, z = axis
    return -x, -y, -z


def _reversed_axis(part: TransformAxis) -> TransformAxis:
    return replace(part, axis=_opposite(part.axis))


def _is_zero(part: TransformAxis) -> bool:
    return part.function.is_constant and part.function(0.0) == 0.0
