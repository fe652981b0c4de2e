"""Energy: the power of every joint, what work it did, and whether the books balance.

The balance is the largest difference, at any time, between work done and energy gained, as a share of the positive work
of the joints. Where frames are too coarse for it, times between them are taken from the same splines. It says nothing
of the residual, whose work is therefore given by itself, net and absolute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.rnea import mechanical_energy
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy_balance import Books, belt_velocity, books_at_frames, books_between
from borelli.analysis.motion import AXES, to_model_axes
from borelli.analysis.strides import find_strides
from borelli.recording.recording import LAB, Note

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

COARSE = 5e-4
"""Frames are too coarse where the balance errs by more than this share of the positive work."""
FINEST = 40
"""At most so many times are then taken for each frame: as many as make the error, which falls with their square,
small."""
TRAVEL = 0.5
"""A body that moves less far [m] over the ground does not travel, and has no cost of transport."""


@dataclass(frozen=True)
class Energy:
    """What a motion cost, mechanically.

    Attributes:
        torques: What they were computed from.
        data: By time `power` of every coordinate [W], `joint_power`, `residual_power`, `ground_power`,
            `numerical_power` of the steps themselves [W], `kinetic_energy`, `potential_energy`, `mechanical_energy`
            [J], `center_of_mass` [m] and its velocity, and `center_of_mass_power` of each foot [W]; by coordinate
            `work_positive`, `work_negative` [J] and `effort` [N m s or N s]; by stride the same. The attribute
            `balance_error` is in % of the positive work.
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
        return float(self.data.attrs["energy_balance_error_percent"])


def compute_energy(torques: Torques, *, belt: tuple[float, float, float] | None = None) -> Energy:
    """Power, work and energy of a motion whose torques are known.

    Args:
        torques: Of either method.
        belt: How the ground moves [m/s], lab axes: a treadmill's belt. By default that of the points of the feet that
            carry load, where forces are known and it is faster than 0.2 m/s.
    """
    frames = books = books_at_frames(torques)
    finer = _refinement(torques, frames)
    if finer > 1:
        books = books_between(torques, np.linspace(frames.time[0], frames.time[-1], finer * (len(frames.time) - 1) + 1))
    ground = belt_velocity(books) if belt is None else np.array(belt, dtype=float)
    positive = books.positive
    balance = 100.0 * books.error / positive if positive > 0.0 else 0.0
    data, summary = _account(torques, frames, books, ground)
    if not frames.counted.any():  # nothing was summed, which is not nothing done
        balance, summary = float("nan"), dict.fromkeys(summary, float("nan")) | {"evaluated_s": 0.0}
    data.attrs |= {"energy_balance_error_percent": balance, "belt_velocity": [float(v) for v in ground]}
    notes = []
    if belt is None and np.any(ground):
        speed = float(np.linalg.norm(ground))
        said = f"the ground moves at {speed:.2f} m/s under the feet that carry load: taken as a treadmill's belt"
        notes.append(Note(said, "inferred", "energy(belt=...)"))
    if not frames.counted.all():
        told, whole = (float((np.diff(frames.time) * part).sum()) for part in (frames.counted, 1.0))
        said = f"work and cost are summed over {told:.2f} of {whole:.2f} s: where the forces under the feet are known"
        notes.append(Note(said, "problem", "compare trials by positive_work_j / evaluated_s"))
    return Energy(torques, data, summary | {"energy_balance_error_percent": balance}, tuple(notes))


def _refinement(torques: Torques, frames: Books) -> int:
    """How many times a frame the books are to be kept: the error of trapezoids falls with their square."""
    if torques.derivatives is None or "joint_power" in torques.data or not frames.counted.any():
        return 1
    allowed = COARSE * frames.positive
    if frames.error <= allowed:
        return 1
    return min(int(np.ceil(np.sqrt(5.0 * frames.error / allowed))) if allowed > 0.0 else FINEST, FINEST)


