"""Patterns of segments: what conventions put together, measured offsets, and the labels that cost least."""

from functools import cache

import numpy as np
import pytest

import borelli.analysis.labeling.label_by_patterns as module
from borelli.analysis.labeling.candidate_places import list_candidate_conventions
from borelli.analysis.labeling.check_labels import FRAMES, labeled_places, pose_labeled
from borelli.analysis.labeling.generic_body import (
    POSE_SD,
    Places,
    Poses,
    generic_model,
    limb_angles,
    prior_energies,
    rest_pose,
)
from borelli.analysis.labeling.hypotheses import Hypothesis, run_hypotheses
from borelli.analysis.labeling.label_by_patterns import PatternLabels, label_by_patterns
from borelli.analysis.labeling.label_points import RUNS
from borelli.analysis.labeling.measured_offsets import measured_offsets, offset_on_side
from borelli.analysis.labeling.posing import HeightPrior
from borelli.analysis.labeling.segment_patterns import segment_patterns
from borelli.analysis.labeling.upright_frames import choose_upright_frames
from borelli.model.landmark_atlas import MarkerLandmark
from borelli.numerics.vectors import Array
from tests.analysis.labeling.labeled_recordings import labeled_recording, own_marker_set
from tests.analysis.labeling.test_check_labels import synthetic_markers
from tests.analysis.labeling.test_label_points import is_same_place, shuffled

OWN = ("cmu41", "CMU 41", "Plug-in Gait full body (CGM1)", "plugin_gait")
"""Marker sets and conventions of the synthetic markers."""
MIN_IMPROVEMENT = 0.002
"""[m] by which mean distances from places fall: 3 to 8 mm were measured."""


def names(places: Places, indices: np.ndarray) -> set[tuple[str, str]]:
    return {(places.landmark[i], places.side[i]) for i in np.flatnonzero(indices)}


def test_patterns_are_those_of_conventions() -> None:
    assert "Xsens MVN points" not in list_candidate_conventions() and len(list_candidate_conventions()) > 25
    patterns = segment_patterns("whole body")
    heads = {frozenset(names(patterns.places, one.members)): one.conventions for one in patterns.patterns["head"]}
    corners = frozenset((name, side) for name in ("head_front", "head_back") for side in ("left", "right"))
    assert heads[frozenset()] == 1 and heads[corners] == 4
    fewer = segment_patterns("whole body", OWN)
    heads = {frozenset(names(fewer.places, one.members)): one.conventions for one in fewer.patterns["head"]}
    assert heads[corners] == 2


def test_used_places_choose_the_pattern_that_has_them() -> None:
    patterns = segment_patterns("whole body")
    for members in (one.members for one in patterns.patterns["foot"] if one.conventions >= 4):
        used = members & ~patterns.loose
        chosen = patterns.patterns["foot"][patterns.best(used)["foot"]]
        assert names(patterns.places, chosen.members & ~patterns.loose) == names(patterns.places, used)
        cost = patterns.cost(patterns.best(used))
        assert cost.unused[~used & (patterns.segment == "foot")].sum() == 0.0
        assert (cost.unused[used] > 0.0).all()  # each would cost without a point


def test_markers_on_one_side_and_gaps_in_a_limb_cost() -> None:
    patterns = segment_patterns("whole body")
    keys = list(zip(patterns.places.landmark, patterns.places.side, strict=True))

    def cost(*chosen: tuple[str, str]) -> float:
        used = np.zeros(len(keys), bool)
        used[[keys.index(key) for key in chosen]] = True
        return patterns.asymmetry(used)

    both = [("elbow_lateral", "left"), ("elbow_lateral", "right")]
    assert cost(both[0]) > cost(*both)
    wrists = [("wrist_radial", "left"), ("wrist_radial", "right")]
    assert cost(*wrists) > cost(*both) > cost(*both, *wrists)
    # the marker on one scapula has no twin
    assert cost(("back_offset", "right"), *both) == cost(("C7", "middle"), *both)


def test_measured_offsets_are_means_over_the_sets_that_are_known() -> None:
    everything, fewer = measured_offsets(), measured_offsets(("opensim_gait",))
    assert "temple" in everything and "temple" not in fewer
    assert not np.allclose(everything["heel"], fewer["heel"])
    right, left = (offset_on_side("heel", side) for side in ("right", "left"))
    assert right == pytest.approx(left * (1.0, -1.0, 1.0)) and right[1] != 0.0
    assert offset_on_side("C7", "middle")[1] == 0.0 and not offset_on_side("nothing", "right").any()
    assert max(float(np.linalg.norm(offset)) for offset in everything.values()) < 0.06


