"""Meshes of a problem: other numbers of nodes and elements, and refinement of single intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from borelli.optimal.certificate.certificate import Certificate
from borelli.optimal.certificate.resimulation import Resimulation
from borelli.optimal.problem import Problem
from borelli.optimal.transcription.trajectory import Trajectory

Level = tuple[int, int] | Mapping[str, tuple[int, int]]
"""Mesh: nodes and elements per interval of all phases, or by phase."""

LARGE_DEFECT = 0.1
"""Fraction of the largest one-step defect above which intervals are refined when only the long simulation fails."""


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


def inaccurate_intervals(
    trajectories: Sequence[Trajectory], resimulations: Sequence[Resimulation], certificate: Certificate
) -> dict[str, list[int]]:
    """Return by phase the intervals between nodes whose one-step defects are too large; empty if none are."""
    sizes = [np.array([v.size for v in part.phase.system.states]) for part in trajectories]
    defects = [np.abs(again.defects / size).max(axis=1) for again, size in zip(resimulations, sizes, strict=True)]
    step, whole = certificate.check("one-step defect"), certificate.check("re-simulation")
    if step.passed and whole.passed:
        return {}
    limit = step.limit if not step.passed else LARGE_DEFECT * step.value
    found = {}
    for part, values in zip(trajectories, defects, strict=True):
        large = ~(values <= limit)
        if large.any():
            found[part.phase.name] = sorted({int(i) for i in part.mesh.interval[large]})
    return found
