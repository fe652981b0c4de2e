"""Lock of a folder: one run writes into it at a time.

The system releases the lock when its process ends, even by SIGKILL. It also separates threads of one process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from borelli.errors import FileFormatError, SettingsError
from borelli.files.atomic import PREFIX

LOCK = f"{PREFIX}lock"
"""Name of the file that is locked; it contains the number of the process."""
MAX_LOCK_BYTES = 32

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> None:
        # one byte behind the number of the process, which other processes could not read otherwise
        os.lseek(file, MAX_LOCK_BYTES, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None
else:
    import fcntl

    def _try_lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for the block.

    Raises:
        SettingsError: Another run has locked the folder, or the file system has no locks.
    """
    path = folder / LOCK
    file = _open_locked(path, folder)
    try:
        _write_process(file, path)
        yield
    finally:
        if sys.platform != "win32":  # which does not remove open files
            path.unlink(missing_ok=True)
        os.close(file)


def _open_locked(path: Path, folder: Path) -> int:
    """Return the locked file, created if needed."""
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:  # a run that failed has just removed its empty folder
            folder.mkdir(parents=True, exist_ok=True)
            continue
        try:
            _lock(file, folder)
            if _is_at(file, path):
                _check_content(file, path)
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # the run before has just removed it


def _lock(file: int, folder: Path) -> None:
    try:
        _try_lock(file)
    except BlockingIOError:
        process = _content(file)
        known = f" (process {process.decode()})" if process.isdigit() else ""
        raise SettingsError(
            f"{folder}: Another run is writing into the folder{known}. Wait until it ends, or choose another folder "
            "with --out."
        ) from None
    except OSError as error:
        reason = error.strerror or error
        raise SettingsError(
            f"{folder}: The folder cannot be locked ({reason}). Choose a folder on another drive with --out."
        ) from None


def _is_at(file: int, path: Path) -> bool:
    """Return whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def _content(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, MAX_LOCK_BYTES)


def _check_content(file: int, path: Path) -> None:
    content = _content(file)
    if content and not content.isdigit():
        raise SettingsError(f"{path}: The file is not a lock of borelli. Move it to another folder.")


def _write_process(file: int, path: Path) -> None:
    try:
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, str(os.getpid()).encode())
    except OSError as error:
        raise FileFormatError(path, f"The file cannot be written ({error.strerror or error}).") from None
