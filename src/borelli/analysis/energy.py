"""Energy: the power of every joint, what work it did, and whether the books balance.

Torques, speeds and mechanical energy come from one motion, so at every time

    power of joints + power of the residual + power of the ground on the bodies = change of mechanical energy

exactly; only the sum over time errs. It is a trapezoid rule over the frames, and over times between them, from the same
splines, where the frames are too coarse. The balance is the largest difference at any time, as a share of the positive
work of the joints. It says nothing of the residual, whose work is therefore given by itself, net and absolute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.loads import Loads, foot_bodies
from borelli.analysis.motion import AXES, to_model_axes
from borelli.analysis.newton import Moved, mechanical_energy, move
from borelli.analysis.pose import root_coordinates
from borelli.analysis.strides import strides
from borelli.analysis.torques import Torques, balance_forces
from borelli.errors import SettingsError
from borelli.model.model import Model
from borelli.recording.recording import LAB, LOADED, Note

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

COARSE = 5e-4
"""Frames are too coarse where the balance errs by more than this share of the positive work."""
FINEST = 40
"""At most so many times are then taken for each frame: as many as make the error, which falls with their square,
small."""
STANDING = 0.2
"""Ground under loaded feet that moves slower than this [m/s] stands; a belt is faster."""
TRAVEL = 0.5
"""A body that moves less far [m] over the ground does not travel, and has no cost of transport."""


@dataclass(frozen=True)
class Energy:
    """What a motion cost, mechanically.

    Attributes:
        torques: What they were computed from.
        data: By time `power` of every coordinate [W], `joint_power`, `residual_power`, `ground_power` [W],
            `kinetic_energy`, `potential_energy`, `mechanical_energy` [J], `center_of_mass` [m] and its velocity, and
            `center_of_mass_power` of each foot [W]; by coordinate `work_positive`, `work_negative` [J] and `effort`
            [N m s or N s]; by stride the same. The attribute `balance_error` is in % of the positive work.
        summary: Scalars: see `docs/theory.md`.
        notes: What was decided or noticed.
    """

    torques: Torques
    data: Dataset
    summary: Mapping[str, float]
    notes: tuple[Note, ...] = ()

    @property
    def balance_error(self) -> float:
        """How far work and energy differ [% of the positive work of the joints]."""
        return float(self.data.attrs["balance_error"])


@dataclass(frozen=True)
class Books:
    """Power and energy at some times."""

    time: Array
    moved: Moved
    power: Array
    """(times, coordinates)"""
    torque: Array
    ground: Array
    kinetic: Array
    potential: Array
    loads: Loads | None


def energy(torques: Torques, *, belt_velocity: tuple[float, float, float] | None = None) -> Energy:
    """Power, work and energy of a motion whose torques are known.

    Args:
        torques: Of either method.
        belt_velocity: How the ground moves [m/s], lab axes: a treadmill's belt. By default that of the points of the
            feet that carry load, where forces are known and it is faster than `STANDING`.
    """
    model = torques.motion.model
    names = [c.name for c in model.coordinates]
    root = [names.index(name) for name in root_coordinates(model)]
    at_frames = _at_frames(torques)
    books, error, positive = at_frames, *_balance(at_frames, root)
    curves = torques.derivatives
    if curves is not None and torques.data.attrs.get("method") == "smooth" and error > COARSE * positive:
        finer = min(int(np.ceil(np.sqrt(error / (0.2 * COARSE * positive)))) if positive > 0.0 else FINEST, FINEST)
        count = finer * (len(at_frames.time) - 1) + 1
        books = _between(torques, np.linspace(at_frames.time[0], at_frames.time[-1], count))
        error, positive = _balance(books, root)
    belt = _belt(books, model, belt_velocity)
    data, summary = _account(torques, at_frames, books, root, belt)
    data.attrs["balance_error"] = 100.0 * error / positive if positive > 0.0 else 0.0
    data.attrs["belt_velocity"] = [float(v) for v in belt]
    summary |= {"balance_error_percent": data.attrs["balance_error"]}
    notes = []
    if belt_velocity is None and np.any(belt):
        speed = float(np.linalg.norm(belt))
        said = f"the ground moves at {speed:.2f} m/s under the feet that carry load: taken as a treadmill's belt"
        notes.append(Note(said, "guess", "energy(belt_velocity=...)"))
    return Energy(torques, data, summary, tuple(notes))


def cocontraction(
    result: Energy,
    torque: Mapping[str, float] | float | None = None,
    *,
    stiffness: Mapping[str, float] | None = None,
    stiffness_per_torque: float | None = None,
) -> dict[str, float]:
    """The costs of a motion whose joints are stiffened by antagonists that pull against each other.

    Both groups pull by c more than the motion needs: the net torque stays, but one group shortens and does the positive
    work c |u| dt, the other lengthens and takes it up, and the effort rises by 2 c dt.

    Args:
        result: The energy without it.
        torque: c [N m]: one for all joints, or by coordinate.
        stiffness: Wanted of joints, by coordinate [N m/rad]; needs `stiffness_per_torque`.
        stiffness_per_torque: Stiffness that a group's torque brings with it [1/rad], so that K = s (|torque| + 2 c).

    Returns:
        `work_j`, `work_negative_j`, `effort`, `cost_j_per_kg_m` as in the summary, with the co-contraction.
    """
    data = result.data
    names = [str(name) for name in data["coordinate"].values]
    joints = _driven(result.torques.motion.model)
    net = np.abs(result.torques.data["torque"].values)
    extra = np.zeros_like(net)
    if isinstance(torque, Mapping):
        for name, value in torque.items():
            extra[:, _column(names, name)] = _not_negative(name, value)
    elif torque is not None:
        extra[:, joints] = _not_negative("torque", torque)
    if stiffness:
        if stiffness_per_torque is None or not stiffness_per_torque > 0.0:
            raise SettingsError("stiffness needs stiffness_per_torque [1/rad], which must be positive")
        for name, value in stiffness.items():
            column = _column(names, name)
            wanted = 0.5 * (_not_negative(name, value) / stiffness_per_torque - net[:, column])
            extra[:, column] = np.maximum(extra[:, column], wanted)
    time = data["time"].values
    work = float(_integral(time, (extra * np.abs(result.torques.data["speeds"].values)).sum(axis=1)))
    summary = result.summary
    positive = summary["work_j"] + work
    return {
        "work_j": positive,
        "work_negative_j": summary["work_negative_j"] - work,
        "effort": summary["effort"] + float(_integral(time, 2.0 * extra.sum(axis=1))),
        "cost_j_per_kg_m": summary["cost_j_per_kg_m"] * positive / summary["work_j"],
    }


def _driven(model: Model) -> list[int]:
    """Columns of the coordinates that muscles move: not the root's, nor what is locked or coupled."""
    held = {*root_coordinates(model), *(coupling.coordinate for coupling in model.couplings)}
    return [i for i, c in enumerate(model.coordinates) if not c.locked and c.name not in held]


