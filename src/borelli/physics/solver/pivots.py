"""Steps common to the elimination of every body: its rows' corner C, y and z, p and v (algebra in `elimination`)."""

from __future__ import annotations

from borelli.kernels.jit import inline
from borelli.physics.solver.blocks import axpy6, backward6, dot6, forward6, load6, load21, scale6, store6
from borelli.physics.solver.elimination_order import CHILD, CORNER, DUALS, LISTED
from borelli.physics.solver.factor_arrays import DUAL_ROW, IMPULSE, LOWER, RIGHT, SOLUTION, UPDATE_RIGHT, C, W, Z


@inline
def append_corner_row(corner, dual, slope, j, w, base, first, size, duals):
    """Compute row `duals` of C and G for a dual row with L^-1 J^T = `j` and W = `w`; return its pivot."""
    here = first + duals * size
    pivot = dot6(j, w) + slope
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
def forward_right_side(node, child, block, dual, value, row_list, corner, k):
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
def back_substitute(node, block, dual, value, row_list, corner, k, y):
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
