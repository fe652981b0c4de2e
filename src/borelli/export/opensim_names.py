"""OpenSim's names of the coordinates of `human()`, and its pelvis coordinates and forces.

OpenSim's ground has x forward, y up, z to the right; its pelvis rotates by tilt about z, list about x and rotation
about y, each about the axis moved by the rotations before (Rajagopal et al. 2016). Signs are those of that model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import Motion, to_model_axes
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.numerics.quaternions import rotation_matrix

Array = NDArray[np.float64]

TO_Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""Rotation from lab to OpenSim axes: v @ TO_Y_UP.T."""

SIDED = {
    "knee_flexion": "knee_angle", "knee_rotation": "knee_rotation", "ankle_flexion": "ankle_angle",
    "ankle_inversion": "subtalar_angle", "toe_extension": "mtp_angle", "shoulder_flexion": "arm_flex",
    "shoulder_adduction": "arm_add", "shoulder_rotation": "arm_rot", "elbow_flexion": "elbow_flex",
    "elbow_pronation": "pro_sup", "wrist_flexion": "wrist_flex", "wrist_deviation": "wrist_dev",
}  # fmt: skip
PELVIS = ("pelvis_tilt", "pelvis_list", "pelvis_rotation", "pelvis_tx", "pelvis_ty", "pelvis_tz")


def opensim_name(coordinate: str) -> str:
    """Return OpenSim's name of a coordinate of `human()`; other names are returned unchanged."""
    stem, _, side = coordinate.rpartition("_")
    return f"{SIDED[stem]}_{side}" if side in ("l", "r") and stem in SIDED else coordinate


def has_borelli_root(model: Model) -> bool:
    """Return whether the model has the root coordinates of `human()`, which OpenSim's models do not have."""
    return root_coordinates(model)[:1] == ("root_x",)


def pelvis_coordinates(motion: Motion) -> Array:
    """Return OpenSim's pelvis coordinates [rad, m] of a `human()`, shape (frames, 6)."""
    matrix = _pelvis_rotation(motion)
    list_angle = np.arcsin(np.clip(matrix[:, 2, 1], -1.0, 1.0))
    tilt = np.unwrap(np.arctan2(-matrix[:, 0, 1], matrix[:, 1, 1]))
    rotation = np.unwrap(np.arctan2(-matrix[:, 2, 0], matrix[:, 2, 2]))
    position = motion.data["body_position"].isel(body=0).values @ TO_Y_UP.T
    return np.column_stack([tilt, list_angle, rotation, position])


def pelvis_forces(motion: Motion, force: Array, torque: Array, frames: slice) -> Array:
    """Return the generalized forces [N m, N] along OpenSim's pelvis coordinates of a wrench in lab axes."""
    matrix = _pelvis_rotation(motion)[frames]
    tilt, _, _ = pelvis_coordinates(motion)[frames, :3].T
    zero = np.zeros(len(tilt))
    first = np.stack([zero, zero, zero + 1.0], axis=1)
    second = np.stack([np.cos(tilt), np.sin(tilt), zero], axis=1)
    third = matrix[:, :, 1]
    moment = torque @ TO_Y_UP.T
    moments = [(moment * axis).sum(axis=1) for axis in (first, second, third)]
    return np.column_stack([*moments, force @ TO_Y_UP.T])


def _pelvis_rotation(motion: Motion) -> Array:
    """Return the rotation of the pelvis in OpenSim's axes (frames, 3, 3), identity when upright and facing x."""
    matrix = rotation_matrix(motion.data["body_orientation"].isel(body=0).values) @ to_model_axes(motion.model)
    return np.asarray(TO_Y_UP @ matrix @ TO_Y_UP.T)
