"""Force curves of muscles as CasADi expressions: De Groote et al. (2016), Thelen (2003) and Park et al. (1992).

Same rows of parameters and same equations as in `borelli.muscles.hill_kernels`. Millard's Bezier curves and MuJoCo's
parabolas have no closed form with continuous derivatives; `with_de_groote_muscles` replaces them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, unknown_name
from borelli.model.model import Model, Muscle
from borelli.muscles.force_curves import CLASSES, SUBSTITUTES
from borelli.muscles.hill_kernels.curves import DE_GROOTE, PARK, THELEN
from borelli.muscles.hill_kernels.de_groote import D1, D2, D3, D4, GAUSS, MIN_LENGTH, PASSIVE_SHAPE, TENDON_SCALE
from borelli.muscles.hill_kernels.thelen import SLOW_FRACTION, TOE_FORCE, TOE_SHAPE
from borelli.optimal.casadi_import import ca
from borelli.optimal.symbolic_dynamics.vectors import Expression

DE_GROOTE_KIND = "DeGrooteFregly2016Muscle"
KEPT_PARAMETERS = (
    "ignore_tendon_compliance", "ignore_activation_dynamics", "min_control", "max_control",
    "maximum_pennation_angle",
)  # fmt: skip
"""Parameters of a muscle that mean the same in every class."""

NEWTON_ITERATIONS = 7
"""From the smaller of two bounds that are within a factor of two in force: five reach 1e-9, seven rounding."""
KEPT_BY_CLASS = {
    "Thelen2003Muscle": {
        "tendon_strain_at_one_norm_force": ("FmaxTendonStrain", 0.04),
        "passive_fiber_strain_at_one_norm_force": ("FmaxMuscleStrain", 0.6),
    },
    "Millard2012EquilibriumMuscle": {
        "tendon_strain_at_one_norm_force": ("TendonForceLengthCurve.strain_at_one_norm_force", 0.049),
        "passive_fiber_strain_at_one_norm_force": ("FiberForceLengthCurve.strain_at_one_norm_force", 0.7),
        "fiber_damping": ("fiber_damping", 0.1),
    },
}
"""Names and defaults, by class, of strains at one normalized force and damping (OpenSim 4.6)."""


class Curves(Protocol):
    """Normalized force curves of one muscle; lengths in optimal fiber or slack lengths, velocities in vmax."""

    def active(self, length: Expression) -> Expression:
        """Return the active force-length multiplier."""

    def passive(self, length: Expression) -> Expression:
        """Return the passive force-length multiplier."""

    def velocity(self, velocity: Expression, activation: Expression) -> Expression:
        """Return the force-velocity multiplier."""

    def inverse_velocity(self, force: Expression, activation: Expression) -> Expression:
        """Return the velocity at which the force-velocity multiplier has a value."""

    def damped_velocity(self, active: Expression, damping: float, force: Expression) -> Expression | None:
        """Return the velocity v at which active fv(v) + damping v has a value; None where it has no expression."""

    def tendon_length(self, force: Expression) -> tuple[Expression, Expression]:
        """Return the tendon's length at a force, and its slope."""


