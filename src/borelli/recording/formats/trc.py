"""TRC: marker positions as tab-separated text, as Motion Analysis began it and OpenSim reads it.

Five header lines (file type; names and values of the settings; marker names; X1 Y1 Z1...), then a line per frame:
frame number, time, three numbers per marker. Found in the wild and read all the same: counts that are not those of the
columns, names that are missing or spaced differently, blank cells, rows cut short, tabs at the end, header lines
repeated among the data, no frame or no time column, rounded times.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from borelli.errors import FileFormatError, SettingsError, list_names
from borelli.files.number_rows import (
    Rows,
    cells_of,
    decode,
    is_number,
    number_cells,
    number_of,
    numbered_lines,
    one_line,
    read_text_bytes,
    row_cells,
    without_absurd,
)
from borelli.files.text import write_text
from borelli.recording.recording import Note, Recording, make_dataset, unique_names, split_prefix
from borelli.recording.time_stamps import repair_time_stamps, usable_rate
from borelli.recording.units_and_axes import infer_conversion, opensim_axes

Array = NDArray[np.float64]

_AXIS = re.compile(rb"[XYZxyz]\d+")
_BETWEEN = re.compile(rb"[\s;,]+")


def looks_like_trc(head: bytes) -> bool:
    """Whether a file that begins so is a TRC."""
    first = head.lstrip()[:400].lower()
    return first.startswith(b"pathfiletype") or (first.startswith(b"datarate") and b"nummarkers" in first)


def read_trc(
    path: str | os.PathLike[str],
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
) -> Recording:
    """The markers of a TRC file, in metres, z up.

    Args:
        path: The file.
        units: Its unit of length, if it is not the one that the header states.
        up: Its vertical axis, such as "+Y", if the reader does not see it.
        forward: Its axis to be turned into x.
    """
    path = Path(path)
    data = read_text_bytes(path)
    header = _Header()
    rows = Rows(path, len(data))
    for number, line in numbered_lines(data, path):
        header.take(line, number, rows)
    del data
    if not header.columns:
        raise FileFormatError(path, "no line that begins `Frame#  Time` and names the markers; is this a TRC file?")
    if not len(rows):
        raise FileFormatError(path, "the header is followed by no frame")
    values, infinite = without_absurd(rows.matrix())
    lead = header.lead
    labels, notes = _labels(header, _used(values[:, lead:]))
    positions = _positions(values[:, lead:], len(labels))
    if infinite:
        notes.append(Note(f"{infinite} infinite or absurdly large numbers are taken as not seen", "problem"))
    notes += _counted(header, len(labels), len(values))
    timed = header.time is not None and header.time < values.shape[1]
    stamps = values[:, header.time] if timed else np.full(len(values), np.nan)
    times = repair_time_stamps(stamps, rows.decimals, header.number("datarate"))
    found, axis_notes = infer_conversion(
        header.settings.get("units"), None, positions, labels, units=units, up=up, forward=forward, usual_up="+Y"
    )
    names, prefix = split_prefix(labels)
    dataset = make_dataset(
        {"marker_position": found.apply(positions)},
        {"marker": names, "time": times.times},
        rate=times.rate,
        **found.attributes,
    )
    return Recording(
        data=dataset,
        name=path.stem,
        path=str(path),
        format="TRC",
        subject={"prefix": prefix} if prefix else {},
        metadata={"file_type": header.file_type, "header": dict(header.settings)},
        notes=(*axis_notes, *times.notes, *notes, *_zeros(positions, names)),
    )


def write_trc(
    recording: Recording, path: str | os.PathLike[str], *, units: str | None = None, up: str | None = None
) -> None:
    """Writes the markers as TRC, by default in the units of the file they came from, else mm, and with y up.

    Only recordings of OpenSim's own formats keep other axes: the format does not state them.
    """
    path = Path(path)
    if "marker_position" not in recording.data:
        raise SettingsError(f"{recording.name or 'the recording'} has no markers, and a TRC file holds nothing else")
    back = opensim_axes(recording, units, up)
    positions = back.undo(recording.data["marker_position"].values)
    times = recording.data["time"].values
    rate = recording.rate if usable_rate(recording.rate) else 0.0
    frames, count = positions.shape[:2]
    names = [one_line(name) for name in recording.markers]
    settings = {
        "DataRate": f"{rate:.17g}",
        "CameraRate": f"{rate:.17g}",
        "NumFrames": frames,
        "NumMarkers": count,
        "Units": back.units,
        "OrigDataRate": f"{rate:.17g}",
        "OrigDataStartFrame": 1,
        "OrigNumFrames": frames,
    }
    lines = [
        f"PathFileType\t4\t(X/Y/Z)\t{one_line(path.name)}",
        "\t".join(settings),
        "\t".join(map(str, settings.values())),
        "Frame#\tTime\t" + "\t\t\t".join(names) + "\t\t",
        "\t\t" + "\t".join(f"{axis}{k}" for k in range(1, count + 1) for axis in "XYZ"),
        "",
    ]
    for k, row in enumerate(positions.reshape(frames, 3 * count).tolist()):
        lines.append("\t".join([str(k + 1), repr(float(times[k])), *number_cells(row)]))
    write_text("\n".join(lines) + "\n", path)


@dataclass
class _Header:
    """What has been read of the header, wherever in the file it stands."""

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
    def lead(self) -> int:
        """How many columns come before the first marker's."""
        return sum(column is not None for column in (self.frame, self.time))

    def number(self, key: str) -> float | None:
        """A setting that is a number; None if there is none."""
        return number_of(self.settings.get(key, "x").encode())

    def take(self, line: bytes, number: int, rows: Rows) -> None:
        """Reads one line of the file: a part of the header, or a frame, which goes to the rows."""
        words = _BETWEEN.sub(b" ", line[:100]).split()
        if not words:
            return
        word = words[0].lower()
        if self._keys:
            self._take_values(line)
        elif word == b"pathfiletype":
            self.repeated += bool(self.file_type)
            self.file_type = self.file_type or " ".join(decode(line).split()[1:])
        elif word == b"datarate":
            self._keys = [decode(key).lower() for key in _BETWEEN.sub(b" ", line).split()]
        elif word.startswith(b"frame") or word == b"time":
            self._take_names(line)
        elif self.columns and _AXIS.match(word) and _is_axes(line):
            return
        elif self.columns:
            rows.add(row_cells(line, self.delimiter), number, self.time)
        elif is_number(word):
            raise FileFormatError(rows.path, "numbers before the line `Frame#  Time ...` that names them", line=number)

    def _take_values(self, line: bytes) -> None:
        """The values under the names of the settings; those of a repeated header are passed over."""
        words = [decode(cell) for cell in cells_of(line, _delimiter(line))]
        while len(words) > len(self._keys) and not words[-1]:
            words.pop()
        if len(words) != len(self._keys):
            # a value that was left out shows in the tabs; a value padded with more of them does not
            words = decode(line).split()
        if not self.settings:
            self.settings = dict(zip(self._keys, words, strict=False))
        self._keys = []

    def _take_names(self, line: bytes) -> None:
        if self.columns:
            self.repeated += 1
            return
        self.columns = True
        self.delimiter = _delimiter(line)
        cells = [decode(cell) for cell in cells_of(line, self.delimiter)]
        heads = [cell.lower() for cell in cells[:2]]
        self.frame = 0 if heads[0].startswith("frame") else None
        self.time = next((i for i, head in enumerate(heads) if head.startswith("time")), None)
        self.names = cells[self.lead :]


