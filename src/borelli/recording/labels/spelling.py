"""Spelling of labels: prefixes, words, and the ways in which a label may state a side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

SIDE_WORDS = {
    **dict.fromkeys(("r", "right", "rt", "rx", "dx"), "right"),
    **dict.fromkeys(("l", "left", "lt", "lx", "sx"), "left"),
}
"""Words that state a side: English, and Italian dx and sx."""
TWINS = {
    "r": "l", "right": "left", "rt": "lt", "rx": "lx", "dx": "sx",
    "l": "r", "left": "right", "lt": "rt", "lx": "rx", "sx": "dx",
}  # fmt: skip
"""The word for the other side."""
MIN_PREFIX_FRACTION = 0.8
"""Least fraction of labels that share a prefix which is not part of the names."""
MIN_LABELS_WITH_PREFIX = 4
MAX_LABEL_LENGTH = 100
"""Longer labels are not interpreted."""
MAX_PREFIXES = 4

_PREFIX = re.compile(r"[^_:.\- ]+[_:.\- ]+")
_SUFFIX = re.compile(r"(?:_study|_4x4|-1)$", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class SideSplit(NamedTuple):
    """A way to read the side of a label.

    Attributes:
        side: "left", "right" or "middle".
        stem: The rest of the label, in lower case without separators.
        words: The rest as words.
        twin: The label of the other side, in lower case without separators; "" for the midline.
        position: Spelling of the side: "word", "first", "last" or "second" letter, or "none".
    """

    side: str
    stem: str
    words: tuple[str, ...]
    twin: str
    position: str


def normalize(label: str) -> str:
    """Return a label in lower case without separators."""
    return re.sub(r"[^a-z0-9]", "", label.lower())


def clean_labels(labels: Sequence[str]) -> list[str]:
    """Return labels without subject, common prefix and suffixes of exporters."""
    cleaned = [label[-MAX_LABEL_LENGTH:].rpartition(":")[2].strip() for label in labels]
    for _ in range(MAX_PREFIXES):
        prefix = common_prefix(cleaned)
        if not prefix:
            break
        cleaned = [label.removeprefix(prefix) for label in cleaned]
    points = [bool(re.match(r"p[A-Z]", label)) for label in cleaned]
    if len(cleaned) >= MIN_LABELS_WITH_PREFIX and sum(points) >= MIN_PREFIX_FRACTION * len(cleaned):
        cleaned = [label[1:] if point else label for label, point in zip(cleaned, points, strict=True)]
    return [_SUFFIX.sub("", label) for label in cleaned]


def common_prefix(labels: Sequence[str]) -> str:
    """Return a prefix that nearly all labels share, such as `Bob_` or `Q_`, with its separator; "" if there is none."""
    if len(labels) < MIN_LABELS_WITH_PREFIX:
        return ""
    counts: dict[str, int] = {}
    for label in labels:
        match = _PREFIX.match(label)
        if match and len(match[0]) < len(label):
            counts[match[0]] = counts.get(match[0], 0) + 1
    if not counts:
        return ""
    prefix = max(counts, key=lambda one: (counts[one], one))
    is_side = normalize(prefix) in SIDE_WORDS
    return "" if is_side or counts[prefix] < MIN_PREFIX_FRACTION * len(labels) else prefix


@lru_cache(maxsize=20_000)
def split_sides(label: str) -> tuple[SideSplit, ...]:
    """Return the ways to read the side of a cleaned label, the most explicit first; the midline is the last."""
    words = [word.lower() for word in _WORD.findall(label)][:20]
    joined = "".join(words)
    splits: dict[tuple[str, str], SideSplit] = {}

    def add(side: str, rest: Sequence[str], twin: str, position: str) -> None:
        stem = "".join(rest)
        if stem:
            splits.setdefault((side, stem), SideSplit(side, stem, tuple(rest), twin, position))

    for at in dict.fromkeys((0, len(words) - 1, *range(1, len(words) - 1))):
        if len(words) > 1 and words[at] in SIDE_WORDS:
            other = "".join((*words[:at], TWINS[words[at]], *words[at + 1 :]))
            add(SIDE_WORDS[words[at]], (*words[:at], *words[at + 1 :]), other, "word")
    for word in ("right", "left"):
        if joined.startswith(word):
            add(word, _without(words, 0, len(word)), TWINS[word] + joined[len(word) :], "word")
        if joined.endswith(word):
            end = len(joined) - len(word)
            add(word, _without(words, end, len(word)), joined[:end] + TWINS[word], "word")
    for word in ("rx", "lx", "dx", "sx"):
        if joined.startswith(word):
            add(SIDE_WORDS[word], _without(words, 0, 2), TWINS[word] + joined[2:], "word")
    for at, position in ((0, "first"), (len(joined) - 1, "last"), (1, "second")):
        letter = joined[at : at + 1]
        if letter in ("r", "l") and len(joined) > 1:
            twin = joined[:at] + TWINS[letter] + joined[at + 1 :]
            add(SIDE_WORDS[letter], _without(words, at, 1), twin, position)
    add("middle", words, "", "none")
    return tuple(splits.values())


def _without(words: Sequence[str], start: int, length: int) -> list[str]:
    """Return words without some characters of their concatenation."""
    rest, offset = [], 0
    for word in words:
        kept = "".join(c for i, c in enumerate(word, offset) if not start <= i < start + length)
        offset += len(word)
        if kept:
            rest.append(kept)
    return rest
