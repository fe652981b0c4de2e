"""Stages as files: what is read is what was written; damage is told; nothing is left half written."""

import json
from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.ground.predict_grf import predict_grf
from borelli.errors import FileFormatError
from borelli.export.grf_agreement import compare_feet, foot_direction
from borelli.export.opensim_names import opensim_name, pelvis_coordinates
from borelli.export.stage_files import read_provenance, to_json_values, read_fit, read_stage, write_fit, write_stage
from borelli.export.summary import STAGES, summarize
from borelli.export.tables import coordinate_table, ground_table, moment_table, power_table
from borelli.files.atomic import atomic_path, remove_stale_temporaries
from borelli.recording.io import read_recording

KEYS = {  # names that stay
    "frames", "rate_hz", "marker_rms_mm", "marker_max_mm", "residual_force_rms_n", "residual_moment_rms_nm",
    "grf_vertical_rms_bw", "positive_work_j", "cost_of_transport_j_per_kg_m", "seconds",
}  # fmt: skip


def test_energy_comes_back_with_all_it_was_made_from(analysed, tmp_path):
    path = tmp_path / "e.nc"
    write_stage(analysed.energy, path, {"key": "k", "seconds": 1.5})
    back = read_stage(path)
    assert back.data.equals(analysed.energy.data)
    assert back.torques.data.equals(analysed.energy.torques.data)
    assert back.torques.motion.model == analysed.energy.torques.motion.model
    assert back.torques.motion.recording.notes == analysed.energy.torques.motion.recording.notes
    assert back.summary == pytest.approx(dict(analysed.energy.summary), nan_ok=True)
    assert read_provenance(path) == {"key": "k", "seconds": 1.5}
    # and work can go on from it: the same books, from torques that were read
    again = compute_energy(back.torques)
    assert again.summary == pytest.approx(dict(analysed.energy.summary), rel=1e-9, nan_ok=True)


def test_earlier_stages_come_back_as_themselves(analysed, tmp_path):
    for name in ("motion", "torques"):
        stage = analysed.energy.torques if name == "torques" else analysed.energy.torques.motion
        write_stage(stage, tmp_path / "s.nc")
        assert type(read_stage(tmp_path / "s.nc")) is type(stage)


def test_a_file_written_upon_that_of_the_stage_before_holds_the_same(analysed, tmp_path):
    energy, motion = analysed.energy, analysed.energy.torques.motion
    files = {name: tmp_path / f"{name}.nc" for name in ("motion", "torques", "energy", "other")}
    write_stage(motion, files["motion"])
    write_stage(energy.torques, files["torques"], {"key": "t"}, upon=(motion, files["motion"]))
    write_stage(energy, files["energy"], {"key": "e"}, upon=(energy.torques, files["torques"]))
    back = read_stage(files["energy"])
    assert back.data.equals(energy.data) and back.torques.data.equals(energy.torques.data)
    assert back.torques.motion.data.equals(motion.data) and back.torques.motion.model == motion.model
    assert read_provenance(files["energy"]) == {"key": "e"} and read_provenance(files["torques"]) == {"key": "t"}
    # of a motion that is not the one in the file, nothing is taken from there
    moved = replace(motion, data=motion.data.assign(coordinate_value=motion.data["coordinate_value"] + 1.0))
    write_stage(moved, files["other"], upon=(motion, files["motion"]))
    assert read_stage(files["other"]).data.equals(moved.data)


def test_fit_comes_back(analysed, tmp_path):
    write_fit(analysed.fit, tmp_path / "f.nc")
    back = read_fit(tmp_path / "f.nc")
    assert back.model == analysed.fit.model and back.notes == analysed.fit.notes
    assert back.lengths == analysed.fit.lengths


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n damaged", b"text"])
def test_damaged_file_is_told(content, tmp_path):
    path = tmp_path / "bad.nc"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"bad\.nc"):
        read_stage(path)
    assert read_provenance(path) == {} and read_fit(path) is None


