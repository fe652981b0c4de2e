"""Supervision of a running solver: time limit, Ctrl-C, checkpoint and progress, once per iteration."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from borelli.optimal.nlp_solvers.solver_result import Iterate


class Supervisor:
    """Watch over all solver runs of one call of `solve`."""

    def __init__(self, time_limit: float, report: Callable[[str, Iterate], None] | None) -> None:
        self.deadline = time.monotonic() + time_limit
        self.report = report
        self.cancelled = False
        self.level = ""
        self.save: Callable[[Iterate], None] | None = None

    @property
    def remaining(self) -> float:
        """Time left [s]."""
        return max(0.0, self.deadline - time.monotonic())

    def __call__(self, iterate: Iterate) -> str | None:
        """Return why the solver must end, or None."""
        if self.save is not None:
            self.save(iterate)
        if self.report is not None:
            self.report(self.level, iterate)
        if self.cancelled:
            return "cancelled"
        return None if self.remaining > 0.0 else "time limit"

    @contextmanager
    def catch_interrupt(self) -> Iterator[None]:
        """End the solver at its next iteration on the first Ctrl-C; the second interrupts at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former = signal.getsignal(signal.SIGINT)

        def cancel(_number: int, _frame: FrameType | None) -> None:
            self.cancelled = True
            signal.signal(signal.SIGINT, former)

        signal.signal(signal.SIGINT, cancel)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, former)


@contextmanager
def show_progress(name: str) -> Iterator[Callable[[str, Iterate], None]]:
    """Show the iterations in one line of the terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns: tuple[Any, ...] = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=None)

        def report(level: str, iterate: Iterate) -> None:
            progress.update(
                task,
                description=f"{name}{level}: iteration {iterate.iteration}, objective {iterate.objective:.6g}, "
                f"violation {iterate.violation:.1e}",
            )

        yield report
