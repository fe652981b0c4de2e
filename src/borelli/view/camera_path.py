"""Cameras of films: fixed, or following a figure that would be small in a picture of its whole way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from borelli.view.drawing import Drawing
from borelli.view.mesh import Array
from borelli.view.picture import body_points, sampled_points
from borelli.view.render import Camera, axes_at, camera_for, needed_distance
from borelli.view.results import PosedModel

MAX_FIXED_RATIO = 1.1
"""Largest distance of a fixed camera relative to that of one that follows."""
SAMPLE_TIME = 0.05
"""Time [s] between the poses that a camera is fitted to."""
SMOOTHING_TIME = 0.6
"""Time [s] before and after over which the place that a camera looks at is averaged."""


def camera_path(
    drawing: Drawing, posed: PosedModel, aspect: float, azimuth: float, elevation: float
) -> Callable[[float], Camera]:
    """Return the camera at each time [s]: all bodies stay in the picture, at a constant distance and direction.

    It is fixed where that makes the bodies little smaller, and where shapes other than planes are on the ground.
    """
    from scipy.interpolate import CubicSpline

    fixed = camera_for(sampled_points(drawing, posed), aspect, azimuth=azimuth, elevation=elevation)
    length = float(posed.time[-1] - posed.time[0])
    if (drawing.body == -1).any() or not length > 0.0:
        return lambda time: fixed
    times = np.linspace(posed.time[0], posed.time[-1], 1 + max(1, round(length / SAMPLE_TIME)))
    clouds = [body_points(drawing, posed, posed.nearest_frame(time)) for time in times]
    targets = _smooth(
        [camera_for(cloud, aspect, azimuth=azimuth, elevation=elevation).target for cloud in clouds], times
    )
    axes = axes_at(azimuth, elevation)
    distance = max(
        needed_distance(cloud - target, aspect, axes) for cloud, target in zip(clouds, targets, strict=True)
    )  # fmt: skip
    if float(np.linalg.norm(fixed.eye - fixed.target)) <= MAX_FIXED_RATIO * distance:
        return lambda time: fixed

    curve = CubicSpline(times, targets)

    def at(time: float) -> Camera:
        target = np.asarray(curve(time))
        return Camera(target - distance * axes[2], target)

    return at


def _smooth(values: list[Array], times: Array) -> Array:
    """Return values (times, 3) averaged over the time before and after; at the ends they run on."""
    width = max(1, round(SMOOTHING_TIME / (times[1] - times[0])))
    window = np.hanning(2 * width + 3)[1:-1]
    padded = np.pad(np.array(values), [(width, width), (0, 0)], mode="reflect", reflect_type="odd")
    return np.stack([np.convolve(column, window / window.sum(), mode="valid") for column in padded.T], axis=1)
