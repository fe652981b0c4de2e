"""Co-contraction: the cost of stiffening joints by antagonistic muscles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from borelli.analysis.energetics.energy import Energy
from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model


def cocontraction(
    result: Energy,
    torque: Mapping[str, float] | float | None = None,
    *,
    stiffness: Mapping[str, float] | None = None,
    stiffness_per_torque: float | None = None,
) -> dict[str, float]:
    """Compute the cost of a motion whose joints are stiffened by co-contraction: entries of the summary of `result`.

    Both muscle groups pull by c more than the motion needs: the net torque stays, but one group shortens and does the
    positive work c |u| dt, the other lengthens and absorbs it, and the torque-time integral rises by 2 c dt.

    c [N m] is `torque`, one for all joints or by coordinate, or follows from the required joint `stiffness` K by
    coordinate [N m/rad]: K = s (|torque| + 2 c), with s the `stiffness_per_torque` of a group [1/rad].
    """
    model, data = result.torques.motion.model, result.torques.data
    names = [c.name for c in model.coordinates]
    net = np.abs(data["torque"].values)
    extra = np.zeros_like(net)
    if isinstance(torque, Mapping):
        for name, value in torque.items():
            extra[:, _column(names, name)] = _not_negative(name, value)
    elif torque is not None:
        extra[:, _actuated(model)] = _not_negative("torque", torque)
    if stiffness:
        if stiffness_per_torque is None or not stiffness_per_torque > 0.0:
            raise SettingsError("stiffness: It needs a positive stiffness_per_torque [1/rad].")
        for name, value in stiffness.items():
            column = _column(names, name)
            required = 0.5 * (_not_negative(name, value) / stiffness_per_torque - net[:, column])
            extra[:, column] = np.maximum(extra[:, column], required)
    time = data["time"].values
    weight = np.gradient(time)
    weight[[0, -1]] *= 0.5
    work = float(weight @ (extra * np.abs(data["coordinate_velocity"].values)).sum(axis=1))
    summary = result.summary
    positive = summary["positive_work_j"] + work
    return {
        "positive_work_j": positive,
        "negative_work_j": summary["negative_work_j"] - work,
        "torque_time_integral_nms": summary["torque_time_integral_nms"] + 2.0 * float(weight @ extra.sum(axis=1)),
        "cost_of_transport_j_per_kg_m": summary["cost_of_transport_j_per_kg_m"] * positive / summary["positive_work_j"],
    }


def _actuated(model: Model) -> list[int]:
    """Return the columns of coordinates that muscles move: not the root's, nor locked or coupled ones."""
    others = {*root_coordinates(model), *(coupling.coordinate for coupling in model.couplings)}
    return [i for i, c in enumerate(model.coordinates) if not c.locked and c.name not in others]


def _column(names: list[str], name: str) -> int:
    if name not in names:
        raise SettingsError(unknown_name("coordinate", name, names))
    return names.index(name)


def _not_negative(what: str, value: float) -> float:
    if not 0.0 <= value < np.inf:
        raise SettingsError(f"Co-contraction of {what!r}: The value is {value}. Use zero or a positive number.")
    return float(value)
