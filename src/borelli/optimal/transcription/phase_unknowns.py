"""Unknowns of one phase: control nodes, the state at the start, and the unknowns of its elements."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from borelli.optimal.problem import Phase, bounds_of
from borelli.optimal.system import names_of
from borelli.optimal.transcription.guess import PhaseGuess
from borelli.optimal.transcription.mesh import Mesh
from borelli.optimal.transcription.nlp import Block, Unknowns
from borelli.optimal.transcription.scheme import Scheme

MIN_TIME_SCALE = 1e-3
"""[s] Smallest typical duration of a phase."""


def add_duration(phase: Phase, guess: PhaseGuess, scale: float, unknowns: Unknowns) -> tuple[Any, Block]:
    """Add the duration of a phase; `scale` is its typical size [s]."""
    where = f"Phase {phase.name!r}"
    lower, upper = bounds_of(phase.duration, f"{where}, duration")
    return unknowns.add(where, ["duration"], scale, lower, upper, guess.duration)


def add_controls(phase: Phase, mesh: Mesh, guess: PhaseGuess, unknowns: Unknowns) -> tuple[Any, Block]:
    """Add the values of the controls at nodes, or of the intervals between them; start and end bind the outermost."""
    controls = phase.system.controls
    names = names_of(controls)
    bounds = np.array([phase.bounds_of(v) for v in controls]).reshape(len(controls), 2)
    lower, upper = (np.repeat(bounds[:, [k]], mesh.control_columns, axis=1) for k in (0, 1))
    for conditions, column in ((phase.start, 0), (phase.end, -1)):
        for i, name in enumerate(names):
            if name in conditions:
                low, high = bounds_of(conditions[name], name)
                lower[i, column], upper[i, column] = max(low, lower[i, column]), min(high, upper[i, column])
    first = np.array([guess.samples[name].at(mesh.control_fractions) for name in names])
    where = f"Phase {phase.name!r}, controls"
    first = first.reshape(lower.shape)
    unit = "node" if mesh.linear else "interval"
    return unknowns.add(where, names, [v.size for v in controls], lower, upper, first, unit=unit)


def add_start(phase: Phase, guess: PhaseGuess, unknowns: Unknowns) -> tuple[Any, Block]:
    """Add the state at the start of a phase, bounded by the conditions there."""
    states = phase.system.states
    names = names_of(states)
    bounds = np.array([phase.bounds_of(v) for v in states])
    for i, name in enumerate(names):
        if name in phase.start:
            low, high = bounds_of(phase.start[name], name)
            bounds[i] = max(low, bounds[i, 0]), min(high, bounds[i, 1])
    first = np.array([guess.samples[name].at(0.0) for name in names])
    where = f"Phase {phase.name!r}, start"
    sizes = [v.size for v in states]
    return unknowns.add(where, names, sizes, bounds[:, [0]], bounds[:, [1]], first[:, None])


def add_stages(
    phase: Phase, scheme: Scheme, mesh: Mesh, guess: PhaseGuess, time_scale: float, unknowns: Unknowns
) -> tuple[Any, Block]:
    """Add the unknowns of all elements of a phase, one column each."""
    system = phase.system
    names, scale, lower, upper, first = [], [], [], [], []
    widths = np.diff(mesh.edges)
    for row in scheme.rows:
        variable = system.algebraics[row.number] if row.kind == "z" else system.states[row.number]
        fractions = mesh.edges[:-1] + row.fraction * widths
        samples = guess.samples[variable.name]
        if row.kind == "xdot":
            names.append(f"rate of {variable.name}")
            scale.append(variable.size / time_scale)
            lower.append(-inf)
            upper.append(inf)
            first.append(samples.slope(fractions) / max(guess.duration, MIN_TIME_SCALE))
            continue
        names.append(variable.name)
        scale.append(variable.size)
        low, high = phase.bounds_of(variable)
        lower.append(low)
        upper.append(high)
        first.append(samples.at(fractions))
    where = f"Phase {phase.name!r}"
    return unknowns.add(where, names, scale, np.array(lower)[:, None], np.array(upper)[:, None], np.array(first))
