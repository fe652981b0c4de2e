"""Curves made of quintic Bezier corners (Millard et al. 2013, appendix), solved for their parameter by Newton.

A corner runs from (x0, y0) to (x1, y1). Its end tangents meet at C, and its control points are

    P0, P0 + c (C - P0) twice, P1 + c (C - P1) twice, P1

so that value, slope and curvature are continuous from corner to corner. x(u) increases from u = 0 to 1. A corner is
stored as 13 numbers: the coefficients of x(u), those of y(u), both of rising powers of u, and x1.
"""

from __future__ import annotations

from borelli.kernels.jit import inline, kernel_function

CORNER_SIZE = 13
"""Numbers of a corner."""
END = 12
"""Position of x1 among them."""
MAX_ITERATIONS = 60
"""Bisection alone needs 53 for all digits of u."""


@inline
def _polynomial(row, first, u):
    """Return value and derivative of the polynomial whose six coefficients begin at `first`."""
    value, slope = row[first + 5], 0.0
    for k in range(4, -1, -1):
        slope = slope * u + value
        value = value * u + row[first + k]
    return value, slope


@inline
def _solve_parameter(row, first, target, begin, end):
    """Return u in [0, 1] at which the increasing polynomial from `begin` to `end` equals the target."""
    low, high = 0.0, 1.0
    u = (target - begin) / (end - begin)
    tolerance = 1e-16 * (abs(begin) + abs(end))
    for _ in range(MAX_ITERATIONS):
        value, slope = _polynomial(row, first, u)
        error = value - target
        if abs(error) <= tolerance:
            break
        if error > 0.0:
            high = u
        else:
            low = u
        following = u - error / slope if slope > 0.0 else 2.0
        if not (low < following < high):
            following = 0.5 * (low + high)
        if following == u:
            break
        u = following
    return u


@kernel_function
def evaluate_corners(row, first, corners, x):
    """Return value and slope of a curve at x, extended by its end tangents."""
    last = first + CORNER_SIZE * (corners - 1)
    if x <= row[first]:
        slope = row[first + 7] / row[first + 1]
        return row[first + 6] + slope * (x - row[first]), slope
    if x >= row[last + END]:
        y, dy = _polynomial(row, last + 6, 1.0)
        dx = _polynomial(row, last, 1.0)[1]
        return y + dy / dx * (x - row[last + END]), dy / dx
    k = first
    while x > row[k + END]:
        k += CORNER_SIZE
    u = _solve_parameter(row, k, x, row[k], row[k + END])
    y, dy = _polynomial(row, k + 6, u)
    dx = _polynomial(row, k, u)[1]
    return y, dy / dx


@kernel_function
def invert_corners(row, first, corners, y):
    """Return x at which an increasing curve equals y; the end of the curve where y is beyond its values."""
    last = first + CORNER_SIZE * (corners - 1)
    if y <= row[first + 6]:
        return row[first]
    k = first
    top = _polynomial(row, k + 6, 1.0)[0]
    while y > top:
        if k == last:
            return row[last + END]
        k += CORNER_SIZE
        top = _polynomial(row, k + 6, 1.0)[0]
    u = _solve_parameter(row, k + 6, y, row[k + 6], top)
    return min(_polynomial(row, k, u)[0], row[k + END])
