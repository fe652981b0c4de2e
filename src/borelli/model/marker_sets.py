"""Marker sets: marker offsets on a model, stored as data and scaled by the size of each segment.

A set is a TOML file with one `[[markers]]` table per marker or, with `mirror`, per pair:

    name = "RKNE"               label in recordings
    mirror = "LKNE"             label of its mirror image on the other side (y negated, body `*_r` becomes `*_l`)
    aliases = ["R.Knee.Lat"]    other labels of the same marker; `mirror_aliases` for the mirror image
    body = "thigh_r"            body to which it is attached
    at = [0.0, -1.0, -0.9]      offset from the center of the body's bounding box; 1 is its surface, along x, y, z
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, ModelError, SettingsError, unknown_name
from borelli.files.paths import as_path
from borelli.files.text import check_format, from_table, parse_toml, read_text
from borelli.model.model import Body, Marker, Model, Shape, Vector
from borelli.model.transforms import Array, orientation_matrix, vector
from borelli.model.validate import validate

FORMAT = "borelli-markers"
VERSION = 1


@dataclass(frozen=True, slots=True)
class _SetMarker:
    name: str
    body: str
    at: Vector
    mirror: str | None = None
    aliases: tuple[str, ...] = ()
    mirror_aliases: tuple[str, ...] = ()

    def mirrored(self) -> _SetMarker:
        body = f"{self.body[:-2]}_l" if self.body.endswith("_r") else self.body
        return _SetMarker(self.mirror or "", body, (self.at[0], -self.at[1], self.at[2]), aliases=self.mirror_aliases)


@dataclass(frozen=True, slots=True)
class _MarkerSet:
    name: str
    markers: tuple[_SetMarker, ...]
    source: str = ""


def list_marker_sets() -> tuple[str, ...]:
    """Return the names of the marker sets included in borelli."""
    names = (file.name for file in _included_sets().iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def add_marker_set(model: Model, marker_set: str | Path) -> Model:
    """Return the model with the markers of a marker set in place of its own.

    Args:
        model: Model whose bodies have the names used in the set, and shapes.
        marker_set: One of `list_marker_sets()`, or the path of a .toml file.

    Raises:
        FileFormatError: if the file cannot be read, or does not fit the model.
        SettingsError: if the marker set is unknown.

    Examples:
        >>> from borelli.model import list_marker_sets
        >>> model = bo.add_marker_set(bo.human(), list_marker_sets()[0])
        >>> len(model.markers) > 30
        True
    """
    try:
        return validate(replace(model, markers=markers_from_set(model, marker_set)), sound_masses=False)
    except ModelError as error:
        raise FileFormatError(_read(marker_set)[0], str(error)) from None


def markers_from_set(model: Model, marker_set: str | Path) -> tuple[Marker, ...]:
    """Return the markers of a marker set on a model, without validating the model."""
    path, text = _read(marker_set)
    table = parse_toml(text, path)
    check_format(table, FORMAT, VERSION, path)
    content = {key: value for key, value in table.items() if key not in ("format", "version")}
    markers = from_table(_MarkerSet, content, path).markers
    both = [marker for one in markers for marker in ((one, one.mirrored()) if one.mirror else (one,))]
    try:
        return tuple(_marker(model, marker) for marker in both)
    except ModelError as error:
        raise FileFormatError(path, str(error)) from None


def extent(body: Body) -> tuple[Array, Array]:
    """Return center and half lengths [m] of the bounding box of a body's shapes, parallel to its frame.

    Args:
        body: Body with shapes.
    """
    if not body.shapes:
        raise ModelError(f"Body {body.name!r} has no shapes, so its extent is unknown. Give it a shape.")
    boxes = [_bounding_box(shape) for shape in body.shapes]
    lower = np.array([center - half for center, half in boxes]).min(axis=0)
    upper = np.array([center + half for center, half in boxes]).max(axis=0)
    return (lower + upper) / 2.0, (upper - lower) / 2.0


def _marker(model: Model, marker: _SetMarker) -> Marker:
    center, half = extent(model.body(marker.body))
    return Marker(marker.name, marker.body, vector(center + half * np.array(marker.at)), marker.aliases)


def _bounding_box(shape: Shape) -> tuple[Array, Array]:
    rotation, position = orientation_matrix(shape.frame.orientation), np.array(shape.frame.position)
    size = np.array(shape.size)
    match shape.kind:
        case "sphere":
            half = np.repeat(size, 3)
        case "box":
            half = np.abs(rotation) @ size
        case "capsule":
            half = np.abs(rotation[:, 2]) * size[1] + size[0]
        case "cylinder":
            half = np.abs(rotation[:, 2]) * size[1] + np.sqrt(np.maximum(1.0 - rotation[:, 2] ** 2, 0.0)) * size[0]
        case "ellipsoid":
            half = np.sqrt((rotation**2) @ size**2)
        case "mesh":
            corners = np.array(shape.vertices) @ rotation.T
            lower, upper = corners.min(axis=0), corners.max(axis=0)
            return position + (lower + upper) / 2.0, (upper - lower) / 2.0
        case _:
            raise ModelError(f"A shape of kind {shape.kind!r} has no extent. Use another shape.")
    return position, half


def _read(marker_set: str | Path) -> tuple[object, str]:
    name = str(as_path(marker_set))
    if name in list_marker_sets():
        return f"marker set {name}", (_included_sets() / f"{name}.toml").read_text(encoding="utf-8")
    if not name.endswith(".toml"):
        raise SettingsError(f"{unknown_name('marker set', name, list_marker_sets())}, or pass the path of a .toml file")
    return Path(name), read_text(name)


def _included_sets() -> Traversable:
    return files("borelli.model") / "data" / "markersets"
