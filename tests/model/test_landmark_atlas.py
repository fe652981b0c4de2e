"""Atlas of landmarks: complete, symmetric, and where the marker sets have them."""

import csv
from collections import Counter

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.model.landmark_atlas import (
    KINDS,
    SIDES,
    WITHOUT_POSITION,
    MarkerLandmark,
    find_in_atlas,
    landmark_atlas,
    landmark_markers,
    list_landmarks,
)
from borelli.model.marker_sets import list_marker_sets
from borelli.model.model import Model
from borelli.people.human import human
from tests.shared_data import shared

EXACT = (
    "asis", "psis", "sacrum", "knee_lateral", "knee_medial", "malleolus_lateral", "malleolus_medial", "heel",
    "acromion", "elbow_lateral", "elbow_medial", "wrist_radial", "wrist_ulnar", "C7", "T10", "xiphoid", "jugular_notch",
    "mt1", "greater_trochanter",
)  # fmt: skip
"""Landmarks at the same position in every marker set that has them."""
MAX_SD = 3.0
"""Standard deviations by which other landmarks of a marker set may differ from the atlas."""
ELSEWHERE = {
    "R_toe": "of OpenCap, read as the second metatarsal head, is over the first", "R.Wrist": "one side or between",
    "RTOE": "on the toes or the second metatarsal head", "R.Toe": "on the toes or the second metatarsal head",
}  # fmt: skip
"""Labels whose marker sets differ in what they mean."""


def world(model: Model, body: str, position: object) -> np.ndarray:
    return np.array(model.body(body).frame.position) + np.array(position)


@pytest.mark.parametrize("height", [1.5, 1.9])
def test_left_mirrors_right_and_the_middle_is_in_the_middle(height: float) -> None:
    model = human(height=height)
    rights = [one for one in landmark_atlas() if one.side == "right"]
    assert len(rights) > 60
    for right in rights:
        left = find_in_atlas(right.name, "left", right.kind)
        assert left is not None and left.sd == right.sd and left.kind == right.kind
        mirrored = world(model, right.body, right.position(model)) * (1.0, -1.0, 1.0)
        assert world(model, left.body, left.position(model)) == pytest.approx(mirrored, abs=1e-12)
    for middle in (one for one in landmark_atlas() if one.side == "middle"):
        assert world(model, middle.body, middle.position(model))[1] == pytest.approx(0.0, abs=1e-12)


def test_landmarks_are_in_anatomical_order() -> None:
    model = human()

    def height(name: str, side: str = "right") -> float:
        one = find_in_atlas(name, side)
        assert one is not None
        return float(world(model, one.body, one.position(model))[2])

    spine = [height(name, "middle") for name in ("C7", "T2", "T4", "T7", "T8", "T10", "T12", "L3", "L5", "sacrum")]
    assert spine == sorted(spine, reverse=True)
    leg = ("iliac_crest", "asis", "greater_trochanter", "knee_lateral", "tibial_plateau_lateral", "fibular_head")
    heights = [height(name) for name in (*leg, "tibial_tuberosity", "malleolus_lateral", "mt5")]
    assert heights == sorted(heights, reverse=True)
    head = [height(n, s) for n, s in (("head_top", "middle"), ("head_front", "middle"), ("ear", "right"))]
    assert head == sorted(head, reverse=True) and height("nose", "middle") > height("chin", "middle")


def test_every_marker_of_every_set_is_near_a_landmark_of_its_body() -> None:
    for name in list_marker_sets():
        model = human(markers=name)
        for marker in model.markers:
            near = [
                np.abs((np.array(one.position(model)) - marker.position) / one.sd).max()
                for one in landmark_atlas()
                if one.body == marker.body
            ]
            assert min(near) <= MAX_SD, (name, marker.name, min(near))


def test_markers_of_labels() -> None:
    model = human()
    worn = [MarkerLandmark("Knee, R", "knee_lateral", "right"), MarkerLandmark("k", "knee_lateral", "left", "wand")]
    skin, wand = landmark_markers(model, worn)
    assert (skin.name, skin.body, wand.name, wand.body) == ("Knee, R", "thigh_r", "k", "thigh_l")
    assert wand.position[1] > -skin.position[1] + 0.04  # a wand stands off the skin
    for bad in (
        ("a", "mass_center", "middle"),
        ("b", "third_eye", "middle"),
        ("c", "asis", "up"),
        ("d", "heel", "middle"),
    ):
        with pytest.raises(SettingsError, match=rf"Marker '{bad[0]}'"):
            landmark_markers(model, [MarkerLandmark(*bad)])


def label_table() -> list[dict[str, str]]:
    with shared("tables/marker_labels.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.data
def test_every_landmark_of_the_conventions_has_a_position_or_a_reason() -> None:
    rows = label_table()
    assert {row["landmark"] for row in rows} == {*list_landmarks(), *WITHOUT_POSITION}
    assert {row["kind"] for row in rows} <= set(KINDS) and {row["side"] for row in rows} <= set(SIDES)
    for row in rows:
        if row["landmark"] not in WITHOUT_POSITION and row["side"] != "middle":
            assert find_in_atlas(row["landmark"], row["side"], row["kind"]), row
    worn = {(r["landmark"], r["kind"], r["convention"]) for r in rows if r["kind"] != "virtual center"}
    counts = Counter((name, kind) for name, kind, _ in worn)
    for one in landmark_atlas():
        if (one.name, one.kind) in counts:
            assert one.conventions == counts[one.name, one.kind], one.name


@pytest.mark.data
def test_landmarks_are_where_the_marker_sets_have_them() -> None:
    readings: dict[str, Counter[tuple[str, str, str]]] = {}
    for row in label_table():
        readings.setdefault(row["label"], Counter())[row["landmark"], row["side"], row["kind"]] += 1
    compared: Counter[str] = Counter()
    for name in list_marker_sets():
        model = human(markers=name)
        for marker in model.markers:
            read = readings.get(marker.name, Counter()).most_common()
            if not read or marker.name in ELSEWHERE or f"R{marker.name[1:]}" in ELSEWHERE:
                continue
            landmark, side, kind = read[0][0]
            if read[0][1] == sum(count for _, count in read) and kind not in ("cluster", "wand"):
                one = find_in_atlas(landmark, side, kind)
                assert one is not None and one.body == marker.body, (name, marker.name)
                offset = np.array(one.position(model)) - marker.position
                assert (np.abs(offset) <= (1e-9 if landmark in EXACT else MAX_SD * np.array(one.sd))).all(), marker.name
                compared[landmark] += 1
    assert len(compared) > 40 and all(compared[name] for name in EXACT)
