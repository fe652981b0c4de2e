"""Checks of arrays at the border to kernels, which check no bounds: they read and write whatever is at an address."""

from __future__ import annotations

from collections.abc import Collection
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError

Floats = NDArray[np.float64]
Shape = tuple[int | None, ...]
"""Lengths of the axes; None: any length."""


def as_floats(where: str, given: Any, shape: Shape, *, finite: bool = True) -> Floats:
    """Return real numbers as an array that kernels can take: 64-bit floats, contiguous and writable.

    Raises:
        SettingsError: They are not real numbers, have another shape, or (with `finite`) are not finite.
    """
    try:
        array = np.asarray(given)
    except ValueError:
        raise SettingsError(f"{where}: The rows have different lengths. Pass shape {_text(shape)}.") from None
    if array.dtype.kind not in "fiub":
        raise SettingsError(f"{where}: The values have type {array.dtype}. Pass real numbers.")
    _check_shape(where, array, shape)
    floats: Floats = np.require(array, np.float64, ["C", "A", "W", "E"])
    if finite and not np.isfinite(floats).all():
        first = np.argwhere(~np.isfinite(floats))[0].tolist()
        at = f"Element {first} is" if first else "The value is"
        raise SettingsError(f"{where}: {at} {floats[tuple(first)]}. Pass finite numbers.")
    return floats


def as_indices(where: str, given: Any, shape: Shape, count: int) -> NDArray[np.int64]:
    """Return indices from 0 to `count` - 1 as an array that kernels can take.

    Raises:
        SettingsError: They are not integers, have another shape, or are out of range.
    """
    array = np.asarray(given)
    if array.dtype.kind not in "iu":
        raise SettingsError(f"{where}: The values have type {array.dtype}. Pass integers.")
    _check_shape(where, array, shape)
    if array.size and not 0 <= array.min() <= array.max() < count:
        raise SettingsError(f"{where}: {array.min()} to {array.max()} is out of range. Allowed: 0 to {count - 1}.")
    indices: NDArray[np.int64] = np.require(array, np.int64, ["C", "A", "W", "E"])
    return indices


def optional_rows(where: str, given: Any, shape: tuple[int, ...], *, finite: bool = True) -> Floats:
    """Return rows of a shape as `as_floats` does; no rows if None is given."""
    return np.zeros((0, *shape)) if given is None else as_floats(where, given, (None, *shape), finite=finite)


def as_number(where: str, given: Any, *, finite: bool = True) -> float:
    """Return a real number.

    Raises:
        SettingsError: It is not one, it is NaN, or (with `finite`) it is infinite.
    """
    number = float(as_floats(where, given, (), finite=finite))
    if number != number:
        raise SettingsError(f"{where}: The value is NaN. Pass a number.")
    return number


def check_integer(where: str, given: Any, low: int, high: int | None = None) -> int:
    """Return an integer.

    Raises:
        SettingsError: It is not one, or not in the range `low` to `high`.
    """
    try:
        number = index(given)
    except TypeError:
        raise SettingsError(f"{where}: {given!r} is not an integer. Pass one from {low} on.") from None
    if number < low or (high is not None and number > high):
        allowed = f"at least {low}" if high is None else f"{low} to {high}"
        raise SettingsError(f"{where}: {number} is out of range. Allowed: {allowed}.")
    return number


def check_arrays(where: str, given: Any, template: Any, variable: Collection[str] = ()) -> None:
    """Raise SettingsError unless the arrays of a named tuple can replace those of another, its template.

    Types and shapes must agree; the first axis of `variable` arrays may have any length.
    """
    if not isinstance(given, type(template)):
        raise SettingsError(f"{where}: A {type(given).__name__} was passed. Pass a {type(template).__name__}.")
    for name, array, like in zip(template._fields, given, template, strict=True):
        if isinstance(like, tuple):
            check_arrays(f"{where}.{name}", array, like, variable)
        else:
            _check_array(
                f"{where}.{name}", array, like.dtype, (None if name in variable else len(like), *like.shape[1:])
            )


def check_array(where: str, array: Any, shape: Shape) -> None:
    """Raise SettingsError unless an array has 64-bit floats and this shape, and is contiguous and writable."""
    _check_array(where, array, np.dtype(float), shape)


def _check_array(where: str, array: Any, dtype: np.dtype[Any], shape: Shape) -> None:
    if not isinstance(array, np.ndarray):
        raise SettingsError(f"{where}: A {type(array).__name__} was passed. Pass an array of shape {_text(shape)}.")
    if array.dtype != dtype:
        raise SettingsError(f"{where}: The values have type {array.dtype}. Pass {dtype}.")
    _check_shape(where, array, shape)
    if not array.flags.carray:
        raise SettingsError(f"{where}: The array is read-only or not contiguous. Pass a copy.")


def _check_shape(where: str, array: NDArray[Any], shape: Shape) -> None:
    agree = array.ndim == len(shape) and all(
        expected in (None, length) for length, expected in zip(array.shape, shape, strict=True)
    )
    if not agree:
        raise SettingsError(f"{where}: The array has shape {array.shape}. Pass shape {_text(shape)}.")


def _text(shape: Shape) -> str:
    lengths = ["n" if length is None else str(length) for length in shape]
    return f"({', '.join(lengths)}{',' * (len(lengths) == 1)})"