def _column(names: list[str], name: str) -> int:
    if name not in names:
        raise SettingsError(f"unknown coordinate {name!r}; known: {', '.join(names)}")
    return names.index(name)


def _not_negative(what: str, value: float) -> float:
    if not 0.0 <= value < np.inf:
        raise SettingsError(f"co-contraction of {what!r} must be zero or positive, got {value}")
    return float(value)


def _at_frames(torques: Torques) -> Books:
    data, model = torques.data, torques.motion.model
    q, u, a = (
        np.asarray(data[name].values if name in data else np.zeros(data["speeds"].shape), dtype=float)
        for name in ("coordinates", "speeds", "accelerations")
    )
    moved = move(model, q, u, a)
    time, torque = np.asarray(data["time"].values, dtype=float), data["torque"].values
    loads, ground = None, np.zeros(len(time))
    if "foot_force" in data:
        loads = _loads(torques, time)
        ground = _ground_power(moved, loads)
    return Books(time, moved, torque * u, torque, ground, *mechanical_energy(moved), loads)


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
    return Loads(sides, on, time, force, np.nan_to_num(point), moment, torques.contact_source)


def _between(torques: Torques, time: Array) -> Books:
    curves = torques.derivatives
    assert curves is not None
    q, u, a = curves.at(time)
    loads = None if torques.loads is None else torques.loads.at(time)
    balance = balance_forces(curves.model, q, u, a, loads)
    torque = balance.torque.sum(axis=0)
    return Books(
        time, balance.moved, torque * u, torque, balance.ground_power, *mechanical_energy(balance.moved), loads
    )


