"""Hermite-Simpson collocation of the implicit residual, in separated form.

In each element the states are cubic polynomials through both ends; r = 0 holds at start, midpoint and end, with the
rates there as unknowns (Hargraves and Paris 1987; Betts 2010):

    x_m = (x_0 + x_1) / 2 + h (xdot_0 - xdot_1) / 8,    x_1 = x_0 + h (xdot_0 + 4 xdot_m + xdot_1) / 6.

The method is of order 4. Integrals are by Simpson's rule.
"""

from __future__ import annotations

from borelli.optimal.casadi_import import ca
from borelli.optimal.transcription.point_functions import Point, PointFunctions
from borelli.optimal.transcription.scheme import Scheme, StageRow, build_scheme, element_symbols

FRACTIONS = (0.0, 0.5, 1.0)


def hermite_simpson_scheme(functions: PointFunctions, parameters: int) -> Scheme:
    """Return Hermite-Simpson collocation."""
    nx, nz, _ = functions.sizes
    e = element_symbols(functions, 5 * nx + 3 * nz, parameters, len(FRACTIONS))
    middle, end = e.s[:nx], e.s[nx : 2 * nx]
    rates = [e.s[(2 + j) * nx : (3 + j) * nx] for j in range(3)]
    algebraics = [e.s[5 * nx + j * nz : 5 * nx + (j + 1) * nz] for j in range(3)]
    stages = []
    for j, (c, x) in enumerate(zip(FRACTIONS, (e.x0, middle, end), strict=True)):
        stages.append(Point(e.t0 + c * e.h, x, rates[j], algebraics[j], *e.control(c), e.p, e.g[:, j]))
    hermite = middle - 0.5 * (e.x0 + end) - e.h / 8.0 * (rates[0] - rates[2])
    simpson = end - e.x0 - e.h / 6.0 * (rates[0] + 4.0 * rates[1] + rates[2])
    defects = ca.vertcat(*(functions.residual(*point) for point in stages), hermite, simpson)
    values = [functions.integrands(*point) for point in stages]
    integrals = e.h / 6.0 * (values[0] + 4.0 * values[1] + values[2])
    rows = [StageRow("x", i, c) for c in FRACTIONS[1:] for i in range(nx)]
    rows += [StageRow("xdot", i, c) for c in FRACTIONS for i in range(nx)]
    rows += [StageRow("z", i, c) for c in FRACTIONS for i in range(nz)]
    return build_scheme(
        functions, e, rows, range(nx, 2 * nx), end, defects, stages[1:], integrals, stages[1:], FRACTIONS[1:],
        stages[0], FRACTIONS,
    )  # fmt: skip
