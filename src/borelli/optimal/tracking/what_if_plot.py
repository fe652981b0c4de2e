"""Plot of a what-if: coordinates and activations of the original and of the changed person."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.model.kinematics import root_coordinates
from borelli.view.plot_style import GRID, INK, LINES, save_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from borelli.optimal.tracking.what_if import WhatIf

COLUMNS = 3
"""Panels in a row."""
MAX_JOINTS = 6
"""Coordinates: the joints that change most."""
MAX_MUSCLES = 9
"""Muscles: those whose activation changes most."""


def plot_what_if(result: WhatIf, path: str | PathLike[str] | None = None, *, overwrite: bool = False) -> Figure:
    """Draw what changes most; write the figure if a path is given."""
    from matplotlib.figure import Figure

    data, model = result.dataset(), result.original.reference.model
    angles = [c.name for c in model.coordinates if c.rotational and c.name not in root_coordinates(model)]
    panels: list[tuple[str, Any]] = []
    for variable, dimension, names, count, factor, unit in (
        ("coordinate_value", "coordinate", angles, MAX_JOINTS, 180.0 / np.pi, " [deg]"),
        ("muscle_activation", "muscle", None, MAX_MUSCLES, 1.0, ""),
    ):
        if variable not in data:
            continue
        known = [n for n in data[dimension].values.tolist() if names is None or n in names]
        table = data[variable].sel({dimension: known}).values
        order = np.argsort(-np.sqrt(((table[1] - table[0]) ** 2).mean(axis=0)), kind="stable")[:count]
        panels += [(f"{known[i].replace('_', ' ')}{unit}", factor * table[:, :, i]) for i in sorted(order)]
        panels += [("", None)] * (-len(order) % COLUMNS)
    rows = len(panels) // COLUMNS
    figure = Figure(figsize=(9.5, 1.8 * rows + 0.6), layout="constrained")
    grid = figure.subplots(rows, COLUMNS, sharex=True, squeeze=False)
    style_axes(grid.ravel())
    time = data["time"].values
    for k, (panel, (title, values)) in enumerate(zip(grid.ravel(), panels, strict=True)):
        if values is None:
            panel.set_axis_off()
            continue
        panel.plot(time, values[0], color=GRID, linewidth=4.0, label="original")
        panel.plot(time, values[1], color=LINES[0], label="changed")
        panel.set_title(title, fontsize="small", color=INK)
        if k == 0:
            panel.legend(frameon=False, fontsize="small")
    for panel in grid[-1]:
        panel.set_xlabel("time [s]")
    verdict = "solved" if result.solved else "not solved"
    figure.suptitle(f"What if: {data.attrs['changes']}: {verdict}", color=INK)
    if path is not None:
        save_figure(figure, path, overwrite=overwrite)
    return figure
