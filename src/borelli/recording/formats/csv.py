"""CSV: tables of numbers with a line of names, as written by borelli, by measuring systems and by others.

A borelli CSV begins with `# borelli recording`, has one table for data at the frame rate and one for data at the analog
rate, and names its columns `name.axis [unit]`, with the kind before a colon unless it is a marker: `LASI.x [m]`,
`force:1.z [N]`, `coordinate:knee_angle_r [rad]`, `analog:EMG1 [V; emg]`. It keeps all numbers exactly.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from borelli.errors import FileFormatError
from borelli.files.atomic import write_atomic
from borelli.files.delimited import Column, is_header, parse_column_name, sniff_delimiter, split_cells, strip_empty_end
from borelli.files.number_rows import (
    MAX_MAGNITUDE,
    MAX_NAME_LENGTH,
    Rows,
    decode_line,
    enumerate_lines,
    is_number,
    parse_number,
    read_text_bytes,
    to_single_line,
)
from borelli.files.paths import as_path
from borelli.numerics.vectors import Array
from borelli.recording.formats.content import TableContent
from borelli.recording.formats.vendor_csv import EXPORTS
from borelli.recording.length_unit import UNITS
from borelli.recording.recording import LAYOUT, Note, Recording, drop_implausible, make_dataset, number_repeated
from borelli.recording.time_stamps import (
    Times,
    backward_notes,
    check_rate,
    repair_time_stamps,
    specified_rate_note,
    usable_rate,
)
from borelli.recording.units_and_axes import FrameOptions, parse_unit

START = "# borelli recording "
FIRST_LINE = f"{START}2"
MAX_ROWS = 100_000
"""Rows of the tables of events and of plate corners."""

KINDS = {  # prefix of the column: variable, coordinates of its unit and kind
    "marker": ("marker_position", "", ""),
    "residual": ("marker_residual", "", ""),
    "quantity": ("model_output", "quantity_units", "quantity_kind"),
    "coordinate": ("coordinate_value", "coordinate_units", ""),
    "value": ("column_value", "column_units", ""),
    "joint": ("joint_center", "", ""),
    "force": ("plate_force", "", ""),
    "cop": ("plate_center_of_pressure", "", ""),
    "free_moment": ("plate_free_moment", "", ""),
    "foot_force": ("ground_reaction_force", "", ""),
    "foot_cop": ("center_of_pressure", "", ""),
    "foot_free_moment": ("free_moment", "", ""),
    "analog": ("analog", "channel_units", "channel_kind"),
}
TIME = re.compile(r"time|t|timestamp|seconds|time[ _]?stamp", re.IGNORECASE)
FRAME = re.compile(r"frames?#?|time_?step|sample|index|frame[ _]?(?:number|no\.?)", re.IGNORECASE)

_NAME = re.compile(r"(?:(\w+):)?(.*?)(?:\.([xyz]))? \[([^\]]*)\]")
_TRIPLE = re.compile(r"(.*?)[ ._-]?([xyz])", re.IGNORECASE)


def looks_like_csv(head: bytes) -> bool:
    """Return whether the first bytes may be a table: no control characters, a delimiter, and rows of numbers."""
    if any(byte < 32 and byte not in (9, 10, 12, 13) for byte in head):
        return False
    lines = [line for line in head.splitlines() if line.strip()]
    delimiter = sniff_delimiter(lines[:20])
    if delimiter is None:
        return False
    if head.startswith(START.encode()) or any(looks(head[:4096]) for looks, _ in EXPORTS):
        return True
    # where the line of names is longer than the head, no row can be judged; else the last one may be truncated
    rows = [_is_number_row(line, delimiter) for line in (lines[:-1] if len(lines) > 2 else lines)]
    first = next((i for i, numbers in enumerate(rows) if numbers), None)
    return b"\n" not in head if first is None else 2 * sum(rows[first:]) >= len(rows) - first


def _is_number_row(line: bytes, delimiter: bytes) -> bool:
    cells = [cell.strip(b' \t"') for cell in line.split(delimiter)]
    filled = [cell for cell in cells if cell]
    return len(cells) > 1 and bool(filled) and not is_header(filled)


def read_csv(
    path: str | Path,
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    rate: float | None = None,
) -> Recording:
    """Read a CSV file; positions in meters, z up.

    Supported are files of borelli, exports of Vicon Nexus, Qualisys (TSV) and OptiTrack Motive, and plain tables of
    numbers with a column called time or frame; `rate` [Hz] is that of a plain table without a time column. Other
    arguments: `read_recording`.
    """
    path = as_path(path)
    data = read_text_bytes(path)
    if data.startswith(START.encode()):
        return _read_borelli(path, data)
    frame = FrameOptions(units=units, up=up, forward=forward)
    for looks, read in EXPORTS:
        if looks(data[:4096]):
            return read(path, data, frame)
    return _read_plain(path, data, frame, rate)


def write_csv(recording: Recording, path: str | Path, *, overwrite: bool = False) -> None:
    """Write all numbers of a recording exactly, with names and units; meters, z up."""
    data = recording.data
    about: dict[str, Any] = {"name": recording.name, "subject": dict(recording.subject)}
    about |= {key: value for key, value in data.attrs.items() if isinstance(value, str | float | int)}
    more = {name: _more_attributes(data[name].attrs) for name in data.data_vars if name in LAYOUT}
    about["attributes"] = {name: attrs for name, attrs in more.items() if attrs}
    text = io.StringIO()
    text.write(FIRST_LINE + "\n")
    for key, value in about.items():
        text.write(f"# {key}: {json.dumps(value)}\n")
    writer = csv.writer(text, lineterminator="\n")
    for dimension in ("time", "analog_time"):
        names, columns = _columns_along(recording, dimension)
        if names:
            writer.writerow(["time [s]", *names])
            table = np.column_stack([data[dimension].values, *columns])
            writer.writerows([["" if v != v else repr(v) for v in row] for row in table.tolist()])
            text.write("\n")
    if "plate_corners" in data:
        writer.writerow(["plate", "corner", "x [m]", "y [m]", "z [m]"])
        corners = data["plate_corners"].values
        for p, name in enumerate(recording.plates):
            writer.writerows([to_single_line(name), c + 1, *map(repr, corners[p, c].tolist())] for c in range(4))
        text.write("\n")
    if "event_time" in data:
        writer.writerow(["event time [s]", "label", "context"])
        rows = zip(*(data[key].values.tolist() for key in ("event_time", "event_label", "event_context")), strict=True)
        writer.writerows([repr(time), *(to_single_line(str(text)) for text in texts)] for time, *texts in rows)
        text.write("\n")
    write_atomic(text.getvalue(), path, overwrite=overwrite, inputs=[recording.path])


def _more_attributes(attributes: Mapping[Any, Any]) -> dict[str, str | float | int]:
    known = ("units", "frame")
    return {str(k): v for k, v in attributes.items() if k not in known and isinstance(v, str | float | int)}


def _columns_along(recording: Recording, dimension: str) -> tuple[list[str], list[Array]]:
    data = recording.data
    names: list[str] = []
    columns: list[Array] = []
    for kind, (variable, units_in, kind_in) in KINDS.items():
        layout = LAYOUT[variable]
        if variable not in data or layout.dims[0] != dimension:
            continue
        labels = [to_single_line(str(name)) for name in data[layout.dims[1]].values]
        units = [str(u) for u in data[units_in].values] if units_in in data.coords else [layout.units] * len(labels)
        kinds = [f"; {k}" for k in data[kind_in].values] if kind_in in data.coords else [""] * len(labels)
        axes = [f".{axis}" for axis in "xyz"] if layout.dims[-1] == "axis" else [""]
        for label, unit, sort in zip(labels, units, kinds, strict=True):
            bare = kind == "marker" and ":" not in label
            names += [f"{label if bare else f'{kind}:{label}'}{axis} [{unit}{sort}]" for axis in axes]
        columns.append(data[variable].values.reshape(data.sizes[dimension], -1))
    return names, columns


class _Table:
    """Table of a borelli CSV: names, then rows of numbers (time series) or of strings."""

    def __init__(self, path: Path, names: list[str], line: int, size: int) -> None:
        self.path = path
        self.names = names
        self.line = line
        self.series = Rows(path, size) if names[0] == "time [s]" else None
        self.rows: list[list[str]] = []

    def add(self, cells: list[bytes], number: int) -> None:
        if len(cells) != len(self.names):
            what = f"The row has {len(cells)} cells for {len(self.names)} columns."
            raise FileFormatError(self.path, what, line=number)
        if self.series is not None:
            self.series.add(cells, number)
        elif len(self.rows) < MAX_ROWS:
            self.rows.append([decode_line(cell) for cell in cells])
        else:
            raise FileFormatError(self.path, f"The table has more than {MAX_ROWS} rows.", line=number)

    def numbers(self, columns: Sequence[int]) -> Array:
        """Return columns of a table of strings as numbers."""
        values = [parse_number(row[column].encode()) for row in self.rows for column in columns]
        if any(value is None or abs(value) > MAX_MAGNITUDE for value in values):
            raise FileFormatError(self.path, "The table that begins here must contain numbers.", line=self.line)
        return np.array(values, dtype=float).reshape(-1, len(columns))


def _read_borelli(path: Path, data: bytes) -> Recording:
    if data.startswith(f"{START}1".encode()):
        remedy = (
            "Rename 'rate' and 'analog_rate' at its beginning to 'rate_hz' and 'analog_rate_hz', and write 2 for 1."
        )
        raise FileFormatError(path, f"The file has format version 1, which is no longer read. {remedy}", line=1)
    about: dict[str, Any] = {}
    tables: list[_Table] = []
    open_table = False
    for number, line in enumerate_lines(data, path):
        if line.startswith(b"#") and not tables:
            key, _, value = decode_line(line[1:]).strip().partition(": ")
            try:
                about[key] = json.loads(value) if value else None
            except (ValueError, RecursionError):
                raise FileFormatError(path, f"The value of {key!r} is not JSON.", line=number) from None
        elif not line.strip():
            open_table = False
        else:
            cells = line.split(b",") if b'"' not in line else split_cells(line, b",", path, number)
            if open_table:
                tables[-1].add(cells, number)
            elif len(tables) < len(LAYOUT):
                tables.append(_Table(path, [decode_line(cell) for cell in cells], number, len(data)))
                open_table = True
            else:
                raise FileFormatError(path, "The file has too many tables.", line=number)
    variables, labels, notes = dict[str, Any](), dict[str, Any](), list[Note]()
    for table in tables:
        _read_table(table, variables, labels, notes)
    if not variables:
        raise FileFormatError(path, "The file contains no table.")
    rate, analog_rate = (usable_rate(_number(about.pop(key, None))) for key in ("rate_hz", "analog_rate_hz"))
    try:
        dataset = make_dataset(variables, labels, rate=rate, analog_rate=analog_rate)
    except ValueError as error:
        raise FileFormatError(path, f"The tables are inconsistent ({' '.join(str(error).split())[:200]}).") from None
    subject, name, more = (about.pop(key, None) for key in ("subject", "name", "attributes"))
    for variable, attrs in more.items() if isinstance(more, dict) else ():
        if variable in dataset and isinstance(attrs, dict):
            dataset[variable].attrs |= _more_attributes(attrs)
    attributes = {key: value for key, value in about.items() if isinstance(value, str | float | int)}
    subject = subject if isinstance(subject, dict) else {}
    dataset = dataset.assign_attrs(attributes)
    return Recording(dataset, str(name or path.stem), str(path), "CSV", subject, notes=tuple(notes))


def _read_table(table: _Table, variables: dict[str, Any], labels: dict[str, Any], notes: list[Note]) -> None:
    if table.series is not None:
        values = drop_implausible(table.series.matrix(len(table.names)), notes)
        if not np.isfinite(values[:, 0]).all():
            raise FileFormatError(table.path, "A row of the table that begins here has no time.", line=table.line)
        notes += backward_notes(values[:, 0])
        _read_series(table, values, variables, labels)
    elif table.names[0] == "event time [s]" and len(table.names) == 3:
        variables["event_time"] = table.numbers([0])[:, 0]
        labels |= {"event_label": [row[1] for row in table.rows], "event_context": [row[2] for row in table.rows]}
        labels["event"] = np.arange(len(table.rows))
    elif table.names[:2] == ["plate", "corner"] and len(table.names) == 5 and len(table.rows) % 4 == 0:
        variables["plate_corners"] = table.numbers([2, 3, 4]).reshape(-1, 4, 3)
        labels["plate"] = [row[0] for row in table.rows[::4]]
    else:
        what = f"Unknown table: its first column is {table.names[0][:40]!r}."
        raise FileFormatError(table.path, what, line=table.line)


def _read_series(table: _Table, values: Array, variables: dict[str, Any], labels: dict[str, Any]) -> None:
    path = table.path
    indices_of: dict[str, dict[str, list[int]]] = {}
    units_of: dict[str, dict[str, str]] = {}
    for i, heading in enumerate(table.names[1:], 1):
        match = _NAME.fullmatch(heading) if len(heading) <= MAX_NAME_LENGTH else None
        kind = (match[1] or "marker") if match else ""
        if match is None or kind not in KINDS:
            what = f"Column {i + 1} is called {heading[:60]!r}, expected `name.axis [unit]`."
            raise FileFormatError(path, what, line=table.line)
        vector = LAYOUT[KINDS[kind][0]].dims[-1] == "axis"
        name = match[2] if vector or not match[3] else f"{match[2]}.{match[3]}"
        indices_of.setdefault(kind, {}).setdefault(name, []).append(i)
        units_of.setdefault(kind, {})[name] = match[4]
    dimension = ""
    for kind, columns in indices_of.items():
        variable, units_in, kind_in = KINDS[kind]
        layout = LAYOUT[variable]
        width = 3 if layout.dims[-1] == "axis" else 1
        if any(len(indices) != width for indices in columns.values()):
            raise FileFormatError(path, f"Each {kind} must have {width} columns of its name.", line=table.line)
        if dimension not in ("", layout.dims[0]):
            raise FileFormatError(path, f"A {kind} does not belong into the table along {dimension}.", line=table.line)
        dimension = layout.dims[0]
        chosen = values[:, [i for indices in columns.values() for i in indices]]
        variables[variable] = chosen.reshape((len(values), len(columns), 3)[: len(layout.dims)])
        labels[layout.dims[1]] = list(columns)
        if units_in:
            labels[units_in] = [text.partition("; ")[0] for text in units_of[kind].values()]
        if kind_in:
            labels[kind_in] = [text.partition("; ")[2] for text in units_of[kind].values()]
    labels[dimension or "time"] = values[:, 0]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < MAX_MAGNITUDE else None


def _read_plain(path: Path, data: bytes, frame: FrameOptions, rate: float | None) -> Recording:
    """Read a table with one line of names above its numbers."""
    delimiter = sniff_delimiter(data[:65536].splitlines()[:20])
    rows = Rows(path, len(data))
    names: list[bytes] = []
    clock, counts_frames = -1, False
    skipped: list[str] = []
    for number, line in enumerate_lines(data, path):
        if not line.strip() or (line.startswith(b"#") and not names):
            continue
        cells = split_cells(line, delimiter, path, number)
        if not names:
            if not is_header(cells):
                raise FileFormatError(path, "Expected a line of column names before the numbers.", line=number)
            names = cells
            clock, counts_frames = _clock(path, cells)
            continue
        cells = strip_empty_end(cells)
        if len(cells) <= clock or not is_number(cells[clock]):
            skipped.append(decode_line(cells[0])[:30] if cells else "")
            if len(skipped) > 3:
                what = f"Column {decode_line(names[clock])!r} contains {skipped[-1]!r} and others, expected numbers."
                raise FileFormatError(path, what, line=number)
            continue
        if len(cells) > len(names):
            raise FileFormatError(path, f"The row has {len(cells)} cells for {len(names)} columns.", line=number)
        rows.add(cells, number, clock)
    if not len(rows):
        raise FileFormatError(path, "There is no row of numbers under the names.")
    heads = [parse_column_name(decode_line(name)) for name in names]
    notes = []
    if skipped:
        text = f"Rows without a time are skipped; they begin with {', '.join(map(repr, skipped))}."
        notes.append(Note(text, "problem", code="skipped_rows"))
    values = drop_implausible(rows.matrix(len(names)), notes)
    notes += Note.short_rows(rows.count_short(len(names)))
    times = _plain_times(values[:, clock], heads[clock], rows.decimals, counts_frames, rate)
    labels = number_repeated([to_single_line(head.name) or "column" for head in heads], notes)
    table = TableContent(labels, values, frame)
    table.notes += notes
    empty = [bool(np.isnan(column).all()) for column in values.T]
    table.take(
        i for i, name in enumerate(labels) if i == clock or FRAME.fullmatch(name) or (empty[i] and not heads[i].name)
    )
    table.add_plates()
    markers = _triples(table, heads)
    stated = heads[next(iter(markers.values()))[0]].units if markers else None
    table.add_marker_columns(markers, stated, default_up=table.attributes.get("file_up", "+Z"))
    table.add_rest([head.units for head in heads])
    table.set_times(times)
    return table.recording(path, "CSV")


def _clock(path: Path, names: Sequence[bytes]) -> tuple[int, bool]:
    """Return the index of the time column, and whether it only counts frames."""
    heads = [parse_column_name(decode_line(name)).name for name in names]
    for pattern, counts in ((TIME, False), (FRAME, True)):
        for i, head in enumerate(heads):
            if pattern.fullmatch(head):
                return i, counts
    shown = ", ".join(head[:40] for head in heads[:8]) + (", ..." if len(heads) > 8 else "")
    raise FileFormatError(path, f"The file is not a recording: no column is called time or frame, only {shown}.")


def _plain_times(stamps: Array, head: Column, decimals: int, counts: bool, rate: float | None) -> Times:
    check_rate(rate)
    if not counts:
        scale = 1e-3 if head.units.lower() in ("ms", "millisecond", "milliseconds") else 1.0
        return repair_time_stamps(stamps * scale, decimals + (3 if scale < 1.0 else 0), rate)
    if rate:
        return Times(np.arange(len(stamps)) / rate, rate, (specified_rate_note(rate),))
    text = f"There is no time column, only {head.name!r}, and no rate: one frame counts as 1 s."
    return Times(np.arange(len(stamps), dtype=float), None, (Note(text, "problem", "rate=", code="frame_rate"),))


def _triples(table: TableContent, heads: Sequence[Column]) -> dict[str, list[int]]:
    """Return the columns x, y, z of each marker: three free columns of one name whose unit is a length."""
    axes_of: dict[str, dict[str, int]] = {}
    for i, name in enumerate(table.names):
        match = _TRIPLE.fullmatch(name)
        if match and match[1] and table.free[i] and parse_unit(heads[i].units) in UNITS:
            axes_of.setdefault(match[1], {})[match[2].lower()] = i
    return {name: [axes[axis] for axis in "xyz"] for name, axes in axes_of.items() if len(axes) == 3}
