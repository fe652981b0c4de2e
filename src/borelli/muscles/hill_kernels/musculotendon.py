"""Forces of fiber and tendon: rigid tendon, equilibrium with an elastic tendon, fiber velocity of a state.

The fibers are parallel and keep their width h = l0 sin(phi0), so cos(phi) = sqrt(1 - (h / l)^2), and with the length
along the tendon x = l cos(phi) = sqrt(l^2 - h^2), dx/dl = 1 / cos(phi). In maximum isometric forces,

    F = (a fl(l / l0) fv(v) + fpe(l / l0) + damping v) cos(phi) = fse((L - x) / lTs),    v = dl/dt / (l0 vmax)

(Zajac 1989; Millard et al. 2013, eq. 1). The solver looks for l between the minimum fiber length and the length at
which the tendon is slack: between them the residual changes its sign, so a bracketed Newton cannot fail.
"""

from __future__ import annotations

from math import isfinite, nan, sin, sqrt

from borelli.kernels.jit import inline, kernel, kernel_function
from borelli.muscles.hill_kernels.curves import (
    active_curve,
    inverse_velocity_curve,
    passive_curve,
    tendon_curve,
    velocity_curve,
)
from borelli.muscles.hill_kernels.status import (
    BELOW_MIN_FIBER_LENGTH,
    CONVERGED,
    INVALID_INPUT,
    NOT_CONVERGED,
    SLACK,
    VELOCITY_OUT_OF_RANGE,
)

MAX_ITERATIONS = 200
"""Newton needs about 6; bisection alone needs about 60."""
MAX_STAGE_ITERATIONS = 8
"""Iterations of Newton's method in a stage of a fiber's step before the bracketed search."""
RESIDUAL_GOAL = 1e-12
"""Residual [max isometric forces] at which the iteration ends."""
RESIDUAL_TOLERANCE = 1e-10
"""Residual [max isometric forces] beyond which the status is not "converged"."""


@inline
def fiber_width(arrays, m):
    """Return the constant width h [m] of the fibers."""
    return arrays.optimal_fiber_length[m] * sin(arrays.pennation_angle[m])


@inline
def pennation_cosine(length, width):
    """Return cos(phi) at a fiber length [m]."""
    return sqrt(1.0 - (width / length) ** 2)


@kernel_function
def force_residual(arrays, m, activation, length, velocity, velocity_slope, path_length):
    """Return fiber minus tendon force along the tendon [max isometric forces] and its derivative by fiber length.

    `velocity` [m/s] is the fiber's; `velocity_slope` [1/s] its derivative by fiber length.
    """
    kind, row = arrays.curve_kind[m], arrays.curve[m]
    optimal, slack = arrays.optimal_fiber_length[m], arrays.tendon_slack_length[m]
    width = fiber_width(arrays, m)
    c = pennation_cosine(length, width)
    to_unit = 1.0 / (optimal * arrays.max_contraction_velocity[m])
    fl, d_fl = active_curve(kind, row, length / optimal)
    fv, d_fv = velocity_curve(kind, row, velocity * to_unit, activation)
    fpe, d_fpe = passive_curve(kind, row, length / optimal)
    fse, d_fse = tendon_curve(kind, row, (path_length - length * c) / slack)
    fiber = activation * fl * fv + fpe + arrays.damping[m] * velocity * to_unit
    d_fiber = (activation * d_fl * fv + d_fpe) / optimal
    d_fiber += (activation * fl * d_fv + arrays.damping[m]) * to_unit * velocity_slope
    d_cosine = width**2 / (length**3 * c)
    return fiber * c - fse, d_fiber * c + fiber * d_cosine + d_fse / (slack * c)


