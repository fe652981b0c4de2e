"""Recordings as netCDF of our own, read piece by piece: HDF5 itself believes what a file says of sizes and places.

First the pieces are looked at without their numbers, then these are loaded, then they are held against `LAYOUT`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.errors import FileFormatError, list_names
from borelli.files.number_rows import ABSURD, without_absurd
from borelli.recording.recording import LAYOUT, NOTE_KINDS, Note, Recording

if TYPE_CHECKING:
    import h5py
    from xarray import DataArray, Dataset

ATTRIBUTE = "borelli_recording"
"""Where the file keeps what is no array: name, subject, header and notes, as JSON."""
SPARE = 200_000_000
"""[bytes] that arrays may take beyond four times the size of their file, because packed ones take less room there."""
MAX_PIECES = 1000
"""Variables and coordinates of one file; a recording has some thirty."""
AT_ONCE = 64_000_000
"""[bytes] of texts that are looked at together."""

TEXTS = {
    "marker": "marker", "plate": "plate", "foot": "foot", "joint": "joint", "axis": "axis", "event_label": "event",
    "event_context": "event", "channel": "channel", "channel_units": "channel", "channel_kind": "channel",
    "coordinate": "coordinate", "coordinate_units": "coordinate", "column": "column", "column_units": "column",
    "quantity": "quantity", "quantity_units": "quantity", "quantity_kind": "quantity",
}  # fmt: skip
"""Coordinates that are texts, and the dimension they lie along."""
ATTACHED = {"event_time": ("event_label", "event_context")}
"""Coordinates that a variable cannot do without, besides those named like its dimensions."""

DAMAGED = (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError)
"""What the libraries raise, depending on which bytes of a file are wrong."""
_REMEDY = "copy it again, or convert the recording again"


def read_netcdf(path: str | os.PathLike[str]) -> Recording:
    """The recording that `Recording.to_netcdf` wrote.

    Raises:
        FileFormatError: if the file is damaged, or holds no recording of borelli.
    """
    path = Path(path)
    if not path.is_file():
        why = "is not an ordinary file; give the path of a file" if path.exists() else "cannot be read: no such file"
        raise FileFormatError(path, why)
    try:
        _check_pieces(path)
        dataset = _loaded(path)
    except DAMAGED as error:
        raise FileFormatError(path, f"cannot be read as netCDF, because {_why(error)}; {_REMEDY}") from None
    about = _description(dataset.attrs.pop(ATTRIBUTE), path)
    notes = tuple(about.pop("notes"))
    _check_layout(dataset, path)
    _check_coordinates(dataset, path)
    _check_attributes(dataset.attrs, path)
    dataset, faults = _without_absurd(dataset)
    return Recording(data=dataset, notes=(*notes, *faults, *_standing_still(dataset, notes)), **about)


def _why(error: Exception) -> str:
    """HDF5's own words, where it is HDF5 that speaks; what the packages above it say is of use to nobody."""
    said = " ".join(str(error).split()).strip("'\"")
    if isinstance(error, OSError | RuntimeError | KeyError) and " " in said:
        return f"it is damaged ({said[:200]})"
    return "its variables and dimensions do not fit together"


def _check_pieces(path: Path) -> None:
    """Refuses what would take more memory than the file accounts for, or lead out of it."""
    import h5py

    size = path.stat().st_size
    room = 4 * size + SPARE
    with h5py.File(path, "r") as file:
        if ATTRIBUTE not in file.attrs:
            raise FileFormatError(path, "is netCDF, but holds no recording of borelli")
        if len(file) > MAX_PIECES:
            raise FileFormatError(path, f"the file has {len(file)} variables, but at most {MAX_PIECES} are read")
        for name in file:
            room -= _bytes_of(_inside(file, name, path), size, path)
            if room < 0:
                what = f"the file has {size} bytes, but the arrays up to {name!r} would take {4 * size + SPARE - room}"
                raise FileFormatError(path, f"{what}, more than is read of it; it is damaged: {_REMEDY}")


