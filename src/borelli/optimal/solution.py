"""Solutions: trajectories as a dataset, and the certificate that says whether the problem is solved."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import MAX_TEXT, Summary, main_series, summary_html
from borelli.files.netcdf import open_netcdf
from borelli.files.netcdf_writer import write_netcdf
from borelli.optimal.certificate.certificate import Certificate
from borelli.optimal.problem import Problem
from borelli.optimal.transcription.guess import Guess, PhaseGuess, Samples, default_guess
from borelli.view.plots import plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

MAX_VERDICT = 800
"""Characters of the verdict in a `repr`; `certificate` has all of it."""
KIND = "borelli optimal control solution"
FORMAT = f"{KIND} 2"
"""Kind and version of files of solutions."""


@dataclass(frozen=True)
class Solution:
    """End of a search: solved or not, its certificate says."""

    dataset: Dataset
    """All phases in time: `state_value`, `control_value`, `algebraic_value` and `output_value` by name, and the
    variables of the common schema."""
    certificate: Certificate

    @property
    def solved(self) -> bool:
        """Whether the solution passed every check."""
        return self.certificate.solved

    @property
    def objective(self) -> float:
        """Value of the cost."""
        return float(self.dataset.attrs["objective"])

    @property
    def iterations(self) -> int:
        """Iterations of the solver on all meshes."""
        return int(self.dataset.attrs["iterations"])

    @property
    def costs(self) -> dict[str, float]:
        """Parts of the cost by name."""
        if "cost" not in self.dataset:
            return {}
        return dict(zip(self.dataset["cost"]["cost_name"].values.tolist(), self.dataset["cost"].values, strict=True))

    @property
    def duration(self) -> float:
        """Time from the first to the last point [s]."""
        return float(self.dataset["phase_duration"].sum())

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters by name."""
        if "parameter_value" not in self.dataset:
            return {}
        values = self.dataset["parameter_value"]
        return dict(zip(values["parameter"].values.tolist(), values.values.tolist(), strict=True))

    @check_arguments
    def phase(self, name: str) -> Dataset:
        """Return the dataset of one phase."""
        names = self.dataset["phase_name"].values.tolist()
        if name not in names:
            raise SettingsError(f"Solution: {unknown_name('phase', name, names)}.")
        return self.dataset.isel(time=np.flatnonzero(self.dataset["phase"].values == name))

    @check_arguments
    def value(self, name: str, phase: str | None = None) -> Any:
        """Return a state, control, algebraic variable or output over time by its name."""
        data = self.dataset if phase is None else self.phase(phase)
        kinds = [kind for kind in ("state", "control", "algebraic", "output") if kind in data.coords]
        for kind in kinds:
            if name in data[kind].values:
                return data[f"{kind}_value"].sel({kind: name}).values
        known = [name for kind in kinds for name in data[kind].values.tolist()]
        raise SettingsError(f"Solution: {unknown_name('name', name, known)}.")

    def __repr__(self) -> str:
        attrs, verdict = self.dataset.attrs, self.certificate.verdict.rstrip(".")
        return (
            f"Solution of {str(attrs['problem'])[:MAX_TEXT]!r} by {attrs['method']}: {verdict[:MAX_VERDICT]}. "
            f"Objective {self.objective:.9g}, {self.iterations} iterations."
        )

    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        attrs, data = self.dataset.attrs, self.dataset
        rows = [
            ("method", attrs["method"]), ("verdict", self.certificate.verdict), ("objective", f"{self.objective:.9g}"),
            ("iterations", self.iterations), ("duration", f"{self.duration:.4g} s"),
            *((f"cost: {name}", f"{value:.6g}") for name, value in self.costs.items()),
        ]  # fmt: skip
        variable = "coordinate_value" if "coordinate_value" in data else "state_value"
        unit = data[variable].attrs.get("units", "")
        label = f"{variable.removesuffix('_value').capitalize()} [{unit}]"
        return Summary(
            f"Solution of {attrs['problem']}", rows, data["time"].values.tolist(), main_series(data, variable), label
        )

    @check_arguments
    def plot(self, path: str | PathLike[str] | None = None, *, overwrite: bool = False) -> Figure:
        """Draw states, controls and one-step defects; write the figure if a path is given."""
        return plot(self, path, overwrite=overwrite)

    @check_arguments
    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the solution as netCDF, completely or not at all."""
        attrs = {"format": FORMAT, "certificate": self.certificate.to_json()}
        write_netcdf(path, {"/": self.dataset.assign_attrs(attrs)}, overwrite=overwrite)


def read_solution(path: str | PathLike[str]) -> Solution:
    """Return the solution in a file written by `Solution.save`.

    Args:
        path: File that `Solution.save` wrote.

    Raises:
        FileFormatError: The file is damaged, or does not contain a solution.
    """
    file = open_netcdf(path)
    if file.attrs.get("format") == f"{KIND} 1":
        raise FileFormatError(
            path, "The solution has format version 1, which is no longer read. Solve the problem again."
        )
    if file.attrs.get("format") != FORMAT:
        raise FileFormatError(
            path, "The file does not contain a solution of optimal control. Pass one of Solution.save."
        )
    dataset = file.load("/")
    try:
        certificate = Certificate.from_json(dataset.attrs.pop("certificate"))
    except (KeyError, TypeError, ValueError):
        raise FileFormatError(path, "The certificate is damaged. Solve the problem again.") from None
    dataset.attrs.pop("format")
    return Solution(dataset, certificate)


def guess_from_dataset(dataset: Dataset, problem: Problem) -> Guess:
    """Return first values from the dataset of a similar problem; names it lacks get the problem's own guess."""
    guess = default_guess(problem)
    known = dataset["phase_name"].values.tolist()
    phases = {
        name: _from_phase(dataset.isel(time=np.flatnonzero(dataset["phase"].values == name)), part)
        if name in known
        else part
        for name, part in guess.phases.items()
    }
    parameters = dict(guess.parameters)
    if "parameter_value" in dataset:
        names = dataset["parameter"].values.tolist()
        parameters |= {
            n: float(v) for n, v in zip(names, dataset["parameter_value"].values, strict=True) if n in parameters
        }
    return Guess(phases, parameters)


def _from_phase(data: Dataset, default: PhaseGuess) -> PhaseGuess:
    time = data["time"].values
    duration = float(time[-1] - time[0])
    fractions = (time - time[0]) / duration if duration > 0.0 else np.linspace(0.0, 1.0, len(time))
    samples = dict(default.samples)
    for kind in ("state", "control", "algebraic"):
        if kind not in data.coords:
            continue
        for column, variable in enumerate(data[kind].values.tolist()):
            values = data[f"{kind}_value"].values[:, column]
            known = np.isfinite(values)
            if variable in samples and known.any():
                samples[variable] = Samples(fractions[known], values[known])
    return PhaseGuess(duration, samples)
