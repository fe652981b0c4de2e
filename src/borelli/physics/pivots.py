"""The steps every body's elimination shares: its rows' corner C, y and z, p and v (algebra in `elimination`)."""

from __future__ import annotations

from math import sqrt

from borelli.jit import leaf
from borelli.physics.blocks import axpy6, backward6, dot6, forward6, load6, load21, store6
from borelli.physics.factor import C, DUAL_ROW, HANDED, IMPULSE, LOWER, RIGHT, SOLUTION, W, Z
from borelli.physics.graph import CHILD, CORNER, DUALS, LISTED


@leaf
def next_corner(corner, dual, slope, w, base, first, size, duals):
    """Row `duals` of C for a dual row of that slope and W; its squared pivot."""
    here = first + duals * size
    for j in range(duals):
        s = dot6(w, load6(dual, base + j, W))
        other = first + j * size
        for n in range(j):
            s -= corner[here + n] * corner[other + n]
        corner[here + j] = s * corner[other + j]
    s = dot6(w, w) + slope
    for n in range(duals):
        s -= corner[here + n] * corner[here + n]
    corner[here + duals] = 1.0 / sqrt(s)
    return s


@leaf
def eliminate_right(node, child, block, dual, value, roll, corner, k):
    """y and z of position k."""
    y = load6(block, k, RIGHT)
    for index in range(node[k, CHILD], node[k + 1, CHILD]):
        y = axpy6(1.0, load6(block, child[index], HANDED), y)
    y = forward6(load21(block, k, LOWER), y)
    store6(block, k, RIGHT, y)
    base, first = node[k, LISTED], node[k, CORNER]
    size = node[k + 1, LISTED] - base
    for r in range(node[k, DUALS]):
        s = value[roll[base + r, DUAL_ROW], C] - dot6(load6(dual, base + r, W), y)
        here = first + r * size
        for j in range(r):
            s -= corner[here + j] * dual[base + j, Z]
        dual[base + r, Z] = s * corner[here + r]
    return y


@leaf
def back_substitute(node, block, dual, value, roll, corner, k, v):
    """p of position k from what stands in Z, and its v from L^T v = `v` + W p."""
    base, first = node[k, LISTED], node[k, CORNER]
    size = node[k + 1, LISTED] - base
    duals = node[k, DUALS]
    for index in range(duals):
        r = duals - 1 - index
        s = dual[base + r, Z]
        for j in range(r + 1, duals):
            s -= corner[first + j * size + r] * dual[base + j, Z]
        p = s * corner[first + r * size + r]
        dual[base + r, Z] = p
        value[roll[base + r, DUAL_ROW], IMPULSE] = p
        v = axpy6(p, load6(dual, base + r, W), v)
    v = backward6(load21(block, k, LOWER), v)
    store6(block, k, SOLUTION, v)
    return v
