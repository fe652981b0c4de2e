"""Uncertainty of an analysis as a netCDF 4 file, as tables and as values.

Groups of the file are `torques` and `energy` as in the stage files, `summary` with the values of `summary.json`,
`curves` with the plots of the report (over time and over the gait cycle), and `tables`. Each variable has three forms:
`_sd`, `_low` and `_high`.
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
from borelli.export.stage_files import StageFile, to_json_values
from borelli.export.stage_schema import SUFFIXES, check_uncertainty
from borelli.export.tables import TABLES, write_csv
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.files.netcdf_writer import write_netcdf
from borelli.recording.formats.netcdf import parse_notes
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

UNCERTAINTY_FILE = "uncertainty.nc"
FIELDS = ("repeats", "marker_noise", "noise_stated", "models_drawn", "seed")


@dataclass(frozen=True)
class AnalysisUncertainty:
    """Uncertainty of every output of an analysis, from Monte Carlo repeats.

    Attributes:
        groups: By group, the variables of the results as `_sd` (standard deviation), `_low` and `_high` (ends of the
            95 % interval), with their dimensions and units.
        repeats: Number of repeats.
        marker_noise: Standard deviation of the noise added to each marker along each axis [m].
        noise_stated: True if the noise was specified, False if it was estimated from the recording.
        models_drawn: True if models were drawn from the fit, False if the model was treated as exact.
        seed: Seed of the random numbers.
        notes: Assumptions and problems.
    """

    groups: Mapping[str, Dataset]
    repeats: int
    marker_noise: Mapping[str, float]
    noise_stated: bool
    models_drawn: bool
    seed: int
    notes: tuple[Note, ...] = ()

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        noise = f"{self.noise_mm:.2f} mm, {'stated' if self.noise_stated else 'estimated from the recording'}"
        rows = [("repeats", self.repeats), ("marker noise", noise), ("models drawn from the fit", self.models_drawn)]
        return Summary("AnalysisUncertainty", [*rows, ("groups", ", ".join(self.groups))])

    @property
    def noise_mm(self) -> float:
        """Median of the markers' noise [mm]."""
        return 1e3 * float(np.median(list(self.marker_noise.values())))

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """`sd`, `low` and `high` of each value of `summary.json`."""
        data = self.groups["summary"]
        columns = [data[f"value_{suffix}"].values.tolist() for suffix in SUFFIXES]
        rows = zip(*columns, strict=True)
        return {
            str(name): dict(zip(SUFFIXES, row, strict=True))
            for name, row in zip(data["metric"].values, rows, strict=True)
        }

    @property
    def method(self) -> dict[str, Any]:
        """Method of the computation, as plain values."""
        return {
            "repeats": self.repeats, "noise_mm": self.noise_mm,
            "noise": "stated" if self.noise_stated else "estimated",
            "models": "drawn from the fit" if self.models_drawn else "exact", "seed": self.seed,
        }  # fmt: skip


def summary_values(energy: Energy) -> dict[str, float]:
    """Return the values of `summary.json` that have an uncertainty."""
    torques = energy.torques
    return {
        **energy.summary, "residual_force_rms_n": torques.residual_force_rms,
        "residual_moment_rms_nm": torques.residual_moment_rms,
    }  # fmt: skip


def write_uncertainty(
    uncertainty: AnalysisUncertainty,
    path: Path,
    provenance: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write the uncertainty of an analysis atomically."""
    import xarray

    metadata = {name: to_json_values(getattr(uncertainty, name)) for name in FIELDS}
    metadata |= {"notes": [asdict(note) for note in uncertainty.notes], "provenance": to_json_values(provenance or {})}
    attrs = {"borelli_stage": "uncertainty", "borelli_version": __version__, "borelli_metadata": json.dumps(metadata)}
    write_netcdf(path, {"/": xarray.Dataset(attrs=attrs), **uncertainty.groups}, overwrite=overwrite)


def load_uncertainty(stage: StageFile, energy: Energy) -> AnalysisUncertainty:
    """Load the uncertainty that `write_uncertainty` wrote and check that it belongs to the energy.

    Raises:
        FileFormatError: The file is damaged.
    """
    groups = {name: stage.file.load(name) for name in stage.file.groups}
    check_uncertainty(groups, energy.data, stage.path)
    kinds = {"repeats": int, "seed": int, "noise_stated": bool, "models_drawn": bool}
    for name, kind in kinds.items():
        if type(stage.metadata.get(name)) is not kind:
            stage.refuse(f"{name} is missing in the metadata")
    noise = stage.table("marker_noise")
    if not noise or not all(isinstance(value, float) for value in noise.values()):
        stage.refuse("The marker noise is missing")
    notes = parse_notes(stage.metadata.get("notes"), stage.path)
    return AnalysisUncertainty(groups, notes=notes, **{name: stage.metadata[name] for name in FIELDS})


def write_uncertainty_tables(uncertainty: AnalysisUncertainty, folder: Path) -> None:
    """Write a CSV file for each table, such as `coordinates_uncertainty.csv`, with its names and units."""
    data = uncertainty.groups["tables"]
    for table in TABLES:
        if f"{table}_sd" not in data:
            continue
        names = [f"{column}_{suffix}" for column in data[f"{table}_column"].values for suffix in SUFFIXES]
        values = np.stack([data[f"{table}_{suffix}"].values for suffix in SUFFIXES], axis=-1)
        rows = values.reshape(len(values), -1)
        write_csv(folder / _table_name(table), data[f"{table}_time"].values, names, rows, ".6g")


def _table_name(table: str) -> str:
    return f"{table}_uncertainty.csv"


UNCERTAINTY_FILES = (UNCERTAINTY_FILE, *map(_table_name, TABLES))
"""Files of a folder of results that contain its uncertainty."""
