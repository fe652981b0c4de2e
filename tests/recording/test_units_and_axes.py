"""Units and axes: stated ones are used, others are inferred, and every decision is noted."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borelli.errors import SettingsError
from borelli.recording.landmarks import Landmark, identify_landmarks, left_right_pairs
from borelli.recording.units_and_axes import UNITS, UP_CONFLICT, Conversion, infer_conversion, parse_axis, parse_unit
from borelli.recording.up_axis import UpEvidence, contradicts, decide_up, up_evidence

from .walker import walk

AXES = ("+X", "-X", "+Y", "-Y", "+Z", "-Z")
POINTS, NAMES, _ = walk()


def as_file(units, up, forward=""):
    """The walk's numbers as a file with these units and axes would have them."""
    return Conversion.from_axes(units, up, forward).invert(POINTS)


@pytest.mark.parametrize("up", AXES)
def test_every_up_axis_is_rotated_to_z(up):
    found = Conversion.from_axes("mm", up)
    assert np.allclose(found.rotation @ found.rotation.T, np.eye(3))
    assert np.isclose(np.linalg.det(found.rotation), 1.0)
    axis = np.zeros(3)
    axis["XYZ".index(up[1])] = 1.0 if up[0] == "+" else -1.0
    assert np.allclose(found.rotate(axis), [0, 0, 1])


def test_opensim_axes_keep_forward_and_put_right_to_minus_y():
    found = Conversion.from_axes("m", "+Y")
    assert np.allclose(found.rotate(np.eye(3)), [[1, 0, 0], [0, 0, 1], [0, -1, 0]])


