"""Coordinates from poses and poses from coordinates.

Per joint, in this order (joint frames as in `arrays.joints`; the child's frame in the parent's):

    hinge       rotation about x                     universal   rotation about x of the parent, y of the child
    slider      translation along x                  ball        Cardan angles: R = Rx(a) Ry(b) Rz(c)
    planar      translation x, y; rotation z         free        translation x, y, z; then Cardan angles
    coordinate  as fitted by `pose_joints`

Angles count full revolutions: each is the value nearest to the last one. A Cardan triple has a twin,
(a + pi, pi - b, c + pi); the one nearer to the last values is used, so that passing b = pi/2 does not make it jump. At
b = pi/2 itself (gimbal lock), a and c describe one rotation: a keeps its value, and velocities are damped.
"""

from __future__ import annotations

from math import atan2, cos, floor, pi, sin, sqrt

from borelli.kernels.jit import inline, kernel, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.numerics.rotation_kernels import cross, quaternion_product, rotate
from borelli.physics.arrays.joints import BALL, COORDINATE, FREE, HINGE, PLANAR, SLIDER, UNIVERSAL
from borelli.physics.joints.custom_joint import custom_joint_pose, solve_subspace
from borelli.physics.joints.joint_frames import axes_dot, from_axes, quaternion_of_axes
from borelli.physics.vectors import load3, store3

LOCKED_COSINE = 1e-6
"""Cosine of b below which a and c cannot be separated to half of double precision."""
DAMPED_COSINE = 1e-2
"""Cosine of b below which the velocities of a and c are damped: at most 100 times the angular velocity."""


@inline
def nearest_angle(angle, last):
    """Return the angle plus the full revolutions that bring it nearest to its last value."""
    return angle - 2.0 * pi * floor((angle - last) / (2.0 * pi) + 0.5)


@inline
def cardan_angles(axes_parent, axes_child, j, a0, b0, c0):
    """Return a, b, c nearest to their last values, and sin a, cos a, cos b.

    R = Rx(a) Ry(b) Rz(c) has the first row (cos b cos c, -cos b sin c, sin b) and the third column
    (sin b, -sin a cos b, cos a cos b).
    """
    r02 = axes_dot(axes_parent, 0, axes_child, 2, j)
    r12 = axes_dot(axes_parent, 1, axes_child, 2, j)
    r22 = axes_dot(axes_parent, 2, axes_child, 2, j)
    cosine = sqrt(r12 * r12 + r22 * r22)
    if cosine < LOCKED_COSINE:
        sine_a, cosine_a = sin(a0), cos(a0)
        cosine = cosine_a * r22 - sine_a * r12
        r10 = axes_dot(axes_parent, 1, axes_child, 0, j)
        r20 = axes_dot(axes_parent, 2, axes_child, 0, j)
        r11 = axes_dot(axes_parent, 1, axes_child, 1, j)
        r21 = axes_dot(axes_parent, 2, axes_child, 1, j)
        b = nearest_angle(atan2(r02, cosine), b0)
        c = nearest_angle(atan2(cosine_a * r10 + sine_a * r20, cosine_a * r11 + sine_a * r21), c0)
        return a0, b, c, sine_a, cosine_a, cosine
    r00 = axes_dot(axes_parent, 0, axes_child, 0, j)
    r01 = axes_dot(axes_parent, 0, axes_child, 1, j)
    a, b, c = atan2(-r12, r22), atan2(r02, cosine), atan2(-r01, r00)
    a1, b1, c1 = nearest_angle(a, a0), nearest_angle(b, b0), nearest_angle(c, c0)
    a2, b2, c2 = nearest_angle(a + pi, a0), nearest_angle(pi - b, b0), nearest_angle(c + pi, c0)
    if abs(a2 - a0) + abs(b2 - b0) + abs(c2 - c0) < abs(a1 - a0) + abs(b1 - b0) + abs(c1 - c0):
        return a2, b2, c2, r12 / cosine, -r22 / cosine, -cosine
    return a1, b1, c1, -r12 / cosine, r22 / cosine, cosine


@inline
def put_axis(direction, i, half, axes, j, axis):
    """Write a joint axis as the linear (half 0) or angular (half 3) part of coordinate i's direction."""
    store3(direction, i, half, axes[j, axis, 0], axes[j, axis, 1], axes[j, axis, 2])


