"""Ground forces computed from the motion against those that plates measured, where the plates tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.recording.gaps import spans
from borelli.recording.recording import LOADED

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

STANDS = 0.1
"""Part of the body's weight above which a computed force counts as standing."""
FIRM = 0.2
"""Part of the body's weight below which a centre of pressure is not compared."""
SEEN = 0.5
"""Part of a step in which its plate must carry load; otherwise the foot stood beside the plates."""


class Agreement(NamedTuple):
    """How far computed and measured forces of one foot agree over its measured stance [% of body weight, mm]."""

    foot: str
    vertical_rms: float
    vertical_r: float
    forward_rms: float
    sideways_rms: float
    center_forward: float
    center_sideways: float
    frames: int


def covered(measured: Dataset, computed: Dataset, weight: float) -> NDArray[np.bool_]:
    """(frames,) whether all that carries is on a plate: as torques tell it, else false throughout steps not seen."""
    if "covered" in measured:
        return np.asarray(measured["covered"].values, bool)
    result = np.ones(measured.sizes["time"], bool)
    for foot in map(str, measured["foot"].values):
        on_plate = measured["foot_force"].sel(foot=foot, axis="z").values >= LOADED
        stands = computed["foot_force"].sel(foot=foot, axis="z").values >= STANDS * weight
        for start, stop in spans(stands):
            if on_plate[start:stop].mean() < SEEN:
                result[start:stop] = False
    return result


def compare_feet(measured: Dataset, computed: Dataset, weight: float) -> tuple[Agreement, ...]:
    """Each foot's agreement.

    Args:
        measured: `foot_force` and `foot_center_of_pressure` by time, foot and axis, as plates gave them.
        computed: The same from the motion alone, at the same times.
        weight: Of the body [N].
    """
    told = covered(measured, computed, weight)
    found = []
    for foot in map(str, measured["foot"].values):
        ours, theirs = (data["foot_force"].sel(foot=foot).values for data in (computed, measured))
        stance = told & (theirs[:, 2] >= LOADED)
        if stance.sum() < 3:
            continue
        error = 100.0 * (ours - theirs)[stance] / weight
        place = [data["foot_center_of_pressure"].sel(foot=foot).values for data in (computed, measured)]
        firm = stance & (theirs[:, 2] >= FIRM * weight) & (ours[:, 2] >= FIRM * weight)
        off = 1e3 * (place[0] - place[1])[firm]
        off = off[np.isfinite(off).all(axis=1)]
        rms = np.sqrt((error**2).mean(axis=0))
        mid = np.sqrt((off**2).mean(axis=0)) if len(off) else np.full(3, np.nan)
        r = float(np.corrcoef(ours[stance, 2], theirs[stance, 2])[0, 1])
        found.append(
            Agreement(foot, float(rms[2]), r, float(rms[0]), float(rms[1]), float(mid[0]), float(mid[1]), len(error))
        )
    return tuple(found)
