"""Conditions of a problem as constraints: start, end, periodicity, path, links, and relations between phases."""

from __future__ import annotations

from typing import Any

import numpy as np

from borelli.optimal.casadi_import import ca
from borelli.optimal.namespace import Namespace
from borelli.optimal.problem import Constraint, Phase, Problem, bounds_of
from borelli.optimal.system import names_of
from borelli.optimal.transcription.guess import Guess
from borelli.optimal.transcription.nlp import Rows
from borelli.optimal.transcription.phase_view import PhaseView
from borelli.optimal.transcription.point_functions import PointFunctions, evaluate
from borelli.optimal.transcription.row_scales import row_sizes


def add_phase_conditions(phase: Phase, view: PhaseView, rows: Rows) -> None:
    """Add conditions at start and end that do not bind unknowns directly, and periodicity."""
    sizes = {v.name: v.size for v in (*phase.system.states, *phase.system.algebraics)}
    states, controls = names_of(phase.system.states), names_of(phase.system.controls)
    direct = {"start": (*states, *controls), "end": controls}
    for moment, conditions in (("start", phase.start), ("end", phase.end)):
        for name, value in conditions.items():
            if name not in direct[moment]:
                lower, upper = bounds_of(value, name)
                namespace = view.start if moment == "start" else view.end
                where = f"Phase {phase.name!r}, {moment}"
                rows.add(where, [name], namespace[name], lower, upper, sizes.get(name, 1.0))
    for end, start in phase.periodic_pairs.items():
        difference = view.end[end] - view.start[start]
        rows.add(f"Phase {phase.name!r}, periodic", [end], difference, 0.0, 0.0, sizes[end])


def add_path(functions: PointFunctions, reference: Guess, rows: Rows, values: Any) -> None:
    """Add the path constraints at all points of all elements."""
    if not functions.path_names:
        return
    phase, lower, upper = functions.phase, [], []
    position = 0
    for constraint in phase.path:
        while position < len(functions.path_names) and _belongs(functions.path_names[position], constraint):
            lower.append(constraint.lower)
            upper.append(constraint.upper)
            position += 1
    scale = row_sizes(functions, functions.path, reference)
    rows.add(f"Phase {phase.name!r}, path", functions.path_names, values, lower, upper, scale, "point")


def _belongs(name: str, constraint: Constraint) -> bool:
    return name == constraint.name or name.startswith(f"{constraint.name}[")


def add_links(problem: Problem, views: dict[str, PhaseView], rows: Rows) -> None:
    """Add continuity of states and further conditions between phases."""
    for link in problem.all_links:
        end, start = views[link.before].end, views[link.after].start
        where = f"Link of {link.before!r} and {link.after!r}"
        sizes = {v.name: v.size for v in problem.phase(link.after).system.states}
        for name in problem.continuous_states(link):
            rows.add(where, [name], end[name] - start[name], 0.0, 0.0, sizes[name])
        for constraint in link.conditions:
            add_constraint(rows, where, constraint, end, start)


def add_constraint(rows: Rows, where: str, constraint: Constraint, *namespaces: Namespace) -> None:
    """Add a constraint on a function of namespaces."""
    value = ca.MX(evaluate(constraint.expression, f"{where}, constraint {constraint.name!r}", *namespaces))
    count = value.numel()
    names = [constraint.name] if count == 1 else [f"{constraint.name}[{i}]" for i in range(count)]
    finite = [abs(b) for b in (constraint.lower, constraint.upper) if np.isfinite(b) and b != 0.0]
    rows.add(where, names, value, constraint.lower, constraint.upper, max(finite, default=1.0))
