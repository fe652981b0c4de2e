"""Videos without a display: animated GIF or WebP, or numbered PNG frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.files.atomic import check_output
from borelli.files.memory import check_memory
from borelli.files.results_folder import check_results, results_folders
from borelli.view.camera_path import camera_path
from borelli.view.picture import actors_at, add_captions, drawing_with_floor, picture, save_image
from borelli.view.render import render
from borelli.view.results import posed_model

if TYPE_CHECKING:
    from PIL.Image import Image

Progress = Callable[[float], None]
RATE = 25.0  # frames per second; GIF counts in hundredths of a second
AZIMUTH = -62.0  # direction of the camera [degrees from x]
ANIMATIONS = (".gif", ".webp")
COLORS, RARE_COLORS = 128, 16
"""Colors of an animated GIF, and how many of them are rare ones."""
PALETTE_FRAMES = 40
"""Frames in which rare colors are looked for."""
BYTES_PER_PIXEL = 4.0
"""Memory [bytes] of an image with its copy in a palette; all images of a video are kept until it is written."""
SUFFIXES = (*ANIMATIONS, ".png")
FRAMES = "simulate --frames"
"""Name of the command that writes single frames."""


def frames(
    result: Any, rate: float, speed: float, width: int, height: int, azimuth: float, progress: Progress | None
) -> Iterator[Image]:
    """Yield the images of a video; arguments as of `video`."""
    if not (rate > 0 and speed > 0):
        raise SettingsError(f"rate is {rate} and speed is {speed}; both must be positive.")
    posed = posed_model(result)
    count = max(1.0, (posed.time[-1] - posed.time[0]) * rate / speed)
    check_memory(
        BYTES_PER_PIXEL * count * width * height, f"rate: A video of {count:.0f} frames of {width} x {height} pixels",
        "Lower the rate, the width or the height, raise the speed, or film a shorter result.",
    )  # fmt: skip
    drawing = drawing_with_floor(posed)
    camera = camera_path(drawing, posed, width / height, azimuth, 9.0)

    def frame(time: float) -> Image:
        index = posed.nearest_frame(time)
        image = render(drawing, actors_at(drawing, posed, index), camera(time), width, height)
        add_captions(image, posed, index)
        return image

    # kernels release the GIL, so threads suffice
    times = np.arange(posed.time[0], posed.time[-1] + 1e-9, speed / rate)
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for index, image in enumerate(pool.map(frame, times)):
            if progress is not None:
                progress((index + 1) / len(times))
            yield image


def video(
    result: Any,
    path: str | Path,
    *,
    rate: float = RATE,
    speed: float = 1.0,
    width: int = 640,
    height: int = 360,
    azimuth: float = AZIMUTH,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a video of a result.

    Args:
        result: As of `picture`.
        path: File to write: .gif or .webp, or .png for an image of the last instant.
        rate: Frames per second.
        speed: Playback speed; 0.5 is half of real time.
        width: Width [pixels].
        height: Height [pixels].
        azimuth: Direction of the camera [degrees from x].
        progress: Called with the fraction done, 0 to 1.
        overwrite: Replace an existing file.

    Returns:
        The path.

    Raises:
        SettingsError: Unknown suffix, rate or speed not positive, a result without poses, or a file that exists.

    Examples:
        >>> result = bo.simulate(bo.human(), duration=0.2, initial_coordinates={"root_z": 1.2})
        >>> bo.video(result, "fall.gif", width=160, height=120).name
        'fall.gif'
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise SettingsError(f"{path}: {unknown_name('file extension of a video', path.suffix, SUFFIXES)}")
    if path.suffix.lower() == ".png":
        picture(result, path, width=2 * width, height=2 * height, overwrite=overwrite)
        return path
    check_output(path, overwrite=overwrite)
    images = list(frames(result, rate, speed, width, height, azimuth, progress))
    return save_animation(images, path, rate, overwrite=overwrite)


def save_animation(images: Sequence[Image], path: str | Path, rate: float, *, overwrite: bool = False) -> Path:
    """Write images as an animation, .gif or .webp, at a frame rate [1/s]."""
    path = Path(path)
    if path.suffix.lower() not in ANIMATIONS:
        raise SettingsError(f"{path}: {unknown_name('file extension of an animation', path.suffix, ANIMATIONS)}")
    if path.suffix.lower() == ".gif":
        # one palette for all frames: no flicker, smaller file
        palette = _palette(images)
        images = [image.quantize(palette=palette) for image in images]
    options: dict[str, Any] = {"optimize": False}
    if path.suffix.lower() == ".webp":
        options = {"quality": 80, "method": 2}
    options |= {"save_all": True, "append_images": images[1:], "duration": round(1000 / rate), "loop": 0}
    save_image(images[0], path, overwrite=overwrite, **options)
    return path


def _palette(images: Sequence[Image]) -> Image:
    """Return an image with the palette of a film: common colors, and rare ones that are far from them, as of arrows."""
    from PIL import Image as pillow

    common = images[len(images) // 2].quantize(COLORS - RARE_COLORS)
    chosen = np.array(common.getpalette(), np.int32).reshape(-1, 3)[: COLORS - RARE_COLORS]
    some = images[:: max(1, len(images) // PALETTE_FRAMES)]
    seen = np.concatenate([np.asarray(one)[::3, ::3].reshape(-1, 3) for one in some])
    seen = np.unique(seen >> 3, axis=0).astype(np.int32) * 8 + 4
    distance = ((seen[:, None] - chosen) ** 2).sum(axis=2).min(axis=1)
    for _ in range(RARE_COLORS):
        new = seen[int(np.argmax(distance))]
        chosen = np.vstack([chosen, new])
        distance = np.minimum(distance, ((seen - new) ** 2).sum(axis=1))
    palette = pillow.new("P", (1, 1))
    palette.putpalette(chosen.astype(np.uint8).tobytes())
    return palette


def write_frames(
    result: Any,
    folder: str | Path,
    *,
    rate: float = RATE,
    speed: float = 1.0,
    width: int = 1280,
    height: int = 720,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write frame-0000.png, frame-0001.png, ... into a folder; arguments as of `video`.

    Frames that an earlier call wrote there are replaced, other files of these names only with `overwrite`.

    Args:
        result: As of `picture`.
        folder: Folder; it is made if it does not exist.
        rate: Frames per second.
        speed: Playback speed; 0.5 is half of real time.
        width: Width [pixels].
        height: Height [pixels].
        progress: Called with the fraction done, 0 to 1.
        overwrite: Whether files of these names that are not frames of an earlier call are replaced.

    Returns:
        The paths of the frames.
    """
    folder = Path(folder)
    paths = []
    with results_folders({folder: list_frames(folder)}, FRAMES, overwrite=overwrite):
        for index, image in enumerate(frames(result, rate, speed, width, height, AZIMUTH, progress)):
            paths.append(folder / f"frame-{index:04d}.png")
            save_image(image, paths[-1])
    return paths


def check_frames(folder: Path, *, overwrite: bool = False) -> None:
    """Raise SettingsError if `write_frames` would refuse to write into a folder."""
    if not folder.absolute().parent.is_dir():
        raise SettingsError(f"{folder}: The folder {folder.parent} does not exist. Create it first.")
    check_results({folder: list_frames(folder)}, FRAMES, overwrite=overwrite)


def list_frames(folder: Path) -> list[str]:
    """Return the names of all frames in a folder, whoever wrote them."""
    return sorted(path.name for path in folder.glob("frame-*.png")) if folder.is_dir() else []
