"""Writing of files: an existing file is replaced only with permission, an input never, and every write is atomic.

Every file that borelli writes for the user goes through `atomic_path`. A file is complete or unchanged, whenever the
program stops.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from borelli.errors import FileFormatError, SettingsError
from borelli.files.inputs import AnyPath, is_input
from borelli.files.paths import as_path

PREFIX = ".borelli-"
"""Beginning of the names of temporary files and of the lock."""
PERMISSION = "replace it with --force (in Python: overwrite=True)"

_TEMPORARY = re.compile(rf"{re.escape(PREFIX)}(\d+)-\d+-.+", re.DOTALL)
_numbers = itertools.count()
_unfinished: set[Path] = set()


class OpenResults(Protocol):
    """Folders of results that are open for writing, and decide which of their files may be replaced."""

    def contains(self, path: Path) -> bool:
        """Return whether the file is directly in one of the folders."""

    def check(self, path: Path) -> None:
        """Raise SettingsError unless the file may be written."""

    def accept(self, temporary: Path, path: Path) -> None:
        """Move a complete temporary file to its path."""


open_results: ContextVar[tuple[OpenResults, ...]] = ContextVar("open_results", default=())
"""Folders of results that the running code has open, the innermost last."""


@contextmanager
def atomic_path(path: AnyPath, *, overwrite: bool = False, inputs: Iterable[AnyPath | None] = ()) -> Iterator[Path]:
    """Yield a temporary path that becomes `path` on success and is removed on failure.

    Args:
        path: File to write. The temporary path is in its folder and has its suffix.
        overwrite: Replace an existing file. Files of an open folder of results follow the rules of the folder instead.
        inputs: Files that are never replaced, besides those of `protect_inputs`.

    Raises:
        SettingsError: The file exists, or is an input.
        FileFormatError: The file cannot be written.
    """
    path, inputs = as_path(path), tuple(inputs)
    check_output(path, overwrite=overwrite, inputs=inputs)
    temporary = path.with_name(f"{PREFIX}{os.getpid()}-{next(_numbers)}-{path.name}")
    _unfinished.add(temporary.absolute())
    try:
        remove_stale_temporaries(path.parent)
        yield temporary
        _flush(temporary)
        check_output(path, overwrite=overwrite, inputs=inputs)  # again, because the block may have taken minutes
        results = _results_of(path)
        if results is None:
            move(temporary, path, overwrite=overwrite)
        else:
            results.accept(temporary, path)
    except OSError as error:
        raise FileFormatError(path, f"The file cannot be written ({error.strerror or error}).") from None
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary.absolute())


def write_atomic(text: str, path: AnyPath, *, overwrite: bool = False, inputs: Iterable[AnyPath | None] = ()) -> None:
    """Write a UTF-8 text file completely or not at all; arguments as of `atomic_path`."""
    with atomic_path(path, overwrite=overwrite, inputs=inputs) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def check_output(path: AnyPath, *, overwrite: bool = False, inputs: Iterable[AnyPath | None] = ()) -> None:
    """Raise SettingsError unless a file may be written; arguments as of `atomic_path`."""
    path = as_path(path)
    if not path.absolute().parent.is_dir():
        raise SettingsError(f"{path}: The folder {path.parent} does not exist. Create it first.")
    check_replaceable(path, inputs)
    results = _results_of(path)
    if results is not None:
        results.check(path)
    elif not overwrite and os.path.lexists(path):
        raise SettingsError(f"{path}: The file exists. Choose another name, or {PERMISSION}.")


def _results_of(path: Path) -> OpenResults | None:
    return next((results for results in reversed(open_results.get()) if results.contains(path)), None)


def check_replaceable(path: Path, inputs: Iterable[AnyPath | None] = ()) -> None:
    """Raise SettingsError if a path is a folder, a device or an input, which are never replaced."""
    if path.is_dir():
        raise SettingsError(f"{path}: The output is a folder. Give the name of a file.")
    if path.exists() and not path.is_file():
        raise SettingsError(f"{path}: The output is not a regular file. Choose another name.")
    if is_input(path, inputs):
        raise SettingsError(f"{path}: The output is an input file. Choose another name.")


def move(temporary: Path, path: Path, *, overwrite: bool) -> None:
    """Rename a file; without `overwrite`, raise SettingsError if the new name exists, even if it has just appeared."""
    if overwrite:
        temporary.replace(path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise SettingsError(f"{path}: The file exists. Choose another name, or {PERMISSION}.") from None
    except OSError:  # a file system without hard links: reserve the name instead
        _reserve(path)
        try:
            temporary.replace(path)
        except BaseException:
            path.unlink()
            raise


def _reserve(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        raise SettingsError(f"{path}: The file exists. Choose another name, or {PERMISSION}.") from None


def _flush(path: Path) -> None:
    """Wait until the disk has the file: some file systems report only then that they are full."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def remove_stale_temporaries(folder: Path) -> None:
    """Remove the temporary files of killed processes."""
    with os.scandir(folder) as entries:
        found = [(_TEMPORARY.fullmatch(entry.name), Path(entry.path)) for entry in entries]
    for match, path in found:
        if match is None or path.is_dir():
            continue
        process = int(match[1])
        # the process of a restarted container may have the number of the killed one
        alive = path.absolute() in _unfinished if process == os.getpid() else _is_running(process)
        if not alive:
            path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OverflowError:
        return False
    except OSError as error:  # a process of another user is running
        return not isinstance(error, ProcessLookupError)
    return True
