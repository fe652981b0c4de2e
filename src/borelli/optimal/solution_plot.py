"""Plot of a solution: states, controls and one-step defects against time."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from borelli.view.plot_style import GRID, INK, LINES, draw_columns, save_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from borelli.optimal.solution import Solution

MAX_LINES = 6
"""Lines in a panel: those with the largest range."""


def plot_solution(solution: Solution, path: str | PathLike[str] | None = None, *, overwrite: bool = False) -> Figure:
    """Draw the main variables of a solution against time; write the figure if a path is given."""
    from matplotlib.figure import Figure

    data = solution.dataset
    shown = [name for name in ("state_value", "control_value", "output_value", "state_defect") if name in data]
    figure = Figure(figsize=(8.0, 2.0 * len(shown) + 0.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(shown), 1, sharex=True))
    style_axes(axes)
    for panel, name in zip(axes, shown, strict=True):
        variable = data[name]
        if name == "state_defect":
            _draw_defects(panel, solution)
        else:
            draw_columns(panel, variable, MAX_LINES)
        panel.set_ylabel(f"{name.removesuffix('_value').replace('_', ' ')}\n[{variable.attrs['units']}]")
        panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
        for end in np.cumsum(data["phase_duration"].values)[:-1]:
            panel.axvline(end, color=GRID, linewidth=2.0, zorder=0)
    axes[-1].set_xlabel("time [s]")
    verdict = "solved" if solution.solved else "not solved"
    figure.suptitle(f"{data.attrs['problem']}: {verdict}", color=INK)
    if path is not None:
        save_figure(figure, path, overwrite=overwrite)
    return figure


def _draw_defects(panel: object, solution: Solution) -> None:
    """Draw the size of the one-step defects on a logarithmic axis, at the ends of elements."""
    defects = solution.dataset["state_defect"]
    rows = np.isfinite(defects.values).any(axis=1)
    time, values = defects["time"].values[rows], np.abs(defects.values[rows])
    order = np.argsort(-np.nanmax(values, axis=0, initial=0.0), kind="stable")[:MAX_LINES]
    for k, column in enumerate(order):
        color = LINES[k % len(LINES)]
        name = str(defects["state"].values[column])
        positive = np.where(values[:, column] > 0.0, values[:, column], np.nan)
        panel.semilogy(time, positive, ".", color=color, label=name)  # type: ignore[attr-defined]
