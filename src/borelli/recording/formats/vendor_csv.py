"""CSV exports of Vicon Nexus, Qualisys Track Manager and OptiTrack Motive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from borelli.errors import FileFormatError
from borelli.files.delimited import sniff_delimiter, split_cells, strip_empty_end
from borelli.files.number_rows import Rows, decode_line, enumerate_lines, parse_number, to_single_line
from borelli.numerics.vectors import Array
from borelli.recording.formats.content import Content
from borelli.recording.recording import Note, Recording, drop_implausible, number_repeated, split_prefix, unique_names
from borelli.recording.time_stamps import event_origin, repair_time_stamps, usable_rate
from borelli.recording.units_and_axes import FrameOptions

SECTIONS = ("trajectories", "model outputs", "devices", "events", "joints", "segments")
"""First cells of the sections of a Nexus file."""
KINDS = {
    "deg": "angle",
    "rad": "angle",
    "n": "force",
    "n.mm": "moment",
    "n.m": "moment",
    "w": "power",
    "mm": "position",
}


class _Section(NamedTuple):
    """Section of a Nexus file: its lines as cells, with their line numbers."""

    name: str
    rate: float | None
    lines: list[tuple[int, list[bytes]]]


class _Content(Content):
    """Data of an export."""

    def add_labeled(self, labels: Sequence[str], points: Array, stated: str | None, default_up: str = "+Z") -> None:
        """Add markers whose labels may be empty, repeated, or begin with the subject; incomplete points are missing."""
        points = drop_implausible(points, self.notes)
        points[~np.isfinite(points).all(axis=2)] = np.nan
        names, prefix = split_prefix([to_single_line(label) or f"*{i + 1}" for i, label in enumerate(labels)])
        if prefix:
            self.subject["prefix"] = prefix
        self.add_markers(number_repeated(names, self.notes), points, stated, default_up=default_up)

    def recording(self, path: Path, kind: str = "CSV") -> Recording:
        """Return the recording; event times of sections begin with the trial, of which the file may be a part."""
        frames = {len(v) for k, v in self.variables.items() if k in ("marker_position", "model_output", "column_value")}
        if len(frames) > 1:
            raise FileFormatError(path, f"The sections have different numbers of frames: {sorted(frames)}.")
        if not set(self.variables) - {"event_time"}:
            raise FileFormatError(path, "The file contains no numbers.")
        if "first_frame" in self.metadata and "event_time" in self.variables:
            seconds = np.array(self.variables["event_time"])
            origin, notes = event_origin(seconds, self.metadata["first_frame"], max(frames, default=0), self.rate)
            self.variables["event_time"] = seconds - origin
            self.notes += notes
        return super().recording(path, kind)


def looks_like_nexus(head: bytes) -> bool:
    """Return whether the first bytes are those of an ASCII export of Vicon Nexus."""
    lines = head.splitlines()[:2]
    cells = [line.replace(b";", b",").replace(b"\t", b",").split(b",") for line in lines]
    return (
        len(lines) > 1
        and decode_line(cells[0][0]).strip('" ').lower() in SECTIONS
        and parse_number(cells[1][0]) is not None
    )


def read_nexus(path: Path, data: bytes, frame: FrameOptions) -> Recording:
    """Read trajectories, model outputs, devices and events of a Nexus export."""
    content = _Content(frame)
    for section in _sections(path, data):
        if section.name == "events":
            _nexus_events(section, content)
            continue
        table = _nexus_table(path, section, len(data), content.notes)
        if section.name == "devices":
            _nexus_devices(table, content)
            continue
        (_nexus_trajectories if section.name == "trajectories" else _nexus_outputs)(table, content)
        content.rate = content.rate or table.rate
        content.metadata["first_frame"] = table.first
    return content.recording(path)


class _Nexus(NamedTuple):
    names: list[str]
    """Name above each column, or above the nearest column to its left."""
    axes: list[str]
    units: list[str]
    values: Array
    rate: float | None
    first: int


def _sections(path: Path, data: bytes) -> Iterator[_Section]:
    delimiter = sniff_delimiter(data[:65536].splitlines()[:20]) or b","
    section: _Section | None = None
    for number, line in enumerate_lines(data, path):
        cells = strip_empty_end(split_cells(line, delimiter, path, number))
        if not cells:
            if section and section.lines:
                yield section
                section = None
        elif section is None:
            section = _Section(decode_line(cells[0]).strip('" ').lower(), None, [])
            if section.name not in SECTIONS:
                what = f"Expected the name of a section, got {decode_line(cells[0])[:40]!r}."
                raise FileFormatError(path, what, line=number)
        elif section.rate is None and not section.lines and len(cells) == 1 and parse_number(cells[0]) is not None:
            section = section._replace(rate=usable_rate(parse_number(cells[0])))
        else:
            section.lines.append((number, cells))
    if section and section.lines:
        yield section


def _nexus_table(path: Path, section: _Section, size: int, notes: list[Note]) -> _Nexus:
    """Return the table under the lines of names, axes and units, and note implausible values."""
    if len(section.lines) < 4:
        raise FileFormatError(path, f"{section.name}: Expected lines of names, axes, units and numbers.")
    (_, tops), (number, axes), (_, units), *body = section.lines
    if decode_line(axes[0]).lower() != "frame":
        raise FileFormatError(path, f"{section.name}: Expected a line that begins with Frame, Sub Frame.", line=number)
    width = len(axes)
    names, last = [], ""
    for i in range(width):
        last = decode_line(tops[i]) if i < len(tops) and tops[i] else last
        names.append(last)
    rows = Rows(path, size)
    for line, cells in body:
        rows.add(cells[:width], line)
    values = drop_implausible(rows.matrix(width), notes, f"{section.name}: ")
    first = int(values[0, 0]) if np.isfinite(values[0, 0]) else 1
    shown = [decode_line(unit) for unit in units] + [""] * (width - len(units))
    return _Nexus(names, [decode_line(axis) for axis in axes], shown, values, section.rate, first)


def _vectors(table: _Nexus, *, begin_with: bool) -> tuple[list[str], list[list[int]]]:
    """Return names and columns X, Y, Z of the groups of columns with one name that are (or begin with) these axes."""
    names, columns = [], []
    for name, group in groupby(range(2, len(table.names)), key=lambda i: table.names[i]):
        indices = list(group)
        if [table.axes[i] for i in (indices[:3] if begin_with else indices)] == ["X", "Y", "Z"]:
            names.append(name)
            columns.append(indices[:3])
    return names, columns


def _nexus_trajectories(table: _Nexus, content: _Content) -> None:
    names, columns = _vectors(table, begin_with=True)
    if names:
        content.add_labeled(names, table.values[:, columns], table.units[columns[0][0]])


def _nexus_outputs(table: _Nexus, content: _Content) -> None:
    vectors, columns = _vectors(table, begin_with=False)
    if vectors:
        names, prefix = split_prefix(vectors)
        units = [table.units[indices[0]] for indices in columns]
        kinds = [KINDS.get(unit.lower().removesuffix("/kg"), "scalar") for unit in units]
        content.variables["model_output"] = table.values[:, columns]
        content.labels |= {"quantity": unique_names(names)[0], "quantity_units": units, "quantity_kind": kinds}
        if prefix:
            content.subject.setdefault("prefix", prefix)
    rest = sorted({*range(2, len(table.names))}.difference(*columns))
    if rest:
        content.variables["column_value"] = table.values[:, rest]
        labels, _ = unique_names([f"{table.names[i].rpartition(':')[2]}.{table.axes[i]}" for i in rest])
        content.labels |= {"column": labels, "column_units": [table.units[i] for i in rest]}


def _nexus_devices(table: _Nexus, content: _Content) -> None:
    columns = list(range(2, len(table.names)))
    names, _ = unique_names([f"{table.names[i]} {table.axes[i]}".strip() for i in columns])
    content.variables["analog"] = table.values[:, 2:]
    lower = [name.lower() for name in names]
    kinds = ["emg" if "emg" in n else "plate" if "force" in n or "plate" in n else "other" for n in lower]
    content.labels |= {"channel": names, "channel_units": [table.units[i] for i in columns], "channel_kind": kinds}
    content.analog_rate = table.rate
    if "plate" in kinds:
        text = "Force plates are kept as channels: the export states neither their positions nor their sign convention."
        content.notes.append(Note(text, "inferred", "read the C3D file of the trial", code="plates_as_channels"))


def _nexus_events(section: _Section, content: _Content) -> None:
    """Read rows of subject, context, name, time, description under a header line."""
    events = []
    for _, cells in section.lines[1:]:
        time = parse_number(cells[3]) if len(cells) > 3 else None
        if time is not None and np.isfinite(time):
            events.append((time, decode_line(cells[2]), decode_line(cells[1])))
    if events:
        content.add_events(*zip(*events, strict=True))


def looks_like_qualisys(head: bytes) -> bool:
    """Return whether the first bytes are those of a TSV export of Qualisys."""
    return head.lstrip().upper().startswith((b"NO_OF_FRAMES", b"FILE_VERSION\t"))


def read_qualisys(path: Path, data: bytes, frame: FrameOptions) -> Recording:
    """Read marker positions and events of a Qualisys TSV export."""
    content = _Content(frame)
    header: dict[str, list[str]] = {}
    events = []
    first: int | None = None
    rows = Rows(path, len(data))
    for number, line in enumerate_lines(data, path):
        cells = [cell.strip() for cell in line.split(b"\t")]
        if not any(cells):
            continue
        if parse_number(cells[0]) is not None or (not cells[0] and len(rows)):
            rows.add(cells if cells[-1] else cells[:-1], number)
        elif len(rows):
            raise FileFormatError(path, f"Expected a number, got {decode_line(cells[0])[:40]!r}.", line=number)
        elif cells[0].upper() == b"EVENT" and len(cells) >= 4:
            time = parse_number(cells[3])
            if time is not None and np.isfinite(time):
                events.append((time, decode_line(cells[1]), "General"))
        elif decode_line(cells[0]).lower() in ("frame", "time") and len(cells) > 3:
            first = sum(decode_line(cell).lower() in ("frame", "time") for cell in cells[:2])
        else:
            header[decode_line(cells[0]).upper()] = [decode_line(cell) for cell in cells[1:]]
    if not len(rows):
        raise FileFormatError(path, "There is no row of numbers under the header.")
    labels = [name for name in header.get("MARKER_NAMES", []) if name]
    values = rows.matrix()
    first = values.shape[1] % 3 if first is None else first
    count = (values.shape[1] - first) // 3
    if len(labels) != count:
        text = f"The header names {len(labels)} markers, but the rows have {count}."
        content.notes.append(Note(text, "problem", code="header_counts"))
        labels = (labels + [""] * count)[:count]
    content.add_labeled(labels, values[:, first : first + 3 * count].reshape(len(values), count, 3), "mm")
    content.rate = usable_rate(parse_number((header.get("FREQUENCY") or ["x"])[0].encode()))
    if events:
        content.add_events(*zip(*events, strict=True))
    content.metadata["header"] = {key: " ".join(words) for key, words in header.items() if key != "MARKER_NAMES"}
    return content.recording(path)


def looks_like_motive(head: bytes) -> bool:
    """Return whether the first bytes are those of a CSV export of OptiTrack Motive."""
    return head.lstrip().startswith((b"Format Version,", b"Take Name,"))


def read_motive(path: Path, data: bytes, frame: FrameOptions) -> Recording:
    """Read marker positions of a Motive export; rigid bodies and bones are ignored."""
    content = _Content(frame)
    rows = Rows(path, len(data))
    header: dict[str, str] = {}
    above: list[list[str]] = []
    axes: list[str] = []
    for number, line in enumerate_lines(data, path):
        cells = split_cells(line, b",", path, number)
        if not any(cells):
            continue
        if not header:
            words = [decode_line(cell) for cell in cells]
            header = dict(zip(words[0::2], words[1::2], strict=False))
        elif axes:
            rows.add(cells[: len(axes)], number, 1)
        elif decode_line(cells[0]).lower() == "frame":
            axes = [decode_line(cell) for cell in cells]
        else:
            above.append([decode_line(cell) for cell in cells])
    if not len(rows) or len(axes) < 3:
        raise FileFormatError(path, "There is no line that begins with Frame, Time and has numbers under it.")
    labels, columns = _motive_markers(above, axes)
    if not labels:
        raise FileFormatError(path, "The file contains no marker positions. Export the markers from Motive as well.")
    values = rows.matrix(len(axes))
    points = values[:, columns].reshape(len(values), len(labels), 3)
    content.add_labeled(labels, points, header.get("Length Units"), default_up="+Y")
    stated = header.get("Export Frame Rate") or header.get("Capture Frame Rate") or "x"
    content.set_times(repair_time_stamps(values[:, 1], rows.decimals, parse_number(stated.encode())))
    content.metadata["header"] = header
    return content.recording(path)


def _motive_markers(above: Sequence[Sequence[str]], axes: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return names and columns of the markers, from the lines of type, name, ID and property."""

    def line_with(words: set[str]) -> list[str]:
        found = next((line for line in above if words & {cell.lower() for cell in line}), [])
        return list(found) + [""] * len(axes)

    kinds = line_with({"marker", "rigid body marker", "bone marker", "rigid body", "bone"})
    properties = line_with({"position"})
    names = next((list(line) for line in above if len(line) > 1 and line[1].lower() == "name"), []) + [""] * len(axes)
    axes_of: dict[str, dict[str, int]] = {}
    # measured markers precede markers of a rigid body with the same names
    for i, axis in sorted(enumerate(axes), key=lambda column: kinds[column[0]].lower() != "marker"):
        if kinds[i].lower().endswith("marker") and properties[i].lower() == "position" and axis in ("X", "Y", "Z"):
            axes_of.setdefault(names[i], {}).setdefault(axis, i)
    complete = {name: at for name, at in axes_of.items() if len(at) == 3}
    return list(complete), [at[axis] for at in complete.values() for axis in "XYZ"]


EXPORTS = ((looks_like_nexus, read_nexus), (looks_like_qualisys, read_qualisys), (looks_like_motive, read_motive))
"""Test of the first bytes, and reader of each export."""