def test_cut_off_file_is_told(analysed, tmp_path):
    path = tmp_path / "cut.nc"
    write_stage(analysed.energy.torques.motion, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(FileFormatError):
        read_stage(path)


def test_nothing_is_left_half_written(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_path(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_leftovers_of_dead_processes_are_swept_those_of_living_stay(tmp_path):
    import os

    dead, living = tmp_path / ".a.nc.999999999.tmp", tmp_path / f".a.nc.{os.getpid()}.tmp"
    for path in (dead, living):
        path.write_text("half")
    remove_stale_temporaries(tmp_path)
    assert not dead.exists() and living.exists()


def test_summary_has_the_names_that_stay(analysed):
    summary = json.loads((analysed.folder / "summary.json").read_text())
    assert set(summary) >= KEYS
    assert tuple(summary["seconds"]) == STAGES
    assert all(value is not None for value in summary["seconds"].values())
    assert summary["frames"] == 347 and summary["rate_hz"] == 100.0
    bare = summarize(analysed.energy)
    assert bare["grf_vertical_rms_bw"] is None and bare["seconds"]["fit"] is None


def test_tables_are_opensims(analysed):
    motion = read_recording(analysed.folder / "coordinates.mot")
    names = [str(name) for name in motion.data["coordinate"].values]
    assert {"pelvis_tilt", "pelvis_ty", "hip_flexion_r", "knee_angle_l", "ankle_angle_r", "elbow_flex_l"} <= set(names)
    own = analysed.energy.torques.motion
    knee = own.data["coordinate_value"].sel(coordinate="knee_flexion_l").values
    assert motion.data["coordinate_value"].sel(coordinate="knee_angle_l").values == pytest.approx(knee, abs=1e-8)
    forces = read_recording(analysed.folder / "ground_forces.mot")
    total = forces.data["plate_force"].sel(axis="z").sum("plate").values
    feet = analysed.energy.torques.data["ground_reaction_force"].sel(axis="z").sum("foot").values
    assert total == pytest.approx(feet, abs=1e-5)
    _, names, values = moment_table(analysed.energy.torques)
    assert names[:6] == ["pelvis_tilt_moment", "pelvis_list_moment", "pelvis_rotation_moment",
                         "pelvis_tx_force", "pelvis_ty_force", "pelvis_tz_force"]  # fmt: skip
    residual = analysed.energy.torques.data["residual_force"].values
    assert values[:, 4] == pytest.approx(residual[:, 2]) and values[:, 5] == pytest.approx(-residual[:, 1])


def test_pelvis_angles_are_those_of_opensim(analysed):
    """The Cardan angles z, x, y in a frame with y up give back the pelvis's turn."""
    from scipy.spatial.transform import Rotation

    motion = analysed.energy.torques.motion
    tilt, side, turn = pelvis_coordinates(motion)[:, :3].T
    found = Rotation.from_euler("ZXY", np.stack([tilt, side, turn], axis=1))
    own = Rotation.from_quat(motion.data["body_orientation"].values[:, 0], scalar_first=True).as_matrix()
    y_up = np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
    assert found.as_matrix() == pytest.approx(y_up @ own @ y_up.T, abs=1e-9)


def test_pelvis_power_is_the_residuals(analysed):
    """Forces along OpenSim's pelvis coordinates do the work that the residual wrench does."""
    torques = analysed.energy.torques
    time, _, forces = moment_table(torques)
    _, _, values = coordinate_table(torques.motion)
    q = values[:, :6].copy()
    q[:, :3] = np.radians(q[:, :3])
    from scipy.signal import savgol_filter

    rate = torques.motion.rate
    power = (forces[:, :6] * savgol_filter(q, 15, 3, deriv=1, delta=1.0 / rate, axis=0)).sum(axis=1)
    expected = analysed.energy.data["residual_power"].values
    inner = slice(10, -10)
    assert np.corrcoef(power[inner], expected[inner])[0, 1] > 0.95  # raw angles here, filtered ones there
    assert len(time) == len(power_table(analysed.energy)[2])


def test_names_of_others_stay():
    assert opensim_name("knee_flexion_r") == "knee_angle_r"
    assert opensim_name("pelvis_tilt") == "pelvis_tilt" and opensim_name("lumbar_flexion") == "lumbar_flexion"


@pytest.fixture(scope="module")
def beside(analysed):
    """Forces as plates gave them and as the motion alone gives them, and the weight."""
    torques = analysed.energy.torques
    return torques.data, predict_grf(torques.motion), 9.81 * torques.motion.model.mass


def test_comparison_keeps_to_frames_that_plates_cover(beside):
    measured, computed, weight = beside
    same = computed.assign(ground_reaction_force=measured["ground_reaction_force"])
    alike = compare_feet(measured, same, weight)
    assert [one.foot for one in alike] == ["right", "left"]
    assert all(one.vertical_rms == 0.0 and one.vertical_r == pytest.approx(1.0) for one in alike)
    late = measured["time"].values > 1.7
    wrong = same.copy(deep=True)
    wrong["ground_reaction_force"].values[late] *= 1.1
    assert compare_feet(measured, wrong, weight)[0].vertical_rms > 3.0
    blind = measured.assign(grf_complete=measured["grf_complete"] & ~late)
    assert all(one.vertical_rms == 0.0 for one in compare_feet(blind, wrong, weight))


def test_comparison_knows_forward_whichever_way_the_walk_goes(beside):
    """Turned by 90 degrees, so that it goes along y: the same figures, though x and y change places."""
    measured, computed, weight = beside
    turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # x to y, y to -x, of rows
    turned = [
        data.assign({name: data[name].copy(data=data[name].values @ turn) for name in names})
        for data, names in (
            (measured, ("foot_force", "foot_center_of_pressure")),
            (computed, ("foot_force", "foot_center_of_pressure", "sole_position")),
        )
    ]
    assert foot_direction(computed)[0] > 0.99 and foot_direction(turned[1])[1] > 0.99
    for first, second in zip(compare_feet(measured, computed, weight), compare_feet(*turned, weight), strict=True):
        assert first[1:] == pytest.approx(second[1:], rel=1e-9)
        assert first.center_forward != pytest.approx(first.center_sideways, rel=0.05)


def test_plain_values_are_what_json_can_say():
    told = to_json_values({"a": np.float64(1.5), "b": float("nan"), "c": np.arange(2), "d": (1, "x"), 5: None})
    assert told == {"a": 1.5, "b": None, "c": [0, 1], "d": [1, "x"], "5": None}
    json.dumps(told, allow_nan=False)


def test_ground_table_is_y_up(analysed):
    _, names, values = ground_table(analysed.energy.torques)
    force = analysed.energy.torques.data["ground_reaction_force"].sel(foot="right").values
    assert values[:, names.index("ground_force_r_vy")] == pytest.approx(force[:, 2])
    assert values[:, names.index("ground_force_r_vz")] == pytest.approx(-force[:, 1])
