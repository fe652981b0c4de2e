"""Car driven 1 m in 2 s with the least squared force (Park et al. 1992, section 3), and two variants with a gap.

Car: m x'' = f, J = int f^2. Bryson and Ho (1975): f* = (6 m d / T^2)(1 - 2 t / T), J* = 12 m^2 d^2 / T^3 = 1.5. The
optimum is linear, so any number of nodes gives it exactly. With drag, x'' = f - x', it is not, and few nodes are
suboptimal; the optimum follows from the same calculus of variations and is computed here in closed form. In minimum
time with |f| <= 1 the optimum switches at half time, T* = 2: with n intervals, T = 2 / sqrt(1 - 4 / (3 n^2)) for even n
(the switch falls on a node) and T = 2 / sqrt(1 - 1 / (3 n^2)) for odd n.
"""

from __future__ import annotations

from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, below
from borelli.optimal import Phase, Problem, Solution, Variable, make_system, solve
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE

DISTANCE, DURATION = 1.0, 2.0
"""[m], [s]; the mass is 1 kg."""
METHODS = ("radau", "hermite-simpson", "multiple-shooting", "single-shooting")
DRAG_ELEMENTS = 8
"""Per interval between nodes: with drag the motion is no polynomial, and the gap shall be that of the nodes alone."""
LEAST_COST = 12.0 * DISTANCE**2 / DURATION**3


def least_cost_with_drag() -> float:
    """Return the least int f^2 of x'' = f - x', from rest to rest.

    The costate of v grows as e^t: f = a + b e^t. The two conditions x(T) = d, v(T) = 0 are linear in a and b.
    """
    t, e = DURATION, exp(DURATION)
    # v of f = a: a (1 - e^-t); of f = b e^t: b sinh t. x is the integral of v.
    matrix = np.array([[1.0 - 1.0 / e, (e - 1.0 / e) / 2.0], [t - 1.0 + 1.0 / e, (e + 1.0 / e) / 2.0 - 1.0]])
    a, b = np.linalg.solve(matrix, [0.0, DISTANCE])
    return float(a * a * t + 2.0 * a * b * (e - 1.0) + b * b * (e * e - 1.0) / 2.0)


def least_time(nodes: int) -> float:
    """Return the least time [s] with a force that is linear between nodes."""
    n = nodes - 1
    return 2.0 / sqrt(1.0 - (4.0 if n % 2 == 0 else 1.0) / (3.0 * n * n))


def car_problem(nodes: int, *, drag: float = 0.0, min_time: bool = False) -> Problem:
    """Return the problem with a number of nodes, with drag [N s/m], or in minimum time with a force up to 1 N."""
    limit = 1.0 if min_time else np.inf
    car = make_system(
        "car",
        states=[Variable("x", "m"), Variable("v", "m/s")],
        controls=[Variable("force", "N", -limit, limit, scale=1.0)],
        rates=lambda s: {"x": s.v, "v": s.force - drag * s.v},
    )
    costs: dict[str, Any] = {"final_cost": lambda s: s.t} if min_time else {"cost": lambda s: s.force**2}
    duration = (0.5, 10.0) if min_time else DURATION
    rest = {"x": 0.0, "v": 0.0}
    guess = {"duration": 3.0} if min_time else {}
    elements = DRAG_ELEMENTS if drag else 1
    drive = Phase(
        "drive", car, duration, nodes=nodes, elements=elements, start=rest, end=rest | {"x": DISTANCE}, guess=guess,
        **costs,
    )  # fmt: skip
    return Problem("car", [drive])


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    rows, cars = [], {}
    for method in METHODS[:1] if request.quick else METHODS:
        for nodes in (3,) if request.quick else (2, 3, 21):
            request.log(f"car by {method}, {nodes} nodes")
            solution = solve(car_problem(nodes), method=method)
            cars[method] = solution
            rows.append(_row("least force", method, nodes, solution, solution.objective, LEAST_COST))
    drag = least_cost_with_drag()
    for nodes in (3, 5) if request.quick else (2, 3, 5, 11, 21):
        solution = solve(car_problem(nodes, drag=1.0))
        rows.append(_row("least force with drag", "radau", nodes, solution, solution.objective, drag))
    for nodes in (3,) if request.quick else (3, 4, 21, 28):
        solution = solve(car_problem(nodes, min_time=True))
        rows.append(_row("least time", "radau", nodes, solution, solution.duration, least_time(nodes)))
    _draw(cars["radau"], rows, request.plot)
    about = "a car of 1 kg driven 1 m from rest to rest, with the force at nodes as unknowns"
    return Outcome(request.name, about, rows, _claims(rows), (request.plot,))


def _row(task: str, method: str, nodes: int, solution: Solution, value: float, expected: float) -> dict[str, Any]:
    return {
        "task": task, "method": method, "nodes": nodes, "value": value, "optimum": expected,
        "gap": value / expected - 1.0, "iterations": solution.iterations, "solved": solution.solved,
    }  # fmt: skip


def _claims(rows: list[dict[str, Any]]) -> list[Claim]:
    gaps = {task: [row["gap"] for row in rows if row["task"] == task] for task in {row["task"] for row in rows}}
    falling = gaps["least force with drag"]
    falls = falling == sorted(falling, reverse=True) and falling[-1] > 0.0
    solved = sum(row["solved"] for row in rows)
    return [
        Claim("problems solved", solved, NOT_GIVEN, f"all {len(rows)}", solved == len(rows)),
        below(
            "car: largest error of J, all methods and nodes",
            max(map(abs, gaps["least force"])),
            "J of the car",
            1e-9,
            "closed form: 0",
        ),
        below(
            "minimum time: largest relative error of T",
            max(map(abs, gaps["least time"])),
            NOT_GIVEN,
            1e-6,
            "closed form: 0",
        ),
        Claim("with drag: gap at the most nodes", falling[-1], NOT_GIVEN, "falls with nodes", falls),
    ]


def _draw(solution: Solution, rows: list[dict[str, Any]], path: Path) -> None:
    with figure(path, "force [N]", "position [m], velocity [m/s]", "relative gap", size=(12.0, 3.6)) as panels:
        time = solution.dataset["time"].values
        panels[0].plot(time, 1.5 * (1.0 - time), color="0.7", lw=4.0, label="closed form")
        panels[0].plot(time, solution.value("force"), color=ORANGE, label="nodes")
        panels[1].plot(time, solution.value("x"), color=BLUE, label="position")
        panels[1].plot(time, solution.value("v"), color=GREEN, label="velocity")
        drag = [row for row in rows if row["task"] == "least force with drag"]
        nodes = np.array([row["nodes"] for row in drag])
        panels[2].loglog(nodes, [row["gap"] for row in drag], "o-", color=INK, label="with drag")
        panels[2].loglog(nodes, drag[0]["gap"] * ((nodes - 1.0) / (nodes[0] - 1.0)) ** -4.0, ":", color="0.5",
                         label="intervals^-4")  # fmt: skip
        panels[2].set(xlabel="nodes")
        panels[2].set_xticks(nodes, [str(n) for n in nodes])
        panels[2].set_xticks([], minor=True)
