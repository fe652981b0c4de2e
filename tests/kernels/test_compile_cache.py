"""Conditions under which kernels count as compiled, the order of tasks, and the message of the first use."""

import os
import subprocess
import sys

import pytest

from borelli.errors import BorelliError
from borelli.kernels import compile_cache
from borelli.kernels.jit import JIT_ON
from borelli.physics import warmup

POINTER_TASKS = {task.name for task in warmup.POINTER_TASKS}
OPTIONAL = tuple(task for task in compile_cache.all_tasks() if task.group != "main")
pytestmark = pytest.mark.skipif(not JIT_ON, reason="nothing is compiled with BORELLI_JIT=0")


def start_process(program):
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BORELLI_CACHE", str(tmp_path))
    monkeypatch.delenv(compile_cache.QUIET, raising=False)
    monkeypatch.setattr(compile_cache, "_ENSURED", set())
    monkeypatch.setattr(compile_cache, "start_task", lambda task: start_process("pass"))


def test_kernels_are_ready_only_after_all_tasks(empty_cache):
    assert compile_cache.missing_tasks() == compile_cache.all_tasks()
    reported = []
    compile_cache.compile_kernels(lambda what, fraction: reported.append(fraction))
    assert compile_cache.missing_tasks() == ()
    assert reported == sorted(reported) and reported[-1] == 1.0


def test_kernels_of_control_and_muscles_are_compiled_when_needed(empty_cache):
    main = compile_cache.missing_tasks(["main"])
    assert set(compile_cache.all_tasks()) - set(main) == set(OPTIONAL)
    compile_cache.compile_kernels(tasks=main)
    assert compile_cache.missing_tasks(["main"]) == ()
    assert compile_cache.missing_tasks() == OPTIONAL
    compile_cache.compile_kernels(tasks=OPTIONAL)
    assert compile_cache.missing_tasks() == ()


def test_missing_and_damaged_files_of_a_complete_cache_are_noticed(empty_cache, tmp_path):
    code = compile_cache.code_folder() / f"physics.soft_step-{compile_cache.source_hash('borelli.physics.soft_step')}"
    code.mkdir(0o700)
    (code / "step.code").touch()
    compile_cache.compile_kernels()
    assert compile_cache.missing_tasks() == ()
    (code / "step.code").unlink()
    assert compile_cache.missing_tasks() == compile_cache.all_tasks()
    (code / "step.code").touch()
    marker = compile_cache._marker("main")
    whole = marker.read_bytes()
    for damaged in (b"", whole[:-1], whole[:20], b"\0\xff" + whole, whole.replace(b"/", b"-")):
        marker.write_bytes(damaged)
        assert {task.group for task in compile_cache.missing_tasks()} == {"main"}
    marker.write_bytes(whole)
    assert compile_cache.missing_tasks() == ()


def test_folder_that_cannot_be_written_to_is_noticed_before_compiling(empty_cache, monkeypatch, tmp_path):
    monkeypatch.setattr(compile_cache, "code_folder", lambda: tmp_path / "gone")
    with pytest.raises(BorelliError, match=r"probe: The folder .* does not exist"):
        compile_cache.compile_kernels()


def test_interrupted_compilation_leaves_tasks_missing(empty_cache, monkeypatch):
    monkeypatch.setattr(compile_cache, "start_task", lambda task: start_process("raise SystemExit('no disk')"))
    with pytest.raises(BorelliError, match=r"Compiling \w+ failed: no disk"):
        compile_cache.compile_kernels()
    assert compile_cache.missing_tasks() == compile_cache.all_tasks()


def test_tasks_start_after_those_they_need_and_not_too_many_at_a_time():
    processes = {}

    def start(task):
        alive = [name for name, process in processes.items() if process.poll() is None]
        assert len(alive) < compile_cache.WORKERS
        if task.name == "step":
            assert set(processes) - set(alive) >= POINTER_TASKS
        seconds = 0.6 if task.name == "rows" else 0.05  # tasks after it could start long before it ends
        processes[task.name] = start_process(f"import time; time.sleep({seconds})")
        return processes[task.name]

    compile_cache.run_tasks(compile_cache.all_tasks(), start, lambda what, fraction: None)
    assert set(processes) == {task.name for task in compile_cache.all_tasks()}


def test_other_copy_of_the_sources_is_not_ready(empty_cache, monkeypatch, tmp_path):
    """numba stores machine code by the path of its source."""
    compile_cache.compile_kernels()
    monkeypatch.setattr(compile_cache, "PACKAGE", tmp_path)
    assert compile_cache.missing_tasks() == compile_cache.all_tasks()


def test_first_use_from_python_announces_compilation_once(empty_cache, capsys):
    compile_cache.ensure_compiled()
    message = "borelli: compiling kernels, about a minute, first use only ...\n"
    assert capsys.readouterr().err.startswith(message)
    assert compile_cache.missing_tasks() == OPTIONAL
    compile_cache.ensure_compiled()
    assert capsys.readouterr().err == ""
    compile_cache.ensure_compiled(*compile_cache.GROUPS)
    assert capsys.readouterr().err.startswith(message)
    assert compile_cache.missing_tasks() == ()


def test_full_cache_is_not_announced(empty_cache, capsys):
    compile_cache.compile_kernels()
    compile_cache.ensure_compiled(*compile_cache.GROUPS)
    assert capsys.readouterr().err == ""


def test_announcement_can_be_suppressed(empty_cache, monkeypatch, capsys):
    monkeypatch.setenv(compile_cache.QUIET, "1")
    compile_cache.ensure_compiled(*compile_cache.GROUPS)
    assert compile_cache.missing_tasks() == ()
    assert capsys.readouterr().err == ""


def test_processes_that_compile_start_no_others(empty_cache, monkeypatch, capsys):
    monkeypatch.setenv(compile_cache.COMPILING, "1")
    compile_cache.ensure_compiled(*compile_cache.GROUPS)
    assert compile_cache.missing_tasks() == compile_cache.all_tasks()
    assert capsys.readouterr().err == ""


def test_failure_to_compile_ahead_does_not_stop_the_caller(empty_cache, monkeypatch, capsys):
    monkeypatch.setattr(compile_cache, "start_task", lambda task: start_process("raise SystemExit('no disk')"))
    compile_cache.ensure_compiled()
    assert "failed: no disk Kernels are compiled one by one at their first use." in capsys.readouterr().err


def test_started_tasks_know_that_they_compile(monkeypatch):
    environments = []
    monkeypatch.setattr(compile_cache, "start_worker", lambda program, environment: environments.append(environment))
    compile_cache.start_task(OPTIONAL[0])
    assert environments[0][compile_cache.COMPILING] == "1"
    assert compile_cache.COMPILING not in os.environ