@inline
def write_cardan(axes_parent, axes_child, j, i, sign, coordinate_inout, direction_out):
    """Write Cardan angles i, i + 1, i + 2 of joint j and their directions.

    The relative angular velocity is adot e1 + bdot e2 + cdot e3, e1 the parent's x, e3 the child's z, e2 perpendicular
    to both. The directions are the dual triple: e2 x e3 / cos b, e2, e1 x e2 / cos b.
    """
    a0, b0, c0 = coordinate_inout[i], coordinate_inout[i + 1], sign * coordinate_inout[i + 2]
    a, b, c, sine_a, cosine_a, cosine = cardan_angles(axes_parent, axes_child, j, a0, b0, c0)
    coordinate_inout[i], coordinate_inout[i + 1], coordinate_inout[i + 2] = a, b, sign * c
    if abs(cosine) < DAMPED_COSINE:
        cosine = DAMPED_COSINE if cosine >= 0.0 else -DAMPED_COSINE
    p, q = axes_parent, axes_child
    ex = cosine_a * p[j, 1, 0] + sine_a * p[j, 2, 0]
    ey = cosine_a * p[j, 1, 1] + sine_a * p[j, 2, 1]
    ez = cosine_a * p[j, 1, 2] + sine_a * p[j, 2, 2]
    x, y, z = cross(ex, ey, ez, q[j, 2, 0], q[j, 2, 1], q[j, 2, 2])
    store3(direction_out, i, 3, x / cosine, y / cosine, z / cosine)
    store3(direction_out, i + 1, 3, ex, ey, ez)
    x, y, z = cross(p[j, 0, 0], p[j, 0, 1], p[j, 0, 2], ex, ey, ez)
    scale = sign / cosine
    store3(direction_out, i + 2, 3, scale * x, scale * y, scale * z)


@inline
def write_translations(axes_parent, gap, j, i, count, sign, coordinate_inout, direction_out):
    """Write the translations of joint j along the parent's first `count` axes; `sign` is that of the third."""
    for axis in range(count):
        s = sign if axis == 2 else 1.0
        x, y, z = s * axes_parent[j, axis, 0], s * axes_parent[j, axis, 1], s * axes_parent[j, axis, 2]
        coordinate_inout[i + axis] = x * gap[j, 0] + y * gap[j, 1] + z * gap[j, 2]
        store3(direction_out, i + axis, 0, x, y, z)


@inline
def write_custom_directions(motion, axes_parent, m, direction_out):
    """Write the directions of custom joint m: the rows of U^-1 Q^T, a left inverse of S, in world axes."""
    j, start, count, step = motion.joint[m], motion.coordinate[m], motion.freedom[m], motion.step
    u, q = motion.factor[m], motion.basis[m]
    for a in range(6):
        solve_subspace(
            u, q, count, 1.0 if a == 0 else 0.0, 1.0 if a == 1 else 0.0, 1.0 if a == 2 else 0.0,
            1.0 if a == 3 else 0.0, 1.0 if a == 4 else 0.0, 1.0 if a == 5 else 0.0, step,
        )
        for i in range(count):
            direction_out[start + i, a] = step[i]
    for i in range(start, start + count):
        for half in range(0, 6, 3):
            x, y, z = load3(direction_out, i, half)
            x, y, z = from_axes(axes_parent, j, x, y, z)
            store3(direction_out, i, half, x, y, z)


@inline
def relative_velocity(arm_child, arm_parent, gap, j, c, p, twist):
    """Return v_c + w_c x r_c - v_p - w_p x s and w_c - w_p, the ground at rest."""
    vx, vy, vz, wx, wy, wz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if c >= 0:
        wx, wy, wz = twist[c, 3], twist[c, 4], twist[c, 5]
        x, y, z = cross(wx, wy, wz, arm_child[j, 0], arm_child[j, 1], arm_child[j, 2])
        vx, vy, vz = twist[c, 0] + x, twist[c, 1] + y, twist[c, 2] + z
    if p >= 0:
        ux, uy, uz = twist[p, 3], twist[p, 4], twist[p, 5]
        sx, sy, sz = arm_parent[j, 0] + gap[j, 0], arm_parent[j, 1] + gap[j, 1], arm_parent[j, 2] + gap[j, 2]
        x, y, z = cross(ux, uy, uz, sx, sy, sz)
        vx, vy, vz = vx - twist[p, 0] - x, vy - twist[p, 1] - y, vz - twist[p, 2] - z
        wx, wy, wz = wx - ux, wy - uy, wz - uz
    return vx, vy, vz, wx, wy, wz


@inline
def write_velocities(arm_child, arm_parent, gap, direction, j, c, p, first, end, twist, speed_out):
    """Write the velocities of joint j's coordinates: direction times relative velocity."""
    vx, vy, vz, wx, wy, wz = relative_velocity(arm_child, arm_parent, gap, j, c, p, twist)
    for i in range(first, end):
        speed_out[i] = (
            direction[i, 0] * vx + direction[i, 1] * vy + direction[i, 2] * vz
            + direction[i, 3] * wx + direction[i, 4] * wy + direction[i, 5] * wz
        )


