"""Paths given by the user."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from borelli.errors import SettingsError


def as_path(path: str | PathLike[str]) -> Path:
    """Return the path as a `Path`; raise `SettingsError` if it is neither a `str` nor a path object."""
    text = os.fspath(path) if isinstance(path, str | PathLike) else None
    if not isinstance(text, str):
        raise SettingsError(f"A file path must be a str or a pathlib.Path, got {type(path).__name__} {path!r:.60}.")
    return Path(text)
