"""Controls of least cost that give required torques, frame by frame: Newton's method on the dual problem.

    minimize sum_i c_i(x_i)   subject to   A x = b,   lower <= x <= upper
    c(x) = w |x|^p + k x^2 / 2 + l |x| - g x

A has one column per actuator (torque per unit of control), divided row by row by the strengths of the coordinates. With
multipliers y the control of an actuator depends on its own s = A_i^T y + g alone,

    x(s) = clip(root of  p w x^(p-1) + k x = |s| - l,  with the sign of s)

so that y minimizes a convex function without constraints, of the size of b for any number of actuators:

    phi(y)  = sum_i max_x ((A_i^T y) x - c_i(x)) - b.y + e |y - y0|^2 / 2
    grad    = A x(y) - b + e (y - y0)
    Hessian = A D A^T + e,   D = dx/ds, zero where x is at a bound

by Newton's method with an exact line search: phi' along a step rises monotonically, and a bracketed Newton iteration
finds its zero (a backtracking search stalls on torques that cannot be attained). The term e makes the problem the
proximal-point method (Rockafellar 1976): y0 is moved to y until A x = b.

Where no x within the bounds gives b, y would grow without limit. The nearest attainable torque is found first, by the
proximal-point method on |b - A x|^2 / 2, whose rounds minimize |b - A x|^2 / 2 + e |x - x0|^2 / 2. Each is the problem
above with k = 1, g = x0 and y = (b - A x) / e. The unattained torque u = b - A x is proven by its gap,

    |u|^2 - min over the bounds of |b - A x|^2 <= 2 max over the bounds of u.A (x' - x)

The nearest torque b - u is attainable. All x that attain it have the actuators with u.A_i != 0 at the same bounds;
these are fixed, and the first problem is solved for the others.

The derivative p w |x|^(p-1) of costs with p > 2 has no slope at 0; below x_join it is a straight line to 0.
The Hessian is sparse, as a muscle crosses few joints; rows are sorted for little fill-in (`actuator_columns`).
"""

from __future__ import annotations

import numpy as np

from borelli.kernels.jit import inline, kernel, kernel_function

ATTAINED, NEAREST, NOT_CONVERGED, MISSING = 0, 1, 2, 3
"""Status of a frame: torque attained; nearest attainable torque; neither proven; input is NaN."""

ATTAINED_TOLERANCE = 1e-9
"""Largest unattained torque of an attained frame, divided by the strength of the coordinate."""
GAP_TOLERANCE = 1e-8
"""Largest excess of |u| over the least, in strengths, relative to 1 + the largest required torque."""
MAX_RELATIVE_GAP = 0.01
"""Largest gap relative to |u|^2: it is at least 1 if b is attainable."""
GRADIENT_TOLERANCE = 1e-11
"""Largest entry of the gradient at the end of Newton's method, relative to 1 + the largest required torque."""
LINE_TOLERANCE = 1e-3
"""Slope of phi at the end of a line search, relative to that at its start."""
SOFTNESS = 1e-7
"""e relative to the diagonal of A D A^T with all actuators free; the torque missing after a round is e (y - y0)."""
NEAREST_SOFTNESS = 1e-6
"""e of the rounds for the nearest torque, relative to the mean diagonal of A A^T: rounding errors of x are of the order
of 1e-16 / e, and x_i moves by u.A_i / e in a round."""
FIXED_GAIN = 3e-10
"""|u.A_i| above which an actuator is at the same bound wherever the nearest torque is attained."""
MIN_PROGRESS = 0.1
"""Unattained torque after a round, relative to that after the round before, above which the round was slow."""
MIN_SOFTNESS = 1e-13
"""Least e of these rounds, likewise relative."""
SOFTNESS_REDUCTION = 0.01
"""Factor of e after a slow round: y has far to go."""
MAX_SLOW_ROUNDS = 2
"""Slow rounds after which the nearest torque is sought."""
COLD_CONTROL = 0.3
"""Control at which D is evaluated in the first step from y = 0, where powers have no slope or an infinite one."""
ROUNDING = 1e-16
"""Rounding error of the gradient relative to y, and of y itself."""
TINY = 1e-300
"""Divisor in place of zero."""
MAX_ROUNDS = 12
MAX_NEAREST_ROUNDS = 60
MAX_STEPS = 60
MAX_LINE_STEPS = 40
MAX_ROOT_STEPS = 60
MAX_EXTENSION = 30.0
"""Largest factor by which one iteration of the line search lengthens a step."""


