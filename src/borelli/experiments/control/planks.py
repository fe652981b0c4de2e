"""Chains of planks on hinges, the mechanism of most figures on impulse-based control, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset

from borelli.control.controls import make_controls
from borelli.control.response import PD, Response, coefficients
from borelli.control.targets import keyframes
from borelli.control.track_targets import track_targets
from borelli.model.formats.native import model_to_text
from borelli.model.mechanisms import chain
from borelli.model.model import Model, Shape, Surface
from borelli.model.transforms import orientation_matrix
from borelli.view.plot_style import BLUE, GREEN, RED

Array = NDArray[np.float64]

GRAVITY = 9.8
"""[m/s^2], as in the published values."""
IMPULSE, TRADITIONAL, STABLE = "impulse-based PD", "traditional PD", "stable PD"
"""Names of the methods in tables and images."""
METHODS = {IMPULSE: "impulse", TRADITIONAL: "traditional", STABLE: "stable"}
COLORS = {IMPULSE: BLUE, TRADITIONAL: RED, STABLE: GREEN}


def planks(count: int, length: float, *, gravity: float = GRAVITY, friction: float = 0.8) -> Model:
    """Return a chain of planks of 1 kg, level along x from the origin; positive angles lift the distal planks.

    Inertia is that of a thin rod, length^2 / 12: the thickness affects only appearance and contact. Length is in m,
    gravity, downward, in m/s^2.
    """
    shape = Shape("box", (0.48 * length, 0.16 * length, 0.03 * length), surface=Surface(friction=friction))
    model = chain(count, shape, length, kind="hinge", height=0.0)
    across = length**2 / 12.0
    inertia = ((0.01 * across, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across))
    bodies = tuple(replace(body, mass=1.0, inertia=inertia) for body in model.bodies)
    return replace(model, name=f"{count} planks", bodies=bodies, gravity=(0.0, 0.0, -gravity))


def track_angles(model: Model, angles: float | Mapping[str, float], response: Response, **options: Any) -> Dataset:
    """Simulate a model whose coordinates, all or those named, have constant targets [rad]; see `track_targets`."""
    targets = angles if isinstance(angles, Mapping) else {c.name: angles for c in model.coordinates}
    controls = make_controls(keyframes(model, [0.0], {name: [value] for name, value in targets.items()}), response)
    return track_targets(model, controls, **({"initial_coordinates": {}} | options))


def tip_heights(data: Dataset, count: int, length: float) -> Array:
    """Return the height of the free end of the last plank [m] at every instant."""
    last = f"link_{count}"
    position = data["body_position"].sel(body=last).values
    quaternion = data["body_orientation"].sel(body=last).values
    along = np.array([orientation_matrix(tuple(q))[:, 0] for q in quaternion])
    return np.asarray(position[:, 2] + 0.5 * length * along[:, 2])


def mass_matrix(angles: Array, length: float) -> Array:
    """Return the mass matrix of a planar chain of planks of 1 kg, by hinge angles [kg m^2]."""
    count = len(angles)
    slope = np.cumsum(angles)
    # moment arms of each plank's midpoint along all planks up to it
    arms = length * (np.tril(np.ones((count, count)), -1) + 0.5 * np.eye(count))
    by_slope = (arms.T @ arms) * np.cos(slope[:, None] - slope) + length**2 / 12.0 * np.eye(count)
    slopes = np.tril(np.ones((count, count)))  # change of the slopes distal to a hinge when it rotates
    return np.asarray(slopes.T @ by_slope @ slopes)


def stiffness_at_rest(gains: PD, step: float) -> float:
    """Return the acceleration that impulse-based PD commands per error of a joint kept at rest [1/s^2].

    It is (1 - a) / h^2 with a of `response.coefficients` for doubled gains, and tends to the stiffness as h tends to 0.
    """
    return (1.0 - float(coefficients(2.0 * gains.stiffness, 2.0 * gains.damping, step)[0])) / step**2


def rotated_plank(time: Sequence[float] | Array, angle: Sequence[float] | Array, length: float = 1.0) -> Dataset:
    """Return a dataset for drawing: one plank at these angles [rad] at these times [s]."""
    a = np.asarray(angle, float)
    zero = np.zeros_like(a)
    position = 0.5 * length * np.stack([np.cos(a), zero, np.sin(a)], axis=-1)
    quaternion = np.stack([np.cos(0.5 * a), zero, -np.sin(0.5 * a), zero], axis=-1)
    return Dataset(
        {
            "body_position": (("time", "body", "axis"), position[:, None], {"units": "m", "frame": "world"}),
            "body_orientation": (("time", "body", "quaternion"), quaternion[:, None], {"units": "1", "frame": "world"}),
        },
        coords={
            "time": ("time", np.asarray(time, float), {"units": "s"}),
            "axis": ["x", "y", "z"],
            "quaternion": ["w", "x", "y", "z"],
        },
        attrs={"model": model_to_text(planks(1, length))},
    )
