"""Fill-in: elimination of a body with several remaining neighbors, as loops cause (algebra in `elimination`).

Off the hot path: bodies of a tree never need it.
"""

from __future__ import annotations

from borelli.kernels.jit import inline, kernel_function
from borelli.physics.solver.blocks import axpy6, forward6, load6, load21, scale6, store6
from borelli.physics.solver.elimination_order import (
    CHILD,
    CORNER,
    COUPLED,
    DUALS,
    FRONT,
    LISTED,
    NEIGHBOR,
    NEIGHBORS,
    OUTER,
    SLOT,
)
from borelli.physics.solver.factor_arrays import (
    BETA,
    DUAL,
    DUAL_ROW,
    LIST_ROW,
    LOWER,
    MODE,
    OWNER,
    RIGHT,
    SOLUTION,
    UPDATE,
    UPDATE_RIGHT,
    W,
    Z,
)
from borelli.physics.solver.pivots import append_corner_row, back_substitute, forward_right_side


@kernel_function
def add_child_fill(node, neighbor, front, coupling, k, child):
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
    )  # fmt: skip


@kernel_function
def eliminate_wide(rows, graph, factor, fill, k):
    """Compute Y, W, C, U and the update of position k; return False if its rows have no pivot."""
    node, block, dual, mark, row_list = graph.node, factor.block, factor.dual, factor.mark, factor.row_list
    coupling = fill.coupling
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
        at = base + duals
        row_list[at, DUAL_ROW] = row
        j = forward6(L, load6(rows.jacobian, mark[row, OWNER], 0))
        w = scale6(L, j)
        store6(dual, at, W, w)
        if not append_corner_row(factor.corner, dual, factor.value[row, BETA], j, w, base, first, size, duals) > 0.0:
            return False
        _outer_row(rows, node, factor, fill, k, row, duals, wide)
        duals += 1
    node[k, DUALS] = duals
    _update_front(node, block, fill.front, fill.outer, coupling, factor.corner, k, duals, wide)
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
            )  # fmt: skip
            r += 3
        while r < duals:
            at = first + r * wide
            _add_one(line, u[at : at + wide], i, corner[corner_at + r * diagonal_stride])
            r += 1
        if coupled:
            _add_three(
                line, coupling[y : y + wide], coupling[y + wide : y + 2 * wide], coupling[y + 2 * wide : y + 3 * wide],
                i, E[0], E[1], E[2],
            )  # fmt: skip
            z = y + 3 * wide
            _add_three(
                line, coupling[z : z + wide], coupling[z + wide : z + 2 * wide], coupling[z + 2 * wide : z + 3 * wide],
                i, E[3], E[4], E[5],
            )  # fmt: skip
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
def forward_wide(graph, factor, fill, k):
    """Compute y, z of position k and its update of the neighbors' right sides."""
    node, neighbor, child, coupling = graph.node, graph.neighbor, graph.child, fill.coupling
    start = 6 * node[k, NEIGHBORS]
    wide = 6 * node[k + 1, NEIGHBORS] - start
    update_right = fill.update_right[start : start + wide]
    for i in range(wide):
        update_right[i] = 0.0
    for index in range(node[k, CHILD], node[k + 1, CHILD]):
        first = node[child[index], NEIGHBORS]
        for a in range(first + 1, node[child[index] + 1, NEIGHBORS]):
            to = 6 * neighbor[a, SLOT]
            _add(update_right[to : to + 6], fill.update_right[6 * a : 6 * a + 6])
    y = forward_right_side(node, child, factor.block, factor.dual, factor.value, factor.row_list, factor.corner, k)
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
        )  # fmt: skip
    return ((s[0] + s[1]) + (s[2] + s[3])) + (s[4] + s[5])


@kernel_function
def backward_wide(graph, factor, fill, k):
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
    back_substitute(node, block, factor.dual, factor.value, factor.row_list, factor.corner, k, y)
