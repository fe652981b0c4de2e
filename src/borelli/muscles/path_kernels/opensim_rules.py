"""OpenSim's rules: whether a straight path segment wraps over a cylinder or a sphere, and on which side.

A segment that cuts the surface *must* wrap; one that passes the allowed half of the surface on its wrong side *may*.
No segment wraps that ends inside the surface. Signs count zero as positive.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.muscles.path_kernels.circle import sphere_path

INSIDE, NONE, MAY_WRAP, MUST_WRAP = -1, 0, 1, 2
"""Results of a rule."""
PARALLEL = 2e-13
"""Squared sine of the angle between a segment and the cylinder's axis below which OpenSim does not wrap."""


@inline
def sign_of(x):
    """Return 1 for x >= 0, else -1."""
    return 1 if x >= 0.0 else -1


@inline
def component(x, y, z, axis):
    """Return one of three components."""
    return x if axis == 0 else (y if axis == 1 else z)


@inline
def nearest_to_axis(px, py, pz, qx, qy, qz):
    """Return the point of the line p q nearest to the z axis, its fraction from p to q, and its squared distance."""
    dx, dy, dz = qx - px, qy - py, qz - pz
    across = dx * dx + dy * dy
    if across <= PARALLEL * (across + dz * dz):
        return px, py, pz, -1.0, px * px + py * py  # a fraction outside the segment
    s = -(px * dx + py * dy) / across
    x, y = px + s * dx, py + s * dy
    return x, y, pz + s * dz, s, x * x + y * y


@inline
def _both_tangents(x, y, radius):
    """Return the tangent points of a circle counterclockwise and clockwise of a point outside it."""
    square, rr = x * x + y * y, radius * radius
    a, b = rr / square, radius * sqrt(max(square - rr, 0.0)) / square
    return a * x - b * y, a * y + b * x, a * x + b * y, a * y - b * x


@kernel_function
def cylinder_rule(px, py, pz, qx, qy, qz, radius, axis, allowed):
    """Return the rule's result, the side (1 or -1), and whether the path goes around the far side of the surface.

    `axis` and `allowed` (1, -1; 0: all) state the half of the surface on which the path may lie.
    """
    rr = radius * radius
    if px * px + py * py < rr or qx * qx + qy * qy < rr:
        return INSIDE, 1, False
    nx, ny, nz, fraction, distance = nearest_to_axis(px, py, pz, qx, qy, qz)
    cuts = distance < rr and 0.0 < fraction < 1.0
    if allowed == 0:
        return (MUST_WRAP if cuts else NONE), (1 if px * qy - py * qx > 0.0 else -1), False
    p_sign, q_sign = sign_of(component(px, py, pz, axis)), sign_of(component(qx, qy, qz, axis))
    result = MAY_WRAP
    if p_sign == allowed or q_sign == allowed:
        if cuts:
            result = MUST_WRAP
        elif p_sign == q_sign or sign_of(component(nx, ny, nz, axis)) == allowed:
            return NONE, 1, False
    # a: tangent point counterclockwise of its end, b: clockwise. Paths are a1 b2 (side 1) or b1 a2 (side -1)
    a1x, a1y, b1x, b1y = _both_tangents(px, py, radius)
    a2x, a2y, b2x, b2y = _both_tangents(qx, qy, radius)
    first_farther = a1x * b2x + a1y * b2y < b1x * a2x + b1y * a2y  # angle between a1 b2 above that between b1 a2
    a1, b1 = sign_of(component(a1x, a1y, pz, axis)) == allowed, sign_of(component(b1x, b1y, pz, axis)) == allowed
    a2, b2 = sign_of(component(a2x, a2y, qz, axis)) == allowed, sign_of(component(b2x, b2y, qz, axis)) == allowed
    if a1 and b1:
        side = -1 if a2 else 1
    elif a1 or b1:
        side = 1 if a1 else -1
    elif a2 or b2:
        side = -1 if a2 else 1
    else:
        return result, (1 if first_farther else -1), True
    return result, side, first_farther == (side == 1)


@kernel_function
def sphere_rule(px, py, pz, qx, qy, qz, radius, axis, allowed, out):
    """Return the rule's result and the side (1: the shorter one)."""
    rr = radius * radius
    if px * px + py * py + pz * pz < rr or qx * qx + qy * qy + qz * qz < rr:
        return INSIDE, 1
    dx, dy, dz = px - qx, py - qy, pz - qz
    a, b = dx * dx + dy * dy + dz * dz, 2.0 * (qx * dx + qy * dy + qz * dz)
    root = b * b - 4.0 * a * (qx * qx + qy * qy + qz * qz - rr)
    if root < 0.0 or a == 0.0:
        return NONE, 1
    low, high = (-b - sqrt(root)) / (2.0 * a), (-b + sqrt(root)) / (2.0 * a)
    if not (low > 0.0 and high < 1.0):
        return NONE, 1
    if allowed == 0:
        return MAY_WRAP, 1
    p_in = sign_of(component(px, py, pz, axis)) == allowed
    q_in = sign_of(component(qx, qy, qz, axis)) == allowed
    result = MUST_WRAP if p_in or q_in else MAY_WRAP
    if p_in and q_in:
        return result, 1
    # the longer path, if it approaches the surface toward the allowed half
    sphere_path(px, py, pz, qx, qy, qz, radius, -1.0, out)
    x, y, z = out[0] + out[3] - px - qx, out[1] + out[4] - py - qy, out[2] + out[5] - pz - qz
    return result, (-1 if allowed * component(x, y, z, axis) >= 0.0 else 1)
