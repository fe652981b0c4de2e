"""Vertical axis of a file, decided from all evidence together.

Each kind of evidence has a weight: the direction of measured forces, the normal of the plates, heads above feet by the
names of markers, the statement of the file, and a floor that the lowest markers share. The axis with the greatest
weight is used. It is certain only if it also has the strongest single piece of evidence; otherwise both candidates are
named, and the user decides. A force plate shows the line of the vertical, not its direction: markers are above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from borelli.numerics.vectors import Array
from borelli.recording.landmarks import RELATIVE_HEIGHT, identify_landmarks, visible

WEIGHTS = {"force": 3, "plates": 2, "labels": 2, "file": 2, "floor": 1}
"""Weight of each kind of evidence, in the order of its strength."""
PLATES_WITH_FORCE = 1
"""Weight of the normal of plates whose forces are evidence as well."""
MIN_OPPOSED_WEIGHT = 3
"""Weight of the evidence against a vertical axis that the user stated from which it is refused."""
MIN_UPRIGHT_COMPONENT = 0.75
"""Least component of the mean body direction along the vertical axis."""
MIN_AXIS_COMPONENT = 0.87
"""Least component of a plate's normal or mean force along an axis of the file: within 30 degrees."""
MIN_FORCE = 50.0
"""Least force of a plate [N] that shows the vertical."""


class UpEvidence(NamedTuple):
    """Evidence for a vertical axis such as "+Z"; `kind` is one of `WEIGHTS`."""

    kind: str
    axis: str
    text: str


class UpDecision(NamedTuple):
    """Vertical axis with the evidence for it and for the strongest other; that of `other` is "" if there is none."""

    axis: str
    evidence: tuple[UpEvidence, ...]
    other: str = ""
    opposed: tuple[UpEvidence, ...] = ()
    certain: bool = True

    @property
    def reason(self) -> str:
        """What shows the axis: the two strongest pieces of evidence."""
        return " and ".join(one.text for one in self.evidence[:2])

    @property
    def objection(self) -> str:
        """What shows the other axis: the two strongest pieces of evidence."""
        return " and ".join(one.text for one in self.opposed[:2])


def up_evidence(
    points: Array,
    labels: Sequence[str],
    *,
    stated: str = "",
    corners: Array | None = None,
    force: Array | None = None,
) -> list[UpEvidence]:
    """Return all evidence for the vertical axis, the strongest kind first.

    Args:
        points: (frames, points, 3), NaN where missing.
        labels: Names of the points.
        stated: Axis stated by the file, "" if none.
        corners: (plates, 4, 3) in the unit of the points.
        force: (samples, 3) forces of plates in the axes of the points, of either sign [N].
    """
    by_label, by_floor = _from_labels(points, labels), _from_floor(points)
    above = _side_of_plates(points, corners)
    found = [_from_force(force, above), _from_plates(corners, above), by_label]
    if stated:
        # screens are described from in front and from behind, so only the letter is reliable
        known = [one for one in (*found, by_floor) if one is not None and one.axis[1] == stated[1]]
        axis = known[0].axis if known else stated
        found.append(UpEvidence("file", axis, f"the file states {stated}"))
    return [one for one in (*found, by_floor) if one is not None]


def decide_up(evidence: Sequence[UpEvidence]) -> UpDecision | None:
    """Return the axis with the greatest weight of evidence; None without evidence."""
    if not evidence:
        return None
    with_force = any(one.kind == "force" for one in evidence)

    def weight(axis: str) -> int:
        kinds = [one.kind for one in evidence if one.axis == axis]
        return sum(PLATES_WITH_FORCE if kind == "plates" and with_force else WEIGHTS[kind] for kind in kinds)

    strongest = min(evidence, key=lambda one: list(WEIGHTS).index(one.kind)).axis
    axes = list(dict.fromkeys((strongest, *(one.axis for one in evidence))))
    ranked = sorted(axes, key=lambda axis: -weight(axis))
    first = ranked[0]
    other = ranked[1] if len(ranked) > 1 else ""
    certain = first == strongest and (not other or weight(first) > weight(other))
    by_axis = {axis: tuple(one for one in evidence if one.axis == axis) for axis in ranked}
    return UpDecision(first, by_axis[first], other, by_axis.get(other, ()), certain)


def contradicts(evidence: Sequence[UpEvidence], axis: str) -> UpDecision | None:
    """Return the decision of the evidence if it weighs too much against an axis that the user stated, else None."""
    decision = decide_up(evidence)
    if decision is None or decision.axis == axis:
        return None
    weight = sum(WEIGHTS[one.kind] for one in decision.evidence)
    support = sum(WEIGHTS[one.kind] for one in evidence if one.axis == axis)
    return decision if weight >= MIN_OPPOSED_WEIGHT and weight > support else None


