"""Projected Gauss-Seidel: each row in turn is solved for its law with the others fixed.

Linear cost per sweep for any rows and no factors, but slow convergence along chains and under stiff drives (the error
after any number of sweeps is not bounded); for very large, loose systems such as heaps.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import (
    axpy6,
    backward6,
    dot6,
    factor6,
    forward6,
    load6,
    load21,
    scale6,
    store6,
    store21,
)
from borelli.physics.solver.elimination_order import POSITION
from borelli.physics.solver.factor_arrays import (
    ABSENT,
    ACTIVE_PIECE,
    IMPULSE,
    KIND,
    LOWER,
    MASS,
    MOMENTUM,
    SOLUTION,
    use_piece,
)


@inline
def _solve_law(rows, k, u, p, response):
    """Return impulse and piece at which the line u + response (p' - p) meets the law of row k."""
    last = rows.pieces[k] - 1
    at_zero = u - response * p  # velocity the row would have without its impulse
    for s in range(last + 1):
        beta, c = rows.beta[k, s], rows.c[k, s]
        q = c if beta < 0.0 else (c - at_zero) / (response + beta)
        v = at_zero + response * q
        if beta < 0.0:
            inside = (s == 0 or v >= rows.break_u[k, s - 1]) and (s == last or v <= rows.break_u[k, s])
        else:
            inside = (s == 0 or q <= rows.break_p[k, s - 1]) and (s == last or q >= rows.break_p[k, s])
        if inside:
            return q, s
    return p, 0


@kernel_function
def sweep_rows(rows_at, graph_at, factor_at, sweeps):
    """Compute impulses and velocities after so many sweeps from zero impulses; stored where Newton stores them."""
    rows, graph, factor = load_shared(rows_at, graph_at, factor_at)
    node, block, mark, value = graph.node, factor.block, factor.mark, factor.value
    for k in range(graph.count[0]):
        L, _ = factor6(load21(block, k, MASS))
        store21(block, k, LOWER, L)
        store6(block, k, SOLUTION, backward6(L, scale6(L, forward6(L, load6(block, k, MOMENTUM)))))
    for k in range(rows.used[0]):
        if mark[k, KIND] != ABSENT:
            value[k, IMPULSE] = 0.0
    for _ in range(sweeps):
        for k in range(rows.used[0]):
            if mark[k, KIND] == ABSENT:
                continue
            u, response = rows.offset[k], 0.0
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    position = node[rows.body[e], POSITION]
                    J = load6(rows.jacobian, e, 0)
                    L = load21(block, position, LOWER)
                    w = forward6(L, J)
                    response += dot6(w, scale6(L, w))
                    u += dot6(J, load6(block, position, SOLUTION))
            p, s = _solve_law(rows, k, u, value[k, IMPULSE], response)
            change = p - value[k, IMPULSE]
            value[k, IMPULSE] = p
            mark[k, ACTIVE_PIECE] = s
            use_piece(rows, mark, value, k, s)
            for e in range(rows.first[k], rows.first[k + 1]):
                if rows.body[e] >= 0:
                    position = node[rows.body[e], POSITION]
                    L = load21(block, position, LOWER)
                    unit_change = backward6(L, scale6(L, forward6(L, load6(rows.jacobian, e, 0))))
                    store6(block, position, SOLUTION, axpy6(change, unit_change, load6(block, position, SOLUTION)))


sweep_rows_by_pointer = by_pointer(sweep_rows)
