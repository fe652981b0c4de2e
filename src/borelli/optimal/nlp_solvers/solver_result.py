"""Iterates and results that all solvers have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Iterate(NamedTuple):
    """State of a running solution."""

    iteration: int
    w: Array
    """Scaled unknowns."""
    objective: float
    violation: float
    """Largest scaled violation of a constraint."""


class SolverResult(NamedTuple):
    """End of a run of a solver."""

    w: Array
    objective: float
    status: str
    """"converged", or why the solver ended."""
    iterations: int
    runtime: float
    """Wall time [s]."""
    multipliers_w: Array | None
    """Of the bounds; None if the solver gives none."""
    multipliers_g: Array | None
    """Of the constraints."""


Watch = Callable[[Iterate], str | None]
"""Function called after every iteration; a text ends the solution with that status."""
