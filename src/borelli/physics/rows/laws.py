"""Force-velocity laws of rows: the target manifolds of Liu, Cooper and Ballard (Fig. 14, 15).

Each is a non-increasing polyline of impulse over velocity. `c` is the target velocity of the row, `beta` its
compliance, `lo <= p <= hi` the bounds of the impulse (force times step).
"""

from __future__ import annotations

from borelli.kernels.jit import inline, kernel_function
from borelli.physics.rows.rows import FLAT


@kernel_function
def no_law(rows, k):
    """Remove row k from the step."""
    rows.pieces[k] = 0


@inline
def put_piece(rows, k, s, beta, c):
    """Write piece s of row k."""
    rows.beta[k, s] = beta
    rows.c[k, s] = c


@inline
def put_break(rows, k, s, u, p):
    """Write the break after piece s of row k."""
    rows.break_u[k, s] = u
    rows.break_p[k, s] = p


@kernel_function
def soft_law(rows, k, c, beta):
    """Write one sloped piece, u = c - beta p, for joints and marker springs; hard when beta = 0."""
    rows.pieces[k] = 1
    put_piece(rows, k, 0, beta, c)


@inline
def fixed_impulse(rows, k, p):
    """Write one flat piece: the impulse is p at any velocity."""
    rows.pieces[k] = 1
    put_piece(rows, k, 0, FLAT, p)


@kernel_function
def bounded_law(rows, k, c, beta, lo, hi):
    """Write a slope between two bounds, for drives, friction and residuals."""
    rows.pieces[k] = 3
    put_piece(rows, k, 0, FLAT, hi)
    put_piece(rows, k, 1, beta, c)
    put_piece(rows, k, 2, FLAT, lo)
    put_break(rows, k, 0, c - beta * hi, hi)
    put_break(rows, k, 1, c - beta * lo, lo)


@kernel_function
def one_sided_law(rows, k, c, beta):
    """Write p >= 0 acting only to keep u from falling below c, for contacts and joint limits."""
    rows.pieces[k] = 2
    put_piece(rows, k, 0, beta, c)
    put_piece(rows, k, 1, FLAT, 0.0)
    put_break(rows, k, 0, c, 0.0)
