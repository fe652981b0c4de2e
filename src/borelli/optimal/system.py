"""Systems to control: named states, controls, algebraic variables and parameters, and their equations of motion.

A system is stated in implicit form, 0 = r(t, x, xdot, z, u, p), which multibody dynamics (inverse dynamics instead of
the inverse of the mass matrix) and tendon equilibrium evaluate cheaply (van den Bogert, Blana and Heinrich 2011).
Shooting and re-simulation need the explicit form (xdot, z) = f(t, x, u, p); `System.explicit` is what the maker of the
system gave, or is derived from r.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite, isnan
from typing import Any

from borelli.errors import SettingsError, unknown_name
from borelli.files.html_repr import fields_summary, summary_html, summary_repr
from borelli.optimal.casadi_import import ca
from borelli.optimal.namespace import Namespace

RATE = "_rate"
"""Ending of the names of time derivatives of states and controls in expressions."""
NEWTON_TOLERANCE = 1e-12
"""Of the residual, where the explicit form is found by Newton's method."""


@dataclass(frozen=True)
class Variable:
    """Scalar quantity of a system: name, unit, bounds and typical size."""

    name: str
    unit: str = "1"
    lower: float = -inf
    upper: float = inf
    scale: float | None = None
    """Typical size, in `unit`. Default: the larger finite bound in size, else 1."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise SettingsError(f"Variable {self.name!r}: The name is not an identifier. Use letters, digits and _.")
        if isnan(self.lower) or isnan(self.upper) or self.lower > self.upper:
            raise SettingsError(
                f"Variable {self.name!r}: The lower bound {self.lower:g} is above the upper bound {self.upper:g} "
                f"[{self.unit}]. Correct the bounds."
            )
        if self.scale is not None and not (isfinite(self.scale) and self.scale > 0):
            raise SettingsError(f"Variable {self.name!r}: The scale is {self.scale:g}. Give a positive number.")

    @property
    def size(self) -> float:
        """Typical size: the scale, or the larger finite bound in size, or 1."""
        if self.scale is not None:
            return self.scale
        return max((abs(b) for b in (self.lower, self.upper) if isfinite(b) and b != 0.0), default=1.0)


def names_of(variables: Sequence[Variable]) -> tuple[str, ...]:
    """Return the names of variables."""
    return tuple(variable.name for variable in variables)


@dataclass(frozen=True)
class Signals:
    """Quantities given over time, such as measured loads, and the functions of a system that take them as argument g.

    Collocation evaluates signals once at its points, and the equations of motion stay free of interpolation.
    """

    names: tuple[str, ...]
    values: Any
    """casadi.Function(t) -> (signals,)"""
    residual: Any
    """casadi.Function(t, x, xdot, z, u, p, g) -> (states + algebraics,)"""
    outputs: Any = None
    """casadi.Function(t, x, z, u, p, xdot, g) with one scalar output per name."""


@dataclass(frozen=True)
class System:
    """Equations of motion 0 = r(t, x, xdot, z, u, p) of named variables."""

    name: str
    states: tuple[Variable, ...]
    controls: tuple[Variable, ...]
    residual: Any
    """casadi.Function(t, x, xdot, z, u, p) -> (states + algebraics,), smooth. Rows in any order."""
    algebraics: tuple[Variable, ...] = ()
    parameters: tuple[Variable, ...] = ()
    """Quantities that do not vary in time. Equal bounds fix a parameter; others are optimized."""
    outputs: Any = None
    """casadi.Function(t, x, z, u, p, xdot) with one scalar output per name. Default: none."""
    output_units: Mapping[str, str] = field(default_factory=dict)
    given_explicit: Any = None
    """casadi.Function(t, x, u, p) -> (xdot, z), if its maker has one. Default: derived from the residual."""
    signals: Signals | None = None
    """Quantities given over time that the residual, the outputs, costs and constraints use. Default: none."""

    __repr__ = summary_repr
    _repr_html_ = summary_html
    _summary = fields_summary

    def __post_init__(self) -> None:
        names = [*self.variable_names, *self.output_names, *self.signal_names]
        names += [name + RATE for name in (*names_of(self.states), *names_of(self.controls))]
        repeated = sorted({name for name in names if names.count(name) > 1} | ({"t", "duration"} & set(names)))
        if repeated:
            raise SettingsError(f"System {self.name!r}: Names used twice or reserved: {', '.join(repeated)}.")
        nx, nz = len(self.states), len(self.algebraics)
        if not nx:
            raise SettingsError(f"System {self.name!r}: The system has no states. Give at least one.")
        shapes = [1, nx, nx, nz, len(self.controls), len(self.parameters)]
        _check_sizes(self.name, "residual", self.residual, shapes, [nx + nz])
        if self.outputs is not None:
            shapes = [1, nx, nz, len(self.controls), len(self.parameters), nx]
            _check_sizes(self.name, "outputs", self.outputs, shapes, [1] * self.outputs.n_out())
        if self.given_explicit is not None:
            shapes = [1, nx, len(self.controls), len(self.parameters)]
            _check_sizes(self.name, "given_explicit", self.given_explicit, shapes, [nx, nz])

    @property
    def variable_names(self) -> tuple[str, ...]:
        """Names of states, controls, algebraic variables and parameters."""
        return names_of((*self.states, *self.controls, *self.algebraics, *self.parameters))

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return () if self.outputs is None else tuple(self.outputs.name_out())

    @property
    def signal_names(self) -> tuple[str, ...]:
        """Names of the signals."""
        return () if self.signals is None else self.signals.names

    @cached_property
    def explicit(self) -> Any:
        """casadi.Function(t, x, u, p) -> (xdot, z)."""
        return self.given_explicit if self.given_explicit is not None else explicit_form(self)


def _check_sizes(system: str, what: str, function: Any, inputs: list[int], outputs: list[int]) -> None:
    """Raise SettingsError unless a function takes and returns vectors of these sizes."""
    found = [function.numel_in(i) for i in range(function.n_in())]
    returned = [function.numel_out(i) for i in range(function.n_out())]
    if found != inputs or returned != outputs:
        raise SettingsError(
            f"System {system!r}: The function {what!r} takes vectors of sizes {found} and returns {returned} "
            f"(expected {inputs} and {outputs}). Correct the function."
        )


def explicit_form(system: System) -> Any:
    """Return casadi.Function(t, x, u, p) -> (xdot, z) derived from the residual.

    A residual that is affine in y = (xdot, z), r = A(t, x, u, p) y + b, gives y = -A^-1 b; others are solved by
    Newton's method from y = 0, whose derivatives follow from the implicit function theorem.
    """
    nx, nz = len(system.states), len(system.algebraics)
    sizes = (1, nx, len(system.controls), len(system.parameters))
    t, x, u, p = (ca.MX.sym(name, size) for name, size in zip("txup", sizes, strict=True))
    y = ca.MX.sym("y", nx + nz)
    residual = system.residual(t, x, y[:nx], y[nx:], u, p)
    if not any(ca.which_depends(residual, y, 2, False)):
        zero = ca.DM.zeros(nx + nz)
        matrix, constant = ca.substitute([ca.jacobian(residual, y), residual], [y], [zero])
        solution = ca.solve(matrix, -constant, "qr")
    else:
        given = ca.vertcat(t, x, u, p)
        options = {"abstol": NEWTON_TOLERANCE, "error_on_fail": False}
        solve = ca.rootfinder("newton", "newton", {"x": y, "p": given, "g": residual}, options)
        solution = solve(ca.DM.zeros(nx + nz), given)
    return ca.Function("explicit", [t, x, u, p], [solution[:nx], solution[nx:]], list("txup"), ["xdot", "z"])


def make_system(
    name: str,
    *,
    states: Sequence[Variable],
    controls: Sequence[Variable] = (),
    parameters: Sequence[Variable] = (),
    rates: Callable[[Namespace], Mapping[str, Any]],
    outputs: Callable[[Namespace], Mapping[str, Any]] | None = None,
    output_units: Mapping[str, str] | None = None,
) -> System:
    """Return a system of ordinary differential equations given as expressions.

    Args:
        name: Name of the system.
        states: States.
        controls: Controls.
        parameters: Parameters; equal bounds fix one.
        rates: Function of a namespace (`s.t`, and the variables by name) that returns the rate of each state by name.
        outputs: Function of the same namespace that returns further quantities by name. Default: none.
        output_units: Units of outputs by name. Default: 1.

    Raises:
        SettingsError: A rate is missing, or has the name of no state.
    """
    groups = {"x": tuple(states), "u": tuple(controls), "p": tuple(parameters)}
    t = ca.SX.sym("t")
    symbols = {key: ca.SX.sym(key, len(group)) for key, group in groups.items()}
    rate_symbols = ca.SX.sym("xdot", len(states))
    values = {v.name: symbols[key][i] for key, group in groups.items() for i, v in enumerate(group)}
    namespace = Namespace(f"system {name!r}", {"t": t, **values})
    found = dict(rates(namespace))
    for missing in set(names_of(states)) ^ set(found):
        problem = "has no rate" if missing in names_of(states) else unknown_name("state", missing, names_of(states))
        raise SettingsError(f"System {name!r}: {missing!r}: {problem}. Give the rate of every state by its name.")
    xdot = ca.vertcat(*(found[state] for state in names_of(states)))
    no_algebraics = ca.SX.sym("z", 0)
    x, u, p = symbols["x"], symbols["u"], symbols["p"]
    residual = ca.Function("residual", [t, x, rate_symbols, no_algebraics, u, p], [rate_symbols - xdot])
    explicit = ca.Function("explicit", [t, x, u, p], [xdot, ca.SX(0, 1)])
    measured = dict(outputs(namespace)) if outputs is not None else {}
    output = None
    if measured:
        arguments = [t, x, no_algebraics, u, p, rate_symbols]
        output = ca.Function(
            "outputs", arguments, [ca.SX(e) for e in measured.values()], [*"txzup", "xdot"], list(measured)
        )
    return System(
        name,
        groups["x"],
        groups["u"],
        residual,
        parameters=groups["p"],
        outputs=output,
        output_units=dict(output_units or {}),
        given_explicit=explicit,
    )
