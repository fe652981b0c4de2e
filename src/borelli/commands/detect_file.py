"""Detection of a file's kind by its content: recording, model, scene, simulation result or stage of an analysis."""

from __future__ import annotations

import re
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple

from borelli.commands.options import given_options, read_with
from borelli.errors import FileFormatError, MissingFileError, SettingsError
from borelli.files.netcdf import SIGNATURE

if TYPE_CHECKING:
    from xarray import Dataset

HEAD_BYTES = 65536
"""Number of bytes read to detect the kind of a file."""


class Content(NamedTuple):
    """Content of a file."""

    kind: str
    """ "recording", "model", "scene", "result", "stage" or "fit"."""
    value: Any
    """A `Recording`, `Model`, `Scene`, `Dataset`, or a `Motion`, `Torques`, `Energy` or `Fit`."""


def open_file(path: Path, **reading: Any) -> Content:
    """Read a file or folder of any known kind; recordings with the options `units`, `up`, `forward`, `skeleton`.

    Raises:
        FileFormatError: The file is of an unknown kind, or damaged.
        SettingsError: Options for recordings were given for another kind of file.
    """
    kind = detect_kind(path)
    if kind == "recording":
        return Content(kind, read_with(path, **reading))
    if given := given_options(reading):
        raise SettingsError(f"{path}: The file contains a {kind}; {given} apply to recordings only.")
    if kind == "result":
        return Content(kind, _read_result(path))
    if kind in ("stage", "fit"):
        from borelli.export.stage_files import read_fit, read_stage

        return Content(kind, read_stage(path) if kind == "stage" else read_fit(path))
    if kind == "scene":
        from borelli.scenes.scene_files import read_scene

        return Content(kind, read_scene(str(path)))
    from borelli.model.io import read_model

    return Content(kind, read_model(path))


def detect_kind(path: Path) -> str:
    """Return the kind of a file or folder: "recording", "model", "scene", "result", "stage" or "fit"."""
    from borelli.model.formats.asf_parser import looks_like_asf
    from borelli.model.io import SUPPORTED, model_reader
    from borelli.recording.io import FORMATS

    head = _read_head(path)
    if head is None:
        return "model"
    if head.startswith(SIGNATURE):
        return _detect_netcdf(path)
    stated = re.search(rb'^\s*format\s*=\s*"borelli-(model|scene)"', head, re.MULTILINE)
    if stated:
        return stated[1].decode()
    if path.suffix.lower() == ".nc":
        raise FileFormatError(path, "The file is not in netCDF 4 format. Pass a file that borelli wrote.")
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if path.suffix.lower() == ".toml" or text.startswith(b"<") or looks_like_asf(head):
        return "model"
    if any(form.looks(head) for name, form in FORMATS.items() if name != "CSV"):
        return "recording"
    # any text with numbers looks like CSV, so a model is tried first
    try:
        model_reader(path)
    except FileFormatError:
        endings = {ending for form in FORMATS.values() for ending in form.extensions}
        if FORMATS["CSV"].looks(head) or path.suffix.lower() in endings or not text:
            return "recording"  # whose reader reports what is wrong with the file
        supported = f"recordings: {', '.join(FORMATS)}; models: {SUPPORTED}"
        raise FileFormatError(
            path, f"Unknown file format. Export the data in one that is supported: {supported}."
        ) from None
    return "model"


def _read_head(path: Path) -> bytes | None:
    """Return the first bytes of a file; None for a folder."""
    try:
        mode = path.stat().st_mode
        if S_ISDIR(mode):
            return None
        if not S_ISREG(mode):
            raise FileFormatError(path, "The path is not a regular file. Pass a file.")
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise MissingFileError(path) from None
    except (OSError, ValueError) as error:
        raise FileFormatError(path, f"The file cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _detect_netcdf(path: Path) -> str:
    from borelli.files.netcdf import open_netcdf

    attributes = open_netcdf(path, needs_checksum=False).attrs
    if "borelli_recording" in attributes:
        return "recording"
    if "borelli_stage" in attributes:
        return "fit" if attributes["borelli_stage"] == "fit" else "stage"
    if "model" not in attributes:
        raise FileFormatError(path, "The file contains no result of borelli: the attribute 'model' is missing.")
    return "result"


def _read_result(path: Path) -> Dataset:
    from borelli.export.stage_schema import check_result
    from borelli.files.netcdf import open_netcdf
    from borelli.model.formats.native import model_from_text

    dataset = open_netcdf(path).load()
    check_result(dataset, path)
    model_from_text(str(dataset.attrs["model"]), path)
    return dataset
