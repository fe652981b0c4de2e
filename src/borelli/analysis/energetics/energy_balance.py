"""Energy balance: power and energy at the frames of a motion, or between them, with their sums over time.

At every time of a motion with Newton-Euler torques

    power of joints + power of the residual + power of the ground on the bodies = change of mechanical energy

exactly; only the sum over time, by the trapezoidal rule, has an error. Simulation steps have a balance of their own,
exact to rounding, with numerical terms, each computed from its own formula (`step_work`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import FOOT_VARIABLES, Loads, foot_bodies
from borelli.analysis.dynamics.rnea import BodyKinematics, forward_kinematics, mechanical_energy
from borelli.analysis.dynamics.torques import Torques, load_power, newton_euler
from borelli.analysis.motion import root_columns, to_model_axes
from borelli.numerics.vectors import Array, geometric_median
from borelli.recording.recording import MIN_PLATE_FORCE

STEP_POWERS = ("joint_power", "residual_power", "ground_power", "constraint_power", "gyroscopic_power")
"""Variables of stepped torques whose sum is the change of energy."""
MIN_BELT_SPEED = 0.2
"""[m/s] Ground under loaded feet that moves slower is at rest; a treadmill belt is faster."""


@dataclass(frozen=True)
class EnergyBalance:
    """Power and energy at some times."""

    time: Array
    """(times,) [s]."""
    weight: Array
    """(times,) of each time in a sum over time [s]; zero where the GRF is not known."""
    evaluated: NDArray[np.bool_]
    """(times - 1,) whether a sum over time includes the span from each time to the next."""
    kinematics: BodyKinematics
    power: Array
    """(times, coordinates) of the joints [W]; zero for the root's."""
    torque: Array
    """(times, coordinates) [N m or N]; the root's is zero."""
    residual: Array
    """(times,) power of the residual [W]."""
    ground: Array
    """(times,) power of the loads on the bodies [W]."""
    numerical: Array
    """(times,) power of the integration scheme of simulation steps [W]; zero for Newton-Euler torques."""
    total: Array
    """(times,) mechanical energy [J]."""
    loads: Loads | None
    """Loads on the feet; None: unknown."""
    drift: Array
    """Work done less energy gained since the first time [J], at each time."""

    @property
    def error(self) -> float:
        """Largest difference between work and energy at any time [J]."""
        return float(np.abs(self.drift).max())

    def first_spans(self, count: int) -> EnergyBalance:
        """Return the balance with sums over time of the first spans only."""
        evaluated = self.evaluated.copy()
        evaluated[count:] = False
        return replace(
            self, evaluated=evaluated, weight=_trapezoidal(self.time, evaluated), drift=self.drift[: count + 1]
        )

    def integrate(self, values: Array) -> Array:
        """Return the integral over time of values (times, ...)."""
        return np.asarray(np.tensordot(self.weight, values, axes=1))

    def change(self, values: Array) -> Array:
        """Return the change of values (times, ...) over the evaluated spans."""
        return np.asarray(np.tensordot(self.evaluated.astype(float), np.diff(values, axis=0), axes=1))

    def is_evaluated(self, start: float, end: float) -> bool:
        """Return whether all spans from start to end [s] are evaluated."""
        inside = (self.time[:-1] >= start - 1e-9) & (self.time[1:] <= end + 1e-9)
        return bool(self.evaluated[inside].all())

    @property
    def positive_work(self) -> float:
        """Of the joints [J]."""
        return float(self.integrate(np.maximum(self.power, 0.0)).sum())

    def work(self, start: float = -np.inf, end: float = np.inf) -> tuple[Array, Array, Array]:
        """Return positive and negative work [J] and torque-time integral [N m s or N s] by coordinate."""
        inside = (self.time >= start - 1e-9) & (self.time <= end + 1e-9)
        weight = self.weight * inside
        parts = (np.maximum(self.power, 0.0), np.minimum(self.power, 0.0), np.abs(self.torque))
        positive, negative, torque = (np.asarray(np.tensordot(weight, part, axes=1)) for part in parts)
        return positive, negative, torque


def balance_at_frames(torques: Torques) -> EnergyBalance:
    """Return the energy balance at the frames of the torques."""
    data, model = torques.data, torques.motion.model
    names = ("coordinate_value", "coordinate_velocity", "coordinate_acceleration")
    q, u, a = (np.asarray(data[name].values, dtype=float) for name in names)
    kinematics = forward_kinematics(model, q, u, a)
    time, torque = np.asarray(data["time"].values, dtype=float), np.asarray(data["torque"].values, dtype=float)
    loads = _loads(torques, time) if "ground_reaction_force" in data else None
    if "joint_power" in data:
        return _stepped_balance(torques, time, kinematics, torque, loads)
    return _newton_euler_balance(torques, time, kinematics, torque, loads)


