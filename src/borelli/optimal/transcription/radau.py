"""Radau collocation of the implicit residual.

In each element the states are polynomials of degree d that satisfy r = 0 at the d Radau points 0 < c_1 < ... < c_d = 1
(Radau IIA; Hairer and Wanner 1996, section IV.5). With the Lagrange polynomials l_i through c_0 = 0 and the Radau
points,

    x(t0 + c h) = sum_i l_i(c) x_i,    xdot_j = (1/h) sum_i l_i'(c_j) x_i,    r(t_j, x_j, xdot_j, z_j, u_j, p) = 0.

The method is stiffly accurate and L-stable, of order 2 d - 1 for states at the ends of elements. Integrals are
h sum_j b_j L(t_j), exact for polynomials of degree 2 d - 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.optimal.casadi_import import ca
from borelli.optimal.transcription.point_functions import Point, PointFunctions
from borelli.optimal.transcription.scheme import Scheme, StageRow, build_scheme, element_symbols

Array = NDArray[np.float64]
ORDERS = (1, 2, 3, 4)
"""Numbers of points per element that are offered."""


def radau_scheme(functions: PointFunctions, parameters: int, order: int) -> Scheme:
    """Return Radau collocation with `order` points per element."""
    nx, nz, _ = functions.sizes
    points, derivative, weights = radau_coefficients(order)
    e = element_symbols(functions, order * (nx + nz), parameters, order)
    states = [e.x0, *(e.s[j * nx : (j + 1) * nx] for j in range(order))]
    algebraics = [e.s[order * nx + j * nz : order * nx + (j + 1) * nz] for j in range(order)]
    stages = []
    for j, c in enumerate(points):
        xdot = sum(float(derivative[i, j]) * state for i, state in enumerate(states)) / e.h
        u, udot = e.control(c)
        stages.append(Point(e.t0 + c * e.h, states[j + 1], xdot, algebraics[j], u, udot, e.p, e.g[:, j]))
    defects = ca.vertcat(*(functions.residual(*point) for point in stages))
    integrals = e.h * sum(float(b) * functions.integrands(*point) for b, point in zip(weights, stages, strict=True))
    rows = [StageRow("x", i, c) for c in points for i in range(nx)]
    rows += [StageRow("z", i, c) for c in points for i in range(nz)]
    end_rows = range((order - 1) * nx, order * nx)
    return build_scheme(
        functions, e, rows, end_rows, states[-1], defects, stages, integrals, stages, tuple(points), None, points
    )


def radau_coefficients(order: int) -> tuple[list[float], Array, Array]:
    """Return the points c_1..c_d, the derivatives l_i'(c_j) as (d + 1, d), and the weights b_j."""
    points = [float(c) for c in ca.collocation_points(order, "radau")]
    nodes = np.array([0.0, *points])
    derivative = np.empty((order + 1, order))
    weights = np.empty(order)
    for i in range(order + 1):
        lagrange = np.poly1d(np.delete(nodes, i), r=True)
        lagrange /= lagrange(nodes[i])
        derivative[i] = np.polyder(lagrange)(points)
    for j in range(order):  # weights of the points alone, without c_0
        lagrange = np.poly1d(np.delete(nodes[1:], j), r=True)
        weights[j] = np.polyint(lagrange / lagrange(points[j]))(1.0)
    return points, derivative, weights
