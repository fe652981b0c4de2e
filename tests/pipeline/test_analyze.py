"""Complete analyses: reuse of stages, arguments, notes and keys."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.export.stage_files import read_fit, read_stage
from borelli.kernels import source_hash
from borelli.pipeline import analyze as pipeline
from borelli.pipeline.analysis_settings import AnalysisSettings, generic_model, size_notes
from borelli.pipeline.analyze import analyze, result_hash

from ..shared_data import SHARED_DATA


@pytest.fixture
def folder(analyzed, tmp_path):
    """Return a copy of the analyzed folder and its recording."""
    shutil.copytree(analyzed.folder.parent, tmp_path / "run")
    return tmp_path / "run"


def stamps(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_every_stage_has_its_file(analyzed):
    names = {path.name for path in analyzed.folder.iterdir()}
    assert names == {
        "fit.nc", "model.toml", "motion.nc", "torques.nc", "energy.nc", "report.html", "summary.json",
        "coordinates.mot", "moments.sto", "powers.sto", "ground_forces.mot", "marker_errors.csv",
        "model.osim", "external_loads.xml", "borelli-results.jsonl", "angles.csv", "gait_cycles.csv",
        "gait_cycles_by_stride.csv", "gait_parameters.csv",
    }  # fmt: skip


def test_second_run_reuses_every_stage(analyzed, folder):
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0]
    assert again.reused_stages == ("fit", "ik", "id", "energy")
    same = {k: v for k, v in again.summary.items() if k not in ("runtime_s", "reused_stages")}
    assert same == {k: v for k, v in analyzed.summary.items() if k not in ("runtime_s", "reused_stages")}


def test_changed_setting_recomputes_only_dependent_stages(folder):
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings(cutoff=8.0))[0]
    assert again.reused_stages == ("fit", "ik")
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings(cutoff=8.0, mass=70.0))[0]
    assert again.reused_stages == ()


def test_damaged_stages_are_reported_and_computed_again(analyzed, folder):
    sound = {path.name: path.read_bytes() for path in (folder / "out").glob("*.nc")}
    (folder / "out" / "energy.nc").write_bytes(sound["energy.nc"][:-5000])
    place = sound["torques.nc"].index(b"torque") + 1000  # one flipped bit
    flipped = bytes([sound["torques.nc"][place] ^ 1])
    (folder / "out" / "torques.nc").write_bytes(
        sound["torques.nc"][:place] + flipped + sound["torques.nc"][place + 1 :]
    )
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0]
    assert again.reused_stages == ("fit", "ik")
    assert again.energy.data.identical(analyzed.energy.data)
    messages = again.summary["warnings"][:2]
    assert "energy.nc" in messages[0] and "no checksum" in messages[0]
    assert "torques.nc" in messages[1] and "damaged or was changed" in messages[1]
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0]
    assert again.reused_stages == ("fit", "ik", "id", "energy")
    assert again.summary["warnings"] == analyzed.summary["warnings"]


def test_damaged_fit_is_computed_again_and_an_unused_stage_is_restored(analyzed, folder):
    for name in ("fit.nc", "motion.nc"):
        path = folder / "out" / name
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0]
    assert again.reused_stages == ("ik", "id", "energy")
    assert "fit.nc" in again.summary["warnings"][0] and "motion.nc" in again.summary["warnings"][1]
    assert read_stage(folder / "out" / "motion.nc").data.identical(analyzed.energy.torques.motion.data)
    assert read_fit(folder / "out" / "fit.nc").data.equals(read_fit(analyzed.folder / "fit.nc").data)


def test_changed_recording_invalidates_all_stages(folder):
    from borelli.synthetic.recordings import synthetic_recording

    synthetic_recording("walk", seed=1).recording.to_netcdf(folder / "walk.nc", overwrite=True)
    assert analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0].reused_stages == ()


@pytest.mark.parametrize(
    "stage", ["fit_subject", "run_inverse_kinematics", "compute_torques", "compute_energy", "write_report"]
)
def test_interrupted_run_leaves_complete_files_and_can_be_continued(walk, tmp_path, monkeypatch, stage):
    walk.recording.to_netcdf(tmp_path / "walk.nc")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, stage, interrupt)
        with pytest.raises(KeyboardInterrupt):
            analyze([tmp_path / "walk.nc"], tmp_path / "out", AnalysisSettings())
    left = {path.name for path in (tmp_path / "out").glob("*")}
    assert (tmp_path / "out").exists() == bool(left)
    order = [("run_inverse_kinematics", "fit.nc"), ("compute_torques", "motion.nc"), ("compute_energy", "torques.nc"),
             ("write_report", "energy.nc")]  # fmt: skip
    done = [file for name, file in order if name in order_until(order, stage)]
    assert {name for name in left if name.endswith(".nc")} == set(done)
    assert not [name for name in left if name.endswith(".tmp") or name in ("report.html", "summary.json")]
    again = analyze([tmp_path / "walk.nc"], tmp_path / "out", AnalysisSettings())[0]
    assert len(again.reused_stages) == len(done)


def order_until(order, stage):
    names = [name for name, _ in order]
    return names[: names.index(stage) + 1] if stage in names else []


def test_interrupt_while_writing_keeps_the_old_file(folder, monkeypatch):
    import xarray

    before = stamps(folder / "out")
    original = xarray.Dataset.dump_to_store

    def interrupted(self, store, **options):
        original(self, store, **options)
        if "torque" in self:
            raise KeyboardInterrupt

    monkeypatch.setattr(xarray.Dataset, "dump_to_store", interrupted)
    with pytest.raises(KeyboardInterrupt):
        analyze([folder / "walk.nc"], folder / "out", AnalysisSettings(cutoff=9.0))
    assert stamps(folder / "out") == before


def test_several_recordings_share_one_fit(walk, tmp_path):
    half = walk.recording
    for name, frames in (("a", slice(0, 180)), ("b", slice(150, 330))):
        cut = half.data.isel(time=frames).drop_dims(["analog_time", "plate"], errors="ignore")
        cut = cut.assign_coords(time=cut["time"].values - cut["time"].values[0])
        replace(half, data=cut, name=name).to_netcdf(tmp_path / f"{name}.nc")
    found = analyze([tmp_path / "a.nc", tmp_path / "b.nc"], tmp_path / "out", AnalysisSettings())
    assert [one.folder.name for one in found] == ["a", "b"]
    assert found[0].energy.torques.motion.model == found[1].energy.torques.motion.model
    assert (tmp_path / "out" / "model.toml").exists() and (tmp_path / "out" / "b" / "report.html").exists()


def test_unknown_methods_are_rejected():
    with pytest.raises(SettingsError, match=r"Unknown ik_method 'smoothd'.*smoothed"):
        AnalysisSettings(ik_method="smoothd")
    with pytest.raises(SettingsError, match=r"Unknown id_method 'steped'.*stepped"):
        AnalysisSettings(id_method="steped")
    assert AnalysisSettings(id_method="newton-euler").id_method == "newton_euler"


def test_paths_may_be_text_or_paths(folder):
    for recordings in (str(folder / "walk.nc"), folder / "walk.nc", [str(folder / "walk.nc")], (folder / "walk.nc",)):
        (result,) = analyze(recordings, str(folder / "out"))
        assert result.reused_stages == ("fit", "ik", "id", "energy") and result.folder == folder / "out"
    assert AnalysisSettings(static="static.c3d").static == Path("static.c3d")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, "out"), "recordings: Expected a path or a list of paths, got int"),
        (([5], "out"), r"recordings: Expected a path \(text or Path\), got int"),
        ((["walk.c3d"], None), r"folder: Expected a path \(text or Path\), got NoneType"),
        ((["walk.c3d"], "out", {"mass": 70.0}), "settings: Expected AnalysisSettings, got dict"),
    ],
)
def test_wrong_types_are_rejected_in_a_sentence(arguments, message):
    with pytest.raises(SettingsError, match=message):
        analyze(*arguments)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [("mass", "70", "mass: Expected a number, got str '70'"), ("forces", 3, "forces: Expected a path")],
)
def test_settings_of_wrong_types_are_rejected(field, value, message):
    with pytest.raises(SettingsError, match=message):
        AnalysisSettings(**{field: value})


def test_repr_is_short(analyzed):
    text = repr(analyzed)
    assert len(text) < 600 and "walk.nc" in text and "347 frames" in text and "plates" in text


def test_recordings_must_exist_and_have_different_names(tmp_path):
    with pytest.raises(SettingsError, match="Two files are called 'walk'"):
        analyze([Path("x/walk.c3d"), Path("y/walk.c3d")], tmp_path)
    with pytest.raises(SettingsError, match="No recording is given"):
        analyze([], tmp_path)


def test_body_size_comes_from_settings_recording_or_default(walk):
    assert generic_model(AnalysisSettings(), walk.recording).mass == pytest.approx(68.0)
    assert generic_model(AnalysisSettings(mass=80.0), walk.recording).mass == pytest.approx(80.0)
    unknown = replace(walk.recording, subject={})
    assert generic_model(AnalysisSettings(), unknown).mass == pytest.approx(75.0)
    codes = [note.code for note in size_notes(AnalysisSettings(), unknown)]
    assert codes == ["mass_assumed", "height_assumed", "sex_assumed"]
    assert size_notes(AnalysisSettings(mass=80.0, height=1.8, sex="female"), unknown) == ()


def test_progress_rises_from_0_to_1(folder):
    values = []
    analyze([folder / "walk.nc"], folder / "out", AnalysisSettings(), lambda task, done: values.append(done))
    assert values == sorted(values) and values[0] == 0.0 and values[-1] == 1.0


@pytest.mark.parametrize(
    "file",
    [
        "analysis/dynamics/torques.py", "model/data/markersets/cmu41.toml", "pipeline/analysis_settings.py",
        "physics/soft_step.py", "analysis/tree_kernels/newton_ik.py", "recording/formats/c3d/reader.py",
    ],
)  # fmt: skip
def test_key_changes_with_the_code(tmp_path, monkeypatch, file):
    copy = tmp_path / "borelli"
    shutil.copytree(source_hash.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(source_hash, "PACKAGE", copy)
    clear_hashes()
    before = result_hash()
    with (copy / file).open("ab") as source:
        source.write(b"# other")
    clear_hashes()
    after = result_hash()
    (copy / "reports" / "report.py").write_text("# changes how results look, not the results")
    clear_hashes()
    assert before != after == result_hash()


def clear_hashes():
    for function in (source_hash.source_hash, source_hash._imports, source_hash._files):
        function.cache_clear()


@pytest.fixture(autouse=True)
def clear_hashes_afterwards():
    yield
    clear_hashes()


@pytest.mark.data
def test_hdm_walk_with_mass_and_height_alone(tmp_path):
    data = SHARED_DATA / "hdm" / "data.c3d"
    analyze([data], tmp_path, AnalysisSettings(mass=80.0, height=1.8))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["fit_held_out_rms_mm"] <= 3.2 and summary["marker_rms_mm"] <= 3.2  # as in test_fit_cmu
    assert summary["energy_balance_error_percent"] <= 0.1
    assert np.isfinite(summary["cost_of_transport_j_per_kg_m"])
    assert (tmp_path / "report.html").stat().st_size < 5_000_000
