"""Pictures of a result without a display: one instant, or several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.motion import to_model_axes
from borelli.errors import SettingsError
from borelli.model.formats.native import model_from_text, model_to_text
from borelli.model.model import Model
from borelli.model.transforms import orientation_from_matrix
from borelli.numerics.quaternions import quaternion_product
from borelli.view.drawing import Drawing, drawing_of, placed, with_stage
from borelli.view.mesh import Array
from borelli.view.render import Actors, Camera, axes_at, camera_for, project, render, together

if TYPE_CHECKING:
    from PIL.Image import Image
    from xarray import Dataset


def picture(
    dataset: Dataset,
    path: str | Path | None = None,
    *,
    time: float = inf,
    width: int = 1280,
    height: int = 720,
    camera: Camera | None = None,
) -> Image:
    """The scene at one instant [s] (the last by default), saved when a path is given."""
    drawing = staged(dataset)
    actors = actors_at(drawing, dataset, nearest_instant(dataset, time))
    image = render(drawing, actors, camera or camera_for(actors.vertices, width / height), width, height)
    if path is not None:
        image.save(path)
    return image


def strobe(
    dataset: Dataset,
    path: str | Path | None = None,
    *,
    times: Sequence[float] | None = None,
    count: int = 6,
    spread: float | None = None,
    width: int = 1600,
    height: int = 720,
    azimuth: float = -68.0,
) -> Image:
    """Several instants in one picture, each `spread` metres to the right of the one before, with their times.

    By default the instants are evenly spaced and so far apart that they do not overlap; 0 lays them over each other.
    `azimuth` is where the camera stands [degrees from x].
    """
    clock = dataset["time"].values
    wanted = list(np.linspace(clock[0], clock[-1], count) if times is None else times)
    if not wanted:
        raise SettingsError("a stroboscopic picture needs at least one instant, got none: give `times` or `count`")
    instants = [nearest_instant(dataset, t) for t in wanted]
    drawing = staged(dataset)
    right = axes_at(azimuth, 0.0)[0]
    single = [actors_at(drawing, dataset, i) for i in instants]
    if spread is None:
        spread = 1.12 * max(float(np.ptp(a.vertices @ right)) for a in single)
    moved = [a._replace(vertices=a.vertices + k * spread * right) for k, a in enumerate(single)]
    actors = together(moved)
    camera = camera_for(actors.vertices, width / height, azimuth=azimuth, elevation=10.0)
    image = render(drawing, actors, camera, width, height)
    for a, i in zip(moved if spread else [actors], instants, strict=False):
        middle = (a.vertices.min(0) + a.vertices.max(0)) / 2
        caption(image, f"{clock[i]:.2f} s", float(project(middle[None], camera, width, height)[0, 0]))
    if path is not None:
        image.save(path)
    return image


def caption(image: Image, text: str, column: float) -> None:
    """Write a short text near the bottom of the picture, centred on a column."""
    from PIL import ImageDraw, ImageFont

    font = ImageFont.load_default(size=max(11, image.height // 38))
    ImageDraw.Draw(image).text((column, image.height * 0.955), text, fill=(70, 74, 80), font=font, anchor="mm")


def upright(dataset: Dataset) -> Dataset:
    """The result as pictures show it: z up, whatever axis is up in its model, whose ground is then left out."""
    model = model_of(dataset)
    turn = to_model_axes(model)
    if np.array_equal(turn, np.eye(3)):
        return dataset
    back = np.array(orientation_from_matrix(turn.T))
    made = dataset.assign(
        position=dataset["body_position"].copy(data=dataset["body_position"].values @ turn),
        center_of_mass=dataset["center_of_mass"].copy(data=dataset["center_of_mass"].values @ turn),
        quaternion=dataset["body_orientation"].copy(data=quaternion_product(back, dataset["body_orientation"].values)),
    )
    return made.assign_attrs(model=model_to_text(replace(model, ground=(), gravity=(0.0, 0.0, -9.81))))


def beside(dataset: Dataset) -> tuple[float, float]:
    """Where a camera sees what goes somewhere from its right side [degrees from x], and how far it goes [m]."""
    center = dataset["center_of_mass"].values
    x, y, _ = center[-1] - center[0]
    return float(np.degrees(np.arctan2(y, x))) - 90.0, float(np.hypot(x, y))


def model_of(dataset: Dataset) -> Model:
    """The model a result was computed with."""
    if "model" not in dataset.attrs:
        raise SettingsError("the dataset has no attribute 'model': give one made by borelli's simulate")
    return model_from_text(dataset.attrs["model"])


def staged(dataset: Dataset) -> Drawing:
    """The drawing of a result's model, on a plain stage below its lowest point when it has no ground."""
    drawing = drawing_of(model_of(dataset))
    return with_stage(drawing, float(extent(drawing, dataset)[:, 2].min()))


def actors_at(drawing: Drawing, dataset: Dataset, instant: int) -> Actors:
    """The bodies as they stand at an index of time."""
    vertices, normals = placed(drawing, dataset["body_position"].values[instant], dataset["body_orientation"].values[instant])
    return Actors(vertices, normals, drawing.triangles, drawing.colors)


def extent(drawing: Drawing, dataset: Dataset, count: int = 12) -> Array:
    """World points of the bodies at evenly spaced instants: what a fixed camera must see."""
    instants = np.unique(np.linspace(0, dataset.sizes["time"] - 1, count).astype(int))
    return np.concatenate([actors_at(drawing, dataset, i).vertices for i in instants])


def nearest_instant(dataset: Dataset, time: float) -> int:
    """The index of the stored instant nearest to a time [s]."""
    clock = dataset["time"].values
    return int(np.abs(clock - min(max(time, clock[0]), clock[-1])).argmin())
