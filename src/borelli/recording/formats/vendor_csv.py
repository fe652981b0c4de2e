"""Tables that Vicon Nexus, Qualisys Track Manager and OptiTrack Motive export."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from borelli.errors import FileFormatError
from borelli.files.delimited import sniff_delimiter, split_cells, without_empty_end
from borelli.files.number_rows import Rows, decode, number_of, numbered_lines, one_line, without_absurd
from borelli.model.transforms import Array
from borelli.recording.recording import Note, Recording, make_dataset, unique_names, split_prefix
from borelli.recording.time_stamps import event_origin, repair_time_stamps, usable_rate
from borelli.recording.units_and_axes import infer_conversion

SECTIONS = ("trajectories", "model outputs", "devices", "events", "joints", "segments")
"""First cells of the parts of a Nexus file."""
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
    """One part of a Nexus file: its lines, as cells, with their numbers."""

    name: str
    rate: float | None
    lines: list[tuple[int, list[bytes]]]


def looks_like_nexus(head: bytes) -> bool:
    """Whether a file that begins so is an ASCII export of Vicon Nexus."""
    lines = head.splitlines()[:2]
    cells = [line.replace(b";", b",").replace(b"\t", b",").split(b",") for line in lines]
    return len(lines) > 1 and decode(cells[0][0]).strip('" ').lower() in SECTIONS and number_of(cells[1][0]) is not None


def read_nexus(path: Path, data: bytes, *, units: str | None, up: str | None, forward: str | None) -> Recording:
    """Trajectories, model outputs, devices and events of a Nexus export."""
    made = _Made()
    for section in _sections(path, data):
        if section.name == "events":
            _nexus_events(section, made)
            continue
        table, infinite = _nexus_table(path, section, len(data))
        if infinite:
            said = f"{section.name}: {infinite} infinite or absurdly large numbers are taken as not measured"
            made.notes.append(Note(said, "problem"))
        if section.name == "devices":
            _nexus_devices(table, made)
        elif section.name == "trajectories":
            _nexus_trajectories(table, made, units, up, forward)
        else:
            _nexus_outputs(table, made)
    return made.recording(path)


class _Made:
    """What has been gathered from a file."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}
        self.labels: dict[str, Any] = {}
        self.attributes: dict[str, str] = {}
        self.notes: list[Note] = []
        self.rate: float | None = None
        self.analog_rate: float | None = None
        self.event_times = np.empty(0)
        """As the file gives them [s], counted from the first frame of the trial, which need not be in the file."""
        self.subject: dict[str, str | float] = {}
        self.metadata: dict[str, Any] = {}

    def add_markers(
        self,
        labels: Sequence[str],
        points: Array,
        stated: str | None,
        units: str | None,
        up: str | None,
        forward: str | None,
        usual_up: str = "+Z",
    ) -> None:
        points, infinite = without_absurd(points)
        points[~np.isfinite(points).all(axis=2)] = np.nan
        if infinite:
            self.notes.append(Note(f"{infinite} infinite or absurdly large numbers are taken as not seen", "problem"))
        names, prefix = split_prefix([one_line(label) or f"*{i + 1}" for i, label in enumerate(labels)])
        names, repeated = unique_names(names)
        if repeated:
            self.notes.append(Note(f"repeated names are numbered: {', '.join(repeated[:10])}", "problem"))
        if prefix:
            self.subject["prefix"] = prefix
        found, notes = infer_conversion(stated, None, points, names, units=units, up=up, forward=forward, usual_up=usual_up)
        self.variables["markers"] = found.apply(points)
        self.labels["marker"] = names
        self.attributes = found.attributes
        self.notes += notes

    def recording(self, path: Path) -> Recording:
        frames = {len(v) for k, v in self.variables.items() if k in ("marker_position", "model_output", "column_value")}
        if len(frames) > 1:
            raise FileFormatError(path, f"its parts have different numbers of frames: {sorted(frames)}")
        if not self.variables:
            raise FileFormatError(path, "no part of the file holds numbers")
        if len(self.event_times):
            since, notes = event_origin(
                self.event_times, self.metadata.get("first_frame", 1), max(frames, default=0), self.rate
            )
            self.variables["event_time"] = self.event_times - since
            self.notes += notes
        dataset = make_dataset(
            self.variables, self.labels, rate=self.rate, analog_rate=self.analog_rate, **self.attributes
        )
        return Recording(
            dataset, path.stem, str(path), "CSV", dict(self.subject), dict(self.metadata), tuple(self.notes)
        )


