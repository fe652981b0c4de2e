"""Wrapping over a torus: through its hole, at the point of its center circle that is nearest to the segment.

As in OpenSim, a cylinder along the circle's tangent there decides whether a segment wraps: the path passes it on the
side of the torus's axis. OpenSim's search for the nearest point has a factor of two too much in its derivative;
`opensim` reproduces it.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.muscles.path_kernels.opensim_rules import sign_of

SAMPLES = 24
"""Points of the segment among which the search for the nearest one begins."""
MAX_ITERATIONS = 60
STEP_TOLERANCE = 1e-14
"""Relative step along the segment at which the search ends."""


@inline
def _distance(px, py, pz, dx, dy, dz, radius, u):
    """Return the squared distance of the point p + u d from the circle."""
    x, y, z = px + u * dx, py + u * dy, pz + u * dz
    rho = sqrt(x * x + y * y)
    return (rho - radius) * (rho - radius) + z * z


@inline
def _slope(px, py, pz, dx, dy, dz, radius, u):
    """Return half the derivative of the squared distance by u, and its own derivative."""
    x, y, z = px + u * dx, py + u * dy, pz + u * dz
    rho = max(sqrt(x * x + y * y), 1e-12)
    inner = x * dx + y * dy
    flat = dx * dx + dy * dy
    first = inner + z * dz - radius * inner / rho
    return first, flat + dz * dz - radius * (flat / rho - inner * inner / (rho * rho * rho))


@kernel_function
def _descend(px, py, pz, dx, dy, dz, radius, u):
    """Return the zero of the slope that Newton, with halved steps, reaches from u."""
    f, df = _slope(px, py, pz, dx, dy, dz, radius, u)
    for _ in range(MAX_ITERATIONS):
        if df == 0.0:
            break
        step = -f / df
        new, new_df = f, df
        for _ in range(30):
            new, new_df = _slope(px, py, pz, dx, dy, dz, radius, u + step)
            if abs(new) < abs(f):
                break
            step *= 0.5
        if not abs(new) < abs(f):
            break
        u, f, df = u + step, new, new_df
        if abs(step) < STEP_TOLERANCE * (1.0 + abs(u)):
            break
    return u


@kernel_function
def nearest_circle_point(px, py, pz, qx, qy, qz, radius, axis, allowed, opensim):
    """Return whether a half of the torus is allowed, and the direction (x, y) of the nearest point of the circle."""
    dx, dy, dz = qx - px, qy - py, qz - pz
    if opensim:
        u = _descend(px, py, pz, dx, dy, dz, 2.0 * radius, 0.0)
        v = 1.0 - _descend(qx, qy, qz, -dx, -dy, -dz, 2.0 * radius, 0.0)
    else:
        u, best = 0.0, 1e300
        for i in range(SAMPLES + 1):
            far = _distance(px, py, pz, dx, dy, dz, radius, i / SAMPLES)
            if far < best:
                u, best = i / SAMPLES, far
        u = _descend(px, py, pz, dx, dy, dz, radius, u)
        v = u
    better = u if _distance(px, py, pz, dx, dy, dz, radius, u) < _distance(px, py, pz, dx, dy, dz, radius, v) else v
    if allowed != 0 and axis < 2:
        at_u = sign_of((px + u * dx) if axis == 0 else (py + u * dy)) == allowed
        at_v = sign_of((px + v * dx) if axis == 0 else (py + v * dy)) == allowed
        if not (at_u or at_v):
            return False, 1.0, 0.0
        if at_u != at_v:
            better = u if at_u else v
    x, y = px + better * dx, py + better * dy
    rho = sqrt(x * x + y * y)
    if rho == 0.0:
        return False, 1.0, 0.0
    return True, x / rho, y / rho
