"""Agreement of ground reaction forces predicted from the motion with those that plates measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.numerics.series_extension import mask_inner_frames
from borelli.recording.recording import MIN_PLATE_FORCE

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

MIN_COP_FORCE = 0.2
"""Vertical force, as a fraction of body weight, below which centers of pressure are not compared."""


class Agreement(NamedTuple):
    """Agreement of predicted and measured forces of one foot over its measured stance.

    Forces are in % of body weight, centers of pressure in mm. Forward and sideways are relative to the feet: see
    `foot_direction`.
    """

    foot: str
    vertical_rms: float
    vertical_r: float
    forward_rms: float
    sideways_rms: float
    center_forward: float
    center_sideways: float
    frames: int


def foot_direction(predicted: Dataset) -> Array:
    """Return the mean horizontal direction of the feet from heel to toe, also defined on a treadmill and at rest."""
    position = predicted["sole_position"]
    toe, heel = (
        position.isel(sole=[str(name).endswith(end) for name in position["sole"].values])
        for end in ("toe", "heel_medial")
    )
    x, y = (toe.mean("sole") - heel.mean("sole")).sum("time").values[:2]
    return np.array([x, y, 0.0]) / np.hypot(x, y)


def compare_feet(measured: Dataset, predicted: Dataset, weight: float, *, ends: bool = False) -> tuple[Agreement, ...]:
    """Compare the forces of each foot in frames with complete ground reaction force on plates.

    Args:
        measured: `ground_reaction_force`, `center_of_pressure` and `grf_complete` of the plates; `grf_source` where
            predicted forces complete them.
        predicted: The same from the motion alone at the same times, and `sole_position`: see `predict_grf`.
        weight: Body weight [N].
        ends: Include the ends of the motion, where predicted forces depend on its extension.

    Returns:
        Agreement of each foot with at least three frames.
    """
    complete, ahead, results = measured["grf_complete"].values, foot_direction(predicted), []
    if not ends:
        complete = complete & mask_inner_frames(measured["time"].values)
    axes = np.stack([ahead, (-ahead[1], ahead[0], 0.0), (0.0, 0.0, 1.0)], axis=1)
    for foot in sorted(set(map(str, predicted["foot"].values)) & set(map(str, measured["foot"].values)), reverse=True):
        model, plate = (data["ground_reaction_force"].sel(foot=foot).values for data in (predicted, measured))
        stance = complete & (plate[:, 2] >= MIN_PLATE_FORCE)
        if "grf_source" in measured:  # predicted forces would be compared with themselves
            stance &= measured["grf_source"].sel(foot=foot).values == "plate"
        if stance.sum() < 3:
            continue
        error = 100.0 * (model - plate)[stance] @ axes / weight
        centers = [data["center_of_pressure"].sel(foot=foot).values for data in (predicted, measured)]
        loaded = stance & (plate[:, 2] >= MIN_COP_FORCE * weight) & (model[:, 2] >= MIN_COP_FORCE * weight)
        offset = 1e3 * (centers[0] - centers[1])[loaded]
        offset = offset[np.isfinite(offset).all(axis=1)] @ axes
        rms = np.sqrt((error**2).mean(axis=0))
        cop = np.sqrt((offset**2).mean(axis=0)) if len(offset) else np.full(3, np.nan)
        vertical = model[stance, 2], plate[stance, 2]
        # a constant force has no correlation
        r = float(np.corrcoef(*vertical)[0, 1]) if all(np.ptp(force) > 0.0 for force in vertical) else np.nan
        results.append(
            Agreement(foot, float(rms[2]), r, float(rms[0]), float(rms[1]), float(cop[0]), float(cop[1]), len(error))
        )
    return tuple(results)