def _ground_power(moved: Moved, loads: Loads) -> Array:
    names = [body.name for body in moved.model.bodies]
    turn = to_model_axes(moved.model).T
    power = np.zeros(len(loads.time))
    for k, name in enumerate(loads.body):
        body = names.index(name)
        power += (loads.force[:, k] @ turn * moved.point_velocity(body, loads.point[:, k] @ turn)).sum(axis=-1)
        power += (loads.moment[:, k] @ turn * moved.spin[body].T).sum(axis=-1)
    return power


def _balance(books: Books, root: list[int]) -> tuple[float, float]:
    """Largest difference between work and energy [J], and the positive work of the joints [J]."""
    done = _running(books.time, books.power.sum(axis=1) + books.ground)
    total = books.kinetic + books.potential
    error = float(np.abs(done - (total - total[0])).max())
    joints = np.delete(books.power, root, axis=1)
    return error, float(_integral(books.time, np.maximum(joints, 0.0)).sum())


def _belt(books: Books, model: Model, given: tuple[float, float, float] | None) -> Array:
    """Velocity of the ground [m/s], lab axes."""
    if given is not None:
        return np.array(given, dtype=float)
    if books.loads is None:
        return np.zeros(3)
    if books.loads.belt is not None:
        return np.array(books.loads.belt)
    names = [body.name for body in model.bodies]
    turn = to_model_axes(model)
    seen, weights = [], []
    for k, name in enumerate(books.loads.body):
        normal = books.loads.force[:, k, 2]
        firm = normal > LOADED
        points = books.loads.point[:, k] @ turn.T
        seen.append((books.moved.point_velocity(names.index(name), points) @ turn)[firm])
        weights.append(normal[firm])
    velocity, weight = np.concatenate(seen), np.concatenate(weights)
    if not len(velocity):
        return np.zeros(3)
    mean = np.array([_weighted_median(velocity[:, i], weight) for i in range(2)])
    return np.array([*mean, 0.0]) if np.linalg.norm(mean) > STANDING else np.zeros(3)


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    share = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(share, 0.5 * share[-1])])


