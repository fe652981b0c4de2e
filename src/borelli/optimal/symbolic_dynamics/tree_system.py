"""Systems for optimal control from models: skeleton, contacts, loads, joint limits, torques and muscles.

States are the free coordinates q, their speeds v, activations and normalized tendon forces; controls are joint torques
and excitations. The residual has the rows

    q' - v,    Q(q, v, v') - (torques + muscles + passive forces),    a' - da/dt,    fiber minus tendon force

with Q the inverse dynamics including contacts and external loads. Held coordinates are not states: their rows are the
outputs `<coordinate>_reaction`, the force or moment of what holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from borelli.analysis.dynamics.external_loads import Loads
from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.muscles.fitted_paths import FittedPaths
from borelli.optimal.casadi_import import ca
from borelli.optimal.namespace import Namespace
from borelli.optimal.symbolic_dynamics.contact import ContactForce, SphereContact, contact_force, up_direction
from borelli.optimal.symbolic_dynamics.external_loads import load_series, load_wrenches
from borelli.optimal.symbolic_dynamics.muscle_group import (
    MuscleEquations,
    MuscleGroup,
    make_muscle_group,
    muscle_equations,
)
from borelli.optimal.symbolic_dynamics.muscle_lengths import PathGate, Ranges, coordinate_ranges
from borelli.optimal.symbolic_dynamics.passive_forces import CoordinateSpring, JointLimits
from borelli.optimal.symbolic_dynamics.time_series import TimeSeries, spline_function
from borelli.optimal.symbolic_dynamics.tree_dynamics import TreeDynamics, Wrench, make_tree_dynamics
from borelli.optimal.symbolic_dynamics.vectors import Expression, column, identifier
from borelli.optimal.system import Signals, System, Variable, names_of

SPEED = "_speed"
"""Ending of the names of speeds."""
SPEED_SCALE = 5.0
"""[rad/s or m/s] Typical speed of a coordinate in movement."""
TORQUE_SCALE = 100.0
"""[N m or N] Typical size of a torque without bounds."""

Forces = Callable[[Namespace], Mapping[str, Any]]
"""Function of a namespace (t, states, controls, parameters, signals) that returns generalized forces by coordinate."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Everything that a tree system is made of."""

    tree: TreeDynamics
    group: MuscleGroup | None
    torques: Mapping[str, tuple[float, float]]
    contacts: tuple[SphereContact, ...]
    limits: JointLimits | None
    damping: Mapping[str, float]
    springs: Mapping[str, CoordinateSpring]
    loads: Loads | None
    series: tuple[TimeSeries, ...]
    """Loads, then further signals."""
    forces: Forces | None
    parameters: tuple[Variable, ...]
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Symbols:
    """Arguments of a system's functions, signals last."""

    t: ca.SX
    x: ca.SX
    xdot: ca.SX
    u: ca.SX
    p: ca.SX
    g: ca.SX


