"""Live markers: frames as they come, from a file played at its own pace or from whatever else has this interface.

A source names its markers once and then gives frames one by one. A network source would wait for its next packet where
`FileSource` waits for the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError
from borelli.recording.recording import Recording

Array = NDArray[np.float64]


class LiveFrame(NamedTuple):
    """One frame: when it was taken [s], where the markers were (markers, 3) [m], lab axes; not a number: not seen."""

    time: float
    markers: Array
    arrived: float
    """When it came, by `time.perf_counter` [s]."""


class LiveSource(Protocol):
    """Anything that gives marker frames as they are taken."""

    @property
    def markers(self) -> tuple[str, ...]:
        """Names of the markers, in the order of every frame."""

    @property
    def rate(self) -> float:
        """Frames per second that are meant to come [Hz]."""

    def frames(self) -> Iterator[LiveFrame]:
        """The frames, each as soon as it is there; the iterator ends when the source does."""


class FileSource:
    """A recording played as if it were taken now.

    Frames that are due while the receiver is still busy are left out, for a camera would not wait; `left_out` counts.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        speed: float = 1.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Play a recording at `speed` times real time; infinite: as fast as frames are taken, none left out."""
        if not speed > 0.0:
            raise SettingsError(f"the speed of a replay is {speed}; it must be larger than 0")
        self._data = recording.data["marker_position"].values
        self._time = recording.data["time"].values
        self._speed, self._sleep = speed, sleep
        self.markers = recording.markers
        self.rate = recording.rate
        self.left_out = 0

    def frames(self) -> Iterator[LiveFrame]:
        """The frames, each when it is due."""
        begun = time.perf_counter()
        last = len(self._time) - 1
        for i, stamp in enumerate(self._time):
            now = time.perf_counter()
            if np.isfinite(self._speed):
                due = begun + (stamp - self._time[0]) / self._speed
                if i < last and now > due + 1.0 / (self.rate * self._speed):
                    self.left_out += 1
                    continue
                if now < due:
                    self._sleep(due - now)
                now = time.perf_counter()
            yield LiveFrame(float(stamp), self._data[i], now)
