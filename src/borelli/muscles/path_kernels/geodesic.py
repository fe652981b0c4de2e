"""Shortest paths over an ellipsoid or a torus: a geodesic between two tangent lines.

A surface is f(x) = 0 with gradient g and Hessian H; n = g/|g| points outward and A = H/|g|. A curve of unit speed
with tangent t is a geodesic where x'' = -(t.A t) n. With b = n x t, neighboring geodesics differ along b by a(s) for a
start moved along b, and by r(s) for a start rotated toward b; both satisfy the Jacobi equation y'' + K y = 0, where
K = (t.A t)(b.A b) - (t.A b)^2 is the Gaussian curvature, with a = 1, a' = 0 and r = 0, r' = 1 at the start
(do Carmo 1976, section 5.5).

The path p, x, geodesic of length l, x_e, q is stationary where both straight parts are tangent to it (Scholz et al.
2015): with d = x - p and e = q - x_e,

    F = (d.n, d.b, e.n_e, e.b_e) = 0

in the four unknowns: start moved along t (ds) and along b (db), start rotated (dh), length changed (dl). Newton's
matrix follows from dx = t ds + b db, dn = A dx, db = -(b.A dx) n - t dh, and at the end from the displacements
ds + dl along t_e, a db + r dh along b_e, and the rotation a' db + r' dh. An end on the surface itself is its own
tangent point: its two conditions are then that the geodesic begins or ends there.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel, kernel_function
from borelli.numerics.rotation_kernels import cross

ELLIPSOID, TORUS = 2, 3
"""Kinds of surfaces; sizes are the half axes, and the radii of the tube and of its center circle."""
STEP_ANGLE = 0.08
"""Angle [rad] by which a geodesic curves in one step of Runge and Kutta: lengths are exact to 1e-10 m."""
MAX_STEPS = 2000
MAX_ITERATIONS = 40
MAX_HALVINGS = 12
TOLERANCE = 1e-13
"""Largest |F| [m] of a converged path, of which the length's error is the square."""
STALLED = 1e-9
"""|F| [m] that is accepted where rounding ends the descent."""
STRING_SWEEPS = 300
STRING_CONTACT = 1e-6
"""Largest distance, in radii, of a point of a string that touches the surface."""
CONVERGED, FAILED = 0, 1


@inline
def _shape(kind, sizes, x, y, z):
    """Return the outward normal, |g|, and the Hessian divided by |g| (xx, yy, zz, xy; others are zero)."""
    if kind == ELLIPSOID:
        ha, hb, hc = 1.0 / (sizes[0] * sizes[0]), 1.0 / (sizes[1] * sizes[1]), 1.0 / (sizes[2] * sizes[2])
        gx, gy, gz = ha * x, hb * y, hc * z
        size = sqrt(gx * gx + gy * gy + gz * gz)
        return gx / size, gy / size, gz / size, ha / size, hb / size, hc / size, 0.0
    # f/2 = ((rho - R)^2 + z^2 - r^2) / 2
    rho = sqrt(x * x + y * y)
    u, v, w = x / rho, y / rho, rho - sizes[1]
    size = sqrt(w * w + z * z)
    round_ = w / rho
    return (
        w * u / size, w * v / size, z / size,
        (u * u + round_ * v * v) / size, (v * v + round_ * u * u) / size, 1.0 / size, (1.0 - round_) * u * v / size,
    )  # fmt: skip


@inline
def _project(kind, sizes, x, y, z):
    """Return the point moved onto the surface: along the radius of an ellipsoid or of a torus's tube."""
    if kind == ELLIPSOID:
        s = sqrt((x / sizes[0]) ** 2 + (y / sizes[1]) ** 2 + (z / sizes[2]) ** 2)
        return x / s, y / s, z / s
    rho = sqrt(x * x + y * y)
    w = rho - sizes[1]
    s = sizes[0] / sqrt(w * w + z * z)
    new = (sizes[1] + s * w) / rho
    return new * x, new * y, s * z


@inline
def _bilinear(xx, yy, zz, xy, ux, uy, uz, vx, vy, vz):
    return xx * ux * vx + yy * uy * vy + zz * uz * vz + xy * (ux * vy + uy * vx)


@inline
def _rates(kind, sizes, x, y, z, tx, ty, tz):
    """Return the acceleration of a geodesic, its Gaussian curvature, and the rate of turning of its frame [1/m]."""
    nx, ny, nz, xx, yy, zz, xy = _shape(kind, sizes, x, y, z)
    bx, by, bz = cross(nx, ny, nz, tx, ty, tz)
    along = _bilinear(xx, yy, zz, xy, tx, ty, tz, tx, ty, tz)
    twist = _bilinear(xx, yy, zz, xy, tx, ty, tz, bx, by, bz)
    across = _bilinear(xx, yy, zz, xy, bx, by, bz, bx, by, bz)
    return -along * nx, -along * ny, -along * nz, along * across - twist * twist, sqrt(along * along + twist * twist)


