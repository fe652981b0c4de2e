"""A damaged or unsafe kernel cache: each run ends with the right result, and a line that names the folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from borelli.kernels.cache_folder import PERMISSIONS_CHECKED, code_folder
from borelli.kernels.compile_cache import ensure_compiled
from borelli.kernels.jit import JIT_ON
from borelli.kernels.machine_code import SUFFIX

CASES = Path(__file__).with_name("cache_cases.py")
SLICE = 3
"""Damaged files of the ordinary tests."""
pytestmark = [
    pytest.mark.skipif(not JIT_ON, reason="nothing is compiled with BORELLI_JIT=0"),
    pytest.mark.skipif(not PERMISSIONS_CHECKED, reason="permissions are not checked on Windows"),
]


class Run(NamedTuple):
    code: int
    result: str
    used: list[str]
    """Files of machine code, relative to the cache."""
    notices: list[str]


def start(cache, *arguments, **environment):
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return subprocess.run(
        [sys.executable, str(CASES), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path, "BORELLI_CACHE": str(cache)} | environment,
    )


def run(cache, job="poses", **environment):
    done = start(cache, job, **environment)
    first, *used = done.stdout.splitlines() or [""]
    return Run(done.returncode, first, used, done.stderr.splitlines())


@pytest.fixture(scope="module")
def full():
    ensure_compiled()
    return code_folder()


@pytest.fixture
def cache(full, tmp_path):
    return Path(shutil.copytree(full, tmp_path / "cache"))


def damaged_runs(cache, job, damage, count, folder):
    """Return the cases that went wrong."""
    done = start(cache, cache, job, damage, count, folder)
    lines = done.stdout.splitlines()
    assert len(lines) == count and done.returncode == 0, done.stderr[-1000:]
    print(f"{job}, {damage}: {count} cases, {count - lines.count('right')} failures")
    return [line for line in lines if line != "right"]


def test_slice_of_damaged_files(cache, tmp_path):
    assert damaged_runs(cache, "poses", "flip", SLICE, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "damage", "count"),
    [("poses", "flip", 170), ("simulation", "flip", 30), ("poses", "truncate", 38), ("simulation", "truncate", 12)],
)
def test_damaged_files_are_compiled_again(cache, tmp_path, job, damage, count):
    assert damaged_runs(cache, job, damage, count, tmp_path) == []


@pytest.mark.slow
def test_damaged_list_of_files_leads_to_a_check_of_all(cache):
    expected = run(cache, "simulation")
    for marker in cache.glob("complete-*"):
        marker.write_bytes(b"no such file\nend")
    done = run(cache, "simulation")
    assert (done.code, done.result) == (0, expected.result)
    assert len(done.notices) == 2 and "compiling kernels" in done.notices[0]
    assert run(cache, "simulation") == expected


@pytest.mark.slow
def test_emptied_cache_is_filled_again(cache):
    expected = run(cache, "simulation")
    for file in cache.rglob(f"*{SUFFIX}"):
        file.unlink()
    done = run(cache, "simulation")
    assert (done.code, done.result) == (0, expected.result) and "compiling kernels" in done.notices[0]
    assert run(cache, "simulation") == expected


@pytest.mark.slow
def test_unsafe_folders_are_refused(cache, tmp_path):
    """Nothing is read from or written to a folder of another user, one that others can write to, or a link to one."""
    expected = run(cache)
    link, parent = tmp_path / "link", tmp_path / "parent"
    link.symlink_to(cache)
    assert run(link) == expected
    parent.mkdir()
    shutil.copytree(cache, parent / "cache")
    cases = [(cache, cache, 0o777), (cache, cache, 0o770), (link, cache, 0o707), (parent / "cache", parent, 0o777)]
    for named, changed, mode in cases:
        changed.chmod(mode)
        done = run(named)
        changed.chmod(0o700)
        refused_in_one_line(named, done, expected)
    if os.geteuid() == 0:
        for named, changed in ((cache, cache), (parent / "cache", parent), (link, link)):
            os.chown(changed, 4321, 4321, follow_symlinks=False)
            refused_in_one_line(named, run(named), expected)


def refused_in_one_line(folder, done, expected):
    assert (done.code, done.result) == (0, expected.result)
    assert len(done.notices) == 1 and done.notices[0].startswith(f"borelli: {folder}: ")


@pytest.mark.slow
def test_planted_folder_in_the_working_folder_is_not_used(cache, tmp_path, monkeypatch):
    expected, home = run(cache), tmp_path / "home"
    home.mkdir()
    shutil.copytree(cache, tmp_path / "borelli")
    before = sorted((tmp_path / "borelli").rglob("*"))
    monkeypatch.chdir(tmp_path)
    for xdg in ("", ".", "borelli/.."):
        done = run("", XDG_CACHE_HOME=xdg, HOME=str(home))
        assert (done.code, done.result) == (0, expected.result)
    assert sorted((tmp_path / "borelli").rglob("*")) == before
    assert len(list((home / ".cache" / "borelli").rglob(f"*{SUFFIX}"))) >= len(expected.used)
