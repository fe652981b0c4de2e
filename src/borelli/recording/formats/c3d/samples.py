"""Samples of a C3D file: frames of points and channels, converted in chunks to bound memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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

CHUNK_BYTES = 4 * 1024 * 1024
"""Bytes of samples converted at once."""
MAX_SAMPLED_FRAMES = 200
"""Frames used to infer units and axes."""
MAX_SAMPLED_POINTS = 1_000_000
"""Positions used to infer units and axes."""
MAX_WORD = 65535.0
"""Fourth numbers of points beyond 16 bits contain no marker residual."""

Array = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Analog:
    """Names and scales of the analog channels."""

    names: list[str]
    descriptions: list[str]
    units: list[str]
    scale: Doubles
    offset: Doubles
    """Offsets of signed samples."""
    unsigned_offset: Doubles
    """The same bits as unsigned numbers, for samples from 0 to 65535."""
    unsigned: bool = False


@dataclass
class Samples:
    """Samples of an open file."""

    file: BinaryIO
    layout: Layout
    processor: str
    analog: Analog
    path: Path
    notes: list[Note] = field(default_factory=list)

    def infer_sign(self, stated: str) -> None:
        """Decide whether offsets and integer samples are unsigned: as stated by ANALOG:FORMAT, else by their distance.

        Samples vary about their offset, and not at a distance of 65,536 from it.
        """
        stated = stated.strip().upper()
        if stated in ("SIGNED", "UNSIGNED"):
            self.analog = replace(self.analog, unsigned=stated == "UNSIGNED")
            return
        wide = np.flatnonzero(self.analog.offset != self.analog.unsigned_offset)
        if not len(wide) or not self.layout.frames:
            return
        distances = []
        for unsigned in (False, True):
            self.analog = replace(self.analog, unsigned=unsigned)
            counts = np.concatenate([self._counts(self._piece(frame, 1))[:, wide] for frame in self._sampled_frames()])
            finite = np.abs(counts[np.isfinite(counts)])
            distances.append(float(np.median(finite)) if len(finite) else 0.0)
        signed_distance, unsigned_distance = distances
        self.analog = replace(self.analog, unsigned=unsigned_distance < 0.5 * signed_distance)
        if self.analog.unsigned:
            text = (
                f"ANALOG:OFFSET of {len(wide)} channels is read as unsigned: the samples are {unsigned_distance:.0f} "
                f"from it, and {signed_distance:.0f} from the signed number. ANALOG:FORMAT does not state which it is."
            )
            self.notes.append(Note(text, "inferred", code="analog_offset"))

    def _sampled_frames(self) -> list[int]:
        count = max(2, min(MAX_SAMPLED_FRAMES, MAX_SAMPLED_POINTS // max(1, self.layout.points)))
        return [int(f) for f in np.unique(np.linspace(0, self.layout.frames - 1, count).astype(int))]

    def sample_positions(self, chosen: npt.NDArray[np.intp]) -> Doubles:
        """Return positions of chosen points in a few frames, in the file's unit."""
        four = np.concatenate([self._points(self._piece(frame, 1)) for frame in self._sampled_frames()])[:, chosen]
        return self._positions(four)

    def sample_channels(self) -> Doubles:
        """Return the scaled analog samples of a few frames, shape (samples, channels)."""
        values = np.concatenate([self._channels(self._piece(frame, 1)) for frame in self._sampled_frames()])
        return np.where(np.isfinite(values), values, np.nan)

    def first_frames(self, chosen: npt.NDArray[np.intp], count: int) -> tuple[Doubles, Doubles]:
        """Return chosen points in the file's unit, and the scaled analog samples, of the first `count` frames."""
        positions, values = [], []
        for start, piece in self._pieces():
            if start >= count:
                break
            positions.append(self._positions(self._points(piece[: count - start])[:, chosen]))
            values.append(self._channels(piece[: count - start]))
        channels = np.concatenate(values)
        return np.concatenate(positions), np.where(np.isfinite(channels), channels, np.nan)

    def _positions(self, four: npt.NDArray[Any]) -> Doubles:
        """Return positions in the file's unit, NaN where missing."""
        positions = four[..., :3].astype(np.float64) * (1.0 if self.layout.real else self.layout.scale)
        positions[self._is_missing(four) | ~four[..., :3].any(axis=-1)] = np.nan
        return positions

    def read(self, points: Points, converted: Conversion, *, single: bool) -> dict[str, Array]:
        """Return markers [m] and marker residuals [m] in the lab, other quantities and analog samples as stored."""
        layout = self.layout
        kind = np.float32 if single else np.float64
        markers = np.empty((layout.frames, len(points.markers), 3), kind)
        residual = np.empty(markers.shape[:2], np.float32)
        quantities = np.empty((layout.frames, len(points.quantities), 3))
        analog = np.empty((layout.frames * layout.samples, layout.channels), kind)
        unit = 1.0 if layout.real else layout.scale
        everything = slice(None) if not len(points.quantities) else points.markers
        invalid, zeros = 0, np.zeros(len(points.markers), int)
        for start, piece in self._pieces():
            rows = slice(start, start + len(piece))
            four = self._points(piece)
            is_missing = self._is_missing(four)
            invalid += int((is_missing & (four[..., 3] >= 0)).sum())
            chosen, missing = four[:, everything], is_missing[:, everything]
            zero = ~missing & ~chosen[..., :3].any(axis=-1)
            zeros += zero.sum(axis=0)
            missing = missing | zero
            _transform(chosen[..., :3], unit * converted.scale * converted.rotation, markers[rows])
            markers[rows][missing] = np.nan
            low_byte = np.where(missing | (chosen[..., 3] > MAX_WORD), 0, chosen[..., 3]).astype(np.int32) & 0xFF
            residual[rows] = low_byte * (layout.scale * converted.scale)
            residual[rows][missing] = np.nan
            if len(points.quantities):
                quantities[rows] = four[:, points.quantities, :3] * np.float64(unit)
                quantities[rows][is_missing[:, points.quantities]] = np.nan
            if layout.channels:
                analog[layout.samples * rows.start : layout.samples * rows.stop] = self._channels(piece)
        self._note_invalid(invalid, analog)
        self.notes.extend(Note.zeros(zeros, points.marker_names))
        return {"marker_position": markers, "marker_residual": residual, "model_output": quantities, "analog": analog}

    def _pieces(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        rows = max(1, CHUNK_BYTES // self.layout.frame_bytes)
        for start in range(0, self.layout.frames, rows):
            yield start, self._piece(start, min(rows, self.layout.frames - start))

    def _piece(self, start: int, count: int) -> npt.NDArray[Any]:
        """Return `count` frames from `start` on, shape (frames, numbers of a frame)."""
        layout = self.layout
        self.file.seek(layout.start + start * layout.frame_bytes)
        raw = self.file.read(count * layout.frame_bytes)
        if len(raw) < count * layout.frame_bytes:
            raise FileFormatError(self.path, f"The file ended within frame {start + count} while it was being read.")
        numbers = (floats if layout.real else integers)(raw, self.processor)
        return numbers.astype(numbers.dtype.newbyteorder("="), copy=False).reshape(count, layout.words)

    def _points(self, piece: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return x, y, z and a word with the residual in its low byte (negative if missing) of each point."""
        words = WORDS_OF_POINT * self.layout.points
        return piece[:, :words].reshape(len(piece), self.layout.points, WORDS_OF_POINT)

    def _is_missing(self, four: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which points are marked as missing or have no finite position."""
        missing = ~(four[..., 3] >= 0)
        return missing | ~np.isfinite(four[..., :3]).all(axis=-1) if self.layout.real else missing

    def _channels(self, piece: npt.NDArray[Any]) -> Doubles:
        """Return the scaled analog samples of some frames, shape (samples, channels)."""
        return self._counts(piece) * self.analog.scale

    def _counts(self, piece: npt.NDArray[Any]) -> Doubles:
        """Return the analog samples of some frames without their offset, shape (samples, channels)."""
        raw = piece[:, WORDS_OF_POINT * self.layout.points :].reshape(-1, self.layout.channels)
        values = raw.astype(np.float64)
        if not self.analog.unsigned:
            return values - self.analog.offset
        if not self.layout.real:
            values[values < 0.0] += 65536.0
        return values - self.analog.unsigned_offset

    def _note_invalid(self, points: int, analog: Array) -> None:
        if points:
            text = f"{points} positions that are marked as valid are not finite and are set to missing."
            self.notes.append(Note(text, "problem", code="implausible_values"))
        invalid = ~np.isfinite(analog)
        if invalid.any():
            analog[invalid] = np.nan
            text = f"{np.count_nonzero(invalid)} analog samples are not finite and are set to missing."
            self.notes.append(Note(text, "problem", code="implausible_values"))


def _transform(points: npt.NDArray[Any], matrix: Doubles, out: Array) -> None:
    """Write the points, transformed by the matrix, into `out`; with one product each where axes are only permuted."""
    for i, row in enumerate(matrix):
        axes = np.flatnonzero(row)
        if len(axes) == 1:
            np.multiply(points[..., axes[0]], row[axes[0]], out=out[..., i], dtype=out.dtype)
        else:
            out[..., i] = points.astype(np.float64) @ row
