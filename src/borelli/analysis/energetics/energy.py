"""Energy of a motion: the power of every joint, its work, and the energy balance.

The balance error is the largest difference, at any time, between work done and energy gained, as a fraction of the
positive work of the joints. If the frames are too coarse for it, times between them are taken from the same splines.
The balance includes the work of the residual, which is therefore also reported by itself, net and absolute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from borelli.analysis.dynamics.rnea import mechanical_energy
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy_balance import (
    EnergyBalance,
    balance_at_frames,
    balance_between_frames,
    belt_velocity,
)
from borelli.analysis.motion import AXES, coordinate_labels, to_model_axes
from borelli.analysis.muscle_forces import MuscleForces
from borelli.analysis.strides import Stride, find_strides, is_jump, stride_labels
from borelli.files.html_repr import Summary, main_series, summary_html, summary_repr
from borelli.numerics.vectors import Array
from borelli.people.partial import is_partial
from borelli.recording.recording import LAB, Note

if TYPE_CHECKING:
    from xarray import Dataset

MAX_BALANCE_ERROR = 5e-4
"""Fraction of the positive work by which the balance at the frames may err before times between them are used."""
MAX_TIMES_PER_FRAME = 40
"""Times per frame that are then used at most; the error falls with their square."""
WHOLE_BODY = (
    "total_joint_power", "residual_power", "kinetic_energy", "potential_energy", "mechanical_energy", "center_of_mass",
    "center_of_mass_velocity", "center_of_mass_power",
)  # fmt: skip
"""Variables that need all parts of the body."""
MIN_DISTANCE = 0.5
"""[m] A body that moves less far over the ground has no cost of transport, and neither has a jump."""


class Totals(NamedTuple):
    """Sums over the time of a motion, or of a part of it."""

    positive: Array
    """(coordinates,) positive work [J]."""
    negative: Array
    """(coordinates,) negative work [J]."""
    integral: Array
    """(coordinates,) time integral of absolute torque [N m s or N s]."""
    displacement: Array
    """(3,) of the center of mass over the ground [m]."""
    duration: float
    """Time in which the ground reaction force is known [s]; all sums are over it."""
    whole: float
    """Time in all [s]."""
    residual_net: float
    residual_absolute: float
    ground: float
    numerical_net: float
    numerical_absolute: float
    energy_change: float
    """These six [J]: see `docs/theory.md`."""
    on_center: tuple[float, ...] | None
    """Positive and negative work on the center of mass [J]; None: loads are unknown."""
    drift: float
    """Work done less energy gained [J], at the end."""
    lowest: float
    highest: float
    """Least and largest difference of work done and energy gained [J] at any time."""

    @property
    def error(self) -> float:
        """Largest difference between work and energy at any time [J]."""
        return max(abs(self.lowest), abs(self.highest))

    def followed_by(self, after: Totals) -> Totals:
        """Return the totals of this part and the one after it."""
        sums = {name: getattr(self, name) + getattr(after, name) for name in Totals._fields[:12]}
        both = None
        if self.on_center is not None and after.on_center is not None:
            both = tuple(one + other for one, other in zip(self.on_center, after.on_center, strict=True))
        lowest, highest = self.drift + after.lowest, self.drift + after.highest
        return Totals(
            **sums, on_center=both, drift=self.drift + after.drift, lowest=min(self.lowest, lowest),
            highest=max(self.highest, highest),
        )  # fmt: skip


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
        muscles: Muscle forces, if they were computed.
    """

    torques: Torques
    data: Dataset
    summary: Mapping[str, float]
    notes: tuple[Note, ...] = ()
    muscles: MuscleForces | None = None

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


