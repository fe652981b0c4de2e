"""Content of a file, collected part by part: the variables of a recording with their labels, attributes and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from borelli.numerics.vectors import Array
from borelli.recording.formats.grf_columns import add_threshold, extract_plates, find_plates
from borelli.recording.recording import Note, Recording, make_dataset
from borelli.recording.time_stamps import Times
from borelli.recording.units_and_axes import Conversion, FrameOptions, infer_conversion


class Content:
    """Data of a file; `frame` has the unit and axes specified by the user."""

    def __init__(self, frame: FrameOptions) -> None:
        self.frame = frame
        self.variables: dict[str, Any] = {}
        self.labels: dict[str, Any] = {}
        self.attributes: dict[str, Any] = {}
        self.notes: list[Note] = []
        self.rate: float | None = None
        self.analog_rate: float | None = None
        self.subject: dict[str, str | float] = {}
        self.metadata: dict[str, Any] = {}

    def add_markers(self, names: Sequence[str], points: Array, stated: str | None = None, **defaults: str) -> None:
        """Add markers (frames, markers, 3) in the unit and axes of the file, which are inferred; zeros are missing."""
        zero = (points == 0.0).all(axis=2)
        points = np.where(zero[..., None], np.nan, points)
        converted, notes = infer_conversion(stated, None, points, names, **self.frame, **defaults)  # type: ignore[arg-type]
        self.variables["marker_position"] = converted.apply(points)
        self.labels["marker"] = list(names)
        self._add_conversion(converted, notes)
        self.notes += Note.zeros(zero.sum(axis=0), names)

    def add_events(self, times: Iterable[float], labels: Sequence[str], contexts: Sequence[str]) -> None:
        """Add events with their times [s]."""
        self.variables["event_time"] = list(times)
        self.labels |= {"event_label": labels, "event_context": contexts, "event": range(len(labels))}

    def set_times(self, times: Times) -> None:
        """Set the times of the frames, which are also those of the plates."""
        self.rate = self.analog_rate = times.rate
        self.labels |= {"time": times.times, "analog_time": times.times}
        self.notes += times.notes

    def recording(self, path: Path, kind: str) -> Recording:
        """Return the recording of a file in this format."""
        data = make_dataset(
            self.variables, self.labels, rate=self.rate, analog_rate=self.analog_rate, **self.attributes
        )
        return Recording(
            add_threshold(data), path.stem, str(path), kind, self.subject, self.metadata, tuple(self.notes)
        )

    def _add_conversion(self, converted: Conversion, notes: Iterable[Note]) -> None:
        self.attributes = converted.attributes
        self.notes += notes


class TableContent(Content):
    """Content of a table, whose columns are assigned to variables one kind after the other.

    `free` are the columns that are not assigned yet.
    """

    def __init__(self, names: Sequence[str], values: Array, frame: FrameOptions) -> None:
        super().__init__(frame)
        self.names, self.values = list(names), values
        self.free = [True] * len(self.names)

    def add_plates(self) -> None:
        """Add the force plates described by columns such as `ground_force_vx`."""
        columns = find_plates(self.names)
        if columns:
            self.take(i for plate in columns.values() for triple in plate[:3] for i in triple or ())
            plates = extract_plates(columns, self.values, **self.frame)
            self.variables |= plates.variables
            self.labels["plate"] = list(columns)
            self._add_conversion(plates.conversion, plates.notes)

    def add_marker_columns(self, columns: dict[str, list[int]], stated: str | None = None, **defaults: str) -> None:
        """Add markers from the indices of their columns x, y, z."""
        if columns:
            indices = [i for triple in columns.values() for i in triple]
            self.take(indices)
            points = self.values[:, indices].reshape(len(self.values), len(columns), 3)
            self.add_markers(list(columns), points, stated, **defaults)

    def add_rest(self, units: Sequence[str]) -> None:
        """Add the remaining columns as they are, given the unit of every column."""
        rest = [i for i, free in enumerate(self.free) if free]
        if rest:
            self.variables["column_value"] = self.values[:, rest]
            self.labels |= {"column": [self.names[i] for i in rest], "column_units": [units[i] for i in rest]}

    def take(self, columns: Iterable[int]) -> None:
        """Mark columns as assigned."""
        for column in columns:
            self.free[column] = False
