"""Shooting: each element is simulated with the explicit form by the classical Runge-Kutta method (Kutta 1901).

Multiple shooting (Bock and Plitt 1984) has the states at the ends of elements as unknowns and closes the gaps by
constraints. Single shooting computes them one after another from the state at the start of the phase, as Park, Fussell,
Pandy and Browne (1992) did, and leaves the controls as the only unknowns along the phase.
"""

from __future__ import annotations

from typing import Any

from borelli.optimal.transcription.point_functions import Point, PointFunctions
from borelli.optimal.transcription.scheme import ElementSymbols, Scheme, StageRow, build_scheme, element_symbols


def shooting_scheme(functions: PointFunctions, parameters: int, steps: int, *, multiple: bool) -> Scheme:
    """Return shooting with `steps` Runge-Kutta steps per element."""
    nx, _, _ = functions.sizes
    e = element_symbols(functions, nx if multiple else 0, parameters, 0)
    start = point_at(functions, e, e.x0, 0.0)
    points, integrals = [], 0.0
    x = e.x0
    for step in range(steps):
        x, increment = runge_kutta_step(functions, e, x, step / steps, 1.0 / steps)
        integrals = integrals + increment
        points.append(point_at(functions, e, x, (step + 1) / steps))
    defects = x - e.s if multiple else functions.symbol(0, 1)
    rows = [StageRow("x", i, 1.0) for i in range(nx)] if multiple else []
    return build_scheme(
        functions, e, rows, range(len(rows)), x, defects, points, integrals, [points[-1]], (1.0,), start, ()
    )


def point_at(functions: PointFunctions, e: ElementSymbols, x: Any, fraction: float) -> Point:
    """Return the point with this state, its rate and algebraic variables from the explicit form."""
    t = e.t0 + fraction * e.h
    u, udot = e.control(fraction)
    xdot, z = functions.explicit(t, x, u, e.p)
    return Point(t, x, xdot, z, u, udot, e.p, functions.signals(t))


def runge_kutta_step(
    functions: PointFunctions, e: ElementSymbols, x: Any, left: float, width: float
) -> tuple[Any, Any]:
    """Return the state after one step and the integrals over it."""
    dt = width * e.h
    slopes: list[Any] = []
    integrands: list[Any] = []
    for fraction in (0.0, 0.5, 0.5, 1.0):
        argument = x if not slopes else x + fraction * dt * slopes[-1]
        point = point_at(functions, e, argument, left + fraction * width)
        slopes.append(point.xdot)
        integrands.append(functions.integrands(*point))
    weights = (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)
    return (
        x + dt * sum(w * k for w, k in zip(weights, slopes, strict=True)),
        dt * sum(w * k for w, k in zip(weights, integrands, strict=True)),
    )
