"""Recordings as netCDF files of borelli, checked against `LAYOUT`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.errors import FileFormatError, list_names
from borelli.files.netcdf import open_netcdf
from borelli.files.netcdf_bounds import REMEDY
from borelli.files.number_rows import MAX_MAGNITUDE, mask_implausible
from borelli.files.paths import as_path
from borelli.files.text import parse_json
from borelli.recording.recording import LAYOUT, NOTE_KINDS, Note, Recording
from borelli.recording.time_stamps import backward_notes

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

ATTRIBUTE = "borelli_recording"
"""Attribute with name, subject, header and notes as JSON."""

STRINGS = {
    "marker": "marker", "plate": "plate", "foot": "foot", "joint": "joint", "axis": "axis", "object": "object",
    "quaternion": "quaternion", "event_label": "event",
    "event_context": "event", "channel": "channel", "channel_units": "channel", "channel_kind": "channel",
    "coordinate": "coordinate", "coordinate_units": "coordinate", "column": "column", "column_units": "column",
    "quantity": "quantity", "quantity_units": "quantity", "quantity_kind": "quantity",
}  # fmt: skip
"""Coordinates of strings, and their dimension."""
EARLIER_NAMES = {"rate": "rate_hz", "analog_rate": "analog_rate_hz"}
"""Attributes of files of earlier versions, and their names now."""
REQUIRED = {"event_time": ("event_label", "event_context")}
"""Coordinates that a variable requires besides those of its dimensions."""


def read_netcdf(path: str | Path) -> Recording:
    """Read a recording written by `Recording.to_netcdf`, or by another program in the same layout."""
    path = as_path(path)
    file = open_netcdf(path, needs_checksum=False)
    if ATTRIBUTE not in file.attrs:
        raise FileFormatError(path, "The netCDF file does not contain a borelli recording.")
    if file.groups:
        raise FileFormatError(path, f"{file.groups[0]!r} is a group, expected variables only. {REMEDY}")
    dataset = file.load()
    recording = make_recording(dataset, parse_json(dataset.attrs.pop(ATTRIBUTE, None), path, ATTRIBUTE), path)
    notes = _time_notes(recording.data, recording.notes)
    if not file.has_checksum:
        text = "The netCDF file has no checksum: another program wrote it, and damage to its numbers is not noticed."
        notes.append(Note(text, "stated", code="no_checksum"))
    return recording.with_notes(*notes)


def make_recording(dataset: Dataset, fields: Mapping[str, Any], path: Path) -> Recording:
    """Return the recording of a dataset and its other fields as JSON values, after checking both.

    Raises:
        FileFormatError: They contradict `LAYOUT` or the types of the fields.
    """
    checked = _check_fields(fields, path)
    _check_layout(dataset, path)
    _check_coordinates(dataset, path)
    _check_attributes(dataset.attrs, path)
    dataset, problems = _mask_implausible(dataset)
    return Recording(data=dataset, **checked).with_notes(*problems)


def _check_fields(fields: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the fields of a recording besides its dataset, with their types checked."""
    kinds: dict[str, tuple[Any, str]] = {
        "name": (str, "a string"), "path": (str | None, "a string or null"), "format": (str, "a string"),
        "subject": (dict, "a table"), "metadata": (dict, "a table"), "notes": (list, "a list"),
    }  # fmt: skip
    if set(fields) != set(kinds):
        got = list_names([str(key) for key in fields]) or "nothing"
        raise FileFormatError(path, f"The description of the recording has {got}, expected {', '.join(kinds)}.")
    for key, (kind, expected) in kinds.items():
        if not isinstance(fields[key], kind):
            got = json.dumps(fields[key])[:40]
            raise FileFormatError(path, f"The recording's {key} is {got}, expected {expected}. {REMEDY}")
    for key, value in fields["subject"].items():
        if not isinstance(value, str | int | float) or (not isinstance(value, str) and abs(value) > MAX_MAGNITUDE):
            got = json.dumps(value)[:40]
            raise FileFormatError(path, f"The subject's {key} is {got}, expected a string or a number.")
    return {**fields, "notes": parse_notes(fields["notes"], path)}


def parse_notes(values: Any, path: Path) -> tuple[Note, ...]:
    """Return the notes of a list of JSON values."""
    if not isinstance(values, list):
        raise FileFormatError(path, f"The notes are {json.dumps(values)[:60]}, expected a list. {REMEDY}")
    for fields in values:
        strings = isinstance(fields, dict) and all(isinstance(value, str) for value in fields.values())
        if not strings or set(fields) != {"text", "kind", "action", "code"} or fields["kind"] not in NOTE_KINDS:
            expected = "expected the strings text, kind, action and code"
            raise FileFormatError(path, f"A note is {json.dumps(fields)[:60]}, {expected}. {REMEDY}")
    return tuple(Note(**fields) for fields in values)


