"""Long trials in blocks: the same results as in one piece, bit-equal blocks, bounded memory, resumed runs."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.differentiation import bridge_gaps
from borelli.analysis.strides import find_strides
from borelli.errors import SettingsError
from borelli.export import stage_files
from borelli.export.stage_files import read_stage
from borelli.files.netcdf import open_netcdf
from borelli.pipeline import analyze as pipeline
from borelli.pipeline import blocks, long_trial, trial_decisions
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import analyze, stage_ends
from borelli.pipeline.blocks import split_frames
from borelli.pipeline.resume import StageCache
from borelli.pipeline.stages import compute_torques
from borelli.pipeline.trial_decisions import decide
from borelli.recording.clean import clean

from .long_walk import long_walk, walking_subject

FRAMES, SIZE = 1500, 400
ANGLE = 1e-6
"""[rad] Two paths of Newton's method to the same minimum end within its tolerance of 1e-7 rad."""
TORQUE = 1e-3
"""[N m, N] Accelerations follow from angles by a factor of about (6 Hz)^2 (2 pi)^2 = 1400, torques by inertias below
1 kg m^2 for each joint."""
SETTINGS = AnalysisSettings()


@pytest.fixture(scope="module")
def walk():
    return clean(long_walk(FRAMES, off_plate_every=4), cutoff=None)


@pytest.fixture(scope="module")
def model():
    return walking_subject()


def run(recording, model, folder, size=SIZE, key="0"):
    """Analyze a recording in blocks."""
    trial = long_trial.keep_in_file(recording, folder)
    keys = {name: f"{name} {key}" for name in ("ik", "id", "energy")}
    stages = StageCache(folder, keys, {}, lambda task, done: None)
    return long_trial.analyze_long_trial(trial, model, (), SETTINGS, stages, stage_ends(0), size)


@pytest.fixture(scope="module")
def in_blocks(walk, model, tmp_path_factory):
    """Return the folder of an analysis in blocks, its energy, and what its blocks were computed from."""
    folder, used = tmp_path_factory.mktemp("blocks"), []
    with pytest.MonkeyPatch.context() as patch:
        compute = long_trial.compute_block
        patch.setattr(long_trial, "compute_block", lambda *args: used.append(args) or compute(*args))
        return folder, run(walk, model, folder), used


@pytest.fixture(scope="module")
def in_one_piece(walk, model):
    return compute_energy(compute_torques(inverse_kinematics(model, walk), SETTINGS))


def largest_difference(one, other, name):
    return float(np.nanmax(np.abs(one[name].values - other[name].values)))


def test_blocks_cover_every_frame_once():
    parts = split_frames(432_000, 120.0)
    assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
    assert (parts[0].start, parts[-1].stop) == (0, 432_000)
    assert max(part.stop - part.start for part in parts) <= 1.2 * blocks.BLOCK_FRAMES
    assert all(part.start - part.first >= 480 and part.last - part.stop >= 480 for part in parts[1:-1])


def test_results_agree_with_those_in_one_piece(in_blocks, in_one_piece):
    _, energy, used = in_blocks
    assert len(used) == 4
    torques, whole = energy.torques, in_one_piece.torques
    assert torques.grf_source == whole.grf_source == "plates and predicted"
    assert largest_difference(torques.motion.data, whole.motion.data, "coordinate_value") < ANGLE
    for name in ("torque", "residual_force", "residual_moment", "ground_reaction_force", "joint_reaction_moment"):
        assert largest_difference(torques.data, whole.data, name) < TORQUE
    for name in ("grf_complete", "grf_known", "grf_source"):
        assert (torques.data[name].values == whole.data[name].values).all()
    for name in ("joint_power", "mechanical_energy", "positive_work", "stride_positive_work"):
        assert largest_difference(energy.data, in_one_piece.data, name) < TORQUE
    assert list(energy.summary) == list(in_one_piece.summary)
    for name, value in in_one_piece.summary.items():
        # the balance error is itself a small difference, and depends on how finely each block is integrated
        assert energy.summary[name] == pytest.approx(value, rel=1e-5, abs=1e-3), name
    assert [note.code for note in torques.notes] == [note.code for note in whole.notes]
    assert [note.text for note in energy.notes] == [note.text for note in in_one_piece.notes]


def test_there_is_no_jump_where_blocks_meet(in_blocks, in_one_piece):
    _, energy, used = in_blocks
    for data, whole, names in (
        (energy.torques.motion.data, in_one_piece.torques.motion.data, ("coordinate_value", "body_orientation")),
        (energy.torques.data, in_one_piece.torques.data, ("coordinate_acceleration", "torque")),
    ):
        for name in names:
            steps = [np.diff(one[name].values, axis=0) for one in (data, whole)]
            seams = [block.start - 1 for _, block, _ in used[1:]]
            assert np.abs(steps[0][seams] - steps[1][seams]).max() < TORQUE


