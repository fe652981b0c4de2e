"""Partial bodies of a person: parts without any marker are rigid with the rest of the body.

They keep their mass and their rest pose: a lumped trunk, hanging arms. Their joints have no coordinates.
"""

from __future__ import annotations

from dataclasses import replace

from borelli.model.model import GROUND, Joint, Model

PARTS = {
    "sacral": "trunk, head and arms", "clavicle_r": "right arm", "clavicle_l": "left arm", "hip_r": "right leg",
    "hip_l": "left leg",
}  # fmt: skip
"""Parts by the joint of `human()` that connects them; a part may contain others."""
LEGS = ("hip_r", "hip_l")
"""Joints of the right and of the left leg."""
WHOLE_BODY = ("sacral", *LEGS)
"""Joints whose parts are needed for the balance of the whole body: arms, a tenth of the mass, are not."""


def fix_unmarked_parts(model: Model) -> tuple[Model, tuple[str, ...]]:
    """Return a `human()` with parts that have no marker rigid with the rest of it, and the names of those parts.

    A pelvis without markers, and what follows it up to the first marker, is rigid with the trunk or arm that has them.
    Other models, and models without markers, are returned as they are.
    """
    joints = {joint.name: joint for joint in model.joints}
    marked = {marker.body for marker in model.markers}
    if not joints.keys() >= PARTS.keys() or not marked:
        return model, ()
    fixed: set[str] = set()
    parts = []
    for name, part in PARTS.items():
        below = subtree(model, joints[name])
        if name not in fixed and not marked & {joint.child for joint in below}:
            fixed |= {joint.name for joint in below}
            parts.append(part)
    if "pelvis" not in marked and (above := _unmarked_base(model, marked)):
        fixed |= above
        parts.append("pelvis")
    if not fixed:
        return model, ()
    rigid = (replace(j, kind="fixed", axes=(), coordinates=()) if j.name in fixed else j for j in model.joints)
    return replace(model, joints=tuple(rigid)), tuple(parts)


def is_partial(model: Model) -> bool:
    """Return whether a trunk or leg without markers is rigid with the rest of a `human()`."""
    kinds = {joint.name: joint.kind for joint in model.joints}
    return kinds.keys() >= PARTS.keys() and any(kinds[name] == "fixed" for name in WHOLE_BODY)


def tracked_legs(model: Model) -> tuple[bool, bool]:
    """Return whether the right and the left leg have a joint that moves; models other than `human()` have both."""
    joints = {joint.name: joint for joint in model.joints}
    if not joints.keys() >= PARTS.keys():
        return True, True
    right, left = (any(one.kind != "fixed" for one in subtree(model, joints[leg])) for leg in LEGS)
    return right, left


def unmarked_spine(model: Model) -> frozenset[str]:
    """Return the coordinates of the joints above and below the lower torso of a `human()`, if it has no marker."""
    marked = {marker.body for marker in model.markers}
    if not marked or "lower_torso" in marked or not {joint.name for joint in model.joints} >= PARTS.keys():
        return frozenset()
    spine = [joint for joint in model.joints if "lower_torso" in (joint.parent, joint.child)]
    return frozenset(c.name for joint in spine for c in joint.coordinates)


def subtree(model: Model, joint: Joint) -> list[Joint]:
    """Return a joint and all joints distal to it."""
    result = [joint]
    for one in result:
        result += [other for other in model.joints if other.parent == one.child]
    return result


def _unmarked_base(model: Model, marked: set[str]) -> set[str]:
    """Return the joints between the root and the first body with markers, if only one chain of joints leads there."""
    fixed: set[str] = set()
    body = next(joint.child for joint in model.joints if joint.parent == GROUND)
    while body not in marked:
        own = [joint for joint in model.joints if joint.parent == body]
        leading = [joint for joint in own if marked & {other.child for other in subtree(model, joint)}]
        if len(leading) != 1:
            break
        fixed |= {other.name for joint in own if joint not in leading for other in subtree(model, joint)}
        fixed.add(leading[0].name)
        body = leading[0].child
    return fixed
