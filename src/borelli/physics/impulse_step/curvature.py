"""What correcting positions will add to the velocities along rows, foreseen.

Velocities that obey the rows where a step begins miss the poses at its end by the bend of the bodies' paths, of second
order in the step. It changes little from one step to the next: the parabola through the last three, asked for in stage
4, leaves to corrections a thousandth of the errors. What they end in is the same.
"""

from __future__ import annotations

from borelli.kernels.jit import inline, inline_into_caller


@inline
def _is_equation(ranges, rows, k):
    """Whether row k is of a joint, a coupling or a control that must have a velocity."""
    return k < ranges[2] or (k >= ranges[3] and rows.pieces[k] == 1 and rows.beta[k, 0] >= 0.0)


@inline_into_caller
def expect_bend(ranges, memory, rows, bend):
    """Ask for the velocities along rows that corrections will add, as far as the last steps tell."""
    known, past = memory.bends[0], memory.bend
    for k in range(ranges[4]):
        bend[k] = 0.0
        if known > 0 and _is_equation(ranges, rows, k):
            if known == 1:
                bend[k] = past[0, k]
            elif known == 2:
                bend[k] = 2.0 * past[0, k] - past[1, k]
            else:
                bend[k] = 3.0 * (past[0, k] - past[1, k]) + past[2, k]
            rows.c[k, 0] += bend[k]


@inline_into_caller
def add_bend(ranges, rows, bend):
    """Add what this correction asks for."""
    for k in range(ranges[4]):
        if _is_equation(ranges, rows, k):
            bend[k] += rows.c[k, 0]


@inline_into_caller
def remember_bend(ranges, memory, bend, found):
    """Keep this step's; all is forgotten if it was not found."""
    if not found:
        memory.bends[0] = 0
        return
    past = memory.bend
    for k in range(ranges[4]):
        past[2, k] = past[1, k]
        past[1, k] = past[0, k]
        past[0, k] = bend[k]
    memory.bends[0] = min(memory.bends[0] + 1, 3)