def tree_system(
    model: Model,
    *,
    actuators: Mapping[str, float | tuple[float, float]] | None = None,
    tendon: str | None = None,
    held: Mapping[str, float] | None = None,
    contacts: Sequence[SphereContact] = (),
    limits: JointLimits | None = None,
    damping: Mapping[str, float] | float = 0.0,
    springs: Mapping[str, CoordinateSpring] | None = None,
    external_loads: Loads | None = None,
    signals: TimeSeries | None = None,
    forces: Forces | None = None,
    parameters: Sequence[Variable] = (),
    activation: str = "model",
    paths: FittedPaths | None = None,
    ranges: Ranges | None = None,
    gate: PathGate | None = None,
    points: Sequence[str] = (),
    name: str | None = None,
) -> System:
    """Return the system of a model.

    Args:
        model: Model that `validate` accepts, without joints that close loops.
        actuators: Largest torque [N m or N], or lower and upper bound, by coordinate. Default: all coordinates but the
            root's, unbounded; none with muscles.
        tendon: "rigid" or "elastic" tendons of the model's muscles, or None for no muscles.
        held: Values [rad or m] of coordinates that are held, by name.
        contacts: Spheres that touch the ground.
        limits: Smooth joint limits. Default: none.
        damping: Viscous damping [N m s/rad or N s/m] by coordinate, or of all coordinates but the root's.
        springs: Springs by coordinate.
        external_loads: Loads of a recording, at times of the problem.
        signals: Quantities given over time, which costs and constraints may use by name.
        forces: Further generalized forces.
        parameters: Parameters of `forces`.
        activation: Activation dynamics of muscles: "model" for those of their class, or "park" (Park et al. 1992).
        paths: Polynomial lengths that replace muscle paths of the model.
        ranges: Ranges [rad or m] of coordinates by name, which are bounds of states and those within which paths are
            fitted. Default: the model's.
        gate: Largest errors of fitted paths.
        points: Markers of the model whose positions and velocities are outputs.
        name: Name of the system. Default: that of the model.

    Raises:
        ModelError: if the model has loops, or muscles without smooth curves or paths.
        SettingsError: if a name is unknown.
    """
    tree = make_tree_dynamics(model, held)
    joints = [n for n in tree.names if n not in root_coordinates(model)]
    if actuators is None:
        actuators = {} if tendon else dict.fromkeys(joints, inf)
    if isinstance(damping, int | float):
        damping = dict.fromkeys(joints, float(damping)) if damping else {}
    for what, given in (("actuators", actuators), ("damping", damping), ("springs", springs or {})):
        for one in given:
            if one not in tree.names:
                raise SettingsError(f"{what}: {unknown_name('free coordinate', one, tree.names)}.")
    group = None
    if tendon is not None:
        group = make_muscle_group(model, tendon, activation=activation, paths=paths, ranges=ranges, gate=gate)
    series = [] if external_loads is None else [load_series(model, external_loads)]
    series += [] if signals is None else [signals]
    parts = _Parts(
        tree,
        group,
        {one: _bounds(value) for one, value in actuators.items()},
        tuple(contacts),
        limits,
        damping,
        springs or {},
        external_loads,
        tuple(series),
        forces,
        tuple(parameters),
        tuple(points),
    )
    return _assemble(name or model.name or "tree", parts, coordinate_ranges(model, ranges))


def _bounds(value: float | tuple[float, float]) -> tuple[float, float]:
    return (float(value[0]), float(value[1])) if isinstance(value, tuple | list) else (-float(value), float(value))


def _state_variables(parts: _Parts, ranges: Ranges) -> tuple[Variable, ...]:
    """Return coordinates, speeds and the states of muscles."""
    model, free = parts.tree.model, parts.tree.variables.free
    positions, speeds = [], []
    for i in free:
        c = model.coordinates[i]
        unit, name = "rad" if c.rotational else "m", identifier(c.name)
        low, high = ranges[c.name]
        scale = 0.5 * (high - low) if isfinite(high - low) else 1.0
        positions.append(Variable(name, unit, low, high, scale=min(scale, 1.0)))
        speeds.append(Variable(name + SPEED, f"{unit}/s", scale=SPEED_SCALE))
    return (*positions, *speeds, *(parts.group.states if parts.group else ()))


def _control_variables(parts: _Parts) -> tuple[Variable, ...]:
    """Return torques, then excitations."""
    rotational = {c.name: c.rotational for c in parts.tree.model.coordinates}
    torques = [
        Variable(
            f"{identifier(name)}_torque", "N m" if rotational[name] else "N", low, high,
            scale=None if isfinite(low) or isfinite(high) else TORQUE_SCALE,
        )
        for name, (low, high) in parts.torques.items()
    ]  # fmt: skip
    return (*torques, *(parts.group.controls if parts.group else ()))


