"""What can go wrong, sorted by what the user must mend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

LONGEST_SENTENCE = 1000
"""Letters of a message that are shown."""


class BorelliError(Exception):
    """Base of every error the user is meant to read: one sentence, no traceback needed."""

    def __init__(self, sentence: str) -> None:
        super().__init__(_shown(sentence))


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


LONGEST_NAME = 60
"""Letters of a name that are shown; a longer one is not compared either, because that takes its square in time."""


def unknown_name(what: str, got: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not there, listing the nearest and then all candidates."""
    names = list(known)
    comparable = [name for name in names[:1000] if len(name) <= LONGEST_NAME]
    near = get_close_matches(got, comparable, n=1) if len(got) <= LONGEST_NAME else []
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {_cut(got)!r}{hint}; known: {list_names(names, 40) or 'none'}"


def list_names(names: Sequence[str], most: int = 8) -> str:
    """Names with commas between them; of many, the first and how many there are."""
    shown = ", ".join(map(_cut, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def _shown(sentence: str) -> str:
    """The sentence as a terminal can show it: bounded, and with what files may hide in it spelt out."""
    if len(sentence) > LONGEST_SENTENCE:
        sentence = f"{sentence[: LONGEST_SENTENCE - 300]} ... {sentence[-295:]}"
    if sentence.isprintable():
        return sentence
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in sentence)


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."
