"""The command `animate`."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.commands.load_motion import load_motion
from borelli.errors import SettingsError
from borelli.export.stage_files import write_stage
from borelli.model.formats.native import write_model
from borelli.people.human import human
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.recording.formats.mot_sto import write_table
from borelli.recording.recording import Recording, make_dataset
from borelli.synthetic.walk import walk_coordinates

RATE = 100.0


def run(*arguments, folder):
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "borelli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a walk as a stage file, and its model."""
    path = tmp_path_factory.mktemp("animate")
    model, time = human(), np.arange(61) / RATE
    write_stage(make_motion(model, walk_coordinates(model, time).coordinates, time, RATE), path / "motion.nc")
    write_model(model, path / "model.toml")
    return path


def test_perturbed_motion_is_written(folder):
    done = run(
        "animate", "motion.nc", "--push", "pelvis 200N 0.1s left at 0.1s", "--carry", "hand_r 2kg", "--json",
        "--no-video", "-o", "pushed", folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["push"] == ["pelvis 200N 0.1s left at 0.1s"]
    assert summary["perturbed until [s]"] is not None and summary["largest tracking error [m]"] > 0.005
    written = {path.name for path in (folder / "pushed").iterdir()}
    assert written == {"animation.nc", "animation.png", "deviation.png", "summary.json", "borelli-results.jsonl"}
    assert json.loads((folder / "pushed" / "summary.json").read_text()) == summary
    info = json.loads(run("info", "pushed/animation.nc", "--json", folder=folder).stdout)
    assert info["kind"] == "result"


def test_obstacles_that_come_and_go_are_drawn_and_reported(folder):
    """One is there for a tenth of a second, one comes after the end: neither has a place in most frames."""
    texts = ("box 0.3x0.3x0.2m on 2,2,0.1 from 0.1s to 0.2s", "box 0.3x0.3x0.2m on 2,3,0.1 from 90s to 92s")
    boxes = [part for text in texts for part in ("--obstacle", text)]
    done = run("animate", "motion.nc", *boxes, "--no-video", "--json", "-o", "boxes", folder=folder)
    assert done.returncode == 0, done.stderr
    notes = " ".join(json.loads(done.stdout)["notes"])
    assert "begins at 90 s, after the end of the motion" in notes and "touched nothing" in notes
    assert (folder / "boxes" / "animation.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--push", "pelvs 200N left"], ("push 'pelvs 200N left'", "did you mean 'pelvis'", "Example:")),
        (["--weaken", "knee_flexion_r"], ("A remaining percentage in % is missing",)),
        (["--model", "model.toml"], ("contains a motion with its model",)),
        (["--max-root-force", "-1"], ("it must be 0 or larger",)),
    ],
)
def test_wrong_options_are_rejected_in_a_sentence(folder, arguments, words):
    done = run("animate", "motion.nc", *arguments, folder=folder)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def write_coordinates(path, names, table, model):
    units = {c.name: "rad" if c.rotational else "m" for c in model.coordinates}
    labels = {"coordinate": names, "coordinate_units": [units[name] for name in names]}
    write_table(Recording(make_dataset({"coordinate_value": table}, labels, rate=RATE), name=path.stem), path)


def test_table_of_coordinates_is_a_motion_of_the_model(folder):
    model, time = human(), np.arange(61) / RATE
    table = walk_coordinates(model, time).coordinates
    names = [c.name for c in model.coordinates]
    write_coordinates(folder / "walk.mot", names, table, model)
    found = load_motion(folder / "walk.mot", AnalysisSettings(model=folder / "model.toml"))
    # rounded in the file, in degrees
    np.testing.assert_allclose(found.coordinates, table, atol=1e-7)
    part = load_motion(folder / "walk.mot", AnalysisSettings(model=folder / "model.toml", start=0.1, end=0.3))
    assert len(part.coordinates) == 21
    write_coordinates(folder / "most.mot", names[:-4], table[:, :-4], model)
    most = load_motion(folder / "most.mot", AnalysisSettings(model=folder / "model.toml"))
    (note,) = most.notes
    assert all(name in note.text for name in names[-4:]) and "stay at their defaults" in note.text


def test_table_of_other_coordinates_is_rejected(folder):
    model = human()
    write_coordinates(folder / "few.mot", ["knee_flexion_r"], np.zeros((9, 1)), model)
    with pytest.raises(SettingsError, match=r"few.mot: The file has no markers, only joint angles"):
        load_motion(folder / "few.mot", AnalysisSettings(model=folder / "model.toml"))
    with pytest.raises(SettingsError, match=r"The file contains a model\. Pass a motion"):
        load_motion(folder / "model.toml", AnalysisSettings())
