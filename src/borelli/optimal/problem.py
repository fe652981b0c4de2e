"""Optimal control problems: phases of systems, linked in time, with costs and constraints as functions of names.

def force(s): return s.force**2
phase = Phase("drive", car, duration=2.0, nodes=3, start={"x": 0, "v": 0}, end={"x": 1, "v": 0}, cost=force)
problem = Problem("car", [phase])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, isfinite, isnan
from typing import Any

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import fields_repr, fields_summary, summary_html, summary_repr
from borelli.optimal.system import RATE, System, Variable, names_of

Bounds = float | tuple[float, float]
"""Number that fixes a quantity, or its lower and upper bound."""
Expression = Callable[..., Any]
"""Function of one or two namespaces that returns a CasADi expression."""
CONTROLS = ("linear", "constant")
"""Shapes of controls between nodes."""
MAX_NODES = 100_000
"""Nodes or elements of a phase; more are a mistake."""


def bounds_of(value: Bounds, where: str) -> tuple[float, float]:
    """Return lower and upper bound; raise SettingsError unless they are numbers in this order."""
    lower, upper = value if isinstance(value, tuple | list) else (value, value)
    if isnan(lower) or isnan(upper) or lower > upper or lower == inf or upper == -inf:
        raise SettingsError(f"{where}: The bounds ({lower:g}, {upper:g}) are not in order. Correct them.")
    return float(lower), float(upper)


@dataclass(frozen=True)
class Constraint:
    """Named expression with bounds: of a path (function of a namespace), a link (two) or a problem (its phases)."""

    name: str
    expression: Expression
    lower: float = -inf
    upper: float = inf

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        bounds_of((self.lower, self.upper), f"Constraint {self.name!r}")
        if not (isfinite(self.lower) or isfinite(self.upper)):
            raise SettingsError(f"Constraint {self.name!r}: It has no bounds. Give `lower`, `upper` or both.")


@dataclass(frozen=True)
class Link:
    """Conditions between the end of one phase and the start of the next."""

    before: str
    after: str
    states: Sequence[str] | None = None
    """States that are continuous. Default: all states that both phases have; () for none."""
    conditions: Sequence[Constraint] = ()
    """Constraints on functions of two namespaces: the end of `before` and the start of `after`."""

    __repr__ = fields_repr


@dataclass(frozen=True)
class Phase:
    """Interval of time in which one system moves.

    Names in `start`, `end` and expressions are those of the system's states, controls, algebraic variables, outputs
    and parameters, of the problem's parameters, `t` [s], and `<name>_rate` for time derivatives of states and controls.
    """

    name: str
    system: System
    duration: Bounds
    """[s] Number, or lower and upper bound of a duration to optimize."""
    nodes: int = 21
    """Control nodes, two at least (Park et al. 1992: few nodes are suboptimal but quick)."""
    elements: int | Sequence[int] = 1
    """Finite elements in each interval between nodes, or in all."""
    control: str = "linear"
    """Controls between nodes: "linear" or "constant"."""
    start: Mapping[str, Bounds] = field(default_factory=dict)
    """Values or bounds at the start."""
    end: Mapping[str, Bounds] = field(default_factory=dict)
    """Values or bounds at the end."""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """Bounds of variables that replace those of the system in this phase."""
    path: Sequence[Constraint] = ()
    """Constraints at all points of the transcription."""
    cost: Expression | Mapping[str, Expression] = field(default_factory=dict)
    """Integrand of the cost, or several by name, which are added."""
    final_cost: Expression | None = None
    """Cost at the end."""
    integrals: Mapping[str, Expression] = field(default_factory=dict)
    """Further integrands, whose integrals the problem's cost and constraints may use."""
    periodic: Sequence[str] | Mapping[str, str] = ()
    """States equal at start and end; or, by state at the end, the state at the start it equals (mirrored gait)."""
    guess: Mapping[str, Any] = field(default_factory=dict)
    """First values of variables and `duration`: a number, or an array over equally spaced times of the phase."""

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        where = f"Phase {self.name!r}"
        if not self.name.isidentifier():
            raise SettingsError(f"{where}: The name is not an identifier. Use letters, digits and _.")
        shortest, longest = bounds_of(self.duration, f"{where}, duration")
        if not (shortest >= 0.0 and 0.0 < longest < inf):
            raise SettingsError(f"{where}: The duration is ({shortest:g}, {longest:g}) s. Give a positive, finite one.")
        if not 2 <= self.nodes <= MAX_NODES:
            raise SettingsError(f"{where}: {self.nodes} nodes (expected 2 to {MAX_NODES}). Correct `nodes`.")
        counts = self.element_counts
        if len(counts) != self.nodes - 1 or min(counts) < 1 or sum(counts) > MAX_NODES:
            raise SettingsError(
                f"{where}: {len(counts)} numbers of elements for {self.nodes - 1} intervals between nodes. "
                "Give one positive number, or one per interval."
            )
        if self.control not in CONTROLS:
            raise SettingsError(f"{where}: {unknown_name('kind of control', self.control, CONTROLS)}.")
        self._check_names(where)

    def _check_names(self, where: str) -> None:
        """Raise SettingsError for names that the system does not have."""
        system = self.system
        variables = names_of((*system.states, *system.controls, *system.algebraics))
        known = {
            "bounds": variables,
            "guess": (*variables, "duration"),
            "periodic": names_of(system.states),
        }
        mirrored = [*self.periodic, *self.periodic.values()] if isinstance(self.periodic, Mapping) else self.periodic
        for key, names in (("bounds", self.bounds), ("guess", self.guess), ("periodic", mirrored)):
            for name in names:
                if name not in known[key]:
                    raise SettingsError(f"{where}, {key}: {unknown_name('name', name, known[key])}.")

    @property
    def element_counts(self) -> tuple[int, ...]:
        """Elements of each interval between nodes."""
        if isinstance(self.elements, int | np.integer):
            return (int(self.elements),) * (self.nodes - 1)
        return tuple(int(count) for count in self.elements)

    @property
    def costs(self) -> dict[str, Expression]:
        """Integrands of the cost by name."""
        return dict(self.cost) if isinstance(self.cost, Mapping) else {"cost": self.cost}

    @property
    def periodic_pairs(self) -> dict[str, str]:
        """State at the start that each periodic state equals at the end."""
        return dict(self.periodic) if isinstance(self.periodic, Mapping) else {name: name for name in self.periodic}

    @check_arguments
    def bounds_of(self, variable: Variable) -> tuple[float, float]:
        """Return the bounds of a variable in this phase."""
        if variable.name in self.bounds:
            return bounds_of(self.bounds[variable.name], f"Phase {self.name!r}, bounds of {variable.name!r}")
        return variable.lower, variable.upper


