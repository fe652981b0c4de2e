"""Plot of a tracked motion: coordinates next to the reference, activations or torques, and one-step defects."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from borelli.model.kinematics import root_coordinates
from borelli.optimal.symbolic_dynamics.vectors import identifier
from borelli.view.plot_style import GRID, INK, LINES, draw_columns, save_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from borelli.optimal.tracking.tracked_motion import TrackedMotion

COLUMNS = 3
"""Panels in a row."""
MAX_PANELS = 9
"""Coordinates: the joints with the largest range."""
MAX_LINES = 6
"""Lines in a panel of controls: those with the largest range."""


def plot_tracking(
    tracked: TrackedMotion, path: str | PathLike[str] | None = None, *, overwrite: bool = False
) -> Figure:
    """Draw a tracked motion next to its reference; write the figure if a path is given."""
    from matplotlib.figure import Figure

    reference, data = tracked.reference, tracked.solution.dataset
    units = {c.name: c.rotational for c in reference.model.coordinates}
    root = root_coordinates(reference.model)
    ranges = {n: np.ptp(reference.coordinates[:, i]) for i, n in enumerate(reference.names)}
    joints = sorted((n for n in ranges if units[n] and n not in root), key=lambda n: -ranges[n]) or list(ranges)
    shown = [n for n in reference.names if n in joints[:MAX_PANELS]]
    rows = -(-len(shown) // COLUMNS)
    figure = Figure(figsize=(9.5, 1.7 * rows + 4.4), layout="constrained")
    grid = figure.add_gridspec(rows + 2, COLUMNS, height_ratios=[1.0] * rows + [1.25, 1.25])
    time = np.linspace(0.0, reference.duration, 201)
    found = tracked.coordinates(time)
    for k, name in enumerate(shown):
        panel = figure.add_subplot(grid[k // COLUMNS, k % COLUMNS])
        column, factor = reference.names.index(name), 180.0 / np.pi if units[name] else 1.0
        panel.plot(
            reference.time + reference.start, factor * reference.coordinates[:, column], color=GRID, linewidth=4.0,
            label="recorded",
        )  # fmt: skip
        panel.plot(time + reference.start, factor * found[:, column], color=LINES[0], label="tracked")
        panel.set_title(f"{name.replace('_', ' ')} [{'deg' if units[name] else 'm'}]", fontsize="small", color=INK)
        style_axes(np.array([panel]))
        if k == 0:
            panel.legend(frameon=False, fontsize="small")
    shift = data.assign_coords(time=data["time"] + reference.start)
    lower = "muscle_activation" if "muscle_activation" in data else "torque"
    panel = figure.add_subplot(grid[rows, :])
    style_axes(np.array([panel]))
    chosen = (
        shift[lower] if lower != "torque" else shift[lower].sel(coordinate=[n for n in joints if n in tracked.sizes])
    )
    draw_columns(panel, chosen, MAX_LINES)
    panel.set_ylabel("activation" if lower != "torque" else "torque [N m]")
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    _draw_residuals(figure.add_subplot(grid[rows + 1, :]), tracked)
    verdict = "solved" if tracked.solved else "not solved"
    figure.suptitle(f"{data.attrs['problem']}: {verdict}", color=INK)
    if path is not None:
        save_figure(figure, path, overwrite=overwrite)
    return figure


def _draw_residuals(panel: object, tracked: TrackedMotion) -> None:
    """Draw the largest torques next to muscles and at the root, in units of their sizes."""
    style_axes(np.array([panel]))
    time = tracked.solution.dataset["time"].values + tracked.reference.start
    curves = {n: tracked.solution.value(f"{identifier(n)}_torque") for n in tracked.sizes}
    largest = sorted(curves, key=lambda n: -np.abs(curves[n]).max() / tracked.sizes[n])[:MAX_LINES]
    for k, name in enumerate(largest):
        panel.plot(time, curves[name], color=LINES[k % len(LINES)], label=name)  # type: ignore[attr-defined]
    panel.set_ylabel("residuals and\nreserves [N m or N]")  # type: ignore[attr-defined]
    panel.set_xlabel("time [s]")  # type: ignore[attr-defined]
    panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")  # type: ignore[attr-defined]
