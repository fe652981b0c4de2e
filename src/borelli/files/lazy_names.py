"""Public names of a package, imported on first use; the package's stub `__init__.pyi` is their only list."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from borelli.files.argument_checks import with_checked_arguments


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package from the imports in its stub.

    Type checkers read the stub, so both always agree. A name must not be that of a submodule, which would replace it.
    """
    module = sys.modules[package]
    stub = Path(module.__file__ or "").with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: node.module or "" for node in imports for alias in node.names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        # a stub imports submodules from the package itself
        value = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        value = with_checked_arguments(value, package)
        setattr(module, name, value)
        return value

    names = sorted(homes)
    return load, lambda: [*(name for name in vars(module) if name.startswith("__")), *names], names
