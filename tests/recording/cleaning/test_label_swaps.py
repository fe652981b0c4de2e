"""Swapped labels: in time and over a complete trial, detected and repaired."""

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.recording.cleaning.label_swaps import find_sides, find_swaps, repair_label_swaps, swap_markers, swap_sides

from ..walker import real, recording, with_markers

REAL = (
    "hdm/data.c3d", "cmu/c3d/02_05.c3d", "cmu/c3d/85_02.c3d", "cmu/c3d/06_01_misnamed_dribble_shoot.c3d",
    "c3d/qualisys_walk/Qualisys.c3d", "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d", "c3d/sprint_8plates/JA1Gait35.c3d",
    "c3d/pycgm_movement/Movement_trial.c3d", "c3d/motionanalysis_walk_jump/Sample_Jump2.c3d",
    "c3d/vicon_overground_4plates/test_small.c3d", "c3d/opensim_walking2/walking2.c3d",
)  # fmt: skip


@pytest.mark.parametrize("pair", [("LASI", "RASI"), ("LKNE", "RKNE"), ("LHEE", "LTOE"), ("CLAV", "STRN")])
def test_swapped_labels_are_found_to_the_frame_and_repaired(pair):
    walk = recording(noise=0.0005)
    (swap,) = find_swaps(swap_markers(walk, *pair, 73, 111))
    assert {swap.first, swap.second} == set(pair)
    assert (swap.start, swap.stop) == (73, 111)
    repaired = repair_label_swaps(swap_markers(walk, *pair, 73, 111))
    assert np.array_equal(repaired.data["marker_position"].values, walk.data["marker_position"].values)
    assert repaired.notes[-1].kind == "changed"


def test_a_pair_that_swaps_once_keeps_its_labels_in_the_longer_part():
    walk = recording()
    (swap,) = find_swaps(swap_markers(walk, "LASI", "RASI", 220))
    assert (swap.start, swap.stop) == (220, walk.frames)
    (swap,) = find_swaps(swap_markers(walk, "LASI", "RASI", 0, 40))
    assert (swap.start, swap.stop) == (0, 40)


def test_labels_that_swap_every_few_frames_are_repaired():
    """A camera system that confuses two markers of a foot in a third of the frames, as in a public run at 150 Hz."""
    walk = swapped = recording(noise=0.0005)
    for frame in range(30, 150, 3):
        swapped = swap_markers(swapped, "LHEE", "LTOE", frame, frame + 1)
    assert len(find_swaps(swapped)) == 40
    repaired = repair_label_swaps(swapped)
    assert np.array_equal(repaired.data["marker_position"].values, walk.data["marker_position"].values)
    assert repaired.notes[-1].text.startswith("LHEE and LTOE are swapped back in 40 of the frames 30 to 147: ")


def test_a_swap_after_a_short_gap_is_found():
    walk = swap_markers(recording(), "LKNE", "RKNE", 120, 200)
    points = walk.data["marker_position"].values.copy()
    points[115:120, walk.markers.index("LKNE")] = np.nan
    (swap,) = find_swaps(with_markers(walk, points))
    assert (swap.start, swap.stop) == (120, 200)


def test_a_correct_walk_has_no_swaps_and_consistent_sides():
    walk = recording(noise=0.001)
    assert find_swaps(walk) == ()
    sides = find_sides(walk)
    assert sides.reversed == ()
    assert len(sides.consistent) >= 6
    assert repair_label_swaps(walk) is walk


def test_swapped_sides_are_found_and_swapping_twice_changes_nothing():
    walk = recording()
    other = swap_sides(walk)
    assert find_sides(other).all_reversed
    assert other.markers != walk.markers
    assert swap_sides(other).markers == walk.markers


def test_a_mirrored_body_has_reversed_sides():
    walk = recording()
    assert find_sides(with_markers(walk, walk.data["marker_position"].values * (1, -1, 1))).all_reversed


def test_one_reversed_pair_is_distinguished_from_all():
    sides = find_sides(swap_markers(recording(), "LKNE", "RKNE"))
    assert sides.reversed == (("LKNE", "RKNE"),)
    assert not sides.all_reversed


def test_sides_are_consistent_while_the_subject_rotates():
    walk = recording()
    angle = np.linspace(0.0, 2 * np.pi, walk.frames)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]).transpose(2, 0, 1)
    points = walk.data["marker_position"].values.copy()
    points[..., :2] = np.einsum("fab,fpb->fpa", rotation, points[..., :2])
    assert find_sides(with_markers(walk, points)).reversed == ()


def test_names_that_are_not_there_are_refused_with_those_that_are():
    with pytest.raises(SettingsError, match="Unknown marker 'LKNEE'"):
        swap_markers(recording(), "LKNEE", "RKNE")
    with pytest.raises(SettingsError, match="no sides to swap"):
        swap_sides(recording().select_markers(["C7", "LKNE"]))


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_real_recordings_have_consistent_sides_unless_swapped(name):
    from borelli.recording.formats.c3d.reader import read_c3d

    good = read_c3d(real(name))
    assert find_swaps(good) == ()
    assert find_sides(good).reversed == ()
    assert find_sides(swap_sides(good)).all_reversed
