"""Contacts between spheres and capsules, and of either with a box.

A capsule is a segment with a radius and a sphere is a capsule of zero length, so one kernel serves every pair. The
first contact is the closest pair of points; two parallel capsules, or a capsule lying on a box, get a second one at the
other end of the part they share. Rows of `patch` are as in `plane`; normals point from shape j to shape i.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.numerics.rotation_kernels import cross
from borelli.physics.collision.plane import put_contact
from borelli.physics.vectors import to_world

# below this distance [m] between cores their difference has no reliable direction
MIN_DIRECTION_LENGTH = 1e-10
# sine of the angle below which two capsules count as parallel
PARALLEL_SINE = 0.1
# an end of the shared part replaces the closest point when farther by less than this fraction of the radii
TIE_TOLERANCE = 1e-6
# cosine between normal and face normal above which a capsule may lie on that face: 8 degrees
FLAT_COSINE = 0.99
# two contacts closer than this fraction of the capsule's half length are one
MIN_SPACING = 1e-3


@inline
def clip(value, low, high):
    """Return the value limited to [low, high]."""
    return min(max(value, low), high)


@kernel_function
def perpendicular(x, y, z):
    """Return a unit vector perpendicular to a unit vector."""
    if abs(z) > 0.7:
        length = sqrt(y * y + z * z)
        return 0.0, z / length, -y / length
    length = sqrt(x * x + y * y)
    return y / length, -x / length, 0.0


@kernel_function
def put_ball_contact(patch, count, feature, ax, ay, az, ra, bx, by, bz, rb, fallback, margin):
    """Write the contact of two balls about core points a and b, if within the margin; return the number of rows.

    `fallback` is the normal for cores that intersect.
    """
    dx, dy, dz = ax - bx, ay - by, az - bz
    distance = sqrt(dx * dx + dy * dy + dz * dz)
    depth = ra + rb - distance
    if depth <= -margin:
        return count
    nx, ny, nz = fallback
    if distance > MIN_DIRECTION_LENGTH:
        nx, ny, nz = dx / distance, dy / distance, dz / distance
    # midpoint of the two surface points a - ra n and b + rb n
    px = 0.5 * (ax + bx + (rb - ra) * nx)
    py = 0.5 * (ay + by + (rb - ra) * ny)
    pz = 0.5 * (az + bz + (rb - ra) * nz)
    return put_contact(patch, count, feature, depth, px, py, pz, nx, ny, nz)


@kernel_function
def closest_on_segments(cosine, along_a, along_b, half_a, half_b):
    """Return the parameters [m] of the closest points of two segments.

    `cosine` is the product of their unit directions, `along_a` and `along_b` the components along
    them of (midpoint of b - midpoint of a).
    """
    sine2 = 1.0 - cosine * cosine
    s = 0.0
    if sine2 > 1e-12:
        s = clip((along_a - cosine * along_b) / sine2, -half_a, half_a)
    t = cosine * s - along_b
    if abs(t) > half_b:
        t = clip(t, -half_b, half_b)
        s = clip(cosine * t + along_a, -half_a, half_a)
    return s, t


@inline
def distance_to_segment(s, cosine, along_a, along_b, half_b, square):
    """Return the distance of point s of segment a from segment b; `square`: squared distance of midpoints."""
    t = clip(cosine * s - along_b, -half_b, half_b)
    return sqrt(max(0.0, square + s * s + t * t - 2.0 * (s * along_a - t * along_b + s * t * cosine)))


@kernel_function
def capsule_capsule(patch, center, axes, size, i, j, margin):
    """Write contacts of spheres and capsules i and j; feature 0 is the contact closer to the -z end of i."""
    ax, ay, az = axes[i, 0, 2], axes[i, 1, 2], axes[i, 2, 2]
    bx, by, bz = axes[j, 0, 2], axes[j, 1, 2], axes[j, 2, 2]
    dx, dy, dz = center[j, 0] - center[i, 0], center[j, 1] - center[i, 1], center[j, 2] - center[i, 2]
    half_a, half_b = size[i, 1], size[j, 1]
    cosine = ax * bx + ay * by + az * bz
    along_a, along_b = ax * dx + ay * dy + az * dz, bx * dx + by * dy + bz * dz
    s, t = closest_on_segments(cosine, along_a, along_b, half_a, half_b)
    # crossing cores separate fastest perpendicular to both
    nx, ny, nz = cross(ax, ay, az, bx, by, bz)
    sine = sqrt(nx * nx + ny * ny + nz * nz)
    if sine > 1e-6 and half_b > 0.0:
        fallback = (nx / sine, ny / sine, nz / sine)
    else:
        fallback = perpendicular(ax, ay, az)
    second = s
    if sine < PARALLEL_SINE and half_a > 0.0 and half_b > 0.0:
        extent = half_b * abs(cosine)
        low, high = clip(along_a - extent, -half_a, half_a), clip(along_a + extent, -half_a, half_a)
        square = dx * dx + dy * dy + dz * dz
        gap_low = distance_to_segment(low, cosine, along_a, along_b, half_b, square)
        gap_high = distance_to_segment(high, cosine, along_a, along_b, half_b, square)
        end, gap_end = (low, gap_low) if gap_low <= gap_high else (high, gap_high)
        gap_closest = distance_to_segment(s, cosine, along_a, along_b, half_b, square)
        if gap_end <= gap_closest + TIE_TOLERANCE * (size[i, 0] + size[j, 0]):
            s, t = end, clip(cosine * end - along_b, -half_b, half_b)
        second = low if s - low > high - s else high
    two = abs(second - s) > MIN_SPACING * half_a
    count = 0
    for feature in range(2):
        here = s if (not two or (feature == 0) == (s < second)) else second
        if two or feature == 0:
            there = t if here == s else clip(cosine * here - along_b, -half_b, half_b)
            count = put_ball_contact(
                patch, count, feature,
                center[i, 0] + here * ax, center[i, 1] + here * ay, center[i, 2] + here * az, size[i, 0],
                center[j, 0] + there * bx, center[j, 1] + there * by, center[j, 2] + there * bz, size[j, 0],
                fallback, margin,
            )
    return count


@kernel_function
def closest_on_segment_to_box(p, d, h, half):
    """Return the parameter [m] of the point of the segment p + t d, |t| <= half, closest to the box |x| <= h.

    The slope of the squared distance rises with t and is linear between crossings of the slabs' sides, so narrowing the
    bracket at those crossings leaves an interval on which the zero is computed directly.
    """
    low, high = -half, half
    for k in range(6):
        axis = k // 2
        if d[axis] != 0.0:
            t = ((h[axis] if k % 2 else -h[axis]) - p[axis]) / d[axis]
            if low < t < high:
                if box_slope(p, d, h, t) > 0.0:
                    high = t
                else:
                    low = t
    slope_low, slope_high = box_slope(p, d, h, low), box_slope(p, d, h, high)
    if slope_low >= 0.0 or slope_high <= slope_low:
        return low
    if slope_high <= 0.0:
        return high
    return low - slope_low * (high - low) / (slope_high - slope_low)


@inline
def box_slope(p, d, h, t):
    """Return half the slope along t of the squared distance of p + t d from the box |x| <= h."""
    slope = 0.0
    for k in range(3):
        x = p[k] + t * d[k]
        slope += d[k] * (x - clip(x, -h[k], h[k]))
    return slope


@inline
def to_shape_axes(axes, j, x, y, z):
    """Return the components of a world vector along the axes of shape j."""
    return (
        axes[j, 0, 0] * x + axes[j, 1, 0] * y + axes[j, 2, 0] * z,
        axes[j, 0, 1] * x + axes[j, 1, 1] * y + axes[j, 2, 1] * z,
        axes[j, 0, 2] * x + axes[j, 1, 2] * y + axes[j, 2, 2] * z,
    )


@kernel_function
def put_box_contact(patch, count, feature, center, axes, j, q, foot, n, distance, r, margin):
    """Write the contact of a ball of radius r about q (in the box's frame) whose closest point on the box is `foot`."""
    depth = r - distance
    if depth <= -margin:
        return count
    mx, my, mz = 0.5 * (q[0] - r * n[0] + foot[0]), 0.5 * (q[1] - r * n[1] + foot[1]), 0.5 * (q[2] - r * n[2] + foot[2])
    mx, my, mz = to_world(axes, j, mx, my, mz)
    nx, ny, nz = to_world(axes, j, n[0], n[1], n[2])
    px, py, pz = center[j, 0] + mx, center[j, 1] + my, center[j, 2] + mz
    return put_contact(patch, count, feature, depth, px, py, pz, nx, ny, nz)


@kernel_function
def capsule_box(patch, center, axes, size, i, j, margin):
    """Write contacts of a sphere or capsule i with a box j; feature 0 is the contact closer to the -z end of i."""
    h = (size[j, 0], size[j, 1], size[j, 2])
    p = to_shape_axes(axes, j, center[i, 0] - center[j, 0], center[i, 1] - center[j, 1], center[i, 2] - center[j, 2])
    d = to_shape_axes(axes, j, axes[i, 0, 2], axes[i, 1, 2], axes[i, 2, 2])
    r, half = size[i, 0], size[i, 1]
    t = closest_on_segment_to_box(p, d, h, half)
    q = (p[0] + t * d[0], p[1] + t * d[1], p[2] + t * d[2])
    foot = (clip(q[0], -h[0], h[0]), clip(q[1], -h[1], h[1]), clip(q[2], -h[2], h[2]))
    gap = (q[0] - foot[0], q[1] - foot[1], q[2] - foot[2])
    distance = sqrt(gap[0] * gap[0] + gap[1] * gap[1] + gap[2] * gap[2])
    if distance - r >= margin:
        return 0
    if distance > MIN_DIRECTION_LENGTH:
        n = (gap[0] / distance, gap[1] / distance, gap[2] / distance)
    else:
        n, distance, t, foot = segment_penetration(p, d, h, half)
        q = (foot[0] + distance * n[0], foot[1] + distance * n[1], foot[2] + distance * n[2])
    # the other end of the part that lies above the face whose normal is closest to n
    k = 0
    for m in range(1, 3):
        if abs(n[m]) > abs(n[k]):
            k = m
    low, high = -half, half
    for m in range(3):
        if m != k:
            low, high = clip_to_slab(low, high, p[m], d[m], h[m])
    second = low if t - low > high - t else high
    two = abs(n[k]) > FLAT_COSINE and low <= high and abs(second - t) > MIN_SPACING * half
    up = (0.0 if k != 0 else (1.0 if n[0] > 0.0 else -1.0), 0.0 if k != 1 else (1.0 if n[1] > 0.0 else -1.0),
          0.0 if k != 2 else (1.0 if n[2] > 0.0 else -1.0))
    count = 0
    for feature in range(2):
        if not two or (feature == 0) == (t < second):
            if two or feature == 0:
                count = put_box_contact(patch, count, feature, center, axes, j, q, foot, n, distance, r, margin)
        else:
            e = (p[0] + second * d[0], p[1] + second * d[1], p[2] + second * d[2])
            rise = up[0] * e[0] + up[1] * e[1] + up[2] * e[2] - h[k]
            under = (e[0] - rise * up[0], e[1] - rise * up[1], e[2] - rise * up[2])
            rise = max(rise, distance)  # never deeper than the first: over an edge, n is a shorter exit than `up`
            count = put_box_contact(patch, count, feature, center, axes, j, e, under, up, rise, r, margin)
    return count


@inline
def clip_to_slab(low, high, p, d, h):
    """Return the part of [low, high] where |p + t d| <= h; empty when low > high."""
    if abs(d) < 1e-12:
        if abs(p) > h:
            return 1.0, -1.0
        return low, high
    one, two = (-h - p) / d, (h - p) / d
    return max(low, min(one, two)), min(high, max(one, two))


@kernel_function
def segment_penetration(p, d, h, half):
    """Return the minimum translation that separates a segment from a box it intersects.

    Returns the direction, the signed distance along it (negative inside), the parameter of the segment's last point
    to leave and that point's foot on the box's surface. Candidate directions: the box's faces and the normals of the
    segment with the box's edges.
    """
    best = -1e300
    n = (0.0, 0.0, 1.0)
    edge = -1
    for k in range(6):
        m = k % 3
        v = (1.0 if m == 0 else 0.0, 1.0 if m == 1 else 0.0, 1.0 if m == 2 else 0.0)
        if k >= 3:
            v = cross(d[0], d[1], d[2], v[0], v[1], v[2])
            length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
            if length < 1e-6 or half == 0.0:
                continue
            v = (v[0] / length, v[1] / length, v[2] / length)
        lift = v[0] * p[0] + v[1] * p[1] + v[2] * p[2]
        if lift < 0.0:
            v = (-v[0], -v[1], -v[2])
        extent = half * abs(v[0] * d[0] + v[1] * d[1] + v[2] * d[2])
        distance_out = abs(lift) - extent - h[0] * abs(v[0]) - h[1] * abs(v[1]) - h[2] * abs(v[2])
        if distance_out > best + (1e-9 * half if k >= 3 else 0.0):
            best = distance_out
            n = v
            edge = m if k >= 3 else -1
    slope = n[0] * d[0] + n[1] * d[1] + n[2] * d[2]
    t = -half if slope > 0.0 else half
    if edge >= 0:
        # where the segment passes over the edge: components across n and across the edge's direction agree
        c = (h[0] if n[0] > 0.0 else -h[0], h[1] if n[1] > 0.0 else -h[1], h[2] if n[2] > 0.0 else -h[2])
        top, bottom = 0.0, 0.0
        for k in range(3):
            if k != edge:
                top += d[k] * (c[k] - p[k])
                bottom += d[k] * d[k]
        t = clip(top / bottom, -half, half)
    foot = (p[0] + t * d[0] - best * n[0], p[1] + t * d[1] - best * n[1], p[2] + t * d[2] - best * n[2])
    return n, best, t, foot
