"""Conditions under which kernels count as compiled, the order of tasks, and the message of the first use."""

import os
import sys
import threading

import pytest

from borelli.errors import BorelliError
from borelli.kernels import compile_cache
from borelli.kernels.jit import JIT_ON
from borelli.physics import warmup

POINTER_TASKS = {task.name for task in warmup.POINTER_TASKS}
OPTIONAL = tuple(task for task in compile_cache.all_tasks() if task.group != "main")
pytestmark = pytest.mark.skipif(not JIT_ON, reason="nothing is compiled with BORELLI_JIT=0")


class FakeWorker:
    """A worker that needs `seconds` for each task and reports `error`."""

    error = ""
    seconds = dict[str, float]()
    log = list[tuple[str, str]]()

    def __init__(self, results):
        self.results = results

    def start(self, task):
        self.log.append(("start", task.name))
        threading.Timer(self.seconds.get(task.name, 0.0), self.finish, [task.name]).start()

    def finish(self, name):
        self.log.append(("end", name))
        self.results.put((self, self.error))

    def end(self):
        pass


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BORELLI_CACHE", str(tmp_path))
    monkeypatch.delenv(compile_cache.QUIET, raising=False)
    monkeypatch.setattr(compile_cache, "_ENSURED", set())
    monkeypatch.setattr(compile_cache, "CompileWorker", FakeWorker)


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
    monkeypatch.setattr(FakeWorker, "error", "no disk")
    with pytest.raises(BorelliError, match=r"Compiling \w+ failed: no disk"):
        compile_cache.compile_kernels()
    assert compile_cache.missing_tasks() == compile_cache.all_tasks()


def test_tasks_start_after_those_they_need_and_not_too_many_at_a_time(monkeypatch):
    monkeypatch.setattr(compile_cache, "CompileWorker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "seconds", {"rows": 0.3})  # tasks after it could start long before it ends
    monkeypatch.setattr(FakeWorker, "log", [])
    compile_cache.run_tasks(compile_cache.all_tasks(), lambda what, fraction: None)
    running, ended = set(), set()
    for event, name in FakeWorker.log:
        (running.add if event == "start" else running.remove)(name)
        ended |= {name} if event == "end" else set()
        assert len(running) <= compile_cache.WORKERS
        assert event == "end" or name != "step" or ended >= POINTER_TASKS
    assert ended == {task.name for task in compile_cache.all_tasks()} and not running


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
    monkeypatch.setattr(FakeWorker, "error", "no disk")
    compile_cache.ensure_compiled()
    assert "failed: no disk Kernels are compiled one by one at their first use." in capsys.readouterr().err


def fail_to_compile():
    raise OSError("no disk")


def end_the_process():
    os._exit(7)


def ask_for_the_environment():
    assert os.environ[compile_cache.COMPILING] == "1"


@pytest.mark.parametrize(("run", "message"), [(fail_to_compile, "no disk"), (end_the_process, "ended with code 7")])
def test_errors_of_workers_are_reported(run, message, tmp_path, monkeypatch):
    monkeypatch.setenv("BORELLI_CACHE", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    task = compile_cache.CompileTask("kernels of a test", run, 0)
    with pytest.raises(BorelliError, match=f"(?s)Compiling kernels of a test failed: .*{message}"):
        compile_cache.run_tasks([task], lambda what, fraction: None)


def test_workers_know_that_they_compile(tmp_path, monkeypatch):
    monkeypatch.setenv("BORELLI_CACHE", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    tasks = [compile_cache.CompileTask(f"kernels {i}", ask_for_the_environment, i) for i in range(5)]
    compile_cache.run_tasks(tasks, lambda what, fraction: None)
    assert compile_cache.COMPILING not in os.environ
