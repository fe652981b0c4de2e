"""Text files, read whole and bounded, written whole or not at all; and dataclasses as TOML tables.

Any frozen dataclass of numbers, texts, truths and other such dataclasses goes to a table and back by its type hints.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from stat import S_ISREG
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from borelli.errors import FileFormatError, unknown_name

MAX_BYTES = 16 * 1024 * 1024
"""Larger files are refused: as OpenSim writes it, a body of 80 segments and 520 muscles takes 3 megabytes."""
MAX_TOML = 1_000_000
"""Letters of TOML, which takes seconds to read: a body of 80 segments and 520 muscles takes 600 thousand."""
MAX_NUMBER = 1e30
"""No number of a body is as large, in any unit; and volumes and moments of inertia can still be made of it."""

_MANY_PARTS = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){100}""")

T = TypeVar("T")


def read_bytes(path: str | os.PathLike[str], limit: int = MAX_BYTES) -> bytes:
    """The content of an ordinary file of at most `limit` bytes."""
    path = Path(path)
    try:
        about = path.stat()
        if not S_ISREG(about.st_mode):  # a pipe would keep us waiting for ever
            raise FileFormatError(path, "is not an ordinary file; give the path of a file")
        if about.st_size > limit:
            raise FileFormatError(path, f"the file has {about.st_size} bytes, but at most {limit} are read")
        with path.open("rb") as file:
            content = file.read(limit + 1)  # some files of a system have no size until they are read
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        raise FileFormatError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > limit:
        raise FileFormatError(path, f"the file has more than {limit} bytes, which is the most that is read")
    return content


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file of at most `MAX_BYTES`."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(path, f"byte {error.start} is not UTF-8 text; is this a text file?") from None


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Writes a text file by way of a temporary one beside it, so that no half-written file is left."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise FileFormatError(path, f"cannot be written: {error.strerror or error}") from None


def parse_toml(text: str, path: object) -> dict[str, Any]:
    """The table that TOML text of at most `MAX_TOML` letters describes."""
    if len(text) > MAX_TOML:
        what = f"the text has {len(text)} letters, but TOML of at most {MAX_TOML} is read"
        raise FileFormatError(path, f"{what}; take parts out, or keep them in another format")
    if long := _MANY_PARTS.search(text):  # which take tomllib the square of their number in time
        where = text.count("\n", 0, long.start()) + 1
        raise FileFormatError(path, "a key of a hundred parts is not read", line=where)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise FileFormatError(path, "the text is nested too deeply") from None
    except ValueError as error:
        message = str(error)
        found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
        line = None if found is None else int(found[1]) if found[1] else text.count("\n") + 1
        message = message[: found.start()] if found else message
        raise FileFormatError(path, f"not valid TOML: {message[:1].lower()}{message[1:]}", line=line) from None


def check_format(table: Mapping[str, Any], name: str, version: int, path: object) -> None:
    """Refuses a table that is not of this format, or of a version this borelli does not know."""
    if table.get("format") != name:
        raise FileFormatError(path, f'format is {_shown(table.get("format"))}, but must be "{name}"')
    got = table.get("version")
    if not isinstance(got, int) or isinstance(got, bool) or not 1 <= got <= version:
        raise FileFormatError(path, f"version is {_shown(got)}, but this borelli reads 1 to {version}")


def to_table(element: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, as plain values."""
    table = {}
    for item in fields(element):
        value = getattr(element, item.name)
        if item.default is MISSING or value != item.default:
            table[item.name] = to_plain(value)
    return table


def from_table(kind: type[T], table: Any, path: object, where: str = "") -> T:
    """The dataclass described by a table.

    Raises:
        FileFormatError: naming the element and the field that is missing, unknown or of the wrong type.
    """
    if not isinstance(table, Mapping):
        raise FileFormatError(path, f"{where or 'the file'}: expected a table, got {_shown(table)}")
    here = f"{where} {_shown(table['name'])}" if where and "name" in table else where
    hints = _hints(kind)  # type: ignore[arg-type]
    for key in table:
        if key not in hints:
            raise FileFormatError(path, f"{_place(here)}{unknown_name('key', str(key), hints)}")
    values = {}
    for item in fields(kind):  # type: ignore[arg-type]
        if item.name in table:
            values[item.name] = convert_value(hints[item.name], table[item.name], path, f"{_place(here)}{item.name}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise FileFormatError(path, f"{_place(here)}the key {item.name!r} is missing; it has no default")
    return kind(**values)


def convert_value(hint: Any, value: Any, path: object, where: str) -> Any:
    """The value found in a table, as the type hint of its field wants it."""
    hint, parts = _form(hint)
    if parts:
        return _typed_tuple(parts, value, path, where)
    if is_dataclass(hint):
        return from_table(hint, value, path, where)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise FileFormatError(path, f"{where}: a number of that size cannot be used") from None
    if hint in (str, bool, int) and type(value) is hint:
        return value
    expected = {float: "a number", int: "a whole number", str: "text in quotes", bool: "true or false"}[hint]
    raise FileFormatError(path, f"{where}: expected {expected}, got {_shown(value)}")


def to_plain(value: Any) -> Any:
    """The value of a field as a table holds it."""
    if is_dataclass(value):
        return to_table(value)
    if isinstance(value, tuple):
        return [to_plain(part) for part in value]
    return value if isinstance(value, bool | str | int) else float(value)


def format_toml(table: Mapping[str, Any]) -> str:
    """A table as TOML: one line per value, and a [[heading]] per element of its lists of tables."""
    return "\n".join(_lines(table, ()))


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """TOML lines of a table: its own values first, then its lists of elements, each under a [[heading]]."""
    headed = {key for key, value in table.items() if _is_list_of_tables(value) and len(path) < 2}
    for key, value in table.items():
        if key not in headed:
            yield f"{key} = {_inline(value)}"
    for key in table:
        for element in table[key] if key in headed else ():
            yield ""
            yield f"[[{'.'.join((*path, key))}]]"
            yield from _lines(element, (*path, key))
    if not path:
        yield ""


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_inline(part)}" for key, part in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML forbids a raw DEL
    return repr(value)


def _typed_tuple(hints: tuple[Any, ...], value: Any, path: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise FileFormatError(path, f"{where}: expected a list, got {_shown(value)}")
    if hints[-1] is Ellipsis:
        return tuple(convert_value(hints[0], part, path, f"{where}[{i}]") for i, part in enumerate(value))
    if len(value) != len(hints):
        raise FileFormatError(path, f"{where}: expected {len(hints)} entries, got {len(value)}")
    if hints.count(float) == len(hints) and all(type(part) is float for part in value):
        return tuple(value)  # most tuples of a file are, and there may be many
    parts = zip(hints, value, strict=True)
    return tuple(convert_value(hint, part, path, f"{where}[{i}]") for i, (hint, part) in enumerate(parts))


@cache
def _form(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type hint without its None, and the hints of its parts if it is a tuple."""
    if get_origin(hint) is UnionType:
        (hint,) = (option for option in get_args(hint) if option is not NoneType)
    return hint, get_args(hint) if get_origin(hint) is tuple else ()


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _place(where: str) -> str:
    return f"{where}: " if where else ""


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
