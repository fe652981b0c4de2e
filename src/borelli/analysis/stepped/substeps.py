"""Several steps a frame: the curves taken at finer times, and what the steps show brought back to the frames.

The torque of one step is the mean over the step before and after it, with a weight that falls to zero at their far
ends. So it is of several: a frame's forces are those of the steps around it with that weight. Powers are means over the
steps from a frame to the next, so that their sums stay the work done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.errors import SettingsError

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

MOST = 100
"""Steps a frame."""
INSTANT = ("coordinates", "deviation", "speeds", "accelerations", "mechanical_energy")
"""What is told as it is at the frames."""


def finer(curves: Derivatives, substeps: int) -> Derivatives:
    """The curves at so many times a frame, the last frame's included."""
    if not 1 <= substeps <= MOST:
        raise SettingsError(f"substeps is {substeps}; allowed: 1 to {MOST}")
    if substeps == 1:
        return curves
    rate = substeps * curves.rate
    time = curves.time[0] + np.arange(substeps * len(curves.time)) / rate
    q, u, a = curves.at(time)
    return replace(curves, time=time, coordinates=q, speeds=u, accelerations=a, rate=rate)


def at_frames(fine: Dataset, substeps: int) -> Dataset:
    """What the steps show, by frame."""
    if substeps == 1:
        return fine
    result = fine.isel(time=slice(None, None, substeps)).copy(deep=True)
    for name, variable in fine.data_vars.items():
        values = np.asarray(variable.values)
        if str(name).endswith("_power"):
            result[name].values[:] = values.reshape(-1, substeps, *values.shape[1:]).mean(axis=1)
        elif name not in INSTANT:
            result[name].values[:] = around_frames(values, substeps)
    if "ground_reaction_force" in fine:
        _place_forces(fine, result, substeps)
    return result


def around_frames(values: Array, substeps: int) -> Array:
    """(frames, ...) means over the steps around each frame, the weight falling to zero a frame away."""
    steps = len(values)
    total, weights = np.zeros((2, steps // substeps, *values.shape[1:]))
    for shift in range(1 - substeps, substeps):
        at = np.arange(0, steps, substeps) + shift
        inside = (at >= 0) & (at < steps)
        weight = 1.0 - abs(shift) / substeps
        total[inside] += weight * values[at[inside]]
        weights[inside] += weight
    return total / weights


def _place_forces(fine: Dataset, result: Dataset, substeps: int) -> None:
    """Centres of pressure weighted with the vertical force, and the moments that are free about them."""
    force, moment = fine["ground_reaction_force"].values, fine["free_moment"].values
    point = np.nan_to_num(fine["center_of_pressure"].values)
    normal = around_frames(force[..., 2], substeps)[..., None]
    loaded = normal > 0.0
    center = around_frames(force[..., 2:] * point, substeps) / np.where(loaded, normal, 1.0)
    whole = around_frames(moment + np.cross(point, force), substeps)
    result["center_of_pressure"].values[:] = np.where(loaded, center, np.nan)
    free = whole - np.cross(center, result["ground_reaction_force"].values)
    result["free_moment"].values[:] = np.where(loaded, free, 0.0)
