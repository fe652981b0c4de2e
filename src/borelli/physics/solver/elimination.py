"""Linear solve for one choice of pieces: bodies and their rows are eliminated in the order of the graph.

With every row either sloped, u = c - beta p, or flat, p = q, the step is

    M v - J^T p = r        J v + beta p = c

Eliminating position k, with D its 6 x 6 block, B its coupling to its neighbors N (fill-in only), J and K the parts of
the rows it owns on itself and on N:

    D = L E L^T    W = E^-1 L^-1 J^T    Y = L^-1 B    S = diag(beta) + J D^-1 J^T = C G C^T    U = C^-1 (K - W^T Y)
    y = L^-1 r     z = C^-1 (c - W^T y)
    D_N += U^T G^-1 U - Y^T E^-1 Y      r_N += U^T G^-1 z - Y^T E^-1 y                (leaves to root)
    p = C^-T G^-1 (z - U v_N)           v = L^-T (E^-1 (y - Y v_N) + W p)             (root to leaves)

L and C are unit lower triangles, E and G diagonal; D_N + update is the Schur complement of position k.
Every pivot is positive definite, also with beta = 0, as long as the hard rows a body owns are independent on it. On a
tree N is one body and B is absent. A row on one body that is not too stiff is *folded* instead:
D += J^T J / beta, r += J^T c / beta.

Each position keeps its update U^T G^-1 U - Y^T E^-1 Y, so that after a change of pieces only the bodies whose rows
changed, and their ancestors in the elimination tree, are factored again.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import (
    add21,
    add_outer,
    axpy6,
    dot6,
    factor6,
    forward6,
    load6,
    load21,
    scale6,
    store6,
    store21,
)
from borelli.physics.solver.elimination_order import (
    CHILD,
    CORNER,
    COUPLED,
    DIRTY,
    DUALS,
    FOLDS,
    LISTED,
    NEIGHBOR,
    NEIGHBORS,
    WIDE,
)
from borelli.physics.solver.factor_arrays import (
    BETA,
    DUAL,
    DUAL_ROW,
    FOLD_ROW,
    FOLDED,
    FOLDED_RIGHT,
    IMPULSE,
    LIST_ROW,
    LOWER,
    MASS,
    MODE,
    OTHER,
    OWNER,
    RIGHT,
    SOLUTION,
    UPDATE,
    UPDATE_RIGHT,
    C,
    U,
    W,
    Z,
)
from borelli.physics.solver.fill_in import add_child_fill, backward_wide, eliminate_wide, forward_wide
from borelli.physics.solver.pivots import append_corner_row, back_substitute, forward_right_side


@kernel_function
def factor_bodies(rows_at, graph_at, factor_at, fill_at):
    """Factor the dirty positions and their ancestors; return their number, or -1 - k if position k has no pivot."""
    rows, graph, factor, fill = load_shared(rows_at, graph_at, factor_at, fill_at)
    node, neighbor, child, count = graph.node, graph.neighbor, graph.child, graph.count[0]
    block, dual, mark, value, row_list = factor.block, factor.dual, factor.mark, factor.value, factor.row_list
    corner, jacobian = factor.corner, rows.jacobian
    factored = 0
    for k in range(count):
        if not node[k, DIRTY]:
            continue
        node[k, DIRTY] = 0
        factored += 1
        D = _own_block(node, block, mark, value, row_list, jacobian, k)
        node[k, COUPLED] = 0
        for index in range(node[k, CHILD], node[k + 1, CHILD]):
            D = add21(D, block, child[index], UPDATE)
            if node[child[index] + 1, NEIGHBORS] - node[child[index], NEIGHBORS] > 1:
                add_child_fill(node, neighbor, fill.front, fill.coupling, k, child[index])
        L, least = factor6(D)
        if not least > 0.0:
            return -1 - k
        store21(block, k, LOWER, L)
        outward = node[k + 1, NEIGHBORS] > node[k, NEIGHBORS]
        if node[k, WIDE]:
            has_pivots = eliminate_wide(rows, graph, factor, fill, k)
        else:
            has_pivots = _eliminate(node, block, dual, mark, value, row_list, corner, jacobian, k, L, outward)
        if not has_pivots:
            return -1 - k
        if outward:
            node[neighbor[node[k, NEIGHBORS], NEIGHBOR], DIRTY] = 1
    return factored


factor_bodies_by_pointer = by_pointer(factor_bodies)


@inline
def _own_block(node, block, mark, value, row_list, jacobian, k):
    """Return mass plus folded rows of position k; store its folded right side."""
    D = load21(block, k, MASS)
    right = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for index in range(node[k, FOLDS], node[k + 1, FOLDS]):
        row = row_list[index, FOLD_ROW]
        if mark[row, MODE] == FOLDED:
            J = load6(jacobian, mark[row, OWNER], 0)
            weight = 1.0 / value[row, BETA]
            D = add_outer(D, weight, J)
            right = axpy6(weight * value[row, C], J, right)
    store6(block, k, FOLDED_RIGHT, right)
    return D


@inline
def _eliminate(node, block, dual, mark, value, row_list, corner, jacobian, k, L, outward):
    """Compute W, C, U and the update of a position with at most one neighbor; return False without a pivot."""
    base, first = node[k, LISTED], node[k, CORNER]
    size = node[k + 1, LISTED] - base
    least = 1.0
    zero = 0.0
    duals = 0
    for index in range(base, base + size):
        row = row_list[index, LIST_ROW]
        if mark[row, MODE] != DUAL:
            continue
        at = base + duals
        row_list[at, DUAL_ROW] = row
        j = forward6(L, load6(jacobian, mark[row, OWNER], 0))
        w = scale6(L, j)
        store6(dual, at, W, w)
        least = min(least, append_corner_row(corner, dual, value[row, BETA], j, w, base, first, size, duals))
        duals += 1
    node[k, DUALS] = duals
    if outward:
        update = (
            zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero,
            zero, zero, zero, zero, zero, zero, zero, zero, zero, zero,
        )  # fmt: skip
        for r in range(duals):
            here = first + r * size
            e = mark[row_list[base + r, DUAL_ROW], OTHER]
            u = (zero, zero, zero, zero, zero, zero)
            if e >= 0:
                u = load6(jacobian, e, 0)
            for j in range(r):
                u = axpy6(-corner[here + j], load6(dual, base + j, U), u)
            store6(dual, base + r, U, u)
            update = add_outer(update, corner[here + r], u)
        store21(block, k, UPDATE, update)
    return least > 0.0


@inline
def forward_position(graph, factor, fill, k):
    """Compute y and z of position k, and its update of the right side."""
    node, block, dual, corner = graph.node, factor.block, factor.dual, factor.corner
    if node[k, WIDE]:
        forward_wide(graph, factor, fill, k)
        return
    forward_right_side(node, graph.child, block, dual, factor.value, factor.row_list, corner, k)
    base, first = node[k, LISTED], node[k, CORNER]
    size = node[k + 1, LISTED] - base
    update = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for r in range(node[k, DUALS]):
        update = axpy6(dual[base + r, Z] * corner[first + r * size + r], load6(dual, base + r, U), update)
    store6(block, k, UPDATE_RIGHT, update)


@inline
def backward_position(graph, factor, fill, k):
    """Compute p and v of position k."""
    node, neighbor, block, dual = graph.node, graph.neighbor, factor.block, factor.dual
    if node[k, WIDE]:
        backward_wide(graph, factor, fill, k)
        return
    first = node[k, NEIGHBORS]
    if node[k + 1, NEIGHBORS] > first:
        base = node[k, LISTED]
        neighbor_velocity = load6(block, neighbor[first, NEIGHBOR], SOLUTION)
        for r in range(node[k, DUALS]):
            dual[base + r, Z] -= dot6(load6(dual, base + r, U), neighbor_velocity)
    back_substitute(node, block, dual, factor.value, factor.row_list, factor.corner, k, load6(block, k, RIGHT))


@kernel_function
def solve_factored(rows_at, graph_at, factor_at, fill_at):
    """Compute v and p for the right sides in RIGHT (bodies) and C (rows), with the present factors."""
    rows, graph, factor, fill = load_shared(rows_at, graph_at, factor_at, fill_at)
    node, count = graph.node, graph.count[0]
    block, mark, value, row_list = factor.block, factor.mark, factor.value, factor.row_list
    for k in range(count):
        forward_position(graph, factor, fill, k)
    for index in range(count):
        k = count - 1 - index
        backward_position(graph, factor, fill, k)
        v = load6(block, k, SOLUTION)
        for index_fold in range(node[k, FOLDS], node[k + 1, FOLDS]):
            row = row_list[index_fold, FOLD_ROW]
            if mark[row, MODE] == FOLDED:
                s = value[row, C] - dot6(load6(rows.jacobian, mark[row, OWNER], 0), v)
                value[row, IMPULSE] = s / value[row, BETA]


solve_factored_by_pointer = by_pointer(solve_factored)
