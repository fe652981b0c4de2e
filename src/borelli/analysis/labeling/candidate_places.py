"""Candidate positions of unnamed markers on the generic human: marker sets, and a union of all others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.labeling.generic_body import Places, generic_model
from borelli.model.landmark_atlas import AtlasLandmark, find_in_atlas, landmark_atlas, segment_of
from borelli.model.marker_sets import list_marker_sets, markers_from_set
from borelli.model.model import Marker
from borelli.numerics.vectors import Array
from borelli.recording.labels.conventions import Convention, load_conventions

CLUSTER_SEGMENTS = ("upper_arm", "forearm", "thigh", "shank")
"""Segments on which there are also markers between the landmarks."""
MIN_CONVENTIONS = 3
"""Landmarks of fewer conventions are not candidates."""
MIN_CLUSTER_DISTANCE = 0.03
"""[m] Least distance of a cluster's place from every other place of the body."""
RARITY_DISTANCE = 0.03
"""[m] A landmark that is e times rarer must be nearer by this, in squares of distances."""
CLUSTER_CONVENTIONS = 5
"""Number of conventions that stands for each single position of a cluster."""
OTHER_SET_DISTANCE = 0.06
"""[m] A place that is not of the preferred marker set must be nearer by this, in squares of distances."""
COMPUTED_CONVENTIONS = ("Xsens MVN points",)
"""Conventions of points that a program computes on its own body: no markers are there."""
USUAL_LANDMARK = {"toes": "mt2", "hand": "mc2"}
"""Landmarks that conventions mean by a marker somewhere on the toes, and on the back of the hand."""
SAME_POSITION = 0.002
"""[m] Distance below which a marker of a set is at a landmark."""
Row = tuple[str, str, str, str, Array, float]
"""Landmark, side, kind, body, position and cost of a place."""
PARTS = {
    "whole body": "head neck upper_torso lower_torso collar upper_arm forearm hand pelvis thigh shank foot toes",
    "body without head": "neck upper_torso lower_torso collar upper_arm forearm hand pelvis thigh shank foot toes",
    "body without arms": "head neck upper_torso lower_torso collar pelvis thigh shank foot toes",
    "legs": "pelvis thigh shank foot toes",
    "right leg": "thigh_r shank_r foot_r toes_r",
    "left leg": "thigh_l shank_l foot_l toes_l",
    "upper body": "head neck upper_torso lower_torso collar upper_arm forearm hand pelvis",
}
"""Parts of the body that may have markers, and the bodies (of both sides unless stated) that belong to them."""


def list_candidate_sets() -> tuple[str, ...]:
    """Return the names of the marker sets on the skin."""
    return tuple(name for name in list_marker_sets() if not name.startswith("joint_centers"))


def list_candidate_conventions() -> tuple[str, ...]:
    """Return the names of the conventions of markers on the skin."""
    return tuple(_conventions())


@cache
def candidate_places(preferred: str, part: str, without: tuple[str, ...] = ()) -> Places:
    """Return the places of a marker set, at no cost, and of all others on one of the `PARTS`, at a cost.

    Args:
        preferred: Marker set, or "" for none.
        part: Part of the body.
        without: Marker sets whose clusters are left out.
    """
    own = _set_rows(preferred) if preferred else []
    rows = own + [
        (*row[:-1], row[-1] + OTHER_SET_DISTANCE**2)
        for row in union_rows(without)
        if not any(row[3] == one[3] and np.linalg.norm(row[4] - one[4]) < SAME_POSITION for one in own)
    ]
    return select_part(rows, part)


def select_part(rows: Iterable[Row], part: str) -> Places:
    """Return the places of the bodies of one of the `PARTS`."""
    bodies = {body for word in PARTS[part].split() for body in (word, f"{word}_r", f"{word}_l")}
    columns = list(zip(*(row for row in rows if row[3] in bodies), strict=True))
    return Places(*columns[:4], *map(np.array, columns[4:]))  # type: ignore[arg-type]


