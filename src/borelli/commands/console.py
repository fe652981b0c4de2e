"""Terminal output: results to stdout, progress and errors to stderr; tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from borelli.errors import MissingFileError

if TYPE_CHECKING:
    from borelli.recording.recording import Note, Recording

MAX_SEARCHED_FILES = 1000
"""Files of a folder whose names are compared with that of a missing file."""
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
"""Color of each word that begins a line of `print_marked`."""


def error_line(error: BaseException) -> str:
    """Return the message of an error as one line that ends as a sentence."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    text = " ".join(str(error).split())
    text += "" if text.endswith((".", "?", "!", ")")) else "."
    near = _similar_file(error.path) if isinstance(error, MissingFileError) else ""
    return f"{text} Did you mean {near}?" if near else text


def _similar_file(path: str) -> str:
    """Return the file with the most similar name in the folder of a file that does not exist; "" if there is none."""
    from difflib import get_close_matches
    from itertools import islice
    from os import scandir

    try:
        with scandir(Path(path).parent) as entries:
            names = [entry.name for entry in islice(entries, MAX_SEARCHED_FILES) if len(entry.name) < 100]
    except (OSError, ValueError):
        return ""
    lower = {name.lower(): name for name in names}
    near = get_close_matches(Path(path).name[:100].lower(), lower, n=1)
    return str(Path(path).with_name(lower[near[0]])) if near else ""


def print_error(error: BaseException) -> None:
    """Print the message of an error as one line on stderr."""
    err.print(f"borelli: {error_line(error)}", style="red", markup=False, highlight=False, soft_wrap=True)


def print_line(text: str) -> None:
    """Print a line literally, without markup or wrapping."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def show_title(file: object, text: str = "") -> None:
    """Print an empty line and the name of the file that the next lines are about."""
    out.print(f"\n[bold underline]{escape(str(file))}[/]{escape(text)}", highlight=False, soft_wrap=True)


def print_json(values: Any) -> None:
    """Print one JSON value, with null for numbers that are not finite."""
    import json

    print(json.dumps(finite(values), allow_nan=False))


def finite(value: Any) -> Any:
    """Return the value with None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def print_values(title: str, values: Mapping[str, Any]) -> None:
    """Print names and values as a table."""
    table = Table(title=escape(title), title_justify="left", show_header=False)
    for name, value in values.items():
        table.add_row(escape(name), f"{value:.6g}" if isinstance(value, float) else escape(str(value)))
    out.print(table)


def print_pairs(pairs: Mapping[str, str], *, indent: int = 0) -> None:
    """Print names and texts in two columns; texts may take several lines."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in pairs.items():
        grid.add_row(" " * indent + escape(name), escape(text))
    out.print(grid)


def note_lines(notes: Sequence[Note]) -> list[tuple[str, str]]:
    """Return notes as lines for `print_marked`."""
    return [("note" if note.kind == "stated" else note.kind, note.text) for note in notes]


def reading_notes(recording: Recording) -> list[Note]:
    """Return what a reader inferred, changed or found wrong; not what the file or the user states."""
    return [note for note in recording.notes if note.kind != "stated"]


def print_marked(lines: list[tuple[str, str]]) -> None:
    """Print lines that begin with a colored word, such as "warning"."""
    if not lines:
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for mark, text in lines:
        grid.add_row(Text(mark, style=COLORS.get(mark, "")), Text(text))
    out.print(grid)


@contextmanager
def progress_bar(task: str, *, hidden: bool = False) -> Iterator[Any]:
    """Show a progress bar on stderr; yields a function that takes the fraction done and, optionally, a new text."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=hidden or not err.is_terminal) as progress:
        task_id = progress.add_task(task, total=1.0)
        yield lambda done, text=None: progress.update(task_id, completed=done, description=text or task)


def compile_once(*files: Path | None, control: bool = False, muscles: bool = False) -> None:
    """Compile the kernels that are not in the cache, with those of control and muscles if requested.

    Raises:
        MissingFileError: An input file of the command is missing, checked before the wait.
    """
    from borelli.kernels.compile_cache import compile_kernels, missing_tasks

    for file in files:
        if file is not None and not file.exists():
            raise MissingFileError(file)
    tasks = missing_tasks(["main", *["control"] * control, *["muscles"] * muscles])
    if not tasks:
        return
    notice = "compiling kernels (first use only, a minute or two)"
    if not err.is_terminal:
        err.print(notice, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(notice, total=None)
        seconds = compile_kernels(lambda name, _: progress.update(task, description=f"{notice}: {name}"), tasks)
    err.print(f"compiled kernels in {seconds:.0f} s and stored them in the cache", highlight=False)
