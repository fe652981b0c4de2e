"""Moving pictures without a display: animated GIF or WebP, or numbered PNG frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from borelli.errors import SettingsError
from borelli.view.picture import actors_at, caption, extent, nearest_instant, picture, staged
from borelli.view.render import camera_for, render

if TYPE_CHECKING:
    from PIL.Image import Image
    from xarray import Dataset

RATE = 25.0  # frames per second; GIF counts in hundredths of a second
AZIMUTH = -62.0  # where the camera stands [degrees from x]
ANIMATIONS = (".gif", ".webp")
SUFFIXES = (*ANIMATIONS, ".png")


def frames(
    dataset: Dataset,
    *,
    rate: float = RATE,
    speed: float = 1.0,
    width: int = 640,
    height: int = 360,
    azimuth: float = AZIMUTH,
    progress: Callable[[float], None] | None = None,
) -> Iterator[Image]:
    """One picture per frame from a camera that stands still; `speed` 0.5 shows it at half speed.

    `azimuth` is where the camera stands [degrees from x].
    """
    if not (rate > 0 and speed > 0):
        raise SettingsError(f"a video needs a positive rate and speed; got rate {rate}, speed {speed}")
    drawing = staged(dataset)
    camera = camera_for(extent(drawing, dataset), width / height, azimuth=azimuth, elevation=9.0)
    clock = dataset["time"].values

    def frame(time: float) -> Image:
        image = render(drawing, actors_at(drawing, dataset, nearest_instant(dataset, time)), camera, width, height)
        caption(image, f"{time:.2f} s", width * 0.94)
        return image

    # the kernels let go of Python's lock, so threads are enough
    times = np.arange(clock[0], clock[-1] + 1e-9, speed / rate)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for index, image in enumerate(pool.map(frame, times)):
            if progress is not None:
                progress((index + 1) / len(times))
            yield image


def video(
    dataset: Dataset,
    path: str | Path,
    *,
    rate: float = RATE,
    speed: float = 1.0,
    width: int = 640,
    height: int = 360,
    azimuth: float = AZIMUTH,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Write the result as .gif or .webp (an animation) or .png (its last instant)."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise SettingsError(f"{path}: a video is written as {', '.join(SUFFIXES)}; got {path.suffix or 'no suffix'!r}")
    if path.suffix.lower() == ".png":
        picture(dataset, path, width=2 * width, height=2 * height)
        return path
    images = list(
        frames(dataset, rate=rate, speed=speed, width=width, height=height, azimuth=azimuth, progress=progress)
    )
    return save_animation(images, path, rate)


def save_animation(images: Sequence[Image], path: str | Path, rate: float) -> Path:
    """Write pictures as an animation, .gif or .webp, at so many a second."""
    path = Path(path)
    if path.suffix.lower() not in ANIMATIONS:
        raise SettingsError(f"{path}: an animation is written as {', '.join(ANIMATIONS)}; got {path.suffix!r}")
    if path.suffix.lower() == ".gif":
        # one palette for all frames: no flicker, smaller file
        palette = images[len(images) // 2].quantize(128)
        images = [image.quantize(palette=palette) for image in images]
    options = {"quality": 80, "method": 2} if path.suffix.lower() == ".webp" else {"optimize": False}
    images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 / rate), loop=0, **options)
    return path


def write_frames(
    dataset: Dataset,
    folder: str | Path,
    *,
    rate: float = RATE,
    speed: float = 1.0,
    width: int = 1280,
    height: int = 720,
    progress: Callable[[float], None] | None = None,
) -> list[Path]:
    """Write frame-0000.png, frame-0001.png, ... into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    images = frames(dataset, rate=rate, speed=speed, width=width, height=height, progress=progress)
    for index, image in enumerate(images):
        paths.append(folder / f"frame-{index:04d}.png")
        image.save(paths[-1])
    return paths
