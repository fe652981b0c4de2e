"""Rows of numbers in text files of any encoding, with any line ends and missing values; bounded in size.

Lines stay bytes: Python parses a number from bytes as quickly as from text, and the file is not copied by decoding it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from borelli.errors import FileFormatError
from borelli.files.text import read_bytes

Array = NDArray[np.float64]

MAX_BYTES = 256 * 1024 * 1024
"""Largest file that is read: about an hour of sixty markers at 100 Hz."""
MAX_LINE = 1024 * 1024
"""Longest line [bytes]: about ten thousand columns."""
MAX_COLUMNS = 60_000
"""Columns in one row; the widest known file has about two thousand."""
MAX_VALUES = 40_000_000
"""Numbers in one file: their conversion to meters fits into a gigabyte."""

MAX_NAME_LENGTH = 1000
"""Characters; longer column names and header lines are not parsed."""
MAX_MAGNITUDE = 1e30
"""Largest plausible number in a recording, in any unit; its square is finite."""

MISSING_VALUES = frozenset(
    b" nan -nan +nan nan(ind) -nan(ind) na n/a #n/a null none - -- ?"
    b" 1.#qnan -1.#qnan 1.#ind -1.#ind 1.#inf -1.#inf 1.#snan".split(b" ")
)
"""Cells that mean "not measured"."""

_DECIMAL_COMMA = re.compile(rb"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")


def read_text_bytes(path: str | PathLike[str]) -> bytes:
    """Return the text of a regular file as bytes, without byte order mark or NUL, lines ending in a line feed."""
    data = normalize_encoding(read_bytes(path, MAX_BYTES))
    if not data.strip():
        raise FileFormatError(path, "The file is empty. Copy or export it again.")
    if b"\0" in data:
        raise FileFormatError(path, f"The file is not text (byte {data.index(0)} is NUL).")
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def normalize_encoding(data: bytes) -> bytes:
    """Return the text without its byte order mark; UTF-16 becomes UTF-8."""
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


def enumerate_lines(data: bytes, path: object) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each line, without line ends."""
    for number, line in enumerate(BytesIO(data), 1):
        if len(line) > MAX_LINE:
            raise FileFormatError(path, f"The line has {len(line)} bytes (maximum {MAX_LINE}).", line=number)
        yield number, line.rstrip(b"\r\n")


def decode_line(line: bytes) -> str:
    """Return the text of a line, decoded as UTF-8 or else as Windows-1252."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace")


def split_stripped(line: bytes, delimiter: bytes | None = b"\t") -> list[bytes]:
    """Return the stripped cells of a line; split at white space if it does not contain the delimiter."""
    return [cell.strip() for cell in split_row(line, delimiter)]


def split_row(line: bytes, delimiter: bytes | None = b"\t") -> list[bytes]:
    """Return the cells of a row of numbers, not stripped."""
    return line.split() if delimiter is None or delimiter not in line else line.split(delimiter)


def parse_number(cell: bytes) -> float | None:
    """Return the number in a cell, NaN for a missing value, None for anything else."""
    if not cell:
        return float("nan")
    try:
        return float(cell) if b"_" not in cell else None
    except ValueError:
        if cell.strip().lower() in MISSING_VALUES:
            return float("nan")
        return float(cell.replace(b",", b".")) if _DECIMAL_COMMA.fullmatch(cell.strip()) else None


def is_number(cell: bytes) -> bool:
    """Return whether the cell contains a finite number."""
    value = parse_number(cell)
    return value is not None and np.isfinite(value)


class Rows:
    """Rows of numbers read one by one; short rows are filled up with NaN."""

    def __init__(self, path: object, size: int) -> None:
        """Start with no rows; `size` [bytes] of the file bounds the filled matrix."""
        self.path = path
        self.limit = min(MAX_VALUES, 4 * size + 10_000)
        self.values = array("d")
        self.lengths = array("q")
        self.decimals = 0
        """Largest number of decimals in the column given to `add` as `time`."""

    def __len__(self) -> int:
        return len(self.lengths)

    def add(self, cells: Sequence[bytes], line: int, time: int | None = None) -> None:
        """Append a row; raise `FileFormatError` for a cell without a number."""
        if len(cells) > MAX_COLUMNS:
            what = f"The row has {len(cells)} cells (maximum {MAX_COLUMNS}). Remove columns."
            raise FileFormatError(self.path, what, line=line)
        try:
            self.values.extend(list(map(float, cells)))
        except ValueError:
            self.values.extend([self._number(cell, column, line) for column, cell in enumerate(cells, 1)])
        if b"_" in b"".join(cells):  # Python would accept it as a digit separator
            raise FileFormatError(self.path, "A number must not contain an underscore.", line=line)
        self.lengths.append(len(cells))
        if len(self.values) > self.limit:
            raise FileFormatError(self.path, f"The file has more than {self.limit} numbers.", line=line)
        if time is not None and time < len(cells):
            self.decimals = max(self.decimals, count_decimals(cells[time]))

    def count_short(self, width: int) -> int:
        """Return the number of rows with fewer cells than this width."""
        return sum(length < width for length in self.lengths)

    def matrix(self, width: int | None = None) -> Array:
        """Return all rows as a matrix of this width (default: that of the longest row); extra cells are dropped."""
        lengths = np.frombuffer(self.lengths, dtype=np.int64) if len(self) else np.zeros(0, dtype=np.int64)
        width = int(lengths.max(initial=0)) if width is None else width
        if len(lengths) * width > self.limit:
            what = f"{len(lengths)} rows of {width} columns exceed the file size. Check for rows that are cut short."
            raise FileFormatError(self.path, what)
        values = np.frombuffer(self.values, dtype=np.float64) if len(self.values) else np.zeros(0)
        if np.all(lengths == width):
            return values.reshape(len(lengths), width).copy()
        filled = np.full((len(lengths), width), np.nan)
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            filled[row, :length] = values[start : start + min(length, width)]
        return filled

    def _number(self, cell: bytes, column: int, line: int) -> float:
        value = parse_number(cell)
        if value is None:
            shown = decode_line(cell[:40])
            raise FileFormatError(self.path, f"Column {column}: Expected a number, got {shown!r}.", line=line)
        return value


def count_decimals(cell: bytes) -> int:
    """Return the number of decimals without trailing zeros; 17 for a number with an exponent."""
    if b"e" in cell.lower():
        return 17
    return len(cell.strip().replace(b",", b".").partition(b".")[2].rstrip(b"0"))


def mask_implausible(values: Array) -> tuple[Array, int]:
    """Return the values with NaN in place of those beyond `MAX_MAGNITUDE`, and the number of replaced values."""
    implausible = (values > MAX_MAGNITUDE) | (values < -MAX_MAGNITUDE)
    count = int(np.count_nonzero(implausible))
    return (np.where(implausible, np.nan, values) if count else values), count


def to_single_line(name: str) -> str:
    """Return a name that is safe in a cell: control characters and line ends become spaces."""
    return re.sub(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", " ", name).strip()


def format_numbers(row: Iterable[float], missing: str = "") -> list[str]:
    """Return numbers as text with twelve digits, more than any instrument has but free of rounding noise."""
    return [missing if value != value else f"{value:.12g}" for value in row]
