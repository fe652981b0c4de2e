"""Reading and writing of recordings; the format is detected from the content of a file, not from its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.number_rows import normalize_encoding
from borelli.files.paths import as_path
from borelli.files.text import read_bytes
from borelli.model.formats.asf_parser import looks_like_asf
from borelli.recording.formats.amc import looks_like_amc, read_amc
from borelli.recording.formats.bvh import looks_like_bvh, read_bvh, write_bvh
from borelli.recording.formats.c3d.reader import looks_like_c3d, read_c3d
from borelli.recording.formats.c3d.writer import write_c3d
from borelli.recording.formats.csv import looks_like_csv, read_csv, write_csv
from borelli.recording.formats.mot_sto import looks_like_table, read_table, write_table
from borelli.recording.formats.netcdf import read_netcdf
from borelli.recording.formats.trc import looks_like_trc, read_trc, write_trc
from borelli.recording.labels.interpret import stated_meanings
from borelli.recording.marker_map import (
    MarkerMap,
    apply_marker_map,
    map_from_convention,
    person_meanings,
    read_marker_map,
)
from borelli.recording.recording import Note, Recording, check_names

HEAD_BYTES = 65536
"""Number of bytes used to detect the format."""


class Format(NamedTuple):
    """Format: its file extensions, a test of the first bytes, and its reader."""

    extensions: tuple[str, ...]
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
    ".nc": Recording.to_netcdf,
    ".c3d": write_c3d,
    ".trc": write_trc,
    ".mot": write_table,
    ".sto": write_table,
    ".csv": write_csv,
    ".bvh": write_bvh,
}
"""Writers by file extension."""

_BINARY = ("netCDF", "C3D")
_MODELS = {
    b"<OpenSimDocument": "an OpenSim model or setup file",
    b"<mujoco": "a MuJoCo model",
    b"<robot": "a URDF model",
}


def read_recording(
    path: str | Path,
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    names: Mapping[str, str] | None = None,
    markers: str | Path | None = None,
    marker_set: str | None = None,
    **options: Any,
) -> Recording:
    """Read a recording: C3D, TRC, MOT, STO, CSV, AMC with ASF, BVH, or netCDF of borelli.

    Args:
        path: File to read.
        units: Length unit of the file, such as "mm". Default: as stated or inferred.
        up: Vertical axis of the file, such as "+Y". Default: as stated or inferred.
        forward: Axis of the file that becomes x; "auto" for the direction of travel.
        names: New names of markers, by their names in the file.
        markers: Marker map: file that states what the labels mean. Default: as read from the labels.
        marker_set: Convention that the labels follow, such as "CMU 41". Default: as read from the labels.
        options: Options of the reader of that format, such as `skeleton` for AMC or `rate` for CSV.

    Raises:
        FileFormatError: if the format is unknown or the file is damaged.
        SettingsError: if an argument is invalid.

    Examples:
        >>> bo.write_recording(bo.synthetic_recording("walk").recording, "walk.c3d")
        >>> recording = bo.read_recording("walk.c3d")
        >>> recording.frames, recording.rate
        (347, 100.0)
    """
    path = as_path(path)
    head = _head(path)
    kind = _format(path, head)
    chosen = {"units": units, "up": up, "forward": forward} if kind != "netCDF" else {}
    meanings = read_marker_map(markers) if markers is not None else {}
    try:
        with stated_meanings(person_meanings(meanings)):
            recording = FORMATS[kind].read(path, **chosen, **options)
    except TypeError as error:
        if options and "argument" in str(error):
            text = f"The {kind} reader does not accept all of the options {', '.join(options)} ({error})."
            raise SettingsError(text) from None
        raise
    if path.suffix.lower() not in FORMATS[kind].extensions and kind != "CSV":
        text = f"The file is read as {kind}, because of its content."
        recording = recording.with_notes(Note(text, "stated", code="file_format"))
    recording = rename_markers(recording, names) if names else recording
    return _apply_meanings(recording, meanings, marker_set)


def _apply_meanings(recording: Recording, meanings: MarkerMap, marker_set: str | None) -> Recording:
    """Return the recording with markers named as the map, and then the convention, states."""
    if marker_set is not None:
        meanings = {**map_from_convention(marker_set, recording.markers), **meanings}
    return apply_marker_map(recording, meanings) if meanings else recording


def write_recording(recording: Recording, path: str | Path, *, overwrite: bool = False, **options: Any) -> None:
    """Write a recording in the format of the file extension: .c3d, .trc, .mot, .sto, .csv, .bvh or .nc.

    Args:
        recording: Recording to write.
        path: File to write.
        overwrite: Replace an existing file. The file that the recording was read from is never replaced.
        options: Options of the writer of that format, such as `units` for TRC.

    Raises:
        SettingsError: if the extension is unknown, the format cannot contain the recording, or the file exists.

    Examples:
        >>> walk = bo.synthetic_recording("walk").recording
        >>> bo.write_recording(walk, "walk.trc", units="mm")
    """
    extension = as_path(path).suffix.lower()
    if extension not in WRITERS:
        raise SettingsError(unknown_name("file extension of a recording", extension, WRITERS))
    WRITERS[extension](recording, path, overwrite=overwrite, **options)


def rename_markers(recording: Recording, names: Mapping[str, str]) -> Recording:
    """Return the recording with markers renamed from the keys to the values of `names`.

    Args:
        recording: Recording with markers.
        names: New names by present name.

    Raises:
        SettingsError: if a marker does not exist, or two markers would have the same name.
    """
    known = recording.markers
    check_names("marker", names, known)
    new = [names.get(name, name) for name in known]
    repeated = next((name for name in new if new.count(name) > 1), None)
    if repeated is not None:
        raise SettingsError(f"names: Two markers would be called {repeated!r}.")
    note = Note(f"{len(names)} markers are renamed, as specified.", "changed", code="marker_names")
    return recording.with_data(recording.data.assign_coords(marker=new), note)


def _head(path: Path) -> bytes:
    head = read_bytes(path, HEAD_BYTES, partial=True)
    if not head.strip():
        raise FileFormatError(path, "The file is empty. Copy or export it again.")
    return head


def _format(path: Path, head: bytes) -> str:
    text = normalize_encoding(head)
    if text.lstrip().startswith(b"<"):
        what = next((what for start, what in _MODELS.items() if start in text), "an XML file")
        raise FileFormatError(path, f"The file is {what}, not a recording. Read models with read_model.")
    for name, kind in FORMATS.items():
        if name == "AMC" and looks_like_asf(text) and not looks_like_amc(text):
            what = "The file contains a skeleton, not its motion. Read the AMC file, or this file with read_model."
            raise FileFormatError(path, what)
        if kind.looks(head if name in _BINARY else text):
            return name
    named = next((name for name, kind in FORMATS.items() if path.suffix.lower() in kind.extensions), None)
    what = f"The content is not {named}, as the name suggests" if named else "Unknown recording format"
    begin = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in head[:16])
    supported = f"Export the recording again in a format that is supported: {', '.join(FORMATS)}."
    raise FileFormatError(path, f"{what}: the file begins with {begin!r}. {supported}")
