"""Arrows of the forces that act on bodies during a time, as pushes do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.ground.soles import shape_corners
from borelli.model.model import Model
from borelli.numerics.quaternions import rotate
from borelli.view.mesh import Mesh, arrow, join

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

ARROW_COLOR = (0.86, 0.22, 0.16)
MIN_LENGTH, MAX_LENGTH, LENGTH_PER_FORCE = 0.35, 1.0, 0.002
"""Length of an arrow [m]: at least, at most, and per newton in between."""
TIP_GAP = 0.02
"""Distance of the tip from the body [m]."""
HEAD = 0.22
"""Length of the head, relative to the arrow."""
HEAD_WIDTH = 0.4
"""Radius of the head, relative to its length."""
SHAFT_RADIUS = 0.018
"""[m]"""
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
    meshes = []
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
        axes = np.stack([side, np.cross(along, side), along])
        mesh = arrow(length, SHAFT_RADIUS, HEAD * length, HEAD_WIDTH * HEAD * length)
        meshes.append(mesh._replace(vertices=mesh.vertices @ axes + tip, normals=mesh.normals @ axes))
    return join(meshes) if meshes else None
