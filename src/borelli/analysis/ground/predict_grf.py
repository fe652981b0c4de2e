"""Prediction of ground reaction forces from the motion alone.

Inverse dynamics without ground gives the external wrench that the body requires and the joint torques without it. Each
foot has five points (`soles`), each of which may exert a force f_p within its friction cone. With c_p the confidence of
contact (`contact_detection`), the forces of each frame

    minimize |D (W - W(f))|^2 + |tau - tau(f)|^2 + sum (rho / c_p^2) |f_p|^2

The wrench must fit, joint torques should be small, and points with little confidence are costly. The last term makes
the solution unique, and as continuous in time as the motion and its contacts are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from borelli.analysis.dynamics.external_loads import Feet, Loads, foot_bodies
from borelli.analysis.dynamics.rnea import BodyKinematics, forward_kinematics
from borelli.analysis.ground.contact_detection import (
    MIN_UNSUPPORTED_FRACTION,
    belt_velocity,
    contact_confidence,
    ground_levels,
    step_heights,
)
from borelli.analysis.ground.required_wrench import RequiredWrench, required_wrench, sole_bodies
from borelli.analysis.ground.soles import FEET, POINTS, Soles, default_soles, find_soles, foot_names
from borelli.analysis.kinematics.differentiation import Derivatives, differentiate
from borelli.analysis.motion import AXES, Motion, lengths, rotate, to_model_axes
from borelli.analysis.tree_kernels.friction_cone_forces import make_buffers, solve_cone_forces
from borelli.model.model import Model
from borelli.model.transforms import vector
from borelli.numerics.vectors import Array, cross
from borelli.people.partial import tracked_legs
from borelli.recording.recording import LAB, MIN_PLATE_FORCE

if TYPE_CHECKING:
    from xarray import Dataset

FLAT_FRACTION = 0.1
"""Fraction of the frames, the slowest of a foot, in which it is flat on the ground."""
FRICTION = 0.8
"""Coulomb coefficient between sole and ground: usual for a shoe."""
FORCE_COST = 0.25
"""Rho: cost of 1 N at a point of full confidence, relative to 1 N m of joint torque, both squared."""
TANGENT_UNIT = 0.8
"""1 N along the ground costs as much as 1 N / TANGENT_UNIT upward."""
MIN_CONTACT = 1e-3
"""Confidence below which a point has no force."""


@dataclass(frozen=True)
class PlateForces:
    """Forces that plates already supply."""

    forces: Array
    """(frames, coordinates) generalized forces [N m or N]."""
    free: Array
    """(frames, feet) fraction of a foot's force to predict: 0 if all is measured, 1 if nothing is."""


class Ground(NamedTuple):
    """Soles of the feet and the ground under them, which all frames of a trial determine together."""

    soles: Soles
    level: Array
    """(points,) height of the ground under each point [m]."""
    velocity: Array
    """(3,) of a treadmill belt [m/s]."""


def predict_grf(motion: Motion, curves: Derivatives | None = None, ground: Ground | None = None) -> Dataset:
    """Predict the ground reaction force on each foot from the motion alone.

    Args:
        motion: Motion of a model with feet and masses.
        curves: Its derivatives. Default: filtered at 6 Hz with strides, which suits walking.
        ground: Soles and ground of the trial that the motion is a part of. Default: found from the motion.

    Returns:
        By time, in lab axes: `ground_reaction_force` [N] on the body, `center_of_pressure` [m] (NaN below 20 N) and
        `free_moment` [N m] of each foot; `sole_force` [N], `sole_position` [m] and `sole_contact` (0 to 1) of each
        point of the soles; `unexplained_force` [N] and `unexplained_moment` [N m] about the center of mass: the part
        of the required wrench that contact cannot supply; and `belt_velocity` [m/s].
    """
    curves = curves or differentiate(motion, filter="strides")
    moved = forward_kinematics(motion.model, curves.coordinates, curves.speeds, curves.accelerations)
    return solve_ground_reaction(moved, curves, ground=ground).dataset()


