"""Plots against time: energies, forces from the ground, coordinates."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
    return _finished(figure, list(axes), path)


def plot_deviation(dataset: Dataset, path: str | Path | None = None) -> Figure:
    """How far a character strayed from its motion, what led its root, and the joints that strayed most; see `animate`.

    Grey bands are while it was pushed, the dotted line is when it had come back for good.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 6.6), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True)
    time, off = dataset["time"].values, 1e3 * dataset["deviation"].values
    axes[0].plot(time, off, color=INK, label="bodies, rms")
    axes[0].set_ylabel("deviation [mm]")
    _strayed(axes[1], dataset)
    _leading(axes[2], dataset)
    spans, back = json.loads(dataset.attrs["disturbed"]), dataset.attrs["recovered_at_s"]
    for ax in axes:
        for begin, end in spans:
            ax.axvspan(begin, min(end, time[-1]), color="#e3e5e8", zorder=0)
        if np.isfinite(back):
            ax.axvline(back, color=INK, linestyle=":", linewidth=1.0, label="back for good" if ax is axes[0] else None)
    return _finished(figure, list(axes), path)


def _finished(figure: Figure, axes: Sequence[Axes], path: str | Path | None) -> Figure:
    """The figure with plain axes against time, legends beside them; saved when a path is given."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(colors=INK)
        ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        ax.margins(x=0)
    axes[-1].set_xlabel("time [s]")
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def _strayed(axes: Axes, dataset: Dataset, count: int = 5) -> None:
    """The angles that were farthest from their targets."""
    turning = dataset["coordinate_units"].values == "rad"
    names = dataset["coordinate"].values[turning]
    error = np.degrees((dataset["coordinate_value"] - dataset["coordinate_target"]).values[:, turning])
    error = np.nan_to_num(error - 360.0 * np.round(error / 360.0))
    for k, index in enumerate(np.argsort(-np.abs(error).max(axis=0))[:count]):
        axes.plot(dataset["time"].values, error[:, index], color=LINES[k], label=str(names[index]))
    axes.set_ylabel("off target [deg]")


def _leading(axes: Axes, dataset: Dataset) -> None:
    """Force and torque on the root, in body weights."""
    used = dataset["root_force"].values, dataset["root_torque"].values
    for k, (values, label) in enumerate(zip(used, ("force [weights]", "torque [weights x m]"), strict=True)):
        axes.plot(dataset["time"].values[1:], values[1:], color=LINES[k], label=label)
    if dataset["ground_reaction_force"].values.any():
        weight = dataset.attrs["body_weight_n"]
        ground = np.linalg.norm(dataset["ground_reaction_force"].values.sum(axis=1), axis=1)[1:] / weight
        axes.plot(dataset["time"].values[1:], ground, color=LINES[2], label="ground force [weights]", linewidth=0.8)
        axes.set_ylim(
            0.0, max(1.1, 1.2 * float(np.percentile(ground, 98)), 1.1 * max(float(v[1:].max()) for v in used))
        )
    axes.set_ylabel("what leads the root")


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
    total = dataset["ground_reaction_force"].values.sum(axis=1)
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
    values = dataset["coordinate_value"]
    moved = np.ptp(values.values, axis=0)
    for k, index in enumerate(np.argsort(-moved)[:count]):
        name = str(values["coordinate"].values[index])
        axes.plot(dataset["time"].values, values.values[:, index], color=LINES[k % len(LINES)], label=name)
    axes.set_ylabel("coordinate [rad or m]")
