"""Optimality conditions of Karush (1939), Kuhn and Tucker (1951), evaluated at a solution, independently of the solver.

With multipliers l (positive at upper bounds, negative at lower ones) of the constraints g and m of the bounds,

    grad f + J' l + m = 0,    lower <= g <= upper,    l_i (g_i - active bound_i) = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from borelli.optimal.transcription.nlp import Derivatives, Nlp

Array = NDArray[np.float64]
ACTIVE = 1e-6
"""Scaled distance from a bound below which it counts as active."""
SMALL_GRADIENT = 1e-3
"""Scaled gradients below this are replaced by this, since solvers end at absolute residuals of about 1e-8."""


class Optimality(NamedTuple):
    """Residuals of the optimality conditions, scaled."""

    stationarity: float
    """Largest element of grad f + J' l + m, relative to its largest part."""
    unknown: int
    """Unknown at which it is largest."""
    feasibility: float
    """Largest violation."""
    violated: int
    """Row of `Nlp.violation` at which it is largest."""
    complementarity: float
    """Largest product of a multiplier and the distance from its bound, relative to the largest gradient."""


def check_optimality(
    nlp: Nlp, at: Derivatives, w: Array, multipliers_w: Array | None, multipliers_g: Array | None
) -> Optimality:
    """Return the residuals of the optimality conditions; multipliers that are not given are fitted."""
    if multipliers_w is None or multipliers_g is None:
        multipliers_w, multipliers_g = fit_multipliers(nlp, at, w)
    pull = at.jacobian.T @ multipliers_g
    residual = np.abs(at.gradient + pull + multipliers_w)
    largest = max(
        *(float(np.abs(part).max(initial=0.0)) for part in (at.gradient, pull, multipliers_w)), SMALL_GRADIENT
    )
    violation = nlp.violation(w, at.constraints)
    products = np.concatenate(
        [
            _products(multipliers_g, at.constraints, nlp.lower_g, nlp.upper_g),
            _products(multipliers_w, w, nlp.lower_w, nlp.upper_w),
        ]
    )
    return Optimality(
        float(residual.max() / largest),
        int(residual.argmax()),
        float(violation.max(initial=0.0)),
        int(violation.argmax()),
        float(products.max(initial=0.0) / largest),
    )


def _products(multipliers: Array, values: Array, lower: Array, upper: Array) -> Array:
    """Return |multiplier| times the distance from the bound its sign belongs to; equal bounds are always active."""
    bound = np.where(multipliers > 0.0, upper, lower)
    distance = np.where(lower == upper, 0.0, np.abs(values - bound))
    # a multiplier of a bound that does not exist is an error of its own size
    return np.where(multipliers == 0.0, 0.0, np.abs(multipliers) * np.where(np.isfinite(distance), distance, 1.0))


def fit_multipliers(nlp: Nlp, at: Derivatives, w: Array) -> tuple[Array, Array]:
    """Return the multipliers of active bounds and constraints that best satisfy stationarity (least squares)."""
    columns, signs, targets = [], [], []
    identity = np.eye(len(w))
    dense = at.jacobian.toarray()
    for values, lower, upper, rows, offset in (
        (at.constraints, nlp.lower_g, nlp.upper_g, dense, 0),
        (w, nlp.lower_w, nlp.upper_w, identity, len(at.constraints)),
    ):
        for i in range(len(values)):
            low, high = values[i] - lower[i] < ACTIVE, upper[i] - values[i] < ACTIVE
            if low or high:
                columns.append(rows[i])
                signs.append((-np.inf if low else 0.0, np.inf if high else 0.0))
                targets.append(offset + i)
    multipliers = np.zeros(len(at.constraints) + len(w))
    if columns and np.isfinite(at.gradient).all() and np.isfinite(dense).all():
        bounds = np.array(signs).T
        multipliers[targets] = lsq_linear(np.array(columns).T, -at.gradient, bounds, tol=1e-14).x
    return multipliers[len(at.constraints) :], multipliers[: len(at.constraints)]
