"""Blocks of frames of a long trial, their files, and one file made of them.

Each block has its own file, so that an interrupted run continues with the first block that is missing. Blocks are
analyzed with a margin on both sides, longer than what filters, splines, steps and strides depend on, which is cut off.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import FileFormatError, SettingsError
from borelli.export.stage_files import to_json_values
from borelli.files.atomic import PREFIX
from borelli.files.netcdf import open_netcdf
from borelli.files.netcdf_writer import add_groups, write_netcdf
from borelli.files.text import parse_json
from borelli.recording.recording import Recording

if TYPE_CHECKING:
    from xarray import Dataset

BLOCK_FRAMES = 8_000
"""Frames of a block, about; each takes 70 kilobytes, and up to 150, while it is analyzed."""
MARGIN = 4.0
"""[s] Margin on both sides of a block: longer than a stride of 2.5 s, and than 20 periods of a filter at 6 Hz."""
CHUNK_FRAMES = 500
"""Frames that are stored together, as the unit of reading."""
BLOCK_FOLDER = f"{PREFIX}blocks"
"""Folder of the blocks of an unfinished analysis, in its folder of results."""


class Block(NamedTuple):
    """Frames `start` to `stop` (exclusive) of a trial; with margins, `first` to `last` (exclusive)."""

    number: int
    start: int
    stop: int
    first: int
    last: int

    @property
    def own(self) -> slice:
        """Frames of the block without margins, counted from `first`."""
        return slice(self.start - self.first, self.stop - self.first)


@dataclass(frozen=True)
class BlockFiles:
    """Files of the blocks of one stage.

    Attributes:
        folder: Folder of the files.
        stage: Name of the stage.
        key: Key of the stage for this recording and these settings.
    """

    folder: Path
    stage: str
    key: str

    def path(self, block: Block) -> Path:
        """Return the path of a block's file."""
        return self.folder / f"{self.stage}_{block.number:04d}.nc"

    def write(self, block: Block, groups: Mapping[str, Dataset], content: Mapping[str, Any]) -> None:
        """Write the datasets of a block, without margins, and further content as plain values."""
        import xarray

        attrs = {"key": self._key(block), "content": json.dumps(to_json_values(content))}
        write_netcdf(self.path(block), {"/": xarray.Dataset(attrs=attrs), **groups}, overwrite=True)

    def read_content(self, block: Block) -> dict[str, Any] | None:
        """Return the further content of a block's file; None if it is missing, damaged or of other inputs."""
        path = self.path(block)
        try:
            attrs = open_netcdf(path).attrs
            return parse_json(attrs.get("content"), path, "content") if attrs.get("key") == self._key(block) else None
        except FileFormatError:
            return None

    def read(self, block: Block, group: str) -> Dataset:
        """Read one dataset of a block."""
        return open_netcdf(self.path(block)).load(group)

    def values(self, block: Block, group: str, name: str) -> NDArray[Any]:
        """Return the values of one variable of a block as they are stored, texts as bytes."""
        import h5py

        with h5py.File(self.path(block), "r") as file:
            return np.asarray(file[group][name][()])

    def _key(self, block: Block) -> str:
        return f"{self.key} {tuple(block)}"


def make_block_folder(folder: Path) -> Path:
    """Create the folder for blocks in a folder of results and return its path.

    Raises:
        SettingsError: There is something else of that name.
    """
    blocks = folder / BLOCK_FOLDER
    if blocks.is_symlink() or (blocks.exists() and not blocks.is_dir()):
        raise SettingsError(f"{blocks}: A folder of this name is needed for the analysis of a long trial. Remove it.")
    blocks.mkdir(parents=True, exist_ok=True)
    return blocks


def remove_blocks(folder: Path) -> None:
    """Remove the blocks of a finished analysis from its folder of results, if it has any."""
    blocks = folder / BLOCK_FOLDER
    if blocks.is_dir() and not blocks.is_symlink():
        for path in blocks.glob("*.nc"):
            path.unlink()
        with suppress(OSError):  # other files stay
            blocks.rmdir()


def split_frames(frames: int, rate: float, size: int = BLOCK_FRAMES) -> tuple[Block, ...]:
    """Return the blocks of a trial, of about `size` frames each."""
    margin = int(np.ceil(MARGIN * rate))
    edges = np.linspace(0, frames, max(1, round(frames / size)) + 1).astype(int).tolist()
    return tuple(
        Block(i, start, stop, max(0, start - margin), min(frames, stop + margin))
        for i, (start, stop) in enumerate(pairwise(edges))
    )


def load_part(recording: Recording, names: Sequence[str], first: int, last: int) -> Recording:
    """Return some variables of a recording from frame `first` to `last` (exclusive), with their analog samples."""
    data = recording.data[[name for name in names if name in recording.data]]
    time = recording.data["time"].values[first:last]
    if "time" in data.dims:
        data = data.isel(time=slice(first, last))
    if "analog_time" in data.dims:
        samples = analog_samples(recording, float(time[0]), float(time[-1]), first == 0, last == recording.frames)
        data = data.isel(analog_time=samples)
    return recording.with_data(data.load())


def analog_samples(recording: Recording, start: float, end: float, is_first: bool, is_last: bool) -> slice:
    """Return the analog samples of the frames from start to end [s], at least two; all beyond the ends of a trial."""
    clock = recording.data["analog_time"].values
    half = 0.5 / recording.analog_rate
    low = 0 if is_first else int(np.searchsorted(clock, start - half))
    high = len(clock) if is_last else int(np.searchsorted(clock, end + 1.0 / recording.rate - half))
    low = min(low, max(0, len(clock) - 2))
    return slice(low, max(high, low + 2))


def append_files(file: io.FileIO, parts: Mapping[str, Sequence[Path]], sums: Mapping[str, Dataset]) -> None:
    """Write the variables over time of groups, each from some files one after the other, as groups of one file.

    Values are copied as they are stored, in a twentieth of the time that datasets with labels and units would take.

    Args:
        file: File of `netcdf_content`.
        parts: Files by group.
        sums: Datasets with the variables of a group that do not depend on time, if it has any.
    """
    import h5py

    names: dict[str, list[str]] = {}
    for group, paths in parts.items():
        first = open_netcdf(paths[0]).load(group)
        names[group] = [str(name) for name in first.variables if first[name].dims[:1] == ("time",)]
        chunks = {name: (CHUNK_FRAMES, *first[name].shape[1:]) for name in names[group]}
        kept = first[[name for name in names[group] if name in first.data_vars]]
        add_groups(file, {group: kept}, chunks={group: chunks}, unlimited=("time",))
    add_groups(file, sums)
    with h5py.File(file, "r+") as whole:
        for group, paths in parts.items():
            for path in paths[1:]:
                with h5py.File(path, "r") as source:
                    for name in names[group]:
                        stored, values = whole[group][name], source[group][name][()]
                        start = len(stored)
                        stored.resize(start + len(values), axis=0)
                        stored[start:] = values
