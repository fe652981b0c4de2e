"""Gait curves: direction of travel, clinical names, angles for spreadsheets, and Plug-in Gait on a real walk."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.motion import make_motion
from borelli.export.clinical_names import clinical_name, in_clinical_names
from borelli.export.gait_curves import PERCENT, SIDES, curve_by_stride, gait_curves
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import analyze

from ..shared_data import shared


def turned(walk, travel, pelvis=0.0):
    """Return the energy of the true walk, its direction turned by `travel` and the body on its path by `pelvis`."""
    q = walk.coordinates.copy()
    c, s = np.cos(travel), np.sin(travel)
    q[:, :2] = q[:, :2] @ np.array([[c, s], [-s, c]])
    rotation = Rotation.from_euler("z", travel + pelvis) * Rotation.from_euler("XYZ", q[:, 3:6])
    q[:, 3:6] = rotation.as_euler("XYZ")
    recording = replace(walk.recording, data=walk.recording.data.drop_dims(["analog_time", "plate"], errors="ignore"))
    motion = make_motion(walk.model, q, recording.data["time"].values, recording.rate, recording=recording)
    return compute_energy(inverse_dynamics(motion, forces=None))


def angles(energy):
    return {curve.name: curve for curve in gait_curves(energy).curves if curve.group == "angle"}


def test_curves_do_not_depend_on_the_direction_of_travel(walk):
    ahead, sideways = angles(turned(walk, 0.0)), angles(turned(walk, 2.4))
    assert {"pelvis_rotation", "foot_progression", "hip_rotation"} <= set(ahead)
    for name, curve in ahead.items():
        for side, values in curve.sides.items():
            assert sideways[name].sides[side] == pytest.approx(values, abs=1e-6), name


def test_rotation_and_progression_are_relative_to_travel_not_to_the_mean_pelvis(walk):
    straight, rotated = angles(turned(walk, 0.0)), angles(turned(walk, 0.0, np.radians(10.0)))
    for name in ("pelvis_rotation", "foot_progression"):
        sign = 1.0  # to the left: the right side comes forward, the right toes point inward
        for side in SIDES:
            change = (rotated[name].sides[side] - straight[name].sides[side]).mean()
            assert change == pytest.approx(sign * 10.0, abs=0.2), (name, side)
            sign = -sign


def test_names_are_those_of_the_clinic():
    assert clinical_name("hip_rotation_r") == "Right hip internal rotation"
    assert clinical_name("ankle_flexion_l") == "Left ankle dorsiflexion"
    assert clinical_name("lumbar_bending") == "Lumbar lateral bending"
    assert clinical_name("pelvis_list") == "Pelvic obliquity"
    names = ["hip_rotation_r", "hip_rotation_l", "ankle_flexion_r", "thigh_r"]
    text = in_clinical_names(
        "hip_rotation 12, ankle_flexion_r at 3; thigh_r of my_thigh_r_file and f(hip_rotation=2)", names
    )
    assert text.startswith("hip internal rotation 12, right ankle dorsiflexion at 3; right thigh of my_thigh_r_file")


def test_angles_for_spreadsheets(analyzed):
    with (analyzed.folder / "angles.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))
    table = np.array(rows, dtype=float)
    data = analyzed.energy.torques.data
    assert head[0] == "Time [s]" and table[:, 0] == pytest.approx(data["time"].values)
    assert len(set(head)) == len(head) and all(name.endswith("[deg]") for name in head[1:])
    knee = np.degrees(data["coordinate_value"].sel(coordinate="knee_flexion_r").values)
    assert table[:, head.index("Right knee flexion [deg]")] == pytest.approx(knee, abs=1e-3)
    tilt = next(curve for curve in gait_curves(analyzed.energy).curves if curve.name == "pelvis_tilt").right
    assert table[:, head.index("Pelvic tilt (anterior +) [deg]")] == pytest.approx(tilt, abs=1e-3)


@pytest.mark.data
def test_pelvis_and_foot_agree_with_plug_in_gait(tmp_path):
    """Vicon's own angles: this subject walks with the pelvis rotated by 5 degrees and feet turned out by 23."""
    folder = shared("c3d/vicon_pig")
    settings = AnalysisSettings(static=folder / "PiG_Calibration-FlatFoot-Full.c3d")
    (analysis,) = analyze(folder / "PiG_Motion-FlatFoot-Full.c3d", tmp_path / "out", settings)
    gait = gait_curves(analysis.energy)
    data = analysis.energy.torques.motion.recording.data
    curves = {curve.name: curve for curve in gait.curves}
    for name, quantity, axis, offset, shape in (  # largest mean difference and RMS about it [deg]
        ("pelvis_rotation", "PelvisAngles", 2, 1.5, 1.5),
        ("pelvis_obliquity", "PelvisAngles", 1, 1.5, 1.5),
        ("foot_progression", "FootProgressAngles", 2, 3.0, 2.5),
    ):
        for side in SIDES:
            series = data["model_output"].sel(quantity=side[0].upper() + quantity).values[:, axis]
            times = [s.start + PERCENT / 100.0 * (s.end - s.start) for s in gait.strides if s.side == side]
            expected = np.array([np.interp(time, data["time"].values, series) for time in times])
            difference = curve_by_stride(gait, curves[name], side) - expected
            assert abs(difference.mean()) < offset and difference.std() < shape, (name, side)
    expected = data["model_output"].sel(quantity="RFootProgressAngles").values[:, 2]
    assert np.median(expected[expected != 0.0]) < -15.0  # what is compared is not zero
