"""Parsing shared by the readers: numbers in words, unique names, and errors that name the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from borelli.errors import ModelError, list_names
from borelli.files.text import MAX_NUMBER
from borelli.model.model import Model
from borelli.model.validate import validate

MAX_LISTED_NAMES = 40
"""Names of elements in one note on what is not read, and notes on different kinds of them."""


class LossNote(str):
    """Note of a model about content of its file that the model does not contain."""

    code = "not_read"


def unread_notes(elements: Iterable[tuple[str, str]]) -> Iterator[LossNote]:
    """Yield one note for each kind of element of which a reader used nothing.

    Args:
        elements: Kind and name of each element; "" without a name.
    """
    names: dict[str, list[str]] = {}
    for kind, name in elements:
        names.setdefault(kind, []).append(name)
    kinds = list(names)
    for kind in kinds[:MAX_LISTED_NAMES]:
        listed = list_names([name for name in names[kind] if name], MAX_LISTED_NAMES)
        yield LossNote(f"Not read: {len(names[kind])} {list_names([kind])}" + (f" ({listed})." if listed else "."))
    if rest := kinds[MAX_LISTED_NAMES:]:
        count = sum(len(names[kind]) for kind in rest)
        yield LossNote(f"Not read: {count} elements of {len(rest)} other kinds ({list_names(rest, MAX_LISTED_NAMES)}).")


def parse_numbers(words: Sequence[str], count: int) -> list[float] | None:
    """Return the numbers in `words`; None unless they are `count` finite numbers below `MAX_NUMBER`."""
    try:
        values = [float(word) for word in words]
    except ValueError:
        return None
    return values if len(values) == count and all(abs(value) < MAX_NUMBER for value in values) else None


def validate_file(model: Model, path: object, *, sound_masses: bool = True) -> Model:
    """Return the model after `validate`; an error begins with the path of its file."""
    try:
        return validate(model, sound_masses=sound_masses)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


class Namer:
    """Unique names: the requested name, or that name with _2, _3 ... appended."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._last: dict[str, int] = {}

    def reserve(self, name: str) -> None:
        """Mark a name as used."""
        self._used.add(name)

    def unique(self, name: str) -> str:
        """Return the name, or the first of name_2, name_3 ... that is not used, and mark it as used."""
        candidate, number = name, self._last.get(name, 1)
        while candidate in self._used:
            number += 1
            candidate = f"{name}_{number}"
        self._last[name] = number
        self._used.add(candidate)
        return candidate
