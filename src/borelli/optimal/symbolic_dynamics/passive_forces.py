"""Passive generalized forces of coordinates as CasADi expressions: smooth joint limits, dampers and springs."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from borelli.errors import SettingsError
from borelli.model.model import Coordinate
from borelli.optimal.casadi_import import ca
from borelli.optimal.symbolic_dynamics.vectors import Expression


@dataclass(frozen=True, slots=True)
class JointLimits:
    """Moments that grow exponentially at both ends of a joint's range: T exp(k (lower - q)) - T exp(k (q - upper))."""

    torque: float = 5.0
    """T [N m] at the end of the range."""
    steepness: float = 25.0
    """k [1/rad]; 25 gives a tenfold torque 5 degrees beyond the end."""

    def __post_init__(self) -> None:
        for name in ("torque", "steepness"):
            if not getattr(self, name) > 0.0:
                raise SettingsError(f"limits: {name} is {getattr(self, name):g}. Give more than zero.")

    def force(self, coordinate: Coordinate, q: Expression) -> Expression:
        """Return the generalized force [N m] on an angle; zero for displacements and sides without limit."""
        if not coordinate.rotational:
            return 0.0
        total: Expression = 0.0
        if isfinite(coordinate.lower):
            total = total + self.torque * ca.exp(self.steepness * (coordinate.lower - q))
        if isfinite(coordinate.upper):
            total = total - self.torque * ca.exp(self.steepness * (q - coordinate.upper))
        return total


@dataclass(frozen=True, slots=True)
class CoordinateSpring:
    """Linear spring on a coordinate: -stiffness (q - rest)."""

    stiffness: float
    """[N m/rad or N/m]"""
    rest: float = 0.0
    """[rad or m]"""
