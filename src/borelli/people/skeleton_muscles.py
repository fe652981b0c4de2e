"""Muscles of `full_skeleton`, each side: 46 of the leg, 50 of the arm, 11 of the shoulder girdle, 30 of trunk and neck.

Legs have the table of `human`; the long flexor and extensor of the toes are divided in four, one for each lesser toe.
The other muscles are those of `data/skeleton_muscles.toml`, with sources. Every body of the skeleton has its own map:
vertebrae between their discs, phalanges between their joints, metacarpals between wrist and knuckle.

Jaw, abduction of fingers and other motions without muscles: see `borelli.muscles.actuation_report`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from borelli.model.model import Model, Muscle, WrapObject
from borelli.model.transforms import Array
from borelli.model.validate import validate
from borelli.people.anthropometry import table
from borelli.people.full_skeleton_hand_foot import FINGERS, KNUCKLES, PHALANGES
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

LEG_SEGMENTS = {"pelvis", "thigh", "shank", "foot", "toes", "patella"}
LESSER_TOES = ("toe_2", "toe_3", "toe_4", "toe_5")
DIVIDED = ("edl", "fdl")
"""Muscles with a tendon to each lesser toe."""
VERTEBRAE = ("L5_S1", "L4_L5", "L3_L4", "L2_L3", "L1_L2", "T12_L1")
"""Joints of the loins, from the sacrum up."""
NECK = ("T1_T4", "C6_C7", "C4_C5", "C2_C3", "C1", "head")
CHEST = ("T9_T12", "T5_T8", "T1_T4", "C6_C7", "C2_C3")
"""Bodies with muscles of arms and shoulder girdle."""
LIMBS = (
    "hip", "knee", "ankle", "toe_1", *LESSER_TOES, "shoulder", "elbow", "radioulnar", "wrist",
    *(f"{digit}_{knuckle}" for digit, knuckles in KNUCKLES.items() for knuckle in knuckles),
)  # fmt: skip
JOINTS = (*VERTEBRAE, "C7_T1", "C0_C1", *(f"{name}_{side}" for side in "rl" for name in LIMBS))


def is_full_skeleton(model: Model) -> bool:
    """Return True for a model with the vertebrae of `full_skeleton`."""
    return any(joint.name == "L5_S1" for joint in model.joints)


def add_skeleton_muscles(model: Model, *, height: float | None = None) -> Model:
    """Return a model made by `full_skeleton`, fitted or not, with muscles.

    Args:
        model: Model with the bodies and joints of `full_skeleton`. Muscles that it has already are replaced.
        height: Stature [m], for strength. Default: from the length of the legs.

    Raises:
        ModelError: if a part of the body is missing.
    """
    legs, data = table("human_muscles"), table("skeleton_muscles")
    stance = Stance(model, JOINTS, "full_skeleton")
    rows = [*_leg_rows(legs), *data["muscle"]]
    maps = {side: _segment_maps(stance, side, legs, data) for side in "rl"}
    muscles: list[Muscle] = []
    wraps: list[WrapObject] = []
    for side in "rl":
        wraps += [place_wrap(name, row, maps[side], side) for name, row in (legs["wrap"] | data["wrap"]).items()]
        muscles += [place_muscle(row, maps[side], side, legs["patella"]) for row in rows]
    bare = replace(model, muscles=tuple(muscles), wrap_objects=tuple(wraps))
    poses = [leg | arm for leg, arm in zip(legs["pose"], data["reference"]["pose"], strict=True)]
    volume = strength(model.mass, height or stature(maps, legs), legs)
    return validate(tune_muscles(bare, [*rows, *rows], poses, volume))


def _leg_rows(data: Table) -> Iterator[Table]:
    """Return the rows of the legs, with toes by name."""
    for row in data["muscle"]:
        segments = [point[0] for point in row["path"]]
        if not LEG_SEGMENTS.issuperset(segments):
            continue
        if row["name"] in DIVIDED:
            for toe in LESSER_TOES:
                part = {"name": f"{row['name']}_{toe[-1]}", "force": row["force"] / len(LESSER_TOES)}
                yield row | part | {"path": _toe_path(row["path"], toe, toe)}
        elif "toes" in segments:
            yield row | {"path": _toe_path(row["path"], "toe_1", "toe_1_distal")}
        else:
            yield row


def _toe_path(path: list[list[object]], toe: str, tip: str) -> list[list[object]]:
    """Return a path with its last point of the foot at the ball of one toe and those of the toes on that toe."""
    first = next(i for i, point in enumerate(path) if point[0] == "toes")
    result = [list(point) for point in path]
    result[first - 1][0] = f"ball_{toe}"
    for i in range(first, len(path)):
        result[i][0] = toe
    result[-1][0] = tip
    return result


def _segment_maps(stance: Stance, side: str, legs: Table, data: Table) -> dict[str, SegmentMap]:
    ball = stance.center[f"ankle_{side}"].copy()
    ball[0] = stance.center[f"toe_1_{side}"][0]
    maps = leg_maps(stance, side, legs, ball)
    return (
        maps
        | _toe_maps(stance, side, legs, maps["foot"].scale)
        | _trunk_maps(stance, side, data)
        | _arm_maps(stance, side, data)
        | _hand_maps(stance, side, data)
    )


def _toe_maps(stance: Stance, side: str, legs: Table, scale: float) -> dict[str, SegmentMap]:
    """Return the maps of toes: the source's one joint of all toes becomes that of each, tendons lie in its plane."""
    sagittal = np.diag([1.0, 0.0, 1.0])
    maps = {}
    for toe in ("toe_1", *LESSER_TOES):
        joint = stance.center[f"{toe}_{side}"]
        maps[toe] = stance.segment(f"{toe}_{side}", joint, sagittal, scale)
        if toe == "toe_1":
            maps["toe_1_distal"] = stance.segment(f"toe_1_distal_{side}", joint, sagittal, scale)
        # offsets of points of the foot are from the ankle
        start = joint - scale * sagittal @ np.array(legs["toe"])
        maps[f"ball_{toe}"] = stance.segment(f"foot_{side}", start, sagittal, scale)
    return maps