@dataclass(frozen=True)
class GroundReaction:
    """Predicted forces of the ground on the feet, in lab axes."""

    time: Array
    """(frames,) [s]."""
    soles: Soles
    required: RequiredWrench
    """Required wrench, and positions of the points."""
    level: Array
    """(frames, points) height of the ground under each point [m]."""
    contact: Array
    """(frames, points) confidence of contact, 0 to 1."""
    force: Array
    """(frames, points, 3) [N]."""
    unexplained: Array
    """(frames, 6) required force [N] and moment about the center of mass [N m] that is not supplied."""
    belt: Array
    """(3,) velocity of the ground [m/s]."""

    def on_feet(self) -> tuple[Array, Array, Array]:
        """Return force [N], its point [m] and the free moment [N m] of each foot (frames, feet, 3)."""
        shape = (len(self.force), len(FEET), len(POINTS), 3)
        of_foot, position = self.force.reshape(shape), self.required.position.reshape(shape)
        total = of_foot.sum(axis=2)
        moment = cross(position.swapaxes(2, 3), of_foot.swapaxes(2, 3)).sum(axis=3)
        normal = total[..., 2]
        loaded = normal >= MIN_PLATE_FORCE
        safe = np.where(loaded, normal, 1.0)
        height = (of_foot[..., 2] * self.level.reshape(shape[:3])).sum(axis=2) / safe
        x = (height * total[..., 0] - moment[..., 1]) / safe
        y = (height * total[..., 1] + moment[..., 0]) / safe
        center = np.where(loaded[..., None], np.stack([x, y, height], axis=-1), np.nan)
        free = np.zeros_like(total)
        free[..., 2] = np.where(loaded, moment[..., 2] - (x * total[..., 1] - y * total[..., 0]), 0.0)
        return total, center, free

    def loads(self, model: Model, feet: Feet = None) -> Loads:
        """Return the forces as loads on the bodies of the feet."""
        bodies = tuple(foot_bodies(model, feet).values())
        return Loads(FEET, bodies, self.time, *self.on_feet(), "predicted", belt=vector(self.belt))

    def dataset(self) -> Dataset:
        """Return the dataset of `predict_grf`."""
        import xarray as xr

        total, center, free = self.on_feet()
        foot, sole = ("time", "foot", "axis"), ("time", "sole", "axis")
        newtons, meters = {"units": "N", "frame": LAB}, {"units": "m", "frame": LAB}
        variables = {
            "ground_reaction_force": (foot, total, newtons),
            "center_of_pressure": (foot, center, meters | {"threshold": f"NaN below {MIN_PLATE_FORCE:g} N"}),
            "free_moment": (foot, free, {"units": "N m", "frame": LAB}),
            "sole_force": (sole, self.force, newtons),
            "sole_position": (sole, self.required.position, meters),
            "sole_contact": (("time", "sole"), self.contact, {"units": "1"}),
            "unexplained_force": (("time", "axis"), self.unexplained[:, :3], newtons),
            "unexplained_moment": (
                ("time", "axis"), self.unexplained[:, 3:], {"units": "N m", "frame": LAB, "about": "center of mass"},
            ),
            "belt_velocity": (("axis",), self.belt, {"units": "m/s", "frame": LAB}),
        }  # fmt: skip
        clock = {"time": ("time", self.time, {"units": "s"})}
        labels = {"foot": list(FEET), "sole": list(self.soles.names), "axis": list(AXES)}
        return xr.Dataset(variables, {**clock, **labels}, {"grf_source": "predicted"})


def find_ground(moved: BodyKinematics) -> Ground:
    """Return the soles of a motion and the ground under them."""
    soles = find_soles(moved.model, _flat_feet(moved))
    return _ground_under(moved.model, soles, required_wrench(moved, soles))


def _ground_under(model: Model, soles: Soles, required: RequiredWrench) -> Ground:
    level = ground_levels(required.position)
    return Ground(soles, level, _belt_velocity(model, required.position, required.velocity))


