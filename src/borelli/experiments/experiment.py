"""Experiments: their description, how they are requested and run, and the figures they draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from borelli.experiments.outcome import Outcome, write_outcome
from borelli.files.inputs import protect_inputs
from borelli.files.results_folder import results_folders
from borelli.view.plot_style import save_figure, style_axes


@dataclass(frozen=True)
class Request:
    """How an experiment is to be run."""

    name: str
    """Name of the experiment; files are named after it."""
    out: Path
    """Output folder."""
    recording: Path | None = None
    """Recording to use instead of synthetic data."""
    quick: bool = False
    """Run few trials, to check that the experiment works."""
    log: Callable[[str], None] = lambda _: None
    """Called with a description of each step."""

    @property
    def plot(self) -> Path:
        """Path of the experiment's plot."""
        return self.out / f"{self.name}.png"


@dataclass(frozen=True)
class Experiment:
    """One experiment, whose module is imported when it is run.

    Attributes:
        about: What it shows, in one phrase.
        figures: Figures of the paper that it reproduces.
        module: Full name of the module with its function `run(request) -> Outcome`.
        paper: Authors of the paper.
        takes_recording: True if it can use a recording instead of synthetic data.
        endings: Ends of the names of its files, after the name of the experiment.
    """

    about: str
    figures: str
    module: str
    paper: str
    takes_recording: bool = False
    endings: tuple[str, ...] = (".csv", ".json", ".png")

    def run(self, request: Request, *, overwrite: bool = False) -> Outcome:
        """Run the experiment and write its table, plots and images."""
        outputs = {request.out: [f"{request.name}{ending}" for ending in self.endings]}
        with (
            protect_inputs(request.recording),
            results_folders(outputs, f"experiment {request.name}", overwrite=overwrite),
        ):
            return write_outcome(import_module(self.module).run(request), request.out)


@contextmanager
def figure(
    path: Path, *labels: str, size: tuple[float, float] = (11.0, 4.0), rows: int = 1, xlabel: str = "time [s]"
) -> Iterator[Any]:
    """Yield the panels of a figure, one for each label of a vertical axis, and write the figure to a file.

    A panel with labeled lines gets a legend.
    """
    from matplotlib.figure import Figure

    drawn = Figure(figsize=size, layout="constrained")
    axes = drawn.subplots(rows, len(labels) // rows, squeeze=False)
    for ax, label in zip(axes.flat, labels, strict=True):
        ax.set(xlabel=xlabel, ylabel=label)
    yield axes.ravel()
    for ax in axes.flat:
        if ax.get_legend_handles_labels()[0]:
            ax.legend(frameon=False, fontsize=8)
    style_axes(axes)
    save_figure(drawn, path)
