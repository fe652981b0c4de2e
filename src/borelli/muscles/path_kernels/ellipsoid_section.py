"""OpenSim's path over an ellipsoid: the plane section through both ends and a point c on the surface.

It is not a geodesic. Scaling each axis by its half length makes the ellipsoid a unit sphere and the section a circle;
tangency is kept, so the tangent points are those of a circle. c is chosen by OpenSim's method: `midpoint` takes the
surface point nearest to the middle of the chord, `axial` the one nearest, in the plane of two axes, to where the line
crosses that plane, and `hybrid` blends the axial point into the mean direction of a fan of nearest points along the
chord. The nearest point on an ellipsoid is found by Newton on the sixth-degree polynomial of Hart (1994).
"""

from __future__ import annotations

from math import acos, cos, pi, sin, sqrt

from borelli.kernels.jit import kernel_function
from borelli.muscles.path_kernels.circle import tangent_points
from borelli.muscles.path_kernels.opensim_rules import INSIDE, MUST_WRAP, NONE, component, sign_of
from borelli.numerics.rotation_kernels import cross

HYBRID, MIDPOINT, AXIAL, TENDON = 0, 1, 2, 3
"""Methods of a wrap."""
ON_SURFACE = 1e-4
"""Largest |(x/a)^2 + (y/b)^2 + (z/c)^2 - 1| of a point that counts as on the surface."""
PARALLEL_RAYS = 1e-4
"""One minus the cosine between the ends, seen from the center, below which no path wraps."""
FAN_BELOW, AXIS_ABOVE = 0.7073, 0.9
"""Largest component of the segment's direction below which the fan, and above which the axial point, is used alone."""
FAN_SAMPLES, BRANCH_SAMPLES = 300, 16
"""Points of OpenSim's fan along the chord; enough of them where it only selects the branch of a geodesic."""
CHORD_END = 0.3
"""Fraction of the chord, at its ends, over which the axial point fades out."""
NEAREST_TOLERANCE = 1e-9
"""Largest residual of the equation of the nearest point, for half axes with a mean of 1."""
ZERO = 2e-13
"""Largest coordinate that counts as zero."""
SEGMENT_LENGTH = 0.001
"""Length [m] of OpenSim's pieces of the path over the surface."""
MAX_SEGMENTS = 499


@kernel_function
def ellipsoid_rule(px, py, pz, qx, qy, qz, sizes):
    """Return the rule's result and the fractions from q to p at which the segment enters and leaves the surface."""
    a, b, c = sizes[0], sizes[1], sizes[2]
    ux, uy, uz, vx, vy, vz = px / a, py / b, pz / c, qx / a, qy / b, qz / c
    if ux * ux + uy * uy + uz * uz - 1.0 < -ON_SURFACE or vx * vx + vy * vy + vz * vz - 1.0 < -ON_SURFACE:
        return INSIDE, 0.0, 0.0
    product = sqrt((px * px + py * py + pz * pz) * (qx * qx + qy * qy + qz * qz))
    if abs((px * qx + py * qy + pz * qz) / product - 1.0) < PARALLEL_RAYS:
        return NONE, 0.0, 0.0
    dx, dy, dz = ux - vx, uy - vy, uz - vz
    A, B = dx * dx + dy * dy + dz * dz, 2.0 * (dx * vx + dy * vy + dz * vz)
    root = B * B - 4.0 * A * (vx * vx + vy * vy + vz * vz - 1.0)
    if root < 0.0:
        return NONE, 0.0, 0.0
    high, low = (-B + sqrt(root)) / (2.0 * A), (-B - sqrt(root)) / (2.0 * A)
    if not (low > 0.0 and high < 1.0):
        return NONE, 0.0, 0.0
    return MUST_WRAP, high, low


@kernel_function
def _nearest_on_ellipse(a, b, u, v):
    """Return the point of an ellipse that is nearest to (u, v)."""
    flat_u, flat_v = abs(u) <= ZERO, abs(v) <= ZERO
    if flat_u and flat_v:
        return ((-a if u < 0.0 else a), v) if a < b else (u, (-b if v < 0.0 else b))
    if flat_u:
        if a >= b or abs(v) >= b - a * a / b:
            return u, (b if v >= 0.0 else -b)
        y = b * b * v / (b * b - a * a)
        return a * sqrt(abs(1.0 - (y / b) ** 2)), y
    if flat_v:
        if b >= a or abs(u) >= a - b * b / a:
            return (a if u >= 0.0 else -a), v
        x = a * a * u / (a * a - b * b)
        return x, b * sqrt(abs(1.0 - (x / a) ** 2))
    aa, bb = a * a, b * b
    t = 0.0 if (u / a) ** 2 + (v / b) ** 2 < 1.0 else max(a, b) * sqrt(u * u + v * v)
    P, Q = t + aa, t + bb
    for _ in range(64):
        P, Q = t + aa, t + bb
        f = P * P * Q * Q - aa * u * u * Q * Q - bb * v * v * P * P
        if abs(f) < NEAREST_TOLERANCE:
            break
        t -= f / (2.0 * (P * Q * (P + Q) - aa * u * u * Q - bb * v * v * P))
    return aa * u / P, bb * v / Q


