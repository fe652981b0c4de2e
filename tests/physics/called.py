"""Kernel functions made callable from Python for tests; their wrappers take a second to compile and are not cached."""

from __future__ import annotations

from borelli.kernels.jit import JIT_ON
from borelli.physics.joints import coordinates
from borelli.physics.rows import coordinate_rows as drives
from borelli.physics.rows import joint_rows as joints
from borelli.physics.rows import laws as manifold


def _with_door(part):
    if not JIT_ON:
        return part
    import numba

    from borelli.kernels.jit import COMMON

    return numba.njit(lambda *arguments: part(*arguments), **COMMON)


coordinates_from_poses = _with_door(coordinates.coordinates_from_poses)
aim_drives_at_twists = _with_door(drives.aim_drives_at_twists)
fill_coupling_rows = _with_door(drives.fill_coupling_rows)
fill_drive_rows = _with_door(drives.fill_drive_rows)
fill_stop_rows = _with_door(drives.fill_stop_rows)
fill_given_motion = _with_door(joints.fill_given_motion)
fill_joint_rows = _with_door(joints.fill_joint_rows)
pose_joints = _with_door(joints.pose_joints)
bounded_law = _with_door(manifold.bounded_law)
dead_zone_law = _with_door(manifold.dead_zone_law)
no_law = _with_door(manifold.no_law)
one_sided_law = _with_door(manifold.one_sided_law)
soft_law = _with_door(manifold.soft_law)
two_rate_law = _with_door(manifold.two_rate_law)
