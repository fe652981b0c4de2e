"""Bands on what an analysis gave: as netCDF 4, as tables, and as figures.

Groups of the file are those of the results they belong to: `torques` and `energy` as in the stages, `summary` the
figures of `summary.json`, `curves` what the report draws, in time and over the gait cycle, `tables` what the tables
hold. Each variable stands there three times: `_sd`, `_low` and `_high`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli import __version__
from borelli.analysis.energetics.energy import Energy
from borelli.errors import BorelliError
from borelli.export.stage_files import to_json_values, read_group
from borelli.export.tables import TABLES
from borelli.files.atomic import atomic_path, write_atomic
from borelli.recording.formats.netcdf import DAMAGED
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

UNCERTAINTY_FILE = "bands.nc"
ENDINGS = ("sd", "low", "high")


@dataclass(frozen=True)
class AnalysisUncertainty:
    """How sure each output of an analysis is.

    Attributes:
        groups: By group, the variables of the results as `_sd`, `_low` (2.5th percentile) and `_high` (97.5th), with
            their dimensions and units.
        repeats: How often the analysis was done again.
        noise: Deviation [m] along each axis by which each marker was shaken.
        stated: Whether the noise was stated; else it was told from the recording.
        drawn: Whether models were drawn from those that the fit allows; else the model was taken as certain.
        seed: Of the random numbers.
        notes: What was decided or noticed.
    """

    groups: Mapping[str, Dataset]
    repeats: int
    noise: Mapping[str, float]
    stated: bool
    drawn: bool
    seed: int
    notes: tuple[Note, ...] = ()

    @property
    def noise_mm(self) -> float:
        """Of the middle marker [mm]."""
        return 1e3 * float(np.median(list(self.noise.values())))

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """Of each figure of `summary.json`: `sd`, `low` and `high`."""
        data = self.groups["summary"]
        columns = [data[f"value_{ending}"].values.tolist() for ending in ENDINGS]
        rows = zip(*columns, strict=True)
        return {
            str(name): dict(zip(ENDINGS, row, strict=True))
            for name, row in zip(data["figure"].values, rows, strict=True)
        }

    @property
    def about(self) -> dict[str, Any]:
        """How they were made, as plain values."""
        return {
            "repeats": self.repeats, "noise_mm": self.noise_mm, "noise": "stated" if self.stated else "estimated",
            "models": "drawn from the fit" if self.drawn else "as they are", "seed": self.seed,
        }  # fmt: skip


def summary_values(energy: Energy) -> dict[str, float]:
    """The figures of `summary.json` that have bands."""
    torques = energy.torques
    return {
        **energy.summary, "residual_force_rms_n": torques.residual_force_rms,
        "residual_moment_rms_nm": torques.residual_moment_rms,
    }  # fmt: skip


def write_uncertainty(bands: AnalysisUncertainty, path: Path, about: Mapping[str, Any] | None = None) -> None:
    """Writes bands: whole or not at all."""
    import xarray

    told = {name: to_json_values(getattr(bands, name)) for name in ("repeats", "noise", "stated", "drawn", "seed")}
    told |= {"notes": [asdict(note) for note in bands.notes], "made": to_json_values(about or {})}
    attrs = {"borelli_stage": "bands", "borelli_version": __version__, "borelli_about": json.dumps(told)}
    with atomic_path(path) as temporary:
        xarray.Dataset(attrs=attrs).to_netcdf(temporary, engine="h5netcdf")
        for group, data in bands.groups.items():
            data.to_netcdf(temporary, engine="h5netcdf", group=group, mode="a")


def read_uncertainty(path: Path) -> AnalysisUncertainty | None:
    """The bands that `write_uncertainty` wrote; None if the file is not there or is damaged."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            told = json.loads(str(file.attrs["borelli_about"]))
            names = list(file)
        groups = {name: read_group(path, name) for name in names}
        notes = tuple(Note(**note) for note in told["notes"])
        kept = {name: told[name] for name in ("repeats", "noise", "stated", "drawn", "seed")}
        return AnalysisUncertainty(groups, notes=notes, **kept)
    except (*DAMAGED, BorelliError):  # made anew, as a fit is
        return None


def write_uncertainty_tables(bands: AnalysisUncertainty, folder: Path) -> None:
    """Writes a CSV beside each table, `coordinates_bands.csv` and so on, with its names and units."""
    data = bands.groups["tables"]
    for table in TABLES:
        if f"{table}_sd" not in data:
            continue
        columns = list(map(str, data[f"{table}_column"].values))
        head = ["time_s", *(f"{column}_{ending}" for column in columns for ending in ENDINGS)]
        values = np.stack([data[f"{table}_{ending}"].values for ending in ENDINGS], axis=-1)
        lines = [",".join(head)]
        for stamp, row in zip(data[f"{table}_time"].values.tolist(), values.reshape(len(values), -1), strict=True):
            lines.append(",".join([repr(stamp), *("" if x != x else f"{x:.6g}" for x in row.tolist())]))
        write_atomic("\n".join(lines) + "\n", _table_path(folder, table))


def remove_uncertainty(folder: Path) -> None:
    """Takes away bands that belong to other results than those in the folder."""
    for path in (folder / UNCERTAINTY_FILE, *(_table_path(folder, table) for table in TABLES)):
        path.unlink(missing_ok=True)


def _table_path(folder: Path, table: str) -> Path:
    return folder / f"{table}_bands.csv"
