"""What-if: a recorded motion with a changed person, solved from the tracked motion of the person as recorded.

Both problems have the same cost, effort and tracking weighed against each other, so differences are due to the change.
Recorded ground reaction forces act on both; those of a heavier person grow with the weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.muscle_forces import MuscleForces
from borelli.errors import SettingsError
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.optimal.certificate.certify import CertificateLimits
from borelli.optimal.nlp_solvers.solver_result import Iterate
from borelli.optimal.solution import Solution
from borelli.optimal.solver import solve
from borelli.optimal.symbolic_dynamics.tree_system import Forces
from borelli.optimal.symbolic_dynamics.vectors import identifier
from borelli.optimal.tracking.changes import Change, ChangedPerson, apply_changes, parse_change
from borelli.optimal.tracking.reference import MotionReference, make_reference
from borelli.optimal.tracking.track import INTERVAL, REFINEMENTS, TOLERANCE, WINDOW, check_interval
from borelli.optimal.tracking.tracked_motion import TrackedMotion
from borelli.optimal.tracking.tracking_problem import Actuation, TrackingWeights, make_tracking_problem
from borelli.view.plots import plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

WEIGHTS = TrackingWeights(tracking=100.0, speed=1.0, effort=1.0)
"""Of what-if: 3 degrees at ten joints cost as much as an effort of 3, that of walking, so the motion may change."""

MAX_COMPARED = 10
"""Figures that the summary of a result compares."""


@dataclass(frozen=True)
class WhatIf:
    """Motion of a person as recorded, and with changes."""

    original: TrackedMotion
    changed: TrackedMotion
    changes: tuple[Change, ...]

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        compared = list(self.compare().items())[:MAX_COMPARED]
        rows = [
            ("model", self.original.reference.model.name), ("changes", ", ".join(map(str, self.changes))),
            ("original", self.original.solution.certificate.verdict),
            ("changed", self.changed.solution.certificate.verdict),
            *((name, f"{before:.4g}, changed {after:.4g}") for name, (before, after) in compared),
        ]  # fmt: skip
        return Summary("WhatIf", rows)

    @property
    def solved(self) -> bool:
        """Whether both solutions passed every check."""
        return self.original.solved and self.changed.solved

    def compare(self) -> dict[str, tuple[float, float]]:
        """Return figures of the original and of the changed motion by name."""
        names = ("objective", "rms_angle_error_deg", "max_residual_n", "max_reserve_nm", "max_activation")
        before, after = self.original.summary(), self.changed.summary()
        result = {n: (before[n], after[n]) for n in names if before.get(n) is not None and after.get(n) is not None}
        for cost in self.original.solution.costs:
            key = f"cost_{cost.rpartition(' ')[2]}"
            result[key] = (self.original.solution.costs[cost], self.changed.solution.costs[cost])
        if self.original.reference.activations is not None:
            for m in self.original.reference.model.muscles:
                key = f"{identifier(m.name)}_activation"
                result[f"mean_{key}"] = (_mean(self.original.solution, key), _mean(self.changed.solution, key))
        return result

    def dataset(self) -> Dataset:
        """Return both motions at the times of the reference: coordinates, and activations with muscles."""
        import xarray

        reference, parts = self.original.reference, (self.original, self.changed)
        time = reference.time
        values = np.stack([part.coordinates(time) for part in parts])
        units = {c.name: "rad" if c.rotational else "m" for c in reference.model.coordinates}
        data: dict[str, Any] = {"coordinate_value": (("person", "time", "coordinate"), values, {"units": "rad or m"})}
        coords: dict[str, Any] = {
            "person": ["original", "changed"], "time": ("time", time + reference.start, {"units": "s"}),
            "coordinate": list(reference.names),
            "coordinate_units": ("coordinate", [units[n] for n in reference.names]),
        }  # fmt: skip
        activations = [table for part in parts if (table := part.activations(time)) is not None]
        if activations:
            data["muscle_activation"] = (("person", "time", "muscle"), np.stack(activations), {"units": "1"})
            coords["muscle"] = [m.name for m in reference.model.muscles]
        attrs = {"changes": ", ".join(map(str, self.changes)), "solved": int(self.solved)}
        return xarray.Dataset(data, coords, attrs)

    @check_arguments
    def plot(self, path: str | PathLike[str] | None = None, *, overwrite: bool = False) -> Figure:
        """Draw coordinates and activations of both; write the figure if a path is given."""
        return plot(self, path, overwrite=overwrite)


def _mean(solution: Solution, name: str) -> float:
    at, first = np.unique(solution.dataset["time"].values, return_index=True)
    return float(np.trapezoid(solution.value(name)[first], at) / (at[-1] - at[0]))


def what_if(
    source: Torques | MuscleForces,
    changes: Sequence[str | Change],
    *,
    tendon: str | None = "rigid",
    start: float = -inf,
    end: float = inf,
    interval: float = INTERVAL,
    weights: TrackingWeights = WEIGHTS,
    actuation: Actuation | None = None,
    order: int = 3,
    refine: int = REFINEMENTS,
    tolerance: float = TOLERANCE,
    time_limit: float = 600.0,
    threads: int = 1,
    progress: bool | Callable[[Iterate], None] = False,
    limits: CertificateLimits | None = None,
) -> WhatIf:
    """Solve a recorded motion for the person as recorded, and for the person with changes.

    Args:
        source: Torques of inverse dynamics, or muscle forces.
        changes: Such as "soleus 50%", "torso 20kg" or "ankle_angle 60Nm/rad"; see `parse_change`.
        tendon: Tendons of the model's muscles, "rigid" or "elastic"; None: joint torques only.
        start: First time [s]. Default: that of the longest part with known ground reaction force.
        end: Last time [s].
        interval: Time between control nodes [s].
        weights: Of the cost. Default: a motion may change where that saves effort.
        actuation: Sizes of torques.
        order: Points per element of Radau collocation.
        refine: Rounds of refinement at most.
        tolerance: Of the solver.
        time_limit: Wall time [s] of each of the two.
        threads: Threads that evaluate elements.
        progress: Show iterations in the terminal, or call a function with each.
        limits: Limits of the certificate.

    Returns:
        Both solutions, to be compared.

    Raises:
        SettingsError: A change has another form, or names something that the model does not have.
    """
    check_interval(interval)
    if not changes:
        raise SettingsError('changes: There are none. Give at least one, such as "soleus 50%".')
    stated = tuple(parse_change(one) if isinstance(one, str) else one for one in changes)
    model = (source.torques if isinstance(source, MuscleForces) else source).motion.model
    person = apply_changes(model, stated)
    driven = tendon if model.muscles else None
    reference = make_reference(source, start=start, end=end, muscles=driven is not None)
    options: dict[str, Any] = {
        "tendon": driven, "weights": weights, "actuation": actuation or Actuation(), "interval": interval,
    }  # fmt: skip
    solver: dict[str, Any] = {
        "order": order, "tolerance": tolerance, "time_limit": time_limit, "threads": threads, "refine": refine,
        "progress": progress, "limits": limits or CertificateLimits(window=WINDOW),
    }  # fmt: skip
    first = make_tracking_problem(reference, name="original", **options)
    original = TrackedMotion(solve(first.problem, **solver), reference, first.sizes)
    moved = changed_reference(reference, person)
    second = make_tracking_problem(moved, forces=spring_forces(person), name="changed", **options)
    solution = solve(second.problem, warm_start=original.solution, **solver)
    return WhatIf(original, TrackedMotion(solution, moved, second.sizes), stated)


def changed_reference(reference: MotionReference, person: ChangedPerson) -> MotionReference:
    """Return the reference of a changed person: the same motion, with forces that grow with the weight."""
    loads = reference.loads
    if loads is not None:
        loads = replace(loads, force=person.mass_ratio * loads.force, moment=person.mass_ratio * loads.moment)
    return replace(reference, model=person.model, loads=loads)


def spring_forces(person: ChangedPerson) -> Forces | None:
    """Return the generalized forces of springs about zero; None without springs."""
    if not person.springs:
        return None
    return lambda s: {n: -k * s[identifier(n)] for n, k in person.springs.items()}
