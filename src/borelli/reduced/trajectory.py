"""First and second derivatives of the springs' energy in every frame, the second in its two parts."""

from __future__ import annotations

from borelli.jit import kernel
from borelli.reduced.springs import find_curvature, find_energy, find_gradient


@kernel
def find_curvatures(
    tree, points, holds, rest, target, weight, q_inout, search, energy_out, gradient_out, gauss_out, rest_out
):  # fmt: skip
    """Energy, gradient (frames, n), Gauss and Newton's part (frames, n, n) of the second derivative, the rest of it."""
    springs = search.springs
    n = len(tree.free)
    for t in range(len(q_inout)):
        for v in range(n):
            holds.rest[v] = rest[min(t, len(rest) - 1), v]
        energy_out[t] = find_energy(tree, points, holds, target[t], weight[t], q_inout[t], springs)
        find_gradient(tree, points, holds, target[t], weight[t], q_inout[t], springs)
        find_curvature(tree, holds, q_inout[t], springs)
        for i in range(n):
            gradient_out[t, i] = springs.gradient[i]
            for j in range(n):
                gauss_out[t, i, j] = 0.0
                rest_out[t, i, j] = 0.0
            gauss_out[t, i, i] = springs.gauss[i, i]
            rest_out[t, i, i] = springs.rest[i, i]
        for i in range(n):
            for s in range(tree.row_first[i], tree.row_first[i + 1]):
                j = tree.row_column[s]
                gauss_out[t, i, j] = springs.gauss[i, j]
                gauss_out[t, j, i] = springs.gauss[i, j]
                rest_out[t, i, j] = springs.rest[i, j]
                rest_out[t, j, i] = springs.rest[i, j]
