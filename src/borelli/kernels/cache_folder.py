"""Folder of machine code: private to the user, since loading machine code runs it.

The folder and its parents must belong to the user (parents: or to root), and others must not be able to write to them;
otherwise nothing is loaded from it, and a temporary folder is used. Windows: permissions are not checked.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from borelli.errors import BorelliError

MAX_UNUSED_DAYS = 60
"""Days without use after which machine code of other versions is removed."""
DAY = 86400.0
"""[s]"""
OWN_ENTRY = re.compile(r"(complete|[\w.]+)-[0-9a-f]{16}")
"""Names of folders and files that belong to the cache."""
PERMISSIONS_CHECKED = hasattr(os, "geteuid")
"""False on Windows."""


def announce(text: str) -> None:
    """Print a line on stderr."""
    print(f"borelli: {text}", file=sys.stderr, flush=True)


def announce_once(kind: str, text: str) -> None:
    """Print a line on stderr, the first of its kind only."""
    if kind not in _ANNOUNCED:
        _ANNOUNCED.add(kind)
        announce(text)


_ANNOUNCED: set[str] = set()


def cache_root() -> Path:
    """Return `BORELLI_CACHE`, else the user's cache folder; empty and relative paths are ignored (XDG standard)."""
    named, xdg = Path(os.environ.get("BORELLI_CACHE", "")), Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named
    if os.environ.get("BORELLI_CACHE"):
        announce_once("relative", f"BORELLI_CACHE: {str(named)!r} is relative and ignored. Set an absolute path.")
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises where there is none
    if not (xdg.is_absolute() or home.is_absolute()):
        announce_once("home", "HOME: There is no home folder for compiled kernels. Set BORELLI_CACHE.")
        return _temporary_folder()
    return (xdg if xdg.is_absolute() else home / ".cache") / "borelli"


def code_folder() -> Path:
    """Return the folder of machine code: `cache_root()` if that is private, else a temporary folder."""
    return _private_or_temporary(cache_root())


@cache
def _private_or_temporary(folder: Path) -> Path:
    try:
        return private_folder(folder)
    except BorelliError as error:
        announce(f"{error} Kernels of this run are compiled into a temporary folder.")
        return _temporary_folder()


def private_folder(folder: Path) -> Path:
    """Create a folder if necessary and return its real path.

    Raises:
        BorelliError: It cannot be created, or others could write to it.
    """
    try:
        _create(folder)
        real = folder.resolve(strict=True)
        problem = _find_problem(folder, real) if PERMISSIONS_CHECKED else None
    except (OSError, RuntimeError) as error:  # RuntimeError: a cycle of symbolic links
        reason = getattr(error, "strerror", None) or error
        raise BorelliError(
            f"{folder}: The folder of compiled kernels cannot be used ({reason}). Set BORELLI_CACHE to a folder of "
            "your own."
        ) from None
    if problem:
        raise BorelliError(
            f"{folder}: The folder of compiled kernels is not private: {problem}. Delete it or correct its owner and "
            "permissions (chmod 700), or set BORELLI_CACHE to a folder of your own."
        )
    return real


def _create(folder: Path) -> None:
    """Create a folder and its parents, accessible by the user only."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(0, "it is not a folder")


def _find_problem(folder: Path, real: Path) -> str | None:
    """Return who else could change the contents of a folder; None if nobody."""
    # the owner of the root folder can change everything; in a container it may not be user 0
    trusted = (0, os.geteuid(), real.parents[-1].stat().st_uid)
    for path in (folder, *folder.parents):
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode) and info.st_uid not in trusted:
            return f"the link {path} belongs to user {info.st_uid}"
    problem = ownership_problem(real.stat())
    if problem:
        return f"{real} {problem}"
    for path in real.parents:
        info = path.stat()
        if info.st_uid not in trusted:
            return f"{path} belongs to user {info.st_uid}"
        writable = info.st_mode & (stat.S_IWOTH if _is_own_group(info) else stat.S_IWOTH | stat.S_IWGRP)
        # in a sticky folder, such as /tmp, others cannot rename what is not theirs
        if writable and not info.st_mode & stat.S_ISVTX:
            return f"{path} is writable by others (mode {stat.S_IMODE(info.st_mode):04o})"
    return None


def ownership_problem(info: os.stat_result) -> str | None:
    """Return why a file or folder is not the user's alone; None if it is."""
    if not PERMISSIONS_CHECKED:
        return None
    if info.st_uid != os.geteuid():
        return f"belongs to user {info.st_uid}, not to user {os.geteuid()}"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"is writable by others (mode {stat.S_IMODE(info.st_mode):04o})"
    return None


def _is_own_group(info: os.stat_result) -> bool:
    """Return True if the group is that of its owner alone, as many systems create for each user."""
    import grp
    import pwd

    try:
        return pwd.getpwuid(info.st_uid).pw_name == grp.getgrgid(info.st_gid).gr_name
    except KeyError:
        return False


@cache
def _temporary_folder() -> Path:
    """Return a private folder that is removed when the process ends, or one in which nothing can be saved."""
    try:
        folder, process = Path(tempfile.mkdtemp(prefix="borelli-kernels-")), os.getpid()
    except OSError as error:
        announce(f"temporary folder: It cannot be created ({error.strerror}). Set TMPDIR to a writable folder.")
        return Path(os.devnull, "kernels")

    def clean_up() -> None:
        if os.getpid() == process:  # not in a fork
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(clean_up)
    return folder


def mark_used(path: Path) -> None:
    """Set the time of last use of an entry of the cache, at most once a day."""
    if time.time() - path.stat().st_mtime > DAY:
        with suppress(OSError):  # nothing is removed from a read-only folder either
            os.utime(path)


def remove_unused(folder: Path) -> None:
    """Remove entries of the cache that have not been used for `MAX_UNUSED_DAYS`."""
    for entry in folder.iterdir():
        with suppress(OSError):  # another process may remove it first, and the rest can wait
            if OWN_ENTRY.fullmatch(entry.name) and time.time() - entry.lstat().st_mtime > MAX_UNUSED_DAYS * DAY:
                remove(entry)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with its contents.

    Raises:
        OSError: It cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
