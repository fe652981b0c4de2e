"""Muscles and ligaments at the poses of a state: paths, fibers, tensions, and their wrenches on the bodies.

The force of a step is that at its start, and a muscle's state follows the bodies: when they have moved from t to
t + h, activation and fiber are integrated over this time with the path length linear between its two values (implicit,
see `hill_kernels.fiber_steps`), and the tension at t + h acts in the next step. Together with the velocities of the
step this is the semi-implicit Euler method. It is stable up to h = 2 sqrt(m / k) for a mass m on a tendon of stiffness
k; the tension of a rigid tendon depends on the lengthening speed as well, dF/dv = d, and needs h < 2 m / d.

A path of tension F pulls on its nodes x with F f, f the sum of the unit vectors to their neighbors; so the path
lengthens with -sum f . dx/dt. A moving point also moves in its body, by function'(q) along its axes: the power of
F f on that motion is a generalized force on the coordinate q, applied through its joint.
"""

from __future__ import annotations

from math import isfinite

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.muscles.hill_kernels.fiber_steps import advance_muscle, tendon_force
from borelli.muscles.hill_kernels.musculotendon import rigid_tendon_state, solve_fiber_length
from borelli.muscles.hill_kernels.status import CONVERGED, INVALID_INPUT, NOT_CONVERGED
from borelli.muscles.path_kernels.walk import walk_paths
from borelli.muscles.path_kernels.wrap_segment import NOT_CONVERGED as PATH_NOT_FOUND
from borelli.numerics.rotation_kernels import cross
from borelli.physics.arrays.indices import STEP_SIZE
from borelli.physics.joints.coordinates import coordinates_from_poses
from borelli.physics.rigid_bodies import compute_rotations
from borelli.physics.rows.joint_rows import pose_joints
from borelli.physics.solver.newton import SOLVED
from borelli.physics.vectors import to_world
from borelli.tree.forward_kinematics import evaluate_function

MUSCLE_FAILED = 32
"""Status of a step before which fiber and tendon of a muscle have no equilibrium."""


@inline
def _are_equal(a, b):
    for i in range(a.shape[0]):
        for n in range(a.shape[1]):
            if a[i, n] != b[i, n]:
                return False
    return True


@inline
def _copy(source, out):
    for i in range(source.shape[0]):
        for n in range(source.shape[1]):
            out[i, n] = source[i, n]


@inline
def _is_current(state, work):
    """Return True if the work arrays have been filled from this state."""
    if work.clock[0] != state.clock[0]:
        return False
    if not _are_equal(state.position, work.position) or not _are_equal(state.quaternion, work.quaternion):
        return False
    return _are_equal(state.twist, work.twist) and _are_equal(state.muscle, work.initial_muscle)


@kernel_function
def evaluate_muscles(tables, state_at, muscles_at, work_at):
    """Fill the work arrays of muscles from a state, unless they are; return a status."""
    state, muscles, work = load_shared(state_at, muscles_at, work_at)
    if _is_current(state, work):
        return SOLVED
    _copy(state.position, work.position)
    _copy(state.quaternion, work.quaternion)
    _copy(state.twist, work.twist)
    _copy(state.muscle, work.initial_muscle)
    _copy(state.wrap_start, work.paths.warm)
    work.clock[0] = -1
    _locate_bodies(tables, state, muscles.center_of_mass, work)
    walk_paths(
        muscles_at.paths, work.coordinate, work.origin, work.rotation, muscles.geometry[0], work_at.paths, work.length
    )
    _find_velocities(muscles_at.paths, state_at, work_at)
    status = _advance_muscles(muscles_at, state.clock[0], tables.parameters[STEP_SIZE], work_at)
    _stretch_ligaments(muscles.ligaments, len(work.muscle), work.length, work.tension)
    sum_wrenches(tables.joints, muscles_at.paths, state_at, work_at)
    if status == SOLVED:
        work.clock[0] = state.clock[0]
    return status


evaluate_muscles_by_pointer = by_pointer(evaluate_muscles)


