"""Landmarks: body part and side of a marker, from its label in any laboratory's spelling.

They distinguish up from down, left from right and heel from toe; exact marker positions are defined by marker sets.
Labels of joints (BVH, AMC) and joint centers are recognized as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.numerics.vectors import Array

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

_WORDS = {
    "head": "head temple skull forehead",
    "neck": "neck",
    "chest": "chest sternum clavic thorax spine back jugul xiph",
    "shoulder": "shoulder acromi scap collar sjc",
    "upper_arm": "bicep tricep upperarm uparm humer uarm",
    "elbow": "elbow ejc",
    "forearm": "forearm farm faradius faulna fasuperior radius ulna",
    "wrist": "wrist",
    "hand": "hand finger thumb",
    "pelvis": "pelvis waist sacr asis psis iliac midasis midpsis hips",
    "hip": "trochan hipjoint hipjc midhip hjc upleg upperleg",
    "thigh": "thigh femur",
    "knee": "knee condyl patell lowleg kjc",
    "shank": "shank shin tibia fibula lowerleg",
    "ankle": "ankle malleo ajc",
    "heel": "heel calcan calc",
    "toe": "toe metatars 5meta 1meta forefoot",
    "foot": "foot midfoot",
}
_CODES = {
    "head": "hd fhd bhd hdf hdb thea fhea rhea ah ph",
    "neck": "c7 cv7 t1 t2 tv2",
    "chest": "clav ij snj sjn stern strn sxs px t10 tv8 t7 tv7 t8 man bak bac",
    "shoulder": "sho acr sh sa saj caj ac ash psh sjc hgt sj",
    "upper_arm": "upa ua ua1 ua2 ua3 arm",
    "elbow": "elb lel mel hle hme ejc le me",
    "forearm": "frm fra fa fa1 fa2 fa3",
    "wrist": "wra wrb wri wr rsp usp uhe lw wjc",
    "hand": "fin hm2 hm5 hm1",
    "pelvis": "asi psi ias ips fwt bwt sac vsac s2 pv pv1 pv2 pv3",
    "hip": "gt grt ftc hjc hip lh",
    "thigh": "thi th1 th2 th3 th4 th5 thlp thld thap thad",
    "knee": "kne lfc mfc fle fme lk mk lepi mepi pat kjc leg",
    "shank": "tib sha shn shk sk sk1 sk2 sk3 tb1 tb2 tb3 sh1 sh2 sh3 sh4 tiap tiad tilat ttc ttb fax",
    "ankle": "ank lma mma lmal mmal lm mm fal tam la ma ajc",
    "heel": "hee cal fcc",
    "toe": "toe mt1 mt2 mt5 fm1 fm2 fm5 p1mt p5mt pm1 hal toes meta5 meta1",
    "foot": "ft1 ft2 ft3 mfs mfl",
}
_BY_CODE = {code: part for part, codes in _CODES.items() for code in codes.split()}
_BY_WORD = [(word, part) for part, words in _WORDS.items() for word in words.split()]
_FRONT = re.compile(
    r"asis?$|ias$|fwt|waist.*front|clav|strn|sternum|^ij$|snj|sjn|sxs|^px$|chest|fhd|hdf|.*front|^man$|toe|mt[125]|fm[15]|meta"
)
_BACK = re.compile(
    r"psis?$|ips$|bwt|waist.*back|sac|s2$|c7$|cv7|t10|t7|t8|tv|spine|back|bhd|hdb|rear|heel|hee$|cal|fcc"
)
_NOT_A_POSITION = re.compile(r"angle|moment|power|force|grf|centreofmass|centerofmass|ground")
_SIDES = {"r": "right", "right": "right", "rt": "right", "l": "left", "left": "left", "lt": "left"}


class Landmark(NamedTuple):
    """Body part, one of `RELATIVE_HEIGHT` or of the arm, and its side: "left", "right" or "" for the midline."""

    part: str
    side: str


MAX_LABELS = 10_000
"""Labels that are interpreted; the largest recordings have some hundreds."""
MAX_LABEL_LENGTH = 100
"""Longer labels are not interpreted."""


@lru_cache(maxsize=MAX_LABELS)
def identify_landmark(label: str) -> Landmark | None:
    """Return the landmark of a label, or None if it is not recognized.

    Subject prefix, case and separators do not matter: `RKNE`, `Bob:r_knee`, `Knee.Lat.R` and `RightLeg` are all on
    the right knee.
    """
    name = label.rpartition(":")[2].strip()
    if len(label) > MAX_LABEL_LENGTH or name.startswith("*") or _NOT_A_POSITION.search(name.lower().replace("_", "")):
        return None
    split = _split(label)
    return Landmark(split[2], split[0]) if split else None


def front_or_back(label: str) -> int:
    """Return 1 for a marker on the front of its part (toes, sternum, ...), -1 for one on the back, 0 if unknown."""
    parts = _side_and_rest(label)
    name = parts[1] if parts else "".join(_words(label))
    return 1 if _FRONT.search(name) else -1 if _BACK.search(name) else 0


def facing_direction(points: Array, labels: Sequence[str]) -> Array:
    """Return the horizontal unit vector the body faces in each frame, from fronts and backs of its parts; z is up.

    Feet, pelvis, trunk and head have equal weight; NaN where none of them shows front and back.
    """
    total = np.zeros((len(points), 3))
    for parts in (("heel", "toe"), ("pelvis",), ("chest", "neck"), ("head",)):
        chosen = find_landmarks(labels, parts)
        front = [i for i in chosen if front_or_back(labels[i]) > 0]
        back = [i for i in chosen if front_or_back(labels[i]) < 0]
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
    marks = ((index, identify_landmark(label)) for index, label in enumerate(labels[:MAX_LABELS]))
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
    for index, label in enumerate(labels[:MAX_LABELS]):
        key = _side_and_rest(label)
        if key:
            named.setdefault(key, index)
    lefts = ((rest, index) for (side, rest), index in named.items() if side == "left")
    return [(index, named["right", rest]) for rest, index in lefts if ("right", rest) in named]


def _side_and_rest(label: str) -> tuple[str, str] | None:
    split = _split(label) if identify_landmark(label) else None
    return split[:2] if split and split[0] else None


def _split(label: str) -> tuple[str, str, str] | None:
    """Return side, rest and body part of a label; None if it is not recognized."""
    return next(((side, rest, part) for side, rest in _sides(_words(label)) if (part := _part(rest))), None)


def _words(label: str) -> list[str]:
    name = label.rpartition(":")[2].strip()
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def _sides(words: list[str]) -> Iterable[tuple[str, str]]:
    """Yield splits of a label into side and rest, the likeliest first."""
    for position in (0, len(words) - 1, *range(1, len(words) - 1)):
        if len(words) > 1 and words[position] in _SIDES:
            yield _SIDES[words[position]], "".join(words[:position] + words[position + 1 :])
    joined = "".join(words)
    for word in ("right", "left"):
        if joined.startswith(word) or joined.endswith(word):
            yield word, joined.removeprefix(word).removesuffix(word)
    # `RTOE` is the right toe, but `Rear.Head` is not the right ear: a known name must follow the letter
    rest = joined[1:]
    if joined[:1] in ("r", "l") and (_coded(rest) or any(rest.startswith(word) for word, _ in _BY_WORD)):
        yield _SIDES[joined[0]], rest
    if len(joined) > 2 or joined[:1] not in ("r", "l"):
        yield "", joined


def _part(core: str) -> str | None:
    """Return the part with this code, or the part whose name comes first in it."""
    matches = [(core.index(word), -len(word), part) for word, part in _BY_WORD if word in core]
    return _coded(core) or (min(matches)[2] if matches else None)


def _coded(core: str) -> str | None:
    return _BY_CODE.get(core) or _BY_CODE.get(core.rstrip("0123456789v"))
