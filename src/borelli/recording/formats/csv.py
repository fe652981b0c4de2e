"""CSV: tables of numbers with a line of names; ours, those of measuring systems, and plain ones.

Ours begins with `# borelli recording`, has one table for what is sampled with the markers and one for what is sampled
with the plates, and names its columns `name.axis [unit]`, with the kind before a colon where it is no marker:
`LASI.x [m]`, `force:1.z [N]`, `coordinate:knee_angle_r [rad]`, `analog:EMG1 [V; emg]`. It keeps all numbers exactly.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from borelli.errors import FileFormatError, SettingsError
from borelli.files.delimited import Column, column_of, is_header, sniff_delimiter, split_cells, without_empty_end
from borelli.files.number_rows import (
    ABSURD,
    LONGEST_NAME,
    Rows,
    decode,
    is_number,
    number_of,
    numbered_lines,
    one_line,
    read_text_bytes,
    without_absurd,
)
from borelli.files.text import write_text
from borelli.model.transforms import Array
from borelli.recording.formats.grf_columns import find_plates, plates_of, with_threshold
from borelli.recording.formats.vendor_csv import EXPORTS
from borelli.recording.recording import LAYOUT, Note, Recording, make_dataset, unique_names
from borelli.recording.time_stamps import Times, repair_time_stamps, usable_rate
from borelli.recording.units_and_axes import UNITS, infer_conversion, parse_unit

FIRST_LINE = "# borelli recording 1"
MAX_ROWS = 100_000
"""Of events and of corners of plates."""

KINDS = {  # what stands before the colon: the variable, and the coordinates with its unit and kind
    "marker": ("marker_position", "", ""),
    "residual": ("marker_residual", "", ""),
    "quantity": ("model_output", "quantity_units", "quantity_kind"),
    "coordinate": ("coordinate_value", "coordinate_units", ""),
    "value": ("column_value", "column_units", ""),
    "joint": ("joint_center", "", ""),
    "force": ("plate_force", "", ""),
    "cop": ("plate_center_of_pressure", "", ""),
    "free_moment": ("plate_free_moment", "", ""),
    "foot_force": ("foot_force", "", ""),
    "foot_cop": ("foot_center_of_pressure", "", ""),
    "foot_free_moment": ("foot_free_moment", "", ""),
    "analog": ("analog", "channel_units", "channel_kind"),
}
TIME = re.compile(r"time|t|timestamp|seconds|time[ _]?stamp", re.IGNORECASE)
FRAME = re.compile(r"frames?#?|time_?step|sample|index|frame[ _]?(?:number|no\.?)", re.IGNORECASE)

_NAME = re.compile(r"(?:(\w+):)?(.*?)(?:\.([xyz]))? \[([^\]]*)\]")
_TRIPLE = re.compile(r"(.*?)[ ._-]?([xyz])", re.IGNORECASE)


def looks_like_csv(head: bytes) -> bool:
    """Whether a file that begins so may be a table of text: it has no control characters, and a delimiter."""
    if any(byte < 32 and byte not in (9, 10, 12, 13) for byte in head):
        return False
    return sniff_delimiter(head.splitlines()[:20]) is not None


def read_csv(
    path: str | os.PathLike[str],
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    rate: float | None = None,
) -> Recording:
    """What a CSV file holds; positions in metres, z up.

    Read are our own files, exports of Vicon Nexus, Qualisys (TSV) and OptiTrack Motive, and plain tables with a column
    called time or frame, whose other columns are numbers.

    Args:
        path: The file.
        units: Unit of its positions, if the reader does not see it.
        up: Its vertical axis.
        forward: Its axis to be turned into x.
        rate: Frames per second [Hz] of a plain table that has no time column.
    """
    path = Path(path)
    data = read_text_bytes(path)
    if data.startswith(FIRST_LINE.encode()):
        return _read_own(path, data)
    for looks, read in EXPORTS:
        if looks(data[:4096]):
            return read(path, data, units=units, up=up, forward=forward)
    return _read_plain(path, data, units=units, up=up, forward=forward, rate=rate)


def write_csv(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Writes all the numbers of a recording, exactly, with names and units; z up, metres."""
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
        names, columns = _own_columns(recording, dimension)
        if names:
            writer.writerow(["time [s]", *names])
            table = np.column_stack([data[dimension].values, *columns])
            writer.writerows([["" if v != v else repr(v) for v in row] for row in table.tolist()])
            text.write("\n")
    if "plate_corners" in data:
        writer.writerow(["plate", "corner", "x [m]", "y [m]", "z [m]"])
        corners = data["plate_corners"].values
        for p, name in enumerate(recording.plates):
            writer.writerows([one_line(name), c + 1, *map(repr, corners[p, c].tolist())] for c in range(4))
        text.write("\n")
    if "event_time" in data:
        writer.writerow(["event time [s]", "label", "context"])
        rows = zip(*(data[key].values.tolist() for key in ("event_time", "event_label", "event_context")), strict=True)
        writer.writerows([repr(time), one_line(str(label)), one_line(str(side))] for time, label, side in rows)
        text.write("\n")
    write_text(text.getvalue(), path)