@given(
    st.sampled_from([(up, ahead) for up, ahead in itertools.product(AXES, AXES) if up[1] != ahead[1]]),
    st.sampled_from(sorted(UNITS)),
    st.lists(st.floats(-1e4, 1e4), min_size=3, max_size=3),
)
def test_invert_is_the_inverse_of_apply(axes, units, point):
    found = Conversion.from_axes(units, *axes)
    assert np.allclose(found.invert(found.apply(np.array(point))), point, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(("units", "up"), [*itertools.product(["m", "mm", "cm", "in"], AXES)])
def test_unstated_units_and_axes_are_inferred(units, up):
    found, notes = infer_conversion(None, None, as_file(units, up), NAMES)
    assert (found.units, found.up) == (units, up)
    assert np.allclose(found.apply(as_file(units, up)), POINTS)
    inferred = [note for note in notes if note.kind == "inferred"]
    assert any(note.code == "length_unit" and "stature" in note.text for note in inferred)
    assert any(note.code == "up_axis" and up in note.text for note in inferred)
    assert [note.action[:4] for note in inferred][:2] == ["--un", "--up"]


def test_statements_of_the_file_are_used_if_the_data_agree():
    found, notes = infer_conversion("mm", "+Y", as_file("mm", "+Y"), NAMES)
    assert (found.units, found.up, found.scale) == ("mm", "+Y", 1e-3)
    assert not [note for note in notes if note.kind == "problem"]


def test_millimeters_stated_as_meters_are_a_problem_with_an_action():
    found, notes = infer_conversion("m", "+Z", as_file("mm", "+Z"), NAMES)
    assert found.units == "m"
    (problem,) = [note for note in notes if note.kind == "problem"]
    assert problem.action == "--units mm"


def test_a_wrong_statement_of_the_file_is_outvoted_and_reported():
    """Heads above feet and a floor weigh more than the file."""
    found, notes = infer_conversion("mm", "+Z", as_file("mm", "+Y"), NAMES)
    assert found.up == "+Y"
    (problem,) = [note for note in notes if note.kind == "problem"]
    assert problem.code == "up_axis" and "although the file states +Z" in problem.text and problem.action == "--up +Z"


def test_a_tie_of_names_and_file_names_both_axes():
    """A file states +Z; a body that lies along y, without a floor, shows +Y."""
    lying = as_file("mm", "+Y") + np.array([0.0, 500.0, 900.0])
    _, notes = infer_conversion("mm", "+Z", lying, NAMES)
    (problem,) = [note for note in notes if note.code == UP_CONFLICT]
    assert "+Z" in problem.text and "+Y" in problem.text
    assert problem.action in ("--up +Y or --up +Z", "--up +Z or --up +Y")


@pytest.mark.parametrize(
    ("kinds", "axis", "certain"),
    [
        ({"force": "+Z", "plates": "+Z", "labels": "+X", "file": "+Z"}, "+Z", True),  # lies on the plates
        ({"force": "+Z", "plates": "+Z", "labels": "+Z", "file": "+Y"}, "+Z", True),
        ({"labels": "+Z", "file": "+Y", "floor": "+Z"}, "+Z", True),
        ({"labels": "+Z", "file": "+Y"}, "+Z", False),  # a tie
        ({"labels": "+Z", "file": "+Y", "floor": "+Y"}, "+Y", False),  # two against the stronger one
        ({"force": "+Z", "plates": "+Z", "labels": "+Y", "file": "+Y"}, "+Z", False),  # plates in other axes
        ({"file": "+Y"}, "+Y", True),
    ],
)
def test_evidence_is_weighed_together(kinds, axis, certain):
    decision = decide_up([UpEvidence(kind, value, kind) for kind, value in kinds.items()])
    assert (decision.axis, decision.certain) == (axis, certain)


def test_a_vertical_axis_of_the_user_is_refused_if_the_evidence_is_strong():
    def against(**kinds):
        return contradicts([UpEvidence(kind, value, kind) for kind, value in kinds.items()], "+Y")

    assert against(labels="+Z", file="+Z") and against(labels="+Z", floor="+Z") and against(force="+Z")
    assert against(labels="+Z") is None and against(labels="+Z", force="+Y") is None and against(file="+Y") is None
    _, notes = infer_conversion("mm", "+Z", as_file("mm", "+Z"), NAMES, up="+Y")
    (problem,) = [note for note in notes if note.code == UP_CONFLICT]
    assert problem.kind == "problem" and problem.action == "--up +Z"


def test_a_reversed_screen_axis_does_not_invert_the_subject():
    found, notes = infer_conversion("mm", "-Z", as_file("mm", "+Z"), NAMES)
    assert found.up == "+Z"
    assert any("although the file states -Z" in note.text for note in notes)


def test_user_statements_override_everything():
    found, _ = infer_conversion("mm", "+Z", as_file("mm", "+Z"), NAMES, units="cm", up="-y", forward="z")
    assert (found.units, found.up, found.forward) == ("cm", "-Y", "+Z")
    with pytest.raises(SettingsError, match="Unknown unit 'furlong'"):
        infer_conversion("mm", "+Z", POINTS, NAMES, units="furlong")
    with pytest.raises(SettingsError, match="forward: -Y is parallel"):
        infer_conversion("mm", "+Z", POINTS, NAMES, up="+Y", forward="-Y")


def test_a_number_of_meters_is_a_unit():
    assert np.isclose(Conversion.from_axes("0.0564", "+Y").scale, 0.0564)


@pytest.mark.parametrize("ahead", ["+X", "-X", "+Y", "-Y"])
def test_the_walking_direction_is_noted_and_rotated_only_on_request(ahead):
    file = as_file("mm", "+Z", ahead)
    found, notes = infer_conversion("mm", "+Z", file, NAMES)
    assert found.forward == "+X"
    assert any(note.code == "forward_axis" and f"{ahead} of the file" in note.text for note in notes)
    assert found.subject_forward == ahead
    rotated, _ = infer_conversion("mm", "+Z", file, NAMES, forward="auto")
    assert np.allclose(rotated.apply(file), POINTS)


def test_plates_forces_and_floor_show_the_vertical_without_labels():
    unnamed = [f"*{k}" for k in range(len(NAMES))]
    plate = np.array([[[1, 0, 0], [0, 0, 0], [0, 0, 1], [1, 0, 1]]]) * 1.0
    force = np.array([[20.0, -700.0, 60.0], [0.0, 3.0, 0.0]])  # on the plate
    found = {one.kind: one.axis for one in up_evidence(as_file("m", "+Y"), unnamed, corners=plate, force=force)}
    assert found == {"force": "+Y", "plates": "+Y", "floor": "+Y"}
    assert decide_up(up_evidence(as_file("m", "+Z"), unnamed)).axis == "+Z"
    assert up_evidence(np.zeros((0, 0, 3)), ()) == []


def test_a_plate_on_a_wall_does_not_hide_the_others():
    floor = np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0], [1, 1, 0]]) * 1.0
    plates = np.stack([floor, floor, floor[:, [2, 1, 0]], np.zeros((4, 3))])  # and one without an area
    (found,) = [one for one in up_evidence(POINTS, ["*"] * len(NAMES), corners=plates) if one.kind == "plates"]
    assert found.axis == "+Z"


