"""Integration of many elements at once by equal steps of the Runge-Kutta pair of order 8 of Dormand and Prince.

All stages are one CasADi function, so that Python is called once for all elements, not once for each evaluation of the
equations of motion. Every step estimates its own error as in Hairer, Norsett and Wanner (1993), section II.10, from the
embedded formulas of orders 5 and 3; elements whose estimate exceeds the tolerance get more steps, and in the end the
adaptive method.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853

from borelli.optimal.casadi_import import ca

Array = NDArray[np.float64]
SUBSTEPS = (2, 4, 16)
"""Numbers of steps between two points, tried in this order."""
LEAST_ERROR = 1e-300
"""Added to the square of an estimated error before division by it."""


class Tolerance(NamedTuple):
    """Largest error of a step."""

    relative: float
    absolute: Array
    """(states,)"""


class FixedSteps:
    """Equal steps through elements in which the controls are linear in time."""

    def __init__(self, explicit: Any, parameters: Any, points: int, tolerance: Tolerance) -> None:
        """Prepare the steps.

        Args:
            explicit: casadi.Function(t, x, u, p) -> (xdot, z).
            parameters: Values of p.
            points: Points of each element after its start, evenly spaced, at which states are returned.
            tolerance: Of a step.
        """
        self._step = _make_step(explicit, tolerance)
        self._parameters, self._points = parameters, points
        self._rollout = lru_cache(maxsize=None)(self._make_rollout)

    def integrate(
        self, x: Array, start: Array, duration: Array, first: Array, last: Array
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Integrate elements.

        Args:
            x: (elements, states) at their starts.
            start: (elements,) [s].
            duration: (elements,) [s].
            first: (elements, controls) at their starts.
            last: (elements, controls) at their ends.

        Returns:
            States (elements, points + 1, states), and whether (elements,) the tolerance is met.
        """
        count, states = x.shape
        found, accurate = np.full((count, self._points + 1, states), np.inf), np.zeros(count, bool)
        for substeps in SUBSTEPS:
            left = np.flatnonzero(~accurate)
            if not len(left):
                break
            states_of, error = self._run(substeps, *(a[left] for a in (x, start, duration, first, last)))
            found[left], accurate[left] = states_of, error <= 1.0  # false where the error is NaN
        return found, accurate

    def _run(self, substeps: int, x: Array, start: Array, duration: Array, first: Array, last: Array) -> Any:
        count, states = x.shape
        steps = substeps * self._points
        fraction = np.linspace(0.0, 1.0, steps + 1)
        controls = first[:, None] + fraction[:, None] * (last - first)[:, None]
        found, error = self._rollout(steps, count)(
            x.T,
            (start[:, None] + fraction[:-1] * duration[:, None]).reshape(1, -1),
            np.repeat(duration / steps, steps)[None],
            controls[:, :-1].reshape(count * steps, -1).T,
            controls[:, 1:].reshape(count * steps, -1).T,
            ca.repmat(self._parameters, 1, count * steps),
        )
        ends = np.array(found).T.reshape(count, self._points, substeps, states)[:, :, -1]
        return np.concatenate([x[:, None], ends], axis=1), np.array(error).reshape(count, steps).max(axis=1)

    def _make_rollout(self, steps: int, count: int) -> Any:
        return self._step.mapaccum(steps).map(count)


def _make_step(explicit: Any, tolerance: Tolerance) -> Any:
    """Return casadi.Function(x, t, h, ua, ub, p) -> (x, error): one step, its error relative to the tolerance."""
    nx, nu, np_ = (explicit.numel_in(i) for i in (1, 2, 3))
    names = ("x", "t", "h", "ua", "ub", "p")
    x, t, h, ua, ub, p = (ca.MX.sym(n, size) for n, size in zip(names, (nx, 1, 1, nu, nu, np_), strict=True))
    rates: list[Any] = []
    for i in range(DOP853.n_stages):
        at = x + h * sum((DOP853.A[i, j] * rates[j] for j in range(i)), start=ca.DM.zeros(nx))
        rates.append(explicit(t + DOP853.C[i] * h, at, ua + DOP853.C[i] * (ub - ua), p)[0])

    def combined(weights: Array) -> Any:
        return sum(weight * rate for weight, rate in zip(weights, rates, strict=False) if weight != 0.0)

    after = x + h * combined(DOP853.B)
    scale = tolerance.absolute + tolerance.relative * ca.fmax(ca.fabs(x), ca.fabs(after))
    fifth, third = (ca.sumsqr(combined(weights) / scale) for weights in (DOP853.E5, DOP853.E3))
    error = ca.fabs(h) * fifth / ca.sqrt((fifth + 0.01 * third + LEAST_ERROR) * nx)
    return ca.Function("step", [x, t, h, ua, ub, p], [after, error], list(names), ["after", "error"])