@kernel_function
def coordinates_from_poses(joints, twist, coordinate_inout, speed_out):
    """Write coordinates, velocities and (in the tables' scratch) directions at the poses that `pose_joints` used.

    `coordinate_inout` has the last values, which are replaced.
    """
    joints = load_shared(joints)
    a, b, gap, direction = joints.axes_parent, joints.axes_child, joints.gap, joints.direction
    for j in range(joints.kind.shape[0]):
        kind, i = joints.kind[j], joints.coordinate_first[j]
        if kind == BALL:
            write_cardan(a, b, j, i, joints.sign[i + 2], coordinate_inout, direction)
        elif kind in (UNIVERSAL, HINGE):
            angle = atan2(axes_dot(a, 2, b, 1, j), axes_dot(a, 1, b, 1, j))
            coordinate_inout[i] = nearest_angle(angle, coordinate_inout[i])
            put_axis(direction, i, 3, a, j, 0)
            if kind == UNIVERSAL:
                angle = atan2(axes_dot(a, 0, b, 2, j), axes_dot(a, 0, b, 0, j))
                coordinate_inout[i + 1] = nearest_angle(angle, coordinate_inout[i + 1])
                put_axis(direction, i + 1, 3, b, j, 1)
        elif kind == SLIDER:
            write_translations(a, gap, j, i, 1, 1.0, coordinate_inout, direction)
        elif kind == PLANAR:
            write_translations(a, gap, j, i, 2, 1.0, coordinate_inout, direction)
            angle = atan2(axes_dot(a, 1, b, 0, j), axes_dot(a, 0, b, 0, j))
            coordinate_inout[i + 2] = nearest_angle(angle, coordinate_inout[i + 2])
            put_axis(direction, i + 2, 3, a, j, 2)
        elif kind == FREE:
            write_translations(a, gap, j, i, 3, joints.sign[i + 2], coordinate_inout, direction)
            write_cardan(a, b, j, i + 3, joints.sign[i + 5], coordinate_inout, direction)
    for m in range(joints.motion.joint.shape[0]):
        write_custom_directions(joints.motion, a, m, direction)
    for j in range(joints.kind.shape[0]):
        i, end = joints.coordinate_first[j], joints.coordinate_first[j + 1]
        write_velocities(
            joints.arm_child, joints.arm_parent, gap, direction, j, joints.child[j], joints.parent[j], i, end,
            twist, speed_out,
        )


@inline
def as_free_joint(kind, sign, i, values):
    """Return a joint's coordinates, or velocities, as those of a free joint: x, y, z and angles a, b, c."""
    if kind == BALL:
        return 0.0, 0.0, 0.0, values[i], values[i + 1], sign[i + 2] * values[i + 2]
    if kind == UNIVERSAL:
        return 0.0, 0.0, 0.0, values[i], values[i + 1], 0.0
    if kind == HINGE:
        return 0.0, 0.0, 0.0, values[i], 0.0, 0.0
    if kind == SLIDER:
        return values[i], 0.0, 0.0, 0.0, 0.0, 0.0
    if kind == PLANAR:
        return values[i], values[i + 1], 0.0, 0.0, 0.0, values[i + 2]
    if kind == FREE:
        return (
            values[i], values[i + 1], sign[i + 2] * values[i + 2],
            values[i + 3], values[i + 4], sign[i + 5] * values[i + 5],
        )
    return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0


@inline
def cardan_quaternion(a, b, c):
    """Return the quaternion of Rx(a) Ry(b) Rz(c)."""
    w, x, y, z = quaternion_product(cos(0.5 * a), sin(0.5 * a), 0.0, 0.0, cos(0.5 * b), 0.0, sin(0.5 * b), 0.0)
    return quaternion_product(w, x, y, z, cos(0.5 * c), 0.0, 0.0, sin(0.5 * c))


@inline
def frame_quaternion(frame, j):
    """Return the quaternion of joint j's frame on a body."""
    f = frame[j]
    return quaternion_of_axes(f[0, 0], f[1, 0], f[2, 0], f[0, 1], f[1, 1], f[2, 1], f[0, 2], f[1, 2], f[2, 2])


