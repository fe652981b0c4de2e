"""Problem that tracks a reference: system with muscles, torques and ground, costs, and first values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.files.html_repr import fields_repr
from borelli.optimal.problem import Constraint, Phase, Problem
from borelli.optimal.symbolic_dynamics.contact import SphereContact
from borelli.optimal.symbolic_dynamics.force_curves import with_de_groote_muscles
from borelli.optimal.symbolic_dynamics.muscle_lengths import PathGate, Ranges, coordinate_ranges
from borelli.optimal.symbolic_dynamics.time_series import TimeSeries
from borelli.optimal.symbolic_dynamics.tree_system import Forces, tree_system
from borelli.optimal.symbolic_dynamics.vectors import identifier
from borelli.optimal.system import System
from borelli.optimal.tracking.reference import MotionReference, root_names

REFERENCE, SPEED_REFERENCE = "_reference", "_speed_reference"
"""Endings of the names of reference signals."""
RANGE_MARGIN = 0.17
"""[rad] by which angles may leave the range of the reference: 10 degrees. Farther, some wrapped paths jump."""
LENGTH_MARGIN = 0.3
"""[m] by which translations may leave the range of the reference."""
EDGE = 0.02
"""[rad or m] between a reference at the end of the model's range, or beyond it, and the bound."""
JOINT_DAMPING = 1.0
"""[N m s/rad] of joints without muscles, of the difference to the recorded speed: toes and hands have so little inertia
that torques linear over 20 ms would throw them about. Muscles damp joints themselves."""
MIN_ACTIVATION = 0.02
"""Least activation of first values, off the bound."""
START_DURATION = 0.1
"""[s] for which the speeds at the start count in the cost."""
SHOCK_WEIGHT = 1e-4
"""[s^4/rad^2] of squared errors of accelerations at the start: 100 rad/s^2 cost 1."""
MIN_START_WEIGHT = 1.0
"""[s^2/rad^2] Least weight of speeds at the start."""
FIRST_ELEMENTS = 4
"""Elements in the first interval, where what is left of a shock at the start decays."""
PHASE = "motion"
"""Name of the phase."""


@dataclass(frozen=True)
class TrackingWeights:
    """Weights of the cost, which is integrated over time."""

    tracking: float = 1e4
    """Of squared errors of coordinates [1/rad^2 or 1/m^2], added over coordinates."""
    speed: float = 10.0
    """Of squared errors of speeds [s^2/rad^2 or s^2/m^2]."""
    effort: float = 1.0
    """Of squared excitations and of squared torques in units of their sizes."""
    coordinates: Mapping[str, float] = field(default_factory=dict)
    """Factors of the weights of single coordinates, by name. Default: 1."""

    __repr__ = fields_repr

    def __post_init__(self) -> None:
        for name in ("tracking", "speed", "effort"):
            if not 0.0 <= getattr(self, name) < inf:
                raise SettingsError(f"{name}: The weight is {getattr(self, name):g}. Give zero or more.")


@dataclass(frozen=True)
class Actuation:
    """Sizes [N m or N] of torques, by which the effort divides them: large sizes are cheap."""

    torque: float = 100.0
    """Joints without muscles."""
    reserve: float = 10.0
    """Joints with muscles, in addition to these."""
    residual: float = 100.0
    """Root: what the recorded loads leave unexplained. Zero for none."""

    def __post_init__(self) -> None:
        for name in ("torque", "reserve", "residual"):
            if not 0.0 <= getattr(self, name) < inf:
                raise SettingsError(f"{name}: The size is {getattr(self, name):g} N m. Give zero or more.")


@dataclass(frozen=True)
class TrackingProblem:
    """Problem and what it was made from."""

    problem: Problem
    reference: MotionReference
    system: System
    sizes: Mapping[str, float]
    """Sizes of torques by coordinate."""


