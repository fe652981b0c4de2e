"""Which kernels are not compiled yet for this copy of borelli, and compiling them.

Those of control are a third of the work and only who controls needs them: they are compiled when that is first done.
Parts are compiled side by side in processes of their own, which leave their machine code in the cache.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from borelli.errors import BorelliError
from borelli.jit import JIT_ON, PACKAGE, ROOMS, cache_directory, source_hash

STEP_PARTS = ("solver", "friction", "contacts", "rows")
"""What a step calls by address."""
NEEDS = {"step": STEP_PARTS, "impulse": STEP_PARTS}
"""What must be there before a task begins: it calls that by address."""
OTHERS = {
    "analysis": "from borelli.analysis.warmup import warm_up; warm_up()",
    # both loops over steps, in one process: each would load all the parts
    "step": "from borelli.physics.warmup import compile_part; from borelli.analysis.warmup import warm_up_marching; "
    "compile_part('step'); warm_up_marching()",
    "impulse": "from borelli.physics.impulse.warmup import warm_up; warm_up()",
    "pictures": "from borelli.physics.warmup import compile_part; from borelli.view.render import warm_up_renderer; "
    "compile_part('coordinates'); warm_up_renderer()",
}
MAIN = (*STEP_PARTS, "analysis", "step", "pictures")
CONTROL = ("impulse",)
TASKS = (*STEP_PARTS, "analysis", *CONTROL, "step", "pictures")
"""In the order in which they are begun; the longest come first."""
WORKERS = min(max(2, os.cpu_count() or 2), 4)
"""Processes at a time; each takes some 300 MB."""

# the vectorisers take a sixth of the time and make small loops no faster; nets have long ones
COMPILER = {"NUMBA_LOOP_VECTORIZE": "0", "NUMBA_SLP_VECTORIZE": "0", "NUMBA_OPT": "2"}
LONG_LOOPS = {"solver": {"NUMBA_LOOP_VECTORIZE": "1"}}


def missing_tasks(*, control: bool) -> tuple[str, ...]:
    """What no earlier run of these sources has compiled and kept, here, with this Python; with control or without."""
    asked = (MAIN, CONTROL) if control else (MAIN,)
    missing = {task for tasks in asked if JIT_ON and not _marker(tasks).exists() for task in tasks}
    return tuple(task for task in TASKS if task in missing)


def compile_kernels(
    report: Callable[[str, float], None] = lambda what, share: None, tasks: tuple[str, ...] = TASKS
) -> float:
    """Compile kernels; the seconds it took. `report` hears what is being done and the share done.

    Raises:
        BorelliError: a part could not be compiled.
    """
    start = time.perf_counter()
    if JIT_ON:
        run_tasks(tasks, begin, report)
        for done in (MAIN, CONTROL):
            if set(done) <= set(tasks):
                _marker(done).parent.mkdir(parents=True, exist_ok=True)
                _marker(done).touch()
    report("done", 1.0)
    return time.perf_counter() - start


def run_tasks(
    tasks: tuple[str, ...], begin: Callable[[str], subprocess.Popen[bytes]], report: Callable[[str, float], None]
) -> None:
    """Run tasks WORKERS at a time; those that call others by address begin when the others are there."""
    waiting, running, done = list(tasks), dict[str, subprocess.Popen[bytes]](), set[str]()
    try:
        while waiting or running:
            ready = [task for task in waiting if not set(NEEDS.get(task, ())) & {*waiting, *running}]
            for task in ready[: WORKERS - len(running)]:
                waiting.remove(task)
                running[task] = begin(task)
            report(" and ".join(running), len(done) / len(tasks))
            # whichever ends first makes room for the next
            while all(process.poll() is None for process in running.values()):
                time.sleep(0.05)
            for task in [task for task, process in running.items() if process.poll() is not None]:
                _finish(task, running.pop(task))
                done.add(task)
    finally:
        for process in running.values():
            process.kill()


def begin(task: str) -> subprocess.Popen[bytes]:
    """A process that compiles one task into the cache."""
    program = OTHERS.get(task, f"from borelli.physics.warmup import compile_part; compile_part({task!r})")
    # numba makes objects by the million, which collecting garbage goes through in vain: a twelfth of the time
    program = f"import gc; gc.disable(); {program}"
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    environment = os.environ | COMPILER | LONG_LOOPS.get(task, {}) | {"PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE)


def _finish(task: str, process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate()
    if process.returncode != 0:
        raise BorelliError(f"compiling {task} failed: {errors.decode(errors='replace').strip()[-400:]}")


def _marker(tasks: tuple[str, ...]) -> Path:
    """The file that says so. numba keeps code by the path of its source and for one version of itself and of Python."""
    sources = " ".join([*map(source_hash, ROOMS), *tasks])
    build = f"{PACKAGE} {platform.python_version()} {metadata.version('numba')} {sources}"
    return cache_directory() / f"complete-{hashlib.sha256(build.encode()).hexdigest()[:16]}"
