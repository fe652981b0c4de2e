"""Long axis of the foot in the model: from heel to second metatarsal, where the model has their markers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from borelli.analysis.motion import to_model_axes
from borelli.model.kinematics import marker_positions, poses
from borelli.model.model import Model
from borelli.numerics.vectors import Array
from borelli.recording.labels.interpret import interpret_labels

FOOT_BODIES = ("foot", "calcn", "calcaneus")
"""Names of the foot's body, without its side, in order of preference."""
FRONT_LANDMARKS = (("mt2",), ("toe_center",), ("mt1", "mt5"), ("toe",))
"""Landmarks at the front of the axis, in order of preference; of two, their midpoint."""


class FootAxis(NamedTuple):
    """Bodies of a foot and of the shank (its joint's parent), by index, and the direction (3,) of the foot's axis.

    The direction is in the foot's body, in lab axes in the default pose.
    """

    foot: int
    shank: int
    ahead: Array

    def heading(self, foot: Array, shank: Array) -> Array:
        """Return the heading (frames,) [rad from x] of the foot from rotations (frames, 3, 3) of foot and shank.

        While the foot points down at toe-off, its axis has no heading. That of the horizontal axis across the foot is
        used: perpendicular to the foot's axis, and turning with the shank (Kadaba et al. 1990).
        """
        along = foot @ (self.ahead / np.linalg.norm(self.ahead))
        left = shank[:, :, 1]
        across = left - (left * along).sum(axis=1, keepdims=True) * along
        return np.asarray(np.arctan2(-across[:, 0], across[:, 1]))


def foot_axis(model: Model, side: str) -> FootAxis | None:
    """Return the axis of the "right" or "left" foot; its body's axes without these markers; None without a foot."""
    names = [body.name for body in model.bodies]
    variants = (f"{name}_{ending}" for name in FOOT_BODIES for ending in (side[0], side))
    body = next((names.index(name) for name in variants if name in names), None)
    parent = next((joint.parent for joint in model.joints if body is not None and joint.child == names[body]), None)
    if body is None or parent not in names:
        return None
    shank = names.index(parent)
    markers: dict[str, list[int]] = {}
    for i, reading in enumerate(interpret_labels([marker.name for marker in model.markers]).readings):
        if reading.side == side:
            markers.setdefault(reading.landmark, []).append(i)
    front = next((all_of for all_of in FRONT_LANDMARKS if all(name in markers for name in all_of)), None)
    if "heel" not in markers or front is None:
        return FootAxis(body, shank, np.array([1.0, 0.0, 0.0]))
    neutral = np.array([[c.default for c in model.coordinates]])
    points = marker_positions(model, neutral)[0]
    heel = points[markers["heel"]].mean(axis=0)
    toe = np.mean([points[markers[name]].mean(axis=0) for name in front], axis=0)
    in_body = poses(model, neutral)[1][0, body].T @ (toe - heel)
    return FootAxis(body, shank, np.asarray(to_model_axes(model).T @ in_body))
