"""Residual reduction by adjusting segment masses (cf. OpenSim's residual reduction algorithm).

The residual at the root is a sum over bodies that is linear in their masses and nearly so in the trunk's center of
mass. Least squares over the frames with complete ground reaction force determine both, within bounds and close to the
given model: every segment's mass, with its inertia, by at most 10 % and equal on both sides, and the trunk's center of
mass by at most 30 mm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.rnea import (
    coordinate_forces,
    forward_kinematics,
    inertial_wrenches,
    weight_wrenches,
)
from borelli.analysis.dynamics.torques import Torques, newton_euler_torques
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.motion import Motion, root_columns
from borelli.errors import ModelError, SettingsError
from borelli.model.model import Body, Model
from borelli.model.transforms import vector
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.landmarks import identify_bodies, left_right_pairs
from borelli.recording.recording import Note

MASS_BOUND = 0.1
"""Largest relative change of a segment's mass."""
CENTER_BOUND = 0.03
"""Largest displacement of the trunk's center of mass along each axis [m]."""
LINEARIZATIONS = 3
"""Number of least-squares solves: the trunk's inertia about its joint is quadratic in its center of mass."""


def reduce_residuals(
    motion: Motion, curves: Derivatives, loads: Loads | None, settings: Mapping[str, Any] | None = None
) -> Torques:
    """Adjust masses and the trunk's center of mass within bounds to reduce the residual; return the new torques."""
    if loads is None:
        raise SettingsError("forces: Residual reduction needs ground reaction forces. Pass forces.")
    model = motion.model
    columns = root_columns(model)
    if not columns:
        raise ModelError(f"Model {model.name!r} has no free root, so it has no residual. Use a model with a free root.")
    trunk = _trunk(model)
    first = newton_euler_torques(motion, curves, loads, settings)
    used = first.data["grf_complete"].values if "grf_complete" in first.data else np.ones(len(curves.time), bool)
    if not used.any():
        raise SettingsError(
            "No frame has the full ground reaction force on plates, so segment masses cannot be adjusted. Use a trial "
            "with complete steps on the plates."
        )
    groups = _groups(model)
    unknowns = np.zeros(len(groups) + 3)
    bounds = np.array([MASS_BOUND] * len(groups) + [CENTER_BOUND] * 3) + 1e-12
    measured = first.data["torque"].values[:, columns] - _demand(model, curves, columns).sum(axis=1)
    size = np.sqrt((first.data["torque"].values[used][:, columns] ** 2).mean(axis=0)) + 1e-9
    # fraction of the samples of a low-passed series that are independent
    cutoff = curves.settings["cutoff_hz"] or CUTOFF
    independent = min(1.0, 2.0 * cutoff / curves.rate)
    current = model
    for _ in range(LINEARIZATIONS):
        rows, offset = _linearize(model, curves, columns, groups, trunk, unknowns)
        unknowns = _solve(rows[used], (offset + measured)[used], unknowns, size / np.sqrt(independent), bounds)
        current = _with_changes(model, groups, trunk, unknowns)
    moved = replace(motion, model=current)
    second = newton_euler_torques(moved, replace(curves, model=current), loads, settings)
    names = [body.name for body in model.bodies]
    changes = {names[i]: float(s) for group, s in zip(groups, unknowns, strict=False) for i in group}
    low, high = 100 * min(changes.values()), 100 * max(changes.values())
    text = (
        f"Segment masses were changed by {low:+.0f} to {high:+.0f} % and the center of mass of {names[trunk]} by "
        f"{1e3 * float(np.linalg.norm(unknowns[-3:])):.0f} mm: "
        f"residual force {first.residual_force_rms:.0f} to {second.residual_force_rms:.0f} N, "
        f"moment {first.residual_moment_rms:.0f} to {second.residual_moment_rms:.0f} N m (RMS)."
    )
    note = Note(text, "changed", "residual=None", code="adjusted_masses")
    return replace(second, notes=(*second.notes, note))


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


def _solve(rows: Array, residual: Array, at: Array, size: Array, bounds: Array) -> Array:
    """Return the least-squares unknowns: residuals in units of their size, unknowns in those of half their bounds."""
    from scipy.optimize import lsq_linear

    a = (rows / size[:, None]).reshape(-1, rows.shape[-1])
    b = (residual / size).reshape(-1)
    prior = np.diag(2.0 / bounds)
    solved = lsq_linear(np.vstack([a, prior]), np.concatenate([a @ at - b, np.zeros(len(bounds))]), (-bounds, bounds))
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
