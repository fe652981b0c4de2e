"""Colors and axes of all plots."""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.files.atomic import atomic_path
from borelli.files.paths import as_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray

INK, GRID = "#2b2f36", "#e3e5e8"
ORANGE, BLUE, GREEN, RED, VIOLET, OLIVE = "#d9822b", "#3f6fae", "#3a8f7d", "#c0506a", "#7b5ea7", "#7d9440"
LINES = (ORANGE, BLUE, GREEN, RED, VIOLET, OLIVE)
"""Colors of lines, in this order."""
MAX_LABEL_LENGTH = 24
"""Characters of a name in a plot; longer ones leave no room for the data."""
END_OF_FONT = 0x0500
"""Code point after Latin, Greek and Cyrillic, which matplotlib's own font has; it warns of characters it lacks."""


def style_axes(axes: Any) -> None:
    """Give axes, one or several, a light grid and no frame at the top and on the right."""
    for ax in np.atleast_1d(np.array(axes, dtype=object)).flat:
        ax.grid(color=GRID, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Figure, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a figure in the format of the file name's suffix, completely or not at all."""
    path = as_path(path)
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        known = [f".{name}" for name in formats]
        raise SettingsError(f"{path}: {unknown_name('file extension of an image', path.suffix, known)}")
    with atomic_path(path, overwrite=overwrite) as temporary:
        content = BytesIO()
        figure.savefig(content, dpi=130, format=path.suffix[1:].lower())
        temporary.write_bytes(content.getvalue())


def plot_name(name: str) -> str:
    """Return a name as a label: shortened, without characters that the font lacks or that start a formula.

    Legends leave out labels that are empty or start with an underscore: they become "(no name)", and get a blank.
    """
    if not name.strip():
        return "(no name)"
    shown = "".join(c if c.isprintable() and ord(c) < END_OF_FONT else "?" for c in name[:MAX_LABEL_LENGTH])
    shown = shown.replace("$", r"\$") + ("..." if len(name) > MAX_LABEL_LENGTH else "")
    return f" {shown}" if shown.startswith("_") else shown


def draw_columns(axes: Axes, variable: DataArray, count: int, values: Any = None) -> None:
    """Draw the columns (time, names) with the largest range; `values` replaces those of the variable."""
    table = np.asarray(variable.values if values is None else values, float)
    finite = np.where(np.isfinite(table), table, np.nan)
    with np.errstate(all="ignore"):
        extent = np.nan_to_num(np.fmax.reduce(finite) - np.fmin.reduce(finite))
    names = [plot_name(str(name)) for name in variable[variable.dims[1]].values]
    for k, index in enumerate(np.argsort(-extent, kind="stable")[:count]):
        axes.plot(variable["time"].values, table[:, index], color=LINES[k % len(LINES)], label=names[index])