@kernel_function
def shoot(kind, sizes, start, end):
    """Follow the geodesic of `start` (x, t, length); fill `end` (x, t, a, a', r, r')."""
    x, y, z, tx, ty, tz, length = start[0], start[1], start[2], start[3], start[4], start[5], start[6]
    a, da, r, dr, s = 1.0, 0.0, 0.0, 1.0, 0.0
    for _ in range(MAX_STEPS):
        left = length - s
        if left <= 0.0:
            break
        ax1, ay1, az1, K1, turn = _rates(kind, sizes, x, y, z, tx, ty, tz)
        h = min(left, STEP_ANGLE / max(turn, 1e-9))
        if left < 2.0 * h:  # two equal last steps rather than a tiny one
            h = left if left <= h else 0.5 * left
        g = 0.5 * h
        ax2, ay2, az2, K2, _ = _rates(
            kind, sizes, x + g * tx, y + g * ty, z + g * tz, tx + g * ax1, ty + g * ay1, tz + g * az1
        )
        ax3, ay3, az3, K3, _ = _rates(
            kind, sizes, x + g * (tx + g * ax1), y + g * (ty + g * ay1), z + g * (tz + g * az1),
            tx + g * ax2, ty + g * ay2, tz + g * az2,
        )  # fmt: skip
        ax4, ay4, az4, K4, _ = _rates(
            kind, sizes, x + h * (tx + g * ax2), y + h * (ty + g * ay2), z + h * (tz + g * az2),
            tx + h * ax3, ty + h * ay3, tz + h * az3,
        )  # fmt: skip
        w = h * h / 6.0
        x, y, z = (
            x + h * tx + w * (ax1 + ax2 + ax3), y + h * ty + w * (ay1 + ay2 + ay3), z + h * tz + w * (az1 + az2 + az3),
        )  # fmt: skip
        v = h / 6.0
        tx, ty, tz = (
            tx + v * (ax1 + 2.0 * (ax2 + ax3) + ax4),
            ty + v * (ay1 + 2.0 * (ay2 + ay3) + ay4),
            tz + v * (az1 + 2.0 * (az2 + az3) + az4),
        )
        a, da = _jacobi_step(h, a, da, K1, K2, K3, K4)
        r, dr = _jacobi_step(h, r, dr, K1, K2, K3, K4)
        x, y, z, tx, ty, tz = _on_surface(kind, sizes, x, y, z, tx, ty, tz)
        s += h
    end[0], end[1], end[2], end[3], end[4], end[5] = x, y, z, tx, ty, tz
    end[6], end[7], end[8], end[9] = a, da, r, dr


@inline
def _jacobi_step(h, y, dy, K1, K2, K3, K4):
    """Return the solution of y'' = -K y after one step of Runge and Kutta."""
    g = 0.5 * h
    k1 = -K1 * y
    k2 = -K2 * (y + g * dy)
    k3 = -K3 * (y + g * (dy + g * k1))
    k4 = -K4 * (y + h * (dy + g * k2))
    return y + h * dy + h * h / 6.0 * (k1 + k2 + k3), dy + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)


@inline
def _on_surface(kind, sizes, x, y, z, tx, ty, tz):
    """Return a point on the surface and a unit vector in its tangent plane."""
    x, y, z = _project(kind, sizes, x, y, z)
    nx, ny, nz, _, _, _, _ = _shape(kind, sizes, x, y, z)
    out = tx * nx + ty * ny + tz * nz
    tx, ty, tz = tx - out * nx, ty - out * ny, tz - out * nz
    size = sqrt(tx * tx + ty * ty + tz * tz)
    return x, y, z, tx / size, ty / size, tz / size


