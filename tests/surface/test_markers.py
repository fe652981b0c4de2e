"""`borelli markers`: the table, the map that other commands take, the picture, and the remedy of `doctor`."""

import json
import sys

import numpy as np
import pytest

from borelli.cli import main
from borelli.commands.console import out
from borelli.recording.io import rename_markers, write_recording
from borelli.recording.labels.interpret import interpret_labels
from borelli.synthetic.recordings import synthetic_recording
from borelli.view.marker_plot import marker_figure


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


@pytest.fixture
def axes_of_segments(tmp_path):
    """Write a walk with axes of segments, as Plug-in Gait adds them, and a point without a name."""
    walk = synthetic_recording("walk").recording
    names = [f"{side}{part}{end}" for side in "LR" for part in ("FE", "TI", "FO") for end in "OALP"]
    more = walk.data["marker_position"].values[:, :1].repeat(len(names) + 1, axis=1) + 0.1
    labels = [*walk.markers, *names, "*12"]
    points = np.concatenate([walk.data["marker_position"].values, more], axis=1)
    data = walk.data.drop_dims("marker").assign_coords(marker=labels)
    data["marker_position"] = (("time", "marker", "axis"), points, walk.data["marker_position"].attrs)
    recording = walk.with_data(data)
    write_recording(recording, tmp_path / "axes.c3d")
    return recording


@pytest.mark.parametrize("width", [80, 120])
def test_the_list_has_one_line_for_each_label(run, axes_of_segments, width, monkeypatch):
    monkeypatch.setattr(out, "width", width)
    code, text = run("markers", "axes.c3d")
    lines = text.splitlines()
    assert not code and max(len(line) for line in lines[2:]) <= width  # the title is the name of the file
    assert [len([line for line in lines if f" {label} " in line]) for label in ("RANK", "C7", "LTHI")] == [1, 1, 1]
    assert any(line.startswith("pelvis ") for line in lines)
    assert "24 axes of segments: LFEO, LFEA" in text and "1 points without a name: *12" in text
    assert "RFEO  " not in text  # axes are not among the landmarks


def test_the_picture_shows_markers_only(axes_of_segments):
    figure = marker_figure(axes_of_segments, interpret_labels(axes_of_segments.markers))
    shown = {text.get_text().split(":")[0] for text in figure.axes[0].texts}
    assert shown == {*synthetic_recording("walk").recording.markers, "*12"}
    for axes in figure.axes:
        heights = [
            [text.get_position()[1] for text in axes.texts if text.get_ha() == side] for side in ("left", "right")
        ]
        assert all(min(np.diff(sorted(column))) > 0.02 for column in heights)  # captions do not overlap


def test_doctor_compares_labels_with_geometry(run):
    """A thigh and a wrist marker of one side: neither sides nor jumps show it."""
    walk = synthetic_recording("walk").recording
    write_recording(rename_markers(walk, {"RWRA": "RTHI", "RTHI": "RWRA"}), "far.c3d")
    code, text = run("doctor", "far.c3d", "--json")
    (issue,) = [one for one in json.loads(text)["issues"] if one["code"] == "swapped_labels"]
    assert code == 1 and issue["severity"] == "error" and set(issue["where"].split(", ")) == {"RTHI", "RWRA"}
    assert "mm if swapped" in issue["evidence"]
    command = issue["action"].split(", or ")[0].replace("OUT", "fixed.c3d").split()
    assert command[:2] == ["borelli", "clean"] and not run(*command[1:])[0]
    code, text = run("doctor", "fixed.c3d", "--json")
    assert not code and "swapped_labels" not in text


def test_a_swap_is_reported_once(run):
    walk = synthetic_recording("walk").recording
    write_recording(rename_markers(walk, {"RKNE": "LKNE", "LKNE": "RKNE"}), "knees.c3d")
    _, text = run("doctor", "knees.c3d", "--json")
    assert len([one for one in json.loads(text)["issues"] if one["where"] in ("LKNE, RKNE", "RKNE, LKNE")]) == 1


@pytest.mark.slow
def test_doctor_reports_what_geometry_finds_without_names(run):
    walk = synthetic_recording("walk").recording
    write_recording(rename_markers(walk, {name: f"{i:04d}" for i, name in enumerate(walk.markers)}), "numbers.c3d")
    code, text = run("doctor", "numbers.c3d", "--json")
    (issue,) = [one for one in json.loads(text)["issues"] if one["code"] == "labels_by_geometry"]
    assert not code and issue["severity"] == "note" and "are labeled by geometry" in issue["evidence"]