@kernel_function
def _nearest(a, b, c, u, v, w, plane, old_x, old_y, old_z):
    """Return the point of an ellipsoid nearest to (u, v, w); plane 0, 1, 2: within its section across x, y, z.

    Where the iteration fails, the old point is returned.
    """
    if plane < 0:
        # near a coordinate plane, the narrowest section
        narrowest = 1e300
        if abs(u) <= ZERO and b + c < narrowest:
            plane, narrowest = 0, b + c
        if abs(v) <= ZERO and a + c < narrowest:
            plane, narrowest = 1, a + c
        if abs(w) <= ZERO and a + b < narrowest:
            plane = 2
    if plane == 0:
        y, z = _nearest_on_ellipse(b, c, v, w)
        return u, y, z
    if plane == 1:
        z, x = _nearest_on_ellipse(c, a, w, u)
        return x, v, z
    if plane == 2:
        x, y = _nearest_on_ellipse(a, b, u, v)
        return x, y, w
    aa, bb, cc = a * a, b * b, c * c
    U, V, W = aa * u * u, bb * v * v, cc * w * w
    t = 0.0
    if (u / a) ** 2 + (v / b) ** 2 + (w / c) ** 2 >= 1.0:
        t = max(a, b, c) * sqrt(u * u + v * v + w * w)
    for _ in range(64):
        P, Q, R = t + aa, t + bb, t + cc
        PP, QQ, RR = P * P, Q * Q, R * R
        f = PP * QQ * RR - U * QQ * RR - V * PP * RR - W * PP * QQ
        if abs(f) < NEAREST_TOLERANCE:
            return aa * u / P, bb * v / Q, cc * w / R
        PQ, PR, QR = P * Q, P * R, Q * R
        t -= f / (2.0 * (P * QR * (QR + PR + PQ) - U * QR * (Q + R) - V * PR * (P + R) - W * PQ * (P + Q)))
    return old_x, old_y, old_z


@kernel_function
def surface_point(px, py, pz, qx, qy, qz, high, low, sizes, method, axis, allowed, samples):
    """Return the point c, in units of the mean half axis, on which OpenSim bases the section.

    `high` and `low` are the fractions from `ellipsoid_rule`, `samples` is the number of blades of the fan.
    """
    scale = 3.0 / (sizes[0] + sizes[1] + sizes[2])
    a, b, c = scale * sizes[0], scale * sizes[1], scale * sizes[2]
    px, py, pz, qx, qy, qz = scale * px, scale * py, scale * pz, scale * qx, scale * qy, scale * qz
    dx, dy, dz = px - qx, py - qy, pz - qz
    r1x, r1y, r1z = qx + high * dx, qy + high * dy, qz + high * dz
    vx, vy, vz = (low - high) * dx, (low - high) * dy, (low - high) * dz
    length = sqrt(dx * dx + dy * dy + dz * dz)
    mx, my, mz = abs(dx) / length, abs(dy) / length, abs(dz) / length
    main = 1 if my > mx else 0
    if mz > max(mx, my):
        main = 2
    mu = component(mx, my, mz, main)
    cx, cy, cz, fan_weight = 0.0, 0.0, 0.0, -1.0
    hx, hy, hz = r1x + 0.5 * vx, r1y + 0.5 * vy, r1z + 0.5 * vz
    if method == MIDPOINT:
        cx, cy, cz = _nearest(a, b, c, hx, hy, hz, -1, hx, hy, hz)
    else:
        t = -component(r1x, r1y, r1z, main) / component(vx, vy, vz, main)
        if method == HYBRID and mu > FAN_BELOW:
            fade = 1.0
            if t < 0.0 or t > 1.0:
                fade = 0.0
            elif t < CHORD_END:
                fade = t / CHORD_END
            elif t > 1.0 - CHORD_END:
                fade = (1.0 - t) / CHORD_END
            mu = FAN_BELOW + fade * (mu - FAN_BELOW)
        if method == AXIAL or mu > FAN_BELOW:
            sx, sy, sz = r1x + t * vx, r1y + t * vy, r1z + t * vz
            cx, cy, cz = _nearest(a, b, c, sx, sy, sz, main, sx, sy, sz)
        if method == HYBRID and mu < AXIS_ABOVE:
            fx, fy, fz = _fan_direction(a, b, c, r1x, r1y, r1z, vx, vy, vz, samples)
            fx, fy, fz = _nearest(a, b, c, hx + fx, hy + fy, hz + fz, -1, hx, hy, hz)
            fan_weight = 1.0
            if mu <= FAN_BELOW:
                cx, cy, cz = fx, fy, fz
            else:
                share = (mu - FAN_BELOW) / (AXIS_ABOVE - FAN_BELOW)
                fan_weight = 1.0 - share
                cx, cy, cz = share * cx + fan_weight * fx, share * cy + fan_weight * fy, share * cz + fan_weight * fz
                cx, cy, cz = _nearest(a, b, c, cx, cy, cz, -1, cx, cy, cz)
    if allowed != 0 and sign_of(component(cx, cy, cz, axis)) != allowed:
        if fan_weight < 0.0:
            fan_weight = 1.0 - (mu - FAN_BELOW) / (AXIS_ABOVE - FAN_BELOW)
        flip = -1.0 + min(max(fan_weight, 0.0), 1.0)  # onto the allowed half, or into its edge
        if axis == 0:
            cx *= flip
        elif axis == 1:
            cy *= flip
        else:
            cz *= flip
        if fan_weight > 0.0:
            cx, cy, cz = _nearest(a, b, c, cx, cy, cz, -1, cx, cy, cz)
    return cx, cy, cz


