"""Writes docs/api/, the pages of public names, from the packages: `python -m tests.surface.api_page`."""

import inspect
import types
from importlib import import_module
from pathlib import Path

import borelli

FOLDER = Path(__file__).parents[2] / "docs" / "api"
PACKAGES = (
    "recording",
    "model",
    "muscles",
    "analysis",
    "pipeline",
    "physics",
    "dynamics",
    "control",
    "optimal",
    "scenes",
    "synthetic",
    "view",
)
INTRODUCTION = """# API reference

`import borelli as bo` gives the functions of every stage, their results and the errors. Everything else is in a
subpackage, reached as `bo.model.Body` or by `from borelli.model import Body`. Each name links to its arguments, units
and errors; `help(bo.fit_model)` shows the same.
"""


def is_documented(value):
    return (inspect.isclass(value) or inspect.isroutine(value)) and not isinstance(value, types.GenericAlias)


def description(value):
    if isinstance(value, types.GenericAlias):
        return "Type alias."
    return inspect.getdoc(value).split("\n")[0].replace("|", "/") if is_documented(value) else "Constant."


def home(value):
    """Return the module that defines an object: a public function is one that checks arguments first."""
    return inspect.unwrap(value).__module__


def page_of(value):
    """Return the page that has an object's section: that of its package, or the one for reports, files and errors."""
    package = home(value).split(".")[1].replace("people", "model")
    return package if package in PACKAGES else "files"


def row(name, value):
    if not is_documented(value):
        return f"| `{name}` | {description(value)} |"
    return f"| [`{name}`]({page_of(value)}.md#{home(value)}.{value.__name__}) | {description(value)} |"


def table(module, names):
    rows = [row(name, getattr(module, name)) for name in sorted(names, key=str.lower)]
    return "\n".join(("| name | |", "|---|---|", *rows)) + "\n"


def pages():
    """Return the texts of all pages by file name."""
    tops = [name for name in borelli.__all__ if name not in PACKAGES and not name.startswith("__")]
    index = [INTRODUCTION, "## borelli\n", table(borelli, tops)]
    objects = {package: {} for package in (*PACKAGES, "files")}
    for name in tops:
        value = getattr(borelli, name)
        objects[page_of(value)][f"{home(value)}.{value.__name__}"] = value
    for package in PACKAGES:
        module = import_module(f"borelli.{package}")
        index += [f"## borelli.{package}\n", module.__doc__.split("\n")[0] + "\n", table(module, module.__all__)]
        for value in (getattr(module, name) for name in module.__all__):
            if is_documented(value):
                objects[page_of(value)][f"{home(value)}.{value.__name__}"] = value
    texts = {"index.md": "\n".join(index)}
    for package, found in objects.items():
        title = f"borelli.{package}" if package in PACKAGES else "Reports, stage files, errors"
        about = import_module(f"borelli.{package}").__doc__.split("\n")[0] + "\n\n" if package in PACKAGES else ""
        sections = "\n".join(
            f"::: {name}\n" for name in sorted(found, key=lambda name: name.rpartition(".")[2].lower())
        )
        texts[f"{package}.md"] = f"# {title}\n\n{about}{sections}"
    return texts


if __name__ == "__main__":
    for old in FOLDER.glob("*.md"):
        old.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
