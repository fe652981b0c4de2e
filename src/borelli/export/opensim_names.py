"""What OpenSim calls the coordinates of our human, and its pelvis's angles counted as OpenSim counts them.

OpenSim's ground has x forward, y up, z to the right; its pelvis turns by tilt about z, list about x, rotation about y,
each about an axis carried by those before (Rajagopal et al. 2016). Signs are those of that model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.motion import Motion, to_model_axes
from borelli.model.model import Model

Array = NDArray[np.float64]

TO_Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""Turns the lab's vectors into OpenSim's: v @ TO_Y_UP.T."""

SIDED = {
    "knee_flexion": "knee_angle", "knee_rotation": "knee_rotation", "ankle_flexion": "ankle_angle",
    "ankle_inversion": "subtalar_angle", "toe_extension": "mtp_angle", "shoulder_flexion": "arm_flex",
    "shoulder_adduction": "arm_add", "shoulder_rotation": "arm_rot", "elbow_flexion": "elbow_flex",
    "elbow_pronation": "pro_sup", "wrist_flexion": "wrist_flex", "wrist_deviation": "wrist_dev",
}  # fmt: skip
PELVIS = ("pelvis_tilt", "pelvis_list", "pelvis_rotation", "pelvis_tx", "pelvis_ty", "pelvis_tz")


def opensim_name(coordinate: str) -> str:
    """OpenSim's name of one of our human's coordinates; other names, and OpenSim's own, are left as they are."""
    stem, _, side = coordinate.rpartition("_")
    return f"{SIDED[stem]}_{side}" if side in ("l", "r") and stem in SIDED else coordinate


def has_borelli_root(model: Model) -> bool:
    """Whether the model's root is that of `human()`, whose pelvis OpenSim describes otherwise."""
    return root_coordinates(model)[:1] == ("root_x",)


def pelvis_coordinates(motion: Motion) -> Array:
    """(frames, 6) OpenSim's pelvis coordinates [rad, m] of one of our humans."""
    turn = _pelvis_turn(motion)
    list_angle = np.arcsin(np.clip(turn[:, 2, 1], -1.0, 1.0))
    tilt = np.unwrap(np.arctan2(-turn[:, 0, 1], turn[:, 1, 1]))
    rotation = np.unwrap(np.arctan2(-turn[:, 2, 0], turn[:, 2, 2]))
    place = motion.data["body_position"].values[:, 0] @ TO_Y_UP.T
    return np.column_stack([tilt, list_angle, rotation, place])


def pelvis_forces(motion: Motion, force: Array, torque: Array, frames: slice) -> Array:
    """(frames, 6) what acts along OpenSim's pelvis coordinates [N m, N], of a wrench at the pelvis in lab axes."""
    turn = _pelvis_turn(motion)[frames]
    tilt, _, _ = pelvis_coordinates(motion)[frames, :3].T
    zero = np.zeros(len(tilt))
    first = np.stack([zero, zero, zero + 1.0], axis=1)
    second = np.stack([np.cos(tilt), np.sin(tilt), zero], axis=1)
    third = turn[:, :, 1]
    moment = torque @ TO_Y_UP.T
    turns = [(moment * axis).sum(axis=1) for axis in (first, second, third)]
    return np.column_stack([*turns, force @ TO_Y_UP.T])


def _pelvis_turn(motion: Motion) -> Array:
    """(frames, 3, 3) of the pelvis in OpenSim's axes; none while it stands upright and looks along x."""
    q = motion.data["body_orientation"].values[:, 0]
    w, x, y, z = q.T
    turn = np.stack([
        np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], axis=-1),
        np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], axis=-1),
        np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], axis=-1),
    ], axis=1)  # fmt: skip
    turn = turn @ to_model_axes(motion.model)
    return np.asarray(TO_Y_UP @ turn @ TO_Y_UP.T)
