"""Spacetime constraints (Witkin and Kass 1988; Park et al. 1992, section 2.3): joint coordinates at nodes as unknowns.

Central differences over the interval h give rates and accelerations, and inverse dynamics gives the torque at every
node; a cost of torques is minimized over the coordinates between a pose at the start and one at the end, both at rest:

    v_i = (q_i+1 - q_i-1) / 2h,    a_i = (q_i+1 - 2 q_i + q_i-1) / h^2      (eqs. 9 and 10)
    T_i = inverse dynamics(q_i, v_i, a_i)                                    (eq. 11)

At rest at the ends, q_-1 = q_1. There is no forward simulation, so a solution may be far from a motion: with few nodes
the optimum exploits the error of the differences. `max_rate` bounds v, and the one-step defect measures the error: the
distance from q_i+1 of a simulation of one interval from (q_i, v_i) under torques linear between nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.files.html_repr import fields_summary, summary_html, summary_repr
from borelli.optimal.casadi_import import ca
from borelli.optimal.dynamics_runs import runge_kutta_step, torque_function
from borelli.optimal.namespace import Namespace
from borelli.optimal.problem import Constraint
from borelli.optimal.system import System, names_of

Array = NDArray[np.float64]

DEFECT_SUBSTEPS = 20
"""Runge-Kutta steps of the simulation of one interval."""
IPOPT_OPTIONS = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False, "error_on_fail": False}


@dataclass(frozen=True)
class SpacetimeSolution:
    """Optimum of a spacetime problem."""

    coordinates: tuple[str, ...]
    time: Array
    """(nodes,) [s]"""
    position: Array
    """(nodes, coordinates) [rad or m]"""
    rate: Array
    torque: Array
    """(nodes, coordinates) [N m or N]"""
    cost: float
    defect: Array
    """(intervals, coordinates) one-step defects [rad or m]."""
    converged: bool
    """Whether the solver ended at an optimum of the discrete problem; the defects say whether that is a motion."""
    iterations: int

    __repr__ = summary_repr
    _repr_html_ = summary_html
    _summary = fields_summary


def solve_spacetime(
    system: System,
    start: Mapping[str, float],
    end: Mapping[str, float],
    *,
    duration: float,
    intervals: int,
    max_rate: float = inf,
    path: Sequence[Constraint] = (),
    cost: Callable[[Namespace], Any] | None = None,
    middle: Mapping[str, float] | None = None,
    max_iterations: int = 1000,
) -> SpacetimeSolution:
    """Find the motion between two poses at rest that minimizes the time integral of a cost.

    Args:
        system: Tree system with a torque on every coordinate.
        start: Coordinates [rad or m] at the start, all of them.
        end: Coordinates at the end.
        duration: [s]
        intervals: Number of intervals between nodes.
        max_rate: Bound of the rate of every coordinate [rad/s or m/s], at nodes and between them.
        path: Constraints at every node, on functions of coordinates, controls and outputs by name.
        cost: Integrand as a function of the same names. Default: sum of squared torques.
        middle: Pose through which the first guess passes halfway. Default: the guess is a line from start to end.
        max_iterations: Of the solver.

    Returns:
        Motion, torques and cost, with one-step defects.

    Raises:
        SettingsError: A coordinate is missing or unknown, or the numbers are out of range.
    """
    names = names_of(system.states)[: len(system.controls)]
    for given in (start, end, middle if middle is not None else start):
        if set(given) != set(names):
            wrong = next(iter(set(given) ^ set(names)))
            raise SettingsError(
                f"Spacetime poses: {wrong!r} is missing or unknown. {unknown_name('name', wrong, names)}."
            )
    if intervals < 2 or not duration > 0.0 or not max_rate > 0.0:
        raise SettingsError(
            f"Spacetime: {intervals} intervals in {duration:g} s with rates up to {max_rate:g}. Give two intervals at "
            "least, and a positive duration and rate."
        )
    h = duration / intervals
    at_node = _node_function(system, path, cost)
    q = ca.MX.sym("q", len(names), intervals + 1)
    rate, acceleration = _differences(q, h)
    torque, value, rows = at_node.map(intervals + 1)(q, rate, acceleration)
    steps = (q[:, 1:] - q[:, :-1]) / h
    weights = ca.DM(np.array([0.5, *np.ones(intervals - 1), 0.5]) * h)
    solver = ca.nlpsol(
        "spacetime", "ipopt",
        {"x": ca.vec(q), "f": ca.mtimes(value, weights), "g": ca.vertcat(ca.vec(rows), ca.vec(steps))},
        IPOPT_OPTIONS | {"ipopt.max_iter": max_iterations},
    )  # fmt: skip
    first = _guess([start, middle, end], names, intervals)
    lower, upper = np.full_like(first, -inf), np.full_like(first, inf)
    for i, v in enumerate(system.states[: len(names)]):
        lower[:, i], upper[:, i] = v.lower, v.upper
    lower[0] = upper[0] = first[0]
    lower[-1] = upper[-1] = first[-1]
    bounds = [np.tile([getattr(c, side) for c in path], intervals + 1) for side in ("lower", "upper")]
    limits = np.full(steps.numel(), max_rate)
    found = solver(
        x0=first.ravel(), lbx=lower.ravel(), ubx=upper.ravel(), lbg=np.concatenate([bounds[0], -limits]),
        ubg=np.concatenate([bounds[1], limits]),
    )  # fmt: skip
    evaluate = ca.Function("motion", [q], [rate, torque])
    position = np.array(found["x"]).reshape(intervals + 1, len(names))
    rates, torques = (np.array(part).T for part in evaluate(position.T))
    stats = solver.stats()
    return SpacetimeSolution(
        names, np.linspace(0.0, duration, intervals + 1), position, rates, torques, float(found["f"]),
        _one_step_defects(system, position, rates, torques, h), bool(stats["success"]), int(stats["iter_count"]),
    )  # fmt: skip


def _node_function(system: System, path: Sequence[Constraint], cost: Callable[[Namespace], Any] | None) -> ca.Function:
    """Return casadi.Function(q, v, a) -> torques, integrand and path constraints at one node."""
    count = len(system.controls)
    q, v, a = (ca.SX.sym(name, count) for name in "qva")
    torque = torque_function(system)(q, v, a)
    x, none = ca.vertcat(q, v), ca.SX(0, 1)
    values = dict(zip(names_of(system.states), ca.vertsplit(x), strict=True))
    values |= dict(zip(names_of(system.controls), ca.vertsplit(torque), strict=True))
    if system.outputs is not None:
        found = system.outputs.call([0.0, x, none, torque, none, ca.vertcat(v, a)])
        values |= dict(zip(system.output_names, found, strict=True))
    space = Namespace("Spacetime constraints", values)
    integrand = cost(space) if cost is not None else ca.sumsqr(torque)
    rows = ca.vertcat(ca.SX(0, 1), *(constraint.expression(space) for constraint in path))
    return ca.Function("node", [q, v, a], [torque, integrand, rows])


def _differences(q: Any, h: float) -> tuple[Any, Any]:
    """Return rates and accelerations at all nodes; at rest at both ends."""
    before = ca.horzcat(q[:, 1], q[:, :-1])
    after = ca.horzcat(q[:, 1:], q[:, -2])
    return (after - before) / (2.0 * h), (after - 2.0 * q + before) / h**2


def _guess(poses: list[Mapping[str, float] | None], names: Sequence[str], intervals: int) -> Array:
    """Return poses (nodes, coordinates) on straight lines through the given ones."""
    points = np.array([[pose[name] for name in names] for pose in poses if pose is not None])
    fractions = np.linspace(0.0, 1.0, intervals + 1)
    return np.column_stack([np.interp(fractions, np.linspace(0.0, 1.0, len(points)), column) for column in points.T])


def _one_step_defects(system: System, position: Array, rate: Array, torque: Array, h: float) -> Array:
    """Return q_i+1 minus the simulation of one interval from node i."""
    count, intervals = position.shape[1], len(position) - 1
    advance = runge_kutta_step(system, h, DEFECT_SUBSTEPS).map(intervals)
    states = np.column_stack([position, rate])
    after = np.array(advance(states[:-1].T, h * np.arange(intervals)[None], torque[:-1].T, torque[1:].T))
    return position[1:] - after[:count].T
