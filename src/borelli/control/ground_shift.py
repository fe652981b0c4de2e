"""Displacement of a motion that sets it on the ground: no hovering, no feet under the floor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.ground.soles import shape_corners
from borelli.model.kinematics import poses, tree_links
from borelli.model.model import Model
from borelli.model.transforms import orientation_matrix
from borelli.recording.recording import Note

Array = NDArray[np.float64]

STANCE_PERCENTILE = 20.0
"""Percentile of the lowest point over time that is set on the ground: a foot is on the ground for most of a walk, and
in the lowest frames noise puts it deeper."""
MAX_SHIFT = 0.3
"""Largest displacement [m] that corrects an error of height; beyond it the motion is not one on this ground."""
MIN_SHIFT = 1e-4
"""Smallest displacement [m] that is made."""


def lowest_heights(model: Model, table: Array) -> Array:
    """Return the height [m] of the lowest corner of all colliding shapes above the model's ground plane, (frames,)."""
    up = -np.array(model.gravity) / np.linalg.norm(model.gravity)
    origin, rotation = poses(model, table)
    lowest = np.full(len(table), np.inf)
    for b, body in enumerate(model.bodies):
        for shape in body.shapes:
            if shape.collides and shape.kind != "plane":
                corners = np.einsum("fij,pj->fpi", rotation[:, b], shape_corners(shape)) + origin[:, b, None]
                lowest = np.minimum(lowest, (corners @ up).min(axis=1))
    return lowest - ground_height(model, up)


def ground_shift(model: Model, table: Array) -> tuple[Array, tuple[Note, ...]]:
    """Return the displacement (coordinates,) that sets a motion (frames, coordinates) on the ground, and notes."""
    result, up = np.zeros(table.shape[1]), upward(model)
    if up is None:
        return result, ()
    heights = lowest_heights(model, table)
    if not np.isfinite(heights).all():
        return result, ()
    level = float(np.percentile(heights, STANCE_PERCENTILE))
    if abs(level) < MIN_SHIFT:
        return result, ()
    if abs(level) > MAX_SHIFT:
        text = f"The lowest point of the body is {level:.2f} m from the ground, so the motion was not set on it."
        return result, (Note(text, "problem", "check the height of the ground", code="ground_shift"),)
    for column, axis in root_translations(model):
        result[column] -= level * float(axis @ up)
    if not result.any():
        return result, ()
    way = "lowered" if level > 0.0 else "raised"
    text = f"The motion was {way} by {1e3 * abs(level):.0f} mm, so that the feet stand on the ground."
    return result, (Note(text, "changed", code="ground_shift"),)


def upward(model: Model) -> Array | None:
    """Return the unit vector against gravity; None without gravity."""
    norm = float(np.linalg.norm(model.gravity))
    return -np.array(model.gravity) / norm if norm > 0.0 else None


def root_translations(model: Model) -> list[tuple[int, Array]]:
    """Return the coordinates that translate a root relative to the ground, and their unit directions (3,)."""
    return [
        (part.column, link.parent_rotation @ part.axis)
        for link in tree_links(model)
        if link.parent < 0
        for part in link.translations
        if part.column >= 0 and part.function is None
    ]


def ground_height(model: Model, up: Array) -> float:
    """Return the height [m] of the highest horizontal ground plane; 0 without one."""
    planes = [shape.frame for shape in model.ground if shape.kind == "plane"]
    level = [float(np.array(f.position) @ up) for f in planes if orientation_matrix(f.orientation)[:, 2] @ up > 0.999]
    return max(level, default=0.0)
