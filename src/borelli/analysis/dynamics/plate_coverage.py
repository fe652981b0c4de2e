"""What the plates saw of a motion: the frames in which nothing else carried the body, and the weight they found.

By Newton's law the ground must carry m (g + a) of the centre of mass. Where the plates, low-passed as the motion was,
carry much less for longer than a moment, something else does: a foot beside the plates, a box, a hand-rail. Such spans
are followed outwards to where they begin and end. What is left is *covered*, and only there can computed forces be
compared with measured ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import MAX_EXTRAPOLATION, Loads
from borelli.analysis.strides import Stride, find_strides
from borelli.numerics.runs import find_runs
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

    from borelli.analysis.motion import Motion

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MIN_DEFICIT = 0.25
"""Share of the weight that plates must lack for a span to be uncovered; errors of covered frames are 0.02 to 0.1."""
DEFICIT_EDGE = 0.05
"""Share of the weight at which such a span begins and ends."""
MIN_DEFICIT_DURATION = 0.06
"""Spans that last less [s] are impacts, which a low-passed motion does not show."""
MASS_RATIO_RANGE = (0.7, 1.4)
"""Ratios of the subject's mass to the model's that are looked for."""
MASS_TOLERANCE = 0.03
"""Masses that differ by more than this share are told."""
MIN_WEIGHING_TIME = 0.4
"""Least time [s] over which plates weigh a body: half a stride."""


@dataclass(frozen=True)
class PlateCoverage:
    """What the plates carried.

    Attributes:
        covered: (frames,) whether all that carries the body is on plates.
        plate_mass: What the plates weigh [kg]; not a number where they saw too little.
        duration: For how long they weighed it [s].
        whole_strides: Whether that was a whole number of strides.
    """

    grf_complete: Mask
    plate_mass: float
    duration: float
    whole_strides: bool

    def notes(self, mass: float, filled: str | None = None) -> tuple[Note, ...]:
        """What is to be said of it, beside the model's mass [kg]; `filled` says whose forces were computed."""
        found = []
        if not self.grf_complete.all():
            share = 100.0 * float(self.grf_complete.mean())
            said = f"plates carry the whole body in {share:.0f} % of the frames; elsewhere "
            if filled is None:
                found.append(Note(said + "torques of the legs are wrong", "problem", "look at frames that are covered"))
            else:
                said += f"forces of {filled} are computed from the motion, and torques are as good as those"
                found.append(Note(said, "problem", "foot_source tells which are which"))
        if abs(self.plate_mass / mass - 1.0) > MASS_TOLERANCE:
            what = "whole strides" if self.whole_strides else f"{self.duration:.2f} s"
            said = f"plates weigh {self.plate_mass:.1f} kg over {what}, but the model {mass:.1f} kg"
            found.append(Note(said, "problem", f"give the mass: --mass {self.plate_mass:.1f}"))
        return tuple(found)


def find_plate_coverage(motion: Motion, time: Array, needed: Array, loads: Loads, cutoff: float | None) -> PlateCoverage:
    """Covered frames and the plates' weight.

    Args:
        motion: Of the model; its recording tells strides.
        time: (frames,) [s]
        needed: (frames,) m (g + a), what carries the body [N].
        loads: What was measured, at its own times.
        cutoff: Of the low-pass on the motion [Hz]; None: 6 Hz is taken for the plates.
    """
    model = motion.model
    gravity = float(np.linalg.norm(model.gravity))
    half = 0.5 * (len(loads.time) - 1) / (loads.time[-1] - loads.time[0])
    at = CUTOFF if cutoff is None else cutoff
    smooth = loads.smoothed(at) if at < half else loads
    carried = smooth.at(time).force[..., 2].sum(axis=1)
    seen = (time >= loads.time[0] - MAX_EXTRAPOLATION) & (time <= loads.time[-1] + MAX_EXTRAPOLATION)
    steps = find_strides(motion, time)
    # a model of another mass than the subject's would lack or spare the difference everywhere
    scale = _likely_scale(needed[seen], carried[seen], model.mass * gravity)
    covered, weighed = seen, (float("nan"), 0.0, False)
    for _ in range(2):
        lack = (scale * needed - carried) / (scale * model.mass * gravity)
        covered = seen & ~sustained_deficit(lack, time)
        weighed = _weigh(steps, time, covered, needed / (model.mass * gravity), carried, gravity)
        if not weighed[0] > 0.0:
            break
        scale = weighed[0] / model.mass
    return PlateCoverage(covered, *weighed)


def write_plate_coverage(data: Dataset, support: PlateCoverage) -> None:
    """Write `covered`, and the mass that plates weigh, into the torques' dataset."""
    data["grf_complete"] = (("time",), support.grf_complete, {"units": "1"})
    data.attrs["plate_mass_kg"] = support.plate_mass
    data.attrs["weighed_s"] = support.duration
    data.attrs["weighed_strides"] = int(support.whole_strides)


def _likely_scale(needed: Array, carried: Array, weight: Array | float) -> float:
    """The ratio of carried to needed force that most frames have within 5 %: that of the masses, if any are covered."""
    firm = needed > 0.5 * weight
    ratio = carried[firm] / needed[firm]
    tries = np.linspace(*MASS_RATIO_RANGE, 61)
    near = (np.abs(ratio[:, None] / tries - 1.0) < 0.05).sum(axis=0)
    if near.max(initial=0) < 0.1 * len(needed):
        return 1.0
    return float(tries[near == near.max()].mean())


def sustained_deficit(lack: Array, time: Array) -> Mask:
    """Frames of spans in which much is lacking, followed to where little is."""
    result = np.zeros(len(lack), bool)
    for start, stop in find_runs(lack > DEFICIT_EDGE):
        deep = find_runs(lack[start:stop] > MIN_DEFICIT)
        # of a span that the recording cuts off only a part is seen
        enough = 0.5 * MIN_DEFICIT_DURATION if start == 0 or stop == len(lack) else MIN_DEFICIT_DURATION
        if any(time[start + b - 1] - time[start + a] >= enough for a, b in deep):
            result[start:stop] = True
    return result


def _weigh(
    steps: tuple[Stride, ...], time: Array, covered: Mask, needed: Array, carried: Array, gravity: float
) -> tuple[float, float, bool]:
    """Mass [kg] by mean force, how long it was weighed [s], and whether over whole strides.

    `needed` is (g + a) / g, so that what the body's momentum gained does not count as weight.
    """
    best: tuple[float, int, int, bool] | None = None
    for start, stop in find_runs(covered):
        inside = [s for s in steps if s.start >= time[start] - 1e-6 and s.stop <= time[stop - 1] + 1e-6]
        a, b, whole = start, stop, False
        for side in ("right", "left"):
            own = [s for s in inside if s.side == side]
            if own:
                first, last = np.searchsorted(time, (own[0].start, own[-1].stop + 1e-9))
                if not whole or last - first > b - a:
                    a, b, whole = int(first), int(last), True
        length = float(time[b - 1] - time[a])
        if length >= MIN_WEIGHING_TIME and (best is None or (whole, length) > (best[3], best[0])):
            best = (length, a, b, whole)
    if best is None:
        return float("nan"), 0.0, False
    length, a, b, whole = best
    return float(carried[a:b].mean() / (needed[a:b].mean() * gravity)), length, whole