def reference_ranges(reference: MotionReference, margin: float = RANGE_MARGIN) -> dict[str, tuple[float, float]]:
    """Return the ranges [rad or m] of the free coordinates, within which muscle paths are fitted.

    These are the ranges of the reference with a margin, but not beyond those of the model unless the reference is.
    """
    stated = coordinate_ranges(reference.model)
    result = {}
    for i, name in enumerate(reference.names):
        c = next(c for c in reference.model.coordinates if c.name == name)
        low, high = float(reference.coordinates[:, i].min()), float(reference.coordinates[:, i].max())
        wide = margin if c.rotational else LENGTH_MARGIN
        lower, upper = stated[name]
        result[name] = (max(low - wide, min(lower, low - EDGE)), min(high + wide, max(upper, high + EDGE)))
    return result


def make_tracking_problem(
    reference: MotionReference,
    *,
    tendon: str | None,
    weights: TrackingWeights,
    actuation: Actuation,
    interval: float,
    contacts: Sequence[SphereContact] = (),
    forces: Forces | None = None,
    ranges: Ranges | None = None,
    paths: Any = None,
    gate: PathGate | None = None,
    further_costs: Mapping[str, Callable[..., Any]] | None = None,
    name: str = "track",
) -> TrackingProblem:
    """Return the problem of a model that tracks a reference.

    Args:
        reference: The recorded motion.
        tendon: "rigid" or "elastic" tendons; None: torques only.
        weights: Of the cost.
        actuation: Sizes of torques.
        interval: Time between control nodes [s].
        contacts: Spheres that touch the ground; without them the recorded loads act.
        forces: Further generalized forces.
        ranges: Ranges of coordinates. Default: those of the reference with a margin.
        paths: Fitted muscle paths. Default: fitted within the ranges.
        gate: Largest errors of fitted paths.
        further_costs: Further integrands by name.
        name: Of the problem.
    """
    model = with_de_groote_muscles(reference.model) if tendon else reference.model
    names = reference.names
    for key in weights.coordinates:
        if key not in names:
            raise SettingsError(f"coordinates: {unknown_name('coordinate', key, names)}.")
    sizes = actuator_sizes(reference, tendon is not None, actuation)
    series = TimeSeries(
        tuple(f"{identifier(n)}{ending}" for ending in (REFERENCE, SPEED_REFERENCE) for n in names),
        reference.time, np.hstack([reference.coordinates, reference.speeds]),
    )  # fmt: skip
    system = tree_system(
        model, actuators=dict.fromkeys(sizes, inf), tendon=tendon, contacts=contacts,
        external_loads=None if contacts else reference.loads, signals=series,
        forces=forces if tendon else with_feedback(reference, forces),
        ranges=reference_ranges(reference) | dict(ranges or {}), paths=paths, gate=gate, name=name,
    )  # fmt: skip
    nodes = max(3, round(reference.duration / interval) + 1)
    phase = Phase(
        PHASE, system, reference.duration, nodes=nodes, elements=(FIRST_ELEMENTS, *[1] * (nodes - 2)),
        cost={**tracking_costs(system, reference, weights, sizes), **(further_costs or {})},
        guess=first_values(system, reference, sizes, nodes),
    )  # fmt: skip
    problem = Problem(name, [phase], constraints=rest_constraints(system), cost=start_cost(reference, weights))
    return TrackingProblem(problem, reference, system, sizes)


def actuator_sizes(reference: MotionReference, muscles: bool, actuation: Actuation) -> dict[str, float]:
    """Return the sizes of torques by coordinate; coordinates without torque are left out."""
    root = root_names(reference)
    moved: set[str] = set()
    if muscles and reference.missing is not None:
        shared = np.any(reference.missing != reference.torques, axis=0)
        moved = {name for name, used in zip(reference.names, shared, strict=True) if used}
    sizes = {
        name: actuation.residual if name in root else actuation.reserve if name in moved else actuation.torque
        for name in reference.names
    }
    return {name: size for name, size in sizes.items() if size > 0.0}


