"""OpenSim's functions of one variable, and ours as OpenSim writes them."""

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
SAME = 1e-9
"""Largest difference, relative to the largest coefficient, between a function and the one written for it."""

Parts = dict[str, Sequence[float]]


def function_in(item: Item) -> Function | None:
    """The function that stands in a property: directly (4.x), or inside <function> (3.x); None if there is none."""
    wrapper = item.child("function")
    for child in (item if wrapper is None else wrapper).children():
        if child.kind in _READERS:
            return _READERS[child.kind](child)
        if child.kind.endswith(("Function", "Spline", "Polynomial", "Sine")) and child.kind != "function":
            known = ", ".join(sorted(_READERS))
            raise item.error(f"the function {child.kind} is not read; known: {known}; replace it by a SimmSpline")
    return None


def _of_points(kind: Callable[[Sequence[float], Sequence[float]], Function]) -> Callable[[Item], Function]:
    def read(item: Item) -> Function:
        x, y = item.numbers("x"), item.numbers("y")
        if max(len(x), len(y)) > MAX_POINTS:
            raise item.error(f"it has {len(x)} points, but at most {MAX_POINTS} are read")
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
        raise item.error(f"<coefficients> must hold 1 to {MAX_POWERS} numbers, got {len(highest_first)}")
    return polynomial(highest_first[::-1])


def _linear(item: Item) -> Function:
    slope, offset = item.pair("coefficients", (1.0, 0.0))
    return linear(slope, offset)


def _gcv_spline(item: Item) -> Function:
    half_order, variance = item.number("half_order", 3.0), item.number("error_variance", 0.0)
    if half_order != 2.0 or variance != 0.0:
        raise item.error(
            "only a GCVSpline of half_order 2 without error_variance is read, which is the natural cubic spline; "
            f"got {half_order:g} and {variance:g}; replace it by a SimmSpline"
        )
    return _of_points(natural_cubic_spline)(item)


def _multiplier(item: Item) -> Function:
    inner = function_in(item)
    if inner is None:
        raise item.error("there is no function to multiply")
    return inner.scaled(item.number("scale", 1.0))


_READERS: dict[str, Callable[[Item], Function]] = {
    "Constant": lambda item: constant(item.number("value", 0.0)),
    "GCVSpline": _gcv_spline,
    "LinearFunction": _linear,
    "MultiplierFunction": _multiplier,
    "PiecewiseLinearFunction": _of_points(piecewise_linear),
    "PolynomialFunction": _polynomial,
    "SimmSpline": _of_points(simm_spline),
    # names under which older files know the SimmSpline
    "NaturalCubicSpline": _of_points(simm_spline),
    "natCubicSpline": _of_points(simm_spline),
    "NatCubicSpline": _of_points(simm_spline),
}


def function_element(function: Function, where: str) -> Element:
    """The OpenSim function that equals ours.

    Raises:
        ModelError: if no function of OpenSim does; `where` begins the sentence.
    """
    for candidate in (_as_line, _as_polynomial, _as_segments, _as_simm_spline, _as_natural_spline):
        found = candidate(function)
        if found is not None:
            kind, parts = found
            return make_element(kind, *(make_element(tag, text=" ".join(repr(v) for v in values)) for tag, values in parts.items()))
    raise ModelError(f"{where}: its function is no spline, polynomial or broken line, so OpenSim cannot be told it")


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


def _as_segments(function: Function) -> tuple[str, Parts] | None:
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
    if len(x) == 3:  # a GCVSpline wants four points; one more on the curve leaves it what it is
        middle = 0.5 * (x[0] + x[1])
        x, y = [x[0], middle, *x[1:]], [y[0], function(middle), *y[1:]]
    return "GCVSpline", {"half_order": (2,), "error_variance": (0,), "x": x, "weights": [1.0] * len(x), "y": y}


def _knots(function: Function) -> tuple[list[float], list[float]]:
    """The breaks and the values there."""
    values = [piece[0] for piece in function.coefficients]
    return list(function.breaks), [*values, function(function.breaks[-1])]


def _same(one: Function, other: Function) -> bool:
    """Whether two functions are equal everywhere but for rounding."""
    if one.breaks != other.breaks:
        return False
    order = max(len(piece) for piece in one.coefficients + other.coefficients)
    lengths = np.array([b - a for a, b in pairwise(one.breaks)])[:, None] ** np.arange(order)
    a, b = (
        np.array([(*piece, *[0.0] * (order - len(piece))) for piece in f.coefficients]) * lengths for f in (one, other)
    )
    return bool(np.abs(a - b).max() <= SAME * np.abs(a).max())
