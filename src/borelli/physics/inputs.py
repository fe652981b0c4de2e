"""Inputs of a simulation: joint drives, applied forces and residuals."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

from borelli.kernels.array_checks import as_number
from borelli.model.model import Softness, Vector


@dataclass(frozen=True, slots=True)
class Drive:
    """Joint drive: a PD servo with a force limit on one coordinate."""

    coordinate: str
    target: float = 0.0
    """[rad or m]"""
    velocity: float = 0.0
    """Velocity of the target [rad/s or m/s]."""
    stiffness: float = 0.0
    """[N m/rad or N/m]"""
    damping: float = 0.0
    """[N m s/rad or N s/m]"""
    max_force: float = inf
    """Maximum torque or force [N m or N]."""
    dead_zone: float = 0.0
    """Error within which the drive does not act [rad or m]."""
    offset: float = 0.0
    """Torque or force added to that of spring and damper [N m or N]."""


def check_drive(drive: Drive) -> Drive:
    """Return the drive with 64-bit numbers.

    Raises:
        SettingsError: A value is of another type, or NaN.
    """
    names = [field.name for field in fields(drive)[1:]]
    where, unbounded = f"drive of {drive.coordinate!r}", ("stiffness", "max_force")
    numbers = [as_number(f"{where}: {n}", getattr(drive, n), finite=n not in unbounded) for n in names]
    return Drive(drive.coordinate, *numbers)


@dataclass(frozen=True, slots=True)
class AppliedForce:
    """Force and torque that act on a body during a time interval."""

    body: str
    force: Vector = (0.0, 0.0, 0.0)
    """[N], world axes."""
    torque: Vector = (0.0, 0.0, 0.0)
    """[N m], world axes."""
    point: Vector | None = None
    """Point of application in the body's frame [m]. Default: the center of mass."""
    start: float = 0.0
    end: float = inf
    """[s]"""


@dataclass(frozen=True, slots=True)
class Residual:
    """Nonphysical force that constrains one axis of a body's motion within a limit. Always reported."""

    body: str
    axis: int
    """0 to 2: along world x, y, z; 3 to 5: about them."""
    max_force: float = inf
    """Maximum force or torque [N or N m]."""
    softness: Softness = Softness(erp=1.0)
