"""Reading models of any supported format, detected from the content, and writing them by file name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.paths import as_path
from borelli.files.text import read_bytes
from borelli.files.xml import find_root_tag
from borelli.model.formats import native
from borelli.model.formats.asf import read_asf
from borelli.model.formats.asf_parser import looks_like_asf
from borelli.model.formats.mjcf.reader import read_mjcf
from borelli.model.formats.mjcf.writer import write_mjcf
from borelli.model.formats.osim.reader import read_osim
from borelli.model.formats.osim.writer import write_osim
from borelli.model.formats.pagoda import read_pagoda
from borelli.model.formats.qtvr import TABLES, read_qtvr
from borelli.model.formats.urdf import read_urdf
from borelli.model.model import Model

ROOTS: dict[str, Callable[[str | Path], Model]] = {
    "OpenSimDocument": read_osim,
    "mujoco": read_mjcf,
    "mujocoinclude": read_mjcf,
    "robot": read_urdf,
}
"""Readers by the root element of an XML file."""
SUPPORTED = "borelli (.toml), OpenSim (.osim), MuJoCo (.xml), URDF, ASF, pagoda skeleton, folder of QtVR tables"
HEAD_BYTES = 65536
"""Bytes from which formats without XML are detected."""


def read_model(path: str | Path) -> Model:
    """Read a model from a file or folder of any supported format.

    The format is detected from the content, not from the name. The model's notes list what the reader assumed or left
    out.

    Args:
        path: File (.osim, .xml, .urdf, .asf, .toml, ...), or the folder of a QtVR model.

    Raises:
        FileFormatError: if the format is unknown, or the file cannot be read.
        ModelError: if the model is inconsistent.

    Examples:
        >>> lost = bo.write_model(bo.human(), "human.xml")  # MuJoCo's format
        >>> model = bo.read_model("human.xml")
        >>> round(model.mass, 3)
        75.0
    """
    return model_reader(path)(path)


def model_reader(path: str | Path) -> Callable[[str | Path], Model]:
    """Return the reader for the content of a file or folder."""
    where = as_path(path)
    if _is_folder(where):
        if all((where / table).is_file() for table in TABLES):
            return read_qtvr
        raise FileFormatError(
            path, f"The path is a folder. Pass a file in it. (Folders are read if they have {', '.join(TABLES)}.)"
        )
    if where.name in TABLES and all((where.parent / table).is_file() for table in TABLES):
        return lambda table: read_qtvr(Path(table).parent)
    content = read_bytes(path)
    if not content.strip():
        raise FileFormatError(path, "The file is empty. Copy or export it again.")
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<", b"\xff\xfe<\x00", b"\xfe\xff\x00<")):
        return _xml_reader(content, path)
    head = content[:HEAD_BYTES]
    if looks_like_asf(head):
        return read_asf
    if re.search(rb'^[ \t]*format[ \t]*=[ \t]*"borelli-model"', head, re.MULTILINE):
        return native.read_model
    # a body of pagoda: a name, then box or cap and a number
    if re.search(rb"^[^\s#]+[ \t]+(box|cap)[ \t]+[\d.+-]", head, re.MULTILINE):
        return read_pagoda
    if where.suffix.lower() == ".toml":
        return native.read_model
    raise FileFormatError(path, f"Unknown model format. Supported formats: {SUPPORTED}.{_hint(head)}")


def write_model(model: Model, path: str | Path, *, overwrite: bool = False) -> tuple[str, ...]:
    """Write a model in the format of the file name's ending.

    Args:
        model: Model to write.
        path: File to write.
        overwrite: Replace an existing file.

    Returns:
        Sentences on what the format cannot store.

    Raises:
        SettingsError: if no format has that ending, or the file exists.

    Examples:
        >>> bo.write_model(bo.human(), "human.toml")
        ()
    """
    ending = as_path(path).suffix.lower()
    if ending == ".toml":
        native.write_model(model, path, overwrite=overwrite)
        return ()
    writers = {".osim": write_osim, ".xml": write_mjcf, ".mjcf": write_mjcf}
    if ending not in writers:
        known = (".toml (borelli)", ".osim (OpenSim)", ".xml (MuJoCo)")
        raise SettingsError(f"{path}: {unknown_name('file extension of a model', ending, known)}")
    return writers[ending](model, path, overwrite=overwrite)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long; reading it raises the error
        return False


def _xml_reader(content: bytes, path: object) -> Callable[[str | Path], Model]:
    tag = find_root_tag(content)
    if tag is None:
        raise FileFormatError(path, "The file begins like XML, but contains no readable element. It may be damaged.")
    if tag not in ROOTS:
        known = "<OpenSimDocument> (OpenSim), <mujoco> (MuJoCo) or <robot> (URDF)"
        raise FileFormatError(path, f"The root element is <{tag[:40]}>. XML models begin with {known}.")
    return ROOTS[tag]


def _hint(head: bytes) -> str:
    marks = (b"HIERARCHY", b"PathFileType", b":FULLY-SPECIFIED", b"#!OML:ASF")
    if head[1:2] == b"\x50" or any(mark in head[:2000] for mark in marks) or b"endheader" in head:
        return " The file looks like a recording: use read_recording."
    return ""
