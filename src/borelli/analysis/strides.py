"""Strides, from one foot strike to the next of the same foot, and spatiotemporal parameters of gait."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from borelli.analysis.motion import Motion
from borelli.numerics.vectors import Array
from borelli.recording.forces.gait_events import (
    OFF,
    STRIKE,
    add_events,
    events_from_plates,
    gait_events,
    standardize_event,
)
from borelli.recording.landmarks import find_landmarks, mean_position
from borelli.recording.recording import Event, Recording

if TYPE_CHECKING:
    from xarray import Dataset

SIDES = ("right", "left")
MAX_STRIDE_TIME = 2.5
"""[s] Strikes of one foot farther apart have a pause or a missed strike between them."""
TIME_TOLERANCE = 1e-6
"""[s] Rounding of event times."""
MIN_STEP_FRACTION = 0.15
"""Least fraction of a stride that a step takes; strikes closer to its ends are those of both feet together, as in a
jump. Half of it is normal; the shorter step of hemiparetic gait takes 0.3 to 0.4."""
MAX_STRIKE_INTERVAL = 0.1
"""[s] Strikes of both feet this close are those of a jump; a step of running takes more than twice as long."""


class Stride(NamedTuple):
    """Stride of one foot, "right" or "left", from start to end [s]."""

    side: str
    start: float
    end: float


class Statistic(NamedTuple):
    """Mean and standard deviation of a value over strides, NaN if there are too few, and their number."""

    mean: float
    sd: float
    strides: int


PARAMETERS = {
    "stride_time": "s", "step_time": "s", "stride_length": "m", "step_length": "m", "step_width": "m",
    "cadence": "steps/min", "speed": "m/s", "stance": "%", "swing": "%", "double_support": "%",
}  # fmt: skip
"""Units of the spatiotemporal parameters."""


def find_strides(motion: Motion, time: Array | None = None) -> tuple[Stride, ...]:
    """Return the whole strides of a motion, in order of time.

    Spans between landings on both feet are not strides.

    Args:
        motion: A motion with a recording, whose gait events, plates or markers show foot strikes.
        time: Times [s] within which strides must lie. Default: the frames of the motion.

    Returns:
        The strides; empty if the recording shows none.
    """
    time = np.asarray(motion.data["time"].values, dtype=float) if time is None else time
    if motion.recording is None or not len(time):
        return ()
    events = _events(motion.recording)
    right, left = (np.array(_times(events, STRIKE, side)) for side in SIDES)
    result = []
    for side, own, other in (("right", right, left), ("left", left, right)):
        result += [
            Stride(side, float(a), float(b))
            for a, b in pairwise(own)
            if b - a <= MAX_STRIDE_TIME
            and a >= time[0] - TIME_TOLERANCE
            and b <= time[-1] + TIME_TOLERANCE
            and _has_step((other - a) / (b - a))
        ]
    return tuple(sorted(result, key=lambda stride: stride.start))


def is_jump(motion: Motion) -> bool:
    """Return whether the feet strike the ground together, as after a jump; False if no strikes are known."""
    if motion.recording is None:
        return False
    events = _events(motion.recording)
    right, left = (np.array(_times(events, STRIKE, side)) for side in SIDES)
    if not len(right) or not len(left):
        return False
    after = np.searchsorted(left, right)
    before, after = (np.clip(at, 0, len(left) - 1) for at in (after - 1, after))
    interval = np.minimum(np.abs(right - left[before]), np.abs(right - left[after]))
    return bool(np.median(interval) < MAX_STRIKE_INTERVAL)


def motion_events(motion: Motion) -> tuple[Event, ...]:
    """Return the foot strikes and foot offs within a motion, in order of time; () without a recording."""
    time = motion.data["time"].values
    if motion.recording is None or not len(time):
        return ()
    inside = (time[0] - TIME_TOLERANCE, time[-1] + TIME_TOLERANCE)
    return tuple(sorted(one for one in _events(motion.recording) if inside[0] <= one.time <= inside[1]))


def event_source(motion: Motion) -> str:
    """Return where the gait events of a motion come from: "recording", "plates and markers", "markers" or ""."""
    if motion.recording is None:
        return ""
    if any(standardize_event(event) for event in motion.recording.events):
        return "recording"
    if "plate_force" in motion.recording.data and events_from_plates(motion.recording):
        return "plates and markers"
    return "markers" if _events(motion.recording) else ""


def spatiotemporal_parameters(
    motion: Motion, *, belt: Sequence[float] = (0.0, 0.0, 0.0), strides: Sequence[Stride] | None = None
) -> Dataset:
    """Compute the spatiotemporal parameters of every stride of a walk or run.

    Lengths are those of Huxham et al. (2006): from the horizontal positions of the heel (else ankle) markers at foot
    strike, along and across the line from one strike of a foot to its next. The step of a stride is its second half,
    from the strike of the other foot to that of its own. Means by side: `parameters_by_side`.

    Args:
        motion: A motion with a recording.
        belt: Velocity of a treadmill belt [m/s], lab axes, such as `energy.data.attrs["belt_velocity"]`.
        strides: Strides of the motion. Default: those of `find_strides`.

    Returns:
        By stride: `stride_time`, `step_time` [s], `stride_length`, `step_length`, `step_width` [m], `cadence`
        [steps/min], `speed` [m/s], and `stance`, `swing`, `double_support` [% of the stride]; with the coordinates
        `stride_side`, `stride_start` and `stride_end` [s]. NaN where an event or a marker is missing.
    """
    import xarray as xr

    strides = find_strides(motion) if strides is None else strides
    rows: list[tuple[float, ...]] = []
    if motion.recording is not None and strides:
        events = _events(motion.recording)
        heels = {side: _heel(motion.recording, side, np.asarray(belt, dtype=float)) for side in SIDES}
        clock = np.asarray(motion.recording.data["time"].values, dtype=float)
        rows = [_parameters(stride, events, heels, clock) for stride in strides]
    table = np.array(rows, dtype=float).reshape(-1, len(PARAMETERS))
    variables = {
        name: ("stride", column, {"units": unit})
        for (name, unit), column in zip(PARAMETERS.items(), table.T, strict=True)
    }
    return xr.Dataset(variables, stride_labels(strides))


def parameters_by_side(table: Dataset) -> dict[str, dict[str, Statistic]]:
    """Return mean and standard deviation of each spatiotemporal parameter over the strides of a side, and of both.

    Args:
        table: Result of `spatiotemporal_parameters`.

    Returns:
        By parameter, by "right", "left" and "both".
    """
    sides = table["stride_side"].values
    chosen = {"right": sides == "right", "left": sides == "left", "both": np.full(len(sides), True)}
    return {
        str(name): {side: statistic(table[name].values[own]) for side, own in chosen.items()}
        for name in table.data_vars
    }


def statistic(values: Array) -> Statistic:
    """Return mean and standard deviation of the known values of strides."""
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else float("nan")
    return Statistic(mean, float(known.std(ddof=1)) if len(known) > 1 else float("nan"), len(known))


def stride_labels(strides: Sequence[Stride]) -> dict[str, Any]:
    """Return the labels of a dataset's strides: number, side, start and end."""
    return {
        "stride": np.arange(len(strides)),
        "stride_side": ("stride", [stride.side for stride in strides]),
        "stride_start": ("stride", [stride.start for stride in strides], {"units": "s"}),
        "stride_end": ("stride", [stride.end for stride in strides], {"units": "s"}),
    }