def _more_attributes(attributes: Mapping[Any, Any]) -> dict[str, str | float | int]:
    """What a variable's attributes say beyond what its name tells."""
    known = ("units", "frame")
    return {str(k): v for k, v in attributes.items() if k not in known and isinstance(v, str | float | int)}


def _own_columns(recording: Recording, dimension: str) -> tuple[list[str], list[Array]]:
    """Names and values of the columns of our table that has this time."""
    data = recording.data
    names: list[str] = []
    columns: list[Array] = []
    for kind, (variable, units_in, kind_in) in KINDS.items():
        layout = LAYOUT[variable]
        if variable not in data or layout.dims[0] != dimension:
            continue
        labels = [one_line(str(name)) for name in data[layout.dims[1]].values]
        units = [str(u) for u in data[units_in].values] if units_in in data.coords else [layout.units] * len(labels)
        kinds = [f"; {k}" for k in data[kind_in].values] if kind_in in data.coords else [""] * len(labels)
        axes = [f".{axis}" for axis in "xyz"] if layout.dims[-1] == "axis" else [""]
        for label, unit, sort in zip(labels, units, kinds, strict=True):
            bare = kind == "marker" and ":" not in label
            names += [f"{label if bare else f'{kind}:{label}'}{axis} [{unit}{sort}]" for axis in axes]
        columns.append(data[variable].values.reshape(data.sizes[dimension], -1))
    return names, columns


class _Table:
    """One table of our own files: names, then rows; numbers where it is a series in time, texts where it is not."""

    def __init__(self, path: Path, names: list[str], line: int, size: int) -> None:
        self.path = path
        self.names = names
        self.line = line
        self.series = Rows(path, size) if names[0] == "time [s]" else None
        self.rows: list[list[str]] = []

    def add(self, cells: list[bytes], number: int) -> None:
        if len(cells) != len(self.names):
            what = f"the row has {len(cells)} cells for {len(self.names)} columns"
            raise FileFormatError(self.path, what, line=number)
        if self.series is not None:
            self.series.add(cells, number)
        elif len(self.rows) < MAX_ROWS:
            self.rows.append([decode(cell) for cell in cells])
        else:
            raise FileFormatError(self.path, f"more than {MAX_ROWS} rows of events or plates", line=number)

    def numbers(self, columns: Sequence[int]) -> Array:
        """Some columns of a table of texts, as numbers."""
        values = [number_of(row[column].encode()) for row in self.rows for column in columns]
        if any(value is None or abs(value) > ABSURD for value in values):
            raise FileFormatError(self.path, "expected numbers in the table that begins here", line=self.line)
        return np.array(values, dtype=float).reshape(-1, len(columns))


