"""Muscles of a system: states, controls, equations and generalized forces of all muscles of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Model
from borelli.muscles.fitted_paths import FittedPath, FittedPaths
from borelli.muscles.muscle_arrays import make_muscle_arrays
from borelli.optimal.casadi_import import ca
from borelli.optimal.symbolic_dynamics.hill_muscle import HillMuscle, MuscleState, hill_muscles
from borelli.optimal.symbolic_dynamics.muscle_lengths import (
    PathGate,
    Ranges,
    fit_lengths,
    is_polyline,
    polyline_length,
    polynomial_length,
)
from borelli.optimal.symbolic_dynamics.tree_dynamics import TreeDynamics, make_tree_dynamics
from borelli.optimal.symbolic_dynamics.vectors import Expression, column, identifier
from borelli.optimal.system import Variable

TENDONS = ("rigid", "elastic")
"""Kinds of tendons."""
MIN_ELASTIC_ACTIVATION = 0.01
"""Lowest activation with an elastic tendon: the fiber's velocity is undefined at zero (OpenSim's minimum)."""
MAX_TENDON_FORCE = 5.0
"""Bound of the normalized tendon force, as in OpenSim Moco: more than twice what fibers can produce."""


@dataclass(frozen=True, slots=True)
class MuscleGroup:
    """Muscles of a model; `elastic` ones have a tendon force as state."""

    muscles: tuple[HillMuscle, ...]
    elastic: tuple[bool, ...]
    lengths: ca.Function
    """Lengths [m] of all muscles from all coordinates that may be free or held."""
    slopes: ca.Function
    """Derivatives (muscles, coordinates) of the lengths [m/rad or 1] from the same coordinates: minus moment arms."""
    coordinates: tuple[str, ...]
    """Names of those coordinates."""

    @property
    def states(self) -> tuple[Variable, ...]:
        """Activations, then normalized tendon forces."""
        activations = [
            Variable(f"{identifier(m.name)}_activation", "1", *self._activation_bounds(k), scale=1.0)
            for k, m in enumerate(self.muscles)
            if m.has_activation_dynamics
        ]
        forces = [
            Variable(f"{identifier(m.name)}_tendon_force", "1", 0.0, MAX_TENDON_FORCE, scale=1.0)
            for m, elastic in zip(self.muscles, self.elastic, strict=True)
            if elastic
        ]
        return (*activations, *forces)

    @property
    def controls(self) -> tuple[Variable, ...]:
        """Excitations."""
        return tuple(
            Variable(f"{identifier(m.name)}_excitation", "1", *self._activation_bounds(k), scale=1.0)
            for k, m in enumerate(self.muscles)
        )

    def _activation_bounds(self, k: int) -> tuple[float, float]:
        low, high = self.muscles[k].bounds
        return max(low, MIN_ELASTIC_ACTIVATION if self.elastic[k] else 0.0), high

    def coordinate_values(self, tree: TreeDynamics) -> ca.SX:
        """Return the values of `coordinates` in a tree whose coordinates are partly held."""
        column_of = {c.name: i for i, c in enumerate(tree.model.coordinates)}
        return column([tree.motion.value[column_of[name]] for name in self.coordinates])


@dataclass(frozen=True, slots=True)
class MuscleEquations:
    """Expressions of a muscle group within a system."""

    muscle: tuple[MuscleState, ...]
    length: ca.SX
    residual: list[Expression]
    """Of activation dynamics, then of tendon equilibrium."""
    rates: list[Expression] | None
    """Rates of the states in closed form; None where a tendon has none."""
    forces: Mapping[str, Expression]
    """Generalized forces [N m or N] by coordinate."""


def make_muscle_group(
    model: Model,
    tendon: str,
    *,
    activation: str = "model",
    paths: FittedPaths | None = None,
    ranges: Ranges | None = None,
    gate: PathGate | None = None,
) -> MuscleGroup:
    """Return the muscles of a model with rigid or elastic tendons.

    Args:
        model: Model with muscles whose curves are smooth (`with_de_groote_muscles`).
        tendon: "rigid" or "elastic"; muscles that the model states to have rigid tendons keep them.
        activation: Activation dynamics: "model", or "park" for those of Park et al. (1992).
        paths: Polynomial lengths that replace paths of the model. Default: fitted to paths that are not smooth.
        ranges: Ranges [rad or m] of coordinates in which paths are fitted.
        gate: Largest errors of fitted paths.
    """
    if tendon not in TENDONS:
        raise SettingsError(f"tendon: {unknown_name('kind of tendon', str(tendon), TENDONS)}. Or pass None.")
    if not model.muscles:
        raise SettingsError(f"tendon: Model {model.name!r} has none. Pass tendon=None, or a model with muscles.")
    muscles = hill_muscles(make_muscle_arrays(model), activation)
    given: dict[str, FittedPath] = {path.muscle: path for path in (paths.path if paths is not None else ())}
    rough = [m.name for m in model.muscles if m.name not in given and not is_polyline(m)]
    if rough:
        given |= {path.muscle: path for path in fit_lengths(model, rough, ranges, gate).path}
    tree = make_tree_dynamics(model)
    lengths = column(
        [
            polynomial_length(given[m.name], model, tree.motion)
            if m.name in given
            else polyline_length(tree.poses, tree.motion, m)
            for m in model.muscles
        ]
    )
    return MuscleGroup(
        muscles,
        tuple(tendon == "elastic" and not m.rigid for m in muscles),
        ca.Function("lengths", [tree.q], [ca.cse(lengths)]),
        ca.Function("slopes", [tree.q], [ca.cse(ca.jacobian(lengths, tree.q))]),
        tree.names,
    )


def muscle_equations(
    group: MuscleGroup, tree: TreeDynamics, states: ca.SX, rates: ca.SX, controls: ca.SX
) -> MuscleEquations:
    """Return the equations of muscles from their states, the states' rates, and excitations."""
    q = group.coordinate_values(tree)
    length, slopes = group.lengths(q), group.slopes(q)
    free = [group.coordinates.index(name) for name in tree.names]
    speed = slopes[:, free] @ tree.v
    dynamic = [m.has_activation_dynamics for m in group.muscles]
    found, activation_rows, tendon_rows = [], [], []
    activation_rates: list[Expression] = []
    force_rates: list[Expression] = []
    at_activation, at_force = 0, sum(dynamic)
    for k, muscle in enumerate(group.muscles):
        activation = controls[k]
        if dynamic[k]:
            activation = states[at_activation]
            rate = muscle.activation_rate(activation, controls[k])
            activation_rows.append(rates[at_activation] - rate)
            activation_rates.append(rate)
            at_activation += 1
        if group.elastic[k]:
            state = muscle.elastic_tendon(length[k], speed[k], activation, states[at_force], rates[at_force])
            tendon_rows.append(state.residual)
            force_rates.append(state.force_rate)
            at_force += 1
        else:
            state = muscle.rigid_tendon(length[k], speed[k], activation)
        found.append(state)
    pull = -slopes.T @ column([state.force for state in found])
    closed = None if any(rate is None for rate in force_rates) else [*activation_rates, *force_rates]
    return MuscleEquations(
        tuple(found),
        length,
        [*activation_rows, *tendon_rows],
        closed,
        {name: pull[i] for i, name in enumerate(group.coordinates)},
    )
