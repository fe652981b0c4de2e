"""Comma-, semicolon- or tab-separated tables of unknown origin: delimiter, cells and named columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import AnyStr, NamedTuple

from borelli.errors import FileFormatError
from borelli.files.number_rows import MAX_NAME_LENGTH, decode_line, parse_number

DELIMITERS = (b",", b";", b"\t")
UNITS = ("mm", "cm", "m", "s", "ms", "deg", "rad", "N", "Nm", "N.m", "V", "mV", "uV", "W", "kg", "Hz")
"""Units recognized at the end of a column name without brackets."""

_BRACKETS = re.compile(r"(.*?)\s*[\[(]([^\[\]()]*)[\])]\s*")
_SUFFIX = re.compile(r"(.+)_(" + "|".join(map(re.escape, UNITS)) + ")")


class Column(NamedTuple):
    """Name and unit of a column; the unit is "" where none is stated."""

    name: str
    units: str


def sniff_delimiter(lines: Sequence[bytes]) -> bytes | None:
    """Return the most frequent delimiter of these lines; None for white space."""
    score = {d: sum(min(line.count(d), 3) for line in lines) for d in DELIMITERS}
    if score[b";"] and score[b";"] >= 0.5 * score[b","]:
        return b";"  # then commas are decimal commas
    if score[b"\t"] and score[b"\t"] >= 0.5 * score[b","]:
        return b"\t"
    return b"," if score[b","] else None


def split_cells(line: bytes, delimiter: bytes | None, path: object, number: int) -> list[bytes]:
    """Return the cells of a line without quotation marks."""
    if delimiter is None:
        return line.split()
    if b'"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    try:
        rows = list(csv.reader([decode_line(line)], delimiter=delimiter.decode()))
    except csv.Error as error:
        raise FileFormatError(path, f"The line cannot be split into cells ({error}).", line=number) from None
    return [cell.strip().encode() for cell in rows[0]] if rows else []


def strip_empty_end(cells: Sequence[AnyStr]) -> list[AnyStr]:
    """Return the cells up to the last that is not empty."""
    last = max((i for i, cell in enumerate(cells) if cell), default=-1)
    return list(cells[: last + 1])


def parse_column_name(name: str) -> Column:
    """Return name and unit of a column called `name [unit]`, `name (unit)` or `name_unit`."""
    if len(name) > MAX_NAME_LENGTH:
        return Column(name.strip(), "")
    brackets = _BRACKETS.fullmatch(name)
    if brackets and brackets[1]:
        return Column(brackets[1].strip(), brackets[2].strip())
    suffix = _SUFFIX.fullmatch(name)
    return Column(suffix[1], suffix[2]) if suffix else Column(name.strip(), "")


def is_header(cells: Sequence[bytes]) -> bool:
    """Return whether these cells are names rather than numbers."""
    return any(cell and parse_number(cell) is None for cell in cells)
