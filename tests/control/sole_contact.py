"""Heights and slips of soles from the poses of bodies, by corners of boxes: no code of the program but its model."""

from itertools import product
from typing import NamedTuple

import numpy as np

CONTACT = 0.003
"""Corners this close to the lowest one [m] are in contact."""


class Sole(NamedTuple):
    """Worst values [m] of a sole over the frames in which it stands."""

    height: float
    """Largest height of its lowest corner."""
    depth: float
    """Largest depth under the ground."""
    slip: float
    """Largest distance that the part in contact has moved along the ground in one stance."""


def rotations(quaternions):
    """Matrices (..., 3, 3) of unit quaternions (..., 4), scalar first."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def sole_corners(model, side, position, rotation):
    """Corners (frames, corners, 3) of the boxes of a foot and its toes."""
    index, clouds = {body.name: i for i, body in enumerate(model.bodies)}, []
    for name in (f"foot_{side}", f"toes_{side}"):
        for shape in model.body(name).shapes:
            assert shape.kind == "box"
            local = np.array(list(product((-1.0, 1.0), repeat=3))) * shape.size
            local = local @ rotations(np.array(shape.frame.orientation)).T + shape.frame.position
            b = index[name]
            clouds.append(np.einsum("fij,pj->fpi", rotation[:, b], local) + position[:, b, None])
    return np.concatenate(clouds, axis=1)


def measure_sole(corners, time, stances):
    """Worst values of one sole over stances, each given by its first and last time [s]."""
    lowest = corners[..., 2].min(axis=1)
    velocity = np.gradient(corners[..., :2], time, axis=0)
    height, slip = -np.inf, 0.0
    for start, end in stances:
        k = np.flatnonzero((time >= start) & (time <= end))
        touches = corners[k, :, 2] < lowest[k, None] + CONTACT
        contact = (velocity[k] * touches[..., None]).sum(axis=1) / touches.sum(axis=1)[:, None]
        way = np.cumsum(contact * np.gradient(time[k])[:, None], axis=0)
        height = max(height, float(lowest[k].max()))
        slip = max(slip, float(np.linalg.norm(way - way[0], axis=1).max()))
    return Sole(height, -float(lowest.min()), slip)


def measure_soles(model, time, position, rotation, *, raw=False):
    """Worst values of the soles, by side, as if they stood all the time; `raw`: heights of lowest corners."""
    corners = {side: sole_corners(model, side, position, rotation) for side in "rl"}
    if raw:
        return {side: one[..., 2].min(axis=1) for side, one in corners.items()}
    return {side: measure_sole(one, time, [(time[0], time[-1])]) for side, one in corners.items()}


def find_stances(corners, time, *, near=0.04, slow=0.35, least=0.15):
    """Times [s] from and to which a sole is slow [m/s] and near its usual level [m] then, in a motion as recorded."""
    lowest = corners[..., 2].min(axis=1)
    which = corners[..., 2].argmin(axis=1)
    speed = np.linalg.norm(np.gradient(corners[..., :2], time, axis=0), axis=-1)[np.arange(len(time)), which]
    stands = (np.abs(lowest - np.median(lowest[speed < slow])) < near) & (speed < slow)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], stands.astype(int), [0]])))
    runs = [(float(time[a]), float(time[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return [(a, b) for a, b in runs if b - a >= least]