def balance_between_frames(torques: Torques, time: Array) -> EnergyBalance:
    """Return the energy balance of Newton-Euler torques at other times [s], from the splines of the coordinates."""
    curves = torques.derivatives
    assert curves is not None
    q, u, a = curves.at(time)
    loads = None if torques.loads is None else torques.loads.at(time)
    forces = newton_euler(forward_kinematics(curves.model, q, u, a), loads)
    torque = forces.torque.sum(axis=0)
    return _newton_euler_balance(torques, time, forces.kinematics, torque, loads)


def belt_velocity(kinematics: BodyKinematics, loads: Loads | None) -> Array:
    """Return the velocity (3,) of a treadmill belt [m/s], lab axes, from the points of loaded feet; zero if at rest."""
    model = kinematics.model
    if loads is None:
        return np.zeros(3)
    if loads.belt is not None:
        return np.array(loads.belt)
    names = [body.name for body in model.bodies]
    rotation = to_model_axes(model)
    velocities, weights = [], []
    for k, name in enumerate(loads.body):
        normal = loads.force[:, k, 2]
        loaded = normal > MIN_PLATE_FORCE
        points = loads.point[:, k] @ rotation.T
        velocities.append((kinematics.point_velocity(names.index(name), points) @ rotation)[loaded])
        weights.append(normal[loaded])
    velocity, weight = np.concatenate(velocities), np.concatenate(weights)
    if not len(velocity):
        return np.zeros(3)
    median = geometric_median(velocity[:, :2], weight)
    return np.array([*median, 0.0]) if np.linalg.norm(median) > MIN_BELT_SPEED else np.zeros(3)


def _newton_euler_balance(
    torques: Torques, time: Array, kinematics: BodyKinematics, torque: Array, loads: Loads | None
) -> EnergyBalance:
    root = root_columns(kinematics.model)
    power, ground = torque * kinematics.speeds, load_power(kinematics, loads)
    residual = power[:, root].sum(axis=1)
    joints, own = power.copy(), torque.copy()
    joints[:, root], own[:, root] = 0.0, 0.0
    total = sum(mechanical_energy(kinematics), np.zeros(len(time)))
    rate = power.sum(axis=1) + ground
    steps = 0.5 * (rate[1:] + rate[:-1]) * np.diff(time)
    drift = np.concatenate([[0.0], np.cumsum(steps)]) - (total - total[0])
    evaluated = _evaluated(torques, time)
    weight = _trapezoidal(time, evaluated)
    numerical = np.zeros(len(time))
    return EnergyBalance(
        time, weight, evaluated, kinematics, joints, own, residual, ground, numerical, total, loads, drift
    )


def _trapezoidal(time: Array, evaluated: NDArray[np.bool_]) -> Array:
    """Return the weight (times,) [s] of each time in a sum over the evaluated spans."""
    weight, spans = np.zeros(len(time)), 0.5 * np.diff(time) * evaluated
    weight[1:] += spans
    weight[:-1] += spans
    return weight


def _stepped_balance(
    torques: Torques, time: Array, kinematics: BodyKinematics, torque: Array, loads: Loads | None
) -> EnergyBalance:
    """Return the balance of the simulation's own terms: mean powers from each frame to the next."""
    data = torques.data
    duration = np.full(len(time), 1.0 / float(data.attrs["rate_hz"]))
    power, residual, ground, constraint, gyroscopic, total = (
        np.asarray(data[name].values, dtype=float) for name in (*STEP_POWERS, "mechanical_energy")
    )
    numerical = constraint + gyroscopic
    work = duration * (power.sum(axis=1) + residual + ground + numerical)
    drift = np.cumsum(work)[:-1] - (total[1:] - total[0])
    evaluated = _evaluated(torques, time)
    # the energy at the end of the last frame's step is not recorded
    weight = np.append(duration[:-1] * evaluated, 0.0)
    return EnergyBalance(
        time, weight, evaluated, kinematics, power, torque, residual, ground, numerical, total, loads, drift
    )


def _evaluated(torques: Torques, time: Array) -> NDArray[np.bool_]:
    """Return the spans (times - 1,) from each time to the next between frames whose GRF is known."""
    frames, known = np.asarray(torques.data["time"].values, dtype=float), torques.grf_known
    midpoint = 0.5 * (time[1:] + time[:-1])
    after = np.clip(np.searchsorted(frames, midpoint), 1, len(frames) - 1)
    return np.asarray(known[after - 1] & known[after])


def _loads(torques: Torques, time: Array) -> Loads:
    if torques.loads is not None:
        return torques.loads.at(time)
    data = torques.data
    sides = tuple(map(str, data["foot"].values))
    bodies = foot_bodies(torques.motion.model)
    force, point, moment = (np.asarray(data[name].values, dtype=float) for name in FOOT_VARIABLES)
    on = tuple(bodies[side] for side in sides)
    return Loads(sides, on, time, force, np.nan_to_num(point), moment, torques.grf_source)
