"""Scene files: TOML that can be edited by hand and restores exactly the scene written.

A file contains its model as a `[model]` table, names a model file in the same folder (`model = "arm.osim"`), or
requests a human (`model = "human"` with a `[human]` table of mass, height, sex and muscles).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

from borelli.errors import BorelliError, FileFormatError, SettingsError, unknown_name
from borelli.files.atomic import write_atomic
from borelli.files.outside_paths import outside_notes
from borelli.files.text import check_format, convert_value, format_toml, parse_toml, read_text, to_plain
from borelli.model.formats.native import model_from_table, model_to_table
from borelli.model.io import read_model
from borelli.model.model import Model
from borelli.people.human import human
from borelli.scenes.gallery import GALLERY, gallery_scene
from borelli.scenes.scene import Scene, Twist, validate_scene
from borelli.scenes.scene_excitations import excitation_lines, excitations_from_table

FORMAT = "borelli-scene"
VERSION = 1
HEADER = """\
# A scene for borelli. Units: m, kg, s, N, rad; z is up. Missing keys have their defaults.
"""
MAX_NAME_LENGTH = 100
"""Longest text [characters] that may be the name of a scene in the gallery."""
PLAIN_KEYS = (
    "name", "description", "step", "duration", "stepping", "drives", "drive_schedules", "forces", "force_tables",
    "springs", "bushings", "imus", "force_plates", "contact_sensors", "pushes", "loads", "weakened", "obstacles",
    "ground_moves", "settings",
)  # fmt: skip
"""Keys of a file that are fields of `Scene`, one by one."""
EXCITATION_KEYS = ("excitations", "excitation_table")
HUMAN_KEYS = {"mass": float, "height": float, "sex": str, "muscles": bool}


def read_scene(path_or_name: str | os.PathLike[str]) -> Scene:
    """Read a scene from a file, or return the scene of that name from the gallery.

    Args:
        path_or_name: Path of a scene file (.toml), or a name of the gallery.

    Raises:
        FileFormatError: The file is not a scene.
        ModelError: The model is not valid.
        SettingsError: A value is out of range, or a name is not in the model.

    Examples:
        >>> scene = bo.read_scene("stack")
        >>> len(scene.model.bodies)
        10
    """
    text = os.fspath(path_or_name)
    if text in GALLERY:
        return gallery_scene(text)
    path = Path(text)
    if not path.suffix and path.name == text and len(text) < MAX_NAME_LENGTH and not path.exists():
        raise SettingsError(f"{unknown_name('scene', text, GALLERY)}. Or pass a scene file.")
    return scene_from_text(read_text(path), path)


def write_scene(scene: Scene, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the scene, its model included; the write is atomic.

    An existing file is replaced only with `overwrite`.

    Args:
        scene: Scene with its model.
        path: File to write (.toml).
        overwrite: Whether an existing file is replaced.
    """
    write_atomic(scene_to_text(scene), path, overwrite=overwrite)


def scene_from_text(text: str, path: str | os.PathLike[str] = "scene text") -> Scene:
    """Parse a scene from text; `path` is named in errors, and model files are read from its folder."""
    table = parse_toml(text, path)
    check_format(table, FORMAT, VERSION, path)
    known = ["format", "version", *PLAIN_KEYS, "model", "human", "coordinates", "speeds", "twists", *EXCITATION_KEYS]
    for key in table:
        if key not in known:
            raise FileFormatError(path, unknown_name("key", key, known))
    model = _model(table, path)
    if "name" not in table:
        raise FileFormatError(path, "The key 'name' is missing and has no default.")
    hints = get_type_hints(Scene)
    try:
        plain = {key: convert_value(hints[key], table[key], path, key) for key in PLAIN_KEYS if key in table}
        starts: dict[str, Any] = {
            "coordinates": _by_name(table, "coordinates", float, "a table of numbers", path),
            "speeds": _by_name(table, "speeds", float, "a table of numbers", path),
            "twists": _by_name(table, "twists", Twist, "a table", path),
            "excitations": excitations_from_table(table, model, path),
        }
        return validate_scene(Scene(model=model, **plain, **starts))
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def scene_to_text(scene: Scene) -> str:
    """Format the scene as text, its model included."""
    default = Scene(scene.name, scene.model)
    table: dict[str, Any] = {"format": FORMAT, "version": VERSION, "name": scene.name}
    table |= {key: to_plain(v) for key in PLAIN_KEYS if (v := getattr(scene, key)) != getattr(default, key)}
    table |= {"step": scene.step, "duration": scene.duration}
    if isinstance(scene.excitations, int | float):
        table["excitations"] = float(scene.excitations)
    lines = [format_toml(table)]
    for key in ("coordinates", "speeds", "twists"):
        if values := getattr(scene, key):
            # names may contain spaces and dots, so they are quoted
            lines += [f"[{key}]", *(f"{json.dumps(name)} = {_number_text(v)}" for name, v in values.items()), ""]
    lines += excitation_lines(scene.excitations)
    # no value spans lines, so a line that starts with [[ is a heading
    lines += ["[model]", re.sub(r"^\[\[", "[[model.", format_toml(model_to_table(scene.model)), flags=re.MULTILINE)]
    return HEADER + "\n".join(lines)


def _number_text(value: float | tuple[float, ...]) -> str:
    return repr([float(v) for v in value]) if isinstance(value, tuple) else repr(float(value))


def _model(table: Mapping[str, Any], path: str | os.PathLike[str]) -> Model:
    named = table.get("model")
    if "human" in table and named != "human":
        raise FileFormatError(path, '[human] is present, but model is not "human". Remove one of them.')
    if isinstance(named, Mapping):
        return model_from_table(named, path)
    if named == "human":
        return _human(table.get("human", {}), path)
    if isinstance(named, str):
        folder = Path(path).parent
        model = read_model(folder / named)
        return replace(model, notes=(*outside_notes([("model", named)], folder), *model.notes))
    raise FileFormatError(path, 'model is missing. Add a [model] table, model = "human", or the name of a model file.')


def _human(values: Any, path: object) -> Model:
    if not isinstance(values, Mapping):
        raise FileFormatError(path, f"human: Expected a table, found {values!r}.")
    for key in values:
        if key not in HUMAN_KEYS:
            raise FileFormatError(path, f"human: {unknown_name('key', key, HUMAN_KEYS)}")
    stated = {key: convert_value(HUMAN_KEYS[key], value, path, f"human: {key}") for key, value in values.items()}
    try:
        return human(**stated)
    except BorelliError as error:
        raise type(error)(f"{path}: human: {error}") from None


def _by_name(table: Mapping[str, Any], key: str, hint: Any, expected: str, path: object) -> dict[str, Any]:
    """Return a table of values by name, converted to a type hint."""
    values = table.get(key, {})
    if not isinstance(values, Mapping):
        raise FileFormatError(path, f"{key}: Expected {expected}, found {values!r}.")
    return {name: convert_value(hint, value, path, f"{key}: {name!r}") for name, value in values.items()}


def with_changes(scene: Scene, *, step: float | None = None, duration: float | None = None) -> Scene:
    """Return the scene with another step or duration [s], checked."""
    step = scene.step if step is None else step
    return validate_scene(replace(scene, step=step, duration=scene.duration if duration is None else duration))
