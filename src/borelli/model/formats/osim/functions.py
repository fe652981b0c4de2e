"""OpenSim's functions of one variable: reading and writing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from borelli.errors import ModelError
from borelli.files.xml import Element, make_element
from borelli.model.formats.osim.properties import Item
from borelli.model.functions import (
    POLYNOMIAL_RANGE,
    Function,
    constant,
    linear,
    natural_cubic_spline,
    piecewise_linear,
    polynomial,
    simm_spline,
)

MAX_POINTS = 20_000
MAX_POWERS = 64
MATCH_TOLERANCE = 1e-9
"""Largest difference, relative to the largest coefficient, between a function and the one written for it."""

Parts = dict[str, Sequence[float]]


def function_in(item: Item) -> Function | None:
    """Return the function in a property: directly (4.x), or inside <function> (3.x); None if there is none."""
    wrapper = item.child("function")
    for child in (item if wrapper is None else wrapper).children():
        if child.kind in _READERS:
            return _READERS[child.kind](child)
        if child.kind.endswith(("Function", "Spline", "Polynomial", "Sine")) and child.kind != "function":
            known = ", ".join(sorted(_READERS))
            raise item.error(f"Function {child.kind} is not supported ({known} are). Use a SimmSpline.")
    return None


def _of_points(kind: Callable[[Sequence[float], Sequence[float]], Function]) -> Callable[[Item], Function]:
    def read(item: Item) -> Function:
        x, y = item.numbers("x"), item.numbers("y")
        if max(len(x), len(y)) > MAX_POINTS:
            raise item.error(f"The function has {len(x)} points (maximum {MAX_POINTS}).")
        if len(x) == len(y) == 1:
            return constant(y[0])
        try:
            return kind(x, y)
        except ModelError as error:
            raise item.error(str(error)) from None

    return read


def _polynomial(item: Item) -> Function:
    highest_first = item.numbers("coefficients")
    if not 1 <= len(highest_first) <= MAX_POWERS:
        raise item.error(f"<coefficients> has {len(highest_first)} numbers. Give 1 to {MAX_POWERS}.")
    return polynomial(highest_first[::-1])


def _linear(item: Item) -> Function:
    slope, offset = item.pair("coefficients", (1.0, 0.0))
    return linear(slope, offset)


def _gcv_spline(item: Item) -> Function:
    half_order, variance = item.number("half_order", 3.0), item.number("error_variance", 0.0)
    if half_order != 2.0 or variance != 0.0:
        raise item.error(
            f"The GCVSpline has half_order {half_order:g} and error_variance {variance:g}. Only 2 and 0, the natural "
            "cubic spline, are supported. Use a SimmSpline."
        )
    return _of_points(natural_cubic_spline)(item)


def _multiplier(item: Item) -> Function:
    inner = function_in(item)
    if inner is None:
        raise item.error("The function to multiply is missing.")
    return inner.scaled(item.number("scale", 1.0))


_READERS: dict[str, Callable[[Item], Function]] = {
    "Constant": lambda item: constant(item.number("value", 0.0)),
    "GCVSpline": _gcv_spline,
    "LinearFunction": _linear,
    "MultiplierFunction": _multiplier,
    "PiecewiseLinearFunction": _of_points(piecewise_linear),
    "PolynomialFunction": _polynomial,
    "SimmSpline": _of_points(simm_spline),
    # names of the SimmSpline in older files
    "NaturalCubicSpline": _of_points(simm_spline),
    "natCubicSpline": _of_points(simm_spline),
    "NatCubicSpline": _of_points(simm_spline),
}


def function_element(function: Function, where: str) -> Element:
    """Return the OpenSim function that equals a function; a ModelError that there is none begins with `where`."""
    for candidate in (_as_line, _as_polynomial, _as_piecewise_linear, _as_simm_spline, _as_natural_spline):
        match = candidate(function)
        if match is not None:
            kind, parts = match
            return make_element(kind, *(make_element(tag, text=" ".join(map(repr, v))) for tag, v in parts.items()))
    raise ModelError(
        f"{where}: OpenSim has no such function. Use a spline, a polynomial or a piecewise linear function."
    )


def _as_line(function: Function) -> tuple[str, Parts] | None:
    if function.is_constant:
        return "Constant", {"value": (function.coefficients[0][0],)}
    if len(function.coefficients) > 1 or any(function.coefficients[0][2:]):
        return None
    offset, slope = function.coefficients[0][:2]
    return "LinearFunction", {"coefficients": (slope, offset - slope * function.breaks[0])}


def _as_polynomial(function: Function) -> tuple[str, Parts] | None:
    if function.breaks[-1] != POLYNOMIAL_RANGE or function.breaks[0] != -POLYNOMIAL_RANGE:
        return None
    powers = function.coefficients[-1]
    if 0.0 in function.breaks and _same(function, polynomial(powers)):
        return "PolynomialFunction", {"coefficients": powers[::-1]}
    return None


def _as_piecewise_linear(function: Function) -> tuple[str, Parts] | None:
    if any(any(piece[2:]) for piece in function.coefficients):
        return None
    x, y = _knots(function)
    return ("PiecewiseLinearFunction", {"x": x, "y": y}) if _same(function, piecewise_linear(x, y)) else None


def _as_simm_spline(function: Function) -> tuple[str, Parts] | None:
    x, y = _knots(function)
    return ("SimmSpline", {"x": x, "y": y}) if _same(function, simm_spline(x, y)) else None


def _as_natural_spline(function: Function) -> tuple[str, Parts] | None:
    x, y = _knots(function)
    if not _same(function, natural_cubic_spline(x, y)):
        return None
    if len(x) == 3:  # a GCVSpline requires four points; a further point on the curve does not change it
        midpoint = 0.5 * (x[0] + x[1])
        x, y = [x[0], midpoint, *x[1:]], [y[0], function(midpoint), *y[1:]]
    return "GCVSpline", {"half_order": (2,), "error_variance": (0,), "x": x, "weights": [1.0] * len(x), "y": y}


def _knots(function: Function) -> tuple[list[float], list[float]]:
    values = [piece[0] for piece in function.coefficients]
    return list(function.breaks), [*values, function(function.breaks[-1])]


def _same(one: Function, other: Function) -> bool:
    """Return True if two functions are equal everywhere except for rounding."""
    if one.breaks != other.breaks:
        return False
    order = max(len(piece) for piece in one.coefficients + other.coefficients)
    lengths = np.array([b - a for a, b in pairwise(one.breaks)])[:, None] ** np.arange(order)
    a, b = (
        np.array([(*piece, *[0.0] * (order - len(piece))) for piece in f.coefficients]) * lengths for f in (one, other)
    )
    return bool(np.abs(a - b).max() <= MATCH_TOLERANCE * np.abs(a).max())
