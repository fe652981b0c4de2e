"""Predicted walking: from a rough guess by torques to muscles, and from coarse to fine meshes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.analysis.motion import Motion, make_motion
from borelli.errors import SettingsError
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import Summary, main_series, summary_html, summary_repr
from borelli.model.model import Model
from borelli.muscles.hill import make_muscle_arrays
from borelli.muscles.metabolics import metabolic_power
from borelli.numerics.vectors import Array
from borelli.optimal.certificate.certify import CertificateLimits
from borelli.optimal.nlp_solvers.solver_result import Iterate
from borelli.optimal.solution import Solution
from borelli.optimal.solver import solve
from borelli.optimal.symbolic_dynamics.force_curves import with_de_groote_muscles
from borelli.optimal.symbolic_dynamics.vectors import identifier
from borelli.optimal.walking.walking_problem import (
    WalkingModel,
    foot_contacts,
    mirrored,
    scissor_guess,
    walking_model,
    walking_problem,
    walking_system,
)
from borelli.view.plots import plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STIFFNESS, SMOOTHING = 1e5, 4e-3
"""[N/m^1.5] and [m] of the contact: soft, so that coarse meshes resolve it."""
COARSE_NODES = 26
TOLERANCE = 1e-6
MAX_ITERATIONS = 1000
FIRST_ACTIVATION = 0.1
DEGREES = 180.0 / np.pi
RATE = 100.0
"""[Hz] of motions made from predictions."""


@dataclass(frozen=True)
class PredictedWalk:
    """Step of a model with least effort."""

    solution: Solution
    walker: WalkingModel
    speed: float
    """[m/s]"""

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        rows = [
            ("model", self.walker.model.name), ("speed", f"{self.speed:.4g} m/s"),
            ("step time", f"{self.step_time:.4g} s"), ("verdict", self.solution.certificate.verdict),
            ("objective", f"{self.solution.objective:.6g}"), ("iterations", self.solution.iterations),
        ]  # fmt: skip
        motion = self.motion().data
        angles = motion.isel(coordinate=[c.rotational for c in self.walker.model.coordinates])
        series = main_series(angles, "coordinate_value", scale=DEGREES)
        return Summary("PredictedWalk", rows, motion["time"].values.tolist(), series, "Angle [deg]")

    @property
    def solved(self) -> bool:
        """Whether the solution passed every check."""
        return self.solution.solved

    @property
    def step_time(self) -> float:
        """Duration of a step [s]."""
        return self.solution.duration

    @check_arguments
    def joint_range(self, name: str) -> tuple[float, float]:
        """Return the least and largest angle [rad] of a joint over a stride; `name` of either side."""
        values = np.concatenate([self.solution.value(identifier(n)) for n in {name, mirrored(name)}])
        return float(values.min()), float(values.max())

    @check_arguments
    def metabolic_cost(self, model: str = "umberger2010") -> float:
        """Return the gross metabolic energy for the distance [J/kg/m]; the model must have muscles."""
        muscles = [identifier(m.name) for m in self.walker.model.muscles]
        if f"{muscles[0] if muscles else ''}_activation" not in self.solution.dataset["state"].values:
            raise SettingsError("metabolic cost: The walk was predicted without muscles. Pass tendon='rigid'.")

        def table(ending: str) -> Array:
            return np.column_stack([self.solution.value(m + ending) for m in muscles])

        arrays = make_muscle_arrays(self.walker.model)
        power = metabolic_power(
            arrays, model, excitation=table("_excitation"), activation=table("_activation"),
            fiber_length=table("_fiber_length"), fiber_velocity=table("_fiber_velocity"),
            active_force=np.maximum(table("_force"), 0.0), body_mass=self.walker.model.mass,
        )  # fmt: skip
        time = self.solution.dataset["time"].values
        mean = float(np.trapezoid(power.whole_body, time)) / self.step_time
        return mean / (self.walker.model.mass * self.speed)

    @check_arguments
    def motion(self, strides: int = 1) -> Motion:
        """Return whole strides as a motion: the step, and the same with sides exchanged."""
        coordinates, duration = self.walker.model.coordinates, self.step_time
        time = np.arange(0.0, 2 * strides * duration, 1.0 / RATE)
        table = np.tile([c.default for c in coordinates], (len(time), 1))
        states = set(self.solution.dataset["state"].values.tolist())
        for column, name in enumerate(c.name for c in coordinates):
            if identifier(name) in states:
                table[:, column] = self._over_steps(identifier(name), time)
            if name == self.walker.forward:
                table[:, column] += time // duration * self.speed * duration
        return make_motion(self.walker.model, table, time, RATE, settings={"method": "optimal control"})

    def activations(self, time: Array) -> Array | None:
        """Return the activations (times, muscles) at times [s] from the start of a step; None without muscles."""
        names = [f"{identifier(muscle.name)}_activation" for muscle in self.walker.model.muscles]
        if not set(names) <= set(self.solution.dataset["state"].values.tolist()) or not names:
            return None
        return np.column_stack([self._over_steps(name, time) for name in names])

    def plot(self, path: str | PathLike[str] | None = None, *, overwrite: bool = False) -> Figure:
        """Draw coordinates and activations of a stride; write the figure if a path is given."""
        return plot(self, path, overwrite=overwrite)

    def _over_steps(self, name: str, time: Array) -> Array:
        """Return a variable at times [s]; in every second step, that of the other side."""
        at, first = np.unique(self.solution.dataset["time"].values, return_index=True)
        index, local = np.divmod(time, self.step_time)
        own, other = (np.interp(local, at, self.solution.value(one)[first]) for one in (name, mirrored(name)))
        return np.where(index % 2 == 0, own, other)


def predict_walk(
    model: Model,
    *,
    speed: float = 1.2,
    tendon: str | None = "rigid",
    nodes: int = 51,
    refine: int = 2,
    warm_start: PredictedWalk | None = None,
    tolerance: float = TOLERANCE,
    time_limit: float = 600.0,
    progress: bool | Callable[[Iterate], None] = False,
    limits: CertificateLimits | None = None,
) -> PredictedWalk:
    """Predict the step of a planar model that walks with least effort for its distance.

    Args:
        model: Planar model with hips, knees and ankles, such as gait10dof18musc.
        speed: Average speed [m/s].
        tendon: "rigid" or "elastic" tendons; None: joint torques only.
        nodes: Control nodes of a step.
        refine: Rounds of refinement at most.
        warm_start: Walk to start from, such as that of the same person before a change. Default: a rough guess.
        tolerance: Of the solver.
        time_limit: Wall time [s] of each of the meshes.
        progress: Show iterations in the terminal, or call a function with each.
        limits: Limits of the certificate. Default: re-simulation of quarters of a step.

    Returns:
        The solution of the step, with its certificate.

    Raises:
        ModelError: The model is not planar, or has no feet.
    """
    if not 0.0 < speed < 5.0:
        raise SettingsError(f"speed: {speed:g} m/s. Give a walking speed, such as 1.2 m/s.")
    if tendon is not None:
        model = with_de_groote_muscles(model)
    walker = walking_model(model)
    contacts = foot_contacts(model, STIFFNESS, SMOOTHING)
    options: dict[str, Any] = {
        "tolerance": tolerance, "time_limit": time_limit, "progress": progress, "max_iterations": MAX_ITERATIONS,
    }  # fmt: skip
    checked = limits or CertificateLimits(window=0.15)
    system = walking_system(walker, contacts, tendon)
    if warm_start is None:
        torques = walking_system(walker, contacts, None)
        first = walking_problem(walker, torques, speed=speed, nodes=COARSE_NODES, guess=scissor_guess(walker, speed))
        start = solve(first, order=2, **options)
        guess = {
            v.name: FIRST_ACTIVATION
            for v in (*system.states, *system.controls)
            if v.name.endswith(("_activation", "_excitation", "_tendon_force"))
        }
        if tendon is not None:
            coarse = walking_problem(walker, system, speed=speed, nodes=COARSE_NODES, guess=guess)
            start = solve(coarse, order=2, warm_start=start, **options)
    else:
        start = warm_start.solution
    last = walking_problem(walker, system, speed=speed, nodes=nodes)
    solution = solve(last, order=3, warm_start=start, refine=refine, limits=checked, **options)
    return PredictedWalk(solution, replace(walker), speed)
