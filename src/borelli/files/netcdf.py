"""netCDF 4 files with a checksum at their end, read bounded.

A file that borelli writes ends with a line after the HDF5 content, `borelli sha256 <64 digits>`: the SHA-256 of
everything before it. HDF5 and netCDF ignore bytes after the end of their content. The checksum is verified before HDF5
parses anything, and the structure (`netcdf_bounds`) before anything is loaded: a malicious file can have a correct
checksum.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from borelli.errors import FileFormatError, MissingFileError
from borelli.files.netcdf_bounds import REMEDY, check_structure
from borelli.files.paths import as_path

if TYPE_CHECKING:
    import h5py
    from xarray import Dataset

T = TypeVar("T")

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""First bytes of HDF5 content."""
TRAILER = b"borelli sha256 "
TRAILER_SIZE = len(TRAILER) + 64 + 1
"""[bytes]"""
BLOCK = 1024**2
"""Bytes that are hashed at a time."""
DAMAGED = (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError)
"""Exceptions that the netCDF libraries raise for damaged files."""
FORMAT_ATTRIBUTES = frozenset(
    [
        "CLASS",
        "NAME",
        "DIMENSION_LIST",
        "REFERENCE_LIST",
        "_Netcdf4Dimid",
        "_Netcdf4Coordinates",
        "_NCProperties",
        "_nc3_strict",
        "_FillValue",
    ]
)
"""Attributes with which netCDF describes dimensions and missing values, which are NaN here."""
CREATE_AGAIN = "Create it again with the command that wrote it."


class NetcdfFile(NamedTuple):
    """A netCDF file whose checksum and structure are checked and whose arrays are not loaded."""

    path: Path
    attrs: Mapping[str, Any]
    """Attributes of the root group."""
    groups: tuple[str, ...]
    has_checksum: bool

    def load(self, group: str | None = None) -> Dataset:
        """Load the dataset of a group, by default of the root group."""
        return _refuse_damage(self.path, lambda: _load(self.path, group))

    def open(self, group: str) -> Dataset:
        """Open the dataset of a group: its values are read from the file whenever they are used."""
        return _refuse_damage(self.path, lambda: _open(self.path, group))


def stamp_checksum(path: Path) -> None:
    """Append the checksum of its content to a file."""
    with path.open("r+b") as file:
        digest = _hash(file, os.fstat(file.fileno()).st_size)
        file.write(TRAILER + digest + b"\n")


def copy_content(source: Path, target: Path) -> None:
    """Copy a netCDF file without its checksum, which is verified."""
    with target.open("wb") as copy:
        _verify_checksum(source, copy.write)


def open_netcdf(path: str | PathLike[str], *, needs_checksum: bool = True) -> NetcdfFile:
    """Verify the checksum of a netCDF file, check that its structure is bounded and return it without its arrays.

    Raises:
        FileFormatError: The file is missing, damaged, changed by another program or not bounded. Without
            `needs_checksum`, a file may have none.
    """
    path = as_path(path)
    try:
        if not path.exists():
            raise MissingFileError(path)
        if not path.is_file():
            what = "a folder. Pass a file in it" if path.is_dir() else "not a regular file. Pass a file"
            raise FileFormatError(path, f"The path is {what}.")
        has_checksum = _verify_checksum(path)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        raise FileFormatError(path, f"The file cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    if needs_checksum and not has_checksum:
        raise FileFormatError(
            path, f"The file has no checksum, so it is incomplete or another program wrote it. {CREATE_AGAIN}"
        )
    attrs, groups = _refuse_damage(path, lambda: check_structure(path))
    return NetcdfFile(path, attrs, groups, has_checksum)


def _verify_checksum(path: Path, copy: Callable[[bytes], Any] | None = None) -> bool:
    """Return whether a file has a checksum; raise `FileFormatError` if it is wrong. `copy` receives the content."""
    with path.open("rb") as file:
        if file.read(len(SIGNATURE)) != SIGNATURE:
            raise FileFormatError(path, "The file is not in netCDF 4 format. Pass a file that borelli wrote.")
        size = os.fstat(file.fileno()).st_size - TRAILER_SIZE
        file.seek(max(size, 0))
        trailer = file.read(TRAILER_SIZE)
        if not trailer.startswith(TRAILER):
            return False
        file.seek(0)
        if trailer != TRAILER + _hash(file, size, copy) + b"\n":
            problem = "The file is damaged or was changed after borelli wrote it (checksum)."
            raise FileFormatError(path, f"{problem} {CREATE_AGAIN}")
    return True


def _hash(file: BinaryIO, size: int, copy: Callable[[bytes], Any] | None = None) -> bytes:
    """Return the SHA-256 of the next `size` bytes as hexadecimal digits."""
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(BLOCK, size))):
        digest.update(block)
        if copy is not None:
            copy(block)
        size -= len(block)
    return digest.hexdigest().encode()


