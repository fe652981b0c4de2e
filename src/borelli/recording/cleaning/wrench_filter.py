"""Low-pass filter of loads as wrenches about a fixed point.

A force F at the point p with the moment M about it is the wrench (F, M + p x F) about the origin. A linear filter of
its six numbers commutes with any choice of the fixed point. A filter of force and center of pressure does not: the
center of pressure is a ratio, noisy where the force is small, and the moments of the filtered parts are not the
filtered moment.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from borelli.numerics.vectors import Array
from borelli.recording.recording import MIN_PLATE_FORCE


def filter_wrench(
    force: Array, point: Array, moment: Array, lowpass: Callable[[Array], Array]
) -> tuple[Array, Array, Array]:
    """Return force, point of application and moment about it of filtered loads.

    Where the filtered load presses on the ground, the point is its center of pressure, at the height of the given
    point, and the moment is vertical. Elsewhere the point is the nearest one in time, and the moment has all that is
    left of the wrench.

    Args:
        force: (samples, loads, 3) [N], z up.
        point: (samples, loads, 3) of application [m]; NaN where unknown, which counts as the nearest known one.
        moment: (samples, loads, 3) about that point [N m].
        lowpass: Linear filter along the first axis.
    """
    known = fill_points(point)
    filtered = lowpass(np.concatenate([force, moment + np.cross(known, force)], axis=-1))
    force, about_origin = filtered[..., :3], filtered[..., 3:]
    pressed = force[..., 2] >= MIN_PLATE_FORCE
    normal = np.where(pressed, force[..., 2], 1.0)
    height = known[..., 2]
    # center of pressure: no moment about horizontal axes through it
    x = (height * force[..., 0] - about_origin[..., 1]) / normal
    y = (height * force[..., 1] + about_origin[..., 0]) / normal
    center = np.where(pressed[..., None], np.stack([x, y, height], axis=-1), np.nan)
    center = fill_points(center)
    return force, center, about_origin - np.cross(center, force)


def fill_points(point: Array) -> Array:
    """Return points (samples, loads, 3) with the nearest known one in time where they are NaN; zero if none is."""
    result = point.copy()
    index = np.arange(len(point))
    for load in range(point.shape[1]):
        known = np.flatnonzero(np.isfinite(point[:, load]).all(axis=-1))
        if not len(known):
            result[:, load] = 0.0
        elif len(known) < len(point):
            after = np.clip(np.searchsorted(known, index), 0, len(known) - 1)
            before = np.clip(after - 1, 0, None)
            nearest = np.where(np.abs(known[after] - index) < np.abs(known[before] - index), after, before)
            result[:, load] = point[known[nearest], load]
    return result
