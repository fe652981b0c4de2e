"""What an annotation admits as an argument, and how a message names it."""

from __future__ import annotations

import collections.abc as abc
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import PurePath
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

PLURALS = {
    "a number": "numbers",
    "an integer": "integers",
    "any object": "values",
    "a function": "functions",
    "an array of numbers": "arrays",
    "a list of numbers": "lists of numbers",
    "a path (str or Path)": "paths",
}
"""Irregular plurals of what is expected."""
MAX_ELEMENTS = 1000
"""Elements of a longer list, tuple or table are not checked here, so that a check costs little."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Values that an annotation admits.

    A value is admitted if `test` holds and, in a list, tuple or table, `element` admits every element.
    """

    text: str
    """What is expected, as a message states it."""
    classes: tuple[type, ...] = ()
    """Classes whose instances are all admitted: the quick test."""
    test: Callable[[Any], bool] = bool
    element: Expected | None = None
    members: tuple[Expected, ...] = ()
    """Of a union: one of them must admit the value."""
    names: tuple[str, ...] = ()
    """Names of classes of borelli and of other packages, for which there may be a remedy."""
    is_number: bool = False
    is_sequence: bool = False

    def admits(self, value: Any) -> bool:
        """Return whether the value has this type."""
        if isinstance(value, self.classes):
            return True
        if self.members:
            return any(member.admits(value) for member in self.members)
        if not self.test(value):
            return False
        return self.element is None or all(self.element.admits(one) for _, one in _elements(value))

    def first_wrong(self, value: Any) -> tuple[str, Expected, Any]:
        """Return where the first wrong part of a value is, what is expected there, and the part itself."""
        for member in self.members or (self,):
            if member.element is not None and member.test(value):
                for at, one in _elements(value):
                    if not member.element.admits(one):
                        inner, expected, part = member.element.first_wrong(one)
                        return f"[{at!r:.60}]{inner}", expected, part
        return "", self, value


ANYTHING = Expected("any object", (object,))


def expected_type(annotation: Any) -> Expected:
    """Return what an annotation admits; anything if it cannot be checked at this cost."""
    annotation = getattr(annotation, "__value__", annotation)  # of a `type` statement
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is object or isinstance(annotation, TypeVar):
        return ANYTHING
    if origin in (Union, types.UnionType):
        return _union([expected_type(member) for member in _without_array_like(arguments)])
    if origin is Literal:
        return _union([expected_type(one) for one in dict.fromkeys(type(value) for value in arguments)])
    if annotation is None or annotation is type(None):
        return NONE
    kind = origin or annotation
    if kind in PLAIN:
        return PLAIN[kind]
    if kind is abc.Callable:
        return Expected("a function", test=callable)
    if not isinstance(kind, type):
        return ANYTHING
    return _container(kind, arguments) or _instance(kind)


def _container(kind: type, arguments: tuple[Any, ...]) -> Expected | None:
    if kind.__name__ == "ndarray":
        return Expected("an array of numbers", (kind,), _is_array_like)
    if kind in (dict, abc.Mapping, abc.MutableMapping):
        element = expected_type(arguments[1]) if len(arguments) == 2 else ANYTHING
        return Expected(f"a mapping of names to {_several(element)}", (), _is_mapping, element)
    if kind in SEQUENCES:
        element = _union([expected_type(one) for one in dict.fromkeys(arguments) if one is not Ellipsis])
        return Expected(f"a list of {_several(element)}", (), SEQUENCES[kind], element, is_sequence=True)
    return None


def _instance(kind: type) -> Expected:
    name = kind.__name__
    text = f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
    if getattr(kind, "_is_protocol", False):
        members = [member for member in vars(kind) if not member.startswith("_")]
        members += ["__call__"] if "__call__" in vars(kind) else []
        return Expected(text, (), lambda value: all(hasattr(value, member) for member in members), names=(name,))
    return Expected(text, (kind,), lambda value: False, names=(name,))


def _without_array_like(members: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the members of a union, one array instead of those of numpy's `ArrayLike`, which admits text."""
    import numpy as np
    from numpy.typing import ArrayLike

    array_like = get_args(getattr(ArrayLike, "__value__", ArrayLike))  # of a `type` statement since numpy 2.5
    parts = [part for member in members for part in (array_like if member is ArrayLike else (member,))]
    if set(array_like) <= set(parts):
        yield np.ndarray
        parts = [part for part in parts if part not in array_like]
    yield from parts


def _union(members: Sequence[Expected]) -> Expected:
    if not members or ANYTHING in members:
        return ANYTHING
    if len(members) == 1:
        return members[0]
    kept = [member for member in members if not (member is PLAIN[str] and PATH in members)]
    return Expected(
        " or ".join(dict.fromkeys(member.text for member in kept)),
        tuple(one for member in kept for one in member.classes),
        members=tuple(kept),
        names=tuple(name for member in kept for name in member.names),
        is_number=any(member.is_number for member in kept),
        is_sequence=any(member.is_sequence for member in kept),
    )


def _several(element: Expected) -> str:
    """Return what is expected in the plural."""
    if element.members:
        return " or ".join(dict.fromkeys(_several(member) for member in element.members))
    return PLURALS.get(element.text, element.text.split(" ", 1)[-1])


def _elements(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, list | tuple | dict) and len(value) <= MAX_ELEMENTS:
        yield from value.items() if isinstance(value, dict) else enumerate(value)


def _is_bool(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", "") == "b" and value.ndim == 0


def _is_number(value: Any) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, str) and getattr(value, "ndim", 0) == 0


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") and getattr(value, "ndim", 0) == 0


def _is_mapping(value: Any) -> bool:
    return isinstance(value, abc.Mapping)


def _is_collection(value: Any) -> bool:
    return hasattr(value, "__len__") and _is_iterable(value)


def _is_iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | abc.Mapping)


def _is_array_like(value: Any) -> bool:
    return _is_number(value) or hasattr(value, "__array__") or (isinstance(value, abc.Sequence) and _is_iterable(value))


NONE = Expected("None", (type(None),), lambda value: False)
PATH = Expected("a path (str or Path)", (str, PathLike), lambda value: False)
PLAIN: dict[Any, Expected] = {
    bool: Expected("True or False", (bool,), _is_bool),
    int: Expected("an integer", (int,), _is_integer, is_number=True),
    float: Expected("a number", (int, float), _is_number, is_number=True),
    str: Expected("a str", (str,), lambda value: False),
    PathLike: PATH,
    **dict.fromkeys((PurePath, *PurePath.__subclasses__()), PATH),
}
SEQUENCES: dict[Any, Callable[[Any], bool]] = {
    **dict.fromkeys((list, tuple, set, frozenset, abc.Sequence, abc.Collection, abc.Set), _is_collection),
    **dict.fromkeys((abc.Iterable, abc.Iterator), _is_iterable),
}
