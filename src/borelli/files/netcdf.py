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

from borelli.errors import FileFormatError
from borelli.files.netcdf_bounds import REMEDY, check_structure
from borelli.files.paths import as_path

if TYPE_CHECKING:
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
        if not path.is_file():
            problem = "The path is not a regular file." if path.exists() else "The file does not exist."
            raise FileFormatError(path, problem)
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
            raise FileFormatError(path, "The file is not in netCDF 4 format.")
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
    import xarray

    opened = xarray.open_dataset(
        path,
        engine="h5netcdf",
        group=group,
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
