"""Problems with known answers."""

import numpy as np

from borelli.optimal import Phase, Problem, Variable, make_system

METHODS = ("radau", "hermite-simpson", "multiple-shooting", "single-shooting")

DRAG_TABLE = {
    2: 2.2008349098,
    3: 2.1067117507,
    5: 2.0978554085,
    11: 2.0972789793,
    21: 2.0972649564,
    28: 2.0972643051,
}
"""Least integral of the squared force of a car with drag, by number of force nodes; `drag_cost` computes them again."""


def car_system(*, drag=0.0, max_force=np.inf, mass=1.0):
    return make_system(
        "car",
        states=[Variable("x", "m"), Variable("v", "m/s")],
        controls=[Variable("force", "N", -max_force, max_force)],
        rates=lambda s: {"x": s.v, "v": (s.force - drag * s.v) / mass},
        outputs=lambda s: {"power": s.force * s.v},
        output_units={"power": "W"},
    )


def squared_force(s):
    return s.force**2


def final_time(s):
    return s.t


def car(nodes=3, *, elements=1, drag=0.0, duration=2.0, distance=1.0, **settings):
    """Car of Park, Fussell, Pandy and Browne (1992), section 3: least squared force over 1 m in 2 s, rest to rest."""
    settings = {"start": {"x": 0, "v": 0}, "end": {"x": distance, "v": 0}, "cost": squared_force, **settings}
    return Problem("car", [Phase("drive", car_system(drag=drag), duration, nodes, elements, **settings)])


def fastest(nodes, *, max_force=1.0, mass=1.0, longest=5.0, **settings):
    """Car that travels 1 m, rest to rest, in least time with a bounded force."""
    system = car_system(max_force=max_force, mass=mass)
    ends = {"start": {"x": 0, "v": 0}, "end": {"x": 1, "v": 0}}
    return Problem(
        "fastest", [Phase("drive", system, (0.1, longest), nodes, **ends, final_cost=final_time, **settings)]
    )


def drag_cost(nodes):
    """Return the least squared force of the car with drag by linear algebra: no transcription, no solver.

    With hat functions b_i for the nodes, x(2) = sum f_i X_i and v(2) = sum f_i V_i with X, V the integrals of
    1 - exp(t - 2) and exp(t - 2) times b_i; the least f'Bf on these two conditions is closed form.
    """
    knots = np.linspace(0.0, 2.0, nodes)
    points, weights = np.polynomial.legendre.leggauss(20)
    hats = np.zeros((nodes, nodes))
    ends = np.zeros((2, nodes))
    for k in range(nodes - 1):
        width = knots[k + 1] - knots[k]
        t = knots[k] + 0.5 * width * (points + 1.0)
        w = 0.5 * width * weights
        values = np.zeros((nodes, len(t)))
        values[k], values[k + 1] = (knots[k + 1] - t) / width, (t - knots[k]) / width
        hats += (values * w) @ values.T
        ends[0] += (values * w) @ (1.0 - np.exp(t - 2.0))
        ends[1] += (values * w) @ np.exp(t - 2.0)
    inverse = np.linalg.solve(hats, ends.T)
    multipliers = np.linalg.solve(ends @ inverse, [1.0, 0.0])
    return float(multipliers[0])


def fastest_time(nodes):
    """Return the least time over 1 m with |force| <= 1 N on 1 kg and linear force between nodes (closed form)."""
    intervals = nodes - 1
    return 2.0 / np.sqrt(1.0 - (4.0 if intervals % 2 == 0 else 1.0) / (3.0 * intervals**2))
