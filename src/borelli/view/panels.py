"""Results of the same scene side by side with titles: as stills, and as a video."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from borelli.errors import SettingsError
from borelli.view.drawing import Drawing
from borelli.view.picture import actors_at, caption, drawing_with_floor, sampled_points, save_image
from borelli.view.render import Camera, camera_for, render
from borelli.view.results import PosedModel, posed_model
from borelli.view.video import save_animation

if TYPE_CHECKING:
    from PIL.Image import Image

LINE_COLOR = (200, 203, 208)
"""Color of the lines between panels."""


class View(NamedTuple):
    """Size and camera of one panel."""

    width: int = 320
    height: int = 300
    """[pixels]"""
    azimuth: float = -75.0
    """Direction of the camera [degrees from x]."""
    elevation: float = 9.0
    """Elevation of the camera [degrees]."""


def stills(
    runs: Mapping[str, Any],
    path: str | Path,
    times: Sequence[float],
    view: View = View(),
    *,
    overwrite: bool = False,
) -> Path:
    """Write an image with a row of panels for each run, one panel for each time [s]."""
    if not len(times):
        raise SettingsError("Stills need at least one time, but there is none. Set times.")
    rows = []
    for scene in _scenes(runs, view):
        row = []
        for time in times:
            image = _panel(scene, time, view)
            caption(image, f"{time:.2f} s", view.width / 2)
            row.append(image)
        title(row[0], scene.name)
        rows.append(row)
    save_image(_grid(rows), path, overwrite=overwrite)
    return Path(path)


def film(
    runs: Mapping[str, Any],
    path: str | Path,
    view: View = View(),
    *,
    rate: float = 25.0,
    speed: float = 1.0,
    columns: int = 4,
    progress: Callable[[float], None] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a video, .gif or .webp, of all runs at once; a shorter run stays at its last frame."""
    if not (rate > 0 and speed > 0):
        raise SettingsError(f"rate is {rate} and speed is {speed}; both must be positive.")
    scenes = _scenes(runs, view)
    end = max(float(scene.posed.time[-1]) for scene in scenes)
    times = np.arange(0.0, end + 1e-9, speed / rate)
    frames = []
    for number, time in enumerate(times):
        panels = []
        for scene in scenes:
            image = _panel(scene, time, view)
            caption(image, f"{time:.2f} s", view.width * 0.9)
            title(image, scene.name)
            panels.append(image)
        lines = ceil(len(panels) / columns)
        each = ceil(len(panels) / lines)
        frames.append(_grid([panels[k * each : (k + 1) * each] for k in range(lines)]))
        if progress is not None:
            progress((number + 1) / len(times))
    return save_animation(frames, path, rate, overwrite=overwrite)


def title(image: Image, text: str) -> None:
    """Write a title into the upper left corner of an image."""
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default(size=max(11, image.height // 20))
    ImageDraw.Draw(image).text((image.width * 0.03, image.height * 0.03), text, fill=(43, 47, 54), font=font)


class _Scene(NamedTuple):
    name: str
    posed: PosedModel
    drawing: Drawing
    camera: Camera


def _scenes(runs: Mapping[str, Any], view: View) -> list[_Scene]:
    """Return the drawing of each run, with one camera for all of them that shows everything."""
    if not runs:
        raise SettingsError("There is no run to draw. Pass at least one.")
    posed = [posed_model(run) for run in runs.values()]
    drawings = [drawing_with_floor(one) for one in posed]
    points = np.concatenate([sampled_points(drawing, one) for drawing, one in zip(drawings, posed, strict=True)])
    camera = camera_for(points, view.width / view.height, azimuth=view.azimuth, elevation=view.elevation)
    # one floor for all, since different floors would look like different motions
    low = min(drawings, key=lambda drawing: float(drawing.planes[:, 3, 2].min(initial=0.0)))
    drawings = [
        d._replace(planes=low.planes, plane_sizes=low.plane_sizes, plane_colors=low.plane_colors) for d in drawings
    ]
    return [_Scene(name, one, d, camera) for name, one, d in zip(runs, posed, drawings, strict=True)]


def _panel(scene: _Scene, time: float, view: View) -> Image:
    actors = actors_at(scene.drawing, scene.posed, scene.posed.nearest_frame(time))
    return render(scene.drawing, actors, scene.camera, view.width, view.height)


def _grid(rows: Sequence[Sequence[Image]]) -> Image:
    """Return images of equal size in rows, with thin lines between them."""
    from PIL import Image as images

    width, height = rows[0][0].size
    columns = max(len(row) for row in rows)
    grid = images.new("RGB", (columns * (width + 1) - 1, len(rows) * (height + 1) - 1), LINE_COLOR)
    for down, row in enumerate(rows):
        for across, image in enumerate(row):
            grid.paste(image, (across * (width + 1), down * (height + 1)))
    return grid
