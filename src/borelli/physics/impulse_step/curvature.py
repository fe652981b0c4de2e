"""Prediction of the velocities along rows that position correction will add.

Velocities that satisfy the rows at the start of a step miss the poses at its end by the curvature of the bodies' paths,
of second order in the step. It changes little from one step to the next: extrapolated from the last three steps in
stage 4, it leaves a thousandth of the errors to corrections, which converge to the same poses.
"""

from __future__ import annotations

from borelli.kernels.jit import inline, inline_into_caller
from borelli.physics.arrays.indices import DRIVE_ROWS, LIMIT_ROWS, ROWS_END

BOUNDED_PIECES = 3
"""Number of pieces of the law of a control with a force limit; the second prescribes its velocity."""


@inline
def _velocity_piece(ranges, rows, k):
    """Return the piece of row k's law that prescribes a velocity, of a joint, a coupling or a control; -1: none."""
    if k < ranges[LIMIT_ROWS]:
        return 0
    if k >= ranges[DRIVE_ROWS]:
        if rows.pieces[k] == 1 and rows.beta[k, 0] >= 0.0:
            return 0
        if rows.pieces[k] == BOUNDED_PIECES:
            return 1
    return -1


@inline
def _shift_law(rows, k, s, u):
    """Shift the velocity that piece s of row k prescribes, and the breaks next to it."""
    rows.c[k, s] += u
    if s > 0:
        rows.break_u[k, s - 1] += u
        rows.break_u[k, s] += u


@inline_into_caller
def predict_curvature(ranges, history, rows, most, curvature):
    """Add the velocities along rows that corrections will add, extrapolated from at most `most` of the last steps."""
    known, past = min(history.curvature_count[0], most), history.curvature
    for k in range(ranges[ROWS_END]):
        curvature[k] = 0.0
        piece = _velocity_piece(ranges, rows, k)
        if known > 0 and piece >= 0:
            if known == 1:
                curvature[k] = past[0, k]
            elif known == 2:
                curvature[k] = 2.0 * past[0, k] - past[1, k]
            else:
                curvature[k] = 3.0 * (past[0, k] - past[1, k]) + past[2, k]
            _shift_law(rows, k, piece, curvature[k])


@inline_into_caller
def require_curvature(ranges, rows, curvature):
    """Add the predicted velocities to rows that were written again."""
    for k in range(ranges[ROWS_END]):
        piece = _velocity_piece(ranges, rows, k)
        if piece >= 0:
            _shift_law(rows, k, piece, curvature[k])


@inline_into_caller
def add_curvature(ranges, rows, curvature):
    """Add the velocities that this correction requires."""
    for k in range(ranges[ROWS_END]):
        piece = _velocity_piece(ranges, rows, k)
        if piece >= 0:
            curvature[k] += rows.c[k, piece]


@inline_into_caller
def forget_saturated(joints, controls, stages, history):
    """Set the curvature of controls that do not reach their targets to zero: no correction measures it."""
    for n in range(len(controls.every)):
        i = controls.every[n]
        if not stages.feasible[i]:
            k = joints.drive_row[i]
            stages.curvature[k] = 0.0
            for s in range(3):
                history.curvature[s, k] = 0.0


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
