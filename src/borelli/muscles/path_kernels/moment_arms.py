"""Moment arms of all muscles by one pass over their nodes and joints, and paths of many frames.

The moment arm about a variable is r = -dl/dq, the power of the forces of unit tension at unit rate. A part of the tree
with direction S = (w, v) moves a point x of its subtree with w x x + v; the forces f of the nodes there do the power
w . sum(x x f) + v . sum(f). Their wrenches are summed from the leaves to the last common body, above which forces of
one muscle cancel. A moving point also moves in its body, by function'(q) along its axes. Part directions contain the
derivatives of coupled coordinates, so the arm of a driving coordinate follows the chain rule.
"""

from __future__ import annotations

from borelli.kernels.jit import kernel, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.muscles.path_kernels.walk import walk_paths
from borelli.tree.forward_kinematics import compute_poses, evaluate_function


@kernel_function
def compute_arms(arrays_at, pose_at, q, work_at, arm):
    """Fill the moment arms (entries,) of the paths in `work_at`, whose bodies are at `pose_at`."""
    arrays, pose, work = load_shared(arrays_at, pose_at, work_at)
    wrench, direction = work.wrench, pose.direction
    for m in range(len(arrays.first_point) - 1):
        for e in range(arrays.first_entry[m], arrays.first_entry[m + 1]):
            arm[e] = 0.0
        first, end = arrays.first_slot[m], arrays.first_slot[m + 1]
        for s in range(first, end):
            for i in range(6):
                wrench[s, i] = 0.0
        base = arrays.first_node[m]
        for i in range(base, base + work.node_count[m]):
            x, f, out = work.node_position[i], work.node_force[i], wrench[work.node_slot[i]]
            out[0] += x[1] * f[2] - x[2] * f[1]
            out[1] += x[2] * f[0] - x[0] * f[2]
            out[2] += x[0] * f[1] - x[1] * f[0]
            out[3] += f[0]
            out[4] += f[1]
            out[5] += f[2]
            point = work.node_point[i]
            if point >= 0 and arrays.first_motion[point + 1] > arrays.first_motion[point]:
                _add_motion(arrays_at, pose_at, q, point, f, arm)
        for s in range(first, end):
            own = wrench[s]
            for k in range(arrays.first_slot_part[s], arrays.first_slot_part[s + 1]):
                S = direction[arrays.slot_part[k]]
                arm[arrays.slot_entry[k]] += (
                    S[0] * own[0] + S[1] * own[1] + S[2] * own[2] + S[3] * own[3] + S[4] * own[4] + S[5] * own[5]
                )
            parent = arrays.slot_parent[s]
            if parent >= 0:
                for i in range(6):
                    wrench[parent, i] += own[i]


@kernel_function
def _add_motion(arrays_at, pose_at, q, point, f, arm):
    """Add the power of a force on a moving point to the arms of the variables that move it in its body."""
    arrays, pose = load_shared(arrays_at, pose_at)
    body = arrays.point_body[point]
    x, y, z = f[0], f[1], f[2]
    if body >= 0:
        R = pose.rotation[body]
        x, y, z = (
            R[0, 0] * f[0] + R[1, 0] * f[1] + R[2, 0] * f[2],
            R[0, 1] * f[0] + R[1, 1] * f[1] + R[2, 1] * f[2],
            R[0, 2] * f[0] + R[1, 2] * f[1] + R[2, 2] * f[2],
        )
    for k in range(arrays.first_motion[point], arrays.first_motion[point + 1]):
        entry, c = arrays.motion_entry[k], arrays.motion_coordinate[k]
        if entry < 0:
            continue
        _, slope, _ = evaluate_function(
            arrays.first_piece, arrays.start, arrays.end, arrays.coefficient, arrays.motion_function[k], q[c]
        )
        axis = arrays.motion_axis[k]
        arm[entry] += slope * pose.rate[c, 0] * (axis[0] * x + axis[1] * y + axis[2] * z)


@kernel
def add_body_wrenches(arrays_at, work_at, tension, wrench_inout):
    """Add the wrenches (bodies, 6) of muscles with tensions (muscles,) [N]: moment about the world's origin, force."""
    arrays, work = load_shared(arrays_at, work_at)
    for m in range(len(tension)):
        base = arrays.first_node[m]
        for i in range(base, base + work.node_count[m]):
            if work.node_body[i] < 0:
                continue
            x, out = work.node_position[i], wrench_inout[work.node_body[i]]
            f, own = tension[m], work.node_force[i]
            fx, fy, fz = f * own[0], f * own[1], f * own[2]
            out[0] += x[1] * fz - x[2] * fy
            out[1] += x[2] * fx - x[0] * fz
            out[2] += x[0] * fy - x[1] * fx
            out[3] += fx
            out[4] += fy
            out[5] += fz


@kernel
def compute_path_frames(arrays_at, tree_at, pose_at, work_at, geometry, q_inout, entry_arm, length, arm, state):
    """Fill length (frames, muscles), arm (frames, muscles, coordinates) and the wraps' state (frames, wraps).

    `q_inout` (frames, coordinates): coupled coordinates are set; `entry_arm` (entries,) is work space; `arm` must be
    zero, and stays so where a coordinate does not change a length.
    """
    arrays, pose, work = load_shared(arrays_at, pose_at, work_at)
    for t in range(len(q_inout)):
        compute_poses(tree_at, q_inout[t], pose_at)
        walk_paths(arrays_at, q_inout[t], pose.position, pose.rotation, geometry, work_at, length[t])
        compute_arms(arrays_at, pose_at, q_inout[t], work_at, entry_arm)
        for m in range(arm.shape[1]):
            for e in range(arrays.first_entry[m], arrays.first_entry[m + 1]):
                arm[t, m, arrays.entry_coordinate[e]] = entry_arm[e]
        for w in range(state.shape[1]):
            state[t, w] = work.wrap_state[w]
