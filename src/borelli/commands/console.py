"""The screen: results to stdout, progress and errors to stderr; tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

out = Console()
err = Console(stderr=True)

COLORS = {
    "error": "red",
    "warning": "yellow",
    "note": "cyan",
    "problem": "red",
    "inferred": "yellow",
    "changed": "cyan",
    "lost": "yellow",
}
"""Of the words that say how much a line matters."""


def sentence(error: BaseException) -> str:
    """What went wrong, as one line."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror[0].lower()}{error.strerror[1:]}"
    return " ".join(str(error).split())


def complain(error: BaseException) -> None:
    """Print what went wrong, as one line on stderr."""
    err.print(f"borelli: {sentence(error)}", style="red", markup=False, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line as it stands, its brackets and paths untouched."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def show_title(file: object, text: str = "") -> None:
    """Print the name of the file that the lines below are about, after an empty line."""
    out.print(f"\n[bold underline]{escape(str(file))}[/]{escape(text)}", highlight=False, soft_wrap=True)


def print_json(figures: Any) -> None:
    """Print one JSON value, with null for what JSON cannot say."""
    import json

    print(json.dumps(finite(figures), allow_nan=False))


def finite(value: Any) -> Any:
    """The value with None for numbers that JSON cannot say."""
    if isinstance(value, Mapping):
        return {str(key): finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def print_figures(title: str, figures: Mapping[str, Any]) -> None:
    """Print names and values, one to a line."""
    # units stand in square brackets, which rich would take for styles
    table = Table(title=escape(title), title_justify="left", show_header=False)
    for name, value in figures.items():
        table.add_row(escape(name), f"{value:.6g}" if isinstance(value, float) else escape(str(value)))
    out.print(table)


def print_pairs(pairs: Mapping[str, str], *, indent: int = 0) -> None:
    """Print names and what is to be said of each, which may run over several lines."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in pairs.items():
        grid.add_row(" " * indent + escape(name), escape(text))
    out.print(grid)


def print_marked(lines: list[tuple[str, str]]) -> None:
    """Print lines that each begin with a word saying how much they matter."""
    if not lines:
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for mark, text in lines:
        grid.add_row(Text(mark, style=COLORS.get(mark, "")), Text(text))
    out.print(grid)


@contextmanager
def bar(what: str, *, hidden: bool = False) -> Iterator[Any]:
    """A progress bar on stderr that goes away when done; yields what moves it to a share, and may say what is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=hidden or not err.is_terminal) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda share, doing=None: progress.update(task, completed=share, description=doing or what)