@inline
def subspace_velocity(s, count, i, speed):
    """Return S qdot: relative velocity and angular velocity, parent joint axes."""
    lx, ly, lz, nx, ny, nz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for column in range(count):
        u = speed[i + column]
        lx, ly, lz = lx + s[0, column] * u, ly + s[1, column] * u, lz + s[2, column] * u
        nx, ny, nz = nx + s[3, column] * u, ny + s[4, column] * u, nz + s[5, column] * u
    return lx, ly, lz, nx, ny, nz


@inline
def relative_motion(joints, j, coordinate, speed):
    """Return quaternion, translation, velocity and angular velocity of the child's joint frame in the parent's."""
    kind, i, motion = joints.kind[j], joints.coordinate_first[j], joints.motion
    if kind == COORDINATE:
        m = 0
        while motion.joint[m] != j:
            m += 1
        w, x, y, z, tx, ty, tz = custom_joint_pose(motion, m, coordinate)
        lx, ly, lz, nx, ny, nz = subspace_velocity(motion.subspace[m], motion.freedom[m], i, speed)
        return w, x, y, z, tx, ty, tz, lx, ly, lz, nx, ny, nz
    tx, ty, tz, a, b, c = as_free_joint(kind, joints.sign, i, coordinate)
    lx, ly, lz, adot, bdot, cdot = as_free_joint(kind, joints.sign, i, speed)
    w, x, y, z = cardan_quaternion(a, b, c)
    nx = adot + cdot * sin(b)
    ny = bdot * cos(a) - cdot * sin(a) * cos(b)
    nz = bdot * sin(a) + cdot * cos(a) * cos(b)
    return w, x, y, z, tx, ty, tz, lx, ly, lz, nx, ny, nz


@kernel
def poses_from_coordinates(joints, coordinate, speed, position_out, quaternion_out, twist_out):
    """Write poses and twists of all bodies with a tree joint; those of other bodies are not changed."""
    for number in range(joints.tree_order.shape[0]):
        j = joints.tree_order[number]
        c, p = joints.child[j], joints.parent[j]
        ox, oy, oz, qw, qx, qy, qz = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
        vx, vy, vz, ux, uy, uz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        if p >= 0:
            ox, oy, oz = position_out[p, 0], position_out[p, 1], position_out[p, 2]
            qw, qx, qy, qz = quaternion_out[p, 0], quaternion_out[p, 1], quaternion_out[p, 2], quaternion_out[p, 3]
            vx, vy, vz = twist_out[p, 0], twist_out[p, 1], twist_out[p, 2]
            ux, uy, uz = twist_out[p, 3], twist_out[p, 4], twist_out[p, 5]
        w, x, y, z, tx, ty, tz, lx, ly, lz, nx, ny, nz = relative_motion(joints, j, coordinate, speed)
        anchor_p, anchor_c = joints.anchor_parent[j], joints.anchor_child[j]
        px, py, pz = rotate(qw, qx, qy, qz, anchor_p[0], anchor_p[1], anchor_p[2])
        fw, fx, fy, fz = frame_quaternion(joints.frame_parent, j)
        fw, fx, fy, fz = quaternion_product(qw, qx, qy, qz, fw, fx, fy, fz)
        tx, ty, tz = rotate(fw, fx, fy, fz, tx, ty, tz)
        lx, ly, lz = rotate(fw, fx, fy, fz, lx, ly, lz)
        nx, ny, nz = rotate(fw, fx, fy, fz, nx, ny, nz)
        w, x, y, z = quaternion_product(fw, fx, fy, fz, w, x, y, z)
        gw, gx, gy, gz = frame_quaternion(joints.frame_child, j)
        w, x, y, z = quaternion_product(w, x, y, z, gw, -gx, -gy, -gz)
        scale = 1.0 / sqrt(w * w + x * x + y * y + z * z)
        w, x, y, z = scale * w, scale * x, scale * y, scale * z
        rx, ry, rz = rotate(w, x, y, z, anchor_c[0], anchor_c[1], anchor_c[2])
        sx, sy, sz = px + tx, py + ty, pz + tz
        wx, wy, wz = ux + nx, uy + ny, uz + nz
        ax, ay, az = cross(ux, uy, uz, sx, sy, sz)
        bx, by, bz = cross(wx, wy, wz, rx, ry, rz)
        position_out[c, 0], position_out[c, 1], position_out[c, 2] = ox + sx - rx, oy + sy - ry, oz + sz - rz
        quaternion_out[c, 0], quaternion_out[c, 1], quaternion_out[c, 2], quaternion_out[c, 3] = w, x, y, z
        twist_out[c, 0], twist_out[c, 1], twist_out[c, 2] = vx + ax + lx - bx, vy + ay + ly - by, vz + az + lz - bz
        twist_out[c, 3], twist_out[c, 4], twist_out[c, 5] = wx, wy, wz