class _Nexus(NamedTuple):
    names: list[str]
    """Of each column: what stands above it, or above the nearest to its left."""
    axes: list[str]
    units: list[str]
    values: Array
    rate: float | None
    first: int


def _sections(path: Path, data: bytes) -> Iterator[_Section]:
    delimiter = sniff_delimiter(data[:65536].splitlines()[:20]) or b","
    section: _Section | None = None
    for number, line in numbered_lines(data, path):
        cells = without_empty_end(split_cells(line, delimiter, path, number))
        if not cells:
            if section and section.lines:
                yield section
                section = None
        elif section is None:
            section = _Section(decode(cells[0]).strip('" ').lower(), None, [])
            if section.name not in SECTIONS:
                raise FileFormatError(path, f"expected the name of a part, got {decode(cells[0])[:40]!r}", line=number)
        elif section.rate is None and not section.lines and len(cells) == 1 and number_of(cells[0]) is not None:
            section = section._replace(rate=usable_rate(number_of(cells[0])))
        else:
            section.lines.append((number, cells))
    if section and section.lines:
        yield section


def _nexus_table(path: Path, section: _Section, size: int) -> tuple[_Nexus, int]:
    """The numbers under three lines: names, axes, units; and how many of them were infinite or absurd."""
    if len(section.lines) < 4:
        raise FileFormatError(path, f"{section.name}: expected lines of names, axes, units and numbers")
    (_, tops), (number, axes), (_, units), *body = section.lines
    if decode(axes[0]).lower() != "frame":
        raise FileFormatError(path, f"{section.name}: expected a line that begins Frame, Sub Frame", line=number)
    width = len(axes)
    names, last = [], ""
    for i in range(width):
        last = decode(tops[i]) if i < len(tops) and tops[i] else last
        names.append(last)
    rows = Rows(path, size)
    for line, cells in body:
        rows.add(cells[:width], line)
    values, infinite = without_absurd(rows.matrix(width))
    first = int(values[0, 0]) if np.isfinite(values[0, 0]) else 1
    shown = [decode(unit) for unit in units] + [""] * (width - len(units))
    return _Nexus(names, [decode(axis) for axis in axes], shown, values, section.rate, first), infinite


def _groups(table: _Nexus) -> Iterator[tuple[str, list[int]]]:
    """Columns that share a name, in order."""
    start = 2
    for i in range(3, len(table.names) + 1):
        if i == len(table.names) or table.names[i] != table.names[i - 1]:
            yield table.names[start], list(range(start, i))
            start = i


def _nexus_trajectories(table: _Nexus, made: _Made, units: str | None, up: str | None, forward: str | None) -> None:
    groups = [
        (name, columns) for name, columns in _groups(table) if [table.axes[i] for i in columns][:3] == ["X", "Y", "Z"]
    ]
    if groups:
        points = np.stack([table.values[:, columns[:3]] for _, columns in groups], axis=1)
        stated = table.units[groups[0][1][0]]
        made.add_markers([name for name, _ in groups], points, stated, units, up, forward)
    made.rate = made.rate or table.rate
    made.metadata["first_frame"] = table.first