def test_a_block_on_its_own_has_the_same_bits(in_blocks, walk, model):
    _, energy, used = in_blocks
    part, block, decisions = used[2]
    groups, _ = long_trial.compute_block(part, block, decisions)
    own = slice(block.start, block.stop)
    for group, whole in (("torques", energy.torques.data), ("energy", energy.data)):
        for name, variable in groups[group].data_vars.items():
            if variable.dims[0] == "time":
                assert np.array_equal(variable.values, whole[name].values[own], equal_nan=variable.dtype.kind == "f")
    values = energy.torques.motion.data
    before = values["coordinate_value"].values[block.start - 1], values["body_orientation"].values[block.start - 1]
    motion = long_trial.pose_block(walk, model, block, *before)
    for name in ("coordinate_value", "body_orientation", "marker_error"):
        assert np.array_equal(motion.data[name].values, values[name].values[own], equal_nan=True)


def test_an_interrupted_run_continues_with_the_missing_blocks(in_blocks, walk, model, tmp_path, monkeypatch):
    compute, numbers = long_trial.compute_block, []

    def interrupted(part, block, decisions):
        if block.number == 2 and numbers.count(2) == 0:
            numbers.append(2)
            raise KeyboardInterrupt
        numbers.append(block.number)
        return compute(part, block, decisions)

    monkeypatch.setattr(long_trial, "compute_block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(walk, model, tmp_path)
    damaged = tmp_path / blocks.BLOCK_FOLDER / "energy_0001.nc"
    damaged.write_bytes(damaged.read_bytes()[:3000])
    monkeypatch.setattr(long_trial, "pose_block", None)  # all poses are known
    again = run(walk, model, tmp_path)
    assert numbers == [0, 1, 2, 1, 2, 3]
    assert again.data.equals(in_blocks[1].data)
    assert again.torques.data.equals(in_blocks[1].torques.data)
    assert again.torques.motion.data.equals(in_blocks[1].torques.motion.data)


def test_blocks_of_other_settings_are_not_used(walk, model, tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(long_trial, "compute_block", stop)
    poses, counted = long_trial.pose_block, []
    monkeypatch.setattr(long_trial, "pose_block", lambda *args: counted.append(args[2].number) or poses(*args))
    for key in ("0", "0", "1"):
        with pytest.raises(KeyboardInterrupt):
            run(walk, model, tmp_path, key=key)
    assert counted == [0, 1, 2, 3, 0, 1, 2, 3]


def test_memory_does_not_grow_with_the_number_of_blocks(model, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "MARGIN", 1.0)
    monkeypatch.setattr(trial_decisions, "SAMPLED_FRAMES", 200)
    peaks = []
    for frames in (600, 1200):
        recording = clean(long_walk(frames, off_plate_every=4), cutoff=None)
        trial = long_trial.keep_in_file(recording, tmp_path / str(frames))
        del recording
        keys = dict.fromkeys(("ik", "id", "energy"), "0")
        stages = StageCache(tmp_path / str(frames), keys, {}, lambda task, done: None)
        monkeypatch.setattr(stage_files, "LONG_TRIAL", 100)
        tracemalloc.start()
        long_trial.analyze_long_trial(trial, model, (), SETTINGS, stages, stage_ends(0), 200)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # coordinates of all frames are kept, 54 numbers each
    assert peaks[1] < 1.15 * peaks[0] + 8 * 54 * 600 * 4


@pytest.fixture(scope="module")
def analyzed(tmp_path_factory):
    """Return the analysis of a file of 1500 frames as if 1000 were many."""
    folder = tmp_path_factory.mktemp("analyzed")
    long_walk(FRAMES).to_netcdf(folder / "walk.nc")
    with pytest.MonkeyPatch.context() as patch:
        for module in (long_trial, stage_files):
            patch.setattr(module, "LONG_TRIAL", 1000)
        patch.setattr("borelli.reports.motion_player.LONG_TRIAL", 1000)
        patch.setattr("borelli.reports.motion_player.MAX_DURATION", 5.0)
        patch.setattr(long_trial, "BLOCK_FRAMES", 500)
        done: list[float] = []
        (first,) = analyze(folder / "walk.nc", folder / "out", progress=lambda task, fraction: done.append(fraction))
        (second,) = analyze(folder / "walk.nc", folder / "out")
    return first, second, done


def test_a_long_trial_has_all_files_but_those_of_the_first_stages(analyzed):
    names = {path.name for path in analyzed[0].folder.iterdir()}
    assert names == {
        "fit.nc", "model.toml", "energy.nc", "report.html", "summary.json", "coordinates.mot", "moments.sto",
        "powers.sto", "ground_forces.mot", "marker_errors.csv", "model.osim", "external_loads.xml",
        "borelli-results.jsonl", "angles.csv", "gait_cycles.csv", "gait_cycles_by_stride.csv", "gait_parameters.csv",
    }  # fmt: skip


def test_progress_is_reported_for_every_block(analyzed):
    done = analyzed[2]
    assert done == sorted(done) and done[-1] == 1.0
    assert len(done) >= 3 * 3 + 5


def test_a_second_run_reuses_the_file(analyzed):
    first, second, _ = analyzed
    assert second.reused_stages == ("fit", "ik", "id", "energy")
    same = ("runtime_s", "reused_stages")
    assert {k: v for k, v in second.summary.items() if k not in same} == {
        k: v for k, v in first.summary.items() if k not in same
    }


def test_datasets_of_a_long_trial_are_opened_not_loaded(analyzed, monkeypatch):
    path = analyzed[0].folder / "energy.nc"
    monkeypatch.setattr(stage_files, "LONG_TRIAL", 1000)
    energy = read_stage(path)
    for data in (energy.data, energy.torques.data, energy.torques.motion.data, energy.torques.motion.recording.data):
        variable = next(iter(data.data_vars.values())).variable
        assert variable.values.size and not variable._in_memory
    assert energy.torques.loads is None and energy.torques.derivatives is None
    monkeypatch.setattr(stage_files, "LONG_TRIAL", 10_000)
    assert read_stage(path).torques.loads is not None


def test_the_report_says_what_the_player_shows(analyzed):
    text = (analyzed[0].folder / "report.html").read_text(encoding="utf-8")
    assert "The trial has 1500 frames; the player shows an excerpt, from 0 to 5 s." in text


def test_methods_that_need_all_frames_at_once_are_refused_if_memory_does_not_suffice(monkeypatch):
    monkeypatch.setattr("borelli.files.memory.available_memory", lambda: 8_000_000_000)
    with pytest.raises(SettingsError, match=r"smoothed for 432000 frames needs about 69.1 GB .* --start and --end"):
        pipeline.check_one_piece(432_000, 1, "smoothed")


def recomputed_blocks(folder, numbers):
    """Yield datasets of blocks of a finished analysis, each computed on its own, and those of the analysis."""
    energy = read_stage(folder / "energy.nc")
    motion = energy.torques.motion
    trial, model, data = motion.recording, motion.model, motion.data
    time = data["time"].values
    q, first, last, _ = bridge_gaps(data["coordinate_value"].values, time, motion.rate)
    part = long_trial._MovingPart(trial, model, q[first:last], time[first:last], first)
    parts = split_frames(last - first, motion.rate)
    strides = find_strides(motion, part.time)
    decisions = decide(
        trial, model, part.coordinates, part.time, strides, parts, part.motion, SETTINGS, lambda block: None
    )
    for block in (parts[number] for number in numbers):
        groups, _ = long_trial.compute_block(part, block, decisions)
        own = slice(block.start, block.stop)
        yield groups["torques"], energy.torques.data.isel(time=own).load()
        over_time = [name for name, one in groups["energy"].data_vars.items() if one.dims[0] == "time"]
        yield groups["energy"][over_time], energy.data[over_time].isel(time=own).load()
        if first == 0 and block.number > 0:
            before = (data[name].values[block.start - 1] for name in ("coordinate_value", "body_orientation"))
            posed = long_trial.pose_block(trial, model, block, *before)
            yield posed.data, data.isel(time=own).load()


@pytest.mark.slow
def test_an_hour_takes_less_than_4_gigabytes(tmp_path):
    """Analyze 432,000 frames by the command line; print time, memory and sizes of files."""
    frames, path, folder = 432_000, tmp_path / "hour.c3d", tmp_path / "out"
    generator = Path(__file__).parent / "long_walk.py"
    subprocess.run([sys.executable, generator, str(frames), path], check=True)
    start = perf_counter()
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = [sys.executable, "-m", "borelli", "analyze", path, "-o", folder, "--json"]
    done = subprocess.run([sys.executable, "-c", code, *map(str, command)], check=True, capture_output=True, text=True)
    seconds, peak = perf_counter() - start, 1024 * int(done.stdout)
    summary = json.loads((folder / "summary.json").read_text())
    sizes = {one.name: one.stat().st_size for one in folder.iterdir()}
    print(f"{frames} frames: {seconds:.0f} s, peak memory {peak / 1e9:.2f} GB, files {sizes}, {summary['runtime_s']}")
    assert summary["frames"] == frames
    assert peak < 4_000_000_000
    assert sizes["report.html"] < 30_000_000
    assert summary["marker_rms_mm"] < 2.0 and summary["grf_known_percent"] > 99.0
    data = open_netcdf(folder / "energy.nc").open("torques")
    assert data.sizes["time"] == frames and np.isfinite(data["torque"].isel(time=slice(0, None, 1000)).values).all()
    for alone, together in recomputed_blocks(folder, (0, 27, 53)):
        for name, variable in alone.data_vars.items():
            floats = variable.dtype.kind == "f"
            assert np.array_equal(variable.values, together[name].values, equal_nan=floats), name
