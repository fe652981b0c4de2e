"""Picture of a recording's markers with the landmarks that their labels mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from borelli.errors import SettingsError
from borelli.recording.labels.interpret import LabelReading
from borelli.recording.landmarks import facing_direction
from borelli.view.plot_style import BLUE, INK, ORANGE, RED, plot_name, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from borelli.recording.recording import Recording

COLORS = {"sure": BLUE, "unsure": ORANGE, "unknown": RED}
"""Colors by certainty."""


def marker_figure(recording: Recording, readings: Sequence[LabelReading]) -> Figure:
    """Return the markers from in front and from the side in the frame that shows most of them.

    Args:
        recording: Recording with markers.
        readings: Meanings of their labels.

    Raises:
        SettingsError: The recording has no markers.
    """
    from matplotlib.figure import Figure

    if "marker_position" not in recording.data or not recording.frames:
        raise SettingsError(f"{recording.name or 'The recording'}: There are no markers to draw.")
    points = np.asarray(recording.data["marker_position"].values, float)
    visible = np.isfinite(points).all(axis=2)
    frame = int(np.argmax(visible.sum(axis=1)))
    shown = points[frame]
    ahead = np.nan_to_num(facing_direction(points[frame : frame + 1], recording.markers)[0], nan=0.0)
    ahead = ahead if ahead.any() else np.array([1.0, 0.0, 0.0])
    left = np.array([-ahead[1], ahead[0], 0.0])
    figure = Figure(figsize=(12.0, 10.0), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, across, title in ((axes[0], left, "from in front"), (axes[1], ahead, "from the side")):
        for i in map(int, np.flatnonzero(visible[frame])):
            x, z = float(shown[i] @ across), float(shown[i, 2])
            ax.plot(x, z, "o", color=COLORS[_certainty(readings[i])], markersize=4)
            ax.annotate(_caption(readings[i]), (x, z), fontsize=5, color=INK, xytext=(3, 2), textcoords="offset points")
        ax.set_aspect("equal")
        ax.set_title(title, fontsize=9, color=INK)
        ax.set_xlabel("[m]", fontsize=8)
        style_axes(ax)
    for name, color in COLORS.items():
        axes[1].plot([], [], "o", color=color, label=name)
    axes[1].legend(fontsize=7)
    figure.suptitle(f"{plot_name(recording.name)}, frame {frame}", fontsize=10, color=INK, x=0.01, ha="left")
    return figure


def _certainty(reading: LabelReading) -> str:
    return "unknown" if not reading.landmark else "sure" if reading.sure else "unsure"


def _caption(reading: LabelReading) -> str:
    return plot_name(f"{reading.label}: {reading.landmark}" if reading.landmark else reading.label)
