"""Readers of pagoda's and QtVR's text: content of real files, their problems reported, and mistakes named."""

from math import radians

import numpy as np
import pytest

from borelli.errors import BorelliError, FileFormatError
from borelli.model import Frame, extent, model_from_text, model_to_text, read_pagoda, read_qtvr
from borelli.model.transforms import compose

LABELS = [
    "LBWT", "RBWT", "LFWT", "RFWT", "LFRM", "RWRA", "RFRM", "LWRB", "RELB", "LWRA", "RTHI", "LELB", "T10", "STRN",
    "LFIN", "RFIN", "RWRB", "LUPA", "LTHI", "RUPA", "RBAC", "RKNE", "LSHO", "C7", "LKNE", "RSHN", "RBHD", "LBHD",
    "LFHD", "LSHN", "RFHD", "RANK", "RMT5", "RTOE", "RSHO", "LANK", "LHEE", "CLAV", "RHEE", "LTOE", "LMT5",
]  # fmt: skip


ARM = """\
# an arm
chest box 0.4 0.2 0.6 position 0 0 1   # root
arm cap 0.3 0.05* density 1100
ball chest(1 0 1) <- arm(0 0 1) stops -150~70 -70~60 -30~80
fore cap 0.05* 0.2
hinge fore(0 0 1) -> arm(0 0 -1) stops -1~150 axes <0 1 0>
"""


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.txt"
    path.write_text(ARM)
    return path


def meets(model) -> None:
    """The anchors of every joint coincide in the reference pose."""
    for joint in model.joints:
        ends = (
            compose(model.body(joint.parent).frame, joint.parent_frame),
            compose(model.body(joint.child).frame, joint.child_frame),
        )
        assert ends[0].position == pytest.approx(ends[1].position, abs=1e-12)
        assert ends[0].orientation == pytest.approx(ends[1].orientation, abs=1e-12)


def test_pagoda_geometry(arm) -> None:
    model = read_pagoda(arm)
    meets(model)
    chest, upper = model.body("chest"), model.body("arm")
    assert chest.shapes[0].size == pytest.approx((0.1, 0.2, 0.3))  # x right 0.4, y forward 0.2 become y, x
    assert chest.mass == pytest.approx(0.4 * 0.2 * 0.6 * 1000)
    assert upper.shapes[0].size == pytest.approx((0.05, 0.15))
    assert upper.mass == pytest.approx(1100 * np.pi * (0.05**2 * 0.3 + 4 / 3 * 0.05**3))
    assert model.body("fore").shapes[0].size == pytest.approx((0.05, 0.1))  # the star marks the radius, wherever it is
    # the right end of the chest's top is at -y; the arm hangs from it by the end of its cap
    assert upper.frame.position == pytest.approx((0.0, -0.2, 1.3 - 0.2))
    assert model.body("fore").frame.position == pytest.approx((0.0, -0.2, 1.1 - 0.2 - 0.15))


def test_pagoda_limits_are_of_the_child_relative_to_the_parent(arm) -> None:
    model = read_pagoda(arm)
    shoulder, elbow = model.joint("arm"), model.joint("fore")
    assert [c.name for c in shoulder.coordinates] == ["arm_x", "arm_y", "arm_z"]
    assert shoulder.axes == ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    assert (shoulder.coordinates[0].lower, shoulder.coordinates[0].upper) == pytest.approx((radians(-70), radians(150)))
    # `->` makes the second body the parent: the file's angle is then the child's already
    assert (elbow.parent, elbow.child, elbow.axes) == ("arm", "fore", ((1.0, 0.0, 0.0),))
    assert (elbow.coordinates[0].lower, elbow.coordinates[0].upper) == pytest.approx((radians(-1), radians(150)))


