"""Rigid bodies in a step: masses and free momenta before the solve, poses after it."""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import (
    cross,
    quaternion_product,
    rotation_exponential,
    rotation_logarithm,
    rotation_matrix,
)
from borelli.physics.solver.elimination_order import BODY
from borelli.physics.solver.factor_arrays import MASS, MOMENTUM, SOLUTION
from borelli.physics.vectors import to_world


@kernel_function
def compute_rotations(quaternion, rotation_out):
    """Write the rotation matrices of all bodies."""
    for b in range(len(quaternion)):
        m = rotation_matrix(quaternion[b, 0], quaternion[b, 1], quaternion[b, 2], quaternion[b, 3])
        for i in range(3):
            for j in range(3):
                rotation_out[b, i, j] = m[3 * i + j]


@kernel_function
def compute_target_twists(kinematic, pose, substeps, index, h, state, aim_out):
    """Write the twists that lead from the present poses to those of the next frame; kinematic bodies get them at once.

    Without poses, do nothing.
    """
    if len(pose) == 0:
        return
    frame = index // substeps
    left = h * (substeps - (index - frame * substeps))
    position, quaternion = state.position, state.quaternion
    for b in range(len(kinematic)):
        for n in range(3):
            aim_out[b, n] = (pose[frame + 1, b, n] - position[b, n]) / left
        qw, qx, qy, qz = quaternion[b, 0], quaternion[b, 1], quaternion[b, 2], quaternion[b, 3]
        target = pose[frame + 1, b]
        dw, dx, dy, dz = quaternion_product(target[3], target[4], target[5], target[6], qw, -qx, -qy, -qz)
        x, y, z = rotation_logarithm(dw, dx, dy, dz)
        aim_out[b, 3], aim_out[b, 4], aim_out[b, 5] = x / left, y / left, z / left
        if kinematic[b]:
            for n in range(6):
                state.twist[b, n] = aim_out[b, n]


@kernel_function
def sum_applied_forces(applied, kinematic, time, rotation, wrench_out):
    """Write the sum of applied forces and torques on every body, at its center of mass [N, N m]."""
    wrench_out[:, :] = 0.0
    for i in range(len(applied.body)):
        b = applied.body[i]
        if kinematic[b] or time < applied.span[i, 0] or time >= applied.span[i, 1]:
            continue
        rx, ry, rz = to_world(rotation, b, applied.arm[i, 0], applied.arm[i, 1], applied.arm[i, 2])
        fx, fy, fz = applied.force[i, 0], applied.force[i, 1], applied.force[i, 2]
        tx, ty, tz = cross(rx, ry, rz, fx, fy, fz)
        wrench_out[b, 0] += fx
        wrench_out[b, 1] += fy
        wrench_out[b, 2] += fz
        wrench_out[b, 3] += applied.torque[i, 0] + tx
        wrench_out[b, 4] += applied.torque[i, 1] + ty
        wrench_out[b, 5] += applied.torque[i, 2] + tz


@inline
def add_wrenches(wrench, sum_inout):
    """Add the wrenches of all bodies."""
    for b in range(len(wrench)):
        for n in range(6):
            sum_inout[b, n] += wrench[b, n]


