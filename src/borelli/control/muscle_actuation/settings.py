"""Settings of muscles as actuators of a controlled body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.kernels.array_checks import as_number
from borelli.model.model import Model


@dataclass(frozen=True)
class MuscleActuation:
    """Muscles of the model as actuators in place of joint torques.

    Attributes:
        reserves: Optimal force [N m or N] of ideal actuators by coordinate: the larger, the cheaper, as in `Reserves`.
            They are for coordinates without muscles, and for joint limits and ligaments that the model does not have.
            Torque that neither muscles nor these attain is reported and not applied.
        strength: Factor of all maximum isometric forces.
    """

    reserves: Mapping[str, float] = field(default_factory=dict)
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not as_number("strength", self.strength) > 0.0:
            raise SettingsError(f"strength: The factor is {self.strength:g}. Pass a positive number.")
        for name, force in self.reserves.items():
            if not as_number(f"reserve of {name!r}", force) > 0.0:
                raise SettingsError(f"reserves: That of {name!r} is {force:g}. Pass a positive number or leave it out.")

    def check(self, model: Model) -> None:
        """Raise an error if the model has no muscles or lacks a coordinate of a reserve."""
        if not model.muscles:
            raise ModelError(f"Model {model.name!r} has no muscles. Use a model with muscles, or actuate by torques.")
        known = [coordinate.name for coordinate in model.coordinates]
        for name in self.reserves:
            if name not in known:
                raise SettingsError(f"reserves: {unknown_name('coordinate', name, known)}")
