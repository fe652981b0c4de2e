"""Excitations in scene files: one number, numbers by muscle, a table, or a file with a column per muscle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.text import convert_value
from borelli.model.model import Model
from borelli.muscles.excitation_files import read_excitations
from borelli.muscles.excitations import Excitations

SceneExcitations = Excitations | Mapping[str, float] | float | None
"""Excitations that a scene file can contain."""
TABLE_KEYS = ("muscles", "time", "value", "interpolation")
"""Keys of `[excitation_table]`; each row of `value` has the excitations at a time."""


def excitations_from_table(table: Mapping[str, Any], model: Model, path: str | os.PathLike[str]) -> SceneExcitations:
    """Return the excitations that the table of a scene file states; files are read from its folder.

    Raises:
        FileFormatError: The keys are not those of excitations.
        SettingsError: A value is out of range.
    """
    stated, own = table.get("excitations"), table.get("excitation_table")
    if stated is not None and own is not None:
        raise FileFormatError(path, "Both excitations and [excitation_table] are present. Remove one of them.")
    if own is not None:
        return _from_own_table(own, path)
    if isinstance(stated, str):
        return read_excitations(Path(path).parent / stated, [muscle.name for muscle in model.muscles], partial=True)
    if isinstance(stated, Mapping):
        return {name: convert_value(float, u, path, f"excitations: {name!r}") for name, u in stated.items()}
    return None if stated is None else float(convert_value(float, stated, path, "excitations"))


def _from_own_table(own: Any, path: str | os.PathLike[str]) -> Excitations:
    if not isinstance(own, Mapping):
        raise FileFormatError(path, f"excitation_table: Expected a table, found {own!r}.")
    for key in own:
        if key not in TABLE_KEYS:
            raise FileFormatError(path, f"excitation_table: {unknown_name('key', key, TABLE_KEYS)}")
    for key in TABLE_KEYS[:3]:
        if not isinstance(own.get(key), list):
            raise FileFormatError(path, f"excitation_table: {key}: Expected a list, found {own.get(key)!r}.")
    try:
        time, value = np.array(own["time"], float), np.array(own["value"], float)
    except (TypeError, ValueError):
        raise FileFormatError(path, "excitation_table: time and value must be lists of numbers.") from None
    names = tuple(convert_value(str, name, path, "excitation_table: muscles") for name in own["muscles"])
    return Excitations(names, time, value, own.get("interpolation", "linear"))


def excitation_lines(excitations: SceneExcitations) -> list[str]:
    """Return the lines of a scene file that restore excitations; a number is written with the plain keys."""
    if isinstance(excitations, Excitations):
        rows = ", ".join(_list(row) for row in excitations.value)
        return [
            "[excitation_table]",
            f"muscles = {json.dumps(list(excitations.names))}",
            f"time = {_list(excitations.time)}",
            f"value = [{rows}]",
            f"interpolation = {json.dumps(excitations.interpolation)}",
            "",
        ]
    if isinstance(excitations, Mapping):
        return ["[excitations]", *(f"{json.dumps(name)} = {float(u)!r}" for name, u in excitations.items()), ""]
    return []


def _list(values: Any) -> str:
    return repr([float(value) for value in values])


def check_scene_excitations(model: Model, excitations: SceneExcitations) -> None:
    """Raise SettingsError or ModelError if excitations do not fit the model."""
    from borelli.physics.muscle_step.excitation_table import make_excitation_table

    if excitations is not None:
        if not isinstance(excitations, Excitations | Mapping | int | float):
            raise SettingsError(f"excitations: Found {excitations!r}. Pass a table, numbers by muscle or a number.")
        make_excitation_table(model, excitations, step=1.0, steps=1)