@inline
def world_inertia(inertia, rotation, b):
    """Return the entries xx, xy, yy, xz, yz, zz of R I R^T."""
    R, M = rotation, inertia
    a00 = R[b, 0, 0] * M[b, 0, 0] + R[b, 0, 1] * M[b, 1, 0] + R[b, 0, 2] * M[b, 2, 0]
    a01 = R[b, 0, 0] * M[b, 0, 1] + R[b, 0, 1] * M[b, 1, 1] + R[b, 0, 2] * M[b, 2, 1]
    a02 = R[b, 0, 0] * M[b, 0, 2] + R[b, 0, 1] * M[b, 1, 2] + R[b, 0, 2] * M[b, 2, 2]
    a10 = R[b, 1, 0] * M[b, 0, 0] + R[b, 1, 1] * M[b, 1, 0] + R[b, 1, 2] * M[b, 2, 0]
    a11 = R[b, 1, 0] * M[b, 0, 1] + R[b, 1, 1] * M[b, 1, 1] + R[b, 1, 2] * M[b, 2, 1]
    a12 = R[b, 1, 0] * M[b, 0, 2] + R[b, 1, 1] * M[b, 1, 2] + R[b, 1, 2] * M[b, 2, 2]
    a20 = R[b, 2, 0] * M[b, 0, 0] + R[b, 2, 1] * M[b, 1, 0] + R[b, 2, 2] * M[b, 2, 0]
    a21 = R[b, 2, 0] * M[b, 0, 1] + R[b, 2, 1] * M[b, 1, 1] + R[b, 2, 2] * M[b, 2, 1]
    a22 = R[b, 2, 0] * M[b, 0, 2] + R[b, 2, 1] * M[b, 1, 2] + R[b, 2, 2] * M[b, 2, 2]
    return (
        a00 * R[b, 0, 0] + a01 * R[b, 0, 1] + a02 * R[b, 0, 2],
        a10 * R[b, 0, 0] + a11 * R[b, 0, 1] + a12 * R[b, 0, 2],
        a10 * R[b, 1, 0] + a11 * R[b, 1, 1] + a12 * R[b, 1, 2],
        a20 * R[b, 0, 0] + a21 * R[b, 0, 1] + a22 * R[b, 0, 2],
        a20 * R[b, 1, 0] + a21 * R[b, 1, 1] + a22 * R[b, 1, 2],
        a20 * R[b, 2, 0] + a21 * R[b, 2, 1] + a22 * R[b, 2, 2],
    )


@inline
def multiply_inertia(M, x, y, z):
    """Return M (x, y, z) for M as `world_inertia` returns it."""
    return M[0] * x + M[1] * y + M[3] * z, M[1] * x + M[2] * y + M[4] * z, M[3] * x + M[4] * y + M[5] * z


@inline
def free_angular_velocity(M, x, y, z, h):
    """Return the angular velocity after a step without torque.

    One Newton step on M (w' - w) + h w' x M w' = 0. The explicit gyroscopic term -w x M w (Liu, Cooper and Ballard)
    gains energy; the implicit one does not. At w' = w the derivative is M + h ([w]x M - [M w]x).
    """
    lx, ly, lz = multiply_inertia(M, x, y, z)
    gx, gy, gz = cross(x, y, z, lx, ly, lz)
    # columns of [w]x M: w x (column of M)
    c0x, c0y, c0z = cross(x, y, z, M[0], M[1], M[3])
    c1x, c1y, c1z = cross(x, y, z, M[1], M[2], M[4])
    c2x, c2y, c2z = cross(x, y, z, M[3], M[4], M[5])
    a00, a01, a02 = M[0] + h * c0x, M[1] + h * (c1x + lz), M[3] + h * (c2x - ly)
    a10, a11, a12 = M[1] + h * (c0y - lz), M[2] + h * c1y, M[4] + h * (c2y + lx)
    a20, a21, a22 = M[3] + h * (c0z + ly), M[4] + h * (c1z - lx), M[5] + h * c2z
    k0x, k0y, k0z = cross(a01, a11, a21, a02, a12, a22)
    k1x, k1y, k1z = cross(a02, a12, a22, a00, a10, a20)
    k2x, k2y, k2z = cross(a00, a10, a20, a01, a11, a21)
    scale = h / (a00 * k0x + a10 * k0y + a20 * k0z)
    return (
        x - scale * (k0x * gx + k0y * gy + k0z * gz),
        y - scale * (k1x * gx + k1y * gy + k1z * gz),
        z - scale * (k2x * gx + k2y * gy + k2z * gz),
    )


