"""Landmarks: body part and side of each marker of a recording, from its labels in any laboratory's spelling.

They distinguish up from down, left from right and heel from toe; exact marker positions are defined by marker sets and
by the landmark atlas. Everything here rests on one interpretation of all labels of a file (`labels.interpret`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.numerics.vectors import Array
from borelli.recording.labels.conventions import MIDDLE
from borelli.recording.labels.interpret import LabelReading, interpret_labels
from borelli.recording.labels.spelling import SideSplit, normalize, split_sides
from borelli.recording.labels.words import read_words

RELATIVE_HEIGHT: dict[str, float] = {
    "head": 0.93,
    "neck": 0.83,
    "shoulder": 0.82,
    "chest": 0.75,
    "pelvis": 0.57,
    "hip": 0.53,
    "thigh": 0.41,
    "knee": 0.285,
    "shank": 0.17,
    "ankle": 0.04,
    "foot": 0.03,
    "heel": 0.02,
    "toe": 0.02,
}
"""Height of body parts of a standing person as a fraction of stature, without arms.

Shoulder, hip, knee and ankle after Drillis and Contini 1966; the others are usual marker positions.
"""

_PARTS = {
    "head": "head_front head_back head_top head_side head_center ear eye nose chin cheek temple mastoid glabella",
    "neck": "neck C7 T2",
    "chest": "chest sternum jugular_notch xiphoid clavicle sternoclavicular T4 T7 T8 T10 T12 spine back_offset breast "
    "rib trunk_center",
    "shoulder": "acromion acromion_angle shoulder_center shoulder_front shoulder_back scapula scapula_spine "
    "scapula_inferior coracoid humerus_tubercle",
    "upper_arm": "upper_arm",
    "elbow": "elbow_lateral elbow_medial elbow_center olecranon",
    "forearm": "forearm",
    "wrist": "wrist wrist_radial wrist_ulnar wrist_center",
    "hand": "hand finger thumb index middle ring pinky mc2 mc3 mc5",
    "pelvis": "asis psis sacrum iliac_crest pelvis_center pelvis_cluster waist buttock ischial_tuberosity belly navel "
    "L3 L5",
    "hip": "greater_trochanter hip_center hip_mid",
    "thigh": "thigh",
    "knee": "knee_lateral knee_medial knee_center patella",
    "shank": "shank tibial_tuberosity fibular_head tibial_plateau_lateral tibial_plateau_medial",
    "ankle": "malleolus_lateral malleolus_medial ankle_center",
    "heel": "heel heel_lateral",
    "toe": "hallux toe toe_center toe_small mt1 mt2 mt5 mt1_base mt5_base",
    "foot": "foot foot_cluster midfoot midfoot_lateral",
}
_PART = {landmark: part for part, landmarks in _PARTS.items() for landmark in landmarks.split()}
_FRONT = frozenset(
    [
        "asis",
        "jugular_notch",
        "xiphoid",
        "sternum",
        "chest",
        "clavicle",
        "sternoclavicular",
        "breast",
        "head_front",
        "glabella",
        "nose",
        "chin",
        "hallux",
        "toe",
        "toe_center",
        "toe_small",
        "mt1",
        "mt2",
        "mt5",
    ]
)
_BACK = frozenset(
    ["psis", "sacrum", "C7", "T2", "T4", "T7", "T8", "T10", "T12", "spine", "back_offset", "head_back", "heel"]
)


class Landmark(NamedTuple):
    """Body part, one of `RELATIVE_HEIGHT` or of the arm, and its side: "left", "right" or "" for the midline."""

    part: str
    side: str


def identify_landmarks(labels: Sequence[str]) -> list[Landmark | None]:
    """Return the landmark of each label of a file, None if it is not recognized.

    Subject prefix, case and separators do not matter: `RKNE`, `Bob:r_knee`, `Knee.Lat.R` and `RightLeg` are all on
    the right knee.
    """
    found = [_landmark(reading) for reading in interpret_labels(labels).readings]
    return found + [None] * (len(labels) - len(found))


def identify_bodies(names: Sequence[str]) -> list[Landmark | None]:
    """Return the part and side of each body of a model, from the words of its name; None if it is not recognized.

    A letter counts as a side only if the body of the other side is there.
    """
    present = {normalize(name) for name in names}
    return [next(filter(None, (_body(split, present) for split in split_sides(name))), None) for name in names]


def _body(split: SideSplit, present: set[str]) -> Landmark | None:
    if split.position not in ("word", "none") and split.twin not in present:
        return None
    part = _PART.get(read_words(split.words))
    return Landmark(part, "" if split.side == MIDDLE else split.side) if part else None


def facing_direction(points: Array, labels: Sequence[str]) -> Array:
    """Return the horizontal unit vector the body faces in each frame, from fronts and backs of its parts; z is up.

    Feet, pelvis, trunk and head have equal weight; NaN where none of them shows front and back.
    """
    total = np.zeros((len(points), 3))
    readings = interpret_labels(labels).readings
    for parts in (("heel", "toe"), ("pelvis",), ("chest", "neck"), ("head",)):
        chosen = find_landmarks(labels, parts)
        front = [i for i in chosen if readings[i].landmark in _FRONT]
        back = [i for i in chosen if readings[i].landmark in _BACK]
        if front and back:
            axis = (mean_position(points, front) - mean_position(points, back)) * (1.0, 1.0, 0.0)
            size = np.linalg.norm(axis, axis=1, keepdims=True)
            # a vertical foot and a lying body have no facing direction
            total += np.nan_to_num(np.where(size > 0.03, axis / np.maximum(size, 1e-9), 0.0))
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(length > 0.5, total / np.maximum(length, 1e-9), np.nan)


def find_landmarks(labels: Sequence[str], parts: Iterable[str], side: str | None = None) -> list[int]:
    """Return the indices of labels on any of these parts, on one side if it is given."""
    chosen = set(parts)
    marks = enumerate(identify_landmarks(labels))
    return [i for i, mark in marks if mark and mark.part in chosen and (side is None or mark.side == side)]


def find_foot_markers(labels: Sequence[str], side: str) -> tuple[list[int], list[int]]:
    """Return the markers at the heel (else the ankle) and at the toes (else the foot) of one side."""
    heels = find_landmarks(labels, ("heel",), side) or find_landmarks(labels, ("ankle",), side)
    return heels, find_landmarks(labels, ("toe",), side) or find_landmarks(labels, ("foot",), side)


def visible(points: Array) -> npt.NDArray[np.bool_]:
    """Return whether each point was measured; the last axis of the points is x, y, z."""
    return np.asarray(np.isfinite(points).all(axis=-1))


def mean_position(points: Array, indices: Sequence[int]) -> Array:
    """Return the mean position of the chosen markers in each frame, NaN where none is visible."""
    chosen = points[:, list(indices)]
    is_visible = visible(chosen)[..., None]
    count = is_visible.sum(axis=1)
    total = np.where(is_visible, chosen, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def left_right_pairs(labels: Sequence[str]) -> list[tuple[int, int]]:
    """Return index pairs of a left marker and the right marker of the same name."""
    named: dict[tuple[str, str], int] = {}
    for index, reading in enumerate(interpret_labels(labels).readings):
        if reading.landmark and reading.side != MIDDLE:
            named.setdefault((reading.side, reading.stem), index)
    lefts = ((stem, index) for (side, stem), index in named.items() if side == "left")
    return [(index, named["right", stem]) for stem, index in lefts if ("right", stem) in named]


def _landmark(reading: LabelReading) -> Landmark | None:
    if reading.contested:
        return None
    part = _PART.get(reading.landmark)
    if reading.landmark == "clavicle" and reading.kind == "joint keypoint":
        part = "shoulder"  # the joint at the base of an animated shoulder
    return Landmark(part, "" if reading.side == MIDDLE else reading.side) if part else None
