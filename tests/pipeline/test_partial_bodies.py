"""Recordings of a part of the body: the same leg moments as of the whole, and nothing that needs the rest."""

import json

import numpy as np
import pytest

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import match_markers
from borelli.errors import ModelError, SettingsError
from borelli.export.stage_files import read_stage
from borelli.pipeline.analysis_settings import AnalysisSettings, generic_model, read_static, read_trial
from borelli.pipeline.analyze import analyze
from borelli.pipeline.stages import StageSettings, compute_torques, run_inverse_kinematics
from borelli.recording.clean import clean

from ..shared_data import shared

ARMS = [f"{body}_{side}" for body in ("collar", "upper_arm", "forearm", "hand") for side in "rl"]
TRUNK = ["lower_torso", "upper_torso", "neck", "head", *ARMS]
LEFT_LEG = ["thigh_l", "shank_l", "foot_l", "toes_l"]
MAX_ANGLE, MAX_MOMENT = 1.0, 0.02
"""[deg] RMS, and fraction of the peak, RMS: of a leg in frames in which a plate carries its foot."""


def without(recording, model, bodies):
    """The recording without the markers that a model has on some bodies, and without those that it does not have."""
    labels = [
        recording.markers[k]
        for marker, k in zip(model.markers, match_markers(model.markers, recording.markers), strict=True)
        if k >= 0 and marker.body not in bodies
    ]
    return recording.with_data(recording.data.sel(marker=labels))


def differences(full, part, side):
    """RMS differences of a leg's angles [deg], and of its moments as fractions of the peak, by coordinate."""
    foot = {"r": "right", "l": "left"}[side]
    source = full.data["grf_source"].sel(foot=foot).values if "grf_source" in full.data else "plate"
    loaded = (full.data["ground_reaction_force"].sel(foot=foot, axis="z").values > 20.0) & (source == "plate")
    angles, moments = {}, {}
    for name in ("hip_flexion", "knee_flexion", "ankle_flexion"):
        one, two = (t.data.sel(coordinate=f"{name}_{side}") for t in (full, part))
        angles[name] = np.degrees(np.sqrt(np.mean((one["coordinate_value"] - two["coordinate_value"]).values ** 2)))
        known = loaded & np.isfinite(two["torque"].values)
        assert known.sum() > 0.7 * loaded.sum()
        apart = (one["torque"] - two["torque"]).values[known]
        moments[name] = np.sqrt(np.mean(apart**2)) / np.abs(one["torque"].values[known]).max()
    return angles, moments


@pytest.fixture(scope="module")
def legs(walk, analyzed, tmp_path_factory):
    """Return the analysis of the walk without trunk and arms."""
    folder = tmp_path_factory.mktemp("legs")
    without(walk.recording, analyzed.energy.torques.motion.model, TRUNK).to_netcdf(folder / "legs.nc")
    return analyze([folder / "legs.nc"], folder / "out", AnalysisSettings())[0]


def test_legs_have_the_moments_of_the_whole_body(analyzed, legs):
    for side in "rl":
        angles, moments = differences(analyzed.energy.torques, legs.energy.torques, side)
        assert max(angles["knee_flexion"], angles["ankle_flexion"]) < MAX_ANGLE, angles
        assert max(moments["knee_flexion"], moments["ankle_flexion"]) < MAX_MOMENT, moments


def test_what_needs_the_trunk_is_absent(legs):
    data, energy = legs.energy.torques.data, legs.energy.data
    names = set(map(str, data["coordinate"].values))
    assert "knee_flexion_r" in names and not any("sacral" in name or "elbow" in name for name in names)
    assert np.isnan(data["residual_force"].values).all() and np.isnan(energy["center_of_mass"].values).all()
    assert np.isnan(data["torque"].sel(coordinate="root_z").values).all()
    assert np.isnan(data["joint_reaction_force"].sel(joint="sacral").values).all()
    assert np.isfinite(data["torque"].sel(coordinate="knee_flexion_r").values).mean() > 0.5
    summary = json.loads((legs.folder / "summary.json").read_text())
    assert summary["residual_force_rms_n"] is None and summary["positive_work_j"] is None
    assert legs.predicted_grf is None and summary["peak_torque_coordinate"].endswith(("_r", "_l"))
    assert any("from the ground up" in text for text in summary["warnings"])
    report = (legs.folder / "report.html").read_text()
    assert 'id="residuals"' not in report and ">nan" not in report and "Leg moments are computed" in report
    table = (legs.folder / "moments.sto").read_text()
    assert "lumbar" not in table and "nan" in table.splitlines()[7].split("\t")
    again = read_stage(legs.folder / "energy.nc")
    assert again.torques.data.equals(data) and "unmarked_parts" in {note.code for note in legs.fit.notes}


