"""Tables for OpenSim, spreadsheets and pandas: coordinates, moments, powers, ground reaction forces.

Names, signs and axes are those of `model.osim` (see `opensim_names`): of a person x forward, y up, z to the right.
Angles are in degrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.motion import Motion, to_model_axes
from borelli.export.opensim_names import (
    has_borelli_root,
    opensim_columns,
    opensim_model,
    pelvis_coordinates,
    pelvis_forces,
)
from borelli.files.atomic import atomic_path
from borelli.model.kinematics import root_coordinates
from borelli.people.partial import is_partial

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

CONVERTED_ROWS = 1_000
"""Rows that are converted to text at once."""
TABLES = {
    "coordinates": ("mot", "Coordinates"),
    "moments": ("sto", "Inverse Dynamics Generalized Forces"),
    "powers": ("sto", "Joint powers [W]"),
    "ground_forces": ("mot", "Ground reaction forces"),
}
"""Suffix and first line of the file of each table."""
MUSCLE_TABLES = {
    "muscle_activations": ("sto", "Muscle activations", "muscle_activation"),
    "muscle_forces": ("sto", "Muscle forces along the tendon [N]", "muscle_force"),
}
"""Suffix, first line and variable of the tables of muscles."""
MUSCLE_FILES = tuple(f"{table}.{suffix}" for table, (suffix, _, _) in MUSCLE_TABLES.items())
ERROR_FILE = "marker_errors.csv"
TABLE_FILES = (*(f"{table}.{suffix}" for table, (suffix, _) in TABLES.items()), ERROR_FILE)
"""Files that `write_tables` writes."""


def write_tables(energy: Energy, folder: Path) -> None:
    """Write each table as .mot or .sto, ground forces where they are known, and `marker_errors.csv`."""
    partial = is_partial(energy.torques.motion.model)
    for table in _known_tables(energy):
        time, names, values = _table(energy, table)
        suffix, title = TABLES[table]
        # a foot in the air has no center of pressure; the force on a foot of a partial body may be unknown
        known = np.nan_to_num(values) if table == "ground_forces" and not partial else values
        write_table(folder / f"{table}.{suffix}", title, time, names, known, degrees=table == "coordinates")
    if energy.muscles is not None:
        data = energy.muscles.data
        for table, (suffix, title, variable) in MUSCLE_TABLES.items():
            names = [str(name) for name in data["muscle"].values]
            write_table(folder / f"{table}.{suffix}", title, data["time"].values, names, data[variable].values)
    data = energy.torques.motion.data
    if "marker_error" in data:
        columns = [f"{name}_mm" for name in map(str, data["marker"].values)]
        write_csv(folder / ERROR_FILE, data["time"].values, columns, 1e3 * data["marker_error"].values, ".4f")


def _table(energy: Energy, table: str) -> tuple[Array, list[str], Array]:
    """Return times, names and values of a table."""
    if table == "coordinates":
        return coordinate_table(energy.torques.motion)
    if table == "powers":
        return power_table(energy)
    return moment_table(energy.torques) if table == "moments" else ground_table(energy.torques)


def _known_tables(energy: Energy) -> list[str]:
    return [table for table in TABLES if table != "ground_forces" or "ground_reaction_force" in energy.torques.data]


def table_dataset(energy: Energy) -> Dataset:
    """Return the tables over time as one dataset, by the names of their files."""
    import xarray as xr

    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for table in _known_tables(energy):
        time, names, values = _table(energy, table)
        variables[table] = ((f"{table}_time", f"{table}_column"), values)
        coords |= {f"{table}_time": time, f"{table}_column": names}
    return xr.Dataset(variables, coords)


def coordinate_table(motion: Motion) -> tuple[Array, list[str], Array]:
    """Return times [s], names and values [deg or m] of all coordinates."""
    model = motion.model
    columns = opensim_columns(model)
    values = motion.coordinates * columns.sign
    if has_borelli_root(model):
        values = np.hstack([pelvis_coordinates(motion), values[:, 6:]])
    return motion.data["time"].values, columns.names, np.where(columns.is_angle, np.degrees(values), values)


def moment_table(torques: Torques) -> tuple[Array, list[str], Array]:
    """Return times [s], names and values [N m or N] of all generalized forces; those of the pelvis are the residual."""
    model, data = torques.motion.model, torques.data
    columns = opensim_columns(model)
    kinds = ["moment" if is_angle else "force" for is_angle in columns.is_angle]
    values = data["torque"].values * columns.sign
    if has_borelli_root(model):
        start = int(np.searchsorted(torques.motion.data["time"].values, data["time"].values[0] - 1e-9))
        frames = slice(start, start + len(values))
        pelvis = pelvis_forces(torques.motion, data["residual_force"].values, data["residual_moment"].values, frames)
        values = np.hstack([pelvis, values[:, 6:]])
    return data["time"].values, [f"{name}_{kind}" for name, kind in zip(columns.names, kinds, strict=True)], values


def power_table(energy: Energy) -> tuple[Array, list[str], Array]:
    """Return times [s], names and values [W] of the joint powers and of the residual power at the root."""
    data = energy.data
    model = energy.torques.motion.model
    root = set(root_coordinates(model))
    kept = [i for i, name in enumerate(map(str, data["coordinate"].values)) if name not in root]
    columns = opensim_columns(model)
    names = [f"{columns.names[i]}_power" for i in kept]
    values = np.column_stack([data["joint_power"].values[:, kept], data["residual_power"].values])
    return data["time"].values, [*names, "residual_power"], values


def ground_table(torques: Torques) -> tuple[Array, list[str], Array]:
    """Return times [s], names and values of each foot's force [N], COP [m] and free moment [N m]."""
    data = torques.data
    rotation = to_model_axes(opensim_model(torques.motion.model)).T
    names, columns = [], []
    for foot in map(str, data["foot"].values):
        one = data.sel(foot=foot)
        force, point, moment = (
            one[name].values @ rotation for name in ("ground_reaction_force", "center_of_pressure", "free_moment")
        )
        names += [f"{prefix}{axis}" for prefix in foot_prefixes(foot) for axis in "xyz"]
        columns += [force, point, moment]
    return data["time"].values, names, np.hstack(columns)


