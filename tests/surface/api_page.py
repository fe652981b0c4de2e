"""Writes docs/api/index.md, the list of public names, from the docstrings: `python -m tests.surface.api_page`."""

import inspect
import types
from importlib import import_module
from pathlib import Path

import borelli

PAGE = Path(__file__).parents[2] / "docs/api/index.md"
PACKAGES = ("recording", "model", "analysis", "pipeline", "physics", "control", "scenes", "synthetic", "view")
INTRODUCTION = """# API reference

`import borelli as bo` gives the functions of every stage, their results and the errors. Everything else is in a
subpackage, reached as `bo.model.Body` or by `from borelli.model import Body`. Arguments, units and errors are in the
docstrings: `help(bo.fit_model)`, and on the pages [recordings](recordings.md), [models](models.md),
[analysis](analysis.md), [simulation](simulation.md), [control](control.md), [views](views.md) and
[files and errors](files.md).
"""


def description(value):
    if isinstance(value, types.GenericAlias):
        return "Type alias."
    known = inspect.isclass(value) or inspect.isroutine(value)
    return inspect.getdoc(value).split("\n")[0].replace("|", "/") if known else "Constant."


def table(module, names):
    rows = [f"| `{name}` | {description(getattr(module, name))} |" for name in sorted(names, key=str.lower)]
    return "\n".join(("| name | |", "|---|---|", *rows)) + "\n"


def page():
    names = [name for name in borelli.__all__ if name not in PACKAGES and not name.startswith("__")]
    parts = [INTRODUCTION, "## borelli\n", table(borelli, names)]
    for package in PACKAGES:
        module = import_module(f"borelli.{package}")
        parts += [f"## borelli.{package}\n", module.__doc__.split("\n")[0] + "\n", table(module, module.__all__)]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
