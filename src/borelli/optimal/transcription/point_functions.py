"""Functions of one instant of a phase: residual, explicit form, path constraints and integrands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from borelli.errors import SettingsError
from borelli.optimal.casadi_import import ca
from borelli.optimal.namespace import Namespace
from borelli.optimal.problem import Phase, Problem
from borelli.optimal.system import RATE, names_of


class Point(NamedTuple):
    """Variables of a phase at one instant, as CasADi expressions."""

    t: Any
    x: Any
    xdot: Any
    z: Any
    u: Any
    udot: Any
    p: Any
    """All parameters of the problem."""
    g: Any
    """Signals of the system."""


@dataclass(frozen=True)
class PointFunctions:
    """CasADi functions of `Point` for one phase; the explicit form has the arguments (t, x, u, p)."""

    phase: Phase
    residual: Any
    explicit: Any
    path: Any
    """Values of the path constraints, in the order of `path_names`."""
    path_names: tuple[str, ...]
    integrands: Any
    """Integrands: the costs, then the other integrals."""
    symbol: Any
    """Class of symbols, SX or MX, in which elements are built."""
    signals: Any
    """casadi.Function(t) -> signals of the system; it has none, zero rows."""

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of states, algebraic variables and controls."""
        system = self.phase.system
        return len(system.states), len(system.algebraics), len(system.controls)


def make_point_functions(problem: Problem, phase: Phase, *, explicit: bool) -> PointFunctions:
    """Return the functions of a phase; those that use the explicit form only if required."""
    system, given = phase.system, phase.system.signals
    form = system if given is None else given
    parts = [form.residual, *([form.outputs] if form.outputs is not None else [])]
    parts += [system.explicit] if explicit else []
    symbol = ca.SX if all(part.is_a("SXFunction") for part in parts) else ca.MX
    point = make_symbols(problem, phase, symbol)
    chosen = system_parameters(problem, phase, point.p)
    r = form.residual(point.t, point.x, point.xdot, point.z, point.u, chosen, *([] if given is None else [point.g]))
    namespace = point_namespace(problem, phase, point)
    path, path_names = [], []
    for constraint in phase.path:
        value = evaluate(constraint.expression, f"Constraint {constraint.name!r}", namespace)
        path.append(value)
        count = value.numel()
        path_names += [constraint.name if count == 1 else f"{constraint.name}[{i}]" for i in range(count)]
    integrands = [
        evaluate(expression, f"Phase {phase.name!r}, {name!r}", namespace)
        for name, expression in (*phase.costs.items(), *phase.integrals.items())
    ]
    rates = None
    if explicit:
        arguments = [point.t, point.x, point.u, point.p]
        rates = ca.Function("explicit", arguments, list(system.explicit(point.t, point.x, point.u, chosen)))
    return PointFunctions(
        phase,
        ca.Function("residual", list(point), [r]),
        rates,
        ca.Function("path", list(point), [ca.vertcat(*path) if path else symbol(0, 1)]),
        tuple(path_names),
        ca.Function("integrands", list(point), [ca.vertcat(*integrands) if integrands else symbol(0, 1)]),
        symbol,
        no_signals() if given is None else given.values,
    )


def no_signals() -> Any:
    """Return the function of time of a system without signals."""
    return ca.Function("signals", [ca.SX.sym("t")], [ca.SX(0, 1)])


def make_symbols(problem: Problem, phase: Phase, symbol: Any) -> Point:
    """Return symbols for all variables of an instant."""
    nx, nz, nu = len(phase.system.states), len(phase.system.algebraics), len(phase.system.controls)
    sizes = (1, nx, nx, nz, nu, nu, len(problem.all_parameters), len(phase.system.signal_names))
    return Point(*(symbol.sym(name, size) for name, size in zip(Point._fields, sizes, strict=True)))


def system_parameters(problem: Problem, phase: Phase, p: Any) -> Any:
    """Return the parameters of a phase's system from those of the problem."""
    order = names_of(problem.all_parameters)
    return ca.vertcat(*(p[order.index(name)] for name in names_of(phase.system.parameters)), type(p)(0, 1))


def point_namespace(problem: Problem, phase: Phase, point: Point) -> Namespace:
    """Return the variables of an instant by name; outputs are computed on first use."""
    system = phase.system
    values: dict[str, Any] = {"t": point.t}
    for variables, vector in (
        (system.states, point.x),
        (system.algebraics, point.z),
        (system.controls, point.u),
        (problem.all_parameters, point.p),
    ):
        values |= {variable.name: vector[i] for i, variable in enumerate(variables)}
    values |= {variable.name + RATE: point.xdot[i] for i, variable in enumerate(system.states)}
    values |= {variable.name + RATE: point.udot[i] for i, variable in enumerate(system.controls)}
    values |= {name: point.g[i] for i, name in enumerate(system.signal_names)}

    def outputs() -> dict[str, Any]:
        arguments = [point.t, point.x, point.z, point.u, system_parameters(problem, phase, point.p), point.xdot]
        given = system.signals
        found = system.outputs(*arguments) if given is None else given.outputs(*arguments, point.g)
        return dict(zip(system.output_names, found if isinstance(found, tuple) else (found,), strict=True))

    return Namespace(f"Phase {phase.name!r}", values, outputs, system.output_names)


def evaluate(expression: Any, where: str, *namespaces: Any) -> Any:
    """Return the value of a user's expression as a CasADi column; raise SettingsError if it is not one."""
    value = expression(*namespaces)
    parts = list(value) if isinstance(value, list | tuple) else [value]
    try:
        return ca.vertcat(*(ca.vec(part) if hasattr(part, "shape") else part for part in parts))
    except (NotImplementedError, TypeError):
        raise SettingsError(
            f"{where}: The function returned {type(value).__name__} (expected a number or an expression of names)."
        ) from None
