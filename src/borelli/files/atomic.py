"""Atomic writes: a file is complete or unchanged, whenever the program stops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from borelli.errors import FileFormatError
from borelli.files.paths import as_path


@contextmanager
def atomic_path(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path` that replaces `path` on success and is removed on failure."""
    path = as_path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise FileFormatError(path, f"The file cannot be written ({error.strerror or error}).") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(text: str, path: str | PathLike[str]) -> None:
    """Write a UTF-8 text file completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def remove_stale_temporaries(folder: Path) -> None:
    """Remove the temporary files of killed processes."""
    for leftover in folder.glob(".*.tmp"):
        process = leftover.name.split(".")[-2]
        if process.isdigit() and not _is_running(int(process)):
            leftover.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:  # a process of another user is running
        return not isinstance(error, ProcessLookupError)
    return True