@kernel_function
def load_bodies(bodies, gravity, state, scratch, graph, block, h, aimed):
    """Write mass blocks and free momenta M v + h f of the solved bodies, in elimination order.

    Where the next pose is known (`aimed`), the gyroscopic term is evaluated at the mean of this and the next angular
    velocity.
    """
    bodies, state, scratch, graph = load_shared(bodies, state, scratch, graph)
    twist, wrench, aim = state.twist, scratch.wrench, scratch.aim
    for k in range(graph.count[0]):
        b = graph.node[k, BODY]
        m = bodies.mass[b]
        M = world_inertia(bodies.inertia, scratch.rotation, b)
        for n in range(21):
            block[k, MASS + n] = 0.0
        block[k, MASS], block[k, MASS + 2], block[k, MASS + 5] = m, m, m
        block[k, MASS + 9], block[k, MASS + 13], block[k, MASS + 14] = M[0], M[1], M[2]
        block[k, MASS + 18], block[k, MASS + 19], block[k, MASS + 20] = M[3], M[4], M[5]
        for n in range(3):
            block[k, MOMENTUM + n] = m * (twist[b, n] + h * gravity[n]) + h * wrench[b, n]
        x, y, z = twist[b, 3], twist[b, 4], twist[b, 5]
        if aimed:
            lx, ly, lz = multiply_inertia(M, x, y, z)
            x, y, z = 0.5 * (x + aim[b, 3]), 0.5 * (y + aim[b, 4]), 0.5 * (z + aim[b, 5])
            mx, my, mz = multiply_inertia(M, x, y, z)
            gx, gy, gz = cross(x, y, z, mx, my, mz)
            lx, ly, lz = lx - h * gx, ly - h * gy, lz - h * gz
        else:
            x, y, z = free_angular_velocity(M, x, y, z, h)
            lx, ly, lz = multiply_inertia(M, x, y, z)
        block[k, MOMENTUM + 3] = lx + h * wrench[b, 3]
        block[k, MOMENTUM + 4] = ly + h * wrench[b, 4]
        block[k, MOMENTUM + 5] = lz + h * wrench[b, 5]


@inline
def is_finite(graph, block):
    """Return True if the square of every solved velocity is a finite number."""
    total = 0.0
    for k in range(graph.count[0]):
        for n in range(6):
            total += abs(block[k, SOLUTION + n])
    return total < 1e150


@inline
def copy_poses(position, quaternion, position_out, quaternion_out):
    """Copy the poses of all bodies."""
    for b in range(len(position)):
        for n in range(3):
            position_out[b, n] = position[b, n]
        for n in range(4):
            quaternion_out[b, n] = quaternion[b, n]


@inline
def copy_twists(source, out):
    """Copy velocities of all bodies."""
    for b in range(len(source)):
        for n in range(6):
            out[b, n] = source[b, n]


@inline
def copy_bodies(source, out):
    """Copy poses and twists of all bodies."""
    copy_poses(source.position, source.quaternion, out.position, out.quaternion)
    copy_twists(source.twist, out.twist)


@kernel_function
def copy_velocities(graph, block, twist_out):
    """Copy the solved velocities."""
    graph = load_shared(graph)
    for k in range(graph.count[0]):
        for n in range(6):
            twist_out[graph.node[k, BODY], n] = block[k, SOLUTION + n]


@inline
def move_body(b, h, velocity, position, quaternion, position_out, quaternion_out):
    """Write the pose of body b after moving with its velocity, row b of `velocity`, for a time h."""
    for n in range(3):
        position_out[b, n] = position[b, n] + h * velocity[b, n]
    ew, ex, ey, ez = rotation_exponential(h * velocity[b, 3], h * velocity[b, 4], h * velocity[b, 5])
    w, x, y, z = quaternion_product(
        ew, ex, ey, ez, quaternion[b, 0], quaternion[b, 1], quaternion[b, 2], quaternion[b, 3]
    )
    scale = 1.0 / sqrt(w * w + x * x + y * y + z * z)
    quaternion_out[b, 0], quaternion_out[b, 1] = scale * w, scale * x
    quaternion_out[b, 2], quaternion_out[b, 3] = scale * y, scale * z


@kernel_function
def integrate_poses(graph, block, state, h):
    """Copy the solved velocities to the state and integrate all poses over one step."""
    state = load_shared(state)
    position, quaternion, twist = state.position, state.quaternion, state.twist
    copy_velocities(graph, block, twist)
    for b in range(len(position)):
        move_body(b, h, twist, position, quaternion, position, quaternion)
