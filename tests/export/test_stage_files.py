"""Stage files, summary and tables: round trips, damaged files, atomic writes."""

import json
from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.ground.predict_grf import predict_grf
from borelli.errors import FileFormatError
from borelli.export.grf_agreement import compare_feet, foot_direction
from borelli.export.opensim_names import opensim_name, pelvis_coordinates
from borelli.export.stage_files import read_fit, read_provenance, read_stage, to_json_values, write_fit, write_stage
from borelli.export.summary import STAGES, summarize
from borelli.export.tables import coordinate_table, ground_table, moment_table, power_table
from borelli.recording.io import read_recording

KEYS = {  # stable names
    "frames", "rate_hz", "marker_rms_mm", "marker_max_mm", "residual_force_rms_n", "residual_moment_rms_nm",
    "grf_vertical_rms_bw", "positive_work_j", "cost_of_transport_j_per_kg_m", "runtime_s",
}  # fmt: skip


def test_energy_is_read_with_everything_it_was_computed_from(analyzed, tmp_path):
    path = tmp_path / "e.nc"
    write_stage(analyzed.energy, path, {"key": "k", "runtime_s": 1.5})
    back = read_stage(path)
    assert back.data.equals(analyzed.energy.data)
    assert back.torques.data.equals(analyzed.energy.torques.data)
    assert back.torques.motion.model == analyzed.energy.torques.motion.model
    assert back.torques.motion.recording.notes == analyzed.energy.torques.motion.recording.notes
    assert back.summary == pytest.approx(dict(analyzed.energy.summary), nan_ok=True)
    assert read_provenance(path) == {"key": "k", "runtime_s": 1.5}
    # the energy of torques that were read is the same
    again = compute_energy(back.torques)
    assert again.summary == pytest.approx(dict(analyzed.energy.summary), rel=1e-9, nan_ok=True)


def test_earlier_stages_are_read_as_their_own_types(analyzed, tmp_path):
    for name in ("motion", "torques"):
        stage = analyzed.energy.torques if name == "torques" else analyzed.energy.torques.motion
        write_stage(stage, tmp_path / "s.nc", overwrite=True)
        assert type(read_stage(tmp_path / "s.nc")) is type(stage)


def test_groups_copied_from_the_previous_file_are_the_same(analyzed, tmp_path):
    energy, motion = analyzed.energy, analyzed.energy.torques.motion
    files = {name: tmp_path / f"{name}.nc" for name in ("motion", "torques", "energy", "other")}
    write_stage(motion, files["motion"])
    write_stage(energy.torques, files["torques"], {"key": "t"}, previous=(motion, files["motion"]))
    write_stage(energy, files["energy"], {"key": "e"}, previous=(energy.torques, files["torques"]))
    back = read_stage(files["energy"])
    assert back.data.equals(energy.data) and back.torques.data.equals(energy.torques.data)
    assert back.torques.motion.data.equals(motion.data) and back.torques.motion.model == motion.model
    assert read_provenance(files["energy"]) == {"key": "e"} and read_provenance(files["torques"]) == {"key": "t"}
    # nothing is copied from the file of another motion
    moved = replace(motion, data=motion.data.assign(coordinate_value=motion.data["coordinate_value"] + 1.0))
    write_stage(moved, files["other"], previous=(motion, files["motion"]))
    assert read_stage(files["other"]).data.equals(moved.data)


def test_fit_is_read_as_written(analyzed, tmp_path):
    write_fit(analyzed.fit, tmp_path / "f.nc")
    back = read_fit(tmp_path / "f.nc")
    assert back.model == analyzed.fit.model and back.notes == analyzed.fit.notes
    assert back.lengths == analyzed.fit.lengths


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n damaged", b"text"])
def test_damaged_file_is_rejected(content, tmp_path):
    path = tmp_path / "bad.nc"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"bad\.nc"):
        read_stage(path)
    with pytest.raises(FileFormatError, match=r"bad\.nc"):
        read_fit(path)
    assert read_provenance(path) == {}


