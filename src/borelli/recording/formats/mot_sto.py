"""MOT and STO: tables of OpenSim, with the headers of SIMM, OpenSim 1-3 and OpenSim 4.

The content follows from the column names: ground reaction forces become force plates, joint angles become coordinates
in radians and meters, all other columns (activations, moments, powers) keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.atomic import write_atomic
from borelli.files.delimited import strip_empty_end
from borelli.files.number_rows import (
    MAX_NAME_LENGTH,
    Rows,
    decode_line,
    enumerate_lines,
    format_numbers,
    parse_number,
    read_text_bytes,
    split_row,
    split_stripped,
    to_single_line,
)
from borelli.files.paths import as_path
from borelli.numerics.vectors import Array
from borelli.recording.formats.content import TableContent
from borelli.recording.formats.grf_columns import find_plates, plate_columns
from borelli.recording.recording import Note, Recording, drop_implausible, note_count, number_repeated
from borelli.recording.time_stamps import MAX_TIME, Times, repair_time_stamps, usable_rate
from borelli.recording.units_and_axes import FrameOptions, opensim_conversion

ELEMENTS = {"double": 1, "float": 1, "vec2": 2, "vec3": 3, "unitvec3": 3, "quaternion": 4, "vec6": 6, "spatialvec": 6}
"""Numbers in a cell, by the DataType of OpenSim 4."""
AXES = {2: "xy", 3: "xyz", 4: "wxyz", 6: "123456"}
RESULTS = re.compile(
    r"force|power|speed|error|dynamic|optimi[sz]|control|activation|probe|load|position|velocit|accelerat|moment"
    r"|excitation|analog|emg|value|reaction",
    re.IGNORECASE,
)
"""Titles of tables whose columns have names of coordinates but are not their values."""
UNIT_BY_ENDING = {"moment": "N m", "force": "N", "activation": "1", "fiber_length": "m"}

_ENDING = re.compile(r"_(moment|force)$|[./](activation|fiber_length)$")
_KEY = re.compile(r"\s*([A-Za-z_][\w. ]*?)\s*=\s*(.*?)\s*")
_SIMM = re.compile(r"\s*(name|datacolumns|datarows|otherdata|range|units|keys?)\s+(.*?)\s*", re.IGNORECASE)
_TRANSLATION = re.compile(r"(?:.*_)?t[xyz](?:_[rl])?(?:_\d+)?", re.IGNORECASE)
_STATE = re.compile(r"/.*/([^/]+)/(value|speed)")


def looks_like_table(head: bytes) -> bool:
    """Return whether the first bytes are those of a MOT or STO table."""
    return re.search(rb"^[^\S\n]*endheader[^\S\n]*$", head, re.IGNORECASE | re.MULTILINE) is not None


def read_table(
    path: str | Path,
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    degrees: bool | None = None,
) -> Recording:
    """Read a MOT or STO file: plates and markers in meters, z up, angles in radians.

    `degrees` specifies the unit of angles; default: as stated by the header, else inferred. Others: `read_recording`.
    """
    path = as_path(path)
    data = read_text_bytes(path)
    header, rows = _Header(), Rows(path, len(data))
    for number, line in enumerate_lines(data, path):
        header.take(line, number, rows)
    del data
    if not header.names:
        what = "There is no line of column names after `endheader`. Check that this is a MOT or STO file."
        raise FileFormatError(path, what)
    if not len(rows):
        raise FileFormatError(path, "There is no row under the column names.")
    notes = _header_notes(header, len(rows))
    values = drop_implausible(rows.matrix(len(header.names)), notes)
    names = number_repeated([name or "column" for name in header.names], notes)
    times, first = _times(header, names, values, rows)
    table = _Table(names[first:], values[:, first:], FrameOptions(units=units, up=up, forward=forward))
    table.metadata = {"title": header.title, "header": dict(header.settings), "comments": list(header.comments)}
    table.add_plates()
    table.add_static_markers()
    table.add_coordinates(header, path.suffix, degrees)
    table.add_rest([_unit_of(name, header.title) for name in table.names])
    table.set_times(times)
    table.notes += notes
    return table.recording(path, "MOT" if path.suffix.lower() == ".mot" else "STO")


def write_table(
    recording: Recording,
    path: str | Path,
    *,
    variables: Sequence[str] | None = None,
    up: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write coordinates (in degrees), ground reaction forces and other columns as a MOT or STO table of OpenSim.

    `variables` are some of "coordinate_value", "plate_force" and "column_value"; default: all of these. The default
    vertical axis is that of the MOT, STO or TRC file that was read, else "+Y".
    """
    path = as_path(path)
    data = recording.data
    chosen = [name for name in variables or ("coordinate_value", "plate_force", "column_value") if name in data]
    if not chosen:
        raise SettingsError(f"{recording.name or 'The recording'} has neither coordinates, plates nor other columns.")
    stamps = [data["analog_time" if name == "plate_force" else "time"].values for name in chosen]
    if any(not np.array_equal(stamps[0], other) for other in stamps[1:]):
        what = f"{' and '.join(chosen)} have different times. Write each to its own file with `variables`."
        raise SettingsError(what)
    degrees = "column_value" not in chosen
    parts = [_columns(recording, name, degrees, up) for name in chosen]
    names = [name for part, _ in parts for name in part]
    title = _title(recording, chosen, names, path)
    table = np.column_stack([values for _, values in parts])
    lines = [title, "version=1", f"nRows={len(table)}", f"nColumns={1 + table.shape[1]}"]
    rate = data.attrs.get("analog_rate_hz" if chosen[0] == "plate_force" else "rate_hz")
    lines += [] if rate is None else [f"DataRate={float(rate):.17g}"]
    lines += [f"inDegrees={'yes' if degrees else 'no'}", "", "endheader", "\t".join(["time", *names])]
    for stamp, row in zip(stamps[0].tolist(), table.tolist(), strict=True):
        lines.append("\t".join([repr(stamp), *format_numbers(row, "nan")]))
    write_atomic("\n".join(lines) + "\n", path, overwrite=overwrite, inputs=[recording.path])


