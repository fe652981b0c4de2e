"""Files that are there whole or not at all, whenever the program is stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from borelli.errors import FileFormatError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A name to write to, beside `path`, that takes its place when all went well and goes away otherwise.

    Raises:
        FileFormatError: if the file cannot be written there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise FileFormatError(path, f"cannot be written: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(text: str, path: Path) -> None:
    """Writes a text file: all of it, or nothing."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def remove_stale_temporaries(folder: Path) -> None:
    """Takes away what a run that was killed has left half written."""
    for left in folder.glob(".*.tmp"):
        process = left.name.split(".")[-2]
        if process.isdigit() and not _runs(int(process)):
            left.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
