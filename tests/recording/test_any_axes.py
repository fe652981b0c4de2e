"""One recording in any unit and axes, with zeros for gaps: the reader finds the same motion."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.recording.forces.assign_to_feet import add_plates
from borelli.recording.formats.c3d.writer import write_c3d
from borelli.recording.formats.trc import write_trc
from borelli.recording.io import read_recording
from borelli.recording.units_and_axes import UP_CONFLICT, Conversion
from borelli.synthetic.recordings import synthetic_recording

from .walker import real

ROTATIONS = (
    ("+Z", "+X"), ("+Z", "-Y"), ("+Y", "+X"), ("+Y", "+Z"), ("+X", "+Y"), ("-X", "+Z"), ("-Y", "-X"), ("-Z", "+X"),
    ("-Z", "-Y"),
)  # fmt: skip
"""Axis of the file that points up and the one that is x in the lab: nine of the 24 rotations."""
LENGTHS = ("mm", "cm", "m", "in")
PEOPLE = (
    "hdm/data.c3d", "cmu/c3d/02_05.c3d", "cmu/c3d/06_01_misnamed_dribble_shoot.c3d", "cmu/c3d/85_02.c3d",
    "c3d/motionanalysis_gait/Gait.c3d", "c3d/motionanalysis_walk_jump/Sample_Jump2.c3d",
    "c3d/motionanalysis_walk_jump/Walk1.c3d", "c3d/motionmonitor_metres/Gait_with_EMG.c3d",
    "c3d/motionmonitor_metres/Static_Pose.c3d", "c3d/opensim_walking2/walking2.c3d",
    "c3d/pycgm_movement/Movement_trial.c3d", "c3d/qualisys_walk/Qualisys.c3d", "c3d/sprint_8plates/JA1Gait35.c3d",
    "c3d/vicon_overground_4plates/test_small.c3d", "c3d/vicon_pig/PiG_Calibration-FlatFoot-Full.c3d",
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d", "opensim/opencap_subject4/DJ1.trc",
    "opensim/opencap_subject4/walking1.trc", "opensim/rajagopal2015_run_bmclab/motion_capture_run.trc",
    "opensim/rajagopal2016/walk/motion_capture_walk.trc", "opensim/rajagopal2016/walk/static_walk_1.trc",
    "opensim/subject01_walk/subject01_static.trc", "opensim/subject01_walk/subject01_walk1.trc",
    "opensim/hamner2010_running/subject02_static.trc", "opensim/hamner2010_running/subject02_running.trc",
)  # fmt: skip
SAMPLED_FRAMES = 150
ROUNDING = 2e-6
"""[m]: single precision of a C3D file in inches."""


def sampled(recording):
    """Return the recording with few frames, spread over all, without channels and outputs."""
    data = recording.data.drop_dims(["channel", "quantity", "event"], errors="ignore")
    step = max(1, recording.frames // SAMPLED_FRAMES)
    picked = data.isel(time=slice(None, None, step))
    if "analog_time" in data.dims:
        ratio = step * max(1, round(recording.analog_rate / recording.rate))
        picked = picked.isel(analog_time=slice(None, None, ratio)).isel(analog_time=slice(0, picked.sizes["time"]))
        picked.attrs["analog_rate_hz"] = recording.rate / step
        picked = picked.assign_coords(analog_time=picked["time"].values[: picked.sizes["analog_time"]])
        if picked.sizes["analog_time"] < picked.sizes["time"]:
            picked = picked.isel(time=slice(0, picked.sizes["analog_time"]))
    picked.attrs["rate_hz"] = recording.rate / step
    return replace(recording, data=picked, metadata={}, path=None)


def written(recording, path, units, up, forward, *, stated=True):
    """Write a recording in a unit and axes, with zeros for gaps; without statements unless `stated`."""
    points = recording.data["marker_position"]
    data = recording.data.assign(marker_position=points.fillna(0.0))
    data.attrs |= {"file_units": units, "file_up": up, "file_forward": forward}
    one = replace(recording, data=data, format="TRC")
    if path.suffix == ".trc":
        write_trc(one, path, overwrite=True)
        if not stated:
            path.write_text(path.read_text().replace(f"\t{units}\t", "\t\t", 1))
    else:
        write_c3d(one, path, overwrite=True)
        if not stated:
            raw = path.read_bytes()
            for name in (b"UNITS", b"Y_SCREEN", b"X_SCREEN"):
                raw = raw.replace(name, b"Q" * len(name), 1)
            path.write_bytes(raw)
    return path


def differences(recording, path, units, up, forward):
    """Return how a file of this unit and axes is read otherwise than as the recording; "" if it is not."""
    found = read_recording(path)
    attrs = found.data.attrs
    if (attrs["file_up"], attrs["file_units"]) != (up, units):
        return f"read as {attrs['file_units']} {attrs['file_up']}"
    if any(note.code == UP_CONFLICT for note in found.notes):
        return "uncertain"
    in_file = Conversion.from_axes(units, up, forward).invert(recording.data["marker_position"].values)
    expected = Conversion.from_axes(units, up).apply(in_file)
    zero = ~recording.data["marker_position"].fillna(0.0).any("axis").values
    expected[zero] = np.nan
    got = found.data["marker_position"].values
    if not np.array_equal(np.isnan(got), np.isnan(expected)):
        return "other gaps"
    return "" if np.nanmax(np.abs(got - expected), initial=0.0) < ROUNDING else "moved"


@pytest.mark.parametrize(("up", "forward"), ROTATIONS)
@pytest.mark.parametrize("ending", [".c3d", ".trc"])
def test_a_synthetic_walk_is_read_alike_in_any_axes(up, forward, ending, tmp_path):
    walk = sampled(synthetic_recording("walk", gaps=0.05).recording)
    units = LENGTHS[ROTATIONS.index((up, forward)) % 4]
    for stated in (True, False):
        path = written(walk, tmp_path / f"walk{ending}", units, up, forward, stated=stated)
        assert differences(walk, path, units, up, forward) == "", stated


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", PEOPLE)
def test_real_recordings_are_read_alike_in_any_axes(name, tmp_path):
    whole = sampled(read_recording(real(name)))
    wrong = {}
    for units in LENGTHS:
        for up, forward in ROTATIONS:
            for stated in (True, False):
                path = written(whole, tmp_path / f"one{real(name).suffix}", units, up, forward, stated=stated)
                if problem := differences(whole, path, units, up, forward):
                    wrong[units, up, forward, stated] = problem
    assert not wrong


def test_plates_of_a_second_file_in_other_axes_stay_under_the_feet(tmp_path):
    """Markers z up in mm, forces y up in m, as OpenSim has them."""
    walk = synthetic_recording("walk", gaps=0.0).recording
    from borelli.recording.formats.mot_sto import write_table

    write_table(walk, tmp_path / "forces.mot", variables=["plate_force"], up="+Y")
    path = written(sampled(walk), tmp_path / "walk.trc", "mm", "+Z", "+X")
    both = add_plates(read_recording(path), read_recording(tmp_path / "forces.mot"))
    force = both.data["plate_force"].values
    assert np.allclose(force, walk.data["plate_force"].values, atol=1e-9)
