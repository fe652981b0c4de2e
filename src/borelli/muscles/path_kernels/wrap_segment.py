"""One path segment and one wrap object: whether it wraps, where it touches the surface, and the length between."""

from __future__ import annotations

from math import hypot, sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.muscles.path_kernels.circle import cylinder_path, sphere_path
from borelli.muscles.path_kernels.ellipsoid_section import (
    BRANCH_SAMPLES,
    FAN_SAMPLES,
    ON_SURFACE,
    ellipsoid_rule,
    section_path,
    surface_point,
)
from borelli.muscles.path_kernels.geodesic import CONVERGED, ELLIPSOID, TORUS, shoot, solve_geodesic, tighten_string
from borelli.muscles.path_kernels.opensim_rules import MAY_WRAP, NONE, cylinder_rule, sphere_rule
from borelli.muscles.path_kernels.tendon_rules import tendon_path
from borelli.muscles.path_kernels.torus_rule import nearest_circle_point
from borelli.numerics.rotation_kernels import cross

SPHERE, CYLINDER = 0, 1
"""Kinds of surfaces, with `ELLIPSOID` and `TORUS`."""
EXACT, OPENSIM = 0, 1
"""Geometries: geodesics, or OpenSim's approximations."""
NOT_CONVERGED = 3
"""Result of a wrap whose geodesic was not found; the path is then a plane section."""
WARM_DISTANCE = 0.2
"""Largest distance, in mean radii, between the last geodesic's start and that of the plane section at which it serves
as a first guess: beyond it, another geodesic could be found than without it."""
MAX_STEP = 0.25
"""Largest displacement of a geodesic's start, in radii, in one iteration: longer ones reach other geodesics."""
SUSPECT_DISTANCE = 0.5
"""Distance, in radii, of a geodesic's start from its first guess beyond which a second one is tried."""
ENDLESS = 1e4
"""Half length [m] of the cylinder that stands for a torus."""
MIN_SLOPE = 1e-5
"""Smallest |20 n_z| of a plane with normal n that OpenSim intersects with a line along the cylinder."""


@kernel_function
def wrap_segment(kind, sizes, axis, allowed, method, single, geometry, p, q, out):
    """Fill out (t1, t2, length [m], side) in the object's frame and return the rule's result.

    `single` is whether the path has one wrap only. Over an ellipsoid or torus the path is a first guess, which
    `refine_geodesic` makes exact.
    """
    px, py, pz, qx, qy, qz = p[0], p[1], p[2], q[0], q[1], q[2]
    if kind == SPHERE:
        result, side = sphere_rule(px, py, pz, qx, qy, qz, sizes[0], axis, allowed, out)
        if result > NONE:
            sphere_path(px, py, pz, qx, qy, qz, sizes[0], side, out)
            out[7] = side
        return result
    if kind == CYLINDER:
        apex = single and geometry == OPENSIM
        return _wrap_cylinder(px, py, pz, qx, qy, qz, sizes[0], sizes[1], axis, allowed, apex, out)
    if kind == ELLIPSOID:
        return _wrap_ellipsoid(px, py, pz, qx, qy, qz, sizes, axis, allowed, method, geometry == OPENSIM, out)
    return _wrap_torus(px, py, pz, qx, qy, qz, sizes, axis, allowed, geometry == OPENSIM, out)


@kernel_function
def _wrap_cylinder(px, py, pz, qx, qy, qz, radius, half_length, axis, allowed, apex, out):
    """Wrap over a cylinder; `apex` moves the tangent points along it as OpenSim does for a path with one wrap.

    A path does not wrap beyond the ends of the cylinder. OpenSim decides that by the heights in the apex plane, and so
    does this function for every path.
    """
    result, side, far = cylinder_rule(px, py, pz, qx, qy, qz, radius, axis, allowed)
    if result <= NONE:
        return result
    cylinder_path(px, py, pz, qx, qy, qz, radius, side, out)
    out[7] = side
    # heights in the apex plane are within |p_z - q_z| of one of the ends
    if apex or max(abs(pz), abs(qz), abs(2.0 * qz - pz), abs(2.0 * pz - qz)) > half_length:
        z1, z2 = _apex_heights(px, py, pz, qx, qy, qz, radius, far, out)
        if abs(z1) > half_length and abs(z2) > half_length:
            return NONE
        if apex:
            rise = out[5] - out[2]
            around = sqrt(max(out[6] * out[6] - rise * rise, 0.0))
            out[2], out[5], out[6] = z1, z2, hypot(around, z2 - z1)
    return result


