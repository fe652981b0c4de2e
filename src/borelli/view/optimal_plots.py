"""Plots of results of optimal control: solutions, tracked motions and what-ifs.

These results are in a package above this one, so they are not imported here; the table in `plots` names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.model.kinematics import root_coordinates
from borelli.view.plot_style import GRID, INK, LINES, draw_columns, plot_name, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

COLUMNS = 3
"""Panels in a row."""
MAX_TRACKED = 9
"""Coordinates of a tracked motion: the joints with the largest range."""
MAX_CHANGED_JOINTS, MAX_CHANGED_MUSCLES = 6, 9
"""Coordinates and muscles of a what-if: those that change most."""
OUTSIDE = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False, "fontsize": "small"}
"""Legend on the right of its panel."""


def solution_figure(solution: Any, lines: int) -> Figure:
    """Return states, controls, outputs and one-step defects of a solution against time."""
    from matplotlib.figure import Figure

    data = solution.dataset
    shown = [name for name in ("state_value", "control_value", "output_value", "state_defect") if name in data]
    figure = Figure(figsize=(8.0, 2.0 * len(shown) + 0.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(shown), 1, sharex=True))
    style_axes(axes)
    for panel, name in zip(axes, shown, strict=True):
        if name == "state_defect":
            _draw_defects(panel, data, lines)
        else:
            draw_columns(panel, data[name], lines)
        panel.set_ylabel(f"{name.removesuffix('_value').replace('_', ' ')}\n[{data[name].attrs['units']}]")
        panel.legend(**OUTSIDE)
        for end in np.cumsum(data["phase_duration"].values)[:-1]:
            panel.axvline(end, color=GRID, linewidth=2.0, zorder=0)
    axes[-1].set_xlabel("time [s]")
    _set_title(figure, data.attrs["problem"], solution.solved)
    return figure


def _draw_defects(panel: Axes, data: Dataset, lines: int) -> None:
    """Draw the size of the one-step defects on a logarithmic axis, at the ends of elements."""
    defects = data["state_defect"]
    rows = np.isfinite(defects.values).any(axis=1)
    time, values = defects["time"].values[rows], np.abs(defects.values[rows])
    order = np.argsort(-np.nanmax(values, axis=0, initial=0.0), kind="stable")[:lines]
    for k, column in enumerate(order):
        positive = np.where(values[:, column] > 0.0, values[:, column], np.nan)
        label = plot_name(str(defects["state"].values[column]))
        panel.semilogy(time, positive, ".", color=LINES[k % len(LINES)], label=label)


def tracking_figure(tracked: Any, lines: int) -> Figure:
    """Return coordinates next to the reference, activations or torques, and residuals of a tracked motion."""
    from matplotlib.figure import Figure

    reference, data = tracked.reference, tracked.solution.dataset
    rotates = {c.name: c.rotational for c in reference.model.coordinates}
    root = root_coordinates(reference.model)
    ranges = {n: np.ptp(reference.coordinates[:, i]) for i, n in enumerate(reference.names)}
    joints = sorted((n for n in ranges if rotates[n] and n not in root), key=lambda n: -ranges[n]) or list(ranges)
    shown = [n for n in reference.names if n in joints[:MAX_TRACKED]]
    rows = -(-len(shown) // COLUMNS)
    figure = Figure(figsize=(9.5, 1.7 * rows + 4.4), layout="constrained")
    grid = figure.add_gridspec(rows + 2, COLUMNS, height_ratios=[1.0] * rows + [1.25, 1.25])
    # few coordinates share the width
    panels = [figure.add_subplot(grid[0, :])] if len(shown) == 1 else [
        figure.add_subplot(grid[k // COLUMNS, k % COLUMNS]) for k in range(len(shown))
    ]  # fmt: skip
    style_axes(panels)
    _draw_coordinates(panels, tracked, shown, rotates)
    shifted = data.assign_coords(time=data["time"] + reference.start)
    panel = figure.add_subplot(grid[rows, :])
    if "muscle_activation" in data:
        draw_columns(panel, shifted["muscle_activation"], lines)
    else:
        draw_columns(panel, shifted["torque"].sel(coordinate=[n for n in joints if n in tracked.sizes]), lines)
    panel.set_ylabel("activation" if "muscle_activation" in data else "torque [N m]")
    last = figure.add_subplot(grid[rows + 1, :], sharex=panel)
    _draw_residuals(last, tracked, lines)
    style_axes([panel, last])
    for one in (panel, last):
        one.legend(**OUTSIDE)
    _set_title(figure, data.attrs["problem"], tracked.solved)
    return figure


def _draw_coordinates(panels: list[Axes], tracked: Any, names: list[str], rotates: dict[str, bool]) -> None:
    """Draw each of these coordinates and its reference in a panel."""
    reference = tracked.reference
    time = np.linspace(0.0, reference.duration, 201)
    found = tracked.coordinates(time)
    for panel, name in zip(panels, names, strict=True):
        column, factor = reference.names.index(name), 180.0 / np.pi if rotates[name] else 1.0
        recorded = factor * reference.coordinates[:, column]
        panel.plot(reference.time + reference.start, recorded, color=GRID, linewidth=4.0, label="recorded")
        panel.plot(time + reference.start, factor * found[:, column], color=LINES[0], label="tracked")
        unit = "deg" if rotates[name] else "m"
        panel.set_title(f"{plot_name(name.replace('_', ' '))} [{unit}]", fontsize="small", color=INK)
    panels[0].legend(frameon=False, fontsize="small")


def _draw_residuals(panel: Axes, tracked: Any, lines: int) -> None:
    """Draw the largest torques next to muscles and at the root, in units of their sizes."""
    time = tracked.solution.dataset["time"].values + tracked.reference.start
    curves = {n: tracked.torque(n) for n in tracked.sizes}
    largest = sorted(curves, key=lambda n: -np.abs(curves[n]).max() / tracked.sizes[n])[:lines]
    for k, name in enumerate(largest):
        panel.plot(time, curves[name], color=LINES[k % len(LINES)], label=plot_name(name))
    panel.set_ylabel("residuals and\nreserves [N m or N]")
    panel.set_xlabel("time [s]")


def what_if_figure(result: Any, lines: int) -> Figure:
    """Return the coordinates and activations that change most, of the original and of the changed person."""
    from matplotlib.figure import Figure

    data, model = result.dataset(), result.original.reference.model
    angles = [c.name for c in model.coordinates if c.rotational and c.name not in root_coordinates(model)]
    panels: list[tuple[str, Any]] = []
    for variable, dimension, names, count, factor, unit in (
        ("coordinate_value", "coordinate", angles, MAX_CHANGED_JOINTS, 180.0 / np.pi, " [deg]"),
        ("muscle_activation", "muscle", None, MAX_CHANGED_MUSCLES, 1.0, ""),
    ):
        if variable not in data:
            continue
        known = [n for n in data[dimension].values.tolist() if names is None or n in names]
        table = data[variable].sel({dimension: known}).values
        order = np.argsort(-np.sqrt(((table[1] - table[0]) ** 2).mean(axis=0)), kind="stable")[:count]
        panels += [(f"{plot_name(known[i].replace('_', ' '))}{unit}", factor * table[:, :, i]) for i in sorted(order)]
        panels += [("", None)] * (-len(order) % COLUMNS)
    rows = len(panels) // COLUMNS
    figure = Figure(figsize=(9.5, 1.8 * rows + 0.6), layout="constrained")
    grid = figure.subplots(rows, COLUMNS, sharex=True, squeeze=False)
    style_axes(grid)
    for panel, (title, values) in zip(grid.ravel(), panels, strict=True):
        if values is None:
            panel.remove()
            continue
        panel.plot(data["time"].values, values[0], color=GRID, linewidth=4.0, label="original")
        panel.plot(data["time"].values, values[1], color=LINES[0], label="changed")
        panel.set_title(title, fontsize="small", color=INK)
    for k, (_, values) in enumerate(panels):
        if values is not None and (k + COLUMNS >= len(panels) or panels[k + COLUMNS][1] is None):
            grid.ravel()[k].set_xlabel("time [s]")
            grid.ravel()[k].tick_params(labelbottom=True)
    grid[0, 0].legend(frameon=False, fontsize="small")
    _set_title(figure, f"What if: {data.attrs['changes']}", result.solved)
    return figure


def _set_title(figure: Figure, text: str, solved: bool) -> None:
    figure.suptitle(f"{text}: {'solved' if solved else 'not solved'}", color=INK)
