"""A recording at a glance: where the markers went, what the plates felt, what was not seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError
from borelli.view.plots import INK, LINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    from borelli.recording.recording import Recording

Array = npt.NDArray[np.float64]

PATHS = 2000
"""Frames drawn of a path: more cannot be seen."""
ROWS = 60
"""Markers named beside the raster: more names would overlap."""
POSES = 5
"""Instants shown as dots on the paths."""
PALE, GAP = "#aeb6c2", "#c0506a"


def plot_recording(recording: Recording, path: str | Path | None = None) -> Figure:
    """Paths from above and the side, vertical plate forces, when markers were not seen; saved if a path is given.

    Raises:
        SettingsError: if the recording has nothing that could be drawn.
    """
    from matplotlib.figure import Figure

    points = _points(recording)
    rows: list[Callable[[Axes], None]] = []
    heights = []
    if "plate_force" in recording.data:
        rows.append(lambda ax: _forces(ax, recording))
        heights.append(2.2)
    if "marker_position" in recording.data and recording.frames:
        rows.append(lambda ax: _raster(ax, recording))
        heights.append(min(6.5, 0.9 + 0.11 * len(recording.markers)) if _hidden(recording).any() else 0.7)
    if "coordinate_value" in recording.data:
        rows.append(lambda ax: _coordinates(ax, recording, "coordinate_value", "coordinate"))
        heights.append(2.4)
    if "coordinate_value" in recording.data:
        rows.append(lambda ax: _coordinates(ax, recording, "column_value", "column"))
        heights.append(2.4)
    if points is None and not rows:
        raise SettingsError(f"{recording.name or 'the recording'} has neither markers, plates nor columns to draw")
    top = 3.6 if points is not None else 0.0
    figure = Figure(figsize=(11.0, top + sum(heights) + 0.4), layout="constrained")
    figure.suptitle(_title(recording), fontsize=10, color=INK, x=0.01, ha="left")
    # two rows of figures, because the paths share no axis with what is drawn against time
    shares = (max(top, 0.01), max(sum(heights), 0.01))
    upper, lower = figure.subfigures(2, 1, height_ratios=shares, squeeze=False)[:, 0]
    if points is not None:
        above, side = upper.subplots(1, 2)
        _above(above, points, recording)
        _side(side, points, recording)
    if rows:
        axes = lower.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for ax, draw in zip(axes, rows, strict=True):
            draw(ax)
            _plain(ax)
        axes[-1].set_xlabel("time [s]", fontsize=8)
    if path is not None:
        figure.savefig(path, dpi=110)
    return figure


def _title(recording: Recording) -> str:
    attrs = recording.data.attrs
    said = [recording.name, recording.format]
    if recording.frames:
        said.append(f"{recording.frames} frames at {recording.rate:g} Hz")
    if "file_units" in attrs:
        units = str(attrs["file_units"])
        units = f"{float(units):.5g} m" if units[0].isdigit() else units
        said.append(f"taken as {units}, {attrs.get('file_up', '?')} up")
    return "   ".join(said)


def _points(recording: Recording) -> Array | None:
    """Markers, or joint centres where there are none: shape (frames, points, 3) [m]."""
    for name in ("marker_position", "joint_center"):
        if name in recording.data and recording.frames:
            points = recording.data[name].values[:: max(1, recording.frames // PATHS)]
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
    """Paths of all points, and the points themselves at a few instants from early (pale) to late (dark)."""
    axes.plot(points[:, :, across], points[:, :, along], color=PALE, linewidth=0.4, alpha=0.7)
    count = np.isfinite(points[:, :, 0]).sum(axis=1)
    whole = np.flatnonzero(count >= 0.5 * count.max())
    frames = whole[np.linspace(0, len(whole) - 1, POSES).astype(int)]
    for share, frame in zip(np.linspace(0.25, 1.0, POSES), frames, strict=True):
        pose = points[frame]
        axes.plot(pose[:, across], pose[:, along], ".", color=LINES[1], alpha=float(share), markersize=3)
    low, high = np.nanpercentile(points.reshape(-1, 3), [0.5, 99.5], axis=0)
    room = 0.1 * float((high - low).max()) + 1e-3
    axes.set_xlim(low[across] - room, high[across] + room)
    axes.set_ylim(low[along] - room, high[along] + room)
    axes.set_aspect("equal", adjustable="box")
    _plain(axes)


def _forces(axes: Axes, recording: Recording) -> None:
    time, force = recording.data["analog_time"].values, recording.data["plate_force"].values
    for k, name in enumerate(recording.plates):
        axes.plot(time, force[:, k, 2], color=LINES[k % len(LINES)], linewidth=1.0, label=name)
    axes.set_ylabel("vertical force [N]")
    for event in recording.events:
        axes.axvline(event.time, color=INK, linewidth=0.6, linestyle=":")
    axes.legend(frameon=False, fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=8)
    axes.margins(x=0)


def _hidden(recording: Recording) -> npt.NDArray[np.bool_]:
    """When each marker was not seen, shape (frames, markers)."""
    return ~np.isfinite(recording.data["marker_position"].values).all(axis=2)


def _raster(axes: Axes, recording: Recording) -> None:
    hidden = _hidden(recording)
    time = recording.data["time"].values
    half = 0.5 / recording.rate if np.isfinite(recording.rate) else 0.5
    extent = (float(time[0]) - half, float(time[-1]) + half, hidden.shape[1] - 0.5, -0.5)
    axes.imshow(hidden.T, aspect="auto", interpolation="nearest", extent=extent, cmap=_two_colors(), vmin=0, vmax=1)
    said = f"red: not seen, {100.0 * hidden.mean():.1f} % of all samples" if hidden.any() else "seen in all frames"
    axes.set_title(f"{hidden.shape[1]} markers; {said}", fontsize=8, loc="left", color=INK)
    if hidden.any() and hidden.shape[1] <= ROWS:
        axes.set_yticks(range(hidden.shape[1]), recording.markers, fontsize=5.5)
    else:
        axes.set_yticks([])


def _two_colors() -> ListedColormap:
    from matplotlib.colors import ListedColormap

    return ListedColormap(["#eef1f4", GAP])


def _coordinates(axes: Axes, recording: Recording, variable: str, dimension: str) -> None:
    """The six columns that vary most."""
    values = recording.data[variable].values
    with np.errstate(all="ignore"):
        moved = np.fmax.reduce(values) - np.fmin.reduce(values)
    for k, index in enumerate(np.argsort(-np.nan_to_num(moved))[:6]):
        name = str(recording.data[dimension].values[index])
        axes.plot(recording.data["time"].values, values[:, index], color=LINES[k % len(LINES)], label=name)
    axes.set_ylabel("rad or m" if variable == "coordinate_value" else "as in the file")
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
