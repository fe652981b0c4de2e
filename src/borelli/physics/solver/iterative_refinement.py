"""What a state still lacks of the momentum balance and of the laws, and the correction that repairs it.

Solving for the residuals instead of the whole gives back the digits that tiny slopes lose. It cannot give all of them:
where rows repeat each other only beta fixes how they share the load, so their impulses carry 1e-16 u/beta of rounding,
1e-6 N s at beta = 1e-10. A sloped row on a kink may then come out beyond its segment though its velocity is right;
`refine` puts it on the break, which moves its velocity by beta times as much.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import DIAGONAL, axpy6, dot6, load6, load21, multiply6, store6
from borelli.physics.solver.elimination import factor_bodies_by_pointer, solve_factored_by_pointer
from borelli.physics.solver.elimination_order import DIRTY, PLACE
from borelli.physics.solver.factor_arrays import (
    ABSENT,
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
    SEGMENT,
    SOLUTION,
    U_NOW,
    VELOCITY,
    C,
    use_segment,
)

IMPULSE_TOLERANCE = 1e-12
SETTLED = 1e-11
"""Velocity by which a flat row may miss its break, of the largest velocity: a row on its kink is left flat."""
ROUNDING = 1e-15
"""Of the largest impulse: what v, and so u, may not resolve beside it."""
CONFLICT = 1e-8
"""The most that is put down to rounding, of the largest velocity."""
DAMPING = 1e-4
"""Added slope while settling, of J M^-1 J^T."""
LARGE_CHANGE = 1e-9
"""Relative change of impulses after which one correction is not enough."""
ROUNDS = 20


@inline
def row_velocity(rows, node, block, at, k):
    """Velocity u of row k for the velocities in column `at` of the blocks."""
    s = rows.offset[k]
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            s += dot6(load6(rows.jacobian, e, 0), load6(block, node[rows.body[e], PLACE], at))
    return s


@inline
def push(rows, node, block, k, p):
    """Add the impulse p of row k to the right side of the bodies it touches."""
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            position = node[rows.body[e], PLACE]
            store6(block, position, RIGHT, axpy6(p, load6(rows.jacobian, e, 0), load6(block, position, RIGHT)))


@inline
def response(rows, node, block, k):
    """J M^-1 J^T of row k with the diagonal of M: a scale, not a solve."""
    total = 0.0
    for e in range(rows.first[k], rows.first[k + 1]):
        if rows.body[e] >= 0:
            position = node[rows.body[e], PLACE]
            for i in range(6):
                total += rows.jacobian[e, i] ** 2 / block[position, MASS + DIAGONAL[i]]
    return total


@inline
def move_row(rows, node, mark, value, column, k, s):
    """Put row k on segment s and mark its owner for factoring (from flat to flat no factor changes)."""
    if mark[k, MODE] != FLAT_ROW or rows.beta[k, s] >= 0.0:
        node[column[mark[k, OWNER]], DIRTY] = 1
    mark[k, SEGMENT] = s
    use_segment(rows, mark, value, k, s)


@kernel_function
def load_residuals(rows, graph, factor):
    """RIGHT: r + J^T p - M v of the state in VELOCITY and P_NOW. Fills U_NOW; C of one-segment rows: c - u - beta p."""
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    for k in range(graph.count[0]):
        v = load6(block, k, VELOCITY)
        store6(block, k, RIGHT, axpy6(-1.0, multiply6(load21(block, k, MASS), v), load6(block, k, MOMENTUM)))
    for k in range(rows.used[0]):
        if mark[k, KIND] == ABSENT:
            continue
        p = value[k, P_NOW]
        push(rows, node, block, k, p)
        u = row_velocity(rows, node, block, VELOCITY, k)
        value[k, U_NOW] = u
        if rows.segments[k] == 1 and mark[k, MODE] != FLAT_ROW:
            load_row(rows, node, block, mark, value, k, rows.c[k, 0] - u - rows.beta[k, 0] * p)


@inline
def load_row(rows, node, block, mark, value, k, lacking):
    """Make `lacking` the right side of row k."""
    value[k, C] = lacking
    if mark[k, MODE] == FOLDED:
        push(rows, node, block, k, lacking / value[k, BETA])


@inline
def _load_state(rows, graph, factor):
    """Make SOLUTION and IMPULSE the state to be corrected, and its residuals the right sides."""
    block, mark, value = factor.block, factor.mark, factor.value
    for k in range(graph.count[0]):
        store6(block, k, VELOCITY, load6(block, k, SOLUTION))
    for k in range(rows.used[0]):
        value[k, P_NOW] = value[k, IMPULSE]
    load_residuals(rows, graph, factor)
    for k in range(rows.used[0]):
        if rows.segments[k] > 1 and mark[k, MODE] >= FOLDED:
            s = mark[k, SEGMENT]
            lacking = rows.c[k, s] - value[k, U_NOW] - rows.beta[k, s] * value[k, P_NOW]
            load_row(rows, graph.node, block, mark, value, k, lacking)


@inline
def _add_changes(rows, block, mark, value, count):
    """Add the solution to the state; the largest change of impulse, relative."""
    for k in range(count):
        store6(block, k, SOLUTION, axpy6(1.0, load6(block, k, VELOCITY), load6(block, k, SOLUTION)))
    largest, change = 0.0, 0.0
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            change = max(change, abs(value[k, IMPULSE]))
            value[k, IMPULSE] += value[k, P_NOW]
            largest = max(largest, abs(value[k, IMPULSE]))
            value[k, C] = rows.c[k, mark[k, SEGMENT]] - rows.offset[k]
    return change / largest if largest > 0.0 else 0.0


@inline
def _scales(rows, block, mark, value, count):
    """The largest velocity and the largest impulse."""
    speed, largest = 0.0, 0.0
    for k in range(count):
        for i in range(6):
            speed = max(speed, abs(block[k, SOLUTION + i]))
    for k in range(rows.used[0]):
        if mark[k, MODE] != ABSENT:
            largest = max(largest, abs(value[k, IMPULSE]))
    return speed, largest


@inline
def _resolved(speed, driven):
    """The error of velocity to put up with, beside impulses that could drive the row at `driven`."""
    return min(max(SETTLED * speed, ROUNDING * driven), CONFLICT * speed)


@kernel_function
def _put_back(rows, graph, factor, settling):
    """Move rows that ended beyond their segment to the break; how many, -1 when a row is too far beyond for rounding.

    Where two sloped segments meet, a point just beyond is still on the law to within the change of slope. While
    settling, rows move however far they are.
    """
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    speed, largest = _scales(rows, block, mark, value, graph.count[0])
    moved = 0
    for k in range(rows.used[0]):
        last = rows.segments[k] - 1
        if last < 1:
            continue
        s = mark[k, SEGMENT]
        to, beyond = s, 0.0
        if mark[k, MODE] == FLAT_ROW:
            u = row_velocity(rows, node, block, SOLUTION, k)
            if s > 0 and u < rows.break_u[k, s - 1]:
                to, beyond = s - 1, rows.break_u[k, s - 1] - u
            elif s < last and u > rows.break_u[k, s]:
                to, beyond = s + 1, u - rows.break_u[k, s]
            if to != s and beyond <= _resolved(speed, largest * response(rows, node, block, k)):
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
                if beyond <= SETTLED * speed:
                    to = s
            elif to != s:
                beyond = rows.beta[k, s] * abs(p - rows.break_p[k, min(s, to)])
        if to == s:
            continue
        if beyond > CONFLICT * speed and not settling:
            return -1
        moved += 1
        move_row(rows, node, mark, value, factor.column, k, to)
        value[k, IMPULSE] = rows.break_p[k, min(s, to)]
    return moved


@kernel_function
def _keeps_laws(rows, graph, factor):
    """Whether every sloped row has the velocity its impulse asks for."""
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    speed, largest = _scales(rows, block, mark, value, graph.count[0])
    for k in range(rows.used[0]):
        if mark[k, MODE] < FOLDED:
            continue
        s = mark[k, SEGMENT]
        u = row_velocity(rows, node, block, SOLUTION, k)
        lacking = abs(rows.c[k, s] - u - rows.beta[k, s] * value[k, IMPULSE])
        if not lacking <= SETTLED * speed and not lacking <= _resolved(speed, largest * response(rows, node, block, k)):
            return False
    return True


@inline
def _soften(rows, node, block, mark, value, count, damping):
    """Raise the slopes in force and mark every position for factoring."""
    for k in range(rows.used[0]):
        if mark[k, MODE] >= FOLDED:
            slope = rows.beta[k, mark[k, SEGMENT]]
            if slope > 0.0:
                slope += damping * response(rows, node, block, k)
            value[k, BETA] = slope
    for k in range(count):
        node[k, DIRTY] = 1


@kernel_function
def refine(pointers, rows_at, graph_at, factor_at, fill_at):
    """Correct velocities and impulses until every row keeps to its segment; factorisations used, -1 when it failed.

    Mostly the factors at hand do. If a row ends beyond its segment, or the state comes without factors (a position is
    dirty), slopes are raised by a small share of J M^-1 J^T in new factors, not in the residuals: where rows repeat
    each other, impulses then stay as they are instead of following the rounding of velocities divided by beta. What is
    left of the laws is below SETTLED; where rows nearly repeat each other that takes a smaller share. Those factors
    are of no further use: every position is left dirty.
    """
    rows, graph, factor = load_shared(rows_at, graph_at, factor_at)
    node, block, mark, value, count = graph.node, factor.block, factor.mark, factor.value, graph.count[0]
    settling = False
    for k in range(count):
        settling = settling or node[k, DIRTY] != 0
    used, damping, good = 0, DAMPING, False
    for turn in range(ROUNDS):
        if settling:
            used += 1
            _soften(rows, node, block, mark, value, count, damping)
            if factor_bodies_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at) < 0:
                break
        _load_state(rows, graph, factor)
        solve_factored_by_pointer(pointers, rows_at, graph_at, factor_at, fill_at)
        change = _add_changes(rows, block, mark, value, count)
        if turn == 0 and change > LARGE_CHANGE and not settling:
            continue
        moved = _put_back(rows, graph, factor, settling)
        if moved < 0:
            break
        if moved > 0:
            settling = True
        elif not settling:
            return 0
        else:
            damping *= DAMPING
            good = _keeps_laws(rows, graph, factor)
            if good:
                break
    _soften(rows, node, block, mark, value, count, 0.0)
    return used if good else -1


refine_by_pointer = by_pointer(refine)
