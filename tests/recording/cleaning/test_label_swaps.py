"""Exchanged labels: in time and over the whole trial, found and put back."""

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
def test_two_markers_that_trade_places_are_found_to_the_frame_and_put_back(pair):
    walk = recording(noise=0.0005)
    (swap,) = find_swaps(swap_markers(walk, *pair, 73, 111))
    assert {swap.first, swap.second} == set(pair)
    assert (swap.start, swap.stop) == (73, 111)
    mended = repair_label_swaps(swap_markers(walk, *pair, 73, 111))
    assert np.array_equal(mended.data["marker_position"].values, walk.data["marker_position"].values)
    assert mended.notes[-1].kind == "changed"


def test_a_pair_that_trades_once_keeps_its_names_in_the_longer_part():
    walk = recording()
    (swap,) = find_swaps(swap_markers(walk, "LASI", "RASI", 220))
    assert (swap.start, swap.stop) == (220, walk.frames)
    (swap,) = find_swaps(swap_markers(walk, "LASI", "RASI", 0, 40))
    assert (swap.start, swap.stop) == (0, 40)


def test_a_trade_behind_a_short_gap_is_found():
    walk = swap_markers(recording(), "LKNE", "RKNE", 120, 200)
    points = walk.data["marker_position"].values.copy()
    points[115:120, walk.markers.index("LKNE")] = np.nan
    (swap,) = find_swaps(with_markers(walk, points))
    assert (swap.start, swap.stop) == (120, 200)


def test_a_good_walk_has_no_trades_and_its_sides_are_right():
    walk = recording(noise=0.001)
    assert find_swaps(walk) == ()
    sides = find_sides(walk)
    assert sides.wrong == ()
    assert len(sides.right) >= 6
    assert repair_label_swaps(walk) is walk


def test_exchanged_sides_are_found_and_exchanging_twice_changes_nothing():
    walk = recording()
    other = swap_sides(walk)
    assert find_sides(other).whole
    assert other.markers != walk.markers
    assert swap_sides(other).markers == walk.markers


def test_a_mirrored_body_shows_as_exchanged_sides():
    walk = recording()
    assert find_sides(with_markers(walk, walk.data["marker_position"].values * (1, -1, 1))).whole


def test_one_pair_exchanged_throughout_is_told_from_all():
    sides = find_sides(swap_markers(recording(), "LKNE", "RKNE"))
    assert sides.wrong == (("LKNE", "RKNE"),)
    assert not sides.whole


def test_a_walker_who_turns_round_keeps_his_sides():
    walk = recording()
    angle = np.linspace(0.0, 2 * np.pi, walk.frames)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]).transpose(2, 0, 1)
    points = walk.data["marker_position"].values.copy()
    points[..., :2] = np.einsum("fab,fpb->fpa", turn, points[..., :2])
    assert find_sides(with_markers(walk, points)).wrong == ()


def test_names_that_are_not_there_are_refused_with_those_that_are():
    with pytest.raises(SettingsError, match="unknown marker 'LKNEE'"):
        swap_markers(recording(), "LKNEE", "RKNE")
    with pytest.raises(SettingsError, match="no sides to exchange"):
        swap_sides(recording().select_markers(["C7", "LKNE"]))


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_real_recordings_have_their_sides_right_and_show_it_when_exchanged(name):
    from borelli.recording.formats.c3d.reader import read_c3d

    good = read_c3d(real(name))
    assert find_swaps(good) == ()
    assert find_sides(good).wrong == ()
    assert find_sides(swap_sides(good)).whole
