"""Piecewise polynomials of one variable as CasADi expressions, with their first two derivatives.

On the piece of x, f(x) = sum_n c_n (x - s)^n. The start s and the coefficients c_n are step functions of x, written as
their first value plus their jumps times (x >= break). A comparison has derivative zero, so automatic differentiation
gives the derivatives of the piece, exactly; a step costs two instructions where coefficients change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from borelli.model.functions import POLYNOMIAL_RANGE, Function
from borelli.model.kinematics import evaluate

Expression = Any
"""A CasADi SX scalar, or a float where the value is known."""


def evaluate_piecewise(function: Function, x: Expression) -> tuple[Expression, Expression, Expression]:
    """Return value, slope and curvature of a function; it is straight beyond its breaks, as in borelli's kernels."""
    if isinstance(x, float):
        return _number(function, x)
    starts, rows = _pieces(function)
    start = _step_function(x, starts[1:], starts)
    order = max(len(row) for row in rows)
    columns = [[row[n] if n < len(row) else 0.0 for row in rows] for n in range(order)]
    s = x - start
    value: Expression = 0.0
    slope: Expression = 0.0
    half: Expression = 0.0
    for column in reversed(columns):
        half = half * s + slope
        slope = slope * s + value
        value = value * s + _step_function(x, starts[1:], column)
    return value, slope, 2.0 * half


def _number(function: Function, x: float) -> tuple[float, float, float]:
    value, slope, curvature = evaluate(function, np.array([x]))
    return float(value[0]), float(slope[0]), float(curvature[0])


def _step_function(x: Expression, breaks: list[float], values: list[float]) -> Expression:
    """Return values[0] before the first break, values[k] from break k - 1 on."""
    result: Expression = values[0]
    for k, at in enumerate(breaks):
        if values[k + 1] != values[k]:
            result = result + (values[k + 1] - values[k]) * (x >= at)
    return result


def _pieces(function: Function) -> tuple[list[float], list[list[float]]]:
    """Return starts and coefficients of the pieces, with the straight ends where a piece continues as a line."""
    breaks, rows = list(function.breaks), [list(row) for row in function.coefficients]
    if breaks[0] == -POLYNOMIAL_RANGE and breaks[-1] == POLYNOMIAL_RANGE:
        return breaks[-2:-1], rows[-1:]  # one polynomial, divided for accuracy; its last piece counts from zero
    starts = breaks[:-1]
    if any(rows[-1][2:]):
        starts, rows = [*starts, breaks[-1]], [*rows, _tangent(rows[-1], breaks[-1] - breaks[-2])]
    if any(rows[0][2:]):
        starts, rows = [breaks[0], *starts], [rows[0][:2], *rows]
    return starts, rows


def _tangent(row: list[float], s: float) -> list[float]:
    """Return value and slope of a polynomial at s."""
    return [sum(c * s**n for n, c in enumerate(row)), sum(n * c * s ** (n - 1) for n, c in enumerate(row) if n)]