def foot_prefixes(foot: str) -> tuple[str, str, str]:
    """Return the names, without their axis, of the columns of a foot's force, center of pressure and free moment."""
    side = {"right": "r", "left": "l"}.get(foot, foot)
    return f"ground_force_{side}_v", f"ground_force_{side}_p", f"ground_torque_{side}_"


def write_table(
    path: Path, title: str, time: Array, names: Sequence[str], values: Array, *, degrees: bool = False
) -> None:
    """Write a MOT or STO file atomically."""
    head = [
        title, "version=1", f"nRows={len(values)}", f"nColumns={1 + values.shape[1]}",
        f"inDegrees={'yes' if degrees else 'no'}", "endheader", "\t".join(["time", *names]),
    ]  # fmt: skip
    rows = ("\t".join([repr(stamp), *(f"{value:.10g}" for value in row)]) for stamp, row in _rows(time, values))
    _write_lines(path, chain(head, rows))


def write_csv(path: Path, time: Array, names: Sequence[str], values: Array, form: str) -> None:
    """Write a CSV file atomically; missing values are empty."""
    rows = (
        ",".join([repr(stamp), *("" if value != value else f"{value:{form}}" for value in row)])
        for stamp, row in _rows(time, values)
    )
    _write_lines(path, chain([",".join(["time_s", *names])], rows))


def _rows(time: Array, values: Array) -> Iterator[tuple[float, list[float]]]:
    """Yield times and rows as Python numbers, some at a time: they take four times the memory of an array."""
    for start in range(0, len(values), CONVERTED_ROWS):
        part = slice(start, start + CONVERTED_ROWS)
        yield from zip(time[part].tolist(), values[part].tolist(), strict=True)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
