"""borelli's own model files: TOML that a person can edit and that gives back exactly the model written.

The keys are the fields of the dataclasses in `model.py`; fields at their defaults are left out. Numbers are written
with as many digits as they need to come back bit for bit. A body whose inertia is left out takes it, its centre of mass
and, unless given, its mass from its shapes and their densities.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from borelli.errors import FileFormatError, ModelError
from borelli.files.text import (
    check_format,
    from_table,
    parse_toml,
    to_plain,
    read_text,
    to_table,
    format_toml,
    convert_value,
    write_text,
)
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Model, Shape
from borelli.model.validate import check_shape, validate

FORMAT = "borelli-model"
VERSION = 1
MOST_SHAPES = 10_000
"""In one file; a person has some fifty."""

HEADER = """\
# A body for borelli. Units: m, kg, s, N, rad; inertia in kg m^2 about the centre of mass, in the body frame's axes.
# Gravity says which way is down; orientations are unit quaternions [w, x, y, z]; what is left out has its default.
"""


def read_model(path: str | os.PathLike[str]) -> Model:
    """The model in a native file.

    Raises:
        FileFormatError: if the file cannot be read as a model.
        ModelError: if the model it describes contradicts itself.
    """
    return model_from_text(read_text(path), path=path)


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Writes the model as a native file: whole or, if anything fails, not at all."""
    write_text(model_to_text(model), path)


def model_from_text(text: str, path: object = "model text") -> Model:
    """The model described by native text; `path` is named in errors."""
    return model_from_table(parse_toml(text, path), path, sound_masses=False)


def model_from_table(table: Mapping[str, Any], path: object = "model table", *, sound_masses: bool = True) -> Model:
    """The model described by a parsed native table, as a scene file may embed one; see `validate` for the masses."""
    check_format(table, FORMAT, VERSION, path)
    content = {key: value for key, value in table.items() if key not in ("format", "version")}
    _check_shapes(content, path)
    if isinstance(content.get("bodies"), list):
        content["bodies"] = [_completed(body, path, f"bodies[{i}]") for i, body in enumerate(content["bodies"])]
    model = from_table(Model, content, path)
    try:
        return validate(model, sound_masses=sound_masses)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def model_to_text(model: Model) -> str:
    """The model as native text."""
    return HEADER + format_toml(model_to_table(model))


def model_to_table(model: Model) -> dict[str, Any]:
    """The model as a table of plain values, ready to be embedded in another."""
    table = {"format": FORMAT, "version": VERSION, **to_table(model)}
    for entry, body in zip(table["bodies"], model.bodies, strict=True):
        # always written, because a file that leaves them out means: from the shapes
        entry |= {"center_of_mass": to_plain(body.center_of_mass), "inertia": to_plain(body.inertia)}
        entry |= {key: entry.pop(key) for key in ("shapes", "frame", "kinematic") if key in entry}
    return table


def _check_shapes(content: Mapping[str, Any], path: object) -> None:
    """Refuses more shapes than can be weighed in a second or two."""
    bodies = content.get("bodies")
    lists = [body.get("shapes") for body in bodies if isinstance(body, Mapping)] if isinstance(bodies, list) else []
    count = sum(len(shapes) for shapes in (*lists, content.get("ground")) if isinstance(shapes, list))
    if count > MOST_SHAPES:
        raise FileFormatError(path, f"the model has {count} shapes, but at most {MOST_SHAPES} are read; merge some")


def _completed(table: Any, path: object, where: str) -> Any:
    """A body's table with mass, centre of mass and inertia taken from its shapes where the inertia is left out."""
    if not isinstance(table, Mapping) or "inertia" in table:
        return table
    name = str(table.get("name", where))
    where = f"{where} {name[:60]!r}"
    if "center_of_mass" in table:
        raise FileFormatError(path, f"{where}: center_of_mass without inertia; give both, or neither (from the shapes)")
    shapes = convert_value(tuple[Shape, ...], table.get("shapes", []), path, f"{where}: shapes")
    mass = None if "mass" not in table else convert_value(float, table["mass"], path, f"{where}: mass")
    try:
        for index, shape in enumerate(shapes):
            check_shape(shape, f"body {name[:60]!r}: shape {index}")
        body = body_from_shapes(name, shapes, mass=mass)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    return {**table, "mass": body.mass, "center_of_mass": body.center_of_mass, "inertia": body.inertia}
