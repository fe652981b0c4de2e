"""Manifest of a folder of results: the files that borelli wrote there, with command, size and SHA-256.

It has one JSON record per line, added before a file gets its name, so that a killed run leaves no file that the next
run does not recognize. It is read as hostile input: what is not a sound record is ignored, and its file is then treated
as the user's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from borelli.errors import FileFormatError
from borelli.files.atomic import PREFIX, write_atomic

MANIFEST = "borelli-results.jsonl"
HEADER = {"format": "borelli-results", "version": 1}
MAX_BYTES = 64_000_000
"""Size of a manifest; one hour of video as single frames takes 13 MB."""
MAX_VERSIONS = 8
"""Records of one file: its content now, and that of earlier or interrupted writes."""

_PLAIN_NAME = re.compile(r"[^/\\:\0]{1,255}")


class Record(NamedTuple):
    """Content of a file, and the command that wrote it."""

    name: str
    by: str
    size: int
    sha256: str


class Manifest:
    """Records of one folder.

    Attributes:
        path: File of the records.
        damaged: True if the file exists, but is not a manifest.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / MANIFEST
        self._records: dict[str, list[Record]] = {}
        lines = _read_lines(self.path)
        self.damaged = lines is None
        for line in lines or ():
            record = _to_record(_parse(line))
            if record is not None:
                self._keep(record)
        self._surplus = len(lines or ()) > sum(map(len, self._records.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the files that have a record."""
        return tuple(self._records)

    def lists(self, path: Path, by: str) -> bool:
        """Return whether a file of the folder has content that a command wrote."""
        records = [record for record in self._records.get(path.name, ()) if record.by == by]
        if not records or not is_regular(path):
            return False
        size = path.stat().st_size
        hashes = {record.sha256 for record in records if record.size == size}
        return bool(hashes) and hash_file(path) in hashes

    def max_size(self, name: str, by: str) -> int:
        """Return the largest size [bytes] that a command wrote of a file; -1 if it wrote none."""
        return max((record.size for record in self._records.get(name, ()) if record.by == by), default=-1)

    def add(self, record: Record) -> None:
        """Add a record."""
        self._keep(record)
        if self.damaged or self._surplus or not self.path.exists():
            records = (record for several in self._records.values() for record in several)
            write_atomic("".join([json.dumps(HEADER) + "\n", *map(_line, records)]), self.path, overwrite=True)
            self.damaged = self._surplus = False
            return
        try:
            with self.path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(_line(record))
        except OSError as error:
            self._surplus = True  # a part of the line
            raise FileFormatError(self.path, f"The file cannot be written ({error.strerror or error}).") from None

    def _keep(self, record: Record) -> None:
        self._records[record.name] = [*self._records.get(record.name, ()), record][-MAX_VERSIONS:]


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _line(record: Record) -> str:
    return json.dumps(record._asdict()) + "\n"


def _read_lines(path: Path) -> list[bytes] | None:
    """Return the lines after the header; [] without a file, None if it is not a manifest."""
    if not os.path.lexists(path):
        return []
    if not is_regular(path) or path.stat().st_size > MAX_BYTES:
        return None
    with path.open("rb") as file:
        lines = file.read(MAX_BYTES).splitlines()
    return lines[1:] if lines and _parse(lines[0]) == HEADER else None


def is_regular(path: Path) -> bool:
    """Return whether a path is a file and not a link, which may lead out of the folder."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _parse(line: bytes) -> object:
    try:
        parsed: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parsed


def _to_record(value: object) -> Record | None:
    """Return a record with a plain file name, or None."""
    if not isinstance(value, dict) or set(value) != set(Record._fields):
        return None
    record = Record(**value)
    sound = all(isinstance(text, str) for text in (record.name, record.by, record.sha256)) and type(record.size) is int
    if not sound or not _PLAIN_NAME.fullmatch(record.name) or record.name in (".", "..", MANIFEST):
        return None
    return None if record.name.startswith(PREFIX) else record
