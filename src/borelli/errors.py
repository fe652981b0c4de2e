"""Errors for the user, classified by what the user must correct."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MAX_MESSAGE_LENGTH = 1000
"""Characters of a message that are shown."""
MAX_NAME_LENGTH = 60
"""Characters of a name that are shown. Longer names are not compared, because that takes quadratic time."""


class BorelliError(Exception):
    """Base of every error that the user is meant to read: one sentence, no traceback needed."""

    def __init__(self, sentence: str) -> None:
        super().__init__(_printable(sentence))


class FileFormatError(BorelliError):
    """Content that contradicts its file format: correct the file."""

    def __init__(self, path: object, problem: str, *, line: int | None = None) -> None:
        self.path = str(path)
        location = self.path if line is None else f"{path}, line {line}"
        super().__init__(f"{location}: {problem}")


class MissingFileError(FileFormatError):
    """File or folder that does not exist: correct its name."""

    def __init__(self, path: object) -> None:
        super().__init__(path, "The file does not exist. Check its name and folder.")


class ModelError(BorelliError):
    """Contradiction in a model or scene: correct the model."""


class SettingsError(BorelliError):
    """Argument outside its range: correct the call."""


class DivergedError(BorelliError):
    """Simulation that left the plausible range: soften the scene or shorten the step."""


def unknown_name(what: str, got: object, known: Iterable[str]) -> str:
    """Return the message for a name that does not exist, with the nearest name and all candidates."""
    names = list(known)
    if not isinstance(got, str):
        kind = type(got).__name__
        return (
            f"Unknown {what}: Expected a name, got an object of class {kind}; known: {list_names(names, 40) or 'none'}"
        )
    comparable = [name for name in names[:1000] if len(name) <= MAX_NAME_LENGTH]
    near = get_close_matches(got, comparable, n=1) if len(got) <= MAX_NAME_LENGTH else []
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"Unknown {what} {_truncate(got)!r}{hint}; known: {list_names(names, 40) or 'none'}"


def list_names(names: Sequence[str], most: int = 8) -> str:
    """Return the names separated by commas; of many, the first `most` and their total number."""
    shown = ", ".join(map(_truncate, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def _printable(sentence: str) -> str:
    """Return the sentence bounded and with control characters escaped, safe for a terminal."""
    if len(sentence) > MAX_MESSAGE_LENGTH:
        sentence = f"{sentence[: MAX_MESSAGE_LENGTH - 300]} ... {sentence[-295:]}"
    if sentence.isprintable():
        return sentence
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in sentence)


def _truncate(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}..."
