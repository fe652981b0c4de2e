"""Parsing shared by the readers: numbers in words, and unique names."""

from __future__ import annotations

from collections.abc import Sequence

from borelli.files.text import MAX_NUMBER


def parse_numbers(words: Sequence[str], count: int) -> list[float] | None:
    """Return the numbers in `words`; None unless they are `count` finite numbers below `MAX_NUMBER`."""
    try:
        values = [float(word) for word in words]
    except ValueError:
        return None
    return values if len(values) == count and all(abs(value) < MAX_NUMBER for value in values) else None


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