def tracking_costs(
    system: System, reference: MotionReference, weights: TrackingWeights, sizes: Mapping[str, float]
) -> dict[str, Callable[..., Any]]:
    """Return the integrands of the cost by name."""
    factor = {identifier(n): weights.coordinates.get(n, 1.0) for n in reference.names}
    excitations = [v.name for v in system.controls if v.name.endswith("_excitation")]
    torques = {f"{identifier(n)}_torque": size for n, size in sizes.items()}
    costs: dict[str, Callable[..., Any]] = {
        "effort": lambda s: weights.effort * (
            sum(s[n] ** 2 for n in excitations) + sum((s[n] / size) ** 2 for n, size in torques.items())
        ),
    }  # fmt: skip
    if weights.tracking > 0.0:
        costs["tracking"] = lambda s: (
            weights.tracking * sum(w * (s[n] - s[n + REFERENCE]) ** 2 for n, w in factor.items())
        )
    if weights.speed > 0.0:
        costs["speed"] = lambda s: (
            weights.speed * sum(w * (s[f"{n}_speed"] - s[n + SPEED_REFERENCE]) ** 2 for n, w in factor.items())
        )
    return costs


def with_feedback(reference: MotionReference, forces: Forces | None) -> Forces:
    """Return the forces with a damping of joints about the recorded speeds."""
    root = root_names(reference)
    joints = [n for n in reference.names if n not in root]

    def damped(s: Any) -> dict[str, Any]:
        total = {n: -JOINT_DAMPING * (s[f"{identifier(n)}_speed"] - s[identifier(n) + SPEED_REFERENCE]) for n in joints}
        for n, force in (dict(forces(s)) if forces is not None else {}).items():
            total[n] = total.get(n, 0.0) + force
        return total

    return damped


def start_cost(reference: MotionReference, weights: TrackingWeights) -> Callable[..., Any]:
    """Return the cost of errors of speeds and accelerations at the start, where no integral of collocation reaches.

    Muscles damp light segments within a millisecond. A speed that does not fit the muscles' forces at the start would
    be a shock that elements of 20 ms miss.
    """
    names = [identifier(n) for n in reference.names]
    weight = START_DURATION * max(weights.speed, MIN_START_WEIGHT)
    recorded = dict(zip(names, reference.accelerations[0].tolist(), strict=True))

    def cost(phases: Any) -> Any:
        start = phases[PHASE].start
        speed = sum((start[f"{n}_speed"] - start[n + SPEED_REFERENCE]) ** 2 for n in names)
        shock = sum((start[f"{n}_speed_rate"] - recorded[n]) ** 2 for n in names)
        return weight * speed + SHOCK_WEIGHT * shock

    return cost


def rest_constraints(system: System) -> list[Constraint]:
    """Return the condition that activations start at their excitations: a free start would be effort for nothing."""
    states = {v.name for v in system.states}
    muscles = [v.name.removesuffix("_excitation") for v in system.controls if v.name.endswith("_excitation")]
    muscles = [name for name in muscles if f"{name}_activation" in states]
    if not muscles:
        return []

    def difference(phases: Any) -> list[Any]:
        start = phases[PHASE].start
        return [start[f"{name}_activation"] - start[f"{name}_excitation"] for name in muscles]

    return [Constraint("activation at the start equals excitation", difference, 0.0, 0.0)]


def first_values(system: System, reference: MotionReference, sizes: Mapping[str, float], nodes: int) -> dict[str, Any]:
    """Return first values from inverse kinematics, inverse dynamics and load sharing."""
    time = np.linspace(0.0, reference.duration, 2 * nodes - 1)
    q, v = reference.at(reference.coordinates, time), reference.at(reference.speeds, time)
    torque = reference.at(reference.torques if reference.missing is None else reference.missing, time)
    guess: dict[str, Any] = {}
    for i, name in enumerate(reference.names):
        key = identifier(name)
        guess |= {key: q[:, i], f"{key}_speed": v[:, i]}
        if name in sizes:
            guess[f"{key}_torque"] = torque[:, i]
    if reference.activations is not None:
        activation = np.clip(reference.at(reference.activations, time), MIN_ACTIVATION, 1.0 - MIN_ACTIVATION)
        for k, muscle in enumerate(reference.model.muscles):
            key = identifier(muscle.name)
            for ending in ("_activation", "_excitation", "_tendon_force"):
                guess[key + ending] = activation[:, k]
    known = {v.name for v in (*system.states, *system.controls)}
    return {name: values for name, values in guess.items() if name in known}
