"""MOT and STO: OpenSim's tables, with the headers of SIMM, of OpenSim 1-3 and of OpenSim 4.

What a table holds is told by its names: ground forces become force plates, joint angles become coordinates in radians
and metres, everything else (activations, moments, powers) keeps its numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import FileFormatError, SettingsError
from borelli.files.number_rows import (
    LONGEST_NAME,
    Rows,
    cells_of,
    decode,
    number_cells,
    number_of,
    numbered_lines,
    one_line,
    read_text_bytes,
    row_cells,
    without_absurd,
)
from borelli.files.text import write_text
from borelli.recording.formats.grf_columns import find_plates, plate_table, plates_of, with_threshold
from borelli.recording.recording import Note, Recording, make_dataset, unique_names
from borelli.recording.time_stamps import MAX_TIME, Times, repair_time_stamps, usable_rate
from borelli.recording.units_and_axes import Conversion, infer_conversion, opensim_axes

Array = NDArray[np.float64]

ELEMENTS = {"double": 1, "float": 1, "vec2": 2, "vec3": 3, "unitvec3": 3, "quaternion": 4, "vec6": 6, "spatialvec": 6}
"""How many numbers a cell holds, by the DataType of OpenSim 4."""
AXES = {2: "xy", 3: "xyz", 4: "wxyz", 6: "123456"}
RESULTS = re.compile(
    r"force|power|speed|error|dynamic|optimi[sz]|control|activation|probe|load|position|velocit|accelerat|moment"
    r"|excitation|analog|emg|value|reaction",
    re.IGNORECASE,
)
"""Titles of tables whose columns are named after coordinates but are not their values."""

_KEY = re.compile(r"\s*([A-Za-z_][\w. ]*?)\s*=\s*(.*?)\s*")
_SIMM = re.compile(r"\s*(name|datacolumns|datarows|otherdata|range|units|keys?)\s+(.*?)\s*", re.IGNORECASE)
_SHIFT = re.compile(r"(?:.*_)?t[xyz](?:_[rl])?(?:_\d+)?", re.IGNORECASE)
_STATE = re.compile(r"/.*/([^/]+)/(value|speed)")


def looks_like_table(head: bytes) -> bool:
    """Whether a file that begins so is a MOT or STO table."""
    return re.search(rb"^[^\S\n]*endheader[^\S\n]*$", head, re.IGNORECASE | re.MULTILINE) is not None


def read_table(
    path: str | os.PathLike[str],
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    degrees: bool | None = None,
) -> Recording:
    """What a MOT or STO file holds: plates and markers in metres, z up, angles in radians.

    Args:
        path: The file.
        units: Unit of its lengths, if they are not what the reader takes them for.
        up: Its vertical axis, for ground forces and markers.
        forward: Its axis to be turned into x.
        degrees: Whether its angles are in degrees, whatever the header says.
    """
    path = Path(path)
    data = read_text_bytes(path)
    header, rows = _Header(), Rows(path, len(data))
    for number, line in numbered_lines(data, path):
        header.take(line, number, rows)
    del data
    if not header.names:
        raise FileFormatError(path, "no line of column names after `endheader`; is this a MOT or STO file?")
    if not len(rows):
        raise FileFormatError(path, "the column names are followed by no row")
    values, infinite = without_absurd(rows.matrix(len(header.names)))
    notes = list(_faults(header, rows, infinite))
    names, repeated = unique_names([name or "column" for name in header.names])
    if repeated:
        notes.append(Note(f"repeated column names are numbered: {', '.join(repeated[:10])}", "problem"))
    times, first = _times(header, names, values, rows)
    sheet = _Sheet(path, header, names[first:], values[:, first:])
    sheet.add_plates(units, up, forward)
    sheet.add_markers(units, up, forward)
    sheet.add_coordinates(degrees)
    sheet.add_values()
    analog = "plate_force" in sheet.variables
    dataset = make_dataset(
        sheet.variables,
        {**sheet.labels, "time": times.times, "analog_time": times.times},
        rate=times.rate,
        analog_rate=times.rate if analog else None,
        **sheet.attributes,
    )
    return Recording(
        data=with_threshold(dataset),
        name=path.stem,
        path=str(path),
        format="MOT" if path.suffix.lower() == ".mot" else "STO",
        metadata={"title": header.title, "header": dict(header.settings), "comments": list(header.comments)},
        notes=(*sheet.notes, *times.notes, *notes),
    )


def write_table(
    recording: Recording, path: str | os.PathLike[str], *, what: Sequence[str] | None = None, up: str | None = None
) -> None:
    """Writes coordinates (in degrees), ground forces and other columns as a MOT or STO table of OpenSim.

    Args:
        recording: Holds them.
        path: Of the file, which ends in .mot or .sto.
        what: Which variables: "coordinate_value", "plate_force", "column_value"; by default all there are.
        up: Vertical axis of the ground forces; by default "+Y", or that of the MOT, STO or TRC file they came from.

    Raises:
        SettingsError: if there is nothing to write, or things that one table cannot hold together.
    """
    path = Path(path)
    data = recording.data
    chosen = [name for name in what or ("coordinate_value", "plate_force", "column_value") if name in data]
    if not chosen:
        raise SettingsError(f"{recording.name or 'the recording'} has neither coordinates, plates nor other columns")
    stamps = [data["analog_time" if name == "plate_force" else "time"].values for name in chosen]
    if any(not np.array_equal(stamps[0], other) for other in stamps[1:]):
        raise SettingsError(f"{' and '.join(chosen)} have different times; write each to its own file with `what`")
    degrees = "column_value" not in chosen
    names: list[str] = []
    columns: list[Array] = []
    for name in chosen:
        more, values = _columns(recording, name, degrees, up)
        names += more
        columns.append(values)
    title = _title(recording, chosen, names, path)
    table = np.column_stack(columns)
    lines = [title, "version=1", f"nRows={len(table)}", f"nColumns={1 + table.shape[1]}"]
    rate = data.attrs.get("analog_rate" if chosen[0] == "plate_force" else "rate")
    lines += [] if rate is None else [f"DataRate={float(rate):.17g}"]
    lines += [f"inDegrees={'yes' if degrees else 'no'}", "", "endheader", "\t".join(["time", *names])]
    for stamp, row in zip(stamps[0].tolist(), table.tolist(), strict=True):
        lines.append("\t".join([repr(stamp), *number_cells(row, "nan")]))
    write_text("\n".join(lines) + "\n", path)


@dataclass
class _Header:
    """What stands above the numbers."""

    title: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    ended: bool = False
    simm: bool = False
    short: int = 0
    elements: int = 1
    time: int = 0
    _widths: list[int] = field(default_factory=list)

    def number(self, key: str) -> float | None:
        """A setting that is a number; None if there is none."""
        return number_of(self.settings.get(key, "x").encode())

    def take(self, line: bytes, number: int, rows: Rows) -> None:
        """Reads one line of the file: of the header, the column names, or a row."""
        if not line.strip():
            return
        if not self.ended:
            self._take_setting(decode(line).strip(), number, rows)
        elif not self.names:
            self._take_names(line, number, rows)
        else:
            self._take_row(line, number, rows)

    def _take_setting(self, line: str, number: int, rows: Rows) -> None:
        if line.lower() == "endheader":
            self.ended = True
            return
        if number > 10_000:
            raise FileFormatError(rows.path, "no `endheader` in the first 10000 lines; is this a MOT or STO file?")
        told = line if len(line) <= LONGEST_NAME else ""
        key, simm = _KEY.fullmatch(told), _SIMM.fullmatch(told)
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
            raise FileFormatError(rows.path, f"DataType is {kind!r}, but must be one of {', '.join(ELEMENTS)}")
        self.elements = ELEMENTS[kind]
        cells = [one_line(decode(cell)) for cell in cells_of(line)]
        while cells and not cells[-1]:
            cells.pop()
        if not cells or all(number_of(cell.encode()) is not None for cell in cells):
            raise FileFormatError(rows.path, "expected the column names, got numbers", line=number)
        self.time = next((i for i, cell in enumerate(cells) if cell.lower() in ("time", "t")), -1)
        self.names = cells
        if self.elements > 1:
            axes = AXES[self.elements]
            lead = self.time + 1
            self.names = cells[:lead] + [f"{cell}.{axis}" for cell in cells[lead:] for axis in axes]

    def _take_row(self, line: bytes, number: int, rows: Rows) -> None:
        if self.elements > 1:
            line = line.translate(bytes.maketrans(b",", b"\t"), b"~[]()")
        cells = row_cells(line)
        while len(cells) > len(self.names) and not cells[-1].strip():
            cells.pop()
        if len(cells) > len(self.names):
            what = f"the row has {len(cells)} cells for {len(self.names)} columns"
            raise FileFormatError(rows.path, what, line=number)
        self.short += len(cells) < len(self.names)
        rows.add(cells, number, self.time if self.time >= 0 else None)


class _Sheet:
    """The columns of a table, taken out one kind after the other."""

    def __init__(self, path: Path, header: _Header, names: Sequence[str], values: Array) -> None:
        self.path = path
        self.header = header
        self.names = list(names)
        self.values = values
        self.free = [True] * len(self.names)
        self.variables: dict[str, Any] = {}
        self.labels: dict[str, Any] = {}
        self.attributes: dict[str, str] = {}
        self.notes: list[Note] = []

    def add_plates(self, units: str | None, up: str | None, forward: str | None) -> None:
        columns = find_plates(self.names)
        if not columns:
            return
        plates = plates_of(columns, self.values, units=units, up=up, forward=forward)
        for plate in columns.values():
            self._take([i for triple in plate[:3] for i in triple or ()])
        self.variables |= plates.variables
        self.labels["plate"] = list(columns)
        self._note_axes(plates.conversion, plates.notes)

    def add_markers(self, units: str | None, up: str | None, forward: str | None) -> None:
        """Markers of a static pose: `name_tx name_ty name_tz` that are no coordinates, for coordinates have speeds."""
        states = set(self.names)
        index = {name: i for i, name in enumerate(self.names)}
        found = []
        if any(f"{name}_u" in states for name in self.names):
            stems = [name[:-3] for name in self.names if name.endswith("_tx") and f"{name}_u" not in states]
            found = [stem for stem in stems if {f"{stem}_ty", f"{stem}_tz"} <= states]
        if not found:
            return
        columns = [index[f"{stem}_t{axis}"] for stem in found for axis in "xyz"]
        self._take(columns)
        points = self.values[:, columns].reshape(len(self.values), len(found), 3)
        turned, notes = infer_conversion(
            None,
            None,
            points,
            found,
            units=units,
            up=up,
            forward=forward,
            usual_units="m",
            usual_up=self.attributes.get("file_up", "+Y"),
        )
        self.variables["marker_position"] = turned.apply(points)
        self.labels["marker"] = found
        self._note_axes(turned, notes)

    def add_coordinates(self, degrees: bool | None) -> None:
        chosen = [
            i
            for i, is_one in enumerate(coordinate_columns(self.names, self.header.title, self.path.suffix))
            if is_one and self.free[i]
        ]
        if not chosen:
            return
        names = [_coordinate_name(self.names[i]) for i in chosen]
        if len(set(names)) < len(names):
            names = [self.names[i] for i in chosen]
        values = self.values[:, chosen]
        turns = np.array([not _SHIFT.fullmatch(name) for name in names])
        in_degrees, note = self._in_degrees(values[:, turns], degrees)
        scale = np.where(turns & in_degrees, np.pi / 180.0, 1.0)
        for name in self._unconverted(names, values) if in_degrees else ():
            scale[names.index(name)] = 1.0
            what = f"{name} is in radians in a file of degrees: it equals {name.removesuffix('_beta')} in radians"
            self.notes.append(Note(what, "inferred"))
        self._take(chosen)
        self.variables["coordinate_value"] = values * scale
        self.labels |= {"coordinate": names, "coordinate_units": ["rad" if turn else "m" for turn in turns]}
        if turns.any():
            self.notes.append(note)

    def add_values(self) -> None:
        rest = [i for i, free in enumerate(self.free) if free]
        if rest:
            self.variables["column_value"] = self.values[:, rest]
            names = [self.names[i] for i in rest]
            self.labels |= {"column": names, "column_units": [_unit_of(name, self.header.title) for name in names]}

    def _take(self, columns: Sequence[int]) -> None:
        for column in columns:
            self.free[column] = False

    def _note_axes(self, found: Conversion, notes: Sequence[Note]) -> None:
        self.notes += notes
        self.attributes = found.attributes

    def _in_degrees(self, turning: Array, asked: bool | None) -> tuple[bool, Note]:
        """Whether angles are in degrees: as asked, as stated, as the numbers show."""
        if asked is not None:
            return asked, Note(f"angles are taken as {'degrees' if asked else 'radians'}, as asked", "stated")
        largest = np.nanmax(np.abs(turning), axis=0, initial=0.0, where=~np.isnan(turning))
        # a joint turns by less than a full turn; one column in four is more than a pelvis that spins
        big = float(np.mean(largest > 2.0 * np.pi)) if turning.shape[1] else 0.0
        stated = self.header.settings.get("indegrees", "").lower()
        if stated in ("yes", "true", "1"):
            return True, Note("angles are in degrees: the header says inDegrees=yes", "stated")
        if stated in ("no", "false", "0") and big < 0.25:
            return False, Note("angles are in radians: the header says inDegrees=no", "stated")
        shown = (
            f"{100.0 * big:.0f} % of the angles exceed a full turn in radians (largest {largest.max(initial=0.0):.4g})"
        )
        if stated in ("no", "false", "0"):
            what = f"the header says inDegrees=no, but {shown}, so they are taken as degrees"
            return True, Note(what, "problem", "degrees=False")
        if self.header.simm or big >= 0.25:
            why = "SIMM's tables are" if big < 0.25 else shown
            return True, Note(
                f"angles are taken as degrees, which the header does not say: {why}", "inferred", "degrees="
            )
        return False, Note("angles are taken as radians, which the header does not say", "inferred", "degrees=")

    def _unconverted(self, names: Sequence[str], values: Array) -> list[str]:
        """Coupled coordinates such as knee_angle_r_beta, which OpenSim leaves in radians."""
        found = []
        for i, name in enumerate(names):
            partner = name.removesuffix("_beta")
            if partner != name and partner in names:
                expected = np.radians(values[:, names.index(partner)])
                same = np.abs(values[:, i] - expected) < 1e-3
                if np.nanmax(np.abs(expected), initial=0.0) > 0.02 and np.mean(same) > 0.9:
                    found.append(name)
        return found


def coordinate_columns(names: Sequence[str], title: str, suffix: str) -> list[bool]:
    """Which columns are coordinates: by title, by the speeds that go with them, or because a MOT is a motion."""
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
    """The unit a column is known to be in; empty where it is not known."""
    endings = {
        "_moment": "N m",
        "_force": "N",
        ".activation": "1",
        "/activation": "1",
        ".fiber_length": "m",
        "/fiber_length": "m",
    }
    by_ending = next((unit for ending, unit in endings.items() if name.endswith(ending)), "")
    by_title = {"actuatorpowers": "W", "modelprobes": "W"}
    return by_ending or by_title.get(title.replace(" ", "").lower(), "")


def _times(header: _Header, names: Sequence[str], values: Array, rows: Rows) -> tuple[Times, int]:
    """The times, and how many columns come before the first that holds something else."""
    if header.time >= 0:
        if header.time > 0:
            raise FileFormatError(rows.path, f"time is column {header.time + 1}, but must be the first")
        return repair_time_stamps(values[:, 0], rows.decimals, header.number("datarate")), 1
    limits = [number_of(word.encode()) for word in header.settings.get("range", "").split()]
    start, end = (limits[0] or 0.0, limits[1] or 0.0) if len(limits) == 2 and None not in limits else (0.0, 0.0)
    if -MAX_TIME < start < end < MAX_TIME and len(values) > 1:
        times = np.linspace(start, end, len(values))
        note = Note("there is no time column; the rows are spread evenly over the header's range", "inferred")
        return Times(times, usable_rate((len(values) - 1) / (end - start)), (note,)), 0
    raise FileFormatError(rows.path, f"no column is called time; the first is {names[0]!r}")


def _faults(header: _Header, rows: Rows, infinite: int) -> list[Note]:
    notes = []
    for keys, found, what in (
        (("nrows", "datarows"), len(rows), "rows"),
        (("ncolumns", "datacolumns"), len(header.names), "columns"),
    ):
        said = next((header.number(key) for key in keys if key in header.settings), None)
        if said is not None and said != found and header.elements == 1:
            notes.append(Note(f"the header announces {said:g} {what}, the file has {found}, which are read", "problem"))
    if header.short:
        notes.append(Note(f"{header.short} rows end early; what they lack is taken as not measured", "problem"))
    if infinite:
        notes.append(Note(f"{infinite} infinite or absurdly large numbers are taken as not measured", "problem"))
    return notes


def _columns(recording: Recording, variable: str, degrees: bool, up: str | None) -> tuple[list[str], Array]:
    """Names and values of the columns that a variable of the dataset fills."""
    data = recording.data
    if variable == "plate_force":
        return plate_table(recording, opensim_axes(recording, "m", up))
    dimension = "coordinate" if variable == "coordinate_value" else "column"
    names = [re.sub(r"\s+", "_", one_line(str(name))) for name in data[dimension].values]
    values = np.asarray(data[variable].values, dtype=float)
    if variable == "coordinate_value" and degrees and "coordinate_units" in data.coords:
        values = np.where(data["coordinate_units"].values == "rad", np.degrees(values), values)
    return names, values


def _title(recording: Recording, chosen: Sequence[str], names: Sequence[str], path: Path) -> str:
    """A title under which the reader takes each column for what it is."""
    own = one_line(str(recording.metadata.get("title", ""))) or one_line(recording.name) or "borelli"
    if "=" in own or _SIMM.fullmatch(own):
        own = "borelli"
    taken = {i for plate in find_plates(names).values() for triple in plate[:3] for i in triple or ()}
    wanted = [name in set(names) for name in names] if chosen == ["coordinate_value"] else None
    for title in ("Coordinates", own, "values") if "coordinate_value" in chosen else (own, "values"):
        got = coordinate_columns(names, title, path.suffix)
        counted = sum(is_one for i, is_one in enumerate(got) if i not in taken)
        expected = len(recording.data["coordinate"]) if "coordinate_value" in chosen else 0
        if counted == expected and (wanted is None or got == wanted):
            return title
    what = "coordinates cannot stand beside other columns in one table of this kind"
    raise SettingsError(f'{what}; write each to its own file with what=["coordinate_value"] and what=["column_value"]')
