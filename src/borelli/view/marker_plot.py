"""Picture of a recording's markers with the landmarks that their labels mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from borelli.errors import SettingsError
from borelli.numerics.vectors import Array
from borelli.recording.labels.interpret import LabelReading, LabelReadings
from borelli.recording.landmarks import facing_direction
from borelli.view.plot_style import BLUE, GRID, INK, ORANGE, RED, plot_name, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from borelli.recording.recording import Recording

COLORS = {"sure": BLUE, "unsure": ORANGE, "unknown": RED}
"""Colors by certainty."""
NOT_DRAWN = ("axis", "quantity", "unused")
"""Kinds of labels that are no markers."""
LINE_HEIGHT = 0.0155
"""Distance of two captions as a fraction of the height of the body."""
CAPTION_WIDTH, CAPTION_DISTANCE = 0.24, 0.06
"""Room for captions next to the body, and its distance from the body, as fractions of the height of the body."""


def marker_figure(recording: Recording, readings: LabelReadings) -> Figure:
    """Return the markers from in front and from the side in the frame that shows most of them.

    Args:
        recording: Recording with markers.
        readings: Meanings of their labels. Axes, quantities, computed joint centers and labels that the user leaves
            out are not drawn.

    Raises:
        SettingsError: The recording has no markers.
    """
    from matplotlib.figure import Figure

    points = recording.data["marker_position"].values if "marker_position" in recording.data else np.empty((0, 0, 3))
    drawn = np.array([_is_drawn(one, readings.keypoints) for one in readings.readings], dtype=bool)
    visible = np.isfinite(points).all(axis=2) & drawn
    if not visible.any():
        raise SettingsError(f"{recording.name or 'The recording'}: There are no markers to draw.")
    frame = int(np.argmax(visible.sum(axis=1)))
    shown = [one for one, seen in zip(readings.readings, visible[frame], strict=True) if seen]
    body = np.asarray(points[frame, visible[frame]], float)
    ahead = np.nan_to_num(facing_direction(points[frame : frame + 1], recording.markers)[0], nan=0.0)
    ahead = ahead if ahead.any() else np.array([1.0, 0.0, 0.0])
    left = np.array([-ahead[1], ahead[0], 0.0])
    figure = Figure(figsize=(15.0, 10.0), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    across = (body - np.median(body, axis=0)) @ np.stack([left, ahead], axis=1)
    for ax, x, title in zip(axes, across.T, ("from in front", "from the right side"), strict=True):
        _draw(ax, x, body[:, 2], shown, float(np.abs(across).max()))
        ax.set_title(title, fontsize=9, color=INK)
    axes[0].set_ylabel("height [m]", fontsize=8)
    for name in dict.fromkeys(map(_certainty, shown)):
        axes[1].plot([], [], "o", color=COLORS[name], label=name)
    axes[1].legend(fontsize=7, loc="upper right")
    figure.suptitle(f"{plot_name(recording.name)}, frame {frame}", fontsize=10, color=INK, x=0.01, ha="left")
    return figure


def _draw(ax: Axes, x: Array, z: Array, shown: list[LabelReading], width: float) -> None:
    """Draw markers with their captions in a column on either side of the body, which has this half width [m]."""
    size = max(float(np.ptp(z)), width, 0.1)
    for side, align in ((-1.0, "right"), (1.0, "left")):
        own = [i for i in range(len(x)) if (x[i] < 0.0) == (side < 0.0)]
        own.sort(key=lambda i: float(z[i]))
        column = side * (width + CAPTION_DISTANCE * size)
        for i, height in zip(own, _spread(z[own], LINE_HEIGHT * size), strict=True):
            ax.plot([x[i], column], [z[i], height], color=GRID, linewidth=0.7, zorder=1)
            ax.plot(x[i], z[i], "o", color=COLORS[_certainty(shown[i])], markersize=5)
            text = _caption(shown[i])
            ax.text(column + 0.01 * side * size, height, text, fontsize=6.5, color=INK, ha=align, va="center")
    limit = width + (CAPTION_DISTANCE + CAPTION_WIDTH) * size
    ax.set_xlim(-limit, limit)
    ax.set_aspect("equal")
    style_axes(ax)
    ax.grid(False)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)


def _spread(heights: Array, distance: float) -> Array:
    """Return ascending heights moved apart to at least a distance, half of it up and half of it down."""
    rank = distance * np.arange(len(heights))
    up = np.maximum.accumulate(heights - rank)
    down = np.minimum.accumulate((heights - rank)[::-1])[::-1]
    return np.asarray(0.5 * (up + down) + rank)


def _is_drawn(reading: LabelReading, keypoints: bool) -> bool:
    return reading.kind not in NOT_DRAWN and (reading.kind != "virtual center" or keypoints)


def _certainty(reading: LabelReading) -> str:
    return "unknown" if not reading.landmark else "sure" if reading.sure else "unsure"


def _caption(reading: LabelReading) -> str:
    label = plot_name(reading.label)
    return f"{label}: {plot_name(reading.landmark)}" if reading.landmark else label
