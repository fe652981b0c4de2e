"""Bounded reading of netCDF 4: HDF5 itself trusts the sizes and links stated by a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from borelli.errors import FileFormatError

if TYPE_CHECKING:
    import h5py
    from xarray import Dataset

EXTRA_BYTES = 200_000_000
"""Memory [bytes] that arrays may take beyond four times the size of their file, because they may be compressed."""
MAX_ARRAYS = 1000
"""Variables and coordinates of one file; a recording has about thirty."""
STRING_CHUNK = 64_000_000
"""Strings [bytes] that are measured together."""
DAMAGED = (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError)
"""Exceptions that the netCDF libraries raise for damaged files."""
REMEDY = "Copy the file again, or convert it again."


def load_bounded(path: Path, attribute: str, content: str) -> Dataset:
    """Load a netCDF file after checking that its arrays fit the file size and lie inside the file.

    The file must have an attribute; `content` says in messages what a file with it contains.
    """
    if not path.is_file():
        problem = "The path is not a regular file." if path.exists() else "The file does not exist."
        raise FileFormatError(path, problem)
    try:
        _check_arrays(path, attribute, content)
        return _load(path)
    except DAMAGED as error:
        raise FileFormatError(path, f"The file cannot be read as netCDF ({_describe(error)}). {REMEDY}") from None


def _describe(error: Exception) -> str:
    """Return the message of HDF5; messages of the packages above it do not help the user."""
    message = " ".join(str(error).split()).strip("'\"")
    if isinstance(error, OSError | RuntimeError | KeyError) and " " in message:
        return f"it is damaged: {message[:200]}"
    return "its variables and dimensions are inconsistent"


def _check_arrays(path: Path, attribute: str, content: str) -> None:
    """Refuse arrays that take more memory than the file justifies or that lie in another file."""
    import h5py

    size = path.stat().st_size
    limit = 4 * size + EXTRA_BYTES
    total = 0
    with h5py.File(path, "r") as file:
        if attribute not in file.attrs:
            raise FileFormatError(path, f"The netCDF file does not contain {content}.")
        if len(file) > MAX_ARRAYS:
            raise FileFormatError(path, f"The file has {len(file)} variables (maximum {MAX_ARRAYS}).")
        for name in file:
            total += _memory(_open_array(file, name, path), size, path)
            if total > limit:
                what = f"The file is damaged: it has {size} bytes, but its arrays up to {name!r} would take {total}"
                raise FileFormatError(path, f"{what} bytes (maximum {limit}). {REMEDY}")


def _open_array(file: h5py.File, name: str, path: Path) -> h5py.Dataset:
    """Return the array of that name; refuse links, groups and arrays stored in another file."""
    import h5py

    link = file.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise FileFormatError(path, f"{name!r} is a link to another location, which is not followed. {REMEDY}")
    array = file[name]
    if not isinstance(array, h5py.Dataset) or array.shape is None:
        raise FileFormatError(path, f"{name!r} is a {type(array).__name__.lower()} without values, expected an array.")
    if array.is_virtual or array.external:
        raise FileFormatError(path, f"The values of {name!r} are in another file, which is not followed. {REMEDY}")
    return array


def _memory(array: h5py.Dataset, size: int, path: Path) -> int:
    """Return the memory [bytes] that loading an array takes, without loading it; strings are measured."""
    import h5py

    if array.dtype.kind not in "fiubSO":
        raise FileFormatError(path, f"{array.name!r} contains {array.dtype}, expected numbers or strings. {REMEDY}")
    chunk = math.prod(array.chunks) * array.dtype.itemsize if array.chunks else 0
    if array.dtype.kind != "O":
        return int(array.nbytes) + chunk
    if h5py.check_string_dtype(array.dtype) is None or array.ndim != 1 or len(array) > size:
        raise FileFormatError(path, f"{array.name!r} has shape {array.shape}, expected a list of strings. {REMEDY}")
    total, step = int(array.nbytes) + chunk, max(1, STRING_CHUNK // size)
    for start in range(0, len(array), step):  # all elements may refer to the same long string
        total += sum(map(len, array[start : start + step]))
        if total > 4 * size + EXTRA_BYTES:
            break
    return total


def _load(path: Path) -> Dataset:
    import xarray

    opened = xarray.open_dataset(
        path,
        engine="h5netcdf",
        phony_dims="access",  # dimensions without a name are refused later, by the layout
        decode_times=False,  # the units "s" would become timestamps
        decode_timedelta=False,
        mask_and_scale=False,
        concat_characters=False,
    )
    with opened as dataset:
        dataset.load()
    for variable in dataset.variables.values():
        variable.attrs.pop("_FillValue", None)
    return dataset
