"""Recordings and models on the command line: what is in them, what is wrong with them, cleaned, converted, compared."""

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
UNREAD = {"ThoracoscapularShoulderModel.osim": "ScapulothoracicJoint", "gonzalez_wrist.osim": "before 2.0"}
WHOLE_FOLDER = 120.0  # [s]: `borelli info --json` on all the data there is


@pytest.fixture
def call(capsys, monkeypatch):
    """Runs the command in this process."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["borelli", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as done:
            code = done.code or 0
        told = capsys.readouterr()
        return SimpleNamespace(code=code, out=told.out, err=told.err)

    return run


@pytest.fixture
def walk(tmp_path):
    """A sound C3D of a walker over two plates."""
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


def faults(call, *arguments):
    done = call("doctor", *arguments, "--json")
    assert done.err == "", done.err
    found = json.loads(done.out)["faults"]
    assert done.code == any(fault["severity"] == "error" for fault in found)
    return {fault["kind"]: fault for fault in found}


# info


def test_info_tells_everything_about_a_recording(call, tmp_path):
    points, *_ = walker.walk()
    points[40:70, 3] = np.nan
    path = tmp_path / "walk.c3d"
    whole = walker.recording()
    borelli.write_recording(whole.with_data(whole.data.assign(marker_position=whole.data["marker_position"].copy(data=points))), path)
    facts = json.loads(call("info", path, "--json").out)
    assert facts["kind"] == "recording" and facts["format"] == "C3D"
    assert facts["frames"] == 300 and facts["rate [Hz]"] == 100.0 and facts["duration [s]"] == pytest.approx(2.99)
    assert facts["analog samples"] == 3000 and facts["analog rate [Hz]"] == 1000.0
    name = whole.markers[3]
    assert facts["markers seen"][name] == pytest.approx(0.9) and facts["longest gaps [frames]"] == {name: 30}
    assert sum(share == 1.0 for share in facts["markers seen"].values()) == len(whole.markers) - 1
    assert facts["marker set"]["name"].startswith("Plug-in Gait")
    peaks = [about["peak vertical force [N]"] for about in facts["plate loads"].values()]
    assert peaks == pytest.approx(whole.data["plate_force"].values[:, :, 2].max(axis=0), rel=1e-3)
    assert facts["units"]["taken"] == "m" and facts["units"]["basis"] == "stated"
    assert facts["up"]["taken"] == "+Z" and facts["forward"]["taken"] == "+X"
    shown = call("info", path).out
    assert name in shown and "90%" in shown and "plate 2: peak" in shown and "forward" in shown
    assert max(map(len, shown.splitlines()[2:])) <= 80


def test_info_on_many_goes_on_after_errors(call, walk, arm, tmp_path):
    done = call("info", walk, tmp_path / "absent.c3d", arm, "--json")
    facts = json.loads(done.out)
    assert done.code == 1
    assert list(facts) == [str(walk), str(tmp_path / "absent.c3d"), str(arm)]
    assert [about.get("kind") for about in facts.values()] == ["recording", None, "model"]
    assert "absent.c3d" in facts[str(tmp_path / "absent.c3d")]["error"]
    shown = call("info", walk, tmp_path / "absent.c3d", arm)
    assert shown.code == 1 and "absent.c3d" in shown.err and "LASI" in shown.out and "kg" in shown.out
    assert call("info", walk, arm).code == 0


def test_kind_is_told_by_content(call, walk, arm, tmp_path):
    for source, name, kind in ((walk, "walk.osim", "recording"), (arm, "arm.c3d", "model")):
        shutil.copy(source, tmp_path / name)
        assert json.loads(call("info", tmp_path / name, "--json").out)["kind"] == kind


def test_info_lists_the_parts_of_a_model(call, arm):
    facts = json.loads(call("info", arm, "--json").out)
    model = borelli.read_model(arm)
    assert facts["bodies"] == len(model.bodies) == len(facts["body masses [kg]"])
    assert sum(facts["body masses [kg]"].values()) == pytest.approx(70.0)
    assert set(facts["marker bodies"]) == {marker.name for marker in model.markers}


def test_the_users_word_on_units_and_axes_wins(call, walk, arm):
    plain = json.loads(call("info", walk, "--json").out)
    facts = json.loads(call("info", walk, "--units", "cm", "--up", "-Y", "--json").out)
    assert facts["units"]["basis"] == facts["up"]["basis"] == "asked"
    assert facts["units"]["taken"] == "cm" and facts["up"]["taken"] == "-Y"
    center, before = (about["plate loads"]["plate 1"]["center [m]"] for about in (facts, plain))
    assert np.linalg.norm(center) == pytest.approx(0.01 * np.linalg.norm(before))
    assert_one_sentence(call("info", walk, "--up", "W"), "up", "'W'", "+Z")
    assert_one_sentence(call("info", walk, "--units", "furlong"), "furlong")
    assert_one_sentence(call("info", arm, "--units", "mm"), "human.toml", "--units", "recordings")


def test_picture_of_a_recording(call, walk, arm, tmp_path):
    picture = tmp_path / "walk.png"
    assert call("info", walk, "--plot", picture).code == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert_one_sentence(call("info", walk, "--plot", picture), "walk.png", "--force")
    assert call("info", walk, "--plot", picture, "--force").code == 0
    assert_one_sentence(call("info", arm, "--plot", tmp_path / "arm.png"), "holds a model")
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
    return recording.with_data(recording.data.assign(marker_position=recording.data["marker_position"].copy(data=points)))


def test_a_sound_recording_has_no_errors(call, walk):
    done = call("doctor", walk)
    assert done.code == 0 and "error" not in done.out


def test_swapped_sides_are_found_and_mended(call, tmp_path):
    path, mended = tmp_path / "swapped.c3d", tmp_path / "mended.c3d"
    borelli.write_recording(swapped_sides(walker.recording()), path)
    assert "--sides" in faults(call, path)["sides"]["action"]
    assert call("doctor", path).code == 1
    assert call("clean", path, mended, "--sides").code == 0
    assert "sides" not in faults(call, mended)


def test_wrong_units_are_found_and_overridden(call, walk):
    found = faults(call, walk, "--units", "mm")["units"]
    assert "--units m" in found["action"] and found["severity"] == "error"
    assert "units" not in faults(call, walk, "--units", "m")


def test_wrong_up_is_found_and_overridden(call, walk):
    found = faults(call, walk, "--up", "+Y")["up"]
    assert "--up +Z" in found["action"] and found["severity"] in ("error", "warning")
    assert "up" not in faults(call, walk, "--up", "+Z")


def test_exchanged_plates_are_found_and_mended(call, tmp_path):
    path, mended = tmp_path / "plates.c3d", tmp_path / "mended.c3d"
    whole = walker.recording()
    borelli.write_recording(borelli.swap_plates(whole, "plate 1", "plate 2"), path)
    assert "plate 1" in faults(call, path)["exchange"]["action"]
    assert call("clean", path, mended, "--swap", "plate 1,plate 2").code == 0
    assert "exchange" not in faults(call, mended)


def test_a_gap_is_found_and_filled(call, tmp_path):
    path, mended = tmp_path / "gap.c3d", tmp_path / "mended.c3d"
    borelli.write_recording(with_gap(walker.recording()), path)
    found = faults(call, path)["gap"]
    assert "LBHD" in found["where"] and "100 to 139" in found["where"] and "borelli clean" in found["action"]
    assert call("clean", path, mended).code == 0
    assert "gap" not in faults(call, mended)


def test_a_marker_set_that_does_not_fit_the_model(call, walk, tmp_path):
    cmu, fitting = tmp_path / "cmu.toml", tmp_path / "pig.toml"
    sets = borelli.list_marker_sets()
    other = next(name for name in sets if "opensim" in name.lower())
    borelli.write_model(borelli.human(markers=other), cmu)
    borelli.write_model(borelli.human(markers="plugin_gait"), fitting)
    assert "Plug-in Gait" in faults(call, walk, "--model", cmu)["model"]["action"]
    assert faults(call, walk, "--model", fitting).get("model", {}).get("severity") != "error"


def test_doctor_on_a_model_and_without_a_file(call, arm, walk):
    assert "sound" in call("doctor", arm).out
    assert_one_sentence(call("doctor", "--model", arm), "no recording given")
    assert_one_sentence(call("doctor", arm, "--model", arm), "--model")


# clean and convert


def test_clean_shows_each_change_and_leaves_the_input(call, tmp_path):
    path, result = tmp_path / "gap.c3d", tmp_path / "clean.c3d"
    borelli.write_recording(with_gap(walker.recording(noise=0.001)), path)
    before = path.read_bytes()
    done = call("clean", path, result, "--start", 0.5, "--stop", 2.5, "--rate", 50, "--events", "plates")
    assert done.code == 0, done.err
    assert "LBHD" in done.out and "6 Hz" in done.out and path.read_bytes() == before
    cleaned = borelli.read_recording(result)
    assert cleaned.rate == 50.0 and cleaned.duration == pytest.approx(2.0)
    assert np.isfinite(cleaned.data["marker_position"].values).all() and cleaned.events
    listed = json.loads(call("clean", path, result, "--force", "--cutoff", 0, "--json").out)["changes"]
    assert listed and not any("low-passed" in change for change in listed)


@pytest.mark.parametrize("verb", ["clean", "convert"])
def test_files_are_never_overwritten_unasked(call, walk, tmp_path, verb):
    before = walk.read_bytes()
    other, alias = tmp_path / "other.c3d", tmp_path / "alias.c3d"
    alias.symlink_to(walk)
    for target in (walk, alias):
        assert_one_sentence(call(verb, walk, target), "is the file that is read")
        assert_one_sentence(call(verb, walk, target, "--force"), "is the file that is read")
    other.write_text("mine")
    assert_one_sentence(call(verb, walk, other), "other.c3d", "--force")
    assert other.read_text() == "mine" and walk.read_bytes() == before
    assert call(verb, walk, other, "--force").code == 0 and other.read_bytes() != b"mine"
    assert_one_sentence(call(verb, walk, tmp_path / "nowhere" / "x.c3d"), "folder")
    assert_one_sentence(call(verb, walk, tmp_path / "x.doc"), ".doc", ".c3d")
    assert not (tmp_path / "x.doc").exists() and walk.read_bytes() == before


def test_convert_says_what_was_lost(call, walk, tmp_path):
    lost = json.loads(call("convert", walk, tmp_path / "walk.trc", "--json").out)["lost"]
    assert any(what.startswith("forces of plates (2)") for what in lost) and not any(
        w.startswith("markers (") for w in lost
    )
    points = borelli.read_recording(walk).data["marker_position"].values
    back = borelli.read_recording(tmp_path / "walk.trc").data["marker_position"].values
    assert np.abs(back - points).max() < 1e-6  # [m]
    assert "nothing was lost" in call("convert", walk, tmp_path / "walk.nc").out
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
        report = json.loads(call("parity", arm, tmp_path / name, "--poses", 5, "--json").out)
        worst = {quantity["text"]: quantity["worst"] for quantity in report["model_output"]}
        assert worst["total mass"] == pytest.approx(0.0, abs=1e-9)
        assert worst["body position"] < 1e-9 and worst["marker position"] < 1e-9
    assert_one_sentence(call("convert", arm, tmp_path / "x.c3d"), ".toml", ".osim")
    assert_one_sentence(call("convert", arm, tmp_path / "x.osim", "--up", "+Y"), "--up", "recordings")


def test_parity_shows_what_differs(call, arm, tmp_path):
    heavier = tmp_path / "heavier.toml"
    borelli.write_model(borelli.human(mass=80.0, markers="plugin_gait"), heavier)
    done = call("parity", arm, heavier, "--poses", 2)
    assert done.code == 0 and "total mass" in done.out and "10 kg" in done.out
    assert_one_sentence(call("parity", arm, tmp_path / "absent.osim"), "absent.osim")
    assert_one_sentence(call("parity", arm, heavier, "--seen-from", "tail"), "tail")


# what is broken


def rubbish(folder, kind):
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
def test_broken_files_are_refused_in_one_sentence_by_every_verb(call, arm, tmp_path, kind):
    path = rubbish(tmp_path, kind)
    result = tmp_path / "result.c3d"
    for arguments in (
        ("info", path),
        ("doctor", path),
        ("convert", path, result),
        ("parity", path, arm),
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
    if not files:
        pytest.skip(f"no data in {folder}: set BORELLI_DATA")
    start = perf_counter()
    done = call("info", "--json", *files)
    assert perf_counter() - start < WHOLE_FOLDER
    refused = {Path(file).name: about["error"] for file, about in json.loads(done.out).items() if "error" in about}
    assert len(files) > 150 and set(refused) <= set(UNREAD)
    assert all(reason in refused[name] for name, reason in UNREAD.items() if name in refused)


def test_defaults_are_those_of_the_functions():
    from inspect import signature

    from borelli.commands.clean import clean as verb

    shown = {name: parameter.default for name, parameter in signature(verb).parameters.items()}
    meant = {name: parameter.default for name, parameter in signature(borelli.clean).parameters.items()}
    same = {"cutoff": "cutoff", "gap": "spline_limit", "rigid": "rigid_limit", "threshold": "threshold", "zero": "zero"}
    assert {name: shown[name] for name in same} == {name: meant[other] for name, other in same.items()}
    assert all(shown[name] == meant[name] for name in ("sides", "swaps", "spikes", "feet", "rate", "start", "stop"))


@pytest.mark.parametrize("verb", ["clean", "simulate"])
def test_help_keeps_its_units(call, verb):
    assert "[s]" in " ".join(call(verb, "--help").out.split())


def test_losses_see_names_holes_and_headers(tmp_path):
    from dataclasses import replace

    from borelli.commands.conversion_losses import lost

    whole = walker.recording()
    path = tmp_path / "walk.csv"
    borelli.write_recording(whole, path)
    assert lost(whole, path) == []
    points = whole.data["marker_position"].values.copy()
    points[3:5, 2] = np.nan
    holed = whole.with_data(whole.data.assign(marker_position=whole.data["marker_position"].copy(data=points)))
    assert any("6 numbers of markers" in what for what in lost(holed, path))
    renamed = whole.with_data(whole.data.assign_coords(marker=["NOSE", *whole.markers[1:]]))
    assert any("'NOSE' became" in what for what in lost(renamed, path))
    more = replace(whole, metadata={"TRIAL": {}}, subject={"mass": 70.0})
    assert any("header: TRIAL" in what for what in lost(more, path)) and any(
        "mass" in what for what in lost(more, path)
    )