def test_truncated_file_is_rejected(analyzed, tmp_path):
    path = tmp_path / "cut.nc"
    write_stage(analyzed.energy.torques.motion, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(FileFormatError):
        read_stage(path)


def test_summary_has_stable_names(analyzed):
    summary = json.loads((analyzed.folder / "summary.json").read_text())
    assert set(summary) >= KEYS
    assert tuple(summary["runtime_s"]) == STAGES
    assert {stage for stage, value in summary["runtime_s"].items() if value is None} == {"muscles"}
    assert summary["frames"] == 347 and summary["rate_hz"] == 100.0
    bare = summarize(analyzed.energy)
    assert bare["grf_vertical_rms_bw"] is None and bare["runtime_s"]["fit"] is None


def test_tables_have_names_and_axes_of_opensim(analyzed):
    motion = read_recording(analyzed.folder / "coordinates.mot")
    names = [str(name) for name in motion.data["coordinate"].values]
    assert {"pelvis_tilt", "pelvis_ty", "hip_flexion_r", "knee_angle_l", "ankle_angle_r", "elbow_flex_l"} <= set(names)
    own = analyzed.energy.torques.motion
    knee = own.data["coordinate_value"].sel(coordinate="knee_flexion_l").values
    assert motion.data["coordinate_value"].sel(coordinate="knee_angle_l").values == pytest.approx(knee, abs=1e-8)
    forces = read_recording(analyzed.folder / "ground_forces.mot")
    total = forces.data["plate_force"].sel(axis="z").sum("plate").values
    feet = analyzed.energy.torques.data["ground_reaction_force"].sel(axis="z").sum("foot").values
    assert total == pytest.approx(feet, abs=1e-5)
    _, names, values = moment_table(analyzed.energy.torques)
    assert names[:6] == ["pelvis_tilt_moment", "pelvis_list_moment", "pelvis_rotation_moment",
                         "pelvis_tx_force", "pelvis_ty_force", "pelvis_tz_force"]  # fmt: skip
    residual = analyzed.energy.torques.data["residual_force"].values
    assert values[:, 4] == pytest.approx(residual[:, 2]) and values[:, 5] == pytest.approx(-residual[:, 1])


def test_pelvis_angles_are_those_of_opensim(analyzed):
    """Cardan angles z, x, y in a frame with y up reproduce the orientation of the pelvis."""
    from scipy.spatial.transform import Rotation

    motion = analyzed.energy.torques.motion
    tilt, side, rotation = pelvis_coordinates(motion)[:, :3].T
    found = Rotation.from_euler("ZXY", np.stack([tilt, side, rotation], axis=1))
    own = Rotation.from_quat(np.roll(motion.data["body_orientation"].values[:, 0], -1, axis=1)).as_matrix()
    y_up = np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
    assert found.as_matrix() == pytest.approx(y_up @ own @ y_up.T, abs=1e-9)


def test_pelvis_power_is_the_residual_power(analyzed):
    """Generalized forces along OpenSim's pelvis coordinates have the power of the residual wrench."""
    torques = analyzed.energy.torques
    time, _, forces = moment_table(torques)
    _, _, values = coordinate_table(torques.motion)
    q = values[:, :6].copy()
    q[:, :3] = np.radians(q[:, :3])
    from scipy.signal import savgol_filter

    rate = torques.motion.rate
    power = (forces[:, :6] * savgol_filter(q, 15, 3, deriv=1, delta=1.0 / rate, axis=0)).sum(axis=1)
    expected = analyzed.energy.data["residual_power"].values
    inner = slice(10, -10)
    assert np.corrcoef(power[inner], expected[inner])[0, 1] > 0.95  # these angles are not filtered
    assert len(time) == len(power_table(analyzed.energy)[2])


def test_names_of_other_models_are_unchanged():
    assert opensim_name("knee_flexion_r") == "knee_angle_r"
    assert opensim_name("pelvis_tilt") == "pelvis_tilt" and opensim_name("lumbar_flexion") == "lumbar_flexion"


@pytest.fixture(scope="module")
def measured_and_predicted(analyzed):
    """Return measured forces, predicted forces, and body weight."""
    torques = analyzed.energy.torques
    return torques.data, predict_grf(torques.motion), 9.81 * torques.motion.model.mass


def test_comparison_uses_frames_with_complete_forces_only(measured_and_predicted):
    measured, predicted, weight = measured_and_predicted
    same = predicted.assign(ground_reaction_force=measured["ground_reaction_force"])
    feet = compare_feet(measured, same, weight)
    assert [one.foot for one in feet] == ["right", "left"]
    assert all(one.vertical_rms == 0.0 and one.vertical_r == pytest.approx(1.0) for one in feet)
    late = measured["time"].values > 1.7
    wrong = same.copy(deep=True)
    wrong["ground_reaction_force"].values[late] *= 1.1
    assert compare_feet(measured, wrong, weight)[0].vertical_rms > 3.0
    incomplete = measured.assign(grf_complete=measured["grf_complete"] & ~late)
    assert all(one.vertical_rms == 0.0 for one in compare_feet(incomplete, wrong, weight))


def test_comparison_does_not_depend_on_walking_direction(measured_and_predicted):
    """Rotated by 90 degrees, so that the walk is along y, the agreement is the same."""
    measured, predicted, weight = measured_and_predicted
    rotation = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # x to y, y to -x, of rows
    rotated = [
        data.assign({name: data[name].copy(data=data[name].values @ rotation) for name in names})
        for data, names in (
            (measured, ("ground_reaction_force", "center_of_pressure")),
            (predicted, ("ground_reaction_force", "center_of_pressure", "sole_position")),
        )
    ]
    assert foot_direction(predicted)[0] > 0.99 and foot_direction(rotated[1])[1] > 0.99
    for first, second in zip(compare_feet(measured, predicted, weight), compare_feet(*rotated, weight), strict=True):
        assert first[1:] == pytest.approx(second[1:], rel=1e-9)
        assert first.center_forward != pytest.approx(first.center_sideways, rel=0.05)


def test_values_are_converted_to_json_types():
    values = to_json_values({"a": np.float64(1.5), "b": float("nan"), "c": np.arange(2), "d": (1, "x"), 5: None})
    assert values == {"a": 1.5, "b": None, "c": [0, 1], "d": [1, "x"], "5": None}
    json.dumps(values, allow_nan=False)


def test_ground_table_is_y_up(analyzed):
    _, names, values = ground_table(analyzed.energy.torques)
    force = analyzed.energy.torques.data["ground_reaction_force"].sel(foot="right").values
    assert values[:, names.index("ground_force_r_vy")] == pytest.approx(force[:, 2])
    assert values[:, names.index("ground_force_r_vz")] == pytest.approx(-force[:, 1])
