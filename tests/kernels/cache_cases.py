"""A process that damages one file of a kernel cache at a time and runs a job in a fork; run by `test_cache_campaign`.

The forks begin before any kernel is loaded, so each loads its kernels from the damaged cache as a new process does,
without the second that it takes to import numba.
"""

import hashlib
import os
import random
import sys
from pathlib import Path

import numpy as np
import xarray  # noqa: F401 - imported once, before the forks

import borelli as bo
from borelli.analysis import make_motion
from borelli.kernels import machine_code
from borelli.kernels.source_hash import source_hash
from borelli.numerics.rotation_kernels import (
    quaternion_product,
    rotate,
    rotation_exponential,
    rotation_logarithm,
    rotation_matrix,
)
from borelli.physics.simulate import simulate

MODEL = bo.gallery_scene("pendulum").model


def poses() -> list:
    """Return results of a few small kernels."""
    motion = make_motion(MODEL, np.linspace(0.0, 1.0, 8)[:, None], np.arange(8.0), 1.0)
    rotation = rotation_exponential(0.5, 0.25, 0.125)
    turned = [rotate(*rotation, 1.0, 2.0, 3.0), rotation_matrix(*rotation), rotation_logarithm(*rotation)]
    return [motion.data["body_position"].values, *turned, quaternion_product(*rotation, *rotation)]


def simulation() -> list:
    """Return results of a simulation."""
    data = simulate(MODEL, duration=0.1)
    return [data[name].values for name in ("body_position", "body_orientation", "kinetic_energy")]


JOBS = {"poses": poses, "simulation": simulation}


def run_job(name: str) -> None:
    """Print a hash of the job's result, and the files of machine code that it used."""
    read, paths = machine_code.read_code, []
    machine_code.read_code = lambda path, key: (paths.append(path), read(path, key))[1]
    result = b"".join(np.ascontiguousarray(array).tobytes() for array in JOBS[name]())
    print(hashlib.sha256(result).hexdigest(), flush=True)
    print("\n".join(f"{path.parent.name}/{path.name}" for path in dict.fromkeys(paths)), flush=True)


def fork_job(name: str, folder: Path) -> tuple[int, list[str], list[str]]:
    """Run a job in a fork; return its exit code (negative: signal) and the lines of stdout and stderr."""
    child = os.fork()
    if not child:
        for number, stream in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / stream, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        code = 1
        try:
            run_job(name)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, *((folder / stream).read_text(errors="replace").splitlines() for stream in ("out", "err"))


def truncate(chosen: random.Random, whole: bytes) -> bytes:
    return whole[: chosen.choice([0, 1, 31, 32, 33, chosen.randrange(len(whole)), len(whole) - 1])]


def flip(chosen: random.Random, whole: bytes) -> bytes:
    place = chosen.randrange(min(len(whole), chosen.choice([32, 200, len(whole)])))
    return whole[:place] + bytes([whole[place] ^ 1 << chosen.randrange(8)]) + whole[place + 1 :]


DAMAGES = {"truncate": truncate, "flip": flip}


def run_cases(cache: Path, job: str, damage: str, count: int, folder: Path) -> None:
    """Damage a file, run the job, check its result and its one notice, and restore the file; `count` times."""
    chosen = random.Random(14)
    code, (expected, *used), _ = fork_job(job, folder)
    assert code == 0
    for number in range(count):
        file = cache / used[number % len(used)]
        whole = file.read_bytes()
        file.write_bytes(DAMAGES[damage](chosen, whole))
        code, lines, notices = fork_job(job, folder)
        good = code == 0 and lines[:1] == [expected] and len(notices) == 1 and str(file) in notices[0]
        print("right" if good else f"FAILED {file.name}: exit code {code}, {lines[:1]}, {notices[-2:]}", flush=True)
        file.write_bytes(whole)


if __name__ == "__main__":
    for module in [name for name in sys.modules if name.startswith("borelli.")]:
        source_hash(module)
    if len(sys.argv) == 2:
        run_job(sys.argv[1])
    else:
        run_cases(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
