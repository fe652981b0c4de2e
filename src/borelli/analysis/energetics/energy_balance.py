"""Books: power and energy at the frames of a motion, or between them, ready to be summed.

At every time of a smooth motion

    power of joints + power of the residual + power of the ground on the bodies = change of mechanical energy

exactly; only the sum over time, by trapezoids, errs. Steps of the physics engine keep books of their own, exact to
rounding, in which the scheme has a share, each part of it computed from its own formula (`stepped_work.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads, foot_bodies
from borelli.analysis.dynamics.rnea import BodyKinematics, mechanical_energy, forward_kinematics
from borelli.analysis.dynamics.torques import Torques, newton_euler
from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.motion import to_model_axes
from borelli.recording.recording import MIN_PLATE_FORCE

Array = NDArray[np.float64]

POWERS = ("joint_power", "residual_power", "ground_power", "constraint_power", "gyroscopic_power")
"""What steps tell of, whose sum is the change of energy."""
STANDING = 0.2
"""Ground under loaded feet that moves slower than this [m/s] stands; a belt is faster."""


@dataclass(frozen=True)
class Books:
    """Power and energy at some times.

    Attributes:
        time: (times,) [s]
        weight: (times,) of each in a sum over time [s]; zero where forces are not known.
        counted: (times - 1,) whether a sum over time has the span from each time to the next.
        moved: The bodies.
        power: (times, coordinates) of the joints [W]; zero for the root's.
        torque: (times, coordinates) [N m or N]; the root's is zero.
        residual: (times,) power of the residual [W].
        ground: (times,) power of the loads on the bodies [W].
        numerical: (times,) power of the scheme by which steps were made [W]; zero for smooth motions.
        total: (times,) mechanical energy [J].
        loads: What acted on the feet; None: nothing known.
        error: Largest difference between work and energy at any time [J].
    """

    time: Array
    weight: Array
    counted: NDArray[np.bool_]
    moved: BodyKinematics
    power: Array
    torque: Array
    residual: Array
    ground: Array
    numerical: Array
    total: Array
    loads: Loads | None
    error: float

    def sum(self, values: Array) -> Array:
        """Values summed over time."""
        return np.asarray(np.tensordot(self.weight, values, axes=1))

    def gain(self, values: Array) -> Array:
        """By how much values change over the spans that are counted."""
        return np.asarray(np.tensordot(self.counted.astype(float), np.diff(values, axis=0), axes=1))

    def counts(self, start: float, stop: float) -> bool:
        """Whether all spans from start to stop [s] are counted."""
        inside = (self.time[:-1] >= start - 1e-9) & (self.time[1:] <= stop + 1e-9)
        return bool(self.counted[inside].all())

    @property
    def positive(self) -> float:
        """Positive work of the joints [J]."""
        return float(self.sum(np.maximum(self.power, 0.0)).sum())

    def work(self, start: float = -np.inf, stop: float = np.inf) -> tuple[Array, Array, Array]:
        """Positive and negative work [J] and effort [N m s or N s] of every coordinate from start to stop [s]."""
        inside = (self.time >= start - 1e-9) & (self.time <= stop + 1e-9)
        weight = self.weight * inside
        parts = (np.maximum(self.power, 0.0), np.minimum(self.power, 0.0), np.abs(self.torque))
        positive, negative, effort = (np.asarray(np.tensordot(weight, part, axes=1)) for part in parts)
        return positive, negative, effort


def books_at_frames(torques: Torques) -> Books:
    """The books at the frames of the torques."""
    data, model = torques.data, torques.motion.model
    q, u, a = (np.asarray(data[name].values, dtype=float) for name in ("coordinates", "speeds", "accelerations"))
    moved = forward_kinematics(model, q, u, a)
    time, torque = np.asarray(data["time"].values, dtype=float), np.asarray(data["torque"].values, dtype=float)
    loads = _loads(torques, time) if "ground_reaction_force" in data else None
    if "joint_power" in data:
        return _stepped(torques, time, moved, torque, loads)
    ground = np.zeros(len(time)) if loads is None else _ground_power(moved, loads)
    return _smooth(torques, time, moved, torque, u, ground, loads)


def books_between(torques: Torques, time: Array) -> Books:
    """The books at other times of a smooth motion, from its splines."""
    curves = torques.derivatives
    assert curves is not None
    q, u, a = curves.at(time)
    loads = None if torques.loads is None else torques.loads.at(time)
    balance = newton_euler(forward_kinematics(curves.model, q, u, a), loads)
    return _smooth(torques, time, balance.moved, balance.torque.sum(axis=0), u, balance.ground_power, loads)


def belt_velocity(books: Books) -> Array:
    """Velocity of the ground [m/s], lab axes: of the feet's points that carry load, where it is a belt's."""
    loads, model = books.loads, books.moved.model
    if loads is None:
        return np.zeros(3)
    if loads.belt is not None:
        return np.array(loads.belt)
    names = [body.name for body in model.bodies]
    turn = to_model_axes(model)
    seen, weights = [], []
    for k, name in enumerate(loads.body):
        normal = loads.force[:, k, 2]
        firm = normal > MIN_PLATE_FORCE
        points = loads.point[:, k] @ turn.T
        seen.append((books.moved.point_velocity(names.index(name), points) @ turn)[firm])
        weights.append(normal[firm])
    velocity, weight = np.concatenate(seen), np.concatenate(weights)
    if not len(velocity):
        return np.zeros(3)
    middle = np.array([_weighted_median(velocity[:, i], weight) for i in range(2)])
    return np.array([*middle, 0.0]) if np.linalg.norm(middle) > STANDING else np.zeros(3)


def root_columns(torques: Torques) -> list[int]:
    """Columns of the coordinates whose torques are the residual."""
    model = torques.motion.model
    names = [c.name for c in model.coordinates]
    return [names.index(name) for name in root_coordinates(model)]


def _smooth(
    torques: Torques, time: Array, moved: BodyKinematics, torque: Array, u: Array, ground: Array, loads: Loads | None
) -> Books:
    root = root_columns(torques)
    power = torque * u
    residual = power[:, root].sum(axis=1)
    joints, own = power.copy(), torque.copy()
    joints[:, root], own[:, root] = 0.0, 0.0
    total = sum(mechanical_energy(moved), np.zeros(len(time)))
    rate = power.sum(axis=1) + ground
    steps = 0.5 * (rate[1:] + rate[:-1]) * np.diff(time)
    error = float(np.abs(np.concatenate([[0.0], np.cumsum(steps)]) - (total - total[0])).max())
    counted = _counted(torques, time)
    weight, spans = np.zeros(len(time)), 0.5 * np.diff(time) * counted
    weight[1:] += spans
    weight[:-1] += spans
    return Books(time, weight, counted, moved, joints, own, residual, ground, np.zeros(len(time)), total, loads, error)


def _stepped(torques: Torques, time: Array, moved: BodyKinematics, torque: Array, loads: Loads | None) -> Books:
    """The engine's own books: mean powers from each frame to the next."""
    data = torques.data
    whole = np.full(len(time), 1.0 / float(data.attrs["rate_hz"]))
    power, residual, ground, constraint, gyroscopic, total = (
        np.asarray(data[name].values, dtype=float) for name in (*POWERS, "mechanical_energy")
    )
    numerical = constraint + gyroscopic
    done = whole * (power.sum(axis=1) + residual + ground + numerical)
    error = float(np.abs(np.cumsum(done)[:-1] - (total[1:] - total[0])).max())
    counted = _counted(torques, time)
    # the last frame's step leads to where no energy is told
    weight = np.append(whole[:-1] * counted, 0.0)
    return Books(time, weight, counted, moved, power, torque, residual, ground, numerical, total, loads, error)


