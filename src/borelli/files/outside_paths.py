"""Paths inside files that lead out of the file's folder.

A format may refer to other files anywhere. borelli reads what the format demands, and notes every path that leaves the
folder, so that a model of unknown origin cannot use other files unnoticed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PureWindowsPath

MAX_NOTED_PATHS = 20
"""Paths that get a note of their own; one more note counts the others."""
MAX_PATH_LENGTH = 200
"""Characters of a path that are shown."""

_URL = re.compile(r"[A-Za-z][\w+.-]*://")


class PathNote(str):
    """Note of a model about a path that leaves its folder."""

    code = "path_outside"


def is_outside(path: str, folder: Path) -> bool:
    """Return whether a path, relative to a folder, leads out of it: absolute, `..`, a link, a network path or a URL."""
    name = path.strip()
    if _is_elsewhere(name):
        return True
    try:
        target = os.path.realpath(folder / name.replace("\\", "/"))
    except (OSError, ValueError):  # a name too long, or with a zero byte, is no file at all
        return False
    return not Path(target).is_relative_to(os.path.realpath(folder))


def joined_path(folder: str, path: str) -> str:
    """Return a path below a folder, both as stated in a file; an absolute path stays as it is."""
    name = path.strip()
    return path if not folder or name.startswith("/") or _is_elsewhere(name) else f"{folder}/{path}"


def _is_elsewhere(name: str) -> bool:
    """Return whether a path is a URL, a network path, or begins at a drive or a home folder."""
    return bool(_URL.match(name) or name.startswith(("\\\\", "//", "~")) or PureWindowsPath(name).drive)


def outside_notes(paths: Iterable[tuple[str, str]], folder: Path) -> list[PathNote]:
    """Return a note for each path that leaves the folder; paths are given with what they are for, such as "mesh"."""
    outside = [(use, path) for use, path in dict.fromkeys(paths) if path.strip() and is_outside(path, folder)]
    notes = [
        PathNote(f"The path of a {use} is outside the model's folder: {path[:MAX_PATH_LENGTH]!r}.")
        for use, path in outside[:MAX_NOTED_PATHS]
    ]
    if len(outside) > MAX_NOTED_PATHS:
        notes.append(PathNote(f"{len(outside) - MAX_NOTED_PATHS} more paths are outside the model's folder."))
    return notes