@kernel_function
def solve_fiber_length(arrays, m, activation, path_length, path_velocity, base, step, guess):
    """Return the fiber length [m] in equilibrium, the residual [max isometric forces] and the status.

    With step > 0 [s] the fiber velocity is (l - base) / step: a stage of an implicit method. With step = 0 it is
    path_velocity cos(phi): the tendon's own velocity is neglected.
    """
    width, least = fiber_width(arrays, m), arrays.min_fiber_length[m]
    along = path_length - arrays.tendon_slack_length[m]
    slack_length = sqrt(width**2 + along**2) if along > 0.0 else 0.0
    low, high = least, max(slack_length, base)
    if high <= least:
        return least, 0.0, SLACK
    if step > 0.0:
        length, residual = _newton_stage(arrays, m, activation, path_length, base, step, low, high, guess)
        if abs(residual) <= RESIDUAL_GOAL:
            return length, residual, SLACK if length >= slack_length else CONVERGED
    for end in range(2):  # the residual is negative at the minimum length and positive where the tendon is slack
        length = low if end == 0 else high
        velocity, slope = _velocity(width, length, path_velocity, base, step)
        residual, _ = force_residual(arrays, m, activation, length, velocity, slope, path_length)
        if end == 0 and residual >= 0.0:
            taut = path_length - low * pennation_cosine(low, width) > arrays.tendon_slack_length[m]
            return low, residual, BELOW_MIN_FIBER_LENGTH if taut else SLACK
        if end == 1 and residual <= 0.0:
            return high, residual, SLACK
    length = guess if low < guess < high else 0.5 * (low + high)
    last_step = high - low
    for _ in range(MAX_ITERATIONS):
        velocity, slope = _velocity(width, length, path_velocity, base, step)
        residual, derivative = force_residual(arrays, m, activation, length, velocity, slope, path_length)
        if abs(residual) <= RESIDUAL_GOAL:
            break
        if residual > 0.0:
            high = length
        else:
            low = length
        # bisect where Newton leaves the bracket or does not halve its step, as on a steep exponential
        newton = derivative > 0.0 and 2.0 * abs(residual) < last_step * derivative
        following = length - residual / derivative if newton else low
        if not (low < following < high):
            following = 0.5 * (low + high)
        last_step = abs(following - length)
        if last_step == 0.0:
            break
        length = following
    if not abs(residual) <= RESIDUAL_TOLERANCE:
        return nan, residual, NOT_CONVERGED
    return length, residual, SLACK if length >= slack_length else CONVERGED


@kernel_function
def _newton_stage(arrays, m, activation, path_length, base, step, low, high, guess):
    """Return a fiber length [m] within bounds and its residual after Newton's method, which may not have converged.

    From the last length it needs two to four iterations, where the bracketed search evaluates the bounds first.
    """
    length, residual = guess, 1.0
    for _ in range(MAX_STAGE_ITERATIONS):
        if not low < length < high:
            return length, 1.0
        residual, derivative = force_residual(
            arrays, m, activation, length, (length - base) / step, 1.0 / step, path_length
        )
        if abs(residual) <= RESIDUAL_GOAL or not derivative > 0.0:
            break
        length -= residual / derivative
    return length, residual


@inline
def _velocity(width, length, path_velocity, base, step):
    """Return the fiber velocity [m/s] and its derivative by fiber length [1/s]."""
    if step > 0.0:
        return (length - base) / step, 1.0 / step
    c = pennation_cosine(length, width)
    return path_velocity * c, path_velocity * width**2 / (length**3 * c)


@kernel_function
def fiber_velocity_of_state(arrays, m, activation, length, path_length):
    """Return the fiber velocity [m/s] that balances the tendon at a fiber length, and the status."""
    kind, row = arrays.curve_kind[m], arrays.curve[m]
    optimal, damping = arrays.optimal_fiber_length[m], arrays.damping[m]
    most = optimal * arrays.max_contraction_velocity[m]
    c = pennation_cosine(length, fiber_width(arrays, m))
    tendon = tendon_curve(kind, row, (path_length - length * c) / arrays.tendon_slack_length[m])[0]
    scale = activation * active_curve(kind, row, length / optimal)[0]
    force = tendon / c - passive_curve(kind, row, length / optimal)[0]
    if scale <= 0.0:
        return (force / damping * most, CONVERGED) if damping > 0.0 else (0.0, VELOCITY_OUT_OF_RANGE)
    if damping <= 0.0:
        v = inverse_velocity_curve(kind, row, force / scale, activation)
        reached = scale * velocity_curve(kind, row, v, activation)[0]
        return v * most, CONVERGED if abs(reached - force) <= RESIDUAL_TOLERANCE else VELOCITY_OUT_OF_RANGE
    low, high = -1.0, 1.0
    while scale * velocity_curve(kind, row, low, activation)[0] + damping * low > force:
        low *= 2.0
    while scale * velocity_curve(kind, row, high, activation)[0] + damping * high < force:
        high *= 2.0
    v = 0.0
    for _ in range(MAX_ITERATIONS):
        fv, slope = velocity_curve(kind, row, v, activation)
        error = scale * fv + damping * v - force
        if abs(error) <= RESIDUAL_GOAL:
            break
        if error > 0.0:
            high = v
        else:
            low = v
        following = v - error / (scale * slope + damping)
        if not (low < following < high):
            following = 0.5 * (low + high)
        if following == v:
            break
        v = following
    return v * most, CONVERGED


