"""One contact between any two convex shapes, from their support functions alone.

Serves every pair that has no kernel of its own: cylinders, ellipsoids and meshes against everything but planes. Shapes
are taken as a core with a radius about it (a sphere's core is a point, a capsule's a segment, the others' radius is
zero). While the cores are apart, their distance is found by Gilbert, Johnson and Keerthi's algorithm
(IEEE J. Robotics Automation 4, 1988); when they overlap, the least way out by growing a polytope inside their
difference (van den Bergen's expanding polytope, Game Developers Conference 2001).

Both work on points w = a - b of the difference set, kept in rows of `work` together with the points of the two shapes:
columns 0 to 2 w, 3 to 5 a, 6 to 8 b.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.physics.arrays.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE
from borelli.physics.collision.plane import put
from borelli.physics.collision.sphere_capsule import perpendicular

# The polytope: points, then faces, then the edges of a hole, then a weighted sum of points, in that order in `work`.
POINTS = 96
FACES = 2 * POINTS
EDGES = 3 * FACES
SUM = POINTS + FACES + EDGES
WORK_ROWS = SUM + 1
# steps of the distance search; smooth shapes take about twenty
DISTANCE_STEPS = 64
# accuracies as shares of the two shapes' bounding radii: of the distance, and of the depth
DISTANCE_ACCURACY = 1e-9
DEPTH_ACCURACY = 1e-7
# cores nearer than this share of the radii are treated as overlapping: their difference no longer tells a direction
TOUCHING = 1e-6
# ... and of the direction between cores: its angle [rad] is off by at most the root of this
DIRECTION_ACCURACY = 1e-6


@kernel_function
def support(kind, center, axes, size, vertices, first, i, x, y, z):
    """The point of the core of shape i that lies farthest along (x, y, z), world."""
    lx = axes[i, 0, 0] * x + axes[i, 1, 0] * y + axes[i, 2, 0] * z
    ly = axes[i, 0, 1] * x + axes[i, 1, 1] * y + axes[i, 2, 1] * z
    lz = axes[i, 0, 2] * x + axes[i, 1, 2] * y + axes[i, 2, 2] * z
    px, py, pz = 0.0, 0.0, 0.0
    k = kind[i]
    if k == BOX:
        px = size[i, 0] if lx > 0.0 else -size[i, 0]
        py = size[i, 1] if ly > 0.0 else -size[i, 1]
        pz = size[i, 2] if lz > 0.0 else -size[i, 2]
    elif k in (CAPSULE, CYLINDER):
        pz = size[i, 1] if lz > 0.0 else -size[i, 1]
        across = sqrt(lx * lx + ly * ly)
        if k == CYLINDER and across > 0.0:
            px, py = size[i, 0] * lx / across, size[i, 0] * ly / across
    elif k == ELLIPSOID:
        sx, sy, sz = size[i, 0] * lx, size[i, 1] * ly, size[i, 2] * lz
        scale = 1.0 / sqrt(sx * sx + sy * sy + sz * sz)
        px, py, pz = scale * size[i, 0] * sx, scale * size[i, 1] * sy, scale * size[i, 2] * sz
    elif k == MESH:
        best = -1e300
        for v in range(first[i], first[i + 1]):
            reach = vertices[v, 0] * lx + vertices[v, 1] * ly + vertices[v, 2] * lz
            if reach > best:
                best = reach
                px, py, pz = vertices[v, 0], vertices[v, 1], vertices[v, 2]
    return (
        center[i, 0] + axes[i, 0, 0] * px + axes[i, 0, 1] * py + axes[i, 0, 2] * pz,
        center[i, 1] + axes[i, 1, 0] * px + axes[i, 1, 1] * py + axes[i, 1, 2] * pz,
        center[i, 2] + axes[i, 2, 0] * px + axes[i, 2, 1] * py + axes[i, 2, 2] * pz,
    )


@kernel_function
def add_point(work, row, kind, center, axes, size, vertices, first, i, j, x, y, z):
    """Write the point of the difference set farthest along (x, y, z) into a row; returns how far it lies."""
    ax, ay, az = support(kind, center, axes, size, vertices, first, i, x, y, z)
    bx, by, bz = support(kind, center, axes, size, vertices, first, j, -x, -y, -z)
    wx, wy, wz = ax - bx, ay - by, az - bz
    work[row, 0], work[row, 1], work[row, 2] = wx, wy, wz
    work[row, 3], work[row, 4], work[row, 5] = ax, ay, az
    work[row, 6], work[row, 7], work[row, 8] = bx, by, bz
    return wx * x + wy * y + wz * z


@inline
def core_radius(kind, size, i):
    """The radius about the core of shape i [m]."""
    if kind[i] in (SPHERE, CAPSULE):
        return size[i, 0]
    return 0.0


@kernel_function
def convex_convex(patch, work, kind, center, axes, size, vertices, first, i, j, extent, margin):
    """Shape i against shape j: the contact at the nearest (or deepest) points; `extent` is the sum of their bounds."""
    ra, rb = core_radius(kind, size, i), core_radius(kind, size, j)
    limit = margin + ra + rb
    points, apart = core_distance(work, kind, center, axes, size, vertices, first, i, j, extent, limit)
    if points == 0:
        return 0
    if apart > TOUCHING * extent:
        nx, ny, nz = work[SUM, 0] / apart, work[SUM, 1] / apart, work[SUM, 2] / apart
    else:
        face, overlap = core_overlap(work, kind, center, axes, size, vertices, first, i, j, extent)
        if face < 0:
            return 0
        apart = -overlap
        nx, ny, nz = -work[face, 0], -work[face, 1], -work[face, 2]
    depth = ra + rb - apart
    if depth <= -margin:
        return 0
    px = 0.5 * (work[SUM, 3] + work[SUM, 6] + (rb - ra) * nx)
    py = 0.5 * (work[SUM, 4] + work[SUM, 7] + (rb - ra) * ny)
    pz = 0.5 * (work[SUM, 5] + work[SUM, 8] + (rb - ra) * nz)
    return put(patch, 0, 0, depth, px, py, pz, nx, ny, nz)


@kernel_function
def core_distance(work, kind, center, axes, size, vertices, first, i, j, extent, limit):
    """Number of points whose weighted sum (row SUM) is the difference set's nearest to the origin, and its distance.

    No points: farther than `limit`. Distance 0: the cores overlap, or all but.
    """
    vx, vy, vz = center[i, 0] - center[j, 0], center[i, 1] - center[j, 1], center[i, 2] - center[j, 2]
    length = sqrt(vx * vx + vy * vy + vz * vz)
    if length == 0.0:
        vx, length = 1.0, 1.0
    points, distance = 0, 1e300
    for _ in range(DISTANCE_STEPS):
        least = -add_point(work, points, kind, center, axes, size, vertices, first, i, j, -vx, -vy, -vz) / length
        if least > limit:
            return 0, least
        if points > 0 and distance - least <= min(DISTANCE_ACCURACY * extent, DIRECTION_ACCURACY * distance):
            break
        points = nearest_in_simplex(work, points + 1)
        for m in range(9):
            work[SUM, m] = 0.0
            for k in range(points):
                work[SUM, m] += work[k, 9] * work[k, m]
        vx, vy, vz = work[SUM, 0], work[SUM, 1], work[SUM, 2]
        length = sqrt(vx * vx + vy * vy + vz * vz)
        if points == 4 or length <= TOUCHING * extent:
            return points, 0.0
        if length >= distance:
            break
        distance = length
    return points, length


@kernel_function
def nearest_in_simplex(work, points):
    """Weigh the rows so that their sum is the simplex's point nearest the origin; drop rows of no weight.

    Returns how many stay; four means that the origin is inside.
    """
    if points == 1:
        work[0, 9] = 1.0
    elif points == 2:
        ax, ay, az = work[0, 0], work[0, 1], work[0, 2]
        ex, ey, ez = work[1, 0] - ax, work[1, 1] - ay, work[1, 2] - az
        square = ex * ex + ey * ey + ez * ez
        share = 0.0
        if square > 0.0:
            share = min(max(-(ax * ex + ay * ey + az * ez) / square, 0.0), 1.0)
        work[0, 9], work[1, 9] = 1.0 - share, share
    elif points == 3:
        work[0, 9], work[1, 9], work[2, 9] = triangle_weights(work, points - 3, points - 2, points - 1)
    elif points == 4:
        best, away = 1e300, -1
        for k in range(4):
            # the face opposite row k
            p, q, r = (k + 1) % 4, (k + 2) % 4, (k + 3) % 4
            nx, ny, nz = face_normal(work, p, q, r)
            level = nx * work[p, 0] + ny * work[p, 1] + nz * work[p, 2]
            inner = nx * work[k, 0] + ny * work[k, 1] + nz * work[k, 2] - level
            if level * inner >= 0.0:
                a, b, c = triangle_weights(work, p, q, r)
                square = 0.0
                for m in range(3):
                    x = a * work[p, m] + b * work[q, m] + c * work[r, m]
                    square += x * x
                if square < best:
                    best, away = square, k
                    wp, wq, wr = a, b, c
        if away < 0:
            return 4
        p, q, r = (away + 1) % 4, (away + 2) % 4, (away + 3) % 4
        work[away, 9], work[p, 9], work[q, 9], work[r, 9] = 0.0, wp, wq, wr
    kept = 0
    for k in range(points):
        if work[k, 9] > 0.0:
            for m in range(10):
                work[kept, m] = work[k, m]
            kept += 1
    return kept


@inline
def face_normal(work, p, q, r):
    """(q - p) x (r - p) of three points."""
    ex, ey, ez = work[q, 0] - work[p, 0], work[q, 1] - work[p, 1], work[q, 2] - work[p, 2]
    fx, fy, fz = work[r, 0] - work[p, 0], work[r, 1] - work[p, 1], work[r, 2] - work[p, 2]
    return ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx


@kernel_function
def triangle_weights(work, p, q, r):
    """Weights of three points whose sum is their triangle's point nearest the origin.

    The plane is sorted into the regions nearest a corner, an edge or the inside (Ericson, Real-Time Collision
    Detection, section 5.1.5).
    """
    ax, ay, az = work[p, 0], work[p, 1], work[p, 2]
    bx, by, bz = work[q, 0], work[q, 1], work[q, 2]
    cx, cy, cz = work[r, 0], work[r, 1], work[r, 2]
    ex, ey, ez = bx - ax, by - ay, bz - az
    fx, fy, fz = cx - ax, cy - ay, cz - az
    ea, fa = -(ex * ax + ey * ay + ez * az), -(fx * ax + fy * ay + fz * az)
    if ea <= 0.0 and fa <= 0.0:
        return 1.0, 0.0, 0.0
    eb, fb = -(ex * bx + ey * by + ez * bz), -(fx * bx + fy * by + fz * bz)
    if eb >= 0.0 and fb <= eb:
        return 0.0, 1.0, 0.0
    side_c = ea * fb - eb * fa
    if side_c <= 0.0 and ea >= 0.0 and eb <= 0.0:
        share = ea / (ea - eb)
        return 1.0 - share, share, 0.0
    ec, fc = -(ex * cx + ey * cy + ez * cz), -(fx * cx + fy * cy + fz * cz)
    if fc >= 0.0 and ec <= fc:
        return 0.0, 0.0, 1.0
    side_b = ec * fa - ea * fc
    if side_b <= 0.0 and fa >= 0.0 and fc <= 0.0:
        share = fa / (fa - fc)
        return 1.0 - share, 0.0, share
    side_a = eb * fc - ec * fb
    if side_a <= 0.0 and fb >= eb and ec >= fc:
        share = (fb - eb) / ((fb - eb) + (ec - fc))
        return 0.0, 1.0 - share, share
    total = side_a + side_b + side_c
    return side_a / total, side_b / total, side_c / total


@kernel_function
def core_overlap(work, kind, center, axes, size, vertices, first, i, j, extent):
    """Row of the face nearest the origin of a polytope that has reached the difference set's surface, and its depth.

    Row SUM then holds the points of the two shapes that belong to it.
    The polytope need not hold the origin at first: faces are ranked by signed distance, so that it grows towards the
    origin before it grows away from it. Row -1: the set has no volume.
    """
    if not first_tetrahedron(work, kind, center, axes, size, vertices, first, i, j, extent):
        return -1, 0.0
    for k in range(4):
        # rows 0, 1, 2 are one face; each of its edges with row 3 is another
        p, q, r = k, 3, (k + 1) % 3
        if k == 3:
            p, q, r = 0, 1, 2
        set_face(work, POINTS + k, p, q, r)
    faces = 4
    best, depth = POINTS, 0.0
    for row in range(4, POINTS):
        best = POINTS
        for face in range(POINTS, POINTS + faces):
            if work[face, 3] < work[best, 3]:
                best = face
        depth = add_point(
            work, row, kind, center, axes, size, vertices, first, i, j, work[best, 0], work[best, 1], work[best, 2]
        )
        if row == POINTS - 1 or depth - work[best, 3] <= DEPTH_ACCURACY * extent:
            break
        faces = grow(work, faces, row, 1e-13 * extent)
    feet_below_origin(work, faces, work[best, 3] + DEPTH_ACCURACY * extent)
    return best, depth


@kernel_function
def first_tetrahedron(work, kind, center, axes, size, vertices, first, i, j, extent):
    """Whether four points of the difference set that span a volume were found; they are in rows 0 to 3.

    Rows 0, 1, 2 turn counter-clockwise as seen from the side away from row 3.
    """
    tiny = 1e-9 * extent
    for row in range(2):
        add_point(work, row, kind, center, axes, size, vertices, first, i, j, 1.0 - 2.0 * row, 0.0, 0.0)
    ex, ey, ez = work[1, 0] - work[0, 0], work[1, 1] - work[0, 1], work[1, 2] - work[0, 2]
    length = sqrt(ex * ex + ey * ey + ez * ez)
    if length < tiny:
        return False
    ux, uy, uz = perpendicular(ex / length, ey / length, ez / length)
    for stage in range(2, 4):
        if stage == 3:
            ux, uy, uz = face_normal(work, stage - 3, stage - 2, stage - 1)
            length = sqrt(ux * ux + uy * uy + uz * uz)
            ux, uy, uz = ux / length, uy / length, uz / length
        level = ux * work[0, 0] + uy * work[0, 1] + uz * work[0, 2]
        up = add_point(work, stage, kind, center, axes, size, vertices, first, i, j, ux, uy, uz) - level
        down = add_point(work, stage + 1, kind, center, axes, size, vertices, first, i, j, -ux, -uy, -uz) + level
        if max(up, down) < tiny:
            return False
        if down > up:
            for m in range(9):
                work[stage, m] = work[stage + 1, m]
        elif stage == 3:
            for m in range(9):
                work[1, m], work[2, m] = work[2, m], work[1, m]
    return True


@kernel_function
def set_face(work, face, p, q, r):
    """Write a face: columns 0 to 2 its outward normal, 3 its signed distance from the origin, 4 to 6 its points."""
    nx, ny, nz = face_normal(work, p, q, r)
    length = sqrt(nx * nx + ny * ny + nz * nz)
    work[face, 4], work[face, 5], work[face, 6] = p, q, r
    if length == 0.0:
        # a sliver: never the nearest, never seen
        work[face, 0], work[face, 1], work[face, 2], work[face, 3] = 0.0, 0.0, 0.0, 1e300
        return
    nx, ny, nz = nx / length, ny / length, nz / length
    work[face, 0], work[face, 1], work[face, 2] = nx, ny, nz
    work[face, 3] = nx * work[p, 0] + ny * work[p, 1] + nz * work[p, 2]


@kernel_function
def grow(work, faces, row, tiny):
    """Take the point in `row` into the polytope: drop the faces it sees, close the hole; returns the face count."""
    hole = POINTS + FACES
    edges = 0
    face = 0
    while face < faces:
        at = POINTS + face
        seen = work[at, 0] * work[row, 0] + work[at, 1] * work[row, 1] + work[at, 2] * work[row, 2] - work[at, 3]
        if seen <= tiny:
            face += 1
            continue
        for m in range(3):
            p, q = work[at, 4 + m], work[at, 4 + (m + 1) % 3]
            inner = -1
            for e in range(edges):
                if work[hole + e, 0] == q and work[hole + e, 1] == p:
                    inner = e
            if inner >= 0:
                edges -= 1
                work[hole + inner, 0], work[hole + inner, 1] = work[hole + edges, 0], work[hole + edges, 1]
            else:
                work[hole + edges, 0], work[hole + edges, 1] = p, q
                edges += 1
        faces -= 1
        for m in range(7):
            work[at, m] = work[POINTS + faces, m]
    for e in range(edges):
        if faces < FACES:
            set_face(work, POINTS + faces, int(work[hole + e, 0]), int(work[hole + e, 1]), row)
            faces += 1
    return faces


@kernel_function
def feet_below_origin(work, faces, level):
    """Write into row SUM the points of the two shapes that belong to the polytope's point nearest the origin.

    Flat sides of the polytope consist of several faces at the same distance, of which only one lies below the origin:
    all that are no farther than `level` are tried.
    """
    nearest = 1e300
    for face in range(POINTS, POINTS + faces):
        if work[face, 3] <= level:
            p, q, r = int(work[face, 4]), int(work[face, 5]), int(work[face, 6])
            u, v, w = triangle_weights(work, p, q, r)
            square = 0.0
            for m in range(3):
                x = u * work[p, m] + v * work[q, m] + w * work[r, m]
                square += x * x
            if square < nearest:
                nearest = square
                for m in range(3, 9):
                    work[SUM, m] = u * work[p, m] + v * work[q, m] + w * work[r, m]
