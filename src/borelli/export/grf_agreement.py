"""Ground forces computed from the motion against those that plates measured, where the plates tell."""

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
"""Part of the body's weight below which a centre of pressure is not compared."""


class Agreement(NamedTuple):
    """How far computed and measured forces of one foot agree over its measured stance [% of body weight, mm].

    Forward and sideways are the feet's own: see `forward`.
    """

    foot: str
    vertical_rms: float
    vertical_r: float
    forward_rms: float
    sideways_rms: float
    center_forward: float
    center_sideways: float
    frames: int


def foot_direction(computed: Dataset) -> Array:
    """The way the feet point on the ground, heel to toe, over all frames: on a treadmill and at rest too."""
    place = computed["sole_position"]
    ends = [
        place.isel(sole=[str(name).endswith(end) for name in place["sole"].values]) for end in ("toe", "heel_medial")
    ]
    x, y = (ends[0].mean("sole") - ends[1].mean("sole")).sum("time").values[:2]
    return np.array([x, y, 0.0]) / np.hypot(x, y)


def compare_feet(measured: Dataset, computed: Dataset, weight: float, *, ends: bool = False) -> tuple[Agreement, ...]:
    """Each foot's agreement, where plates carry the whole body and the motion is known on both sides.

    Args:
        measured: `foot_force` and `foot_center_of_pressure` by time, foot and axis, as plates gave them, and `covered`;
            where computed forces fill in for plates, `foot_source`.
        computed: The same from the motion alone, at the same times, and `sole_position`: see `ground_forces`.
        weight: Of the body [N].
        ends: Whether the ends of the motion count, where forces depend on its extension.
    """
    told, ahead, found = measured["grf_complete"].values, foot_direction(computed), []
    if not ends:
        told = told & mask_inner_frames(measured["time"].values)
    axes = np.stack([ahead, (-ahead[1], ahead[0], 0.0), (0.0, 0.0, 1.0)], axis=1)
    for foot in map(str, measured["foot"].values):
        ours, theirs = (data["ground_reaction_force"].sel(foot=foot).values for data in (computed, measured))
        stance = told & (theirs[:, 2] >= MIN_PLATE_FORCE)
        if "foot_source" in measured:  # what was computed would be held against itself
            stance &= measured["grf_source"].sel(foot=foot).values == "plate"
        if stance.sum() < 3:
            continue
        error = 100.0 * (ours - theirs)[stance] @ axes / weight
        place = [data["center_of_pressure"].sel(foot=foot).values for data in (computed, measured)]
        firm = stance & (theirs[:, 2] >= MIN_COP_FORCE * weight) & (ours[:, 2] >= MIN_COP_FORCE * weight)
        off = 1e3 * (place[0] - place[1])[firm]
        off = off[np.isfinite(off).all(axis=1)] @ axes
        rms = np.sqrt((error**2).mean(axis=0))
        mid = np.sqrt((off**2).mean(axis=0)) if len(off) else np.full(3, np.nan)
        r = float(np.corrcoef(ours[stance, 2], theirs[stance, 2])[0, 1])
        found.append(
            Agreement(foot, float(rms[2]), r, float(rms[0]), float(rms[1]), float(mid[0]), float(mid[1]), len(error))
        )
    return tuple(found)
