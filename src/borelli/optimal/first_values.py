"""Checks of the first values before a solver starts, and random variations of them for several starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError
from borelli.optimal.problem import Problem, bounds_of
from borelli.optimal.transcription.guess import Guess, PhaseGuess, Samples
from borelli.optimal.transcription.nlp import Nlp

Array = NDArray[np.float64]
WAVES = 3
"""Half sine waves in a random variation of a variable over a phase."""
VARIATION_POINTS = 41
"""Points at which a varied guess is stated."""


class FirstValuesError(SettingsError):
    """Cost or constraint that cannot be evaluated at the first values: correct the expression or the guess."""


def check_first_values(nlp: Nlp, w: Array) -> None:
    """Raise FirstValuesError naming the first cost or constraint that is not finite, or has no finite derivative."""
    costs = np.array(nlp.costs(w)).ravel()
    bad = np.flatnonzero(~np.isfinite(costs))
    what, remedy = "NaN or infinite", "Correct the expression, or the guess and the bounds of the variables in it."
    if len(bad):
        raise FirstValuesError(f"Cost {nlp.cost_names[bad[0]]!r} is {what} at the first values. {remedy}")
    at = nlp.derivatives(w)
    bad = np.flatnonzero(~np.isfinite(at.constraints))
    if len(bad):
        raise FirstValuesError(f"{nlp.describe_row(int(bad[0]))} is {what} at the first values. {remedy}")
    bad = np.flatnonzero(~np.isfinite(at.gradient))
    if len(bad):
        raise FirstValuesError(
            f"The derivative of the cost by {nlp.describe_unknown(int(bad[0]))} is {what} at the first values. {remedy}"
        )
    coordinates = at.jacobian.tocoo()
    bad = np.flatnonzero(~np.isfinite(coordinates.data))
    if len(bad):
        row, column = int(coordinates.row[bad[0]]), int(coordinates.col[bad[0]])
        raise FirstValuesError(
            f"{nlp.describe_row(row)}: The derivative by {nlp.describe_unknown(column)} is {what} at the first values. "
            f"{remedy}"
        )


def vary_guess(problem: Problem, guess: Guess, start: int, seed: int, spread: float) -> Guess:
    """Return the guess of one of several starts.

    Args:
        problem: The problem.
        guess: First values.
        start: Number of the start.
        seed: Of the random numbers; start and seed determine the result.
        spread: Standard deviation of the variations, in typical sizes of variables.
    """
    random = np.random.default_rng([seed, start])
    phases = {}
    for phase in problem.phases:
        part = guess.phases[phase.name]
        system = phase.system
        fractions = np.linspace(0.0, 1.0, VARIATION_POINTS)
        waves = np.sin(np.pi * np.outer(np.arange(1, WAVES + 1), fractions))
        samples = {}
        for variable in (*system.states, *system.controls, *system.algebraics):
            change = spread * variable.size * random.standard_normal(WAVES) @ waves
            lower, upper = phase.bounds_of(variable)
            values = np.clip(part.samples[variable.name].at(fractions) + change, lower, upper)
            samples[variable.name] = Samples(fractions, values)
        lower, upper = bounds_of(phase.duration, "duration")
        duration = float(np.clip(part.duration * np.exp(spread * random.standard_normal()), lower, upper))
        phases[phase.name] = PhaseGuess(duration, samples)
    return Guess(phases, guess.parameters)
