"""Results of the same scene side by side under their names: as stills, and as a moving picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from borelli.errors import SettingsError
from borelli.view.drawing import Drawing
from borelli.view.picture import actors_at, caption, extent, nearest_instant, staged
from borelli.view.render import Camera, camera_for, render
from borelli.view.video import save_animation

if TYPE_CHECKING:
    from PIL.Image import Image
    from xarray import Dataset

LINE = (200, 203, 208)
"""Between panels."""


class View(NamedTuple):
    """How one panel looks."""

    width: int = 320
    height: int = 300
    """[pixels]"""
    azimuth: float = -75.0
    """Where the camera stands [degrees from x]."""
    elevation: float = 9.0
    """And how high [degrees]."""


def stills(runs: Mapping[str, Dataset], path: str | Path, times: Sequence[float], view: View = View()) -> Path:
    """A row of pictures for each run, one at each of these times [s]."""
    if not len(times):
        raise SettingsError("stills need at least one time, got none")
    scenes = _scenes(runs, view)
    rows = []
    for (name, data), (drawing, camera) in zip(runs.items(), scenes, strict=True):
        row = []
        for time in times:
            image = _panel(data, drawing, camera, time, view)
            caption(image, f"{time:.2f} s", view.width / 2)
            row.append(image)
        title(row[0], name)
        rows.append(row)
    _grid(rows).save(path)
    return Path(path)


def film(
    runs: Mapping[str, Dataset],
    path: str | Path,
    view: View = View(),
    *,
    rate: float = 25.0,
    speed: float = 1.0,
    columns: int = 4,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """A moving picture, .gif or .webp, of all runs at once; one that ended earlier stands still."""
    if not (rate > 0 and speed > 0):
        raise SettingsError(f"a film needs a positive rate and speed; got rate {rate}, speed {speed}")
    scenes = _scenes(runs, view)
    end = max(float(data["time"].values[-1]) for data in runs.values())
    times = np.arange(0.0, end + 1e-9, speed / rate)
    frames = []
    for number, time in enumerate(times):
        panels = []
        for (name, data), (drawing, camera) in zip(runs.items(), scenes, strict=True):
            image = _panel(data, drawing, camera, time, view)
            caption(image, f"{time:.2f} s", view.width * 0.9)
            title(image, name)
            panels.append(image)
        lines = ceil(len(panels) / columns)
        each = ceil(len(panels) / lines)
        frames.append(_grid([panels[k * each : (k + 1) * each] for k in range(lines)]))
        if progress is not None:
            progress((number + 1) / len(times))
    return save_animation(frames, path, rate)


def title(image: Image, text: str) -> None:
    """Write a name into the upper left corner of a picture."""
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default(size=max(11, image.height // 20))
    ImageDraw.Draw(image).text((image.width * 0.03, image.height * 0.03), text, fill=(43, 47, 54), font=font)


def _scenes(runs: Mapping[str, Dataset], view: View) -> list[tuple[Drawing, Camera]]:
    """What is drawn of each run, and one camera for all of them that sees everything."""
    if not runs:
        raise SettingsError("there is no run to draw: give at least one")
    drawings = [staged(data) for data in runs.values()]
    points = np.concatenate([extent(drawing, data) for drawing, data in zip(drawings, runs.values(), strict=True)])
    camera = camera_for(points, view.width / view.height, azimuth=view.azimuth, elevation=view.elevation)
    # the lowest stage for all: planes that differ would look like bodies that do
    low = min(drawings, key=lambda drawing: float(drawing.planes[:, 3, 2].min(initial=0.0)))
    return [
        (d._replace(planes=low.planes, plane_sizes=low.plane_sizes, plane_colors=low.plane_colors), camera)
        for d in drawings
    ]


def _panel(data: Dataset, drawing: Drawing, camera: Camera, time: float, view: View) -> Image:
    actors = actors_at(drawing, data, nearest_instant(data, time))
    return render(drawing, actors, camera, view.width, view.height)


def _grid(rows: Sequence[Sequence[Image]]) -> Image:
    """Pictures of one size in rows, with thin lines between."""
    from PIL import Image as images

    width, height = rows[0][0].size
    columns = max(len(row) for row in rows)
    whole = images.new("RGB", (columns * (width + 1) - 1, len(rows) * (height + 1) - 1), LINE)
    for down, row in enumerate(rows):
        for across, image in enumerate(row):
            whole.paste(image, (across * (width + 1), down * (height + 1)))
    return whole
