"""Checks of a solution: solver, optimality, one-step defects, re-simulation, and constraints between points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.optimal.casadi_import import ca
from borelli.optimal.certificate.certificate import Certificate, Check
from borelli.optimal.certificate.optimality import ACTIVE, check_optimality
from borelli.optimal.certificate.resimulation import Resimulation, resimulate
from borelli.optimal.nlp_solvers.solver_result import SolverResult
from borelli.optimal.problem import Problem, bounds_of
from borelli.optimal.system import names_of
from borelli.optimal.transcription.nlp import Nlp
from borelli.optimal.transcription.point_functions import PointFunctions, system_parameters
from borelli.optimal.transcription.trajectory import Trajectory

Array = NDArray[np.float64]
REMEDIES = {
    "one-step defect": "Use more elements, or `refine`.",
    "re-simulation": "Use more elements, or state a `window` if the motion is unstable.",
    "path between points": "Use more elements.",
    "stationarity": "Lower `tolerance`, or raise `max_iterations`.",
    "complementarity": "Lower `tolerance`, or raise `max_iterations`.",
    "feasibility": "",
}
"""What to do about each failed check."""


ACCEPTED = ("converged", "no progress", "stopped before the tolerance")
"""Ends of a solver that the checks alone judge: it may stall on rounding errors at the optimum."""


MIN_MISS = 1e-3
"""Typical sizes of a state by which it must miss its goal to be mentioned."""


@dataclass(frozen=True)
class CertificateLimits:
    """Limits of the checks, in typical sizes of the variables."""

    feasibility: float = 1e-6
    """Largest violation of a constraint."""
    optimality: float = 1e-5
    """Largest relative residual of stationarity and complementarity."""
    defect: float = 1e-4
    """Largest one-step defect of an element."""
    resimulation: float = 1e-3
    """Largest difference from the re-simulated trajectory."""
    path: float = 1e-2
    """Largest violation of bounds and path constraints between points, relative to their range."""
    window: float = inf
    """[s] Time after which re-simulation restarts from the solution. Unstable motions, such as walking without
    feedback, amplify errors of 1e-5 to 1e-2 within one step; whole phases of them cannot be re-simulated."""


class Certified(NamedTuple):
    """Certificate and what was compared."""

    certificate: Certificate
    resimulations: tuple[Resimulation, ...]


def certify(nlp: Nlp, result: SolverResult, trajectories: Sequence[Trajectory], limits: CertificateLimits) -> Certified:
    """Check a solution.

    Args:
        nlp: The program.
        result: End of the solver's run.
        trajectories: Phases of the solution.
        limits: Limits of the checks.
    """
    at = nlp.derivatives(result.w)
    optimality = check_optimality(nlp, at, result.w, result.multipliers_w, result.multipliers_g)
    violated = _describe_violation(nlp, optimality.violated, result.w, at.constraints)
    checks = [
        Check("feasibility", optimality.feasibility, limits.feasibility, violated),
        Check("stationarity", optimality.stationarity, limits.optimality, nlp.describe_unknown(optimality.unknown)),
        Check("complementarity", optimality.complementarity, limits.optimality),
    ]
    resimulations: tuple[Resimulation, ...] = ()
    feasible = checks[0].passed
    if feasible:
        resimulations = tuple(resimulate(nlp.problem, part, limits.window) for part in trajectories)
        checks += [
            _largest("one-step defect", trajectories, [r.defects for r in resimulations], limits.defect),
            _largest("re-simulation", trajectories, [r.errors for r in resimulations], limits.resimulation),
            _path_check(nlp, trajectories, resimulations, limits.path),
        ]
    reasons = _reasons(result.status, checks)
    if not feasible and (missed := _missed_goal(nlp.problem, trajectories)):
        reasons = (*reasons, missed)
    return Certified(
        Certificate(result.status, tuple(checks), active_bounds(nlp, result.w, at.constraints), reasons), resimulations
    )


def _reasons(status: str, checks: Sequence[Check]) -> tuple[str, ...]:
    """Return why a solution is not solved."""
    feasibility = checks[0]
    if not feasibility.passed:
        text = f"No feasible trajectory was found; most violated: {feasibility.where}."
        return (text,) if status in ("converged", "infeasible") else (f"The solver ended with: {status}.", text)
    reasons = [] if status in ACCEPTED else [f"The solver ended with: {status}."]
    reasons += [f"{check}. {REMEDIES[check.name]}".rstrip() for check in checks if not check.passed]
    return tuple(reasons)


def _missed_goal(problem: Problem, trajectories: Sequence[Trajectory]) -> str:
    """Return which state at the end of a phase the equations of motion miss most with the controls found; "" if none.

    Solvers spread the violation of infeasible problems over all equations, which hides what cannot be reached.
    """
    worst, text = MIN_MISS, ""
    for part in trajectories:
        again = resimulate(problem, part, inf)
        end = part.x[-1] + again.errors[-1]
        for i, variable in enumerate(part.phase.system.states):
            if variable.name not in part.phase.end or not np.isfinite(end[i]):
                continue
            lower, upper = bounds_of(part.phase.end[variable.name], variable.name)
            miss = max(lower - end[i], end[i] - upper) / variable.size
            if miss > worst:
                worst = miss
                required = f"{lower:.6g}" if lower == upper else f"{lower:.6g} to {upper:.6g}"
                found = f"{variable.name} ends phase {part.phase.name!r} at {end[i]:.4g} {variable.unit}"
                text = f"With these controls {found} (required {required})."
    return text


def _describe_violation(nlp: Nlp, row: int, w: Array, g: Array) -> str:
    """Return the most violated constraint with found and required values."""
    if row < len(g):
        scale = nlp.row_scale(row)
        found, lower, upper = g[row] * scale, nlp.lower_g[row] * scale, nlp.upper_g[row] * scale
        where = nlp.describe_row(row)
    else:
        index = row - len(g)
        scale = nlp.unknown_scale(index)
        found, lower, upper = w[index] * scale, nlp.lower_w[index] * scale, nlp.upper_w[index] * scale
        where = nlp.describe_unknown(index)
    required = f"{lower:.6g}" if lower == upper else f"{lower:.6g} to {upper:.6g}"
    return f"{where} is {found:.6g}, required {required}"


def _largest(name: str, trajectories: Sequence[Trajectory], tables: Sequence[Array], limit: float) -> Check:
    """Return the check of the largest difference, in typical sizes."""
    worst, where = -1.0, ""
    for part, table in zip(trajectories, tables, strict=True):
        scaled = np.nan_to_num(np.abs(table) / [v.size for v in part.phase.system.states], nan=inf, posinf=inf)
        element, state = np.unravel_index(int(scaled.argmax()), scaled.shape)
        if scaled[element, state] > worst:
            variable = part.phase.system.states[state]
            worst = float(scaled[element, state])
            where = (
                f"phase {part.phase.name!r}, element {element + 1} of {len(table)}, {variable.name}: "
                f"{abs(table[element, state]):.3g} {variable.unit}"
            )
    return Check(name, worst, limit, where)


def _path_check(
    nlp: Nlp, trajectories: Sequence[Trajectory], resimulations: Sequence[Resimulation], limit: float
) -> Check:
    """Return the check of bounds of states and path constraints within the elements."""
    worst, where = 0.0, ""
    for part, nlp_phase, again in zip(trajectories, nlp.phases, resimulations, strict=True):
        names, values, lower, upper, sizes = _bounded_values(nlp.problem, nlp_phase.functions, part, again)
        if not names:
            continue
        violation = np.maximum(0.0, np.maximum(lower - values, values - upper)) / sizes
        violation = np.nan_to_num(violation, nan=inf, posinf=inf)
        point, column = np.unravel_index(int(violation.argmax()), violation.shape)
        if violation[point, column] > worst:
            worst = float(violation[point, column])
            time = np.concatenate([t for t, _, _ in again.inner])[point]
            found = values[point, column]
            where = f"phase {part.phase.name!r}, {names[column]} is {found:.4g} at {time:.4g} s"
    return Check("path between points", worst, limit, where)


def _bounded_values(
    problem: Problem, functions: PointFunctions, part: Trajectory, again: Resimulation
) -> tuple[list[str], Array, Array, Array, Array]:
    """Return names, values (points, names), bounds and sizes of all bounded quantities within the elements."""
    phase = part.phase
    times, states, controls = (np.concatenate(columns) for columns in zip(*again.inner, strict=True))
    names = list(names_of(phase.system.states))
    bounds = [phase.bounds_of(v) for v in phase.system.states]
    values, sizes = states, [v.size for v in phase.system.states]
    if functions.path_names:
        path = path_values(problem, functions, part, times, states, controls)
        values = np.hstack([values, path])
        names += functions.path_names
        for name, column in zip(functions.path_names, path.T, strict=True):
            constraint = next(c for c in phase.path if name == c.name or name.startswith(f"{c.name}["))
            bounds.append((constraint.lower, constraint.upper))
            finite = column[np.isfinite(column)]
            edges = [abs(b) for b in bounds[-1] if np.isfinite(b)]
            sizes.append(max(float(np.ptp(finite)) if len(finite) else 0.0, *edges, 1e-12))
    keep = [i for i, pair in enumerate(bounds) if np.isfinite(pair).any()]
    table = np.array(bounds).reshape(-1, 2)[keep]
    return [names[i] for i in keep], values[:, keep], table[:, 0], table[:, 1], np.array(sizes)[keep]


def path_values(
    problem: Problem, functions: PointFunctions, part: Trajectory, times: Array, states: Array, controls: Array
) -> Array:
    """Return the path constraints (points, names) along a simulated trajectory."""
    system = part.phase.system
    chosen = system_parameters(problem, part.phase, ca.DM(part.parameters))
    mesh = part.mesh
    count = len(times) // mesh.count
    slopes = np.zeros((mesh.count, controls.shape[1]))
    if mesh.linear:
        step = part.duration / (mesh.nodes - 1)
        slopes = (np.diff(part.nodes, axis=1).T / step)[mesh.interval]
    rates: Any = np.repeat(slopes, count, axis=0)
    values = []
    for t, x, u, udot in zip(times, states, controls, rates, strict=True):
        xdot, z = system.explicit(t, x, u, chosen)
        values.append(np.array(functions.path(t, x, xdot, z, u, udot, part.parameters, functions.signals(t))).ravel())
    return np.array(values)


def active_bounds(nlp: Nlp, w: Array, g: Array) -> dict[str, float]:
    """Return the fraction of points at which each bound or path constraint is active; fixed unknowns are left out."""
    found: dict[str, float] = {}
    groups: list[tuple[Any, Array, Array, Array]] = [
        *((block, w, nlp.lower_w, nlp.upper_w) for block in nlp.blocks),
        *((block, g, nlp.lower_g, nlp.upper_g) for block in nlp.row_blocks),
    ]
    for block, values, lower, upper in groups:
        count = len(block.names)
        columns = block.shape[1] if hasattr(block, "shape") else block.columns
        part = slice(block.offset, block.offset + count * columns)
        tables = [a[part].reshape(columns, count) for a in (values, lower, upper)]
        free = tables[1] < tables[2]
        for side, distance in (("lower", tables[0] - tables[1]), ("upper", tables[2] - tables[0])):
            active = (distance < ACTIVE) & free
            for name in dict.fromkeys(block.names):
                chosen = [i for i, other in enumerate(block.names) if other == name]
                fraction = float(active[:, chosen].mean()) if columns else 0.0
                if fraction > 0.0:
                    found[f"{block.where}: {side} bound of {name}"] = fraction
    return found
