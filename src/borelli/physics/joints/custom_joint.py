"""The motion of coordinate joints: pose, velocity directions and the coordinates that fit a given pose best.

X(q): R = R1(f1) R2(f2) R3(f3) about axes 1, 2, 3, each carried by the rotations before it, and the shift
t = axis4 f4 + axis5 f5 + axis6 f6, both in the parent's joint frame, as OpenSim's CustomJoint. Each f depends on one
coordinate or on none. S(q) has a column per coordinate: linear velocity of the child's frame origin, then spin.
"""

from __future__ import annotations

from math import sqrt

from borelli.kernels.jit import inline
from borelli.numerics.rotation_kernels import quaternion_product, rotate, rotation_exponential, rotation_logarithm

FIT_ITERATIONS = 12
FIT_TOLERANCE = 1e-12
"""Newton's last step [rad, m]: what rounding leaves of it."""
FIT_STRIDE = 0.5
"""Longest step of one iteration [rad, m]: a start far off stays on its own side of the motion."""
NO_SPEED = 1e-9
"""A coordinate whose motion, beside the others', is slower than this [m or rad per unit] moves nothing."""


@inline
def evaluate(function_first, function_end, piece_start, piece_coefficient, f, x):
    """Value and slope of function f at x; straight beyond its ends."""
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
def motion_pose(motion, m, coordinate):
    """Quaternion and shift of X(q); S(q) goes to `motion.subspace`."""
    s, axis, driver, function = motion.subspace[m], motion.axis[m], motion.driver[m], motion.function[m]
    first, end, piece_start, piece_coefficient = (
        motion.function_first, motion.function_end, motion.piece_start, motion.piece_coefficient,
    )  # fmt: skip
    start = motion.coordinate[m]
    for row in range(6):
        for column in range(6):
            s[row, column] = 0.0
    tx, ty, tz = 0.0, 0.0, 0.0
    w, x, y, z = 1.0, 0.0, 0.0, 0.0
    for part in range(6):
        ax, ay, az = axis[part, 0], axis[part, 1], axis[part, 2]
        i, row = driver[part], 0
        q = 0.0 if i < 0 else coordinate[start + i]
        value, slope = evaluate(first, end, piece_start, piece_coefficient, function[part], q)
        if part < 3:
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
def factor_motion(s, count, u, q):
    """Householder's S = Q U: the first `count` columns of Q span S, the others N, with N^T S = 0."""
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
def solve_motion(u, q, count, e0, e1, e2, e3, e4, e5, step_out):
    """The coordinates' change U^-1 Q^T e that comes nearest to the pose change e; returns the largest."""
    longest = 0.0
    for i in range(count - 1, -1, -1):
        step = q[0, i] * e0 + q[1, i] * e1 + q[2, i] * e2 + q[3, i] * e3 + q[4, i] * e4 + q[5, i] * e5
        for b in range(i + 1, count):
            step -= u[i, b] * step_out[b]
        step_out[i] = 0.0 if abs(u[i, i]) < NO_SPEED else step / u[i, i]
        longest = max(longest, abs(step_out[i]))
    return longest


@inline
def fit_motion(motion, m, gw, gx, gy, gz, dx, dy, dz, coordinate_inout):
    """Bring coordinate joint m's q to the relative pose (quaternion g, shift d; parent joint axes).

    Gauss-Newton on the pose error e(q) = (d - t, log(g R^-1)) from the q that is there: dq = U^-1 Q^T e. Leaves S, Q, U
    and e at the answer in the tables.
    """
    u, q, e, step = motion.factor[m], motion.basis[m], motion.residual[m], motion.step
    start, count = motion.coordinate[m], motion.freedom[m]
    for _ in range(FIT_ITERATIONS):
        w, x, y, z, tx, ty, tz = motion_pose(motion, m, coordinate_inout)
        ew, ex, ey, ez = quaternion_product(gw, gx, gy, gz, w, -x, -y, -z)
        e[0], e[1], e[2] = dx - tx, dy - ty, dz - tz
        e[3], e[4], e[5] = rotation_logarithm(ew, ex, ey, ez)
        factor_motion(motion.subspace[m], count, u, q)
        longest = solve_motion(u, q, count, e[0], e[1], e[2], e[3], e[4], e[5], step)
        if longest <= FIT_TOLERANCE:
            return
        shorten = 1.0 if longest <= FIT_STRIDE else FIT_STRIDE / longest
        for i in range(count):
            coordinate_inout[start + i] += shorten * step[i]
