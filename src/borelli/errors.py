"""What can go wrong, sorted by what the user must mend."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class BorelliError(Exception):
    """Base of every error the user is meant to read: one sentence, no traceback needed."""


class FileFormatError(BorelliError):
    """The file is not what its format promises: mend the file."""

    def __init__(self, path: object, problem: str, *, line: int | None = None) -> None:
        where = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {problem}")


class ModelError(BorelliError):
    """The description of a body or scene contradicts itself: mend the model."""


class SettingsError(BorelliError):
    """A value given by the user lies outside its range: mend the call."""


class DivergedError(BorelliError):
    """Numbers left the plausible range while stepping: soften the scene or shorten the step."""


def unknown_name(what: str, got: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not there, listing the nearest and then all candidates."""
    names = list(known)
    near = get_close_matches(got, names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    shown = ", ".join(names[:40]) + (f", ... ({len(names)} in all)" if len(names) > 40 else "")
    return f"unknown {what} {got!r}{hint}; known: {shown or 'none'}"
