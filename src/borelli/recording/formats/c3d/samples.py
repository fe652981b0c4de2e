"""The samples of a C3D file: frames of points and channels, converted in pieces so that no second copy is ever held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from borelli.errors import FileFormatError
from borelli.recording.formats.c3d.labels import Points
from borelli.recording.formats.c3d.layout import WORDS_OF_POINT, Layout
from borelli.recording.formats.c3d.parameters import floats, integers
from borelli.recording.recording import Note
from borelli.recording.units_and_axes import Conversion

PIECE = 4 * 1024 * 1024
"""Bytes of samples that are converted at once."""
SAMPLE = 200
"""Frames looked at to infer units and axes."""
POINTS_AT_A_GLANCE = 1_000_000
"""Positions looked at for that, at most."""
LARGEST_WORD = 65535.0
"""Fourth numbers of points beyond 16 bits hold no residual."""

Array = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Analog:
    """How the analog channels are called and scaled."""

    names: list[str]
    descriptions: list[str]
    units: list[str]
    scale: Doubles
    offset: Doubles
    unsigned: bool


class Samples:
    """The samples of an open file."""

    def __init__(self, file: BinaryIO, layout: Layout, processor: str, analog: Analog, path: Path) -> None:
        self.file = file
        self.layout = layout
        self.processor = processor
        self.analog = analog
        self.path = path
        self.notes: list[Note] = []

    def glance(self, chosen: npt.NDArray[np.intp]) -> Doubles:
        """Positions of chosen points in a few frames, in the file's own unit."""
        count = max(2, min(SAMPLE, POINTS_AT_A_GLANCE // max(1, self.layout.points)))
        frames = np.unique(np.linspace(0, self.layout.frames - 1, count).astype(int))
        four = np.concatenate([self._points(self._piece(int(frame), 1)) for frame in frames])[:, chosen]
        places = four[..., :3].astype(np.float64) * (1.0 if self.layout.real else self.layout.scale)
        places[self._unseen(four)] = np.nan
        return places

    def read(self, points: Points, turned: Conversion, *, single: bool) -> dict[str, Array]:
        """Markers [m] and residuals [m] in the lab, other quantities and analog samples as they are.

        Args:
            points: Which points are markers.
            turned: From the file's unit and axes to the lab's.
            single: Keeps single precision.
        """
        layout = self.layout
        kind = np.float32 if single else np.float64
        markers = np.empty((layout.frames, len(points.markers), 3), kind)
        residual = np.empty(markers.shape[:2], np.float32)
        quantities = np.empty((layout.frames, len(points.quantities), 3))
        analog = np.empty((layout.frames * layout.samples, layout.channels), kind)
        unit = 1.0 if layout.real else layout.scale
        everything = slice(None) if not len(points.quantities) else points.markers
        absurd = 0
        for start, piece in self._pieces():
            rows = slice(start, start + len(piece))
            four = self._points(piece)
            gone = self._unseen(four)
            absurd += int((gone & (four[..., 3] >= 0)).sum())
            chosen, missing = four[:, everything], gone[:, everything]
            _place(chosen[..., :3], unit * turned.scale * turned.rotation, markers[rows])
            markers[rows][missing] = np.nan
            low_byte = np.where(missing | (chosen[..., 3] > LARGEST_WORD), 0, chosen[..., 3]).astype(np.int32) & 0xFF
            residual[rows] = low_byte * (layout.scale * turned.scale)
            residual[rows][missing] = np.nan
            if len(points.quantities):
                quantities[rows] = four[:, points.quantities, :3] * np.float64(unit)
                quantities[rows][gone[:, points.quantities]] = np.nan
            if layout.channels:
                analog[layout.samples * rows.start : layout.samples * rows.stop] = self._channels(piece)
        self._note_absurd(absurd, analog)
        return {"marker_position": markers, "marker_residual": residual, "model_output": quantities, "analog": analog}

    def _pieces(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        rows = max(1, PIECE // self.layout.frame_bytes)
        for start in range(0, self.layout.frames, rows):
            yield start, self._piece(start, min(rows, self.layout.frames - start))

    def _piece(self, start: int, count: int) -> npt.NDArray[Any]:
        """So many frames from this one, shape (frames, numbers of a frame)."""
        layout = self.layout
        self.file.seek(layout.start + start * layout.frame_bytes)
        raw = self.file.read(count * layout.frame_bytes)
        if len(raw) < count * layout.frame_bytes:
            raise FileFormatError(self.path, f"the file ended within frame {start + count} while it was being read")
        numbers = (floats if layout.real else integers)(raw, self.processor)
        return numbers.astype(numbers.dtype.newbyteorder("="), copy=False).reshape(count, layout.words)

    def _points(self, piece: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The four numbers of each point: x, y, z, and a word with the residual in its low byte, negative if unseen."""
        words = WORDS_OF_POINT * self.layout.points
        return piece[:, :words].reshape(len(piece), self.layout.points, WORDS_OF_POINT)

    def _unseen(self, four: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which points the file calls missing, or gives no finite position."""
        unseen = ~(four[..., 3] >= 0)
        if self.layout.real:
            for axis in range(3):
                unseen |= ~np.isfinite(four[..., axis])
        return unseen

    def _channels(self, piece: npt.NDArray[Any]) -> Doubles:
        """Scaled analog samples of some frames, shape (samples, channels)."""
        raw = piece[:, WORDS_OF_POINT * self.layout.points :].reshape(-1, self.layout.channels)
        values = raw.astype(np.float64)
        if self.analog.unsigned:
            values[values < 0.0] += 65536.0
        return (values - self.analog.offset) * self.analog.scale

    def _note_absurd(self, points: int, analog: Array) -> None:
        if points:
            said = f"{points} positions that the file calls valid are no finite numbers; they are taken as missing"
            self.notes.append(Note(said, "problem"))
        broken = ~np.isfinite(analog)
        if broken.any():
            analog[broken] = np.nan
            said = f"{np.count_nonzero(broken)} analog samples are no finite numbers; they are taken as not measured"
            self.notes.append(Note(said, "problem"))


def _place(points: npt.NDArray[Any], matrix: Doubles, out: Array) -> None:
    """Puts the points, turned and scaled by the matrix, into `out`; one product each where axes only change places."""
    for i, row in enumerate(matrix):
        axes = np.flatnonzero(row)
        if len(axes) == 1:
            np.multiply(points[..., axes[0]], row[axes[0]], out=out[..., i], dtype=out.dtype)
        else:
            out[..., i] = points.astype(np.float64) @ row
