"""Costs of activation as coefficients of the dual Newton method, and their values.

    c(a) = w |a|^p + k a^2 / 2 + l |a| - g a

A soft target adds v (a - target)^2 = v a^2 - 2 v target a + constant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.load_sharing.dual_newton import COLD_CONTROL
from borelli.analysis.load_sharing.sharing_settings import SharingSettings
from borelli.numerics.vectors import Array

LINEAR_PROGRAM_TERM = 1e-3
"""Coefficient of the quadratic term added at p = 1. Below some size it leaves the solution a solution of the linear
program, the one of least norm (Mangasarian and Meyer 1979)."""
JOIN_STIFFNESS = 1e-6
"""Slope of the derivative of a^p near zero, p > 2, relative to p: it is a straight line below the activation
JOIN_STIFFNESS^(1/(p-2)), 1e-6 for p = 3 and 0.01 for p = 5, where the cost is below 1e-10."""


class CostCoefficients(NamedTuple):
    """Coefficients w, k, l, g, each (1 or frames, muscles)."""

    power_weight: Array
    quadratic: Array
    linear: Array
    pull: Array


class SoftTargets(NamedTuple):
    """Activations to be near to, and the weights v of their squared deviation, both (frames, muscles)."""

    activation: Array
    weight: Array


def muscle_weights(
    settings: SharingSettings, weights: Array, max_force: Array, volume: Array | None, known: NDArray[np.bool_]
) -> Array:
    """Return the weights (1 or frames, muscles) of a^p: those of the user times those of the cost.

    `known` (frames,) is False for missing frames.
    """
    if settings.cost == "force" and max_force.any():
        return np.asarray(weights * (max_force / max_force[known].mean()) ** settings.exponent)
    if volume is not None and settings.cost in ("volume", "metabolic"):
        return (weights * volume / volume.mean())[None]
    return weights[None]


def cost_coefficients(settings: SharingSettings, weight: Array, targets: SoftTargets | None) -> CostCoefficients:
    """Return the coefficients of the muscles' costs with the weights of `muscle_weights`."""
    power, quadratic, linear = np.zeros_like(weight), np.zeros_like(weight), np.zeros_like(weight)
    if settings.cost == "metabolic":
        linear, quadratic = settings.linear_fraction * weight, 2.0 * (1.0 - settings.linear_fraction) * weight
    elif settings.exponent == 1.0:
        linear, quadratic = weight, 2.0 * LINEAR_PROGRAM_TERM * weight
    elif settings.exponent == 2.0:
        quadratic = 2.0 * weight
    else:
        power = weight
    pull = np.zeros_like(weight)
    if targets is not None:
        quadratic = quadratic + 2.0 * targets.weight
        pull = pull + 2.0 * targets.weight * targets.activation
    return CostCoefficients(power, quadratic, linear, pull)


def cost_values(settings: SharingSettings, weight: Array, targets: SoftTargets | None, activation: Array) -> Array:
    """Return the cost (frames,) of activations, without the term added at p = 1."""
    a, c = np.abs(activation), settings.linear_fraction
    terms = weight * (c * a + (1.0 - c) * a**2 if settings.cost == "metabolic" else a**settings.exponent)
    if targets is not None:
        terms = terms + targets.weight * (activation - targets.activation) ** 2
    return np.asarray(terms.sum(axis=1))


def mean_stiffness(exponent: float, coefficients: CostCoefficients) -> float:
    """Return the mean second derivative of the costs at a typical activation."""
    power = exponent * (exponent - 1.0) * COLD_CONTROL ** (exponent - 2.0) * coefficients.power_weight
    return float((power + coefficients.quadratic).mean())


def joins(exponent: float) -> tuple[float, float]:
    """Return x_join, below which the derivative of a^p is a straight line, and x_join^(p - 2)."""
    if exponent <= 2.0:
        return 0.0, 0.0
    return JOIN_STIFFNESS ** (1.0 / (exponent - 2.0)), JOIN_STIFFNESS