@kernel_function
def _apex_heights(px, py, pz, qx, qy, qz, radius, far, out):
    """Return the heights of OpenSim's tangent points along a cylinder.

    They lie in the plane through p, q and an apex on the surface, above the point of the line p q that divides it as
    the distances of p and q from the axis.
    """
    z1, z2, flat = pz, qz, hypot(px, py)
    t = flat / (flat + hypot(qx, qy))
    mx, my, mz = px + t * (qx - px), py + t * (qy - py), pz + t * (qz - pz)
    nx, ny, _ = cross(px, py, pz - mz, qx, qy, qz - mz)
    size = hypot(nx, ny)
    if size > 0.0:
        ax, ay = -radius * ny / size, radius * nx / size
        nearer = (mx - ax) ** 2 + (my - ay) ** 2 < (mx + ax) ** 2 + (my + ay) ** 2
        if nearer == far:
            ax, ay = -ax, -ay
        nx, ny, nz = cross(px - ax, py - ay, pz - mz, qx - ax, qy - ay, qz - mz)
        size = sqrt(nx * nx + ny * ny + nz * nz)
        if size > 0.0 and abs(20.0 * nz / size) >= MIN_SLOPE:
            d = px * nx + py * ny + pz * nz
            a, b = (d - nx * out[0] - ny * out[1]) / nz, (d - nx * out[3] - ny * out[4]) / nz
            if abs(a - qz) < abs(pz - qz):
                z1 = a
            if abs(b - pz) < abs(pz - qz):
                z2 = b
    return z1, z2


@kernel_function
def _wrap_ellipsoid(px, py, pz, qx, qy, qz, sizes, axis, allowed, method, opensim, out):
    result, high, low = ellipsoid_rule(px, py, pz, qx, qy, qz, sizes)
    if result <= NONE:
        return result
    samples = FAN_SAMPLES if opensim else BRANCH_SAMPLES
    cx, cy, cz = surface_point(px, py, pz, qx, qy, qz, high, low, sizes, method, axis, allowed, samples)
    return section_path(px, py, pz, qx, qy, qz, sizes, cx, cy, cz, opensim, allowed != 0, out)


@kernel_function
def _wrap_torus(px, py, pz, qx, qy, qz, sizes, axis, allowed, opensim, out):
    """Wrap over a torus, whose `sizes` are the radii of its tube and of its center circle; no segment must wrap."""
    found, c, s = nearest_circle_point(px, py, pz, qx, qy, qz, sizes[1], axis, allowed, opensim)
    if not found:
        return NONE
    # the cylinder: x toward the torus's axis, y along -z, z = x x y
    ax, ay, az, bx, by, bz = (
        sizes[1] - (c * px + s * py), -pz, s * px - c * py, sizes[1] - (c * qx + s * qy), -qz, s * qx - c * qy,
    )  # fmt: skip
    result = _wrap_cylinder(ax, ay, az, bx, by, bz, sizes[0], ENDLESS, 0, 1, False, out)
    for k in (0, 3):
        x, y, z = out[k], out[k + 1], out[k + 2]
        out[k], out[k + 1], out[k + 2] = c * (sizes[1] - x) + s * z, s * (sizes[1] - x) - c * z, -y
    return min(result, MAY_WRAP)


@inline
def _off_surface(x, y, z, sizes):
    return (x / sizes[0]) ** 2 + (y / sizes[1]) ** 2 + (z / sizes[2]) ** 2 - 1.0


@inline
def _apart(a, b):
    return sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)


@inline
def _guess_error(geodesic, guess):
    """Return how far a geodesic is from its first guess [m]: by its start, or by half its length."""
    return max(_apart(geodesic, guess), 0.5 * abs(geodesic[6] - guess[6]))


