"""`borelli markers`: the table, the map that other commands take, the picture, and the remedy of `doctor`."""

import json
import sys

import pytest

from borelli.cli import main
from borelli.recording.io import rename_markers, write_recording
from borelli.synthetic.recordings import synthetic_recording


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs a command in a folder with a recording whose knees have meaningless names."""
    monkeypatch.chdir(tmp_path)
    walk = synthetic_recording("walk").recording
    write_recording(rename_markers(walk, {"RKNE": "QA", "LKNE": "QB"}), "own.c3d")

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["borelli", *arguments])
        with pytest.raises(SystemExit) as done:
            main()
        return done.value.code, capsys.readouterr().out

    return command


def test_map_is_written_edited_and_used(run, tmp_path):
    code, text = run("markers", "own.c3d", "--json", "--write", "map.toml", "--picture", "markers.png")
    assert not code
    found = {one["label"]: one for one in json.loads(text)["markers"]}
    assert found["RANK"]["landmark"] == "malleolus_lateral" and found["RANK"]["certainty"] >= 0.9
    assert found["QA"]["kind"] == "unknown"
    assert (tmp_path / "markers.png").stat().st_size > 10_000
    path = tmp_path / "map.toml"
    edited = path.read_text().replace('"QA" = ""', '"QA" = "right knee_lateral"')
    path.write_text(edited.replace('"QB" = ""', '"QB" = "left knee_lateral"'))
    code, text = run("info", "own.c3d", "--markers", "map.toml", "--json")
    labels = json.loads(text)["labels"]
    assert not code and labels["unknown"] == [] and labels["read"] == 41


def test_remedy_of_doctor_is_a_command_that_works(run):
    _, text = run("doctor", "own.c3d", "--json")
    issue = next(one for one in json.loads(text)["issues"] if one["code"] == "unknown_labels")
    command = issue["action"].split(",")[0].split()
    assert not run(*command[1:])[0]


def test_a_convention_is_chosen_by_name(run):
    code, text = run("markers", "own.c3d", "--set", "CMU 41", "--json")
    assert not code and json.loads(text)["conventions"]
    assert run("markers", "own.c3d", "--set", "nothing like it")[0] == 1