@dataclass(frozen=True, slots=True)
class DeGrooteCurves:
    """Curves of De Groote et al. (2016)."""

    row: tuple[float, ...]

    def active(self, length: Expression) -> Expression:
        """Return the sum of three bells."""
        x = 1.0 + (length - 1.0) / self.row[0] if self.row[0] != 1.0 else length
        total: Expression = 0.0
        for height, center, width, slope in GAUSS:
            z = (x - center) / (width + slope * x)
            total = total + height * ca.exp(-0.5 * z * z)
        return total

    def passive(self, length: Expression) -> Expression:
        """Return the exponential, zero at the shortest length."""
        offset = exp(PASSIVE_SHAPE * (MIN_LENGTH - 1.0) / self.row[1])
        factor = self.row[3] / (exp(PASSIVE_SHAPE) - offset)
        return factor * (ca.exp(PASSIVE_SHAPE / self.row[1] * (length - 1.0)) - offset)

    def velocity(self, velocity: Expression, activation: Expression) -> Expression:
        """Return the inverse hyperbolic sine: ln(x + sqrt(x^2 + 1)) without loss of digits."""
        return D1 * ca.asinh(D2 * velocity + D3) + D4

    def inverse_velocity(self, force: Expression, activation: Expression) -> Expression:
        """Return the hyperbolic sine."""
        return (ca.sinh((force - D4) / D1) - D3) / D2

    def damped_velocity(self, active: Expression, damping: float, force: Expression) -> Expression:
        """Return the root by Newton's method in w = asinh(d2 v + d3).

        In w the equation is p w + k sinh(w) = c with p, k > 0. Either term alone bounds |w|; from the smaller bound the
        iteration converges monotonically, because sinh is convex on its side.
        """
        p, k = -D1 * active, -damping / D2
        c = D4 * active + k * D3 - force
        bound = ca.asinh(ca.fabs(c) / k)
        w = ca.fmin(ca.fmax(c / p, -bound), bound)
        for _ in range(NEWTON_ITERATIONS):
            w = w - (p * w + k * ca.sinh(w) - c) / (p + k * ca.cosh(w))
        return (ca.sinh(w) - D3) / D2

    def tendon_length(self, force: Expression) -> tuple[Expression, Expression]:
        """Return 1 + ln(1 + F / c1) / kT and its slope."""
        return 1.0 + ca.log(1.0 + force / TENDON_SCALE) / self.row[2], 1.0 / (self.row[2] * (TENDON_SCALE + force))


@dataclass(frozen=True, slots=True)
class ThelenCurves:
    """Curves of Thelen (2003); slopes jump where the passive force and the tendon's toe begin."""

    row: tuple[float, ...]

    def active(self, length: Expression) -> Expression:
        """Return the bell (eq. 4)."""
        return ca.exp(-((length - 1.0) ** 2) / self.row[0])

    def passive(self, length: Expression) -> Expression:
        """Return the exponential above the optimal length (eq. 3)."""
        return _exponential(ca.fmax(length - 1.0, 0.0), self.row[4], self.row[5])

    def velocity(self, velocity: Expression, activation: Expression) -> Expression:
        """Return the sum of four pieces, each of its own part of the velocity (eqs. 6 and 7, solved for the force)."""
        af, most, fraction = self.row[1:4]
        w = velocity / (SLOW_FRACTION + (1.0 - SLOW_FRACTION) * activation)
        k, limit = (2.0 + 2.0 / af) / (most - 1.0), fraction * most
        end = (limit - 1.0) / (k * (most - limit))
        shortening, lengthening = ca.fmin(ca.fmax(w, -1.0), 0.0), ca.fmin(ca.fmax(w, 0.0), end)
        below, beyond = ca.fmin(w + 1.0, 0.0), ca.fmax(w - end, 0.0)
        force = (1.0 + shortening) / (1.0 - shortening / af)
        force = force + (1.0 + k * most * lengthening) / (1.0 + k * lengthening) - 1.0
        return force + af / (1.0 + af) * below + k * (most - limit) ** 2 / (most - 1.0) * beyond

    def inverse_velocity(self, force: Expression, activation: Expression) -> Expression:
        """Return the sum of four pieces, each of its own part of the force (eqs. 6 and 7)."""
        af, most, fraction = self.row[1:4]
        k, limit = (2.0 + 2.0 / af) / (most - 1.0), fraction * most
        shortening, lengthening = ca.fmin(ca.fmax(force, 0.0), 1.0), ca.fmin(ca.fmax(force, 1.0), limit)
        below, beyond = ca.fmin(force, 0.0), ca.fmax(force - limit, 0.0)
        w = (shortening - 1.0) / (1.0 + shortening / af) + (lengthening - 1.0) / (k * (most - lengthening))
        w = w + below * (1.0 + af) / af + beyond * (most - 1.0) / (k * (most - limit) ** 2)
        return w * (SLOW_FRACTION + (1.0 - SLOW_FRACTION) * activation)

    def damped_velocity(self, active: Expression, damping: float, force: Expression) -> None:
        """Return None: damped fibers need an iteration."""
        return

    def tendon_length(self, force: Expression) -> tuple[Expression, Expression]:
        """Return toe and line (eq. 5, solved for the length), and the slope."""
        toe, stiffness = self.row[6], self.row[7]
        factor = TOE_FORCE / (exp(TOE_SHAPE) - 1.0)
        low = ca.fmin(ca.fmax(force, 0.0), TOE_FORCE)
        is_line = force > TOE_FORCE
        length = 1.0 + toe / TOE_SHAPE * ca.log(1.0 + low / factor) + is_line * (force - TOE_FORCE) / stiffness
        in_toe = toe / (TOE_SHAPE * (factor + low))
        return length, in_toe + is_line * (1.0 / stiffness - in_toe)


