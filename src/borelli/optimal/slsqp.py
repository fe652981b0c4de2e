"""Sequential quadratic programming of Kraft (1988), as in scipy, for the small dense programs of single shooting.

Park, Fussell, Pandy and Browne (1992) compute derivatives by simulating once per perturbed control node; "perturbed"
does the same with forward differences, "exact" differentiates the simulation itself.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from borelli.errors import SettingsError, unknown_name
from borelli.optimal.casadi_import import ca
from borelli.optimal.solver_result import Iterate, SolverResult, Watch
from borelli.optimal.transcription.nlp import Derivatives, Nlp

Array = NDArray[np.float64]
GRADIENTS = ("exact", "perturbed")
"""Derivatives that are offered."""
PERTURBATION = float(np.sqrt(np.finfo(float).eps))
"""Change of a scaled unknown in forward differences: balances truncation and rounding."""
FUNCTION_TOLERANCE = 1e-6
"""Change of the objective at which SLSQP ends, per unit of `tolerance`: near a minimum the objective changes with the
square of the distance."""
STATUSES = {0: "converged", 4: "infeasible", 8: "no progress", 9: "iteration limit"}
"""Words for what SLSQP returns; others are given as its own text."""


class _StopError(Exception):
    """Signal to end SLSQP, which has no other way."""


class _Evaluations:
    """Values and derivatives of a program, computed once per point."""

    def __init__(self, nlp: Nlp, gradients: str) -> None:
        self.exact = nlp.derivatives if gradients == "exact" else None
        values = ca.Function("values", [nlp.w], [ca.vertcat(nlp.objective, nlp.constraints)])
        self.perturbed = values.map(len(nlp.first) + 1)
        self.point: Array | None = None
        self.at: Derivatives | None = None

    def __call__(self, w: Array) -> Derivatives:
        if self.at is None or self.point is None or not np.array_equal(w, self.point):
            self.point = np.array(w)
            self.at = self.exact(w) if self.exact is not None else self._perturb(w)
        return self.at

    def _perturb(self, w: Array) -> Derivatives:
        """Return forward differences: one simulation per unknown, all in one call."""
        steps = PERTURBATION * np.maximum(1.0, np.abs(w))
        table = np.hstack([w[:, None], w[:, None] + np.diag(steps)])
        values = np.array(self.perturbed(table))
        slopes = (values[:, 1:] - values[:, :1]) / steps
        return Derivatives(float(values[0, 0]), slopes[0], values[1:, 0], slopes[1:])


def solve_slsqp(
    nlp: Nlp,
    first: Array,
    *,
    watch: Watch,
    tolerance: float,
    max_iterations: int,
    time_limit: float,
    gradients: str,
) -> SolverResult:
    """Solve a program from first values; arguments as of `solve_ipopt`, and `gradients`, one of `GRADIENTS`."""
    if gradients not in GRADIENTS:
        raise SettingsError(f"{unknown_name('kind of gradients', gradients, GRADIENTS)}.")
    begin = time.monotonic()
    evaluate = _Evaluations(nlp, gradients)
    last = np.clip(first, nlp.lower_w, nlp.upper_w)
    count, ended = 0, ""

    def after_iteration(w: Array) -> None:
        nonlocal last, count, ended
        last, count = np.array(w), count + 1
        at = evaluate(w)
        violation = float(nlp.violation(w, at.constraints).max(initial=0.0))
        request = watch(Iterate(count, last, at.objective, violation))
        ended = request or ("time limit" if time.monotonic() - begin > time_limit else "")
        if ended:
            raise _StopError

    try:
        found = minimize(
            lambda w: evaluate(w).objective,
            last,
            jac=lambda w: evaluate(w).gradient,
            method="SLSQP",
            bounds=np.column_stack([nlp.lower_w, nlp.upper_w]),
            constraints=_constraints(nlp, evaluate),
            callback=after_iteration,
            options={"ftol": tolerance * FUNCTION_TOLERANCE, "maxiter": max_iterations},
        )
        last, status = found.x, STATUSES.get(found.status, str(found.message).lower())
    except _StopError:
        status = ended
    at = evaluate(last)
    return SolverResult(last, at.objective, status, count, time.monotonic() - begin, None, None)


def _constraints(nlp: Nlp, evaluate: _Evaluations) -> list[dict[str, Any]]:
    """Return equalities and one-sided inequalities as scipy takes them."""
    equal = np.flatnonzero(nlp.lower_g == nlp.upper_g)
    above = np.flatnonzero((nlp.lower_g < nlp.upper_g) & np.isfinite(nlp.lower_g))
    below = np.flatnonzero((nlp.lower_g < nlp.upper_g) & np.isfinite(nlp.upper_g))

    def part(kind: str, rows: Any, bound: Array, sign: float) -> dict[str, Any]:
        def value(w: Array) -> Array:
            return sign * (evaluate(w).constraints[rows] - bound[rows])

        def jacobian(w: Array) -> Array:
            table = evaluate(w).jacobian
            return sign * (table[rows] if isinstance(table, np.ndarray) else table.tocsr()[rows].toarray())

        return {"type": kind, "fun": value, "jac": jacobian}

    parts = [("eq", equal, nlp.lower_g, 1.0), ("ineq", above, nlp.lower_g, 1.0), ("ineq", below, nlp.upper_g, -1.0)]
    return [part(*arguments) for arguments in parts if len(arguments[1])]
