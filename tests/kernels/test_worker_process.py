"""Workers end with the process that started them, also when that is killed."""

import os
import subprocess
import sys
import time
from signal import SIGKILL

import pytest

from borelli.kernels.jit import JIT_ON
from borelli.kernels.worker_process import start_worker

MAX_WAIT = 60.0
"""Time until a worker must have ended [s]; on an idle machine it is a tenth of a second."""


def is_running(process):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return state.stdout.strip() not in ("", "Z", "Z+", "ZN")


def ends(process):
    end = time.monotonic() + MAX_WAIT
    while is_running(process) and time.monotonic() < end:
        time.sleep(0.05)
    return not is_running(process)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.skipif(not JIT_ON, reason="nothing is compiled with BORELLI_JIT=0")
def test_worker_ends_when_its_parent_is_killed(tmp_path):
    program = (
        "import time\n"
        "from queue import SimpleQueue\n"
        "from signal import pause\n"
        "from borelli.kernels.compile_cache import CompileTask\n"
        "from borelli.kernels.compile_worker import CompileWorker\n"
        "from borelli.kernels.worker_process import start_worker\n"
        "worker = CompileWorker(SimpleQueue())\n"
        "worker.start(CompileTask('wait', pause, 0))\n"
        "compiling = worker.process\n"
        "busy = start_worker('\\nwhile True: pass', {})\n"
        "print(compiling.pid, busy.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = os.environ | {"PYTHONPATH": path, "BORELLI_CACHE": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
    workers = [int(number) for number in parent.stdout.readline().split()]
    time.sleep(1.0)  # until they have started
    assert len(workers) == 2 and all(map(is_running, workers))
    os.kill(parent.pid, SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert all(map(ends, workers))


def test_worker_runs_its_program_to_the_end(tmp_path):
    worker = start_worker(f"open({str(tmp_path / 'made')!r}, 'w').close()", {})
    assert worker.wait() == 0 and (tmp_path / "made").exists()
    worker.communicate()


def test_modules_of_the_working_folder_are_not_imported(tmp_path, monkeypatch):
    (tmp_path / "numpy.py").write_text("raise SystemExit(7)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    worker = start_worker("import numpy; assert hasattr(numpy, 'ndarray')", {})
    assert worker.wait() == 0
    worker.communicate()
