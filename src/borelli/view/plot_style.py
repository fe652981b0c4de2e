"""Colors and axes of all plots."""

from __future__ import annotations

from typing import Any

import numpy as np

INK, GRID = "#2b2f36", "#e3e5e8"
ORANGE, BLUE, GREEN, RED, VIOLET, OLIVE = "#d9822b", "#3f6fae", "#3a8f7d", "#c0506a", "#7b5ea7", "#7d9440"
LINES = (ORANGE, BLUE, GREEN, RED, VIOLET, OLIVE)
"""Colors of lines, in this order."""


def style_axes(axes: Any) -> None:
    """Give axes, one or several, a light grid and no frame at the top and on the right."""
    for ax in np.atleast_1d(np.array(axes, dtype=object)).flat:
        ax.grid(color=GRID, linewidth=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
