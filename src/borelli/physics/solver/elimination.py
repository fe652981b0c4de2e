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

Loops leave bodies with several neighbors (*wide* positions, fill-in); bodies of a tree never need that code.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.solver.blocks import (
    ZERO_BLOCK,
    add21,
    add_outer,
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
from borelli.physics.solver.elimination_order import (
    CHILD,
    CORNER,
    COUPLED,
    DIRTY,
    DUALS,
    FOLDS,
    FRONT,
    LISTED,
    NEIGHBOR,
    NEIGHBORS,
    OUTER,
    SLOT,
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


@kernel_function
def factor_bodies(work):
    """Factor the dirty positions and their ancestors; return their number, or -1 - k if position k has no pivot."""
    rows, graph, factor, fill = load_shared(work.rows, work.graph, work.factor, work.fill)
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
                _add_child_fill(node, neighbor, fill.front, fill.coupling, k, child[index])
        L, least = factor6(D)
        if not least > 0.0:
            return -1 - k
        store21(block, k, LOWER, L)
        outward = node[k + 1, NEIGHBORS] > node[k, NEIGHBORS]
        if node[k, WIDE]:
            has_pivots = _eliminate_wide(rows, graph, factor, fill, k)
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
    least, duals = 1.0, 0
    for index in range(base, base + size):
        row = row_list[index, LIST_ROW]
        if mark[row, MODE] != DUAL:
            continue
        pivot = _append_dual_row(dual, mark, value, row_list, corner, jacobian, row, L, base, first, size, duals)
        least = min(least, pivot)
        duals += 1
    node[k, DUALS] = duals
    if outward:
        update = ZERO_BLOCK
        for r in range(duals):
            here = first + r * size
            e = mark[row_list[base + r, DUAL_ROW], OTHER]
            u = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
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
        _forward_wide(graph, factor, fill, k)
        return
    _forward_right_side(node, graph.child, block, dual, factor.value, factor.row_list, corner, k)
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
        _backward_wide(graph, factor, fill, k)
        return
    first = node[k, NEIGHBORS]
    if node[k + 1, NEIGHBORS] > first:
        base = node[k, LISTED]
        neighbor_velocity = load6(block, neighbor[first, NEIGHBOR], SOLUTION)
        for r in range(node[k, DUALS]):
            dual[base + r, Z] -= dot6(load6(dual, base + r, U), neighbor_velocity)
    _back_substitute(node, block, dual, factor.value, factor.row_list, factor.corner, k, load6(block, k, RIGHT))


@kernel_function
def solve_factored(work):
    """Compute v and p for the right sides in RIGHT (bodies) and C (rows), with the present factors."""
    rows, graph, factor, fill = load_shared(work.rows, work.graph, work.factor, work.fill)
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


@inline
def _append_dual_row(dual, mark, value, row_list, corner, jacobian, row, L, base, first, size, duals):
    """Make `row` the next dual row of a position: compute its W and row `duals` of C and G; return its pivot."""
    row_list[base + duals, DUAL_ROW] = row
    j = forward6(L, load6(jacobian, mark[row, OWNER], 0))
    w = scale6(L, j)
    store6(dual, base + duals, W, w)
    here = first + duals * size
    pivot = dot6(j, w) + value[row, BETA]
    for r in range(duals):
        s = dot6(j, load6(dual, base + r, W))
        other = first + r * size
        for n in range(r):
            s -= corner[here + n] * corner[other + n]
        corner[here + r] = s
    for r in range(duals):
        s = corner[here + r]
        scaled = s * corner[first + r * size + r]
        pivot -= s * scaled
        corner[here + r] = scaled
    corner[here + duals] = 1.0 / pivot
    return pivot


@inline
def _forward_right_side(node, child, block, dual, value, row_list, corner, k):
    """Compute y and z of position k; return y."""
    y = load6(block, k, RIGHT)
    for index in range(node[k, CHILD], node[k + 1, CHILD]):
        y = axpy6(1.0, load6(block, child[index], UPDATE_RIGHT), y)
    y = forward6(load21(block, k, LOWER), y)
    store6(block, k, RIGHT, y)
    base, first = node[k, LISTED], node[k, CORNER]
    size = node[k + 1, LISTED] - base
    for r in range(node[k, DUALS]):
        s = value[row_list[base + r, DUAL_ROW], C] - dot6(load6(dual, base + r, W), y)
        here = first + r * size
        for j in range(r):
            s -= corner[here + j] * dual[base + j, Z]
        dual[base + r, Z] = s
    return y


@inline
def _back_substitute(node, block, dual, value, row_list, corner, k, y):
    """Compute p of position k from Z, and its v from L^T v = E^-1 `y` + W p."""
    base, first = node[k, LISTED], node[k, CORNER]
    size = node[k + 1, LISTED] - base
    duals = node[k, DUALS]
    L = load21(block, k, LOWER)
    v = scale6(L, y)
    for index in range(duals):
        r = duals - 1 - index
        p = dual[base + r, Z] * corner[first + r * size + r]
        for j in range(r + 1, duals):
            p -= corner[first + j * size + r] * dual[base + j, Z]
        dual[base + r, Z] = p
        value[row_list[base + r, DUAL_ROW], IMPULSE] = p
        v = axpy6(p, load6(dual, base + r, W), v)
    store6(block, k, SOLUTION, backward6(L, v))


@kernel_function
def _add_child_fill(node, neighbor, front, coupling, k, child):
    """Add the parts of a child's update that lie beyond position k to B and to the update of k."""
    wide = 6 * (node[k + 1, NEIGHBORS] - node[k, NEIGHBORS])
    width = 6 * (node[child + 1, NEIGHBORS] - node[child, NEIGHBORS])
    block, base = 36 * node[k, NEIGHBORS], node[k, FRONT]
    if not node[k, COUPLED]:
        node[k, COUPLED] = 1
        coupling[block : block + 6 * wide] = 0.0
        _clear_triangle(front, base, wide)
    source, first = node[child, FRONT], node[child, NEIGHBORS]
    for a in range(1, width // 6):
        to = 6 * neighbor[first + a, SLOT]
        for i in range(6):
            at = source + (6 * a + i) * width
            own = front[at : at + 6]
            for j in range(6):
                line = block + j * wide + to
                coupling[line + i] += own[j]
        _add_lines(neighbor, front, first, a, base + to * wide, wide, source + 6 * a * width, width)


@inline
def _clear_triangle(front, base, wide):
    for i in range(wide):
        line = front[base + i * wide : base + i * wide + i + 1]
        for j in range(len(line)):
            line[j] = 0.0


@inline
def _add_lines(neighbor, front, first, a, to, wide, source, width):
    """Add six lines of a child's update, from its second neighbor up to the diagonal, to those of its parent.

    Neighbors that are consecutive in both lists are added together.
    """
    b = 1
    while b <= a:
        slot = neighbor[first + b, SLOT]
        run = 1
        while b + run <= a and neighbor[first + b + run, SLOT] == slot + run:
            run += 1
        for i in range(6):
            here = front[to + i * wide + 6 * slot : to + i * wide + 6 * (slot + run)]
            _add(here, front[source + i * width + 6 * b : source + i * width + 6 * (b + run)])
        b += run


@inline
def _add(line, other):
    for j in range(len(line)):
        line[j] += other[j]


@inline
def _load_column(coupling, at, wide):
    """Return six numbers of one column, the first at `at`."""
    return (
        coupling[at], coupling[at + wide], coupling[at + 2 * wide], coupling[at + 3 * wide], coupling[at + 4 * wide],
        coupling[at + 5 * wide],
    )


@kernel_function
def _eliminate_wide(rows, graph, factor, fill, k):
    """Compute Y, W, C, U and the update of position k; return False if its rows have no pivot."""
    node, block, dual, mark, row_list = graph.node, factor.block, factor.dual, factor.mark, factor.row_list
    value, corner, coupling = factor.value, factor.corner, fill.coupling
    L = load21(block, k, LOWER)
    base, first = node[k, LISTED], node[k, CORNER]
    wide = 6 * (node[k + 1, NEIGHBORS] - node[k, NEIGHBORS])
    size = node[k + 1, LISTED] - base
    if node[k, COUPLED]:
        for at in range(36 * node[k, NEIGHBORS], 36 * node[k, NEIGHBORS] + wide):
            y = forward6(L, _load_column(coupling, at, wide))
            for i in range(6):
                coupling[at + i * wide] = y[i]
    duals = 0
    for index in range(base, base + size):
        row = row_list[index, LIST_ROW]
        if mark[row, MODE] != DUAL:
            continue
        pivot = _append_dual_row(dual, mark, value, row_list, corner, rows.jacobian, row, L, base, first, size, duals)
        if not pivot > 0.0:
            return False
        _outer_row(rows, node, factor, fill, k, row, duals, wide)
        duals += 1
    node[k, DUALS] = duals
    _update_front(node, block, fill.front, fill.outer, coupling, corner, k, duals, wide)
    return True


@inline
def _outer_row(rows, node, factor, fill, k, row, index, wide):
    """Compute row `index` of U = C^-1 (K - W^T Y), neighbor by neighbor."""
    u, y, first, corner = fill.outer, fill.coupling, node[k, OUTER], factor.corner
    w = load6(factor.dual, node[k, LISTED] + index, W)
    here = node[k, CORNER] + index * (node[k + 1, LISTED] - node[k, LISTED])
    for at in range(0, wide, 6):
        x = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for e in range(rows.first[row], rows.first[row + 1]):
            if e != factor.mark[row, OWNER] and rows.body[e] >= 0 and 6 * factor.column[e] == at:
                x = load6(rows.jacobian, e, 0)
        if node[k, COUPLED]:
            line = 36 * node[k, NEIGHBORS] + at
            for i in range(6):
                x = axpy6(-w[i], _load_line(y, line + i * wide), x)
        for j in range(index):
            x = axpy6(-corner[here + j], _load_line(u, first + j * wide + at), x)
        out = first + index * wide + at
        for i in range(6):
            u[out + i] = x[i]


@inline
def _load_line(array, at):
    """Return six numbers from `at`."""
    return array[at], array[at + 1], array[at + 2], array[at + 3], array[at + 4], array[at + 5]


@kernel_function
def _update_front(node, block, front, u, coupling, corner, k, duals, wide):
    """Add the lower triangle of U^T G^-1 U - Y^T E^-1 Y to the children's updates.

    Line by line, so that the compiler vectorizes it.
    """
    base, first, y = node[k, FRONT], node[k, OUTER], 36 * node[k, NEIGHBORS]
    corner_at, diagonal_stride = node[k, CORNER], node[k + 1, LISTED] - node[k, LISTED] + 1
    coupled = node[k, COUPLED]
    E = scale6(load21(block, k, LOWER), (-1.0, -1.0, -1.0, -1.0, -1.0, -1.0))
    if not coupled:
        _clear_triangle(front, base, wide)
    for i in range(wide):
        line = front[base + i * wide : base + i * wide + i + 1]
        r = 0
        while r + 2 < duals:
            at, corner_r = first + r * wide, corner_at + r * diagonal_stride
            _add_three(
                line, u[at : at + wide], u[at + wide : at + 2 * wide], u[at + 2 * wide : at + 3 * wide], i,
                corner[corner_r], corner[corner_r + diagonal_stride], corner[corner_r + 2 * diagonal_stride],
            )
            r += 3
        while r < duals:
            at = first + r * wide
            _add_one(line, u[at : at + wide], i, corner[corner_at + r * diagonal_stride])
            r += 1
        if coupled:
            _add_three(
                line, coupling[y : y + wide], coupling[y + wide : y + 2 * wide], coupling[y + 2 * wide : y + 3 * wide],
                i, E[0], E[1], E[2],
            )
            z = y + 3 * wide
            _add_three(
                line, coupling[z : z + wide], coupling[z + wide : z + 2 * wide], coupling[z + 2 * wide : z + 3 * wide],
                i, E[3], E[4], E[5],
            )
    for i in range(6):
        for j in range(i + 1):
            block[k, UPDATE + i * (i + 1) // 2 + j] = front[base + i * wide + j]


@inline
def _add_one(line, x, i, s):
    """Add line i of the triangle of s x^T x to a line."""
    a = s * x[i]
    for j in range(len(line)):
        line[j] += a * x[j]


@inline
def _add_three(line, x, y, z, i, s, t, u):
    """Add line i of the triangle of s x^T x + t y^T y + u z^T z to a line."""
    a, b, c = s * x[i], t * y[i], u * z[i]
    for j in range(len(line)):
        line[j] += a * x[j] + b * y[j] + c * z[j]


@kernel_function
def _forward_wide(graph, factor, fill, k):
    """Compute y, z of position k and its update of the neighbors' right sides."""
    node, neighbor, child, coupling = graph.node, graph.neighbor, graph.child, fill.coupling
    start = 6 * node[k, NEIGHBORS]
    wide = 6 * node[k + 1, NEIGHBORS] - start
    update_right = fill.update_right[start : start + wide]
    update_right[:] = 0.0
    for index in range(node[k, CHILD], node[k + 1, CHILD]):
        first = node[child[index], NEIGHBORS]
        for a in range(first + 1, node[child[index] + 1, NEIGHBORS]):
            to = 6 * neighbor[a, SLOT]
            _add(update_right[to : to + 6], fill.update_right[6 * a : 6 * a + 6])
    y = _forward_right_side(node, child, factor.block, factor.dual, factor.value, factor.row_list, factor.corner, k)
    y = scale6(load21(factor.block, k, LOWER), y)
    base, u, first = node[k, LISTED], node[k, OUTER], node[k, CORNER]
    size = node[k + 1, LISTED] - base
    for r in range(node[k, DUALS]):
        weight = factor.dual[base + r, Z] * factor.corner[first + r * size + r]
        outer = fill.outer[u + r * wide : u + (r + 1) * wide]
        for i in range(wide):
            update_right[i] += weight * outer[i]
    if node[k, COUPLED]:
        for n in range(6):
            line = coupling[6 * start + n * wide : 6 * start + (n + 1) * wide]
            weight = y[n]
            for i in range(wide):
                update_right[i] -= weight * line[i]
    for i in range(6):
        factor.block[k, UPDATE_RIGHT + i] = update_right[i] if wide > 0 else 0.0


@inline
def _dot(x, y):
    """Return the scalar product, summed in six lanes to avoid latency; the length is a multiple of six."""
    s = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for at in range(0, len(x), 6):
        a, b = x[at : at + 6], y[at : at + 6]
        s = (
            s[0] + a[0] * b[0], s[1] + a[1] * b[1], s[2] + a[2] * b[2],
            s[3] + a[3] * b[3], s[4] + a[4] * b[4], s[5] + a[5] * b[5],
        )
    return ((s[0] + s[1]) + (s[2] + s[3])) + (s[4] + s[5])


@kernel_function
def _backward_wide(graph, factor, fill, k):
    """Compute p and v of position k from the velocities of its neighbors."""
    node, neighbor, block = graph.node, graph.neighbor, factor.block
    first = node[k, NEIGHBORS]
    wide = 6 * (node[k + 1, NEIGHBORS] - first)
    neighbor_velocity = fill.neighbor_velocity[:wide]
    for a in range(wide // 6):
        at = neighbor[first + a, NEIGHBOR]
        for i in range(6):
            neighbor_velocity[6 * a + i] = block[at, SOLUTION + i]
    y = load6(block, k, RIGHT)
    if node[k, COUPLED]:
        line = 36 * first
        y = (
            y[0] - _dot(fill.coupling[line : line + wide], neighbor_velocity),
            y[1] - _dot(fill.coupling[line + wide : line + 2 * wide], neighbor_velocity),
            y[2] - _dot(fill.coupling[line + 2 * wide : line + 3 * wide], neighbor_velocity),
            y[3] - _dot(fill.coupling[line + 3 * wide : line + 4 * wide], neighbor_velocity),
            y[4] - _dot(fill.coupling[line + 4 * wide : line + 5 * wide], neighbor_velocity),
            y[5] - _dot(fill.coupling[line + 5 * wide : line + 6 * wide], neighbor_velocity),
        )
    base, u = node[k, LISTED], node[k, OUTER]
    for r in range(node[k, DUALS]):
        factor.dual[base + r, Z] -= _dot(fill.outer[u + r * wide : u + (r + 1) * wide], neighbor_velocity)
    _back_substitute(node, block, factor.dual, factor.value, factor.row_list, factor.corner, k, y)
