"""Check of labels by geometry: correct labels pass, swapped ones are found; on synthetic and on public recordings."""

from collections.abc import Sequence

import numpy as np
import pytest

from borelli.analysis.labeling.check_labels import LabelCheck, check_labels
from borelli.model.landmark_atlas import MarkerLandmark
from borelli.numerics.vectors import Array
from borelli.synthetic import synthetic_recording
from tests.analysis.labeling.labeled_recordings import FILES, labeled_recording

CMU_LABELS = {
    "FHD": "head_front", "BHD": "head_back", "SHO": "acromion", "ELB": "elbow_lateral", "WRA": "wrist_radial",
    "WRB": "wrist_ulnar", "FIN": "mc2", "FWT": "asis", "BWT": "psis", "KNE": "knee_lateral", "ANK": "malleolus_lateral",
    "HEE": "heel", "MT5": "mt5", "TOE": "mt2", "UPA": "upper_arm", "FRM": "forearm", "THI": "thigh", "SHN": "shank",
}  # fmt: skip
MIDDLE = {"C7": "C7", "T10": "T10", "CLAV": "jugular_notch", "STRN": "xiphoid"}
CLUSTERS = ("upper_arm", "forearm", "thigh", "shank")
SIDES = {"R": "right", "L": "left"}
OTHER_SIDE = {"left": "right", "right": "left", "middle": "middle"}
MIN_FOUND = 0.98
"""Fraction of swaps of labels more than 0.1 m apart that must be found."""
MAX_FALSE = 0.02
"""Fraction of recordings with correct labels in which a swap may be found."""


def synthetic_markers(task: str = "walk") -> tuple[Array, list[MarkerLandmark]]:
    recording = synthetic_recording(task, seed=2).recording
    markers, columns = [], []
    for i, name in enumerate(recording.markers):
        landmark = MIDDLE.get(name) or CMU_LABELS.get(name[1:])
        if landmark:
            kind = "cluster" if landmark in CLUSTERS else "landmark"
            markers.append(MarkerLandmark(name, landmark, "middle" if name in MIDDLE else SIDES[name[0]], kind))
            columns.append(i)
    return recording.data["marker_position"].values[:, columns], markers


def swap(markers: Sequence[MarkerLandmark], i: int, k: int) -> list[MarkerLandmark]:
    result = list(markers)
    result[i], result[k] = (
        one._replace(landmark=other.landmark, side=other.side, kind=other.kind)
        for one, other in ((markers[i], markers[k]), (markers[k], markers[i]))
    )
    return result


def mirror(markers: Sequence[MarkerLandmark]) -> list[MarkerLandmark]:
    return [one._replace(side=OTHER_SIDE[one.side]) for one in markers]


def found_pairs(check: LabelCheck) -> list[set[str]]:
    return [set(finding.labels) for finding in check.findings if finding.code == "swapped_labels"]


def twins(markers: Sequence[MarkerLandmark]) -> list[tuple[int, int]]:
    keys = [(one.landmark, one.side) for one in markers]
    lefts = [i for i, key in enumerate(keys) if key[1] == "left" and keys.count(key) == 1]
    rights = {keys[i][0]: i for i in range(len(keys)) if keys[i][1] == "right" and keys.count(keys[i]) == 1}
    return [(i, rights[keys[i][0]]) for i in lefts if keys[i][0] in rights]


def distance(points: Array, i: int, k: int) -> float:
    return float(np.nanmedian(np.linalg.norm(points[:, i] - points[:, k], axis=1)))


@pytest.mark.parametrize("task", ["walk", "jump", "reach"])
def test_correct_labels_pass_and_swapped_sides_are_found(task: str) -> None:
    points, markers = synthetic_markers(task)
    check = check_labels(points, markers)
    assert not check.findings and len(check.checked) == len(markers) and check.distance < 0.03
    assert check.height == pytest.approx(1.72, abs=0.05)
    (finding,) = check_labels(points, mirror(markers)).findings
    assert finding.code == "left_right_labels" and finding.severity == "error"


def test_swapped_sides_are_found_with_a_marker_that_is_hardly_visible() -> None:
    points, markers = synthetic_markers()
    hidden = points.copy()
    hidden[1:, [marker.label for marker in markers].index("RTHI")] = np.nan
    (finding,) = check_labels(hidden, mirror(markers)).findings
    assert finding.code == "left_right_labels" and "the body" in finding.evidence and "RTHI" not in finding.labels


def test_swapped_pairs_are_found() -> None:
    points, markers = synthetic_markers()
    pairs = twins(markers)
    assert len(pairs) == len(CMU_LABELS)
    for i, k in pairs[::2]:
        assert {markers[i].label, markers[k].label} in found_pairs(check_labels(points, swap(markers, i, k)))
    rng = np.random.default_rng(4)
    tried = 0
    while tried < 6:
        i, k = map(int, rng.choice(len(markers), 2, replace=False))
        if distance(points, i, k) > 0.1:
            tried += 1
            found = found_pairs(check_labels(points, swap(markers, i, k)))
            assert any({markers[i].label, markers[k].label} & pair for pair in found), (markers[i], markers[k])


