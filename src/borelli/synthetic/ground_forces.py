"""Ground reaction forces that a motion requires, by Newton and Euler, distributed to the feet on the ground."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.model.kinematics import generalized_forces, point_positions, poses
from borelli.model.marker_sets import extent
from borelli.model.model import Model

Array = NDArray[np.float64]

SIDES = ("left", "right")


class Loads(NamedTuple):
    """Ground reaction on each foot: (frames, 2, 3), left first."""

    force: Array
    """[N]"""
    center: Array
    """Center of pressure [m], on z = 0; NaN where the foot is unloaded."""
    free_moment: Array
    """[N m]"""


def sole_points(model: Model, coordinates: Array) -> Array:
    """Return the corners of the soles (frames, 2, 8, 3) [m], left first; four of the foot, four of the toes."""
    bodies, points = [], []
    for letter in ("l", "r"):
        for name in ("foot", "toes"):
            center, half = extent(model.body(f"{name}_{letter}"))
            for x in (-1.0, 1.0):
                for y in (-1.0, 1.0):
                    bodies.append(f"{name}_{letter}")
                    points.append(center + half * (x, y, -1.0))
    return point_positions(model, coordinates, bodies, points).reshape(len(coordinates), 2, 8, 3)


def root_wrench(model: Model, q: Array, velocities: Array, accelerations: Array) -> tuple[Array, Array]:
    """Return the external force [N] and moment about the world's origin [N m] that a motion requires, (frames, 3) each.

    The root must be a free joint with coordinates x, y, z, then Cardan angles about x, y, z.
    """
    needed = generalized_forces(model, q, velocities, accelerations)[:, :6]
    roll, pitch = q[:, 3], q[:, 4]
    zero, one = np.zeros(len(q)), np.ones(len(q))
    first = np.stack([one, zero, zero], axis=1)
    second = np.stack([zero, np.cos(roll), np.sin(roll)], axis=1)
    third = np.stack([np.sin(pitch), -np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch)], axis=1)
    axes = np.stack([first, second, third], axis=1)
    moment = np.linalg.solve(axes, needed[:, 3:, None])[..., 0]
    force = needed[:, :3]
    origin = poses(model, q)[0][:, 0]
    return force, moment + np.cross(origin, force)


def distribute_load(force: Array, moment: Array, fraction: Array, under: Array) -> Loads:
    """Distribute the ground's force [N] and moment about the origin [N m], (frames, 3) each, to two feet.

    `fraction` (frames,) of the load is on the left foot. The preferred centers of pressure `under` the feet
    (frames, 2, 3) [m] are displaced equally to match the moment.
    """
    up = np.maximum(force[:, 2], 1e-9)
    zmp = np.stack([-moment[:, 1] / up, moment[:, 0] / up, np.zeros(len(up))], axis=1)
    part = np.stack([fraction, 1.0 - fraction], axis=1)[..., None]
    mean = (part * under).sum(axis=1)
    center = under + (zmp - mean)[:, None]
    center[..., 2] = 0.0
    forces = part * force[:, None]
    free_moment = np.zeros_like(forces)
    arms = np.cross(center, forces).sum(axis=1)
    free_moment[..., 2] = part[..., 0] * (moment[:, 2] - arms[:, 2])[:, None]
    unloaded = forces[..., 2] < 1e-6
    forces[unloaded], free_moment[unloaded], center[unloaded] = 0.0, 0.0, np.nan
    return Loads(forces, center, free_moment)
