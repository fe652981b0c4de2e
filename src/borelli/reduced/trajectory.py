"""First and second derivatives of the springs' energy in every frame, the second in its two parts."""

from __future__ import annotations

from borelli.jit import kernel
from borelli.reduced.pose import unpack
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
        for i in range(n):
            gradient_out[t, i] = springs.gradient[i]
        find_curvature(tree, holds, q_inout[t], 1.0, 0.0, springs)
        unpack(tree, springs.curve, gauss_out[t])
        find_curvature(tree, holds, q_inout[t], 0.0, 1.0, springs)
        unpack(tree, springs.curve, rest_out[t])
