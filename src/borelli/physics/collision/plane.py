"""Contacts of a shape with a half space.

Every kernel fills `patch`, one contact a row in rising order of feature,

    feature, depth, point x y z, normal x y z

and returns their number. The plane is n . x = w with n its outward normal; only contacts closer than `margin`
are written (depth > -margin). `center` (s, 3) and `axes` (s, 3, 3) contain the pose of every shape in the world, `i` is
the shape in question. The contact point lies midway between the shape's surface and the plane.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.numerics.rotation_kernels import cross

# columns of `patch`
FEATURE, DEPTH, POINT, NORMAL = 0, 1, 2, 5

# tilt [rad] below which a standing cylinder counts as flat and its contacts stay on the same points of the rim;
# misses at most half a radius times this of the true depth
FLAT_TILT = 1e-4


@inline
def put_contact(patch, count, feature, depth, px, py, pz, nx, ny, nz):
    """Write row `count`; return the new number of rows."""
    patch[count, FEATURE] = feature
    patch[count, DEPTH] = depth
    patch[count, POINT], patch[count, POINT + 1], patch[count, POINT + 2] = px, py, pz
    patch[count, NORMAL], patch[count, NORMAL + 1], patch[count, NORMAL + 2] = nx, ny, nz
    return count + 1


@inline
def put_plane_contact(patch, count, feature, px, py, pz, plane, margin):
    """Write the contact of the surface point p with the plane, if within the margin; return the number of rows."""
    nx, ny, nz, w = plane
    height = nx * px + ny * py + nz * pz - w
    if height >= margin:
        return count
    half = 0.5 * height
    return put_contact(patch, count, feature, -height, px - half * nx, py - half * ny, pz - half * nz, nx, ny, nz)


@kernel_function
def capsule_plane(patch, center, axes, size, i, plane, margin):
    """Write the lowest point of a sphere, or of each end of a capsule; feature 0 is the end at -z."""
    nx, ny, nz, _ = plane
    r, half = size[i, 0], size[i, 1]
    count = 0
    for end in range(2 if half > 0.0 else 1):
        along = half if end == 1 else -half
        px = center[i, 0] + along * axes[i, 0, 2] - r * nx
        py = center[i, 1] + along * axes[i, 1, 2] - r * ny
        pz = center[i, 2] + along * axes[i, 2, 2] - r * nz
        count = put_plane_contact(patch, count, end, px, py, pz, plane, margin)
    return count


@inline
def box_plane(patch, center, axes, size, i, plane, margin):
    """Write every corner near the plane; feature = bits of the corner's signs, x lowest."""
    nx, ny, nz, w = plane
    cx, cy, cz = center[i, 0], center[i, 1], center[i, 2]
    xx, xy, xz = size[i, 0] * axes[i, 0, 0], size[i, 0] * axes[i, 1, 0], size[i, 0] * axes[i, 2, 0]
    yx, yy, yz = size[i, 1] * axes[i, 0, 1], size[i, 1] * axes[i, 1, 1], size[i, 1] * axes[i, 2, 1]
    zx, zy, zz = size[i, 2] * axes[i, 0, 2], size[i, 2] * axes[i, 1, 2], size[i, 2] * axes[i, 2, 2]
    height_of_center = nx * cx + ny * cy + nz * cz - w
    rise_x = nx * xx + ny * xy + nz * xz
    rise_y = nx * yx + ny * yy + nz * yz
    rise_z = nx * zx + ny * zy + nz * zz
    count = 0
    for corner in range(8):
        sx = 1.0 if corner & 1 else -1.0
        sy = 1.0 if corner & 2 else -1.0
        sz = 1.0 if corner & 4 else -1.0
        height = height_of_center + sx * rise_x + sy * rise_y + sz * rise_z
        if height < margin:
            half = 0.5 * height
            px = cx + sx * xx + sy * yx + sz * zx - half * nx
            py = cy + sx * xy + sy * yy + sz * zy - half * ny
            pz = cz + sx * xz + sy * yz + sz * zz - half * nz
            count = put_contact(patch, count, corner, -height, px, py, pz, nx, ny, nz)
    return count


