"""Compilation of the kernels on first use, with a notice for the user."""

from __future__ import annotations

from pathlib import Path

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from borelli.commands.console import err
from borelli.errors import MissingFileError


def compile_once(*files: Path | None, control: bool = False) -> None:
    """Compile the kernels that are not in the cache, with those of control if requested.

    Raises:
        MissingFileError: An input file of the command is missing, checked before the wait.
    """
    from borelli.kernels.compile_cache import compile_kernels, missing_tasks

    for file in files:
        if file is not None and not file.exists():
            raise MissingFileError(file)
    tasks = missing_tasks(control=control)
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
