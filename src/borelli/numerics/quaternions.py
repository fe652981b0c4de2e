"""Rotations of many frames at once: quaternions (..., 4) are (w, x, y, z), unit.

Kernels use `rotation_kernels`, which takes one rotation at a time.
"""

from __future__ import annotations

import numpy as np

from borelli.numerics.vectors import Array

MIN_MIDDLE = 1e-8
"""Length of the sum of two unit vectors below which rounding decides its direction."""


def quaternion_product(a: Array, b: Array) -> Array:
    """Return the rotation b followed by a, for quaternions (..., 4)."""
    aw, ax, ay, az = np.moveaxis(a, -1, 0)
    bw, bx, by, bz = np.moveaxis(b, -1, 0)
    product = [
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    ]
    return np.stack(product, axis=-1)


def rotation_exponential(vectors: Array) -> Array:
    """Return the quaternions (..., 4) of rotation vectors [rad]."""
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), 0.5 * np.sinc(angle / (2 * np.pi)) * vectors], axis=-1)


def rotation_logarithm(quaternions: Array) -> Array:
    """Return the shortest rotation vectors (..., 3) [rad] of unit quaternions."""
    q = np.where(quaternions[..., :1] < 0.0, -quaternions, quaternions)
    sine = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    safe = np.where(sine < 1e-12, 1.0, sine)
    return np.where(sine < 1e-12, 2.0, 2.0 * np.arctan2(sine, q[..., :1]) / safe) * q[..., 1:]


def rotation_matrix(quaternions: Array) -> Array:
    """Return the matrices (..., 3, 3) of unit quaternions."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def smallest_rotation(start: Array, end: Array) -> Array:
    """Return the matrix (3, 3) of the smallest rotation from one direction to another; both have a length.

    Half a revolution about the first, then half a one about the middle of both: a rotation across both.
    """
    a, b = start / np.linalg.norm(start), end / np.linalg.norm(end)
    middle = a + b
    if np.linalg.norm(middle) < MIN_MIDDLE:  # opposite: any direction across
        least = np.eye(3)[int(np.argmin(np.abs(a)))]
        middle = least - (least @ a) * a
    middle /= np.linalg.norm(middle)
    return np.asarray((2.0 * np.outer(middle, middle) - np.eye(3)) @ (2.0 * np.outer(a, a) - np.eye(3)))


def conjugate(quaternions: Array) -> Array:
    """Return the inverse rotations."""
    return np.asarray(quaternions * np.array([1.0, -1.0, -1.0, -1.0]))


def rotate(quaternions: Array, vectors: Array) -> Array:
    """Rotate vectors (..., 3) by unit quaternions."""
    twice = 2.0 * np.cross(quaternions[..., 1:], vectors)
    return np.asarray(vectors + quaternions[..., :1] * twice + np.cross(quaternions[..., 1:], twice))


def quaternion_from_matrix(matrix: Array) -> Array:
    """Return the unit quaternion (4,) of one rotation matrix (3, 3), its largest component positive."""
    m = matrix
    # the column of 4 q q^T with the largest diagonal entry is the best conditioned (Shepperd 1978)
    square = np.array(
        [
            [1.0 + m[0, 0] + m[1, 1] + m[2, 2], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], 1.0 + m[0, 0] - m[1, 1] - m[2, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]],
            [m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], 1.0 - m[0, 0] + m[1, 1] - m[2, 2], m[1, 2] + m[2, 1]],
            [m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], 1.0 - m[0, 0] - m[1, 1] + m[2, 2]],
        ]
    )
    best = square[:, int(np.argmax(np.diag(square)))]
    return np.asarray(best / np.sqrt(best @ best))


def quaternion_series(rotations: Array) -> Array:
    """Return the quaternions (frames, ..., 4) of matrices (frames, ..., 3, 3), each near the one before it."""
    m = np.ascontiguousarray(rotations.reshape(-1, 9).T).reshape(3, 3, -1)
    # 4 q q^T, as in `quaternion_from_matrix`
    square = np.empty((4, 4, m.shape[-1]))
    square[0, 0] = 1.0 + m[0, 0] + m[1, 1] + m[2, 2]
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        square[1 + i, 1 + i] = 1.0 + m[i, i] - m[j, j] - m[k, k]
        square[0, 1 + i] = square[1 + i, 0] = m[k, j] - m[j, k]
        square[1 + i, 1 + j] = square[1 + j, 1 + i] = m[i, j] + m[j, i]
    largest = np.argmax([square[i, i] for i in range(4)], axis=0)
    q = np.take_along_axis(square, largest[None, None], axis=0)[0]
    q /= np.sqrt((q * q).sum(axis=0))
    q = q.reshape(4, *rotations.shape[:-2])
    same = (q[:, 1:] * q[:, :-1]).sum(axis=0)
    q[:, 1:] *= np.cumprod(np.where(same < 0.0, -1.0, 1.0), axis=0)
    return np.ascontiguousarray(np.moveaxis(q, 0, -1))
