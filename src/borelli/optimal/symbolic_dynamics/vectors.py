"""Vectors and rotations of scalar CasADi expressions; numbers stay numbers, so zeros and ones cost no instruction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import cos, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.optimal.casadi_import import ca

Expression = Any
"""A CasADi SX scalar, or a float where the value is known."""
Vector = list[Expression]
"""Three expressions."""
Matrix = list[list[Expression]]
"""Three rows of three expressions."""

IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def times(a: Expression, b: Expression) -> Expression:
    """Return the product; zero where a factor is the number zero, the other factor where one is the number one."""
    if isinstance(a, float):
        if a == 0.0:
            return 0.0
        if a == 1.0:
            return b
    if isinstance(b, float):
        if b == 0.0:
            return 0.0
        if b == 1.0:
            return a
    return a * b


def add(a: Sequence[Expression], b: Sequence[Expression]) -> Vector:
    """Return a + b."""
    return [x + y for x, y in zip(a, b, strict=True)]


def subtract(a: Sequence[Expression], b: Sequence[Expression]) -> Vector:
    """Return a - b."""
    return [x - y for x, y in zip(a, b, strict=True)]


def scale(factor: Expression, a: Sequence[Expression]) -> Vector:
    """Return the vector times a scalar."""
    return [times(factor, x) for x in a]


def dot(a: Sequence[Expression], b: Sequence[Expression]) -> Expression:
    """Return the scalar product."""
    return times(a[0], b[0]) + times(a[1], b[1]) + times(a[2], b[2])


def cross(a: Sequence[Expression], b: Sequence[Expression]) -> Vector:
    """Return the vector product."""
    return [
        times(a[1], b[2]) - times(a[2], b[1]),
        times(a[2], b[0]) - times(a[0], b[2]),
        times(a[0], b[1]) - times(a[1], b[0]),
    ]


def multiply(matrix: Sequence[Sequence[Expression]], a: Sequence[Expression]) -> Vector:
    """Return the matrix times a vector."""
    return [dot(row, a) for row in matrix]


def multiply_transposed(matrix: Sequence[Sequence[Expression]], a: Sequence[Expression]) -> Vector:
    """Return the transpose of the matrix times a vector."""
    return [dot([row[i] for row in matrix], a) for i in range(3)]


def product(a: Matrix, b: Matrix) -> Matrix:
    """Return the matrix product."""
    columns = [[row[i] for row in b] for i in range(3)]
    return [[dot(row, column) for column in columns] for row in a]


def numbers(array: NDArray[np.float64]) -> Any:
    """Return an array as (nested) lists of floats."""
    return array.tolist()


def column(values: Sequence[Expression]) -> ca.SX:
    """Return expressions and numbers as one CasADi column."""
    return ca.vertcat(*[ca.SX(value) for value in values]) if values else ca.SX(0, 1)


def identifier(name: str) -> str:
    """Return a name with every other character than letters, digits and _ replaced by _."""
    return re.sub(r"\W", "_", name)


def sine_cosine(angle: Expression) -> tuple[Expression, Expression]:
    """Return sine and cosine of an expression or number."""
    if isinstance(angle, float):
        return sin(angle), cos(angle)
    return ca.sin(angle), ca.cos(angle)


class Rotation:
    """Rotation about a constant unit axis by an expression; about a coordinate axis it mixes two components."""

    def __init__(self, axis: Sequence[float], angle: Expression) -> None:
        self.sine, self.cosine = sine_cosine(angle)
        used = [i for i in range(3) if axis[i] != 0.0]
        self.index = used[0] if len(used) == 1 else -1
        if self.index >= 0:
            self.sine = axis[self.index] * self.sine
        else:
            self.matrix = _rodrigues(axis, self.sine, self.cosine)

    def into(self, a: Vector) -> Vector:
        """Return the components, in the rotated frame, of a vector given in the frame before."""
        return multiply_transposed(self.matrix, a) if self.index < 0 else self._mix(a, self.sine)

    def out_of(self, a: Vector) -> Vector:
        """Return the components, in the frame before, of a vector given in the rotated frame."""
        return multiply(self.matrix, a) if self.index < 0 else self._mix(a, -self.sine)

    def applied_to(self, frame: Matrix) -> Matrix:
        """Return a frame (columns: its axes) rotated about one of its own axes: frame times this rotation."""
        return product(frame, self.matrix) if self.index < 0 else [self._mix(row, self.sine) for row in frame]

    def _mix(self, a: Vector, sine: Expression) -> Vector:
        i, j = (self.index + 1) % 3, (self.index + 2) % 3
        result = list(a)
        result[i] = times(self.cosine, a[i]) + times(sine, a[j])
        result[j] = times(self.cosine, a[j]) - times(sine, a[i])
        return result


def _rodrigues(axis: Sequence[float], sine: Expression, cosine: Expression) -> Matrix:
    """Return cos I + sin [a]x + (1 - cos) a a^T (Rodrigues)."""
    x, y, z = axis
    skew = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
    versine = 1.0 - cosine
    return [
        [times(sine, skew[i][j]) + times(versine, axis[i] * axis[j]) + (cosine if i == j else 0.0) for j in range(3)]
        for i in range(3)
    ]
