"""Unit of length: stature, plates and Newton's law together; a unit that they contradict is refused with both named."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.recording.formats.c3d.writer import write_c3d
from borelli.recording.io import read_recording
from borelli.recording.length_unit import UNITS, BodyMotion, decide_unit
from borelli.recording.quality_checks import check_recording
from borelli.recording.units_and_axes import UNIT_CONFLICT, infer_conversion
from borelli.synthetic.recordings import synthetic_recording

from ..shared_data import SHARED_DATA, shared
from .walker import walk

POINTS, NAMES, _ = walk()
NUMBERS = [f"{i:04d}" for i in range(len(NAMES))]
UP = np.array([0.0, 0.0, 1.0])
LENGTHS = ("mm", "cm", "m", "in")
ON_PLATES = ("marker_position", "plate_corners", "plate_center_of_pressure", "plate_free_moment")


def plate(width, length):
    """Return the corners of one plate [m], shape (1, 4, 3)."""
    return np.array([[[0.0, 0, 0], [width, 0, 0], [width, length, 0], [0, length, 0]]])


def jumping(unit):
    """Return a body of 70 kg that moves up and down by 0.1 m on a plate, in a unit."""
    time = np.arange(0.0, 4.0, 0.01)
    height = 1.0 + 0.1 * np.sin(2.0 * np.pi * 1.5 * time)
    acceleration = -((2.0 * np.pi * 1.5) ** 2) * (height - 1.0)
    force = np.zeros((len(time), 3))
    force[:, 2] = 70.0 * (9.81 + acceleration)
    position = np.zeros((len(time), 2, 3))
    position[..., 2] = height[:, None]
    return BodyMotion(position / UNITS[unit], force, 100.0)


@pytest.mark.parametrize("unit", LENGTHS)
@pytest.mark.parametrize("labels", [NAMES, NUMBERS])
def test_plates_and_bodies_show_the_unit_with_and_without_names(unit, labels):
    size = UNITS[unit]
    decision = decide_unit(POINTS / size, labels, corners=plate(0.4, 0.6) / size)
    assert (decision.unit, decision.certain) == (unit, True)
    for stated in set(LENGTHS) - {unit}:
        decision = decide_unit(POINTS / size, labels, stated=stated, corners=plate(0.4, 0.6) / size)
        assert decision.unit == unit or not decision.certain


@pytest.mark.parametrize("unit", ["cm", "in"])
def test_forces_tell_centimeters_from_inches(unit):
    """Plates of 25 units are small ones in centimeters or usual ones in inches."""
    nothing, corners = np.empty((0, 0, 3)), plate(25.0, 25.0)
    without = decide_unit(nothing, (), corners=corners)
    assert {without.unit, without.other} == {"cm", "in"} and not without.certain
    decision = decide_unit(nothing, (), corners=corners, motion=lambda: jumping(unit), up=UP)
    assert (decision.unit, decision.certain) == (unit, True)
    assert decision.evidence[-1].size * UNITS[unit] == pytest.approx(1.0, rel=0.01)  # one body obeys Newton's law
    assert "the acceleration of the pelvis over that of the forces is" in decision.reason(unit)
    still = jumping(unit)._replace(force=np.zeros((400, 3)))
    assert decide_unit(nothing, (), corners=corners, motion=lambda: still, up=UP) == without


def test_forces_are_not_evaluated_where_lengths_suffice():
    def fail():
        raise AssertionError

    assert decide_unit(POINTS * 1e3, NAMES, corners=plate(400.0, 600.0), motion=fail, up=UP).unit == "mm"


def test_inches_stated_as_centimeters_are_refused_with_both_named():
    _, notes = infer_conversion("cm", "+Z", POINTS / 0.0254, NAMES, plate_corners=plate(0.4, 0.6) / 0.0254)
    (conflict,) = [note for note in notes if note.code == UNIT_CONFLICT]
    assert conflict.kind == "problem" and conflict.action == "--units in"
    assert "the file states lengths in cm" in conflict.text.lower() and "with in, the stature" in conflict.text
    assert "the median edge of the force plates is 0.197 m" in conflict.text
    assert "the median edge of the force plates is 0.5 m" in conflict.text


def test_an_uncertain_unit_names_both():
    _, notes = infer_conversion(None, "+Z", None, (), plate_corners=plate(25.0, 25.0))
    (conflict,) = [note for note in notes if note.code == UNIT_CONFLICT]
    assert conflict.text.startswith("The length unit is uncertain: ") and conflict.text.endswith(" is used.")
    assert conflict.action in ("--units cm or --units in", "--units in or --units cm")


def test_markers_and_plates_in_different_units_are_refused():
    _, notes = infer_conversion("m", "+Z", POINTS, NAMES, plate_corners=plate(400.0, 600.0))
    (conflict,) = [note for note in notes if note.code == UNIT_CONFLICT]
    assert conflict.text == "The file states lengths in m, but then the median edge of the force plates is 500 m."


@pytest.mark.parametrize("size", [0.06, 0.2, 1.0])
def test_recordings_of_a_hand_or_of_a_room_keep_their_stated_unit(size):
    """Spread of markers [m], in millimeters."""
    points = 1e3 * size * np.random.default_rng(0).normal(size=(50, 20, 3))
    found, notes = infer_conversion("mm", "+Z", points, [f"*{i}" for i in range(20)])
    assert found.units == "mm" and not [note for note in notes if note.code == UNIT_CONFLICT]


def written(recording, path, true, stated):
    """Write a recording in a unit, with another or no unit stated."""
    factor = UNITS[stated or true] / UNITS[true]
    data = recording.data.assign({name: factor * recording.data[name] for name in ON_PLATES})
    for name in data.data_vars:
        data[name].attrs = recording.data[name].attrs
    data.attrs = recording.data.attrs | {"file_units": stated or true, "file_up": "+Z", "file_forward": "+X"}
    write_c3d(replace(recording, data=data), path, overwrite=True)
    if not stated:
        path.write_bytes(path.read_bytes().replace(b"UNITS", b"Q" * 5, 1))


def outcomes(recording, path):
    """Return what becomes of the recording in each unit with each statement."""
    data = recording.data.drop_dims(["channel", "quantity", "event"], errors="ignore")
    plain = replace(recording, data=data, metadata={}, path=None, notes=())
    found = {}
    for true in LENGTHS:
        for stated in ("", *LENGTHS):
            written(plain, path, true, stated)
            back = read_recording(path)
            issue = next((one for one in check_recording(back) if one.code == "length_unit"), None)
            if issue is None:
                found[true, stated] = "right" if back.data.attrs["file_units"] == true else "silently wrong"
            else:
                named = issue.severity == "error" and f"--units {true}" in issue.action
                found[true, stated] = "refused" if named and stated != true else "false alarm"
    return found


def check_outcomes(recording, path):
    found = outcomes(recording, path)
    assert set(found.values()) <= {"right", "refused"}, found
    assert all(found[unit, unit] == "right" for unit in LENGTHS)
    return found


def test_a_walk_on_plates_is_read_in_its_unit_or_refused(tmp_path):
    whole = synthetic_recording("walk", gaps=0.0).recording
    found = check_outcomes(whole, tmp_path / "walk.c3d")
    assert all(found[unit, ""] == "right" for unit in LENGTHS)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("names", ["names", "numbers"])
def test_real_trials_with_plates_are_read_in_their_unit_or_refused(names, tmp_path):
    paths = [path for path in sorted(shared("c3d").glob("**/*.[cC]3[dD]")) if path.parent.name != "sample02"]
    paths.append(SHARED_DATA / "c3d/format_variants/sample02/pc_real.c3d")
    count = 0
    for path in paths:
        recording = read_recording(path)
        if not recording.plates:
            continue
        if names == "numbers":
            numbers = [f"{i:04d}" for i in range(len(recording.markers))]
            recording = recording.with_data(recording.data.assign_coords(marker=numbers))
        check_outcomes(recording, tmp_path / "one.c3d")
        count += 1
    assert count >= 15


def test_a_mechanism_in_an_animation_file_has_no_unit_to_contradict(tmp_path):
    """Its joints are 8 m apart, in the unit that is assumed without evidence."""
    path = tmp_path / "chain.bvh"
    offset = "OFFSET 8 0 0 CHANNELS 3 Zrotation Yrotation Xrotation"
    path.write_text(
        f"HIERARCHY ROOT a {{ {offset} JOINT b {{ {offset} JOINT c {{ {offset} End Site {{ OFFSET 8 0 0 }} }} }} }}\n"
        f"MOTION\nFrames: 2\nFrame Time: 0.01\n{' '.join(['0'] * 9)}\n{' '.join(['1'] * 9)}\n"
    )
    assert not [note for note in read_recording(path).notes if note.code == UNIT_CONFLICT]
    assert not [note for note in read_recording(path, units="cm").notes if note.code == UNIT_CONFLICT]
    assert [note for note in read_recording(path, units="m").notes if note.code == UNIT_CONFLICT]
