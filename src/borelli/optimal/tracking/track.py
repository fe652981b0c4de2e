"""Tracking: the motion and the controls of a model closest to a recording that obey the equations of motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.muscle_forces import MuscleForces
from borelli.errors import SettingsError
from borelli.muscles.fitted_paths import FittedPaths
from borelli.optimal.certificate.certify import CertificateLimits
from borelli.optimal.nlp_solvers.solver_result import Iterate
from borelli.optimal.solver import solve
from borelli.optimal.symbolic_dynamics.contact import SphereContact
from borelli.optimal.symbolic_dynamics.muscle_lengths import PathGate, Ranges
from borelli.optimal.tracking.reference import make_reference
from borelli.optimal.tracking.tracked_motion import TrackedMotion
from borelli.optimal.tracking.tracking_problem import Actuation, TrackingWeights, make_tracking_problem

INTERVAL = 0.02
"""[s] between control nodes, as OpenSim Moco's examples of gait."""
WINDOW = 0.1
"""[s] of re-simulation: bodies on prescribed ground forces have no feedback, and errors double in about 0.1 s."""
REFINEMENTS = 3
"""Rounds of refinement at most."""
TOLERANCE = 1e-7
"""Of the solver: the certificate's limits of optimality are met."""


def track_motion(
    source: Torques | MuscleForces,
    *,
    tendon: str | None = "rigid",
    start: float = -inf,
    end: float = inf,
    interval: float = INTERVAL,
    weights: TrackingWeights | None = None,
    actuation: Actuation | None = None,
    contacts: Sequence[SphereContact] = (),
    ranges: Ranges | None = None,
    paths: FittedPaths | None = None,
    gate: PathGate | None = None,
    order: int = 3,
    refine: int = REFINEMENTS,
    tolerance: float = TOLERANCE,
    time_limit: float = 600.0,
    threads: int = 1,
    progress: bool | Callable[[Iterate], None] = False,
    limits: CertificateLimits | None = None,
) -> TrackedMotion:
    """Track a recorded motion with a model that obeys the equations of motion.

    Args:
        source: Torques of inverse dynamics, or muscle forces, which are the first values.
        tendon: Tendons of the model's muscles, "rigid" or "elastic"; None: joint torques only.
        start: First time [s]. Default: that of the longest part with known ground reaction force.
        end: Last time [s].
        interval: Time between control nodes [s].
        weights: Of the cost.
        actuation: Sizes of torques next to muscles, at joints without muscles, and at the root.
        contacts: Spheres under the feet that touch the ground. Default: the recorded ground reaction forces act.
        ranges: Ranges [rad or m] of coordinates by name. Default: those of the reference with 10 degrees more.
        paths: Polynomial lengths that replace muscle paths. Default: fitted within the ranges.
        gate: Largest errors of fitted paths.
        order: Points per element of Radau collocation.
        refine: Rounds of refinement at most.
        tolerance: Of the solver.
        time_limit: Wall time [s].
        threads: Threads that evaluate elements.
        progress: Show iterations in the terminal, or call a function with each.
        limits: Limits of the certificate. Default: re-simulation in windows of 0.1 s.

    Returns:
        The tracked motion; its solution has the certificate.

    Raises:
        SettingsError: An option is wrong, or no part of the motion has known ground reaction forces.
        ModelError: The model's muscles have no smooth paths within the ranges.

    Examples:
        >>> tracked = track_motion(torques, tendon=None)
        >>> tracked.solution.certificate
    """
    check_interval(interval)
    model = (source.torques if isinstance(source, MuscleForces) else source).motion.model
    driven = tendon if model.muscles else None
    reference = make_reference(source, start=start, end=end, muscles=driven is not None)
    problem = make_tracking_problem(
        reference, tendon=driven, weights=weights or TrackingWeights(), actuation=actuation or Actuation(),
        interval=interval, contacts=contacts, ranges=ranges, paths=paths, gate=gate,
    )  # fmt: skip
    solution = solve(
        problem.problem, order=order, tolerance=tolerance, time_limit=time_limit, threads=threads, refine=refine,
        progress=progress, limits=limits or CertificateLimits(window=WINDOW),
    )  # fmt: skip
    return TrackedMotion(solution, reference, problem.sizes)


def check_interval(interval: Any) -> None:
    """Raise SettingsError unless the time between nodes is positive."""
    if not 0.0 < interval < inf:
        raise SettingsError(f"interval: {interval:g} s. Give a positive time between control nodes, such as 0.02 s.")
