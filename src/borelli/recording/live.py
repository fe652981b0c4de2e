"""Live markers: frames as they arrive, from a file played in real time or from any source with this interface.

A source names its markers once and then yields frames. A network source waits for its next packet where `FileSource`
waits for the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from borelli.errors import SettingsError
from borelli.numerics.vectors import Array
from borelli.recording.recording import Recording


class LiveFrame(NamedTuple):
    """Frame with its time [s] and marker positions (markers, 3) [m] in lab axes, NaN where missing."""

    time: float
    markers: Array
    received: float
    """Time of arrival by `time.perf_counter` [s]."""


class LiveSource(Protocol):
    """Interface of a source of marker frames."""

    @property
    def markers(self) -> tuple[str, ...]:
        """Names of the markers, in the order of every frame."""

    @property
    def rate(self) -> float:
        """Nominal frame rate [Hz]."""

    def frames(self) -> Iterator[LiveFrame]:
        """Yield each frame as soon as it arrives, until the source ends."""


class FileSource:
    """Recording played in real time.

    Frames that are due while the receiver is busy are dropped, as with a camera; `dropped` counts them.
    """

    def __init__(
        self, recording: Recording, *, speed: float = 1.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Play a recording at `speed` times real time; at infinite speed no frame is dropped."""
        if not speed > 0.0:
            raise SettingsError(f"speed: {speed} is not positive.")
        self._data = recording.data["marker_position"].values
        self._time = recording.data["time"].values
        self._speed, self._sleep = speed, sleep
        self.markers = recording.markers
        self.rate = recording.rate
        self.dropped = 0

    def frames(self) -> Iterator[LiveFrame]:
        """Yield each frame when it is due."""
        begun = time.perf_counter()
        last = len(self._time) - 1
        for i, stamp in enumerate(self._time):
            now = time.perf_counter()
            if np.isfinite(self._speed):
                due = begun + (stamp - self._time[0]) / self._speed
                if i < last and now > due + 1.0 / (self.rate * self._speed):
                    self.dropped += 1
                    continue
                if now < due:
                    self._sleep(due - now)
                now = time.perf_counter()
            yield LiveFrame(float(stamp), self._data[i], now)
