"""Extended generalized coordinates: motion planned in any coordinates u(q) of the animator (Park et al. 1992, 2.2).

The animator states u as expressions of the joint coordinates q: positions of points, sums of angles, anything smooth.
With J = du/dq (by automatic differentiation),

    q' = J^-1 u'                                   (eq. 5)
    q'' = J^-1 (u'' - (d(J v)/dq) v),   v = q'     (eqs. 6 and 7 without their Hessian tensor)

With fewer u than q, the motion nearest to a preferred one is chosen: min 1/2 (v - v0)' W (v - v0) subject to J v = u',
one linear solve for v and the Lagrange multipliers. Near a singularity, J v = u' is relaxed by damped least squares
(Nakamura and Hanafusa 1986), which keeps v bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.files.html_repr import fields_repr
from borelli.optimal.casadi_import import ca
from borelli.optimal.namespace import Namespace
from borelli.optimal.system import System

Array = NDArray[np.float64]

SINGULAR_VALUE = 1e-3
"""Smallest singular value of the weighted Jacobian, relative to the largest, below which damping begins."""


@dataclass(frozen=True)
class ExtendedCoordinates:
    """Coordinates u(q) in which a motion is planned."""

    coordinates: Sequence[str]
    """Names of the joint coordinates q."""
    expressions: Callable[[Namespace], Mapping[str, Any]]
    """Function of a namespace of q that returns the extended coordinates by name."""
    system: System | None = None
    """System with these coordinates as its first states, whose outputs (positions of points) expressions may use."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Diagonal of W by joint coordinate, where there are fewer u than q. Default: 1."""
    singular_value: float = SINGULAR_VALUE
    """Relative singular value below which damping begins; 0 for none."""

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        count, extended = len(self.coordinates), len(self.names)
        if not 1 <= extended <= count:
            raise SettingsError(
                f"Extended coordinates: {extended} expressions of {count} joint coordinates. "
                "Give at least one, and at most as many as there are joint coordinates."
            )
        unknown = sorted(set(self.weights) - set(self.coordinates))
        where = "Extended coordinates, weights"
        if unknown:
            raise SettingsError(f"{where}: {unknown_name('coordinate', unknown[0], self.coordinates)}.")
        for name, weight in self.weights.items():
            if not weight > 0.0:
                raise SettingsError(f"{where}: That of {name!r} is {weight:g}. Give a positive number.")

    @cached_property
    def _built(self) -> tuple[tuple[str, ...], Any]:
        q, v = ca.SX.sym("q", len(self.coordinates)), ca.SX.sym("v", len(self.coordinates))
        values = dict(zip(self.coordinates, ca.vertsplit(q), strict=True))
        if self.system is not None:
            values |= _outputs(self.system, q)
        found = dict(self.expressions(Namespace("Extended coordinates", values)))
        u = ca.vertcat(*found.values())
        rate = ca.jtimes(u, q, v)
        bias = ca.jtimes(rate, q, v)
        return tuple(found), ca.Function("extended", [q, v], [u, ca.jacobian(u, q), bias])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the extended coordinates."""
        return self._built[0]

    def values(self, q: ArrayLike) -> Array:
        """Return u(q)."""
        return np.array(self._built[1](q, np.zeros(len(self.coordinates)))[0]).ravel()

    def rates(self, q: ArrayLike, u_rate: ArrayLike, preferred: ArrayLike | None = None) -> Array:
        """Return q' for given u'; with redundancy, the one nearest to `preferred` (default: zero)."""
        _, jacobian, _ = self._built[1](q, np.zeros(len(self.coordinates)))
        return self._solve(np.array(jacobian), np.asarray(u_rate, float), preferred)

    def accelerations(
        self, q: ArrayLike, rates: ArrayLike, u_acceleration: ArrayLike, preferred: ArrayLike | None = None
    ) -> Array:
        """Return q'' for given q' and u''; with redundancy, the one nearest to `preferred` (default: zero)."""
        _, jacobian, bias = self._built[1](q, rates)
        wanted = np.asarray(u_acceleration, float) - np.array(bias).ravel()
        return self._solve(np.array(jacobian), wanted, preferred)

    def _solve(self, jacobian: Array, wanted: Array, preferred: ArrayLike | None) -> Array:
        """Return v of min 1/2 (v - v0)' W (v - v0) with J v = wanted, by the conditions of Lagrange.

        W (v - v0) = J' m  and  J v + d m = wanted, where the damping d is zero away from singularities.
        """
        rows, count = jacobian.shape
        weight = np.array([self.weights.get(name, 1.0) for name in self.coordinates])
        damping = self._damping(jacobian / np.sqrt(weight))
        if rows == count and damping == 0.0:
            return np.asarray(np.linalg.solve(jacobian, wanted), float)
        first = np.zeros(count) if preferred is None else np.asarray(preferred, float)
        matrix = np.block([[np.diag(weight), -jacobian.T], [jacobian, damping * np.eye(rows)]])
        return np.linalg.solve(matrix, np.concatenate([weight * first, wanted]))[:count]

    def _damping(self, scaled: Array) -> float:
        """Return d = e^2 (1 - (s / e)^2), where the smallest singular value s is below e; else 0."""
        values = np.linalg.svd(scaled, compute_uv=False)
        limit = self.singular_value * values[0]
        return float(limit**2 - values[-1] ** 2) if values[-1] < limit else 0.0


def _outputs(system: System, q: Any) -> dict[str, Any]:
    """Return the outputs of a system at rest, by name."""
    states, controls = len(system.states), len(system.controls)
    x = ca.vertcat(q, ca.SX.zeros(states - q.shape[0]))
    none = ca.SX(0, 1)
    found = system.outputs.call([0.0, x, none, ca.SX.zeros(controls), none, ca.SX.zeros(states)])
    return dict(zip(system.output_names, found, strict=True))
