"""What is done to a body to see how it reacts: pushes, loads, weak joints, obstacles, moving ground.

Forward, left and up are as the body heads at that time: forward is the root's own x axis, laid level (a human's and an
OpenSim model's x points forward); of a root that lies on its back or front it is the root's own way up, laid level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.model import GROUND, Frame, Model, Shape, Vector

Array = NDArray[np.float64]
Heading = Callable[[float], Array]
"""Forward, left and up, as rows (3, 3) in the model's axes, at a time [s]."""

DIRECTIONS: dict[str, Vector] = {
    "forward": (1.0, 0.0, 0.0),
    "back": (-1.0, 0.0, 0.0),
    "left": (0.0, 1.0, 0.0),
    "right": (0.0, -1.0, 0.0),
    "up": (0.0, 0.0, 1.0),
    "down": (0.0, 0.0, -1.0),
}
LEVEL = 0.3
"""Least level part of the root's x axis that tells where it heads."""


@dataclass(frozen=True, slots=True)
class Push:
    """A push on a body for a while, as the body heads when it begins. `Force` is one in the world's axes."""

    body: str
    force: Vector
    """Forward, left, up [N]."""
    start: float = 0.0
    duration: float = 0.1
    """[s]"""
    point: Vector | None = None
    """Where it acts, in the body's frame [m]; None: at the centre of mass."""

    def __post_init__(self) -> None:
        _check_finite(f"push on {self.body!r}", force=self.force, point=self.point, start=self.start)
        _check_positive(f"push on {self.body!r}", "duration", self.duration, "s")


@dataclass(frozen=True, slots=True)
class CarriedLoad:
    """A load on a body, from the start on."""

    body: str
    mass: float
    """[kg]"""
    point: Vector | None = None
    """Where it is held, in the body's frame [m]; None: at the centre of mass."""
    hanging: bool = False
    """It swings below the point on a ball joint; otherwise it is welded to the body."""
    outside: bool = False
    """The controller does not know of it and is weighed down; otherwise it is carried without effort (seed Fig. 1)."""

    def __post_init__(self) -> None:
        _check_finite(f"load on {self.body!r}", point=self.point)
        _check_positive(f"load on {self.body!r}", "mass", self.mass, "kg")

    @property
    def name(self) -> str:
        """Of the body that is added to the model."""
        return f"load on {self.body}"


@dataclass(frozen=True, slots=True)
class WeakenedJoint:
    """A coordinate, or all of a joint's, that has a share of its strength left for a while.

    Of a drive, all of its force. Of a controlled coordinate, its limit: or where it has none, the largest force that
    following its target takes while nothing disturbs it.
    """

    name: str
    share: float
    """Of the strength that is left, 0 to 1."""
    start: float = 0.0
    end: float = inf
    """[s]"""

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise SettingsError(f"weakened {self.name!r}: the share left is {self.share:g}; it must be from 0 to 1")
        _check_span(f"weakened {self.name!r}", self.start, self.end)

    def coordinates(self, model: Model) -> list[str]:
        """The coordinates meant.

        Raises:
            SettingsError: none is; the nearest names are told.
        """
        of_joint = {joint.name: [c.name for c in joint.coordinates] for joint in model.joints}
        known = [c.name for c in model.coordinates]
        found = [self.name] if self.name in known else of_joint.get(self.name, [])
        if not found:
            names = dict.fromkeys((*known, *(name for name, own in of_joint.items() if own)))
            raise SettingsError(f"weaken: {unknown_name('coordinate or joint', self.name, names)}")
        return found


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A shape in the way that nothing moves; it may come, go and travel."""

    shape: Shape
    frame: Frame
    """Where it is when it comes, in the world."""
    start: float = 0.0
    end: float = inf
    """When it is there [s]."""
    velocity: Vector = (0.0, 0.0, 0.0)
    """[m/s], in the world."""
    name: str = "obstacle"

    def __post_init__(self) -> None:
        _check_finite(f"{self.name}", position=self.frame.position, velocity=self.velocity)
        _check_span(f"{self.name}", self.start, self.end)


@dataclass(frozen=True, slots=True)
class MoveGround:
    """The ground is shifted, with the least jerk, as the body heads when it begins; several add up."""

    by: Vector
    """Forward, left, up [m]."""
    start: float = 0.0
    duration: float = 0.5
    """[s]"""

    def __post_init__(self) -> None:
        _check_finite("ground", by=self.by, start=self.start)
        _check_positive("ground", "duration", self.duration, "s")

    def share(self, time: float) -> float:
        """Of the way that is done at a time (Flash and Hogan 1985)."""
        s = min(max((time - self.start) / self.duration, 0.0), 1.0)
        return s**3 * (10.0 - s * (15.0 - 6.0 * s))


Perturbation = Push | CarriedLoad | WeakenedJoint | Obstacle | MoveGround


def root_of(model: Model) -> str:
    """The body that says where the model heads: the first that hangs on the ground."""
    for joint in model.joints:
        if joint.parent == GROUND and not model.body(joint.child).kinematic:
            return joint.child
    if not model.bodies:
        raise ModelError(f"model {model.name!r} has no bodies, so it heads nowhere")
    return model.bodies[0].name


def heading(model: Model, rotation: Array) -> Array:
    """Forward, left and up, as rows (3, 3) in the model's axes, of a root of that rotation (3, 3)."""
    size = float(np.linalg.norm(model.gravity))
    up = np.array([0.0, 0.0, 1.0]) if size == 0.0 else -np.array(model.gravity) / size
    # the root's own way up is the axis nearest to up in a model that stands
    own_up = np.eye(3)[int(np.argmax(np.abs(up)))] * np.sign(up[int(np.argmax(np.abs(up)))])
    for axis in (np.array([1.0, 0.0, 0.0]), own_up):
        forward = rotation @ axis
        forward = forward - (forward @ up) * up
        length = float(np.linalg.norm(forward))
        if length > LEVEL:
            break
    forward /= length
    return np.array([forward, np.cross(up, forward), up])


def _check_finite(where: str, **values: float | Vector | None) -> None:
    for what, value in values.items():
        if value is not None and not np.isfinite(value).all():
            raise SettingsError(f"{where}: {what} is {value}; it must be finite")


def _check_positive(where: str, what: str, value: float, unit: str) -> None:
    if not (isfinite(value) and value > 0.0):
        raise SettingsError(f"{where}: {what} is {value:g} {unit}; it must be positive and finite")


def _check_span(where: str, start: float, end: float) -> None:
    if not (isfinite(start) and end > start):
        raise SettingsError(f"{where}: it starts at {start:g} s and ends at {end:g} s; it must end later")
