"""Vectors of three numbers in kernels."""

from __future__ import annotations

from borelli.kernels.jit import inline


@inline
def load3(array, k, at):
    """Return three numbers of row k from column `at`."""
    return array[k, at], array[k, at + 1], array[k, at + 2]


@inline
def store3(array, k, at, x, y, z):
    """Write three numbers into row k from column `at`."""
    array[k, at], array[k, at + 1], array[k, at + 2] = x, y, z


@inline
def to_world(rotation, b, x, y, z):
    """Return a vector fixed in body b, or the ground, in world axes."""
    if b < 0:
        return x, y, z
    return (
        rotation[b, 0, 0] * x + rotation[b, 0, 1] * y + rotation[b, 0, 2] * z,
        rotation[b, 1, 0] * x + rotation[b, 1, 1] * y + rotation[b, 1, 2] * z,
        rotation[b, 2, 0] * x + rotation[b, 2, 1] * y + rotation[b, 2, 2] * z,
    )


@inline
def multiply_vector(a, x, y, z):
    """Return the product of a matrix of nine entries and a vector."""
    return a[0] * x + a[1] * y + a[2] * z, a[3] * x + a[4] * y + a[5] * z, a[6] * x + a[7] * y + a[8] * z


@inline
def invert_matrix(a):
    """Return the inverse of a matrix of nine entries."""
    c0, c1, c2 = a[4] * a[8] - a[5] * a[7], a[5] * a[6] - a[3] * a[8], a[3] * a[7] - a[4] * a[6]
    s = 1.0 / (a[0] * c0 + a[1] * c1 + a[2] * c2)
    return (
        s * c0, s * (a[2] * a[7] - a[1] * a[8]), s * (a[1] * a[5] - a[2] * a[4]),
        s * c1, s * (a[0] * a[8] - a[2] * a[6]), s * (a[2] * a[3] - a[0] * a[5]),
        s * c2, s * (a[1] * a[6] - a[0] * a[7]), s * (a[0] * a[4] - a[1] * a[3]),
    )  # fmt: skip
