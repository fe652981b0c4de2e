"""Campaigns on every command that writes: full disks, small drives, two runs at once, and SIGKILL at random moments.

Each returns a line with the number of cases; every case must keep the user's files, and the next run must succeed with
the results of an undisturbed one.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import pytest

from .writing_commands import COMMANDS, assert_equal_results, assert_refused, copy_inputs, leftovers, tree


class Server:
    """Process that runs commands in forks of itself: see `fork_server`."""

    def __init__(self, folder):
        program = Path(__file__).with_name("fork_server.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert json.loads(self._process.stdout.readline()) == "ready"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()

    @staticmethod
    def request(arguments, folder, limit=None, kill=None):
        return {"arguments": arguments.split(), "folder": str(folder), "limit": limit, "kill": kill}

    def run(self, *requests):
        """Run commands at the same time; return their exit codes and stderr."""
        self._process.stdin.write(json.dumps(requests) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def prepare(inputs, folder):
    """Return a folder with the inputs and a file of the user among the results, and the hashes of all its files."""
    work = copy_inputs(inputs, folder)
    (work / "out").mkdir()
    (work / "out" / "notes.txt").write_text("mine")
    return work, tree(work)


def check_kept(work, before):
    after = tree(work)
    assert {path: after.get(path) for path in before} == before
    assert not leftovers(work)


def rerun(server, name, work, before, references):
    """Run a command to its end, and check its results."""
    command = COMMANDS[name]
    ((code, err),) = server.run(server.request(command.arguments, work))
    if code == 1 and "The file exists" in err:  # written before the first run ended
        assert_refused(code, err, "out")
        ((code, err),) = server.run(server.request(f"{command.arguments} --force", work))
    assert code == 0, (name, err)
    check_kept(work, before)
    assert_equal_results(command.outputs, work, references[name, ""])


def run_full_disks(server, references, inputs, folder, rng, rounds):
    cases, files = 0, Counter()
    for name, command in COMMANDS.items():
        sizes = [path.stat().st_size for o in command.outputs if (path := references[name, ""] / o).exists()]
        for number in range(rounds):
            work, before = prepare(inputs, folder / f"{name} {number}")
            limit = int((0.98 * max(sizes)) ** rng.random())
            ((code, err),) = server.run(server.request(command.arguments, work, limit=limit))
            assert_refused(code, err, "File too large", "out")
            files[err.split(": ")[1].rsplit("/", 1)[-1]] += 1
            check_kept(work, before)
            rerun(server, name, work, before, references)
            shutil.rmtree(work)
            cases += 1
    return f"full disks: {cases} cases, 0 failures; files that did not fit: {dict(files)}"


def run_small_drives(server, references, inputs, folder, rng, rounds):
    drive, cases = folder / "drive", Counter()
    drive.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(drive)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("drives cannot be mounted here")
    needed = sum(path.stat().st_size for path in inputs.iterdir())

    def resize(size):
        subprocess.run(["mount", "-o", f"remount,size={size}", str(drive)], check=True)

    try:
        for name, command in COMMANDS.items():
            total = sum(path.stat().st_size for o in command.outputs if (path := references[name, ""] / o).exists())
            for number in range(rounds):
                resize("200m")
                work, before = prepare(inputs, drive / str(number))
                resize(needed + int(total * rng.random()) // 4096 * 4096 + 60_000)
                ((code, err),) = server.run(server.request(command.arguments, work))
                if code:
                    assert_refused(code, err, "No space left on device")
                cases["fitted" if code == 0 else "refused"] += 1
                check_kept(work, before)
                resize("200m")
                rerun(server, name, work, before, references)
                shutil.rmtree(work)
    finally:
        subprocess.run(["umount", str(drive)], check=True)
    assert cases["refused"] > cases.total() / 4
    return f"small drives: {cases.total()} cases, 0 failures; {dict(cases)}"


def agrees(command, work, reference):
    """Return whether the outputs that exist are those of an undisturbed run."""
    try:
        assert_equal_results([output for output in command.outputs if (work / output).exists()], work, reference)
    except AssertionError:
        return False
    return True


def run_pairs(server, references, inputs, folder, rng, rounds):
    cases = Counter()
    for name, command in COMMANDS.items():
        for number in range(rounds if command.other else 0):
            work, before = prepare(inputs, folder / f"{name} {number}")
            texts = [command.arguments, f"{command.arguments} {command.other}"]
            done = server.run(*(server.request(texts[k], work) for k in rng.permutation(2)))
            codes = sorted(code for code, _ in done)
            assert codes in ([0, 0], [0, 1]), done
            for code, err in done:
                if code:
                    assert_refused(code, err, "out")
            cases["one after the other" if codes == [0, 0] else "one refused"] += 1
            check_kept(work, before)
            assert any(agrees(command, work, references[name, other]) for other in ("", command.other)), name
            shutil.rmtree(work)
    return f"two at once: {cases.total()} cases, 0 failures; {dict(cases)}"


def run_kills(server, references, inputs, folder, rng, rounds):
    cases = Counter()
    for name, command in COMMANDS.items():
        start = perf_counter()
        work, before = prepare(inputs, folder / name)
        rerun(server, name, work, before, references)
        duration = perf_counter() - start
        shutil.rmtree(work)
        for number in range(rounds):
            work, before = prepare(inputs, folder / f"{name} {number}")
            if number % 2 and command.other and "-o out " in f"{command.arguments} ":  # replaces other results
                ((code, err),) = server.run(server.request(f"{command.arguments} {command.other}", work))
                assert code == 0, err
            kill = float(rng.uniform(0.0, 1.1 * duration))
            ((code, err),) = server.run(server.request(command.arguments, work, kill=kill))
            assert code in (0, -9), (name, err)
            cases["killed" if code else "ended before"] += 1
            cases["left a temporary file"] += bool(leftovers(work))
            after = tree(work)
            assert {path: after.get(path) for path in before} == before
            known = [references[name, other] for other in dict.fromkeys(("", command.other))]
            assert any(agrees(command, work, reference) for reference in known), name
            rerun(server, name, work, before, references)
            shutil.rmtree(work)
    total = cases["killed"] + cases["ended before"]
    return f"SIGKILL: {total} cases, 0 failures; {dict(cases)}"
