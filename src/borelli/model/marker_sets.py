"""Marker sets: which markers a body wears and where, kept as data and placed by the size of each segment.

A set is a TOML file with one `[[markers]]` table per marker or, with `mirror`, per pair:

    name = "RKNE"               label in recordings
    mirror = "LKNE"             label of its twin on the other side (y turned round, body `*_r` becomes `*_l`)
    aliases = ["R.Knee.Lat"]    other labels of the same marker; `mirror_aliases` for its twin
    body = "thigh_r"            body that carries it
    at = [0.0, -1.0, -0.9]      place: from the middle of the body's shapes, 1 being their surface, along x, y, z
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

from borelli.errors import FileFormatError, ModelError, SettingsError, unknown_name
from borelli.files.text import check_format, from_table, parse_toml, read_text
from borelli.model.model import Body, Marker, Model, Shape, Vector
from borelli.model.transforms import Array, orientation_matrix, vector
from borelli.model.validate import validate

FORMAT = "borelli-markers"
VERSION = 1


@dataclass(frozen=True, slots=True)
class _Place:
    name: str
    body: str
    at: Vector
    mirror: str | None = None
    aliases: tuple[str, ...] = ()
    mirror_aliases: tuple[str, ...] = ()

    def twin(self) -> _Place:
        body = f"{self.body[:-2]}_l" if self.body.endswith("_r") else self.body
        return _Place(self.mirror or "", body, (self.at[0], -self.at[1], self.at[2]), aliases=self.mirror_aliases)


@dataclass(frozen=True, slots=True)
class _MarkerSet:
    name: str
    markers: tuple[_Place, ...]
    source: str = ""


def list_marker_sets() -> tuple[str, ...]:
    """Names of the marker sets that come with borelli."""
    return tuple(sorted(file.name.removesuffix(".toml") for file in _stock().iterdir() if file.name.endswith(".toml")))


def add_marker_set(model: Model, marker_set: str | os.PathLike[str]) -> Model:
    """The model wearing a marker set instead of the markers it had.

    Args:
        model: Its bodies must have the names the set uses, and shapes to measure.
        marker_set: One of `list_marker_sets()`, or the path of a file of your own (ending in .toml).
    """
    try:
        return validate(replace(model, markers=markers_from_set(model, marker_set)), sound_masses=False)
    except ModelError as error:
        raise FileFormatError(_read(marker_set)[0], str(error)) from None


def markers_from_set(model: Model, marker_set: str | os.PathLike[str]) -> tuple[Marker, ...]:
    """The markers that `add_marker_set` gives the model, which is not looked at further."""
    path, text = _read(marker_set)
    table = parse_toml(text, path)
    check_format(table, FORMAT, VERSION, path)
    content = {key: value for key, value in table.items() if key not in ("format", "version")}
    places = from_table(_MarkerSet, content, path).markers
    both = [place for one in places for place in ((one, one.twin()) if one.mirror else (one,))]
    try:
        return tuple(_marker(model, place) for place in both)
    except ModelError as error:
        raise FileFormatError(path, str(error)) from None


def extent(body: Body) -> tuple[Array, Array]:
    """Middle and half lengths [m] of the box, parallel to the body's frame, that holds all its shapes."""
    if not body.shapes:
        raise ModelError(f"body {body.name!r}: it has no shapes, so its extent is unknown; give it a shape")
    reaches = [_reach(shape) for shape in body.shapes]
    lower = np.min([middle - half for middle, half in reaches], axis=0)
    upper = np.max([middle + half for middle, half in reaches], axis=0)
    return (lower + upper) / 2.0, (upper - lower) / 2.0


def _marker(model: Model, place: _Place) -> Marker:
    middle, half = extent(model.body(place.body))
    return Marker(place.name, place.body, vector(middle + half * np.array(place.at)), place.aliases)


def _reach(shape: Shape) -> tuple[Array, Array]:
    turn, position = orientation_matrix(shape.frame.orientation), np.array(shape.frame.position)
    size = np.array(shape.size)
    match shape.kind:
        case "sphere":
            half = np.repeat(size, 3)
        case "box":
            half = np.abs(turn) @ size
        case "capsule":
            half = np.abs(turn[:, 2]) * size[1] + size[0]
        case "cylinder":
            half = np.abs(turn[:, 2]) * size[1] + np.sqrt(np.maximum(1.0 - turn[:, 2] ** 2, 0.0)) * size[0]
        case "ellipsoid":
            half = np.sqrt((turn**2) @ size**2)
        case "mesh":
            corners = np.array(shape.vertices) @ turn.T
            lower, upper = corners.min(axis=0), corners.max(axis=0)
            return position + (lower + upper) / 2.0, (upper - lower) / 2.0
        case _:
            raise ModelError(f"a shape of kind {shape.kind!r} has no extent")
    return position, half


def _read(marker_set: str | os.PathLike[str]) -> tuple[object, str]:
    """A set's text, and what to call it in errors."""
    name = os.fspath(marker_set)
    if name in list_marker_sets():
        return f"marker set {name}", (_stock() / f"{name}.toml").read_text(encoding="utf-8")
    if not name.endswith(".toml"):
        raise SettingsError(f"{unknown_name('marker set', name, list_marker_sets())}, or the path of a .toml file")
    return Path(name), read_text(name)


def _stock() -> Traversable:
    return files("borelli.model") / "data" / "markersets"