def _nexus_outputs(table: _Nexus, made: _Made) -> None:
    vectors = [
        (name, columns) for name, columns in _groups(table) if [table.axes[i] for i in columns] == ["X", "Y", "Z"]
    ]
    taken = {i for _, columns in vectors for i in columns}
    if vectors:
        names, prefix = split_prefix([name for name, _ in vectors])
        names, _ = unique_names(names)
        units = [table.units[columns[0]] for _, columns in vectors]
        made.variables["model_output"] = np.stack([table.values[:, columns] for _, columns in vectors], axis=1)
        kinds = [KINDS.get(unit.lower().removesuffix("/kg"), "scalar") for unit in units]
        made.labels |= {"quantity": names, "quantity_units": units, "quantity_kind": kinds}
        if prefix:
            made.subject.setdefault("prefix", prefix)
    rest = [i for i in range(2, len(table.names)) if i not in taken]
    if rest:
        made.variables["column_value"] = table.values[:, rest]
        labels, _ = unique_names([f"{table.names[i].rpartition(':')[2]}.{table.axes[i]}" for i in rest])
        made.labels |= {"column": labels, "column_units": [table.units[i] for i in rest]}
    made.rate = made.rate or table.rate
    made.metadata["first_frame"] = table.first


def _nexus_devices(table: _Nexus, made: _Made) -> None:
    columns = list(range(2, len(table.names)))
    names, _ = unique_names([f"{table.names[i]} {table.axes[i]}".strip() for i in columns])
    made.variables["analog"] = table.values[:, 2:]
    lower = [name.lower() for name in names]
    kinds = ["emg" if "emg" in n else "plate" if "force" in n or "plate" in n else "other" for n in lower]
    made.labels |= {"channel": names, "channel_units": [table.units[i] for i in columns], "channel_kind": kinds}
    made.analog_rate = table.rate
    if "plate" in kinds:
        said = "force plates are kept as channels: the export tells neither their places nor what their signs mean"
        made.notes.append(Note(said, "inferred", "read the trial's C3D file"))


def _nexus_events(section: _Section, made: _Made) -> None:
    """Rows of subject, context, name, time, description, under a line that says so."""
    found = []
    for _, cells in section.lines[1:]:
        time = number_of(cells[3]) if len(cells) > 3 else None
        if time is not None and np.isfinite(time):
            found.append((time, decode(cells[2]), decode(cells[1])))
    if found:
        times, labels, contexts = zip(*found, strict=True)
        made.event_times = np.array(times)
        made.labels |= {"event_label": list(labels), "event_context": list(contexts), "event": np.arange(len(found))}


def looks_like_qualisys(head: bytes) -> bool:
    """Whether a file that begins so is a TSV export of Qualisys."""
    return head.lstrip().upper().startswith((b"NO_OF_FRAMES", b"FILE_VERSION\t"))


def read_qualisys(path: Path, data: bytes, *, units: str | None, up: str | None, forward: str | None) -> Recording:
    """Marker positions and events of a Qualisys TSV export."""
    made = _Made()
    header: dict[str, list[str]] = {}
    events = []
    lead: int | None = None
    rows = Rows(path, len(data))
    for number, line in numbered_lines(data, path):
        cells = [cell.strip() for cell in line.split(b"\t")]
        if not any(cells):
            continue
        if number_of(cells[0]) is not None or (not cells[0] and len(rows)):
            rows.add(cells if cells[-1] else cells[:-1], number)
        elif len(rows):
            raise FileFormatError(path, f"expected a number, got {decode(cells[0])[:40]!r}", line=number)
        elif cells[0].upper() == b"EVENT" and len(cells) >= 4:
            time = number_of(cells[3])
            if time is not None and np.isfinite(time):
                events.append((time, decode(cells[1])))
        elif decode(cells[0]).lower() in ("frame", "time") and len(cells) > 3:
            lead = sum(decode(cell).lower() in ("frame", "time") for cell in cells[:2])
        else:
            header[decode(cells[0]).upper()] = [decode(cell) for cell in cells[1:]]
    if not len(rows):
        raise FileFormatError(path, "no row of numbers under the header")
    labels = [name for name in header.get("MARKER_NAMES", []) if name]
    values = rows.matrix()
    lead = values.shape[1] % 3 if lead is None else lead
    count = (values.shape[1] - lead) // 3
    if len(labels) != count:
        made.notes.append(Note(f"the header names {len(labels)} markers, the rows have {count}", "problem"))
        labels = (labels + [""] * count)[:count]
    made.add_markers(
        labels, values[:, lead : lead + 3 * count].reshape(len(values), count, 3), "mm", units, up, forward
    )
    stated = number_of((header.get("FREQUENCY") or ["x"])[0].encode())
    made.rate = usable_rate(stated)
    if events:
        made.variables["event_time"] = np.array([time for time, _ in events])
        made.labels |= {"event_label": [label for _, label in events], "event_context": ["General"] * len(events)}
        made.labels["event"] = np.arange(len(events))
    made.metadata["header"] = {key: " ".join(words) for key, words in header.items() if key != "MARKER_NAMES"}
    return made.recording(path)


