"""Stills and a film of several runs side by side, as every control experiment writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from borelli.view.panels import View, film, stills

if TYPE_CHECKING:
    from xarray import Dataset

RATE = 25.0
"""Frame rate of films [1/s]."""
QUICK_SIZE = 90
"""Width and height of the images of a quick run [pixels]."""


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
    """Write `name-stills.png`, each run at the given times, and `name.gif`; if quick, small images of the first run.

    Args:
        runs: Datasets by the title of their images.
        out: Output folder.
        name: Stem of the file names.
        times: Times of the stills [s].
        quick: Draw only to check that it works.
        speed: Playback speed of the film; 0.5 is half of real time.
        columns: Maximum number of runs in a row of the film.
        view: Size and camera of one image.
    """
    out.mkdir(parents=True, exist_ok=True)
    if quick:
        view = view._replace(width=QUICK_SIZE, height=QUICK_SIZE)
        runs = dict(list(runs.items())[:1])
        times = times[-1:]
        speed = RATE * max(float(data["time"].values[-1]) for data in runs.values())
    return [
        stills(runs, out / f"{name}-stills.png", times, view),
        film(runs, out / f"{name}.gif", view, rate=RATE, speed=speed, columns=columns),
    ]