def _used(values: Array) -> int:
    """How many columns there are up to the last that has a number: tabs at the ends of lines make empty ones."""
    filled = np.flatnonzero(~np.isnan(values).all(axis=0))
    return int(filled[-1]) + 1 if len(filled) else 0


def _delimiter(line: bytes) -> bytes | None:
    return next((delimiter for delimiter in (b"\t", b";", b",") if delimiter in line), None)


def _is_axes(line: bytes) -> bool:
    cells = _BETWEEN.sub(b" ", line).split()
    return bool(cells) and all(_AXIS.fullmatch(cell) for cell in cells)


def _labels(header: _Header, width: int) -> tuple[list[str], list[Note]]:
    """A name for every three columns: the header's, or a number with a star where it has none."""
    cells = header.names
    while cells and not cells[-1]:
        cells = cells[:-1]
    filled = [cell for cell in cells if cell]
    if len(filled) == len(cells) > 3 and len(cells) % 3 == 0 and cells[0::3] == cells[1::3] == cells[2::3]:
        names = cells[0::3]  # each name stands above all three of its columns
    elif all(not cell for i, cell in enumerate(cells) if i % 3):
        names = cells[0::3]
    else:
        names = filled
    names = [one_line(name) for name in names]
    notes = []
    count = max(len(names), -(-width // 3))
    nameless = [i for i in range(count) if i >= len(names) or not names[i]]
    names = [name or f"*{i + 1}" for i, name in enumerate(names)]
    names += [f"*{i + 1}" for i in range(len(names), count)]
    if nameless:
        first, last = names[nameless[0]], names[nameless[-1]]
        called = first if first == last else f"{first} to {last}"
        notes.append(Note(f"columns without a name in the header are called {called} ({len(nameless)})", "problem"))
    unique, repeated = unique_names(names)
    if repeated:
        notes.append(Note(f"repeated names are numbered: {', '.join(repeated[:10])}", "problem"))
    return unique, notes


def _positions(values: Array, count: int) -> Array:
    """The columns as points (frames, markers, 3); columns that a marker lacks are not seen."""
    missing = 3 * count - values.shape[1]
    if missing > 0:
        values = np.pad(values, ((0, 0), (0, missing)), constant_values=np.nan)
    points = values[:, : 3 * count].reshape(len(values), count, 3)
    points[np.isnan(points).any(axis=2)] = np.nan
    return points


def _counted(header: _Header, markers: int, frames: int) -> list[Note]:
    """Notes where the header's counts are not those of the file."""
    notes = []
    for key, found, what in (("nummarkers", markers, "markers"), ("numframes", frames, "frames")):
        said = header.number(key)
        if said is not None and said != found:
            notes.append(Note(f"the header announces {said:g} {what}, the file has {found}, which are read", "problem"))
    if header.repeated:
        notes.append(Note(f"{header.repeated} header lines that stand among the data are passed over", "problem"))
    return notes


def _zeros(positions: Array, names: list[str]) -> list[Note]:
    """A note on markers that are at the very origin: they were probably not seen."""
    zero = (positions == 0.0).all(axis=2)
    if len(names) < 2 or not zero.any():
        return []
    those = [name for name, some in zip(names, zero.any(axis=0), strict=True) if some]
    what = f"{int(zero.sum())} points are exactly (0, 0, 0) and were probably not seen: {list_names(those)}"
    return [Note(what, "problem", "clean takes zeros as missing")]
