"""Atomic writing of netCDF 4. A full disk is an error like any other, though HDF5 itself crashes on one."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from borelli.files.atomic import atomic_path
from borelli.files.inputs import AnyPath
from borelli.files.netcdf import copy_content, stamp_checksum

if TYPE_CHECKING:
    from xarray import Dataset


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
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    with atomic_path(path, overwrite=overwrite, inputs=inputs) as temporary:
        if copy_of is not None:
            copy_content(copy_of, temporary)
        with _DelayedErrors(temporary, "w+" if copy_of is None else "r+") as file:
            with h5netcdf.File(file, "w" if copy_of is None else "r+") as root:
                for group, data in groups.items():
                    data.dump_to_store(H5NetCDFStore(root, group=group, mode="a"))
            file.raise_error()
        stamp_checksum(temporary)


class _DelayedErrors(io.FileIO):
    """File that accepts everything after an error, which `raise_error` raises.

    HDF5 cannot close a file that it cannot write: it leaves the file open and crashes when the program ends.
    """

    _error: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest and self._error is None:
                rest = rest[super().write(rest) or 0 :]
        except OSError as error:
            self._error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self._error = self._error or error
            return self.tell() if size is None else size

    def raise_error(self) -> None:
        """Raise the first error of writing."""
        if self._error is not None:
            raise self._error
