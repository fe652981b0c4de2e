"""Images of a result without a display: one instant, or several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.files.atomic import atomic_path, check_output
from borelli.files.paths import as_path
from borelli.view.drawing import Drawing, linear, make_drawing, transform_vertices, with_floor
from borelli.view.force_arrows import ARROW_COLOR, arrow_mesh
from borelli.view.mesh import Array
from borelli.view.muscle_lines import TUBE_SIDES, tubes
from borelli.view.render import Actors, Camera, axes_at, camera_for, join_actors, project, render
from borelli.view.results import PosedModel, posed_model

if TYPE_CHECKING:
    from PIL.Image import Image

GHOST_COLOR = (0.22, 0.27, 0.36)
"""Color (sRGB) of the bodies where they would be without perturbations."""
STROBE_GAP = 0.12
"""Gap between neighbors of a strobe image, relative to the widest of them."""


def picture(
    result: Any,
    path: str | Path | None = None,
    *,
    time: float = inf,
    width: int = 1280,
    height: int = 720,
    camera: Camera | None = None,
    overwrite: bool = False,
) -> Image:
    """Draw a result at one instant.

    Args:
        result: A recording, model, scene, fit, motion, torques, muscle forces, energy, analysis, targets, animation,
            simulation or its dataset, or a tracked motion, what-if or predicted walk. Muscles are lines, blue-gray at
            activation 0 and red at 1, brown where it is unknown.
        path: Image file to write. Default: none.
        time: Time of the instant [s]. Default: the last.
        width: Width [pixels].
        height: Height [pixels].
        camera: Position and target of the camera. Default: one that shows everything.
        overwrite: Replace an existing file.

    Returns:
        The image.

    Raises:
        SettingsError: The result has no poses to draw, or the file exists.

    Examples:
        >>> image = bo.picture(bo.human(), "human.png", width=320, height=180)
        >>> image.size
        (320, 180)
    """
    if path is not None:
        check_output(path, overwrite=overwrite)
    posed = posed_model(result)
    drawing = drawing_with_floor(posed)
    frame = posed.nearest_frame(time)
    camera = camera or camera_for(visible_points(drawing, posed, [frame]), width / height)
    image = render(drawing, actors_at(drawing, posed, frame), camera, width, height)
    add_captions(image, posed, frame)
    if path is not None:
        save_image(image, path, overwrite=overwrite)
    return image


def add_captions(image: Image, posed: PosedModel, frame: int) -> None:
    """Write the time of a frame of a motion, and the caption of the result, at the bottom of an image."""
    if len(posed.time) > 1:
        caption(image, f"{posed.time[frame]:.2f} s", 0.94 * image.width)
    if posed.caption:
        caption(image, posed.caption, 0.3 * image.width)


def strobe(
    result: Any,
    path: str | Path | None = None,
    *,
    times: Sequence[float] | None = None,
    count: int = 6,
    spread: float | None = None,
    width: int = 1600,
    height: int = 720,
    azimuth: float = -68.0,
    overwrite: bool = False,
) -> Image:
    """Draw several instants of a result in one image, from left to right, with their times.

    Args:
        result: As of `picture`.
        path: Image file to write. Default: none.
        times: Times of the instants [s]. Default: evenly spaced.
        count: Number of instants without `times`.
        spread: Displacement of each instant from the one before [m]; 0 draws them where they are. Default: just enough
            to avoid overlap.
        width: Width [pixels].
        height: Height [pixels].
        azimuth: Direction of the camera [degrees from x].
        overwrite: Replace an existing file.

    Returns:
        The image.

    Raises:
        SettingsError: There is no instant, the result has no poses to draw, or the file exists.

    Examples:
        >>> result = bo.simulate(bo.human(), duration=0.5, initial_coordinates={"root_z": 1.2})
        >>> image = bo.strobe(result, "fall.png", count=3, width=640, height=240)
    """
    if path is not None:
        check_output(path, overwrite=overwrite)
    posed = posed_model(result)
    chosen = list(np.linspace(posed.time[0], posed.time[-1], count) if times is None else times)
    if not chosen:
        raise SettingsError("A strobe image needs at least one instant, but there is none. Set times or count.")
    frames = list(dict.fromkeys(posed.nearest_frame(t) for t in chosen))
    drawing = drawing_with_floor(posed)
    right = axes_at(azimuth, 0.0)[0]
    if spread is None:
        spread = _spread([visible_points(drawing, posed, [frame]) @ right for frame in frames])
    displaced = [posed.displaced(k * spread * right) for k in range(len(frames))]
    views = list(zip(displaced, frames, strict=True))
    points = [visible_points(drawing, one, [frame]) for one, frame in views]
    camera = camera_for(np.concatenate(points), width / height, azimuth=azimuth, elevation=10.0)
    image = render(drawing, join_actors([actors_at(drawing, *view) for view in views]), camera, width, height)
    for cloud, frame in zip(points if spread else [np.concatenate(points)], frames, strict=False):
        center = (cloud.min(0) + cloud.max(0)) / 2
        caption(image, f"{posed.time[frame]:.2f} s", float(project(center[None], camera, width, height)[0, 0]))
    if posed.caption:
        caption(image, posed.caption, 0.3 * width, row=0.05)
    if path is not None:
        save_image(image, path, overwrite=overwrite)
    return image


def save_image(image: Image, path: str | Path, *, overwrite: bool = False, **options: Any) -> None:
    """Write an image in the format of the file name's suffix, completely or not at all; options are those of Pillow."""
    from PIL import Image as images

    path = as_path(path)
    form = images.registered_extensions().get(path.suffix.lower())
    if form not in images.SAVE:
        known = [ending for ending, name in images.registered_extensions().items() if name in images.SAVE]
        raise SettingsError(f"{path}: {unknown_name('file extension of an image', path.suffix, sorted(known))}")
    with atomic_path(path, overwrite=overwrite) as temporary:
        content = BytesIO()
        image.save(content, form, **options)
        temporary.write_bytes(content.getvalue())


