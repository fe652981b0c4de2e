"""Activation dynamics: rates, exact steps where they exist, bounded steps of order 4 elsewhere.

u is the excitation, a the activation, ta and td the time constants, z = 0.5 + 1.5 a:

    Park et al. (1992)        da/dt = (1 - a) u / ta + (u - 1) a / td
    Winters (1995)            da/dt = (u - a) / tau,   tau = ta z if u > a else td / z
    De Groote et al. (2016)   da/dt = ((0.5 + f) / (ta z) + (0.5 - f) z / td) (u - a),   f = 0.5 tanh(b (u - a))
    MuJoCo                    Winters, where tau goes from td / z to ta z by a quintic step of width b around u = a
"""

from __future__ import annotations

from math import exp, tanh

from borelli.kernels.jit import inline, kernel, kernel_function

PARK_RATE, WINTERS, TANH, SMOOTH_STEP = range(4)
"""Activation kinds."""
Z0, Z1 = 0.5, 1.5
"""Coefficients of z (Winters 1995)."""
MAX_ITERATIONS = 60
"""Newton needs about 5."""


@inline
def _smooth_step(x):
    """Return the quintic that rises from 0 to 1 between x = 0 and 1, and its slope."""
    if x <= 0.0:
        return 0.0, 0.0
    if x >= 1.0:
        return 1.0, 0.0
    return x * x * x * (3.0 * x * (2.0 * x - 5.0) + 10.0), 30.0 * x * x * (x - 1.0) ** 2


@inline
def _inverse_time(kind, a, u, rise, fall, smoothing):
    """Return 1 / tau and its derivative with respect to the activation."""
    z = Z0 + Z1 * a
    fast, d_fast = 1.0 / (rise * z), -Z1 / (rise * z * z)
    slow, d_slow = z / fall, Z1 / fall
    if kind == TANH:
        t = tanh(smoothing * (u - a))
        f, df = 0.5 * t, -0.5 * smoothing * (1.0 - t * t)
        return (0.5 + f) * fast + (0.5 - f) * slow, (fast - slow) * df + (0.5 + f) * d_fast + (0.5 - f) * d_slow
    if kind == SMOOTH_STEP and smoothing > 0.0:
        s, ds = _smooth_step((u - a) / smoothing + 0.5)
        ds = -ds / smoothing
        tau = 1.0 / slow + (1.0 / fast - 1.0 / slow) * s
        d_tau = -d_slow / slow**2 * (1.0 - s) - d_fast / fast**2 * s + (1.0 / fast - 1.0 / slow) * ds
        return 1.0 / tau, -d_tau / tau**2
    return (fast, d_fast) if u > a else (slow, d_slow)


@kernel_function
def activation_rate(kind, a, u, rise, fall, smoothing):
    """Return da/dt [1/s] and its derivative with respect to the activation."""
    if kind == PARK_RATE:
        return (1.0 - a) * u / rise + (u - 1.0) * a / fall, -u / rise + (u - 1.0) / fall
    inverse, slope = _inverse_time(kind, a, u, rise, fall, smoothing)
    return inverse * (u - a), slope * (u - a) - inverse


# Winters' equation with constant u has a closed form. Rising, s = ln((u - a0) / (u - a)) satisfies
#     (0.5 + 1.5 u) s - 1.5 (u - a0) (1 - exp(-s)) = t / ta,
# convex and increasing in s, so Newton from the right converges without a bracket. Falling, w = 1 / (a - u) is linear:
#     td dw/dt = (0.5 + 1.5 u) w + 1.5.


@inline
def _step_winters(a, u, step, rise, fall):
    p, gap = Z0 + Z1 * u, u - a
    if gap == 0.0:
        return a
    if gap < 0.0:
        growth = exp(-p * step / fall)
        return u - gap * growth / (1.0 - Z1 * gap / p * (1.0 - growth))
    time = step / rise
    s = (time + Z1 * gap) / p
    for _ in range(MAX_ITERATIONS):
        decay = exp(-s)
        change = (p * s - Z1 * gap * (1.0 - decay) - time) / (p - Z1 * gap * decay)
        s -= change
        if abs(change) <= 1e-15 * s:
            break
    return u - gap * exp(-s)


# Elsewhere the logarithm s of the same ratio is integrated by the classical Runge-Kutta method: ds/dt = 1 / tau > 0 is
# not stiff, and a = u - (u - a0) exp(-s) lies between a0 and u for any step.


@inline
def _step_logarithm(kind, a, u, step, rise, fall, smoothing):
    gap = u - a
    k1 = _inverse_time(kind, a, u, rise, fall, smoothing)[0]
    k2 = _inverse_time(kind, u - gap * exp(-0.5 * step * k1), u, rise, fall, smoothing)[0]
    k3 = _inverse_time(kind, u - gap * exp(-0.5 * step * k2), u, rise, fall, smoothing)[0]
    k4 = _inverse_time(kind, u - gap * exp(-step * k3), u, rise, fall, smoothing)[0]
    return u - gap * exp(-step * (k1 + 2.0 * k2 + 2.0 * k3 + k4) / 6.0)


@kernel_function
def step_activation(kind, a, u, step, rise, fall, smoothing):
    """Return the activation after a step [s] with constant excitation: exact for Park and Winters, else of order 4."""
    if rise <= 0.0 or fall <= 0.0:
        return u  # no activation dynamics
    if kind == PARK_RATE:
        rate = u / rise + (1.0 - u) / fall
        steady = u / rise / rate
        return steady + (a - steady) * exp(-rate * step)
    if kind == WINTERS or (kind == SMOOTH_STEP and smoothing <= 0.0):
        return _step_winters(a, u, step, rise, fall)
    return _step_logarithm(kind, a, u, step, rise, fall, smoothing)


@kernel_function
def step_muscle_activation(arrays, m, a, u, step):
    """Return the activation of a muscle after a step [s] with constant excitation, within its bounds."""
    low, high = arrays.min_activation[m], arrays.max_activation[m]
    u = min(max(u, low), high)
    a = min(max(a, low), high)
    return step_activation(
        arrays.activation_kind[m], a, u, step,
        arrays.activation_time[m], arrays.deactivation_time[m], arrays.activation_smoothing[m],
    )  # fmt: skip


@kernel
def fill_activation_rate(arrays, activation, excitation, rate, slope):
    """Fill da/dt [1/s] and its derivative with respect to the activation, of activations within their bounds."""
    for m in range(activation.shape[1]):
        low, high = arrays.min_activation[m], arrays.max_activation[m]
        for i in range(activation.shape[0]):
            u, a = min(max(excitation[i, m], low), high), min(max(activation[i, m], low), high)
            rate[i, m], slope[i, m] = activation_rate(
                arrays.activation_kind[m], a, u,
                arrays.activation_time[m], arrays.deactivation_time[m], arrays.activation_smoothing[m],
            )  # fmt: skip


@kernel
def fill_activation_steps(arrays, time, start, end, activation):
    """Fill activations (frames, muscles) after the first from excitations at the start and end of each interval.

    Constant excitations give the exact solution; linear ones are replaced by their mean over the interval.
    """
    for m in range(activation.shape[1]):
        for i in range(1, len(time)):
            u = 0.5 * (start[i, m] + end[i, m])
            activation[i, m] = step_muscle_activation(arrays, m, activation[i - 1, m], u, time[i] - time[i - 1])