def test_pagoda_markers(arm, tmp_path) -> None:
    (tmp_path / "m.txt").write_text("Man:RSHO chest 1 0.5 1\nELB arm 0 0 -1\n")
    model = read_pagoda(arm, tmp_path / "m.txt")
    assert model.marker("Man:RSHO").position == pytest.approx((0.05, -0.2, 0.3))
    assert model.marker("Man:RSHO").aliases == ("RSHO",)
    assert model.marker("ELB").position == pytest.approx((0.0, 0.0, -0.2))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("chest box", "chest ball", "line 2: Unknown shape 'ball'; known: box, cap"),
        ("0.4 0.2 0.6", "0.4 0.2", "line 2: Expected 3 numbers .found '0.4 0.2 position'"),
        ("0.05* density", "0.05 density", "line 3: A cap has a length and a radius"),
        ("density 1100", "density -1", "line 3: Body 'arm': Sizes and density must be positive"),
        ("density 1100", "weight 3", "line 3: Unknown word 'weight'; known: density, position"),
        ("density 1100", "density nan", "line 3: Expected 1 numbers .found 'nan'"),
        ("ball chest", "bal chest", "line 4: Unknown joint 'bal'.*did you mean 'ball'"),
        ("<- arm", "<- amr", "line 4: Unknown body 'amr'.*did you mean 'arm'"),
        ("<- arm(0 0 1)", "<- arm(0 0)", "line 4: Expected 3 numbers .found '0 0'"),
        ("-30~80", "", "line 4: Expected 3 axes and stops .found 3 and 2"),
        ("-30~80", "80~-30", "line 4: Joint limits 80~-30 are reversed"),
        ("<- arm(0 0 1)", "== arm(0 0 1)", "line 4: Expected `kind"),
        ("fore cap", "arm cap", "line 5: Body 'arm' is defined twice"),
    ],
)
def test_pagoda_mistakes_are_named(arm, old: str, new: str, words: str) -> None:
    arm.write_text(ARM.replace(old, new, 1))
    with pytest.raises(FileFormatError, match=words):
        read_pagoda(arm)


def test_pagoda_file_without_bodies(tmp_path) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n")
    with pytest.raises(FileFormatError, match="The file has no bodies"):
        read_pagoda(tmp_path / "empty.txt")


@pytest.mark.data
def test_pagoda_real_file(hdm) -> None:
    model = read_pagoda(hdm / "cooper-skeleton.txt", hdm / "cooper-markers.txt")
    meets(model)
    assert len(model.bodies) == 21
    assert len(model.joints) == 20
    assert len(model.coordinates) == 42
    assert model.mass == pytest.approx(69.1, abs=0.05)
    assert {marker.aliases[0] for marker in model.markers} == set(LABELS)
    assert any("Axes are rotated" in note for note in model.notes)
    assert model_from_text(model_to_text(model)) == model
    for name in ("ru-arm", "rl-leg", "r-toes"):
        right, left = model.body(name), model.body(name.replace("r", "l", 1))
        assert np.array(left.frame.position) == pytest.approx([1, -1, 1] * np.array(right.frame.position))
    # knees bend back, elbows forward: rotating the shank or forearm about the axis to the right
    knee, elbow = (model.joint(name).coordinates[0] for name in ("rl-leg", "rl-arm"))
    assert knee.lower < -2.0 < 0.1 > knee.upper
    assert elbow.upper > 2.0 > 0.1 > -elbow.lower


@pytest.mark.data
def test_qtvr_real_tables(hdm) -> None:
    model = read_qtvr(hdm, labels=LABELS)
    meets(model)
    assert len(model.bodies) == 21
    assert len(model.joints) == 20
    assert len(model.coordinates) == 48
    assert model.mass == pytest.approx(87.6, abs=0.05)
    assert len(model.markers) == 41
    assert model_from_text(model_to_text(model)) == model


