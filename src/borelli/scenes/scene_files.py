"""Scene files: TOML that a person can edit and that gives back exactly the scene written.

A file holds its model as a `[model]` table, names a model file beside it (`model = "arm.toml"`), or asks for a human
(`model = "human"` with a `[human]` table of mass, height and sex).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from borelli.control.perturbations import CarriedLoad, MoveGround, Obstacle, Push, WeakenedJoint
from borelli.errors import BorelliError, FileFormatError, SettingsError, unknown_name
from borelli.files.text import (
    check_format,
    from_table,
    parse_toml,
    read_text,
    to_table,
    format_toml,
    convert_value,
    write_text,
)
from borelli.model.formats.native import model_from_table, model_to_table, read_model
from borelli.model.model import Model
from borelli.model.people.human import human
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.solver_settings import SolverSettings
from borelli.scenes.gallery import GALLERY, gallery_scene
from borelli.scenes.scene import Scene, validate_scene

FORMAT = "borelli-scene"
VERSION = 1
HEADER = """\
# A scene for borelli. Units: m, kg, s, N, rad; z is up. What is left out has its default.
"""
LONGEST_NAME = 100
"""Letters of what may be meant as the name of a scene in the gallery."""
HUMAN_KEYS = ("mass", "height", "sex")


@dataclass(frozen=True)
class _Plain:
    """The part of a scene file that maps to fields one by one."""

    name: str
    description: str = ""
    step: float = Scene.step
    duration: float = Scene.duration
    stepping: str = Scene.stepping
    drives: tuple[Drive, ...] = ()
    forces: tuple[AppliedForce, ...] = ()
    pushes: tuple[Push, ...] = ()
    loads: tuple[CarriedLoad, ...] = ()
    weakened: tuple[WeakenedJoint, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    ground_moves: tuple[MoveGround, ...] = ()
    settings: SolverSettings = SolverSettings()


def read_scene(path_or_name: str | os.PathLike[str]) -> Scene:
    """The scene in a file, or of that name in the gallery.

    Raises:
        FileFormatError: if the file cannot be read as a scene.
        ModelError: if its model contradicts itself.
        SettingsError: if a value lies outside its range or names something the model lacks.
    """
    text = os.fspath(path_or_name)
    if text in GALLERY:
        return gallery_scene(text)
    path = Path(text)
    if not path.suffix and path.name == text and len(text) < LONGEST_NAME and not path.exists():
        raise SettingsError(unknown_name("scene", text, GALLERY) + "; or give a scene file")
    return scene_from_text(read_text(path), path)


def write_scene(scene: Scene, path: str | os.PathLike[str]) -> None:
    """Write the scene, its model included: whole or, if anything fails, not at all."""
    write_text(scene_to_text(scene), path)


def scene_from_text(text: str, path: str | os.PathLike[str] = "scene text") -> Scene:
    """The scene described by text; `path` is named in errors, and model files are sought beside it."""
    table = parse_toml(text, path)
    check_format(table, FORMAT, VERSION, path)
    plain_keys = [item.name for item in fields(_Plain)]
    known = ["format", "version", *plain_keys, "model", "human", "coordinates", "speeds", "twists"]
    for key in table:
        if key not in known:
            raise FileFormatError(path, unknown_name("key", key, known))
    model = _model(table, path)
    try:
        plain = from_table(_Plain, {key: value for key, value in table.items() if key in plain_keys}, path)
        return validate_scene(
            Scene(
                model=model,
                coordinates=_numbers(table, "coordinates", path),
                speeds=_numbers(table, "speeds", path),
                twists=_twists(table, path),
                **{key: getattr(plain, key) for key in plain_keys},
            )
        )
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def scene_to_text(scene: Scene) -> str:
    """The scene as text, its model included."""
    plain = _Plain(**{item.name: getattr(scene, item.name) for item in fields(_Plain)})
    table: dict[str, Any] = {"format": FORMAT, "version": VERSION, **to_table(plain)}
    table |= {"step": scene.step, "duration": scene.duration}
    lines = [format_toml(table)]
    for key in ("coordinates", "speeds", "twists"):
        if values := getattr(scene, key):
            # names may hold spaces and dots, so they are quoted
            lines += [f"[{key}]", *(f"{json.dumps(name)} = {_number_text(v)}" for name, v in values.items()), ""]
    # no value spans lines, so a line that starts with [[ is a heading
    lines += ["[model]", re.sub(r"^\[\[", "[[model.", format_toml(model_to_table(scene.model)), flags=re.MULTILINE)]
    return HEADER + "\n".join(lines)


def _number_text(value: float | tuple[float, ...]) -> str:
    return repr([float(v) for v in value]) if isinstance(value, tuple) else repr(float(value))


def _model(table: Mapping[str, Any], path: str | os.PathLike[str]) -> Model:
    named = table.get("model")
    if "human" in table and named != "human":
        raise FileFormatError(path, '[human] is given, but model is not "human"; remove one of them')
    if isinstance(named, Mapping):
        return model_from_table(named, path)
    if named == "human":
        return _human(table.get("human", {}), path)
    if isinstance(named, str):
        return read_model(Path(path).parent / named)
    raise FileFormatError(path, 'model is missing; give a [model] table, "human", or the name of a model file')


def _human(values: Any, path: object) -> Model:
    if not isinstance(values, Mapping):
        raise FileFormatError(path, f"human: expected a table, got {values!r}")
    for key in values:
        if key not in HUMAN_KEYS:
            raise FileFormatError(path, f"human: {unknown_name('key', key, HUMAN_KEYS)}")
    kinds = {"mass": float, "height": float, "sex": str}
    stated = {key: convert_value(kinds[key], value, path, f"human: {key}") for key, value in values.items()}
    try:
        return human(**stated)
    except BorelliError as error:
        raise type(error)(f"{path}: human: {error}") from None


def _numbers(table: Mapping[str, Any], key: str, path: object) -> dict[str, float]:
    values = table.get(key, {})
    if not isinstance(values, Mapping):
        raise FileFormatError(path, f"{key}: expected a table of numbers, got {values!r}")
    return {name: convert_value(float, value, path, f"{key}: {name!r}") for name, value in values.items()}


def _twists(table: Mapping[str, Any], path: object) -> dict[str, Any]:
    values = table.get("twists", {})
    if not isinstance(values, Mapping):
        raise FileFormatError(path, f"twists: expected a table, got {values!r}")
    six = tuple[float, float, float, float, float, float]
    return {name: convert_value(six, value, path, f"twists: {name!r}") for name, value in values.items()}


def with_changes(scene: Scene, *, step: float | None = None, duration: float | None = None) -> Scene:
    """The scene with another step or duration [s], checked."""
    return validate_scene(
        replace(
            scene,
            step=scene.step if step is None else step,
            duration=scene.duration if duration is None else duration,
        )
    )
