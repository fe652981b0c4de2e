"""Atlas of landmarks: where each anatomical landmark lies on `human`, and how much it varies.

A marker set lists the markers of one convention; the atlas lists landmarks, so that a recording of any convention can
be put on the model once the landmark and side of each label are known. Positions are relative to the size of the body,
as in marker sets; they are in `data/landmark_atlas.toml` with their sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.text import check_format, convert_value, from_table, parse_toml
from borelli.model.marker_sets import extent
from borelli.model.model import Marker, Model, Vector
from borelli.model.transforms import vector

FORMAT = "borelli-landmarks"
VERSION = 1
KINDS = ("landmark", "cluster", "wand", "joint keypoint", "virtual center")
"""Kinds of markers: on a bone or the skin over it, anywhere on a segment, on a stick, at a joint, computed."""
SIDES = ("left", "right", "middle")
WITHOUT_POSITION = {"mass_center": "moves relative to every body"}
"""Landmarks of conventions that have no position on any body, and the reason."""

_SEGMENTS = {"neck": "torso", "upper_torso": "torso", "lower_torso": "torso", "collar": "torso", "toes": "foot"}


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    kind: str
    body: str
    at: Vector
    spread: str
    source: str
    conventions: int
    middle: Vector | None = None


class AtlasLandmark(NamedTuple):
    """Landmark on one side of the body.

    Attributes:
        name: Name of the landmark, such as "knee_lateral".
        side: "left", "right" or "middle".
        kind: One of `KINDS`.
        body: Body of `human` to which it belongs.
        at: Offset from the center of the body's bounding box in half lengths along x, y, z.
        sd: Standard deviation of the position along x, y, z [m].
        source: Where the position comes from.
        conventions: Number of published marker conventions, of 51, that have it with this kind of marker.
    """

    name: str
    side: str
    kind: str
    body: str
    at: Vector
    sd: Vector
    source: str
    conventions: int

    @property
    def segment(self) -> str:
        """Segment of its body: head, torso, upper_arm, forearm, hand, pelvis, thigh, shank or foot."""
        return segment_of(self.body)

    def position(self, model: Model) -> Vector:
        """Return the position [m] in the frame of the model's body."""
        center, half = extent(model.body(self.body))
        return vector(center + half * np.array(self.at))


class MarkerLandmark(NamedTuple):
    """Landmark of a marker: label in the recording, landmark and side, and the kind of marker ("": any)."""

    label: str
    landmark: str
    side: str
    kind: str = ""


def segment_of(body: str) -> str:
    """Return the segment of a body of `human`, as laboratories name segments: one torso, one foot, no side."""
    part = body.removesuffix("_r").removesuffix("_l")
    return _SEGMENTS.get(part, part)


def list_landmarks() -> tuple[str, ...]:
    """Return the names of all landmarks with a position."""
    return tuple(dict.fromkeys(entry.name for entry in _atlas()))


@cache
def landmark_atlas() -> tuple[AtlasLandmark, ...]:
    """Return every landmark of every kind on every side on which it exists."""
    return tuple(landmark for entry in _atlas() for side in SIDES if (landmark := _on_side(entry, side)) is not None)


def find_in_atlas(name: str, side: str, kind: str = "") -> AtlasLandmark | None:
    """Return a landmark on one side; None if it has no position there.

    Args:
        name: Name of the landmark.
        side: "left", "right" or "middle".
        kind: Kind of marker; the first kind of the landmark if it is empty or the landmark has no such kind.

    Examples:
        >>> from borelli.model.landmark_atlas import find_in_atlas
        >>> find_in_atlas("asis", "left").body
        'pelvis'
    """
    found = _by_name().get((name, side), ())
    return next((one for one in found if one.kind == kind), found[0] if found else None)


def landmark_markers(model: Model, markers: Iterable[MarkerLandmark]) -> tuple[Marker, ...]:
    """Return markers of a model at the positions of landmarks.

    Args:
        model: Model with the bodies and shapes of `human`.
        markers: Label, landmark and side of each marker.

    Raises:
        SettingsError: if a landmark is unknown or has no position on that side.
    """
    return tuple(_marker(model, marker) for marker in markers)


def _marker(model: Model, marker: MarkerLandmark) -> Marker:
    found = find_in_atlas(marker.landmark, marker.side, marker.kind)
    if found is None:
        raise SettingsError(f"Marker {marker.label!r}: {_why_not(marker)}")
    return Marker(marker.label, found.body, found.position(model))


def _why_not(marker: MarkerLandmark) -> str:
    if marker.landmark in WITHOUT_POSITION:
        return f"{marker.landmark} {WITHOUT_POSITION[marker.landmark]}. Leave the marker out."
    if marker.landmark not in list_landmarks():
        return unknown_name("landmark", marker.landmark, list_landmarks())
    sides = [side for side in SIDES if (marker.landmark, side) in _by_name()]
    return f"{marker.landmark} has no position on side {marker.side!r} (expected {' or '.join(sides)}). Give its side."


def _on_side(entry: _Entry, side: str) -> AtlasLandmark | None:
    paired = entry.body.endswith("_r") or entry.at[1] != 0.0
    if (side == "middle") == paired:
        if side != "middle" or entry.middle is None:
            return None
        body, at = entry.body, entry.middle
    elif side == "left":
        body = f"{entry.body[:-2]}_l" if entry.body.endswith("_r") else entry.body
        at = (entry.at[0], -entry.at[1], entry.at[2])
    else:
        body, at = entry.body, entry.at
    sd = _spreads()[entry.spread]
    return AtlasLandmark(entry.name, side, entry.kind, body, at, sd, entry.source, entry.conventions)


@cache
def _by_name() -> Mapping[tuple[str, str], tuple[AtlasLandmark, ...]]:
    result: dict[tuple[str, str], tuple[AtlasLandmark, ...]] = {}
    for one in landmark_atlas():
        result[one.name, one.side] = (*result.get((one.name, one.side), ()), one)
    return result


@cache
def _atlas() -> tuple[_Entry, ...]:
    entries = tuple(from_table(_Entry, row, _PATH, "landmarks") for row in _table()["landmarks"])
    for entry in entries:
        for what, value, known in (("kind", entry.kind, KINDS), ("spread", entry.spread, _spreads())):
            if value not in known:
                raise FileFormatError(_PATH, f"landmarks {entry.name!r}: {unknown_name(what, value, known)}")
    return entries


@cache
def _spreads() -> Mapping[str, Vector]:
    return {name: convert_value(Vector, sd, _PATH, name) for name, sd in _table()["spread"].items()}


@cache
def _table() -> dict[str, Any]:
    table = parse_toml((files("borelli.model") / "data" / "landmark_atlas.toml").read_text(encoding="utf-8"), _PATH)
    check_format(table, FORMAT, VERSION, _PATH)
    return table


_PATH = "landmark atlas"
