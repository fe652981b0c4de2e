"""Coordinates of a tree as CasADi expressions: variables, held values, and coupled coordinates by the chain rule.

A coupled coordinate c = f(x) has rate f' x' and acceleration f' x'' + f'' x'^2; its generalized force acts on x times
f'. So the free coordinates are the only variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.functions import Function
from borelli.model.kinematics import coupling_order
from borelli.model.model import Model
from borelli.optimal.casadi_import import ca
from borelli.optimal.symbolic_dynamics.piecewise import evaluate_piecewise
from borelli.optimal.symbolic_dynamics.vectors import Expression, times
from borelli.tree.kinematic_tree import make_tree


@dataclass(frozen=True, slots=True)
class Variables:
    """Coordinates of a model that are variables, held at values, or coupled to others, as indices."""

    free: tuple[int, ...]
    """Coordinates that vary, in the order of the model."""
    held: tuple[int, ...]
    """Coordinates that the caller holds; their generalized forces are reactions."""
    value: Mapping[int, float]
    """Values [rad or m] of held and of locked coordinates."""
    couplings: tuple[tuple[int, int, Function], ...]
    """Coupled coordinate, the one it depends on, and the function; in topological order."""


@dataclass(frozen=True, slots=True)
class CoordinateMotion:
    """Value, rate and acceleration of every coordinate of a model."""

    value: tuple[Expression, ...]
    rate: tuple[Expression, ...]
    acceleration: tuple[Expression, ...]
    slopes: tuple[Expression, ...]
    """Derivative of each coupling's coordinate by the one it depends on, in the order of the couplings."""


def split_coordinates(model: Model, held: Mapping[str, float] | None = None) -> Variables:
    """Return which coordinates are variables; `held` has names and values [rad or m] of coordinates that are not.

    Raises:
        ModelError: if the model has a joint that closes a loop.
        SettingsError: if a held coordinate is unknown, coupled or locked.
    """
    loops = [joint.name for joint in model.joints if joint.closes_loop]
    if loops:
        found = f"Joint {loops[0]!r} of model {model.name!r} closes a loop"
        raise ModelError(f"{found}, which reduced coordinates do not have. Remove it, or simulate with physics.")
    held = held or {}
    names = [c.name for c in model.coordinates]
    couplings = tuple(coupling_order(model))
    coupled = {names[c]: names[on] for c, on, _ in couplings}
    for name in held:
        if name not in names:
            raise SettingsError(f"held: {unknown_name('coordinate', name, names)}.")
        if name in coupled:
            raise SettingsError(f"held: Coordinate {name!r} is coupled. Hold {coupled[name]!r}, on which it depends.")
        if model.coordinates[names.index(name)].locked:
            raise SettingsError(f"held: Coordinate {name!r} is locked already. Leave it out.")
    free = tuple(int(c) for c in make_tree(model, tuple(sorted(held))).free)
    fixed = {i: c.default for i, c in enumerate(model.coordinates) if c.locked}
    fixed |= {names.index(name): float(value) for name, value in held.items()}
    return Variables(free, tuple(names.index(name) for name in held), fixed, couplings)


def coordinate_motion(
    count: int, variables: Variables, q: ca.SX, v: ca.SX | None = None, a: ca.SX | None = None
) -> CoordinateMotion:
    """Return the motion of all coordinates from those of the variables; without `v` or `a`, these are zero."""
    value: list[Expression] = [0.0] * count
    rate: list[Expression] = [0.0] * count
    acceleration: list[Expression] = [0.0] * count
    for i, number in variables.value.items():
        value[i] = number
    for k, i in enumerate(variables.free):
        value[i] = q[k]
        rate[i] = 0.0 if v is None else v[k]
        acceleration[i] = 0.0 if a is None else a[k]
    slopes = []
    for c, on, function in variables.couplings:
        value[c], slope, curvature = evaluate_piecewise(function, value[on])
        rate[c] = times(slope, rate[on])
        acceleration[c] = times(slope, acceleration[on]) + times(curvature, times(rate[on], rate[on]))
        slopes.append(slope)
    return CoordinateMotion(tuple(value), tuple(rate), tuple(acceleration), tuple(slopes))


def move_coupled_forces(variables: Variables, motion: CoordinateMotion, forces: list[Expression]) -> list[Expression]:
    """Return generalized forces with those of coupled coordinates moved to the coordinates they depend on."""
    result = list(forces)
    for (c, on, _), slope in zip(reversed(variables.couplings), reversed(motion.slopes), strict=True):
        result[on] = result[on] + times(slope, result[c])
        result[c] = 0.0
    return result