@pytest.mark.parametrize("segments", [("upper_arm", "elbow", "wrist", "forearm", "mc2"), ("thigh", "knee", "shank")])
def test_swapped_limbs_are_found(segments: tuple[str, ...]) -> None:
    points, markers = synthetic_markers()
    legs = ("malleolus", "heel", "mt5", "mt2") if "thigh" in segments else ()
    limb = [one.landmark.startswith((*segments, *legs)) for one in markers]
    swapped = [mirror([one])[0] if on_limb else one for one, on_limb in zip(markers, limb, strict=True)]
    check = check_labels(points, swapped)
    (finding,) = [finding for finding in check.findings if finding.code == "left_right_labels"]
    assert set(finding.labels) == {one.label for one, on_limb in zip(markers, limb, strict=True) if on_limb}


def test_a_marker_that_moves_against_its_body_is_found() -> None:
    points, markers = synthetic_markers()
    names = [marker.label for marker in markers]
    knee = names.index("RKNE")
    four = [*markers, *(MarkerLandmark(f"RTH{i}", "thigh", "right", "cluster") for i in range(2))]
    columns = [*range(len(names)), names.index("RTHI"), names.index("RTHI")]
    more = points[:, columns].copy()
    more[:, -1] += (0.0, 0.0, 0.06)
    more[:, -2] = 0.5 * (points[:, knee] + points[:, names.index("RTHI")])
    assert not check_labels(more, four).findings
    more[:, -1] = points[:, names.index("LSHN")]
    found = [finding for finding in check_labels(more, four).findings if finding.code == "not_rigid"]
    assert [finding.labels for finding in found] == [("RTH1",)] and found[0].severity == "warning"


def test_swaps_at_the_wrist_are_warnings_and_clusters_are_not_compared() -> None:
    points, markers = synthetic_markers()
    names = [marker.label for marker in markers]
    check = check_labels(points, swap(markers, names.index("RWRA"), names.index("RWRB")))
    assert all(finding.severity == "warning" for finding in check.findings)
    i, k = names.index("RTHI"), names.index("RSHN")
    twice = [*markers, markers[i]._replace(label="RTH2")]
    moved = points[:, [*range(len(names)), i]].copy()
    moved[:, -1, 2] -= 0.12
    both = swap(twice, i, len(names))
    assert not check_labels(moved, both).findings
    # a cluster marker on another segment is a swap
    assert found_pairs(check_labels(points, swap(markers, i, k))) == [{"RTHI", "RSHN"}]


def test_too_few_markers_are_not_checked() -> None:
    points, markers = synthetic_markers()
    check = check_labels(points[:, :4], markers[:4])
    assert not check.findings and not check.checked and "4 markers" in check.reason
    assert check_labels(points, [None] * len(markers)).reason
    gone = np.full_like(points, np.nan)
    assert check_labels(gone, markers).reason


def test_a_swap_that_does_not_bring_markers_to_their_places_is_no_finding() -> None:
    """Two markers off the body: swapping them brings both nearer to their places, but not near."""
    points, markers = synthetic_markers()
    names = [marker.label for marker in markers]
    left, right = names.index("LANK"), names.index("RANK")
    moved = points.copy()
    moved[:, [left, right]] = moved[:, [right, left]]
    assert {"LANK", "RANK"} in found_pairs(check_labels(moved, markers))
    moved[:, [left, right], 2] += 0.5
    assert not any({"LANK", "RANK"} & pair for pair in found_pairs(check_labels(moved, markers)))


@pytest.mark.data
@pytest.mark.slow
def test_campaign_of_faults_on_recordings() -> None:
    kinds = ("left and right of all labels", "left and right of one landmark", "0.1 to 0.3 m apart", "farther apart")
    found: dict[str, list[bool]] = {kind: [] for kind in (*kinds, "none")}
    missed: list[str] = []

    def add(kind: str, is_found: bool, what: str) -> None:
        found[kind].append(is_found)
        if is_found == (kind == "none"):
            missed.append(f"{kind}: {what}")

    for name in FILES:
        trial = labeled_recording(name)
        points, markers = trial.points, trial.markers
        check = check_labels(points, markers)
        if check.reason:
            continue
        add("none", any(finding.severity == "error" for finding in check.findings), f"{name} {check.findings}")
        mirrored = check_labels(points, mirror(markers))
        add(kinds[0], any(finding.code == "left_right_labels" for finding in mirrored.findings), name)
        rng = np.random.default_rng(1)
        for i, k in rng.permutation(twins(markers))[:8]:
            pair = {markers[i].label, markers[k].label}
            add(kinds[1], pair in found_pairs(check_labels(points, swap(markers, i, k))), f"{name} {pair}")
        for i, k in _far_pairs(points, markers, rng):
            pair = {markers[i].label, markers[k].label}
            again = check_labels(points, swap(markers, i, k))
            kind = kinds[2] if distance(points, i, k) < 0.3 else kinds[3]
            add(kind, any(pair & set(finding.labels) for finding in again.findings), f"{name} {pair}")
    for kind, values in found.items():
        print(f"{kind}: {sum(values)} of {len(values)}")
    print("\n".join(missed))
    assert len(found["none"]) >= 26 and np.mean(found["none"]) <= MAX_FALSE
    assert all(found[kinds[0]]) and all(found[kinds[1]])
    assert np.mean(found[kinds[2]] + found[kinds[3]]) >= MIN_FOUND


def _far_pairs(
    points: Array, markers: Sequence[MarkerLandmark], rng: np.random.Generator, count: int = 8
) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    while len(pairs) < count:
        i, k = map(int, rng.choice(len(markers), 2, replace=False))
        same = markers[i][1:3] == markers[k][1:3]
        if not same and distance(points, i, k) > 0.1:
            pairs.append((i, k))
    return pairs
