"""Identification of marker sets by marker names, ignoring prefix, case and punctuation.

Sets are TOML files: those with positions on a model (`borelli.model.marker_sets`), and plain lists of names:

    format = "borelli-marker-names"
    version = 1
    name = "My laboratory"
    source = "where the names come from"
    names = ["RKNEE", "LKNEE"]          # required
    optional = ["RKJC"]                 # optional
    aliases = { RKNEE = ["R.KNE"] }     # other spellings

User-defined sets are read from the folder in `BORELLI_MARKER_SETS`, or from one given to `identify_marker_set`.
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

from borelli.errors import FileFormatError, unknown_name
from borelli.files.html_repr import fields_repr
from borelli.files.paths import as_path
from borelli.files.text import check_format, parse_toml, read_text

FOLDER = "BORELLI_MARKER_SETS"
"""Environment variable with a folder of further sets."""
FORMAT, MODEL_FORMAT = "borelli-marker-names", "borelli-markers"
VERSION = 1
MIN_MATCHED_FRACTION = 0.6
"""Least fraction of a set's names that must be present."""
MIN_NAMES = 4
"""Least number of matching names."""
SYNONYMS = {"rbak": "rbac", "lbak": "lbac", "ster": "strn", "sacrum": "sacr"}
"""Alternative spellings."""


@dataclass(frozen=True)
class NameSet:
    """Names of one marker set; `aliases` maps other spellings to names."""

    name: str
    source: str
    names: tuple[str, ...]
    optional: tuple[str, ...] = ()
    aliases: Mapping[str, str] | None = None

    __repr__ = fields_repr


@dataclass(frozen=True)
class MarkerSetMatch:
    """Match of labels with a marker set.

    Attributes:
        set: Marker set.
        matched: Names of the set by label.
        missing: Names of the set without a label.
        extra: Labels that are not in the set.
        score: Matched names as a fraction of all names and labels.
    """

    set: NameSet
    matched: Mapping[str, str]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    score: float

    __repr__ = fields_repr


def identify_marker_set(labels: Sequence[str], folder: str | Path | None = None) -> MarkerSetMatch | None:
    """Return the best matching set, or None if no set has enough of its names among the labels.

    Args:
        labels: Marker names of a recording.
        folder: Folder of further sets. Default: the environment variable `BORELLI_MARKER_SETS`.

    Examples:
        >>> match = bo.identify_marker_set(bo.synthetic_recording("walk").recording.markers)
        >>> match.set.name, match.missing
        ('CMU 41', ())
    """
    for match in rank_marker_sets(labels, folder):
        required = len(match.set.names)
        if len(match.matched) >= MIN_NAMES and required - len(match.missing) >= MIN_MATCHED_FRACTION * required:
            return match
    return None


def rank_marker_sets(labels: Sequence[str], folder: str | Path | None = None) -> list[MarkerSetMatch]:
    """Return the matches with all known sets, the best first.

    Args:
        labels: Labels of a recording.
        folder: Folder of further sets. Default: the environment variable `BORELLI_MARKER_SETS`.
    """
    plain = [label for label in labels if label and not label.startswith("*")]
    prefix = common_prefix(plain)
    keys = {
        normalize_label(label[len(prefix) :] if label.startswith(prefix) else label): label for label in reversed(plain)
    }
    matches = [_match(one, keys) for one in read_name_sets(folder)]
    return sorted(matches, key=lambda match: -match.score)


def read_name_sets(folder: str | Path | None = None) -> tuple[NameSet, ...]:
    """Return the sets of borelli, then those of the user's folder.

    Args:
        folder: Folder of further sets. Default: the environment variable `BORELLI_MARKER_SETS`.
    """
    own = folder if folder is not None else os.environ.get(FOLDER)
    if not own:
        return _builtin_sets()
    path = as_path(own)
    if not path.is_dir():
        raise FileFormatError(path, "The folder of marker sets does not exist.")
    return (*_builtin_sets(), *(read_name_set(file) for file in sorted(path.glob("*.toml"))))


