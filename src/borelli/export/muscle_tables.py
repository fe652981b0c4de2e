"""Tables of muscles: activations, excitations and forces as OpenSim's .sto or as CSV, written and read.

A column has the name of its muscle. OpenSim's own paths (`/forceset/soleus_r/activation`, `soleus_r.activation`) are
read, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from borelli.errors import FileFormatError, SettingsError, list_names, unknown_name
from borelli.export.tables import write_csv, write_table
from borelli.files.paths import as_path
from borelli.recording.io import read_recording

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from xarray import DataArray, Dataset

QUANTITIES = {
    "muscle_activation": ("Static Optimization", "1"),
    "muscle_excitation": ("controls", "1"),
    "muscle_force": ("ModelForces", "N"),
}
"""First line of OpenSim's file, and unit, of each quantity."""
QUANTITY_OF_COLUMN = re.compile(r"[./](activation|excitation|tendon_force)$")
"""End of a column's name that is not of its muscle."""


def write_muscle_table(
    data: Dataset, path: str | PathLike[str], quantity: str = "muscle_activation", *, overwrite: bool = False
) -> None:
    """Write one quantity (time, muscle) of a dataset as .sto (OpenSim's columns) or .csv.

    Raises:
        SettingsError: The dataset does not have it, or the suffix is neither .sto nor .csv.
    """
    path = as_path(path)
    if quantity not in QUANTITIES:
        raise SettingsError(unknown_name("quantity of muscles", quantity, QUANTITIES))
    if quantity not in data:
        raise SettingsError(f"{quantity}: The dataset does not have it; it has {list_names(list(map(str, data)))}.")
    values = data[quantity].transpose("time", "muscle").values
    time, names = data["time"].values, [str(name) for name in data["muscle"].values]
    if path.suffix.lower() == ".sto":
        write_table(path, QUANTITIES[quantity][0], time, names, values, overwrite=overwrite)
    elif path.suffix.lower() == ".csv":
        write_csv(path, time, names, values, ".10g", overwrite=overwrite)
    else:
        raise SettingsError(f"{path.name}: The suffix {path.suffix!r} is unknown. Use .sto or .csv.")


def read_muscle_table(
    path: str | PathLike[str], muscles: Sequence[str] | None = None, quantity: str = "muscle_excitation"
) -> DataArray:
    """Return one quantity (time, muscle) of a .sto or .csv file, such as OpenSim's controls or activations.

    Args:
        path: File with a column of times and one per muscle.
        muscles: Muscles to return, in this order. Default: all columns.
        quantity: Name of the result.

    Raises:
        FileFormatError: The file has no such table, or a muscle is missing.
        SettingsError: The quantity is unknown.
    """
    import xarray as xr

    if quantity not in QUANTITIES:
        raise SettingsError(unknown_name("quantity of muscles", quantity, QUANTITIES))
    recording = read_recording(as_path(path))
    if "column_value" not in recording.data:
        raise FileFormatError(path, "The file has no columns of muscles. Pass a table of activations or controls.")
    table = recording.data["column_value"]
    found: dict[str, int] = {}
    for i, name in enumerate(map(str, table["column"].values)):
        found.setdefault(QUANTITY_OF_COLUMN.sub("", name).rpartition("/")[2], i)
    names = list(found) if muscles is None else list(muscles)
    for name in names:
        if name not in found:
            raise FileFormatError(path, f"{unknown_name('muscle', name, found)}.")
    values = np.asarray(table.values[:, [found[name] for name in names]], float)
    attrs = {"units": QUANTITIES[quantity][1], "frame": ""}
    coords = {"time": recording.data["time"].values, "muscle": names}
    return xr.DataArray(values, coords, ("time", "muscle"), quantity, attrs)