def looks_like_motive(head: bytes) -> bool:
    """Whether a file that begins so is a CSV export of OptiTrack Motive."""
    return head.lstrip().startswith((b"Format Version,", b"Take Name,"))


def read_motive(path: Path, data: bytes, *, units: str | None, up: str | None, forward: str | None) -> Recording:
    """Marker positions of a Motive export; rigid bodies and bones are passed over."""
    made = _Made()
    rows = Rows(path, len(data))
    header: dict[str, str] = {}
    above: list[list[str]] = []
    axes: list[str] = []
    for number, line in numbered_lines(data, path):
        cells = split_cells(line, b",", path, number)
        if not any(cells):
            continue
        if not header:
            words = [decode(cell) for cell in cells]
            header = dict(zip(words[0::2], words[1::2], strict=False))
        elif axes:
            rows.add(cells[: len(axes)], number, 1)
        elif decode(cells[0]).lower() == "frame":
            axes = [decode(cell) for cell in cells]
        else:
            above.append([decode(cell) for cell in cells])
    if not len(rows) or len(axes) < 3:
        raise FileFormatError(path, "no line that begins Frame, Time with numbers under it")
    labels, columns = _motive_markers(above, axes)
    if not labels:
        raise FileFormatError(path, "no marker positions in the file; export the markers from Motive as well")
    values = rows.matrix(len(axes))
    points = values[:, columns].reshape(len(values), len(labels), 3)
    made.add_markers(labels, points, header.get("Length Units"), units, up, forward, usual_up="+Y")
    stated = header.get("Export Frame Rate") or header.get("Capture Frame Rate") or "x"
    times = repair_time_stamps(values[:, 1], rows.decimals, number_of(stated.encode()))
    made.rate = times.rate
    made.labels["time"] = times.times
    made.notes += times.notes
    made.metadata["header"] = header
    return made.recording(path)


def _motive_markers(above: Sequence[Sequence[str]], axes: Sequence[str]) -> tuple[list[str], list[int]]:
    """Names of the markers, and the three columns of each, from the lines of type, name, ID and property."""

    def line_with(words: set[str]) -> list[str]:
        for line in above:
            if words & {cell.lower() for cell in line}:
                return list(line) + [""] * len(axes)
        return [""] * len(axes)

    kinds = line_with({"marker", "rigid body marker", "bone marker", "rigid body", "bone"})
    properties = line_with({"position"})
    named = next((line for line in above if len(line) > 1 and line[1].lower() == "name"), [])
    names = list(named) + [""] * len(axes)
    found: dict[str, dict[str, int]] = {}
    # markers as they were seen come before those that a rigid body of the same names implies
    for i, axis in sorted(enumerate(axes), key=lambda column: kinds[column[0]].lower() != "marker"):
        if kinds[i].lower().endswith("marker") and properties[i].lower() == "position" and axis in ("X", "Y", "Z"):
            found.setdefault(names[i], {}).setdefault(axis, i)
    whole = {name: at for name, at in found.items() if len(at) == 3}
    return list(whole), [at[axis] for at in whole.values() for axis in "XYZ"]


Reader = Callable[..., Recording]
EXPORTS: tuple[tuple[Callable[[bytes], bool], Reader], ...] = (
    (looks_like_nexus, read_nexus),
    (looks_like_qualisys, read_qualisys),
    (looks_like_motive, read_motive),
)
"""Whether a file looks like it, and its reader."""
