"""Marker sets recognised by their names, whatever the prefix, case and punctuation.

Sets are TOML files: those that a model can wear (`borelli.model.marker_sets`), and plain lists of names:

    format = "borelli-marker-names"
    version = 1
    name = "My laboratory"
    source = "where the names come from"
    names = ["RKNEE", "LKNEE"]          # what the set must have
    optional = ["RKJC"]                 # what it may have
    aliases = { RKNEE = ["R.KNE"] }     # other spellings

Files of your own are looked for in the folder that `BORELLI_MARKER_SETS` names, or in one given to `recognise`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from borelli.errors import FileFormatError
from borelli.files.text import check_format, parse_toml, read_text

FOLDER = "BORELLI_MARKER_SETS"
"""Environment variable that names a folder of further sets."""
FORMAT, WORN = "borelli-marker-names", "borelli-markers"
VERSION = 1
MIN_MATCHED_FRACTION = 0.6
"""Part of a set's names that must be there to recognise it."""
MIN_NAMES = 4
"""A set is recognised by no fewer names."""
SAME = {"rbak": "rbac", "lbak": "lbac", "ster": "strn", "sacrum": "sacr"}
"""Spellings that laboratories use for one another."""


@dataclass(frozen=True)
class NameSet:
    """The names of one marker set; `aliases` gives the name that each other spelling stands for."""

    name: str
    source: str
    names: tuple[str, ...]
    optional: tuple[str, ...] = ()
    aliases: Mapping[str, str] | None = None


@dataclass(frozen=True)
class MarkerSetMatch:
    """A marker set that labels fit.

    Attributes:
        set: The set.
        found: Names of the set by the label that stands for each.
        missing: Names of the set that no label stands for.
        extra: Labels that the set does not have.
        share: Names found, as a part of all names and labels together.
    """

    set: NameSet
    found: Mapping[str, str]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    share: float


def identify_marker_set(labels: Sequence[str], folder: str | os.PathLike[str] | None = None) -> MarkerSetMatch | None:
    """The set that fits the labels best, or None if none has enough of its names among them."""
    fitting = [
        one
        for one in rank_marker_sets(labels, folder)
        if len(one.found) >= MIN_NAMES and _required(one) >= MIN_MATCHED_FRACTION * len(one.set.names)
    ]
    return fitting[0] if fitting else None


def rank_marker_sets(labels: Sequence[str], folder: str | os.PathLike[str] | None = None) -> list[MarkerSetMatch]:
    """All known sets, the best fitting first."""
    plain = [label for label in labels if label and not label.startswith("*")]
    prefix = common_prefix(plain)
    keys = {normalize_label(label[len(prefix) :] if label.startswith(prefix) else label): label for label in reversed(plain)}
    fits = [_fit(one, keys) for one in load_name_sets(folder)]
    return sorted(fits, key=lambda fit: -fit.share)


def load_name_sets(folder: str | os.PathLike[str] | None = None) -> tuple[NameSet, ...]:
    """All sets: those that come with borelli, then those of the user's folder."""
    own = folder if folder is not None else os.environ.get(FOLDER)
    if not own:
        return _stock()
    path = Path(own)
    if not path.is_dir():
        raise FileFormatError(path, "is no folder of marker sets")
    return (*_stock(), *(read_name_set(file) for file in sorted(path.glob("*.toml"))))


def read_name_set(path: str | os.PathLike[str]) -> NameSet:
    """The set in a TOML file of either format."""
    return _name_set(read_text(path), Path(path))


def normalize_label(label: str) -> str:
    """A label without prefix, case and punctuation, as it is compared."""
    text = re.sub(r"[^a-z0-9]", "", label.rpartition(":")[2].lower())
    return SAME.get(text, text)


def common_prefix(labels: Sequence[str]) -> str:
    """A subject's prefix such as `Bob_` or `Q_` that all labels share, with its separator; "" if there is none."""
    if len(labels) < MIN_NAMES:
        return ""
    match = re.match(r"^[^_:.\- ]+[_:.\- ]", labels[0])
    if match is None or match[0].lower()[:-1] in ("l", "r", "left", "right"):
        return ""
    return match[0] if all(label.startswith(match[0]) for label in labels) else ""


def _fit(one: NameSet, keys: Mapping[str, str]) -> MarkerSetMatch:
    exact = {normalize_label(name): name for name in (*one.optional, *one.names)}
    other = {normalize_label(spelling): name for spelling, name in (one.aliases or {}).items()}
    found = {label: exact[key] for key, label in keys.items() if key in exact}
    taken = set(found.values())
    by_alias = {label: other[key] for key, label in keys.items() if key in other and other[key] not in taken}
    both = found | by_alias
    missing = tuple(name for name in one.names if name not in set(both.values()))
    extra = tuple(label for label in keys.values() if label not in both)
    # a set that is called by its own names fits better than one called by aliases
    share = (len(found) + 0.9 * len(by_alias)) / max(1, len(both) + len(missing) + len(extra))
    return MarkerSetMatch(one, both, missing, extra, share)


def _required(one: MarkerSetMatch) -> int:
    return len(one.set.names) - len(one.missing)


@cache
def _stock() -> tuple[NameSet, ...]:
    folders = (files("borelli.model") / "data" / "markersets", files("borelli.recording") / "data" / "marker_names")
    found = [file for folder in folders for file in folder.iterdir() if file.name.endswith(".toml")]
    return tuple(_name_set(file.read_text(encoding="utf-8"), file.name) for file in sorted(found, key=lambda f: f.name))


def _name_set(text: str, path: object) -> NameSet:
    table = parse_toml(text, path)
    if table.get("format") == WORN:
        check_format(table, WORN, VERSION, path)
        return _of_worn(table, path)
    check_format(table, FORMAT, VERSION, path)
    known = ("format", "version", "name", "source", "names", "optional", "aliases")
    unknown = [key for key in table if key not in known]
    if unknown:
        raise FileFormatError(path, f"unknown key {unknown[0]!r}; known: {', '.join(known)}")
    aliases = table.get("aliases", {})
    if not isinstance(aliases, Mapping):
        raise FileFormatError(path, "aliases must be a table of lists, such as { RKNE = ['R.Knee'] }")
    spellings = {word: name for name in aliases for word in _texts(aliases, str(name), path)}
    names = _texts(table, "names", path)
    if not names:
        raise FileFormatError(path, "names must be a list of at least one marker name")
    return NameSet(_text(table, path), str(table.get("source", "")), names, _texts(table, "optional", path), spellings)


def _of_worn(table: Mapping[str, Any], path: object) -> NameSet:
    markers = table.get("markers", [])
    if not isinstance(markers, list) or not all(isinstance(marker, Mapping) for marker in markers):
        raise FileFormatError(path, "markers must be a list of tables")
    names: list[str] = []
    spellings: dict[str, str] = {}
    for marker in markers:
        for key, others in (("name", "aliases"), ("mirror", "mirror_aliases")):
            if isinstance(marker.get(key), str):
                names.append(marker[key])
                spellings |= dict.fromkeys(_texts(marker, others, path), marker[key])
    return NameSet(_text(table, path), str(table.get("source", "")), tuple(names), (), spellings)


def _text(table: Mapping[str, Any], path: object) -> str:
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise FileFormatError(path, "the set needs a name, as text in quotes")
    return name


def _texts(table: Mapping[str, Any], key: str, path: object) -> tuple[str, ...]:
    values = table.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise FileFormatError(path, f"{key} must be a list of texts in quotes")
    return tuple(dict.fromkeys(values))