@kernel_function
def refine_geodesic(kind, sizes, p, q, out, warm_inout, scratch):
    """Replace the path in `out` by the geodesic near it; return False, and keep it, if none is found.

    `warm_inout` is the last geodesic (x, t, length, valid).
    """
    radius = (sizes[0] + sizes[1] + sizes[2]) / 3.0 if kind == ELLIPSOID else sizes[0]
    on_p = kind == ELLIPSOID and abs(_off_surface(p[0], p[1], p[2], sizes)) < ON_SURFACE
    on_q = kind == ELLIPSOID and abs(_off_surface(q[0], q[1], q[2], sizes)) < ON_SURFACE
    near = WARM_DISTANCE * radius
    if warm_inout[7] > 0.0 and not on_p and _guess_error(warm_inout, out) < near:
        if solve_geodesic(kind, sizes, p, q, on_p, on_q, MAX_STEP * radius, warm_inout, scratch) == CONVERGED:
            if _guess_error(warm_inout, out) < near:
                _take_geodesic(warm_inout, scratch, out)
                return True
    dx, dy, dz = out[0] - p[0], out[1] - p[1], out[2] - p[2]
    if on_p or dx * dx + dy * dy + dz * dz < 1e-18:
        dx, dy, dz = out[3] - out[0], out[4] - out[1], out[5] - out[2]
    size = sqrt(dx * dx + dy * dy + dz * dz)
    warm_inout[7] = 0.0
    if size == 0.0:
        return True  # the path touches the surface in one point
    warm_inout[0], warm_inout[1], warm_inout[2] = out[0], out[1], out[2]
    warm_inout[3], warm_inout[4], warm_inout[5], warm_inout[6] = dx / size, dy / size, dz / size, out[6]
    found = solve_geodesic(kind, sizes, p, q, on_p, on_q, MAX_STEP * radius, warm_inout, scratch) == CONVERGED
    if not found or _guess_error(warm_inout, out) > SUSPECT_DISTANCE * radius:
        found = _from_string(kind, sizes, p, q, on_p, on_q, MAX_STEP * radius, found, out, warm_inout, scratch)
    if found:
        warm_inout[7] = 1.0
        _take_geodesic(warm_inout, scratch, out)
    return found


@kernel_function
def _from_string(kind, sizes, p, q, on_p, on_q, max_step, found, out, warm_inout, scratch):
    """Solve again from a string pulled tight; keep the shorter geodesic. Returns whether there is one."""
    first = scratch[8]
    for i in range(7):
        first[i] = warm_inout[i]
    length = _whole_length(p, q, warm_inout, scratch[0]) if found else 1e300
    if tighten_string(kind, sizes, p, q, out, scratch[9:, :3], warm_inout):
        again = solve_geodesic(kind, sizes, p, q, on_p, on_q, max_step, warm_inout, scratch) == CONVERGED
        if again and (not found or _whole_length(p, q, warm_inout, scratch[0]) <= length):
            return True
    if found:
        for i in range(7):
            warm_inout[i] = first[i]
        shoot(kind, sizes, warm_inout, scratch[0])
    return found


@inline
def _whole_length(p, q, start, end):
    return _apart(p, start) + start[6] + _apart(end, q)


@inline
def _take_geodesic(warm, scratch, out):
    for i in range(3):
        out[i], out[3 + i] = warm[i], scratch[0, i]
    out[6] = warm[6]


@kernel_function
def follow_wrap(kind, sizes, side, p, q, out, warm_inout, scratch):
    """Fill out as `wrap_segment` for moved ends of a segment that stays wrapped on its side; return False if it cannot.

    Ends may not be inside the surface, and the arc over it may not pass zero.
    """
    px, py, pz, qx, qy, qz, before = p[0], p[1], p[2], q[0], q[1], q[2], out[6]
    if kind == ELLIPSOID or kind == TORUS:
        on_p = kind == ELLIPSOID and abs(_off_surface(px, py, pz, sizes)) < ON_SURFACE
        on_q = kind == ELLIPSOID and abs(_off_surface(qx, qy, qz, sizes)) < ON_SURFACE
        if warm_inout[7] == 0.0 or on_p:
            return False
        if solve_geodesic(kind, sizes, p, q, on_p, on_q, sizes[0], warm_inout, scratch) != CONVERGED:
            return False
        _take_geodesic(warm_inout, scratch, out)
        return True
    square = px * px + py * py, qx * qx + qy * qy
    if kind == SPHERE:
        square = square[0] + pz * pz, square[1] + qz * qz
    if min(square[0], square[1]) < sizes[0] * sizes[0]:
        return False
    if kind == SPHERE:
        sphere_path(px, py, pz, qx, qy, qz, sizes[0], side, out)
    else:
        cylinder_path(px, py, pz, qx, qy, qz, sizes[0], side, out)
    return abs(out[6] - before) < 3.0 * sizes[0]


@kernel_function
def wrap_tendon(kind, sizes, has_side, side, p, q, out):
    """Fill out as `wrap_segment`, by MuJoCo's rules; cylinders are endless."""
    return tendon_path(
        p[0], p[1], p[2], q[0], q[1], q[2], sizes[0], kind == SPHERE, has_side, side[0], side[1], side[2], out
    )
