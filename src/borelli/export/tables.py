"""Results as tables that OpenSim, a spreadsheet or pandas read: coordinates, moments, powers, ground forces.

Axes are OpenSim's: x forward, y up, z to the right; angles in degrees. Names are OpenSim's where it has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.motion import Motion
from borelli.export.opensim_names import PELVIS, TO_Y_UP, has_borelli_root, opensim_name, pelvis_forces, pelvis_coordinates
from borelli.files.atomic import write_atomic

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

TABLES = ("coordinates", "moments", "powers", "ground_forces")


def write_tables(energy: Energy, folder: Path) -> list[Path]:
    """Writes `coordinates.mot`, `moments.sto`, `powers.sto`, `marker_errors.csv` and, where known, `ground_forces.mot`.

    Returns the files.
    """
    torques, motion = energy.torques, energy.torques.motion
    files = [folder / name for name in ("coordinates.mot", "moments.sto", "powers.sto")]
    time, names, values = coordinate_table(motion)
    write_table(files[0], "Coordinates", time, names, values, degrees=True)
    time, names, values = moment_table(torques)
    write_table(files[1], "Inverse Dynamics Generalized Forces", time, names, values)
    time, names, values = power_table(energy)
    write_table(files[2], "Joint powers [W]", time, names, values)
    if "ground_reaction_force" in torques.data:
        files.append(folder / "ground_forces.mot")
        time, names, values = ground_table(torques)
        write_table(files[-1], "Ground forces on the feet", time, names, np.nan_to_num(values))
    if "marker_error" in motion.data:
        files.append(folder / "marker_errors.csv")
        _write_errors(files[-1], motion)
    return files


def table_dataset(energy: Energy) -> Dataset:
    """The tables with a row for each time, by the names of their files."""
    import xarray as xr

    torques = energy.torques
    found = {
        "coordinates": coordinate_table(torques.motion),
        "moments": moment_table(torques),
        "powers": power_table(energy),
    }
    if "ground_reaction_force" in torques.data:
        found["ground_forces"] = ground_table(torques)
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for table, (time, names, values) in found.items():
        variables[table] = ((f"{table}_time", f"{table}_column"), values)
        coords |= {f"{table}_time": time, f"{table}_column": names}
    return xr.Dataset(variables, coords)


def coordinate_table(motion: Motion) -> tuple[Array, list[str], Array]:
    """Times, names and values of all coordinates [deg, m]."""
    model = motion.model
    values = motion.coordinates.copy()
    turning = [i for i, c in enumerate(model.coordinates) if c.rotational]
    values[:, turning] = np.degrees(values[:, turning])
    names = [opensim_name(c.name) for c in model.coordinates]
    if has_borelli_root(model):
        pelvis = pelvis_coordinates(motion)
        pelvis[:, :3] = np.degrees(pelvis[:, :3])
        names, values = [*PELVIS, *names[6:]], np.hstack([pelvis, values[:, 6:]])
    return motion.data["time"].values, names, values


def moment_table(torques: Torques) -> tuple[Array, list[str], Array]:
    """Times, names and values of all generalized forces [N m, N]; what stands at the pelvis is the residual."""
    model, data = torques.motion.model, torques.data
    names = [f"{opensim_name(c.name)}_{'moment' if c.rotational else 'force'}" for c in model.coordinates]
    values = data["torque"].values
    if has_borelli_root(model):
        start = int(np.searchsorted(torques.motion.data["time"].values, data["time"].values[0] - 1e-9))
        frames = slice(start, start + len(values))
        pelvis = pelvis_forces(
            torques.motion, data["residual_force"].values, data["residual_moment"].values, frames
        )  # fmt: skip
        own = [f"{name}_{'force' if name in PELVIS[3:] else 'moment'}" for name in PELVIS]
        names, values = [*own, *names[6:]], np.hstack([pelvis, values[:, 6:]])
    return data["time"].values, names, values


def power_table(energy: Energy) -> tuple[Array, list[str], Array]:
    """Times, names and powers [W] of all coordinates but the root's, whose power is the residual's."""
    data = energy.data
    root = set(root_coordinates(energy.torques.motion.model))
    kept = [i for i, name in enumerate(map(str, data["coordinate"].values)) if name not in root]
    names = [f"{opensim_name(str(data['coordinate'].values[i]))}_power" for i in kept]
    values = np.column_stack([data["joint_power"].values[:, kept], data["residual_power"].values])
    return data["time"].values, [*names, "residual_power"], values


def ground_table(torques: Torques) -> tuple[Array, list[str], Array]:
    """Times, names and values of each foot's force [N], its point [m] while it has one, and free moment [N m], y up."""
    data = torques.data
    names, columns = [], []
    for foot in map(str, data["foot"].values):
        side = {"right": "r", "left": "l"}.get(foot, foot)
        one = data.sel(foot=foot)
        force, point, moment = (
            one[f"foot_{what}"].values @ TO_Y_UP.T for what in ("force", "center_of_pressure", "free_moment")
        )
        names += [f"ground_force_{side}_v{axis}" for axis in "xyz"]
        names += [f"ground_force_{side}_p{axis}" for axis in "xyz"]
        names += [f"ground_torque_{side}_{axis}" for axis in "xyz"]
        columns += [force, point, moment]
    return data["time"].values, names, np.hstack(columns)


def write_table(
    path: Path, title: str, time: Array, names: Sequence[str], values: Array, *, degrees: bool = False
) -> None:
    """Writes a MOT or STO file: whole or not at all."""
    lines = [
        title, "version=1", f"nRows={len(values)}", f"nColumns={1 + values.shape[1]}",
        f"inDegrees={'yes' if degrees else 'no'}", "endheader", "\t".join(["time", *names]),
    ]  # fmt: skip
    for stamp, row in zip(time.tolist(), values.tolist(), strict=True):
        lines.append("\t".join([repr(stamp), *(f"{value:.10g}" for value in row)]))
    write_atomic("\n".join(lines) + "\n", path)


def _write_errors(path: Path, motion: Motion) -> None:
    """Marker errors in time [mm], one column each."""
    errors = 1e3 * motion.data["marker_error"].values
    lines = [",".join(["time_s", *(f"{name}_mm" for name in map(str, motion.data["marker"].values))])]
    for stamp, row in zip(motion.data["time"].values.tolist(), errors.tolist(), strict=True):
        lines.append(",".join([repr(stamp), *("" if value != value else f"{value:.4f}" for value in row)]))
    write_atomic("\n".join(lines) + "\n", path)