@inline
def _copy(source, target_out):
    """Copy an array; an assignment of slices would allocate."""
    for i in range(len(source)):
        target_out[i] = source[i]


@inline
def _load(source, f, target_out):
    """Copy the row of a frame, or the only row."""
    _copy(source[f if len(source) > 1 else 0], target_out)


@kernel_function
def _power_root(size, w, p, k):
    """Return the positive root of p w x^(p-1) + k x = size, and dx / d size."""
    if k == 0.0:
        ratio = size / (p * w)
        if p == 3.0:
            x = np.sqrt(ratio)
        elif p == 5.0:
            x = np.sqrt(np.sqrt(ratio))
        else:
            x = ratio ** (1.0 / (p - 1.0))
        return x, x / ((p - 1.0) * size)
    # the left side is convex for p > 2 and concave for p < 2: Newton is monotone from above and from below
    if p > 2.0:
        x = min((size / (p * w)) ** (1.0 / (p - 1.0)), size / k)
    else:
        x = min((0.5 * size / (p * w)) ** (1.0 / (p - 1.0)), 0.5 * size / k)
    slope = 0.0
    for _ in range(MAX_ROOT_STEPS):
        term = p * w * x ** (p - 1.0)
        slope = (p - 1.0) * term / x + k
        change = (term + k * x - size) / slope
        x -= change
        if abs(change) <= 1e-15 * x:
            break
    return x, 1.0 / slope


@inline
def _control(problem, buffers, i, s):
    """Return the control x(s) of an actuator and its derivative."""
    w, k, size = buffers.power_weight[i], buffers.quadratic[i], abs(s) - buffers.linear[i]
    x, slope = 0.0, 0.0
    if size >= 0.0:
        p, x_join = problem.exponent[i], problem.join[i]
        if w == 0.0:
            if k > 0.0:
                x, slope = size / k, 1.0 / k
        else:
            stiffness = p * w * problem.join_slope[i] + k
            if size > stiffness * x_join:
                x, slope = _power_root(size, w, p, k)
            elif stiffness > 0.0:
                x, slope = size / stiffness, 1.0 / stiffness
        if s < 0.0:
            x = -x
    if x < buffers.lower[i]:
        return buffers.lower[i], 0.0
    if x > buffers.upper[i]:
        return buffers.upper[i], 0.0
    return x, slope


@kernel_function
def _compute_gradient(problem, f, buffers):
    """Compute controls, their slopes and the gradient at y; return the gradient's largest entry."""
    start, row, entry = problem.start, problem.row, problem.entry[f]
    y, gradient = buffers.y, buffers.gradient
    for k in range(len(y)):
        gradient[k] = buffers.softness[k] * (y[k] - buffers.center[k]) - buffers.required[k]
    for i in range(len(buffers.control)):
        s = buffers.pull[i]
        for a in range(start[i], start[i + 1]):
            s += entry[a] * y[row[a]]
        x, slope = _control(problem, buffers, i, s)
        buffers.drive[i], buffers.control[i], buffers.slope[i] = s, x, slope
        for a in range(start[i], start[i + 1]):
            gradient[row[a]] += entry[a] * x
    largest = 0.0
    for k in range(len(y)):
        largest = max(largest, abs(gradient[k]))
    return largest


@kernel_function
def _set_cold_slopes(problem, buffers):
    """Set D of costs with a power to that at `COLD_CONTROL`."""
    for i in range(len(buffers.control)):
        w, p = buffers.power_weight[i], problem.exponent[i]
        if w > 0.0 and buffers.upper[i] > buffers.lower[i]:
            stiffness = p * (p - 1.0) * w * COLD_CONTROL ** (p - 2.0) + buffers.quadratic[i]
            buffers.slope[i] = 1.0 / stiffness


