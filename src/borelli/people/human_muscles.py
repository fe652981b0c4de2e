"""Muscles of `human`: 40 of each leg and 13 of each side of the trunk, placed on a person's own segments.

The patella is no body of `human`: points on it move in the thigh as functions of knee flexion.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from borelli.errors import ModelError
from borelli.model.model import Model, Muscle, WrapObject
from borelli.model.validate import validate
from borelli.people.anthropometry import table
from borelli.people.muscle_placement import (
    SegmentMap,
    Stance,
    Table,
    leg_maps,
    mirror_of,
    place_muscle,
    place_wrap,
    stature,
    strength,
    tune_muscles,
)
from borelli.people.skeleton_muscles import add_skeleton_muscles, is_full_skeleton

LIMBS = (f"{name}_{side}" for side in "rl" for name in ("hip", "knee", "ankle", "toe"))
JOINTS = ("sacral", "lumbar", "thoracic", *LIMBS)


def add_muscles(model: Model, *, height: float | None = None) -> Model:
    """Return a model made by `human` or `full_skeleton`, fitted or not, with muscles.

    Args:
        model: Model with the bodies and joints of `human` (legs and trunk get muscles) or `full_skeleton` (legs, trunk,
            neck, shoulders and arms). Muscles that it has already are replaced.
        height: Stature [m], for strength. Default: from the length of the legs.

    Muscles that cross a rigid joint (of a part without markers, see `people.partial`) are left out.

    Raises:
        ModelError: A joint is missing, or neither legs nor trunk can move.

    Examples:
        >>> model = bo.add_muscles(bo.human(mass=72.6, height=1.78))
        >>> len(model.muscles)
        106
    """
    if is_full_skeleton(model):
        return add_skeleton_muscles(model, height=height)
    data = table("human_muscles")
    stance = Stance(model, JOINTS, "human")
    maps = {side: _segment_maps(stance, side, data) for side in "rl"}
    muscles: list[Muscle] = []
    wraps: list[WrapObject] = []
    for side in "rl":
        wraps += [place_wrap(name, row, maps[side], side) for name, row in data["wrap"].items()]
        muscles += [place_muscle(row, maps[side], side, data["patella"]) for row in data["muscle"]]
    placed = zip(muscles, [*data["muscle"], *data["muscle"]], strict=True)
    moving = [(muscle, row) for muscle, row in placed if not _crosses_rigid_joint(model, muscle)]
    if not moving:
        raise ModelError(f"Model {model.name!r}: Legs and trunk are rigid, so it gets no muscles. Leave muscles out.")
    bare = replace(model, muscles=tuple(muscle for muscle, _ in moving), wrap_objects=tuple(wraps))
    volume = strength(model.mass, height or stature(maps, data), data)
    return validate(tune_muscles(bare, [row for _, row in moving], data["pose"], volume))


def _crosses_rigid_joint(model: Model, muscle: Muscle) -> bool:
    """Return whether a joint without coordinates lies between the bodies of a muscle."""
    joints = {joint.child: joint for joint in model.joints}

    def to_root(body: str) -> set[str]:
        passed = set()
        while body in joints:
            passed.add(body)
            body = joints[body].parent
        return passed

    first, *others = (to_root(point.body) for point in muscle.path)
    crossed = first.union(*others) - first.intersection(*others)
    return any(not joints[body].coordinates for body in crossed)


def _segment_maps(stance: Stance, side: str, data: Table) -> dict[str, SegmentMap]:
    mirror, center = mirror_of(side), stance.center
    ball = center[f"toe_{side}"]
    maps = leg_maps(stance, side, data, ball)
    maps["toes"] = stance.segment(f"toes_{side}", ball, mirror, maps["foot"].scale)
    for segment, distal, proximal in (("lower_torso", "lumbar", "sacral"), ("upper_torso", "thoracic", "lumbar")):
        length = float(np.linalg.norm(center[distal] - center[proximal]))
        maps[segment] = stance.segment(segment, center[proximal], mirror, length / data[segment])
    return maps
