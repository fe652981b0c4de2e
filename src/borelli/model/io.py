"""Models of any kind that borelli knows, read by what is in the file and written by the file's name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from borelli.errors import FileFormatError, SettingsError
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

ROOTS: dict[str, Callable[[str | os.PathLike[str]], Model]] = {
    "OpenSimDocument": read_osim,
    "mujoco": read_mjcf,
    "mujocoinclude": read_mjcf,
    "robot": read_urdf,
}
"""Readers by the root element of an XML file."""
KNOWN = "borelli's own (.toml), OpenSim (.osim), MuJoCo (.xml), URDF, ASF, pagoda's skeleton, a folder of QtVR's tables"
HEAD = 65536
"""Bytes looked at to tell formats without XML apart."""


def read_model(path: str | os.PathLike[str]) -> Model:
    """The model in a file or folder of any known kind; its notes say what the reader noticed or left out.

    The kind is told by what is in the file, not by its name.

    Raises:
        FileFormatError: if the file is of no known kind, or cannot be read as the kind it is.
        ModelError: if the model it describes contradicts itself.
    """
    return model_reader(path)(path)


def model_reader(path: str | os.PathLike[str]) -> Callable[[str | os.PathLike[str]], Model]:
    """The reader for what is in a file or folder."""
    where = Path(path)
    if _is_folder(where):
        if all((where / table).is_file() for table in TABLES):
            return read_qtvr
        raise FileFormatError(path, f"is a folder without QtVR's tables ({', '.join(TABLES)}); give a model file")
    if where.name in TABLES and all((where.parent / table).is_file() for table in TABLES):
        return lambda table: read_qtvr(Path(table).parent)
    content = read_bytes(path)
    if not content.strip():
        raise FileFormatError(path, "the file is empty")
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<", b"\xff\xfe<\x00", b"\xfe\xff\x00<")):
        return _xml_reader(content, path)
    head = content[:HEAD]
    if looks_like_asf(head):
        return read_asf
    if re.search(rb'^[ \t]*format[ \t]*=[ \t]*"borelli-model"', head, re.MULTILINE):
        return native.read_model
    if _looks_like_pagoda(head):
        return read_pagoda
    if where.suffix.lower() == ".toml":
        return native.read_model
    raise FileFormatError(path, f"is no model of a kind that is known: {KNOWN}{_hint(head)}")


def write_model(model: Model, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Writes the model in the format its file name asks for; gives back sentences on what that format cannot say.

    Raises:
        SettingsError: if no format has that ending.
    """
    ending = Path(path).suffix.lower()
    if ending == ".toml":
        native.write_model(model, path)
        return ()
    writers = {".osim": write_osim, ".xml": write_mjcf, ".mjcf": write_mjcf}
    if ending not in writers:
        raise SettingsError(
            f"{path}: models are written as .toml (borelli), .osim (OpenSim) or .xml (MuJoCo), not {ending!r}"
        )
    return writers[ending](model, path)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long, for one; reading it will say so
        return False


def _xml_reader(content: bytes, path: object) -> Callable[[str | os.PathLike[str]], Model]:
    tag = find_root_tag(content)
    if tag is None:
        raise FileFormatError(path, "begins like XML, but has no element that can be read; is it damaged?")
    if tag not in ROOTS:
        known = "<OpenSimDocument> (OpenSim), <mujoco> (MuJoCo) or <robot> (URDF)"
        raise FileFormatError(path, f"its root element is <{tag[:40]}>, but XML models begin with {known}")
    return ROOTS[tag]


def _looks_like_pagoda(head: bytes) -> bool:
    """Whether a text has lines that begin as pagoda's bodies do: a name, then box or cap and a number."""
    return re.search(rb"^[^\s#]+[ \t]+(box|cap)[ \t]+[\d.+-]", head, re.MULTILINE) is not None


def _hint(head: bytes) -> str:
    """What to do with a file that is a recording."""
    marks = (b"HIERARCHY", b"PathFileType", b":FULLY-SPECIFIED", b"#!OML:ASF")
    if head[1:2] == b"\x50" or any(mark in head[:2000] for mark in marks) or b"endheader" in head:
        return "; it looks like a recording: use read_recording"
    return ""
