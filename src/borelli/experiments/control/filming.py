"""Stills and a film of several runs side by side, as every experiment on control leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from borelli.view.panels import View, film, stills

if TYPE_CHECKING:
    from xarray import Dataset

RATE = 25.0
"""Of films [1/s]."""
SMALL = 90
"""Width and height of a quick run's pictures [pixels]."""


def draw_runs(
    runs: Mapping[str, Dataset],
    out: Path,
    name: str,
    times: Sequence[float],
    *,
    quick: bool,
    speed: float = 1.0,
    columns: int = 4,
    view: View = View(),
) -> list[Path]:
    """Write `name-stills.png`, each run at these times [s], and `name.gif`; a quick one is small, of one run only.

    Args:
        runs: By the name to stand in their pictures.
        out: The folder.
        name: What files are called.
        times: Of the stills [s].
        quick: Whether it is only to be seen that it runs.
        speed: Of the film: 0.5 is half as fast as the clock.
        columns: Most runs beside each other in the film.
        view: Of one picture.
    """
    out.mkdir(parents=True, exist_ok=True)
    if quick:
        view = view._replace(width=SMALL, height=SMALL)
        runs = dict(list(runs.items())[:1])
        times = times[-1:]
        speed = RATE * max(float(data["time"].values[-1]) for data in runs.values())
    return [
        stills(runs, out / f"{name}-stills.png", times, view),
        film(runs, out / f"{name}.gif", view, rate=RATE, speed=speed, columns=columns),
    ]
