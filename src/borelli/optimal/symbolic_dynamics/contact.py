"""Smooth contact of spheres and points with level ground, as CasADi expressions.

With d the depth of the lowest point below the ground and d' its rate, the normal force is that of Hunt and Crossley
(1975), and friction follows Coulomb's law, both without kinks:

    N = k p^1.5 (1 + 1.5 c d')+,    p = d+,    T = -mu N tanh(|v| / vt) v / |v|

x+ = (x + sqrt(x^2 + e^2)) / 2 is a smooth positive part, so a sphere in the air has a force of order k (e / 2)^1.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from borelli.errors import ModelError, SettingsError
from borelli.files.html_repr import fields_repr
from borelli.model.model import Model
from borelli.optimal.casadi_import import ca
from borelli.optimal.symbolic_dynamics.vectors import Expression, Vector, add, column, cross, dot, scale, subtract

DAMPING_SMOOTHING = 0.01
"""Width of the positive part of 1 + 1.5 c d': a hundredth of the factor at rest."""
SLIP_SMOOTHING = 1e-3
"""Width [vt] of |v| at zero: sqrt(v^2 + width^2) changes tanh(|v| / vt) / |v| by less than its square."""


@dataclass(frozen=True, slots=True)
class SphereContact:
    """Sphere of a body that touches level ground; radius zero is a point."""

    name: str
    body: str
    position: tuple[float, float, float]
    """[m] of the center, in the body's frame."""
    radius: float = 0.0
    """[m]"""
    stiffness: float = 1e5
    """k [N/m^1.5]; 1e5 is soft ground, on which coarse meshes converge."""
    dissipation: float = 1.0
    """c [s/m]"""
    friction: float = 0.8
    """Coulomb coefficient mu."""
    slip_velocity: float = 0.1
    """vt [m/s] of tanh."""
    smoothing: float = 4e-3
    """e [m] of the depth."""
    ground_height: float = 0.0
    """[m] of the ground above the world's origin, against gravity."""

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        for name in ("radius", "dissipation", "friction"):
            if not getattr(self, name) >= 0.0:
                raise SettingsError(f"Contact {self.name!r}: {name} is {getattr(self, name):g}. Give zero or more.")
        for name in ("stiffness", "slip_velocity", "smoothing"):
            if not getattr(self, name) > 0.0:
                raise SettingsError(f"Contact {self.name!r}: {name} is {getattr(self, name):g}. Give more than zero.")


@dataclass(frozen=True, slots=True)
class ContactForce:
    """Force of the ground on a body at the lowest point of a sphere, in the world."""

    contact: SphereContact
    point: Vector
    force: Vector
    depth: Expression
    normal_force: Expression


def up_direction(model: Model) -> list[float]:
    """Return the unit vector against gravity.

    Raises:
        ModelError: if the model has no gravity.
    """
    size = float(np.linalg.norm(model.gravity))
    if size == 0.0:
        raise ModelError(f"Model {model.name!r} has no gravity, so contacts have no vertical. Set its gravity.")
    return [-g / size + 0.0 for g in model.gravity]


def contact_force(
    contact: SphereContact, up: list[float], center: Vector, center_velocity: Vector, angular_velocity: Vector
) -> ContactForce:
    """Return the force of the ground on a sphere; positions, velocities and forces are in the world."""
    arm = scale(-contact.radius, up)
    point = add(center, arm)
    velocity = add(center_velocity, cross(angular_velocity, arm))
    depth = contact.ground_height - dot(up, point)
    rise = dot(up, velocity)
    slip = subtract(velocity, scale(rise, up))
    damping = positive_part(1.0 - 1.5 * contact.dissipation * rise, DAMPING_SMOOTHING)
    normal = contact.stiffness * positive_part(depth, contact.smoothing) ** 1.5 * damping
    speed = ca.sqrt(dot(slip, slip) + (SLIP_SMOOTHING * contact.slip_velocity) ** 2)
    ratio = contact.friction * ca.tanh(speed / contact.slip_velocity) / speed
    force = subtract(scale(normal, up), scale(ratio * normal, slip))
    return ContactForce(contact, point, force, depth, normal)


def positive_part(x: Expression, width: float) -> Expression:
    """Return (x + sqrt(x^2 + width^2)) / 2."""
    return 0.5 * (x + ca.sqrt(x * x + width * width))


def rates(expressions: list[Expression], q: ca.SX, v: ca.SX) -> list[Expression]:
    """Return the time derivatives of expressions of q that moves with v."""
    rate = ca.jtimes(column(expressions), q, v)
    return [rate[i] for i in range(len(expressions))]
