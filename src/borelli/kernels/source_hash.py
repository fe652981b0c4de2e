"""Hashes of the sources of a module and of all modules that it imports.

numba's own cache looks only at the file of the function it compiles, so it would miss an edit in a module that the
function calls. The imports are followed instead of keeping a list of modules, so that a hash covers every source that
can change what a kernel computes, and no other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
IMPORT = re.compile(r"^[ \t]*from (borelli(?:\.\w+)*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
"""An import of a borelli module, at the top of a file or in a function."""


def imported_sources(modules: Iterable[str]) -> tuple[Path, ...]:
    """Return the files of modules and of all that they import, directly or not, with their packages' data, in order."""
    sources: set[Path] = set()
    waiting = [source for name in modules for source in _files(name)]
    while waiting:
        source = waiting.pop()
        if source not in sources:
            sources.add(source)
            waiting.extend(_imports(source))
    data = {file for folder in {source.parent for source in sources} for file in (folder / "data").rglob("*")}
    return tuple(sorted(sources | {file for file in data if file.is_file()}))


@cache
def source_hash(*modules: str) -> str:
    """Return a hash that changes when any source of the modules, or of what they import, changes."""
    digest = hashlib.sha256()
    for path in imported_sources(modules):
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _imports(source: Path) -> tuple[Path, ...]:
    files: list[Path] = []
    for package, names in IMPORT.findall(source.read_text(encoding="utf-8")):
        files += _files(package)
        for name in re.findall(r"\w+", names):  # a name may be a module of the package
            files += _files(f"{package}.{name}")
    return tuple(files)


@cache
def _files(module: str) -> tuple[Path, ...]:
    """Return the file of a module, or `__init__.py` of a package; nothing if there is none, or for borelli itself."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    if path == PACKAGE:
        return ()
    return tuple(file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())
