"""Chains of planks on hinges, which most figures of impulse-based control are made with, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.control.controls import Control, make_controls
from borelli.control.response import PD, Response, coefficients
from borelli.control.targets import keyframes
from borelli.model.mechanisms import chain
from borelli.model.model import Model, Shape, Surface
from borelli.model.transforms import orientation_matrix

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

GRAVITY = 9.8
"""[m/s^2] of the figures to reach."""
OURS, TRADITIONAL, STABLE = "impulse-based PD", "traditional PD", "stable PD"
"""What the ways are called under pictures."""
METHODS = {OURS: "impulse", TRADITIONAL: "traditional", STABLE: "stable"}


def planks(count: int, length: float, *, gravity: float = GRAVITY, friction: float = 0.8) -> Model:
    """A chain of planks of 1 kg that lies level along x from the origin; positive angles lift what is beyond them.

    Inertia is that of a thin rod, length^2 / 12: how thick a plank is matters to the eye and to contact alone.

    Args:
        count: Of planks.
        length: Of each [m].
        gravity: [m/s^2], downwards.
        friction: Of surfaces.
    """
    shape = Shape("box", (0.48 * length, 0.16 * length, 0.03 * length), surface=Surface(friction=friction))
    model = chain(count, shape, length, kind="hinge", height=0.0)
    across = length**2 / 12.0
    inertia = ((0.01 * across, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across))
    bodies = tuple(replace(body, mass=1.0, inertia=inertia) for body in model.bodies)
    return replace(model, name=f"{count} planks", bodies=bodies, gravity=(0.0, 0.0, -gravity))


def held_at(model: Model, angles: Mapping[str, float], response: Response) -> tuple[Control, ...]:
    """Controls that bring coordinates to these values [rad or m] and hold them there."""
    return make_controls(keyframes(model, [0.0], {name: [value] for name, value in angles.items()}), response)


def tip_heights(data: Dataset, count: int, length: float) -> Array:
    """Of the last plank's free end [m] at every instant."""
    last = f"link_{count}"
    position = data["body_position"].sel(body=last).values
    quaternion = data["body_orientation"].sel(body=last).values
    along = np.array([orientation_matrix(tuple(q))[:, 0] for q in quaternion])
    return np.asarray(position[:, 2] + 0.5 * length * along[:, 2])


def mass_matrix(angles: Array, length: float) -> Array:
    """Of a chain of planks of 1 kg, by its hinges [kg m^2], in the plane that it moves in."""
    count = len(angles)
    slope = np.cumsum(angles)
    # the middle of a plank is reached by arms along each plank up to it
    arms = length * (np.tril(np.ones((count, count)), -1) + 0.5 * np.eye(count))
    by_slope = (arms.T @ arms) * np.cos(slope[:, None] - slope) + length**2 / 12.0 * np.eye(count)
    slopes = np.tril(np.ones((count, count)))  # of what is beyond a hinge, when it turns
    return np.asarray(slopes.T @ by_slope @ slopes)


def asked_pull(gains: PD, step: float) -> float:
    """The acceleration that impulse-based PD asks for, per error, of a joint that something keeps at rest [1/s^2].

    It is (1 - a) / h^2 with a as in `response.coefficients`, for the gains doubled; the stiffness, in short steps.
    """
    return (1.0 - float(coefficients(2.0 * gains.stiffness, 2.0 * gains.damping, step)[0])) / step**2


def turned_plank(time: Sequence[float] | Array, angle: Sequence[float] | Array, length: float = 1.0) -> Dataset:
    """A result to draw: one plank at these angles [rad] at these times [s]."""
    import xarray

    from borelli.model.formats.native import model_to_text

    a = np.asarray(angle, float)
    zero = np.zeros_like(a)
    position = 0.5 * length * np.stack([np.cos(a), zero, np.sin(a)], axis=-1)
    quaternion = np.stack([np.cos(0.5 * a), zero, -np.sin(0.5 * a), zero], axis=-1)
    return xarray.Dataset(
        {
            "body_position": (("time", "body", "axis"), position[:, None], {"units": "m"}),
            "body_orientation": (("time", "body", "component"), quaternion[:, None], {"units": "1"}),
        },
        coords={"time": ("time", np.asarray(time, float), {"units": "s"})},
        attrs={"model": model_to_text(planks(1, length))},
    )
