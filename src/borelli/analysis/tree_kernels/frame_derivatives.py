"""Derivatives of the marker energy in every frame, the second in its two parts."""

from __future__ import annotations

from borelli.analysis.tree_kernels.marker_energy import compute_energy, compute_gradient, compute_hessian
from borelli.analysis.tree_kernels.newton_ik import unpack
from borelli.kernels.jit import kernel


@kernel
def compute_frame_derivatives(
    search_at, rest, target, weight, q_inout, energy_out, gradient_out, gauss_out, remainder_out
):  # fmt: skip
    """Compute energy, gradient (frames, n), Gauss-Newton Hessian (frames, n, n) and the remainder of the Hessian."""
    energy_at = search_at.energy
    gradient, rest_position = energy_at.gradient, energy_at.rest_springs.rest
    n = len(gradient)
    for t in range(len(q_inout)):
        for v in range(n):
            rest_position[v] = rest[min(t, len(rest) - 1), v]
        energy_out[t] = compute_energy(energy_at, target[t], weight[t], q_inout[t])
        compute_gradient(energy_at, target[t], weight[t], q_inout[t])
        for i in range(n):
            gradient_out[t, i] = gradient[i]
        for gauss in range(1, -1, -1):
            compute_hessian(energy_at, q_inout[t], float(gauss), float(1 - gauss))
            unpack(energy_at, gauss_out[t] if gauss else remainder_out[t])
