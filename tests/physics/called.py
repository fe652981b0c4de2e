"""Kernel functions wrapped so that tests can call them; wrappers take a second to compile and are not cached."""

from __future__ import annotations

from borelli.kernels.jit import JIT_ON
from borelli.physics.joints import coordinates
from borelli.physics.rows import coordinate_rows, joint_rows, laws


def compile_uncached(function):
    """Compile a function for this process alone: the cache knows sources of borelli only."""
    if not JIT_ON:
        return function
    import numba

    from borelli.kernels.jit import COMMON

    return numba.njit(function, **COMMON)


def _callable(function):
    return compile_uncached(lambda *arguments: function(*arguments)) if JIT_ON else function


coordinates_from_poses = _callable(coordinates.coordinates_from_poses)
set_drive_targets_from_twists = _callable(coordinate_rows.set_drive_targets_from_twists)
fill_coupling_rows = _callable(coordinate_rows.fill_coupling_rows)
fill_drive_rows = _callable(coordinate_rows.fill_drive_rows)
fill_limit_rows = _callable(coordinate_rows.fill_limit_rows)
fill_prescribed_motion = _callable(joint_rows.fill_prescribed_motion)
fill_joint_rows = _callable(joint_rows.fill_joint_rows)
pose_joints = _callable(joint_rows.pose_joints)
bounded_law = _callable(laws.bounded_law)
no_law = _callable(laws.no_law)
one_sided_law = _callable(laws.one_sided_law)
soft_law = _callable(laws.soft_law)
