"""First values of the unknowns: what the user gives, a former solution, or plain defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError
from borelli.optimal.problem import Bounds, Phase, Problem, bounds_of
from borelli.optimal.system import Variable

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Samples:
    """Values of a variable over a phase, linear in between."""

    fractions: Array
    values: Array

    def at(self, fractions: Any) -> Array:
        """Return the values at fractions of the duration."""
        return np.interp(np.asarray(fractions, float), self.fractions, self.values)

    def slope(self, fractions: Any) -> Array:
        """Return the derivatives by the fraction of the duration."""
        width = 1e-6  # fraction of the phase; the samples are broken lines
        low = np.clip(np.asarray(fractions, float) - width, 0.0, 1.0 - 2.0 * width)
        return (self.at(low + 2.0 * width) - self.at(low)) / (2.0 * width)


@dataclass(frozen=True)
class PhaseGuess:
    """First values of a phase."""

    duration: float
    samples: Mapping[str, Samples]


@dataclass(frozen=True)
class Guess:
    """First values of a problem."""

    phases: Mapping[str, PhaseGuess]
    parameters: Mapping[str, float]


def default_guess(problem: Problem) -> Guess:
    """Return the guess of a problem from its `guess` fields, start, end and bounds."""
    phases = {phase.name: _phase_guess(phase) for phase in problem.phases}
    parameters = {
        v.name: float(problem.guess.get(v.name, inner_value(v.lower, v.upper))) for v in problem.all_parameters
    }
    return Guess(phases, parameters)


def _phase_guess(phase: Phase) -> PhaseGuess:
    system = phase.system
    samples = {}
    for variable in (*system.states, *system.controls, *system.algebraics):
        if variable.name in phase.guess:
            values = np.atleast_1d(np.asarray(phase.guess[variable.name], float))
            if values.ndim != 1 or not np.isfinite(values).all():
                raise SettingsError(
                    f"Phase {phase.name!r}, guess of {variable.name!r}: Give a finite number or a list of them."
                )
        else:
            values = _default_values(phase, variable)
        samples[variable.name] = Samples(np.linspace(0.0, 1.0, len(values)), values)
    lower, upper = bounds_of(phase.duration, f"Phase {phase.name!r}, duration")
    duration = float(phase.guess.get("duration", 0.5 * (lower + upper)))
    if not lower <= duration <= upper:
        raise SettingsError(
            f"Phase {phase.name!r}, guess: The duration {duration:g} s is outside its bounds ({lower:g}, {upper:g}) s."
        )
    return PhaseGuess(duration, samples)


def _default_values(phase: Phase, variable: Variable) -> Array:
    """Return a line from the start to the end value where they are given, else a value within the bounds."""
    inside = inner_value(*phase.bounds_of(variable))
    given = [_middle(conditions.get(variable.name)) for conditions in (phase.start, phase.end)]
    first = next((value for value in given if value is not None), inside)
    last = next((value for value in reversed(given) if value is not None), inside)
    return np.array([first, last])


def _middle(value: Bounds | None) -> float | None:
    if value is None:
        return None
    lower, upper = bounds_of(value, "bounds")
    return inner_value(lower, upper)


def inner_value(lower: float, upper: float) -> float:
    """Return 0 if it lies between the bounds, else their midpoint, or a value next to the only finite one."""
    if lower < 0.0 < upper or lower == upper == 0.0:
        return 0.0
    if isfinite(lower) and isfinite(upper):
        return 0.5 * (lower + upper)
    return lower if isfinite(lower) else upper