@kernel_function
def _fan_direction(a, b, c, rx, ry, rz, vx, vy, vz, samples):
    """Return the mean direction from points of the chord to their nearest points on the surface."""
    x, y, z = 0.0, 0.0, 0.0
    nx, ny, nz = rx, ry, rz
    for i in range(1, samples - 1):
        t = i / samples
        sx, sy, sz = rx + t * vx, ry + t * vy, rz + t * vz
        nx, ny, nz = _nearest(a, b, c, sx, sy, sz, -1, nx, ny, nz)
        ux, uy, uz = nx - sx, ny - sy, nz - sz
        size = sqrt(ux * ux + uy * uy + uz * uz)
        if size > 0.0:
            x, y, z = x + ux / size, y + uy / size, z + uz / size
    size = sqrt(x * x + y * y + z * z)
    return x / size, y / size, z / size


@kernel_function
def section_path(px, py, pz, qx, qy, qz, sizes, cx, cy, cz, polygon, constrained, out):
    """Fill the plane section through p, q and c: t1, t2 and the length [m] of OpenSim's polygon between them.

    Without `polygon` the length is that of a circular arc over the same chord: a first guess.
    """
    a, b, c = sizes[0], sizes[1], sizes[2]
    scale = 3.0 / (a + b + c)
    # the unit sphere: plane through P, Q and C, in-plane axes e (along P Q) and f (toward C)
    Px, Py, Pz, Qx, Qy, Qz = px / a, py / b, pz / c, qx / a, qy / b, qz / c
    Cx, Cy, Cz = cx / (a * scale), cy / (b * scale), cz / (c * scale)
    ex, ey, ez = Qx - Px, Qy - Py, Qz - Pz
    size = sqrt(ex * ex + ey * ey + ez * ez)
    ex, ey, ez = ex / size, ey / size, ez / size
    fx, fy, fz = Cx - Px, Cy - Py, Cz - Pz
    along = fx * ex + fy * ey + fz * ez
    fx, fy, fz = fx - along * ex, fy - along * ey, fz - along * ez
    size = sqrt(fx * fx + fy * fy + fz * fz)
    if size == 0.0:
        return NONE
    fx, fy, fz = fx / size, fy / size, fz / size
    gx, gy, gz = cross(ex, ey, ez, fx, fy, fz)
    h = Px * gx + Py * gy + Pz * gz  # distance of the plane from the center
    rr = 1.0 - h * h
    if rr <= 0.0:
        return NONE
    radius = sqrt(rr)
    p1, p2 = Px * ex + Py * ey + Pz * ez, Px * fx + Py * fy + Pz * fz
    q1, q2 = Qx * ex + Qy * ey + Qz * ez, Qx * fx + Qy * fy + Qz * fz
    # seen along g, the path from P to Q (along e) over C (side f) turns clockwise
    t11, t12, t21, t22, _, _, arc = tangent_points(p1, p2, q1, q2, radius, -1.0)
    if p1 * p1 + p2 * p2 < rr * (1.0 + ON_SURFACE):
        t11, t12 = p1, p2
    if q1 * q1 + q2 * q2 < rr * (1.0 + ON_SURFACE):
        t21, t22 = q1, q2
    out[0], out[1], out[2] = (
        a * (h * gx + t11 * ex + t12 * fx), b * (h * gy + t11 * ey + t12 * fy), c * (h * gz + t11 * ez + t12 * fz),
    )  # fmt: skip
    out[3], out[4], out[5] = (
        a * (h * gx + t21 * ex + t22 * fx), b * (h * gy + t21 * ey + t22 * fy), c * (h * gz + t21 * ez + t22 * fz),
    )  # fmt: skip
    if not polygon:
        half = max(min(0.5 * arc, 0.45 * pi), 1e-6)
        out[6] = half / sin(half) * sqrt((out[3] - out[0]) ** 2 + (out[4] - out[1]) ** 2 + (out[5] - out[2]) ** 2)
        return MUST_WRAP
    # normal of the section in the ellipsoid's own axes
    _polygon_length(px, py, pz, qx, qy, qz, a, b, c, gx / a, gy / b, gz / c, constrained, out)
    return MUST_WRAP