def _assemble(name: str, parts: _Parts, ranges: Ranges) -> System:
    """Return the system of its parts."""
    states, controls = _state_variables(parts, ranges), _control_variables(parts)
    tree, count = parts.tree, len(parts.tree.names)
    muscle_states = len(states) - 2 * count
    m, m_rate = ca.SX.sym("m", muscle_states), ca.SX.sym("m_rate", muscle_states)
    q_rate = ca.SX.sym("q_rate", count)
    symbols = _Symbols(
        ca.SX.sym("t"),
        ca.vertcat(tree.q, tree.v, m),
        ca.vertcat(q_rate, tree.a, m_rate),
        ca.SX.sym("u", len(controls)),
        ca.SX.sym("p", len(parts.parameters)),
        ca.SX.sym("g", sum(len(one.names) for one in parts.series)),
    )
    values = dict(zip(names_of(states), ca.vertsplit(symbols.x), strict=True))
    values |= dict(zip(names_of(controls), ca.vertsplit(symbols.u), strict=True)) if controls else {}
    values |= dict(zip(names_of(parts.parameters), ca.vertsplit(symbols.p), strict=True)) if parts.parameters else {}
    signal_names = tuple(one for series in parts.series for one in series.names)
    values |= {one: symbols.g[i] for i, one in enumerate(signal_names)}
    namespace = Namespace(f"System {name!r}, forces", {"t": symbols.t, **values})
    touches = _contact_forces(parts)
    wrenches = [Wrench(tree.poses.index(c.contact.body), c.force, c.point) for c in touches]
    if parts.loads is not None:
        wrenches += load_wrenches(tree.model, parts.loads, symbols.g)
    equations = None
    if parts.group is not None:
        excitations = symbols.u[len(parts.torques) :]
        equations = muscle_equations(parts.group, tree, m, m_rate, excitations)
    net = _net_forces(parts, wrenches, equations, namespace)
    rows = [q_rate - tree.v, column([net[one] for one in tree.names])]
    if equations is not None:
        rows.append(column(equations.residual))
    outputs = _outputs(parts, net, touches, equations)
    given = spline_function(parts.series) if parts.series else None
    residual, inner_residual = _system_function("residual", given, symbols, [ca.vertcat(*rows)])
    shown = [ca.SX(v) for v, _ in outputs.values()]
    output, inner_output = _system_function("outputs", given, symbols, shown, list(outputs))
    return System(
        name,
        states,
        controls,
        residual,
        parameters=parts.parameters,
        outputs=output,
        output_units={key: unit for key, (_, unit) in outputs.items()},
        given_explicit=_explicit(parts, given, symbols, column([net[one] for one in tree.names]), equations),
        signals=None if given is None else Signals(signal_names, given, inner_residual, inner_output),
    )


def _contact_forces(parts: _Parts) -> list[ContactForce]:
    """Return the forces of the ground on all spheres."""
    if not parts.contacts:
        return []
    tree, up = parts.tree, up_direction(parts.tree.model)
    bodies = [tree.poses.index(contact.body) for contact in parts.contacts]
    centers = [tree.poses.point(b, list(c.position)) for b, c in zip(bodies, parts.contacts, strict=True)]
    velocities = tree.rates([x for center in centers for x in center])
    return [
        contact_force(contact, up, centers[k], velocities[3 * k : 3 * k + 3], tree.angular_velocity(bodies[k]))
        for k, contact in enumerate(parts.contacts)
    ]


def _net_forces(
    parts: _Parts, wrenches: list[Wrench], equations: MuscleEquations | None, namespace: Namespace
) -> dict[str, Expression]:
    """Return required minus applied generalized forces of free and held coordinates: zero, or the reaction."""
    tree = parts.tree
    net = tree.required_forces(wrenches)
    applied: dict[str, list[Expression]] = {name: [] for name in net}
    for k, name in enumerate(tree.names):
        coordinate = tree.model.coordinates[tree.variables.free[k]]
        q, v = tree.q[k], tree.v[k]
        if name in parts.torques:
            applied[name].append(namespace[f"{identifier(name)}_torque"])
        if parts.limits is not None:
            applied[name].append(parts.limits.force(coordinate, q))
        if name in parts.damping:
            applied[name].append(-parts.damping[name] * v)
        if name in parts.springs:
            spring = parts.springs[name]
            applied[name].append(-spring.stiffness * (q - spring.rest))
    further = dict(parts.forces(namespace)) if parts.forces is not None else {}
    for name, force in further.items():
        if name not in net:
            raise SettingsError(f"forces: {unknown_name('free or held coordinate', name, net)}.")
        applied[name].append(force)
    if equations is not None:
        for name in net:
            applied[name].append(equations.forces[name])
    return {name: net[name] - sum(applied[name]) for name in net}


