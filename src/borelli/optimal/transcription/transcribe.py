"""Transcription of a problem: unknowns, equations of motion, conditions and costs of all phases."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.optimal.casadi_import import ca
from borelli.optimal.namespace import Namespace
from borelli.optimal.problem import Problem, bounds_of
from borelli.optimal.system import names_of
from borelli.optimal.transcription.assembled_derivatives import ElementCall, LiftedProgram, substitute_elements
from borelli.optimal.transcription.conditions import add_constraint, add_links, add_path, add_phase_conditions
from borelli.optimal.transcription.guess import Guess, default_guess
from borelli.optimal.transcription.hermite_simpson import hermite_simpson_scheme
from borelli.optimal.transcription.mesh import Mesh, make_mesh
from borelli.optimal.transcription.nlp import Nlp, PhaseNlp, Rows, Unknowns
from borelli.optimal.transcription.phase_unknowns import (
    MIN_TIME_SCALE,
    add_controls,
    add_duration,
    add_stages,
    add_start,
)
from borelli.optimal.transcription.phase_view import PhaseView
from borelli.optimal.transcription.point_functions import (
    Point,
    PointFunctions,
    evaluate,
    make_point_functions,
    point_namespace,
)
from borelli.optimal.transcription.radau import ORDERS, radau_scheme
from borelli.optimal.transcription.row_scales import guess_point, scale_rows
from borelli.optimal.transcription.scheme import Scheme
from borelli.optimal.transcription.shooting import shooting_scheme

METHODS = ("radau", "hermite-simpson", "multiple-shooting", "single-shooting")
"""Transcriptions that are offered."""


class _StartRates(NamedTuple):
    """Rates and algebraic variables at the start of a phase, unknowns only if a condition uses them."""

    symbol: Any
    names: tuple[str, ...]
    sizes: list[float]
    first: list[float]
    point: Point
    functions: PointFunctions


@dataclass
class _Assembly:
    problem: Problem
    guess: Guess
    reference: Guess
    """Guess of the problem itself, from which sizes are computed: they must not depend on where a solution starts."""
    threads: int
    unknowns: Unknowns = field(default_factory=Unknowns)
    rows: Rows = field(default_factory=Rows)
    views: dict[str, PhaseView] = field(default_factory=dict)
    costs: dict[str, Any] = field(default_factory=dict)
    phases: list[PhaseNlp] = field(default_factory=list)
    start_rates: list[_StartRates] = field(default_factory=list)
    calls: list[ElementCall] = field(default_factory=list)


def transcribe(
    problem: Problem, guess: Guess, *, method: str = "radau", order: int = 3, steps: int = 4, threads: int = 1
) -> Nlp:
    """Return the nonlinear program of a problem.

    Args:
        problem: The problem.
        guess: First values.
        method: One of `METHODS`.
        order: Points per element of Radau collocation.
        steps: Runge-Kutta steps per element of shooting.
        threads: Threads that evaluate elements.
    """
    _check(method, order, steps, threads)
    variables = problem.all_parameters
    a = _Assembly(problem, guess, default_guess(problem), threads)
    lower, upper = (np.array([getattr(v, side) for v in variables]).reshape(-1, 1) for side in ("lower", "upper"))
    first = np.array([guess.parameters[v.name] for v in variables]).reshape(-1, 1)
    sizes = [v.size for v in variables]
    p, parameter_block = a.unknowns.add("Parameters", names_of(variables), sizes, lower, upper, first)
    p = ca.vec(p)
    t0: Any = ca.DM(0.0)
    for phase in problem.phases:
        functions = make_point_functions(problem, phase, explicit=method.endswith("shooting"))
        functions = scale_rows(functions, a.reference)
        scheme = _scheme(functions, len(variables), method, order, steps)
        _add_phase(a, functions, scheme, t0, p)
        t0 = t0 + a.views[phase.name].duration
    add_links(problem, a.views, a.rows)
    overall = Namespace(f"Problem {problem.name!r}", a.views)
    for constraint in problem.constraints:
        add_constraint(a.rows, f"Problem {problem.name!r}", constraint, overall)
    if problem.cost is not None:
        a.costs["problem"] = ca.sum1(evaluate(problem.cost, f"Cost of problem {problem.name!r}", overall))
    terms = ca.vertcat(*a.costs.values()) if a.costs else ca.MX(0, 1)
    _add_start_rates(a, terms)
    w = ca.vertcat(*a.unknowns.symbols)
    program = LiftedProgram(
        w, ca.sum1(terms) if a.costs else ca.MX(0.0), ca.vertcat(*a.rows.expressions, ca.MX(0, 1)), tuple(a.calls)
    )
    objective, constraints, terms = substitute_elements(program, terms)
    return Nlp(
        problem,
        method,
        w,
        objective,
        constraints,
        ca.Function("costs", [w], [terms]),
        tuple(a.costs),
        np.concatenate(a.unknowns.lower),
        np.concatenate(a.unknowns.upper),
        np.concatenate([*a.rows.lower, np.empty(0)]),
        np.concatenate([*a.rows.upper, np.empty(0)]),
        np.concatenate(a.unknowns.first),
        tuple(a.unknowns.blocks),
        tuple(a.rows.blocks),
        tuple(a.phases),
        parameter_block,
        program,
    )


def _check(method: str, order: int, steps: int, threads: int) -> None:
    if method not in METHODS:
        raise SettingsError(f"{unknown_name('method', method, METHODS)}.")
    if order not in ORDERS:
        raise SettingsError(f"Order {order} is not available. Choose one of {', '.join(map(str, ORDERS))}.")
    if steps < 1 or threads < 1:
        raise SettingsError(f"{steps} steps and {threads} threads: Give positive numbers.")


def _scheme(functions: PointFunctions, parameters: int, method: str, order: int, steps: int) -> Scheme:
    if method == "radau":
        return radau_scheme(functions, parameters, order)
    if method == "hermite-simpson":
        return hermite_simpson_scheme(functions, parameters)
    return shooting_scheme(functions, parameters, steps, multiple=method == "multiple-shooting")


def _add_phase(a: _Assembly, functions: PointFunctions, scheme: Scheme, t0: Any, p: Any) -> None:
    """Add unknowns, constraints and costs of one phase."""
    phase, mesh = functions.phase, make_mesh(functions.phase)
    guess = a.guess.phases[phase.name]
    scale = max(a.reference.phases[phase.name].duration, MIN_TIME_SCALE)
    duration, duration_block = add_duration(phase, guess, scale, a.unknowns)
    lower, upper = bounds_of(phase.duration, "duration")
    if scheme.end_rows and lower == upper:  # a number leaves no derivatives; SLSQP ends elsewhere without them
        duration = ca.DM(lower)
    controls, control_block = add_controls(phase, mesh, guess, a.unknowns)
    x0, start_block = add_start(phase, guess, a.unknowns)
    arguments = element_arguments(functions, scheme, mesh, controls, t0, duration, p)
    stages, stages_block = ca.MX(0, mesh.count), None
    if scheme.end_rows:
        stages, stages_block = add_stages(phase, scheme, mesh, guess, scale, a.unknowns)
        ends = stages[list(scheme.end_rows), :]
        starts = ca.horzcat(x0, ends[:, : mesh.count - 1])
        shapes = [scheme.element.size_out(i) for i in (1, 2, 3)]
        symbols = tuple(ca.MX.sym(f"y{i}", rows, columns * mesh.count) for i, (rows, columns) in enumerate(shapes))
        a.calls.append(ElementCall(scheme.element, a.threads, (starts, stages, *arguments), symbols))
        defects, path, integrals = symbols
        names = [f"equations of motion, row {i + 1}" for i in range(scheme.element.numel_out(1))]
        a.rows.add(f"Phase {phase.name!r}", names, defects, 0.0, 0.0)
    else:
        ends, _, path, integrals = scheme.element.mapaccum(mesh.count)(x0, stages, *arguments)
        starts = ca.horzcat(x0, ends[:, : mesh.count - 1])
        _add_state_bounds(a.rows, functions, ends)
    add_path(functions, a.reference, a.rows, path)
    elements = (starts, stages, *arguments)
    first = _element_point(
        scheme.start_point, mesh, elements, 0, Point(t0, x0, None, None, controls[:, 0], None, p, functions.signals(t0))
    )
    if scheme.start_point is None:
        first = _prepare_start_rates(a, functions, first)
    last = t0 + duration
    end = Point(last, ends[:, -1], None, None, controls[:, -1], None, p, functions.signals(last))
    end = _element_point(scheme.end_point, mesh, elements, mesh.count - 1, end)
    sums = ca.sum2(integrals)
    names = [*phase.costs, *phase.integrals]
    a.views[phase.name] = view = PhaseView(
        point_namespace(a.problem, phase, first),
        point_namespace(a.problem, phase, end),
        duration,
        Namespace(f"Phase {phase.name!r}, integrals", {name: sums[i] for i, name in enumerate(names)}),
    )
    add_phase_conditions(phase, view, a.rows)
    a.costs |= {f"{phase.name}: {name}": sums[i] for i, name in enumerate(phase.costs)}
    if phase.final_cost is not None:
        value = evaluate(phase.final_cost, f"Phase {phase.name!r}, final cost", view.end)
        a.costs[f"{phase.name}: final cost"] = ca.sum1(value)
    blocks = (duration_block, control_block, start_block, stages_block)
    a.phases.append(PhaseNlp(functions, scheme, mesh, *blocks))


def element_arguments(
    functions: PointFunctions, scheme: Scheme, mesh: Mesh, controls: Any, t0: Any, duration: Any, p: Any
) -> tuple[Any, ...]:
    """Return the arguments `ua` to `g` of `ElementSymbols` for all elements, one column each."""
    columns = mesh.interval.tolist()
    after = [i + 1 for i in columns] if mesh.linear else columns
    edges = ca.DM(mesh.edges).T
    points = (mesh.edges[:-1, None] + np.outer(np.diff(mesh.edges), scheme.signal_fractions)).ravel()
    signals = ca.DM(functions.signals.numel_out(0), len(points))
    if signals.numel():
        signals = functions.signals.map(len(points))(t0 + duration * ca.DM(points).T)
    return (
        controls[:, columns],
        controls[:, after],
        ca.DM(mesh.left).T,
        ca.DM(mesh.right).T,
        t0 + duration * edges[:, :-1],
        duration * ca.DM(np.diff(mesh.edges)).T,
        ca.repmat(p, 1, mesh.count),
        signals,
    )


def element_inputs(elements: tuple[Any, ...], mesh: Mesh, column: int) -> list[Any]:
    """Return the arguments of one element from those of all."""
    widths = [a.shape[1] // mesh.count for a in elements]
    return [a[:, column * width : (column + 1) * width] for a, width in zip(elements, widths, strict=True)]


def _element_point(function: Any, mesh: Mesh, elements: tuple[Any, ...], column: int, point: Point) -> Point:
    """Return the point completed by its control rate, and by rate and algebraic variables if the element has them."""
    inputs = element_inputs(elements, mesh, column)
    ua, ub, h = inputs[2], inputs[3], inputs[7]
    udot = (ub - ua) * float(mesh.right[column] - mesh.left[column]) / h
    if function is None:
        return point._replace(udot=udot)
    xdot, z = function(*inputs)
    return point._replace(xdot=xdot, z=z, udot=udot)


def _add_state_bounds(rows: Rows, functions: PointFunctions, states: Any) -> None:
    """Bound the computed states at the ends of elements, as other methods bound their unknowns."""
    phase = functions.phase
    for i, variable in enumerate(phase.system.states):
        lower, upper = phase.bounds_of(variable)
        if np.isfinite([lower, upper]).any():
            rows.add(f"Phase {phase.name!r}", [variable.name], states[i, :], lower, upper, variable.size)


def _prepare_start_rates(a: _Assembly, functions: PointFunctions, point: Point) -> Point:
    """Return the start of a phase with symbols for its rates and algebraic variables."""
    phase = functions.phase
    states, algebraics = phase.system.states, phase.system.algebraics
    scale = max(a.reference.phases[phase.name].duration, MIN_TIME_SCALE)
    symbol = ca.MX.sym(f"start_rates_{phase.name}", len(states) + len(algebraics))
    sizes = [v.size / scale for v in states] + [v.size for v in algebraics]
    values = symbol * ca.DM(sizes)
    point = point._replace(xdot=values[: len(states)], z=values[len(states) :])
    first = guess_point(functions, a.guess, 0.0)
    names = (*(f"rate of {name}" for name in names_of(states)), *names_of(algebraics))
    a.start_rates.append(_StartRates(symbol, names, sizes, [*first.xdot, *first.z], point, functions))
    return point


def _add_start_rates(a: _Assembly, terms: Any) -> None:
    """Make the rates at the start of phases unknowns where conditions or costs use them."""
    used = {s.name() for s in ca.symvar(ca.vertcat(terms, *a.rows.expressions))}
    for start in a.start_rates:
        if start.symbol.name() not in used:
            continue
        phase = start.functions.phase
        where = f"Phase {phase.name!r}, start"
        bounds = np.array(
            [(-inf, inf)] * len(phase.system.states) + [phase.bounds_of(v) for v in phase.system.algebraics]
        )
        first = np.array(start.first)[:, None]
        a.unknowns.add(where, start.names, start.sizes, bounds[:, [0]], bounds[:, [1]], first, start.symbol)
        names = [f"equations of motion, row {i + 1}" for i in range(len(start.names))]
        a.rows.add(where, names, start.functions.residual(*start.point), 0.0, 0.0)
