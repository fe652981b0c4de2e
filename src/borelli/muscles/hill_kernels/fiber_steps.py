"""Forward simulation of activation and fiber length along given path lengths and excitations.

The fiber follows dl/dt = v, where v is defined by the equilibrium of `musculotendon`. Two implicit stages with the
diagonal g = 1 - 1 / sqrt(2) (Alexander 1977: order 2, L-stable) solve that equilibrium with v = (l - base) / (g h):

    stage 1 at t + g h:   base = l0
    stage 2 at t + h:     base = l0 + (1 - g) h v1,    and its l is the new length

The force-velocity curve is never inverted, so neither zero activation nor a slack tendon is an exception.
"""

from __future__ import annotations

from math import nan

from borelli.kernels.jit import kernel, kernel_function
from borelli.muscles.hill_kernels.activation import step_muscle_activation
from borelli.muscles.hill_kernels.curves import tendon_curve
from borelli.muscles.hill_kernels.musculotendon import (
    fiber_forces,
    fiber_width,
    pennation_cosine,
    rigid_tendon_state,
    solve_fiber_length,
)
from borelli.muscles.hill_kernels.status import NOT_CONVERGED, SLACK

SDIRK_GAMMA = 1.0 - 0.5 * 2.0**0.5
"""Diagonal of the L-stable two-stage method of order 2 (Alexander 1977)."""


@kernel_function
def step_fiber(arrays, m, a_middle, a_end, length, path_middle, path_end, step):
    """Return fiber length [m], velocity [m/s] and status after a step [s]; the middle is at g times the step."""
    h = SDIRK_GAMMA * step
    first, _, status = solve_fiber_length(arrays, m, a_middle, path_middle, 0.0, length, h, length)
    if status == NOT_CONVERGED:
        return nan, nan, NOT_CONVERGED
    base = length + (1.0 - SDIRK_GAMMA) * step * (first - length) / h
    last, _, status = solve_fiber_length(arrays, m, a_end, path_end, 0.0, base, h, base + first - length)
    return last, (last - base) / h, status


@kernel_function
def advance_muscle(arrays, m, a, length, path_start, path_end, u_start, u_end, time, substeps):
    """Return activation, fiber length [m], fiber velocity [m/s] and status after a time [s], in substeps.

    Path length [m] and excitation are linear from start to end. With a rigid tendon, they determine the fiber.
    """
    rigid, h, velocity, status = arrays.rigid_tendon[m], time / substeps, 0.0, NOT_CONVERGED
    slope, rise = (path_end - path_start) / time, (u_end - u_start) / time
    for k in range(substeps):
        t = k * h
        middle, last = t + SDIRK_GAMMA * h, t + h
        # the mean excitation of each part keeps the order for excitations that are linear in time
        u = u_start + 0.5 * rise * (t + middle)
        a_middle = step_muscle_activation(arrays, m, a, u, SDIRK_GAMMA * h)
        u = u_start + 0.5 * rise * (middle + last)
        a = step_muscle_activation(arrays, m, a_middle, u, (1.0 - SDIRK_GAMMA) * h)
        if rigid:
            length, velocity, _, status = rigid_tendon_state(arrays, m, path_start + slope * last, slope)
        else:
            length, velocity, status = step_fiber(
                arrays, m, a_middle, a, length, path_start + slope * middle, path_start + slope * last, h
            )
            if status == NOT_CONVERGED:
                break
    return a, length, velocity, status


@kernel_function
def tendon_force(arrays, m, a, length, velocity, path_length, status):
    """Return the force of a state along the tendon [N]; zero where the tendon is slack."""
    if status == SLACK:
        return 0.0
    most, c = arrays.max_isometric_force[m], pennation_cosine(length, fiber_width(arrays, m))
    if arrays.rigid_tendon[m]:
        fa, fp, fd = fiber_forces(arrays, m, a, length, velocity)
        return most * c * max(fa + fp + fd, 0.0)
    strain = (path_length - length * c) / arrays.tendon_slack_length[m]
    return most * tendon_curve(arrays.curve_kind[m], arrays.curve[m], strain)[0]


@kernel_function
def _record(arrays, m, i, a, length, velocity, path_length, status, state, force, active, passive, code):
    """Write activation, fiber length and velocity, tendon force and fiber forces [N] of one frame."""
    most = arrays.max_isometric_force[m]
    state[i, m, 0], state[i, m, 1], state[i, m, 2] = a, length, velocity
    fa, fp, _ = fiber_forces(arrays, m, a, length, velocity)
    active[i, m], passive[i, m], code[i, m] = most * fa, most * fp, status
    force[i, m] = tendon_force(arrays, m, a, length, velocity, path_length, status)


@kernel
def simulate_fibers(arrays, time, path_length, start, end, substeps, state, force, active, passive, code):
    """Fill states and forces of all muscles at all frames.

    Path length [m] is linear between frames, excitation linear from `start` to `end` of the interval before a frame.
    `state` (frames, muscles, 3) has activation, fiber length and fiber velocity; its first frame contains the initial
    activation, and the initial fiber length of elastic tendons (NaN: in equilibrium at rest).
    """
    for m in range(path_length.shape[1]):
        a, length, velocity = state[0, m, 0], state[0, m, 1], 0.0
        slope = (path_length[1, m] - path_length[0, m]) / (time[1] - time[0])
        if arrays.rigid_tendon[m]:
            length, velocity, _, status = rigid_tendon_state(arrays, m, path_length[0, m], slope)
        elif length != length:
            optimal = arrays.optimal_fiber_length[m]
            length, _, status = solve_fiber_length(arrays, m, a, path_length[0, m], 0.0, 0.0, 0.0, optimal)
        else:
            status = 0
        _record(arrays, m, 0, a, length, velocity, path_length[0, m], status, state, force, active, passive, code)
        for i in range(1, len(time)):
            a, length, velocity, status = advance_muscle(
                arrays, m, a, length, path_length[i - 1, m], path_length[i, m], start[i, m], end[i, m],
                time[i] - time[i - 1], substeps[i],
            )  # fmt: skip
            _record(arrays, m, i, a, length, velocity, path_length[i, m], status, state, force, active, passive, code)
