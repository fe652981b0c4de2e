"""Files of machine code: damage is found before anything is unpickled, and the kernel is compiled again."""

import os
import pickle
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from borelli.kernels import cache_folder
from borelli.kernels.jit import JIT_ON
from borelli.kernels.machine_code import COMPILING, read_code, write_code

KEY, CONTENT = b"all that the code depends on", bytes(range(256))
pytestmark = pytest.mark.skipif(not JIT_ON, reason="nothing is compiled with BORELLI_JIT=0")


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(cache_folder, "_ANNOUNCED", set())


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "module-0123456789abcdef" / "kernel.code"
    write_code(path, KEY, CONTENT)
    return path


def test_written_code_is_read_and_is_private(stored):
    assert read_code(stored, KEY) == CONTENT
    assert [path.stat().st_mode & 0o777 for path in (stored, stored.parent)] == [0o600, 0o700]
    assert [path.name for path in stored.parent.iterdir()] == ["kernel.code"]


def is_damaged(path, capsys):
    """Return True if the code is refused, removed, and announced in one line that names it."""
    cache_folder._ANNOUNCED.clear()
    refused = read_code(path, KEY) is None and not path.exists()
    (line,) = capsys.readouterr().err.splitlines()
    return refused and "is removed and compiled again" in line and str(path.parent) in line


def test_every_changed_byte_is_found(stored, capsys):
    whole = stored.read_bytes()
    for place in range(len(whole)):
        write_code(stored, KEY, CONTENT)
        stored.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        assert is_damaged(stored, capsys), place


def test_every_truncation_and_extension_is_found(stored, capsys):
    whole = stored.read_bytes()
    for changed in [*(whole[:length] for length in range(len(whole))), whole + b"\0"]:
        write_code(stored, KEY, CONTENT)
        stored.write_bytes(changed)
        assert is_damaged(stored, capsys), len(changed)


def test_code_of_another_kernel_is_refused(stored, capsys):
    write_code(stored, b"another key", CONTENT)
    assert is_damaged(stored, capsys)


def test_code_that_others_can_write_to_is_refused(stored, capsys):
    stored.chmod(0o620)
    assert is_damaged(stored, capsys)
    write_code(stored, KEY, CONTENT)
    stored.parent.chmod(0o777)
    assert is_damaged(stored, capsys)


def test_links_and_folders_and_pipes_are_refused(stored, capsys):
    stored.rename(stored.with_name("elsewhere"))
    stored.symlink_to("elsewhere")
    assert is_damaged(stored, capsys)
    stored.mkdir()
    assert is_damaged(stored, capsys)
    os.mkfifo(stored)
    assert is_damaged(stored, capsys)


def test_missing_code_is_not_announced(tmp_path, capsys):
    assert read_code(tmp_path / "none" / "kernel.code", KEY) is None
    assert capsys.readouterr().err == ""


def test_damage_is_announced_once(stored, capsys):
    for _ in range(3):
        stored.write_bytes(b"")
        stored.chmod(0o600)
        assert read_code(stored, KEY) is None
    assert len(capsys.readouterr().err.splitlines()) == 1


PROGRAM = """
from borelli.kernels.jit import kernel
@kernel
def total(count):
    result = 0.0
    for i in range(count):
        result += 1.0 / (1.0 + i)
    return result
print(repr(total(100)), sum(total.stats.cache_hits.values()))
"""
RESULT = repr(sum(1.0 / (1.0 + i) for i in range(100)))


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a process with one kernel."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    path = os.pathsep.join(entry for entry in sys.path if entry)

    def start_process(cache, **options):
        environment = {name: value for name, value in os.environ.items() if name not in ("BORELLI_CACHE", COMPILING)}
        environment |= {"PYTHONPATH": path} | ({} if cache is None else {"BORELLI_CACHE": str(cache)})
        environment |= options.pop("environment", {})
        return subprocess.Popen(
            [sys.executable, str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            **options,
        )

    return start_process


def finish(process):
    """Return the result, the number of kernels loaded from the cache, and the lines on stderr."""
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    result, hits = output.split()
    return result, int(hits), errors.splitlines()


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_processes_compile_at_the_same_time_and_a_planted_pickle_is_not_loaded(start, tmp_path):
    cache, fired = tmp_path / "cache", tmp_path / "fired"
    for process in [start(cache), start(cache)]:
        assert finish(process)[0] == RESULT
    (file,) = cache.rglob("*.*")
    assert file.suffix == ".code"
    file.write_bytes(pickle.dumps(Bomb(fired)))
    result, hits, lines = finish(start(cache))
    assert (result, hits, len(lines)) == (RESULT, 0, 1) and str(file) in lines[0]
    assert not fired.exists()
    assert finish(start(cache)) == (RESULT, 1, [])


@pytest.mark.slow
def test_working_folder_is_not_a_cache(start, tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    environment = {"XDG_CACHE_HOME": "", "HOME": str(home)}
    assert finish(start("", cwd=work, environment=environment))[0] == RESULT
    assert list(work.iterdir()) == [] and len(list((home / ".cache" / "borelli").rglob("*.code"))) == 1


def test_kernels_work_without_a_cache(start, tmp_path):
    result, _, lines = finish(start("/dev/null/cache"))
    assert result == RESULT and len(lines) == 1 and lines[0].startswith("borelli: /dev/null/cache: ")
    limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))}
    result, _, lines = finish(start(tmp_path / "full", **limit))
    assert result == RESULT and len(lines) == 1 and f"{tmp_path / 'full'}" in lines[0]
    assert [path for path in (tmp_path / "full").rglob("*") if path.is_file()] == []
