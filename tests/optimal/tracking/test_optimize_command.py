"""The command `borelli optimize` on a forearm: files, summary and refusals."""

import json

import pytest
from typer.testing import CliRunner

import borelli as bo
from borelli.cli import app

from .arm import recorded_torques

RUN = CliRunner()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bo.write_stage(recorded_torques(muscles=False), "plain.nc")
    bo.write_stage(recorded_torques(), "muscled.nc")
    return tmp_path


def test_tracked_motion_is_written_and_read_again(folder):
    done = RUN.invoke(app, ["optimize", "track", "plain.nc", "--no-muscles", "--json"])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["solved"] and summary["rms_angle_error_deg"] < 0.5
    names = {path.name for path in (folder / "optimization").iterdir()}
    assert {"solution.nc", "motion.nc", "summary.json", "solution.png"} <= names
    assert bo.read_stage(folder / "optimization" / "motion.nc").model.name == "forearm"


def test_what_if_and_inverse(folder):
    done = RUN.invoke(app, ["optimize", "what-if", "muscled.nc", "--change", "flexor 50%", "-o", "weak", "--json"])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["changed_mean_flexor_r_activation"] > summary["original_mean_flexor_r_activation"]
    assert (folder / "weak" / "what-if.png").exists()
    done = RUN.invoke(app, ["optimize", "inverse", "muscled.nc", "-o", "inverse"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trak", "plain.nc"], "did you mean 'track'"),
        (["track", "plain.nc", "--change", "flexor 50%"], "belongs to what-if"),
        (["what-if", "plain.nc"], "needs one at least"),
        (["inverse", "plain.nc", "--no-muscles"], "solves for muscles"),
        (["what-if", "muscled.nc", "--change", "flexr 50%"], "did you mean"),
    ],
)
def test_refusals(folder, arguments, words):
    done = RUN.invoke(app, ["optimize", *arguments])
    assert done.exit_code == 1 and words in str(done.exception)
