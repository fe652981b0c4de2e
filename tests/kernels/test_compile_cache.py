"""When the kernels count as compiled, and in what order they are."""

import subprocess
import sys

import pytest

from borelli.errors import BorelliError
from borelli.kernels import compile_cache as compiling
from borelli.kernels.jit import JIT_ON
from borelli.physics import warmup

PARTS = {task.name for task in warmup.POINTER_TASKS}
CONTROL = tuple(task for task in compiling.all_tasks() if task.group == "control")
pytestmark = pytest.mark.skipif(not JIT_ON, reason="nothing is compiled with BORELLI_JIT=0")


def pretend(program):
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BORELLI_CACHE", str(tmp_path))
    monkeypatch.setattr(compiling, "begin", lambda task: pretend("pass"))


def test_ready_only_after_everything_was_compiled(empty_cache):
    assert compiling.missing_tasks(control=True) == compiling.all_tasks()
    heard = []
    compiling.compile_kernels(lambda what, share: heard.append(share))
    assert compiling.missing_tasks(control=True) == ()
    assert heard == sorted(heard) and heard[-1] == 1.0


def test_kernels_of_control_wait_until_they_are_needed(empty_cache):
    main = compiling.missing_tasks(control=False)
    assert set(compiling.all_tasks()) - set(main) == set(CONTROL)
    compiling.compile_kernels(tasks=main)
    assert compiling.missing_tasks(control=False) == ()
    assert compiling.missing_tasks(control=True) == CONTROL
    compiling.compile_kernels(tasks=CONTROL)
    assert compiling.missing_tasks(control=True) == ()


def test_interrupted_compilation_is_not_taken_for_a_full_cache(empty_cache, monkeypatch):
    monkeypatch.setattr(compiling, "begin", lambda task: pretend("raise SystemExit('no disk')"))
    with pytest.raises(BorelliError, match=r"compiling \w+ failed: no disk"):
        compiling.compile_kernels()
    assert compiling.missing_tasks(control=True) == compiling.all_tasks()


def test_a_step_is_compiled_after_its_parts_and_two_things_at_a_time():
    processes = {}

    def begin(task):
        alive = [name for name, process in processes.items() if process.poll() is None]
        assert len(alive) < compiling.WORKERS
        if task.name == "step":
            assert set(processes) - set(alive) >= PARTS
        seconds = 0.6 if task.name == "rows" else 0.05  # what comes after it is there long before it ends
        processes[task.name] = pretend(f"import time; time.sleep({seconds})")
        return processes[task.name]

    compiling.run_tasks(compiling.all_tasks(), begin, lambda what, share: None)
    assert set(processes) == {task.name for task in compiling.all_tasks()}


def test_other_copy_of_the_sources_is_not_ready(empty_cache, monkeypatch, tmp_path):
    """numba keeps machine code by the path of its source."""
    compiling.compile_kernels()
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path)
    assert compiling.missing_tasks(control=True) == compiling.all_tasks()
