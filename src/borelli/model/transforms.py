"""Poses as the model states them: plain tuples in, plain tuples out."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot

import numpy as np
from numpy.typing import NDArray

from borelli.model.model import Frame, Quaternion, Vector
from borelli.numerics.quaternions import quaternion_from_matrix

Array = NDArray[np.float64]


def vector(values: Iterable[float]) -> Vector:
    """Three numbers as the model stores them."""
    x, y, z = (float(value) for value in values)
    return x, y, z


def orientation_matrix(orientation: Quaternion) -> Array:
    """The matrix of a quaternion (made unit first)."""
    w, x, y, z = (np.array(orientation, dtype=float) / hypot(*orientation)).tolist()
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def orientation_from_matrix(matrix: Array) -> Quaternion:
    """Return the unit quaternion, w not negative, of a rotation matrix."""
    best = quaternion_from_matrix(matrix)
    w, x, y, z = (float(c) for c in best * (1.0 if best[0] >= 0.0 else -1.0))
    return w, x, y, z


def compose(outer: Frame, inner: Frame) -> Frame:
    """Where `inner`, stated in `outer`, lies in the frame in which `outer` is stated."""
    turn = orientation_matrix(outer.orientation)
    position = np.array(outer.position) + turn @ np.array(inner.position)
    return Frame(vector(position), orientation_from_matrix(turn @ orientation_matrix(inner.orientation)))


def inverse(frame: Frame) -> Frame:
    """The frame that `compose` undoes `frame` with."""
    turn = orientation_matrix(frame.orientation).T
    return Frame(vector(-turn @ np.array(frame.position)), orientation_from_matrix(turn))
