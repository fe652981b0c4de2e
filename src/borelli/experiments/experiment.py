"""Experiments: their description, and how they are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from borelli.experiments.outcome import Outcome


@dataclass(frozen=True)
class Experiment:
    """One experiment, whose module is imported when it is run.

    Attributes:
        about: What it shows, in one phrase.
        figures: Figures of the paper that it reproduces.
        module: Full name of the module with its function `run(out, *, recording, quick, log) -> Outcome`.
        paper: Authors of the paper.
        takes_recording: True if it can use a recording instead of synthetic data.
    """

    about: str
    figures: str
    module: str
    paper: str
    takes_recording: bool = False

    def run(self, out: Path, *, recording: Path | None, quick: bool, log: Callable[[str], None]) -> Outcome:
        """Run the experiment and write its table, plots and images into the folder `out`."""
        outcome: Outcome = import_module(self.module).run(out, recording=recording, quick=quick, log=log)
        return outcome
