"""What marker labels mean: the part of the body and its side, whatever the laboratory's spelling.

Only enough is understood to tell up from down, left from right and a heel from a toe; the exact place of a marker is
the business of marker sets. Labels of joints (BVH, AMC) and joint centres are understood as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

HEIGHT: dict[str, float] = {
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
"""Height of a standing person's parts as a fraction of stature; arms may be anywhere.

Shoulder, hip, knee and ankle after Drillis and Contini 1966; the others are set where markers usually sit.
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
_NOT_A_PLACE = re.compile(r"angle|moment|power|force|grf|centreofmass|centerofmass|ground")
_SIDES = {"r": "right", "right": "right", "rt": "right", "l": "left", "left": "left", "lt": "left"}


class Landmark(NamedTuple):
    """A part of the body, one of `HEIGHT` or of the arm, and its side: "left", "right" or "" for the middle."""

    part: str
    side: str


MOST_LABELS = 10_000
"""Looked at for what they mean; the largest recordings have some hundreds."""
LONGEST_LABEL = 100
"""Longer ones mean no part of a body."""


@lru_cache(maxsize=MOST_LABELS)
def identify_landmark(label: str) -> Landmark | None:
    """What a label means, or None where it is not understood.

    Subject prefixes, case, and the marks between words do not matter: `RKNE`, `Bob:r_knee`, `Knee.Lat.R` and
    `RightLeg` are all on the right knee.
    """
    name = label.rpartition(":")[2].strip()
    if len(label) > LONGEST_LABEL or name.startswith("*") or _NOT_A_PLACE.search(name.lower().replace("_", "")):
        return None
    for side, rest in _sides(_words(label)):
        part = _part(rest)
        if part:
            return Landmark(part, side)
    return None


def front_or_back(label: str) -> int:
    """1 for a marker on the front of its part (toes, breast bone, ...), -1 for one on the back, 0 if unknown."""
    found = _side_and_rest(label)
    name = found[1] if found else "".join(_words(label))
    return 1 if _FRONT.search(name) else -1 if _BACK.search(name) else 0


def facing(points: Array, labels: Sequence[str]) -> Array:
    """Per frame, the horizontal unit vector the body faces, from the fronts and backs of its parts; z is up.

    Feet, pelvis, trunk and head count alike; not a number where none of them shows front and back.
    """
    total = np.zeros((len(points), 3))
    for parts in (("heel", "toe"), ("pelvis",), ("chest", "neck"), ("head",)):
        chosen = find_landmarks(labels, parts)
        front = [i for i in chosen if front_or_back(labels[i]) > 0]
        back = [i for i in chosen if front_or_back(labels[i]) < 0]
        if front and back:
            way = (mean_position(points, front) - mean_position(points, back)) * (1.0, 1.0, 0.0)
            size = np.linalg.norm(way, axis=1, keepdims=True)
            # a vertical foot or a body lying down faces nowhere
            total += np.nan_to_num(np.where(size > 0.03, way / np.maximum(size, 1e-9), 0.0))
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(length > 0.5, total / np.maximum(length, 1e-9), np.nan)


def find_landmarks(labels: Sequence[str], parts: Iterable[str], side: str | None = None) -> list[int]:
    """Indices of the labels that lie on any of these parts, on one side only if it is named."""
    wanted = set(parts)
    found = ((index, identify_landmark(label)) for index, label in enumerate(labels[:MOST_LABELS]))
    return [i for i, mark in found if mark and mark.part in wanted and (side is None or mark.side == side)]


def visible(points: Array) -> npt.NDArray[np.bool_]:
    """Whether each point was seen; the last axis of the points is x, y, z."""
    return np.asarray(np.isfinite(points).all(axis=-1))


def mean_position(points: Array, indices: Sequence[int]) -> Array:
    """Mean position of some of the markers in each frame, not a number where none of them was seen."""
    chosen = points[:, list(indices)]
    seen = visible(chosen)[..., None]
    count = seen.sum(axis=1)
    total = np.where(seen, chosen, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def left_right_pairs(labels: Sequence[str]) -> list[tuple[int, int]]:
    """Index pairs of a left marker and the right one of the same name."""
    named: dict[tuple[str, str], int] = {}
    for index, label in enumerate(labels[:MOST_LABELS]):
        key = _side_and_rest(label)
        if key:
            named.setdefault(key, index)
    lefts = ((rest, index) for (side, rest), index in named.items() if side == "left")
    return [(index, named["right", rest]) for rest, index in lefts if ("right", rest) in named]


def _side_and_rest(label: str) -> tuple[str, str] | None:
    """The side a label names, and the label without it."""
    if identify_landmark(label) is None:
        return None
    for side, rest in _sides(_words(label)):
        if _part(rest):
            return (side, rest) if side else None
    return None


def _words(label: str) -> list[str]:
    name = label.rpartition(":")[2].strip()
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def _sides(words: list[str]) -> Iterable[tuple[str, str]]:
    """Ways to split a label into its side and the rest, the likeliest first."""
    for position in (0, len(words) - 1, *range(1, len(words) - 1)):
        if len(words) > 1 and words[position] in _SIDES:
            yield _SIDES[words[position]], "".join(words[:position] + words[position + 1 :])
    whole = "".join(words)
    for word in ("right", "left"):
        if whole.startswith(word) or whole.endswith(word):
            yield word, whole.removeprefix(word).removesuffix(word)
    # `RTOE` is the right toe, but `Rear.Head` is not the right ear: what follows the letter must begin with a name
    rest = whole[1:]
    if whole[:1] in ("r", "l") and (_coded(rest) or any(rest.startswith(word) for word, _ in _BY_WORD)):
        yield _SIDES[whole[0]], rest
    if len(whole) > 2 or whole[:1] not in ("r", "l"):
        yield "", whole


def _part(core: str) -> str | None:
    """The part whose code this is, or whose name comes first in it."""
    found = [(core.index(word), -len(word), part) for word, part in _BY_WORD if word in core]
    return _coded(core) or (min(found)[2] if found else None)


def _coded(core: str) -> str | None:
    return _BY_CODE.get(core) or _BY_CODE.get(core.rstrip("0123456789v"))