@pytest.mark.parametrize(("stature", "unit"), [(67.0, "in"), (100.0, "cm"), (90.0, "cm"), (1.0, "m"), (1100.0, "mm")])
def test_children_in_centimeters_are_not_adults_in_inches(stature, unit):
    found, _ = infer_conversion(None, None, POINTS * stature / 1.68, NAMES)
    assert found.units == unit


@pytest.mark.parametrize(
    ("positions", "labels"),
    [(None, ()), (np.empty((0, 26, 3)), NAMES), (np.empty((5, 0, 3)), NAMES), (np.empty((0, 0, 3)), ())],
)
def test_missing_evidence_is_noted(positions, labels):
    _, notes = infer_conversion(None, None, positions, labels)
    assert all("without evidence" in note.text for note in notes)
    assert len(notes) == 2


@pytest.mark.parametrize(
    ("word", "unit"),
    [("mm\0\0", "mm"), ("mete", "m"), ("Meters", "m"), ("millimeters", "mm"), ("Inches", "in"), ("V", None)],
)
def test_units_are_read_as_files_spell_them(word, unit):
    assert parse_unit(word) == unit


def test_axes_are_read_in_any_case():
    assert parse_axis(" y") == "+Y"
    with pytest.raises(SettingsError, match="Unknown axis 'up'"):
        parse_axis("up")


@pytest.mark.parametrize(
    ("label", "part", "side"),
    [
        ("RKNE", "knee", "right"), ("Bob:r_knee", "knee", "right"), ("L.Heel", "heel", "left"),
        ("L_FCC", "heel", "left"), ("Q_RShoulderTop", "shoulder", "right"),
        ("LTOE", "toe", "left"), ("Rear.Head", "head", ""), ("Top.Head", "head", ""), ("C7", "neck", ""),
        ("WaistLFront", "pelvis", "left"), ("RightToeBase", "toe", "right"), ("V_R.Knee_JC", "knee", "right"),
        ("LLMAL", "ankle", "left"), ("r_5meta", "toe", "right"), ("LMA", "ankle", "left"),
    ],
)  # fmt: skip
def test_labels_of_many_laboratories_are_understood(label, part, side):
    assert identify_landmarks([label]) == [Landmark(part, side)]


@pytest.mark.parametrize("label", ["*12", "PELO", "RKneeAngles", "RTRXO", "CentreOfMass", ""])
def test_labels_that_are_not_landmarks_are_not_identified(label):
    assert identify_landmarks([label]) == [None]


def test_left_right_pairs_match_the_rest_of_the_name():
    assert left_right_pairs(["LKNE", "C7", "RKNE", "R.Heel", "L.Toe", "L.Heel", "RKNE2"]) == [(0, 2), (5, 3)]


def test_only_the_letter_of_a_stated_axis_counts():
    low = POINTS * (1.0, 1.0, -1.0)
    corners = np.array([[[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]])
    found, notes = infer_conversion("m", "+Z", low, [f"*{i}" for i in range(low.shape[1])], plate_corners=corners)
    assert found.up == "-Z"
    assert any("although the file states +Z" in note.text for note in notes)
