"""Recordings of a part of the body: the same leg moments as of the whole, and nothing that needs the rest."""

import json
from functools import cache

import numpy as np
import pytest

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import match_markers
from borelli.errors import ModelError, SettingsError
from borelli.export.stage_files import read_stage
from borelli.pipeline.analysis_settings import AnalysisSettings, generic_model, read_calibration, read_trial
from borelli.pipeline.analyze import analyze
from borelli.pipeline.stages import StageSettings, compute_torques, run_inverse_kinematics
from borelli.recording.clean import clean

from ..shared_data import shared
from .shared_trials import HAMNER, MONITOR, OPENCAP, OVERGROUND, PIG, RUN, SUBJECT01, WALK, settings_of

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
        assert max(angles.values()) < MAX_ANGLE, angles
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


def test_a_plate_under_both_feet_gives_no_moments(walk, analyzed):
    """All force of the left foot moved 0.2 m to the side, as where one plate carries both feet."""
    recording = clean(without(walk.recording, analyzed.energy.torques.motion.model, TRUNK), cutoff=None)
    center = recording.data["center_of_pressure"].copy(deep=True)
    center.loc[{"foot": "left"}] += np.array([0.0, -0.2, 0.0])
    recording = recording.with_data(recording.data.assign(center_of_pressure=center))
    motion = inverse_kinematics(fit_model(generic_model(AnalysisSettings(), recording), recording).model, recording)
    torques = inverse_dynamics(motion, forces="plates").data
    stands = analyzed.energy.torques.data["ground_reaction_force"].sel(axis="z").values > 100.0
    for column, side in enumerate(analyzed.energy.torques.data["foot"].values):
        knee = torques["torque"].sel(coordinate=f"knee_flexion_{side[0]}").values[stands[:, column]]
        assert np.isnan(knee).all() if side == "left" else np.isfinite(knee).mean() > 0.5


TRIALS = {
    "pig": f"{PIG}_Motion-FlatFoot-Full.c3d", "overground": OVERGROUND, "qualisys": "c3d/qualisys_walk/Qualisys.c3d",
    "subject01": f"{SUBJECT01}_walk1.trc", "rajagopal2016": f"{WALK}/motion_capture_walk.trc",
    "opencap walk": f"{OPENCAP}/walking1.trc", "opencap drop jump": f"{OPENCAP}/DJ1.trc",
    "rajagopal2015 run": f"{RUN}/motion_capture_run.trc", "hamner run": f"{HAMNER}_running.trc",
    "motion analysis gait": "c3d/motionanalysis_gait/Gait.c3d",
    "motion analysis walk": "c3d/motionanalysis_walk_jump/Walk1.c3d",
    "motion analysis jump": "c3d/motionanalysis_walk_jump/Sample_Jump2.c3d",
    "walking2": "c3d/opensim_walking2/walking2.c3d", "stairs": "c3d/pycgm_movement/Movement_trial.c3d",
    "sprint": "c3d/sprint_8plates/JA1Gait35.c3d", "motion monitor": f"{MONITOR}/Gait_with_EMG.c3d",
}  # fmt: skip
"""All shared trials with plates and most of the markers of a person."""
PARTS = {"arms": ARMS, "trunk": TRUNK, "left leg": LEFT_LEG}
ABSENT = (("walking2", "arms"), ("motion monitor", "arms"), ("motion monitor", "trunk"))
"""Trials without markers on these parts."""
ONE_LEG = "without the other leg, joint centers of hip and knee change by 0.4 to 5 mm"
BEYOND = {(trial, "left leg"): ONE_LEG for trial in ("pig", "sprint", "rajagopal2015 run")}
"""Parts that differ from the whole by more than the limits, and why."""


def _cases():
    for trial in TRIALS:
        for part in PARTS:
            if (trial, part) not in ABSENT:
                why = BEYOND.get((trial, part))
                yield pytest.param(trial, part, marks=[pytest.mark.xfail(reason=why, strict=True)] if why else [])


def _run(recording, static, settings):
    fit = fit_model(generic_model(settings, recording), recording, static=static)
    return fit.model, compute_torques(run_inverse_kinematics(recording, fit.model, StageSettings()), settings)


@cache
def _whole(trial):
    """Return settings, recording, static trial, model and torques of a whole body; markers are those of the model."""
    settings = settings_of(TRIALS[trial])
    recording, still = read_trial(shared(TRIALS[trial]), settings), read_calibration(settings).static
    model, _ = _run(recording, still, settings)
    recording, still = (None if one is None else without(one, model, ()) for one in (recording, still))
    return settings, recording, still, *_run(recording, still, settings)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("trial", "part"), [*_cases()])
def test_parts_of_recordings_agree_with_the_whole(trial, part):
    """Hip, knee and ankle flexion angles agree, and knee and ankle moments where a plate carries the foot."""
    settings, recording, still, model, full = _whole(trial)
    one, two = (None if r is None else without(r, model, PARTS[part]) for r in (recording, still))
    _, found = _run(one, two, settings)
    for side in "r" if part == "left leg" else "rl":
        angles, moments = differences(full, found, side)
        assert max(angles.values()) < MAX_ANGLE, angles
        assert max(moments["knee_flexion"], moments["ankle_flexion"]) < MAX_MOMENT, moments


@pytest.mark.data
def test_a_leg_without_pelvis_has_the_moments_of_the_whole_where_its_foot_is_on_a_plate():
    """The other leg swings with the thigh, and says nothing of where the ground is and how fast."""
    settings, recording, _, model, full = _whole("motion analysis gait")
    leg = without(recording, model, [*TRUNK, *LEFT_LEG, "pelvis"])
    _, found = _run(leg, None, settings)
    source = full.data["grf_source"].sel(foot="right").values == "plate"
    stands = full.data["ground_reaction_force"].sel(foot="right", axis="z").values > 100.0
    for name in ("knee_flexion_r", "ankle_flexion_r"):
        one, two = (torques.data["torque"].sel(coordinate=name).values for torques in (full, found))
        known = np.isfinite(two)
        assert known[stands & source].mean() > 0.9 and known[stands & ~source].mean() < 0.1  # ends of steps
        assert np.sqrt(np.mean((one - two)[known] ** 2)) < 0.05 * np.abs(one).max()
    assert any("from the ground up" in note.text and "right 7" in note.text for note in found.notes)


@pytest.mark.data
@pytest.mark.slow
def test_a_recording_of_pelvis_and_legs_is_analyzed(tmp_path):
    (found,) = analyze([shared("c3d/motionmonitor_metres/Gait_with_EMG.c3d")], tmp_path, AnalysisSettings())
    assert found.summary["grf_source"] == "plates" and found.summary["residual_force_rms_n"] is None
    assert any("from the ground up" in text for text in found.summary["warnings"])
    assert 1.0 < found.summary["peak_torque_nm_per_kg"] < 3.0