def _counted(torques: Torques, time: Array) -> NDArray[np.bool_]:
    """Spans from each time to the next that lie between frames whose forces are known."""
    frames, known = np.asarray(torques.data["time"].values, dtype=float), torques.grf_known
    middle = 0.5 * (time[1:] + time[:-1])
    after = np.clip(np.searchsorted(frames, middle), 1, len(frames) - 1)
    return np.asarray(known[after - 1] & known[after])


def _loads(torques: Torques, time: Array) -> Loads:
    """What acted on the feet at the frames, as the torques tell it."""
    if torques.loads is not None:
        return torques.loads.at(time)
    data = torques.data
    sides = tuple(map(str, data["foot"].values))
    bodies = foot_bodies(torques.motion.model)
    force, point, moment = (
        np.asarray(data[f"foot_{name}"].values, dtype=float) for name in ("force", "center_of_pressure", "free_moment")
    )
    on = tuple(bodies[side] for side in sides)
    return Loads(sides, on, time, force, np.nan_to_num(point), moment, torques.grf_source)


def _ground_power(moved: BodyKinematics, loads: Loads) -> Array:
    names = [body.name for body in moved.model.bodies]
    turn = to_model_axes(moved.model).T
    power = np.zeros(len(loads.time))
    for k, name in enumerate(loads.body):
        body = names.index(name)
        power += (loads.force[:, k] @ turn * moved.point_velocity(body, loads.point[:, k] @ turn)).sum(axis=-1)
        power += (loads.moment[:, k] @ turn * moved.angular_velocity[body].T).sum(axis=-1)
    return power


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    share = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(share, 0.5 * share[-1])])
