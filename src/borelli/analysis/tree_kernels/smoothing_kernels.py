"""Kernels of the trajectory smoother: snap of variables and rotations, banded series, degrees of freedom.

Loops over variables are innermost and without sums, so that the compiler can use vector instructions.
"""

from __future__ import annotations

from math import cos, sin

from borelli.kernels.jit import kernel, kernel_function

COEFFICIENT = (1.0, -4.0, 6.0, -4.0, 1.0)
"""Of the fourth difference."""
CENTER = 2
"""Frame of the five to which rotations are relative."""


@kernel
def trace_determined(first, column, stiffness, springs, factor, inverse, trace_out):
    """Compute tr((K + D)^-1 K) of every frame, K its `stiffness` (frames, n, n) and D the diagonal `springs`.

    K + D = L^T U L as in `factor_in_place`; the inverse has the entries of the pattern (Takahashi et al. 1973)

        Z_kj = -sum_i L_ki Z_ij        Z_kk = 1 / U_k - sum_i L_ki Z_ik        i, j among the columns of row k

    `factor` and `inverse` (n, n) are work arrays. The trace is NaN where K + D is not positive definite.
    """
    n = len(springs)
    for t in range(len(stiffness)):
        for i in range(n):
            for s in range(first[i], first[i + 1]):
                factor[i, column[s]] = stiffness[t, i, column[s]]
            factor[i, i] = stiffness[t, i, i] + springs[i]
        positive = True
        for k in range(n - 1, -1, -1):
            pivot = factor[k, k]
            positive = positive and pivot > 0.0
            for s in range(first[k + 1] - 1, first[k] - 1, -1):
                i = column[s]
                a = factor[k, i] / pivot
                for r in range(first[k], s + 1):
                    factor[i, column[r]] -= a * factor[k, column[r]]
                factor[k, i] = a
        trace = float(n)
        for k in range(n):
            diagonal = 1.0 / factor[k, k]
            for s in range(first[k], first[k + 1]):
                j, entry = column[s], 0.0
                for r in range(first[k], first[k + 1]):
                    entry -= factor[k, column[r]] * inverse[column[r], j]
                inverse[k, j] = entry
                inverse[j, k] = entry
                diagonal -= factor[k, j] * entry
            inverse[k, k] = diagonal
            trace -= springs[k] * diagonal
        trace_out[t] = trace if positive else float("nan")


@kernel
def compute_rotational_snap(rotation, angular_velocity, snap_out, jacobian_out):
    """Compute the snap (joints, windows, 3) of rotations (joints, frames, 3, 3), and its Jacobian by variables.

    `jacobian_out` (joints, windows, 5, 3, 3) is by the variables of each of the five frames of a window.
    """
    for joint in range(len(rotation)):
        for w in range(snap_out.shape[1]):
            total, jacobian = snap_out[joint, w], jacobian_out[joint, w]
            middle, own = rotation[joint, w + CENTER], angular_velocity[joint, w + CENTER]
            total[:] = 0.0
            jacobian[CENTER] = 0.0
            for k in range(len(COEFFICIENT)):
                if k == CENTER:
                    continue
                c, other, moved = 0.5 * COEFFICIENT[k], rotation[joint, w + k], angular_velocity[joint, w + k]
                m = (
                    _column_product(middle, other, 0, 0), _column_product(middle, other, 0, 1),
                    _column_product(middle, other, 0, 2), _column_product(middle, other, 1, 0),
                    _column_product(middle, other, 1, 1), _column_product(middle, other, 1, 2),
                    _column_product(middle, other, 2, 0), _column_product(middle, other, 2, 1),
                    _column_product(middle, other, 2, 2),
                )  # fmt: skip
                trace = m[0] + m[4] + m[8]
                total[0] += c * (m[7] - m[5])
                total[1] += c * (m[2] - m[6])
                total[2] += c * (m[3] - m[1])
                for i in range(3):
                    for v in range(3):
                        late, early = trace * moved[i, v], trace * own[i, v]
                        for j in range(3):
                            late -= m[3 * j + i] * moved[j, v]
                            early -= m[3 * i + j] * own[j, v]
                        jacobian[k, i, v] = c * late
                        jacobian[CENTER, i, v] -= c * early


