"""Meshes of a problem: other numbers of nodes and elements, and refinement of single intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from borelli.optimal.problem import Problem

Level = tuple[int, int] | Mapping[str, tuple[int, int]]
"""Mesh: nodes and elements per interval of all phases, or by phase."""


def with_mesh(problem: Problem, level: Level) -> Problem:
    """Return the problem with other nodes and elements."""
    if isinstance(level, Mapping):
        for name in level:
            problem.phase(name)  # raises if it does not exist
        pairs = [level.get(phase.name) for phase in problem.phases]
    else:
        pairs = [level] * len(problem.phases)
    phases = [
        phase if pair is None else replace(phase, nodes=int(pair[0]), elements=int(pair[1]))
        for phase, pair in zip(problem.phases, pairs, strict=True)
    ]
    return replace(problem, phases=phases)


def with_elements(problem: Problem, elements: Mapping[str, Sequence[int]]) -> Problem:
    """Return the problem with these elements of each interval, by phase; phases with other nodes stay as they are."""
    phases = [
        replace(phase, elements=tuple(elements[phase.name]))
        if len(elements.get(phase.name, ())) == phase.nodes - 1
        else phase
        for phase in problem.phases
    ]
    return replace(problem, phases=phases)


def refine_intervals(problem: Problem, intervals: Mapping[str, Sequence[int]]) -> Problem:
    """Return the problem with twice the elements in these intervals between nodes, by phase."""
    phases = []
    for phase in problem.phases:
        counts = list(phase.element_counts)
        for interval in intervals.get(phase.name, ()):
            counts[interval] *= 2
        phases.append(replace(phase, elements=tuple(counts)))
    return replace(problem, phases=phases)
