"""Measurements: energy, momentum, centre of mass, constraint error and coordinates of recorded poses.

Arrays over frames: pose (frames, n, 7) holds centres of mass and quaternions, twist (frames, n, 6) as in `State`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import kernel
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.joints.coordinates import coordinates_from_poses
from borelli.physics.rigid_bodies import compute_rotations
from borelli.physics.rows.joint_rows import pose_joints

Floats = NDArray[np.float64]


def rotation_matrices(quaternion: Floats) -> Floats:
    """Rotation matrices (..., 3, 3) of quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _solved(compiled: CompiledModel) -> NDArray[np.bool_]:
    return compiled.tables.bodies.kinematic == 0


def kinetic_energy(compiled: CompiledModel, pose: Floats, twist: Floats) -> Floats:
    """Energies (frames,) [J]."""
    moving = _solved(compiled)
    linear = np.einsum("b,fbi,fbi->f", compiled.tables.bodies.mass[moving], *2 * (twist[:, moving, :3],))
    spin = np.einsum("fbji,fbj->fbi", rotation_matrices(pose[:, moving, 3:]), twist[:, moving, 3:])
    angular = np.einsum("bij,fbi,fbj->f", compiled.tables.bodies.inertia[moving], spin, spin)
    total: Floats = 0.5 * (linear + angular)
    return total


def potential_energy(compiled: CompiledModel, pose: Floats) -> Floats:
    """(frames,) of gravity [J], zero at the origin."""
    moving = _solved(compiled)
    mass, gravity = compiled.tables.bodies.mass[moving], compiled.tables.gravity
    energy: Floats = -np.einsum("b,fbi,i->f", mass, pose[:, moving, :3], gravity)
    return energy


def center_of_mass(compiled: CompiledModel, pose: Floats) -> Floats:
    """(frames, 3) of the moving bodies [m]."""
    moving = _solved(compiled)
    mass = compiled.tables.bodies.mass[moving]
    center: Floats = np.einsum("b,fbi->fi", mass, pose[:, moving, :3]) / max(mass.sum(), 1e-300)
    return center


def momentum(compiled: CompiledModel, pose: Floats, twist: Floats) -> tuple[Floats, Floats]:
    """Linear [kg m/s] and angular momentum about the world's origin [kg m^2/s], (frames, 3) each."""
    moving = _solved(compiled)
    linear = compiled.tables.bodies.mass[moving][:, None] * twist[:, moving, :3]
    rotation = rotation_matrices(pose[:, moving, 3:])
    spin = np.einsum("fbji,fbj->fbi", rotation, twist[:, moving, 3:])
    own = np.einsum("fbij,bjk,fbk->fbi", rotation, compiled.tables.bodies.inertia[moving], spin)
    angular = np.cross(pose[:, moving, :3], linear) + own
    return linear.sum(axis=1), angular.sum(axis=1)


def joint_gap(compiled: CompiledModel, pose: Floats) -> Floats:
    """(frames,) the widest gap between the two anchors of a ball, universal, hinge or fixed joint [m]."""
    tables = compiled.tables.joints
    rotation = rotation_matrices(pose[:, :, 3:])
    worst = np.zeros(len(pose))
    for j, joint in enumerate(compiled.model.joints):
        if joint.kind not in ("ball", "universal", "hinge", "fixed"):
            continue
        ends = []
        for body, anchor in ((tables.child[j], tables.anchor_child[j]), (tables.parent[j], tables.anchor_parent[j])):
            ends.append(anchor if body < 0 else pose[:, body, :3] + rotation[:, body] @ anchor)
        worst = np.maximum(worst, np.linalg.norm(ends[0] - ends[1], axis=-1))
    return worst


def coordinates_and_velocities(compiled: CompiledModel, pose: Floats, twist: Floats) -> tuple[Floats, Floats]:
    """Coordinates [rad or m] and speeds, (frames, coordinates) each."""
    count = len(compiled.model.coordinates)
    values, speeds = np.zeros((len(pose), count)), np.zeros((len(pose), count))
    if count:
        last = compiled.tables.joints.default.copy()
        rotation = np.zeros((pose.shape[1], 3, 3))
        position, quaternion = pose[..., :3].copy(), pose[..., 3:].copy()
        _find_all(compiled.tables.joints, position, quaternion, twist, rotation, last, values, speeds)
    return values, speeds


@kernel
def _find_all(joints, position, quaternion, twist, rotation, last, values_out, speeds_out):
    for frame in range(len(position)):
        compute_rotations(quaternion[frame], rotation)
        pose_joints(joints, position[frame], rotation, last)
        coordinates_from_poses(joints, twist[frame], last, speeds_out[frame])
        for i in range(len(last)):
            values_out[frame, i] = last[i]
