"""Force-velocity laws of rows: the target manifolds of Liu, Cooper and Ballard (Fig. 14, 15).

Each is a non-increasing polyline of impulse over velocity. `c` is the target velocity of the row, `beta` its
compliance, `lo <= p <= hi` the bounds of the impulse (force times step).
"""

from __future__ import annotations

from borelli.kernels.jit import kernel_function
from borelli.physics.rows.rows import FLAT


@kernel_function
def no_law(rows, k):
    """Remove row k from the step."""
    rows.pieces[k] = 0


@kernel_function
def soft_law(rows, k, c, beta):
    """Write one sloped piece, u = c - beta p, for joints and marker springs; hard when beta = 0."""
    rows.pieces[k] = 1
    rows.beta[k, 0] = beta
    rows.c[k, 0] = c


@kernel_function
def bounded_law(rows, k, c, beta, lo, hi):
    """Write a slope between two bounds, for drives, friction and residuals."""
    rows.pieces[k] = 3
    rows.beta[k, 0] = FLAT
    rows.c[k, 0] = hi
    rows.beta[k, 1] = beta
    rows.c[k, 1] = c
    rows.beta[k, 2] = FLAT
    rows.c[k, 2] = lo
    rows.break_u[k, 0] = c - beta * hi
    rows.break_p[k, 0] = hi
    rows.break_u[k, 1] = c - beta * lo
    rows.break_p[k, 1] = lo


@kernel_function
def one_sided_law(rows, k, c, beta):
    """Write p >= 0 acting only to keep u from falling below c, for contacts and joint limits."""
    rows.pieces[k] = 2
    rows.beta[k, 0] = beta
    rows.c[k, 0] = c
    rows.beta[k, 1] = FLAT
    rows.c[k, 1] = 0.0
    rows.break_u[k, 0] = c
    rows.break_p[k, 0] = 0.0


@kernel_function
def dead_zone_law(rows, k, c, width, beta, lo, hi):
    """Write zero impulse while u is within `width` of c and a bounded slope beyond: a tolerated error."""
    rows.pieces[k] = 5
    rows.beta[k, 0] = FLAT
    rows.c[k, 0] = hi
    rows.beta[k, 1] = beta
    rows.c[k, 1] = c - width
    rows.beta[k, 2] = FLAT
    rows.c[k, 2] = 0.0
    rows.beta[k, 3] = beta
    rows.c[k, 3] = c + width
    rows.beta[k, 4] = FLAT
    rows.c[k, 4] = lo
    rows.break_u[k, 0] = c - width - beta * hi
    rows.break_p[k, 0] = hi
    rows.break_u[k, 1] = c - width
    rows.break_p[k, 1] = 0.0
    rows.break_u[k, 2] = c + width
    rows.break_p[k, 2] = 0.0
    rows.break_u[k, 3] = c + width - beta * lo
    rows.break_p[k, 3] = lo


@kernel_function
def two_rate_law(rows, k, c, width, beta, inner_c, inner_beta, lo, hi):
    """Write another target (inner_c, inner_beta) within `width` of c, and a return with slope beta outside.

    With inner_c = c and inner_beta > beta this is a spring that stiffens; with another inner_c, a secondary target.
    The polyline is continuous: the outer pieces start from the impulses of the inner one at its ends.
    """
    left, right = c - width, c + width
    p_left = (inner_c - left) / inner_beta
    p_right = (inner_c - right) / inner_beta
    rows.pieces[k] = 5
    rows.beta[k, 0] = FLAT
    rows.c[k, 0] = hi
    rows.beta[k, 1] = beta
    rows.c[k, 1] = left + beta * p_left
    rows.beta[k, 2] = inner_beta
    rows.c[k, 2] = inner_c
    rows.beta[k, 3] = beta
    rows.c[k, 3] = right + beta * p_right
    rows.beta[k, 4] = FLAT
    rows.c[k, 4] = lo
    rows.break_u[k, 0] = left - beta * (hi - p_left)
    rows.break_p[k, 0] = hi
    rows.break_u[k, 1] = left
    rows.break_p[k, 1] = p_left
    rows.break_u[k, 2] = right
    rows.break_p[k, 2] = p_right
    rows.break_u[k, 3] = right - beta * (lo - p_right)
    rows.break_p[k, 3] = lo
