"""Perturbations of a body: pushes, loads, weakened joints, obstacles, moving ground.

Forward, left and up refer to the heading of the body at that time: forward is the root's own x axis, made horizontal (x
of a human and of an OpenSim model points forward); for a root that lies on its back or front it is the root's up axis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.files.html_repr import fields_repr
from borelli.kernels.array_checks import as_floats, as_number
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
MIN_HORIZONTAL_PART = 0.3
"""Smallest horizontal part of the root's x axis that defines the heading."""


@dataclass(frozen=True, slots=True)
class Push:
    """A push on a body for a time, relative to its heading at the start. `AppliedForce` is one in world axes."""

    body: str
    force: Vector
    """Forward, left, up [N]."""
    start: float = 0.0
    duration: float = 0.1
    """[s]"""
    point: Vector | None = None
    """Point of application, in the body's frame [m]; None: center of mass."""

    def __post_init__(self) -> None:
        _check_vectors(f"push on {self.body!r}", force=self.force, point=self.point)
        as_number(f"push on {self.body!r}: start", self.start)
        _check_positive(f"push on {self.body!r}", "duration", self.duration, "s")


@dataclass(frozen=True, slots=True)
class CarriedLoad:
    """A load on a body, from the start on."""

    body: str
    mass: float
    """[kg]"""
    point: Vector | None = None
    """Attachment point, in the body's frame [m]; None: center of mass."""
    hanging: bool = False
    """The load swings below the point on a ball joint; otherwise it is welded to the body."""
    outside: bool = False
    """The load is unknown to the controller and weighs it down; otherwise the controller compensates for it."""

    def __post_init__(self) -> None:
        _check_vectors(f"load on {self.body!r}", point=self.point)
        _check_positive(f"load on {self.body!r}", "mass", self.mass, "kg")

    @property
    def name(self) -> str:
        """Name of the body that is added to the model."""
        return f"load on {self.body}"


@dataclass(frozen=True, slots=True)
class WeakenedJoint:
    """A coordinate, or all of a joint's, with a reduced strength for a time.

    The strength of a drive is all of its force. That of a controlled coordinate is its `max_force`, or without one the
    largest force of an undisturbed run.
    """

    name: str
    fraction: float
    """Remaining fraction of the strength, 0 to 1."""
    start: float = 0.0
    end: float = inf
    """[s]"""

    def __post_init__(self) -> None:
        if not 0.0 <= as_number(f"weakened {self.name!r}: fraction", self.fraction) <= 1.0:
            raise SettingsError(
                f"weakened {self.name!r}: The remaining fraction is {self.fraction:g}. Pass a number from 0 to 1."
            )
        _check_span(f"weakened {self.name!r}", self.start, self.end)

    def coordinates(self, model: Model) -> list[str]:
        """Return the names of the weakened coordinates.

        Raises:
            SettingsError: The name is unknown.
        """
        of_joint = {joint.name: [c.name for c in joint.coordinates] for joint in model.joints}
        known = [c.name for c in model.coordinates]
        names = [self.name] if self.name in known else of_joint.get(self.name, [])
        if not names:
            known_names = dict.fromkeys((*known, *(name for name, own in of_joint.items() if own)))
            raise SettingsError(f"weaken: {unknown_name('coordinate or joint', self.name, known_names)}")
        return names


@dataclass(frozen=True, slots=True)
class Obstacle:
    """An immovable shape that may appear, disappear and move with a constant velocity."""

    shape: Shape
    frame: Frame
    """Frame at the start, in the world."""
    start: float = 0.0
    end: float = inf
    """Times of appearance and disappearance [s]."""
    velocity: Vector = (0.0, 0.0, 0.0)
    """[m/s], in the world."""
    name: str = "obstacle"

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        _check_vectors(f"{self.name}", position=self.frame.position, velocity=self.velocity)
        _check_span(f"{self.name}", self.start, self.end)


@dataclass(frozen=True, slots=True)
class MoveGround:
    """A minimum-jerk displacement of the ground, relative to the heading at its start; several add up."""

    displacement: Vector
    """Forward, left, up [m]."""
    start: float = 0.0
    duration: float = 0.5
    """[s]"""

    def __post_init__(self) -> None:
        _check_vectors("ground", displacement=self.displacement)
        as_number("ground: start", self.start)
        _check_positive("ground", "duration", self.duration, "s")

    def fraction(self, time: float) -> float:
        """Return the fraction of the displacement at a time [s] (Flash and Hogan 1985)."""
        s = min(max((time - self.start) / self.duration, 0.0), 1.0)
        return s**3 * (10.0 - s * (15.0 - 6.0 * s))


Perturbation = Push | CarriedLoad | WeakenedJoint | Obstacle | MoveGround


def heading_body(model: Model) -> str:
    """Return the name of the body that defines the heading: the first on a joint to the ground."""
    for joint in model.joints:
        if joint.parent == GROUND and not model.body(joint.child).kinematic:
            return joint.child
    if not model.bodies:
        raise ModelError(f"Model {model.name!r} has no bodies, so it has no heading. Add a body.")
    return model.bodies[0].name


def heading_axes(model: Model, rotation: Array) -> Array:
    """Return forward, left and up, as rows (3, 3) in the model's axes, for a root of that rotation (3, 3)."""
    size = float(np.linalg.norm(model.gravity))
    up = np.array([0.0, 0.0, 1.0]) if size == 0.0 else -np.array(model.gravity) / size
    # the root's own up axis is the one nearest to up in the standing model
    own_up = np.eye(3)[int(np.argmax(np.abs(up)))] * np.sign(up[int(np.argmax(np.abs(up)))])
    for axis in (np.array([1.0, 0.0, 0.0]), own_up):
        forward = rotation @ axis
        forward = forward - (forward @ up) * up
        length = float(np.linalg.norm(forward))
        if length > MIN_HORIZONTAL_PART:
            break
    forward /= length
    return np.array([forward, np.cross(up, forward), up])


def _check_vectors(where: str, **vectors: Vector | None) -> None:
    for what, vector in vectors.items():
        if vector is not None:
            as_floats(f"{where}: {what}", vector, (3,))


def _check_positive(where: str, what: str, value: float, unit: str) -> None:
    if not as_number(f"{where}: {what}", value) > 0.0:
        raise SettingsError(f"{where}: {what} is {value:g} {unit}. Pass a positive, finite value.")


def _check_span(where: str, start: float, end: float) -> None:
    if not as_number(f"{where}: end", end, finite=False) > as_number(f"{where}: start", start):
        raise SettingsError(f"{where}: It starts at {start:g} s and ends at {end:g} s. The end must be later.")
