"""Units and axes: what the file states wins, what it does not state is inferred, and every guess is said."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borelli.errors import SettingsError
from borelli.recording.landmarks import Landmark, identify_landmark, left_right_pairs
from borelli.recording.units_and_axes import UNITS, Conversion, parse_axis, infer_conversion, infer_up, parse_unit

from .walker import walk

AXES = ("+X", "-X", "+Y", "-Y", "+Z", "-Z")
POINTS, NAMES, _ = walk()


def as_file(units, up, forward=""):
    """The walk's numbers as a file with these units and axes would have them."""
    return Conversion.of(units, up, forward).undo(POINTS)


@pytest.mark.parametrize("up", AXES)
def test_every_up_axis_gives_a_rotation_that_turns_it_to_z(up):
    found = Conversion.of("mm", up)
    assert np.allclose(found.rotation @ found.rotation.T, np.eye(3))
    assert np.isclose(np.linalg.det(found.rotation), 1.0)
    axis = np.zeros(3)
    axis["XYZ".index(up[1])] = 1.0 if up[0] == "+" else -1.0
    assert np.allclose(found.turn(axis), [0, 0, 1])


def test_opensim_axes_keep_forward_and_put_right_to_minus_y():
    found = Conversion.of("m", "+Y")
    assert np.allclose(found.turn(np.eye(3)), [[1, 0, 0], [0, 0, 1], [0, -1, 0]])


@given(
    st.sampled_from([(up, ahead) for up, ahead in itertools.product(AXES, AXES) if up[1] != ahead[1]]),
    st.sampled_from(sorted(UNITS)),
    st.lists(st.floats(-1e4, 1e4), min_size=3, max_size=3),
)
def test_undo_undoes_apply(axes, units, point):
    found = Conversion.of(units, *axes)
    assert np.allclose(found.undo(found.apply(np.array(point))), point, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(("units", "up"), [*itertools.product(["m", "mm", "cm", "in"], AXES)])
def test_unstated_units_and_axes_are_found_and_said_to_be_guessed(units, up):
    found, notes = infer_conversion(None, None, as_file(units, up), NAMES)
    assert (found.units, found.up) == (units, up)
    assert np.allclose(found.apply(as_file(units, up)), POINTS)
    guesses = [note for note in notes if note.kind == "inferred"]
    assert any("stature" in note.text and note.action.startswith("--units") for note in guesses)
    assert any(f"{up} is up" in note.text and note.action.startswith("--up") for note in guesses)


def test_what_the_file_states_is_followed_without_complaint_when_the_data_agree():
    found, notes = infer_conversion("mm", "+Y", as_file("mm", "+Y"), NAMES)
    assert (found.units, found.up, found.scale) == ("mm", "+Y", 1e-3)
    assert not [note for note in notes if note.kind == "problem"]


def test_millimetres_called_metres_are_a_fault_that_names_the_remedy():
    found, notes = infer_conversion("m", "+Z", as_file("mm", "+Z"), NAMES)
    assert found.units == "m"
    (fault,) = [note for note in notes if note.kind == "problem"]
    assert fault.action == "--units mm"


def test_y_up_called_z_up_is_a_fault_that_names_the_remedy():
    found, notes = infer_conversion("mm", "+Z", as_file("mm", "+Y"), NAMES)
    assert found.up == "+Z"
    (fault,) = [note for note in notes if note.kind == "problem"]
    assert fault.action == "--up +Y"


def test_a_screen_axis_seen_from_behind_does_not_stand_the_subject_on_its_head():
    found, notes = infer_conversion("mm", "-Z", as_file("mm", "+Z"), NAMES)
    assert found.up == "+Z"
    assert any("although the file says -Z" in note.text for note in notes)


def test_the_users_word_wins():
    found, _ = infer_conversion("mm", "+Z", as_file("mm", "+Z"), NAMES, units="cm", up="-y", forward="z")
    assert (found.units, found.up, found.forward) == ("cm", "-Y", "+Z")
    with pytest.raises(SettingsError, match="unknown unit 'furlong'"):
        infer_conversion("mm", "+Z", POINTS, NAMES, units="furlong")
    with pytest.raises(SettingsError, match="forward is"):
        infer_conversion("mm", "+Z", POINTS, NAMES, up="+Y", forward="-Y")


def test_a_number_of_metres_is_a_unit():
    assert np.isclose(Conversion.of("0.0564", "+Y").scale, 0.0564)


@pytest.mark.parametrize("ahead", ["+X", "-X", "+Y", "-Y"])
def test_the_walking_direction_is_told_and_turned_only_when_asked(ahead):
    file = as_file("mm", "+Z", ahead)
    found, notes = infer_conversion("mm", "+Z", file, NAMES)
    assert found.forward == "+X"
    assert any(f"forward is {ahead}" in note.text for note in notes)
    turned, _ = infer_conversion("mm", "+Z", file, NAMES, forward="auto")
    assert np.allclose(turned.apply(file), POINTS)


def test_without_labels_plates_and_the_floor_show_what_is_up():
    nameless = [f"*{k}" for k in range(len(NAMES))]
    plate = np.array([[[1, 0, 0], [0, 0, 0], [0, 0, 1], [1, 0, 1]]]) * 1.0
    assert infer_up(as_file("m", "+Y"), nameless, plate).answer == "+Y"
    assert infer_up(as_file("m", "+Z"), nameless).answer == "+Z"
    assert infer_up(np.zeros((0, 0, 3)), ()).answer == ""


@pytest.mark.parametrize(
    ("positions", "labels"),
    [(None, ()), (np.empty((0, 26, 3)), NAMES), (np.empty((5, 0, 3)), NAMES), (np.empty((0, 0, 3)), ())],
)
def test_nothing_to_go_by_is_said(positions, labels):
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
    with pytest.raises(SettingsError, match="unknown axis 'up'"):
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
    assert identify_landmark(label) == Landmark(part, side)


@pytest.mark.parametrize("label", ["*12", "PELO", "RKneeAngles", "LTOP", "R.Offset", "CentreOfMass", ""])
def test_what_is_no_place_on_the_body_is_not_taken_for_one(label):
    assert identify_landmark(label) is None


def test_twins_are_paired_by_the_rest_of_the_name():
    assert left_right_pairs(["LKNE", "C7", "RKNE", "R.Heel", "L.Toe", "L.Heel", "RKNE2"]) == [(0, 2), (5, 3)]


def test_only_named_parts_of_a_body_overrule_the_sign_a_file_states():
    low = POINTS * (1.0, 1.0, -1.0)
    corners = np.array([[[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]])
    nameless = [f"*{i}" for i in range(low.shape[1])]
    found, notes = infer_conversion("m", "+Z", low, nameless, plate_corners=corners)
    assert found.up == "+Z"
    assert any(note.kind == "problem" and note.action == "--up -Z" for note in notes)
    found, notes = infer_conversion("m", "+Z", low, NAMES, plate_corners=corners)
    assert found.up == "-Z"
    assert any("although the file says +Z" in note.text for note in notes)
