"""Any recording, whatever its format: told by its content, not by the ending of its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.number_rows import as_text_bytes
from borelli.model.formats.asf_parser import looks_like_asf
from borelli.recording.formats.amc import looks_like_amc, read_amc
from borelli.recording.formats.bvh import looks_like_bvh, read_bvh, write_bvh
from borelli.recording.formats.c3d.reader import looks_like_c3d, read_c3d
from borelli.recording.formats.c3d.writer import write_c3d
from borelli.recording.formats.csv import looks_like_csv, read_csv, write_csv
from borelli.recording.formats.mot_sto import looks_like_table, read_table, write_table
from borelli.recording.formats.netcdf import read_netcdf
from borelli.recording.formats.trc import looks_like_trc, read_trc, write_trc
from borelli.recording.recording import Note, Recording

HEAD = 65536
"""How many bytes are looked at to tell a format."""


class Format(NamedTuple):
    """A format: the endings of its files, how its content is told, and its reader."""

    endings: tuple[str, ...]
    looks: Callable[[bytes], bool]
    read: Callable[..., Recording]


FORMATS: Mapping[str, Format] = {  # in the order in which they are tried
    "netCDF": Format((".nc",), lambda head: head.startswith(b"\x89HDF\r\n\x1a\n"), read_netcdf),
    "C3D": Format((".c3d",), looks_like_c3d, read_c3d),
    "TRC": Format((".trc",), looks_like_trc, read_trc),
    "BVH": Format((".bvh",), looks_like_bvh, read_bvh),
    "AMC": Format((".amc",), looks_like_amc, read_amc),
    "MOT or STO": Format((".mot", ".sto"), looks_like_table, read_table),
    "CSV": Format((".csv", ".tsv"), looks_like_csv, read_csv),
}
WRITERS: Mapping[str, Callable[..., None]] = {
    ".nc": lambda recording, path: recording.to_netcdf(path),
    ".c3d": write_c3d,
    ".trc": write_trc,
    ".mot": write_table,
    ".sto": write_table,
    ".csv": write_csv,
    ".bvh": write_bvh,
}
"""Writers, by the ending of the file's name."""

_BINARY = ("netCDF", "C3D")
_MODELS = {  # what is no recording, and what it is instead
    b"<OpenSimDocument": "an OpenSim model or setting",
    b"<mujoco": "a MuJoCo model",
    b"<robot": "a URDF model",
}


def read_recording(
    path: str | os.PathLike[str],
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    names: Mapping[str, str] | None = None,
    **options: Any,
) -> Recording:
    """The recording in a file of any format that is known: C3D, TRC, MOT, STO, CSV, AMC with ASF, BVH, netCDF of ours.

    Args:
        path: The file.
        units: Unit of its lengths, such as "mm", instead of what the file states or shows.
        up: Its vertical axis, such as "+Y", instead of what the file states or shows.
        forward: Its axis to be turned into x; "auto" for the way the subject goes.
        names: New names of markers, by their names in the file.
        options: What only the reader of that format takes, such as `skeleton` for AMC or `rate` for CSV.

    Raises:
        FileFormatError: if the file is not of a format known here, or damaged.
        SettingsError: if a value given is out of range.
    """
    path = Path(path)
    head = _head(path)
    kind = _format(path, head)
    chosen = {"units": units, "up": up, "forward": forward} if kind != "netCDF" else {}
    try:
        recording = FORMATS[kind].read(path, **chosen, **options)
    except TypeError as error:
        if options and "argument" in str(error):
            raise SettingsError(f"the reader of {kind} does not take all of {', '.join(options)}: {error}") from None
        raise
    if path.suffix.lower() not in FORMATS[kind].endings and kind != "CSV":
        recording = recording.with_notes(Note(f"the file is read as {kind}, by its content, not its name", "stated"))
    return rename_markers(recording, names) if names else recording


def write_recording(recording: Recording, path: str | os.PathLike[str], **options: Any) -> None:
    """Writes a recording in the format that the file's ending names: .c3d, .trc, .mot, .sto, .csv, .bvh or .nc.

    Raises:
        SettingsError: if the ending names no format written here, or the format cannot hold what is recorded.
    """
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        raise SettingsError(unknown_name("ending of a recording's file", ending, WRITERS))
    WRITERS[ending](recording, path, **options)


def rename_markers(recording: Recording, names: Mapping[str, str]) -> Recording:
    """The recording with other names of markers.

    Raises:
        SettingsError: if a marker is not there, or two would have one name.
    """
    known = recording.markers
    for name in names:
        if name not in known:
            raise SettingsError(unknown_name("marker", name, known))
    new = [names.get(name, name) for name in known]
    twice = next((name for name in new if new.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"two markers would be called {twice!r}")
    what = f"{len(names)} markers are given other names, as asked"
    return recording.with_data(recording.data.assign_coords(marker=new), Note(what, "changed"))


def _head(path: Path) -> bytes:
    try:
        about = path.stat()
        if not S_ISREG(about.st_mode):
            raise FileFormatError(path, "is not an ordinary file; give the path of a file")
        with path.open("rb") as file:
            head = file.read(HEAD)
    except (OSError, ValueError) as error:
        raise FileFormatError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not head.strip():
        raise FileFormatError(path, "the file is empty")
    return head


def _format(path: Path, head: bytes) -> str:
    """Name of the format that a file has by its first bytes."""
    text = as_text_bytes(head)
    if text.lstrip().startswith(b"<"):
        what = next((what for start, what in _MODELS.items() if start in text), "an XML file")
        raise FileFormatError(path, f"is {what}, not a recording; models are read with read_model")
    for name, kind in FORMATS.items():
        if name == "AMC" and looks_like_asf(text) and not looks_like_amc(text):
            raise FileFormatError(path, "holds a skeleton, not its motion; read the AMC file, or this with read_model")
        if kind.looks(head if name in _BINARY else text):
            return name
    by_ending = next((name for name, kind in FORMATS.items() if path.suffix.lower() in kind.endings), None)
    known = ", ".join(FORMATS)
    hint = f"named like {by_ending}, it does not begin like one" if by_ending else "its content is not known here"
    raise FileFormatError(path, f"{hint}; recordings are {known}")