def with_gait_events(recording: Recording) -> Recording:
    """Return the recording with its gait events stored, so that strides do not change with its markers."""
    stated = any(standardize_event(event) for event in recording.events)
    return recording if stated else add_events(recording)


def _parameters(stride: Stride, events: Sequence[Event], heels: dict[str, Array], clock: Array) -> tuple[float, ...]:
    """Return the parameters of one stride in the order of `PARAMETERS`."""
    own, other = stride.side, "left" if stride.side == "right" else "right"
    duration = stride.end - stride.start
    strike = _first(_times(events, STRIKE, other), stride)
    off = _first(_times(events, OFF, own), stride)

    def position(side: str, time: float) -> Array:
        return np.array([np.interp(time, clock, column, np.nan, np.nan) for column in heels[side].T])

    start, end, between = position(own, stride.start), position(own, stride.end), position(other, strike)
    line = end - start
    length = float(np.hypot(*line))
    along = line / length if length > 0.0 else np.full(2, np.nan)
    step = end - between
    stance = off - stride.start
    double = _initial_double_support(stride, events, other) + float(np.maximum(off - strike, 0.0))
    percent = 100.0 / duration
    return (
        duration, stride.end - strike, length, float(step @ along), float(abs(step[0] * along[1] - step[1] * along[0])),
        120.0 / duration, length / duration, percent * stance, 100.0 - percent * stance, percent * double,
    )  # fmt: skip


def _has_step(phase: Array) -> bool:
    """Return whether one of the other foot's strikes, in fractions of a stride, lies within it; True if unknown."""
    near = phase[(phase > -MIN_STEP_FRACTION) & (phase < 1.0 + MIN_STEP_FRACTION)]
    return not len(near) or bool(((near > MIN_STEP_FRACTION) & (near < 1.0 - MIN_STEP_FRACTION)).any())


def _initial_double_support(stride: Stride, events: Sequence[Event], other: str) -> float:
    """Return the time [s] from a strike until the other foot leaves; 0 if it is off the ground, NaN if unknown."""
    both = sorted((event for event in events if event.context.lower() == other), key=lambda event: event.time)
    before = [event for event in both if event.time <= stride.start]
    if before and before[-1].label == OFF:
        return 0.0
    after = next((event for event in both if event.time > stride.start), None)
    return after.time - stride.start if after is not None and after.label == OFF else float("nan")


def _first(times: Sequence[float], stride: Stride) -> float:
    """Return the first of these times [s] within a stride; NaN if there is none."""
    return next((time for time in times if stride.start < time < stride.end), float("nan"))


def _times(events: Sequence[Event], label: str, side: str) -> list[float]:
    return sorted(event.time for event in events if event.label == label and event.context.lower() == side)


def _heel(recording: Recording, side: str, belt: Array) -> Array:
    """Return the horizontal position (frames, 2) [m] of a heel relative to the ground; NaN where it is unknown."""
    time = np.asarray(recording.data["time"].values, dtype=float)
    labels = recording.markers if "marker_position" in recording.data else ()
    markers = find_landmarks(labels, ("heel",), side) or find_landmarks(labels, ("ankle",), side)
    if not markers:
        return np.full((len(time), 2), np.nan)
    points = mean_position(np.asarray(recording.data["marker_position"].values, dtype=float), markers)
    return np.asarray((points - np.outer(time, belt))[:, :2])


def _events(recording: Recording) -> list[Event]:
    """Return the recording's own gait events, else those found from its plates and markers."""
    own = [event for stated in recording.events if (event := standardize_event(stated))]
    return own or list(gait_events(recording))