def _read_own(path: Path, data: bytes) -> Recording:
    """A file that `write_csv` wrote."""
    about: dict[str, Any] = {}
    tables: list[_Table] = []
    open_table = False
    for number, line in numbered_lines(data, path):
        if line.startswith(b"#") and not tables:
            key, _, value = decode(line[1:]).strip().partition(": ")
            try:
                about[key] = json.loads(value) if value else None
            except (ValueError, RecursionError):
                raise FileFormatError(path, f"what follows {key!r} is not JSON", line=number) from None
        elif not line.strip():
            open_table = False
        else:
            cells = line.split(b",") if b'"' not in line else split_cells(line, b",", path, number)
            if open_table:
                tables[-1].add(cells, number)
            elif len(tables) < len(LAYOUT):
                tables.append(_Table(path, [decode(cell) for cell in cells], number, len(data)))
                open_table = True
            else:
                raise FileFormatError(path, "more tables than a recording has", line=number)
    variables: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    notes: list[Note] = []
    for table in tables:
        _take_table(table, variables, labels, notes)
    if not variables:
        raise FileFormatError(path, "no table in the file")
    rates = {key: usable_rate(_number(about.pop(key, None))) for key in ("rate", "analog_rate")}
    try:
        dataset = make_dataset(variables, labels, rate=rates["rate"], analog_rate=rates["analog_rate"])
    except ValueError as error:
        raise FileFormatError(path, f"its tables do not fit together: {' '.join(str(error).split())[:200]}") from None
    subject, name, more = (about.pop(key, None) for key in ("subject", "name", "attributes"))
    for variable, attrs in more.items() if isinstance(more, dict) else ():
        if variable in dataset and isinstance(attrs, dict):
            dataset[variable].attrs |= _more_attributes(attrs)
    attributes = {key: value for key, value in about.items() if isinstance(value, str | float | int)}
    return Recording(
        data=dataset.assign_attrs(attributes),
        name=str(name or path.stem),
        path=str(path),
        format="CSV",
        subject=subject if isinstance(subject, dict) else {},
        notes=tuple(notes),
    )


def _take_table(table: _Table, variables: dict[str, Any], labels: dict[str, Any], notes: list[Note]) -> None:
    """Puts the columns of one of our tables to their variables."""
    if table.series is not None:
        values, absurd = without_absurd(table.series.matrix(len(table.names)))
        if absurd:
            notes.append(Note(f"{absurd} infinite or absurdly large numbers are taken as not measured", "problem"))
        if not np.isfinite(values[:, 0]).all():
            raise FileFormatError(table.path, "a row of the table that begins here has no time", line=table.line)
        backward = int(np.count_nonzero(np.diff(values[:, 0]) <= 0.0))
        if backward:
            notes.append(Note(f"{backward} steps of time do not advance", "problem", "resample"))
        _take_series(table, values, variables, labels)
    elif table.names[0] == "event time [s]" and len(table.names) == 3:
        variables["event_time"] = table.numbers([0])[:, 0]
        labels |= {"event_label": [row[1] for row in table.rows], "event_context": [row[2] for row in table.rows]}
        labels["event"] = np.arange(len(table.rows))
    elif table.names[:2] == ["plate", "corner"] and len(table.names) == 5 and len(table.rows) % 4 == 0:
        variables["plate_corners"] = table.numbers([2, 3, 4]).reshape(-1, 4, 3)
        labels["plate"] = [row[0] for row in table.rows[::4]]
    else:
        what = f"a table that begins {table.names[0][:40]!r} is not known here"
        raise FileFormatError(table.path, what, line=table.line)


