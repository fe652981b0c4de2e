"""Fits to recordings of many laboratories: their own marker sets, missing samples, jumps and sprints.

Limits are what the fits achieve (2 to 4 mm walking, 7 mm sprinting), with a margin for rounding on other machines.
"""

import numpy as np
import pytest

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.errors import SettingsError
from borelli.model.io import read_model
from borelli.people.human import human
from borelli.recording.clean import clean
from borelli.recording.io import read_recording

from ...shared_data import SHARED_DATA as DATA

pytestmark = pytest.mark.data

# file, mass [kg], height [m], held-out error [mm], range of the thigh [m]
TRIALS = [
    ("c3d/qualisys_walk/Qualisys.c3d", 75.0, 1.75, 4.0, (0.36, 0.46)),
    ("c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d", 47.5, 1.505, 4.0, (0.34, 0.42)),
    ("c3d/vicon_overground_4plates/test_small.c3d", 63.6, 1.58, 4.0, (0.35, 0.43)),
    ("c3d/opensim_walking2/walking2.c3d", 75.0, 1.75, 5.0, (0.40, 0.49)),  # a third of it is missing
    ("c3d/motionanalysis_gait/Gait.c3d", 75.0, 1.75, 4.0, (0.37, 0.46)),
    ("c3d/motionanalysis_walk_jump/Sample_Jump2.c3d", 75.0, 1.75, 5.0, (0.40, 0.49)),
    ("c3d/motionmonitor_metres/Gait_with_EMG.c3d", 75.0, 1.75, 5.0, (0.39, 0.48)),
    ("c3d/pycgm_movement/Movement_trial.c3d", 75.0, 1.75, 4.0, (0.39, 0.48)),
    ("c3d/sprint_8plates/JA1Gait35.c3d", 75.0, 1.75, 10.0, (0.40, 0.51)),
    ("opensim/subject01_walk/subject01_walk1.trc", 72.6, 1.80, 4.0, (0.41, 0.48)),
    ("opensim/hamner2010_running/subject02_running.trc", 70.0, 1.75, 5.0, (0.41, 0.49)),
    ("opensim/rajagopal2016/walk/motion_capture_walk.trc", 85.0, 1.80, 5.0, (0.41, 0.48)),
    ("opensim/rajagopal2015_run_bmclab/motion_capture_run.trc", 75.0, 1.75, 9.0, (0.36, 0.45)),
    ("opensim/opencap_subject4/walking1.trc", 70.0, 1.75, 4.0, (0.37, 0.46)),
    ("opensim/opencap_subject4/DJ1.trc", 70.0, 1.75, 5.0, (0.37, 0.46)),
]


@pytest.mark.parametrize(
    ("file", "mass", "height", "max_mm", "thigh"), TRIALS, ids=[t[0].split("/")[-1] for t in TRIALS]
)
def test_recordings_of_every_laboratory_are_fitted(file, mass, height, max_mm, thigh):
    fit = fit_model(human(mass, height), read_recording(DATA / file))
    assert 1e3 * fit.held_out_rms < max_mm
    for side in "rl":
        assert thigh[0] < fit.lengths[f"thigh_{side}"] < thigh[1]
    assert any(note.code == "marker_set" for note in fit.notes)


@pytest.mark.parametrize(
    ("walk", "static", "mass", "height"),
    [
        ("subject01_walk/subject01_walk1.trc", "subject01_walk/subject01_static.trc", 72.6, 1.80),
        ("rajagopal2016/walk/motion_capture_walk.trc", "rajagopal2016/walk/static_walk_1.trc", 85.0, 1.80),
    ],
)
def test_static_trials_determine_the_zero_of_ankles_and_knees(walk, static, mass, height):
    """Raised arms do not count as neutral."""
    recording, still = (read_recording(DATA / "opensim" / file) for file in (walk, static))
    fit = fit_model(human(mass, height), recording, static=still)
    assert fit.held_out_rms < 5e-3
    for name in ("ankle_flexion_r", "ankle_flexion_l", "knee_flexion_r", "knee_flexion_l"):
        assert float(fit.data["zero_sd"].sel(coordinate=name)) < 0.105  # 6 degrees: as exactly as persons stand
    note = next(note.text for note in fit.notes if note.code == "static_pose")
    assert "clavicle" in note
    assert "ankle" not in note


def test_a_moving_static_trial_is_refused():
    walk = read_recording(DATA / "opensim" / "rajagopal2016" / "walk" / "motion_capture_walk.trc")
    with pytest.raises(SettingsError, match="moves"):
        fit_model(human(85.0, 1.8), walk, static=walk)


def test_recordings_of_an_arm_alone_are_refused():
    arm = read_recording(DATA / "opensim" / "arm26" / "arm26_elbow_flex.trc")
    with pytest.raises(SettingsError, match=r"r_acromion.*at least 4.*borelli markers FILE --write"):
        fit_model(human(), arm)


def test_cleaning_first_changes_little():
    recording = read_recording(DATA / "c3d" / "opensim_walking2" / "walking2.c3d")
    cleaned = clean(recording)
    raw, filled = (fit_model(human(75.0, 1.75), one) for one in (recording, cleaned))
    for name in ("thigh_r", "shank_r"):
        assert abs(raw.lengths[name] - filled.lengths[name]) < 0.005


@pytest.mark.parametrize(
    ("model", "walk", "before", "after"),
    [
        ("gait2354/subject01_simbody.osim", "subject01_walk/subject01_walk1.trc", 15.0, 6.5),
        ("opencap_subject4/manually_scaled.osim", "opencap_subject4/walking1.trc", 8.0, 5.0),
    ],
)
def test_opensim_models_are_fitted(model, walk, before, after):
    """Knees are coupled and translate; errors [mm] of the published models and of the fitted ones."""
    given, recording = read_model(DATA / "opensim" / model), read_recording(DATA / "opensim" / walk)
    fit = fit_model(given, recording)
    assert 1e3 * inverse_kinematics(given, recording).marker_rms > before
    assert 1e3 * fit.held_out_rms < after
    assert fit.model.mass == pytest.approx(given.mass)
    femur = next(length for name, length in fit.lengths.items() if name.startswith("femur_r"))
    assert 0.37 < femur < 0.49


def test_angles_agree_with_opensim_on_another_model():
    """Correlation of the fitted human with OpenSim's kinematics of its scaled model."""
    recording = read_recording(DATA / "opensim" / "subject01_walk" / "subject01_walk1.trc")
    fit = fit_model(human(72.6, 1.80), recording)
    fitted = inverse_kinematics(fit.model, recording).data["coordinate_value"]
    reference = read_recording(DATA / "opensim" / "gait2354" / "reference" / "subject01_walk1_ik.mot").data[
        "coordinate_value"
    ]
    time = reference["time"].values
    for side in "rl":
        for name, other, sign in (("hip_flexion", "hip_flexion", 1.0), ("knee_flexion", "knee_angle", -1.0)):
            angle = np.interp(time, fitted["time"].values, fitted.sel(coordinate=f"{name}_{side}").values)
            r = np.corrcoef(angle, sign * reference.sel(coordinate=f"{other}_{side}").values)[0, 1]
            assert r > 0.985, (name, side, r)
