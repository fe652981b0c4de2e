"""TRC: marker positions as tab-separated text of Motion Analysis and OpenSim.

Five header lines (file type; names and values of the settings; marker names; X1 Y1 Z1...), then a line per frame:
frame number, time, three numbers per marker. Deviations that are accepted: counts that differ from the columns, names
that are missing or spaced differently, blank cells, short rows, tabs at the end, header lines repeated among the data,
no frame or no time column, rounded times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, SettingsError
from borelli.files.atomic import write_atomic
from borelli.files.delimited import strip_empty_end
from borelli.files.number_rows import (
    Rows,
    decode_line,
    enumerate_lines,
    format_numbers,
    is_number,
    mask_implausible,
    parse_number,
    read_text_bytes,
    split_row,
    split_stripped,
    to_single_line,
)
from borelli.files.paths import as_path
from borelli.numerics.vectors import Array
from borelli.recording.formats.content import Content
from borelli.recording.recording import Note, Recording, note_count, number_repeated, split_prefix
from borelli.recording.time_stamps import repair_time_stamps, usable_rate
from borelli.recording.units_and_axes import FrameOptions, opensim_conversion

_AXIS = re.compile(rb"[XYZxyz]\d+")
_BETWEEN = re.compile(rb"[\s;,]+")


def looks_like_trc(head: bytes) -> bool:
    """Return whether the first bytes are those of a TRC file."""
    first = head.lstrip()[:400].lower()
    return first.startswith(b"pathfiletype") or (first.startswith(b"datarate") and b"nummarkers" in first)


def read_trc(
    path: str | Path, *, units: str | None = None, up: str | None = None, forward: str | None = None
) -> Recording:
    """Read the markers of a TRC file, in meters, z up; arguments as in `read_recording`."""
    path = as_path(path)
    data = read_text_bytes(path)
    header = _Header()
    rows = Rows(path, len(data))
    for number, line in enumerate_lines(data, path):
        header.take(line, number, rows)
    del data
    if not header.columns:
        what = "There is no line `Frame#  Time ...` with marker names. Check that this is a TRC file."
        raise FileFormatError(path, what)
    if not len(rows):
        raise FileFormatError(path, "There is no frame under the header.")
    values, implausible = mask_implausible(rows.matrix())
    first, notes = header.first_column, list[Note]()
    labels = _labels(header, _used(values[:, first:]), notes)
    positions = _positions(values[:, first:], len(labels))
    if implausible:
        notes.append(Note.implausible(implausible))
    notes += Note.short_rows(rows.count_short(first + 3 * len(labels)))
    note_count(header.number("nummarkers"), len(labels), "markers", notes)
    note_count(header.number("numframes"), len(values), "frames", notes)
    if header.repeated:
        text = f"{header.repeated} header lines among the data are ignored."
        notes.append(Note(text, "problem", code="repeated_header"))
    content = Content(FrameOptions(units=units, up=up, forward=forward))
    content.metadata = {"file_type": header.file_type, "header": dict(header.settings)}
    content.add_markers(labels, positions, header.settings.get("units"), default_up="+Y")
    timed = header.time is not None and header.time < values.shape[1]
    stamps = values[:, header.time] if timed else np.full(len(values), np.nan)
    content.set_times(repair_time_stamps(stamps, rows.decimals, header.number("datarate")))
    content.labels["marker"], prefix = split_prefix(labels)
    content.subject = {"prefix": prefix} if prefix else {}
    content.notes += notes
    return content.recording(path, "TRC")


def write_trc(
    recording: Recording,
    path: str | Path,
    *,
    units: str | None = None,
    up: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the markers as TRC.

    Default units are those of the file that was read, else mm; the default vertical axis is that of the MOT, STO or TRC
    file that was read, else "+Y", because the format does not state it.
    """
    path = as_path(path)
    if "marker_position" not in recording.data:
        raise SettingsError(f"{recording.name or 'The recording'} has no markers, which TRC requires.")
    conversion = opensim_conversion(recording, units, up)
    positions = conversion.invert(recording.data["marker_position"].values)
    times = recording.data["time"].values
    rate = recording.rate if usable_rate(recording.rate) else 0.0
    frames, count = positions.shape[:2]
    names = [to_single_line(name) for name in recording.markers]
    settings = {
        "DataRate": f"{rate:.17g}",
        "CameraRate": f"{rate:.17g}",
        "NumFrames": frames,
        "NumMarkers": count,
        "Units": conversion.units,
        "OrigDataRate": f"{rate:.17g}",
        "OrigDataStartFrame": 1,
        "OrigNumFrames": frames,
    }
    lines = [
        f"PathFileType\t4\t(X/Y/Z)\t{to_single_line(path.name)}",
        "\t".join(settings),
        "\t".join(map(str, settings.values())),
        "Frame#\tTime\t" + "\t\t\t".join(names) + "\t\t",
        "\t\t" + "\t".join(f"{axis}{k}" for k in range(1, count + 1) for axis in "XYZ"),
        "",
    ]
    for k, row in enumerate(positions.reshape(frames, 3 * count).tolist()):
        lines.append("\t".join([str(k + 1), repr(float(times[k])), *format_numbers(row)]))
    write_atomic("\n".join(lines) + "\n", path, overwrite=overwrite, inputs=[recording.path])


