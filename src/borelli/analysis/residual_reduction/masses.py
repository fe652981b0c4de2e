"""Residual reduction by adjusting segment masses (cf. OpenSim's residual reduction algorithm).

The residual at the root is a sum over bodies that is linear in their masses and nearly so in the trunk's center of
mass. Least squares over the frames with complete ground reaction force determine both, within bounds and close to the
given model: every segment's mass, with its inertia, by a fraction that is equal on both sides, and the trunk's center
of mass. The total mass is held: the plates weigh it better than residuals do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.rnea import (
    coordinate_forces,
    forward_kinematics,
    inertial_wrenches,
    weight_wrenches,
)
from borelli.analysis.dynamics.torques import newton_euler
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.motion import root_columns
from borelli.model.model import Body, Model
from borelli.model.resize import scale_mass
from borelli.model.transforms import vector
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.landmarks import identify_bodies, left_right_pairs

Mask = NDArray[np.bool_]

LINEARIZATIONS = 3
"""Number of least-squares solves: the trunk's inertia about its joint is quadratic in its center of mass."""
TOTAL_MASS_WEIGHT = 1e6
"""Weight of the total mass relative to that of the residual."""


@dataclass(frozen=True)
class AdjustedMasses:
    """A model with adjusted masses."""

    model: Model
    changes: dict[str, float]
    """Relative change of each body's mass."""
    trunk: str
    """Body whose center of mass moved."""
    displacement: Array
    """(3,) of that center of mass [m], in the body's frame."""


def adjust_masses(
    model: Model, curves: Derivatives, loads: Loads, used: Mask, *, max_change: float, max_displacement: float
) -> AdjustedMasses:
    """Adjust masses and the trunk's center of mass within bounds to reduce the residual; the total mass stays.

    Args:
        model: Model of the motion, with the total mass that is kept.
        curves: Derivatives of the motion.
        loads: Ground reaction forces.
        used: (frames,) over which the residual is reduced.
        max_change: Largest relative change of a segment's mass.
        max_displacement: Largest displacement of the trunk's center of mass along each axis [m].
    """
    columns = root_columns(model)
    trunk = _trunk(model)
    groups = _groups(model)
    unknowns = np.zeros(len(groups) + 3)
    bounds = np.array([max_change] * len(groups) + [max_displacement] * 3) + 1e-12
    ground = newton_euler(
        forward_kinematics(model, curves.coordinates, curves.speeds, curves.accelerations), loads.at(curves.time)
    ).torque[2][:, columns]
    residual = _demand(model, curves, columns).sum(axis=1) + ground
    size = np.sqrt((residual[used] ** 2).mean(axis=0)) + 1e-9
    # fraction of the samples of a low-passed series that are independent
    independent = min(1.0, 2.0 * (curves.settings["cutoff_hz"] or CUTOFF) / curves.rate)
    masses = np.array([sum(model.bodies[i].mass for i in group) for group in groups])
    current = model
    for _ in range(LINEARIZATIONS):
        rows, offset = _linearize(model, curves, columns, groups, trunk, unknowns)
        unknowns = _solve(
            rows[used], (offset + ground)[used], unknowns, size / np.sqrt(independent), bounds, masses / model.mass
        )
        current = _with_changes(model, groups, trunk, unknowns)
    current = scale_mass(current, model.mass)  # to the last digit
    changes = {body.name: after.mass / max(body.mass, 1e-12) - 1.0
               for body, after in zip(model.bodies, current.bodies, strict=True)}  # fmt: skip
    return AdjustedMasses(current, changes, model.bodies[trunk].name, unknowns[-3:])


def _trunk(model: Model) -> int:
    """Return the heaviest body of the trunk."""
    names = [body.name for body in model.bodies]
    words = ("torso", "trunk", "thorax", "chest")
    known = [
        i
        for i, (one, mark) in enumerate(zip(names, identify_bodies(names), strict=True))
        if any(word in one.lower() for word in words) or (mark and mark.part == "chest")
    ]
    return max(known or range(len(names)), key=lambda i: model.bodies[i].mass)


