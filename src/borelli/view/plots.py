"""Plots against time: energies, forces from the ground, coordinates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from borelli.view.picture import model_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

INK = "#2b2f36"
LINES = ("#d9822b", "#3f6fae", "#3a8f7d", "#c0506a", "#7b5ea7", "#7d9440")


def plot(dataset: Dataset, path: str | Path | None = None, *, coordinates: int = 6) -> Figure:
    """Energies, ground force and the `coordinates` that move most, against time; saved when a path is given."""
    from matplotlib.figure import Figure

    panels: list[Callable[[Axes, Dataset], None]] = [_energies, _ground_force]
    if dataset.sizes.get("coordinate", 0):
        panels.append(partial(_coordinates, count=coordinates))
    figure = Figure(figsize=(9.0, 2.3 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, panel in zip(axes, panels, strict=True):
        panel(ax, dataset)
        ax.grid(color="#e3e5e8", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(colors=INK)
        ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        ax.margins(x=0)
    axes[-1].set_xlabel("time [s]")
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _energies(axes: Axes, dataset: Dataset) -> None:
    time = dataset["time"].values
    kinetic, potential = dataset["kinetic_energy"].values, dataset["potential_energy"].values
    # only differences of potential energy mean anything
    potential = potential - potential.min()
    axes.plot(time, kinetic, color=LINES[0], label="kinetic")
    axes.plot(time, potential, color=LINES[1], label="potential")
    axes.plot(time, kinetic + potential, color=INK, label="sum")
    axes.set_ylabel("energy [J]")


def _ground_force(axes: Axes, dataset: Dataset) -> None:
    total = dataset["ground_force"].values.sum(axis=1)
    for k, name in enumerate("xyz"):
        axes.plot(dataset["time"].values, total[:, k], color=LINES[k], label=f"{name}")
    model = model_of(dataset)
    axes.axhline(model.mass * float(np.linalg.norm(model.gravity)), color=INK, linestyle=":", label="weight")
    # an impact is a spike of one step: show it cut rather than let it flatten the rest
    top = float(np.percentile(np.abs(total), 99)) * 1.4 + 1e-9
    if top < np.abs(total).max():
        axes.set_ylim(-0.35 * top, top)
    axes.set_ylabel("ground force [N]")


def _coordinates(axes: Axes, dataset: Dataset, count: int) -> None:
    values = dataset["value"]
    moved = np.ptp(values.values, axis=0)
    for k, index in enumerate(np.argsort(-moved)[:count]):
        name = str(values["coordinate"].values[index])
        axes.plot(dataset["time"].values, values.values[:, index], color=LINES[k % len(LINES)], label=name)
    axes.set_ylabel("coordinate [rad or m]")
