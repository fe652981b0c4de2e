"""Elimination of a body with several neighbours left: what loops fill (the algebra is in `elimination`).

Off the hot path: bodies of a tree never come here.
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
    NEAR,
    NEIGHBOUR,
    OUTER,
    SLOT,
)
from borelli.physics.solver.factor_arrays import (
    BETA,
    DUAL,
    DUAL_ROW,
    HANDED,
    LIST_ROW,
    LOWER,
    MODE,
    OWNER,
    RIGHT,
    SOLUTION,
    UPDATE,
    W,
    Z,
)
from borelli.physics.solver.pivots import back_substitute, eliminate_right, next_corner


@kernel_function
def gather_fill(node, near, front, coupling, k, child):
    """Add the parts of a child's update that lie beyond position k to B and to the update of k."""
    wide = 6 * (node[k + 1, NEAR] - node[k, NEAR])
    width = 6 * (node[child + 1, NEAR] - node[child, NEAR])
    block, base = 36 * node[k, NEAR], node[k, FRONT]
    if not node[k, COUPLED]:
        node[k, COUPLED] = 1
        coupling[block : block + 6 * wide] = 0.0
        _clear_triangle(front, base, wide)
    source, first = node[child, FRONT], node[child, NEAR]
    for a in range(1, width // 6):
        to = 6 * near[first + a, SLOT]
        for i in range(6):
            at = source + (6 * a + i) * width
            own = front[at : at + 6]
            for j in range(6):
                line = block + j * wide + to
                coupling[line + i] += own[j]
        _add_lines(near, front, first, a, base + to * wide, wide, source + 6 * a * width, width)


@inline
def _clear_triangle(front, base, wide):
    for i in range(wide):
        line = front[base + i * wide : base + i * wide + i + 1]
        for j in range(len(line)):
            line[j] = 0.0


@inline
def _add_lines(near, front, first, a, to, wide, source, width):
    """Six lines of a child's update, from its second neighbour up to the diagonal, added to those of its parent.

    Neighbours that follow each other there as here are added at one go.
    """
    b = 1
    while b <= a:
        over = near[first + b, SLOT]
        many = 1
        while b + many <= a and near[first + b + many, SLOT] == over + many:
            many += 1
        for i in range(6):
            here = front[to + i * wide + 6 * over : to + i * wide + 6 * (over + many)]
            _add(here, front[source + i * width + 6 * b : source + i * width + 6 * (b + many)])
        b += many


@inline
def _add(line, other):
    for j in range(len(line)):
        line[j] += other[j]


@inline
def _load_column(coupling, at, wide):
    """Six numbers of one column, its first at `at`."""
    return (
        coupling[at], coupling[at + wide], coupling[at + 2 * wide], coupling[at + 3 * wide], coupling[at + 4 * wide],
        coupling[at + 5 * wide],
    )  # fmt: skip


@kernel_function
def eliminate_wide(rows, graph, factor, fill, k):
    """Y, W, C, U and the update of position k; False when its rows have no pivot."""
    node, block, dual, mark, roll = graph.node, factor.block, factor.dual, factor.mark, factor.roll
    coupling = fill.coupling
    L = load21(block, k, LOWER)
    base, first = node[k, LISTED], node[k, CORNER]
    wide = 6 * (node[k + 1, NEAR] - node[k, NEAR])
    size = node[k + 1, LISTED] - base
    if node[k, COUPLED]:
        for at in range(36 * node[k, NEAR], 36 * node[k, NEAR] + wide):
            y = forward6(L, _load_column(coupling, at, wide))
            for i in range(6):
                coupling[at + i * wide] = y[i]
    duals = 0
    for index in range(base, base + size):
        row = roll[index, LIST_ROW]
        if mark[row, MODE] != DUAL:
            continue
        at = base + duals
        roll[at, DUAL_ROW] = row
        j = forward6(L, load6(rows.jacobian, mark[row, OWNER], 0))
        w = scale6(L, j)
        store6(dual, at, W, w)
        if not next_corner(factor.corner, dual, factor.value[row, BETA], j, w, base, first, size, duals) > 0.0:
            return False
        _outer_row(rows, node, factor, fill, k, row, duals, wide)
        duals += 1
    node[k, DUALS] = duals
    _update_front(node, block, fill.front, fill.outer, coupling, factor.corner, k, duals, wide)
    return True


@inline
def _outer_row(rows, node, factor, fill, k, row, index, wide):
    """Row `index` of U = C^-1 (K - W^T Y), neighbour by neighbour."""
    u, y, first, corner = fill.outer, fill.coupling, node[k, OUTER], factor.corner
    w = load6(factor.dual, node[k, LISTED] + index, W)
    here = node[k, CORNER] + index * (node[k + 1, LISTED] - node[k, LISTED])
    for at in range(0, wide, 6):
        x = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for e in range(rows.first[row], rows.first[row + 1]):
            if e != factor.mark[row, OWNER] and rows.body[e] >= 0 and 6 * factor.column[e] == at:
                x = load6(rows.jacobian, e, 0)
        if node[k, COUPLED]:
            line = 36 * node[k, NEAR] + at
            for i in range(6):
                x = axpy6(-w[i], _load_line(y, line + i * wide), x)
        for j in range(index):
            x = axpy6(-corner[here + j], _load_line(u, first + j * wide + at), x)
        out = first + index * wide + at
        for i in range(6):
            u[out + i] = x[i]


@inline
def _load_line(array, at):
    """Six numbers from `at`."""
    return array[at], array[at + 1], array[at + 2], array[at + 3], array[at + 4], array[at + 5]


@kernel_function
def _update_front(node, block, front, u, coupling, corner, k, duals, wide):
    """Lower triangle of U^T G^-1 U - Y^T E^-1 Y, added to what the children passed on.

    Line by line, which compilers make of several numbers at a time.
    """
    base, first, y = node[k, FRONT], node[k, OUTER], 36 * node[k, NEAR]
    place, next_one = node[k, CORNER], node[k + 1, LISTED] - node[k, LISTED] + 1
    coupled = node[k, COUPLED]
    E = scale6(load21(block, k, LOWER), (-1.0, -1.0, -1.0, -1.0, -1.0, -1.0))
    if not coupled:
        _clear_triangle(front, base, wide)
    for i in range(wide):
        line = front[base + i * wide : base + i * wide + i + 1]
        r = 0
        while r + 2 < duals:
            at, place_r = first + r * wide, place + r * next_one
            _add_three(
                line, u[at : at + wide], u[at + wide : at + 2 * wide], u[at + 2 * wide : at + 3 * wide], i,
                corner[place_r], corner[place_r + next_one], corner[place_r + 2 * next_one],
            )  # fmt: skip
            r += 3
        while r < duals:
            at = first + r * wide
            _add_one(line, u[at : at + wide], i, corner[place + r * next_one])
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
    """Line i of a triangle plus that of s x^T x."""
    a = s * x[i]
    for j in range(len(line)):
        line[j] += a * x[j]


@inline
def _add_three(line, x, y, z, i, s, t, u):
    """Line i of a triangle plus that of s x^T x + t y^T y + u z^T z."""
    a, b, c = s * x[i], t * y[i], u * z[i]
    for j in range(len(line)):
        line[j] += a * x[j] + b * y[j] + c * z[j]


@kernel_function
def leafward_wide(graph, factor, fill, k):
    """y, z of position k and what it hands to its neighbours."""
    node, near, child, coupling = graph.node, graph.near, graph.child, fill.coupling
    mine = 6 * node[k, NEAR]
    wide = 6 * node[k + 1, NEAR] - mine
    passed = fill.passed[mine : mine + wide]
    for i in range(wide):
        passed[i] = 0.0
    for index in range(node[k, CHILD], node[k + 1, CHILD]):
        first = node[child[index], NEAR]
        for a in range(first + 1, node[child[index] + 1, NEAR]):
            to = 6 * near[a, SLOT]
            _add(passed[to : to + 6], fill.passed[6 * a : 6 * a + 6])
    y = eliminate_right(node, child, factor.block, factor.dual, factor.value, factor.roll, factor.corner, k)
    y = scale6(load21(factor.block, k, LOWER), y)
    base, u, first = node[k, LISTED], node[k, OUTER], node[k, CORNER]
    size = node[k + 1, LISTED] - base
    for r in range(node[k, DUALS]):
        weight = factor.dual[base + r, Z] * factor.corner[first + r * size + r]
        outer = fill.outer[u + r * wide : u + (r + 1) * wide]
        for i in range(wide):
            passed[i] += weight * outer[i]
    if node[k, COUPLED]:
        for n in range(6):
            line = coupling[6 * mine + n * wide : 6 * mine + (n + 1) * wide]
            weight = y[n]
            for i in range(wide):
                passed[i] -= weight * line[i]
    for i in range(6):
        factor.block[k, HANDED + i] = passed[i] if wide > 0 else 0.0


@inline
def _dot(x, y):
    """The sum of products, by six so that none waits for the one before; the length is a multiple of six."""
    s = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for at in range(0, len(x), 6):
        a, b = x[at : at + 6], y[at : at + 6]
        s = (
            s[0] + a[0] * b[0], s[1] + a[1] * b[1], s[2] + a[2] * b[2],
            s[3] + a[3] * b[3], s[4] + a[4] * b[4], s[5] + a[5] * b[5],
        )  # fmt: skip
    return ((s[0] + s[1]) + (s[2] + s[3])) + (s[4] + s[5])


@kernel_function
def rootward_wide(graph, factor, fill, k):
    """p and v of position k from the velocities of its neighbours."""
    node, near, block = graph.node, graph.near, factor.block
    first = node[k, NEAR]
    wide = 6 * (node[k + 1, NEAR] - first)
    spread = fill.spread[:wide]
    for a in range(wide // 6):
        at = near[first + a, NEIGHBOUR]
        for i in range(6):
            spread[6 * a + i] = block[at, SOLUTION + i]
    y = load6(block, k, RIGHT)
    if node[k, COUPLED]:
        line = 36 * first
        y = (
            y[0] - _dot(fill.coupling[line : line + wide], spread),
            y[1] - _dot(fill.coupling[line + wide : line + 2 * wide], spread),
            y[2] - _dot(fill.coupling[line + 2 * wide : line + 3 * wide], spread),
            y[3] - _dot(fill.coupling[line + 3 * wide : line + 4 * wide], spread),
            y[4] - _dot(fill.coupling[line + 4 * wide : line + 5 * wide], spread),
            y[5] - _dot(fill.coupling[line + 5 * wide : line + 6 * wide], spread),
        )
    base, u = node[k, LISTED], node[k, OUTER]
    for r in range(node[k, DUALS]):
        factor.dual[base + r, Z] -= _dot(fill.outer[u + r * wide : u + (r + 1) * wide], spread)
    back_substitute(node, block, factor.dual, factor.value, factor.roll, factor.corner, k, y)
