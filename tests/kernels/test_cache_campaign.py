"""A damaged, planted or unsafe kernel cache: each run ends with the right result, or with a line that names the folder.

Every case is a process that simulates a pendulum, or computes poses, with its own copy of a full cache.
"""

import os
import random
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

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not JIT_ON, reason="nothing is compiled with BORELLI_JIT=0"),
    pytest.mark.skipif(not PERMISSIONS_CHECKED, reason="permissions are not checked on Windows"),
]
POSES = """
import hashlib
import numpy as np
import borelli as bo
from borelli.analysis import make_motion
from borelli.kernels import machine_code
from borelli.numerics.rotation_kernels import (
    quaternion_product, rotate, rotation_exponential, rotation_logarithm, rotation_matrix,
)
read, paths = machine_code.read_code, []
machine_code.read_code = lambda path, key: (paths.append(path), read(path, key))[1]
model = bo.gallery_scene("pendulum").model
motion = make_motion(model, np.linspace(0.0, 1.0, 8)[:, None], np.arange(8.0), 1.0)
rotation = rotation_exponential(0.5, 0.25, 0.125)
content = [motion.data["body_position"].values, rotate(*rotation, 1.0, 2.0, 3.0), rotation_matrix(*rotation)]
content += [quaternion_product(*rotation, *rotation), rotation_logarithm(*rotation)]
"""
SIMULATION = """
content = [bo.simulate(model, duration=0.1)[name].values for name in ("body_position", "kinetic_energy")]
"""
REPORT = """
print(hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in content)).hexdigest())
print("\\n".join(f"{path.parent.name}/{path.name}" for path in dict.fromkeys(paths)))
"""
TRUNCATIONS, FLIPS = 50, 200
SIMULATIONS = 20
"""Cases of each kind that run a simulation, whose kernels take seconds to compile; the others only compute poses."""


class Run(NamedTuple):
    code: int
    result: str
    used: list[str]
    notices: list[str]


def run(cache: Path, program: str, **environment: str) -> Run:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", program + REPORT],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path, "BORELLI_CACHE": str(cache)} | environment,
    )
    first, *used = done.stdout.splitlines() or [""]
    return Run(done.returncode, first, used, done.stderr.splitlines())


@pytest.fixture(scope="module")
def full():
    ensure_compiled(control=True)
    return code_folder()


@pytest.fixture
def cache(full, tmp_path):
    return Path(shutil.copytree(full, tmp_path / "cache"))


def programs(count):
    """Return the programs of `count` cases."""
    return [POSES + SIMULATION] * SIMULATIONS + [POSES] * (count - SIMULATIONS)


def campaign(cache, count, damage):
    """Damage one file at a time, run, and restore it; return the cases that went wrong."""
    chosen, wrong = random.Random(14), []
    expected = {program: run(cache, program) for program in (POSES, POSES + SIMULATION)}
    for number, program in enumerate(programs(count)):
        right = expected[program]
        file = cache / right.used[number % len(right.used)]
        whole = file.read_bytes()
        file.write_bytes(damage(chosen, whole))
        done = run(cache, program)
        if done.code or done.result != right.result or len(done.notices) != 1 or str(cache) not in done.notices[0]:
            wrong.append((number, file.name, done))
        file.write_bytes(whole)
    return wrong


def truncate(chosen, whole):
    return whole[: chosen.choice([0, 1, 31, 32, 33, chosen.randrange(len(whole)), len(whole) - 1])]


def flip(chosen, whole):
    place = chosen.randrange(min(len(whole), chosen.choice([32, 200, len(whole)])))
    return whole[:place] + bytes([whole[place] ^ 1 << chosen.randrange(8)]) + whole[place + 1 :]


def test_truncated_files_are_compiled_again(cache):
    wrong = campaign(cache, TRUNCATIONS, truncate)
    print(f"{TRUNCATIONS} truncations, {len(wrong)} failures")
    assert wrong == []


def test_flipped_bits_are_found_and_compiled_again(cache):
    wrong = campaign(cache, FLIPS, flip)
    print(f"{FLIPS} flipped bits, {len(wrong)} failures")
    assert wrong == []


def test_damaged_lists_of_files_lead_to_a_check_of_all(cache):
    expected = run(cache, POSES + SIMULATION)
    for name in (b"", b"\0", b"no such file\nend"):
        for marker in cache.glob("complete-*"):
            marker.write_bytes(name)
        done = run(cache, POSES + SIMULATION)
        assert (done.code, done.result) == (0, expected.result)
        assert len(done.notices) == 2 and "compiling kernels" in done.notices[0]


def test_emptied_cache_is_filled_again(cache):
    expected = run(cache, POSES + SIMULATION)
    for file in cache.rglob(f"*{SUFFIX}"):
        file.unlink()
    done = run(cache, POSES + SIMULATION)
    assert (done.code, done.result) == (0, expected.result) and "compiling kernels" in done.notices[0]
    assert run(cache, POSES + SIMULATION) == expected


def test_unsafe_folders_are_refused(cache, tmp_path):
    """Nothing is read from or written to a folder of another user, one that others can write to, or a link to one."""
    expected = run(cache, POSES)
    link, parent = tmp_path / "link", tmp_path / "parent"
    link.symlink_to(cache)
    assert run(link, POSES).result == expected.result
    parent.mkdir()
    shutil.copytree(cache, parent / "cache")
    cases = [(cache, cache, 0o777), (cache, cache, 0o770), (link, cache, 0o707), (parent / "cache", parent, 0o777)]
    for named, changed, mode in cases:
        changed.chmod(mode)
        done = run(named, POSES)
        changed.chmod(0o700)
        refused_in_one_line(named, done, expected)
    if os.geteuid() == 0:
        for named, changed in ((cache, cache), (parent / "cache", parent), (link, link)):
            os.chown(changed, 4321, 4321, follow_symlinks=False)
            refused_in_one_line(named, run(named, POSES), expected)


def refused_in_one_line(folder, done, expected):
    assert (done.code, done.result) == (0, expected.result)
    assert len(done.notices) == 1 and done.notices[0].startswith(f"borelli: {folder}: ")
    assert not any(str(folder) in name for name in done.used)


def test_planted_folder_in_the_working_folder_is_not_used(cache, tmp_path, monkeypatch):
    expected = run(cache, POSES)
    home = tmp_path / "home"
    home.mkdir()
    shutil.copytree(cache, tmp_path / "borelli")
    before = sorted((tmp_path / "borelli").rglob("*"))
    monkeypatch.chdir(tmp_path)
    for xdg in ("", ".", "borelli/.."):
        done = run(Path("borelli"), POSES, XDG_CACHE_HOME=xdg, HOME=str(home), BORELLI_CACHE="")
        assert (done.code, done.result) == (0, expected.result)
    assert sorted((tmp_path / "borelli").rglob("*")) == before
    assert len(list((home / ".cache" / "borelli").rglob(f"*{SUFFIX}"))) == len(expected.used)
