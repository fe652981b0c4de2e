"""Custom joints: pose, motion subspace, and the coordinates that fit a given pose best.

X(q): R = R1(f1) R2(f2) R3(f3) about axes 1, 2, 3, each rotated by the ones before it, and the translation
t = axis4 f4 + axis5 f5 + axis6 f6, both in the parent's joint frame, as OpenSim's CustomJoint. Each f depends on one
coordinate or on none. S(q) has a column per coordinate: linear velocity of the child's frame origin, then angular
velocity.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline
from borelli.numerics.rotation_kernels import quaternion_product, rotate, rotation_exponential, rotation_logarithm

MAX_FIT_ITERATIONS = 12
FIT_TOLERANCE = 1e-12
"""Step of Newton's method [rad, m] at which it ends: rounding."""
MAX_FIT_STEP = 0.5
"""Maximum step of one iteration [rad, m]: a distant start stays on its own branch of the motion."""
MIN_SUBSPACE_PIVOT = 1e-9
"""Velocity of a coordinate's motion apart from the others' [m or rad per unit] below which it is not determined."""


@inline
def evaluate(function_first, function_end, piece_start, piece_coefficient, f, x):
    """Return value and slope of function f at x; linear beyond its ends."""
    piece, last = function_first[f], function_first[f + 1] - 1
    inside = min(max(x, piece_start[piece]), function_end[f])
    while piece < last and piece_start[piece + 1] <= inside:
        piece += 1
    s, value, slope = inside - piece_start[piece], 0.0, 0.0
    for power in range(piece_coefficient.shape[1] - 1, -1, -1):
        slope = slope * s + value
        value = value * s + piece_coefficient[piece, power]
    return value + slope * (x - inside), slope


@inline
def custom_joint_pose(motion, m, coordinate):
    """Return quaternion and translation of X(q); write S(q) to `motion.subspace`."""
    s, axis, driver, function = motion.subspace[m], motion.axis[m], motion.driver[m], motion.function[m]
    first, end, piece_start, piece_coefficient = (
        motion.function_first, motion.function_end, motion.piece_start, motion.piece_coefficient,
    )
    start = motion.coordinate[m]
    s[:, :] = 0.0
    tx, ty, tz = 0.0, 0.0, 0.0
    w, x, y, z = 1.0, 0.0, 0.0, 0.0
    for number in range(6):
        ax, ay, az = axis[number, 0], axis[number, 1], axis[number, 2]
        i, row = driver[number], 0
        q = 0.0 if i < 0 else coordinate[start + i]
        value, slope = evaluate(first, end, piece_start, piece_coefficient, function[number], q)
        if number < 3:
            row = 3
            bw, bx, by, bz = rotation_exponential(value * ax, value * ay, value * az)
            ax, ay, az = rotate(w, x, y, z, ax, ay, az)
            w, x, y, z = quaternion_product(w, x, y, z, bw, bx, by, bz)
        else:
            tx, ty, tz = tx + value * ax, ty + value * ay, tz + value * az
        if i >= 0:
            s[row, i] += slope * ax
            s[row + 1, i] += slope * ay
            s[row + 2, i] += slope * az
    return w, x, y, z, tx, ty, tz


@inline
def factor_subspace(s, count, u, q):
    """Factor S = Q U (Householder): the first `count` columns of Q span S, the others N, with N^T S = 0."""
    for a in range(6):
        for b in range(6):
            u[a, b] = s[a, b]
            q[a, b] = 1.0 if a == b else 0.0
    for i in range(count):
        square = 0.0
        for a in range(i, 6):
            square += u[a, i] * u[a, i]
        if square == 0.0:
            continue
        diagonal = -sqrt(square) if u[i, i] >= 0.0 else sqrt(square)
        u[i, i] -= diagonal
        scale = 0.0
        for a in range(i, 6):
            scale += 0.5 * u[a, i] * u[a, i]
        for column in range(i + 1, count):
            dot = 0.0
            for a in range(i, 6):
                dot += u[a, i] * u[a, column]
            for a in range(i, 6):
                u[a, column] -= dot / scale * u[a, i]
        for row in range(6):
            dot = 0.0
            for a in range(i, 6):
                dot += q[row, a] * u[a, i]
            for a in range(i, 6):
                q[row, a] -= dot / scale * u[a, i]
        u[i, i] = diagonal


@inline
def solve_subspace(u, q, count, e0, e1, e2, e3, e4, e5, step_out):
    """Write the change U^-1 Q^T e of coordinates that fits the pose change e best; return its largest component."""
    largest = 0.0
    for i in range(count - 1, -1, -1):
        step = q[0, i] * e0 + q[1, i] * e1 + q[2, i] * e2 + q[3, i] * e3 + q[4, i] * e4 + q[5, i] * e5
        for b in range(i + 1, count):
            step -= u[i, b] * step_out[b]
        step_out[i] = 0.0 if abs(u[i, i]) < MIN_SUBSPACE_PIVOT else step / u[i, i]
        largest = max(largest, abs(step_out[i]))
    return largest


@inline
def fit_custom_joint(motion, m, gw, gx, gy, gz, dx, dy, dz, coordinate_inout):
    """Fit the coordinates q of custom joint m to a relative pose (quaternion g, translation d; parent joint axes).

    Gauss-Newton on the pose error e(q) = (d - t, log(g R^-1)) from the present q: dq = U^-1 Q^T e. Writes S, Q, U and e
    at the solution to the tables.
    """
    u, q, e, step = motion.factor[m], motion.basis[m], motion.residual[m], motion.step
    start, count = motion.coordinate[m], motion.freedom[m]
    for _ in range(MAX_FIT_ITERATIONS):
        w, x, y, z, tx, ty, tz = custom_joint_pose(motion, m, coordinate_inout)
        ew, ex, ey, ez = quaternion_product(gw, gx, gy, gz, w, -x, -y, -z)
        e[0], e[1], e[2] = dx - tx, dy - ty, dz - tz
        e[3], e[4], e[5] = rotation_logarithm(ew, ex, ey, ez)
        factor_subspace(motion.subspace[m], count, u, q)
        largest = solve_subspace(u, q, count, e[0], e[1], e[2], e[3], e[4], e[5], step)
        if largest <= FIT_TOLERANCE:
            return
        shorten = 1.0 if largest <= MAX_FIT_STEP else MAX_FIT_STEP / largest
        for i in range(count):
            coordinate_inout[start + i] += shorten * step[i]