@kernel_function
def cylinder_plane(patch, center, axes, size, i, plane, margin):
    """Write the lowest points of lower (0) and upper rim (1), and the lower rim 120 degrees to either side (2, 3).

    A standing cylinder rests on 0, 2, 3; a lying one on 0, 1.
    """
    nx, ny, nz, _ = plane
    r, half = size[i, 0], size[i, 1]
    dx, dy, dz = axes[i, 0, 2], axes[i, 1, 2], axes[i, 2, 2]
    rise = nx * dx + ny * dy + nz * dz
    if rise > 0.0:
        half = -half
    # (ux, uy, uz): direction of steepest descent within the caps
    ux, uy, uz = rise * dx - nx, rise * dy - ny, rise * dz - nz
    tilt = sqrt(ux * ux + uy * uy + uz * uz)
    if tilt > FLAT_TILT:
        ux, uy, uz = ux / tilt, uy / tilt, uz / tilt
    else:
        ux, uy, uz = axes[i, 0, 0], axes[i, 1, 0], axes[i, 2, 0]
    vx, vy, vz = cross(dx, dy, dz, ux, uy, uz)
    count = 0
    for feature in range(4):
        along = -half if feature == 1 else half
        cosine, sine = r, 0.0
        if feature >= 2:
            cosine = -0.5 * r
            sine = 0.8660254037844386 * (r if feature == 2 else -r)  # sin 120 deg
        px = center[i, 0] + along * dx + cosine * ux + sine * vx
        py = center[i, 1] + along * dy + cosine * uy + sine * vy
        pz = center[i, 2] + along * dz + cosine * uz + sine * vz
        count = put_plane_contact(patch, count, feature, px, py, pz, plane, margin)
    return count


@kernel_function
def ellipsoid_plane(patch, center, axes, size, i, plane, margin):
    """Write the lowest point: where the surface normal is -n."""
    nx, ny, nz, _ = plane
    length = 0.0
    px, py, pz = 0.0, 0.0, 0.0
    for k in range(3):
        slope = size[i, k] * (nx * axes[i, 0, k] + ny * axes[i, 1, k] + nz * axes[i, 2, k])
        length += slope * slope
        px -= size[i, k] * slope * axes[i, 0, k]
        py -= size[i, k] * slope * axes[i, 1, k]
        pz -= size[i, k] * slope * axes[i, 2, k]
    scale = 1.0 / sqrt(length)
    px, py, pz = center[i, 0] + scale * px, center[i, 1] + scale * py, center[i, 2] + scale * pz
    return put_plane_contact(patch, 0, 0, px, py, pz, plane, margin)


@kernel_function
def mesh_plane(patch, center, axes, vertices, first, i, plane, margin):
    """Write the eight deepest vertices in their order; feature = rank in that order."""
    count = 0
    for v in range(first[i], first[i + 1]):
        x, y, z = vertices[v, 0], vertices[v, 1], vertices[v, 2]
        px = center[i, 0] + axes[i, 0, 0] * x + axes[i, 0, 1] * y + axes[i, 0, 2] * z
        py = center[i, 1] + axes[i, 1, 0] * x + axes[i, 1, 1] * y + axes[i, 1, 2] * z
        pz = center[i, 2] + axes[i, 2, 0] * x + axes[i, 2, 1] * y + axes[i, 2, 2] * z
        if count == 8:
            shallow = 0
            for k in range(1, 8):
                if patch[k, DEPTH] < patch[shallow, DEPTH]:
                    shallow = k
            nx, ny, nz, w = plane
            if w - nx * px - ny * py - nz * pz <= patch[shallow, DEPTH]:
                continue
            for k in range(shallow, 7):
                for m in range(1, 8):
                    patch[k, m] = patch[k + 1, m]
            count = 7
        count = put_plane_contact(patch, count, count, px, py, pz, plane, margin)
    return count
