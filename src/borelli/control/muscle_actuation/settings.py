"""Settings of muscles as actuators of a controlled body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import fields_repr
from borelli.kernels.array_checks import as_number
from borelli.model.model import Model

Array = NDArray[np.float64]

PASSIVE_TORQUE = 10.0
"""Torque [N m] that passive structures transmit at the cost of one fully active muscle."""


@dataclass(frozen=True)
class MuscleActuation:
    """Muscles of the model as actuators in place of joint torques.

    Attributes:
        reserves: Optimal force [N m or N] of ideal actuators by coordinate: the larger, the cheaper, as in `Reserves`.
            They are for coordinates without muscles, and for joint limits and ligaments that the model does not have.
            Torque that neither muscles nor these attain is reported and not applied.
        passive_groups: Coordinates of joints in series, such as those of the vertebrae, between which discs and
            ligaments transmit torque: in each group muscles attain the sum of the torques, passive structures the
            differences. It is what coupled coordinates of a lumbar spine mean (Christophy et al. 2012).
        strength: Factor of all maximum isometric forces.
    """

    reserves: Mapping[str, float] = field(default_factory=dict)
    passive_groups: Sequence[Sequence[str]] = ()
    strength: float = 1.0

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        if not as_number("strength", self.strength) > 0.0:
            raise SettingsError(f"strength: The factor is {self.strength:g}. Pass a positive number.")
        for name, force in self.reserves.items():
            if not as_number(f"reserve of {name!r}", force) > 0.0:
                raise SettingsError(f"reserves: That of {name!r} is {force:g}. Pass a positive number or leave it out.")

    @check_arguments
    def check(self, model: Model) -> None:
        """Raise an error if the model has no muscles or lacks a coordinate of a reserve."""
        if not model.muscles:
            raise ModelError(f"Model {model.name!r} has no muscles. Use a model with muscles, or actuate by torques.")
        known = [coordinate.name for coordinate in model.coordinates]
        given = [("reserves", name) for name in self.reserves]
        given += [("passive_groups", name) for group in self.passive_groups for name in group]
        for where, name in given:
            if name not in known:
                raise SettingsError(f"{where}: {unknown_name('coordinate', name, known)}")

    @check_arguments
    def reserve_torques(self, model: Model) -> Array:
        """Return torques of coordinates per unit of control, (actuators, coordinates) [N m or N]."""
        index = {coordinate.name: i for i, coordinate in enumerate(model.coordinates)}
        rows = []
        for name, force in self.reserves.items():
            rows.append(np.zeros(len(index)))
            rows[-1][index[name]] = force
        for group in self.passive_groups:
            for first, second in pairwise(group):
                rows.append(np.zeros(len(index)))
                rows[-1][[index[first], index[second]]] = PASSIVE_TORQUE, -PASSIVE_TORQUE
        return np.array(rows).reshape(-1, len(index))
