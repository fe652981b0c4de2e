"""Iterative refinement: defects of momentum balance and laws, and the correction that removes them.

Solving for the defects instead of the solution restores the digits that tiny slopes lose. It cannot restore all:
where rows are redundant only beta determines how they share the load, so their impulses have a rounding error of
1e-16 u/beta, 1e-6 N s at beta = 1e-10. A sloped row on a kink may then end beyond its piece though its velocity is
right; `refine` puts it on the break, which moves its velocity by beta times as much.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import DIAGONAL, axpy6, dot6, load6, load21, multiply6, store6
from borelli.physics.solver.elimination import factor_bodies_by_pointer, solve_factored_by_pointer
from borelli.physics.solver.elimination_order import DIRTY, POSITION, mark_for_factoring
from borelli.physics.solver.factor_arrays import (
    ABSENT,
    ACTIVE_PIECE,
    BETA,
    FLAT_ROW,
    FOLDED,
    IMPULSE,
    KIND,
    MASS,
    MODE,
    MOMENTUM,
    OWNER,
    P_NOW,
    RIGHT,
    SOLUTION,
    U_NOW,
    VELOCITY,
    C,
    use_piece,
)

IMPULSE_TOLERANCE = 1e-12
LAW_TOLERANCE = 1e-11
"""Velocity defect of a row, of the largest velocity: a flat row within it of its break stays flat."""
ROUNDING_UNIT = 1e-15
"""Rounding error of velocities caused by impulses, of the largest impulse."""
MAX_ROUNDING_ERROR = 1e-8
"""Largest velocity error attributed to rounding, of the largest velocity."""
DAMPING = 1e-4
"""Slope added to redundant rows, of J M^-1 J^T."""
LARGE_CHANGE = 1e-9
"""Relative change of impulses after which one correction is not enough."""
MAX_ROUNDS = 20


@inline
def row_velocity(rows, node, block, at, k):
    """Return the velocity u of row k for the velocities in column `at` of the blocks."""
    s = rows.offset[k]
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            s += dot6(load6(rows.jacobian, e, 0), load6(block, node[rows.body[e], POSITION], at))
    return s


@inline
def apply_impulse(rows, node, block, k, p):
    """Add the impulse p of row k to the right side of its bodies."""
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            position = node[rows.body[e], POSITION]
            store6(block, position, RIGHT, axpy6(p, load6(rows.jacobian, e, 0), load6(block, position, RIGHT)))


@inline
def row_response(rows, node, block, k):
    """Return J M^-1 J^T of row k with the diagonal of M: a scale, not a solve."""
    total = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            position = node[rows.body[e], POSITION]
            for i in range(6):
                total += rows.jacobian[e, i] ** 2 / block[position, MASS + DIAGONAL[i]]
    return total


@inline
def switch_piece(rows, node, mark, value, column, k, s):
    """Make piece s of row k active and mark its owner for factorization (from flat to flat no factor changes)."""
    if mark[k, MODE] != FLAT_ROW or rows.beta[k, s] >= 0.0:
        node[column[mark[k, OWNER]], DIRTY] = 1
    mark[k, ACTIVE_PIECE] = s
    use_piece(rows, mark, value, k, s)


@kernel_function
def load_defects(rows, graph, factor):
    """Load r + J^T p - M v of the iterate into RIGHT, u into U_NOW, and c - u - beta p of one-piece rows into C."""
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    for k in range(graph.count[0]):
        v = load6(block, k, VELOCITY)
        store6(block, k, RIGHT, axpy6(-1.0, multiply6(load21(block, k, MASS), v), load6(block, k, MOMENTUM)))
    for k in range(rows.used[0]):
        if mark[k, KIND] == ABSENT:
            continue
        p = value[k, P_NOW]
        apply_impulse(rows, node, block, k, p)
        u = row_velocity(rows, node, block, VELOCITY, k)
        value[k, U_NOW] = u
        if rows.pieces[k] == 1 and mark[k, MODE] != FLAT_ROW:
            load_row_defect(rows, node, block, mark, value, k, rows.c[k, 0] - u - rows.beta[k, 0] * p)


@inline
def load_row_defect(rows, node, block, mark, value, k, defect):
    """Make `defect` the right side of row k."""
    value[k, C] = defect
    if mark[k, MODE] == FOLDED:
        apply_impulse(rows, node, block, k, defect / value[k, BETA])


@inline
def _load_state(rows, graph, factor):
    """Make SOLUTION and IMPULSE the iterate to be corrected, and its defects the right sides."""
    block, mark, value = factor.block, factor.mark, factor.value
    for k in range(graph.count[0]):
        store6(block, k, VELOCITY, load6(block, k, SOLUTION))
    for k in range(rows.used[0]):
        value[k, P_NOW] = value[k, IMPULSE]
    load_defects(rows, graph, factor)
    for k in range(rows.used[0]):
        if rows.pieces[k] > 1 and mark[k, MODE] >= FOLDED:
            s = mark[k, ACTIVE_PIECE]
            defect = rows.c[k, s] - value[k, U_NOW] - rows.beta[k, s] * value[k, P_NOW]
            load_row_defect(rows, graph.node, block, mark, value, k, defect)


@inline
def _add_changes(rows, block, mark, value, count):
    """Add the solution to the iterate; return the largest relative change of impulse."""
    for k in range(count):
        store6(block, k, SOLUTION, axpy6(1.0, load6(block, k, VELOCITY), load6(block, k, SOLUTION)))
    largest, change = 0.0, 0.0
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            change = max(change, abs(value[k, IMPULSE]))
            value[k, IMPULSE] += value[k, P_NOW]
            largest = max(largest, abs(value[k, IMPULSE]))
            value[k, C] = rows.c[k, mark[k, ACTIVE_PIECE]] - rows.offset[k]
    return change / largest if largest > 0.0 else 0.0


@inline
def _scales(rows, block, mark, value, count):
    """Return the largest velocity and the largest impulse."""
    speed, largest = 0.0, 0.0
    for k in range(count):
        for i in range(6):
            speed = max(speed, abs(block[k, SOLUTION + i]))
    for k in range(rows.used[0]):
        if mark[k, MODE] != ABSENT:
            largest = max(largest, abs(value[k, IMPULSE]))
    return speed, largest


@inline
def _velocity_resolution(speed, drive):
    """Return the velocity error to tolerate when the impulses could drive the row at `drive`."""
    return min(max(LAW_TOLERANCE * speed, ROUNDING_UNIT * drive), MAX_ROUNDING_ERROR * speed)


@kernel_function
def _snap_to_breaks(rows, graph, factor, softened):
    """Move rows that ended beyond their piece to the break; return their number, -1 if one is too far for rounding.

    Where two sloped pieces meet, a point just beyond is still on the law to within the change of slope. With softened
    slopes rows move any distance.
    """
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    speed, largest = _scales(rows, block, mark, value, graph.count[0])
    moved = 0
    for k in range(rows.used[0]):
        last = rows.pieces[k] - 1
        if last < 1:
            continue
        s = mark[k, ACTIVE_PIECE]
        to, beyond = s, 0.0
        if mark[k, MODE] == FLAT_ROW:
            u = row_velocity(rows, node, block, SOLUTION, k)
            if s > 0 and u < rows.break_u[k, s - 1]:
                to, beyond = s - 1, rows.break_u[k, s - 1] - u
            elif s < last and u > rows.break_u[k, s]:
                to, beyond = s + 1, u - rows.break_u[k, s]
            if to != s and beyond <= _velocity_resolution(speed, largest * row_response(rows, node, block, k)):
                to = s
        else:
            p = value[k, IMPULSE]
            slack = IMPULSE_TOLERANCE * (1.0 + abs(p))
            if s > 0 and p > rows.break_p[k, s - 1] + slack:
                to = s - 1
            elif s < last and p < rows.break_p[k, s] - slack:
                to = s + 1
            if to != s and rows.beta[k, to] >= 0.0:
                beyond = abs(rows.c[k, s] - rows.c[k, to] - (rows.beta[k, s] - rows.beta[k, to]) * p)
                if beyond <= LAW_TOLERANCE * speed:
                    to = s
            elif to != s:
                beyond = rows.beta[k, s] * abs(p - rows.break_p[k, min(s, to)])
        if to == s:
            continue
        if beyond > MAX_ROUNDING_ERROR * speed and not softened:
            return -1
        moved += 1
        switch_piece(rows, node, mark, value, factor.column, k, to)
        value[k, IMPULSE] = rows.break_p[k, min(s, to)]
    return moved


@kernel_function
def _laws_hold(rows, graph, factor):
    """Return True if every sloped row has the velocity that its law gives for its impulse."""
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    speed, largest = _scales(rows, block, mark, value, graph.count[0])
    for k in range(rows.used[0]):
        if mark[k, MODE] < FOLDED:
            continue
        s = mark[k, ACTIVE_PIECE]
        u = row_velocity(rows, node, block, SOLUTION, k)
        defect = abs(rows.c[k, s] - u - rows.beta[k, s] * value[k, IMPULSE])
        if not defect <= LAW_TOLERANCE * speed:
            if not defect <= _velocity_resolution(speed, largest * row_response(rows, node, block, k)):
                return False
    return True


@inline
def _soften(rows, graph, block, mark, value, damping):
    """Raise the active slopes and mark every position for factorization."""
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            slope = rows.beta[k, mark[k, ACTIVE_PIECE]]
            if slope > 0.0:
                slope += damping * row_response(rows, graph.node, block, k)
            value[k, BETA] = slope
    mark_for_factoring(graph, 1)


@kernel_function
def refine(pointers, work):
    """Correct velocities and impulses until every row is on its piece; return factorizations used, -1 if it failed.

    Usually the present factors suffice. If a row ends beyond its piece, or the state comes without factors (a position
    is dirty), slopes are raised by a small fraction of J M^-1 J^T in new factors, not in the defects: impulses of
    redundant rows then stay as they are instead of following the rounding of velocities divided by beta. The defect of
    the laws ends below LAW_TOLERANCE; for nearly redundant rows that takes a smaller fraction. Those factors cannot be
    reused: every position is left dirty.
    """
    rows, graph, factor = load_shared(work.rows, work.graph, work.factor)
    node, block, mark, value, count = graph.node, factor.block, factor.mark, factor.value, graph.count[0]
    softened = False
    for k in range(count):
        softened = softened or node[k, DIRTY] != 0
    used, damping, laws_hold = 0, DAMPING, False
    for round_index in range(MAX_ROUNDS):
        if softened:
            used += 1
            _soften(rows, graph, block, mark, value, damping)
            if factor_bodies_by_pointer(pointers, work) < 0:
                break
        _load_state(rows, graph, factor)
        solve_factored_by_pointer(pointers, work)
        change = _add_changes(rows, block, mark, value, count)
        if round_index == 0 and change > LARGE_CHANGE and not softened:
            continue
        moved = _snap_to_breaks(rows, graph, factor, softened)
        if moved < 0:
            break
        if moved > 0:
            softened = True
        elif not softened:
            return 0
        else:
            damping *= DAMPING
            laws_hold = _laws_hold(rows, graph, factor)
            if laws_hold:
                break
    _soften(rows, graph, block, mark, value, 0.0)
    return used if laws_hold else -1


refine_by_pointer = by_pointer(refine)