def _refuse_damage(path: Path, read: Callable[[], T]) -> T:
    """Return what `read` returns; raise `FileFormatError` in place of the errors of the netCDF libraries."""
    try:
        return read()
    except DAMAGED as error:
        raise FileFormatError(path, f"The file cannot be read as netCDF ({_describe(error)}). {REMEDY}") from None


def _describe(error: Exception) -> str:
    """Return the message of HDF5; messages of the packages above it do not help the user."""
    message = " ".join(str(error).split()).strip("'\"")
    if isinstance(error, OSError | RuntimeError | KeyError) and " " in message:
        return f"it is damaged: {message[:200]}"
    return "its variables and dimensions are inconsistent"


def _load(path: Path, group: str | None) -> Dataset:
    """Load a group by the conventions that xarray and h5netcdf write, which take ten times as long to read it."""
    import h5py
    import xarray

    with h5py.File(path, "r") as file:
        node = file[group] if group else file
        attrs = _attributes(node)
        arrays = {name: node[name] for name in node if isinstance(node[name], h5py.Dataset)}
        variables = {
            name: _variable(file, name, array) for name, array in arrays.items() if not _is_dimension_only(array)
        }
    coordinates = {name for name, (dims, _, _) in variables.items() if dims == (name,)}
    for table in (attrs, *(variable[2] for variable in variables.values())):
        named = table.pop("coordinates", None)
        coordinates |= set(named.split()) & set(variables) if isinstance(named, str) else set()
    coords = {name: variable for name, variable in variables.items() if name in coordinates}
    return xarray.Dataset({k: v for k, v in variables.items() if k not in coords}, coords, attrs)


def _open(path: Path, group: str) -> Dataset:
    import h5py
    import xarray

    with h5py.File(path, "r") as file:
        for name, array in file[group].items():
            if isinstance(array, h5py.Dataset) and not _is_dimension_only(array):
                _dimensions(file, name, array, named=True)
    # xarray would decode the units "s" of a time as timestamps
    return xarray.open_dataset(
        path, engine="h5netcdf", group=group, decode_times=False, decode_timedelta=False, cache=False
    )


def _variable(file: h5py.File, name: str, array: h5py.Dataset) -> tuple[tuple[str, ...], Any, dict[str, Any]]:
    """Return dimensions, values and attributes of an array."""
    import h5py

    attrs = _attributes(array)
    if h5py.check_string_dtype(array.dtype) is not None:
        values = np.array(array.asstr()[()], dtype=str)
    else:
        values = np.asarray(array[()], array.dtype.newbyteorder("="))
    if attrs.get("dtype") == "bool":
        values = values.astype(bool)
        del attrs["dtype"]
    return _dimensions(file, name, array), values, attrs


def _dimensions(file: h5py.File, name: str, array: h5py.Dataset, *, named: bool = False) -> tuple[str, ...]:
    """Return the names of an array's dimensions; raise ValueError if two are the same or, if `named`, one has none.

    Loaded arrays whose dimensions have no name are refused later, by the layout.
    """
    scales = array.attrs.get("DIMENSION_LIST")
    if scales is not None:
        dims = tuple(str(file[scale[0]].name).rpartition("/")[2] for scale in scales)
        if len(set(dims)) < len(dims):
            raise ValueError(f"{name!r} has the same dimension twice")
        return dims
    if array.ndim == 1 and "CLASS" in array.attrs:
        return (name,)
    if named and array.ndim:
        raise ValueError(f"{name!r} has dimensions without a name")
    return tuple(f"{name}_{axis}" for axis in range(array.ndim))


def _is_dimension_only(array: h5py.Dataset) -> bool:
    """Return whether an array only states the size of a dimension."""
    title = array.attrs.get("NAME", b"")
    return isinstance(title, bytes) and title.startswith(b"This is a netCDF dimension but not a netCDF variable")


def _attributes(item: h5py.HLObject) -> dict[str, Any]:
    """Return the attributes that are not part of the file format."""
    return {name: _attribute(item.attrs[name]) for name in item.attrs if name not in FORMAT_ATTRIBUTES}


def _attribute(value: Any) -> Any:
    """Return an attribute as netCDF defines it: text as a string, one number as a scalar."""
    import h5py

    if isinstance(value, h5py.Empty):
        return ""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        value = value.tolist()
    return value[0] if np.shape(value) == (1,) else value
