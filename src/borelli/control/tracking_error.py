"""How far a character strayed from its motion, when it came back, and what led its root."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.control.perturbations import MoveGround, Perturbation, Push
from borelli.model.kinematics import poses
from borelli.model.model import GROUND, Model

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

RETURNED = 0.005
"""Root mean square distance of bodies from where the motion has them [m] at which a character has come back."""


def root_coordinates(model: Model) -> tuple[str, ...]:
    """Coordinates of joints that let a body shift freely on the ground: no muscle could move them."""
    names: list[str] = []
    for joint in model.joints:
        shifts = [c for c in joint.coordinates if not c.rotational]
        if joint.parent == GROUND and len(joint.coordinates) > 2 and shifts:
            names += [c.name for c in joint.coordinates]
    return tuple(names)


def deviation(data: Dataset, model: Model, table: Array) -> Array:
    """Root mean square distance (time,) [m] of the model's bodies from those of its motion (time, coordinates)."""
    wanted = poses(model, table)[0]
    there = data["body_position"].sel(body=[body.name for body in model.bodies]).values
    return np.asarray(np.sqrt(((there - wanted) ** 2).sum(axis=-1).mean(axis=-1)))


def returned_after(time: Array, deviations: Array, since: float, within: float = RETURNED) -> float | None:
    """Seconds after `since` from which on the deviation stays within a bound [m]; None: not before the end."""
    if not deviations[-1] <= within:
        return None
    outside = np.flatnonzero(~(deviations <= within))
    back = time[outside[-1] + 1] if len(outside) else time[0]
    return max(0.0, float(back - since))


def span_of(perturbation: Perturbation) -> tuple[float, float]:
    """When it begins and ends [s]; loads are there all the time."""
    if isinstance(perturbation, Push | MoveGround):
        return perturbation.start, perturbation.start + perturbation.duration
    return float(getattr(perturbation, "start", 0.0)), float(getattr(perturbation, "end", inf))


def measured(data: Dataset, model: Model, table: Array, perturbations: Sequence[Perturbation]) -> Dataset:
    """The result of a run with its deviation from the motion (time, coordinates) and what led the root.

    Adds `deviation` [m], `root_force` [body weights] and `root_torque` [body weights times m], by time; and the
    attributes `weight` [N], `disturbed` (spans [s] of what is not for good), `over` (when the last of them ends [s])
    and `returned` (when it was back for good [s], or not a number).
    """
    weight = sum(body.mass for body in model.bodies) * float(np.linalg.norm(model.gravity) or 9.81)
    root, used = root_coordinates(model), {}
    for name, turning, units in (("root_force", False, "body weights"), ("root_torque", True, "body weights m")):
        names = [c.name for c in model.coordinates if c.name in root and c.rotational == turning]
        size = np.linalg.norm(data["torque"].sel(coordinate=names).values, axis=1) / weight
        used[name] = ("time", size, {"units": units})
    off = deviation(data, model, table)
    spans = [span_of(p) for p in perturbations]
    # what is for good counts from when it begins
    over = max((end if end < inf else start for start, end in spans), default=0.0)
    back = returned_after(data["time"].values, off, over)
    return data.assign({"deviation": ("time", off, {"units": "m"}), **used}).assign_attrs(
        weight=weight,
        disturbed=json.dumps([span for span in spans if span[1] < inf]),
        over=over,
        returned=float("nan") if back is None else over + back,
    )


def figures_of(data: Dataset) -> dict[str, float | None]:
    """What is worth knowing of a performance, by name with unit."""
    time, off, weight = data["time"].values, data["deviation"].values, data.attrs["body_weight_n"]
    worst, back = int(np.argmax(off)), data.attrs["recovered_at_s"] - data.attrs["perturbation_end_s"]
    force, torque = data["root_force"].values[1:], data["root_torque"].values[1:]
    ground = data["ground_reaction_force"].values[1:].sum(axis=1).mean(axis=0)
    return {
        "duration [s]": float(time[-1]),
        "disturbed until [s]": float(data.attrs["perturbation_end_s"]),
        "largest deviation [m]": float(off[worst]),
        "largest deviation at [s]": float(time[worst]),
        "deviation at the end [m]": float(off[-1]),
        f"back within {1e3 * RETURNED:g} mm after [s]": float(back) if np.isfinite(back) else None,
        "body weight [N]": float(weight),
        "root's force, largest [N]": float(weight * force.max()),
        "root's force, rms [N]": float(weight * np.sqrt((force**2).mean())),
        "root's torque, largest [N m]": float(weight * torque.max()),
        "root's torque, rms [N m]": float(weight * np.sqrt((torque**2).mean())),
        "ground force, mean [N]": float(np.linalg.norm(ground)),
    }
