"""Energy of a motion: the power of every joint, its work, and the energy balance.

The balance error is the largest difference, at any time, between work done and energy gained, as a fraction of the
positive work of the joints. If the frames are too coarse for it, times between them are taken from the same splines.
The balance includes the work of the residual, which is therefore also reported by itself, net and absolute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.analysis.dynamics.rnea import mechanical_energy
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy_balance import (
    EnergyBalance,
    balance_at_frames,
    balance_between_frames,
    belt_velocity,
)
from borelli.analysis.motion import AXES, to_model_axes
from borelli.analysis.strides import find_strides, stride_labels
from borelli.files.html_repr import Summary, main_series, summary_html, summary_repr
from borelli.numerics.vectors import Array
from borelli.recording.recording import LAB, Note

if TYPE_CHECKING:
    from xarray import Dataset

MAX_BALANCE_ERROR = 5e-4
"""Fraction of the positive work by which the balance at the frames may err before times between them are used."""
MAX_TIMES_PER_FRAME = 40
"""Times per frame that are then used at most; the error falls with their square."""
MIN_DISTANCE = 0.5
"""[m] A body that moves less far over the ground has no cost of transport."""


@dataclass(frozen=True)
class Energy:
    """Power, work and energy of a motion.

    Attributes:
        torques: Torques they were computed from.
        data: By time `joint_power` of every coordinate, `total_joint_power`, `residual_power`, `ground_power`,
            `numerical_power` of simulation steps [W], `kinetic_energy`, `potential_energy`, `mechanical_energy` [J],
            `center_of_mass` [m] and its velocity, and `center_of_mass_power` of each foot [W]; by coordinate
            `positive_work`, `negative_work` [J] and `torque_time_integral` [N m s or N s]; by stride the same. The
            attribute `energy_balance_error_percent` is in % of the positive work.
        summary: Scalars: see `docs/theory.md`.
        notes: Assumptions and problems.
    """

    torques: Torques
    data: Dataset
    summary: Mapping[str, float]
    notes: tuple[Note, ...] = ()

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        motion, data = self.torques.motion, self.data
        rows = [
            ("model", motion.model.name),
            ("frames", f"{data.sizes['time']} at {motion.rate:g} Hz"),
            ("positive work", f"{self.summary['positive_work_j']:.1f} J"),
            ("speed", f"{self.summary['speed_m_per_s']:.2f} m/s"),
            ("energy balance error", f"{self.balance_error:.2g} %"),
            ("notes", len(self.notes)),
        ]
        time = data["time"].values.tolist()
        return Summary(
            "Energy", rows, time, main_series(data, "joint_power"), "Joint powers with the largest range [W]"
        )

    @property
    def balance_error(self) -> float:
        """Largest difference between work and energy [% of the positive work of the joints]."""
        return float(self.data.attrs["energy_balance_error_percent"])


def compute_energy(torques: Torques, *, belt: tuple[float, float, float] | None = None) -> Energy:
    """Compute power, work and energy of a motion.

    Args:
        torques: Of either method.
        belt: Velocity of a treadmill belt [m/s], lab axes. Default: that of the loaded points of the feet, if it is
            faster than 0.2 m/s, else zero.

    Returns:
        Power [W], work [J] and energy [J].

    Examples:
        >>> walk = bo.synthetic_recording("walk")
        >>> torques = bo.inverse_dynamics(bo.inverse_kinematics(walk.model, walk.recording))
        >>> energy = bo.compute_energy(torques)
        >>> energy.data.attrs["energy_balance_error_percent"] < 0.1
        True
    """
    frames = fine = balance_at_frames(torques)
    factor = _refinement(torques, frames)
    if factor > 1:
        times = np.linspace(frames.time[0], frames.time[-1], factor * (len(frames.time) - 1) + 1)
        fine = balance_between_frames(torques, times)
    ground = belt_velocity(fine) if belt is None else np.array(belt, dtype=float)
    positive = fine.positive_work
    error = 100.0 * fine.error / positive if positive > 0.0 else 0.0
    data, summary = _datasets(torques, frames, fine, ground)
    if not frames.evaluated.any():  # nothing was evaluated, which is not zero work
        error, summary = float("nan"), dict.fromkeys(summary, float("nan")) | {"evaluated_s": 0.0}
    data.attrs |= {"energy_balance_error_percent": error, "belt_velocity": [float(v) for v in ground]}
    notes = []
    if belt is None and np.any(ground):
        speed = float(np.linalg.norm(ground))
        text = f"Treadmill belt: {speed:.2f} m/s, inferred from the velocity of loaded feet."
        notes.append(Note(text, "inferred", "compute_energy(belt=...)", code="belt_velocity"))
    if not frames.evaluated.all():
        part, whole = (float((np.diff(frames.time) * one).sum()) for one in (frames.evaluated, 1.0))
        text = f"Work and cost are evaluated over {part:.2f} of {whole:.2f} s, where the GRF is known."
        notes.append(Note(text, "problem", "compare trials by positive_work_j / evaluated_s", code="evaluated_time"))
    return Energy(torques, data, summary | {"energy_balance_error_percent": error}, tuple(notes))


def _refinement(torques: Torques, frames: EnergyBalance) -> int:
    """Return the number of times per frame for the balance: the error of the trapezoidal rule falls with its square."""
    if torques.derivatives is None or "joint_power" in torques.data or not frames.evaluated.any():
        return 1
    allowed = MAX_BALANCE_ERROR * frames.positive_work
    if frames.error <= allowed:
        return 1
    factor = int(np.ceil(np.sqrt(5.0 * frames.error / allowed))) if allowed > 0.0 else MAX_TIMES_PER_FRAME
    return min(factor, MAX_TIMES_PER_FRAME)


def _datasets(
    torques: Torques, frames: EnergyBalance, fine: EnergyBalance, belt: Array
) -> tuple[Dataset, dict[str, float]]:
    """Return the dataset at the frames, with work from the fine balance; and the scalars."""
    import xarray as xr

    model = torques.motion.model
    rotation = to_model_axes(model)
    kinematics = frames.kinematics
    masses = kinematics.masses
    mass = float(masses.sum())
    center, velocity = (
        np.einsum("b,bif->fi", masses, values) / mass @ rotation
        for values in (kinematics.center, kinematics.center_velocity)
    )
    kinetic, potential = mechanical_energy(kinematics)
    positive, negative, integral = fine.work()
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
        "torque_time_integral": (by_coordinate, integral, {"units": "N m s or N s"}),
    }
    coords: dict[str, Any] = {
        "time": ("time", frames.time, {"units": "s"}),
        "coordinate": [c.name for c in model.coordinates],
        "axis": list(AXES),
    }
    over_ground = velocity - belt
    duration = float((np.diff(frames.time) * frames.evaluated).sum())
    displacement = frames.change(center) - duration * belt
    summary = _summary(fine, mass, displacement[:2], duration, (positive, negative, integral))
    if frames.loads is not None:
        on_center = np.einsum("fki,fi->fk", frames.loads.force, over_ground)
        variables["center_of_mass_power"] = (("time", "foot"), on_center, watts)
        coords["foot"] = list(frames.loads.name)
        summary["center_of_mass_positive_work_j"] = float(frames.integrate(np.maximum(on_center, 0.0)).sum())
        summary["center_of_mass_negative_work_j"] = float(frames.integrate(np.minimum(on_center, 0.0)).sum())
    strides = find_strides(torques.motion, frames.time)
    if strides:
        # NaN for strides with unknown ground reaction force
        unknown = (np.full(len(positive), np.nan),) * 3
        parts = [fine.work(s.start, s.end) if fine.is_evaluated(s.start, s.end) else unknown for s in strides]
        for i, name in enumerate(("stride_positive_work", "stride_negative_work", "stride_torque_time_integral")):
            units = {"units": "N m s or N s"} if name == "stride_torque_time_integral" else joules
            variables[name] = (("stride", "coordinate"), np.array([part[i] for part in parts]), units)
        coords |= stride_labels(strides)
        sums = [total for part in parts if np.isfinite(total := float(part[0].sum()))]
        summary["positive_work_per_stride_j_per_kg"] = float(np.mean(sums)) / mass if sums else float("nan")
    return xr.Dataset(variables, coords, {"mass_kg": mass}), summary


def _summary(
    balance: EnergyBalance, mass: float, displacement: Array, duration: float, work: tuple[Array, ...]
) -> dict[str, float]:
    positive, negative, integral = (float(part.sum()) for part in work)
    distance = float(np.linalg.norm(displacement))
    return {
        "evaluated_s": duration,
        "positive_work_j": positive,
        "negative_work_j": negative,
        "net_work_j": positive + negative,
        "positive_work_j_per_kg": positive / mass,
        "torque_time_integral_nms": integral,
        "torque_time_integral_nms_per_kg": integral / mass,
        "distance_m": distance,
        "speed_m_per_s": distance / duration if duration > 0.0 else float("nan"),
        "cost_of_transport_j_per_kg_m": positive / (mass * distance) if distance >= MIN_DISTANCE else float("nan"),
        "residual_work_net_j": float(balance.integrate(balance.residual)),
        "residual_work_absolute_j": float(balance.integrate(np.abs(balance.residual))),
        "ground_work_j": float(balance.integrate(balance.ground)),
        "numerical_work_net_j": float(balance.integrate(balance.numerical)),
        "numerical_work_absolute_j": float(balance.integrate(np.abs(balance.numerical))),
        "energy_change_j": float(balance.change(balance.total)),
    }
