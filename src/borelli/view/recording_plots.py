"""Plot of a recording: paths of the markers, forces of the plates, missing markers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError
from borelli.view.plot_style import INK, LINES, RED, draw_columns, plot_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from borelli.recording.recording import Recording

Array = npt.NDArray[np.float64]

MAX_PATH_POINTS = 2000
"""Frames drawn of a path."""
MAX_MARKER_NAMES = 60
"""Markers named next to the raster; more names would overlap."""
POSES = 5
"""Instants shown as dots on the paths."""
PATH_COLOR, VISIBLE_COLOR = "#aeb6c2", "#eef1f4"


def recording_figure(recording: Recording, lines: int = 6) -> Figure:
    """Return paths from above and from the side, vertical plate forces, missing markers, and up to `lines` columns.

    Raises:
        SettingsError: The recording has nothing to plot.
    """
    from matplotlib.figure import Figure

    points = _points(recording)
    rows: list[tuple[float, Callable[[Axes], None]]] = []  # height and drawing function
    if "plate_force" in recording.data:
        rows.append((2.2, lambda ax: _forces(ax, recording)))
    if "marker_position" in recording.data and recording.frames:
        height = min(6.5, 0.9 + 0.11 * len(recording.markers)) if _missing(recording).any() else 0.7
        rows.append((height, lambda ax: _raster(ax, recording)))
    for variable in ("coordinate_value", "column_value"):
        if variable in recording.data:
            rows.append((2.4, partial(_columns, recording=recording, variable=variable, count=lines)))
    if points is None and not rows:
        raise SettingsError(
            f"{recording.name or 'The recording'}: There are no markers, force plates or columns to plot."
        )
    top, heights = 3.6 if points is not None else 0.0, [height for height, _ in rows]
    figure = Figure(figsize=(11.0, top + sum(heights) + 0.4), layout="constrained")
    figure.suptitle(_title(recording), fontsize=10, color=INK, x=0.01, ha="left")
    # two sub-figures, since paths and time series share no axis
    heights_of_both = (max(top, 0.01), max(sum(heights), 0.01))
    upper, lower = figure.subfigures(2, 1, height_ratios=heights_of_both, squeeze=False)[:, 0]
    if points is not None:
        above, side = upper.subplots(1, 2)
        _above(above, points, recording)
        _side(side, points, recording)
    if rows:
        axes = lower.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for ax, (_, draw) in zip(axes, rows, strict=True):
            draw(ax)
            _plain(ax)
        axes[-1].set_xlabel("time [s]", fontsize=8)
    return figure


def _title(recording: Recording) -> str:
    attrs = recording.data.attrs
    parts = [plot_name(recording.name), recording.format]
    if recording.frames:
        parts.append(f"{recording.frames} frames at {recording.rate:g} Hz")
    if "file_units" in attrs:
        units = str(attrs["file_units"])
        units = f"{float(units):.5g} m" if units[0].isdigit() else units
        parts.append(f"file in {units}, {attrs.get('file_up', '?')} up")
    return "   ".join(parts)


def _points(recording: Recording) -> Array | None:
    """Return markers, or joint centers if there are none, of shape (frames, points, 3) [m]."""
    for name in ("marker_position", "joint_center"):
        if name in recording.data and recording.frames:
            points = recording.data[name].values[:: max(1, recording.frames // MAX_PATH_POINTS)]
            if np.isfinite(points).any():
                return np.asarray(points, float)
    return None


def _above(axes: Axes, points: Array, recording: Recording) -> None:
    if "plate_corners" in recording.data:
        for k, corners in enumerate(recording.data["plate_corners"].values):
            axes.fill(corners[:, 0], corners[:, 1], color=LINES[k % len(LINES)], alpha=0.25, linewidth=0)
    _paths(axes, points, 0, 1)
    if "plate_center_of_pressure" in recording.data:
        centers = recording.data["plate_center_of_pressure"].values
        for k in range(centers.shape[1]):
            axes.plot(centers[:, k, 0], centers[:, k, 1], color=LINES[k % len(LINES)], linewidth=1.1)
    _name(axes, "from above", "x [m]", "y [m]")


def _side(axes: Axes, points: Array, recording: Recording) -> None:
    spread = np.nanpercentile(points.reshape(-1, 3), 95, axis=0) - np.nanpercentile(points.reshape(-1, 3), 5, axis=0)
    along = 0 if spread[0] >= spread[1] else 1
    _paths(axes, points, along, 2)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    _name(axes, "from the side", f"{'xy'[along]} [m]", "z, up [m]")


def _paths(axes: Axes, points: Array, across: int, along: int) -> None:
    """Draw the paths of all points, and the points at a few instants from early (pale) to late (dark)."""
    axes.plot(points[:, :, across], points[:, :, along], color=PATH_COLOR, linewidth=0.4, alpha=0.7)
    count = np.isfinite(points[:, :, 0]).sum(axis=1)
    complete = np.flatnonzero(count >= 0.5 * count.max())
    frames = complete[np.linspace(0, len(complete) - 1, POSES).astype(int)]
    for alpha, frame in zip(np.linspace(0.25, 1.0, POSES), frames, strict=True):
        pose = points[frame]
        axes.plot(pose[:, across], pose[:, along], ".", color=LINES[1], alpha=float(alpha), markersize=3)
    low, high = np.nanpercentile(points.reshape(-1, 3), [0.5, 99.5], axis=0)
    margin = 0.1 * float((high - low).max()) + 1e-3
    axes.set_xlim(low[across] - margin, high[across] + margin)
    axes.set_ylim(low[along] - margin, high[along] + margin)
    axes.set_aspect("equal", adjustable="box")
    _plain(axes)


def _forces(axes: Axes, recording: Recording) -> None:
    time, force = recording.data["analog_time"].values, recording.data["plate_force"].values
    for k, name in enumerate(recording.plates):
        axes.plot(time, force[:, k, 2], color=LINES[k % len(LINES)], linewidth=1.0, label=plot_name(name))
    axes.set_ylabel("vertical force [N]")
    for event in recording.events:
        axes.axvline(event.time, color=INK, linewidth=0.6, linestyle=":")
    axes.legend(frameon=False, fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=8)
    axes.margins(x=0)


def _missing(recording: Recording) -> npt.NDArray[np.bool_]:
    """Return whether each marker is missing, of shape (frames, markers)."""
    return ~np.isfinite(recording.data["marker_position"].values).all(axis=2)


def _raster(axes: Axes, recording: Recording) -> None:
    from matplotlib.colors import ListedColormap

    missing = _missing(recording)
    time = recording.data["time"].values
    half = 0.5 / recording.rate if np.isfinite(recording.rate) else 0.5
    extent = (float(time[0]) - half, float(time[-1]) + half, missing.shape[1] - 0.5, -0.5)
    colors = ListedColormap([VISIBLE_COLOR, RED])
    axes.imshow(missing.T, aspect="auto", interpolation="nearest", extent=extent, cmap=colors, vmin=0, vmax=1)
    gaps = f"red: missing, {100.0 * missing.mean():.1f} % of all samples" if missing.any() else "visible in all frames"
    axes.set_title(f"{missing.shape[1]} markers; {gaps}", fontsize=8, loc="left", color=INK)
    if missing.any() and missing.shape[1] <= MAX_MARKER_NAMES:
        axes.set_yticks(range(missing.shape[1]), [plot_name(name) for name in recording.markers], fontsize=5.5)
    else:
        axes.set_yticks([])


def _columns(axes: Axes, recording: Recording, variable: str, count: int) -> None:
    draw_columns(axes, recording.data[variable], count)
    axes.set_ylabel("coordinate [rad or m]" if variable == "coordinate_value" else "value, as in the file")
    axes.legend(frameon=False, fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=6)
    axes.margins(x=0)


def _name(axes: Axes, title: str, across: str, along: str) -> None:
    axes.set_title(title, fontsize=8, color=INK)
    axes.set_xlabel(across, fontsize=8)
    axes.set_ylabel(along, fontsize=8)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=7)
    axes.yaxis.label.set_fontsize(8)
