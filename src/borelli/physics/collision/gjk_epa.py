"""One contact between any two convex shapes by GJK and EPA, from their support functions.

Serves every pair that has no kernel of its own: cylinders, ellipsoids and meshes with everything but planes. A shape
is a core with a radius about it (the core of a sphere is a point, of a capsule a segment, others have radius zero).
While the cores are apart, GJK finds their distance (Gilbert, Johnson and Keerthi, IEEE J. Robotics Automation 4, 1988);
when they overlap, EPA finds the penetration depth by growing a polytope inside their Minkowski difference (van den
Bergen, Game Developers Conference 2001).

Both work on points w = a - b of the Minkowski difference, stored in rows of `work` together with the points of the two
shapes: columns 0 to 2 w, 3 to 5 a, 6 to 8 b, and 9 (WEIGHT) the weight of a point of the simplex.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.numerics.rotation_kernels import cross
from borelli.physics.arrays.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, SPHERE
from borelli.physics.collision.plane import put_contact
from borelli.physics.collision.sphere_capsule import perpendicular, to_shape_axes

# The polytope: points, then faces, then the edges of a hole, then a weighted sum of points, in that order in `work`.
MAX_POINTS = 96
MAX_FACES = 2 * MAX_POINTS
MAX_EDGES = 3 * MAX_FACES
SUM_ROW = MAX_POINTS + MAX_FACES + MAX_EDGES
WORK_ROWS = SUM_ROW + 1
# columns of `work`: weight of a point; signed distance and points of a face
WEIGHT = 9
FACE_DISTANCE, FACE_POINTS = 3, 4
# iterations of GJK; smooth shapes take about twenty
MAX_GJK_STEPS = 64
# tolerances of distance and depth, as fractions of the two shapes' bounding radii
DISTANCE_TOLERANCE = 1e-9
DEPTH_TOLERANCE = 1e-7
# cores closer than this fraction of the radii count as overlapping: their difference has no reliable direction
OVERLAP_TOLERANCE = 1e-6
# ... and of the direction between cores: its angle [rad] is off by at most the root of this
DIRECTION_TOLERANCE = 1e-6


@kernel_function
def support(kind, center, axes, size, vertices, first, i, x, y, z):
    """Return the point of the core of shape i farthest along (x, y, z), in the world."""
    lx, ly, lz = to_shape_axes(axes, i, x, y, z)
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
            projection = vertices[v, 0] * lx + vertices[v, 1] * ly + vertices[v, 2] * lz
            if projection > best:
                best = projection
                px, py, pz = vertices[v, 0], vertices[v, 1], vertices[v, 2]
    return (
        center[i, 0] + axes[i, 0, 0] * px + axes[i, 0, 1] * py + axes[i, 0, 2] * pz,
        center[i, 1] + axes[i, 1, 0] * px + axes[i, 1, 1] * py + axes[i, 1, 2] * pz,
        center[i, 2] + axes[i, 2, 0] * px + axes[i, 2, 1] * py + axes[i, 2, 2] * pz,
    )


@kernel_function
def add_support_point(work, row, kind, center, axes, size, vertices, first, i, j, x, y, z):
    """Write the support point of the Minkowski difference along (x, y, z) into a row; return its distance along it."""
    ax, ay, az = support(kind, center, axes, size, vertices, first, i, x, y, z)
    bx, by, bz = support(kind, center, axes, size, vertices, first, j, -x, -y, -z)
    wx, wy, wz = ax - bx, ay - by, az - bz
    work[row, 0], work[row, 1], work[row, 2] = wx, wy, wz
    work[row, 3], work[row, 4], work[row, 5] = ax, ay, az
    work[row, 6], work[row, 7], work[row, 8] = bx, by, bz
    return wx * x + wy * y + wz * z


@inline
def core_radius(kind, size, i):
    """Return the radius about the core of shape i [m]."""
    if kind[i] in (SPHERE, CAPSULE):
        return size[i, 0]
    return 0.0


@kernel_function
def convex_convex(patch, work, kind, center, axes, size, vertices, first, i, j, extent, margin):
    """Write the contact of shapes i and j at their closest (or deepest) points; `extent`: sum of their bounds."""
    ra, rb = core_radius(kind, size, i), core_radius(kind, size, j)
    limit = margin + ra + rb
    points, distance = gjk_distance(work, kind, center, axes, size, vertices, first, i, j, extent, limit)
    if points == 0:
        return 0
    if distance > OVERLAP_TOLERANCE * extent:
        nx, ny, nz = work[SUM_ROW, 0] / distance, work[SUM_ROW, 1] / distance, work[SUM_ROW, 2] / distance
    else:
        face, overlap = epa_depth(work, kind, center, axes, size, vertices, first, i, j, extent)
        if face < 0:
            return 0
        distance = -overlap
        nx, ny, nz = -work[face, 0], -work[face, 1], -work[face, 2]
    depth = ra + rb - distance
    if depth <= -margin:
        return 0
    px = 0.5 * (work[SUM_ROW, 3] + work[SUM_ROW, 6] + (rb - ra) * nx)
    py = 0.5 * (work[SUM_ROW, 4] + work[SUM_ROW, 7] + (rb - ra) * ny)
    pz = 0.5 * (work[SUM_ROW, 5] + work[SUM_ROW, 8] + (rb - ra) * nz)
    return put_contact(patch, 0, 0, depth, px, py, pz, nx, ny, nz)


@kernel_function
def gjk_distance(work, kind, center, axes, size, vertices, first, i, j, extent, limit):
    """Return the number of points whose weighted sum (SUM_ROW) is closest to the origin, and its distance.

    No points: farther than `limit`. Distance 0: the cores overlap, or nearly so.
    """
    vx, vy, vz = center[i, 0] - center[j, 0], center[i, 1] - center[j, 1], center[i, 2] - center[j, 2]
    length = sqrt(vx * vx + vy * vy + vz * vz)
    if length == 0.0:
        vx, length = 1.0, 1.0
    points, distance = 0, 1e300
    for _ in range(MAX_GJK_STEPS):
        least = (
            -add_support_point(work, points, kind, center, axes, size, vertices, first, i, j, -vx, -vy, -vz) / length
        )
        if least > limit:
            return 0, least
        if points > 0 and distance - least <= min(DISTANCE_TOLERANCE * extent, DIRECTION_TOLERANCE * distance):
            break
        points = closest_in_simplex(work, points + 1)
        for m in range(9):
            work[SUM_ROW, m] = 0.0
            for k in range(points):
                work[SUM_ROW, m] += work[k, WEIGHT] * work[k, m]
        vx, vy, vz = work[SUM_ROW, 0], work[SUM_ROW, 1], work[SUM_ROW, 2]
        length = sqrt(vx * vx + vy * vy + vz * vz)
        if points == 4 or length <= OVERLAP_TOLERANCE * extent:
            return points, 0.0
        if length >= distance:
            break
        distance = length
    return points, length


@kernel_function
def closest_in_simplex(work, points):
    """Weight the rows so that their sum is the point of the simplex closest to the origin; drop rows of no weight.

    Returns the number of rows left; four means that the origin is inside.
    """
    if points == 1:
        work[0, WEIGHT] = 1.0
    elif points == 2:
        ax, ay, az = work[0, 0], work[0, 1], work[0, 2]
        ex, ey, ez = work[1, 0] - ax, work[1, 1] - ay, work[1, 2] - az
        square = ex * ex + ey * ey + ez * ez
        fraction = 0.0
        if square > 0.0:
            fraction = min(max(-(ax * ex + ay * ey + az * ez) / square, 0.0), 1.0)
        work[0, WEIGHT], work[1, WEIGHT] = 1.0 - fraction, fraction
    elif points == 3:
        work[0, WEIGHT], work[1, WEIGHT], work[2, WEIGHT] = triangle_weights(work, points - 3, points - 2, points - 1)
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
        work[away, WEIGHT], work[p, WEIGHT], work[q, WEIGHT], work[r, WEIGHT] = 0.0, wp, wq, wr
    kept = 0
    for k in range(points):
        if work[k, WEIGHT] > 0.0:
            for m in range(10):
                work[kept, m] = work[k, m]
            kept += 1
    return kept


@inline
def face_normal(work, p, q, r):
    """Return (q - p) x (r - p) of three points."""
    ex, ey, ez = work[q, 0] - work[p, 0], work[q, 1] - work[p, 1], work[q, 2] - work[p, 2]
    fx, fy, fz = work[r, 0] - work[p, 0], work[r, 1] - work[p, 1], work[r, 2] - work[p, 2]
    return cross(ex, ey, ez, fx, fy, fz)


@kernel_function
def triangle_weights(work, p, q, r):
    """Return weights of three points whose sum is the point of their triangle closest to the origin.

    The plane is divided into the regions closest to a corner, an edge or the interior (Ericson, Real-Time Collision
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
        fraction = ea / (ea - eb)
        return 1.0 - fraction, fraction, 0.0
    ec, fc = -(ex * cx + ey * cy + ez * cz), -(fx * cx + fy * cy + fz * cz)
    if fc >= 0.0 and ec <= fc:
        return 0.0, 0.0, 1.0
    side_b = ec * fa - ea * fc
    if side_b <= 0.0 and fa >= 0.0 and fc <= 0.0:
        fraction = fa / (fa - fc)
        return 1.0 - fraction, 0.0, fraction
    side_a = eb * fc - ec * fb
    if side_a <= 0.0 and fb >= eb and ec >= fc:
        fraction = (fb - eb) / ((fb - eb) + (ec - fc))
        return 0.0, 1.0 - fraction, fraction
    total = side_a + side_b + side_c
    return side_a / total, side_b / total, side_c / total


@kernel_function
def epa_depth(work, kind, center, axes, size, vertices, first, i, j, extent):
    """Return the row of the polytope face closest to the origin, on the difference's surface, and its depth.

    SUM_ROW then contains the points of the two shapes that belong to it.
    The polytope need not contain the origin at first: faces are ranked by signed distance, so that it grows towards the
    origin before it grows away from it. Row -1: the difference has no volume.
    """
    if not initial_tetrahedron(work, kind, center, axes, size, vertices, first, i, j, extent):
        return -1, 0.0
    for k in range(4):
        # rows 0, 1, 2 are one face; each of its edges with row 3 is another
        p, q, r = k, 3, (k + 1) % 3
        if k == 3:
            p, q, r = 0, 1, 2
        set_face(work, MAX_POINTS + k, p, q, r)
    faces = 4
    best, depth = MAX_POINTS, 0.0
    for row in range(4, MAX_POINTS):
        best = MAX_POINTS
        for face in range(MAX_POINTS, MAX_POINTS + faces):
            if work[face, FACE_DISTANCE] < work[best, FACE_DISTANCE]:
                best = face
        depth = add_support_point(
            work, row, kind, center, axes, size, vertices, first, i, j, work[best, 0], work[best, 1], work[best, 2]
        )
        if row == MAX_POINTS - 1 or depth - work[best, FACE_DISTANCE] <= DEPTH_TOLERANCE * extent:
            break
        faces = expand_polytope(work, faces, row, 1e-13 * extent)
    closest_points(work, faces, work[best, FACE_DISTANCE] + DEPTH_TOLERANCE * extent)
    return best, depth


@kernel_function
def initial_tetrahedron(work, kind, center, axes, size, vertices, first, i, j, extent):
    """Write four points that span a volume into rows 0 to 3; return False if there are none.

    Rows 0, 1, 2 are counterclockwise seen from the side away from row 3.
    """
    tiny = 1e-9 * extent
    for row in range(2):
        add_support_point(work, row, kind, center, axes, size, vertices, first, i, j, 1.0 - 2.0 * row, 0.0, 0.0)
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
        up = add_support_point(work, stage, kind, center, axes, size, vertices, first, i, j, ux, uy, uz) - level
        down = level + add_support_point(
            work, stage + 1, kind, center, axes, size, vertices, first, i, j, -ux, -uy, -uz
        )
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
    """Write a face: columns 0 to 2 outward normal, then its signed distance from the origin and its points."""
    nx, ny, nz = face_normal(work, p, q, r)
    length = sqrt(nx * nx + ny * ny + nz * nz)
    work[face, FACE_POINTS], work[face, FACE_POINTS + 1], work[face, FACE_POINTS + 2] = p, q, r
    if length == 0.0:
        # a degenerate face: never the closest, never visible
        work[face, 0], work[face, 1], work[face, 2], work[face, FACE_DISTANCE] = 0.0, 0.0, 0.0, 1e300
        return
    nx, ny, nz = nx / length, ny / length, nz / length
    work[face, 0], work[face, 1], work[face, 2] = nx, ny, nz
    work[face, FACE_DISTANCE] = nx * work[p, 0] + ny * work[p, 1] + nz * work[p, 2]


@kernel_function
def expand_polytope(work, faces, row, tiny):
    """Add the point in `row` to the polytope: drop the faces it sees, close the hole; return the face count."""
    hole = MAX_POINTS + MAX_FACES
    edges = 0
    face = 0
    while face < faces:
        at = MAX_POINTS + face
        height = work[at, 0] * work[row, 0] + work[at, 1] * work[row, 1] + work[at, 2] * work[row, 2]
        if height - work[at, FACE_DISTANCE] <= tiny:
            face += 1
            continue
        for m in range(3):
            p, q = work[at, FACE_POINTS + m], work[at, FACE_POINTS + (m + 1) % 3]
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
            work[at, m] = work[MAX_POINTS + faces, m]
    for e in range(edges):
        if faces < MAX_FACES:
            set_face(work, MAX_POINTS + faces, int(work[hole + e, 0]), int(work[hole + e, 1]), row)
            faces += 1
    return faces


@kernel_function
def closest_points(work, faces, level):
    """Write into SUM_ROW the points of the two shapes that belong to the polytope's point closest to the origin.

    Flat sides of the polytope consist of several faces at the same distance, of which only one lies below the origin:
    all faces up to distance `level` are tried.
    """
    nearest = 1e300
    for face in range(MAX_POINTS, MAX_POINTS + faces):
        if work[face, FACE_DISTANCE] <= level:
            p = int(work[face, FACE_POINTS])
            q, r = int(work[face, FACE_POINTS + 1]), int(work[face, FACE_POINTS + 2])
            u, v, w = triangle_weights(work, p, q, r)
            square = 0.0
            for m in range(3):
                x = u * work[p, m] + v * work[q, m] + w * work[r, m]
                square += x * x
            if square < nearest:
                nearest = square
                for m in range(3, 9):
                    work[SUM_ROW, m] = u * work[p, m] + v * work[q, m] + w * work[r, m]
