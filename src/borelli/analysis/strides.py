"""Strides: from one foot strike to the next of the same foot."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import Motion
from borelli.recording.forces.gait_events import STRIKE, add_events, gait_events, standardize_event
from borelli.recording.recording import Event, Recording

MAX_STRIDE_TIME = 2.5
"""Strikes of one foot farther apart [s] have a pause or a missed strike between them."""


class Stride(NamedTuple):
    """From start to stop [s] of one foot, "right" or "left"."""

    side: str
    start: float
    stop: float


def find_strides(motion: Motion, time: NDArray[np.float64]) -> tuple[Stride, ...]:
    """The whole strides within these times [s], in order; empty where the recording shows none."""
    if motion.recording is None or not len(time):
        return ()
    strikes = [event for event in _events(motion.recording) if event.label == STRIKE]
    found = []
    for side in ("Right", "Left"):
        times = sorted(event.time for event in strikes if event.context == side)
        found += [
            Stride(side.lower(), a, b)
            for a, b in pairwise(times)
            if b - a <= MAX_STRIDE_TIME and a >= time[0] - 1e-6 and b <= time[-1] + 1e-6
        ]
    return tuple(sorted(found, key=lambda stride: stride.start))


def with_gait_events(recording: Recording) -> Recording:
    """The recording with its gait events stated: strides then stay where they are when its markers are changed."""
    stated = any(standardize_event(event) for event in recording.events)
    return recording if stated else add_events(recording)


def _events(recording: Recording) -> list[Event]:
    """The recording's own gait events, or those its plates and markers show."""
    own = [named for event in recording.events if (named := standardize_event(event))]
    return own or list(gait_events(recording))
