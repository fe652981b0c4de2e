"""Compilation of all kernels before their first use, in parallel processes that leave machine code in the cache.

Each package with kernels has a `warmup.py` that lists its tasks (`TASKS`). Kernels that not every user needs, those of
control and of muscles, form groups of their own, compiled at their first use.
"""

from __future__ import annotations

import hashlib
import os
import platform
import queue
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from pathlib import Path

from borelli.errors import BorelliError
from borelli.files.atomic import atomic_path
from borelli.kernels.cache_folder import announce, code_folder, mark_used, remove_unused
from borelli.kernels.compile_worker import CompileWorker, Results
from borelli.kernels.jit import JIT_ON
from borelli.kernels.machine_code import COMPILING, SUFFIX
from borelli.kernels.source_hash import PACKAGE, source_hash

WORKERS = min(max(2, os.cpu_count() or 2), 4)
"""Number of processes at a time; each takes 0.5 to 1 GB."""

POLL_INTERVAL = 0.02
"""Time between looks at the results of workers [s]."""

Report = Callable[[str, float], None]
"""Receives the names of the running tasks, and the fraction done."""
GROUPS = ("main", "control", "muscles")
"""Groups of tasks; all users need the first."""
MARKER_END = b"end"
"""Last line of a marker."""
QUIET = "BORELLI_QUIET"
"""Environment variable; 1 suppresses the message of `ensure_compiled`."""


@dataclass(frozen=True)
class CompileTask:
    """Kernels that one process compiles.

    Attributes:
        name: As progress shows it.
        run: Function of a `warmup.py` that compiles them.
        rank: Order in which tasks start: the longest first.
        needs: Names of tasks whose kernels this one calls by pointer; they must end before it starts.
        group: One of `GROUPS`.
        vectorize_loops: True where the kernels have long loops.
    """

    name: str
    run: Callable[[], None]
    rank: int
    needs: tuple[str, ...] = ()
    group: str = "main"
    vectorize_loops: bool = False


@cache
def warmup_modules() -> tuple[str, ...]:
    """Return the names of all modules that list tasks."""
    files = sorted(PACKAGE.rglob("warmup.py"))
    return tuple(".".join(["borelli", *file.relative_to(PACKAGE).with_suffix("").parts]) for file in files)


@cache
def all_tasks() -> tuple[CompileTask, ...]:
    """Return the tasks of all packages, in the order in which they start."""
    tasks = [task for module in warmup_modules() for task in import_module(module).TASKS]
    return tuple(sorted(tasks, key=lambda task: task.rank))


def missing_tasks(groups: Iterable[str] = GROUPS) -> tuple[CompileTask, ...]:
    """Return the tasks of groups that no earlier run with these sources and this Python has completed."""
    missing = [group for group in groups if JIT_ON and not _is_compiled(group)]
    return tuple(task for task in all_tasks() if task.group in missing) if missing else ()


def compile_kernels(report: Report = lambda what, fraction: None, tasks: Iterable[CompileTask] | None = None) -> float:
    """Compile kernels and return the seconds it took.

    Args:
        report: Receives the names of the running tasks, and the fraction done.
        tasks: Tasks to run. Default: all.

    Raises:
        BorelliError: A task failed.
    """
    start = time.perf_counter()
    if JIT_ON:
        chosen = all_tasks() if tasks is None else tuple(tasks)
        _check_writable()
        run_tasks(chosen, report)
        for group in {task.group for task in chosen}:
            if all(task in chosen for task in all_tasks() if task.group == group):
                _write_marker(group)
        remove_unused(code_folder())
    report("done", 1.0)
    return time.perf_counter() - start


def ensure_compiled(*groups: str) -> None:
    """Compile the kernels that are not in the cache, and announce it on stderr.

    Entry points call this first; it looks into the cache once per process. Kernels that cannot be compiled ahead are
    compiled by numba at their first use.

    Args:
        groups: Groups of kernels. Default: "main".
    """
    unknown = [group for group in groups or GROUPS[:1] if group not in _ENSURED]
    if JIT_ON and COMPILING not in os.environ and unknown:
        _ENSURED.update(unknown)
        tasks = missing_tasks(unknown)
        if tasks:
            _announce("compiling kernels, about a minute, first use only ...")
            try:
                _announce(f"compiled kernels in {compile_kernels(tasks=tasks):.0f} s.")
            except (OSError, BorelliError) as error:
                _announce(f"{error} Kernels are compiled one by one at their first use.")


_ENSURED: set[str] = set()
"""Groups for which this process has looked into the cache."""


def _announce(text: str) -> None:
    if os.environ.get(QUIET) != "1":
        announce(text)


def run_tasks(tasks: Iterable[CompileTask], report: Report) -> None:
    """Run tasks in WORKERS processes, each task after those it needs.

    Raises:
        BorelliError: A task failed.
    """
    waiting, running, done = list(tasks), dict[CompileWorker, str](), set[str]()
    total = len(waiting)
    results: Results = queue.SimpleQueue()
    workers = [CompileWorker(results) for _ in range(min(WORKERS, total))]
    idle = list(workers)
    try:
        while len(done) < total:
            missing = {*(task.name for task in waiting), *running.values()}
            ready = [task for task in waiting if not set(task.needs) & missing]
            for task in ready[: len(idle)]:
                waiting.remove(task)
                worker = idle.pop()
                running[worker] = task.name
                worker.start(task)
            report(" and ".join(running.values()), len(done) / total)
            while results.empty():  # an interrupt would not end results.get() on all systems
                time.sleep(POLL_INTERVAL)
            worker, error = results.get()
            name = running.pop(worker, "kernels")
            if error:
                raise BorelliError(f"Compiling {name} failed: {error}")
            done.add(name)
            idle.append(worker)
    finally:
        for worker in workers:
            worker.end()


def _marker(group: str) -> Path:
    """Return the file that lists the machine code of a group once all of it is compiled, for this build."""
    sources = source_hash(*warmup_modules())
    build = f"{PACKAGE} {platform.python_version()} {metadata.version('numba')} {sources} {group}"
    return code_folder() / f"complete-{hashlib.sha256(build.encode()).hexdigest()[:16]}"


def _is_compiled(group: str) -> bool:
    """Return True if the marker of a group is complete and all files that it lists exist."""
    marker = _marker(group)
    try:
        *names, end = marker.read_bytes().split(b"\n")
    except OSError:
        return False
    mark_used(marker)
    return end == MARKER_END and all((marker.parent / os.fsdecode(name)).is_file() for name in names)


def _write_marker(group: str) -> None:
    """List the machine code of the present sources."""
    folders = [path for path in code_folder().iterdir() if path.is_dir() and _is_current(path.name)]
    names = sorted(
        os.fsencode(f"{folder.name}/{file.name}") for folder in folders for file in folder.glob(f"*{SUFFIX}")
    )
    with atomic_path(_marker(group), overwrite=True) as temporary:
        temporary.write_bytes(b"\n".join([*names, MARKER_END]))


def _is_current(folder: str) -> bool:
    """Return True if a folder of machine code belongs to the present sources of its module."""
    module, _, sources = folder.rpartition("-")
    return source_hash(f"borelli.{module}") == sources


def _check_writable() -> None:
    """Raise BorelliError if nothing can be saved in the folder of machine code."""
    with atomic_path(code_folder() / "probe", overwrite=True) as temporary:
        temporary.touch()
    (code_folder() / "probe").unlink(missing_ok=True)