def _outputs(
    parts: _Parts, net: Mapping[str, Expression], touches: list[ContactForce], equations: MuscleEquations | None
) -> dict[str, tuple[Expression, str]]:
    """Return the outputs and their units by name."""
    tree, result = parts.tree, {}
    placed = {"center_of_mass": tree.poses.center_of_mass()}
    for name in parts.points:
        marker = tree.model.marker(name)
        placed[identifier(name)] = tree.poses.point(tree.poses.index(marker.body), list(marker.position))
    velocities = tree.rates([x for position in placed.values() for x in position])
    for k, (name, position) in enumerate(placed.items()):
        for i, axis in enumerate("xyz"):
            result[f"{name}_{axis}"] = (position[i], "m")
            result[f"{name}_velocity_{axis}"] = (velocities[3 * k + i], "m/s")
    for i, name in zip(tree.variables.held, tree.held_names, strict=True):
        unit = "N m" if tree.model.coordinates[i].rotational else "N"
        result[f"{identifier(name)}_reaction"] = (net[name], unit)
    for touch in touches:
        name = identifier(touch.contact.name)
        result |= {f"{name}_force_{axis}": (touch.force[i], "N") for i, axis in enumerate("xyz")}
        result[f"{name}_depth"] = (touch.depth, "m")
    if parts.group is not None and equations is not None:
        for k, (muscle, state) in enumerate(zip(parts.group.muscles, equations.muscle, strict=True)):
            name = identifier(muscle.name)
            result[f"{name}_force"] = (state.force, "N")
            result[f"{name}_length"] = (equations.length[k], "m")
            result[f"{name}_fiber_length"] = (state.fiber_length, "m")
            result[f"{name}_fiber_velocity"] = (state.fiber_velocity, "m/s")
    return result


def _system_function(
    name: str, given: ca.Function | None, symbols: _Symbols, values: list[ca.SX], names: list[str] | None = None
) -> tuple[ca.Function, ca.Function]:
    """Return a function of a system with signals computed from the time within it, and with signals as argument."""
    z = ca.SX.sym("z", 0)
    order = [symbols.t, symbols.x, symbols.xdot, z, symbols.u, symbols.p]
    inputs = ["t", "x", "xdot", "z", "u", "p"]
    if name == "outputs":
        order, inputs = [symbols.t, symbols.x, z, symbols.u, symbols.p, symbols.xdot], ["t", "x", "z", "u", "p", "xdot"]
    outputs = names or [name]
    values = ca.cse(values)
    inner = ca.Function(name, [*order, symbols.g], values, [*inputs, "g"], outputs)
    if given is None:
        return ca.Function(name, order, values, inputs, outputs), inner
    outer = [ca.MX.sym(i, s.shape[0]) for i, s in zip(inputs, order, strict=True)]
    return ca.Function(name, outer, inner.call([*outer, given(outer[0])]), inputs, outputs), inner


def _explicit(
    parts: _Parts, given: ca.Function | None, symbols: _Symbols, net: ca.SX, equations: MuscleEquations | None
) -> ca.Function | None:
    """Return the explicit form: M v' = -net(v' = 0), and the rates of muscles; None where these have no closed form."""
    if equations is not None and equations.rates is None:
        return None
    tree = parts.tree
    bias = ca.substitute(net, tree.a, ca.DM.zeros(tree.a.shape[0]))
    rates = column(equations.rates if equations is not None and equations.rates is not None else [])
    order = [symbols.t, symbols.x, symbols.u, symbols.p]
    inner = ca.Function("explicit_parts", [*order, symbols.g], [*ca.cse([tree.mass_matrix(), bias, rates])])
    outer = [ca.MX.sym(name, s.shape[0]) for name, s in zip("txup", order, strict=True)]
    signals = given(outer[0]) if given is not None else ca.DM(0, 1)
    mass, force, muscle_rates = inner.call([*outer, signals])
    count = len(tree.names)
    xdot = ca.vertcat(outer[1][count : 2 * count], ca.solve(mass, -force, "ldl"), muscle_rates)
    return ca.Function("explicit", outer, [xdot, ca.MX(0, 1)], list("txup"), ["xdot", "z"])
