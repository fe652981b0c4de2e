"""Laws: the target manifolds of seed 004 (Fig. 14, 15) written into a row.

Each is a non-increasing polyline of impulse against velocity. `c` is the velocity the row aims at, `beta` its
compliance, `lo <= p <= hi` the bounds on the impulse (force times step).
"""

from __future__ import annotations

from borelli.kernels.jit import kernel_function
from borelli.physics.rows.rows import FLAT


@kernel_function
def no_law(rows, k):
    """Take row k out of the step."""
    rows.segments[k] = 0


@kernel_function
def soft_law(rows, k, c, beta):
    """One sloped segment, u = c - beta p: joints, marker anchors; hard when beta = 0."""
    rows.segments[k] = 1
    rows.beta[k, 0] = beta
    rows.c[k, 0] = c


@kernel_function
def bounded_law(rows, k, c, beta, lo, hi):
    """Sloped between two bounds: drives, friction, residuals."""
    rows.segments[k] = 3
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
    """Push only (p >= 0) and only to keep u from falling below c: contacts, stops."""
    rows.segments[k] = 2
    rows.beta[k, 0] = beta
    rows.c[k, 0] = c
    rows.beta[k, 1] = FLAT
    rows.c[k, 1] = 0.0
    rows.break_u[k, 0] = c
    rows.break_p[k, 0] = 0.0


@kernel_function
def dead_zone_law(rows, k, c, width, beta, lo, hi):
    """No impulse while u is within `width` of c; beyond it a bounded slope: a tolerated error."""
    rows.segments[k] = 5
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
    """Within `width` of c follow another target (inner_c, inner_beta); outside, return with slope beta.

    With inner_c = c and inner_beta > beta this is a spring that stiffens; with another inner_c, a secondary target.
    The polyline is continuous: the outer segments start from the impulses the inner one has at its ends.
    """
    left, right = c - width, c + width
    p_left = (inner_c - left) / inner_beta
    p_right = (inner_c - right) / inner_beta
    rows.segments[k] = 5
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
