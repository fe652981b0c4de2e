"""Settings of load sharing, and reserve actuators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from borelli.analysis.option_values import option_value
from borelli.errors import SettingsError
from borelli.files.html_repr import fields_repr
from borelli.kernels.array_checks import as_floats, as_number
from borelli.numerics.vectors import Array

COSTS = ("activation", "force", "volume", "metabolic")
MAX_EXPONENT = 5.0
"""Costs with a higher exponent approach the largest activation alone (min/max); their multipliers lose all digits."""


@dataclass(frozen=True)
class SharingSettings:
    """Cost and bounds of load sharing.

    Attributes:
        cost: "activation": sum of a^p (Crowninshield and Brand 1981; OpenSim's static optimization for p = 2).
            "force": a^p weighted by (max_force / its mean over muscles)^p. "volume": a^p weighted by muscle volume
            divided by its mean, so that a muscle counts the same whole or split. "metabolic": volume times
            (c a + (1 - c) a^2), a linear and a quadratic term as in Praagman et al. (2006), c = `linear_fraction`.
        exponent: p, 1 to 5. At p = 1 the small term `LINEAR_PROGRAM_TERM` a^2 makes the solution unique.
        linear_fraction: c of the metabolic cost, 0 to 1.
        activation_time: Time constant [s] of rising activation: bounds da/dt <= (1 - a) / activation_time; None: no
            bounds on rates.
        deactivation_time: Time constant [s] of falling activation: da/dt >= -a / deactivation_time.
    """

    cost: str = "activation"
    exponent: float = 2.0
    linear_fraction: float = 0.5
    activation_time: float | None = None
    deactivation_time: float | None = None

    def __post_init__(self) -> None:
        option_value("cost of load sharing", self.cost, COSTS)
        if not 1.0 <= as_number("exponent", self.exponent) <= MAX_EXPONENT:
            raise SettingsError(f"exponent: {self.exponent:g} is out of range. Allowed: 1 to {MAX_EXPONENT:g}.")
        if not 0.0 <= as_number("linear_fraction", self.linear_fraction) < 1.0:
            raise SettingsError(f"linear_fraction: {self.linear_fraction:g} is out of range. Allowed: 0 to below 1.")
        times = (self.activation_time, self.deactivation_time)
        if (times[0] is None) != (times[1] is None):
            raise SettingsError("activation_time and deactivation_time: Only one is given. Pass both or neither.")
        if any(time is not None and not as_number("time constant", time) > 0.0 for time in times):
            raise SettingsError(f"time constants: {times[0]} s, {times[1]} s. Pass positive numbers.")


@dataclass(frozen=True)
class Reserves:
    """Ideal actuators that supply what muscles cannot, each at the cost weight (force / optimal_force)^2.

    Attributes:
        optimal_force: (actuators,) force or torque per unit of control [N or N m]; 0: no actuator. The larger, the
            cheaper, as in OpenSim.
        direction: Generalized force per unit of force, (actuators, coordinates) or (frames, actuators, coordinates);
            None: one actuator per coordinate.
        weight: (actuators,) or one number.
        max_control: (actuators,) or one number: bound of the absolute control.
    """

    optimal_force: npt.ArrayLike
    direction: npt.ArrayLike | None = None
    weight: npt.ArrayLike = 1.0
    max_control: npt.ArrayLike = np.inf

    __repr__ = fields_repr

    def directions(self, coordinates: int) -> Array:
        """Return the directions as (1 or frames, actuators, coordinates)."""
        if self.direction is None:
            return np.eye(coordinates)[None]
        direction = np.asarray(self.direction, float)
        shape = (None,) * (direction.ndim - 1) + (coordinates,)
        rows = as_floats("reserves.direction", direction, shape)
        return rows[None] if rows.ndim == 2 else rows

    def column(self, name: str, actuators: int, *, finite: bool = True) -> Array:
        """Return `optimal_force`, `weight` or `max_control` as (actuators,)."""
        given = np.asarray(getattr(self, name), float)
        column = np.broadcast_to(given, (actuators,)) if given.ndim == 0 else given
        checked = as_floats(f"reserves.{name}", column, (actuators,), finite=finite)
        low = 0.0 if name == "optimal_force" else np.finfo(float).tiny
        if not (checked >= low).all():
            raise SettingsError(f"reserves.{name}: {checked.min():g} is out of range. Pass positive numbers.")
        return checked