def _take_series(table: _Table, values: Array, variables: dict[str, Any], labels: dict[str, Any]) -> None:
    path = table.path
    found: dict[str, dict[str, list[int]]] = {}
    facts: dict[str, dict[str, str]] = {}
    for i, heading in enumerate(table.names[1:], 1):
        match = _NAME.fullmatch(heading) if len(heading) <= LONGEST_NAME else None
        kind = (match[1] or "marker") if match else ""
        if match is None or kind not in KINDS:
            raise FileFormatError(
                path, f"column {i + 1} is called {heading[:60]!r}, not `name.axis [unit]`", line=table.line
            )
        vector = LAYOUT[KINDS[kind][0]].dims[-1] == "axis"
        name = match[2] if vector or not match[3] else f"{match[2]}.{match[3]}"
        found.setdefault(kind, {}).setdefault(name, []).append(i)
        facts.setdefault(kind, {})[name] = match[4]
    dimension = ""
    for kind, columns in found.items():
        variable, units_in, kind_in = KINDS[kind]
        layout = LAYOUT[variable]
        width = 3 if layout.dims[-1] == "axis" else 1
        if any(len(indices) != width for indices in columns.values()):
            raise FileFormatError(path, f"a {kind} has not {width} columns of its name", line=table.line)
        if dimension not in ("", layout.dims[0]):
            raise FileFormatError(path, f"a {kind} has no place in the table of {dimension}", line=table.line)
        dimension = layout.dims[0]
        chosen = values[:, [i for indices in columns.values() for i in indices]]
        variables[variable] = chosen.reshape((len(values), len(columns), 3)[: len(layout.dims)])
        labels[layout.dims[1]] = list(columns)
        if units_in:
            labels[units_in] = [fact.partition("; ")[0] for fact in facts[kind].values()]
        if kind_in:
            labels[kind_in] = [fact.partition("; ")[2] for fact in facts[kind].values()]
    labels[dimension or "time"] = values[:, 0]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < ABSURD else None


def _read_plain(
    path: Path, data: bytes, *, units: str | None, up: str | None, forward: str | None, rate: float | None
) -> Recording:
    """A table with one line of names above its numbers."""
    delimiter = sniff_delimiter(data[:65536].splitlines()[:20])
    rows = Rows(path, len(data))
    names: list[bytes] = []
    clock = (-1, False)
    left_out: list[str] = []
    for number, line in numbered_lines(data, path):
        if not line.strip() or (line.startswith(b"#") and not names):
            continue
        cells = split_cells(line, delimiter, path, number)
        if not names:
            if not is_header(cells):
                raise FileFormatError(path, "expected a line of column names before the numbers", line=number)
            names, clock = cells, _clock(path, cells)
            continue
        cells = without_empty_end(cells)
        if len(cells) <= clock[0] or not is_number(cells[clock[0]]):
            left_out.append(decode(cells[0])[:30] if cells else "")
            if len(left_out) > 3:
                what = f"column {decode(names[clock[0]])!r} holds {left_out[-1]!r}, and others that are no numbers"
                raise FileFormatError(path, what, line=number)
            continue
        if len(cells) > len(names):
            raise FileFormatError(path, f"the row has {len(cells)} cells for {len(names)} columns", line=number)
        rows.add(cells, number, clock[0])
    if not len(rows):
        raise FileFormatError(path, "no row of numbers under the names")
    notes = []
    if left_out:
        notes.append(
            Note(f"rows that begin {', '.join(map(repr, left_out))} are left out: they have no time", "problem")
        )
    heads = [column_of(decode(name)) for name in names]
    values, infinite = without_absurd(rows.matrix(len(names)))
    if infinite:
        notes.append(Note(f"{infinite} infinite or absurdly large numbers are taken as not measured", "problem"))
    times = _plain_times(values[:, clock[0]], heads[clock[0]], rows.decimals, clock[1], rate)
    return _plain_recording(path, heads, values, clock[0], times, notes, units=units, up=up, forward=forward)


def _clock(path: Path, names: Sequence[bytes]) -> tuple[int, bool]:
    """Which column tells the time, and whether it only counts frames."""
    heads = [column_of(decode(name)).name for name in names]
    for pattern, counts in ((TIME, False), (FRAME, True)):
        for i, head in enumerate(heads):
            if pattern.fullmatch(head):
                return i, counts
    shown = ", ".join(head[:40] for head in heads[:8]) + (", ..." if len(heads) > 8 else "")
    raise FileFormatError(path, f"this is no recording: no column is called time or frame, only {shown}")


