"""Exit codes as documented in docs/cli.md, and one JSON object on stdout whatever happens, for all commands."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from borelli.cli import main
from borelli.model.io import write_model
from borelli.model.model import Model

from .test_commands import COMMANDS

ROOT = Path(__file__).parents[2]
ARGUMENTS = {  # for a file that cannot be used, after the command; {} is the file
    "analyze": ["{}"], "fit": ["{}"], "ik": ["{}", "{}"], "id": ["{}"], "muscles": ["{}"], "energy": ["{}"],
    "report": ["{}"], "info": ["{}"], "doctor": ["{}"], "clean": ["{}", "out.csv"],
    "convert": ["{}", "out.csv"], "compare": ["{}", "{}"], "markers": ["{}"], "simulate": ["{}"], "animate": ["{}"],
    "optimize": ["track", "{}"], "experiment": ["no-such-experiment"],
}  # fmt: skip
WITHOUT_FILES = {"demo", "bench"}
WITHOUT_JSON = {"demo", "report"}
TEXT = "Dear diary, today I walked.\nIt was 1, 2, 3 steps; then 4.\n"


def run(*arguments):
    """Run a command in this process; return exit code, stdout and stderr."""
    printed, errors, code = StringIO(), StringIO(), 0
    sys.argv = ["borelli", *map(str, arguments)]
    with redirect_stdout(printed), redirect_stderr(errors):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    return code, printed.getvalue(), errors.getvalue()


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)


def test_every_command_is_checked():
    assert set(ARGUMENTS) | WITHOUT_FILES == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
@pytest.mark.parametrize("file", ["missing.c3d", "text.txt", "empty.c3d", "folder"])
def test_bad_files_give_one_sentence_and_code_1(name, file):
    Path("text.txt").write_text(TEXT)
    Path("empty.c3d").touch()
    Path("folder").mkdir()
    arguments = [argument.format(file) for argument in ARGUMENTS[name]]
    code, printed, errors = run(name, *arguments)
    assert code == 1 and printed == ""
    assert re.fullmatch(r"borelli: [^\n]*\n", errors), errors
    if name in WITHOUT_JSON:
        return
    code, printed, again = run(name, *arguments, "--json")
    value = json.loads(printed)
    assert code == 1 and again == errors and set(value) == {"error", "file"}
    assert f"borelli: {value['error']}\n" == errors
    assert value["file"] == (None if name == "experiment" else file)


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_usage_gives_code_2(name):
    code, printed, errors = run(name, "--no-such-option")
    assert code == 2 and printed == "" and "--no-such-option" in errors


def test_wrong_usage_without_a_command():
    assert run("no-such-command")[0] == 2
    assert run("info")[0] == 2
    assert run("compare", "a", "b", "--poses", "many")[0] == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_help_gives_code_0(name):
    assert run(name, "--help")[0] == 0


def test_an_interrupted_command_gives_code_130(tmp_path):
    """A real interrupt, sent while a command waits for a reader of the pipe it opens."""
    scene = tmp_path / "s.toml"
    scene.write_text(
        'format = "borelli-scene"\nversion = 1\nname = "s"\nduration = 0.1\nstep = 0.01\nmodel = "human"\n'
    )
    code = (
        "import signal, sys, time, borelli.scenes.scene_files as files\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell ignores it in background jobs
        "def wait(path):\n    print('waiting', flush=True)\n    time.sleep(600)\n"
        "files.read_scene = wait\n"
        "sys.argv = ['borelli', 'simulate', 's.toml']\n"
        "from borelli.cli import main\nmain()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in errors


def test_codes_are_documented():
    text = (ROOT / "docs" / "cli.md").read_text().partition("## Exit codes")[2]
    assert re.findall(r"^\| (\d+) \|", text, re.MULTILINE) == ["0", "1", "2", "130"]


def test_missing_file_says_what_to_do():
    assert run("info", "nope.c3d")[2] == "borelli: nope.c3d: The file does not exist. Check its name and folder.\n"


def test_several_bad_files_are_listed_in_one_object():
    Path("text.txt").write_text(TEXT)
    code, printed, _ = run("info", "nope.c3d", "text.txt", "--json")
    assert code == 1
    value = json.loads(printed)
    assert set(value) == {"nope.c3d", "text.txt"} and all(set(summary) == {"error"} for summary in value.values())


@pytest.mark.parametrize(
    "text",
    [
        TEXT, "# Title\n\n- one, two\n- three, four\n", "import os, sys\nx = [1, 2, 3]\n", "a;b\nc;d\ne;f\n",
        "1, 2, 3\nand then, a text, follows\nin many, many lines\nof words, not numbers\n",
        "name,role\nAnn,coach\nBob,athlete\n", '{"a": 1, "b": [2, 3]}\n', "PATH=/bin:/usr/bin\n",
    ],
)  # fmt: skip
def test_text_is_not_taken_for_csv(text):
    Path("notes.txt").write_text(text)
    code, _, errors = run("info", "notes.txt")
    assert code == 1 and "Unknown file format" in errors


@pytest.mark.parametrize(
    "text",
    [
        "time,a.x,a.y,a.z\n0,1,2,3\n0.01,1,2,3\n", "time;a_x;a_y;a_z\n0;1,5;2;3\n0,01;1;2;3\n",
        "time\tq\n0\t1\n1\t2\n", "time,a_x,a_y,a_z\n0,,,\n0.01,nan,1,2\n",
    ],
)  # fmt: skip
def test_tables_of_numbers_are_csv(text):
    Path("table.txt").write_text(text)
    code, printed, _ = run("info", "table.txt", "--json")
    assert code == 0 and json.loads(printed)["kind"] == "recording"


def test_a_model_without_bodies_is_simulated_and_refused_elsewhere():
    write_model(Model("nothing", ()), "nothing.toml")
    Path("s.toml").write_text(
        'format = "borelli-scene"\nversion = 1\nname = "s"\nduration = 0.05\nstep = 0.01\nmodel = "nothing.toml"\n'
    )
    code, printed, errors = run("simulate", "s.toml", "--json")
    assert code == 0 and json.loads(printed)["bodies"] == 0 and errors == ""
    assert run("info", "nothing.toml")[0] == 0 and run("doctor", "nothing.toml")[0] == 0
    code, _, errors = run("simulate", "s.toml", "--video", "s.png")
    assert code == 1 and "no bodies to draw" in errors
    Path("a.csv").write_text("time,A_x,A_y,A_z\n0,1,2,3\n0.01,1,2,3\n0.02,1,2,3\n")
    for command in (("fit", "a.csv", "--model", "nothing.toml"), ("ik", "nothing.toml", "a.csv")):
        code, _, errors = run(*command)
        assert code == 1 and re.fullmatch(r"borelli: [^\n]*\.\n", errors)


def test_a_closed_pipe_is_silent():
    command = f"{sys.executable} -m borelli info --help | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=os.environ)
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
