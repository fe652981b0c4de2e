"""Preparation of trials of any kind, and the notes and warnings about them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from borelli.analysis.dynamics.residual_limits import judge_residuals
from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.motion import make_motion
from borelli.errors import SettingsError
from borelli.export.stage_files import read_fit
from borelli.people.human import human
from borelli.pipeline.analysis_settings import (
    AnalysisSettings,
    generic_model,
    missing_marker_notes,
    read_calibration,
    read_trial,
    size_notes,
)
from borelli.pipeline.analyze import analyze
from borelli.pipeline.stages import StageSettings, compute_torques, run_inverse_kinematics
from borelli.recording.cleaning.trim_to_visible import trim_to_visible
from borelli.recording.forces.assign_to_feet import assign_plates
from borelli.recording.formats.trc import write_trc
from borelli.recording.joint_center_markers import use_joint_centers_as_markers
from borelli.recording.recording import Recording, make_dataset
from borelli.synthetic.recordings import synthetic_recording

from ..shared_data import shared
from .shared_trials import OVERGROUND, PIG, settings_of


def test_ends_with_few_visible_markers_are_trimmed(walk):
    data = walk.recording.data
    points = data["marker_position"].values.copy()
    points[:30, 5:] = np.nan
    points[-20:, :20] = np.nan
    points[100:110, 5:] = np.nan  # a gap inside stays
    half = walk.recording.with_data(data.assign(marker_position=data["marker_position"].copy(data=points)))
    kept = trim_to_visible(half)
    assert kept.frames == half.frames - 50 and kept.notes[-1].kind == "problem"
    assert "50 of" in kept.notes[-1].text and "0.30 s" in kept.notes[-1].text
    assert trim_to_visible(half, start=False).frames == half.frames - 20
    assert trim_to_visible(half, start=False, end=False) is half and trim_to_visible(walk.recording) is walk.recording


def test_start_and_end_do_not_apply_to_the_static_trial(walk, tmp_path):
    walk.recording.to_netcdf(tmp_path / "static.nc")
    settings = AnalysisSettings(static=tmp_path / "static.nc", start=0.5, end=1.0)
    assert read_calibration(settings).static.frames == walk.recording.frames
    assert read_trial(tmp_path / "static.nc", settings).frames < walk.recording.frames
    assert read_calibration(AnalysisSettings()).static is None


def test_one_file_of_forces_is_rejected_for_several_recordings(tmp_path):
    with pytest.raises(SettingsError, match=r"plates.mot: The plates of one file cannot belong to 2 recordings"):
        analyze([Path("a.trc"), Path("b.trc")], tmp_path, AnalysisSettings(forces=Path("plates.mot")))


def test_unknown_mass_is_estimated_from_the_plates(walk, tmp_path):
    replace(walk.recording, subject={}).to_netcdf(tmp_path / "walk.nc")
    found = analyze([tmp_path / "walk.nc"], tmp_path / "out", AnalysisSettings())[0]
    assert found.summary["mass_kg"] == pytest.approx(68.0, rel=0.02)  # the synthetic subject's
    assert read_fit(tmp_path / "out" / "fit.nc").model.mass == pytest.approx(found.summary["mass_kg"])
    codes = [note.code for note in found.fit.notes]
    assert "mass_from_plates" in codes and "mass_assumed" not in codes
    assert not any("Body mass" in text for text in found.summary["warnings"])
    # drawn models have the same mass, from the first fit and from the fit that a second run solves again
    assert found.fit.draw(np.random.default_rng(0)).mass == pytest.approx(found.summary["mass_kg"])
    again = analyze([tmp_path / "walk.nc"], tmp_path / "out", AnalysisSettings(monte_carlo=2))[0]
    weight = again.uncertainty.groups["torques"]["torque_gravity_high"].sel(coordinate="root_z").values
    # the interval of two repeats with an error of body mass of 1 %
    assert again.reused_stages[0] == "fit" and weight == pytest.approx(9.81 * found.summary["mass_kg"], rel=0.05)


def test_joint_centers_replace_missing_markers():
    centers = np.zeros((20, 3, 3)) + 0.01 * np.arange(20)[:, None, None]
    data = make_dataset({"joint_center": centers, "coordinate_value": np.zeros((20, 1))},
                        {"joint": ["Hips", "Neck", "Head"], "coordinate": ["q"]}, rate=30.0)  # fmt: skip
    result = use_joint_centers_as_markers(Recording(data))
    assert result.markers == ("Hips", "Neck", "Head") and result.frames == 20 and result.notes[-1].kind == "problem"
    centers[0] -= 1.0
    jump = data.assign(joint_center=data["joint_center"].copy(data=centers))
    assert use_joint_centers_as_markers(Recording(jump)).frames == 19
    assert use_joint_centers_as_markers(result) is result


def test_trunk_without_markers_is_reported():
    model = human(70.0, 1.75, markers="motion_monitor")  # pelvis and legs
    zero = np.zeros((9, len(model.coordinates)))
    unmarked = make_motion(model, zero, np.arange(9) / 100.0, 100.0, markers=model.markers)
    (note,) = missing_marker_notes(unmarked)
    assert "upper_torso" in note.text and note.code == "segments_without_markers" and note.kind == "problem"
    complete = human(70.0, 1.75, markers="cmu41")
    zero = np.zeros((9, len(complete.coordinates)))
    assert (
        missing_marker_notes(make_motion(complete, zero, np.arange(9) / 100.0, 100.0, markers=complete.markers)) == ()
    )


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("opensim/subject01_walk/subject01_walk1_grf.mot", "--forces subject01_walk1_grf.mot"),
        ("opensim/gait2392/reference/subject01_walk1_ik.mot", "joint angles"),
    ],
)
def test_files_without_markers_are_rejected_with_an_alternative(name, words):
    with pytest.raises(SettingsError, match="The file has no markers") as caught:
        read_trial(shared(name), AnalysisSettings())
    assert words in str(caught.value)


@pytest.mark.data
def test_skeleton_motion_and_markers_give_the_same_angles(tmp_path):
    """CMU 02_01 as AMC and as C3D is one walk; the solution in the AMC is rough."""
    settings = AnalysisSettings(mass=80.0, height=1.8)
    found = [
        analyze([shared(name)], tmp_path / str(k), settings)[0]
        for k, name in enumerate(("cmu/asfamc/02_01.amc", "hdm/data.c3d"))
    ]
    for name, least in (("hip_flexion_r", 0.98), ("knee_flexion_r", 0.93), ("ankle_flexion_r", 0.85)):
        one, two = (f.energy.torques.motion.data["coordinate_value"].sel(coordinate=name).values for f in found)
        assert np.corrcoef(one, two)[0, 1] > least, name
    assert found[0].summary["marker_rms_mm"] < 1.0
    assert any("no markers" in text for text in found[0].summary["warnings"])


Take = AnalysisSettings
TRIALS = {
    # file, settings, limits of vertical force error and residual force [% of body weight], and texts of warnings
    "walking2": ("c3d/opensim_walking2/walking2.c3d", Take(), 10.0, 10.0, ("835 of 1249 frames", "43 % of frames")),
    "stairs": ("c3d/pycgm_movement/Movement_trial.c3d", Take(), 8.0, 10.0, ("74 % of frames", "87.8 kg")),
    "sprint": ("c3d/sprint_8plates/JA1Gait35.c3d", Take(mass=68.1), 45.0, 65.0, ("90 % of frames", "75.5 kg")),
    "y up": (
        "opensim/rajagopal2016/walk/motion_capture_walk.trc", Take(mass=75.3), 13.0, 14.0, ("84.9 kg", "66 % of"),
    ),
}  # fmt: skip


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("trial", TRIALS)
def test_trials_of_other_labs(trial, tmp_path):
    """Missing samples, raised plates, eight plates, y up: each analyzed with the right warnings."""
    name, settings, vertical, residual, warnings = TRIALS[trial]
    if trial == "y up":
        settings = replace(settings, forces=shared("opensim/rajagopal2016/walk/grf_walk.mot"))
    summary = analyze([shared(name)], tmp_path, settings)[0].summary
    assert summary["grf_source"] == "plates and predicted"
    assert summary["grf_vertical_rms_bw"] < vertical and summary["residual_force_rms_bw"] < residual
    for words in warnings:
        assert any(words in text for text in summary["warnings"]), (words, summary["warnings"])
    assert summary["energy_balance_error_percent"] < 0.1


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit"),
    [(f"{PIG}_Motion-FlatFoot-Full.c3d", 4.0), (OVERGROUND, 7.0), ("c3d/pycgm_movement/Movement_trial.c3d", 3.0)],
)
def test_hip_flexion_agrees_with_plug_in_gait(name, limit):
    """Mean difference [deg] from the angles in the file; the axes of its pelvis are those of its markers, too."""
    settings = settings_of(name)
    recording = read_trial(shared(name), settings)
    model = fit_model(generic_model(settings, recording), recording, static=read_calibration(settings).static).model
    found = run_inverse_kinematics(recording, model, StageSettings()).data["coordinate_value"]
    for side in "RL":
        quantity = next(q for q in recording.data["quantity"].values if str(q).endswith(f"{side}HipAngles"))
        stated = recording.data["model_output"].sel(quantity=quantity, axis="x").values
        ours = np.degrees(found.sel(coordinate=f"hip_flexion_{side.lower()}").values)
        assert abs(np.nanmean(ours - stated)) < limit


def marker_file(walk, tmp_path, name="walk.trc"):
    """Return a file of the synthetic walk, z up, in millimeters."""
    write_trc(walk.recording, tmp_path / name, units="mm", up="+Z")
    return tmp_path / name


def test_wrong_units_and_axes_of_the_user_stop_the_analysis_with_the_remedy(walk, tmp_path):
    path = marker_file(walk, tmp_path)
    assert read_trial(path, AnalysisSettings()).data.attrs["file_up"] == "+Z"
    for reading, code, remedy in (({"up": "+Y"}, "up_axis", "--up +Z"), ({"units": "m"}, "length_unit", "--units mm")):
        with pytest.raises(SettingsError, match=f"Remedy: {re.escape(remedy)}. .*--ignore {code}") as error:
            read_trial(path, AnalysisSettings(reading=reading))
        assert path.name in str(error.value)
        kept = read_trial(path, AnalysisSettings(reading=reading, ignore=(code,)))
        assert any(note.code == code and note.kind == "problem" for note in kept.notes)


def test_warnings_of_the_quality_checks_are_in_the_notes(walk, tmp_path):
    """A plate far from the feet is loaded."""
    data = walk.recording.data
    center = data["plate_center_of_pressure"].copy(deep=True)
    center.values[:, 0] += (0.0, 4.0, 0.0)
    far = walk.recording.with_data(data.assign(plate_center_of_pressure=center).drop_vars("plate_corners"))
    far.to_netcdf(tmp_path / "far.nc")
    trial = read_trial(tmp_path / "far.nc", AnalysisSettings())
    assert any(note.code == "plate_assignment" and note.kind == "problem" for note in trial.notes)


@pytest.mark.parametrize(("speed", "falls"), [(1.0, False), (2.0, True)])
def test_a_body_that_falls_faster_than_gravity_allows_is_reported(speed, falls):
    """A jump played at twice its speed falls with four times gravity."""
    made = synthetic_recording("jump", noise=0.0, gaps=0.0)
    motion = make_motion(
        made.model, made.coordinates, made.recording.data["time"].values / speed, speed * made.recording.rate
    )
    notes = compute_torques(motion, AnalysisSettings(plates=False)).notes
    assert ("faster_than_gravity" in {note.code for note in notes}) == falls


def test_an_assumed_sex_is_mentioned(walk):
    unknown = replace(walk.recording, subject={"mass": 70.0, "height": 1.7})
    (note,) = size_notes(AnalysisSettings(), unknown)
    assert note.code == "sex_assumed" and note.action == "--sex" and note.kind == "inferred"
    assert size_notes(AnalysisSettings(sex="female"), unknown) == size_notes(AnalysisSettings(), walk.recording) == ()


def test_a_seat_is_reported_and_estimated_by_a_whole_analysis(tmp_path):
    made = synthetic_recording("sit_to_stand")
    made.recording.to_netcdf(tmp_path / "rise.nc")
    settings = AnalysisSettings(contact="pelvis", plate_cutoff=0.0)
    (found,) = analyze([tmp_path / "rise.nc"], tmp_path / "out", settings)
    weight = 68.0 * 9.81
    data = found.energy.torques.data
    seat = data["ground_reaction_force"].sel(foot="pelvis").values
    assert np.abs(seat - made.seat_force).max() < 0.1 * weight
    measured = assign_plates(made.recording).data["ground_reaction_force"].sel(foot=["right", "left"]).values
    assert np.array_equal(found.energy.torques.loads.force[:, :2], measured)
    assert any("seat" in text for text in found.summary["warnings"])
    assert "supports the subject" in (tmp_path / "out" / "report.html").read_text()
    assert "ground_force_pelvis_vy" in (tmp_path / "out" / "ground_forces.mot").read_text()


@pytest.mark.data
def test_residuals_after_reduction_are_stated_once(tmp_path):
    """Frames on plates and the height of the center of mass are those of the result, in its note and in its report."""
    (found,) = analyze([shared(OVERGROUND)], tmp_path, replace(settings_of(OVERGROUND), reduce_residuals=True))
    stated = found.energy.torques.settings["residual_reduction"]["after"]
    assert stated == judge_residuals(found.energy.torques)._asdict()
    assert stated["force_rms"] == pytest.approx(found.summary["residual_force_rms_n"])
