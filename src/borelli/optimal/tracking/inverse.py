"""Muscles of a prescribed motion: excitations over time, with activation and tendon dynamics.

The coordinates are functions of time, so the equations of motion become one condition per coordinate and instant,

    torque(t) = sum of moment arms times muscle forces + reserves,

which determines the reserves as algebraic variables; the states are those of the muscles alone. Unlike in load sharing
frame by frame, activations cannot jump.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.muscle_forces import MuscleForces
from borelli.errors import SettingsError
from borelli.model.model import Model
from borelli.optimal.casadi_import import ca
from borelli.optimal.certificate.certify import CertificateLimits
from borelli.optimal.nlp_solvers.solver_result import Iterate
from borelli.optimal.problem import Phase, Problem
from borelli.optimal.solver import solve
from borelli.optimal.symbolic_dynamics.force_curves import with_de_groote_muscles
from borelli.optimal.symbolic_dynamics.muscle_group import MuscleGroup, make_muscle_group
from borelli.optimal.symbolic_dynamics.muscle_lengths import PathGate
from borelli.optimal.symbolic_dynamics.time_series import TimeSeries, spline_function
from borelli.optimal.symbolic_dynamics.vectors import column, identifier
from borelli.optimal.system import Signals, System, Variable, names_of
from borelli.optimal.tracking.reference import MotionReference, make_reference
from borelli.optimal.tracking.track import INTERVAL, REFINEMENTS, TOLERANCE, check_interval
from borelli.optimal.tracking.tracked_motion import TrackedMotion
from borelli.optimal.tracking.tracking_problem import MIN_ACTIVATION, PHASE, reference_ranges, rest_constraints

RESERVE = 10.0
"""[N m or N] Size of reserves, by which the effort divides them."""


def solve_inverse(
    source: Torques | MuscleForces,
    *,
    tendon: str = "rigid",
    start: float = -inf,
    end: float = inf,
    interval: float = INTERVAL,
    reserve: float = RESERVE,
    gate: PathGate | None = None,
    fiber_damping: float | None = None,
    order: int = 3,
    refine: int = REFINEMENTS,
    tolerance: float = TOLERANCE,
    time_limit: float = 600.0,
    threads: int = 1,
    progress: bool | Callable[[Iterate], None] = False,
    limits: CertificateLimits | None = None,
) -> TrackedMotion:
    """Find the excitations with least effort whose muscles produce the torques of a recorded motion.

    Args:
        source: Torques of inverse dynamics, or muscle forces, of a model with muscles.
        tendon: Tendons: "rigid" or "elastic".
        start: First time [s]. Default: that of the longest part with known ground reaction force.
        end: Last time [s].
        interval: Time between control nodes [s].
        reserve: Size [N m or N] of ideal torques next to muscles; large sizes are cheap.
        gate: Largest errors of fitted muscle paths.
        fiber_damping: Damping of fibers, for elastic tendons. Default: that of the model.
        order: Points per element of Radau collocation.
        refine: Rounds of refinement at most.
        tolerance: Of the solver.
        time_limit: Wall time [s].
        threads: Threads that evaluate elements.
        progress: Show iterations in the terminal, or call a function with each.
        limits: Limits of the certificate.

    Returns:
        Excitations and muscle forces, with the certificate of the solution.

    Raises:
        SettingsError: An option is wrong, the model has no muscles, or no part has known ground reaction forces.
    """
    check_interval(interval)
    if not reserve > 0.0:
        raise SettingsError(f"reserve: {reserve:g} N m. Give a positive size; small ones are expensive.")
    reference = make_reference(source, start=start, end=end)
    system, shared = inverse_system(reference, tendon, gate, fiber_damping)
    nodes = max(3, round(reference.duration / interval) + 1)
    sizes = dict.fromkeys(shared, reserve)

    def effort(s: Any) -> Any:
        excitations = [v.name for v in system.controls if v.name.endswith("_excitation")]
        torques = [f"{identifier(n)}_torque" for n in shared]
        return sum(s[n] ** 2 for n in excitations) + sum((s[n] / reserve) ** 2 for n in torques)

    phase = Phase(
        PHASE, system, reference.duration, nodes=nodes, cost={"effort": effort},
        guess=_first_values(system, reference, shared, nodes),
    )  # fmt: skip
    problem = Problem("inverse", [phase], constraints=rest_constraints(system))
    solution = solve(
        problem, order=order, tolerance=tolerance, time_limit=time_limit, threads=threads, refine=refine,
        progress=progress, limits=limits,
    )  # fmt: skip
    return TrackedMotion(solution, reference, sizes)


def inverse_system(
    reference: MotionReference, tendon: str, gate: PathGate | None, fiber_damping: float | None = None
) -> tuple[System, tuple[str, ...]]:
    """Return the system of muscles of a prescribed motion, and the coordinates whose torques they share."""
    model = with_de_groote_muscles(reference.model)
    if fiber_damping is not None:
        model = with_fiber_damping(model, fiber_damping)
    group = make_muscle_group(model, tendon, ranges=reference_ranges(reference), gate=gate)
    assert reference.missing is not None
    used = np.any(reference.missing != reference.torques, axis=0)
    shared = tuple(n for n, one in zip(reference.names, used, strict=True) if one)
    slopes, series = _path_signals(group, reference, shared)
    torques = tuple(Variable(f"{identifier(n)}_torque", "N m", scale=RESERVE) for n in shared)
    return _assemble(group, shared, series, slopes, torques), shared


def with_fiber_damping(model: Model, damping: float) -> Model:
    """Return the model with this damping of all fibers."""
    key = "fiber_damping"
    return replace(
        model,
        muscles=tuple(
            replace(m, parameters=(*(pair for pair in m.parameters if pair[0] != key), (key, float(damping))))
            for m in model.muscles
        ),
    )


def _path_signals(
    group: MuscleGroup, reference: MotionReference, shared: tuple[str, ...]
) -> tuple[list[tuple[int, int]], TimeSeries]:
    """Return which muscle crosses which shared coordinate, and lengths, speeds, arms and torques over time."""
    order = [reference.names.index(n) for n in group.coordinates]
    q, v = reference.coordinates[:, order], reference.speeds[:, order]
    count = len(reference.time)
    length = np.array(group.lengths.map(count)(q.T)).T
    slope = np.array(group.slopes.map(count)(q.T)).reshape(len(group.muscles), count, -1).swapaxes(0, 1)
    speed = np.einsum("tmc,tc->tm", slope, v)
    crossing = [
        (k, group.coordinates.index(n))
        for n in shared
        for k in range(len(group.muscles))
        if np.any(slope[:, k, group.coordinates.index(n)])
    ]
    arms = np.column_stack([slope[:, k, c] for k, c in crossing])
    torque = reference.torques[:, [reference.names.index(n) for n in shared]]
    muscle_names = [identifier(m.name) for m in group.muscles]
    names = [f"{n}_path_length" for n in muscle_names] + [f"{n}_path_speed" for n in muscle_names]
    names += [f"{muscle_names[k]}_slope_{identifier(group.coordinates[c])}" for k, c in crossing]
    names += [f"{identifier(n)}_required" for n in shared]
    return crossing, TimeSeries(tuple(names), reference.time, np.hstack([length, speed, arms, torque]))


def _assemble(
    group: MuscleGroup, shared: tuple[str, ...], series: TimeSeries, crossing: list[tuple[int, int]],
    torques: tuple[Variable, ...],
) -> System:  # fmt: skip
    """Return the system: states of muscles, and reserves as algebraic variables."""
    states, controls = group.states, group.controls
    t, x, xdot = ca.SX.sym("t"), ca.SX.sym("x", len(states)), ca.SX.sym("xdot", len(states))
    u, g = ca.SX.sym("u", len(controls)), ca.SX.sym("g", len(series.names))
    z, p = ca.SX.sym("z", len(torques)), ca.SX.sym("p", 0)
    muscles, count = group.muscles, len(group.muscles)
    dynamic = [m.has_activation_dynamics for m in muscles]
    rows, rates, tendon_rows, tendon_rates, found = [], [], [], [], []
    at_activation, at_force = 0, sum(dynamic)
    for k, muscle in enumerate(muscles):
        excitation = u[k]
        activation = excitation
        if dynamic[k]:
            activation = x[at_activation]
            rate = muscle.activation_rate(activation, excitation)
            rows.append(xdot[at_activation] - rate)
            rates.append(rate)
            at_activation += 1
        if group.elastic[k]:
            state = muscle.elastic_tendon(g[k], g[count + k], activation, x[at_force], xdot[at_force])
            tendon_rows.append(state.residual)
            tendon_rates.append(state.force_rate)
            at_force += 1
        else:
            state = muscle.rigid_tendon(g[k], g[count + k], activation)
        found.append(state)
    pull: dict[int, Any] = {}
    for i, (k, c) in enumerate(crossing):
        pull[c] = pull.get(c, 0.0) - g[2 * count + i] * found[k].force
    required = g[2 * count + len(crossing) :]
    reserves = [required[i] - pull.get(group.coordinates.index(n), 0.0) for i, n in enumerate(shared)]
    outputs: dict[str, tuple[Any, str]] = {}
    for muscle, state in zip(muscles, found, strict=True):
        name = identifier(muscle.name)
        outputs |= {
            f"{name}_force": (state.force, "N"), f"{name}_fiber_length": (state.fiber_length, "m"),
            f"{name}_fiber_velocity": (state.fiber_velocity, "m/s"),
        }  # fmt: skip
    residual = column([*rows, *tendon_rows, *(z[i] - value for i, value in enumerate(reserves))])
    given = spline_function([series])
    inner = ca.Function("residual", [t, x, xdot, z, u, p, g], [ca.cse(residual)])
    values = [ca.SX(value) for value, _ in outputs.values()]
    inner_outputs = ca.Function(
        "outputs", [t, x, z, u, p, xdot, g], ca.cse(values), [*"txzup", "xdot", "g"], list(outputs)
    )
    explicit = None
    if all(rate is not None for rate in tendon_rates):
        values_now = ca.cse([column([*rates, *tendon_rates]), column(reserves)])
        inner_explicit = ca.Function("explicit", [t, x, u, p, g], values_now)
        a = [ca.MX.sym(n, s.shape[0]) for n, s in zip("txup", (t, x, u, p), strict=True)]
        explicit = ca.Function("explicit", a, inner_explicit.call([*a, given(a[0])]))
    a = [ca.MX.sym(f"a{i}", s.shape[0]) for i, s in enumerate((t, x, xdot, z, u, p))]
    b = [ca.MX.sym(f"b{i}", s.shape[0]) for i, s in enumerate((t, x, z, u, p, xdot))]
    return System(
        "muscles", states, controls, ca.Function("residual", a, [inner(*a, given(a[0]))]),
        algebraics=torques,
        outputs=ca.Function(
            "outputs", b, inner_outputs.call([*b, given(b[0])]), [*"txzup", "xdot"], list(outputs)
        ),
        output_units={name: unit for name, (_, unit) in outputs.items()}, given_explicit=explicit,
        signals=Signals(series.names, given, inner, inner_outputs),
    )  # fmt: skip


def _first_values(system: System, reference: MotionReference, shared: tuple[str, ...], nodes: int) -> Mapping[str, Any]:
    """Return activations of load sharing, and the torques it leaves to reserves."""
    time = np.linspace(0.0, reference.duration, 2 * nodes - 1)
    assert reference.activations is not None and reference.missing is not None
    activation = np.clip(reference.at(reference.activations, time), MIN_ACTIVATION, 1.0 - MIN_ACTIVATION)
    missing = reference.at(reference.missing, time)
    guess: dict[str, Any] = {}
    for k, muscle in enumerate(reference.model.muscles):
        for ending in ("_activation", "_excitation", "_tendon_force"):
            guess[identifier(muscle.name) + ending] = activation[:, k]
    for n in shared:
        guess[f"{identifier(n)}_torque"] = missing[:, reference.names.index(n)]
    known = names_of((*system.states, *system.controls, *system.algebraics))
    return {name: values for name, values in guess.items() if name in known}
