"""Bounded reading of text files, and dataclasses as TOML tables.

A frozen dataclass of numbers, strings, booleans and other such dataclasses is converted by its type hints.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from os import PathLike
from stat import S_ISDIR, S_ISREG
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from borelli.errors import FileFormatError, MissingFileError, unknown_name
from borelli.files.inputs import register_inputs
from borelli.files.paths import as_path

MAX_BYTES = 16 * 1024 * 1024
"""Largest file that is read; an .osim file of 80 bodies and 520 muscles has 3 megabytes."""
MAX_TOML = 1_000_000
"""Characters of TOML, which is slow to parse; a model of 80 bodies and 520 muscles has 600 thousand."""
MAX_JSON_DEPTH = 20
"""Levels of lists and tables in JSON; the header of a C3D file has four."""
MAX_NUMBER = 1e30
"""Largest plausible number in a model, in any unit; volumes and moments of inertia stay finite."""

_MANY_PARTS = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){100}""")

T = TypeVar("T")


def read_bytes(path: str | PathLike[str], limit: int = MAX_BYTES, *, partial: bool = False) -> bytes:
    """Return the content of a regular file of at most `limit` bytes, or with `partial` these first bytes of it."""
    path = as_path(path)
    try:
        status = path.stat()
        if S_ISDIR(status.st_mode):
            raise FileFormatError(path, "The path is a folder. Pass a file in it.")
        if not S_ISREG(status.st_mode):  # reading a pipe would block
            raise FileFormatError(path, "The path is not a regular file. Pass a file.")
        if status.st_size > limit and not partial:
            raise FileFormatError(path, f"The file has {status.st_size} bytes (maximum {limit}).")
        with path.open("rb") as file:
            content = file.read(limit + 1)  # files in /proc have size 0 until they are read
        register_inputs(path)
    except FileNotFoundError:
        raise MissingFileError(path) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        raise FileFormatError(path, f"The file cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    if len(content) > limit and not partial:
        raise FileFormatError(path, f"The file has more than {limit} bytes.")
    return content[:limit]


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a UTF-8 file of at most `MAX_BYTES`."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(path, f"The file is not UTF-8 text (byte {error.start}).") from None


def parse_toml(text: str, path: object) -> dict[str, Any]:
    """Return the table of TOML text of at most `MAX_TOML` characters."""
    if len(text) > MAX_TOML:
        what = f"The TOML text has {len(text)} characters (maximum {MAX_TOML}). Remove parts or use another format."
        raise FileFormatError(path, what)
    if long := _MANY_PARTS.search(text):  # tomllib takes quadratic time for them
        line = text.count("\n", 0, long.start()) + 1
        raise FileFormatError(path, "The key has more than 100 parts.", line=line)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise FileFormatError(path, "The text is nested too deeply.") from None
    except ValueError as error:
        message = str(error)
        match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
        number = None if match is None else int(match[1]) if match[1] else text.count("\n") + 1
        message = message[: match.start()] if match else message
        raise FileFormatError(path, f"Invalid TOML: {message}.", line=number) from None


def parse_json(text: Any, path: object, where: str) -> dict[str, Any]:
    """Return the table of JSON text of at most `MAX_BYTES` characters; errors name `where` it is in the file."""
    if not isinstance(text, str) or len(text) > MAX_BYTES:
        got = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
        raise FileFormatError(path, f"{where} is not JSON ({got}, expected a text of at most {MAX_BYTES}).")
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(path, f"{where} is not JSON ({str(error)[:200]}).") from None
    if not isinstance(table, dict):
        raise FileFormatError(path, f"{where} is {_shown(table)}, expected a table.")
    level: list[Any] = [table]
    for _ in range(MAX_JSON_DEPTH):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [value for part in inner for value in part if isinstance(value, dict | list)]
    if level:
        raise FileFormatError(path, f"{where} is nested too deeply (maximum {MAX_JSON_DEPTH} levels).")
    return table


def check_format(table: Mapping[str, Any], name: str, version: int, path: object) -> None:
    """Raise `FileFormatError` if a table has another format, or a version that is not supported."""
    if table.get("format") != name:
        raise FileFormatError(path, f'The format is {_shown(table.get("format"))}, expected "{name}".')
    got = table.get("version")
    if not isinstance(got, int) or isinstance(got, bool) or not 1 <= got <= version:
        raise FileFormatError(path, f"The version is {_shown(got)}, expected 1 to {version}.")


def to_table(element: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, as plain values."""
    table = {}
    for item in fields(element):
        value = getattr(element, item.name)
        if item.default is MISSING or value != item.default:
            table[item.name] = to_plain(value)
    return table


def from_table(kind: type[T], table: Any, path: object, where: str = "") -> T:
    """Return the dataclass described by a table; errors name the element `where` and the field."""
    if not isinstance(table, Mapping):
        raise FileFormatError(path, f"{where or 'The file'}: Expected a table, got {_shown(table)}.")
    here = f"{where} {_shown(table['name'])}" if where and "name" in table else where
    hints = _hints(kind)  # type: ignore[arg-type]
    for key in table:
        if key not in hints:
            raise FileFormatError(path, f"{_location(here)}{unknown_name('key', str(key), hints)}")
    values = {}
    for item in fields(kind):  # type: ignore[arg-type]
        if item.name in table:
            values[item.name] = convert_value(hints[item.name], table[item.name], path, f"{_location(here)}{item.name}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise FileFormatError(path, f"{_location(here)}The key {item.name!r} is missing and has no default.")
    return kind(**values)


def convert_value(hint: Any, value: Any, path: object, where: str) -> Any:
    """Return a value of a table converted to the type hint of its field."""
    hint, parts = _form(hint)
    if parts:
        return _typed_tuple(parts, value, path, where)
    if is_dataclass(hint):
        return from_table(hint, value, path, where)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise FileFormatError(path, f"{where}: The number is too large.") from None
    if hint in (str, bool, int) and type(value) is hint:
        return value
    expected = {float: "a number", int: "an integer", str: "a string in quotes", bool: "true or false"}[hint]
    raise FileFormatError(path, f"{where}: Expected {expected}, got {_shown(value)}.")


def to_plain(value: Any) -> Any:
    """Return the value of a field as stored in a table."""
    if is_dataclass(value):
        return to_table(value)
    if isinstance(value, tuple):
        return [to_plain(part) for part in value]
    return value if isinstance(value, bool | str | int) else float(value)


def format_toml(table: Mapping[str, Any]) -> str:
    """Return a table as TOML: one line per value, and a [[heading]] per element of its lists of tables."""
    return "\n".join(_lines(table, ()))


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Yield the TOML lines of a table: its own values first, then its lists of tables."""
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
        raise FileFormatError(path, f"{where}: Expected a list, got {_shown(value)}.")
    if hints[-1] is Ellipsis:
        return tuple(convert_value(hints[0], part, path, f"{where}[{i}]") for i, part in enumerate(value))
    if len(value) != len(hints):
        raise FileFormatError(path, f"{where}: Expected {len(hints)} entries, got {len(value)}.")
    if hints.count(float) == len(hints) and all(type(part) is float for part in value):
        return tuple(value)  # fast path for most tuples
    parts = zip(hints, value, strict=True)
    return tuple(convert_value(hint, part, path, f"{where}[{i}]") for i, (hint, part) in enumerate(parts))


@cache
def _form(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type hint without None, and the hints of its parts if it is a tuple."""
    if get_origin(hint) is UnionType:
        (hint,) = (option for option in get_args(hint) if option is not NoneType)
    return hint, get_args(hint) if get_origin(hint) is tuple else ()


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _location(where: str) -> str:
    return f"{where}: " if where else ""


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