@kernel_function
def _column_product(A, B, i, j):
    """Return entry (i, j) of A^T B."""
    return A[0, i] * B[0, j] + A[1, i] * B[1, j] + A[2, i] * B[2, j]


@kernel
def apply_snap(jacobian, variables, x, snap_out):
    """Compute the change of the snap (windows, n) for a change x (frames, n) of the variables.

    `variables` (joints, 3) are those of each joint of the Jacobian; the snap of all others is their fourth difference.
    """
    for w in range(len(snap_out)):
        a, b, c, d, e, out = x[w], x[w + 1], x[w + 2], x[w + 3], x[w + 4], snap_out[w]
        for v in range(len(out)):
            out[v] = a[v] - 4.0 * b[v] + 6.0 * c[v] - 4.0 * d[v] + e[v]
    for joint in range(len(variables)):
        one, two, three = variables[joint, 0], variables[joint, 1], variables[joint, 2]
        for w in range(len(snap_out)):
            own = jacobian[joint, w]
            for i in range(3):
                total = 0.0
                for k in range(len(COEFFICIENT)):
                    known, J = x[w + k], own[k, i]
                    total += J[0] * known[one] + J[1] * known[two] + J[2] * known[three]
                snap_out[w, variables[joint, i]] = total


@kernel
def add_snap_force(jacobian, variables, force, gradient_inout):
    """Add the transposed Jacobian of `apply_snap` times forces (windows, n) to a gradient (frames, n).

    Entries of `force` that belong to joints are set to zero on the way.
    """
    for joint in range(len(variables)):
        one, two, three = variables[joint, 0], variables[joint, 1], variables[joint, 2]
        for w in range(len(force)):
            own = jacobian[joint, w]
            f = (force[w, one], force[w, two], force[w, three])
            force[w, one], force[w, two], force[w, three] = 0.0, 0.0, 0.0
            for k in range(len(COEFFICIENT)):
                J, out = own[k], gradient_inout[w + k]
                out[one] += f[0] * J[0, 0] + f[1] * J[1, 0] + f[2] * J[2, 0]
                out[two] += f[0] * J[0, 1] + f[1] * J[1, 1] + f[2] * J[2, 1]
                out[three] += f[0] * J[0, 2] + f[1] * J[1, 2] + f[2] * J[2, 2]
    for k in range(len(COEFFICIENT)):
        c = COEFFICIENT[k]
        for w in range(len(force)):
            known, out = force[w], gradient_inout[w + k]
            for v in range(len(out)):
                out[v] += c * known[v]


@kernel
def factor_series(square, scale, stiffness, least, lower_out, flexibility_out):
    """Factor scale D^T D + stiffness for n series at once, D the fourth difference: L U L^T, L unit lower.

    `square` (5, frames) has the entries of D^T D by lag. A pivot is at least the stiffness, and at least `least`:
    rounding must not decide. `lower_out` (frames, 4, n) gets L by lag, `flexibility_out` (frames, n) 1 / U.
    """
    frames, n = flexibility_out.shape
    for t in range(frames):
        pivot = flexibility_out[t]
        for v in range(n):
            pivot[v] = scale * square[0, t] + stiffness[v]
        for lag in range(min(4, t), 0, -1):
            own = lower_out[t, lag - 1]
            entry = scale * square[lag, t - lag]
            for v in range(n):
                own[v] = entry
            for further in range(lag + 1, min(4, t) + 1):
                known, other = lower_out[t, further - 1], lower_out[t - lag, further - lag - 1]
                for v in range(n):
                    own[v] -= known[v] * other[v]
        for lag in range(1, min(4, t) + 1):
            own, before = lower_out[t, lag - 1], flexibility_out[t - lag]
            for v in range(n):
                scaled = own[v] * before[v]
                pivot[v] -= own[v] * scaled
                own[v] = scaled
        for v in range(n):
            pivot[v] = 1.0 / max(pivot[v], max(stiffness[v], least))


