"""What a file holds, told by its content: a recording, a model, a scene, a result or a stage of an analysis."""

from __future__ import annotations

import re
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple

from borelli.errors import FileFormatError, SettingsError

if TYPE_CHECKING:
    from xarray import Dataset

HEAD = 65536
"""Bytes looked at to tell what a file is."""
HDF5 = b"\x89HDF\r\n\x1a\n"


class Content(NamedTuple):
    """What a file holds."""

    kind: str
    """ "recording", "model", "scene", "result", "stage" or "fit"."""
    thing: Any
    """A `Recording`, `Model`, `Scene`, `Dataset`, or a `Motion`, `Torques`, `Energy` or `Fit`."""


def open_file(path: Path, **reading: Any) -> Content:
    """The content of a file or folder of any kind that borelli knows.

    Args:
        path: The file.
        reading: What the user says of recordings: `units`, `up`, `forward`, `skeleton`.

    Raises:
        FileFormatError: if the file is of no known kind, or damaged.
        SettingsError: if something is said of a recording, and the file holds none.
    """
    kind = kind_of(path)
    if kind == "recording":
        from borelli.commands.options import read_with

        return Content(kind, read_with(path, **reading))
    said = [f"--{name}" for name, value in reading.items() if value is not None]
    if said:
        raise SettingsError(f"{path}: holds a {kind}, and {', '.join(said)} can be said of recordings only")
    if kind == "result":
        return Content(kind, _result(path))
    if kind in ("stage", "fit"):
        from borelli.export.stage_files import read_fit, read_stage

        thing = read_stage(path) if kind == "stage" else read_fit(path)
        if thing is None:
            raise FileFormatError(path, "holds a fit, but is damaged")
        return Content(kind, thing)
    if kind == "scene":
        from borelli.scenes.scene_files import read_scene

        return Content(kind, read_scene(str(path)))
    from borelli.model.io import read_model

    return Content(kind, read_model(path))


def kind_of(path: Path) -> str:
    """Whether a file or folder holds a recording, a model, a scene or a result, by what its content looks like."""
    from borelli.model.formats.asf_parser import looks_like_asf
    from borelli.model.io import KNOWN, model_reader
    from borelli.recording.io import FORMATS

    if path.is_dir():
        return "model"
    head = _head(path)
    if head.startswith(HDF5):
        return _kind_of_netcdf(path)
    stated = re.search(rb'^\s*format\s*=\s*"borelli-(model|scene)"', head, re.MULTILINE)
    if stated:
        return stated[1].decode()
    if path.suffix.lower() == ".nc":
        raise FileFormatError(path, "is not a netCDF 4 file, which begins otherwise")
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if path.suffix.lower() == ".toml" or text.startswith(b"<") or looks_like_asf(head):
        return "model"
    if any(form.looks(head) for name, form in FORMATS.items() if name != "CSV"):
        return "recording"
    # any text of numbers looks like CSV: it is one only if it is no table of a model
    try:
        model_reader(path)
    except FileFormatError:
        endings = {ending for form in FORMATS.values() for ending in form.endings}
        if FORMATS["CSV"].looks(head) or path.suffix.lower() in endings or not text:
            return "recording"  # whose reader knows best what is wrong with it
        recordings = ", ".join(FORMATS)
        what = f"is of no kind that is known: recordings are {recordings}; models are {KNOWN}"
        raise FileFormatError(path, what) from None
    return "model"


def _head(path: Path) -> bytes:
    try:
        if not S_ISREG(path.stat().st_mode):
            raise FileFormatError(path, "is not an ordinary file; give the path of a file")
        with path.open("rb") as file:
            return file.read(HEAD)
    except (OSError, ValueError) as error:
        raise FileFormatError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _kind_of_netcdf(path: Path) -> str:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            said = set(file.attrs)
            stage = str(file.attrs.get("borelli_stage", ""))
    except (OSError, RuntimeError, ValueError) as error:
        raise FileFormatError(path, f"cannot be read as netCDF: {' '.join(str(error).split())}") from None
    if "borelli_recording" in said:
        return "recording"
    if stage:
        return "fit" if stage == "fit" else "stage"
    if "model" not in said:
        raise FileFormatError(path, "holds no result of borelli: the attribute 'model' is missing")
    return "result"


def _result(path: Path) -> Dataset:
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf") as dataset:
            return dataset.load()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise FileFormatError(path, f"cannot be read as netCDF: {' '.join(str(error).split())}") from None
