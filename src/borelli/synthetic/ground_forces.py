"""Ground forces that a motion needs, by Newton and Euler, given to the feet that stand."""

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
    """What the ground exerts on each foot: (frames, 2, 3), left first."""

    force: Array
    """[N]"""
    center: Array
    """Of pressure [m], on z = 0; not a number where the foot is free."""
    free_moment: Array
    """[N m]"""


def sole_points(model: Model, coordinates: Array) -> Array:
    """Corners of the undersides of the feet: (frames, 2, 8, 3) [m], left first; four of the foot, four of the toes."""
    bodies, places = [], []
    for letter in ("l", "r"):
        for name in ("foot", "toes"):
            middle, half = extent(model.body(f"{name}_{letter}"))
            for x in (-1.0, 1.0):
                for y in (-1.0, 1.0):
                    bodies.append(f"{name}_{letter}")
                    places.append(middle + half * (x, y, -1.0))
    return point_positions(model, coordinates, bodies, places).reshape(len(coordinates), 2, 8, 3)


def root_wrench(model: Model, q: Array, speeds: Array, accelerations: Array) -> tuple[Array, Array]:
    """Force [N] and moment about the world's origin [N m] that must act from outside: (frames, 3) each.

    The root must be a free joint with coordinates x, y, z, then Cardan angles about x, y, z.
    """
    needed = generalized_forces(model, q, speeds, accelerations)[:, :6]
    roll, pitch = q[:, 3], q[:, 4]
    zero, one = np.zeros(len(q)), np.ones(len(q))
    first = np.stack([one, zero, zero], axis=1)
    second = np.stack([zero, np.cos(roll), np.sin(roll)], axis=1)
    third = np.stack([np.sin(pitch), -np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch)], axis=1)
    axes = np.stack([first, second, third], axis=1)
    moment = np.linalg.solve(axes, needed[:, 3:, None])[..., 0]
    force = needed[:, :3]
    place = poses(model, q)[0][:, 0]
    return force, moment + np.cross(place, force)


def share_loads(force: Array, moment: Array, share: Array, under: Array) -> Loads:
    """The ground's force and moment about the origin given to two feet.

    Args:
        force: (frames, 3) [N].
        moment: (frames, 3) [N m] about the world's origin.
        share: (frames,) part of the load on the left foot, from 0 to 1.
        under: (frames, 2, 3) where each foot would like its centre of pressure [m]; both are shifted alike, so that
            the moment is right.
    """
    up = np.maximum(force[:, 2], 1e-9)
    zmp = np.stack([-moment[:, 1] / up, moment[:, 0] / up, np.zeros(len(up))], axis=1)
    part = np.stack([share, 1.0 - share], axis=1)[..., None]
    wanted = (part * under).sum(axis=1)
    center = under + (zmp - wanted)[:, None]
    center[..., 2] = 0.0
    shared = part * force[:, None]
    spin = np.zeros_like(shared)
    arms = np.cross(center, shared).sum(axis=1)
    spin[..., 2] = part[..., 0] * (moment[:, 2] - arms[:, 2])[:, None]
    bare = shared[..., 2] < 1e-6
    shared[bare], spin[bare], center[bare] = 0.0, 0.0, np.nan
    return Loads(shared, center, spin)
