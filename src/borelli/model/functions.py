"""Functions of one variable, used by coordinate joints and couplings.

Each function is a piecewise polynomial: kernels need only its breakpoints and coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from borelli.errors import ModelError
from borelli.files.html_repr import fields_repr
from borelli.files.text import MAX_NUMBER

POLYNOMIAL_RANGE = 1024.0
"""Largest |x| at which `polynomial` is exact: far beyond any angle [rad] or displacement [m] of a joint."""


@dataclass(frozen=True, slots=True)
class Function:
    """Piecewise polynomial: on [breaks[i], breaks[i+1]] it is sum_k coefficients[i][k] (x - breaks[i])^k.

    Beyond the breaks, the first and last pieces continue as straight lines with the value and slope at the break.
    """

    breaks: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]

    __repr__ = fields_repr

    def __call__(self, x: float) -> float:
        """Return the value at x."""
        return self._evaluate(x)[0]

    def slope(self, x: float) -> float:
        """Return the derivative at x."""
        return self._evaluate(x)[1]

    def _evaluate(self, x: float) -> tuple[float, float]:
        inside = min(max(x, self.breaks[0]), self.breaks[-1])
        piece = min(max(int(np.searchsorted(self.breaks, inside, side="right")) - 1, 0), len(self.coefficients) - 1)
        s, value, slope = inside - self.breaks[piece], 0.0, 0.0
        for coefficient in reversed(self.coefficients[piece]):
            slope = slope * s + value
            value = value * s + coefficient
        return value + slope * (x - inside), slope

    @property
    def is_constant(self) -> bool:
        """True if the value is the same everywhere."""
        flat = all(not any(piece[1:]) for piece in self.coefficients)
        return flat and len({piece[0] for piece in self.coefficients}) == 1

    def scaled(self, factor: float) -> Function:
        """Return the function multiplied by `factor`."""
        return Function(self.breaks, tuple(tuple(factor * c for c in piece) for piece in self.coefficients))


def constant(value: float) -> Function:
    """Return the function that is `value` everywhere.

    Args:
        value: Value of the function.
    """
    return Function((0.0, 1.0), ((float(value),),))


def linear(slope: float, offset: float = 0.0) -> Function:
    """Return the straight line slope x + offset.

    Args:
        slope: Slope of the line.
        offset: Value at zero.
    """
    return Function((0.0, 1.0), ((float(offset), float(slope)),))


def polynomial(coefficients: Sequence[float]) -> Function:
    """Return the polynomial sum_k coefficients[k] x^k, constant term first.

    It is exact within `POLYNOMIAL_RANGE` of zero and a straight line beyond. Negative x is divided at powers of two,
    because a piece counts from its left end: a single piece from -1024 on would lose ten digits near zero.

    Args:
        coefficients: Coefficients, the constant term first.
    """
    if not coefficients:
        raise ModelError("A polynomial has no coefficients. Give at least one.")
    powers = tuple(float(c) for c in coefficients)
    if len(powers) <= 2:
        return linear(offset=powers[0], slope=sum(powers[1:]))
    starts = [-POLYNOMIAL_RANGE]
    while starts[-1] < -1.0:
        starts.append(starts[-1] / 2.0)
    pieces = (*(_shifted(powers, start) for start in starts), powers)
    return Function((*starts, 0.0, POLYNOMIAL_RANGE), pieces)


def piecewise_linear(x: Sequence[float], y: Sequence[float]) -> Function:
    """Return the line segments through the points (x, y); the outer ones are extended.

    Args:
        x: Where the function is known, increasing.
        y: Its values there.
    """
    x, y = _points(x, y)
    pieces = tuple((a, (b - a) / (q - p)) for (p, q), (a, b) in zip(pairwise(x), pairwise(y), strict=True))
    return Function(x, pieces)


def natural_cubic_spline(x: Sequence[float], y: Sequence[float]) -> Function:
    """Return the natural cubic spline through the points (x, y), straight beyond both ends.

    Args:
        x: Where the function is known, increasing.
        y: Its values there.
    """
    x, y = _points(x, y)
    if len(x) == 2:
        return piecewise_linear(x, y)
    from scipy.interpolate import CubicSpline

    highest_first = CubicSpline(x, y, bc_type="natural").c
    return Function(x, tuple(tuple(float(c) for c in piece[::-1]) for piece in highest_first.T))


def simm_spline(x: Sequence[float], y: Sequence[float]) -> Function:
    """Return the cubic spline of SIMM and OpenSim through the points (x, y), straight beyond both ends.

    At each end its third derivative is that of the cubic through the four outermost points (Forsythe, Malcolm and
    Moler 1977, section 4.4), or zero with three points.

    Args:
        x: Where the function is known, increasing.
        y: Its values there.
    """
    x, y = _points(x, y)
    if len(x) == 2:
        return piecewise_linear(x, y)
    from scipy.linalg import solve_banded

    # unknown s: a sixth of the second derivative at the points; h s_left + 2 (h + k) s + k s_right = jump of the slopes
    knot, value = np.array(x), np.array(y)
    h = np.diff(knot)
    slope = np.diff(value) / h
    matrix = np.zeros((3, len(x)))
    matrix[0, 1:], matrix[2, :-1] = h, h
    matrix[1, 0], matrix[1, -1] = -h[0], -h[-1]
    matrix[1, 1:-1] = 2.0 * (h[:-1] + h[1:])
    jump = np.zeros(len(x))
    jump[1:-1] = np.diff(slope)
    if len(x) > 3:
        curvature = jump[1:-1] / (knot[2:] - knot[:-2])
        third = np.diff(curvature) / (knot[3:] - knot[:-3])
        jump[0], jump[-1] = h[0] ** 2 * third[0], -(h[-1] ** 2) * third[-1]
    s = solve_banded((1, 1), matrix, jump)
    pieces = np.stack([value[:-1], slope - h * (s[1:] + 2.0 * s[:-1]), 3.0 * s[:-1], np.diff(s) / h], axis=1)
    return Function(x, tuple(tuple(float(c) for c in piece) for piece in pieces))


def _shifted(coefficients: tuple[float, ...], origin: float) -> tuple[float, ...]:
    """Return the coefficients in powers of (x - origin) of a polynomial in powers of x."""
    shifted = list(coefficients)
    for lowest in range(len(shifted)):  # repeated division by (x - origin): the remainders are the new coefficients
        for k in range(len(shifted) - 2, lowest - 1, -1):
            shifted[k] += origin * shifted[k + 1]
    return tuple(shifted)


def _points(x: Sequence[float], y: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    x, y = tuple(map(float, x)), tuple(map(float, y))
    if len(x) != len(y) or len(x) < 2:
        raise ModelError(f"A function has {len(x)} x and {len(y)} y values. Give as many x as y, and at least two.")
    if not all(abs(number) < MAX_NUMBER for number in x + y):
        raise ModelError(f"A function has points that are NaN or beyond {MAX_NUMBER:g}. Give finite numbers.")
    if any(b - a < 1.0 / MAX_NUMBER for a, b in pairwise(x)):
        raise ModelError(f"The x values of a function do not increase (found {x}). Sort the points by x.")
    return x, y
