"""Sensitivity of a solution to the number of control nodes: how much a finer control would gain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from borelli.files.html_repr import Summary, fields_summary, summary_html, summary_repr
from borelli.optimal.problem import Phase, Problem
from borelli.optimal.solution import Solution
from borelli.optimal.solver import solve


class NodeSensitivity(NamedTuple):
    """Comparison of a solution with one that has every interval between nodes halved."""

    nodes: tuple[int, ...]
    """Nodes of each phase of the finer solution."""
    objective: float
    """Of the finer solution."""
    change: float
    """Finer objective minus the coarser one, relative to the coarser one."""
    finer: Solution

    def __repr__(self) -> str:
        return summary_repr(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def _summary(self) -> Summary:
        return fields_summary(self)


def node_sensitivity(problem: Problem, solution: Solution, **settings: Any) -> NodeSensitivity:
    """Solve again with every interval between nodes halved, starting from a solution.

    The finer controls contain the coarser ones, so a converged optimum cannot be worse but for integration errors.

    Args:
        problem: The problem that was solved.
        solution: Its solution.
        settings: Further arguments of `solve`, the same as of the solution.
    """
    finer = replace(problem, phases=[_halve(phase) for phase in problem.phases])
    found = solve(finer, warm_start=solution, **settings)
    size = max(abs(solution.objective), 1e-300)
    nodes = tuple(phase.nodes for phase in finer.phases)
    return NodeSensitivity(nodes, found.objective, (found.objective - solution.objective) / size, found)


def _halve(phase: Phase) -> Phase:
    """Return the phase with twice the intervals between nodes; their elements are shared, at least one each."""
    counts = [max(1, (count + 1) // 2) for count in phase.element_counts for _ in range(2)]
    return replace(phase, nodes=2 * phase.nodes - 1, elements=tuple(counts))
