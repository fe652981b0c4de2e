"""Every command that writes: nothing of the user's is lost, whatever lies in its way and whenever it ends.

The ordinary tests run in this process; the campaigns (`make soak`) run each command in processes of its own, on full
disks, at the same time, and killed at random moments.
"""

import os
import shutil
import subprocess
import sys
from itertools import cycle, product
from types import SimpleNamespace

import numpy as np
import pytest
import typer

from borelli.cli import app, main
from borelli.files.folder_lock import LOCK, lock_folder
from borelli.files.manifest import MANIFEST
from borelli.kernels.compile_cache import compile_kernels, missing_tasks

from ..files.full_disk import full_disk
from .write_campaign import Server, run_full_disks, run_kills, run_pairs, run_small_drives
from .writing_commands import COMMANDS, assert_equal_results, assert_refused, copy_inputs, leftovers, make_inputs, tree

ALIASES = ("same", "symbolic", "hard")
FOLDER_COMMANDS = [name for name, one in COMMANDS.items() if "-o out " in f"{one.arguments} "]
QUICK = ("clean", "energy", "convert to .nc")
"""Commands that take less than a second."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    compile_kernels(tasks=missing_tasks())  # its notice is not a second sentence of a refusal
    return make_inputs(tmp_path_factory.mktemp("inputs") / "all")


@pytest.fixture
def work(inputs, tmp_path, monkeypatch):
    """Return a folder with the input files, which is the working folder."""
    monkeypatch.chdir(copy_inputs(inputs, tmp_path / "work"))
    return tmp_path / "work"


@pytest.fixture
def call(capsys, monkeypatch):
    def run(text, *more):
        monkeypatch.setattr(sys, "argv", ["borelli", *text.split(), *more])
        code = 0
        try:
            main()
        except SystemExit as done:
            code = done.code or 0
        return SimpleNamespace(code=code, err=capsys.readouterr().err)

    return run


def put(path, text="mine"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# an input in the way of an output


def put_input(work, source, output, alias):
    """Give an input the name of an output; return how the input is called."""
    path = work / output
    path.parent.mkdir(parents=True, exist_ok=True)
    if alias == "same":
        (work / source).rename(path)
        return output
    if alias == "hard":
        os.link(work / source, path)
    else:
        path.symlink_to(work / source)
    return source


def check_inputs(name, pairs, call, work):
    """Check each input with each alias in the way of an output."""
    command = COMMANDS[name]
    for source, output, alias in pairs:
        # files that another file names are not arguments, and folders of several recordings are named after them
        argument = source in command.arguments.split()
        if alias == "same" and (not argument or name == "analyze several"):
            alias = "symbolic"
        called = put_input(work, source, output, alias)
        arguments = " ".join(called if word == source else word for word in command.arguments.split())
        before = tree(work)
        for force in ((), ("--force",)):
            done = call(arguments, *force)
            known = force or argument  # others are known only after the file that names them has been read
            assert_refused(done.code, done.err, "input" if known else "out")
            assert tree(work) == before, (source, output, alias)
        (work / output).rename(work / source) if alias == "same" else (work / output).unlink()


def test_every_command_and_every_file_is_in_the_campaign():
    campaign = [one.arguments.split() for one in COMMANDS.values()]
    checked = 0
    for name, command in typer.main.get_command(app).commands.items():
        options = {text for option in command.params for text in option.opts if option.metavar in ("FILE", "FOLDER")}
        if name == "demo" or not any("--force" in option.opts for option in command.params):
            continue  # `test_demo`; commands that write nothing
        assert any(one[0] == name for one in campaign), name
        for text in (one for one in options if one.startswith("--")):
            words = {text, "-o"} if text == "--out" else {text}
            assert any(words & set(one) for one in campaign), (name, text)
            checked += 1
    assert checked > 40


@pytest.mark.parametrize("name", COMMANDS)
def test_inputs_are_never_replaced(name, call, work):
    command = COMMANDS[name]
    if command.inputs:
        count = max(len(command.inputs), 3)
        outputs = [command.outputs[k % len(command.outputs)] for k in range(count)]
        sources = [command.inputs[k % len(command.inputs)] for k in range(count)]
        check_inputs(name, zip(sources, outputs, cycle(ALIASES)), call, work)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_inputs_are_never_replaced_in_any_combination(name, call, work):
    command = COMMANDS[name]
    check_inputs(name, product(command.inputs, command.outputs, ALIASES), call, work)


def test_recording_is_not_replaced_by_its_writer(work):
    import borelli as bo

    before = tree(work)
    recording = bo.read_recording("walk.c3d")
    for write in (bo.write_recording, lambda one, path, overwrite: one.to_netcdf(path, overwrite=overwrite)):
        with pytest.raises(bo.SettingsError, match="is an input file"):
            write(recording, "walk.c3d", overwrite=True)
    with pytest.raises(bo.SettingsError, match="is an input file"):
        bo.write_recording(bo.clean(recording), work / ".." / "work" / "walk.c3d", overwrite=True)
    assert tree(work) == before


# a file of the user in the way of an output


def check_outputs(name, outputs, call, work):
    """Check a file of the user in the way of each output."""
    for output in outputs:
        put(work / output)
        before = tree(work)
        done = call(COMMANDS[name].arguments)
        assert_refused(done.code, done.err, output.rsplit("/", 1)[-1], "--force")
        assert tree(work) == before
        (work / output).unlink()
    assert not leftovers(work)


@pytest.mark.parametrize("name", COMMANDS)
def test_files_of_the_user_are_refused_before_computing(name, call, work):
    check_outputs(name, COMMANDS[name].outputs[::8], call, work)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_all_files_of_the_user_are_refused_before_computing(name, call, work):
    check_outputs(name, COMMANDS[name].outputs, call, work)


@pytest.mark.parametrize("name", FOLDER_COMMANDS)
def test_all_files_of_the_user_are_listed(name, call, work):
    command = COMMANDS[name]
    for output in (*command.outputs, f"out/{MANIFEST}"):
        put(work / output)
    before = tree(work)
    done = call(command.arguments)
    listed = [output.removeprefix("out/") for output in command.outputs][:10]
    assert_refused(done.code, done.err, MANIFEST, *listed)
    assert tree(work) == before


@pytest.mark.parametrize("name", QUICK)
def test_force_replaces_files_of_the_user(name, call, work):
    command = COMMANDS[name]
    for output in command.outputs:
        put(work / output)
    put(work / "out" / "notes.txt")
    before = tree(work)
    done = call(command.arguments, "--force")
    assert done.code == 0, done.err
    after = tree(work)
    assert all(after[output] != before[output] for output in command.outputs)
    assert all(after[name] == before[name] for name in before if name not in command.outputs)


def test_edited_results_are_refused_and_unedited_ones_replaced(call, work):
    simulate = COMMANDS["simulate"].arguments.replace("--save out.toml --video out.gif", "").replace("--out out.nc", "")
    assert call(simulate).code == 0
    assert call(simulate.replace("0.1", "0.06")).code == 0
    assert sorted(path.name for path in (work / "out").glob("*.png")) == ["frame-0000.png", "frame-0001.png"]
    put(work / "out" / "frame-0001.png")
    before = tree(work)
    done = call(simulate)
    assert_refused(done.code, done.err, "(frame-0001.png)")
    assert tree(work) == before


# full disks


@pytest.mark.parametrize("name", QUICK)
def test_full_disk_changes_nothing(name, call, work):
    command, before = COMMANDS[name], tree(work)
    for size in (0, 700):
        with full_disk(size):
            done = call(command.arguments)
        if size == 0:
            assert_refused(done.code, done.err, "out", "File too large")
        left = {path: digest for path, digest in tree(work).items() if path in before}
        assert left == before and not leftovers(work)
        shutil.rmtree(work / "out", ignore_errors=True)
        for output in command.outputs:
            (work / output).unlink(missing_ok=True)
    assert call(command.arguments).code == 0


def test_process_on_a_full_disk_does_not_crash(work):
    """HDF5 that cannot close a file crashes when the process ends."""
    program = (
        "import resource, sys\nfrom borelli.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\nmain()\n"
    )
    arguments = [sys.executable, "-c", program, "convert", "walk.c3d", "out.nc"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert_refused(done.returncode, done.stderr, "out.nc", "File too large")


# two at once, and killed


def test_second_run_is_refused(call, work):
    (work / "out").mkdir()
    with lock_folder(work / "out"):
        for name in ("analyze", "animate", "experiment", "simulate"):
            done = call(COMMANDS[name].arguments)
            assert_refused(done.code, done.err, "out: Another run is writing", f"process {os.getpid()}")
        assert [path.name for path in (work / "out").iterdir()] == [LOCK]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before its name", "after its name"])
def test_killed_run_is_continued(call, work, moment):
    arguments = [*COMMANDS["simulate"].arguments.split()[:4], "--frames", "out"]
    program = (
        "import os, signal, sys\nfrom borelli.cli import main\nfrom borelli.files import results_folder\n"
        "original, calls = results_folder.move, []\n"
        "def move(*arguments, **options):\n"
        "    calls.append(1)\n"
        f"    if len(calls) == 2 and {moment == 'after its name'}:\n        original(*arguments, **options)\n"
        "    if len(calls) == 2:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    original(*arguments, **options)\n"
        "results_folder.move = move\nmain()\n"
    )
    put(work / "out" / "notes.txt")
    assert call(" ".join(arguments), "--step", "0.002").code == 0
    assert subprocess.run([sys.executable, "-c", program, *arguments], check=False).returncode == -9
    assert leftovers(work)
    assert call(" ".join(arguments)).code == 0 and not leftovers(work)
    (work / "expected").mkdir()
    assert call(" ".join([*arguments[:-1], "expected/out"])).code == 0
    assert_equal_results([f"out/frame-000{k}.png" for k in range(4)], work, work / "expected")
    assert (work / "out" / "notes.txt").read_text() == "mine"


# campaigns


@pytest.fixture(scope="module")
def server(inputs, tmp_path_factory):
    with Server(copy_inputs(inputs, tmp_path_factory.mktemp("server") / "work")) as started:
        yield started


@pytest.fixture(scope="module")
def references(server, inputs, tmp_path_factory):
    """Return the folders of undisturbed runs of each command, with its settings and with other settings."""
    folder = tmp_path_factory.mktemp("references")
    found = {}
    for name, command in COMMANDS.items():
        for other in dict.fromkeys(("", command.other)):
            work = copy_inputs(inputs, folder / f"{name} {other}")
            (code, err), *_ = server.run(server.request(f"{command.arguments} {other}", work))
            assert code == 0, err
            found[name, other] = work
    return found


@pytest.mark.slow
def test_campaign_of_full_disks(server, references, inputs, tmp_path):
    print(run_full_disks(server, references, inputs, tmp_path, np.random.default_rng(1), rounds=6))


@pytest.mark.slow
def test_campaign_of_small_drives(server, references, inputs, tmp_path):
    print(run_small_drives(server, references, inputs, tmp_path, np.random.default_rng(2), rounds=3))


@pytest.mark.slow
def test_campaign_of_two_runs_at_once(server, references, inputs, tmp_path):
    print(run_pairs(server, references, inputs, tmp_path, np.random.default_rng(3), rounds=4))


@pytest.mark.slow
def test_campaign_of_kills(server, references, inputs, tmp_path):
    print(run_kills(server, references, inputs, tmp_path, np.random.default_rng(4), rounds=12))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_force_of_every_command(name, server, inputs, tmp_path):
    command = COMMANDS[name]
    work = copy_inputs(inputs, tmp_path / "work")
    for output in command.outputs:
        put(work / output)
    before = tree(work)
    (code, err), *_ = server.run(server.request(f"{command.arguments} --force", work))
    assert code == 0, err
    after = tree(work)
    assert all(after[path] == digest for path, digest in before.items() if path not in command.outputs)


@pytest.mark.slow
def test_demo(call, work):
    put(work / "out" / "walk.nc")
    put(work / "out" / "jump" / "summary.json")
    before = tree(work)
    done = call("demo --out out")
    assert_refused(done.code, done.err, "out/jump", "summary.json")
    (work / "out" / "jump" / "summary.json").unlink()
    done = call("demo --out out")
    assert_refused(done.code, done.err, "(walk.nc)")
    assert tree(work).items() <= before.items()
    for force in (("--force",), ()):
        done = call("demo --out out", *force)
        assert done.code == 0, done.err
