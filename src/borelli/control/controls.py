"""What is controlled: which coordinate or ball joint follows which target, how, and with what strength."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isnan

import numpy as np
from numpy.typing import NDArray

from borelli.control.response import PD, Response
from borelli.control.rotation_targets import RotationTargets
from borelli.control.targets import Targets
from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Model

Array = NDArray[np.float64]

DEFAULT_RESPONSE = PD.from_settling_time(0.5)
"""Errors are below 2 % after half a second, without overshoot."""


@dataclass(frozen=True)
class Control:
    """Makes a coordinate, or a ball joint, follow a target."""

    name: str
    """Of the coordinate, or of the ball joint."""
    target: Targets | RotationTargets
    """Of coordinates, this one among them; or of the ball joint."""
    response: Response = DEFAULT_RESPONSE
    """How its error is to die away."""
    limit: float | Callable[[float], float] = inf
    """Largest torque or force [N m or N]; or as a function of time [s]."""

    def __post_init__(self) -> None:
        if isinstance(self.target, RotationTargets) and self.target.joint != self.name:
            raise SettingsError(f"control of {self.name!r}: its target is for joint {self.target.joint!r}")
        if isinstance(self.target, Targets) and self.name not in self.target.coordinates:
            listed = unknown_name("coordinate", self.name, self.target.coordinates)
            raise SettingsError(f"control of {self.name!r}: its target does not have it; {listed}")
        if not callable(self.limit):
            _check_limit(self.name, self.limit)

    def coordinates(self, model: Model) -> tuple[str, ...]:
        """The coordinates it acts on."""
        if isinstance(self.target, Targets):
            return (self.name,)
        return tuple(coordinate.name for coordinate in model.joint(self.name).coordinates)

    def limits(self, times: Array) -> Array:
        """Largest torque or force (times,) [N m or N]."""
        if not callable(self.limit):
            return np.full(len(times), float(self.limit))
        values = np.array([self.limit(float(time)) for time in times], float)
        for value in values:
            _check_limit(self.name, value)
        return values


def make_controls(
    targets: Targets, response: Response = DEFAULT_RESPONSE, limit: float | Callable[[float], float] = inf
) -> tuple[Control, ...]:
    """A control of every coordinate that has a target, all of one response and one limit."""
    return tuple(Control(name, targets, response, limit) for name in targets.coordinates)


def check_controls(model: Model, controls: Sequence[Control]) -> None:
    """Raises SettingsError if a control acts on what the model does not have, or two on one coordinate."""
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
                    f"controls: coordinate {name!r} is controlled twice, by {owner[name].name!r} and by "
                    f"{control.name!r}; leave out one of them"
                )
            owner[name] = control
    for joint in model.joints:
        acting = [owner[coordinate.name] for coordinate in joint.coordinates if coordinate.name in owner]
        if joint.kind == "ball" and len(acting) == 3 and any(c.response != acting[0].response for c in acting):
            raise SettingsError(
                f"controls: the coordinates of ball joint {joint.name!r} turn it as one, but their responses differ; "
                "give all three the same"
            )


def _check_limit(name: str, limit: float) -> None:
    if isnan(limit) or limit < 0.0:
        raise SettingsError(f"control of {name!r}: limit is {limit}; it must be 0 or larger, or infinite")