def _check_layout(dataset: Dataset, path: Path) -> None:
    """Raise `FileFormatError` for variables that do not have the dimensions, type or coordinates of `LAYOUT`."""
    for label, needed in (("marker", "marker_position"), ("plate", "plate_force"), ("channel", "analog")):
        if dataset.sizes.get(label) and needed not in dataset:
            raise FileFormatError(path, f"The dimension {label!r} has names, but {needed} is missing. {REMEDY}")
    for name in dataset.variables:
        layout, variable = LAYOUT.get(str(name)), dataset[name]
        if layout is None:
            continue
        if variable.dims != layout.dims or variable.dtype.kind != "f":
            expected = f"numbers along {', '.join(layout.dims)}"
            raise FileFormatError(path, f"{name} contains {_content(variable)}, expected {expected}. {REMEDY}")
        for required in (*layout.dims, *REQUIRED.get(str(name), ())):
            if required not in dataset.coords:
                raise FileFormatError(path, f"{name} has no coordinate {required!r}. {REMEDY}")
    for name, count in (("axis", 3), ("corner", 4), ("quaternion", 4)):
        if dataset.sizes.get(name, count) != count:
            raise FileFormatError(path, f"{name} has {dataset.sizes[name]} elements, expected {count}. {REMEDY}")


def _check_coordinates(dataset: Dataset, path: Path) -> None:
    """Raise `FileFormatError` for names that are not strings or not unique, and for times that are not finite."""
    for name, dimension in STRINGS.items():
        if name not in dataset.coords:
            continue
        values = dataset[name]
        if values.dims != (dimension,) or not all(isinstance(value, str) for value in values.values.tolist()):
            problem = f"{name} contains {_content(values)}, expected strings along {dimension}. {REMEDY}"
            raise FileFormatError(path, problem)
    markers = dataset["marker"].values.tolist() if "marker" in dataset.coords else []
    if len(set(markers)) < len(markers):
        raise FileFormatError(path, f"{len(markers)} markers have only {len(set(markers))} different names.")
    for name in ("time", "analog_time"):
        if name not in dataset.coords:
            continue
        times = dataset[name]
        if times.dims != (name,) or times.dtype.kind not in "fi" or not np.all(np.abs(times.values) < MAX_MAGNITUDE):
            problem = f"{name} contains {_content(times)}, expected finite numbers along {name}. {REMEDY}"
            raise FileFormatError(path, problem)


def _content(values: DataArray) -> str:
    kinds = {"f": "numbers", "i": "integers", "u": "integers", "b": "booleans", "S": "bytes"}
    what = kinds.get(values.dtype.kind, "strings")
    if values.dtype.kind == "f" and not np.isfinite(values.values).all():
        what = "numbers that are not finite"
    return f"{what} along {list_names([str(name) for name in values.dims]) or 'no dimension'}"


def _check_attributes(attributes: Mapping[Any, Any], path: Path) -> None:
    """Raise `FileFormatError` for rates and frame numbers that are not numbers, and axes that are not strings."""
    for name in EARLIER_NAMES.keys() & attributes.keys():
        remedy = f"Rename it to {EARLIER_NAMES[name]!r}, or create the file again."
        raise FileFormatError(
            path, f"The attribute {name!r} is of an earlier version, which is no longer read. {remedy}"
        )
    for name in ("rate_hz", "analog_rate_hz", "first_frame"):
        value = attributes.get(name, 1.0)
        number = isinstance(value, int | float | np.number) and math.isfinite(value)
        if not number or abs(value) > MAX_MAGNITUDE or (value <= 0 and name != "first_frame"):
            raise FileFormatError(path, f"{name} is {str(value)[:40]!r}, expected a finite number above 0.")
    for name in ("file_units", "file_up", "file_forward", "user_specified", "subject_forward"):
        if not isinstance(attributes.get(name, ""), str):
            raise FileFormatError(path, f"{name} is {str(attributes[name])[:40]!r}, expected a string.")


def _mask_implausible(dataset: Dataset) -> tuple[Dataset, list[Note]]:
    """Return the dataset without infinite and implausible numbers, and a note if there were any."""
    changed, total = {}, 0
    for name, variable in dataset.data_vars.items():
        if variable.dtype.kind == "f":
            values, count = mask_implausible(variable.values)
            if count:
                total += count
                changed[name] = variable.copy(data=values)
    return (dataset.assign(changed), [Note.implausible(total)]) if total else (dataset, [])


def _time_notes(dataset: Dataset, notes: Iterable[Note]) -> list[Note]:
    """Return a note on times that do not increase, unless there is one already."""
    if any(note.code == "time_not_increasing" for note in notes):
        return []
    return backward_notes(*(dataset[name].values for name in ("time", "analog_time") if name in dataset.coords))