def test_a_foot_off_the_plates_has_no_moments(walk, analyzed):
    """Forces of one foot removed: that leg's moments are absent while it stands, not computed with zero force."""
    recording = clean(without(walk.recording, analyzed.energy.torques.motion.model, TRUNK), cutoff=None)
    force = recording.data["ground_reaction_force"].copy(deep=True)
    force.loc[{"foot": "left"}] = 0.0
    recording = recording.with_data(recording.data.assign(ground_reaction_force=force))
    motion = inverse_kinematics(fit_model(generic_model(AnalysisSettings(), recording), recording).model, recording)
    torques = inverse_dynamics(motion, forces="plates")
    stands = analyzed.energy.torques.data["ground_reaction_force"].sel(foot="left", axis="z").values > 100.0
    knee = torques.data["torque"].sel(coordinate="knee_flexion_l").values
    assert np.isnan(knee[stands]).all() and np.isfinite(knee).any()
    assert np.isnan(torques.data["ground_reaction_force"].sel(foot="left").values[stands]).all()
    with pytest.raises(ModelError, match="Parts of the body have no markers"):
        inverse_dynamics(motion, forces="predicted")
    with pytest.raises(SettingsError, match="simulates the whole body"):
        inverse_dynamics(motion, method="stepped")


PIG = "c3d/vicon_pig/PiG"
WALK, RAJAGOPAL = "opensim/subject01_walk/subject01", "opensim/rajagopal2016/walk"
TRIALS = {
    "vicon_pig": (f"{PIG}_Motion-FlatFoot-Full.c3d", f"{PIG}_Calibration-FlatFoot-Full.c3d", None),
    "qualisys_walk": ("c3d/qualisys_walk/Qualisys.c3d", None, None),
    "subject01_walk": (f"{WALK}_walk1.trc", f"{WALK}_static.trc", f"{WALK}_walk1_grf.mot"),
    "rajagopal2016": (
        f"{RAJAGOPAL}/motion_capture_walk.trc", f"{RAJAGOPAL}/static_walk_1.trc", f"{RAJAGOPAL}/grf_walk.mot",
    ),
}  # fmt: skip


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("bodies", [ARMS, TRUNK, LEFT_LEG], ids=["arms", "trunk", "left leg"])
@pytest.mark.parametrize("trial", TRIALS)
def test_parts_of_recordings_agree_with_the_whole(trial, bodies):
    """Ankle moments and knee angles agree for every part, ankle angles too without arms or trunk."""
    markers, static, forces = TRIALS[trial]
    settings = AnalysisSettings(
        mass=72.6, height=1.75, static=None if static is None else shared(static),
        forces=None if forces is None else shared(forces),
    )  # fmt: skip
    recording, still = read_trial(shared(markers), settings), read_static(settings)

    def run(one, two):
        fit = fit_model(generic_model(settings, one), one, static=two)
        return fit.model, compute_torques(run_inverse_kinematics(one, fit.model, StageSettings()), settings)

    model, full = run(recording, still)
    _, part = run(without(recording, model, bodies), None if still is None else without(still, model, bodies))
    for side in "r" if bodies is LEFT_LEG else "rl":
        angles, moments = differences(full, part, side)
        assert moments["ankle_flexion"] < MAX_MOMENT and angles["knee_flexion"] < MAX_ANGLE, (angles, moments)
        if bodies is not LEFT_LEG:
            assert max(angles["knee_flexion"], angles["ankle_flexion"]) < MAX_ANGLE, angles


@pytest.mark.data
@pytest.mark.slow
def test_a_recording_of_pelvis_and_legs_is_analyzed(tmp_path):
    (found,) = analyze([shared("c3d/motionmonitor_metres/Gait_with_EMG.c3d")], tmp_path, AnalysisSettings())
    assert found.summary["grf_source"] == "plates" and found.summary["residual_force_rms_n"] is None
    assert any("from the ground up" in text for text in found.summary["warnings"])
    assert 1.0 < found.summary["peak_torque_nm_per_kg"] < 3.0
