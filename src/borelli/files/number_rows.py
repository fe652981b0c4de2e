"""Text as measuring systems write it: any encoding, any line ends, holes in the rows; read whole and bounded.

Lines stay bytes, because Python reads a number from bytes as quickly as from text, and a file of numbers is not
copied by decoding it.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from borelli.errors import FileFormatError
from borelli.files.text import read_bytes

Array = NDArray[np.float64]

MAX_BYTES = 256 * 1024 * 1024
"""Larger files are refused: an hour of sixty markers at 100 Hz takes about as much."""
MAX_LINE = 1024 * 1024
"""[bytes]; ten thousand columns take about as much."""
MAX_COLUMNS = 60_000
"""In one row; the widest file met has some two thousand."""
MAX_VALUES = 40_000_000
"""Numbers in one file: what fits a gigabyte while it is turned into metres."""

LONGEST_NAME = 1000
"""Letters; longer names of columns, and lines of a header, are not taken apart."""
ABSURD = 1e30
"""No number in a recording is as large, in any unit; and its square can still be taken."""

HOLES = frozenset(
    b" nan -nan +nan nan(ind) -nan(ind) na n/a #n/a null none - -- ?"
    b" 1.#qnan -1.#qnan 1.#ind -1.#ind 1.#inf -1.#inf 1.#snan".split(b" ")
)
"""What stands where nothing was measured."""

_DECIMAL_COMMA = re.compile(rb"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")


def read_text_bytes(path: str | os.PathLike[str]) -> bytes:
    """The text of an ordinary file as bytes: no byte order mark, no NUL, lines that end in a line feed."""
    data = as_text_bytes(read_bytes(path, MAX_BYTES))
    if not data.strip():
        raise FileFormatError(path, "the file is empty")
    if b"\0" in data:
        raise FileFormatError(path, f"byte {data.index(0)} is NUL, so this is no text file")
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def as_text_bytes(data: bytes) -> bytes:
    """The same text without its byte order mark; UTF-16 becomes UTF-8."""
    encoding = None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif len(data) >= 8 and data[1:8:2] == bytes(4) and 0 not in data[:8:2]:
        encoding = "utf-16-le"
    elif len(data) >= 8 and data[:8:2] == bytes(4) and 0 not in data[1:8:2]:
        encoding = "utf-16-be"
    if encoding:
        return data.decode(encoding, errors="replace").encode("utf-8", errors="replace")
    return data.removeprefix(b"\xef\xbb\xbf")


def numbered_lines(data: bytes, path: object) -> Iterator[tuple[int, bytes]]:
    """The lines and their numbers, without line ends."""
    for number, line in enumerate(BytesIO(data), 1):
        if len(line) > MAX_LINE:
            raise FileFormatError(path, f"the line has {len(line)} bytes, but at most {MAX_LINE} are read", line=number)
        yield number, line.rstrip(b"\r\n")


def decode(line: bytes) -> str:
    """The text of a line: UTF-8 or, where it is not, Windows' western European letters."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace")


def cells_of(line: bytes, delimiter: bytes | None = b"\t") -> list[bytes]:
    """The stripped cells of a line; None, or a line without the delimiter, parts it at white space."""
    return [cell.strip() for cell in row_cells(line, delimiter)]


def row_cells(line: bytes, delimiter: bytes | None = b"\t") -> list[bytes]:
    """The cells of a row of numbers, which need no stripping, as they stand."""
    return line.split() if delimiter is None or delimiter not in line else line.split(delimiter)


def number_of(cell: bytes) -> float | None:
    """The number in a cell, not a number where it says that nothing was measured, None where it is something else."""
    if not cell:
        return float("nan")
    try:
        return float(cell) if b"_" not in cell else None
    except ValueError:
        if cell.strip().lower() in HOLES:
            return float("nan")
        return float(cell.replace(b",", b".")) if _DECIMAL_COMMA.fullmatch(cell.strip()) else None


def is_number(cell: bytes) -> bool:
    """Whether the cell holds a finite number."""
    value = number_of(cell)
    return value is not None and np.isfinite(value)


class Rows:
    """Rows of numbers, gathered as numbers; rows that end early are filled up with not-a-number."""

    def __init__(self, path: object, size: int) -> None:
        """For the file at `path`, of `size` bytes, which bound what its rows may be filled up to."""
        self.path = path
        self.limit = min(MAX_VALUES, 4 * size + 10_000)
        self.values = array("d")
        self.lengths = array("q")
        self.decimals = 0
        """Most decimals of any number in the column given to `add` as `time`."""

    def __len__(self) -> int:
        return len(self.lengths)

    def add(self, cells: Sequence[bytes], line: int, time: int | None = None) -> None:
        """Appends a row; says which cell of which line is no number."""
        if len(cells) > MAX_COLUMNS:
            what = f"the row has {len(cells)} cells, but at most {MAX_COLUMNS} are read"
            raise FileFormatError(self.path, f"{what}; take columns out", line=line)
        try:
            self.values.extend(list(map(float, cells)))
        except ValueError:
            self.values.extend([self._number(cell, column, line) for column, cell in enumerate(cells, 1)])
        if b"_" in b"".join(cells):  # which Python would read as a separator of thousands
            raise FileFormatError(self.path, "a number must not contain an underscore", line=line)
        self.lengths.append(len(cells))
        if len(self.values) > self.limit:
            raise FileFormatError(self.path, f"more than {self.limit} numbers, which is more than is read", line=line)
        if time is not None and time < len(cells):
            self.decimals = max(self.decimals, decimals_of(cells[time]))

    def matrix(self, width: int | None = None) -> Array:
        """All rows, as wide as the longest or as asked; cells beyond that width are dropped."""
        lengths = np.frombuffer(self.lengths, dtype=np.int64) if len(self) else np.zeros(0, dtype=np.int64)
        width = int(lengths.max(initial=0)) if width is None else width
        if len(lengths) * width > self.limit:
            what = f"{len(lengths)} rows filled up to {width} columns are more than the file can hold"
            raise FileFormatError(self.path, f"{what}; are the rows cut short?")
        values = np.frombuffer(self.values, dtype=np.float64) if len(self.values) else np.zeros(0)
        if np.all(lengths == width):
            return values.reshape(len(lengths), width).copy()
        filled = np.full((len(lengths), width), np.nan)
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            filled[row, :length] = values[start : start + min(length, width)]
        return filled

    def _number(self, cell: bytes, column: int, line: int) -> float:
        value = number_of(cell)
        if value is None:
            shown = decode(cell[:40])
            raise FileFormatError(self.path, f"column {column}: expected a number, got {shown!r}", line=line)
        return value


def decimals_of(cell: bytes) -> int:
    """How many decimals a number is written with, trailing zeros apart; 17 where it has an exponent."""
    if b"e" in cell.lower():
        return 17
    return len(cell.strip().replace(b",", b".").partition(b".")[2].rstrip(b"0"))


def without_absurd(values: Array) -> tuple[Array, int]:
    """The values with not-a-number for those beyond `ABSURD` or infinite; and how many of these there were."""
    absurd = np.abs(values) > ABSURD
    count = int(np.count_nonzero(absurd))
    return (np.where(absurd, np.nan, values) if count else values), count


def one_line(name: str) -> str:
    """A name that is safe in a cell: control characters and line ends become spaces."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", name).strip()


def number_cells(row: Iterable[float], hole: str = "") -> list[str]:
    """Numbers as text, to twelve digits: more than any instrument gives, and free of the noise of binary fractions."""
    return [hole if value != value else f"{value:.12g}" for value in row]