@kernel_function
def _newton_step(problem, f, buffers):
    """Compute the Newton step by Cholesky's factorization H = U^T U over the entries that are not zero."""
    start, row, entry = problem.start, problem.row, problem.entry[f]
    U, step, m = buffers.hessian, buffers.step, len(buffers.step)
    for i in range(m):
        for j in range(i, m):
            U[i, j] = 0.0
        U[i, i] = buffers.softness[i]
        step[i] = -buffers.gradient[i]
    for i in range(len(buffers.control)):
        slope = buffers.slope[i]
        if slope > 0.0:
            for a in range(start[i], start[i + 1]):
                scaled, line = slope * entry[a], U[row[a]]
                for b in range(a, start[i + 1]):
                    line[row[b]] += scaled * entry[b]
    index, filled = buffers.filled_columns, buffers.filled
    for i in range(m):
        line, own, count = U[i], index[i], 0
        # rounding may leave a pivot of a direction that e alone makes positive definite below e
        inverse = 1.0 / np.sqrt(max(line[i], buffers.softness[i]))
        for j in range(i + 1, m):
            if line[j] != 0.0:
                line[j] *= inverse
                own[count] = j
                count += 1
        line[i], filled[i] = inverse, count
        step[i] *= inverse
        for c in range(count):
            k = own[c]
            a, other = line[k], U[k]
            step[k] -= a * step[i]
            for d in range(c, count):
                other[own[d]] -= a * line[own[d]]
    for i in range(m - 1, -1, -1):
        line, own, value = U[i], index[i], step[i]
        for c in range(filled[i]):
            value -= line[own[c]] * step[own[c]]
        step[i] = value * line[i]


@kernel_function
def _line_search(problem, f, buffers):
    """Return the step length at which phi is least along the step; 0 if it does not fall."""
    start, row, entry = problem.start, problem.row, problem.entry[f]
    first, quadratic = 0.0, 0.0
    for k in range(len(buffers.step)):
        first += buffers.gradient[k] * buffers.step[k]
        quadratic += buffers.softness[k] * buffers.step[k] * buffers.step[k]
    if not first < 0.0:
        return 0.0
    for i in range(len(buffers.control)):
        change = 0.0
        for a in range(start[i], start[i + 1]):
            change += entry[a] * buffers.step[row[a]]
        buffers.drive_step[i] = change
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(MAX_LINE_STEPS):
        value, curvature = first + length * quadratic, quadratic
        for i in range(len(buffers.control)):
            change = buffers.drive_step[i]
            if change != 0.0:
                s = buffers.drive[i] + length * change
                x, slope = _control(problem, buffers, i, s)
                value += change * (x - buffers.control[i])
                curvature += change * change * slope
        if abs(value) <= LINE_TOLERANCE * abs(first):
            return length
        if value > 0.0:
            high = length
        else:
            low = length
        length -= value / curvature
        if high == np.inf:
            length = min(length, MAX_EXTENSION * low)
        elif not low < length < high:
            length = 0.5 * (low + high)
    return low if low > 0.0 else length


@kernel_function
def _minimize(problem, f, cold, tolerance, buffers):
    """Minimize phi from y; return the number of Newton steps."""
    y, m, size = buffers.y, len(buffers.y), 0.0
    for count in range(MAX_STEPS):
        if _compute_gradient(problem, f, buffers) <= tolerance + ROUNDING * size:
            return count
        if cold and count == 0:
            _set_cold_slopes(problem, buffers)
        _newton_step(problem, f, buffers)
        length = _line_search(problem, f, buffers)
        size, change = 0.0, 0.0
        for k in range(m):
            y[k] += length * buffers.step[k]
            size, change = max(size, abs(y[k])), max(change, abs(length * buffers.step[k]))
        if change <= ROUNDING * size:
            _compute_gradient(problem, f, buffers)
            return count + 1
    _compute_gradient(problem, f, buffers)
    return MAX_STEPS


@kernel_function
def _unattained(problem, f, buffers):
    """Compute u = b - A x; return its largest entry, its gap divided by its length, and whether no x attains b."""
    start, row, entry, u = problem.start, problem.row, problem.entry[f], buffers.unattained
    _copy(buffers.required, u)
    for i in range(len(buffers.control)):
        for a in range(start[i], start[i + 1]):
            u[row[a]] -= entry[a] * buffers.control[i]
    largest, squared, gap = 0.0, 0.0, 0.0
    for k in range(len(u)):
        largest, squared = max(largest, abs(u[k])), squared + u[k] * u[k]
    for i in range(len(buffers.control)):
        gain = 0.0
        for a in range(start[i], start[i + 1]):
            gain += entry[a] * u[row[a]]
        x = buffers.control[i]
        way = buffers.upper[i] - x if gain > 0.0 else x - buffers.lower[i]
        gap += abs(gain) * min(way, 1.0 + abs(x))  # without a bound: a change as large as the control
    return largest, gap / np.sqrt(max(squared, TINY)), gap <= MAX_RELATIVE_GAP * squared