@dataclass(frozen=True, slots=True)
class ParkCurves:
    """Curves of Park, Fussell, Pandy and Browne (1992)."""

    row: tuple[float, ...]

    def active(self, length: Expression) -> Expression:
        """Return the bell."""
        return ca.exp(-((length - 1.0) ** 2) / self.row[0])

    def passive(self, length: Expression) -> Expression:
        """Return the exponential above the optimal length."""
        return _exponential(ca.fmax(length - 1.0, 0.0), self.row[5], self.row[6])

    def velocity(self, velocity: Expression, activation: Expression) -> Expression:
        """Return A + B atan(C (v - v0))."""
        a, b, c, offset = self.row[1:5]
        return a + b * ca.atan(c * (velocity - offset))

    def inverse_velocity(self, force: Expression, activation: Expression) -> Expression:
        """Return v0 + tan((F - A) / B) / C, for forces between the asymptotes."""
        a, b, c, offset = self.row[1:5]
        return offset + ca.tan((force - a) / b) / c

    def damped_velocity(self, active: Expression, damping: float, force: Expression) -> None:
        """Return None: damped fibers need an iteration."""
        return

    def tendon_length(self, force: Expression) -> tuple[Expression, Expression]:
        """Return the linear tendon's length."""
        return 1.0 + self.row[7] * force, self.row[7]


def _exponential(strain: Expression, shape: float, strain_at_one: float) -> Expression:
    return (ca.exp(shape * strain / strain_at_one) - 1.0) / (exp(shape) - 1.0)


CURVES: dict[int, Callable[[tuple[float, ...]], Curves]] = {
    DE_GROOTE: DeGrooteCurves,
    THELEN: ThelenCurves,
    PARK: ParkCurves,
}
"""Curves with expressions, by the curve kind of `borelli.muscles`."""


def curves_of(name: str, kind: int, row: NDArray[np.float64]) -> Curves:
    """Return the curves of a muscle.

    Raises:
        ModelError: if its curves have no expressions.
    """
    if kind not in CURVES:
        raise ModelError(
            f"Muscle {name!r}: Its force curves have no closed form with smooth derivatives (Millard's and MuJoCo's). "
            "Convert the model with `with_de_groote_muscles`."
        )
    return CURVES[kind](tuple(float(x) for x in row))


def with_de_groote_muscles(model: Model) -> Model:
    """Return the model with the smooth curves and activation dynamics of De Groote et al. (2016) in all its muscles.

    Forces, lengths, pennation, velocities, time constants and fiber damping stay, and so do the strains of tendon and
    passive fiber at one normalized force of Thelen's and Millard's muscles; the shapes of the curves change.

    Args:
        model: Model with muscles of any kind.
    """
    return replace(model, muscles=tuple(map(_converted, model.muscles)))


def _converted(muscle: Muscle) -> Muscle:
    kind = SUBSTITUTES.get(muscle.kind, muscle.kind)
    if kind == DE_GROOTE_KIND:
        return muscle
    if kind not in CLASSES:
        raise ModelError(f"Muscle {muscle.name!r}: {unknown_name('muscle class', kind, CLASSES)}. Set its kind.")
    kept = [(key, value) for key, value in muscle.parameters if key in KEPT_PARAMETERS]
    for own, (stated, default) in KEPT_BY_CLASS.get(kind, {}).items():
        kept.append((own, muscle.parameter(stated, default)))
    return replace(muscle, kind=DE_GROOTE_KIND, parameters=tuple(kept))
