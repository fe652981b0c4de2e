"""Poses as a model states them: plain tuples in, plain tuples out."""

from __future__ import annotations

from collections.abc import Iterable
from math import cos, hypot, sin

import numpy as np
from numpy.typing import NDArray

from borelli.model.model import Frame, Quaternion, Vector
from borelli.numerics.quaternions import quaternion_from_matrix, rotation_matrix

Array = NDArray[np.float64]

X: Vector = (1.0, 0.0, 0.0)
Y: Vector = (0.0, 1.0, 0.0)
Z: Vector = (0.0, 0.0, 1.0)
AXES = (X, Y, Z)


def vector(values: Iterable[float]) -> Vector:
    """Return three numbers as a tuple of floats."""
    x, y, z = (float(value) for value in values)
    return x, y, z


def orientation_matrix(orientation: Quaternion) -> Array:
    """Return the rotation matrix of a quaternion, which is normalized first."""
    return rotation_matrix(np.array(orientation, dtype=float) / hypot(*orientation))


def orientation_from_matrix(matrix: Array) -> Quaternion:
    """Return the unit quaternion of a rotation matrix, with w not negative."""
    quaternion = quaternion_from_matrix(matrix)
    w, x, y, z = (float(c) for c in quaternion * (1.0 if quaternion[0] >= 0.0 else -1.0))
    return w, x, y, z


def axis_angle(axis: Iterable[float], angle: float) -> Quaternion:
    """Return the quaternion of a rotation by an angle [rad] about a unit axis."""
    x, y, z = (float(sin(0.5 * angle) * component) for component in axis)
    return cos(0.5 * angle), x, y, z


def compose(outer: Frame, inner: Frame) -> Frame:
    """Return the pose of `inner`, stated in `outer`, in the frame in which `outer` is stated."""
    rotation = orientation_matrix(outer.orientation)
    position = np.array(outer.position) + rotation @ np.array(inner.position)
    return Frame(vector(position), orientation_from_matrix(rotation @ orientation_matrix(inner.orientation)))


def inverse(frame: Frame) -> Frame:
    """Return the inverse of a pose."""
    rotation = orientation_matrix(frame.orientation).T
    return Frame(vector(-rotation @ np.array(frame.position)), orientation_from_matrix(rotation))