def _plain_times(stamps: Array, head: Column, decimals: int, counts: bool, rate: float | None) -> Times:
    if rate is not None and usable_rate(rate) is None:
        raise SettingsError(f"rate is {rate} Hz, but must be positive")
    if not counts:
        scale = 1e-3 if head.units.lower() in ("ms", "millisecond", "milliseconds") else 1.0
        return repair_time_stamps(stamps * scale, decimals + (3 if scale < 1.0 else 0), rate)
    if rate:
        return Times(np.arange(len(stamps)) / rate, rate, (Note(f"the rate is {rate:g} Hz, as asked", "stated"),))
    what = f"there is no time, only {head.name!r}, and no rate; times count frames as seconds"
    return Times(np.arange(len(stamps), dtype=float), None, (Note(what, "problem", "rate="),))


def _plain_recording(
    path: Path,
    heads: Sequence[Column],
    values: Array,
    clock: int,
    times: Times,
    notes: list[Note],
    *,
    units: str | None,
    up: str | None,
    forward: str | None,
) -> Recording:
    names, repeated = unique_names([one_line(head.name) or "column" for head in heads])
    if repeated:
        notes.append(Note(f"repeated column names are numbered: {', '.join(repeated[:10])}", "problem"))
    empty = [bool(np.isnan(column).all()) for column in values.T]
    free = [
        i != clock and not FRAME.fullmatch(name) and not (empty[i] and not heads[i].name)
        for i, name in enumerate(names)
    ]
    variables: dict[str, Any] = {}
    labels: dict[str, Any] = {"time": times.times, "analog_time": times.times}
    attributes: dict[str, str] = {}
    plates = find_plates(names)
    found = plates_of(plates, values, units=units, up=up, forward=forward) if plates else None
    if found:
        variables |= found.variables
        labels["plate"] = list(plates)
        notes += found.notes
        attributes = found.conversion.attributes
        for plate in plates.values():
            for i in (i for triple in plate[:3] for i in triple or ()):
                free[i] = False
    markers = _triples(names, heads, free)
    if markers:
        columns = [i for triple in markers.values() for i in triple]
        points = values[:, columns].reshape(len(values), len(markers), 3)
        stated = heads[columns[0]].units
        usual_up = found.conversion.up if found else "+Z"
        turned, axis_notes = infer_conversion(
            stated, None, points, list(markers), units=units, up=up, forward=forward, usual_up=usual_up
        )
        variables["marker_position"] = turned.apply(points)
        labels["marker"] = list(markers)
        notes += axis_notes
        attributes = turned.attributes
        for i in columns:
            free[i] = False
    rest = [i for i, is_free in enumerate(free) if is_free]
    variables["column_value"] = values[:, rest]
    labels |= {"column": [names[i] for i in rest], "column_units": [heads[i].units for i in rest]}
    dataset = make_dataset(variables, labels, rate=times.rate, analog_rate=times.rate if plates else None, **attributes)
    return Recording(with_threshold(dataset), path.stem, str(path), "CSV", notes=(*notes, *times.notes))


def _triples(names: Sequence[str], heads: Sequence[Column], free: Sequence[bool]) -> dict[str, tuple[int, int, int]]:
    """Markers: three columns of one name and x, y, z, whose unit is a length."""
    found: dict[str, dict[str, int]] = {}
    for i, name in enumerate(names):
        match = _TRIPLE.fullmatch(name)
        if match and match[1] and free[i] and parse_unit(heads[i].units) in UNITS:
            found.setdefault(match[1], {})[match[2].lower()] = i
    return {name: (axes["x"], axes["y"], axes["z"]) for name, axes in found.items() if len(axes) == 3}
