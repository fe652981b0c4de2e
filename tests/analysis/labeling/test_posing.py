"""Posing of the generic human: places as in the model's kinematics, the best scale, and known poses found again."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.labeling.candidate_places import PARTS, candidate_places
from borelli.analysis.labeling.check_labels import labeled_places, pose_labeled
from borelli.analysis.labeling.generic_body import HEIGHT, Poses, PoseSearch, fit_scale, generic_model, rest_pose
from borelli.analysis.labeling.posing import HeightPrior, assign
from borelli.analysis.labeling.upright_frames import choose_upright_frames, relative_headings
from borelli.model.kinematics import marker_positions
from borelli.model.landmark_atlas import MarkerLandmark, landmark_atlas
from borelli.model.model import Marker
from borelli.synthetic import synthetic_recording

EVERYTHING = candidate_places("", "whole body")
rng = np.random.default_rng(5)


def test_places_move_as_the_model_does() -> None:
    places, model = EVERYTHING, generic_model()
    markers = tuple(
        Marker(str(i), body, tuple(position))
        for i, (body, position) in enumerate(zip(places.body, places.position, strict=True))
    )
    q = rest_pose() + rng.normal(0.0, 0.2, (4, len(rest_pose())))
    expected = marker_positions(replace(model, markers=markers), q)
    poses = Poses(q[None], np.array([1.1]))
    assert PoseSearch(places).place_positions(poses)[0] == pytest.approx(1.1 * expected, abs=1e-12)


def test_scale_is_the_best_one() -> None:
    places, target = rng.normal(size=(3, 4, 9, 3)), rng.normal(size=(3, 4, 9, 3))
    target += 1.2 * places
    weight = rng.uniform(0.0, 400.0, (3, 4, 9))
    height, sd = 1.8, 0.1

    def cost(scale: np.ndarray) -> np.ndarray:
        # the best translation of each frame is that of the weighted means
        error = scale[:, None, None, None] * places - target
        mean = (weight[..., None] * error).sum(axis=2, keepdims=True) / weight.sum(axis=2)[..., None, None]
        squared = (weight[..., None] * (error - mean) ** 2).sum(axis=(1, 2, 3))
        return squared + ((HEIGHT * scale - height) / sd) ** 2

    scale = fit_scale(places, target, weight, height, sd)
    for step in (-1e-3, 1e-3):
        assert (cost(scale + step) > cost(scale)).all()


def test_assignment_is_the_cheapest_and_skips_hidden_points() -> None:
    positions = rng.normal(size=(5, 12, 3))
    order = rng.permutation(12)[:8]
    points = positions[:, order] + rng.normal(0.0, 0.01, (5, 8, 3))
    seen = np.ones((5, 8), bool)
    seen[:, 3] = False
    seen[1, 4] = False
    place = assign(positions, np.where(seen[..., None], points, 0.0), seen, 10.0, np.zeros(12))
    order[3] = -1
    assert place.tolist() == order.tolist()


def test_relative_headings_and_frames() -> None:
    cloud = rng.normal(size=(20, 3)) * (0.2, 0.2, 0.5)
    angles = np.array([0.0, 0.4, -2.0, 3.0])
    rotation = np.array([[[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]] for a in angles])
    points = np.einsum("fij,pj->fpi", rotation, cloud) + rng.normal(size=(4, 1, 3))
    points[2, 5] = np.nan
    # points that are missing in one frame are compared without it
    assert relative_headings(points) == pytest.approx(angles, abs=1e-9)
    low = np.concatenate([points * (1, 1, 0.3), points, points * (1, 1, 0.3)])
    assert set(choose_upright_frames(low, 3)) <= {4, 5, 6, 7}


def test_a_known_pose_is_found_again() -> None:
    truth = synthetic_recording("walk", noise=0.001, gaps=0.02, seed=3)
    labels = {"RFWT": "asis", "RBWT": "psis", "RKNE": "knee_lateral", "RANK": "malleolus_lateral", "RHEE": "heel"}
    labels |= {"RSHO": "acromion", "RELB": "elbow_lateral", "RWRA": "wrist_radial", "RMT5": "mt5", "RFHD": "head_front"}
    sides = {"R": "right", "L": "left"}
    pairs = {f"{letter}{name[1:]}": (mark, sides[letter]) for name, mark in labels.items() for letter in sides}
    names = [name for name in truth.recording.markers if name in pairs]
    points = truth.recording.data["marker_position"].sel(marker=names).values
    _, places = labeled_places([MarkerLandmark(name, *pairs[name]) for name in names])
    frames = choose_upright_frames(points, 7)
    posing = pose_labeled(points[frames], places, HeightPrior())
    assert posing.score[0] < 0.02
    assert HEIGHT * posing.poses.scale[0] == pytest.approx(1.72, abs=0.03)
    yaw = [c.name for c in generic_model().coordinates].index("root_yaw")
    turned = posing.poses.q[0, :, yaw] - truth.coordinates[frames, yaw]
    assert np.abs((turned + np.pi) % (2.0 * np.pi) - np.pi).max() < 0.15


def test_parts_are_parts() -> None:
    everything = set(zip(EVERYTHING.landmark, EVERYTHING.body, strict=True))
    assert {one.body for one in landmark_atlas() if one.conventions > 2} - {"lower_torso"} == set(EVERYTHING.body)
    for part in PARTS:
        places = candidate_places("", part)
        assert set(zip(places.landmark, places.body, strict=True)) <= everything
        assert ("head" in places.body) == (part in ("whole body", "body without arms", "upper body"))
        assert ("foot_l" in places.body) == (part not in ("right leg", "upper body"))
