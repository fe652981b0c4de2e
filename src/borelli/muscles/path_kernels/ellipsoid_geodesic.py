"""Geodesics over an ellipsoid and their neighbors, by Störmer's rule with extrapolation.

The ellipsoid is (h_a x^2 + h_b y^2 + h_c z^2) = 1 with the gradient g = H x, H = diag(h). A geodesic of unit speed has
x'' = -(t.H t / g.g) g, and (g.g)(t.H t) = C is constant along it (Joachimsthal 1843; do Carmo 1976, section 5.5), so
that with the Gaussian curvature K = det H / (g.g)^2

    x'' = -C H x / (g.g)^2        y'' = -det H y / (g.g)^2

for the geodesic and for its neighbors y of the Jacobi equation: no velocity is on the right-hand side. Störmer's rule

    d_0 = s (v + s f_0 / 2)    x_i+1 = x_i + d_i    d_i = d_i-1 + s^2 f_i    v_n = d_n-1 / s + s f_n / 2

with n substeps s = h / n has an error in even powers of s (Hairer, Norsett and Wanner 1993, section II.14): the
results of n = 1 to 5, extrapolated to s = 0, are of tenth order. Those of n = 1 to 4 are of eighth order; the
difference controls the steps.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel_function

FIRST_ANGLE = 0.4
"""Angle [rad] by which a geodesic turns in its first step, if that is not too long."""
STEP_TOLERANCE = 3e-7
"""Largest difference between the orders in a step, in mean half axes. The error of tenth order is then about 1e-9 of
the length (half axes of ratios up to 4), and moment arms are exact to 1e-7 m."""
SUBSTEPS = 5
WEIGHTS = (1.0 / 8640.0, -64.0 / 945.0, 6561.0 / 4480.0, -16384.0 / 2835.0, 390625.0 / 72576.0)
"""Weights of the results of n = 1 to 5 substeps: product over i != n of n^2 / (n^2 - i^2)."""
DIFFERENCES = (5.0 / 1728.0, -80.0 / 189.0, 3645.0 / 896.0, -5120.0 / 567.0, 390625.0 / 72576.0)
"""Those weights minus the weights of n = 1 to 4 alone."""
MAX_GROWTH = 3.0
"""Largest ratio of a step to the one before."""
TINY = 1e-300
MAX_STEPS = 1000


@inline
def _normal_square(ha, hb, hc, x, y, z):
    """Return g.g [1/m^2]."""
    return (ha * x) ** 2 + (hb * y) ** 2 + (hc * z) ** 2


@inline
def _first_step(ha, hb, hc, x, y, z, tx, ty, tz):
    """Return the length [m] over which a geodesic turns by `FIRST_ANGLE`: n turns by |(H t) across n| / |g|."""
    gx, gy, gz, kx, ky, kz = ha * x, hb * y, hc * z, ha * tx, hb * ty, hc * tz
    square, along = gx * gx + gy * gy + gz * gz, gx * kx + gy * ky + gz * kz
    turning = sqrt(max(kx * kx + ky * ky + kz * kz - along * along / square, 0.0) / square)
    return FIRST_ANGLE / max(turning, 1e-9)


@kernel_function
def shoot_ellipsoid(sizes, start, end):
    """Follow the geodesic of `start` (x, t, length); fill `end` (x, t, a, a', r, r')."""
    ha, hb, hc = 1.0 / (sizes[0] * sizes[0]), 1.0 / (sizes[1] * sizes[1]), 1.0 / (sizes[2] * sizes[2])
    x, y, z, tx, ty, tz, left = start[0], start[1], start[2], start[3], start[4], start[5], start[6]
    a, da, r, dr, det = 1.0, 0.0, 0.0, 1.0, ha * hb * hc
    largest = _first_step(ha, hb, hc, x, y, z, tx, ty, tz)
    tolerance = STEP_TOLERANCE * (sizes[0] + sizes[1] + sizes[2]) / 3.0
    for _ in range(MAX_STEPS):
        if left <= 0.0:
            break
        h = min(left, largest)
        if h < left < 2.0 * h:  # two equal last steps rather than a tiny one
            h = 0.5 * left
        square = _normal_square(ha, hb, hc, x, y, z)
        C = square * (ha * tx * tx + hb * ty * ty + hc * tz * tz)
        first = 1.0 / (square * square)
        X = Y = Z = TX = TY = TZ = A = DA = R = DR = ex = ey = ez = 0.0
        for n in range(1, SUBSTEPS + 1):
            s = h / n
            f, k, weight = 0.5 * s * C * first, 0.5 * s * det * first, WEIGHTS[n - 1]
            differs = DIFFERENCES[n - 1]
            dx, dy, dz = s * (tx - f * ha * x), s * (ty - f * hb * y), s * (tz - f * hc * z)
            ua, ur = s * (da - k * a), s * (dr - k * r)
            nx, ny, nz, na, nr = x + dx, y + dy, z + dz, a + ua, r + ur
            for _ in range(n - 1):
                square = _normal_square(ha, hb, hc, nx, ny, nz)
                scale = s * s / (square * square)
                f, k = C * scale, det * scale
                dx, dy, dz = dx - f * ha * nx, dy - f * hb * ny, dz - f * hc * nz
                ua, ur = ua - k * na, ur - k * nr
                nx, ny, nz, na, nr = nx + dx, ny + dy, nz + dz, na + ua, nr + ur
            square = _normal_square(ha, hb, hc, nx, ny, nz)
            scale, per = 0.5 * s / (square * square), n / h
            f, k = C * scale, det * scale
            X, Y, Z, A, R = X + weight * nx, Y + weight * ny, Z + weight * nz, A + weight * na, R + weight * nr
            ex, ey, ez = ex + differs * nx, ey + differs * ny, ez + differs * nz
            TX, TY = TX + weight * (dx * per - f * ha * nx), TY + weight * (dy * per - f * hb * ny)
            TZ = TZ + weight * (dz * per - f * hc * nz)
            DA, DR = DA + weight * (ua * per - k * na), DR + weight * (ur * per - k * nr)
        error = max(abs(ex), abs(ey), abs(ez))
        largest = h * min(0.9 * (tolerance / max(error, TINY)) ** (1.0 / 9.0), MAX_GROWTH)
        if not error <= tolerance:
            continue
        x, y, z, tx, ty, tz = return_to_ellipsoid(ha, hb, hc, X, Y, Z, TX, TY, TZ)
        a, da, r, dr = A, DA, R, DR
        left -= h
    end[0], end[1], end[2], end[3], end[4], end[5] = x, y, z, tx, ty, tz
    end[6], end[7], end[8], end[9] = a, da, r, dr


@inline
def return_to_ellipsoid(ha, hb, hc, x, y, z, tx, ty, tz):
    """Return the point moved along its radius onto the surface, and a unit vector in its tangent plane."""
    s = 1.0 / sqrt(ha * x * x + hb * y * y + hc * z * z)
    x, y, z = s * x, s * y, s * z
    gx, gy, gz = ha * x, hb * y, hc * z
    out = (tx * gx + ty * gy + tz * gz) / (gx * gx + gy * gy + gz * gz)
    tx, ty, tz = tx - out * gx, ty - out * gy, tz - out * gz
    s = 1.0 / sqrt(tx * tx + ty * ty + tz * tz)
    return x, y, z, s * tx, s * ty, s * tz
