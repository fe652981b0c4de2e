"""Blocks of frames of a long trial, their files, and one file made of them.

Each block has its own file, so that an interrupted run continues with the first block that is missing. Blocks are
analyzed with a margin on both sides, longer than what filters, splines, steps and strides depend on, which is cut off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import FileFormatError
from borelli.export.stage_files import read_group, to_json_values
from borelli.files.atomic import atomic_path
from borelli.files.netcdf import DAMAGED
from borelli.recording.recording import Recording

if TYPE_CHECKING:
    from xarray import Dataset

BLOCK_FRAMES = 8_000
"""Frames of a block, about; each takes 70 kilobytes, and up to 150, while it is analyzed."""
MARGIN = 4.0
"""[s] Margin on both sides of a block: longer than a stride of 2.5 s, and than 20 periods of a filter at 6 Hz."""
CHUNK_FRAMES = 500
"""Frames that are stored together, as the unit of reading."""
BLOCK_FOLDER = "blocks"


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
        with atomic_path(self.path(block)) as temporary:
            xarray.Dataset(attrs=attrs).to_netcdf(temporary, engine="h5netcdf")
            for name, data in groups.items():
                data.to_netcdf(temporary, engine="h5netcdf", group=name, mode="a")

    def read_content(self, block: Block) -> dict[str, Any] | None:
        """Return the further content of a block's file; None if it is missing, damaged or of other inputs."""
        import h5py

        path = self.path(block)
        if not path.is_file():
            return None
        try:
            with h5py.File(path, "r") as file:
                if str(file.attrs["key"]) != self._key(block):
                    return None
                content: dict[str, Any] = json.loads(str(file.attrs["content"]))
                return content
        except (*DAMAGED, FileFormatError):
            return None

    def read(self, block: Block, group: str) -> Dataset:
        """Read one dataset of a block."""
        return read_group(self.path(block), group)

    def values(self, block: Block, group: str, name: str) -> NDArray[Any]:
        """Return the values of one variable of a block as they are stored, texts as bytes."""
        import h5py

        with h5py.File(self.path(block), "r") as file:
            return np.asarray(file[group][name][()])

    def _key(self, block: Block) -> str:
        return f"{self.key} {tuple(block)}"


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


def append_files(path: Path, group: str, parts: Sequence[Path]) -> None:
    """Write the variables over time of a dataset of some files, one file after the other, as a group of one file.

    Values are copied as they are stored, in a twentieth of the time that datasets with labels and units would take.
    """
    import h5py

    first = read_group(parts[0], group)
    names = [str(name) for name in first.variables if first[name].dims[:1] == ("time",)]
    kept = first[[name for name in names if name in first.data_vars]]
    chunks = {name: {"chunksizes": (CHUNK_FRAMES, *first[name].shape[1:])} for name in names}
    kept.to_netcdf(path, engine="h5netcdf", group=group, mode="a", unlimited_dims=("time",), encoding=chunks)
    with h5py.File(path, "r+") as file:
        for part in parts[1:]:
            with h5py.File(part, "r") as source:
                for name in names:
                    stored, values = file[group][name], source[group][name][()]
                    start = len(stored)
                    stored.resize(start + len(values), axis=0)
                    stored[start:] = values
