"""Atomic writing of netCDF 4. A full disk is an error like any other, though HDF5 itself crashes on one."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from borelli.files.atomic import atomic_path
from borelli.files.inputs import AnyPath
from borelli.files.netcdf import copy_content, stamp_checksum

if TYPE_CHECKING:
    from xarray import Dataset

MAX_KEPT_BYTES = 1_000_000
"""Size of pieces that HDF5 may read again; its own structures have less than 1 kB."""


def write_netcdf(
    path: AnyPath,
    groups: Mapping[str, Dataset],
    *,
    copy_of: Path | None = None,
    overwrite: bool = False,
    inputs: Iterable[AnyPath | None] = (),
) -> None:
    """Write datasets into one file with a checksum, completely or not at all.

    Args:
        path: File to write.
        groups: Datasets by group; "/" is the root group.
        copy_of: File whose groups are copied first. Default: none.
        overwrite: Replace an existing file.
        inputs: Files that are never replaced.
    """
    with netcdf_content(path, copy_of=copy_of, overwrite=overwrite, inputs=inputs) as file:
        add_groups(file, groups)


@contextmanager
def netcdf_content(
    path: AnyPath,
    *,
    copy_of: Path | None = None,
    overwrite: bool = False,
    inputs: Iterable[AnyPath | None] = (),
) -> Iterator[io.FileIO]:
    """Yield a file for HDF5 to write; it gets its checksum and its name at the end; arguments as of `write_netcdf`."""
    with atomic_path(path, overwrite=overwrite, inputs=inputs) as temporary:
        if copy_of is not None:
            copy_content(copy_of, temporary)
        with _DelayedErrors(temporary, "w+" if copy_of is None else "r+") as file:
            yield file
        stamp_checksum(temporary)


def add_groups(
    file: io.FileIO,
    groups: Mapping[str, Dataset],
    *,
    chunks: Mapping[str, Mapping[str, tuple[int, ...]]] | None = None,
    unlimited: Sequence[str] = (),
) -> None:
    """Add datasets to a file of `netcdf_content`.

    Args:
        file: The file.
        groups: Datasets by group; "/" is the root group.
        chunks: Sizes of chunks by group and variable. Default: chosen by HDF5.
        unlimited: Dimensions along which the variables can be extended.
    """
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    file.seek(0, os.SEEK_END)
    with h5netcdf.File(file, "r+" if file.tell() else "w") as root:
        for group, data in groups.items():
            encoding = {name: {"chunksizes": sizes} for name, sizes in (chunks or {}).get(group, {}).items()}
            store = H5NetCDFStore(root, group=group, mode="a")
            data.dump_to_store(store, encoding=encoding, unlimited_dims=unlimited)


class _DelayedErrors(io.FileIO):
    """File that accepts everything after an error of writing, and raises the error at the end of its block.

    HDF5 cannot close a file that it cannot write: it leaves the file open and crashes when the program ends. It also
    reads what it has written, but not large arrays, so that small pieces written after the error are kept in memory.
    """

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._error: OSError | None = None
        self._kept: list[tuple[int, bytes]] = []
        self._end = super().seek(0, os.SEEK_END)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self._error is not None:
            raise self._error  # also instead of what HDF5 made of it

    def write(self, data: Any) -> int:
        content, start = memoryview(data).cast("B"), self.tell()
        self._end = max(self._end, start + len(content))
        rest = content
        try:
            while rest and self._error is None:
                rest = rest[super().write(rest) or 0 :]
        except OSError as error:
            self._error = error
        if self._error is not None and len(content) <= MAX_KEPT_BYTES:
            self._kept.append((start, bytes(content)))
        return len(content)

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, with zeros and the kept pieces where the file has nothing."""
        content, start = memoryview(buffer).cast("B"), self.tell()
        size = super().readinto(content) or 0
        if self._error is None:
            return size
        content[size:] = bytes(len(content) - size)
        for position, piece in self._kept:
            first, last = max(position, start), min(position + len(piece), start + len(content))
            if first < last:
                content[first - start : last - start] = piece[first - position : last - position]
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        self._end = self.tell() if size is None else size
        try:
            super().truncate(size)
        except OSError as error:
            self._error = self._error or error
        return self._end

    def seek(self, position: int, whence: int = os.SEEK_SET) -> int:
        """Return the new position; the end is where it would be without the error."""
        if whence == os.SEEK_END:
            position, whence = self._end + position, os.SEEK_SET
        return super().seek(position, whence)
