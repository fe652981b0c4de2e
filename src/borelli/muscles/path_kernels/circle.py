"""Shortest paths around a circle, and with it around a cylinder and a sphere: closed forms.

A path from p around a circle of radius r to q, on the side w = +-1 (counterclockwise, clockwise), leaves the circle's
tangents at t1 and t2. With l = sqrt(|p|^2 - r^2) and the perpendicular p' = (-p_y, p_x),

    t1 = (r^2 p + w r l1 p') / |p|^2        t2 = (r^2 q - w r l2 q') / |q|^2        arc = w angle(t1, t2) mod 2 pi

A cylinder unrolls into a plane, in which the path is straight: with flat = l1 + r arc + l2 its length is
hypot(flat, z_q - z_p), and z is linear in the flat length. On a sphere the path lies in the plane of p, q and the
center. Tangent points are stationary, so the derivative of the length by p and q is the unit vector there (envelope
theorem), and no derivative of tangent points is needed.
"""

from __future__ import annotations

from math import atan2, pi, sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.numerics.rotation_kernels import cross

FULL_TURN_ROUNDING = 1e-9
"""Arcs [rad] this close to a full turn are zero: rounding makes a tangent line's arc slightly negative."""
MIN_NORMAL = 1e-12
"""Sine of the angle between two points seen from a sphere's center below which their plane is undetermined."""


@inline
def tangent_points(px, py, qx, qy, radius, side):
    """Return t1 (x, y), t2 (x, y), the tangent lengths l1 and l2 [m] and the arc [rad] between them."""
    pp, qq, rr = px * px + py * py, qx * qx + qy * qy, radius * radius
    l1, l2 = sqrt(max(pp - rr, 0.0)), sqrt(max(qq - rr, 0.0))
    a, b, c, d = rr / pp, side * radius * l1 / pp, rr / qq, side * radius * l2 / qq
    t1x, t1y = a * px - b * py, a * py + b * px
    t2x, t2y = c * qx + d * qy, c * qy - d * qx
    arc = atan2(side * (t1x * t2y - t1y * t2x), t1x * t2x + t1y * t2y)
    if arc < 0.0:
        arc += 2.0 * pi
    if arc > 2.0 * pi - FULL_TURN_ROUNDING:
        arc = 0.0
    return t1x, t1y, t2x, t2y, l1, l2, arc


@kernel_function
def cylinder_path(px, py, pz, qx, qy, qz, radius, side, out):
    """Fill the path around an endless cylinder along z: t1, t2 [m] and the length [m] between them."""
    t1x, t1y, t2x, t2y, l1, l2, arc = tangent_points(px, py, qx, qy, radius, side)
    flat, rise = l1 + radius * arc + l2, qz - pz
    slope = rise / flat if flat > 0.0 else 0.0
    out[0], out[1], out[2] = t1x, t1y, pz + slope * l1
    out[3], out[4], out[5] = t2x, t2y, qz - slope * l2
    out[6] = radius * arc * sqrt(1.0 + slope * slope)


@inline
def sphere_plane(px, py, pz, qx, qy, qz):
    """Return unit vectors e1 along p and e2 toward q of the plane through p, q and the center."""
    length = sqrt(px * px + py * py + pz * pz)
    ax, ay, az = px / length, py / length, pz / length
    nx, ny, nz = cross(ax, ay, az, qx, qy, qz)
    if nx * nx + ny * ny + nz * nz <= MIN_NORMAL * MIN_NORMAL * (qx * qx + qy * qy + qz * qz):
        # any plane has the same length; take the second vector 0 at the largest component of e1 and 1 elsewhere
        bx, by, bz = 1.0, 1.0, 1.0
        if abs(ay) > abs(ax) and abs(ay) > abs(az):
            by = 0.0
        elif abs(az) > abs(ax) and abs(az) > abs(ay):
            bz = 0.0
        else:
            bx = 0.0
        nx, ny, nz = cross(ax, ay, az, bx, by, bz)
    size = sqrt(nx * nx + ny * ny + nz * nz)
    bx, by, bz = cross(nx / size, ny / size, nz / size, ax, ay, az)
    return ax, ay, az, bx, by, bz


@kernel_function
def sphere_path(px, py, pz, qx, qy, qz, radius, side, out):
    """Fill the path around a sphere at the origin; side 1 is the shorter one."""
    ax, ay, az, bx, by, bz = sphere_plane(px, py, pz, qx, qy, qz)
    t1x, t1y, t2x, t2y, _, _, arc = tangent_points(
        px * ax + py * ay + pz * az, 0.0, qx * ax + qy * ay + qz * az, qx * bx + qy * by + qz * bz, radius, side
    )
    out[0], out[1], out[2] = t1x * ax + t1y * bx, t1x * ay + t1y * by, t1x * az + t1y * bz
    out[3], out[4], out[5] = t2x * ax + t2y * bx, t2x * ay + t2y * by, t2x * az + t2y * bz
    out[6] = radius * arc
