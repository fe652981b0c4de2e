"""Several steps per frame: curves at finer times, and averages of the steps at the frames.

The torque of one step is the mean over the steps before and after it, with a weight that decreases to zero at their far
ends. The same is true of several: a frame's forces are those of the steps around it with that weight. Powers are means
over the steps from a frame to the next, so that their sums stay the work done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.errors import SettingsError
from borelli.numerics.vectors import Array

if TYPE_CHECKING:
    from xarray import Dataset

MAX_SUBSTEPS = 100
"""Largest number of steps per frame."""
INSTANTANEOUS = (
    "coordinate_value",
    "coordinate_error",
    "coordinate_velocity",
    "coordinate_acceleration",
    "mechanical_energy",
)
"""Variables that are sampled at the frames, not averaged."""


def subdivide(curves: Derivatives, substeps: int) -> Derivatives:
    """Return the curves at that many times per frame, including the last frame."""
    if not 1 <= substeps <= MAX_SUBSTEPS:
        raise SettingsError(f"substeps: The value is {substeps}. Pass 1 to {MAX_SUBSTEPS}.")
    if substeps == 1:
        return curves
    rate = substeps * curves.rate
    time = curves.time[0] + np.arange(substeps * len(curves.time)) / rate
    q, u, a = curves.at(time)
    return replace(curves, time=time, coordinates=q, speeds=u, accelerations=a, rate=rate)


def average_to_frames(fine: Dataset, substeps: int) -> Dataset:
    """Average the results of steps to frames."""
    if substeps == 1:
        return fine
    result = fine.isel(time=slice(None, None, substeps)).copy(deep=True)
    for name, variable in fine.data_vars.items():
        values = np.asarray(variable.values)
        if str(name).endswith("_power"):
            result[name].values[:] = values.reshape(-1, substeps, *values.shape[1:]).mean(axis=1)
        elif name not in INSTANTANEOUS:
            result[name].values[:] = frame_means(values, substeps)
    if "ground_reaction_force" in fine:
        _average_pressure(fine, result, substeps)
    return result


def frame_means(values: Array, substeps: int) -> Array:
    """Return (frames, ...) means over the steps around each frame, the weight falling to zero a frame away."""
    steps = len(values)
    total, weights = np.zeros((2, steps // substeps, *values.shape[1:]))
    for offset in range(1 - substeps, substeps):
        at = np.arange(0, steps, substeps) + offset
        inside = (at >= 0) & (at < steps)
        weight = 1.0 - abs(offset) / substeps
        total[inside] += weight * values[at[inside]]
        weights[inside] += weight
    return total / weights


def _average_pressure(fine: Dataset, result: Dataset, substeps: int) -> None:
    """Average centers of pressure weighted by vertical force, and the free moments about them."""
    force, moment = fine["ground_reaction_force"].values, fine["free_moment"].values
    point = np.nan_to_num(fine["center_of_pressure"].values)
    normal = frame_means(force[..., 2], substeps)[..., None]
    loaded = normal > 0.0
    center = frame_means(force[..., 2:] * point, substeps) / np.where(loaded, normal, 1.0)
    total = frame_means(moment + np.cross(point, force), substeps)
    result["center_of_pressure"].values[:] = np.where(loaded, center, np.nan)
    free = total - np.cross(center, result["ground_reaction_force"].values)
    result["free_moment"].values[:] = np.where(loaded, free, 0.0)
