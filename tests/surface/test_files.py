"""Recordings and models on the command line: info, doctor, clean, convert and compare."""

import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import borelli
from borelli.cli import main

from ..recording import walker
from ..shared_data import SHARED_DATA

ROOT = Path(__file__).parents[2]
UNSUPPORTED = {"ThoracoscapularShoulderModel.osim": "ScapulothoracicJoint", "gonzalez_wrist.osim": "before 2.0"}
MAX_INFO_TIME = 120.0
"""Run time [s] of `borelli info --json` on all shared data."""


@pytest.fixture
def call(capsys, monkeypatch):
    """Return a function that runs the command in this process."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["borelli", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as done:
            code = done.code or 0
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err)

    return run


@pytest.fixture
def walk(tmp_path):
    """Return a C3D file of a walk over two plates, without issues."""
    path = tmp_path / "walk.c3d"
    borelli.write_recording(walker.recording(), path)
    return path


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "human.toml"
    borelli.write_model(borelli.human(mass=70.0, markers="plugin_gait"), path)
    return path


def assert_one_sentence(done, *words):
    assert done.code == 1, done.out
    assert done.out == "" and "Traceback" not in done.err
    lines = done.err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("borelli: "), done.err
    for word in words:
        assert word in lines[0], lines[0]


def find_issues(call, *arguments):
    done = call("doctor", *arguments, "--json")
    assert done.err == "", done.err
    issues = json.loads(done.out)["issues"]
    assert done.code == any(issue["severity"] == "error" for issue in issues)
    return {issue["code"]: issue for issue in issues}


# info


def test_info_summarizes_a_recording(call, tmp_path):
    points, *_ = walker.walk()
    points[40:70, 3] = np.nan
    path = tmp_path / "walk.c3d"
    recording = walker.recording()
    borelli.write_recording(
        recording.with_data(recording.data.assign(marker_position=recording.data["marker_position"].copy(data=points))),
        path,
    )
    facts = json.loads(call("info", path, "--json").out)
    assert facts["kind"] == "recording" and facts["format"] == "C3D"
    assert facts["frames"] == 300 and facts["rate [Hz]"] == 100.0 and facts["duration [s]"] == pytest.approx(2.99)
    assert facts["analog samples"] == 3000 and facts["analog rate [Hz]"] == 1000.0
    name = recording.markers[3]
    assert facts["marker visibility"][name] == pytest.approx(0.9) and facts["longest gaps [frames]"] == {name: 30}
    assert sum(fraction == 1.0 for fraction in facts["marker visibility"].values()) == len(recording.markers) - 1
    assert facts["marker set"]["name"].startswith("Plug-in Gait")
    peaks = [load["peak vertical force [N]"] for load in facts["plate loads"].values()]
    assert peaks == pytest.approx(recording.data["plate_force"].values[:, :, 2].max(axis=0), rel=1e-3)
    assert facts["units"]["value"] == "m" and facts["units"]["basis"] == "stated"
    assert facts["up"]["value"] == "+Z" and facts["forward"]["value"] == "+X"
    shown = call("info", path).out
    assert name in shown and "90%" in shown and "plate 2: peak" in shown and "forward" in shown
    assert max(map(len, shown.splitlines()[2:])) <= 80


def test_info_continues_after_errors(call, walk, arm, tmp_path):
    done = call("info", walk, tmp_path / "absent.c3d", arm, "--json")
    facts = json.loads(done.out)
    assert done.code == 1
    assert list(facts) == [str(walk), str(tmp_path / "absent.c3d"), str(arm)]
    assert [about.get("kind") for about in facts.values()] == ["recording", None, "model"]
    assert "absent.c3d" in facts[str(tmp_path / "absent.c3d")]["error"]
    shown = call("info", walk, tmp_path / "absent.c3d", arm)
    assert shown.code == 1 and "absent.c3d" in shown.err and "LASI" in shown.out and "kg" in shown.out
    assert call("info", walk, arm).code == 0


def test_kind_is_detected_by_content(call, walk, arm, tmp_path):
    for source, name, kind in ((walk, "walk.osim", "recording"), (arm, "arm.c3d", "model")):
        shutil.copy(source, tmp_path / name)
        assert json.loads(call("info", tmp_path / name, "--json").out)["kind"] == kind


def test_info_lists_the_elements_of_a_model(call, arm):
    facts = json.loads(call("info", arm, "--json").out)
    model = borelli.read_model(arm)
    assert facts["bodies"] == len(model.bodies) == len(facts["body masses [kg]"])
    assert sum(facts["body masses [kg]"].values()) == pytest.approx(70.0)
    assert set(facts["marker bodies"]) == {marker.name for marker in model.markers}


def test_specified_units_and_axes_override_the_file(call, walk, arm):
    plain = json.loads(call("info", walk, "--json").out)
    facts = json.loads(call("info", walk, "--units", "cm", "--up", "-Y", "--json").out)
    assert facts["units"]["basis"] == facts["up"]["basis"] == "specified"
    assert facts["units"]["value"] == "cm" and facts["up"]["value"] == "-Y"
    center, before = (about["plate loads"]["plate 1"]["center [m]"] for about in (facts, plain))
    assert np.linalg.norm(center) == pytest.approx(0.01 * np.linalg.norm(before))
    assert_one_sentence(call("info", walk, "--up", "W"), "up", "'W'", "+Z")
    assert_one_sentence(call("info", walk, "--units", "furlong"), "furlong")
    assert_one_sentence(call("info", arm, "--units", "mm"), "human.toml", "--units", "recordings")


def test_plot_of_a_recording(call, walk, arm, tmp_path):
    picture = tmp_path / "walk.png"
    assert call("info", walk, "--plot", picture).code == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert_one_sentence(call("info", walk, "--plot", picture), "walk.png", "--force")
    assert call("info", walk, "--plot", picture, "--force").code == 0
    assert_one_sentence(call("info", arm, "--plot", tmp_path / "arm.png"), "contains a model")
    assert_one_sentence(call("info", walk, "--plot", walk), ".png")
    assert not (tmp_path / "arm.png").exists()


# doctor


def swapped_sides(recording):
    names = [
        {"L": "R", "R": "L"}.get(name[0], name[0]) + name[1:] if name[0] in "LR" else name for name in recording.markers
    ]
    return recording.with_data(recording.data.assign_coords(marker=names))


def with_gap(recording):
    points = recording.data["marker_position"].values.copy()
    points[100:140, recording.markers.index("LBHD")] = np.nan
    return recording.with_data(
        recording.data.assign(marker_position=recording.data["marker_position"].copy(data=points))
    )


def test_good_recording_has_no_errors(call, walk):
    done = call("doctor", walk)
    assert done.code == 0 and "error" not in done.out


def test_swapped_sides_are_found_and_fixed(call, tmp_path):
    path, fixed = tmp_path / "swapped.c3d", tmp_path / "fixed.c3d"
    borelli.write_recording(swapped_sides(walker.recording()), path)
    assert "--swap-sides" in find_issues(call, path)["left_right_labels"]["action"]
    assert call("doctor", path).code == 1
    assert call("clean", path, fixed, "--swap-sides").code == 0
    assert "left_right_labels" not in find_issues(call, fixed)


def test_wrong_units_are_found_and_overridden(call, walk):
    found = find_issues(call, walk, "--units", "mm")["length_unit"]
    assert "--units m" in found["action"] and found["severity"] == "error"
    assert "length_unit" not in find_issues(call, walk, "--units", "m")


def test_wrong_up_is_found_and_overridden(call, walk):
    found = find_issues(call, walk, "--up", "+Y")["up_axis"]
    assert "--up +Z" in found["action"] and found["severity"] in ("error", "warning")
    assert "up_axis" not in find_issues(call, walk, "--up", "+Z")


def test_swapped_plates_are_found_and_fixed(call, tmp_path):
    path, fixed = tmp_path / "plates.c3d", tmp_path / "fixed.c3d"
    whole = walker.recording()
    borelli.write_recording(borelli.recording.swap_plates(whole, "plate 1", "plate 2"), path)
    assert "plate 1" in find_issues(call, path)["plate_swap"]["action"]
    assert call("clean", path, fixed, "--swap", "plate 1,plate 2").code == 0
    assert "plate_swap" not in find_issues(call, fixed)


def test_gap_is_found_and_filled(call, tmp_path):
    path, fixed = tmp_path / "gap.c3d", tmp_path / "fixed.c3d"
    borelli.write_recording(with_gap(walker.recording()), path)
    found = find_issues(call, path)["gap"]
    assert "LBHD" in found["where"] and "100 to 139" in found["where"] and "borelli clean" in found["action"]
    assert call("clean", path, fixed).code == 0
    assert "gap" not in find_issues(call, fixed)


def test_marker_set_of_another_model_is_found(call, walk, tmp_path):
    cmu, fitting = tmp_path / "cmu.toml", tmp_path / "pig.toml"
    sets = borelli.model.list_marker_sets()
    other = next(name for name in sets if "opensim" in name.lower())
    borelli.write_model(borelli.human(markers=other), cmu)
    borelli.write_model(borelli.human(markers="plugin_gait"), fitting)
    assert "Plug-in Gait" in find_issues(call, walk, "--model", cmu)["model_markers"]["action"]
    assert find_issues(call, walk, "--model", fitting).get("model_markers", {}).get("severity") != "error"


def test_doctor_on_a_model_and_without_a_file(call, arm, walk):
    assert "no issues" in call("doctor", arm).out
    assert_one_sentence(call("doctor", "--model", arm), "No recording is given")
    assert_one_sentence(call("doctor", arm, "--model", arm), "--model")


# clean and convert


def test_clean_lists_each_change_and_keeps_the_input(call, tmp_path):
    path, result = tmp_path / "gap.c3d", tmp_path / "clean.c3d"
    borelli.write_recording(with_gap(walker.recording(noise=0.001)), path)
    before = path.read_bytes()
    done = call("clean", path, result, "--start", 0.5, "--end", 2.5, "--rate", 50, "--events", "plates")
    assert done.code == 0, done.err
    assert "LBHD" in done.out and "6 Hz" in done.out and path.read_bytes() == before
    cleaned = borelli.read_recording(result)
    assert cleaned.rate == 50.0 and cleaned.duration == pytest.approx(2.0)
    assert np.isfinite(cleaned.data["marker_position"].values).all() and cleaned.events
    listed = json.loads(call("clean", path, result, "--force", "--cutoff", 0, "--json").out)["changes"]
    assert listed and not any("low-passed" in change for change in listed)


@pytest.mark.parametrize("command", ["clean", "convert"])
def test_files_are_not_overwritten_without_force(call, walk, tmp_path, command):
    before = walk.read_bytes()
    other, alias = tmp_path / "other.c3d", tmp_path / "alias.c3d"
    alias.symlink_to(walk)
    for target in (walk, alias):
        assert_one_sentence(call(command, walk, target), "is an input file")
        assert_one_sentence(call(command, walk, target, "--force"), "is an input file")
    other.write_text("mine")
    assert_one_sentence(call(command, walk, other), "other.c3d", "--force")
    assert other.read_text() == "mine" and walk.read_bytes() == before
    assert call(command, walk, other, "--force").code == 0 and other.read_bytes() != b"mine"
    assert_one_sentence(call(command, walk, tmp_path / "nowhere" / "x.c3d"), "folder")
    assert_one_sentence(call(command, walk, tmp_path / "x.doc"), ".doc", ".c3d")
    assert not (tmp_path / "x.doc").exists() and walk.read_bytes() == before


def test_convert_lists_losses(call, walk, tmp_path):
    lost = json.loads(call("convert", walk, tmp_path / "walk.trc", "--json").out)["lost"]
    assert any(text.startswith("plate forces (2)") for text in lost) and not any(
        w.startswith("markers (") for w in lost
    )
    points = borelli.read_recording(walk).data["marker_position"].values
    back = borelli.read_recording(tmp_path / "walk.trc").data["marker_position"].values
    assert np.abs(back - points).max() < 1e-6  # [m]
    assert "Nothing was lost" in call("convert", walk, tmp_path / "walk.nc").out
    # markers cannot be in a .mot
    assert any("markers" in w for w in json.loads(call("convert", walk, tmp_path / "walk.mot", "--json").out)["lost"])


def test_plates_of_a_second_file(call, walk, tmp_path):
    call("convert", walk, tmp_path / "walk.trc")
    call("convert", walk, tmp_path / "walk.mot")
    together = tmp_path / "together.c3d"
    done = call("convert", tmp_path / "walk.trc", together, "--forces", tmp_path / "walk.mot")
    assert done.code == 0, done.err
    force = borelli.read_recording(together).data["plate_force"].values
    assert np.abs(force - borelli.read_recording(walk).data["plate_force"].values).max() < 0.1  # [N]


def test_models_convert_and_agree(call, arm, tmp_path):
    for name in ("human.osim", "human.xml"):
        done = call("convert", arm, tmp_path / name)
        assert done.code == 0, done.err
        report = json.loads(call("compare", arm, tmp_path / name, "--poses", 5, "--json").out)
        worst = {quantity["name"]: quantity["worst"] for quantity in report["quantities"]}
        assert worst["total mass"] == pytest.approx(0.0, abs=1e-9)
        assert worst["body position"] < 1e-9 and worst["marker position"] < 1e-9
    assert_one_sentence(call("convert", arm, tmp_path / "x.c3d"), ".toml", ".osim")
    assert_one_sentence(call("convert", arm, tmp_path / "x.osim", "--up", "+Y"), "--up", "recordings")


def test_compare_shows_differences(call, arm, tmp_path):
    heavier = tmp_path / "heavier.toml"
    borelli.write_model(borelli.human(mass=80.0, markers="plugin_gait"), heavier)
    done = call("compare", arm, heavier, "--poses", 2)
    assert done.code == 0 and "total mass" in done.out and "10 kg" in done.out
    assert_one_sentence(call("compare", arm, tmp_path / "absent.osim"), "absent.osim")
    assert_one_sentence(call("compare", arm, heavier, "--frame", "tail"), "tail")


# damaged files


def damaged_file(folder, kind):
    path = folder / f"bad.{kind}"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "c3d":
        path.write_bytes(b"\x02\x50" + bytes(range(256)) * 4)
    elif kind == "bin":
        path.write_bytes(np.random.default_rng(0).bytes(5000))
    elif kind == "osim":
        path.write_text('<!DOCTYPE a [<!ENTITY b "c">]><OpenSimDocument>&b;</OpenSimDocument>')
    elif kind == "locked":
        path.write_text("x")
        path.chmod(0)
    else:
        path.write_bytes(b"")
    return path


@pytest.mark.parametrize("kind", ["folder", "fifo", "c3d", "bin", "osim", "trc", "nc", "toml", "locked"])
def test_damaged_files_are_rejected_in_one_sentence_by_every_command(call, arm, tmp_path, kind):
    path = damaged_file(tmp_path, kind)
    result = tmp_path / "result.c3d"
    for arguments in (
        ("info", path),
        ("doctor", path),
        ("convert", path, result),
        ("compare", path, arm),
        ("clean", path, result),
    ):
        assert_one_sentence(call(*arguments), path.name)
    assert not result.exists()


@pytest.mark.data
def test_info_on_all_the_data(call):
    from time import perf_counter

    folder = SHARED_DATA
    endings = (".c3d", ".trc", ".mot", ".sto", ".bvh", ".amc", ".asf", ".osim")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in endings)
    files += sorted(path for path in folder.glob("muscle_models/mjcf/**/*.xml") if "assets" not in path.parts)
    start = perf_counter()
    done = call("info", "--json", *files)
    assert perf_counter() - start < MAX_INFO_TIME
    refused = {Path(file).name: about["error"] for file, about in json.loads(done.out).items() if "error" in about}
    assert len(files) > 150 and set(refused) <= set(UNSUPPORTED)
    assert all(reason in refused[name] for name, reason in UNSUPPORTED.items() if name in refused)


def test_defaults_are_those_of_the_functions():
    from inspect import signature

    from borelli.commands.clean import clean as command

    shown = {name: parameter.default for name, parameter in signature(command).parameters.items()}
    actual = {name: parameter.default for name, parameter in signature(borelli.clean).parameters.items()}
    names = {
        "swap_sides": "sides", "fix_swaps": "label_swaps", "remove_spikes": "spikes", "zero_plates": "plate_offsets",
        "assign_feet": "feet",
    }  # fmt: skip
    same = ("cutoff", "max_spline_gap", "max_rigid_gap", "threshold", "rate", "start", "end")
    names |= dict(zip(same, same, strict=True))
    assert {name: shown[name] for name in names} == {name: actual[other] for name, other in names.items()}


def test_losses_include_names_missing_values_and_headers(tmp_path):
    from dataclasses import replace

    from borelli.commands.conversion_losses import conversion_losses

    whole = walker.recording()
    path = tmp_path / "walk.csv"
    borelli.write_recording(whole, path)
    assert conversion_losses(whole, path) == []
    points = whole.data["marker_position"].values.copy()
    points[3:5, 2] = np.nan
    holed = whole.with_data(whole.data.assign(marker_position=whole.data["marker_position"].copy(data=points)))
    assert any("6 numbers of markers" in what for what in conversion_losses(holed, path))
    renamed = whole.with_data(whole.data.assign_coords(marker=["NOSE", *whole.markers[1:]]))
    assert any("markers: NOSE" in what for what in conversion_losses(renamed, path))
    more = replace(whole, metadata={"TRIAL": {}}, subject={"mass": 70.0})
    assert any("header: TRIAL" in what for what in conversion_losses(more, path)) and any(
        "mass" in what for what in conversion_losses(more, path)
    )


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (b"%PDF-1.4\n\xe2\xe3", "walk.c3d", "not C3D, as the name suggests: the file begins with '%PDF-1.4"),
        (b"%PDF-1.4\n\xe2\xe3", "walk.c3d", "Export the recording again"),
        (b"", "walk.c3d", "The file is empty. Copy or export it again."),
        (b"hello this is a text", "notes.txt", "Unknown file format. Export the data in one that is supported"),
        (None, "trials", "The path is a folder. Pass a file in it."),
    ],
)
def test_a_stranger_learns_what_to_do_next(call, tmp_path, content, name, sentence):
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    for command in ("info", "doctor"):
        assert_one_sentence(call(command, path), sentence)


def test_a_missing_file_suggests_the_one_that_may_be_meant(call, walk):
    done = call("info", walk.with_name("Wlak.c3d"))
    assert_one_sentence(done, f"The file does not exist. Check its name and folder. Did you mean {walk}?")
    assert "Did you mean" not in call("info", walk.with_name("quite_another.trc")).err
    assert "Did you mean" not in call("info", walk.parent / "no" / "such" / "walk.c3d").err


def test_repairs_and_assumptions_are_mentioned_by_every_command_that_writes(call, tmp_path):
    damaged, target = tmp_path / "damaged.trc", tmp_path / "out.c3d"
    borelli.write_recording(walker.recording(), damaged)
    rows = damaged.read_text().splitlines()
    rows[30] = "\t".join(rows[30].split("\t")[:20])
    damaged.write_text("\n".join(rows) + "\n")
    for arguments in (("convert", damaged, target), ("clean", damaged, target, "--force"), ("markers", damaged)):
        text = " ".join(call(*arguments).out.split())
        assert "problem 1 rows have fewer cells" in text, arguments
    notes = json.loads(call("convert", damaged, target, "--force", "--json").out)["notes"]
    assert any("Vertical axis" in note for note in notes) and any("fewer cells" in note for note in notes)
    skeleton = tmp_path / "one.asf"
    skeleton.write_text(
        ":name one\n:units\n length 0.45\n angle deg\n:bonedata\n begin\n name femur\n direction 0 -1 0\n length 30\n"
        " axis 0 0 0 XYZ\n end\n:hierarchy\n begin\n root femur\n end\n"
    )
    assert "Body mass" in call("convert", skeleton, tmp_path / "one.toml").out