def compute_energy(source: Torques | MuscleForces, *, belt: tuple[float, float, float] | None = None) -> Energy:
    """Compute power, work and energy of a motion.

    Args:
        source: Torques of either method; or muscle forces, whose metabolic cost is then part of the summary.
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
    muscles = source if isinstance(source, MuscleForces) else None
    torques = source.torques if isinstance(source, MuscleForces) else source
    frames, fine = _balances(torques)
    ground = belt_velocity(fine.kinematics, fine.loads) if belt is None else np.array(belt, dtype=float)
    data, totals = _dataset(torques, frames, fine, ground, len(frames.time) - 1)
    data = _with_stride_work(data, fine, find_strides(torques.motion, frames.time))
    energy = finish_energy(torques, data, totals, ground, inferred=belt is None)
    if muscles is None:
        return energy
    return replace(energy, muscles=muscles, summary={**energy.summary, **_metabolic_summary(muscles, frames, totals)})


def energy_of_part(torques: Torques, frames: int, belt: Array, strides: Sequence[Stride]) -> tuple[Dataset, Totals]:
    """Return the energy of the first frames of torques, which are a part of a trial, and the part's totals.

    Args:
        torques: By "newton_euler", of these frames and of those after them that the strides need.
        frames: Number of frames that belong to the part; the span from the last of them to the next does, too.
        belt: Velocity of a treadmill belt [m/s], lab axes.
        strides: Strides that begin in the part.
    """
    coarse, fine = _balances(torques)
    spans = min(frames, len(coarse.time) - 1)
    times = (len(fine.time) - 1) // (len(coarse.time) - 1)
    own = coarse.first_spans(spans), fine.first_spans(times * spans)
    data, totals = _dataset(torques, *own, belt, spans)
    return _with_stride_work(data, fine, strides).isel(time=slice(0, frames)), totals


def finish_energy(torques: Torques, data: Dataset, totals: Totals, belt: Array, *, inferred: bool) -> Energy:
    """Return the energy from its dataset and totals; `inferred` if the velocity of the belt [m/s] was not given."""
    mass = float(data.attrs["mass_kg"])
    summary = _summary(totals, mass)
    if is_jump(torques.motion):
        summary["cost_of_transport_j_per_kg_m"] = float("nan")
    if "stride_positive_work" in data:
        rows = [float(row.sum()) for row in data["stride_positive_work"].values]
        sums = [total for total in rows if np.isfinite(total)]
        summary["positive_work_per_stride_j_per_kg"] = float(np.mean(sums)) / mass if sums else float("nan")
    positive = float(totals.positive.sum())
    error = 100.0 * totals.error / positive if positive > 0.0 else 0.0
    if not totals.duration > 0.0:  # nothing was evaluated, which is not zero work
        error, summary = float("nan"), dict.fromkeys(summary, float("nan")) | {"evaluated_s": 0.0}
    data.attrs |= {"energy_balance_error_percent": error, "belt_velocity": [float(v) for v in belt]}
    notes = []
    if inferred and np.any(belt):
        speed = float(np.linalg.norm(belt))
        text = f"Treadmill belt: {speed:.2f} m/s, inferred from the velocity of loaded feet."
        notes.append(Note(text, "inferred", "compute_energy(belt=...)", code="belt_velocity"))
    if totals.duration < totals.whole and not is_partial(torques.motion.model):
        text = (
            f"Work and cost are evaluated over {totals.duration:.2f} of {totals.whole:.2f} s, where the GRF is known."
        )
        notes.append(Note(text, "problem", "compare trials by positive_work_j / evaluated_s", code="evaluated_time"))
    return Energy(torques, data, summary | {"energy_balance_error_percent": error}, tuple(notes))


def _metabolic_summary(muscles: MuscleForces, frames: EnergyBalance, totals: Totals) -> dict[str, float]:
    """Return the mean metabolic power [W] over the evaluated time, and the metabolic cost of transport [J/(kg m)]."""
    if "metabolic_power" not in muscles.data or not totals.duration > 0.0:
        return {}
    work = float(frames.integrate(muscles.data["metabolic_power"].values))
    mass = float(muscles.data.attrs["mass_kg"])
    distance = float(np.linalg.norm(totals.displacement[:2]))
    moves = distance >= MIN_DISTANCE and not is_jump(muscles.torques.motion)
    cost = work / (mass * distance) if moves else float("nan")
    return {"metabolic_power_w": work / totals.duration, "metabolic_cost_of_transport_j_per_kg_m": cost}


def _balances(torques: Torques) -> tuple[EnergyBalance, EnergyBalance]:
    """Return the balance at the frames, and at times between them if the frames are too coarse for it."""
    frames = balance_at_frames(torques)
    factor = _refinement(torques, frames)
    if factor == 1:
        return frames, frames
    times = np.linspace(frames.time[0], frames.time[-1], factor * (len(frames.time) - 1) + 1)
    return frames, balance_between_frames(torques, times)


def _refinement(torques: Torques, frames: EnergyBalance) -> int:
    """Return the number of times per frame for the balance: the error of the trapezoidal rule falls with its square."""
    if torques.derivatives is None or "joint_power" in torques.data or not frames.evaluated.any():
        return 1
    allowed = MAX_BALANCE_ERROR * frames.positive_work
    if frames.error <= allowed:
        return 1
    factor = int(np.ceil(np.sqrt(5.0 * frames.error / allowed))) if allowed > 0.0 else MAX_TIMES_PER_FRAME
    return min(factor, MAX_TIMES_PER_FRAME)


def _dataset(
    torques: Torques, frames: EnergyBalance, fine: EnergyBalance, belt: Array, spans: int
) -> tuple[Dataset, Totals]:
    """Return the dataset at the frames, and totals over the first spans between them, with work by the fine balance."""
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
        **coordinate_labels(model),
        "axis": list(AXES),
    }
    duration, whole = (float((np.diff(frames.time) * one)[:spans].sum()) for one in (frames.evaluated, 1.0))
    on_center = None
    if frames.loads is not None:
        power = np.einsum("fki,fi->fk", frames.loads.force, velocity - belt)
        variables["center_of_mass_power"] = (("time", "foot"), power, watts)
        coords["foot"] = list(frames.loads.name)
        on_center = tuple(float(frames.integrate(edge(power, 0.0)).sum()) for edge in (np.maximum, np.minimum))
    if is_partial(model):
        for name in WHOLE_BODY:
            if name in variables:
                dims, values, attrs = variables[name]
                variables[name] = (dims, np.full_like(values, np.nan), attrs)
    totals = Totals(
        positive, negative, integral, frames.change(center) - duration * belt, duration, whole,
        float(fine.integrate(fine.residual)), float(fine.integrate(np.abs(fine.residual))),
        float(fine.integrate(fine.ground)), float(fine.integrate(fine.numerical)),
        float(fine.integrate(np.abs(fine.numerical))), float(fine.change(fine.total)), on_center,
        float(fine.drift[-1]), float(fine.drift.min()), float(fine.drift.max()),
    )  # fmt: skip
    return xr.Dataset(variables, coords, {"mass_kg": mass}), totals


def _with_stride_work(data: Dataset, fine: EnergyBalance, strides: Sequence[Stride]) -> Dataset:
    """Return the dataset with the work of each stride; NaN for strides with unknown ground reaction force."""
    if not strides:
        return data
    unknown = (np.full(data.sizes["coordinate"], np.nan),) * 3
    parts = [fine.work(s.start, s.end) if fine.is_evaluated(s.start, s.end) else unknown for s in strides]
    variables: dict[str, Any] = {}
    for i, name in enumerate(("stride_positive_work", "stride_negative_work", "stride_torque_time_integral")):
        units = {"units": "N m s or N s" if name == "stride_torque_time_integral" else "J"}
        variables[name] = (("stride", "coordinate"), np.array([part[i] for part in parts]), units)
    return data.assign(variables).assign_coords(stride_labels(strides))


def _summary(totals: Totals, mass: float) -> dict[str, float]:
    positive, negative, integral = (float(part.sum()) for part in totals[:3])
    distance, duration = float(np.linalg.norm(totals.displacement[:2])), totals.duration
    summary = {
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
        "residual_work_net_j": totals.residual_net,
        "residual_work_absolute_j": totals.residual_absolute,
        "ground_work_j": totals.ground,
        "numerical_work_net_j": totals.numerical_net,
        "numerical_work_absolute_j": totals.numerical_absolute,
        "energy_change_j": totals.energy_change,
    }
    if totals.on_center is not None:
        names = ("center_of_mass_positive_work_j", "center_of_mass_negative_work_j")
        summary |= dict(zip(names, totals.on_center, strict=True))
    return summary
