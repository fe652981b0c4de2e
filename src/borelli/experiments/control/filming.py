"""Stills and a film of several runs side by side, as every control experiment writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from xarray import Dataset

from borelli.experiments.experiment import Request
from borelli.view.panels import View, film, stills

RATE = 25.0
"""Frame rate of films [1/s]."""
QUICK_SIZE = 90
"""Width and height of the images of a quick run [pixels]."""


def draw_runs(
    request: Request,
    runs: Mapping[str, Dataset],
    times: Sequence[float],
    *,
    suffix: str = "",
    speed: float = 1.0,
    columns: int = 4,
    view: View = View(),
) -> tuple[Path, ...]:
    """Write stills of each run at the given times [s] and a film; if quick, small images of the first run.

    Runs are given by the title of their images, `suffix` is added to the stem of the file names, a `speed` of 0.5 is
    half of real time, and at most `columns` runs are in a row of the film.
    """
    request.log("drawing")
    name = f"{request.name}{suffix}"
    if request.quick:
        view = view._replace(width=QUICK_SIZE, height=QUICK_SIZE)
        runs = dict(list(runs.items())[:1])
        times = times[-1:]
        speed = RATE * max(float(data["time"].values[-1]) for data in runs.values())
    return (
        stills(runs, request.out / f"{name}-stills.png", times, view),
        film(runs, request.out / f"{name}.gif", view, rate=RATE, speed=speed, columns=columns),
    )