def _spread(extents: Sequence[Array]) -> float:
    """Return the displacement that separates each of the extents along an axis from the one before."""
    overlap = [float(a.max() - b.min()) for a, b in pairwise(extents)]
    return max([0.0, *overlap]) + STROBE_GAP * max(float(np.ptp(a)) for a in extents) if overlap else 0.0


def caption(image: Image, text: str, column: float, row: float = 0.955) -> None:
    """Write a short text in an image, centered on a column [pixels] and a row [fraction of the height]."""
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default(size=max(11, image.height // 38))
    ImageDraw.Draw(image).text((column, image.height * row), text, fill=(70, 74, 80), font=font, anchor="mm")


def side_view(result: Any) -> tuple[float, float]:
    """Return the azimuth of a camera on the right of a moving body [degrees from x], and the distance it moves [m]."""
    center = posed_model(result).center_of_mass
    x, y, _ = center[-1] - center[0]
    return float(np.degrees(np.arctan2(y, x))) - 90.0, float(np.hypot(x, y))


def drawing_with_floor(posed: PosedModel) -> Drawing:
    """Return the drawing of a model, on a plain floor below its lowest point if it has no ground."""
    drawing = make_drawing(posed.model)
    return with_floor(drawing, float(sampled_points(drawing, posed)[:, 2].min()))


def actors_at(drawing: Drawing, posed: PosedModel, frame: int) -> Actors:
    """Return the triangles of the bodies and muscles in one frame."""
    vertices, normals = transform_vertices(drawing, posed.position[frame], posed.orientation[frame])
    actors = Actors(vertices, normals, drawing.triangles, drawing.colors, _muscles_at(posed, frame))
    if posed.ghost is not None:
        gray = np.broadcast_to(linear(np.array(GHOST_COLOR)), drawing.colors.shape)
        pose = (part[frame] for part in posed.ghost)
        actors = actors._replace(ghost=Actors(*transform_vertices(drawing, *pose), drawing.triangles, gray))
    arrows = arrow_mesh(posed.arrows, posed.time[frame], posed.position[frame], posed.orientation[frame])
    if arrows is None:
        return actors
    color = np.repeat(linear(np.array(ARROW_COLOR))[None], len(arrows.vertices), axis=0)
    return join_actors([actors, Actors(*arrows, color)])


def _muscles_at(posed: PosedModel, frame: int) -> Actors | None:
    """Return the tubes of the muscles in one frame; None if there are none."""
    if posed.muscles is None:
        return None
    segments, owner = posed.muscles.segments(frame)
    colors = linear(posed.muscles.colors(frame))[owner]
    return Actors(*tubes(segments), np.repeat(colors, 2 * TUBE_SIDES, axis=0)) if len(segments) else None


def sampled_points(drawing: Drawing, posed: PosedModel, count: int = 12) -> Array:
    """Return the points that a fixed camera must show, in evenly spaced frames."""
    return visible_points(drawing, posed, np.unique(np.linspace(0, len(posed.time) - 1, count).astype(int)).tolist())


def body_points(drawing: Drawing, posed: PosedModel, frame: int) -> Array:
    """Return the vertices of the bodies that move by themselves, or of all bodies if none does, in one frame."""
    moves = np.array([not body.kinematic for body in posed.model.bodies])
    shown = moves[drawing.body] & (drawing.body >= 0) if moves.any() else drawing.body >= 0
    return transform_vertices(drawing, posed.position[frame], posed.orientation[frame])[0][shown]


def visible_points(drawing: Drawing, posed: PosedModel, frames: Sequence[int]) -> Array:
    """Return the points that a camera must show in the given frames: all vertices, or those of the bodies only.

    Bodies that are absent from a frame, such as an obstacle before its time, have no position there.
    """
    shown = slice(None) if not posed.focus_on_bodies else drawing.body >= 0
    poses = [(posed.position[frame], posed.orientation[frame]) for frame in frames]
    points = np.concatenate([transform_vertices(drawing, *pose)[0][shown] for pose in poses])
    return points[np.isfinite(points).all(axis=1)]
