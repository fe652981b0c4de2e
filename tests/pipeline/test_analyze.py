"""The pipeline: stages are taken up where they were left, and only what changed is made anew."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.kernels import source_hash
from borelli.pipeline import analyze as pipeline
from borelli.pipeline.analysis_settings import AnalysisSettings, generic_model, size_notes
from borelli.pipeline.analyze import analyze, result_hash

from ..shared_data import SHARED_DATA


@pytest.fixture
def folder(analysed, tmp_path):
    """A copy of the analysed folder and its recording."""
    import shutil

    shutil.copytree(analysed.folder.parent, tmp_path / "run")
    return tmp_path / "run"


def stamps(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_files_of_every_stage_are_there(analysed):
    names = {path.name for path in analysed.folder.iterdir()}
    assert names == {
        "fit.nc", "model.toml", "motion.nc", "torques.nc", "energy.nc", "report.html", "summary.json",
        "coordinates.mot", "moments.sto", "powers.sto", "ground_forces.mot", "marker_errors.csv",
    }  # fmt: skip


def test_second_run_loads_everything_and_says_the_same(analysed, folder):
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0]
    assert again.loaded == ("fit", "pose", "torques", "energy")
    same = {k: v for k, v in again.summary.items() if k not in ("seconds", "loaded")}
    assert same == {k: v for k, v in analysed.summary.items() if k not in ("seconds", "loaded")}


def test_changed_setting_makes_only_what_follows(folder):
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings(cutoff=8.0))[0]
    assert again.loaded == ("fit", "pose")
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings(cutoff=8.0, mass=70.0))[0]
    assert again.loaded == ()


def test_damaged_stage_is_made_anew(folder):
    for name in ("torques.nc", "energy.nc"):
        path = folder / "out" / name
        path.write_bytes(path.read_bytes()[:-5000])
    again = analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0]
    assert again.loaded == ("fit", "pose")


def test_other_recording_is_not_taken_for_the_same(folder):
    from borelli.synthetic.recordings import synthetic_recording

    synthetic_recording("walk", seed=1).recording.to_netcdf(folder / "walk.nc")
    assert analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0].loaded == ()


@pytest.mark.parametrize("stage", ["fit_model", "inverse_kinematics", "find_torques", "compute_energy", "write_report"])
def test_interrupt_leaves_nothing_half_written_and_the_rest_is_taken_up(walk, tmp_path, monkeypatch, stage):
    walk.recording.to_netcdf(tmp_path / "walk.nc")

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, stage, stop)
        with pytest.raises(KeyboardInterrupt):
            analyze([tmp_path / "walk.nc"], tmp_path / "out", AnalysisSettings())
    left = {path.name for path in (tmp_path / "out").iterdir()}
    order = [("inverse_kinematics", "fit.nc"), ("find_torques", "motion.nc"), ("compute_energy", "torques.nc"),
             ("write_report", "energy.nc")]  # fmt: skip
    done = [file for name, file in order if name in order_until(order, stage)]
    assert {name for name in left if name.endswith(".nc")} == set(done)
    assert not [name for name in left if name.endswith(".tmp") or name in ("report.html", "summary.json")]
    again = analyze([tmp_path / "walk.nc"], tmp_path / "out", AnalysisSettings())[0]
    assert len(again.loaded) == len(done)


def order_until(order, stage):
    names = [name for name, _ in order]
    return names[: names.index(stage) + 1] if stage in names else []


def test_interrupt_while_a_file_is_written_keeps_the_old_one(folder, monkeypatch):
    import xarray

    before = stamps(folder / "out")
    whole = xarray.Dataset.to_netcdf

    def half(self, path, **options):
        whole(self, path, **options)
        if options.get("group") == "torques":
            raise KeyboardInterrupt

    monkeypatch.setattr(xarray.Dataset, "to_netcdf", half)
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


def test_unknown_methods_are_refused_before_anything_is_read():
    with pytest.raises(SettingsError, match=r"unknown method 'smoothd'.*smoothed"):
        AnalysisSettings(method="smoothd")
    with pytest.raises(SettingsError, match=r"unknown torque method 'steped'.*stepped"):
        AnalysisSettings(torque_method="steped")


def test_two_of_one_name_and_none_are_refused(tmp_path):
    with pytest.raises(SettingsError, match="two recordings"):
        analyze([Path("x/walk.c3d"), Path("y/walk.c3d")], tmp_path)
    with pytest.raises(SettingsError, match="no recording"):
        analyze([], tmp_path)


def test_size_comes_from_the_plan_the_recording_or_a_guess(walk):
    assert generic_model(AnalysisSettings(), walk.recording).mass == pytest.approx(68.0)
    assert generic_model(AnalysisSettings(mass=80.0), walk.recording).mass == pytest.approx(80.0)
    nobody = replace(walk.recording, subject={})
    assert generic_model(AnalysisSettings(), nobody).mass == pytest.approx(75.0)
    assert [note.action for note in size_notes(AnalysisSettings(), nobody)] == ["--mass", "--height"]
    assert size_notes(AnalysisSettings(mass=80.0, height=1.8), nobody) == ()


def test_progress_goes_from_none_to_all(folder):
    heard = []
    analyze([folder / "walk.nc"], folder / "out", AnalysisSettings(), lambda what, share: heard.append(share))
    assert heard == sorted(heard) and heard[0] == 0.0 and heard[-1] == 1.0


@pytest.mark.parametrize(
    "file",
    [
        "analysis/dynamics/torques.py", "model/data/markersets/cmu41.toml", "pipeline/analysis_settings.py",
        "physics/soft_step.py", "analysis/tree_kernels/newton_ik.py", "recording/formats/c3d/reader.py",
    ],
)  # fmt: skip
def test_key_knows_the_code(tmp_path, monkeypatch, file):
    copy = tmp_path / "borelli"
    shutil.copytree(source_hash.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(source_hash, "PACKAGE", copy)
    clear_hashes()
    before = result_hash()
    with (copy / file).open("ab") as source:
        source.write(b"# other")
    clear_hashes()
    after = result_hash()
    (copy / "reports" / "report.py").write_text("# decides how results look, not what they are")
    clear_hashes()
    assert before != after == result_hash()


def clear_hashes():
    for function in (source_hash.source_hash, source_hash._imports, source_hash._files):
        function.cache_clear()


@pytest.fixture(autouse=True)
def hashes_of_this_copy():
    yield
    clear_hashes()


@pytest.mark.data
def test_hdm_walk_with_mass_and_height_alone(tmp_path):
    """Issue 4: fitted, posed, torques, report; marker RMS <= 3 mm on held-out frames."""
    data = SHARED_DATA / "hdm" / "data.c3d"
    if not data.exists():
        pytest.skip(f"no {data}: set BORELLI_DATA")
    analyze([data], tmp_path, AnalysisSettings(mass=80.0, height=1.8))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["fit_held_out_rms_mm"] <= 3.0 and summary["marker_rms_mm"] <= 3.0
    assert summary["energy_balance_error_percent"] <= 0.1
    assert np.isfinite(summary["cost_of_transport_j_per_kg_m"])
    assert (tmp_path / "report.html").stat().st_size < 5_000_000