def _trunk_maps(stance: Stance, side: str, data: Table) -> dict[str, SegmentMap]:
    """Return the maps of sacrum, vertebrae, thorax and neck; vertebrae have one scale, by the length of the loins."""
    mirror, center = mirror_of(side), stance.center
    source = {name: np.array(v) for name, v in data["vector"].items()}
    hips = (center["hip_r"] + center["hip_l"]) / 2.0
    shoulders = (center["shoulder_r"] + center["shoulder_l"]) / 2.0
    maps = {"sacrum": stance.between("pelvis", hips, center["L5_S1"], source["sacrum"], mirror)}
    lumbar = np.linalg.norm(center["T12_L1"] - center["L5_S1"])
    scale = float(lumbar / np.linalg.norm(sum(source[joint[:2]] for joint in VERTEBRAE[:-1])))
    for low, high in pairwise(VERTEBRAE):
        body = low[:2]
        maps[body] = replace(stance.between(body, center[low], center[high], source[body], mirror), scale=scale)
    for body in ("T9_T12", "T5_T8", "T1_T4"):
        maps[f"thorax_{body}"] = stance.between(body, center["T12_L1"], shoulders, source["thorax"], mirror)
    for body in NECK:
        maps[f"neck_{body}"] = stance.between(body, center["C7_T1"], center["C0_C1"], source["neck"], mirror)
    return maps


def _arm_maps(stance: Stance, side: str, data: Table) -> dict[str, SegmentMap]:
    """Return the maps of shoulder and arm: the collar has the scale of the upper arm, the chest that of its width."""
    mirror, center = mirror_of(side), stance.center
    shoulder, elbow, wrist = (center[f"{name}_{side}"] for name in ("shoulder", "elbow", "wrist"))
    shoulders = (center["shoulder_r"] + center["shoulder_l"]) / 2.0
    upper_arm, forearm = (np.array([0.0, 0.0, -data[name]]) for name in ("upper_arm", "forearm"))
    maps = {"upper_arm": stance.between(f"upper_arm_{side}", shoulder, elbow, upper_arm, mirror)}
    for bone in ("ulna", "radius"):
        maps[bone] = stance.between(f"{bone}_{side}", elbow, wrist, forearm, mirror)
    turn = _world(stance, maps["upper_arm"])
    maps["elbow"] = stance.segment(f"upper_arm_{side}", elbow, turn, maps["ulna"].scale)
    maps["collar"] = stance.segment(f"collar_{side}", shoulder, mirror, maps["upper_arm"].scale)
    width = float(np.linalg.norm(shoulder - shoulders)) / data["shoulder_half_width"]
    return maps | {f"chest_{body}": stance.segment(body, shoulders, mirror, width) for body in CHEST}


def _hand_maps(stance: Stance, side: str, data: Table) -> dict[str, SegmentMap]:
    """Return the maps of metacarpals, from wrist to knuckle, and phalanges; the last is scaled as the one before."""
    mirror, center = mirror_of(side), stance.center
    source = {name: np.array(v) for name, v in data["vector"].items()}
    wrist = center[f"wrist_{side}"]
    maps = {
        f"{finger}_metacarpal": stance.between(
            f"hand_{side}", wrist, center[f"{finger}_mcp_{side}"], source[f"{finger}_metacarpal"], mirror
        )
        for finger in FINGERS
    }
    # the bone below the thumb goes with its joint, so that tendons pass the joint as in the source
    palm = maps["middle_metacarpal"]
    maps["thumb_base"] = stance.segment(palm.body, center[f"thumb_cmc_{side}"], _world(stance, palm), palm.scale)
    for digit, parts in PHALANGES.items():
        joints = [center[f"{digit}_{knuckle}_{side}"] for knuckle in KNUCKLES[digit]]
        for part, (start, end) in zip(parts, pairwise(joints), strict=False):
            name = f"{digit}_{part}"
            maps[name] = stance.between(f"{name}_{side}", start, end, source[name], mirror)
        before = maps[f"{digit}_{parts[1]}"]
        maps[f"{digit}_distal"] = stance.segment(
            f"{digit}_distal_{side}", joints[2], _world(stance, before), before.scale
        )
    return maps


def _world(stance: Stance, of: SegmentMap) -> Array:
    """Return the rotation of a map, in the world."""
    return stance.body[of.body][1] @ of.rotation
