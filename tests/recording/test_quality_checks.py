"""Faults: each one put into a good recording is found with its remedy, and good recordings have none."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.model.marker_sets import add_marker_set as wear
from borelli.model.people.human import human
from borelli.recording.clean import clean
from borelli.recording.cleaning.label_swaps import swap_markers, swap_sides
from borelli.recording.forces.assign_to_feet import swap_plates
from borelli.recording.quality_checks import SEVERITIES, check_recording
from borelli.recording.recording import Note, Recording, make_dataset

from .walker import real, recording, with_markers

WRONG = {"units", "up", "sides", "swap", "exchange", "plates", "zeros"}
"""Faults of which a good recording has none."""
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
    "opensim/opencap_subject4/walking1.trc", "opensim/rajagopal2015_run_bmclab/motion_capture_run.trc",
    "opensim/rajagopal2016/walk/motion_capture_walk.trc", "opensim/rajagopal2016/walk/static_walk_1.trc",
    "opensim/subject01_walk/subject01_static.trc", "opensim/subject01_walk/subject01_walk1.trc",
    "opensim/hamner2010_running/subject02_static.trc", "opensim/arm26/arm26_elbow_flex.trc",
)  # fmt: skip


def read(path):
    from borelli.recording.formats.c3d.reader import read_c3d
    from borelli.recording.formats.trc import read_trc

    return (read_trc if path.suffix == ".trc" else read_c3d)(path)


def kinds(one, model=None):
    return {fault.kind for fault in check_recording(one, model)}


def only(one, kind, model=None):
    """The one fault of a kind."""
    (fault,) = [fault for fault in check_recording(one, model) if fault.kind == kind]
    return fault


def turned(one):
    """A recording whose vertical axis was taken wrongly: everything lies on its back."""
    turn = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]).T
    changed = {name: one.data[name].copy(data=one.data[name].values @ turn.T) for name in ("markers", "plate_corners")
               if name in one.data}  # fmt: skip
    return one.with_data(one.data.assign(changed))


def scaled(one, factor):
    changed = {name: one.data[name] * factor for name in ("markers", "plate_corners", "plate_center_of_pressure")
               if name in one.data}  # fmt: skip
    return one.with_data(one.data.assign(changed).assign_attrs(one.data.attrs))


def test_a_good_walk_has_nothing_wrong():
    assert check_recording(recording(noise=0.0005)) == ()


def test_swapped_sides():
    fault = only(swap_sides(recording()), "sides")
    assert fault.severity == "error"
    assert "left and right are exchanged" in fault.text
    assert "swap_sides" in fault.action
    fault = only(swap_markers(recording(), "LKNE", "RKNE"), "sides")
    assert fault.action == 'exchange(recording, "LKNE", "RKNE")'


def test_millimetres_called_metres():
    fault = only(scaled(recording(), 1000.0), "units")
    assert (fault.severity, fault.action) == ("error", "--units mm")
    called_mm = scaled(recording(file_units="mm"), 0.001)
    assert only(called_mm, "units").action == "--units m"


def test_y_up_called_z_up():
    fault = only(turned(recording()), "up")
    assert (fault.severity, fault.action) == ("error", "--up +Y")
    walk = recording()
    lying = walk.with_data(walk.data.assign(marker_position=turned(walk).data["marker_position"] + [0.0, 0.0, 0.5]))
    assert only(lying, "up").severity == "warning"  # the plates are level, so somebody may lie on them


def test_two_plates_exchanged():
    fault = only(swap_plates(recording(), "plate 1", "plate 2"), "exchange")
    assert fault.severity == "error"
    assert fault.action == 'swap_plates(recording, "plate 1", "plate 2")'


def test_a_gap_of_forty_frames_and_cleaning_mends_it():
    walk = recording()
    points = walk.data["marker_position"].values.copy()
    points[100:140, walk.markers.index("LASI")] = np.nan
    gapped = with_markers(walk, points)
    fault = only(gapped, "gap")
    assert "LASI, frames 100 to 139" in fault.where
    assert "0.40 s" in fault.text
    assert "clean" in fault.action
    assert "gap" not in kinds(clean(gapped))


def test_a_marker_set_that_does_not_fit_the_model():
    walk, model = recording(), wear(human(), "opensim_gait")
    fault = only(walk, "model", model)
    assert fault.severity == "error"
    assert "does not fit" in fault.text
    fitting = only(walk, "model", wear(human(), "plugin_gait"))
    assert fitting.severity == "warning"
    assert "RELB" in fitting.where


def test_the_remedy_for_a_model_names_the_set_that_is_worn():
    names = [marker.name for marker in wear(human(), "cmu41").markers]
    data = make_dataset(
        {"markers": np.random.default_rng(0).normal(size=(5, len(names), 3))}, {"marker": names}, rate=100.0
    )
    fault = only(Recording(data), "model", wear(human(), "opensim_gait"))
    assert 'with_markers(model, "cmu41")' in fault.action


def test_swaps_spikes_zeros_and_rounded_times():
    walk = recording()
    assert "frames 60 to 89" in only(swap_markers(walk, "LKNE", "RKNE", 60, 90), "swap").where
    points = walk.data["marker_position"].values.copy()
    points[150, 0] += 0.1
    points[200:203, 1] = 0.0
    spoilt = with_markers(walk, points)
    assert {"spike", "zeros"} <= kinds(spoilt)
    uneven = walk.data.assign_coords(time=("time", np.round(np.arange(walk.frames) / 60.0, 3)))
    uneven.attrs["rate"] = 60.0
    fault = only(walk.with_data(uneven), "times")
    assert "rounded" in fault.text
    assert "repair_time_stamps" in fault.action


def test_unlabelled_points_unknown_sets_and_what_readers_saw():
    names = ["*1", "*2", "QA", "QB", "QC", "QD", "QE"]
    points = np.random.default_rng(0).normal(scale=0.3, size=(50, len(names), 3))
    one = Recording(make_dataset({"marker_position": points}, {"marker": names}, rate=100.0))
    assert {"unlabelled", "set"} <= kinds(one)
    noted = one.with_notes(Note("the file ends in the middle of a frame", "problem", "record again"))
    assert only(noted, "file").action == "record again"


def test_clipped_channels_are_told_from_quiet_and_gentle_ones():
    time = np.arange(3000) / 1000.0
    rng = np.random.default_rng(0)
    loud = np.clip(2.0 * rng.normal(size=3000) * (1 + np.sin(9 * time)), -1.25, 1.25)
    loud[1000:1010] = 1.25
    gentle = np.round(np.sin(3.0 * time), 2)
    names = ["loud", "gentle", "idle", "dead"]
    values = np.stack([loud, gentle, np.round(0.002 * rng.normal(size=3000), 3), np.full(3000, -2048.0)], axis=1)
    one = Recording(make_dataset({"analog": values}, {"channel": names}, analog_rate=1000.0))
    assert only(one, "clipped").where == "loud"
    assert only(one, "constant").where == "dead"


def test_loads_where_no_foot_is_and_plates_called_by_the_wrong_foot():
    walk = recording()
    place = walk.data["plate_center_of_pressure"].values.copy()
    place[:, 0] += (2.0, 1.0, 0.0)
    data = walk.data.assign(plate_center_of_pressure=walk.data["plate_center_of_pressure"].copy(data=place))
    fault = only(walk.with_data(data.drop_vars("plate_corners")), "plates")
    assert "no foot" in fault.text
    called = walk.with_data(walk.data.assign_coords(plate=["force_r", "force_l"]))
    assert "force_r carries the left foot" in {fault.text for fault in check_recording(called)}


def test_faults_come_with_the_worst_first():
    spoilt = scaled(recording(), 1000.0)
    points = spoilt.data["marker_position"].values.copy()
    points[10:13, 0] = np.nan
    faults = check_recording(with_markers(spoilt, points))
    order = [SEVERITIES.index(fault.severity) for fault in faults]
    assert order == sorted(order)
    assert all(fault.text and fault.where and fault.evidence and fault.action for fault in faults)


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_good_real_recordings_raise_no_false_alarm(name):
    assert not kinds(read(real(name))) & WRONG


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    ["hdm/data.c3d", "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d", "c3d/qualisys_walk/Qualisys.c3d",
     "opensim/subject01_walk/subject01_walk1.trc", "opensim/opencap_subject4/DJ1.trc"],
)  # fmt: skip
def test_faults_put_into_real_recordings_are_found(name):
    good = read(real(name))
    assert "sides" in kinds(swap_sides(good))
    assert "units" in kinds(scaled(good, 1000.0))
    assert "units" in kinds(scaled(good, 0.001))
    assert "up" in kinds(turned(good))
    index = next(i for i, mark in enumerate(good.markers) if "ASI" in mark or "IAS" in mark or "FWT" in mark)
    points = good.data["marker_position"].values.copy()
    points[30:70, index] = np.nan
    assert any(
        good.markers[index] in fault.where
        for fault in check_recording(with_markers(good, points))
        if fault.kind == "gap"
    )
    if good.plates:
        assert "exchange" in kinds(swap_plates(good, *good.plates[:2]))
    assert check_recording(replace(good, notes=()), wear(human(), "helen_hayes"))


@pytest.mark.data
def test_the_same_file_called_otherwise_is_found_by_its_readers_and_here():
    path = real("opensim/subject01_walk/subject01_walk1.trc")
    from borelli.recording.formats.trc import read_trc

    assert only(read_trc(path, units="m"), "units").action == "--units mm"
    assert only(read_trc(path, up="+Z"), "up").action == "--up +Y"
