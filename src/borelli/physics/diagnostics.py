"""Energy, momentum, center of mass, joint gap and coordinates of recorded poses.

Arrays over frames: pose (frames, n, 7) has centers of mass and quaternions, twist (frames, n, 6) is as in `State`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.array_checks import as_floats
from borelli.kernels.jit import kernel
from borelli.kernels.shared_tuples import SharedTuple
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.arrays.joints import JointTables, with_own_scratch
from borelli.physics.joints.coordinates import coordinates_from_poses
from borelli.physics.rigid_bodies import compute_rotations
from borelli.physics.rows.joint_rows import pose_joints

Floats = NDArray[np.float64]


def _solved(compiled: CompiledModel) -> NDArray[np.bool_]:
    return compiled.tables.bodies.kinematic == 0


def kinetic_energy(compiled: CompiledModel, pose: Floats, twist: Floats) -> Floats:
    """Return the kinetic energy (frames,) [J] of the bodies that are solved for."""
    moving = _solved(compiled)
    linear = np.einsum("b,fbi,fbi->f", compiled.tables.bodies.mass[moving], *2 * (twist[:, moving, :3],))
    local = np.einsum("fbji,fbj->fbi", rotation_matrix(pose[:, moving, 3:]), twist[:, moving, 3:])
    angular = np.einsum("bij,fbi,fbj->f", compiled.tables.bodies.inertia[moving], local, local)
    return np.asarray(0.5 * (linear + angular))


def potential_energy(compiled: CompiledModel, pose: Floats) -> Floats:
    """Return the potential energy (frames,) of gravity [J], zero at the origin."""
    moving = _solved(compiled)
    mass, gravity = compiled.tables.bodies.mass[moving], compiled.tables.gravity
    return np.asarray(-np.einsum("b,fbi,i->f", mass, pose[:, moving, :3], gravity))


def center_of_mass(compiled: CompiledModel, pose: Floats) -> Floats:
    """Return the center of mass (frames, 3) of the bodies that are solved for [m]."""
    moving = _solved(compiled)
    mass = compiled.tables.bodies.mass[moving]
    return np.asarray(np.einsum("b,fbi->fi", mass, pose[:, moving, :3]) / max(mass.sum(), 1e-300))


def momentum(compiled: CompiledModel, pose: Floats, twist: Floats) -> tuple[Floats, Floats]:
    """Return linear [kg m/s] and angular momentum about the world's origin [kg m^2/s], (frames, 3) each."""
    moving = _solved(compiled)
    linear = compiled.tables.bodies.mass[moving][:, None] * twist[:, moving, :3]
    rotation = rotation_matrix(pose[:, moving, 3:])
    local = np.einsum("fbji,fbj->fbi", rotation, twist[:, moving, 3:])
    own = np.einsum("fbij,bjk,fbk->fbi", rotation, compiled.tables.bodies.inertia[moving], local)
    angular = np.cross(pose[:, moving, :3], linear) + own
    return linear.sum(axis=1), angular.sum(axis=1)


def joint_gap(compiled: CompiledModel, pose: Floats, *, only_hard: bool = False) -> Floats:
    """Return the largest distance (frames,) between the two anchors of a ball, universal, hinge or fixed joint [m].

    With `only_hard`, joints that yield by their softness do not count.
    """
    tables = compiled.tables.joints
    rotation = rotation_matrix(pose[:, :, 3:])
    largest = np.zeros(len(pose))
    for j, joint in enumerate(compiled.model.joints):
        is_soft = np.isfinite(joint.softness.stiffness) or bool(joint.softness.cfm)
        if joint.kind not in ("ball", "universal", "hinge", "fixed") or (only_hard and is_soft):
            continue
        ends = []
        for body, anchor in ((tables.child[j], tables.anchor_child[j]), (tables.parent[j], tables.anchor_parent[j])):
            ends.append(anchor if body < 0 else pose[:, body, :3] + rotation[:, body] @ anchor)
        largest = np.maximum(largest, np.linalg.norm(ends[0] - ends[1], axis=-1))
    return largest


def coordinates_and_velocities(compiled: CompiledModel, pose: Floats, twist: Floats) -> tuple[Floats, Floats]:
    """Return generalized coordinates [rad or m] and their velocities, (frames, coordinates) each."""
    return joint_coordinates(with_own_scratch(compiled.tables.joints), len(compiled.model.bodies), pose, twist)


def generalized_drive_forces(compiled: CompiledModel, impulse: Floats, coordinates: Floats) -> Floats:
    """Return the generalized forces (frames, coordinates) [N m or N] of drives, from the impulses of a record's rows.

    `coordinates` are those at the start of each step. Drives of a ball joint that is rotated as one act along the
    child's axes; the generalized force of a Cardan angle is their moment along the axis of that angle.
    """
    joints = compiled.tables.joints
    row = joints.drive_row
    driven, force = row >= 0, np.zeros_like(coordinates)
    force[:, driven] = impulse[:, row[driven]] / compiled.step
    for j in np.flatnonzero(joints.rotation_driven):
        i = int(joints.coordinate_first[j])
        sign = joints.sign[i + 2]
        b, c = coordinates[:, i + 1], sign * coordinates[:, i + 2]
        x, y, z = force[:, i].copy(), force[:, i + 1].copy(), sign * force[:, i + 2]
        force[:, i] = np.cos(b) * (np.cos(c) * x - np.sin(c) * y) + np.sin(b) * z
        force[:, i + 1] = np.sin(c) * x + np.cos(c) * y
    return force


def joint_coordinates(joints: JointTables, bodies: int, pose: Floats, twist: Floats) -> tuple[Floats, Floats]:
    """Return coordinates and velocities; the scratch arrays of `joints` then belong to the last frame.

    Raises:
        SettingsError: Poses or twists are not those of this number of bodies, or their numbers of frames differ.
    """
    pose = as_floats("pose", pose, (None, bodies, 7), finite=False)
    twist = as_floats("twist", twist, (len(pose), bodies, 6), finite=False)
    count = len(joints.joint)
    values, velocities = np.zeros((len(pose), count)), np.zeros((len(pose), count))
    if count:
        last, rotation = joints.default.copy(), np.zeros((bodies, 3, 3))
        position, quaternion = pose[..., :3].copy(), pose[..., 3:].copy()
        _all_coordinates(SharedTuple(joints), position, quaternion, twist, rotation, last, values, velocities)
    return values, velocities


@kernel
def _all_coordinates(joints, position, quaternion, twist, rotation, last, values_out, velocities_out):
    for frame in range(len(position)):
        compute_rotations(quaternion[frame], rotation)
        pose_joints(joints, position[frame], rotation, last)
        coordinates_from_poses(joints, twist[frame], last, velocities_out[frame])
        for i in range(len(last)):
            values_out[frame, i] = last[i]
