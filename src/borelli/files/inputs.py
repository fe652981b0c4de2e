"""Input files: those named by the user and those read on the way, such as the meshes of a model.

An input is never overwritten. Files are compared by device and inode, so that links and other spellings of a path are
recognized.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path

AnyPath = str | PathLike[str]

_protected: ContextVar[set[Path] | None] = ContextVar("_protected", default=None)


@contextmanager
def protect_inputs(*paths: AnyPath | None) -> Iterator[None]:
    """Protect files, and every file that is read in the block, from being overwritten in the block."""
    token = _protected.set(set(_protected.get() or ()))
    register_inputs(*paths)
    try:
        yield
    finally:
        _protected.reset(token)


def register_inputs(*paths: AnyPath | None) -> None:
    """Add files to those that the enclosing `protect_inputs` protects; without one, do nothing."""
    protected = _protected.get()
    if protected is not None:
        protected.update(Path(path).absolute() for path in paths if path is not None)


def is_input(path: Path, further: Iterable[AnyPath | None] = ()) -> bool:
    """Return whether an existing path is one of the protected files or of `further` files, by whatever name."""
    target = _identity(path)
    sources = (*(_protected.get() or ()), *(source for source in further if source is not None))
    return target is not None and any(_identity(source) == target for source in sources)


def _identity(path: AnyPath) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):  # ValueError: a path with a zero byte
        return None
    return status.st_dev, status.st_ino
