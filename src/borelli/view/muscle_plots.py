"""Plot of the moment arms of muscles against a coordinate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.files.atomic import check_output
from borelli.model.model import Coordinate, Model
from borelli.muscles.paths import muscle_paths
from borelli.view.plot_style import LINES, plot_name, save_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POSES = 181
"""Number of values of the coordinate."""
DEFAULT_RANGE = {True: (-np.pi / 2, np.pi / 2), False: (-0.1, 0.1)}
"""Range of a coordinate without limits [rad, m], by whether it rotates."""
MAX_MUSCLES = 8
"""Number of muscles that are drawn by default."""


def plot_moment_arms(
    model: Model,
    coordinate: str,
    muscles: Sequence[str] | None = None,
    path: str | Path | None = None,
    *,
    pose: Mapping[str, float] | None = None,
    overwrite: bool = False,
) -> Figure:
    """Plot the moment arms of muscles about a coordinate over its range of motion.

    Args:
        model: Model with muscles.
        coordinate: Name of the coordinate.
        muscles: Names of muscles. Default: those with the largest moment arms.
        path: Image file to write. Default: none.
        pose: Other coordinates [rad or m]. Default: those of the model's default pose.
        overwrite: Replace an existing file.

    Returns:
        The matplotlib figure. A positive moment arm shortens the muscle as the coordinate increases.

    Raises:
        ModelError: The model has no muscles, or not these.
        SettingsError: A coordinate is unknown, no muscle crosses it, or the file exists.

    Examples:
        >>> model = bo.human(muscles=True)
        >>> figure = bo.view.plot_moment_arms(model, "knee_flexion_r", ["recfem_r", "gasmed_r"])
    """
    from matplotlib.figure import Figure

    if path is not None:
        check_output(path, overwrite=overwrite)
    if not model.muscles:
        raise ModelError(f"Model {model.name!r} has no muscles. Use a model with muscles.")
    names = [c.name for c in model.coordinates]
    for name in (coordinate, *(pose or {})):
        if name not in names:
            raise SettingsError(unknown_name("coordinate", name, names))
    column = names.index(coordinate)
    swept = model.coordinates[column]
    rows = np.tile([(pose or {}).get(c.name, c.default) for c in model.coordinates], (POSES, 1))
    rows[:, column] = np.linspace(*_range(swept), POSES)
    paths = muscle_paths(model, rows, muscles=muscles)
    arms = 1e3 * paths.moment_arm[:, :, column] if swept.rotational else paths.moment_arm[:, :, column]
    largest = np.abs(arms).max(axis=0)
    if muscles is None and not largest.any():
        raise SettingsError(f"coordinate: No muscle of {model.name!r} crosses {coordinate!r}. Choose another.")
    order = range(len(paths.muscle)) if muscles is not None else np.argsort(-largest, kind="stable")[:MAX_MUSCLES]
    figure = Figure(figsize=(8.0, 4.5), layout="constrained")
    axes = figure.subplots()
    values = np.degrees(rows[:, column]) if swept.rotational else rows[:, column]
    for line, k in enumerate(order):
        color, style = LINES[line % len(LINES)], "-" if line < len(LINES) else "--"
        axes.plot(values, arms[:, k], color=color, linestyle=style, label=plot_name(paths.muscle[k]))
    axes.set_xlabel(f"{plot_name(coordinate)} [{'deg' if swept.rotational else 'm'}]")
    axes.set_ylabel(f"moment arm [{'mm' if swept.rotational else '1'}]")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.margins(x=0)
    style_axes(axes)
    if path is not None:
        save_figure(figure, path, overwrite=overwrite)
    return figure


def _range(coordinate: Coordinate) -> tuple[float, float]:
    """Return the usual range of a coordinate, else its limits, else a default [rad or m]."""
    limits = coordinate.usual_range or (coordinate.lower, coordinate.upper)
    return limits if np.isfinite(limits).all() and limits[1] > limits[0] else DEFAULT_RANGE[coordinate.rotational]
