"""Prediction of the velocities along rows that position correction will add.

Velocities that satisfy the rows at the start of a step miss the poses at its end by the curvature of the bodies' paths,
of second order in the step. It changes little from one step to the next: extrapolated from the last three steps in
stage 4, it leaves a thousandth of the errors to corrections, which converge to the same poses.
"""

from __future__ import annotations

from borelli.kernels.jit import inline, inline_into_caller
from borelli.physics.arrays.indices import DRIVE_ROWS, LIMIT_ROWS, ROWS_END


@inline
def _is_equation(ranges, rows, k):
    """Return True if row k prescribes a velocity: of a joint, a coupling or a control."""
    return k < ranges[LIMIT_ROWS] or (k >= ranges[DRIVE_ROWS] and rows.pieces[k] == 1 and rows.beta[k, 0] >= 0.0)


@inline_into_caller
def predict_curvature(ranges, history, rows, curvature):
    """Add the velocities along rows that corrections will add, extrapolated from the last steps."""
    known, past = history.curvature_count[0], history.curvature
    for k in range(ranges[ROWS_END]):
        curvature[k] = 0.0
        if known > 0 and _is_equation(ranges, rows, k):
            if known == 1:
                curvature[k] = past[0, k]
            elif known == 2:
                curvature[k] = 2.0 * past[0, k] - past[1, k]
            else:
                curvature[k] = 3.0 * (past[0, k] - past[1, k]) + past[2, k]
            rows.c[k, 0] += curvature[k]


@inline_into_caller
def require_curvature(ranges, rows, curvature):
    """Add the predicted velocities to rows that were written again."""
    for k in range(ranges[ROWS_END]):
        if _is_equation(ranges, rows, k):
            rows.c[k, 0] += curvature[k]


@inline_into_caller
def add_curvature(ranges, rows, curvature):
    """Add the velocities that this correction requires."""
    for k in range(ranges[ROWS_END]):
        if _is_equation(ranges, rows, k):
            curvature[k] += rows.c[k, 0]


@inline_into_caller
def store_curvature(ranges, history, curvature, is_valid):
    """Store the curvature of this step, or discard all if it is not valid."""
    if not is_valid:
        history.curvature_count[0] = 0
        return
    past = history.curvature
    for k in range(ranges[ROWS_END]):
        past[2, k] = past[1, k]
        past[1, k] = past[0, k]
        past[0, k] = curvature[k]
    history.curvature_count[0] = min(history.curvature_count[0] + 1, 3)
