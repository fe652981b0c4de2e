"""The wait while kernels are compiled, told to the user."""

from __future__ import annotations

from pathlib import Path

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from borelli.commands.console import err
from borelli.errors import FileFormatError


def compile_once(*files: Path | None, control: bool = False) -> None:
    """Compile the kernels, those of control if asked for, saying so, if no earlier run has left them in the cache.

    Raises:
        FileFormatError: one of the files that the command reads is not there: who mistyped a name need not wait.
    """
    from borelli.kernels.compile_cache import compile_kernels, missing_tasks

    for file in files:
        if file is not None and not file.exists():
            raise FileFormatError(file, "cannot be read: No such file or directory")
    tasks = missing_tasks(control=control)
    if not tasks:
        return
    note = "compiling the kernels (first use only, a minute or two)"
    if not err.is_terminal:
        err.print(note, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(note, total=None)
        seconds = compile_kernels(lambda what, _: progress.update(task, description=f"{note}: {what}"), tasks)
    err.print(f"compiled the kernels in {seconds:.0f} s; from now on they come from the cache", highlight=False)
