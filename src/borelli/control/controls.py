"""Controls: which coordinate or ball joint tracks which target, with what response and largest force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from borelli.control.response import PD, Response
from borelli.control.rotation_targets import RotationTargets
from borelli.control.targets import Targets
from borelli.errors import SettingsError, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import fields_repr
from borelli.kernels.array_checks import as_number
from borelli.model.model import Model

Array = NDArray[np.float64]

DEFAULT_RESPONSE = PD.from_settling_time(0.5)
"""Errors fall below 2 % in half a second, without overshoot."""


@dataclass(frozen=True)
class Control:
    """Control of a coordinate, or of a ball joint, towards a target."""

    name: str
    """Name of the coordinate, or of the ball joint."""
    target: Targets | RotationTargets
    """Targets of coordinates, this one among them; or of the ball joint."""
    response: Response = DEFAULT_RESPONSE
    """Response of the tracking error."""
    max_force: float | Callable[[float], float] = inf
    """Largest torque or force [N m or N], or that as a function of time [s]."""

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        if isinstance(self.target, RotationTargets) and self.target.joint != self.name:
            raise SettingsError(
                f"control of {self.name!r}: The target is for joint {self.target.joint!r}. Pass a target of this joint."
            )
        if isinstance(self.target, Targets) and self.name not in self.target.coordinates:
            known = unknown_name("coordinate", self.name, self.target.coordinates)
            raise SettingsError(f"control of {self.name!r}: The target does not contain it: {known}")
        if not callable(self.max_force):
            _check_max_force(self.name, self.max_force)

    @check_arguments
    def coordinates(self, model: Model) -> tuple[str, ...]:
        """Return the names of the coordinates it acts on."""
        if isinstance(self.target, Targets):
            return (self.name,)
        return tuple(coordinate.name for coordinate in model.joint(self.name).coordinates)

    @check_arguments
    def max_forces(self, times: Array) -> Array:
        """Return the largest torque or force (times,) [N m or N]."""
        if not callable(self.max_force):
            return np.full(len(times), float(self.max_force))
        for value in (values := [self.max_force(float(time)) for time in times]):
            _check_max_force(self.name, value)
        return np.array(values, float)


def make_controls(
    targets: Targets, response: Response = DEFAULT_RESPONSE, max_force: float | Callable[[float], float] = inf
) -> tuple[Control, ...]:
    """Return a control of every coordinate that has a target, all with the same response and largest force.

    Args:
        targets: Targets of coordinates.
        response: Response of the tracking error.
        max_force: Largest torque or force [N m or N], or that as a function of time [s].
    """
    return tuple(Control(name, targets, response, max_force) for name in targets.coordinates)


def check_controls(model: Model, controls: Sequence[Control]) -> None:
    """Raise SettingsError if a control acts on something unknown, or two act on one coordinate."""
    owner: dict[str, Control] = {}
    balls = {joint.name for joint in model.joints if joint.kind == "ball"}
    known = {coordinate.name for coordinate in model.coordinates}
    for control in controls:
        among = balls if isinstance(control.target, RotationTargets) else known
        if control.name not in among:
            what = "ball joint" if among is balls else "coordinate"
            raise SettingsError(f"controls: {unknown_name(what, control.name, sorted(among))}")
        for name in control.coordinates(model):
            if name in owner:
                raise SettingsError(
                    f"controls: Coordinate {name!r} is controlled twice, by {owner[name].name!r} and by "
                    f"{control.name!r}. Remove one of them."
                )
            owner[name] = control
    for joint in model.joints:
        acting = [owner[coordinate.name] for coordinate in joint.coordinates if coordinate.name in owner]
        if joint.kind == "ball" and len(acting) == 3 and any(c.response != acting[0].response for c in acting):
            raise SettingsError(
                f"controls: The coordinates of ball joint {joint.name!r} rotate it together, but their responses "
                "differ. Give all three the same response."
            )


def _check_max_force(name: str, max_force: float) -> None:
    if as_number(f"control of {name!r}: max_force", max_force, finite=False) < 0.0:
        raise SettingsError(f"control of {name!r}: max_force is {max_force}, but it must be 0 or larger. Correct it.")
