"""Coordinates of `human()` as OpenSim names and counts them, and the model that has those coordinates.

OpenSim's ground has x forward, y up, z to the right; its pelvis rotates by tilt about z, list about x and rotation
about y, each about the axis moved by the rotations before (Rajagopal et al. 2016). Signs are those of that model.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.motion import Motion, to_model_axes
from borelli.model.formats.osim.write_elements import is_rotational, legal_names
from borelli.model.functions import linear
from borelli.model.kinematics import root_coordinates, with_default_frames
from borelli.model.model import GROUND, Coordinate, Frame, Joint, Model, Muscle, TransformAxis
from borelli.model.transforms import X, Y, Z, compose, vector
from borelli.numerics.quaternions import rotation_matrix

Array = NDArray[np.float64]

TO_Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""Rotation from lab to OpenSim axes: v @ TO_Y_UP.T."""
Y_UP, Z_UP = Frame(orientation=(sqrt(0.5), -sqrt(0.5), 0.0, 0.0)), Frame(orientation=(sqrt(0.5), sqrt(0.5), 0.0, 0.0))
"""Lab axes stated in OpenSim's, and the reverse."""

SIDED = {
    "knee_flexion": "knee_angle", "knee_rotation": "knee_rotation", "ankle_flexion": "ankle_angle",
    "ankle_inversion": "subtalar_angle", "toe_extension": "mtp_angle", "shoulder_flexion": "arm_flex",
    "shoulder_adduction": "arm_add", "shoulder_rotation": "arm_rot", "elbow_flexion": "elbow_flex",
    "elbow_pronation": "pro_sup", "wrist_flexion": "wrist_flex", "wrist_deviation": "wrist_dev",
}  # fmt: skip
PELVIS = ("pelvis_tilt", "pelvis_list", "pelvis_rotation", "pelvis_tx", "pelvis_ty", "pelvis_tz")
OPPOSITE = (
    "lumbar_bending", "wrist_deviation_r", "wrist_deviation_l", "toe_extension_r", "toe_extension_l",
)  # fmt: skip
"""Coordinates of `human()` that OpenSim counts the other way: to the right, towards the little finger, toes down."""


def opensim_name(coordinate: str) -> str:
    """Return OpenSim's name of a coordinate of `human()`; other names are returned unchanged."""
    stem, _, side = coordinate.rpartition("_")
    return f"{SIDED[stem]}_{side}" if side in ("l", "r") and stem in SIDED else coordinate


def has_borelli_root(model: Model) -> bool:
    """Return whether the model has the root coordinates of `human()`, which OpenSim's models do not have."""
    return root_coordinates(model)[:1] == ("root_x",)


class Columns(NamedTuple):
    """Columns of tables by coordinate, as the written model has them."""

    names: list[str]
    is_angle: NDArray[np.bool_]
    """Whether OpenSim reads degrees as such; other coordinates, also those that drive a function, keep their values."""
    sign: Array
    """-1 where OpenSim counts a coordinate the other way, else 1."""


def opensim_columns(model: Model) -> Columns:
    """Return the columns of a model's coordinates; the first six of a `human()` are those of the pelvis."""
    written = opensim_model(model)
    legal = legal_names(written, {})
    opposite = OPPOSITE if written is not model else ()
    return Columns(
        [legal.of("coordinate", c.name) for c in written.coordinates],
        np.array([is_rotational(joint, c) for joint in written.joints for c in joint.coordinates], dtype=bool),
        np.array([-1.0 if c.name in opposite else 1.0 for c in model.coordinates]),
    )


def opensim_model(model: Model) -> Model:
    """Return a person with OpenSim's vertical and coordinates; any other model as it is.

    Bodies keep their frames, so that masses, markers and joints stay; the ground and the joint of the pelvis change.
    """
    if not has_borelli_root(model):
        return model
    joints = tuple(_pelvis_joint(j) if j.coordinates[:1] and j.coordinates[0].name == "root_x" else _renamed(j)
                   for j in model.joints)  # fmt: skip
    couplings = tuple(replace(c, coordinate=opensim_name(c.coordinate), on=opensim_name(c.on)) for c in model.couplings)
    ground = tuple(replace(shape, frame=compose(Y_UP, shape.frame)) for shape in model.ground)
    markers = tuple(replace(m, position=vector(TO_Y_UP @ m.position)) if m.body == GROUND else m for m in model.markers)
    return with_default_frames(
        replace(
            model, joints=joints, couplings=couplings, ground=ground, markers=markers,
            muscles=tuple(map(_renamed_path, model.muscles)), gravity=vector(TO_Y_UP @ model.gravity),
        )
    )  # fmt: skip


def _pelvis_joint(root: Joint) -> Joint:
    """Return the joint between ground and pelvis with OpenSim's coordinates."""
    x, y, z = (c.default for c in root.coordinates[:3])
    defaults = (0.0, 0.0, 0.0, *(TO_Y_UP @ (x, y, z)))
    coordinates = tuple(
        Coordinate(name, float(default), rotational=i < 3)
        for i, (name, default) in enumerate(zip(PELVIS, defaults, strict=True))
    )
    motion = tuple(TransformAxis(axis, linear(1.0), c) for axis, c in zip((Z, X, Y, X, Y, Z), PELVIS, strict=True))
    frame = compose(root.child_frame, Z_UP)
    return Joint(root.name, "coordinate", GROUND, root.child, child_frame=frame, coordinates=coordinates, motion=motion)


def _renamed(joint: Joint) -> Joint:
    """Return the joint with OpenSim's names and signs."""
    axes, coordinates = list(joint.axes), list(joint.coordinates)
    for i, coordinate in enumerate(joint.coordinates):
        coordinates[i] = replace(coordinate, name=opensim_name(coordinate.name))
        if coordinate.name in OPPOSITE:
            axes[i] = vector(-np.array(axes[i]))
            coordinates[i] = replace(
                coordinates[i], default=-coordinate.default, lower=-coordinate.upper, upper=-coordinate.lower
            )
    motion = tuple(
        replace(part, coordinate=opensim_name(part.coordinate)) if part.coordinate else part for part in joint.motion
    )
    return replace(joint, axes=tuple(axes), coordinates=tuple(coordinates), motion=motion)


def _renamed_path(muscle: Muscle) -> Muscle:
    """Return the muscle with OpenSim's names of the coordinates that move its points."""
    path = []
    for point in muscle.path:
        motion = tuple(
            replace(part, coordinate=opensim_name(part.coordinate)) if part.coordinate else part
            for part in point.motion
        )
        limits = point.only_within
        if limits is not None:
            limits = replace(limits, coordinate=opensim_name(limits.coordinate))
        path.append(replace(point, motion=motion, only_within=limits))
    return replace(muscle, path=tuple(path))


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