def _groups(model: Model) -> list[list[int]]:
    """Return groups of bodies whose masses change alike: left and right together."""
    names = [body.name for body in model.bodies]
    pairs = [list(pair) for pair in left_right_pairs(names)]
    paired = {i for pair in pairs for i in pair}
    for i, name in enumerate(names):
        other = f"{name[:-2]}_l"
        if i not in paired and name.endswith("_r") and other in names:
            pairs.append([i, names.index(other)])
    paired = {i for pair in pairs for i in pair}
    groups = pairs + [[i] for i in range(len(model.bodies)) if i not in paired]
    return [group for group in groups if sum(model.bodies[i].mass for i in group) > 0.0]


def _demand(model: Model, curves: Derivatives, columns: list[int]) -> Array:
    """Return the root's generalized forces (frames, bodies, root coordinates) due to each body."""
    moved = forward_kinematics(model, curves.coordinates, curves.speeds, curves.accelerations)
    wrenches = inertial_wrenches(moved) + weight_wrenches(moved)
    root = moved.links[int(moved.link[np.flatnonzero(moved.column == columns[0])[0]])].child
    result = np.zeros((wrenches.shape[-1], len(wrenches), len(columns)))
    alone = np.zeros_like(wrenches)
    inside = {root}
    for link in moved.links:
        if link.parent in inside:
            inside.add(link.child)
    for body in inside:
        alone[root] = wrenches[body]  # the root supports it, whatever is between
        result[:, body] = coordinate_forces(moved, alone)[:, columns]
    return result


def _linearize(
    model: Model, curves: Derivatives, columns: list[int], groups: list[list[int]], trunk: int, at: Array
) -> tuple[Array, Array]:
    """Return the derivatives of the root's demand by the unknowns, and the demand (frames, columns) itself."""
    here = _with_changes(model, groups, trunk, at)
    demand = _demand(here, curves, columns)
    slopes = [
        sum(demand[:, i] * (model.bodies[i].mass / max(here.bodies[i].mass, 1e-12)) for i in group) for group in groups
    ]
    step = 1e-4
    for axis in range(3):
        moved = at.copy()
        moved[len(groups) + axis] += step
        there = _demand(_with_changes(model, groups, trunk, moved), curves, columns)
        slopes.append((there[:, trunk] - demand[:, trunk]) / step)
    return np.stack([np.asarray(slope) for slope in slopes], axis=-1), demand.sum(axis=1)


def _solve(rows: Array, residual: Array, at: Array, size: Array, bounds: Array, fractions: Array) -> Array:
    """Return the least-squares unknowns: residuals in units of their size, unknowns in those of half their bounds.

    `fractions` are those of the total mass, which does not change.
    """
    from scipy.optimize import lsq_linear

    a = (rows / size[:, None]).reshape(-1, rows.shape[-1])
    b = (residual / size).reshape(-1)
    prior = np.diag(2.0 / bounds)
    total = TOTAL_MASS_WEIGHT * np.concatenate([fractions, np.zeros(3)])
    right = np.concatenate([a @ at - b, np.zeros(len(bounds) + 1)])
    solved = lsq_linear(np.vstack([a, prior, total]), right, (-bounds, bounds))
    return np.asarray(solved.x)


def _with_changes(model: Model, groups: list[list[int]], trunk: int, unknowns: Array) -> Model:
    change = np.zeros(len(model.bodies))
    for group, s in zip(groups, unknowns, strict=False):
        change[group] = s
    bodies = [_scaled(body, 1.0 + s) for body, s in zip(model.bodies, change, strict=True)]
    moved = np.array(bodies[trunk].center_of_mass) + unknowns[-3:]
    bodies[trunk] = replace(bodies[trunk], center_of_mass=vector(moved))
    return replace(model, bodies=tuple(bodies))


def _scaled(body: Body, factor: float) -> Body:
    x, y, z = (vector(factor * np.array(row)) for row in body.inertia)
    return replace(body, mass=factor * body.mass, inertia=(x, y, z))
