"""Refinement of posings: lost limbs and frames are found again, points between a pair are on the midline."""

import numpy as np
import pytest

import borelli.analysis.labeling.refine_posing as module
from borelli.analysis.labeling.candidate_places import candidate_places
from borelli.analysis.labeling.check_labels import labeled_places, pose_labeled
from borelli.analysis.labeling.generic_body import Places, Poses, PoseSearch, generic_model, limb_angles, rest_pose
from borelli.analysis.labeling.posing import HeightPrior, Posing, assign, point_distances
from borelli.analysis.labeling.refine_posing import put_on_midline, refine_posing
from borelli.analysis.labeling.upright_frames import choose_upright_frames
from borelli.numerics.vectors import Array
from tests.analysis.labeling.test_check_labels import synthetic_markers

NAMES = [c.name for c in generic_model().coordinates]


def posed_walk() -> tuple[Array, Places, Posing]:
    points, markers = synthetic_markers()
    columns, places = labeled_places(markers)
    points = points[choose_upright_frames(points, 5)][:, columns]
    return points, places, pose_labeled(points, places, HeightPrior())


def disturbed(points: Array, places: Places, posing: Posing, angles: dict[int, float], frames: slice) -> Posing:
    """Return a posing with other angles in some frames, and the points assigned to where the places are then."""
    poses = Poses(posing.poses.q.copy(), posing.poses.scale)
    for index, value in angles.items():
        poses.q[0, frames, index] = value
    seen = np.isfinite(points).all(axis=-1)
    filled = np.where(seen[..., None], points, 0.0)
    positions = PoseSearch(places).place_positions(poses)
    place = assign(positions[0], filled, seen, 0.15, places.cost)[None]
    return Posing(poses, place, point_distances(positions, filled, seen, place), places.cost)


def test_a_lost_arm_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    points, places, posing = posed_walk()
    angles = limb_angles("arm", "r", {"shoulder_flexion": 2.8, "elbow_flexion": 1.5})
    lost = disturbed(points, places, posing, angles, slice(None))
    monkeypatch.setattr(module, "_repose_widely", lambda points, places, posing, prior: posing)
    _check_found(points, places, posing, lost)


def test_frames_are_posed_again_with_the_assignment_held(monkeypatch: pytest.MonkeyPatch) -> None:
    points, places, posing = posed_walk()
    angles = limb_angles("leg", "r", {"hip_flexion": 1.4, "knee_flexion": 1.8})
    lost = disturbed(points, places, posing, angles, slice(0, 2))
    monkeypatch.setattr(module, "_restart_limbs", lambda points, places, posing, prior: [posing])
    _check_found(points, places, posing, lost)


def _check_found(points: Array, places: Places, posing: Posing, lost: Posing) -> None:
    assert lost.score[0] > posing.score[0] + 0.005
    found = refine_posing(points, places, lost, lambda one: float(one.score[0]))
    assert found.score[0] < posing.score[0] + 0.001
    assert found.place[0].tolist() == list(range(len(places.landmark)))


def test_limb_angles_are_those_of_one_side() -> None:
    angles = limb_angles("arm", "l", {"elbow_flexion": 1.0})
    assert angles[NAMES.index("elbow_flexion_l")] == 1.0
    assert {NAMES[i][-2:] for i in angles} == {"_l"} and not any(NAMES[i].startswith("hip") for i in angles)
    assert angles[NAMES.index("shoulder_adduction_l")] == rest_pose()[NAMES.index("shoulder_adduction_l")]


@pytest.mark.parametrize("pair", [False, True])
def test_a_point_between_a_pair_is_on_the_midline(pair: bool) -> None:
    everything = candidate_places("", "whole body")
    keys = list(zip(everything.landmark, everything.side, strict=True))
    chosen = [keys.index(key) for key in (("psis", "right"), ("psis", "left"), ("sacrum", "middle"))]
    places = everything.select(chosen)
    poses = Poses(rest_pose()[None, None].copy(), np.ones(1))
    positions = PoseSearch(places).place_positions(poses)[0]
    points = positions[:, [2, 1]] if pair else positions[:, [2]]
    place = np.array([[0, 1]] if pair else [[0]])
    posing = Posing(poses, place, np.zeros(place.shape), places.cost)
    found = put_on_midline(points, places, np.array([1, 0, 2]), posing)
    assert found.place[0, 0] == (0 if pair else 2)
    assert found.distance[0, 0] == pytest.approx(0.0, abs=1e-9)
