"""The wait while kernels are compiled, told to the user."""

from __future__ import annotations

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from borelli.commands.screen import err


def compile_once() -> None:
    """Compile the kernels, saying so, if an earlier run has not left them in the cache."""
    from borelli.compiling import compile_kernels, kernels_ready

    if kernels_ready():
        return
    note = "compiling the kernels (first use only, about a minute)"
    if not err.is_terminal:
        err.print(note, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(note, total=None)
        seconds = compile_kernels(lambda what, _: progress.update(task, description=f"{note}: {what}"))
    err.print(f"compiled the kernels in {seconds:.0f} s; from now on they come from the cache", highlight=False)
