"""Functions of one variable, as used by coordinate joints and couplings.

Each is a piecewise polynomial: its breakpoints and coefficients are all that kernels need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from borelli.errors import ModelError
from borelli.files.text import MAX_NUMBER

POLYNOMIAL_RANGE = 1024.0
"""How far from zero `polynomial` is exact: far beyond any angle [rad] or travel [m] of a joint."""


@dataclass(frozen=True, slots=True)
class Function:
    """A piecewise polynomial: on [breaks[i], breaks[i+1]] it is sum_k coefficients[i][k] (x - breaks[i])^k.

    Outside the breaks the first and last pieces go on as straight lines (value and slope kept).
    """

    breaks: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]

    def __call__(self, x: float) -> float:
        """The value at x."""
        return self._evaluate(x)[0]

    def slope(self, x: float) -> float:
        """The derivative at x."""
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
        """Whether the value is the same everywhere."""
        flat = all(not any(piece[1:]) for piece in self.coefficients)
        return flat and len({piece[0] for piece in self.coefficients}) == 1

    def scaled(self, factor: float) -> Function:
        """The function whose values are `factor` times these."""
        return Function(self.breaks, tuple(tuple(factor * c for c in piece) for piece in self.coefficients))


def constant(value: float) -> Function:
    """The function that is `value` everywhere."""
    return Function((0.0, 1.0), ((float(value),),))


def linear(slope: float, offset: float = 0.0) -> Function:
    """The straight line slope x + offset."""
    return Function((0.0, 1.0), ((float(offset), float(slope)),))


def polynomial(coefficients: Sequence[float]) -> Function:
    """The polynomial sum_k coefficients[k] x^k, constant term first.

    It is exact within `POLYNOMIAL_RANGE` of zero, and a straight line beyond. A piece counts from its left end, so
    negative x is cut at powers of two: one piece from -1024 on would lose ten digits near zero.
    """
    if not coefficients:
        raise ModelError("a polynomial needs at least one coefficient, got none")
    powers = tuple(float(c) for c in coefficients)
    if len(powers) <= 2:
        return linear(offset=powers[0], slope=sum(powers[1:]))
    starts = [-POLYNOMIAL_RANGE]
    while starts[-1] < -1.0:
        starts.append(starts[-1] / 2.0)
    pieces = (*(_shifted(powers, start) for start in starts), powers)
    return Function((*starts, 0.0, POLYNOMIAL_RANGE), pieces)


def piecewise_linear(x: Sequence[float], y: Sequence[float]) -> Function:
    """The straight segments through the points (x, y); the outer ones go on."""
    x, y = _points(x, y)
    pieces = tuple((a, (b - a) / (q - p)) for (p, q), (a, b) in zip(pairwise(x), pairwise(y), strict=True))
    return Function(x, pieces)


def natural_cubic_spline(x: Sequence[float], y: Sequence[float]) -> Function:
    """The twice differentiable cubic spline through the points (x, y), straight at and beyond both ends."""
    x, y = _points(x, y)
    if len(x) == 2:
        return piecewise_linear(x, y)
    from scipy.interpolate import CubicSpline

    highest_first = CubicSpline(x, y, bc_type="natural").c
    return Function(x, tuple(tuple(float(c) for c in piece[::-1]) for piece in highest_first.T))


def simm_spline(x: Sequence[float], y: Sequence[float]) -> Function:
    """The twice differentiable cubic spline through the points (x, y) of SIMM and OpenSim, straight beyond both ends.

    At each end its third derivative is that of the cubic through the four outermost points (Forsythe, Malcolm and
    Moler 1977, section 4.4), or zero with three points.
    """
    x, y = _points(x, y)
    if len(x) == 2:
        return piecewise_linear(x, y)
    from scipy.linalg import solve_banded

    # unknown: a sixth of the second derivative at the points; h s_left + 2 (h + k) s + k s_right = jump of the slopes
    place, value = np.array(x), np.array(y)
    h = np.diff(place)
    slope = np.diff(value) / h
    bands = np.zeros((3, len(x)))
    bands[0, 1:], bands[2, :-1] = h, h
    bands[1, 0], bands[1, -1] = -h[0], -h[-1]
    bands[1, 1:-1] = 2.0 * (h[:-1] + h[1:])
    jump = np.zeros(len(x))
    jump[1:-1] = np.diff(slope)
    if len(x) > 3:
        bend = jump[1:-1] / (place[2:] - place[:-2])
        third = np.diff(bend) / (place[3:] - place[:-3])
        jump[0], jump[-1] = h[0] ** 2 * third[0], -(h[-1] ** 2) * third[-1]
    s = solve_banded((1, 1), bands, jump)
    pieces = np.stack([value[:-1], slope - h * (s[1:] + 2.0 * s[:-1]), 3.0 * s[:-1], np.diff(s) / h], axis=1)
    return Function(x, tuple(tuple(float(c) for c in piece) for piece in pieces))


def _shifted(coefficients: tuple[float, ...], origin: float) -> tuple[float, ...]:
    """The coefficients in powers of (x - origin) of a polynomial given in powers of x."""
    shifted = list(coefficients)
    for lowest in range(len(shifted)):  # repeated division by (x - origin): the remainders are the new coefficients
        for k in range(len(shifted) - 2, lowest - 1, -1):
            shifted[k] += origin * shifted[k + 1]
    return tuple(shifted)


def _points(x: Sequence[float], y: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    x, y = tuple(map(float, x)), tuple(map(float, y))
    if len(x) != len(y) or len(x) < 2:
        raise ModelError(f"a function through points needs as many x as y and at least two, got {len(x)} and {len(y)}")
    if not all(abs(number) < MAX_NUMBER for number in x + y):
        raise ModelError(f"a function through points needs finite numbers below {MAX_NUMBER:g}, got NaN or larger")
    if any(b - a < 1.0 / MAX_NUMBER for a, b in pairwise(x)):
        raise ModelError(f"a function through points needs increasing x, got {x}")
    return x, y