@inline
def _load_coefficients(problem, f, buffers):
    """Set the coefficients of a frame."""
    _load(problem.power_weight, f, buffers.power_weight)
    _load(problem.quadratic, f, buffers.quadratic)
    _load(problem.linear, f, buffers.linear)
    _load(problem.pull, f, buffers.pull)


@inline
def _load_frame(problem, f, rated, buffers):
    """Set required torque, bounds and coefficients of a frame; `control` is that of the frame before."""
    row, entry = problem.row, problem.entry[f]
    buffers.diagonal[:] = 0.0
    for a in range(len(row)):
        buffers.diagonal[row[a]] += entry[a] * entry[a]
    for k in range(len(buffers.diagonal)):
        if buffers.diagonal[k] == 0.0:
            buffers.diagonal[k] = 1.0
    _copy(problem.required[f], buffers.required)
    _load(problem.lower, f, buffers.lower)
    _load(problem.upper, f, buffers.upper)
    _load_coefficients(problem, f, buffers)
    if rated:
        for i in range(problem.rated[0]):
            x, lower, upper = buffers.control[i], buffers.lower[i], buffers.upper[i]
            buffers.lower[i] = min(max(lower, x * problem.decay[f]), upper)
            buffers.upper[i] = max(min(upper, 1.0 - (1.0 - x) * problem.rise[f]), lower)


@kernel_function
def _attain(problem, f, cold, max_slow, scale, buffers):
    """Solve for least cost from y and y0; return the largest unattained torque and the number of Newton steps.

    It gives up after `max_slow` rounds that bring little.
    """
    steps, largest, before, slow = 0, 0.0, np.inf, 0
    for k in range(len(buffers.y)):
        buffers.softness[k] = problem.softness[0] * buffers.diagonal[k]
    for turn in range(MAX_ROUNDS):
        steps += _minimize(problem, f, cold and turn == 0, GRADIENT_TOLERANCE * scale, buffers)
        largest, _, _ = _unattained(problem, f, buffers)
        if largest <= ATTAINED_TOLERANCE * scale:
            break
        if largest > MIN_PROGRESS * before:
            slow += 1
            if slow > max_slow:
                break
            for k in range(len(buffers.y)):
                buffers.softness[k] *= SOFTNESS_REDUCTION
        before = largest
        _copy(buffers.y, buffers.center)
    return largest, steps


@inline
def _swap(a, b):
    """Swap two arrays."""
    for k in range(len(a)):
        a[k], b[k] = b[k], a[k]


@kernel_function
def _find_nearest(problem, f, scale, buffers):
    """Find the nearest attainable torque; return the largest unattained one, the gap, the number of Newton steps."""
    steps, largest, gap, before = 0, 0.0, 0.0, np.inf
    _swap(buffers.y, buffers.other_y)
    for i in range(len(buffers.control)):
        buffers.power_weight[i], buffers.quadratic[i], buffers.linear[i] = 0.0, 1.0, 0.0
        buffers.control[i] = min(max(buffers.control[i], buffers.lower[i]), buffers.upper[i])
    mean = 0.0
    for k in range(len(buffers.y)):
        mean += buffers.diagonal[k] / len(buffers.y)
    buffers.softness[:] = NEAREST_SOFTNESS * mean
    buffers.center[:] = 0.0
    for _ in range(MAX_NEAREST_ROUNDS):
        _copy(buffers.control, buffers.pull)
        steps += _minimize(problem, f, False, GRADIENT_TOLERANCE * scale, buffers)
        largest, gap, proven = _unattained(problem, f, buffers)
        if largest <= ATTAINED_TOLERANCE * scale or (proven and gap <= GAP_TOLERANCE * scale):
            break
        if gap > 0.5 * before:  # slow; a smaller u admits a smaller e at the same rounding error
            smaller = max(min(NEAREST_SOFTNESS * mean * largest, buffers.softness[0]), MIN_SOFTNESS * mean)
            for k in range(len(buffers.y)):
                buffers.y[k] *= buffers.softness[0] / smaller
            buffers.softness[:] = smaller
        before = gap
    for k in range(len(buffers.y)):  # y = u / e, for the first e of the next frame
        buffers.y[k] *= buffers.softness[k] / (NEAREST_SOFTNESS * mean)
    _swap(buffers.y, buffers.other_y)
    return largest, gap, steps


