"""Marker maps: what the labels of a laboratory mean, in a file that a person can edit.

    format = "borelli-marker-map"
    version = 1

    [markers]
    "K1" = "right knee_lateral"       # side and landmark
    "K2" = "left knee_lateral"
    "C7" = "C7"                       # on the midline
    "WAND" = ""                       # not used
    "B1" = "object box"               # on an object, whose motion is computed from its three markers or more

Labels that the map does not list keep the meaning that is read from their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from borelli.errors import FileFormatError, SettingsError, list_names, unknown_name
from borelli.files.atomic import write_atomic
from borelli.files.text import check_format, parse_toml, read_text
from borelli.recording.labels.conventions import (
    LEFT,
    MIDDLE,
    RIGHT,
    Meaning,
    landmark_segments,
    load_conventions,
    midline_landmarks,
    own_label,
    usual_kind,
)
from borelli.recording.labels.interpret import LabelReading, interpret_labels
from borelli.recording.objects import separate_objects
from borelli.recording.recording import Note, Recording

FORMAT, VERSION = "borelli-marker-map", 1
MAX_MAPPED_LABELS = 10_000
OBJECT = "object"
"""First word of the meaning of a marker on an object."""


class ObjectMarker(NamedTuple):
    """Meaning of a label on an object.

    Attributes:
        name: Name of the object.
    """

    name: str


MarkerMap = Mapping[str, Meaning | ObjectMarker | None]
"""Meanings by label; None: the marker is not used."""


def read_marker_map(path: str | Path) -> MarkerMap:
    """Read a marker map.

    Args:
        path: File that `borelli markers --write` wrote, or one like it (.toml).

    Raises:
        FileFormatError: The file is not a marker map, or names an unknown landmark.
    """
    table = parse_toml(read_text(path), path)
    check_format(table, FORMAT, VERSION, path)
    unknown = [key for key in table if key not in ("format", "version", "markers")]
    if unknown:
        raise FileFormatError(path, unknown_name("key", str(unknown[0]), ("format", "version", "markers")))
    markers = table.get("markers", {})
    if not isinstance(markers, Mapping) or len(markers) > MAX_MAPPED_LABELS:
        raise FileFormatError(path, 'markers must be a table with lines such as "K1" = "right knee_lateral".')
    return {str(label): _meaning(label, text, path) for label, text in markers.items()}


def write_marker_map(readings: Sequence[LabelReading], path: str | Path, *, overwrite: bool = False) -> None:
    """Write what labels mean, one line for each label, with the certainty and evidence of each as a comment.

    Args:
        readings: Meanings of labels, as of `interpret_labels`.
        path: File to write (.toml).
        overwrite: Whether an existing file is replaced.
    """
    lines = [f'format = "{FORMAT}"', f"version = {VERSION}", "", "[markers]"]
    for reading in readings:
        text = "" if not reading.landmark else _text(reading.landmark, reading.side)
        why = f"certainty {reading.certainty:.2f}: {reading.evidence}" if reading.landmark else reading.kind
        lines.append(f"{_quoted(reading.label)} = {_quoted(text)}  # {why}")
    write_atomic("\n".join(lines) + "\n", path, overwrite=overwrite)


def map_from_convention(name: str, labels: Sequence[str]) -> MarkerMap:
    """Return what labels mean in one convention; labels that it does not contain are not in the map.

    Args:
        name: Name of a convention, as `borelli markers` lists them.
        labels: Labels of a recording.

    Raises:
        SettingsError: The convention is unknown, or contains none of the labels.
    """
    known = {one.name: one for one in load_conventions()}
    short = {one.lower(): one for one in known}
    chosen = short.get(name.lower()) or next((full for low, full in short.items() if low.startswith(name.lower())), "")
    if not chosen:
        raise SettingsError(f"set: {unknown_name('convention', name, known)}")
    readings = interpret_labels(labels, conventions=(known[chosen],)).readings
    found = {
        one.label: Meaning(one.landmark, one.side, one.kind)
        for one in readings
        if one.landmark and one.evidence == chosen
    }
    if not found:
        raise SettingsError(
            f"set: {chosen} contains none of the labels {list_names(list(labels))}. Use another set, or a marker map."
        )
    return found


def apply_marker_map(recording: Recording, markers: MarkerMap) -> Recording:
    """Return the recording with its markers named so that every label means what the map states.

    A label whose own reading agrees keeps its name; another gets borelli's name of the landmark, such as
    `right.knee_lateral`. Markers that the map does not use are removed; those on an object become its motion.

    Args:
        recording: Recording with markers.
        markers: Meanings by label; None: the marker is not used.

    Raises:
        SettingsError: The map lists none of the recording's labels, or too few of an object's.
    """
    labels = recording.markers
    if not any(label in markers for label in labels):
        raise SettingsError(
            f"markers: The map lists none of the labels of {recording.name or 'the recording'} "
            f"({list_names(labels)}). Write a map of this file with `borelli markers FILE --write map.toml`."
        )
    objects: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(meaning := markers.get(label), ObjectMarker):
            objects.setdefault(meaning.name, []).append(label)
    recording = separate_objects(recording, objects)
    labels = recording.markers
    kept = [i for i, label in enumerate(labels) if markers.get(label, True) is not None]
    names = _names([labels[i] for i in kept], person_meanings(markers))
    data = recording.data.isel(marker=kept).assign_coords(marker=names)
    renamed = sum(labels[i] != name for i, name in zip(kept, names, strict=True))
    text = f"Markers mean what the map states: {renamed} are renamed, {len(labels) - len(kept)} are not used."
    return recording.with_data(data, Note(text, "changed", "--markers", code="marker_map"))


def person_meanings(markers: MarkerMap) -> Mapping[str, Meaning | None]:
    """Return the meanings of labels on the person; None for others."""
    return {label: None if isinstance(one, ObjectMarker) else one for label, one in markers.items()}


def _names(labels: Sequence[str], markers: Mapping[str, Meaning | None]) -> list[str]:
    """Return names that mean what the map states: the labels themselves where they do."""
    names = list(labels)
    for _ in range(2):  # labels that are renamed change how the others are read
        taken = set(names)
        for i, reading in enumerate(interpret_labels(names).readings):
            meaning = markers.get(labels[i])
            if meaning is None or ((reading.landmark, reading.side) == meaning[:2] and not reading.contested):
                continue
            number = 1
            while (name := own_label(meaning.landmark, meaning.side, number)) in taken:
                number += 1
            names[i] = name
            taken.add(name)
    return names


def _meaning(label: object, text: object, path: object) -> Meaning | ObjectMarker | None:
    if not isinstance(text, str):
        raise FileFormatError(path, f'{label}: Expected text such as "right knee_lateral", got {text!r}.')
    words = text.split()
    if not words:
        return None
    if words[0] == OBJECT:
        if len(words) != 2:
            raise FileFormatError(path, f'{label}: {text!r} does not name one object. Write "object box", for example.')
        return ObjectMarker(words[1])
    side = words[0] if words[0] in (LEFT, RIGHT, MIDDLE) else MIDDLE
    landmark = words[-1]
    if (
        landmark not in landmark_segments()
        or len(words) > 2
        or (len(words) == 2 and words[0] not in (LEFT, RIGHT, MIDDLE))
    ):
        near = get_close_matches(landmark, landmark_segments(), 3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise FileFormatError(
            path, f'{label}: {text!r} is not a landmark with its side, such as "right knee_lateral" or "C7".{hint}'
        )
    if side == MIDDLE and len(words) == 1 and landmark not in midline_landmarks():
        raise FileFormatError(path, f'{label}: {landmark} needs a side. Write "right {landmark}" or "left {landmark}".')
    return Meaning(landmark, side, usual_kind(landmark))


def _text(landmark: str, side: str) -> str:
    return landmark if side == MIDDLE and landmark in midline_landmarks() else f"{side} {landmark}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
