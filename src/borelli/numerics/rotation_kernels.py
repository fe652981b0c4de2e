"""Rotations for kernels, one at a time: quaternions are (w, x, y, z), unit, and rotate body vectors to world vectors.

Kernels take and return scalars in tuples, so that they inline and allocate nothing. Arrays of rotations: `quaternions`.
"""

from __future__ import annotations

from math import atan2, cos, sin, sqrt

from borelli.kernels.jit import kernel


@kernel
def cross(ax, ay, az, bx, by, bz):
    """Return the cross product a x b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@kernel
def quaternion_product(aw, ax, ay, az, bw, bx, by, bz):
    """Return the rotation b followed by a."""
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


@kernel
def rotation_matrix(w, x, y, z):
    """Return the nine entries, row by row, of the matrix of a unit quaternion."""
    return (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
        2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
        2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y),
    )


@kernel
def rotate(w, x, y, z, vx, vy, vz):
    """Return the vector v rotated by a unit quaternion."""
    tx, ty, tz = cross(x, y, z, vx, vy, vz)
    tx, ty, tz = 2.0 * tx, 2.0 * ty, 2.0 * tz
    cx, cy, cz = cross(x, y, z, tx, ty, tz)
    return vx + w * tx + cx, vy + w * ty + cy, vz + w * tz + cz


@kernel
def rotate_about_axis(ax, ay, az, sine, cosine, x, y, z):
    """Return the vector (x, y, z) rotated about the unit axis a by an angle of given sine and cosine (Rodrigues)."""
    cx, cy, cz = cross(ax, ay, az, x, y, z)
    along = (1.0 - cosine) * (ax * x + ay * y + az * z)
    return (
        cosine * x + sine * cx + along * ax,
        cosine * y + sine * cy + along * ay,
        cosine * z + sine * cz + along * az,
    )


@kernel
def rotation_exponential(vx, vy, vz):
    """Return the quaternion of the rotation vector v [rad]."""
    square = vx * vx + vy * vy + vz * vz
    if square < 1e-8:
        # sin(t/2)/t to fourth order in t: exact to rounding below 1e-4 rad
        s = 0.5 - square / 48.0
        return 1.0 - square / 8.0 + square * square / 384.0, s * vx, s * vy, s * vz
    angle = sqrt(square)
    s = sin(0.5 * angle) / angle
    return cos(0.5 * angle), s * vx, s * vy, s * vz


@kernel
def rotation_logarithm(w, x, y, z):
    """Return the shortest rotation vector [rad] of a unit quaternion."""
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    s = sqrt(x * x + y * y + z * z)
    scale = 2.0 if s < 1e-12 else 2.0 * atan2(s, w) / s
    return scale * x, scale * y, scale * z
