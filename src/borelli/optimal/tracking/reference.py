"""Recorded motion as the reference of a problem: coordinates, torques, loads and activations from the analysis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from scipy.interpolate import CubicSpline

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.muscle_forces import MuscleForces, muscle_forces
from borelli.errors import SettingsError
from borelli.files.html_repr import fields_summary, summary_html, summary_repr
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array

MIN_FRAMES = 8
"""Frames of a reference."""
LOAD_MARGIN = 0.05
"""[s] before and after the reference for which loads are kept: their splines need neighbors."""
GUESS_RESERVE = 100.0
"""[N m] Optimal force of reserves in load sharing for the first values: always feasible."""


@dataclass(frozen=True)
class MotionReference:
    """Recorded motion of a model over the time of a problem, which begins at zero."""

    model: Model
    start: float
    """[s] Time of the recording at the start."""
    time: Array
    """(samples,) [s] from 0."""
    names: tuple[str, ...]
    """Free coordinates of the model, root included."""
    coordinates: Array
    """(samples, names) [rad or m]"""
    speeds: Array
    accelerations: Array
    torques: Array
    """(samples, names) [N m or N] of inverse dynamics; at the root, the residual."""
    loads: Loads | None
    """Ground reaction forces, at times of the problem."""
    activations: Array | None
    """(samples, muscles) by load sharing; None without muscles."""
    missing: Array | None
    """(samples, names) [N m or N] of torque that muscles leave to other actuators."""

    __repr__ = summary_repr
    _repr_html_ = summary_html
    _summary = fields_summary

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return float(self.time[-1])

    def at(self, table: Array, time: Array) -> Array:
        """Return a table of the reference at other times."""
        return np.asarray(CubicSpline(self.time, table, axis=0)(time))


def make_reference(
    source: Torques | MuscleForces, *, start: float = -inf, end: float = inf, muscles: bool = True
) -> MotionReference:
    """Return the reference of an analyzed motion.

    Args:
        source: Torques of inverse dynamics, or muscle forces.
        start: First time [s]. Default: that of the longest part with known ground reaction force.
        end: Last time [s].
        muscles: Whether muscles move the model; else torques.

    Raises:
        SettingsError: Too few frames with known ground reaction force lie between start and end.
    """
    torques = source.torques if isinstance(source, MuscleForces) else source
    data, model = torques.data, torques.motion.model
    time = data["time"].values
    known = torques.grf_known & np.isfinite(data["coordinate_velocity"].values).all(axis=1)
    known &= (time >= start - 1e-9) & (time <= end + 1e-9)
    runs = sorted(find_runs(known), key=lambda run: run[1] - run[0])
    if not runs or runs[-1][1] - runs[-1][0] < MIN_FRAMES:
        raise SettingsError(
            f"{int(known.sum())} frames with known ground reaction force lie between {start:g} and {end:g} s "
            f"(expected at least {MIN_FRAMES} in a row). Change `start` or `end`."
        )
    chosen = slice(*runs[-1])
    coupled = {coupling.coordinate for coupling in model.couplings}
    columns = [i for i, c in enumerate(model.coordinates) if not c.locked and c.name not in coupled]
    names = tuple(model.coordinates[i].name for i in columns)
    first = float(time[chosen][0])
    table = {
        name: data[name].values[chosen][:, columns]
        for name in ("coordinate_value", "coordinate_velocity", "coordinate_acceleration", "torque")
    }
    activations = missing = None
    if muscles:
        shared = source if isinstance(source, MuscleForces) else muscle_forces(source, reserves=GUESS_RESERVE)
        activations = shared.data["muscle_activation"].values[chosen]
        moved = np.nan_to_num(shared.data["muscle_torque"].values[chosen][:, columns])
        missing = table["torque"] - moved
    return MotionReference(
        model, first, time[chosen] - first, names, table["coordinate_value"], table["coordinate_velocity"],
        table["coordinate_acceleration"], table["torque"],
        _moved_loads(torques.loads, first, float(time[chosen][-1])), activations, missing,
    )  # fmt: skip


def root_names(reference: MotionReference) -> tuple[str, ...]:
    """Return the free coordinates of the root."""
    return tuple(name for name in reference.names if name in root_coordinates(reference.model))


def _moved_loads(loads: Loads | None, start: float, end: float) -> Loads | None:
    """Return the loads of a part of the recording at times that begin at zero."""
    if loads is None:
        return None
    kept = (loads.time >= start - LOAD_MARGIN) & (loads.time <= end + LOAD_MARGIN)
    if kept.sum() < MIN_FRAMES:
        return None
    return replace(
        loads, time=loads.time[kept] - start, force=loads.force[kept], point=loads.point[kept],
        moment=loads.moment[kept], computed=None if loads.computed is None else loads.computed[kept],
    )  # fmt: skip