@kernel_function
def _conditions(kind, sizes, p, q, on_p, on_q, start, end, F, J):
    """Fill F and its derivative J by (ds, db, dh, dl); return |F|^2."""
    for i in range(4):
        for j in range(4):
            J[i, j] = 0.0
    tx, ty, tz = start[3], start[4], start[5]
    nx, ny, nz, xx, yy, zz, xy = _shape(kind, sizes, start[0], start[1], start[2])
    bx, by, bz = cross(nx, ny, nz, tx, ty, tz)
    dx, dy, dz = start[0] - p[0], start[1] - p[1], start[2] - p[2]
    if on_p:
        F[0] = F[1] = 0.0
        J[0, 0] = J[1, 1] = 1.0
    else:
        tt = _bilinear(xx, yy, zz, xy, tx, ty, tz, tx, ty, tz)
        tb = _bilinear(xx, yy, zz, xy, tx, ty, tz, bx, by, bz)
        bb = _bilinear(xx, yy, zz, xy, bx, by, bz, bx, by, bz)
        dn, dt, db = dx * nx + dy * ny + dz * nz, dx * tx + dy * ty + dz * tz, dx * bx + dy * by + dz * bz
        F[0], F[1] = dn, db
        J[0, 0], J[0, 1] = tt * dt + tb * db, tb * dt + bb * db
        J[1, 0], J[1, 1], J[1, 2] = -tb * dn, 1.0 - bb * dn, -dt
    shoot(kind, sizes, start, end)
    tx, ty, tz, a, da, r, dr = end[3], end[4], end[5], end[6], end[7], end[8], end[9]
    nx, ny, nz, xx, yy, zz, xy = _shape(kind, sizes, end[0], end[1], end[2])
    bx, by, bz = cross(nx, ny, nz, tx, ty, tz)
    ex, ey, ez = q[0] - end[0], q[1] - end[1], q[2] - end[2]
    en, et, eb = ex * nx + ey * ny + ez * nz, ex * tx + ey * ty + ez * tz, ex * bx + ey * by + ez * bz
    # derivatives by the end's displacement along t and b, and by its rotation
    if on_q:
        F[2], F[3] = et, eb
        s2, b2, h2, s3, b3, h3 = -1.0, 0.0, eb, 0.0, -1.0, -et
    else:
        tt = _bilinear(xx, yy, zz, xy, tx, ty, tz, tx, ty, tz)
        tb = _bilinear(xx, yy, zz, xy, tx, ty, tz, bx, by, bz)
        bb = _bilinear(xx, yy, zz, xy, bx, by, bz, bx, by, bz)
        F[2], F[3] = en, eb
        s2, b2, h2 = tt * et + tb * eb, tb * et + bb * eb, 0.0
        s3, b3, h3 = -tb * en, -1.0 - bb * en, -et
    J[2, 0] = J[2, 3] = s2
    J[2, 1], J[2, 2] = b2 * a + h2 * da, b2 * r + h2 * dr
    J[3, 0] = J[3, 3] = s3
    J[3, 1], J[3, 2] = b3 * a + h3 * da, b3 * r + h3 * dr
    return F[0] * F[0] + F[1] * F[1] + F[2] * F[2] + F[3] * F[3]


@inline
def _solve4(J, F):
    """Replace F by J^-1 F by elimination with row pivots; return False for a singular J."""
    for k in range(4):
        best = k
        for i in range(k + 1, 4):
            if abs(J[i, k]) > abs(J[best, k]):
                best = i
        if J[best, k] == 0.0:
            return False
        if best != k:
            for j in range(4):
                J[k, j], J[best, j] = J[best, j], J[k, j]
            F[k], F[best] = F[best], F[k]
        for i in range(k + 1, 4):
            m = J[i, k] / J[k, k]
            for j in range(k, 4):
                J[i, j] -= m * J[k, j]
            F[i] -= m * F[k]
    for i in range(3, -1, -1):
        for j in range(i + 1, 4):
            F[i] -= J[i, j] * F[j]
        F[i] /= J[i, i]
    return True


@kernel_function
def solve_geodesic(kind, sizes, p, q, on_p, on_q, max_step, start_inout, scratch):
    """Solve for the geodesic from `start_inout` (x, t, length); return the status.

    `scratch` (9, 10): row 0 is the end (x, t, ...) of the last geodesic; other rows are work space. `max_step` [m] is
    the largest displacement of the start in one iteration.
    """
    end, trial, F, step, J = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4:8]
    start = start_inout
    x, y, z, tx, ty, tz = _on_surface(kind, sizes, start[0], start[1], start[2], start[3], start[4], start[5])
    start[0], start[1], start[2], start[3], start[4], start[5] = x, y, z, tx, ty, tz
    square = _conditions(kind, sizes, p, q, on_p, on_q, start, end, F, J)
    for _ in range(MAX_ITERATIONS):
        if square <= TOLERANCE * TOLERANCE:
            return CONVERGED
        for i in range(4):
            step[i] = -F[i]
        if not _solve4(J, step):
            return FAILED
        size = sqrt(step[0] * step[0] + step[1] * step[1])
        size = max(size, abs(step[3]), abs(step[2]) * max_step)
        fraction = min(1.0, max_step / size) if size > 0.0 else 1.0
        new = square
        accepted = False
        for _ in range(MAX_HALVINGS):
            _move(kind, sizes, start, step, fraction, trial)
            if trial[6] >= 0.0:
                new = _conditions(kind, sizes, p, q, on_p, on_q, trial, end, F, J)
                if new < square:
                    accepted = True
                    break
            fraction *= 0.5
        if not accepted:
            shoot(kind, sizes, start, end)
            return CONVERGED if square <= STALLED * STALLED else FAILED
        square = new
        for i in range(7):
            start[i] = trial[i]
    return CONVERGED if square <= STALLED * STALLED else FAILED