@kernel
def solve_series(lower, flexibility, first, x_inout):
    """Replace x (frames, n) by the solution of the factored systems, from frame `first` on; x is 0 before it."""
    frames, n = flexibility.shape
    for t in range(first + 1, frames):
        x = x_inout[t]
        for lag in range(1, min(4, t - first) + 1):
            own, before = lower[t, lag - 1], x_inout[t - lag]
            for v in range(n):
                x[v] -= own[v] * before[v]
    for t in range(frames - 1, first - 1, -1):
        x, own_flexibility = x_inout[t], flexibility[t]
        for v in range(n):
            x[v] *= own_flexibility[v]
        for lag in range(1, min(4, frames - 1 - t) + 1):
            own, after = lower[t + lag, lag - 1], x_inout[t + lag]
            for v in range(n):
                x[v] -= own[v] * after[v]


@kernel
def factor_matrix(A_inout):
    """Factor a symmetric matrix A = U^T D U, U unit upper, in its upper half; D, on the diagonal, must be positive."""
    for k in range(len(A_inout)):
        row = A_inout[k]
        for i in range(k + 1, len(row)):
            a, other = row[i] / row[k], A_inout[i]
            for j in range(i, len(row)):
                other[j] -= a * row[j]
        for i in range(k + 1, len(row)):
            row[i] /= row[k]


@kernel
def solve_matrix(A, x_inout):
    """Replace x by the solution of the matrix that `factor_matrix` factored."""
    n = len(x_inout)
    for k in range(n):
        a, row = x_inout[k], A[k]
        for j in range(k + 1, n):
            x_inout[j] -= a * row[j]
    for k in range(n - 1, -1, -1):
        total, row = x_inout[k] / A[k, k], A[k]
        for j in range(k + 1, n):
            total -= row[j] * x_inout[j]
        x_inout[k] = total


@kernel
def rotate_joints(axis, angle, slope, rotation_out, angular_velocity_out):
    """Compute rotations (joints, frames, 3, 3) by three angles each, and angular velocities per variable.

    `axis` (joints, 3, 3) are unit vectors, one per row; `angle` and `slope` (joints, 3, frames) the angles [rad] and
    their derivatives by the joint's variables. Angular velocities, by columns, are in the child's axes.
    """
    for joint in range(len(axis)):
        for t in range(rotation_out.shape[1]):
            R, A = rotation_out[joint, t], angular_velocity_out[joint, t]
            for i in range(3):
                for j in range(3):
                    R[i, j] = 1.0 if i == j else 0.0
                    A[i, j] = 0.0
            for part in range(3):
                x, y, z = axis[joint, part, 0], axis[joint, part, 1], axis[joint, part, 2]
                s, c = sin(angle[joint, part, t]), cos(angle[joint, part, t])
                for i in range(3):  # R E and E^T A, E the rotation by the angle: both rotate vectors back
                    R[i, 0], R[i, 1], R[i, 2] = _rotate_back(x, y, z, s, c, R[i, 0], R[i, 1], R[i, 2])
                    A[0, i], A[1, i], A[2, i] = _rotate_back(x, y, z, s, c, A[0, i], A[1, i], A[2, i])
                rate = slope[joint, part, t]
                A[0, part], A[1, part], A[2, part] = rate * x, rate * y, rate * z


@kernel_function
def _rotate_back(x, y, z, s, c, a, b, d):
    """Return the vector (a, b, d) rotated about a unit axis by the angle of cosine c and sine -s (Rodrigues)."""
    along = (1.0 - c) * (x * a + y * b + z * d)
    return (
        c * a - s * (y * d - z * b) + along * x,
        c * b - s * (z * a - x * d) + along * y,
        c * d - s * (x * b - y * a) + along * z,
    )