@pytest.mark.data
@pytest.mark.parametrize("name", ["c3d/qualisys_walk/Qualisys.c3d", "c3d/vicon_overground_4plates/test_small.c3d"])
def test_offsets_of_other_sets_bring_places_nearer_to_markers(name: str) -> None:
    trial = labeled_recording(name)
    columns, places = labeled_places(trial.markers)
    points = trial.points[choose_upright_frames(trial.points, FRAMES)][:, columns]
    without = own_marker_set(trial.recording)
    moves = [
        offset_on_side(landmark, side, without) if kind == "landmark" else np.zeros(3)
        for landmark, side, kind in zip(*places[:3], strict=True)
    ]
    before, after = (
        float(pose_labeled(points, one, HeightPrior()).score[0])
        for one in (places, places._replace(position=places.position + moves))
    )
    assert after < before - MIN_IMPROVEMENT


def test_energy_of_the_prior() -> None:
    assert prior_energies(rest_pose()) == pytest.approx(0.0)
    index = {one.name: i for i, one in enumerate(generic_model().coordinates)}
    moved = rest_pose().copy()
    moved[[index["root_x"], index["root_yaw"]]] += 2.0
    assert prior_energies(moved) == pytest.approx(0.0)  # where the body is, and its heading, do not matter
    moved[index["hip_flexion_r"]] += 2.0 * POSE_SD["hip"]
    assert prior_energies(moved) == pytest.approx(4.0)  # two standard deviations


@cache
def posed_walk() -> tuple[Array, list[MarkerLandmark], Poses]:
    points, markers = synthetic_markers()
    columns, places = labeled_places(markers)
    points = points[choose_upright_frames(points, 5)][:, columns]
    return points, [markers[i] for i in columns], pose_labeled(points, places, HeightPrior()).poses


@cache
def labeled_walk() -> PatternLabels:
    points, _, poses = posed_walk()
    return label_by_patterns(points, "whole body", poses, HeightPrior(), OWN)


def test_synthetic_markers_are_labeled_without_their_set() -> None:
    (_, markers, _), found = posed_walk(), labeled_walk()
    place, places = found.posing.place[0], found.places
    assert _right_segments(markers, found) == len(markers)
    right = sum(places.landmark[i] == one.landmark for one, i in zip(markers, place, strict=True))
    assert right >= 0.9 * len(markers)
    assert len(set(place.tolist())) == len(place)


def test_changes_lower_the_cost_from_a_wrong_pose(monkeypatch: pytest.MonkeyPatch) -> None:
    points, markers, poses = posed_walk()
    q = poses.q.copy()
    for index, value in limb_angles("arm", "rl", {"shoulder_flexion": 0.6, "elbow_flexion": 1.2}).items():
        q[..., index] = value
    wrong = Poses(q, poses.scale)
    found = label_by_patterns(points, "whole body", wrong, HeightPrior(), OWN)
    monkeypatch.setattr(module, "MAX_ROUNDS", 0)
    before = label_by_patterns(points, "whole body", wrong, HeightPrior(), OWN)
    assert found.cost < 0.95 * before.cost
    assert _right_segments(markers, found) > _right_segments(markers, before)


def _right_segments(markers: list[MarkerLandmark], found: PatternLabels) -> int:
    places, place = found.places, found.posing.place[0]
    pairs = zip(markers, place, strict=True)
    return sum((places.segment[i], places.side[i]) == _segment_and_side(one) for one, i in pairs)


def test_a_rotated_body_costs_more() -> None:
    """Left and right of a body that is posed backwards cost more: cost and distances are those of the poses."""
    (points, markers, _), found = posed_walk(), labeled_walk()
    poses = Poses(found.posing.poses.q.copy(), found.posing.poses.scale)
    yaw = [one.name for one in generic_model().coordinates].index("root_yaw")
    poses.q[..., yaw] += np.pi
    turned = label_by_patterns(points, "whole body", poses, HeightPrior(), OWN)
    assert turned.cost > 1.5 * found.cost > 0.0
    assert len(turned.posing.place[0]) == len(markers)


MIN_QUALISYS = 52
"""Landmarks of 55. The marker set lacks eleven of these markers; 44 were right when whole conventions were compared."""


@pytest.mark.data
def test_patterns_do_not_worsen_a_known_set() -> None:
    trial = shuffled(labeled_recording("c3d/qualisys_walk/Qualisys.c3d"))
    sets = ("qualisys_cast", "opencap_mocap")
    run = run_hypotheses(trial.points, RUNS[0], [Hypothesis(name, "whole body") for name in sets], HeightPrior())
    right = 0
    for one, segment, i in zip(trial.markers, trial.segment, run.posing.place[0], strict=True):
        on_segment = (run.places.segment[i], run.places.side[i]) == (segment, one.side)
        right += on_segment and (
            one.kind != "landmark" or is_same_place(run.places.landmark[i], one.landmark, one.side)
        )
    assert right >= MIN_QUALISYS


def _segment_and_side(one: MarkerLandmark) -> tuple[str, str]:
    places = labeled_places([one])[1]
    return places.segment[0], places.side[0]
