"""Re-simulation of phases by the classical Runge-Kutta method at 0.1 ms, and poses of solutions for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.model.formats.native import model_to_text
from borelli.model.kinematics import poses
from borelli.model.model import Model
from borelli.numerics.quaternions import quaternion_series
from borelli.optimal.dynamics_runs import runge_kutta_step
from borelli.optimal.solution import Solution
from borelli.optimal.system import System, names_of

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]
STEP = 1e-4
"""[s] (Park et al. 1992, section 8)."""


class PhaseRun(NamedTuple):
    """Phase of a solution, simulated forward from its start under its controls."""

    time: Array
    """[s] from the start of the phase."""
    state: dict[str, Array]
    error: dict[str, float]
    """Largest difference of each state from the solution, at the solution's own points."""
    end: dict[str, float]
    """Outputs at the end."""


def simulate_phase(solution: Solution, system: System, phase: str) -> PhaseRun:
    """Simulate a phase from its start; controls are linear between the points of the solution."""
    data = solution.phase(phase)
    times = data["time"].values - data["time"].values[0]
    names, controls = names_of(system.states), names_of(system.controls)
    own = np.array([solution.value(name, phase) for name in names])
    given = np.array([solution.value(name, phase) for name in controls])
    count = max(1, int(np.ceil(times[-1] / STEP)))
    clock = np.linspace(0.0, times[-1], count + 1)
    u = np.array([np.interp(clock, times, row) for row in given])
    run = runge_kutta_step(system, times[-1] / count).mapaccum(count)
    found = np.array(run(own[:, 0], clock[None, :-1], u[:, :-1], u[:, 1:]))
    states = np.column_stack([own[:, 0], found])
    at_points = np.array([np.interp(times, clock, row) for row in states])
    error = np.abs(at_points - own).max(axis=1)
    outputs = _outputs(system, clock[-1], states[:, -1], u[:, -1])
    return PhaseRun(
        clock, dict(zip(names, states, strict=True)), dict(zip(names, error.tolist(), strict=True)), outputs
    )


def _outputs(system: System, t: float, x: Array, u: Array) -> dict[str, float]:
    rate, _ = system.explicit(t, x, u, [])
    values = system.outputs(t, x, [], u, [], rate)
    return {name: float(value) for name, value in zip(system.output_names, values, strict=True)}


def angle_error(run: PhaseRun) -> float:
    """Return the largest error of an angle [rad] of a jumper's phase."""
    return max(value for name, value in run.error.items() if name.endswith(("_angle", "_flexion", "_pitch")))


def posed_dataset(
    model: Model, time: Array, coordinates: Mapping[str, Array], activation: Mapping[str, Array] | None = None
) -> Dataset:
    """Return a dataset with the poses of a model, for pictures and films; missing coordinates are zero."""
    import xarray

    names = [c.name for c in model.coordinates]
    values = np.column_stack([coordinates.get(name, np.zeros(len(time))) for name in names])
    position, rotation = poses(model, values)
    data: dict[str, Any] = {
        "coordinate_value": (("time", "coordinate"), values),
        "body_position": (("time", "body", "axis"), position),
        "body_orientation": (("time", "body", "quaternion"), quaternion_series(rotation)),
    }
    if activation is not None:
        muscles = [muscle.name for muscle in model.muscles]
        data["muscle_activation"] = (("time", "muscle"), np.column_stack([activation[name] for name in muscles]))
    return xarray.Dataset(data, {"time": time, "coordinate": names}, {"model": model_to_text(model)})
