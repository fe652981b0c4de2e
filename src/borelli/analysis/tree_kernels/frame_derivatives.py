"""First and second derivatives of the springs' energy in every frame, the second in its two parts."""

from __future__ import annotations

from borelli.analysis.tree_kernels.marker_energy import compute_energy, find_curvature, find_gradient
from borelli.analysis.tree_kernels.newton_ik import unpack
from borelli.kernels.jit import kernel


@kernel
def compute_frame_derivatives(search_at, rest, target, weight, q_inout, energy_out, gradient_out, gauss_out, rest_out):
    """Energy, gradient (frames, n), Gauss and Newton's part (frames, n, n) of the second derivative, the rest of it."""
    springs_at = search_at.springs
    gradient, resting = springs_at.gradient, springs_at.holds.rest
    n = len(gradient)
    for t in range(len(q_inout)):
        for v in range(n):
            resting[v] = rest[min(t, len(rest) - 1), v]
        energy_out[t] = compute_energy(springs_at, target[t], weight[t], q_inout[t])
        find_gradient(springs_at, target[t], weight[t], q_inout[t])
        for i in range(n):
            gradient_out[t, i] = gradient[i]
        for gauss in range(1, -1, -1):
            find_curvature(springs_at, q_inout[t], float(gauss), float(1 - gauss))
            unpack(springs_at, gauss_out[t] if gauss else rest_out[t])
