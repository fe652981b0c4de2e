"""Sequential quadratic programming of Kraft (1988), as in scipy, for the small dense programs of single shooting.

Park, Fussell, Pandy and Browne (1992) compute derivatives by simulating once per perturbed control node; "perturbed"
does the same with forward differences, "exact" differentiates the simulation itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from borelli.errors import SettingsError, unknown_name
from borelli.optimal.casadi_import import ca
from borelli.optimal.nlp_solvers.solver_result import Iterate, SolverResult, Watch
from borelli.optimal.transcription.nlp import Nlp

Array = NDArray[np.float64]
GRADIENTS = ("exact", "perturbed")
"""Derivatives that are offered."""
PERTURBATION = float(np.sqrt(np.finfo(float).eps))
"""Change of a scaled unknown in forward differences: balances truncation and rounding."""
FUNCTION_TOLERANCE = 1e-6
"""Change of the objective at which SLSQP ends, per unit of `tolerance`: near a minimum the objective changes with the
square of the distance."""
MAX_RESTARTS = 5
"""Restarts where the line search fails, from the nearest feasible point: there a violation of 1e-6 may remain."""
STATUSES = {0: "converged", 4: "infeasible", 8: "no progress", 9: "iteration limit"}
"""Words for what SLSQP returns; others are given as its own text."""


class _StopError(Exception):
    """Signal to end SLSQP, which has no other way."""


class _Evaluations:
    """Values and derivatives of a program, each computed once per point; a line search needs values only."""

    def __init__(self, nlp: Nlp, gradients: str) -> None:
        self.function = ca.Function("values", [nlp.w], [ca.vertcat(nlp.objective, nlp.constraints)])
        self.exact = nlp.derivatives if gradients == "exact" else None
        self.perturbed = self.function.map(len(nlp.first) + 1)
        self.latest: dict[str, tuple[bytes, Any]] = {}

    def values(self, w: Array) -> Array:
        """Return the objective, then the constraints."""
        return self._once("values", w, lambda: np.array(self.function(w)).ravel())

    def slopes(self, w: Array) -> tuple[Array, Array]:
        """Return gradient and dense Jacobian."""
        return self._once("slopes", w, lambda: self._differentiate(w) if self.exact else self._perturb(w))

    def _once(self, kind: str, w: Array, compute: Callable[[], Any]) -> Any:
        key = w.tobytes()
        if kind not in self.latest or self.latest[kind][0] != key:
            self.latest[kind] = (key, compute())
        return self.latest[kind][1]

    def _differentiate(self, w: Array) -> tuple[Array, Array]:
        assert self.exact is not None
        at = self.exact(w)
        return at.gradient, at.jacobian.toarray()

    def _perturb(self, w: Array) -> tuple[Array, Array]:
        """Return forward differences: one simulation per unknown, all in one call."""
        steps = PERTURBATION * np.maximum(1.0, np.abs(w))
        values = np.array(self.perturbed(np.hstack([w[:, None], w[:, None] + np.diag(steps)])))
        slopes = (values[:, 1:] - values[:, :1]) / steps
        return slopes[0], slopes[1:]


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
        values = evaluate.values(w)
        violation = float(nlp.violation(w, values[1:]).max(initial=0.0))
        request = watch(Iterate(count, last, float(values[0]), violation))
        ended = request or ("time limit" if time.monotonic() - begin > time_limit else "")
        if ended:
            raise _StopError

    status = "no progress"
    try:
        for _ in range(1 + MAX_RESTARTS):
            found = minimize(
                lambda w: float(evaluate.values(w)[0]),
                last,
                jac=lambda w: evaluate.slopes(w)[0],
                method="SLSQP",
                bounds=np.column_stack([nlp.lower_w, nlp.upper_w]),
                constraints=_constraints(nlp, evaluate),
                callback=after_iteration,
                options={"ftol": tolerance * FUNCTION_TOLERANCE, "maxiter": max(1, max_iterations - count)},
            )
            last, status = found.x, STATUSES.get(found.status, str(found.message).lower())
            if status != "no progress" or count >= max_iterations:
                break
            last = _restore(nlp, evaluate, last)
    except _StopError:
        status = ended
    return SolverResult(last, float(evaluate.values(last)[0]), status, count, time.monotonic() - begin, None, None)


def _restore(nlp: Nlp, evaluate: _Evaluations, w: Array) -> Array:
    """Return the point after the least change of the unknowns that closes the linearized violations."""
    values = evaluate.values(w)[1:]
    gap = np.clip(values, nlp.lower_g, nlp.upper_g) - values
    rows = (gap != 0.0) | (nlp.lower_g == nlp.upper_g)
    if not np.isfinite(values).all() or not rows.any():
        return w
    step = np.linalg.lstsq(evaluate.slopes(w)[1][rows], gap[rows], rcond=None)[0]
    return np.clip(w + step, nlp.lower_w, nlp.upper_w)


def _constraints(nlp: Nlp, evaluate: _Evaluations) -> list[dict[str, Any]]:
    """Return equalities and one-sided inequalities as scipy takes them."""
    equal = np.flatnonzero(nlp.lower_g == nlp.upper_g)
    above = np.flatnonzero((nlp.lower_g < nlp.upper_g) & np.isfinite(nlp.lower_g))
    below = np.flatnonzero((nlp.lower_g < nlp.upper_g) & np.isfinite(nlp.upper_g))

    def part(kind: str, rows: Any, bound: Array, sign: float) -> dict[str, Any]:
        def value(w: Array) -> Array:
            return sign * (evaluate.values(w)[1:][rows] - bound[rows])

        def jacobian(w: Array) -> Array:
            return sign * evaluate.slopes(w)[1][rows]

        return {"type": kind, "fun": value, "jac": jacobian}

    parts = [("eq", equal, nlp.lower_g, 1.0), ("ineq", above, nlp.lower_g, 1.0), ("ineq", below, nlp.upper_g, -1.0)]
    return [part(*arguments) for arguments in parts if len(arguments[1])]
