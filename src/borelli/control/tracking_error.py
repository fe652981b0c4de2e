"""Tracking error of a character, its recovery after perturbations, and the residual forces on its root."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.control.perturbations import MoveGround, Perturbation, Push
from borelli.model.kinematics import poses, tree_links
from borelli.model.model import GROUND, Model

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

RECOVERED_DISTANCE = 0.005
"""RMS distance of bodies from the motion's [m] within which a character has recovered."""


def free_root_coordinates(model: Model) -> tuple[str, ...]:
    """Return the coordinates of joints that let a body translate freely on the ground: no muscle can move them."""
    return tuple(
        c.name
        for joint in model.joints
        if joint.parent == GROUND and len(joint.coordinates) > 2 and any(not c.rotational for c in joint.coordinates)
        for c in joint.coordinates
    )


def body_tracking_error(data: Dataset, model: Model, table: Array) -> Array:
    """Return the RMS distance (time,) [m] of the model's bodies from those of its motion (time, coordinates)."""
    target = poses(model, table)[0]
    position = data["body_position"].sel(body=[body.name for body in model.bodies]).values
    return np.asarray(np.sqrt(((position - target) ** 2).sum(axis=-1).mean(axis=-1)))


def recovery_time(time: Array, error: Array, since: float, within: float = RECOVERED_DISTANCE) -> float | None:
    """Return the time [s] after `since` from which the error stays within a bound [m]; None: not before the end."""
    if not error[-1] <= within:
        return None
    outside = np.flatnonzero(~(error <= within))
    recovered = time[outside[-1] + 1] if len(outside) else time[0]
    return max(0.0, float(recovered - since))


def active_interval(perturbation: Perturbation) -> tuple[float, float]:
    """Return when a perturbation begins and ends [s]; loads are permanent."""
    if isinstance(perturbation, Push | MoveGround):
        return perturbation.start, perturbation.start + perturbation.duration
    return float(getattr(perturbation, "start", 0.0)), float(getattr(perturbation, "end", inf))


def add_tracking_error(data: Dataset, model: Model, table: Array, perturbations: Sequence[Perturbation]) -> Dataset:
    """Return the result of a run with its tracking error from the motion (time, coordinates) and the root residuals.

    Adds `body_tracking_error` [m], `root_residual_force` [N], `root_residual_moment` [N m] and `root_weight_fraction`
    (upward force on the root over the weight), by time; and the attributes `body_weight_n` [N], `root_support_percent`,
    `disturbed` (intervals [s] of temporary perturbations), `perturbation_end_s` (end of the last of them) and
    `recovered_at_s` (NaN if it did not recover).
    """
    weight = sum(body.mass for body in model.bodies) * float(np.linalg.norm(model.gravity) or 9.81)
    root, used = free_root_coordinates(model), {}
    for name, rotational, units in (("root_residual_force", False, "N"), ("root_residual_moment", True, "N m")):
        names = [c.name for c in model.coordinates if c.name in root and c.rotational == rotational]
        size = np.linalg.norm(data["torque"].sel(coordinate=names).values, axis=1)
        used[name] = ("time", size, {"units": units})
    support = root_support(data, model) / weight
    used["root_weight_fraction"] = ("time", support, {"units": "1"})
    error = body_tracking_error(data, model, table)
    intervals = [active_interval(p) for p in perturbations]
    # recovery from permanent perturbations counts from their start
    over = max((end if end < inf else start for start, end in intervals), default=0.0)
    recovery = recovery_time(data["time"].values, error, over)
    return data.assign({"body_tracking_error": ("time", error, {"units": "m"}), **used}).assign_attrs(
        body_weight_n=weight,
        root_support_percent=100.0 * float(support[1:].mean()),
        disturbed=json.dumps([interval for interval in intervals if interval[1] < inf]),
        perturbation_end_s=over,
        recovered_at_s=float("nan") if recovery is None else over + recovery,
    )


def root_support(data: Dataset, model: Model) -> Array:
    """Return the upward part (time,) [N] of the external force on the root."""
    up = -np.array(model.gravity) / (np.linalg.norm(model.gravity) or 1.0)
    total, torque = np.zeros(data.sizes["time"]), data["torque"].values
    for link in tree_links(model):
        if link.parent < 0:
            for part in link.translations:
                if part.column >= 0 and part.function is None:
                    total += torque[:, part.column] * float(link.parent_rotation @ part.axis @ up)
    return total


def tracking_metrics(data: Dataset) -> dict[str, float | None]:
    """Return the metrics of a run, by name with unit."""
    time, error, weight = data["time"].values, data["body_tracking_error"].values, data.attrs["body_weight_n"]
    worst, recovery = int(np.argmax(error)), data.attrs["recovered_at_s"] - data.attrs["perturbation_end_s"]
    force, torque = data["root_residual_force"].values[1:], data["root_residual_moment"].values[1:]
    ground = data["ground_reaction_force"].values[1:].sum(axis=1).mean(axis=0)
    recovered = f"recovered within {1e3 * RECOVERED_DISTANCE:g} mm after [s]"
    return {
        "duration [s]": float(time[-1]),
        "perturbed until [s]": float(data.attrs["perturbation_end_s"]),
        "largest tracking error [m]": float(error[worst]),
        "largest tracking error at [s]": float(time[worst]),
        "tracking error at the end [m]": float(error[-1]),
        recovered: float(recovery) if np.isfinite(recovery) else None,
        "body weight [N]": float(weight),
        "the root carries [% of the weight]": float(data.attrs["root_support_percent"]),
        "root residual force, largest [N]": float(force.max()),
        "root residual force, RMS [N]": float(np.sqrt((force**2).mean())),
        "root residual moment, largest [N m]": float(torque.max()),
        "root residual moment, RMS [N m]": float(np.sqrt((torque**2).mean())),
        "ground reaction force, mean [N]": float(np.linalg.norm(ground)),
    }
