"""Sizes of equations and path constraints, from their derivatives at the first values of the unknowns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.optimal.casadi_import import ca
from borelli.optimal.transcription.guess import Guess
from borelli.optimal.transcription.point_functions import Point, PointFunctions

Array = NDArray[np.float64]
SAMPLES = 5
"""Instants of the guess at which derivatives are evaluated."""


def scale_rows(functions: PointFunctions, guess: Guess) -> PointFunctions:
    """Return the functions with a residual whose rows change by about 1 when a variable changes by its typical size."""
    scale = row_sizes(functions, functions.residual, guess)
    arguments = [functions.symbol.sym(name, functions.residual.numel_in(i)) for i, name in enumerate(Point._fields)]
    scaled = functions.residual(*arguments) / ca.DM(scale)
    return replace(functions, residual=ca.Function("residual", arguments, [scaled]))


def row_sizes(functions: PointFunctions, function: Any, guess: Guess) -> Array:
    """Return the largest change of each output of `function` by a typical change of one variable; 1 where it is 0."""
    system = functions.phase.system
    size_of = {"x": system.states, "xdot": system.states, "z": system.algebraics, "u": system.controls}
    sizes = [np.array([v.size for v in size_of[name]]) for name in ("x", "xdot", "z", "u")]
    sizes[1] = sizes[1] / max(guess.phases[functions.phase.name].duration, 1e-3)
    arguments = [functions.symbol.sym(name, function.numel_in(i)) for i, name in enumerate(Point._fields)]
    jacobian = ca.Function("jacobian", arguments, [ca.jacobian(function(*arguments), ca.vertcat(*arguments[1:5]))])
    largest = np.zeros(function.numel_out(0))
    for fraction in np.linspace(0.0, 1.0, SAMPLES):
        values = np.abs(np.array(jacobian(*guess_point(functions, guess, fraction)))) * np.concatenate(sizes)
        largest = np.fmax(largest, np.where(np.isfinite(values), values, 0.0).max(axis=1, initial=0.0))
    return np.where(largest > 0.0, largest, 1.0)


def guess_point(functions: PointFunctions, guess: Guess, fraction: float) -> Point:
    """Return the guess at one instant."""
    system, part = functions.phase.system, guess.phases[functions.phase.name]

    def values(variables: Any) -> list[float]:
        return [float(part.samples[v.name].at(fraction)) for v in variables]

    slopes = [float(part.samples[v.name].slope(fraction)) / max(part.duration, 1e-3) for v in system.states]
    x, z, u = values(system.states), values(system.algebraics), values(system.controls)
    t = fraction * part.duration
    return Point(t, x, slopes, z, u, [0.0] * len(u), list(guess.parameters.values()), functions.signals(t))
