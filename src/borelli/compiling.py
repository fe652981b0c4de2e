"""Whether the kernels are compiled for this copy of borelli, and compiling all of them: physics and pictures."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from borelli.jit import JIT_ON, PACKAGE, ROOMS, cache_directory, source_hash


def kernels_ready() -> bool:
    """Whether all kernels were compiled and kept by an earlier run of these sources, here, with this Python."""
    return not JIT_ON or _marker().exists()


def compile_kernels(report: Callable[[str, float], None] = lambda what, share: None) -> float:
    """Compile or load every kernel; the seconds it took. `report` hears what is being done and the share done.

    Raises:
        BorelliError: a part could not be compiled.
    """
    from borelli.physics.warmup import warm_up
    from borelli.view.render import warm_up_renderer

    start = time.perf_counter()
    warm_up(report, meanwhile=warm_up_renderer)
    if JIT_ON:
        _marker().touch()
    return time.perf_counter() - start


def _marker() -> Path:
    """The file that says so. numba keeps code by the path of its source and for one version of itself and of Python."""
    sources = " ".join(map(source_hash, ROOMS))
    build = f"{PACKAGE} {platform.python_version()} {metadata.version('numba')} {sources}"
    return cache_directory() / f"complete-{hashlib.sha256(build.encode()).hexdigest()[:16]}"
