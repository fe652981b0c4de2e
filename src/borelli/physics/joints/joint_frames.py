"""World poses of joint frames: computed once a step, read by all rows and coordinates of joints."""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline
from borelli.physics.vectors import to_world


@inline
def compute_joint_side(j, b, anchor, frame, position, rotation, arm_out, axes_out):
    """Write arm and axes of joint j on one body, in world axes, and return its anchor."""
    rx, ry, rz = to_world(rotation, b, anchor[j, 0], anchor[j, 1], anchor[j, 2])
    arm_out[j, 0], arm_out[j, 1], arm_out[j, 2] = rx, ry, rz
    for axis in range(3):
        x, y, z = to_world(rotation, b, frame[j, 0, axis], frame[j, 1, axis], frame[j, 2, axis])
        axes_out[j, axis, 0], axes_out[j, axis, 1], axes_out[j, axis, 2] = x, y, z
    if b < 0:
        return rx, ry, rz
    return position[b, 0] + rx, position[b, 1] + ry, position[b, 2] + rz


@inline
def compute_joint_frames(joints, position, rotation):
    """Write arms, gap and axes of every joint, in world axes, to the tables' scratch."""
    child, parent, gap = joints.child, joints.parent, joints.gap
    for j in range(child.shape[0]):
        cx, cy, cz = compute_joint_side(
            j, child[j], joints.anchor_child, joints.frame_child, position, rotation, joints.arm_child,
            joints.axes_child,
        )
        px, py, pz = compute_joint_side(
            j, parent[j], joints.anchor_parent, joints.frame_parent, position, rotation, joints.arm_parent,
            joints.axes_parent,
        )
        gap[j, 0], gap[j, 1], gap[j, 2] = cx - px, cy - py, cz - pz


@inline
def axes_dot(a, i, b, k, j):
    """Return the cosine between axis i of a and axis k of b at joint j."""
    return a[j, i, 0] * b[j, k, 0] + a[j, i, 1] * b[j, k, 1] + a[j, i, 2] * b[j, k, 2]


@inline
def quaternion_of_axes(xx, xy, xz, yx, yy, yz, zx, zy, zz):
    """Return the unit quaternion of the matrix with columns x, y, z; its largest component is computed first."""
    trace = xx + yy + zz
    if trace > 0.0:
        s = 0.5 / sqrt(1.0 + trace)
        return 0.25 / s, (yz - zy) * s, (zx - xz) * s, (xy - yx) * s
    if xx >= yy and xx >= zz:
        s = 0.5 / sqrt(1.0 + xx - yy - zz)
        return (yz - zy) * s, 0.25 / s, (yx + xy) * s, (zx + xz) * s
    if yy >= zz:
        s = 0.5 / sqrt(1.0 + yy - xx - zz)
        return (zx - xz) * s, (yx + xy) * s, 0.25 / s, (zy + yz) * s
    s = 0.5 / sqrt(1.0 + zz - xx - yy)
    return (xy - yx) * s, (zx + xz) * s, (zy + yz) * s, 0.25 / s


@inline
def relative_quaternion(axes_parent, axes_child, j):
    """Return the rotation of the child's joint frame in the parent's."""
    return quaternion_of_axes(
        axes_dot(axes_parent, 0, axes_child, 0, j),
        axes_dot(axes_parent, 1, axes_child, 0, j),
        axes_dot(axes_parent, 2, axes_child, 0, j),
        axes_dot(axes_parent, 0, axes_child, 1, j),
        axes_dot(axes_parent, 1, axes_child, 1, j),
        axes_dot(axes_parent, 2, axes_child, 1, j),
        axes_dot(axes_parent, 0, axes_child, 2, j),
        axes_dot(axes_parent, 1, axes_child, 2, j),
        axes_dot(axes_parent, 2, axes_child, 2, j),
    )


@inline
def from_axes(axes, j, x, y, z):
    """Return the vector with components x, y, z along joint j's axes, in world axes."""
    return (
        axes[j, 0, 0] * x + axes[j, 1, 0] * y + axes[j, 2, 0] * z,
        axes[j, 0, 1] * x + axes[j, 1, 1] * y + axes[j, 2, 1] * z,
        axes[j, 0, 2] * x + axes[j, 1, 2] * y + axes[j, 2, 2] * z,
    )


@inline
def along_axis(axes, j, axis, x, y, z):
    """Return the component of a world vector along one of joint j's axes."""
    return axes[j, axis, 0] * x + axes[j, axis, 1] * y + axes[j, axis, 2] * z
