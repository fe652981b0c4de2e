"""Processes that compile one task after another, so that numba is imported once by each.

A worker receives a task as one line of JSON and answers with one line of JSON: the error, empty if there was none.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from borelli.kernels.cache_folder import code_folder
from borelli.kernels.machine_code import COMPILING
from borelli.kernels.worker_process import start_worker

if TYPE_CHECKING:
    from borelli.kernels.compile_cache import CompileTask

COMPILER = {
    # the vectorizers take a sixth of the time and make small loops no faster
    "NUMBA_LOOP_VECTORIZE": "0",
    "NUMBA_SLP_VECTORIZE": "0",
    "NUMBA_OPT": "2",
    # numba composes messages of all overloads that do not fit; colors would take a fiftieth of the time
    "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1",
}
MAX_ERROR_LENGTH = 400
"""Characters of an error that are reported: the end of the traceback."""

Results = queue.SimpleQueue[tuple["CompileWorker", str]]
"""Receives each worker with the error of its task, empty if there was none."""


class CompileWorker:
    """A process that compiles tasks into the cache."""

    def __init__(self, results: Results) -> None:
        environment = COMPILER | {COMPILING: "1", "BORELLI_CACHE": str(code_folder())}
        program = "from borelli.kernels.compile_worker import serve_tasks; serve_tasks(received)"
        self.process = start_worker(program, environment, stdout=subprocess.PIPE)
        self._results = results
        threading.Thread(target=self._read_results, daemon=True, name="borelli-compile").start()

    def start(self, task: CompileTask) -> None:
        """Send a task."""
        order = {"module": task.run.__module__, "function": task.run.__name__, "vectorize": task.vectorize_loops}
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the process has ended: the thread that reads its results reports it

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()

    def _read_results(self) -> None:
        assert self.process.stdout is not None and self.process.stderr is not None
        for line in self.process.stdout:
            self._results.put((self, json.loads(line)))
        text = self.process.stderr.read().decode(errors="replace").strip()
        self._results.put((self, text[-MAX_ERROR_LENGTH:] or f"the process ended with code {self.process.wait()}"))


def serve_tasks(received: queue.SimpleQueue[bytes]) -> None:
    """Compile the tasks that are received, until this process is ended."""
    import gc

    from numba.core import config

    gc.disable()  # numba creates millions of objects; garbage collection would take a twelfth of the time
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        while True:
            order: Mapping[str, str] = json.loads(received.get())
            config.LOOP_VECTORIZE = int(order["vectorize"])
            try:
                getattr(import_module(order["module"]), order["function"])()
                error = ""
            except Exception:  # whatever it is, the parent reports it
                error = traceback.format_exc().strip()[-MAX_ERROR_LENGTH:]
            gc.collect()
            answers.write(json.dumps(error).encode() + b"\n")
            answers.flush()