@dataclass
class _Header:
    """Header above the numbers."""

    title: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    ended: bool = False
    simm: bool = False
    short: int = 0
    elements: int = 1
    time: int = 0

    def number(self, key: str) -> float | None:
        return parse_number(self.settings.get(key, "x").encode())

    def take(self, line: bytes, number: int, rows: Rows) -> None:
        """Read one line: a line of the header, the column names, or a row."""
        if not line.strip():
            return
        if not self.ended:
            self._take_setting(decode_line(line).strip(), number, rows)
        elif not self.names:
            self._take_names(line, number, rows)
        else:
            self._take_row(line, number, rows)

    def _take_setting(self, line: str, number: int, rows: Rows) -> None:
        if line.lower() == "endheader":
            self.ended = True
            return
        if number > 10_000:
            what = "There is no `endheader` in the first 10000 lines. Check that this is a MOT or STO file."
            raise FileFormatError(rows.path, what)
        text = line if len(line) <= MAX_NAME_LENGTH else ""
        key, simm = _KEY.fullmatch(text), _SIMM.fullmatch(text)
        if key:
            self.settings[key[1].lower()] = key[2]
        elif simm:
            self.simm = True
            self.settings[simm[1].lower()] = simm[2]
            self.title = self.title or (simm[2] if simm[1].lower() == "name" else "")
        elif not self.title and not self.settings:
            self.title = line
        else:
            self.comments.append(line)

    def _take_names(self, line: bytes, number: int, rows: Rows) -> None:
        kind = self.settings.get("datatype", "double").lower()
        if kind not in ELEMENTS:
            raise FileFormatError(rows.path, unknown_name("DataType", kind, ELEMENTS))
        self.elements = ELEMENTS[kind]
        cells = strip_empty_end([to_single_line(decode_line(cell)) for cell in split_stripped(line)])
        if not cells or all(parse_number(cell.encode()) is not None for cell in cells):
            raise FileFormatError(rows.path, "Expected the column names, got numbers.", line=number)
        self.time = next((i for i, cell in enumerate(cells) if cell.lower() in ("time", "t")), -1)
        self.names = cells
        if self.elements > 1:
            axes = AXES[self.elements]
            first = self.time + 1
            self.names = cells[:first] + [f"{cell}.{axis}" for cell in cells[first:] for axis in axes]

    def _take_row(self, line: bytes, number: int, rows: Rows) -> None:
        if self.elements > 1:
            line = line.translate(bytes.maketrans(b",", b"\t"), b"~[]()")
        cells = split_row(line)
        while len(cells) > len(self.names) and not cells[-1].strip():
            cells.pop()
        if len(cells) > len(self.names):
            what = f"The row has {len(cells)} cells for {len(self.names)} columns."
            raise FileFormatError(rows.path, what, line=number)
        self.short += len(cells) < len(self.names)
        rows.add(cells, number, self.time if self.time >= 0 else None)


