"""Quality checks: each issue put into a correct recording is found with its action; correct recordings have none."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.model.marker_sets import add_marker_set as wear
from borelli.people.human import human
from borelli.recording.clean import clean
from borelli.recording.cleaning.label_swaps import repair_label_swaps, swap_markers, swap_sides
from borelli.recording.forces.assign_to_feet import swap_plates
from borelli.recording.quality_checks import SEVERITIES, check_recording
from borelli.recording.recording import Note, Recording, make_dataset

from .walker import real, recording, with_markers

WRONG = {
    "length_unit",
    "up_axis",
    "left_right_labels",
    "label_swap",
    "plate_swap",
    "plate_assignment",
    "plate_sign",
    "zero_positions",
}
"""Codes of issues that a correct recording does not have."""
REAL = (
    "hdm/data.c3d", "cmu/c3d/02_05.c3d", "cmu/c3d/06_01_misnamed_dribble_shoot.c3d", "cmu/c3d/85_02.c3d",
    "c3d/format_variants/sample02/pc_real.c3d", "c3d/format_variants/sample02/DEC_INT.C3D",
    "c3d/format_variants/sample10_plate_type2_vs_4/TYPE-2.C3D", "c3d/format_variants/sample15_plate_type3/FP1.C3D",
    "c3d/motionanalysis_gait/Gait.c3d", "c3d/motionanalysis_walk_jump/Sample_Jump2.c3d",
    "c3d/motionanalysis_walk_jump/Walk1.c3d", "c3d/motionmonitor_metres/Gait_with_EMG.c3d",
    "c3d/motionmonitor_metres/Static_Pose.c3d", "c3d/opensim_walking2/walking2.c3d",
    "c3d/pycgm_movement/Movement_trial.c3d", "c3d/qualisys_walk/Qualisys.c3d",
    "c3d/vicon_overground_4plates/test_small.c3d", "c3d/vicon_pig/PiG_Calibration-FlatFoot-Full.c3d",
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d", "opensim/opencap_subject4/DJ1.trc",
    "opensim/opencap_subject4/walking1.trc",
    "opensim/rajagopal2016/walk/motion_capture_walk.trc", "opensim/rajagopal2016/walk/static_walk_1.trc",
    "opensim/subject01_walk/subject01_static.trc", "opensim/subject01_walk/subject01_walk1.trc",
    "opensim/hamner2010_running/subject02_static.trc", "opensim/arm26/arm26_elbow_flex.trc",
)  # fmt: skip


def read(path):
    from borelli.recording.formats.c3d.reader import read_c3d
    from borelli.recording.formats.trc import read_trc

    return (read_trc if path.suffix == ".trc" else read_c3d)(path)


def codes(one, model=None):
    return {issue.code for issue in check_recording(one, model)}


def only(one, code, model=None):
    """Return the only issue with a code."""
    (issue,) = [issue for issue in check_recording(one, model) if issue.code == code]
    return issue


def rotated(one):
    """Return a recording with a wrong vertical axis."""
    rotation = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]).T
    changed = {
        name: one.data[name].copy(data=one.data[name].values @ rotation.T)
        for name in ("marker_position", "plate_corners")
        if name in one.data
    }
    return one.with_data(one.data.assign(changed))


def scaled(one, factor):
    lengths = ("marker_position", "plate_corners", "plate_center_of_pressure")
    changed = {name: one.data[name] * factor for name in lengths if name in one.data}
    return one.with_data(one.data.assign(changed).assign_attrs(one.data.attrs))


def test_a_correct_walk_has_no_issues():
    assert check_recording(recording(noise=0.0005)) == ()


def test_swapped_sides():
    issue = only(swap_sides(recording()), "left_right_labels")
    assert issue.severity == "error"
    assert "Left and right are swapped" in issue.text
    assert "swap_sides" in issue.action
    issue = only(swap_markers(recording(), "LKNE", "RKNE"), "left_right_labels")
    assert issue.action == 'swap_markers(recording, "LKNE", "RKNE")'


def test_millimeters_stated_as_meters():
    issue = only(scaled(recording(), 1000.0), "length_unit")
    assert (issue.severity, issue.action) == ("error", "--units mm")
    called_mm = scaled(recording(file_units="mm"), 0.001)
    assert only(called_mm, "length_unit").action == "--units m"


def test_y_up_stated_as_z_up():
    issue = only(rotated(recording()), "up_axis")
    assert (issue.severity, issue.action) == ("error", "--up +Y")
    walk = recording()
    lying = walk.with_data(walk.data.assign(marker_position=rotated(walk).data["marker_position"] + [0.0, 0.0, 0.5]))
    assert only(lying, "up_axis").severity == "warning"  # the plates are level, so the subject may lie on them


def test_two_swapped_plates():
    issue = only(swap_plates(recording(), "plate 1", "plate 2"), "plate_swap")
    assert issue.severity == "error"
    assert issue.action == 'swap_plates(recording, "plate 1", "plate 2")'


def test_a_gap_of_forty_frames_is_filled_by_cleaning():
    walk = recording()
    points = walk.data["marker_position"].values.copy()
    points[100:140, walk.markers.index("LASI")] = np.nan
    gapped = with_markers(walk, points)
    issue = only(gapped, "gap")
    assert "LASI, frames 100 to 139" in issue.where
    assert "0.40 s" in issue.text
    assert "clean" in issue.action
    assert "gap" not in codes(clean(gapped))


def test_a_marker_set_that_does_not_match_the_model():
    walk, model = recording(), wear(human(), "opensim_gait")
    issue = only(walk, "model_markers", model)
    assert issue.severity == "error"
    assert "does not match" in issue.text
    fitting = only(walk, "model_markers", wear(human(), "plugin_gait"))
    assert fitting.severity == "warning"
    assert "RELB" in fitting.where


def test_the_action_for_a_model_names_the_marker_set():
    names = [marker.name for marker in wear(human(), "cmu41").markers]
    data = make_dataset(
        {"marker_position": np.random.default_rng(0).normal(size=(5, len(names), 3))}, {"marker": names}, rate=100.0
    )
    issue = only(Recording(data), "model_markers", wear(human(), "opensim_gait"))
    assert 'add_marker_set(model, "cmu41")' in issue.action


def test_swaps_spikes_zeros_and_rounded_times():
    walk = recording()
    assert "frames 60 to 89" in only(swap_markers(walk, "LKNE", "RKNE", 60, 90), "label_swap").where
    points = walk.data["marker_position"].values.copy()
    points[150, 0] += 0.1
    points[200:203, 1] = 0.0
    corrupted = with_markers(walk, points)
    assert {"spike", "zero_positions"} <= codes(corrupted)
    uneven = walk.data.assign_coords(time=("time", np.round(np.arange(walk.frames) / 60.0, 3)))
    uneven.attrs["rate_hz"] = 60.0
    issue = only(walk.with_data(uneven), "time_stamps")
    assert "rounded" in issue.text
    assert "repair_time_stamps" in issue.action


def test_unlabeled_points_unknown_sets_and_problems_of_readers():
    names = ["*1", "*2", "QA", "QB", "QC", "QD", "QE"]
    points = np.random.default_rng(0).normal(scale=0.3, size=(50, len(names), 3))
    one = Recording(make_dataset({"marker_position": points}, {"marker": names}, rate=100.0))
    assert {"unlabeled_points", "unknown_labels"} <= codes(one)
    noted = one.with_notes(Note("The file ends within a frame.", "problem", "record again", code="truncated"))
    assert only(noted, "truncated").action == "record again"


def test_clipped_channels_are_distinguished_from_idle_and_smooth_ones():
    time = np.arange(3000) / 1000.0
    rng = np.random.default_rng(0)
    loud = np.clip(2.0 * rng.normal(size=3000) * (1 + np.sin(9 * time)), -1.25, 1.25)
    loud[1000:1010] = 1.25
    gentle = np.round(np.sin(3.0 * time), 2)
    names = ["loud", "gentle", "idle", "dead"]
    values = np.stack([loud, gentle, np.round(0.002 * rng.normal(size=3000), 3), np.full(3000, -2048.0)], axis=1)
    one = Recording(make_dataset({"analog": values}, {"channel": names}, analog_rate=1000.0))
    assert only(one, "clipped_channel").where == "loud"
    assert only(one, "constant_channel").where == "dead"


def test_loads_away_from_feet_and_plates_named_after_the_wrong_foot():
    walk = recording()
    center = walk.data["plate_center_of_pressure"].values.copy()
    center[:, 0] += (2.0, 1.0, 0.0)
    data = walk.data.assign(plate_center_of_pressure=walk.data["plate_center_of_pressure"].copy(data=center))
    issue = only(walk.with_data(data.drop_vars("plate_corners")), "plate_assignment")
    assert "away from the feet" in issue.text
    called = walk.with_data(walk.data.assign_coords(plate=["force_r", "force_l"]))
    assert "force_r supports the left foot." in {issue.text for issue in check_recording(called)}


def test_issues_are_sorted_by_severity():
    corrupted = scaled(recording(), 1000.0)
    points = corrupted.data["marker_position"].values.copy()
    points[10:13, 0] = np.nan
    issues = check_recording(with_markers(corrupted, points))
    order = [SEVERITIES.index(issue.severity) for issue in issues]
    assert order == sorted(order)
    assert all(issue.text and issue.where and issue.evidence and issue.action for issue in issues)


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_good_real_recordings_raise_no_false_alarm(name):
    assert not codes(read(real(name))) & WRONG


@pytest.mark.data
def test_labels_that_swap_all_the_time_are_one_issue():
    """Two markers of the right foot of a public run; their distances from the heel, 175 and 204 mm, tell them apart."""
    run = read(real("opensim/rajagopal2015_run_bmclab/motion_capture_run.trc"))
    assert codes(run) & WRONG == {"label_swap"}
    issue = only(run, "label_swap")
    assert issue.text == "The labels RTOE and RMT5 are swapped." and issue.where.endswith(" of the frames 3 to 121")
    points = repair_label_swaps(run).data["marker_position"]
    heel, toe, mt5 = (points.sel(marker=name).values[1:] for name in ("RCAL", "RTOE", "RMT5"))
    assert (np.linalg.norm(toe - heel, axis=1) > 0.185).all() and (np.linalg.norm(mt5 - heel, axis=1) < 0.185).all()


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    ["hdm/data.c3d", "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d", "c3d/qualisys_walk/Qualisys.c3d",
     "opensim/subject01_walk/subject01_walk1.trc", "opensim/opencap_subject4/DJ1.trc"],
)  # fmt: skip
def test_issues_in_corrupted_real_recordings_are_found(name):
    good = read(real(name))
    assert "left_right_labels" in codes(swap_sides(good))
    assert "length_unit" in codes(scaled(good, 1000.0))
    assert "length_unit" in codes(scaled(good, 0.001))
    assert "up_axis" in codes(rotated(good))
    index = next(i for i, mark in enumerate(good.markers) if "ASI" in mark or "IAS" in mark or "FWT" in mark)
    points = good.data["marker_position"].values.copy()
    points[30:70, index] = np.nan
    assert any(
        good.markers[index] in issue.where
        for issue in check_recording(with_markers(good, points))
        if issue.code == "gap"
    )
    if good.plates:
        assert "plate_swap" in codes(swap_plates(good, *good.plates[:2]))
    assert check_recording(replace(good, notes=()), wear(human(), "helen_hayes"))


@pytest.mark.data
def test_wrong_statements_of_the_user_are_found():
    path = real("opensim/subject01_walk/subject01_walk1.trc")
    from borelli.recording.formats.trc import read_trc

    assert only(read_trc(path, units="m"), "length_unit").action == "--units mm"
    assert only(read_trc(path, up="+Z"), "up_axis").action == "--up +Y"
