"""Residual reduction by adjusting segment masses (cf. OpenSim's residual reduction algorithm).

The residual at the root is a sum over bodies that is linear in their masses and nearly so in the trunk's center of
mass. Least squares over the frames with complete ground reaction force determine both, within bounds and close to the
given model: every segment's mass, with its inertia, by at most 10 % and equal on both sides, and the trunk's center of
mass by at most 30 mm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.rnea import (
    BodyKinematics,
    coordinate_forces,
    forward_kinematics,
    inertial_wrenches,
    weight_wrenches,
)
from borelli.analysis.dynamics.torques import Torques, newton_euler_torques
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.motion import Motion
from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Body, Model
from borelli.model.transforms import vector
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.landmarks import identify_landmark, left_right_pairs
from borelli.recording.recording import Note

Array = NDArray[np.float64]

MASS_BOUND = 0.1
"""Largest relative change of a segment's mass."""
CENTER_BOUND = 0.03
"""Largest displacement of the trunk's center of mass along each axis [m]."""
LINEARIZATIONS = 3
"""Number of least-squares solves: the trunk's inertia about its joint is quadratic in its center of mass."""


@dataclass(frozen=True)
class Reduction:
    """A model whose masses agree better with the plates.

    Attributes:
        torques: Torques of the adjusted model.
        mass_change: Relative change by body.
        center_change: Displacement of the trunk's center of mass [m], in its own frame.
        trunk: Name of the trunk's body.
        before: RMS residual force [N] and moment [N m] over frames with complete ground reaction force.
        after: The same with the adjusted model.
    """

    torques: Torques
    mass_change: Mapping[str, float]
    center_change: tuple[float, float, float]
    trunk: str
    before: tuple[float, float]
    after: tuple[float, float]

    @property
    def model(self) -> Model:
        """The adjusted model."""
        return self.torques.motion.model


def reduce_residuals(
    motion: Motion,
    curves: Derivatives,
    loads: Loads | None,
    settings: Mapping[str, Any] | None = None,
    *,
    mass_bound: float = MASS_BOUND,
    center_bound: float = CENTER_BOUND,
    trunk: str | None = None,
) -> Reduction:
    """Adjust masses within bounds to reduce the residual, and return the torques.

    Args:
        motion: Motion of a model with a free root.
        curves: Its derivatives.
        loads: Ground reaction forces.
        settings: Settings to record in the torques.
        mass_bound: Largest relative change of a segment's mass.
        center_bound: Largest displacement of the trunk's center of mass along each axis [m].
        trunk: Body whose center of mass may move. Default: the heaviest of the trunk.

    Raises:
        SettingsError: There are no forces, or a bound is not valid.
        ModelError: The model has no free root, or no such body.
    """
    if loads is None:
        raise SettingsError("forces: Residual reduction needs ground reaction forces. Pass forces.")
    if not (0.0 <= mass_bound < 1.0 and 0.0 <= center_bound < np.inf):
        raise SettingsError(
            f"bounds: mass_bound is {mass_bound:g} (0 to below 1), center_bound {center_bound:g} m (0 or larger). "
            "Correct them."
        )
    model = motion.model
    columns = _root_columns(model)
    trunk_index = _trunk(model, trunk)
    first = newton_euler_torques(motion, curves, loads, settings)
    used = first.data["grf_complete"].values if "grf_complete" in first.data else np.ones(len(curves.time), bool)
    if not used.any():
        raise SettingsError(
            "No frame has the full ground reaction force on plates, so segment masses cannot be adjusted. Use a trial "
            "with complete steps on the plates."
        )
    groups = _groups(model)
    unknowns = np.zeros(len(groups) + 3)
    bounds = np.array([mass_bound] * len(groups) + [center_bound] * 3) + 1e-12
    measured = first.data["torque"].values[:, columns] - _demand(model, curves, columns).sum(axis=1)
    size = np.sqrt((first.data["torque"].values[used][:, columns] ** 2).mean(axis=0)) + 1e-9
    # fraction of the samples of a low-passed series that are independent
    cutoff = curves.settings["cutoff_hz"] or CUTOFF
    independent = min(1.0, 2.0 * cutoff / curves.rate)
    current = model
    for _ in range(LINEARIZATIONS):
        rows, offset = _linearize(model, curves, columns, groups, trunk_index, unknowns)
        unknowns = _solve(rows[used], (offset + measured)[used], unknowns, size / np.sqrt(independent), bounds)
        current = _with_changes(model, groups, trunk_index, unknowns)
    moved = replace(motion, model=current)
    second = newton_euler_torques(moved, replace(curves, model=current), loads, settings)
    before, after = (_rms(found, used) for found in (first, second))
    names = [body.name for body in model.bodies]
    changes = {names[i]: float(s) for group, s in zip(groups, unknowns, strict=False) for i in group}
    displacement = vector(unknowns[-3:])
    low, high = 100 * min(changes.values()), 100 * max(changes.values())
    text = (
        f"Segment masses were changed by {low:+.0f} to {high:+.0f} % and the center of mass of {names[trunk_index]} by "
        f"{1e3 * float(np.linalg.norm(displacement)):.0f} mm: residual force {before[0]:.0f} to {after[0]:.0f} N, "
        f"moment {before[1]:.0f} to {after[1]:.0f} N m (RMS)."
    )
    note = Note(text, "changed", "residual=None", code="adjusted_masses")
    torques = replace(second, notes=(*second.notes, note))
    return Reduction(torques, changes, displacement, names[trunk_index], before, after)


def _root_columns(model: Model) -> list[int]:
    root = root_coordinates(model)
    if not root:
        raise ModelError(f"Model {model.name!r} has no free root, so it has no residual. Use a model with a free root.")
    names = [c.name for c in model.coordinates]
    return [names.index(name) for name in root]


def _trunk(model: Model, name: str | None) -> int:
    names = [body.name for body in model.bodies]
    if name is not None:
        if name not in names:
            raise ModelError(unknown_name("body", name, names))
        return names.index(name)
    words = ("torso", "trunk", "thorax", "chest")
    known = [
        i
        for i, one in enumerate(names)
        if any(word in one.lower() for word in words) or ((m := identify_landmark(one)) and m.part == "chest")
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
    return _by_body(moved, columns)


def _by_body(moved: BodyKinematics, columns: list[int]) -> Array:
    wrenches = inertial_wrenches(moved) + weight_wrenches(moved)
    root = moved.links[int(moved.link[np.flatnonzero(moved.column == columns[0])[0]])].child
    result = np.zeros((wrenches.shape[-1], len(wrenches), len(columns)))
    alone = np.zeros_like(wrenches)
    for body in range(len(wrenches)):
        if _is_in_subtree(moved, body, root):
            alone[root] = wrenches[body]  # the root supports it, whatever is between
            result[:, body] = coordinate_forces(moved, alone)[:, columns]
    return result


def _is_in_subtree(moved: BodyKinematics, body: int, root: int) -> bool:
    parent = {link.child: link.parent for link in moved.links}
    while body >= 0 and body != root:
        body = parent.get(body, -1)
    return body == root


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


def _rms(torques: Torques, used: NDArray[np.bool_]) -> tuple[float, float]:
    force, torque = (
        float(np.sqrt((torques.data[name].values[used] ** 2).sum(axis=-1).mean()))
        for name in ("residual_force", "residual_moment")
    )
    return force, torque
