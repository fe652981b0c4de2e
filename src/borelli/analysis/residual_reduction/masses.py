"""Residuals made small by the masses: how a body would have to be built for the plates to explain its motion.

The residual at the root is a sum over bodies that is linear in their masses and nearly so in the centre of mass of the
trunk. Least squares over the frames that plates cover find both, within bounds and no farther from the model than the
data ask: every segment's mass, with its inertia, by at most 10 % and alike on both sides, and the trunk's centre of
mass by at most 30 mm, as OpenSim's residual reduction moves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.rnea import BodyKinematics, coordinate_forces, inertial_wrenches, forward_kinematics, weight_wrenches
from borelli.analysis.dynamics.torques import Torques, newton_euler_torques
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.motion import Motion
from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.model import Body, Model
from borelli.model.transforms import vector
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.landmarks import identify_landmark, left_right_pairs
from borelli.recording.recording import Note

Array = NDArray[np.float64]

MASS_BOUND = 0.1
"""Share of a segment's mass by which it may change."""
CENTER_BOUND = 0.03
"""[m] by which the trunk's centre of mass may move along each axis."""
ROUNDS = 3
"""Times the least squares are solved anew: the trunk's inertia about its joint is quadratic in where its mass is."""


@dataclass(frozen=True)
class Reduction:
    """A model whose masses suit the plates better.

    Attributes:
        torques: With the changed model.
        mass_change: Share by body.
        center_change: Of the trunk's centre of mass [m], in its own frame.
        trunk: Which body that is.
        before: Residual force [N] and torque [N m], root mean square over the covered frames.
        after: The same with the changed model.
    """

    torques: Torques
    mass_change: Mapping[str, float]
    center_change: tuple[float, float, float]
    trunk: str
    before: tuple[float, float]
    after: tuple[float, float]

    @property
    def model(self) -> Model:
        """The changed model."""
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
    """Torques with masses changed within bounds, so that the residual gets small.

    Args:
        motion: Of a model that moves through the world.
        curves: Its derivatives.
        loads: What the ground supplied.
        settings: How all that was found, to be told.
        mass_bound: Largest share by which a segment's mass may change.
        center_bound: Farthest that the trunk's centre of mass may move along each axis [m].
        trunk: The body whose centre of mass may move; by default the heaviest of the trunk.

    Raises:
        SettingsError: there are no forces, or a bound is negative.
        ModelError: the model has no root, or not that body.
    """
    if loads is None:
        raise SettingsError("residuals are reduced against forces of the ground; give forces")
    if not (0.0 <= mass_bound < 1.0 and 0.0 <= center_bound < np.inf):
        raise SettingsError(f"bounds must be zero or positive, masses' below 1; got {mass_bound:g}, {center_bound:g} m")
    model = motion.model
    columns = _root_columns(model)
    chosen = _trunk(model, trunk)
    first = newton_euler_torques(motion, curves, loads, settings)
    used = first.data["grf_complete"].values if "grf_complete" in first.data else np.ones(len(curves.time), bool)
    if not used.any():
        raise SettingsError(
            "plates carry the whole body in no frame, so they say nothing of its masses: take a trial with whole steps "
            "on plates"
        )
    groups = _groups(model)
    unknowns = np.zeros(len(groups) + 3)
    bounds = np.array([mass_bound] * len(groups) + [center_bound] * 3) + 1e-12
    measured = first.data["torque"].values[:, columns] - _demand(model, curves, columns).sum(axis=1)
    size = np.sqrt((first.data["torque"].values[used][:, columns] ** 2).mean(axis=0)) + 1e-9
    # so many numbers of a low-passed series tell something of their own
    cutoff = curves.settings["cutoff_hz"] or CUTOFF
    told = min(1.0, 2.0 * cutoff / curves.rate)
    current = model
    for _ in range(ROUNDS):
        rows, offset = _linear(model, curves, columns, groups, chosen, unknowns)
        unknowns = _solve(rows[used], (offset + measured)[used], unknowns, size / np.sqrt(told), bounds)
        current = _changed(model, groups, chosen, unknowns)
    moved = replace(motion, model=current)
    second = newton_euler_torques(moved, replace(curves, model=current), loads, settings)
    before, after = (_rms(found, used) for found in (first, second))
    names = [body.name for body in model.bodies]
    shares = {names[i]: float(s) for group, s in zip(groups, unknowns, strict=False) for i in group}
    shift = vector(unknowns[-3:])
    said = (
        f"masses changed by {100 * min(shares.values()):+.0f} to {100 * max(shares.values()):+.0f} % and the centre of "
        f"mass of {names[chosen]} by {1e3 * float(np.linalg.norm(shift)):.0f} mm: residual force {before[0]:.0f} to "
        f"{after[0]:.0f} N, torque {before[1]:.0f} to {after[1]:.0f} N m (root mean square)"
    )
    told_all = replace(second, notes=(*second.notes, Note(said, "changed", "residual=None")))
    return Reduction(told_all, shares, shift, names[chosen], before, after)


