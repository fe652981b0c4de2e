"""Shortest paths over an ellipsoid or a torus: a geodesic between two tangent lines.

A surface is f(x) = 0 with gradient g and Hessian H; n = g/|g| points outward and A = H/|g|. A curve of unit speed
with tangent t is a geodesic where x'' = -(t.A t) n. With b = n x t, neighboring geodesics differ along b by a(s) for a
start moved along b, and by r(s) for a start rotated toward b; both satisfy the Jacobi equation y'' + K y = 0, where
K = (t.A t)(b.A b) - (t.A b)^2 is the Gaussian curvature, with a = 1, a' = 0 and r = 0, r' = 1 at the start
(do Carmo 1976, section 5.5).

The path p, x, geodesic of length l, x_e, q is stationary where both straight parts are tangent to it (Scholz et al.
2016): with d = x - p and e = q - x_e,

    F = (d.n, d.b, e.n_e, e.b_e) = 0

in the four unknowns: start moved along t (ds) and along b (db), start rotated (dh), length changed (dl). Newton's
matrix follows from dx = t ds + b db, dn = A dx, db = -(b.A dx) n - t dh, and at the end from the displacements
ds + dl along t_e, a db + r dh along b_e, and the rotation a' db + r' dh. An end on the surface itself is its own
tangent point: its two conditions are then that the geodesic begins or ends there.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel, kernel_function
from borelli.muscles.path_kernels.ellipsoid_geodesic import shoot_ellipsoid
from borelli.numerics.rotation_kernels import cross

ELLIPSOID, TORUS = 2, 3
"""Kinds of surfaces; sizes are the half axes, and the radii of the tube and of its center circle."""
STEP_ANGLE = 0.08
"""Angle [rad] by which a geodesic curves in one step: moment arms are then exact to 1e-7 m."""
A21 = 1.0 / 5.0
A31, A32 = 3.0 / 40.0, 9.0 / 40.0
A41, A42, A43 = 44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0
A51, A52, A53, A54 = 19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0
A61, A62, A63, A64, A65 = 9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0
B1, B3, B4, B5, B6 = 35.0 / 384.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0
"""Coefficients of Dormand and Prince (1980), RK5(4)7M: stages and fifth-order result."""
MAX_STEPS = 2000
MAX_ITERATIONS = 40
MAX_HALVINGS = 12
TOLERANCE = 1e-11
"""Largest |F| [m] of a converged path; the error of the length goes with its square."""
FINAL_STEP = 1e-7
"""Newton step [m] after which F is not computed again: its error goes with the square of the step, 1e-13 m at a radius
of 0.1 m."""
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
    """Follow the geodesic of `start` (x, t, length); fill `end` (x, t, a, a', r, r').

    Over a torus by steps of fifth order (Dormand and Prince 1980, RK5(4)7M).
    """
    if kind == ELLIPSOID:
        shoot_ellipsoid(sizes, start, end)
        return
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
        tx1, ty1, tz1 = tx, ty, tz
        tx2 = tx + h * (A21 * ax1)
        ty2 = ty + h * (A21 * ay1)
        tz2 = tz + h * (A21 * az1)
        ax2, ay2, az2, _, _ = _rates(
            kind, sizes,
            x + h * (A21 * tx1),
            y + h * (A21 * ty1),
            z + h * (A21 * tz1),
            tx2, ty2, tz2,
        )  # fmt: skip
        tx3 = tx + h * (A31 * ax1 + A32 * ax2)
        ty3 = ty + h * (A31 * ay1 + A32 * ay2)
        tz3 = tz + h * (A31 * az1 + A32 * az2)
        ax3, ay3, az3, K3, _ = _rates(
            kind, sizes,
            x + h * (A31 * tx1 + A32 * tx2),
            y + h * (A31 * ty1 + A32 * ty2),
            z + h * (A31 * tz1 + A32 * tz2),
            tx3, ty3, tz3,
        )  # fmt: skip
        tx4 = tx + h * (A41 * ax1 + A42 * ax2 + A43 * ax3)
        ty4 = ty + h * (A41 * ay1 + A42 * ay2 + A43 * ay3)
        tz4 = tz + h * (A41 * az1 + A42 * az2 + A43 * az3)
        ax4, ay4, az4, K4, _ = _rates(
            kind, sizes,
            x + h * (A41 * tx1 + A42 * tx2 + A43 * tx3),
            y + h * (A41 * ty1 + A42 * ty2 + A43 * ty3),
            z + h * (A41 * tz1 + A42 * tz2 + A43 * tz3),
            tx4, ty4, tz4,
        )  # fmt: skip
        tx5 = tx + h * (A51 * ax1 + A52 * ax2 + A53 * ax3 + A54 * ax4)
        ty5 = ty + h * (A51 * ay1 + A52 * ay2 + A53 * ay3 + A54 * ay4)
        tz5 = tz + h * (A51 * az1 + A52 * az2 + A53 * az3 + A54 * az4)
        ax5, ay5, az5, _, _ = _rates(
            kind, sizes,
            x + h * (A51 * tx1 + A52 * tx2 + A53 * tx3 + A54 * tx4),
            y + h * (A51 * ty1 + A52 * ty2 + A53 * ty3 + A54 * ty4),
            z + h * (A51 * tz1 + A52 * tz2 + A53 * tz3 + A54 * tz4),
            tx5, ty5, tz5,
        )  # fmt: skip
        tx6 = tx + h * (A61 * ax1 + A62 * ax2 + A63 * ax3 + A64 * ax4 + A65 * ax5)
        ty6 = ty + h * (A61 * ay1 + A62 * ay2 + A63 * ay3 + A64 * ay4 + A65 * ay5)
        tz6 = tz + h * (A61 * az1 + A62 * az2 + A63 * az3 + A64 * az4 + A65 * az5)
        ax6, ay6, az6, K6, _ = _rates(
            kind, sizes,
            x + h * (A61 * tx1 + A62 * tx2 + A63 * tx3 + A64 * tx4 + A65 * tx5),
            y + h * (A61 * ty1 + A62 * ty2 + A63 * ty3 + A64 * ty4 + A65 * ty5),
            z + h * (A61 * tz1 + A62 * tz2 + A63 * tz3 + A64 * tz4 + A65 * tz5),
            tx6, ty6, tz6,
        )  # fmt: skip
        x += h * (B1 * tx1 + B3 * tx3 + B4 * tx4 + B5 * tx5 + B6 * tx6)
        y += h * (B1 * ty1 + B3 * ty3 + B4 * ty4 + B5 * ty5 + B6 * ty6)
        z += h * (B1 * tz1 + B3 * tz3 + B4 * tz4 + B5 * tz5 + B6 * tz6)
        tx += h * (B1 * ax1 + B3 * ax3 + B4 * ax4 + B5 * ax5 + B6 * ax6)
        ty += h * (B1 * ay1 + B3 * ay3 + B4 * ay4 + B5 * ay5 + B6 * ay6)
        tz += h * (B1 * az1 + B3 * az3 + B4 * az4 + B5 * az5 + B6 * az6)
        middle = K3 + 0.4 * (K4 - K3)  # stages 3 and 4 are at 0.3 h and 0.8 h
        a, da = _jacobi_step(h, a, da, K1, middle, K6)
        r, dr = _jacobi_step(h, r, dr, K1, middle, K6)
        x, y, z, tx, ty, tz = _on_surface(kind, sizes, x, y, z, tx, ty, tz)
        s += h
    end[0], end[1], end[2], end[3], end[4], end[5] = x, y, z, tx, ty, tz
    end[6], end[7], end[8], end[9] = a, da, r, dr


@inline
def _jacobi_step(h, y, dy, first, middle, last):
    """Return the solution of y'' = -K y after one step of Runge and Kutta, from K at its start, middle and end."""
    g = 0.5 * h
    k1 = -first * y
    k2 = -middle * (y + g * dy)
    k3 = -middle * (y + g * (dy + g * k1))
    k4 = -last * (y + h * (dy + g * k2))
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
        if size <= FINAL_STEP and start[6] + step[3] >= 0.0:
            _finish(kind, sizes, start, end, step, trial)
            return CONVERGED
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


@inline
def _finish(kind, sizes, start_inout, end_inout, step, trial):
    """Move the start by a small step, and the end of the geodesic by its derivative."""
    tx, ty, tz = end_inout[3], end_inout[4], end_inout[5]
    nx, ny, nz, _, _, _, _ = _shape(kind, sizes, end_inout[0], end_inout[1], end_inout[2])
    bx, by, bz = cross(nx, ny, nz, tx, ty, tz)
    s, b = step[0] + step[3], end_inout[6] * step[1] + end_inout[8] * step[2]
    x, y, z = end_inout[0] + s * tx + b * bx, end_inout[1] + s * ty + b * by, end_inout[2] + s * tz + b * bz
    end_inout[0], end_inout[1], end_inout[2] = _project(kind, sizes, x, y, z)
    _move(kind, sizes, start_inout, step, 1.0, trial)
    for i in range(7):
        start_inout[i] = trial[i]


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
