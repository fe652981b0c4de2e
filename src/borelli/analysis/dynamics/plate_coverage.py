"""Plate coverage: the frames in which the force plates record the full ground reaction force, and the mass they weigh.

By Newton's law the ground must supply m (g + a) of the center of mass. Where the plates, low-pass filtered like the
motion, supply much less for longer than an impact lasts, something else supports the body: a foot off the plates, a
box, a handrail. Such spans are extended to where the deficit begins and ends. In all other frames the GRF is
*complete*, and only there can predicted forces be compared with measured ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import MAX_EXTRAPOLATION, Loads
from borelli.analysis.motion import Motion
from borelli.analysis.strides import Stride, find_strides
from borelli.model.model import Model
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

Mask = NDArray[np.bool_]

MIN_DEFICIT = 0.25
"""Fraction of the weight that plates must lack for a span to be incomplete; complete frames err by 0.02 to 0.1."""
DEFICIT_EDGE = 0.05
"""Fraction of the weight at which such a span begins and ends."""
MIN_DEFICIT_DURATION = 0.06
"""[s] Shorter spans are impacts, which a low-pass filtered motion does not show."""
MASS_RATIO_RANGE = (0.7, 1.4)
"""Ratios of the subject's mass to the model's that are considered."""
MASS_TOLERANCE = 0.03
"""Fraction by which the plates' mass may differ from the model's before a note reports it."""
MIN_WEIGHING_TIME = 0.4
"""[s] Least time over which plates weigh a body: half a stride."""


@dataclass(frozen=True)
class PlateCoverage:
    """Frames with the full ground reaction force on plates."""

    grf_complete: Mask
    """(frames,) whether the plates record all of the ground reaction force."""
    plate_mass: float
    """Mass that the plates weigh [kg]; NaN if the GRF was complete for too short a time."""
    duration: float
    """Time over which they weighed it [s]."""
    whole_strides: bool
    """Whether that was a whole number of strides."""

    def notes(self, mass: float, filled: str | None = None) -> tuple[Note, ...]:
        """Return notes on incomplete frames and on the mass [kg]; `filled` describes the predicted steps."""
        result = []
        if not self.grf_complete.all():
            percent = 100.0 * float(self.grf_complete.mean())
            text = f"The plates record the full ground reaction force in {percent:.0f} % of frames. "
            if filled is None:
                text += "Do not use leg torques in the others."
                result.append(Note(text, "problem", "use frames with grf_complete", code="grf_incomplete"))
            else:
                text += f"In the others the forces of {filled} are predicted from the motion."
                result.append(Note(text, "problem", "grf_source lists them by frame and foot", code="grf_predicted"))
        if abs(self.plate_mass / mass - 1.0) > MASS_TOLERANCE:
            over = "whole strides" if self.whole_strides else f"{self.duration:.2f} s"
            text = f"The plates weigh {self.plate_mass:.1f} kg over {over}, but the model's mass is {mass:.1f} kg."
            result.append(Note(text, "problem", f"--mass {self.plate_mass:.1f}", code="plate_mass"))
        return tuple(result)


def find_plate_coverage(
    motion: Motion, time: Array, needed: Array, loads: Loads, cutoff: float | None
) -> PlateCoverage:
    """Return the frames with complete GRF, and the mass that the plates weigh.

    `needed` (frames,) is the vertical force m (g + a) that supports the body [N]. Plates are filtered at the motion's
    `cutoff` [Hz]; at 6 Hz if it is None.
    """
    supplied, recorded = supplied_force(loads, time, cutoff)
    return weigh_coverage(motion.model, find_strides(motion, time), time, needed, supplied, recorded)


def supplied_force(loads: Loads, time: Array, cutoff: float | None) -> tuple[Array, Mask]:
    """Return the vertical force (frames,) [N] of plates, filtered as the motion, and the frames that they recorded."""
    needed = CUTOFF if cutoff is None else cutoff
    is_filtered = loads.cutoff is not None and loads.cutoff <= needed
    filtered = loads if is_filtered or not needed < 0.5 * loads.rate else loads.smoothed(needed)
    supplied = filtered.at(time).force[..., 2].sum(axis=1)
    recorded = (time >= loads.time[0] - MAX_EXTRAPOLATION) & (time <= loads.time[-1] + MAX_EXTRAPOLATION)
    return supplied, recorded


def weigh_coverage(
    model: Model, strides: tuple[Stride, ...], time: Array, needed: Array, supplied: Array, recorded: Mask
) -> PlateCoverage:
    """Return the plate coverage from the vertical force (frames,) that is needed and that plates supplied [N]."""
    gravity = float(np.linalg.norm(model.gravity))
    # a model whose mass differs from the subject's would show a deficit or a surplus everywhere
    scale = _mass_ratio(needed[recorded], supplied[recorded], model.mass * gravity)
    complete, weighed = recorded, (float("nan"), 0.0, False)
    for _ in range(2):
        deficit = (scale * needed - supplied) / (scale * model.mass * gravity)
        complete = recorded & ~sustained_deficit(deficit, time)
        weighed = _weigh(strides, time, complete, needed / (model.mass * gravity), supplied, gravity)
        if not weighed[0] > 0.0:
            break
        scale = weighed[0] / model.mass
    return PlateCoverage(complete, *weighed)


def write_plate_coverage(data: Dataset, coverage: PlateCoverage) -> None:
    """Write `grf_complete` and the mass that plates weigh into the dataset of torques."""
    data["grf_complete"] = (("time",), coverage.grf_complete, {"units": "1"})
    data.attrs["plate_mass_kg"] = coverage.plate_mass
    data.attrs["weighed_s"] = coverage.duration
    data.attrs["weighed_strides"] = int(coverage.whole_strides)


def _mass_ratio(needed: Array, supplied: Array, weight: Array | float) -> float:
    """Return the ratio of supplied to needed force that most frames have within 5 %; 1 if no ratio is frequent."""
    loaded = needed > 0.5 * weight
    ratio = supplied[loaded] / needed[loaded]
    candidates = np.linspace(*MASS_RATIO_RANGE, 61)
    count = (np.abs(ratio[:, None] / candidates - 1.0) < 0.05).sum(axis=0)
    if count.max(initial=0) < 0.1 * len(needed):
        return 1.0
    return float(candidates[count == count.max()].mean())


def sustained_deficit(deficit: Array, time: Array) -> Mask:
    """Return the frames of spans with a large, lasting deficit (fraction of weight), extended to where it is small."""
    result = np.zeros(len(deficit), bool)
    step = (time[-1] - time[0]) / max(len(time) - 1, 1)  # a frame lasts until the next
    for start, end in find_runs(deficit > DEFICIT_EDGE):
        deep = find_runs(deficit[start:end] > MIN_DEFICIT)
        # of a span cut off by the recording only a part is visible
        duration = 0.5 * MIN_DEFICIT_DURATION if start == 0 or end == len(deficit) else MIN_DEFICIT_DURATION
        if any(time[start + b - 1] - time[start + a] + step >= duration for a, b in deep):
            result[start:end] = True
    return result


def _weigh(
    strides: tuple[Stride, ...], time: Array, complete: Mask, needed: Array, supplied: Array, gravity: float
) -> tuple[float, float, bool]:
    """Return the mass [kg] by mean force, the time it was weighed [s], and whether over whole strides.

    `needed` is (g + a) / g, so that a gain of momentum does not count as weight.
    """
    best: tuple[float, int, int, bool] | None = None
    for start, end in find_runs(complete):
        inside = [s for s in strides if s.start >= time[start] - 1e-6 and s.end <= time[end - 1] + 1e-6]
        a, b, whole = start, end, False
        for side in ("right", "left"):
            own = [s for s in inside if s.side == side]
            if own:
                first, last = np.searchsorted(time, (own[0].start, own[-1].end + 1e-9))
                if not whole or last - first > b - a:
                    a, b, whole = int(first), int(last), True
        length = float(time[b - 1] - time[a])
        if length >= MIN_WEIGHING_TIME and (best is None or (whole, length) > (best[3], best[0])):
            best = (length, a, b, whole)
    if best is None:
        return float("nan"), 0.0, False
    length, a, b, whole = best
    return float(supplied[a:b].mean() / (needed[a:b].mean() * gravity)), length, whole