@inline
def _locate_bodies(tables, state, center_of_mass, work):
    """Fill origins and rotations of the bodies, and the coordinates with their velocities."""
    compute_rotations(state.quaternion, work.rotation)
    for b in range(len(work.origin)):
        c = center_of_mass[b]
        x, y, z = to_world(work.rotation, b, c[0], c[1], c[2])
        work.origin[b, 0] = state.position[b, 0] - x
        work.origin[b, 1] = state.position[b, 1] - y
        work.origin[b, 2] = state.position[b, 2] - z
    if len(work.coordinate) > 0:
        for i in range(len(work.coordinate)):
            work.coordinate[i] = state.coordinate[i]
        pose_joints(tables.joints, state.position, work.rotation, work.coordinate)
        coordinates_from_poses(tables.joints, state.twist, work.coordinate, work.speed)


@inline
def _point_rate(arrays, rotation, body, k, force, q):
    """Return the power of a force on a moving point per unit rate of the coordinate that moves it, by motion k."""
    x, y, z = arrays.motion_axis[k, 0], arrays.motion_axis[k, 1], arrays.motion_axis[k, 2]
    if body >= 0:
        x, y, z = to_world(rotation, body, x, y, z)
    _, slope, _ = evaluate_function(
        arrays.first_piece, arrays.start, arrays.end, arrays.coefficient, arrays.motion_function[k], q
    )
    return slope * (x * force[0] + y * force[1] + z * force[2])


@kernel_function
def _find_velocities(arrays_at, state_at, work_at):
    """Fill the lengthening speeds of paths, and whether their geodesics were found."""
    arrays, state, work, paths = load_shared(arrays_at, state_at, work_at, work_at.paths)
    for m in range(len(work.velocity)):
        rate, base = 0.0, arrays.first_node[m]
        for i in range(base, base + paths.node_count[m]):
            f, x, b, point = paths.node_force[i], paths.node_position[i], paths.node_body[i], paths.node_point[i]
            if b >= 0:
                o, v = state.position[b], state.twist[b]
                wx, wy, wz = cross(v[3], v[4], v[5], x[0] - o[0], x[1] - o[1], x[2] - o[2])
                rate += f[0] * (v[0] + wx) + f[1] * (v[1] + wy) + f[2] * (v[2] + wz)
            if point >= 0:
                for k in range(arrays.first_motion[point], arrays.first_motion[point + 1]):
                    c = arrays.motion_coordinate[k]
                    if c >= 0:
                        rate += work.speed[c] * _point_rate(arrays, work.rotation, b, k, f, work.coordinate[c])
        work.velocity[m] = -rate
        work.path_found[m] = 1
        for w in range(arrays.first_wrap[m], arrays.first_wrap[m + 1]):
            if paths.wrap_state[w] == PATH_NOT_FOUND:
                work.path_found[m] = 0


@kernel_function
def _advance_muscles(muscles, clock, h, work_at):
    """Integrate activation and fiber of all muscles over the last step, fill their tensions and return a status."""
    work, hill, result = load_shared(work_at), muscles.hill, SOLVED
    row = min(max(clock - 1, 0), len(muscles.excitation) - 1)
    for m in range(len(work.muscle)):
        a, fiber, before = work.initial_muscle[m, 0], work.initial_muscle[m, 1], work.initial_muscle[m, 2]
        u, length, v = muscles.excitation[row, m], work.length[m], 0.0
        if clock == 0:
            a = min(max(a, hill.min_activation[m]), hill.max_activation[m])
        if not (isfinite(length) and isfinite(work.velocity[m])):
            status = INVALID_INPUT
        elif clock > 0:
            a, fiber, v, status = advance_muscle(
                hill, m, a, fiber, before, length, u[0], u[1], h, muscles.substeps[0]
            )
        elif fiber == 0.0 and not hill.rigid_tendon[m]:
            optimal = hill.optimal_fiber_length[m]
            fiber, _, status = solve_fiber_length(hill, m, a, length, 0.0, 0.0, 0.0, optimal)
        else:
            status = CONVERGED
        if hill.rigid_tendon[m]:
            fiber, v, _, status = rigid_tendon_state(hill, m, length, work.velocity[m])
        work.excitation[m] = u[1] if clock > 0 else u[0]
        work.muscle[m, 0], work.muscle[m, 1], work.muscle[m, 2] = a, fiber, length
        work.fiber_velocity[m], work.status[m] = v, status
        if status == NOT_CONVERGED or status == INVALID_INPUT:
            result, work.tension[m] = MUSCLE_FAILED, 0.0
        else:
            work.tension[m] = tendon_force(hill, m, a, fiber, v, length, status)
    return result