def _account(torques: Torques, frames: Books, books: Books, belt: Array) -> tuple[Dataset, dict[str, float]]:
    """The dataset at the frames, with work summed over the books; and the scalars."""
    import xarray as xr

    model = torques.motion.model
    turn = to_model_axes(model)
    moved = frames.moved
    mass = float(moved.masses.sum())
    center, velocity = (
        np.einsum("b,bif->fi", moved.masses, values) / mass @ turn for values in (moved.center, moved.center_velocity)
    )
    kinetic, potential = mechanical_energy(moved)
    positive, negative, effort = books.work()
    power = np.asarray(torques.data["torque"].values * torques.data["coordinate_velocity"].values)
    by_time, by_coordinate, watts, joules = ("time",), ("coordinate",), {"units": "W"}, {"units": "J"}
    variables: dict[str, Any] = {
        "joint_power": (("time", "coordinate"), power, watts),
        "total_joint_power": (by_time, frames.power.sum(axis=1), watts),
        "residual_power": (by_time, frames.residual, watts),
        "ground_power": (by_time, frames.ground, watts),
        "numerical_power": (by_time, frames.numerical, watts),
        "kinetic_energy": (by_time, kinetic, joules),
        "potential_energy": (by_time, potential, joules),
        "mechanical_energy": (by_time, frames.total, joules),
        "center_of_mass": (("time", "axis"), center, {"units": "m", "frame": LAB}),
        "center_of_mass_velocity": (("time", "axis"), velocity, {"units": "m/s", "frame": LAB}),
        "positive_work": (by_coordinate, positive, joules),
        "negative_work": (by_coordinate, negative, joules),
        "torque_time_integral": (by_coordinate, effort, {"units": "N m s or N s"}),
    }
    coords: dict[str, Any] = {
        "time": ("time", frames.time, {"units": "s"}),
        "coordinate": [c.name for c in model.coordinates],
        "axis": list(AXES),
    }
    over_ground = velocity - belt
    summed = float((np.diff(frames.time) * frames.counted).sum())
    way = frames.gain(center) - summed * belt
    summary = _summary(books, mass, way[:2], summed, (positive, negative, effort))
    if frames.loads is not None:
        on_center = np.einsum("fki,fi->fk", frames.loads.force, over_ground)
        variables["center_of_mass_power"] = (("time", "foot"), on_center, watts)
        coords["foot"] = list(frames.loads.name)
        summary["center_of_mass_positive_work_j"] = float(frames.sum(np.maximum(on_center, 0.0)).sum())
        summary["center_of_mass_negative_work_j"] = float(frames.sum(np.minimum(on_center, 0.0)).sum())
    cycles = find_strides(torques.motion, frames.time)
    if cycles:
        # of a stride whose forces are not all known no sum is told
        parts = [
            books.work(c.start, c.stop) if books.counts(c.start, c.stop) else (np.full(len(positive), np.nan),) * 3
            for c in cycles
        ]
        for i, name in enumerate(("stride_positive_work", "stride_negative_work", "stride_torque_time_integral")):
            units = {"units": "N m s or N s"} if name == "stride_torque_time_integral" else joules
            variables[name] = (("cycle", "coordinate"), np.array([part[i] for part in parts]), units)
        coords["cycle"] = np.arange(len(cycles))
        coords["stride_side"] = ("cycle", [stride.side for stride in cycles])
        coords["stride_start"] = ("cycle", [stride.start for stride in cycles], {"units": "s"})
        coords["stride_end"] = ("cycle", [stride.stop for stride in cycles], {"units": "s"})
        sums = [sum_ for part in parts if np.isfinite(sum_ := float(part[0].sum()))]
        summary["positive_work_per_stride_j_per_kg"] = float(np.mean(sums)) / mass if sums else float("nan")
    return xr.Dataset(variables, coords, {"mass_kg": mass}), summary


def _summary(books: Books, mass: float, way: Array, summed: float, work: tuple[Array, ...]) -> dict[str, float]:
    positive, negative, effort = (float(part.sum()) for part in work)
    distance = float(np.linalg.norm(way))
    return {
        "evaluated_s": summed,
        "positive_work_j": positive,
        "negative_work_j": negative,
        "net_work_j": positive + negative,
        "positive_work_j_per_kg": positive / mass,
        "torque_time_integral": effort,
        "torque_time_integral_nms_per_kg": effort / mass,
        "distance_m": distance,
        "speed_m_per_s": distance / summed if summed > 0.0 else float("nan"),
        "cost_of_transport_j_per_kg_m": positive / (mass * distance) if distance >= TRAVEL else float("nan"),
        "residual_work_net_j": float(books.sum(books.residual)),
        "residual_work_absolute_j": float(books.sum(np.abs(books.residual))),
        "ground_work_j": float(books.sum(books.ground)),
        "numerical_work_net_j": float(books.sum(books.numerical)),
        "numerical_work_absolute_j": float(books.sum(np.abs(books.numerical))),
        "energy_change_j": float(books.gain(books.total)),
    }
