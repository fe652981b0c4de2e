"""Laws of five pieces that test the solver beyond those of the steps: a tolerated error and two slopes."""

from __future__ import annotations

from borelli.physics.rows.rows import FLAT, Rows


def _write(rows: Rows, k: int, pieces: list[tuple[float, float]], breaks: list[tuple[float, float]]) -> None:
    """Write (beta, c) of each piece and (u, p) of each break."""
    rows.pieces[k] = len(pieces)
    rows.beta[k], rows.c[k] = zip(*pieces, strict=True)
    rows.break_u[k], rows.break_p[k] = zip(*breaks, strict=True)


def dead_zone_law(rows: Rows, k: int, c: float, width: float, beta: float, lo: float, hi: float) -> None:
    """Write zero impulse while u is within `width` of c and a bounded slope beyond: a tolerated error."""
    left, right = c - width, c + width
    pieces = [(FLAT, hi), (beta, left), (FLAT, 0.0), (beta, right), (FLAT, lo)]
    _write(rows, k, pieces, [(left - beta * hi, hi), (left, 0.0), (right, 0.0), (right - beta * lo, lo)])


def two_rate_law(
    rows: Rows,
    k: int,
    c: float,
    width: float,
    beta: float,
    inner_c: float,
    inner_beta: float,
    lo: float,
    hi: float,
) -> None:
    """Write another target (inner_c, inner_beta) within `width` of c, and a return with slope beta outside.

    With inner_c = c and inner_beta > beta this is a spring that stiffens; with another inner_c, a secondary target.
    The polyline is continuous: the outer pieces start from the impulses of the inner one at its ends.
    """
    left, right = c - width, c + width
    p_left, p_right = (inner_c - left) / inner_beta, (inner_c - right) / inner_beta
    outer = [(beta, left + beta * p_left), (beta, right + beta * p_right)]
    pieces = [(FLAT, hi), outer[0], (inner_beta, inner_c), outer[1], (FLAT, lo)]
    ends = [(left - beta * (hi - p_left), hi), (right - beta * (lo - p_right), lo)]
    _write(rows, k, pieces, [ends[0], (left, p_left), (right, p_right), ends[1]])
