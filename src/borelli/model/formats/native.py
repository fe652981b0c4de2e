"""Native model files: TOML that can be edited by hand and that restores the model exactly.

The keys are the fields of the dataclasses in `model.py`; fields with default values are left out. Numbers have as many
digits as needed to restore every bit. A body without inertia gets its inertia, center of mass and, unless given, its
mass from its shapes and their densities.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from borelli.errors import FileFormatError, ModelError
from borelli.files.atomic import write_atomic
from borelli.files.text import (
    check_format,
    convert_value,
    format_toml,
    from_table,
    parse_toml,
    read_text,
    to_plain,
    to_table,
)
from borelli.model.formats.parsing import validate_file
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Model, Shape
from borelli.model.validate import check_shape

FORMAT = "borelli-model"
VERSION = 2
MAX_SHAPES = 10_000
"""Shapes in one file; a person has about fifty."""

HEADER = """\
# borelli model. Units: m, kg, s, N, rad; inertia in kg m^2 about the center of mass, in the axes of the body frame.
# Gravity defines the vertical; orientations are unit quaternions [w, x, y, z]; keys left out have their defaults.
"""


def read_model(path: str | Path) -> Model:
    """Read a model from a native file.

    Raises:
        FileFormatError: if the file cannot be read as a model.
        ModelError: if the model is inconsistent.
    """
    return model_from_text(read_text(path), path=path)


def write_model(model: Model, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a model as a native file; the write is atomic."""
    write_atomic(model_to_text(model), path, overwrite=overwrite)


def model_from_text(text: str, path: object = "model text") -> Model:
    """Return the model of native text; `path` is named in errors.

    Args:
        text: Content of a native model file.
        path: What errors call it.
    """
    return model_from_table(parse_toml(text, path), path, sound_masses=False)


def model_from_table(table: Mapping[str, Any], path: object = "model table", *, sound_masses: bool = True) -> Model:
    """Return the model of a parsed native table, as embedded in a scene file.

    Args:
        table: Table with the keys of a native file.
        path: Name of the file in errors.
        sound_masses: See `validate`.
    """
    if table.get("format") == FORMAT and table.get("version") == 1:
        remedy = "Rename the key 'stop' of its coordinates to 'limit_softness' and set version = 2."
        raise FileFormatError(path, f"The model file has format version 1, which is no longer read. {remedy}")
    check_format(table, FORMAT, VERSION, path)
    content = {key: value for key, value in table.items() if key not in ("format", "version")}
    _check_shapes(content, path)
    if isinstance(content.get("bodies"), list):
        content["bodies"] = [_completed(body, path, f"bodies[{i}]") for i, body in enumerate(content["bodies"])]
    return validate_file(from_table(Model, content, path), path, sound_masses=sound_masses)


def model_to_text(model: Model) -> str:
    """Return the model as native text.

    Args:
        model: Model of any source.
    """
    return HEADER + format_toml(model_to_table(model))


def model_to_table(model: Model) -> dict[str, Any]:
    """Return the model as a table of plain values, ready to be embedded in another.

    Args:
        model: Model of any source.
    """
    table = {"format": FORMAT, "version": VERSION, **to_table(model)}
    for entry, body in zip(table["bodies"], model.bodies, strict=True):
        # always written, because without them they are computed from the shapes
        entry |= {"center_of_mass": to_plain(body.center_of_mass), "inertia": to_plain(body.inertia)}
        entry |= {key: entry.pop(key) for key in ("shapes", "frame", "kinematic") if key in entry}
    return table


def _check_shapes(content: Mapping[str, Any], path: object) -> None:
    """Raise FileFormatError for more shapes than can be processed in a second or two."""
    bodies = content.get("bodies")
    lists = [body.get("shapes") for body in bodies if isinstance(body, Mapping)] if isinstance(bodies, list) else []
    count = sum(len(shapes) for shapes in (*lists, content.get("ground")) if isinstance(shapes, list))
    if count > MAX_SHAPES:
        raise FileFormatError(path, f"The model has {count} shapes (maximum {MAX_SHAPES}). Merge some of them.")


def _completed(table: Any, path: object, where: str) -> Any:
    """Return a body's table with mass, center of mass and inertia from its shapes if it has no inertia."""
    if not isinstance(table, Mapping) or "inertia" in table:
        return table
    name = str(table.get("name", where))
    where = f"{where} {name[:60]!r}"
    if "center_of_mass" in table:
        problem = "center_of_mass is given without inertia. Give both, or neither (from the shapes)."
        raise FileFormatError(path, f"{where}: {problem}")
    shapes = convert_value(tuple[Shape, ...], table.get("shapes", []), path, f"{where}: shapes")
    mass = None if "mass" not in table else convert_value(float, table["mass"], path, f"{where}: mass")
    try:
        for index, shape in enumerate(shapes):
            check_shape(shape, f"Body {name[:60]!r}: Shape {index}")
        body = body_from_shapes(name, shapes, mass=mass)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    return {**table, "mass": body.mass, "center_of_mass": body.center_of_mass, "inertia": body.inertia}
