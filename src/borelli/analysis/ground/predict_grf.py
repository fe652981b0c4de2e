"""Ground forces without plates: what the feet must push so that the motion can be as it was.

Inverse dynamics without ground says what wrench the body needs from outside and what torques its joints would need.
Under each foot are five points (`ground_soles`), each of which may push within its friction cone, the more readily the
surer it stands on the ground (`ground_contact`); what all of them together push is the least costly of what fits
(`ground_support`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.analysis.dynamics.rnea import BodyKinematics, forward_kinematics
from borelli.analysis.ground.contact_detection import UNHELD, contact_weights, belt_velocity, find_steps, ground_levels
from borelli.analysis.ground.required_wrench import Rows, required_wrench, sole_bodies
from borelli.analysis.ground.soles import FEET, POINTS, Soles, find_soles, foot_names, standing_soles
from borelli.analysis.ground.solve_grf import solve_support
from borelli.analysis.kinematics.differentiation import Derivatives, differentiate
from borelli.analysis.motion import AXES, Motion, lengths, to_model_axes, rotate
from borelli.errors import SettingsError
from borelli.numerics.vectors import cross
from borelli.recording.recording import LAB, MIN_PLATE_FORCE

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

FLAT = 0.1
"""Part of the frames, the stillest of a foot, in which it is taken to stand flat."""


@dataclass(frozen=True)
class Given:
    """What plates already supply.

    Attributes:
        forces: (frames, coordinates) [N m or N] at the coordinates.
        free: (frames, feet) from 0, all that is under a foot is measured, to 1, nothing is.
    """

    forces: Array
    free: Array


def predict_grf(
    motion: Motion,
    curves: Derivatives | None = None,
    *,
    friction: float = 0.8,
    belt: ArrayLike | None = None,
) -> Dataset:
    """The forces of the ground on each foot, found from the motion alone.

    Args:
        motion: Of a model with feet and masses.
        curves: Its derivatives, filtered as the motion deserves; None: at 6 Hz, with strides: right for walking.
        friction: Coulomb coefficient between sole and ground.
        belt: Velocity (x, y) or (x, y, z) of the ground [m/s], lab axes; None: found, treadmill or not.

    Returns:
        By time, in lab axes: `foot_force` [N] on the body, `foot_center_of_pressure` [m] (not a number below 20 N) and
        `foot_free_moment` [N m] of each foot; `sole_force` [N], `sole_position` [m] and `contact` (0 to 1) of each
        point of the soles; `missing_force` [N] and `missing_moment` [N m], about the centre of mass: what the motion
        needs and the ground cannot give; and `belt_velocity` [m/s].

    Raises:
        ModelError: the model has no feet to stand on.
        SettingsError: the friction or the belt is no such thing.
    """
    curves = curves or differentiate(motion, filter="strides")
    moved = forward_kinematics(motion.model, curves.coordinates, curves.speeds, curves.accelerations)
    return solve_ground_reaction(moved, curves, friction, belt).dataset()


@dataclass(frozen=True)
class Ground:
    """What the ground does to the feet, in lab axes.

    Attributes:
        time: (frames,) [s]
        soles: Their points.
        rows: What is needed, and where the points are.
        level: (frames, points) height of the ground under each [m].
        contact: (frames, points) from 0, surely in the air, to 1, surely on the ground.
        force: (frames, points, 3) [N]
        missing: (frames, 6) force [N] and moment about the centre of mass [N m] that are needed and not given.
        belt: (3,) velocity of the ground [m/s].
    """

    time: Array
    soles: Soles
    rows: Rows
    level: Array
    contact: Array
    force: Array
    missing: Array
    belt: Array

    def on_feet(self) -> tuple[Array, Array, Array]:
        """Force [N], its point [m] and the free moment [N m] of each foot (frames, feet, 3)."""
        shape = (len(self.force), len(FEET), len(POINTS), 3)
        of_foot, place = self.force.reshape(shape), self.rows.place.reshape(shape)
        total = of_foot.sum(axis=2)
        moment = cross(place.swapaxes(2, 3), of_foot.swapaxes(2, 3)).sum(axis=3)
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

    def dataset(self) -> Dataset:
        """By the names that `predict_grf` tells."""
        import xarray as xr

        total, center, free = self.on_feet()
        foot, sole = ("time", "foot", "axis"), ("time", "sole", "axis")
        newtons, metres = {"units": "N", "frame": LAB}, {"units": "m", "frame": LAB}
        variables = {
            "ground_reaction_force": (foot, total, newtons),
            "center_of_pressure": (foot, center, metres | {"threshold": f"not a number below {MIN_PLATE_FORCE:g} N"}),
            "free_moment": (foot, free, {"units": "N m", "frame": LAB}),
            "sole_force": (sole, self.force, newtons),
            "sole_position": (sole, self.rows.place, metres),
            "sole_contact": (("time", "sole"), self.contact, {"units": "1"}),
            "unexplained_force": (("time", "axis"), self.missing[:, :3], newtons),
            "unexplained_moment": (
                ("time", "axis"), self.missing[:, 3:], {"units": "N m", "frame": LAB, "about": "the centre of mass"},
            ),
            "belt_velocity": (("axis",), self.belt, {"units": "m/s", "frame": LAB}),
        }  # fmt: skip
        return xr.Dataset(
            variables,
            {
                "time": ("time", self.time, {"units": "s"}),
                "foot": list(FEET),
                "sole": list(self.soles.names),
                "axis": list(AXES),
            },
            {"grf_source": "contacts"},
        )


def solve_ground_reaction(
    moved: BodyKinematics,
    curves: Derivatives,
    friction: float = 0.8,
    belt: ArrayLike | None = None,
    given: Given | None = None,
) -> Ground:
    """What `predict_grf` tells, of a motion whose bodies are placed, beside what is given."""
    if not 0.0 < friction < np.inf:
        raise SettingsError(f"friction is {friction}, but must be positive; 0.8 is usual for a shoe")
    model = moved.model
    soles = find_soles(model, _flat_feet(moved, belt))
    rows = required_wrench(moved, soles, 0.0 if given is None else given.forces)
    free = 1.0 if given is None else given.free[:, soles.foot]
    level = ground_levels(rows.place)
    height = rows.place[..., 2] - level
    moving = belt_velocity(height, rows.velocity) if belt is None else _belt(belt)
    contact = free * contact_weights(height, rows.velocity, moving)
    force, left = solve_support(rows, contact, friction)
    unheld = rows.root_wrench(left)[:, 2] > UNHELD * model.mass * float(np.linalg.norm(model.gravity))
    lift = find_steps(height, rows.velocity, moving, unheld, curves.rate, len(FEET))[:, soles.foot]
    if lift.any():
        contact = free * contact_weights(height - lift, rows.velocity, moving)
        force, left = solve_support(rows, contact, friction)
    return Ground(curves.time, soles, rows, level + lift, contact, force, rows.root_wrench(left), moving)


def _flat_feet(moved: BodyKinematics, belt: ArrayLike | None) -> list[Array]:
    """Which way is up in the frame of each foot's body while the foot stands flat: when it is stillest."""
    model = moved.model
    turn, soles = to_model_axes(model), standing_soles(model)
    at = sole_bodies(model, soles)
    points = moved.position[at] + (moved.rotation[at] * soles.places[:, None, :, None]).sum(axis=2)
    speeds = moved.velocity[at] + cross(moved.angular_velocity[at], points)
    place, velocity = (rotate(np.ascontiguousarray(values.transpose(2, 0, 1)), turn) for values in (points, speeds))
    moving = belt_velocity(place[..., 2] - ground_levels(place), velocity) if belt is None else _belt(belt)
    speed = lengths(velocity - moving).reshape(len(place), len(FEET), -1).max(axis=2)
    names = [body.name for body in model.bodies]
    up = []
    for k, name in enumerate(foot_names(model)):
        still = np.argsort(speed[:, k], kind="stable")[: max(1, round(FLAT * len(speed)))]
        mean = turn[:, 2] @ moved.rotation[names.index(name)][..., still].mean(axis=-1)
        up.append(mean / np.linalg.norm(mean))
    return up


def _belt(belt: ArrayLike) -> Array:
    given = np.asarray(belt, dtype=float)
    if given.shape not in ((2,), (3,)) or not np.isfinite(given).all():
        raise SettingsError(
            f"belt is {given.tolist()}, but must be a velocity of two or three numbers [m/s], such as (-1.2, 0)"
        )
    return np.array([*given, 0.0][:3])
