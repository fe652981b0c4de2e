"""Header block and parameter section of a C3D file, with every count checked against the file size.

A C3D file consists of blocks of 512 bytes: one header block, the parameter section, the samples (C3D user guide,
c3d.org). The parameter section is a chain of groups and parameters; each entry states the offset of the next one, and
every parameter has a type and dimensions. Numbers have the format of one of three processors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from borelli.errors import FileFormatError

BLOCK = 512
KEY = 0x50
PROCESSORS = {84: "Intel", 85: "DEC", 86: "SGI"}
MAX_ENTRIES = 60_000
"""Groups and parameters; large files have some hundreds."""
MAX_TEXTS = 300_000
"""Strings in all parameters together; large files have some thousands."""

CHARACTERS = -1
ITEM_BYTES = {CHARACTERS: 1, 1: 1, 2: 2, 4: 4}
MAX_DIMENSIONS = 7
HEADER_EVENTS = 18
FOUR_CHARACTER_KEY = 12345

Floats = npt.NDArray[np.float32]


def integers(raw: bytes | memoryview, processor: str) -> npt.NDArray[np.int16]:
    """Return 16-bit integers in the format of this processor."""
    return np.frombuffer(raw, ">i2" if processor == "SGI" else "<i2")


def floats(raw: bytes | memoryview, processor: str) -> Floats:
    """Return 32-bit floats in the format of this processor.

    A DEC number has its two 16-bit halves swapped and an exponent larger by two; exponent zero means zero. Numbers
    below 2^-126 have no exact IEEE form and become zero.
    """
    if processor != "DEC":
        return np.frombuffer(raw, ">f4" if processor == "SGI" else "<f4")
    halves = np.frombuffer(raw, "<u2").reshape(-1, 2)
    bits = halves[:, 0].astype(np.uint32) << 16 | halves[:, 1]
    tiny = (bits >> 23 & 0xFF) <= 2
    bits -= np.uint32(2 << 23)
    bits[tiny] = 0
    return bits.view(np.float32)


@dataclass(frozen=True)
class Header:
    """First block, unchecked; it is compared with the parameters later."""

    points: int
    analog_words: int
    first: int
    last: int
    scale: float
    data_block: int
    samples: int
    rate: float
    events: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Parameter:
    """Parameter with its values in file order (first index fastest), dimensions and description."""

    kind: int
    dims: tuple[int, ...]
    values: npt.NDArray[Any] | tuple[str, ...]
    description: str = ""

    def plain(self) -> Any:
        """Return the value as nested lists, last index outermost; a single value is not in a list."""
        if isinstance(self.values, tuple):
            return _nested(list(self.values), self.dims[:0:-1])
        return _nested(self.values.tolist(), self.dims[::-1])


@dataclass(frozen=True)
class Parameters:
    """Parameter section by group and name, both in capitals."""

    processor: str
    groups: Mapping[str, Mapping[str, Parameter]]
    problems: tuple[str, ...] = field(default=())

    def get(self, group: str, name: str) -> Parameter | None:
        """Return the parameter, or None."""
        return self.groups.get(group, {}).get(name)

    def numbers(self, group: str, name: str) -> npt.NDArray[np.float64]:
        """Return the numbers of a parameter and its continuations NAME2, NAME3..., in file order; empty if missing."""
        parts = [p.values for p in self._continued(group, name) if not isinstance(p.values, tuple)]
        return np.concatenate(parts).astype(float) if parts else np.zeros(0)

    def counts(self, group: str, name: str) -> npt.NDArray[np.int64]:
        """Return the integers of a parameter as unsigned, the convention for counts and frame numbers."""
        parts = [p for p in self._continued(group, name) if not isinstance(p.values, tuple)]
        return np.concatenate([_unsigned(p) for p in parts]) if parts else np.zeros(0, np.int64)

    def number(self, group: str, name: str, default: float = 0.0) -> float:
        """Return the first number of a parameter."""
        values = self.numbers(group, name)
        return float(values[0]) if len(values) else default

    def texts(self, group: str, name: str) -> list[str]:
        """Return the strings of a parameter and its continuations NAME2, NAME3..."""
        return [text for p in self._continued(group, name) if isinstance(p.values, tuple) for text in p.values]

    def text(self, group: str, name: str, default: str = "") -> str:
        """Return the first string of a parameter."""
        values = self.texts(group, name)
        return values[0] if values else default

    def plain(self) -> dict[str, dict[str, Any]]:
        """Return all parameters as plain values."""
        return {group: {name: p.plain() for name, p in content.items()} for group, content in self.groups.items()}

    def _continued(self, group: str, name: str) -> Iterator[Parameter]:
        content = self.groups.get(group, {})
        number = 1
        while (parameter := content.get(name if number == 1 else f"{name}{number}")) is not None:
            yield parameter
            number += 1


def looks_like_c3d(head: bytes) -> bool:
    """Return whether the first bytes may be those of a C3D file: the key in the second byte, and not text.

    The key is the letter P: a table with the title "FP1" has it too, but neither a low first byte nor a NUL.
    """
    return len(head) >= 2 and head[1] == KEY and head[0] > 0 and (head[0] < ord("\t") or 0 in head[:BLOCK])


def read_header(content: memoryview, processor: str) -> Header:
    """Return the values of the first block."""
    words = integers(content[:BLOCK], processor).view(np.uint16 if processor != "SGI" else ">u2").astype(int)
    numbers = floats(content[:BLOCK], processor)  # number k consists of words 2k + 1 and 2k + 2
    return Header(
        points=int(words[1]),
        analog_words=int(words[2]),
        first=int(words[3]),
        last=int(words[4]),
        scale=float(numbers[3]),
        data_block=int(words[8]),
        samples=int(words[9]),
        rate=float(numbers[5]),
        events=_header_events(content, words, processor),
    )


def _header_events(content: memoryview, words: npt.NDArray[Any], processor: str) -> tuple[tuple[float, str], ...]:
    """Return times [s] and labels of the enabled events in the header."""
    width = 4 if words[149] == FOUR_CHARACTER_KEY else 2
    count = min(int(words[150]), HEADER_EVENTS)
    times = floats(content[304 : 304 + 4 * HEADER_EVENTS], processor)
    flags = content[376 : 376 + HEADER_EVENTS]
    labels = content[396 : 396 + 4 * HEADER_EVENTS]
    enabled = [i for i in range(count) if flags[i] and np.isfinite(times[i])]
    return tuple((float(times[i]), _text(bytes(labels[width * i : width * i + width]))) for i in enabled)


def read_parameters(content: memoryview, path: object) -> Parameters:
    """Return the parameter section of a file; an error for an inconsistent entry states its byte."""
    start = (content[0] - 1) * BLOCK
    if len(content) < start + 4 or start < BLOCK:
        has = f"but the file has {len(content)} bytes. It is truncated, or not a C3D file. Copy it again."
        raise FileFormatError(path, f"The header states that the parameters begin in block {content[0]}, {has}")
    processor, problems = _processor(content, start, path)
    data = read_header(content, processor).data_block - 1
    blocks = content[start + 2]
    end = (data if data > start // BLOCK else start // BLOCK + blocks) * BLOCK
    return _Section(content, start, min(end, len(content)), processor, problems, path).read()


def _processor(content: memoryview, start: int, path: object) -> tuple[str, list[str]]:
    """Return the processor as stated, unless the header is plausible only for another one, and problems."""
    stated = PROCESSORS.get(content[start + 3])
    if stated and _is_plausible(read_header(content, stated)):
        return stated, []
    plausible = [name for name in PROCESSORS.values() if _is_plausible(read_header(content, name))]
    stated_type = f"Byte {start + 3} states the processor type {content[start + 3]}"
    if len(plausible) == 1:
        text = f"{stated_type}, but the numbers in the header are those of {plausible[0]}, which is used."
        return plausible[0], [text]
    if stated is None:
        text = f"{stated_type}, expected 84 (Intel), 85 (DEC) or 86 (SGI). The parameter section is damaged."
        raise FileFormatError(path, text)
    return stated, []


def _is_plausible(header: Header) -> bool:
    return bool(1e-3 < header.rate < 1e6 and 1e-9 < abs(header.scale) < 1e6 and header.data_block > 1)


@dataclass
class _Section:
    """Parser of the chain of groups and parameters."""

    content: memoryview
    start: int
    end: int
    processor: str
    problems: list[str]
    path: object
    names: dict[int, str] = field(default_factory=dict)
    parameters: dict[int, dict[str, Parameter]] = field(default_factory=dict)
    texts_left: int = MAX_TEXTS

    def __post_init__(self) -> None:
        # entries may overlap in a damaged file: together they must not exceed the file
        self.bytes_left = len(self.content)

    def read(self) -> Parameters:
        position = self.start + 4
        for _ in range(MAX_ENTRIES):
            following = self._entry(position)
            if following is None:
                break
            position = following
        else:
            self._raise_damaged(f"There are more than {MAX_ENTRIES} groups and parameters.")
        groups: dict[str, dict[str, Parameter]] = {}
        for identity, content in self.parameters.items():
            groups.setdefault(self.names.get(identity, f"GROUP {identity}"), {}).update(content)
        return Parameters(self.processor, groups, tuple(self.problems))

    def _entry(self, position: int) -> int | None:
        """Read the entry at this byte and return the byte of the next, or None at the end of the chain."""
        content = self.content
        if position + 2 > len(content):
            return None
        length = abs(_signed(content[position]))
        identity = _signed(content[position + 1])
        if length == 0 or identity == 0:
            return None
        after = position + 2 + length
        if after + 3 > len(content):
            self._raise_truncated(position, "An entry", length + 5)
        name = _text(bytes(content[position + 2 : after])).upper()
        offset = int.from_bytes(content[after : after + 2], "big" if self.processor == "SGI" else "little")
        if identity < 0:
            self.names.setdefault(-identity, name)
            self.parameters.setdefault(-identity, {})
            natural = after + 3 + content[after + 2]
        else:
            natural = self._parameter(name, identity, after + 2)
        return self._next(name, after, offset, natural)

    def _next(self, name: str, after: int, offset: int, natural: int) -> int | None:
        """Return the start of the next entry as stated, unless it lies outside the section."""
        if offset == 0:
            return None
        following = after + offset
        if offset > 2 and (following <= self.end or following == natural):
            return following
        self.problems.append(
            f"Parameter {name!r} states that the next one begins at byte {following}, outside of the parameter section "
            f"(which ends at byte {self.end}); byte {natural}, where this one ends, is used."
        )
        return natural

    def _parameter(self, name: str, identity: int, position: int) -> int:
        """Read the values of a parameter from this byte and return the byte after its description."""
        content = self.content
        if position + 2 > len(content):
            self._raise_truncated(position, f"Parameter {name!r}", 2)
        kind, count = _signed(content[position]), content[position + 1]
        if kind not in ITEM_BYTES or count > MAX_DIMENSIONS:
            expected = f"-1, 1, 2 or 4 and at most {MAX_DIMENSIONS} dimensions"
            got = f"Parameter {name!r} at byte {position} has type {kind} and {count} dimensions"
            self._raise_damaged(f"{got}, expected {expected}.")
        dims = tuple(content[position + 2 : position + 2 + count])
        first = position + 2 + count
        size = prod(dims) * ITEM_BYTES[kind]
        if len(dims) < count or first + size > len(content):
            self._raise_truncated(position, f"Parameter {name!r}", size)
        self.bytes_left -= size
        self.texts_left -= prod(dims[1:]) if kind == CHARACTERS and dims and dims[0] else 0
        if self.bytes_left < 0 or self.texts_left < 0:
            what = f"The parameters are together larger than the file, or have more than {MAX_TEXTS} strings"
            self._raise_damaged(f"Parameter {name!r} at byte {position}: {what}.")
        values = self._values(kind, dims, content[first : first + size])
        last = first + size
        length = content[last] if last < len(content) else 0
        description = _text(bytes(content[last + 1 : last + 1 + length]))
        # of a repeated name, the first that is not empty is the one other programs use
        here = self.parameters.setdefault(identity, {})
        if name not in here or not len(here[name].values):
            here[name] = Parameter(kind, dims, values, description)
        return last + 1 + length

    def _values(self, kind: int, dims: tuple[int, ...], raw: memoryview) -> npt.NDArray[Any] | tuple[str, ...]:
        if kind == CHARACTERS:
            width = dims[0] if dims else 1
            text = bytes(raw)
            count = prod(dims[1:]) if width else 0
            return tuple(_text(text[width * i : width * (i + 1)]) for i in range(count))
        if kind == 1:
            return np.frombuffer(raw, np.int8)
        if kind == 2:
            return integers(raw, self.processor).astype(np.int16)
        return floats(raw, self.processor).astype(np.float32)

    def _raise_truncated(self, position: int, what: str, size: int) -> None:
        text = f"{what} at byte {position} needs {size} bytes, but the file ends at byte {len(self.content)}"
        raise FileFormatError(
            self.path, f"{text}. It is truncated, or its parameter section is damaged. Copy it again."
        )

    def _raise_damaged(self, problem: str) -> None:
        raise FileFormatError(self.path, f"{problem} The parameter section is damaged.")


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _unsigned(parameter: Parameter) -> npt.NDArray[np.int64]:
    values = np.asarray(parameter.values)
    if parameter.kind == 2:
        return values.view(np.uint16).astype(np.int64)
    if parameter.kind == 1:
        return values.view(np.uint8).astype(np.int64)
    bounded = np.where(np.isfinite(values), values, 0)
    return np.clip(bounded, 0, 2**40).astype(np.int64)


def _text(raw: bytes) -> str:
    """Return text decoded as UTF-8, else as Latin-1, without padding and control characters."""
    raw = raw.split(b"\0", 1)[0]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return "".join(c for c in text if c.isprintable()).strip()


def _nested(values: list[Any], shape: tuple[int, ...]) -> Any:
    if len(values) == 1 and prod(shape) == 1:
        return values[0]
    for size in reversed(shape[1:]):
        values = [values[i : i + size] for i in range(0, len(values), size)] if size else []
    return values
