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