def _inside(file: h5py.File, name: str, path: Path) -> h5py.Dataset:
    """The array of that name; refused where it is none, or its numbers lie in another file."""
    import h5py

    link = file.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise FileFormatError(path, f"{name!r} is a link to another place, which is not followed; {_REMEDY}")
    piece = file[name]
    if not isinstance(piece, h5py.Dataset) or piece.shape is None:
        raise FileFormatError(
            path, f"{name!r} is a {type(piece).__name__.lower()} without numbers, but must be an array"
        )
    if piece.is_virtual or piece.external:
        raise FileFormatError(path, f"the numbers of {name!r} lie in another file, which is not followed; {_REMEDY}")
    return piece


def _bytes_of(piece: h5py.Dataset, size: int, path: Path) -> int:
    """Memory that an array takes while it is loaded [bytes], without loading it; texts are measured."""
    import h5py

    if piece.dtype.kind not in "fiubSO":
        raise FileFormatError(path, f"{piece.name!r} holds {piece.dtype}, but must hold numbers or texts; {_REMEDY}")
    once = math.prod(piece.chunks) * piece.dtype.itemsize if piece.chunks else 0
    if piece.dtype.kind != "O":
        return int(piece.nbytes) + once
    if h5py.check_string_dtype(piece.dtype) is None or piece.ndim != 1 or len(piece) > size:
        raise FileFormatError(
            path, f"{piece.name!r} has {piece.shape} elements, but must be a list of texts; {_REMEDY}"
        )
    total, step = int(piece.nbytes) + once, max(1, AT_ONCE // size)
    for start in range(0, len(piece), step):  # every element may be the same long text
        total += sum(map(len, piece[start : start + step]))
        if total > 4 * size + SPARE:
            break
    return total


def _loaded(path: Path) -> Dataset:
    """The file as a dataset, numbers as they stand in it."""
    import xarray

    opened = xarray.open_dataset(
        path,
        engine="h5netcdf",
        phony_dims="access",  # a dimension without a name is refused later, by `LAYOUT`
        decode_times=False,  # the units "s" would make timestamps of them
        decode_timedelta=False,
        mask_and_scale=False,
        concat_characters=False,
    )
    with opened as dataset:
        dataset.load()
    for variable in dataset.variables.values():
        variable.attrs.pop("_FillValue", None)
    return dataset


def _description(said: Any, path: Path) -> dict[str, Any]:
    """What the file says besides its arrays: the fields of a recording, of the types they must have."""
    try:
        about = json.loads(said)
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(path, f"{ATTRIBUTE} is no JSON ({str(error)[:200]}); {_REMEDY}") from None
    kinds: dict[str, tuple[Any, str]] = {
        "name": (str, "a text"), "path": (str | None, "a text or null"), "format": (str, "a text"),
        "subject": (dict, "a table"), "metadata": (dict, "a table"), "notes": (list, "a list"),
    }  # fmt: skip
    if not isinstance(about, dict) or set(about) != set(kinds):
        got = list_names([str(key) for key in about]) if isinstance(about, dict) else type(about).__name__
        raise FileFormatError(path, f"{ATTRIBUTE} holds {got or 'nothing'}, but must hold {', '.join(kinds)}")
    for key, (kind, wanted) in kinds.items():
        if not isinstance(about[key], kind):
            got = json.dumps(about[key])[:40]
            raise FileFormatError(path, f"{ATTRIBUTE}: {key} is {got}, but must be {wanted}; {_REMEDY}")
    for key, value in about["subject"].items():
        if not isinstance(value, str | int | float) or (not isinstance(value, str) and abs(value) > ABSURD):
            got = json.dumps(value)[:40]
            raise FileFormatError(path, f"{ATTRIBUTE}: the subject's {key!r} is {got}, but must be a text or a number")
    return about | {"notes": [_note(note, path) for note in about["notes"]]}


def _note(said: Any, path: Path) -> Note:
    texts = isinstance(said, dict) and all(isinstance(value, str) for value in said.values())
    if not texts or set(said) != {"text", "kind", "action", "code"} or said["kind"] not in NOTE_KINDS:
        got = json.dumps(said)[:60]
        raise FileFormatError(
            path, f"{ATTRIBUTE}: a note is {got}, but must have text, kind, action and code, all strings"
        )
    return Note(**said)


def _check_layout(dataset: Dataset, path: Path) -> None:
    """Refuses variables that have not the dimensions, numbers or coordinates that `LAYOUT` gives them."""
    for name, variable in dataset.data_vars.items():
        layout = LAYOUT.get(str(name))
        if layout is None:
            continue
        if variable.dims != layout.dims or variable.dtype.kind != "f":
            wanted = f"numbers along {', '.join(layout.dims)}"
            raise FileFormatError(path, f"{name} {_held(variable)}, but must hold {wanted}; {_REMEDY}")
        for needed in (*layout.dims, *ATTACHED.get(str(name), ())):
            if needed not in dataset.coords:
                raise FileFormatError(path, f"{name} has no coordinate {needed!r}, which it must have; {_REMEDY}")
    for name, count in (("axis", 3), ("corner", 4)):
        if dataset.sizes.get(name, count) != count:
            raise FileFormatError(path, f"{name} has {dataset.sizes[name]} elements, but must have {count}; {_REMEDY}")


def _check_coordinates(dataset: Dataset, path: Path) -> None:
    """Refuses names that are no texts or not apart, and times that are no times."""
    for name, dimension in TEXTS.items():
        if name not in dataset.coords:
            continue
        values = dataset[name]
        if values.dims != (dimension,) or not _all_texts(values.values.tolist()):
            raise FileFormatError(path, f"{name} {_held(values)}, but must hold texts along {dimension}; {_REMEDY}")
    markers = dataset["marker"].values.tolist() if "marker" in dataset.coords else []
    if len(set(markers)) < len(markers):
        raise FileFormatError(path, f"{len(markers)} markers have {len(set(markers))} names; each must have its own")
    for name in ("time", "analog_time"):
        if name not in dataset.coords:
            continue
        times = dataset[name]
        if times.dims != (name,) or times.dtype.kind not in "fi" or not np.all(np.abs(times.values) < ABSURD):
            raise FileFormatError(path, f"{name} {_held(times)}, but must hold finite numbers along {name}; {_REMEDY}")


def _held(values: DataArray) -> str:
    """What an array holds, in words."""
    kinds = {"f": "numbers with a point", "i": "whole numbers", "u": "whole numbers", "b": "truths", "S": "bytes"}
    what = kinds.get(values.dtype.kind, "texts")
    if values.dtype.kind == "f" and not np.isfinite(values.values).all():
        what = "numbers that are not finite"
    return f"holds {what} along {list_names([str(name) for name in values.dims]) or 'nothing'}"


def _all_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _check_attributes(attributes: Mapping[Any, Any], path: Path) -> None:
    """Refuses rates and numbers of frames that are none, and units and axes that are no texts."""
    for name in ("rate", "analog_rate", "first_frame"):
        value = attributes.get(name, 1.0)
        number = isinstance(value, int | float | np.number) and math.isfinite(value)
        if not number or abs(value) > ABSURD or (value <= 0 and name != "first_frame"):
            raise FileFormatError(path, f"{name} is {str(value)[:40]!r}, but must be a finite number above 0")
    for name in ("file_units", "file_up", "file_forward"):
        if not isinstance(attributes.get(name, ""), str):
            raise FileFormatError(path, f"{name} is {str(attributes[name])[:40]!r}, but must be a text")


def _without_absurd(dataset: Dataset) -> tuple[Dataset, list[Note]]:
    """The dataset without infinite numbers, and the note that there were some."""
    changed, total = {}, 0
    for name, variable in dataset.data_vars.items():
        if variable.dtype.kind == "f":
            values, count = without_absurd(variable.values)
            total += count
            if count:
                changed[name] = variable.copy(data=values)
    if not total:
        return dataset, []
    what = f"{total} infinite or absurdly large numbers are taken as not measured"
    return dataset.assign(changed), [Note(what, "problem")]


def _standing_still(dataset: Dataset, notes: Iterable[Note]) -> list[Note]:
    """The fault of times that do not grow, unless a note has it already."""
    if any("advance" in note.text for note in notes if note.kind == "problem"):
        return []
    names = [name for name in ("time", "analog_time") if name in dataset.coords]
    backward = sum(int(np.count_nonzero(np.diff(dataset[name].values) <= 0)) for name in names)
    return [Note(f"{backward} steps of time do not advance", "problem", "resample")] if backward else []