def stature_vectors(points: Array, labels: Sequence[str]) -> Array:
    """Return the slope of position over relative height in each frame that shows enough of the body."""
    marks = identify_landmarks(labels)
    chosen = [i for i, mark in enumerate(marks) if mark and mark.part in RELATIVE_HEIGHT]
    if len(chosen) < 3 or not points.size:
        return np.empty((0, 3))
    heights = np.array([RELATIVE_HEIGHT[mark.part] for mark in marks if mark and mark.part in RELATIVE_HEIGHT])
    part = points[:, chosen]
    is_visible = visible(part)
    part = np.where(is_visible[..., None], part, 0.0)
    count = is_visible.sum(axis=1)
    offset = np.where(is_visible, heights - (is_visible @ heights / np.maximum(count, 1))[:, None], 0.0)
    weight = (offset**2).sum(axis=1)
    # a fifth of stature between the upper and the lower half of at least three markers
    enough = (count >= 3) & (weight > count * 0.1**2)
    slopes = np.einsum("fm,fma->fa", offset[enough], part[enough]) / weight[enough, None]
    return slopes[np.linalg.norm(slopes, axis=1) > 0.0]


def signed_axis(axis: int, sign: float) -> str:
    """Return the name of an axis of the file, such as "-Y", from its index and sign."""
    return ("+" if sign >= 0.0 else "-") + "XYZ"[axis]


def _from_labels(points: Array, labels: Sequence[str]) -> UpEvidence | None:
    slopes = stature_vectors(points, labels)
    if not len(slopes):
        return None
    mean = (slopes / np.linalg.norm(slopes, axis=1, keepdims=True)).mean(axis=0)
    axis = int(np.argmax(np.abs(mean)))
    if abs(mean[axis]) < MIN_UPRIGHT_COMPONENT:
        return None
    name = signed_axis(axis, mean[axis])
    return UpEvidence("labels", name, f"the upper body is above the lower body along {name}")


def _from_force(force: Array | None, above: Array | None) -> UpEvidence | None:
    """Return the axis along which loaded plates push; the side of the markers gives its sign."""
    if force is None or above is None:
        return None
    strong = force[np.linalg.norm(np.nan_to_num(force), axis=1) >= MIN_FORCE]
    mean = np.abs(strong).mean(axis=0) if len(strong) else np.zeros(3)
    axis = int(np.argmax(mean))
    if not mean[axis] > MIN_AXIS_COMPONENT * np.linalg.norm(mean) or above[axis] == 0.0:
        return None
    name = signed_axis(axis, above[axis])
    return UpEvidence("force", name, f"the measured forces act along {name[1]}, with the markers on the {name[0]} side")


def _from_plates(corners: Array | None, above: Array | None) -> UpEvidence | None:
    normals = _normals(corners)
    if not len(normals) or above is None:
        return None
    level = np.median(np.abs(normals), axis=0)
    axis = int(np.argmax(level))
    if level[axis] < MIN_AXIS_COMPONENT or above[axis] == 0.0:
        return None
    name = signed_axis(axis, above[axis])
    text = f"{name[1]} is normal to the force plates, and the markers are on their {name[0]} side"
    return UpEvidence("plates", name, text)


def _normals(corners: Array | None) -> Array:
    """Return the unit normals of the plates that have an area."""
    if corners is None or not len(corners):
        return np.empty((0, 3))
    normals = np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])
    sizes = np.linalg.norm(normals, axis=1)
    usable = np.isfinite(sizes) & (sizes > 0.0)
    return np.asarray(normals[usable] / sizes[usable, None])


def _side_of_plates(points: Array, corners: Array | None) -> Array | None:
    """Return the signs (3,) of the median marker relative to the plates along each axis; None without either."""
    measured = points[visible(points)]
    if not len(measured) or not len(_normals(corners)):
        return None
    return np.asarray(np.sign(np.median(measured, axis=0) - np.nanmedian(np.asarray(corners), axis=(0, 1))))


def _from_floor(points: Array) -> UpEvidence | None:
    """Return the axis along which the lowest point of all frames is nearly constant and near zero."""
    is_visible = visible(points)
    full = is_visible.sum(axis=1) >= 3
    if full.sum() < 3:
        return None
    part = np.where(is_visible[full][..., None], points[full], np.nan)
    extent = np.nanmax(part, axis=1) - np.nanmin(part, axis=1)
    size = float(np.median(np.linalg.norm(extent, axis=1)))
    candidates: list[tuple[float, str]] = []
    for axis in range(3):
        for sign in (1.0, -1.0):
            lowest = np.nanmin(sign * part[..., axis], axis=1)
            wide = np.median(extent[:, axis]) > 0.3 * size
            if wide and -0.1 * size < np.percentile(lowest, 5) and np.median(lowest) < 0.15 * size:
                candidates.append((float(np.std(lowest)), signed_axis(axis, sign)))
    ranked = sorted(candidates)
    if len(ranked) == 1 or (len(ranked) > 1 and ranked[0][0] < 0.5 * ranked[1][0]):
        name = ranked[0][1]
        return UpEvidence("floor", name, f"the height of the lowest marker is nearly constant only along {name}")
    return None