@inline
def _stretch_ligaments(ligaments, first, length, tension):
    """Fill the tensions of ligaments, whose paths follow the `first` muscles."""
    for i in range(len(ligaments.resting_length)):
        ratio = length[first + i] / ligaments.resting_length[i]
        value, _, _ = evaluate_function(
            ligaments.first_piece, ligaments.start, ligaments.end, ligaments.coefficient, i, ratio
        )
        tension[first + i] = ligaments.force_scale[i] * value if ratio > 1.0 else 0.0


@kernel_function
def sum_wrenches(joints, arrays_at, state_at, work_at):
    """Fill the wrenches of all tensions on the bodies."""
    arrays, state, work, paths = load_shared(arrays_at, state_at, work_at, work_at.paths)
    wrench, moved = work.wrench, False
    for b in range(len(wrench)):
        for n in range(6):
            wrench[b, n] = 0.0
    for c in range(len(work.coordinate_force)):
        work.coordinate_force[c] = 0.0
    for m in range(len(work.tension)):
        tension, base = work.tension[m], arrays.first_node[m]
        for i in range(base, base + paths.node_count[m]):
            f, x, b, point = paths.node_force[i], paths.node_position[i], paths.node_body[i], paths.node_point[i]
            if b >= 0:
                o = state.position[b]
                _add_force(
                    wrench[b], tension * f[0], tension * f[1], tension * f[2], x[0] - o[0], x[1] - o[1], x[2] - o[2]
                )
            if point >= 0:
                for k in range(arrays.first_motion[point], arrays.first_motion[point + 1]):
                    c = arrays.motion_coordinate[k]
                    if c >= 0:
                        moved = True
                        work.coordinate_force[c] += tension * _point_rate(
                            arrays, work.rotation, b, k, f, work.coordinate[c]
                        )
    if moved:
        _add_coordinate_forces(joints, work.coordinate_force, wrench)


@inline
def _add_force(wrench, fx, fy, fz, rx, ry, rz):
    tx, ty, tz = cross(rx, ry, rz, fx, fy, fz)
    wrench[0] += fx
    wrench[1] += fy
    wrench[2] += fz
    wrench[3] += tx
    wrench[4] += ty
    wrench[5] += tz


@kernel_function
def _add_coordinate_forces(joints_at, force, wrench_inout):
    """Add generalized forces: opposite wrenches on child and parent whose power is force times coordinate velocity."""
    joints = load_shared(joints_at)
    for c in range(len(force)):
        if force[c] == 0.0:
            continue
        j, d, t = joints.joint[c], joints.direction[c], force[c]
        child, parent = joints.child[j], joints.parent[j]
        fx, fy, fz = t * d[0], t * d[1], t * d[2]
        if child >= 0:
            r, own = joints.arm_child[j], wrench_inout[child]
            _add_force(own, fx, fy, fz, r[0], r[1], r[2])
            own[3], own[4], own[5] = own[3] + t * d[3], own[4] + t * d[4], own[5] + t * d[5]
        if parent >= 0:
            r, g, own = joints.arm_parent[j], joints.gap[j], wrench_inout[parent]
            _add_force(own, -fx, -fy, -fz, r[0] + g[0], r[1] + g[1], r[2] + g[2])
            own[3], own[4], own[5] = own[3] - t * d[3], own[4] - t * d[4], own[5] - t * d[5]


@inline
def apply_muscles(work, wrench_out):
    """Write the wrenches on the bodies to the inputs of a step."""
    _copy(work.wrench, wrench_out)


@inline
def store_muscles(work, state):
    """Store the muscles at the start of a step that was made in the state."""
    _copy(work.muscle, state.muscle)
    _copy(work.paths.warm, state.wrap_start)


@inline
def record_muscles(work, record, frame):
    """Write muscles and ligaments to a frame of the record."""
    for m in range(len(work.excitation)):
        record.excitation[frame, m] = work.excitation[m]
        for n in range(3):
            record.muscle[frame, m, n] = work.muscle[m, n]
        record.fiber_velocity[frame, m] = work.fiber_velocity[m]
        record.status[frame, m] = work.status[m]
    for p in range(len(work.length)):
        record.length[frame, p] = work.length[p]
        record.velocity[frame, p] = work.velocity[p]
        record.tension[frame, p] = work.tension[p]
        record.path_found[frame, p] = work.path_found[p]
