"""Result of tracking: the solution, its reference, and the motion for the rest of the analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from borelli.analysis.motion import Motion, make_motion
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import Summary, main_series, summary_html, summary_repr
from borelli.model.kinematics import root_coordinates
from borelli.numerics.vectors import Array
from borelli.optimal.solution import Solution
from borelli.optimal.symbolic_dynamics.vectors import identifier
from borelli.optimal.tracking.reference import MotionReference
from borelli.recording.recording import Note
from borelli.view.plots import plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE = 100.0
"""[Hz] of motions made from solutions."""


@dataclass(frozen=True)
class TrackedMotion:
    """Motion of a model that obeys the equations of motion, next to the recorded one."""

    solution: Solution
    reference: MotionReference
    sizes: Mapping[str, float]
    """Sizes [N m or N] of torques by coordinate."""

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        reference = self.reference
        errors = {k: v for k, v in self.summary().items() if k.startswith(("rms", "max")) and v is not None}
        rows = [
            ("model", reference.model.name), ("verdict", self.solution.certificate.verdict),
            ("time", f"{reference.start:g} to {reference.start + reference.duration:g} s"),
            ("objective", f"{self.solution.objective:.6g}"), ("iterations", self.solution.iterations),
            *((name, f"{value:.4g}") for name, value in errors.items()),
        ]  # fmt: skip
        data = self.solution.dataset
        name = "muscle_activation" if "muscle_activation" in data else "torque"
        if name not in data:
            return Summary("TrackedMotion", rows)
        label = "Activation" if name == "muscle_activation" else "Torque [N m or N]"
        time = (data["time"].values + reference.start).tolist()
        return Summary("TrackedMotion", rows, time, main_series(data, name), label)

    @property
    def solved(self) -> bool:
        """Whether the solution passed every check."""
        return self.solution.solved

    @property
    def prescribed(self) -> bool:
        """Whether the motion is that of the recording, and only muscles were solved for."""
        return identifier(self.reference.names[0]) not in self.solution.dataset["state"].values

    @check_arguments
    def coordinates(self, time: Array) -> Array:
        """Return the free coordinates (times, names) at times of the problem [s]: the polynomials between points."""
        if self.prescribed:
            return self.reference.at(self.reference.coordinates, time)
        data = self.solution.dataset
        at, first = np.unique(data["time"].values, return_index=True)
        tables = []
        for ending in ("", "_speed"):
            tables.append(
                np.column_stack([self.solution.value(identifier(n) + ending) for n in self.reference.names])[first]
            )
        return np.asarray(CubicHermiteSpline(at, *tables, axis=0)(time))

    def activations(self, time: Array) -> Array | None:
        """Return the activations (times, muscles) at times of the problem [s]; None without muscles."""
        if self.reference.activations is None:
            return None
        at, first = np.unique(self.solution.dataset["time"].values, return_index=True)
        names = [f"{identifier(muscle.name)}_activation" for muscle in self.reference.model.muscles]
        return np.column_stack([np.interp(time, at, self.solution.value(name)[first]) for name in names])

    def torque(self, coordinate: str) -> Array:
        """Return the torque [N m or N] on a coordinate at the points of the solution, next to that of muscles."""
        return np.asarray(self.solution.value(f"{identifier(coordinate)}_torque"))

    def errors(self) -> dict[str, float]:
        """Return the root mean square difference [rad or m] to the reference by coordinate."""
        time = self.reference.time
        difference = self.coordinates(time) - self.reference.coordinates
        return dict(zip(self.reference.names, np.sqrt((difference**2).mean(axis=0)).tolist(), strict=True))

    @check_arguments
    def motion(self, rate: float = RATE) -> Motion:
        """Return the motion at even times of the recording, for `inverse_dynamics`, pictures and videos."""
        count = max(2, round(self.reference.duration * rate) + 1)
        time = np.linspace(0.0, self.reference.duration, count)
        model = self.reference.model
        table = np.tile([c.default for c in model.coordinates], (count, 1))
        columns = [[c.name for c in model.coordinates].index(name) for name in self.reference.names]
        table[:, columns] = self.coordinates(time)
        note = Note(
            f"Coordinates of an optimal control problem: {self.solution.certificate.verdict}",
            "stated",
            code="optimal_control",
        )
        real = (count - 1) / self.reference.duration
        return make_motion(
            model, table, time + self.reference.start, real, settings={"method": "optimal control"}, notes=(note,)
        )

    def summary(self) -> dict[str, Any]:
        """Return the main figures as plain values."""
        units = {c.name: c.rotational for c in self.reference.model.coordinates}
        errors = self.errors()
        root = root_coordinates(self.reference.model)
        angles = [e for n, e in errors.items() if units[n]]
        lengths = [e for n, e in errors.items() if not units[n]]
        attrs = self.solution.dataset.attrs
        result: dict[str, Any] = {
            "solved": self.solved,
            "verdict": self.solution.certificate.verdict,
            "start_s": self.reference.start,
            "duration_s": self.reference.duration,
            "objective": self.solution.objective,
            "iterations": self.solution.iterations,
            "runtime_s": float(attrs["runtime_s"]),
            "rms_angle_error_deg": float(np.degrees(np.sqrt(np.mean(np.square(angles))))) if angles else None,
            "rms_length_error_mm": 1e3 * float(np.sqrt(np.mean(np.square(lengths)))) if lengths else None,
            "max_residual_n": self._largest_torque([n for n in root if not units[n]]),
            "max_residual_nm": self._largest_torque([n for n in root if units[n]]),
        }
        if "muscle_activation" in self.solution.dataset:
            result["max_activation"] = float(self.solution.dataset["muscle_activation"].max())
            moved = [n for n in self.sizes if n not in root]
            result["max_reserve_nm"] = self._largest_torque(moved)
        return result

    def _largest_torque(self, names: list[str]) -> float | None:
        """Return the largest torque of these coordinates; None if they have none."""
        found = [np.abs(self.torque(n)).max() for n in names if n in self.sizes]
        return float(max(found)) if found else None

    @check_arguments
    def plot(self, path: str | PathLike[str] | None = None, *, overwrite: bool = False) -> Figure:
        """Draw coordinates next to the reference, controls and residuals; write the figure if a path is given."""
        return plot(self, path, overwrite=overwrite)
