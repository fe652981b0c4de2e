"""Poses, velocities and accelerations of all bodies in all frames, from coordinates and their derivatives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import kernel
from borelli.kernels.shared_tuples import load_shared
from borelli.tree.forward_kinematics import compute_poses
from borelli.tree.tree_dynamics import move_bodies

Floats = NDArray[np.float64]


@kernel
def compute_body_motion(tree_at, pose_at, work_at, q_inout, rate, rate_change, body_out, link_out, part_out):
    """Compute the motion of bodies and joints; time is the last dimension of the results.

    Args:
        tree_at: The tree.
        pose_at: Its pose, which is that of the last frame afterwards.
        work_at: `DynamicsWork`.
        q_inout: (frames, coordinates); coupled ones are set.
        rate: (frames, variables).
        rate_change: (frames, variables).
        body_out: (bodies, 24, frames): position, rotation row by row, angular velocity, velocity of the body's point at
            the world origin, and the derivatives of both velocities.
        link_out: (links, 3, frames): origin of the child's joint frame.
        part_out: (parts, 3, frames): axis of each part times the slope of its function.
    """
    tree, pose, work = load_shared(tree_at, pose_at, work_at)
    velocity, acceleration = work.velocity, work.acceleration
    for frame in range(len(q_inout)):
        compute_poses(tree_at, q_inout[frame], pose_at)
        acceleration[:, :] = 0.0
        move_bodies(tree, pose, rate[frame], rate_change[frame], velocity, acceleration)
        for b in range(len(tree.body_part)):
            for i in range(3):
                body_out[b, i, frame] = pose.position[b, i]
                for j in range(3):
                    body_out[b, 3 + 3 * i + j, frame] = pose.rotation[b, i, j]
            for n in range(6):
                body_out[b, 12 + n, frame], body_out[b, 18 + n, frame] = velocity[b, n], acceleration[b, n]
        for link in range(len(tree.child)):
            R, x = pose.rotation[tree.child[link]], pose.position[tree.child[link]]
            offset = tree.child_position[link]
            for i in range(3):
                link_out[link, i, frame] = x[i] + R[i, 0] * offset[0] + R[i, 1] * offset[1] + R[i, 2] * offset[2]
            for p in range(tree.first[link], tree.first[link + 1]):
                first = 0 if p >= tree.first[link + 1] - tree.rotations[link] else 3
                for i in range(3):
                    part_out[p, i, frame] = pose.direction[p, first + i]