def _root_columns(model: Model) -> list[int]:
    root = root_coordinates(model)
    if not root:
        raise ModelError(f"model {model.name!r} has no joint that carries it through the world, so no residual")
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
    """Bodies whose masses change alike: those of both sides together."""
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
    """(frames, bodies, root coordinates): what moving and holding each body asks of the root."""
    moved = forward_kinematics(model, curves.coordinates, curves.speeds, curves.accelerations)
    return _by_body(moved, columns)


def _by_body(moved: BodyKinematics, columns: list[int]) -> Array:
    wrenches = inertial_wrenches(moved) + weight_wrenches(moved)
    root = moved.links[int(moved.link[np.flatnonzero(moved.column == columns[0])[0]])].child
    result = np.zeros((wrenches.shape[-1], len(wrenches), len(columns)))
    alone = np.zeros_like(wrenches)
    for body in range(len(wrenches)):
        if _hangs_on(moved, body, root):
            alone[root] = wrenches[body]  # the root carries it, whatever is between
            result[:, body] = coordinate_forces(moved, alone)[:, columns]
    return result


def _hangs_on(moved: BodyKinematics, body: int, root: int) -> bool:
    parent = {link.child: link.parent for link in moved.links}
    while body >= 0 and body != root:
        body = parent.get(body, -1)
    return body == root


def _linear(
    model: Model, curves: Derivatives, columns: list[int], groups: list[list[int]], trunk: int, at: Array
) -> tuple[Array, Array]:
    """How the root's demand (frames, columns) changes with the unknowns, and the demand itself, at some unknowns."""
    here = _changed(model, groups, trunk, at)
    demand = _demand(here, curves, columns)
    slopes = [
        sum(demand[:, i] * (model.bodies[i].mass / max(here.bodies[i].mass, 1e-12)) for i in group) for group in groups
    ]
    step = 1e-4
    for axis in range(3):
        moved = at.copy()
        moved[len(groups) + axis] += step
        there = _demand(_changed(model, groups, trunk, moved), curves, columns)
        slopes.append((there[:, trunk] - demand[:, trunk]) / step)
    return np.stack([np.asarray(slope) for slope in slopes], axis=-1), demand.sum(axis=1)


def _solve(rows: Array, residual: Array, at: Array, size: Array, bounds: Array) -> Array:
    """Unknowns of least squares: the residual in units of its size, the unknowns in those of half their bounds."""
    from scipy.optimize import lsq_linear

    a = (rows / size[:, None]).reshape(-1, rows.shape[-1])
    b = (residual / size).reshape(-1)
    prior = np.diag(2.0 / bounds)
    solved = lsq_linear(np.vstack([a, prior]), np.concatenate([a @ at - b, np.zeros(len(bounds))]), (-bounds, bounds))
    return np.asarray(solved.x)


def _changed(model: Model, groups: list[list[int]], trunk: int, unknowns: Array) -> Model:
    share = np.zeros(len(model.bodies))
    for group, s in zip(groups, unknowns, strict=False):
        share[group] = s
    bodies = [_scaled(body, 1.0 + s) for body, s in zip(model.bodies, share, strict=True)]
    moved = np.array(bodies[trunk].center_of_mass) + unknowns[-3:]
    bodies[trunk] = replace(bodies[trunk], center_of_mass=vector(moved))
    return replace(model, bodies=tuple(bodies))


def _scaled(body: Body, share: float) -> Body:
    x, y, z = (vector(share * np.array(row)) for row in body.inertia)
    return replace(body, mass=share * body.mass, inertia=(x, y, z))


def _rms(torques: Torques, used: NDArray[np.bool_]) -> tuple[float, float]:
    force, torque = (
        float(np.sqrt((torques.data[name].values[used] ** 2).sum(axis=-1).mean()))
        for name in ("residual_force", "residual_moment")
    )
    return force, torque
