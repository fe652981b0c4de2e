"""Candidate positions of unnamed markers on the generic human: landmarks of the atlas, clusters of marker sets."""

from __future__ import annotations

from functools import cache

import numpy as np

from borelli.analysis.labeling.generic_body import Places, generic_model
from borelli.model.landmark_atlas import AtlasLandmark, landmark_atlas, segment_of
from borelli.model.marker_sets import list_marker_sets, markers_from_set
from borelli.model.model import Marker

CLUSTER_SEGMENTS = ("upper_arm", "forearm", "thigh", "shank")
"""Segments on which markers are also worn between the landmarks."""
MIN_CONVENTIONS = 2
"""Landmarks of fewer conventions are not candidates."""
MIN_CLUSTER_DISTANCE = 0.03
"""[m] Least distance of a cluster's place from every other place of the body."""
RARITY_DISTANCE = 0.02
"""[m] A landmark that is e times rarer must be nearer by this, in squares of distances."""
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


@cache
def candidate_places() -> Places:
    """Return landmarks that at least two conventions have, and positions of cluster markers in marker sets."""
    model = generic_model()
    atlas = [one for one in landmark_atlas() if one.kind == "landmark" and max(one.conventions, 1) >= MIN_CONVENTIONS]
    chosen: list[AtlasLandmark | Marker] = list(atlas)
    positions = [np.array(one.position(model)) for one in atlas]
    for marker in (marker for name in list_marker_sets() for marker in markers_from_set(model, name)):
        if segment_of(marker.body) in CLUSTER_SEGMENTS and "Center" not in marker.name:
            near = (
                np.linalg.norm(other - marker.position)
                for other, one in zip(positions, chosen, strict=True)
                if one.body == marker.body
            )
            if min(near, default=np.inf) > MIN_CLUSTER_DISTANCE:
                chosen.append(marker)
                positions.append(np.array(marker.position))
    most = max(one.conventions for one in atlas)
    cost = [RARITY_DISTANCE**2 * np.log(most / _conventions(one)) for one in chosen]
    sd = [float(np.linalg.norm(one.sd)) if isinstance(one, AtlasLandmark) else 0.03 for one in chosen]
    return Places(
        tuple(one.name if isinstance(one, AtlasLandmark) else segment_of(one.body) for one in chosen),
        tuple(one.side if isinstance(one, AtlasLandmark) else _side(one.body) for one in chosen),
        tuple(one.kind if isinstance(one, AtlasLandmark) else "cluster" for one in chosen),
        tuple(one.body for one in chosen),
        np.array(positions),
        np.array(sd),
        np.array(cost),
    )


@cache
def part_places(part: str) -> Places:
    """Return the candidates on one of the `PARTS`."""
    places = candidate_places()
    bodies = {name for word in PARTS[part].split() for name in (word, f"{word}_r", f"{word}_l")}
    return places.select([i for i, body in enumerate(places.body) if body in bodies])


def _conventions(one: AtlasLandmark | Marker) -> int:
    """Return the number of conventions; a position of a cluster is one of many, each in few conventions."""
    return max(one.conventions, 1) if isinstance(one, AtlasLandmark) else 5


def _side(body: str) -> str:
    return {"_r": "right", "_l": "left"}[body[-2:]]
