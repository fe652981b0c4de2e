"""Arrows of the forces that act on bodies during a time, as pushes do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.ground.soles import shape_corners
from borelli.model.model import Model
from borelli.numerics.quaternions import rotate
from borelli.view.mesh import Mesh, join
from borelli.view.muscle_lines import tubes

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

ARROW_COLOR = (0.86, 0.22, 0.16)
MIN_LENGTH, MAX_LENGTH, LENGTH_PER_FORCE = 0.35, 1.0, 0.002
"""Length of an arrow [m]: at least, at most, and per newton in between."""
TIP_GAP = 0.02
"""Distance of the tip from the body [m]."""
HEAD = 0.28
"""Length of the head, relative to the arrow."""
SHAFT_TUBES, SHAFT_RADIUS = 6, 0.012
"""Thin tubes around the axis of a shaft, and their distance from it [m]: together they look like a thick one."""
MIN_SHOWN = 0.12
"""Shortest time for which an arrow is shown [s]: a push of one step would be missed."""


class ForceArrow(NamedTuple):
    """A force on a body for a time."""

    body: int
    point: Array
    """(3,) in the body frame [m]."""
    force: Array
    """(3,) [N], lab axes."""
    corners: Array
    """(corners, 3) of the body's shapes, from the point, in the body frame [m]: the arrow ends outside of them."""
    start: float
    end: float
    """[s]"""


def force_arrows(data: Dataset, model: Model, rotation: Array) -> tuple[ForceArrow, ...]:
    """Return the arrows of the forces that a simulation's dataset names; `rotation` is from model to lab axes."""
    names = [body.name for body in model.bodies]
    arrows = []
    for one in json.loads(data.attrs.get("applied_forces", "[]")):
        if one["body"] in names and any(one["force"]):
            force = rotation @ np.array(one["force"], float)
            b, point = names.index(one["body"]), np.array(one["point"], float)
            corners = [np.zeros((1, 3)), *(shape_corners(shape) - point for shape in model.bodies[b].shapes)]
            arrows.append(ForceArrow(b, point, force, np.concatenate(corners), one["start"], one["end"]))
    return tuple(arrows)


def arrow_mesh(arrows: tuple[ForceArrow, ...], time: float, position: Array, orientation: Array) -> Mesh | None:
    """Return the arrows that are shown at a time, with their tips at the bodies; None if there are none."""
    segments = []
    for one in arrows:
        if not one.start <= time <= max(one.end, one.start + MIN_SHOWN) or np.isnan(position[one.body]).any():
            continue
        size = float(np.linalg.norm(one.force))
        along = one.force / size
        turn = np.broadcast_to(orientation[one.body], (len(one.corners), 4))
        outside = float((rotate(turn, one.corners) @ -along).max()) + TIP_GAP
        tip = position[one.body] + rotate(orientation[one.body], one.point) - outside * along
        length = float(np.clip(LENGTH_PER_FORCE * size, MIN_LENGTH, MAX_LENGTH))
        side = np.cross(along, np.eye(3)[np.abs(along).argmin()])
        side /= np.linalg.norm(side)
        other = np.cross(along, side)
        for angle in 2.0 * np.pi * np.arange(SHAFT_TUBES) / SHAFT_TUBES:
            around = np.cos(angle) * side + np.sin(angle) * other
            segments.append((tip - length * along + SHAFT_RADIUS * around, tip - 0.1 * length * along))
        for angle in 2.0 * np.pi * np.arange(2 * SHAFT_TUBES) / (2 * SHAFT_TUBES):
            around = np.cos(angle) * side + np.sin(angle) * other
            segments.append((tip, tip - HEAD * length * (along - 0.45 * around)))
    return join([tubes(np.array(segments))]) if segments else None
