"""MuJoCo's tendons: wrapping over an endless cylinder or a sphere, outside or inside, between two sites.

Both reduce to a circle in a plane. A side point outside the surface selects the branch: the one whose tangent point
farther from it is the nearer one (MuJoCo 4.0; versions 2 and 3 compare the mean of both tangent points). Without a
side point it is the branch whose tangent points are nearer to each other. A branch that crosses itself is straight.
A side point inside the surface makes the tendon pass *inside* it: one point of the circle, at which it is reflected
(MuJoCo documentation, section Tendons).
"""

from __future__ import annotations

from math import acos, asin, cos, hypot, pi, sin, sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.muscles.path_kernels.circle import cylinder_path, sphere_path, sphere_plane, tangent_points
from borelli.muscles.path_kernels.opensim_rules import MUST_WRAP, NONE

TINY = 1e-15
"""MuJoCo's smallest divisor."""
MAX_REFLECTION_ITERATIONS = 60
REFLECTION_TOLERANCE = 1e-15
"""Step [rad] at which the iteration for the point of reflection ends."""


@inline
def _segments_cross(ax, ay, bx, by, cx, cy, dx, dy):
    """Return whether the plane segments a b and c d have a common point."""
    det = (dy - cy) * (bx - ax) - (dx - cx) * (by - ay)
    if abs(det) < TINY:
        return False
    s = ((dx - cx) * (ay - cy) - (dy - cy) * (ax - cx)) / det
    t = ((bx - ax) * (ay - cy) - (by - ay) * (ax - cx)) / det
    return 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0


@inline
def _nearest(px, py, qx, qy):
    """Return the fraction, not bounded, at which the line p q is nearest to the origin."""
    dx, dy = qx - px, qy - py
    return -(dx * px + dy * py) / (dx * dx + dy * dy)


@inline
def _goodness(px, py, qx, qy, radius, side, has_side, sx, sy):
    """Return how well a branch fits: both tangent points toward the side point, or near each other."""
    t1x, t1y, t2x, t2y, _, _, _ = tangent_points(px, py, qx, qy, radius, side)
    if has_side:
        return min(t1x * sx + t1y * sy, t2x * sx + t2y * sy)
    return -((t1x - t2x) ** 2 + (t1y - t2y) ** 2)


@kernel_function
def circle_side(px, py, qx, qy, radius, has_side, sx, sy):
    """Return the side (1 or -1) on which a tendon wraps around a circle; 0: it is straight."""
    rr = radius * radius
    if px * px + py * py < rr or qx * qx + qy * qy < rr or (qx - px) ** 2 + (qy - py) ** 2 < TINY:
        return 0
    a = min(max(_nearest(px, py, qx, qy), 0.0), 1.0)
    x, y = px + a * (qx - px), py + a * (qy - py)
    if x * x + y * y > rr and (not has_side or sx * x + sy * y >= 0.0):
        return 0
    clockwise = _goodness(px, py, qx, qy, radius, -1.0, has_side, sx, sy)
    side = -1 if clockwise > _goodness(px, py, qx, qy, radius, 1.0, has_side, sx, sy) else 1
    t1x, t1y, t2x, t2y, _, _, _ = tangent_points(px, py, qx, qy, radius, side)
    return 0 if _segments_cross(px, py, t1x, t1y, qx, qy, t2x, t2y) else side


@kernel_function
def reflection_point(px, py, qx, qy, radius):
    """Return whether a tendon passes inside a circle, and the point at which it is reflected.

    The angle h between tendon and surface is the same for both ends: with A = r/|p|, B = r/|q| and G the angle between
    p and q, asin(A cos h) + asin(B cos h) + 2 h + G = pi, by Newton within a bracket. The left side increases with h.
    """
    p, q = hypot(px, py), hypot(qx, qy)
    if p <= radius or q <= radius or radius < TINY:
        return False, 0.0, 0.0
    dd = (qx - px) ** 2 + (qy - py) ** 2
    if dd > TINY:
        a = _nearest(px, py, qx, qy)
        if 0.0 < a < 1.0 and hypot(px + a * (qx - px), py + a * (qy - py)) <= radius:
            return False, 0.0, 0.0
    cosine = (p * p + q * q - dd) / (2.0 * p * q)
    if cosine < -1.0 + TINY:
        return False, 0.0, 0.0
    x, y = px + qx, py + qy
    scale = radius / max(hypot(x, y), TINY)
    x, y = scale * x, scale * y  # toward the midpoint: the limit where Newton does not apply
    if cosine > 1.0 - TINY:
        return True, x, y
    A, B, G = radius / p, radius / q, acos(cosine)
    low, high, h = 0.0, 0.5 * pi, 0.0
    for _ in range(MAX_REFLECTION_ITERATIONS):
        c = cos(h)
        f = asin(A * c) + asin(B * c) - pi + 2.0 * h + G
        if f > 0.0:
            high = h
        else:
            low = h
        slope = 2.0 - sin(h) * (A / sqrt(1.0 - A * A * c * c) + B / sqrt(1.0 - B * B * c * c))
        new = h - f / slope if slope > 0.0 else 0.5 * (low + high)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - h) < REFLECTION_TOLERANCE:
            break
        h = new
    if px * qy - py * qx > 0.0:
        angle, ux, uy = 0.5 * pi - h - asin(A * cos(h)), px / p, py / p
    else:
        angle, ux, uy = 0.5 * pi - h - asin(B * cos(h)), qx / q, qy / q
    return True, radius * (cos(angle) * ux - sin(angle) * uy), radius * (sin(angle) * ux + cos(angle) * uy)


@kernel_function
def tendon_path(px, py, pz, qx, qy, qz, radius, sphere, has_side, sx, sy, sz, out):
    """Fill t1, t2 and the length between them, and return whether the tendon wraps."""
    if px * px + py * py + pz * pz < TINY * TINY or qx * qx + qy * qy + qz * qz < TINY * TINY:
        return NONE
    ax, ay, az, bx, by, bz = 1.0, 0.0, 0.0, 0.0, 1.0, 0.0
    if sphere:
        ax, ay, az, bx, by, bz = sphere_plane(px, py, pz, qx, qy, qz)
    p1, p2 = px * ax + py * ay + pz * az, px * bx + py * by + pz * bz
    q1, q2 = qx * ax + qy * ay + qz * az, qx * bx + qy * by + qz * bz
    s1, s2 = sx * ax + sy * ay + sz * az, sx * bx + sy * by + sz * bz
    far = hypot(s1, s2)
    if has_side and sx * sx + sy * sy + sz * sz < radius * radius:
        wraps, x, y = reflection_point(p1, p2, q1, q2, radius)
        if not wraps:
            return NONE
        for k in (0, 3):
            out[k], out[k + 1], out[k + 2] = x * ax + y * bx, x * ay + y * by, x * az + y * bz
        if not sphere:
            l1, l2 = hypot(p1 - x, p2 - y), hypot(q1 - x, q2 - y)
            out[2] = out[5] = pz + (qz - pz) * l1 / (l1 + l2)
        out[6] = 0.0
        return MUST_WRAP
    if has_side and far > 0.0:
        s1, s2 = s1 * radius / far, s2 * radius / far
    side = circle_side(p1, p2, q1, q2, radius, has_side, s1, s2)
    if side == 0:
        return NONE
    if sphere:
        sphere_path(px, py, pz, qx, qy, qz, radius, side, out)
    else:
        cylinder_path(px, py, pz, qx, qy, qz, radius, side, out)
    return MUST_WRAP
