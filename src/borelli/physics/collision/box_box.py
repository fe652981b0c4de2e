"""Contacts between two boxes: separating axes, then polygon clipping."""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.numerics.rotation_kernels import cross
from borelli.physics.collision.plane import put_contact
from borelli.physics.collision.sphere_capsule import clip

# An edge axis must beat the faces by this fraction of the depth: faces give several contacts and change less.
EDGE_BIAS = 0.01
# ... and, like one box's faces against the other's, by this fraction of the smallest half extent, against rounding.
TIE_TOLERANCE = 1e-6
# Corners this fraction of a face's half extent outside it count as on it, so that flush boxes keep four contacts.
FLUSH_TOLERANCE = 1e-3


@kernel_function
def box_box(patch, work, center, axes, size, i, j, margin):
    """Write up to eight contacts of boxes i and j on a face, or one between edges; return their number. Feature = rank.

    Of the fifteen axes that can separate two boxes (three faces each, nine pairs of edges) the one of least overlap is
    the normal. On a face, the incident face of the other box is clipped to the outline of the reference face.
    """
    dx, dy, dz = center[i, 0] - center[j, 0], center[i, 1] - center[j, 1], center[i, 2] - center[j, 2]
    tie = TIE_TOLERANCE * min(size[i, 0], size[i, 1], size[i, 2], size[j, 0], size[j, 1], size[j, 2])
    best, owner, face = -1e300, i, 0
    for k in range(6):
        s = i if k < 3 else j
        m = k % 3
        distance = separation(axes, size, i, j, axes[s, 0, m], axes[s, 1, m], axes[s, 2, m], dx, dy, dz)
        if distance >= margin:
            return 0
        if distance > best + (tie if k >= 3 and owner == i else 0.0):
            best, owner, face = distance, s, m
    bar = best + EDGE_BIAS * abs(best) + tie
    edge = -1
    for k in range(9):
        a, b = k // 3, k % 3
        lx, ly, lz = cross(axes[i, 0, a], axes[i, 1, a], axes[i, 2, a], axes[j, 0, b], axes[j, 1, b], axes[j, 2, b])
        length = sqrt(lx * lx + ly * ly + lz * lz)
        if length > 1e-6:
            distance = separation(axes, size, i, j, lx / length, ly / length, lz / length, dx, dy, dz)
            if distance >= margin:
                return 0
            if distance > bar:
                bar, edge = distance, k
    if edge >= 0:
        return edge_contact(patch, center, axes, size, i, j, edge // 3, edge % 3, bar)
    if owner == i:
        return face_contacts(patch, work, center, axes, size, i, j, face, -1.0, margin)
    return face_contacts(patch, work, center, axes, size, j, i, face, 1.0, margin)


@inline
def separation(axes, size, i, j, nx, ny, nz, dx, dy, dz):
    """Return the distance between the projections of two boxes on the direction n; negative: they overlap."""
    extent = 0.0
    for k in range(3):
        extent += size[i, k] * abs(nx * axes[i, 0, k] + ny * axes[i, 1, k] + nz * axes[i, 2, k])
        extent += size[j, k] * abs(nx * axes[j, 0, k] + ny * axes[j, 1, k] + nz * axes[j, 2, k])
    return abs(nx * dx + ny * dy + nz * dz) - extent


@kernel_function
def edge_midpoint(center, axes, size, i, skip, nx, ny, nz):
    """Return the midpoint of the edge of box i along its axis `skip` that lies farthest along n."""
    x, y, z = center[i, 0], center[i, 1], center[i, 2]
    for k in range(3):
        if k != skip:
            s = size[i, k] if nx * axes[i, 0, k] + ny * axes[i, 1, k] + nz * axes[i, 2, k] > 0.0 else -size[i, k]
            x, y, z = x + s * axes[i, 0, k], y + s * axes[i, 1, k], z + s * axes[i, 2, k]
    return x, y, z


@kernel_function
def edge_contact(patch, center, axes, size, i, j, a, b, distance):
    """Write the contact where an edge of i along its axis a crosses an edge of j along its axis b."""
    ax, ay, az = axes[i, 0, a], axes[i, 1, a], axes[i, 2, a]
    bx, by, bz = axes[j, 0, b], axes[j, 1, b], axes[j, 2, b]
    nx, ny, nz = cross(ax, ay, az, bx, by, bz)
    scale = 1.0 / sqrt(nx * nx + ny * ny + nz * nz)
    dx, dy, dz = center[i, 0] - center[j, 0], center[i, 1] - center[j, 1], center[i, 2] - center[j, 2]
    if nx * dx + ny * dy + nz * dz < 0.0:
        scale = -scale
    nx, ny, nz = scale * nx, scale * ny, scale * nz
    px, py, pz = edge_midpoint(center, axes, size, i, a, -nx, -ny, -nz)
    qx, qy, qz = edge_midpoint(center, axes, size, j, b, nx, ny, nz)
    # crossing of the lines p + s a and q + t b
    wx, wy, wz = qx - px, qy - py, qz - pz
    cosine = ax * bx + ay * by + az * bz
    along_a, along_b = ax * wx + ay * wy + az * wz, bx * wx + by * wy + bz * wz
    s = clip((along_a - cosine * along_b) / (1.0 - cosine * cosine), -size[i, a], size[i, a])
    half = 0.5 * distance
    return put_contact(
        patch, 0, 0, -distance, px + s * ax - half * nx, py + s * ay - half * ny, pz + s * az - half * nz, nx, ny, nz
    )


@kernel_function
def face_contacts(patch, work, center, axes, size, i, j, face, sign, margin):
    """Write corners of the incident face of box j, clipped to a face of box i, that lie near that face.

    The contact normal is `sign` times the face's outward normal.
    """
    u, v = (face + 1) % 3, (face + 2) % 3
    nx, ny, nz = axes[i, 0, face], axes[i, 1, face], axes[i, 2, face]
    dx, dy, dz = center[j, 0] - center[i, 0], center[j, 1] - center[i, 1], center[j, 2] - center[i, 2]
    if nx * dx + ny * dy + nz * dz < 0.0:
        nx, ny, nz = -nx, -ny, -nz
    incident_face(work, axes, size, i, j, u, v, nx, ny, nz, dx, dy, dz)
    corners = 4
    for axis in range(2):
        corners = clip_polygon(work, corners, axis, size[i, u] if axis == 0 else size[i, v])
    count = 0
    for k in range(corners):
        height = work[k, 2] - size[i, face]
        if height < margin and count < 8:
            along_u, along_v, up = work[k, 0], work[k, 1], size[i, face] + 0.5 * height
            px = center[i, 0] + along_u * axes[i, 0, u] + along_v * axes[i, 0, v] + up * nx
            py = center[i, 1] + along_u * axes[i, 1, u] + along_v * axes[i, 1, v] + up * ny
            pz = center[i, 2] + along_u * axes[i, 2, u] + along_v * axes[i, 2, v] + up * nz
            count = put_contact(patch, count, count, -height, px, py, pz, sign * nx, sign * ny, sign * nz)
    return count


@kernel_function
def incident_face(work, axes, size, i, j, u, v, nx, ny, nz, dx, dy, dz):
    """Write the corners of the face of box j that faces -n, as (along u, along v, along n) from the center of i."""
    side, facing = 0, 0.0
    for k in range(3):
        slope = nx * axes[j, 0, k] + ny * axes[j, 1, k] + nz * axes[j, 2, k]
        if abs(slope) > abs(facing):
            side, facing = k, slope
    one, two = (side + 1) % 3, (side + 2) % 3
    out = -size[j, side] if facing > 0.0 else size[j, side]
    for corner in range(4):
        s = size[j, one] if corner == 1 or corner == 2 else -size[j, one]
        t = size[j, two] if corner >= 2 else -size[j, two]
        x = dx + out * axes[j, 0, side] + s * axes[j, 0, one] + t * axes[j, 0, two]
        y = dy + out * axes[j, 1, side] + s * axes[j, 1, one] + t * axes[j, 1, two]
        z = dz + out * axes[j, 2, side] + s * axes[j, 2, one] + t * axes[j, 2, two]
        work[corner, 0] = x * axes[i, 0, u] + y * axes[i, 1, u] + z * axes[i, 2, u]
        work[corner, 1] = x * axes[i, 0, v] + y * axes[i, 1, v] + z * axes[i, 2, v]
        work[corner, 2] = x * nx + y * ny + z * nz


@kernel_function
def clip_polygon(work, corners, axis, half):
    """Clip a polygon to |coordinate `axis`| <= half; return the number of corners left.

    Corners are rows of work, columns 0 to 2; columns 3 to 5 contain the polygon after the first of the two cuts.
    """
    flush = FLUSH_TOLERANCE * half
    for side in range(2):
        source, target = (0, 3) if side == 0 else (3, 0)
        sign = 1.0 if side == 0 else -1.0
        count = 0
        for k in range(corners):
            after = k + 1 if k + 1 < corners else 0
            here, there = sign * work[k, source + axis] - half, sign * work[after, source + axis] - half
            if here <= flush:
                for m in range(3):
                    work[count, target + m] = work[k, source + m]
                count += 1
            if (here < 0.0 and there > flush) or (here > flush and there < 0.0):
                fraction = here / (here - there)
                for m in range(3):
                    work[count, target + m] = work[k, source + m] + fraction * (
                        work[after, source + m] - work[k, source + m]
                    )
                count += 1
        corners = count
    return corners