@kernel_function
def _polygon_length(px, py, pz, qx, qy, qz, a, b, c, nx, ny, nz, constrained, out):
    """Set out[6] to the length of the polygon between the tangent points, at equal angles about the axis point a0.

    a0 is where the coordinate axis nearest to the section's normal meets its plane.
    """
    r1x, r1y, r1z, r2x, r2y, r2z = out[0], out[1], out[2], out[3], out[4], out[5]
    chord = sqrt((r2x - r1x) ** 2 + (r2y - r1y) ** 2 + (r2z - r1z) ** 2)
    out[6] = chord
    count = min(int(chord / SEGMENT_LENGTH), MAX_SEGMENTS)
    if count < 1:
        return
    d = nx * r1x + ny * r1y + nz * r1z
    ax = ay = az = 0.0
    if abs(nx) >= abs(ny) and abs(nx) >= abs(nz):
        ax = d / nx
    elif abs(ny) >= abs(nz):
        ay = d / ny
    else:
        az = d / nz
    ux, uy, uz, vx, vy, vz = r1x - ax, r1y - ay, r1z - az, r2x - ax, r2y - ay, r2z - az
    u, v = sqrt(ux * ux + uy * uy + uz * uz), sqrt(vx * vx + vy * vy + vz * vz)
    ux, uy, uz, vx, vy, vz = ux / u, uy / u, uz / u, vx / v, vy / v, vz / v
    angle = acos(min(max(ux * vx + uy * vy + uz * vz, -1.0), 1.0))
    wx, wy, wz = cross(ux, uy, uz, vx, vy, vz)
    wx, wy, wz = cross(wx, wy, wz, ux, uy, uz)
    size = sqrt(wx * wx + wy * wy + wz * wz)
    if size == 0.0:
        return
    wx, wy, wz = wx / size, wy / size, wz / size
    for far in range(2):
        step = (angle if far == 0 else angle - 2.0 * pi) / count
        x, y, z, length, backward = r1x, r1y, r1z, 0.0, False
        for i in range(1, count + 1):
            if i < count:
                co, si = cos(i * step), sin(i * step)
                dx, dy, dz = co * ux + si * wx, co * uy + si * wy, co * uz + si * wz
                A = (dx / a) ** 2 + (dy / b) ** 2 + (dz / c) ** 2
                B = 2.0 * (dx * ax / (a * a) + dy * ay / (b * b) + dz * az / (c * c))
                C = (ax / a) ** 2 + (ay / b) ** 2 + (az / c) ** 2 - 1.0
                m = (-B + sqrt(max(B * B - 4.0 * A * C, 0.0))) / (2.0 * A)
                X, Y, Z = ax + m * dx, ay + m * dy, az + m * dz
            else:
                X, Y, Z = r2x, r2y, r2z
            if i == 1 and count > 1:
                backward = (px - r1x) * (X - r1x) + (py - r1y) * (Y - r1y) + (pz - r1z) * (Z - r1z) > 0.0
            if i == count and count > 1:
                turned = (qx - r2x) * (x - r2x) + (qy - r2y) * (y - r2y) + (qz - r2z) * (z - r2z) > 0.0
                backward = backward or turned
            length += sqrt((X - x) ** 2 + (Y - y) ** 2 + (Z - z) ** 2)
            x, y, z = X, Y, Z
        out[6] = length
        if not (constrained and backward):
            return