@inline
def _move(kind, sizes, start, step, fraction, moved):
    """Fill the start after a fraction of a step."""
    tx, ty, tz = start[3], start[4], start[5]
    nx, ny, nz, _, _, _, _ = _shape(kind, sizes, start[0], start[1], start[2])
    bx, by, bz = cross(nx, ny, nz, tx, ty, tz)
    s, b, h = fraction * step[0], fraction * step[1], fraction * step[2]
    x, y, z, tx, ty, tz = _on_surface(
        kind, sizes, start[0] + s * tx + b * bx, start[1] + s * ty + b * by, start[2] + s * tz + b * bz,
        tx + h * bx, ty + h * by, tz + h * bz,
    )  # fmt: skip
    moved[0], moved[1], moved[2], moved[3], moved[4], moved[5] = x, y, z, tx, ty, tz
    moved[6] = start[6] + fraction * step[3]


@kernel_function
def tighten_string(kind, sizes, p, q, guess, string, start):
    """Fill `start` (x, t, length) from a string p ... q that is pulled tight over the surface.

    `string` (points, 3) begins as the straight line between the tangent points in `guess` (t1, t2); in each sweep every
    point moves to the middle of its neighbors, and out of the surface. Returns False if the string leaves the surface.
    """
    last = len(string) - 1
    for i in range(last + 1):
        f = i / last
        x, y, z = _project(
            kind, sizes, guess[0] + f * (guess[3] - guess[0]), guess[1] + f * (guess[4] - guess[1]),
            guess[2] + f * (guess[5] - guess[2]),
        )  # fmt: skip
        string[i, 0], string[i, 1], string[i, 2] = x, y, z
    for _ in range(STRING_SWEEPS):
        for i in range(last + 1):
            a, b = p if i == 0 else string[i - 1], q if i == last else string[i + 1]
            x, y, z = 0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.5 * (a[2] + b[2])
            if _depth(kind, sizes, x, y, z) > 0.0:
                x, y, z = _project(kind, sizes, x, y, z)
            string[i, 0], string[i, 1], string[i, 2] = x, y, z
    first, end = -1, -1
    for i in range(last + 1):
        if _depth(kind, sizes, string[i, 0], string[i, 1], string[i, 2]) > -STRING_CONTACT:
            if first < 0:
                first = i
            end = i
    if first < 0:
        return False
    length = 0.0
    for i in range(first, end):
        a, b = string[i], string[i + 1]
        length += sqrt((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2 + (b[2] - a[2]) ** 2)
    a, b = p if first == 0 else string[first - 1], q if first == last else string[first + 1]
    x, y, z = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    size = sqrt(x * x + y * y + z * z)
    for i in range(3):
        start[i] = string[first, i]
    start[3], start[4], start[5], start[6] = x / size, y / size, z / size, length
    return True


@inline
def _depth(kind, sizes, x, y, z):
    """Return how deep a point is inside the surface, as a fraction of its radius; negative outside."""
    if kind == ELLIPSOID:
        return 1.0 - sqrt((x / sizes[0]) ** 2 + (y / sizes[1]) ** 2 + (z / sizes[2]) ** 2)
    rho = sqrt(x * x + y * y)
    return 1.0 - sqrt((rho - sizes[1]) ** 2 + z * z) / sizes[0]


@kernel
def shoot_samples(kind, sizes, start_inout, lengths, end, points):
    """Fill points (samples, 3) of the geodesic that begins at `start_inout` at distances `lengths` [m] along it."""
    x, y, z, tx, ty, tz = _on_surface(
        kind, sizes, start_inout[0], start_inout[1], start_inout[2], start_inout[3], start_inout[4], start_inout[5]
    )
    start_inout[0], start_inout[1], start_inout[2] = x, y, z
    start_inout[3], start_inout[4], start_inout[5] = tx, ty, tz
    for i in range(len(lengths)):
        start_inout[6] = lengths[i]
        shoot(kind, sizes, start_inout, end)
        points[i, 0], points[i, 1], points[i, 2] = end[0], end[1], end[2]