@pytest.mark.data
def test_qtvr_stands_upright(hdm) -> None:
    model = read_qtvr(hdm, labels=LABELS)
    position = {body.name: np.array(body.frame.position) for body in model.bodies}
    for name in position:
        if name.endswith("_r"):
            assert position[name[:-2] + "_l"] == pytest.approx([1, -1, 1] * position[name], abs=0.03), name
            assert position[name][1] < -0.05
    heights = [
        position[name][2] for name in ("head", "neck", "upper_torso", "lower_torso", "pelvis", "thigh_r", "shank_r")
    ]
    assert heights == sorted(heights, reverse=True)
    assert position["toes_r"][0] > position["foot_r"][0] + 0.05
    assert 0.0 < position["foot_r"][2] < 0.1
    waist = {
        m.name: compose(model.body(m.body).frame, Frame(m.position)).position
        for m in model.markers
        if m.name.endswith("WT")
    }
    assert waist["LFWT"][1] > 0.0 > waist["RFWT"][1]
    assert waist["LFWT"][0] > 0.0 > waist["LBWT"][0] + 0.05
    assert extent(model.body("upper_torso"))[1] == pytest.approx((0.135, 0.135, 0.16))


@pytest.mark.data
def test_qtvr_problems_are_noted(hdm) -> None:
    notes = read_qtvr(hdm, labels=[f"TakeoMonday:{label}" for label in LABELS]).notes
    assert any("anchorMap.txt, line 26" in note and "Joint 17" in note and "joint 16" in note for note in notes)
    assert any("LFRM is on hand_l, but RFRM on forearm_r" in note for note in notes)
    assert any("LKNE is on shank_l, but RKNE on thigh_r" in note for note in notes)
    assert sum("sides differ" in note for note in notes) == 2
    counted = read_qtvr(hdm).notes
    assert any("markMap.txt: 4 points on hand_l, but 3 on hand_r" in note for note in counted)


@pytest.mark.data
def test_qtvr_other_tables_by_name(hdm) -> None:
    names = ("default_dim_map.txt", "default_anchor_map.txt", "default_mark_map.txt", "default_pos_map.txt")
    model = read_qtvr([hdm / name for name in names])
    segments = (hdm / names[2]).read_text().split()
    assert len(segments) == 50
    assert len(model.markers) == 50 - segments.count("-1") == 35  # the others are not attached
    assert model.mass == pytest.approx(87.6, abs=0.05)


@pytest.mark.data
@pytest.mark.parametrize(
    ("table", "old", "new", "words"),
    [
        ("dimMap.txt", "0 0.26 0.26 0.26 1 0 0 0\n", "", "The table has 20 segments. Expected 21"),
        (
            "dimMap.txt",
            "2 0.27 0.27 0.32",
            "2 0.27 0.27 0.1",
            "line 3: The capsule upper_torso is shorter than it is wide",
        ),
        ("dimMap.txt", "0 0.26", "5 0.26", "line 1: shape is 5. It must be from 0 to 2"),
        ("dimMap.txt", "0 0.26", "0 nan", "line 1: Expected 8 numbers"),
        ("anchorMap.txt", "0 0 0 -0.25 -0.65\n", "", r"Joint 0 \(chin\) has no anchor on segment 0 \(head\)"),
        ("anchorMap.txt", "1 1 0", "1 21 0", "line 3: joint is 21. It must be from 0 to 19"),
        ("anchorMap.txt", "1 1 0", "1 0 0", "line 3: Joint 0 has a second anchor on segment 1"),
        ("markMap.txt", "12\n", "21\n", "line 1: segment is 21. It must be from -1 to 20"),
        ("posMap.txt", "0.022 -0.0833 0.056\n", "", "40 positions, but markMap.txt has 41 points"),
    ],
)
def test_qtvr_mistakes_are_named(hdm, tmp_path, table: str, old: str, new: str, words: str) -> None:
    for name in ("dimMap.txt", "anchorMap.txt", "markMap.txt", "posMap.txt"):
        text = (hdm / name).read_text().replace("\r\n", "\n")
        assert name != table or old in text
        (tmp_path / name).write_text(text.replace(old, new, 1) if name == table else text)
    with pytest.raises(BorelliError, match=words):
        read_qtvr(tmp_path)


def test_qtvr_tables_missing(tmp_path) -> None:
    with pytest.raises(FileFormatError, match=r"dimMap\.txt: The file does not exist"):
        read_qtvr(tmp_path)
    with pytest.raises(FileFormatError, match="Expected four tables"):
        read_qtvr([tmp_path / "dimMap.txt"])