def read_name_set(path: str | Path) -> NameSet:
    """Return the set in a TOML file of either format."""
    return _name_set(read_text(path), path)


def normalize_label(label: str) -> str:
    """Return a label without prefix, case and punctuation, for comparison."""
    text = re.sub(r"[^a-z0-9]", "", label.rpartition(":")[2].lower())
    return SYNONYMS.get(text, text)


def common_prefix(labels: Sequence[str]) -> str:
    """Return the prefix of all labels such as `Bob_` or `Q_`, with its separator; "" if there is none."""
    if len(labels) < MIN_NAMES:
        return ""
    match = re.match(r"^[^_:.\- ]+[_:.\- ]", labels[0])
    if match is None or match[0].lower()[:-1] in ("l", "r", "left", "right"):
        return ""
    return match[0] if all(label.startswith(match[0]) for label in labels) else ""


def _match(one: NameSet, keys: Mapping[str, str]) -> MarkerSetMatch:
    exact = {normalize_label(name): name for name in (*one.optional, *one.names)}
    other = {normalize_label(spelling): name for spelling, name in (one.aliases or {}).items()}
    by_name = {label: exact[key] for key, label in keys.items() if key in exact}
    taken = set(by_name.values())
    by_alias = {label: other[key] for key, label in keys.items() if key in other and other[key] not in taken}
    both = by_name | by_alias
    missing = tuple(name for name in one.names if name not in set(both.values()))
    extra = tuple(label for label in keys.values() if label not in both)
    # names count more than aliases
    score = (len(by_name) + 0.9 * len(by_alias)) / max(1, len(both) + len(missing) + len(extra))
    return MarkerSetMatch(one, both, missing, extra, score)


@cache
def _builtin_sets() -> tuple[NameSet, ...]:
    folders = (files("borelli.model") / "data" / "markersets", files("borelli.recording") / "data" / "marker_names")
    data = [file for folder in folders for file in folder.iterdir() if file.name.endswith(".toml")]
    return tuple(_name_set(file.read_text(encoding="utf-8"), file.name) for file in sorted(data, key=lambda f: f.name))


def _name_set(text: str, path: object) -> NameSet:
    table = parse_toml(text, path)
    if table.get("format") == MODEL_FORMAT:
        check_format(table, MODEL_FORMAT, VERSION, path)
        return _from_model_set(table, path)
    check_format(table, FORMAT, VERSION, path)
    known = ("format", "version", "name", "source", "names", "optional", "aliases")
    unknown = [key for key in table if key not in known]
    if unknown:
        raise FileFormatError(path, unknown_name("key", str(unknown[0]), known))
    aliases = table.get("aliases", {})
    if not isinstance(aliases, Mapping):
        raise FileFormatError(path, "aliases must be a table of lists, such as { RKNE = ['R.Knee'] }.")
    spellings = {word: name for name in aliases for word in _texts(aliases, str(name), path)}
    names = _texts(table, "names", path)
    if not names:
        raise FileFormatError(path, "names must be a list of at least one marker name.")
    return NameSet(_text(table, path), str(table.get("source", "")), names, _texts(table, "optional", path), spellings)


def _from_model_set(table: Mapping[str, Any], path: object) -> NameSet:
    markers = table.get("markers", [])
    if not isinstance(markers, list) or not all(isinstance(marker, Mapping) for marker in markers):
        raise FileFormatError(path, "markers must be a list of tables.")
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
        raise FileFormatError(path, 'The set has no name. Add name = "...".')
    return name


def _texts(table: Mapping[str, Any], key: str, path: object) -> tuple[str, ...]:
    values = table.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise FileFormatError(path, f"{key} must be a list of strings in quotes.")
    return tuple(dict.fromkeys(values))
