"""Co-contraction: what it costs to stiffen joints by muscles that pull against each other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from borelli.analysis.energetics.energy import Energy
from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Model


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
        `positive_work_j`, `negative_work_j`, `effort`, `cost_of_transport_j_per_kg_m` as in the summary, with the co-contraction.
    """
    model, data = result.torques.motion.model, result.torques.data
    names = [c.name for c in model.coordinates]
    net = np.abs(data["torque"].values)
    extra = np.zeros_like(net)
    if isinstance(torque, Mapping):
        for name, value in torque.items():
            extra[:, _column(names, name)] = _not_negative(name, value)
    elif torque is not None:
        extra[:, _driven(model)] = _not_negative("torque", torque)
    if stiffness:
        if stiffness_per_torque is None or not stiffness_per_torque > 0.0:
            raise SettingsError("stiffness needs stiffness_per_torque [1/rad], which must be positive")
        for name, value in stiffness.items():
            column = _column(names, name)
            wanted = 0.5 * (_not_negative(name, value) / stiffness_per_torque - net[:, column])
            extra[:, column] = np.maximum(extra[:, column], wanted)
    time = data["time"].values
    weight = np.gradient(time)
    weight[[0, -1]] *= 0.5
    work = float(weight @ (extra * np.abs(data["coordinate_velocity"].values)).sum(axis=1))
    summary = result.summary
    positive = summary["positive_work_j"] + work
    return {
        "positive_work_j": positive,
        "negative_work_j": summary["negative_work_j"] - work,
        "torque_time_integral": summary["torque_time_integral"] + 2.0 * float(weight @ extra.sum(axis=1)),
        "cost_of_transport_j_per_kg_m": summary["cost_of_transport_j_per_kg_m"] * positive / summary["positive_work_j"],
    }


def _driven(model: Model) -> list[int]:
    """Columns of the coordinates that muscles move: not the root's, nor what is locked or coupled."""
    held = {*root_coordinates(model), *(coupling.coordinate for coupling in model.couplings)}
    return [i for i, c in enumerate(model.coordinates) if not c.locked and c.name not in held]


def _column(names: list[str], name: str) -> int:
    if name not in names:
        raise SettingsError(unknown_name("coordinate", name, names))
    return names.index(name)


def _not_negative(what: str, value: float) -> float:
    if not 0.0 <= value < np.inf:
        raise SettingsError(f"co-contraction of {what!r} must be zero or positive, got {value}")
    return float(value)