@cache
def union_rows(without: tuple[str, ...]) -> list[Row]:
    """Return common landmarks, and positions of cluster markers in marker sets."""
    model = generic_model()
    atlas = _common_landmarks()
    most = max(one.conventions for one in atlas)
    rows = [_row(one.name, one, np.array(one.position(model)), one.conventions / most) for one in atlas]
    for name in (name for name in list_candidate_sets() if name not in without):
        for marker in markers_from_set(model, name):
            if segment_of(marker.body) in CLUSTER_SEGMENTS:
                near = (np.linalg.norm(row[4] - marker.position) for row in rows if row[3] == marker.body)
                if min(near, default=np.inf) > MIN_CLUSTER_DISTANCE:
                    rows.append(_set_row(marker, CLUSTER_CONVENTIONS / most))
    return rows


@cache
def _set_rows(name: str) -> list[Row]:
    return [_set_row(marker, 1.0) for marker in markers_from_set(generic_model(), name)]


@cache
def _conventions() -> Mapping[str, Convention]:
    """Return the conventions of markers on skin by name."""
    return {
        one.name: one for one in load_conventions() if not one.has_keypoints and one.name not in COMPUTED_CONVENTIONS
    }


@cache
def convention_rows(name: str) -> list[Row]:
    """Return the landmarks of a convention where the atlas has them; on segments with clusters, those of all sets."""
    model, convention = generic_model(), _conventions()[name]
    kinds = {(one.landmark, one.side): one.kind for one in convention.labels.values()}
    found = [find_in_atlas(*key, kind) for key, kind in kinds.items() if kind in ("landmark", "wand")]
    rows = [
        _row(one.name, one, np.array(one.position(model)), 1.0)
        for one in found
        if one is not None and _is_distinct(one)
    ]
    clusters = {key for key, kind in kinds.items() if kind == "cluster"}
    return rows + [row for row in union_rows(()) if row[:2] in clusters and row[2] == "cluster"]


def _row(landmark: str, one: AtlasLandmark, position: Array, frequency: float) -> Row:
    cost = RARITY_DISTANCE**2 * float(np.log(1.0 / frequency))
    return landmark, one.side, one.kind, one.body, position, cost


def _set_row(marker: Marker, frequency: float) -> Row:
    """Return the place of a marker of a set: at the landmark of its body that lies there, else in a cluster."""
    position, segment, model = np.array(marker.position), segment_of(marker.body), generic_model()
    near = sorted(
        ((float(np.linalg.norm(position - one.position(model))), -one.conventions, one.name, one) for one in
         landmark_atlas() if one.kind == "landmark" and one.body == marker.body and _is_distinct(one)),
    )  # fmt: skip
    usual = USUAL_LANDMARK.get(marker.body[:-2])
    if near and near[0][0] < SAME_POSITION and not (usual and -near[0][1] < MIN_CONVENTIONS):
        return _row(near[0][2], near[0][3], position, frequency)
    if near and segment not in CLUSTER_SEGMENTS:
        return _row(usual or near[0][2], near[0][3], position, frequency)
    cluster = next(one for one in landmark_atlas() if one.kind == "cluster" and one.body == marker.body)
    return _row(segment, cluster, position, frequency)


@cache
def mirror_indices(preferred: str, part: str, without: tuple[str, ...] = ()) -> NDArray[np.int64]:
    """Return the index of the mirror image of each candidate place; its own index if there is none."""
    return mirror_places(candidate_places(preferred, part, without))


def mirror_places(places: Places) -> NDArray[np.int64]:
    """Return the index of the mirror image of each place; its own index if there is none."""
    bodies = [body.removesuffix("_r").removesuffix("_l") for body in places.body]
    keys = [(body, *np.round(at, 4)) for body, at in zip(bodies, places.position, strict=True)]
    index = {(key, side): i for i, (key, side) in enumerate(zip(keys, places.side, strict=True))}
    other = {"left": "right", "right": "left", "middle": "middle"}
    mirrored = [(body, x, -y, z) for body, x, y, z in keys]
    found = [index.get((key, other[side]), i) for i, (key, side) in enumerate(zip(mirrored, places.side, strict=True))]
    return np.array(found)


def _is_distinct(one: AtlasLandmark) -> bool:
    """Return False for midpoints of a pair: the middle of the posterior spines is the sacrum."""
    return (one.name, one.side) not in (("psis", "middle"), ("asis", "middle"))


@cache
def _common_landmarks() -> tuple[AtlasLandmark, ...]:
    common = [one for one in landmark_atlas() if one.kind == "landmark" and one.conventions >= MIN_CONVENTIONS]
    return tuple(one for one in common if _is_distinct(one))
