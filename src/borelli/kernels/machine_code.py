"""Machine code of kernels in files with a checksum, which is verified before anything is unpickled or linked.

numba's own cache unpickles whatever is in its files and links it: a damaged file ends the process. Here each compiled
signature has one file, named by a hash of all that it depends on, so that processes that compile at the same time do
not disturb one another. A damaged file is removed, and the kernel is compiled again.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import stat
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from borelli.errors import BorelliError
from borelli.files.atomic import atomic_path
from borelli.kernels.cache_folder import announce_once, code_folder, mark_used, ownership_problem, remove
from borelli.kernels.source_hash import source_hash

SUFFIX = ".code"
COMPILING = "BORELLI_COMPILING"
"""Environment variable of the processes that compile, which must not start any themselves."""
READ_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
DIGEST_SIZE = hashlib.sha256().digest_size


def module_folder(module: str) -> Path:
    """Return the folder of the machine code that belongs to the present sources of a module."""
    return code_folder() / f"{module.removeprefix('borelli.')}-{source_hash(module)}"


class MachineCodeCache:
    """Compiled signatures of one function, as numba's dispatchers load and save them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @property
    def cache_path(self) -> str:
        """Folder of the files."""
        return str(module_folder(self._function.__module__))

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled signature; None if there is no file or it is damaged."""
        from numba.core.compiler import CompileResult

        context.refresh()
        path, key = self._locate(signature, context.codegen())
        content = read_code(path, key)
        return None if content is None else CompileResult._rebuild(context, *pickle.loads(content))

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write a compiled signature. Without space or permission the kernel is used without being saved."""
        from numba.core.serialize import dumps

        if self._function.__closure__ or compiled.lifted or compiled.library.has_dynamic_globals:
            raise TypeError(f"{self._function.__qualname__}: Code that depends on variables cannot be saved.")
        path, key = self._locate(signature, compiled.library.codegen)
        try:
            write_code(path, key, dumps(compiled._reduce()))
        except (OSError, BorelliError) as error:
            if COMPILING in os.environ:
                raise
            announce_once("save", f"{error} Compiled kernels are not saved.")

    def enable(self) -> None:
        """Do nothing: required by numba."""

    def disable(self) -> None:
        """Do nothing: required by numba."""

    def flush(self) -> None:
        """Do nothing: required by numba."""

    def _locate(self, signature: Any, codegen: Any) -> tuple[Path, bytes]:
        """Return the path of a signature's file, and all that the machine code depends on, as text."""
        import numba

        function, code = self._function, self._function.__code__
        source = inspect.getfile(function)
        parts = (
            numba.__version__, sys.version, source, _file_hash(source), function.__qualname__, code.co_firstlineno,
            hashlib.sha256(code.co_code).hexdigest(), signature, codegen.magic_tuple(),
        )  # fmt: skip
        key = repr(parts).encode()
        name = f"{function.__name__}-{hashlib.sha256(key).hexdigest()[:16]}{SUFFIX}"
        return module_folder(function.__module__) / name, key


@cache
def _file_hash(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def write_code(path: Path, key: bytes, content: bytes) -> None:
    """Write a file with its checksum, complete or not at all, readable by the user only."""
    path.parent.mkdir(0o700, exist_ok=True)
    with atomic_path(path, overwrite=True) as temporary:
        temporary.touch(0o600)
        temporary.write_bytes(_checksum(key, content) + content)


def read_code(path: Path, key: bytes) -> bytes | None:
    """Return the content of a file; None if it does not exist. Remove it and announce it if it is damaged."""
    damaged, stored = path.parent, b""
    try:
        folder = path.parent.lstat()
        problem = ownership_problem(folder) if stat.S_ISDIR(folder.st_mode) else "is not a folder"
        if problem is None:
            damaged = path
            stored, problem = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
    content = stored[DIGEST_SIZE:]
    if problem is None and stored[:DIGEST_SIZE] != _checksum(key, content):
        problem = "is damaged (another checksum)"
    if problem is None:
        mark_used(path.parent)
        return content
    announce_once("damaged", f"{damaged}: This part of the kernel cache {problem}. It is removed and compiled again.")
    try:
        remove(damaged)
    except OSError as error:
        announce_once("remove", f"{damaged}: It cannot be removed ({error.strerror}). Delete it.")
    return None


def _read(path: Path) -> tuple[bytes, str | None]:
    """Return the content of a file, or why it is not a file of the user alone."""
    with os.fdopen(os.open(path, READ_FLAGS), "rb") as file:
        info = os.fstat(file.fileno())
        problem = ownership_problem(info) if stat.S_ISREG(info.st_mode) else "is not a file"
        return (b"", problem) if problem else (file.read(), None)


def _checksum(key: bytes, content: bytes) -> bytes:
    """Return the checksum; with the key, so that a file does not pass for another."""
    return hashlib.sha256(hashlib.sha256(key).digest() + content).digest()