class _Table(TableContent):
    def add_static_markers(self) -> None:
        """Add markers of a static pose: `name_tx name_ty name_tz` that are not coordinates, which have speeds."""
        index = {name: i for i, name in enumerate(self.names)}
        if any(f"{name}_u" in index for name in self.names):
            stems = [name[:-3] for name in self.names if name.endswith("_tx") and f"{name}_u" not in index]
            triples = {stem: [index.get(f"{stem}_t{axis}", -1) for axis in "xyz"] for stem in stems}
            columns = {stem: triple for stem, triple in triples.items() if -1 not in triple}
            self.add_marker_columns(columns, default_units="m", default_up=self.attributes.get("file_up", "+Y"))

    def add_coordinates(self, header: _Header, suffix: str, degrees: bool | None) -> None:
        """Add joint angles and translations; `suffix` is the file's."""
        are_coordinates = coordinate_columns(self.names, header.title, suffix)
        chosen = [i for i, is_one in enumerate(are_coordinates) if is_one and self.free[i]]
        if not chosen:
            return
        names = [_coordinate_name(self.names[i]) for i in chosen]
        if len(set(names)) < len(names):
            names = [self.names[i] for i in chosen]
        values = self.values[:, chosen]
        rotational = np.array([not _TRANSLATION.fullmatch(name) for name in names])
        in_degrees, note = _in_degrees(values[:, rotational], header, degrees)
        scale = np.where(rotational & in_degrees, np.pi / 180.0, 1.0)
        for name in _unconverted(names, values) if in_degrees else ():
            scale[names.index(name)] = 1.0
            text = f"{name} is in radians although the file is in degrees: it equals {name.removesuffix('_beta')}."
            self.notes.append(Note(text, "inferred", code="angle_unit"))
        self.take(chosen)
        self.variables["coordinate_value"] = values * scale
        self.labels |= {"coordinate": names, "coordinate_units": ["rad" if angle else "m" for angle in rotational]}
        if rotational.any():
            self.notes.append(note)


def _in_degrees(angles: Array, header: _Header, specified: bool | None) -> tuple[bool, Note]:
    """Return whether angles are in degrees: as specified, as stated, or as their size shows."""
    if specified is not None:
        text = f"Angle unit: {'degrees' if specified else 'radians'}, as specified."
        return specified, Note(text, "stated", code="angle_unit")
    largest = np.nanmax(np.abs(angles), axis=0, initial=0.0, where=~np.isnan(angles))
    # joints rotate by less than a revolution; a quarter of the columns is more than a spinning pelvis
    big = float(np.mean(largest > 2.0 * np.pi)) if angles.shape[1] else 0.0
    stated = header.settings.get("indegrees", "").lower()
    if stated in ("yes", "true", "1"):
        return True, Note("Angle unit: degrees, stated by the header (inDegrees=yes).", "stated", code="angle_unit")
    if stated in ("no", "false", "0") and big < 0.25:
        return False, Note("Angle unit: radians, stated by the header (inDegrees=no).", "stated", code="angle_unit")
    evidence = f"{100.0 * big:.0f} % of the columns exceed 2 pi, the largest value is {largest.max(initial=0.0):.4g}"
    if stated in ("no", "false", "0"):
        text = f"The header states inDegrees=no, but {evidence}: degrees are assumed."
        return True, Note(text, "problem", "degrees=False", code="angle_unit")
    if header.simm or big >= 0.25:
        why = "as usual in SIMM tables" if big < 0.25 else evidence
        return True, Note(f"Angle unit: degrees, inferred ({why}).", "inferred", "degrees=", code="angle_unit")
    text = f"Angle unit: radians, inferred ({evidence})."
    return False, Note(text, "inferred", "degrees=", code="angle_unit")


def _unconverted(names: Sequence[str], values: Array) -> list[str]:
    """Return coupled coordinates such as knee_angle_r_beta, which OpenSim leaves in radians."""
    in_radians = []
    for i, name in enumerate(names):
        partner = name.removesuffix("_beta")
        if partner != name and partner in names:
            expected = np.radians(values[:, names.index(partner)])
            same = np.abs(values[:, i] - expected) < 1e-3
            if np.nanmax(np.abs(expected), initial=0.0) > 0.02 and np.mean(same) > 0.9:
                in_radians.append(name)
    return in_radians


