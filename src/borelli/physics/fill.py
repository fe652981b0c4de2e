"""Elimination of a body with several neighbours left: what loops fill (the algebra is in `elimination`).

Off the hot path: bodies of a tree never come here.
"""

from __future__ import annotations

from borelli.jit import leaf, part
from borelli.physics.blocks import axpy6, dot6, forward6, load6, load21, scale6, store6
from borelli.physics.factor import (
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
from borelli.physics.graph import CHILD, CORNER, COUPLED, DUALS, FRONT, LISTED, NEAR, NEIGHBOUR, OUTER, SLOT
from borelli.physics.pivots import back_substitute, eliminate_right, next_corner


@part
def gather_fill(node, near, front, coupling, k, child):
    """Add the parts of a child's update that lie beyond position k to B and to the update of k."""
    wide = 6 * (node[k + 1, NEAR] - node[k, NEAR])
    width = 6 * (node[child + 1, NEAR] - node[child, NEAR])
    block, base = 36 * node[k, NEAR], node[k, FRONT]
    if not node[k, COUPLED]:
        node[k, COUPLED] = 1
        coupling[block : block + 6 * wide] = 0.0
        front[base : base + wide * wide] = 0.0
    source, first = node[child, FRONT], node[child, NEAR]
    for a in range(1, width // 6):
        to = 6 * near[first + a, SLOT]
        for i in range(6):
            for j in range(6):
                coupling[block + j * wide + to + i] += front[source + (6 * a + i) * width + j]
        for b in range(1, a + 1):
            over = 6 * near[first + b, SLOT]
            for i in range(6):
                for j in range(6 if b < a else i + 1):
                    front[base + (to + i) * wide + over + j] += front[source + (6 * a + i) * width + 6 * b + j]


@leaf
def _load_column(coupling, at, wide):
    """Six numbers of one column, its first at `at`."""
    return (
        coupling[at], coupling[at + wide], coupling[at + 2 * wide], coupling[at + 3 * wide], coupling[at + 4 * wide],
        coupling[at + 5 * wide],
    )  # fmt: skip


@part
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


@leaf
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


@leaf
def _load_line(array, at):
    """Six numbers from `at`."""
    return array[at], array[at + 1], array[at + 2], array[at + 3], array[at + 4], array[at + 5]


@part
def _update_front(node, block, front, u, coupling, corner, k, duals, wide):
    """Lower triangle of U^T G^-1 U - Y^T E^-1 Y, added to what the children passed on.

    By 3 x 3 parts, which stay in registers; those on the diagonal are written whole.
    """
    base, first, y = node[k, FRONT], node[k, OUTER], 36 * node[k, NEAR]
    place, next_one = node[k, CORNER], node[k + 1, LISTED] - node[k, LISTED] + 1
    coupled = node[k, COUPLED]
    E = scale6(load21(block, k, LOWER), (-1.0, -1.0, -1.0, -1.0, -1.0, -1.0))
    for i in range(0, wide, 3):
        for j in range(0, i + 3, 3):
            part = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            for r in range(duals):
                part = _add_outer3(part, corner[place + r * next_one], u, first + r * wide + i, first + r * wide + j)
            if coupled:
                part = _add_outer3(part, E[0], coupling, y + i, y + j)
                part = _add_outer3(part, E[1], coupling, y + wide + i, y + wide + j)
                part = _add_outer3(part, E[2], coupling, y + 2 * wide + i, y + 2 * wide + j)
                part = _add_outer3(part, E[3], coupling, y + 3 * wide + i, y + 3 * wide + j)
                part = _add_outer3(part, E[4], coupling, y + 4 * wide + i, y + 4 * wide + j)
                part = _add_outer3(part, E[5], coupling, y + 5 * wide + i, y + 5 * wide + j)
            for a in range(3):
                at = base + (i + a) * wide + j
                for b in range(3):
                    front[at + b] = part[3 * a + b] + (front[at + b] if coupled else 0.0)
    for i in range(6):
        for j in range(i + 1):
            block[k, UPDATE + i * (i + 1) // 2 + j] = front[base + i * wide + j]


@leaf
def _add_outer3(D, s, x, i, j):
    """The 3 x 3 block D, line by line, plus s times three numbers of x from i, times three from j."""
    a0, a1, a2 = s * x[i], s * x[i + 1], s * x[i + 2]
    b0, b1, b2 = x[j], x[j + 1], x[j + 2]
    return (
        D[0] + a0 * b0, D[1] + a0 * b1, D[2] + a0 * b2,
        D[3] + a1 * b0, D[4] + a1 * b1, D[5] + a1 * b2,
        D[6] + a2 * b0, D[7] + a2 * b1, D[8] + a2 * b2,
    )  # fmt: skip


@part
def leafward_wide(graph, factor, fill, k):
    """y, z of position k and what it hands to its neighbours."""
    node, near, child, passed, coupling = graph.node, graph.near, graph.child, fill.passed, fill.coupling
    mine = 6 * node[k, NEAR]
    wide = 6 * node[k + 1, NEAR] - mine
    for i in range(wide):
        passed[mine + i] = 0.0
    for index in range(node[k, CHILD], node[k + 1, CHILD]):
        first = node[child[index], NEAR]
        for a in range(first + 1, node[child[index] + 1, NEAR]):
            to = mine + 6 * near[a, SLOT]
            for i in range(6):
                passed[to + i] += passed[6 * a + i]
    y = eliminate_right(node, child, factor.block, factor.dual, factor.value, factor.roll, factor.corner, k)
    y = scale6(load21(factor.block, k, LOWER), y)
    base, u, first = node[k, LISTED], node[k, OUTER], node[k, CORNER]
    size = node[k + 1, LISTED] - base
    for r in range(node[k, DUALS]):
        weight = factor.dual[base + r, Z] * factor.corner[first + r * size + r]
        for i in range(wide):
            passed[mine + i] += weight * fill.outer[u + r * wide + i]
    if node[k, COUPLED]:
        for i in range(wide):
            passed[mine + i] -= dot6(_load_column(coupling, 6 * mine + i, wide), y)
    for i in range(6):
        factor.block[k, HANDED + i] = passed[mine + i]


@part
def rootward_wide(graph, factor, fill, k):
    """p and v of position k from the velocities of its neighbours."""
    node, near, block, spread = graph.node, graph.near, factor.block, fill.spread
    first = node[k, NEAR]
    wide = 6 * (node[k + 1, NEAR] - first)
    for a in range(wide // 6):
        for i in range(6):
            spread[6 * a + i] = block[near[first + a, NEIGHBOUR], SOLUTION + i]
    y = load6(block, k, RIGHT)
    if node[k, COUPLED]:
        for column in range(wide):
            y = axpy6(-spread[column], _load_column(fill.coupling, 36 * first + column, wide), y)
    base, u = node[k, LISTED], node[k, OUTER]
    for r in range(node[k, DUALS]):
        s = 0.0
        for i in range(wide):
            s += fill.outer[u + r * wide + i] * spread[i]
        factor.dual[base + r, Z] -= s
    back_substitute(node, block, factor.dual, factor.value, factor.roll, factor.corner, k, y)
