"""Plain values as C3D parameters, and their parameter section: the inverse of `parameters`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from borelli.recording.formats.c3d.parameters import BLOCK, CHARACTERS, ITEM_BYTES, KEY, Parameter, Parameters

INTEL = 84
MAX_LIST_LENGTH = 255
"""Elements along one dimension of a parameter; longer lists continue in NAME2, NAME3..."""
MAX_PARAMETER_BYTES = 60_000
"""Bytes of one parameter; the format counts them in 16 bits."""
MAX_NAME_BYTES = 120


def parameters_from_plain(metadata: Mapping[str, Any]) -> Parameters:
    """Return parameters from the plain values of `Parameters.plain`."""
    groups = {
        str(group): {str(name): parameter for name, value in content.items() if (parameter := to_parameter(value))}
        for group, content in metadata.items()
        if isinstance(content, Mapping)
    }
    return Parameters("Intel", groups)


def to_parameter(value: Any) -> Parameter | None:
    """Return a plain value as a parameter; None if the format does not support it."""
    if isinstance(value, str):
        return Parameter(CHARACTERS, (min(len(value.encode()), MAX_LIST_LENGTH),), (value,))
    if isinstance(value, bool | int | float | np.number):
        return _numbers(np.asarray(value))
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return None
    flat, shape = _flattened(value)
    if flat and all(isinstance(item, str) for item in flat):
        width = max(1, min(max(len(item.encode()) for item in flat), MAX_LIST_LENGTH))
        return Parameter(CHARACTERS, (width, *reversed(shape)), tuple(flat))
    if all(isinstance(item, bool | int | float | np.number) for item in flat):
        return _numbers(np.array(flat, float if any(isinstance(item, float) for item in flat) else None).reshape(shape))
    return None


def format_section(values: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the parameter section of plain values by group and name, padded to complete blocks."""
    parts = [b""]
    for number, (group, content) in enumerate(values.items(), start=1):
        parts.append(_entry(group, -number, b"\0"))
        for name, value in content.items():
            parameter = to_parameter(value)
            for each, piece in _pieces(name, parameter) if parameter else ():
                parts.append(_entry(each, number, _body(piece)))
    chain = b"".join(parts) + b"\0\0"
    blocks = -(-(4 + len(chain)) // BLOCK)
    head = bytes([1, KEY, min(blocks, 255), INTEL])
    return (head + chain).ljust(blocks * BLOCK, b"\0")


def _numbers(array: np.ndarray[Any, Any]) -> Parameter:
    dims = tuple(reversed(array.shape))
    flat = array.ravel()
    if flat.dtype.kind in "iub" and (not flat.size or (flat.min() >= -32768 and flat.max() < 65536)):
        return Parameter(2, dims, flat.astype(np.int64).astype(np.uint16).view(np.int16))
    with np.errstate(over="ignore"):
        return Parameter(4, dims, flat.astype(np.float32))


def _flattened(value: list[Any] | tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...]]:
    """Return the items of nested lists and their shape, outermost first; uneven lists are concatenated."""
    items, shape = list(value), [len(value)]
    while items and all(isinstance(item, list | tuple) for item in items):
        lengths = {len(item) for item in items}
        items = [part for item in items for part in item]
        shape = [*shape, lengths.pop()] if len(lengths) == 1 else [len(items)]
    return items, tuple(shape)


def _pieces(name: str, parameter: Parameter) -> Iterator[tuple[str, Parameter]]:
    """Yield the parameter, split along its last dimension into NAME, NAME2... if it is too long."""
    dims = parameter.dims
    if not dims or (len(dims) == 1 and parameter.kind == CHARACTERS) or max(dims[:-1], default=0) > MAX_LIST_LENGTH:
        yield name, parameter
        return
    count = dims[-1]
    each = prod(dims[:-1]) * ITEM_BYTES[parameter.kind]
    step = max(1, min(MAX_LIST_LENGTH, MAX_PARAMETER_BYTES // max(each, 1)))
    items = len(parameter.values) // count if count else 0
    for number, start in enumerate(range(0, max(count, 1), step), start=1):
        part = parameter.values[start * items : (start + step) * items]
        size = min(step, count - start)
        yield (name if number == 1 else f"{name}{number}"), Parameter(parameter.kind, (*dims[:-1], size), part)


def _body(parameter: Parameter) -> bytes:
    dims = tuple(min(n, MAX_LIST_LENGTH) for n in parameter.dims)
    if isinstance(parameter.values, tuple):
        width = dims[0]
        raw = b"".join(_cut(text, width).ljust(width) for text in parameter.values)
    else:
        raw = parameter.values.astype("<f4" if parameter.kind == 4 else "<i2").tobytes()
    return bytes([parameter.kind & 0xFF, len(dims), *dims]) + raw + b"\0"


def _entry(name: str, number: int, body: bytes) -> bytes:
    short = _cut(name, MAX_NAME_BYTES)
    return bytes([len(short), number & 0xFF]) + short + (2 + len(body)).to_bytes(2, "little") + body


def _cut(text: str, width: int) -> bytes:
    """Return the text in at most `width` bytes, without partial characters."""
    return text.encode()[:width].decode(errors="ignore").encode()