def coordinate_columns(names: Sequence[str], title: str, suffix: str) -> list[bool]:
    """Return which columns are coordinates, by title, by matching speeds, or because a MOT file is a motion."""
    known = set(names)
    if any(_STATE.fullmatch(name) for name in names):
        return [bool((match := _STATE.fullmatch(name)) and match[2] == "value") for name in names]
    if any(f"{name}_u" in known for name in names):
        return [f"{name}_u" in known for name in names]
    if title.strip().lower() == "coordinates":
        return [True] * len(names)
    return [suffix.lower() == ".mot" and not RESULTS.search(title)] * len(names)


def _coordinate_name(name: str) -> str:
    match = _STATE.fullmatch(name)
    return match[1] if match else name


def _unit_of(name: str, title: str) -> str:
    if ending := _ENDING.search(name):
        return UNIT_BY_ENDING[ending[0][1:]]
    return "W" if title.replace(" ", "").lower() in ("actuatorpowers", "modelprobes") else ""


def _times(header: _Header, names: Sequence[str], values: Array, rows: Rows) -> tuple[Times, int]:
    """Return the times, and the number of time columns."""
    if header.time >= 0:
        if header.time > 0:
            raise FileFormatError(rows.path, f"The time is column {header.time + 1}, expected column 1.")
        return repair_time_stamps(values[:, 0], rows.decimals, header.number("datarate")), 1
    limits = [parse_number(word.encode()) for word in header.settings.get("range", "").split()]
    start, end = (limits[0] or 0.0, limits[1] or 0.0) if len(limits) == 2 and None not in limits else (0.0, 0.0)
    if -MAX_TIME < start < end < MAX_TIME and len(values) > 1:
        times = np.linspace(start, end, len(values))
        text = "There is no time column; the rows are assumed to be evenly spaced over the range in the header."
        note = Note(text, "inferred", code="frame_rate")
        return Times(times, usable_rate((len(values) - 1) / (end - start)), (note,)), 0
    raise FileFormatError(rows.path, f"No column is called time; the first is {names[0]!r}.")


def _header_notes(header: _Header, rows: int) -> list[Note]:
    notes: list[Note] = []
    if header.elements == 1:
        settings = header.settings
        note_count(header.number("nrows" if "nrows" in settings else "datarows"), rows, "rows", notes)
        columns = header.number("ncolumns" if "ncolumns" in settings else "datacolumns")
        note_count(columns, len(header.names), "columns", notes)
    if header.short:
        text = f"{header.short} rows are too short; their missing values are NaN."
        notes.append(Note(text, "problem", code="short_rows"))
    return notes


def _columns(recording: Recording, variable: str, degrees: bool, up: str | None) -> tuple[list[str], Array]:
    data = recording.data
    if variable == "plate_force":
        return plate_columns(recording, opensim_conversion(recording, "m", up))
    dimension = "coordinate" if variable == "coordinate_value" else "column"
    names = [re.sub(r"\s+", "_", to_single_line(str(name))) for name in data[dimension].values]
    values = np.asarray(data[variable].values, dtype=float)
    if variable == "coordinate_value" and degrees and "coordinate_units" in data.coords:
        values = np.where(data["coordinate_units"].values == "rad", np.degrees(values), values)
    return names, values


def _title(recording: Recording, chosen: Sequence[str], names: Sequence[str], path: Path) -> str:
    """Return a title under which the reader recognizes each column."""
    own = to_single_line(str(recording.metadata.get("title", ""))) or to_single_line(recording.name) or "borelli"
    if "=" in own or _SIMM.fullmatch(own):
        own = "borelli"
    taken = {i for plate in find_plates(names).values() for triple in plate[:3] for i in triple or ()}
    expected_columns = [True] * len(names) if chosen == ["coordinate_value"] else None
    for title in ("Coordinates", own, "values") if "coordinate_value" in chosen else (own, "values"):
        got = coordinate_columns(names, title, path.suffix)
        counted = sum(is_one for i, is_one in enumerate(got) if i not in taken)
        expected = len(recording.data["coordinate"]) if "coordinate_value" in chosen else 0
        if counted == expected and expected_columns in (None, got):
            return title
    what = "Coordinates and other columns do not fit into one table. Write each to its own file with"
    raise SettingsError(f'{what} variables=["coordinate_value"] and variables=["column_value"].')