@kernel_function
def _fix_saturated(problem, f, buffers):
    """Require the nearest torque, and fix the actuators that would change it."""
    start, row, entry, u = problem.start, problem.row, problem.entry[f], buffers.unattained
    for k in range(len(u)):
        buffers.required[k] -= u[k]
    for i in range(len(buffers.control)):
        gain = 0.0
        for a in range(start[i], start[i + 1]):
            gain += entry[a] * u[row[a]]
        x = buffers.control[i]
        if abs(gain) > FIXED_GAIN and (x == buffers.lower[i] or x == buffers.upper[i]):
            buffers.lower[i] = buffers.upper[i] = x


@kernel_function
def _solve_frame(problem, f, last, rated, buffers):
    """Solve one frame, given the status of the one before; return status, KKT residual and number of Newton steps."""
    cold, scale, steps, largest, gap = last == MISSING or last == NOT_CONVERGED, 1.0, 0, np.inf, 0.0
    for k in range(len(buffers.y)):
        scale = max(scale, 1.0 + abs(problem.required[f, k]))
        if cold:
            buffers.y[k] = 0.0
    _load_frame(problem, f, rated, buffers)
    if last != NEAREST:
        _copy(buffers.y, buffers.center)
        largest, steps = _attain(problem, f, cold, MAX_SLOW_ROUNDS, scale, buffers)
        if largest <= ATTAINED_TOLERANCE * scale:
            return ATTAINED, largest / scale, steps
    if cold:
        buffers.other_y[:] = 0.0
    unattained, gap, more = _find_nearest(problem, f, scale, buffers)
    steps += more
    status, fixed = NEAREST, unattained > ATTAINED_TOLERANCE * scale
    if not fixed:
        status, gap = ATTAINED, 0.0
    _load_coefficients(problem, f, buffers)
    if fixed:
        _fix_saturated(problem, f, buffers)
    _copy(buffers.unattained, buffers.total)
    if last != NEAREST:  # y has followed the unattained torque
        buffers.y[:] = 0.0
    _copy(buffers.y, buffers.center)
    largest, more = _attain(problem, f, last != NEAREST, MAX_ROUNDS, scale, buffers)
    if fixed:
        for k in range(len(buffers.y)):
            buffers.unattained[k] += buffers.total[k]
    residual = max(gap, largest) / scale
    if gap > GAP_TOLERANCE * scale or largest > ATTAINED_TOLERANCE * scale:
        status = NOT_CONVERGED
    return status, residual, steps + more


@kernel
def solve_frames(problem, buffers, control_out, unattained_out, status_out, residual_out, steps_out):
    """Solve all frames, each from the multipliers of the frame before.

    Args:
        problem: `SharingProblem`.
        buffers: Work arrays.
        control_out: (frames, n) x; NaN in missing frames.
        unattained_out: (frames, m) u; NaN in missing frames.
        status_out: (frames,) ATTAINED, NEAREST, NOT_CONVERGED or MISSING.
        residual_out: (frames,) KKT residual, relative to 1 + the largest required torque: of attained frames the
            largest unattained torque; of others the bound of the excess of |u| over the least.
        steps_out: (frames,) Newton steps.
    """
    last = MISSING
    for f in range(len(control_out)):
        missing = False
        for k in range(len(buffers.y)):
            missing = missing or not np.isfinite(problem.required[f, k])
        if missing:
            control_out[f, :] = np.nan
            unattained_out[f, :] = np.nan
            status_out[f], residual_out[f], steps_out[f] = MISSING, np.nan, 0
            last = MISSING
            continue
        rated = len(problem.rise) > 0 and last != MISSING
        status_out[f], residual_out[f], steps_out[f] = _solve_frame(problem, f, last, rated, buffers)
        last = status_out[f]
        _copy(buffers.control, control_out[f])
        _copy(buffers.unattained, unattained_out[f])


@kernel
def solve_next_frame(problem, buffers, last, control_out, unattained_out):
    """Solve a problem of one frame from the multipliers in `buffers`, those of a frame with status `last`.

    Returns the status, the KKT residual and the number of Newton steps. MISSING starts from zero.
    """
    status, residual, steps = _solve_frame(problem, 0, last, False, buffers)
    _copy(buffers.control, control_out)
    _copy(buffers.unattained, unattained_out)
    return status, residual, steps
