"""Fractions of frames in which 95 % intervals contain the truth, by quantity."""

from typing import NamedTuple

import numpy as np

LEG = ("hip", "knee", "ankle")
UNMEASURED = ("root", "toe")
"""Coordinates that are not compared: the toes have no markers in these sets, and their angle stays at rest."""
LOADED, FIRM = 20.0, 0.2
"""[N] of a foot on the ground, and body weights of one whose center of pressure is compared."""


class Coverage(NamedTuple):
    """Where intervals contain the truth, with the RMS error of the values, the RMS of the sd, and their ratio."""

    inside: np.ndarray
    error: float
    sd: float
    z: float


def coverage(trial, uncertainty, energy):
    """Return the coverage of angles, moments, ground reaction forces and work."""
    truth, found = trial.truth.torques.data, uncertainty.groups["torques"]
    value = energy.torques.data
    step = round(1.0 / (energy.torques.motion.rate * (truth["time"].values[1] - truth["time"].values[0])))
    at = np.rint((value["time"].values - truth["time"].values[0]) * energy.torques.motion.rate).astype(int) * step
    truth = truth.isel(time=at)
    names = list(map(str, value["coordinate"].values))
    units = value["coordinate_units"].values
    leg = [i for i, n in enumerate(names) if n.startswith(LEG)]
    others = [i for i, n in enumerate(names) if units[i] == "rad" and i not in leg and not n.startswith(UNMEASURED)]

    def compare(name, index, where=None, factor=1.0):
        parts = [found[f"{name}_{end}"].values[index] for end in ("low", "high", "sd")]
        true, own = truth[name].values[index], value[name].values[index]
        return judge(true, own, *parts, where, factor)

    both = np.s_[:, leg], np.s_[:, others]
    result = {
        "leg angles [deg]": compare("coordinate_value", both[0], factor=57.3),
        "other angles [deg]": compare("coordinate_value", both[1], factor=57.3),
    }
    for joint in LEG:
        own = [i for i, n in enumerate(names) if n.startswith(joint)]
        result[f"{joint} moments [N m]"] = compare("torque", np.s_[:, own])
    result["other moments [N m]"] = compare("torque", both[1])
    force = truth["ground_reaction_force"].values
    loaded = force[..., 2] > LOADED
    firm = force[..., 2] > FIRM * 9.81 * trial.mass
    for k, axis in enumerate(("forward", "sideways", "vertical")):
        result[f"GRF {axis} [N]"] = compare("ground_reaction_force", np.s_[..., k], loaded)
    total = {n: _total(trial.truth, energy, uncertainty, n) for n in ("positive_work_j", "negative_work_j")}
    result |= {f"{name[:13]} [J]": one for name, one in total.items()}
    for k, axis in enumerate(("forward", "sideways")):
        result[f"COP {axis} [mm]"] = compare("center_of_pressure", np.s_[..., k], firm, 1e3)
    return result


def judge(true, own, low, high, sd, where=None, factor=1.0):
    """Return the coverage of values with an interval, `where` requested."""
    known = np.isfinite(true) & np.isfinite(low) & np.isfinite(own) & (True if where is None else where)
    inside = ((low <= true) & (true <= high))[known]
    error, spread = factor * (own - true)[known], factor * sd[known]
    z = np.sqrt(np.mean((error / np.maximum(spread, 1e-9)) ** 2))
    return Coverage(inside, float(np.sqrt(np.mean(error**2))), float(np.sqrt(np.mean(spread**2))), float(z))


def _total(truth, energy, uncertainty, name):
    interval = uncertainty.summary[name]
    one = [
        np.array([x])
        for x in (truth.summary[name], energy.summary[name], *(interval[k] for k in ("low", "high", "sd")))
    ]
    return judge(*one)