@dataclass
class _Header:
    """Header, which may be anywhere in the file."""

    file_type: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    columns: bool = False
    frame: int | None = None
    time: int | None = None
    delimiter: bytes | None = b"\t"
    repeated: int = 0
    _keys: list[str] = field(default_factory=list)

    @property
    def first_column(self) -> int:
        """Number of columns before the first marker."""
        return sum(column is not None for column in (self.frame, self.time))

    def number(self, key: str) -> float | None:
        return parse_number(self.settings.get(key, "x").encode())

    def take(self, line: bytes, number: int, rows: Rows) -> None:
        """Read one line: a part of the header, or a frame, which is added to the rows."""
        words = _BETWEEN.sub(b" ", line[:100]).split()
        if not words:
            return
        word = words[0].lower()
        if self._keys:
            self._take_values(line)
        elif word == b"pathfiletype":
            self.repeated += bool(self.file_type)
            self.file_type = self.file_type or " ".join(decode_line(line).split()[1:])
        elif word == b"datarate":
            self._keys = [decode_line(key).lower() for key in _BETWEEN.sub(b" ", line).split()]
        elif word.startswith(b"frame") or word == b"time":
            self._take_names(line)
        elif self.columns and _AXIS.match(word) and _is_axes(line):
            return
        elif self.columns:
            rows.add(split_row(line, self.delimiter), number, self.time)
        elif is_number(word):
            what = "There are numbers before the line `Frame#  Time ...` with marker names."
            raise FileFormatError(rows.path, what, line=number)

    def _take_values(self, line: bytes) -> None:
        """Read the values under the names of the settings; ignore those of a repeated header."""
        words = [decode_line(cell) for cell in split_stripped(line, _delimiter(line))]
        while len(words) > len(self._keys) and not words[-1]:
            words.pop()
        if len(words) != len(self._keys):
            # a missing value shows in the tabs; a value padded with several tabs does not
            words = decode_line(line).split()
        if not self.settings:
            self.settings = dict(zip(self._keys, words, strict=False))
        self._keys = []

    def _take_names(self, line: bytes) -> None:
        if self.columns:
            self.repeated += 1
            return
        self.columns = True
        self.delimiter = _delimiter(line)
        cells = [decode_line(cell) for cell in split_stripped(line, self.delimiter)]
        heads = [cell.lower() for cell in cells[:2]]
        self.frame = 0 if heads[0].startswith("frame") else None
        self.time = next((i for i, head in enumerate(heads) if head.startswith("time")), None)
        self.names = cells[self.first_column :]


def _used(values: Array) -> int:
    """Return the number of columns up to the last with a number; tabs at line ends make empty ones."""
    filled = np.flatnonzero(~np.isnan(values).all(axis=0))
    return int(filled[-1]) + 1 if len(filled) else 0


def _delimiter(line: bytes) -> bytes | None:
    return next((delimiter for delimiter in (b"\t", b";", b",") if delimiter in line), None)


def _is_axes(line: bytes) -> bool:
    cells = _BETWEEN.sub(b" ", line).split()
    return bool(cells) and all(_AXIS.fullmatch(cell) for cell in cells)


def _labels(header: _Header, width: int, notes: list[Note]) -> list[str]:
    """Return a name for every three columns, or a number with a star where the header has none, and note these."""
    cells = strip_empty_end(header.names)
    filled = [cell for cell in cells if cell]
    if len(filled) == len(cells) > 3 and len(cells) % 3 == 0 and cells[0::3] == cells[1::3] == cells[2::3]:
        names = cells[0::3]  # each name is above all three of its columns
    elif all(not cell for i, cell in enumerate(cells) if i % 3):
        names = cells[0::3]
    else:
        names = filled
    names = [to_single_line(name) for name in names]
    count = max(len(names), -(-width // 3))
    unnamed = [i for i in range(count) if i >= len(names) or not names[i]]
    names = [name or f"*{i + 1}" for i, name in enumerate(names)]
    names += [f"*{i + 1}" for i in range(len(names), count)]
    if unnamed:
        first, last = names[unnamed[0]], names[unnamed[-1]]
        called = first if first == last else f"{first} to {last}"
        text = f"{len(unnamed)} markers have no name in the header and are called {called}."
        notes.append(Note(text, "problem", code="unlabeled_points"))
    return number_repeated(names, notes)


def _positions(values: Array, count: int) -> Array:
    """Return the columns as points (frames, markers, 3); markers with a missing column are NaN."""
    missing = 3 * count - values.shape[1]
    if missing > 0:
        values = np.pad(values, ((0, 0), (0, missing)), constant_values=np.nan)
    points = values[:, : 3 * count].reshape(len(values), count, 3)
    points[np.isnan(points).any(axis=2)] = np.nan
    return points