@dataclass(frozen=True)
class Problem:
    """Phases one after another, and what to minimize over them."""

    name: str
    phases: Sequence[Phase]
    links: Sequence[Link] | None = None
    """Default: consecutive phases are continuous in all states that both have."""
    parameters: Sequence[Variable] = ()
    """Parameters of the problem; one with the name of a system's parameter replaces it."""
    constraints: Sequence[Constraint] = ()
    """Functions of the phases: `lambda p: p.heel.duration + p.toe.duration`; each phase has `start`, `end`, `duration`
    and `integrals`."""
    cost: Expression | None = None
    """Function of the phases that is added to their costs."""
    guess: Mapping[str, float] = field(default_factory=dict)
    """First values of parameters."""

    __repr__ = summary_repr
    _repr_html_ = summary_html
    _summary = fields_summary

    def __post_init__(self) -> None:
        where = f"Problem {self.name!r}"
        names = [phase.name for phase in self.phases]
        if not names or len(set(names)) < len(names):
            raise SettingsError(f"{where}: It needs one phase at least, each with a name of its own; got {names}.")
        for name in self.guess:
            if name not in names_of(self.all_parameters):
                raise SettingsError(
                    f"{where}, guess: {unknown_name('parameter', name, names_of(self.all_parameters))}."
                )
        for phase in self.phases:
            self._check_conditions(phase)
        for link in self.all_links:
            self._check_link(link)

    @property
    def all_parameters(self) -> tuple[Variable, ...]:
        """Parameters of the problem and of its systems, each once."""
        found = {v.name: v for phase in self.phases for v in phase.system.parameters}
        return tuple({**found, **{v.name: v for v in self.parameters}}.values())

    @property
    def all_links(self) -> tuple[Link, ...]:
        """Links between phases, default ones included."""
        if self.links is not None:
            return tuple(self.links)
        return tuple(Link(a.name, b.name) for a, b in pairwise(self.phases))

    @check_arguments
    def phase(self, name: str) -> Phase:
        """Return the phase of this name; raise SettingsError if there is none."""
        for phase in self.phases:
            if phase.name == name:
                return phase
        raise SettingsError(f"Problem {self.name!r}: {unknown_name('phase', name, [p.name for p in self.phases])}.")

    @check_arguments
    def continuous_states(self, link: Link) -> tuple[str, ...]:
        """Return the names of the states that a link makes continuous."""
        before, after = (names_of(self.phase(name).system.states) for name in (link.before, link.after))
        return tuple(link.states) if link.states is not None else tuple(n for n in before if n in after)

    def _check_conditions(self, phase: Phase) -> None:
        """Raise SettingsError for unknown names in start and end, and for values outside the bounds of a variable."""
        system = phase.system
        rated = names_of((*system.states, *system.controls))
        known = ["t", *system.variable_names, *system.output_names, *names_of(self.all_parameters)]
        known += [name + RATE for name in rated]
        bounded = {v.name: phase.bounds_of(v) for v in (*system.states, *system.controls, *system.algebraics)}
        for moment, conditions in (("start", phase.start), ("end", phase.end)):
            for name, value in conditions.items():
                where = f"Phase {phase.name!r}, {moment}"
                if name not in known:
                    raise SettingsError(f"{where}: {unknown_name('name', name, known)}.")
                lower, upper = bounds_of(value, f"{where}, {name!r}")
                least, most = bounded.get(name, (-inf, inf))
                if lower > most or upper < least:
                    raise SettingsError(
                        f"{where}: {name!r} must lie in ({lower:g}, {upper:g}), which is outside its bounds "
                        f"({least:g}, {most:g}). Correct one of them."
                    )

    def _check_link(self, link: Link) -> None:
        """Raise SettingsError for states that one of the linked phases lacks."""
        for name in self.continuous_states(link):
            for phase in (self.phase(link.before), self.phase(link.after)):
                known = names_of(phase.system.states)
                if name not in known:
                    raise SettingsError(
                        f"Link of {link.before!r} and {link.after!r}: Phase {phase.name!r}: "
                        f"{unknown_name('state', name, known)}."
                    )
