"""Files of excitations: .sto, .mot and .csv tables with a column per muscle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from borelli.errors import FileFormatError, list_names
from borelli.muscles.excitations import Excitations
from borelli.recording.io import read_recording, write_recording
from borelli.recording.recording import Recording, make_dataset

__all__ = ["read_excitations", "write_excitations"]


def read_excitations(
    path: str | Path, muscles: Sequence[str], interpolation: str = "linear", *, partial: bool = False
) -> Excitations:
    """Read excitations or activations of muscles from a .sto, .mot or .csv table.

    Columns are named by muscles, or by OpenSim's paths, such as `/forceset/soleus_r/activation`. Others are ignored.

    Args:
        path: file.
        muscles: names of the muscles.
        interpolation: "linear" or "constant" between the rows.
        partial: Leave muscles without a column out of the table instead of refusing the file; one must have a column.

    Raises:
        FileFormatError: if the file has no column of a muscle, or a value is missing.
    """
    data = read_recording(path).data
    if "column_value" not in data:
        raise FileFormatError(path, "The file has no columns of excitations. Give a table with a column per muscle.")
    columns = {_muscle_of(str(name)): i for i, name in enumerate(data["column"].values)}
    absent = [name for name in muscles if name not in columns]
    if partial and len(absent) < len(muscles):
        muscles = [name for name in muscles if name in columns]
    elif absent:
        found = f"Muscles {list_names(absent, 5)} have no column (columns: {list_names(list(columns), 5)})"
        raise FileFormatError(path, f"{found}. Add them, or read the other muscles only.")
    values = data["column_value"].values[:, [columns[name] for name in muscles]]
    if np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0]
        raise FileFormatError(path, f"Muscle {muscles[column]!r}: The value of row {row + 1} is missing. Fill the gap.")
    return Excitations(tuple(muscles), data["time"].values, values, interpolation)


def _muscle_of(column: str) -> str:
    """Return the muscle that a column belongs to."""
    parts = column.strip("/").split("/")
    if len(parts) > 1 and parts[-1] in ("activation", "excitation", "control"):
        return parts[-2]
    return parts[-1]


def write_excitations(excitations: Excitations, path: str | Path, *, overwrite: bool = False) -> None:
    """Write excitations as a .sto, .mot or .csv table; the write is atomic.

    Args:
        excitations: Excitations over time, by muscle.
        path: File to write; its suffix chooses the format.
        overwrite: Whether an existing file is replaced.
    """
    names = list(excitations.names)
    labels: dict[str, ArrayLike] = {"time": excitations.time, "column": names, "column_units": ["1"] * len(names)}
    data = make_dataset({"column_value": excitations.value}, labels)
    write_recording(Recording(data, name="excitations"), path, overwrite=overwrite)