def _account(
    torques: Torques, frames: Books, books: Books, root: list[int], belt: Array
) -> tuple[Dataset, dict[str, float]]:
    """The dataset at the frames, with work summed over the books; and the scalars."""
    import xarray as xr

    model = torques.motion.model
    turn = to_model_axes(model)
    mass = float(sum(body.mass for body in model.bodies))
    center, velocity = (
        np.einsum("b,bif->fi", frames.moved.masses, values) / mass @ turn
        for values in (frames.moved.center, frames.moved.center_velocity)
    )
    positive, negative, effort = work_of(books, slice(None))
    residual = frames.power[:, root].sum(axis=1)
    joint = frames.power.sum(axis=1) - residual
    by_time, by_coordinate, watts, joules = ("time",), ("coordinate",), {"units": "W"}, {"units": "J"}
    variables: dict[str, Any] = {
        "power": (("time", "coordinate"), frames.power, watts),
        "joint_power": (by_time, joint, watts),
        "residual_power": (by_time, residual, watts),
        "ground_power": (by_time, frames.ground, watts),
        "kinetic_energy": (by_time, frames.kinetic, joules),
        "potential_energy": (by_time, frames.potential, joules),
        "mechanical_energy": (by_time, frames.kinetic + frames.potential, joules),
        "center_of_mass": (("time", "axis"), center, {"units": "m", "frame": LAB}),
        "center_of_mass_velocity": (("time", "axis"), velocity, {"units": "m/s", "frame": LAB}),
        "work_positive": (by_coordinate, positive, joules),
        "work_negative": (by_coordinate, negative, joules),
        "effort": (by_coordinate, effort, {"units": "N m s or N s"}),
    }
    coords: dict[str, Any] = {
        "time": ("time", frames.time, {"units": "s"}),
        "coordinate": [c.name for c in model.coordinates],
        "axis": list(AXES),
    }
    summary = _summary(books, root, mass, velocity - belt, frames.time, (positive, negative, effort))
    if frames.loads is not None:
        power = np.einsum("fki,fi->fk", frames.loads.force, velocity - belt)
        variables["center_of_mass_power"] = (("time", "foot"), power, watts)
        coords["foot"] = list(frames.loads.name)
        summary["center_of_mass_work_positive_j"] = float(_integral(frames.time, np.maximum(power, 0.0)).sum())
        summary["center_of_mass_work_negative_j"] = float(_integral(frames.time, np.minimum(power, 0.0)).sum())
    cycles = strides(torques.motion, frames.time)
    if cycles:
        parts = [work_of(books, _slice(books.time, stride.start, stride.stop)) for stride in cycles]
        for i, name in enumerate(("cycle_work_positive", "cycle_work_negative", "cycle_effort")):
            units = {"units": "N m s or N s"} if name == "cycle_effort" else joules
            variables[name] = (("cycle", "coordinate"), np.array([part[i] for part in parts]), units)
        coords["cycle"] = np.arange(len(cycles))
        coords["cycle_side"] = ("cycle", [stride.side for stride in cycles])
        coords["cycle_start"] = ("cycle", [stride.start for stride in cycles], {"units": "s"})
        coords["cycle_stop"] = ("cycle", [stride.stop for stride in cycles], {"units": "s"})
        joints = np.delete(variables["cycle_work_positive"][1], root, axis=1).sum(axis=1)
        summary["work_per_cycle_j_per_kg"] = float(joints.mean() / mass)
    return xr.Dataset(variables, coords, {"mass_kg": mass}), summary


def work_of(books: Books, span: slice) -> tuple[Array, Array, Array]:
    """Positive and negative work [J] and effort [N m s or N s] of every coordinate over a span of the books."""
    time, power, torque = books.time[span], books.power[span], books.torque[span]
    return (
        _integral(time, np.maximum(power, 0.0)), _integral(time, np.minimum(power, 0.0)),
        _integral(time, np.abs(torque)),
    )  # fmt: skip


def _summary(
    books: Books, root: list[int], mass: float, over_ground: Array, time: Array, work: tuple[Array, Array, Array]
) -> dict[str, float]:
    positive, negative, effort = (float(np.delete(part, root).sum()) for part in work)
    residual = books.power[:, root].sum(axis=1)
    way = _integral(time, over_ground[:, :2])
    distance = float(np.linalg.norm(way))
    duration = float(time[-1] - time[0])
    total = books.kinetic + books.potential
    return {
        "work_j": positive,
        "work_negative_j": negative,
        "work_net_j": positive + negative,
        "work_j_per_kg": positive / mass,
        "effort": effort,
        "effort_per_kg": effort / mass,
        "distance_m": distance,
        "speed_m_per_s": distance / duration,
        "cost_j_per_kg_m": positive / (mass * distance) if distance >= TRAVEL else float("nan"),
        "residual_work_net_j": float(_integral(books.time, residual)),
        "residual_work_absolute_j": float(_integral(books.time, np.abs(residual))),
        "ground_work_j": float(_integral(books.time, books.ground)),
        "energy_change_j": float(total[-1] - total[0]),
    }


def _slice(time: Array, start: float, stop: float) -> slice:
    return slice(int(np.searchsorted(time, start - 1e-9)), int(np.searchsorted(time, stop + 1e-9)))


def _integral(time: Array, values: Array) -> Array:
    """The sum over time, along the first axis, by trapezoids."""
    steps = np.diff(time).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray((0.5 * (values[1:] + values[:-1]) * steps).sum(axis=0))


def _running(time: Array, values: Array) -> Array:
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(time)
    return np.concatenate([[0.0], np.cumsum(steps)])
