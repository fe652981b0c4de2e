"""Python processes that end with the process that started them, also when that is killed.

A worker's standard input is a pipe whose other end only its parent has. When the parent ends, the pipe is closed, which
a thread of the worker notices.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping

from borelli.kernels.source_hash import PACKAGE


def start_worker(program: str, environment: Mapping[str, str], stdout: int | None = None) -> subprocess.Popen[bytes]:
    """Start a Python program that ends with this process; its stderr is a pipe."""
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    watch = "from borelli.kernels.worker_process import end_with_parent; end_with_parent()"
    return subprocess.Popen(
        # -P: modules in the working folder must not replace those of the installation
        [sys.executable, "-P", "-c", f"{watch}; {program}"],
        env=os.environ | {"PYTHONPATH": path} | dict(environment),
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def end_with_parent() -> None:
    """End this process as soon as its standard input is closed."""

    def watch() -> None:
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="borelli-parent").start()
