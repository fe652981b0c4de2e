"""Python processes that end with the process that started them, also when that is killed.

A worker's standard input is a pipe whose other end only its parent has. When the parent ends, the pipe is closed, which
a thread of the worker notices.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping

from borelli.kernels.source_hash import PACKAGE


def start_worker(program: str, environment: Mapping[str, str], stdout: int | None = None) -> subprocess.Popen[bytes]:
    """Start a Python program that ends with this process; its stderr is a pipe.

    Lines written to its standard input are in the queue `received` of the program.
    """
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    watch = "from borelli.kernels.worker_process import end_with_parent; received = end_with_parent()"
    return subprocess.Popen(
        # -P: modules in the working folder must not replace those of the installation
        [sys.executable, "-P", "-c", f"{watch}; {program}"],
        env=os.environ | {"PYTHONPATH": path} | dict(environment),
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def end_with_parent() -> queue.SimpleQueue[bytes]:
    """End this process as soon as its standard input is closed, and return the lines received until then."""
    received = queue.SimpleQueue[bytes]()

    def watch() -> None:
        # file descriptor 0: the lock of sys.stdin would keep the interpreter from ending
        with os.fdopen(0, "rb", closefd=False) as lines:
            for line in lines:
                received.put(line)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="borelli-parent").start()
    return received