def _belt_velocity(model: Model, position: Array, velocity: Array) -> Array:
    """Return the belt's velocity by the feet of legs that are tracked: another swings with the rest of the body."""
    tracked = tracked_legs(model)
    own = np.repeat(tracked if any(tracked) else (True, True), len(POINTS))
    return belt_velocity(position[:, own, 2] - ground_levels(position[:, own]), velocity[:, own])


def solve_ground_reaction(
    moved: BodyKinematics, curves: Derivatives, given: PlateForces | None = None, ground: Ground | None = None
) -> GroundReaction:
    """Solve for the ground reaction of `predict_grf`, in addition to given plate forces."""
    model = moved.model
    soles = find_soles(model, _flat_feet(moved)) if ground is None else ground.soles
    required = required_wrench(moved, soles, 0.0 if given is None else given.forces)
    free = 1.0 if given is None else given.free[:, soles.foot]
    _, level, ground_velocity = _ground_under(model, soles, required) if ground is None else ground
    height = required.position[..., 2] - level
    contact = free * contact_confidence(height, required.velocity, ground_velocity)
    force, left = _solve_forces(required, contact)
    weight = model.mass * float(np.linalg.norm(model.gravity))
    unsupported = required.root_wrench(left)[:, 2] > MIN_UNSUPPORTED_FRACTION * weight
    lift = step_heights(height, required.velocity, ground_velocity, unsupported, curves.rate, len(FEET))[:, soles.foot]
    if lift.any():
        contact = free * contact_confidence(height - lift, required.velocity, ground_velocity)
        force, left = _solve_forces(required, contact)
    unexplained = required.root_wrench(left)
    return GroundReaction(curves.time, soles, required, level + lift, contact, force, unexplained, ground_velocity)


def _solve_forces(required: RequiredWrench, contact: Array) -> tuple[Array, Array]:
    """Return the forces (frames, points, 3) [N] of the points, and the remaining requirement (frames, rows)."""
    frames, count = contact.shape
    units = np.array([TANGENT_UNIT, TANGENT_UNIT, 1.0])  # in these units all directions cost alike
    rows = required.rows.reshape(frames, -1, 3 * count) * np.tile(units, count)
    ridge = FORCE_COST / np.maximum(contact, 1e-9) ** 2
    force, steps = np.empty((frames, count, 3)), np.empty(frames, np.int64)
    max_ridge, buffers = FORCE_COST / MIN_CONTACT**2, make_buffers(rows.shape[1])
    solve_cone_forces(rows, required.need, ridge, max_ridge, FRICTION / TANGENT_UNIT, buffers, force, steps)
    left = required.need - (rows @ force.reshape(frames, -1, 1))[..., 0]
    return force * units, left


def _flat_feet(moved: BodyKinematics) -> list[Array]:
    """Return the up direction in the frame of each foot's body while the foot is flat: when it is slowest."""
    model = moved.model
    axes, soles = to_model_axes(model), default_soles(model)
    at = sole_bodies(model, soles)
    points = moved.position[at] + (moved.rotation[at] * soles.positions[:, None, :, None]).sum(axis=2)
    velocities = moved.velocity[at] + cross(moved.angular_velocity[at], points)
    position, velocity = (
        rotate(np.ascontiguousarray(values.transpose(2, 0, 1)), axes) for values in (points, velocities)
    )
    ground_velocity = _belt_velocity(model, position, velocity)
    speed = lengths(velocity - ground_velocity).reshape(len(position), len(FEET), -1).max(axis=2)
    names = [body.name for body in model.bodies]
    up = []
    for k, name in enumerate(foot_names(model)):
        still = np.argsort(speed[:, k], kind="stable")[: max(1, round(FLAT_FRACTION * len(speed)))]
        mean = axes[:, 2] @ moved.rotation[names.index(name)][..., still].mean(axis=-1)
        up.append(mean / np.linalg.norm(mean))
    return up