@inline
def rigid_tendon_state(arrays, m, path_length, path_velocity):
    """Return fiber length [m], velocity [m/s], cos(phi) and status where the tendon keeps its slack length."""
    width, least = fiber_width(arrays, m), arrays.min_fiber_length[m]
    along = path_length - arrays.tendon_slack_length[m]
    if not (isfinite(along) and isfinite(path_velocity)):
        return nan, nan, nan, INVALID_INPUT
    length = sqrt(width**2 + along**2) if along > 0.0 else 0.0
    if length >= least:
        c = pennation_cosine(length, width)
        return length, path_velocity * c, c, CONVERGED
    c = pennation_cosine(least, width)
    if along <= 0.0:
        return least, 0.0, c, SLACK
    return least, path_velocity * c, c, BELOW_MIN_FIBER_LENGTH


@inline
def fiber_forces(arrays, m, activation, length, velocity):
    """Return the active, passive and damping force of the fiber [max isometric forces]."""
    kind, row = arrays.curve_kind[m], arrays.curve[m]
    optimal = arrays.optimal_fiber_length[m]
    v = velocity / (optimal * arrays.max_contraction_velocity[m])
    active = activation * active_curve(kind, row, length / optimal)[0]
    # fibers cannot push: the extension of Thelen's and De Groote's curves below zero is for solvers
    active *= max(velocity_curve(kind, row, v, activation)[0], 0.0)
    return active, max(passive_curve(kind, row, length / optimal)[0], 0.0), arrays.damping[m] * v


@kernel
def fill_rigid_tendon(arrays, path_length, path_velocity, active, passive, damping, length, velocity, cosine, status):
    """Fill active force at full activation, passive and damping force along the tendon [N], and the fiber's state."""
    for m in range(path_length.shape[1]):
        for i in range(path_length.shape[0]):
            fiber, v, c, state = rigid_tendon_state(arrays, m, path_length[i, m], path_velocity[i, m])
            length[i, m], velocity[i, m], cosine[i, m], status[i, m] = fiber, v, c, state
            fa, fp, fd = fiber_forces(arrays, m, 1.0, fiber, v) if state != SLACK else (0.0, 0.0, 0.0)
            scale = arrays.max_isometric_force[m] * c
            active[i, m], passive[i, m], damping[i, m] = scale * fa, scale * fp, scale * fd


@kernel
def fill_elastic_tendon(arrays, path_length, path_velocity, activation, force, length, velocity, residual, status):
    """Fill tendon force [N], fiber length [m], velocity [m/s], residual [N] and status of muscles in equilibrium."""
    for m in range(path_length.shape[1]):
        guess, width = arrays.optimal_fiber_length[m], fiber_width(arrays, m)
        most = arrays.max_isometric_force[m]
        for i in range(path_length.shape[0]):
            total, speed, a = path_length[i, m], path_velocity[i, m], activation[i, m]
            residual[i, m] = 0.0
            if arrays.rigid_tendon[m] or not (isfinite(total) and isfinite(speed) and isfinite(a)):
                fiber, v, c, state = rigid_tendon_state(arrays, m, total, speed)
                fa, fp, fd = fiber_forces(arrays, m, a, fiber, v) if state != SLACK else (0.0, 0.0, 0.0)
                force[i, m], length[i, m], velocity[i, m] = most * c * max(fa + fp + fd, 0.0), fiber, v
                status[i, m] = state
                if not isfinite(a):
                    force[i, m], status[i, m] = nan, INVALID_INPUT
                continue
            fiber, error, state = solve_fiber_length(arrays, m, a, total, speed, 0.0, 0.0, guess)
            length[i, m], status[i, m] = fiber, state
            if state == SLACK or state == NOT_CONVERGED:
                force[i, m] = velocity[i, m] = 0.0 if state == SLACK else nan
                continue
            guess, residual[i, m] = fiber, error * most
            c = pennation_cosine(fiber, width)
            velocity[i, m] = speed * c if state == CONVERGED else 0.0
            strain = (total - fiber * c) / arrays.tendon_slack_length[m]
            force[i, m] = most * tendon_curve(arrays.curve_kind[m], arrays.curve[m], strain)[0]


@kernel
def fill_fiber_velocity(arrays, activation, length, path_length, velocity, status):
    """Fill the fiber velocity [m/s] of states, and its status."""
    for m in range(length.shape[1]):
        for i in range(length.shape[0]):
            a, fiber, total = activation[i, m], length[i, m], path_length[i, m]
            if not (isfinite(a) and isfinite(total) and fiber > fiber_width(arrays, m)):
                velocity[i, m], status[i, m] = nan, INVALID_INPUT
            else:
                velocity[i, m], status[i, m] = fiber_velocity_of_state(arrays, m, a, fiber, total)
