"""Arm swing: cost of walking with clamped arms, and with co-contracted arm joints.

After Liu, Cooper and Ballard, Fig. 7: the same walk with arms fixed relative to the trunk. Ortega, Fehlman and Farley
(2008) measured 6 % more metabolic power in people who walked with folded arms. The cost is the time integral of
absolute net torque; co-contraction adds the torque of antagonists against each other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from borelli.analysis.energetics.cocontraction import cocontraction
from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.motion import Motion
from borelli.analysis.stepped.stepped_torques import SteppedTorques, stepped_torques
from borelli.experiments.experiment import Request, figure
from borelli.experiments.movement.stepped_common import (
    positive_work,
    requested_walk,
    root_deviation,
    torque_time_integral,
    with_changes,
)
from borelli.experiments.outcome import Claim, Outcome, Rows, above
from borelli.view.plot_style import BLUE, ORANGE

ARMS = ("shoulder_", "elbow_", "wrist_")
LEVELS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Co-contraction of the arm joints [N m]."""
CLAMPING = 1.0
"""Co-contraction of clamped arms [N m]."""
EDGE_DURATION = 0.25
"""Time at either end that is excluded [s]."""
MAX_RESIDUAL = 100.0
"""Residual moment about each axis [N m]."""


def run(request: Request) -> Outcome:
    """Compute the cost of a walk with swinging and with clamped arms, by stepped inverse dynamics on contacts."""
    motion = requested_walk(request)
    measured = request.recording is not None
    torques = {}
    for arms, walk in (("swinging", motion), ("clamped", clamp_arms(motion))):
        request.log(f"arms {arms}")
        torques[arms] = stepped_torques(walk, forces="contacts", residual=MAX_RESIDUAL)
    rows: list[dict[str, Any]] = [
        {"arms": arms, "cocontraction_nm": 0.0, **_metrics(result)} for arms, result in torques.items()
    ]
    swinging, clamped = rows
    names = [c.name for c in motion.model.coordinates if c.name.startswith(ARMS)]
    energy = compute_energy(torques["clamped"])
    base = cocontraction(energy, 0.0)["torque_time_integral_nms"]
    for level in LEVELS[1:3] if request.quick else LEVELS[1:]:
        extra = cocontraction(energy, dict.fromkeys(names, level))["torque_time_integral_nms"] / base
        cost = clamped["torque_time_integral_nms"] * extra
        rows.append(clamped | {"cocontraction_nm": level, "torque_time_integral_nms": cost})
    for row in rows:
        for increase, key in (("cost", "torque_time_integral_nms"), ("work", "positive_work_j")):
            row[f"{increase}_increase_percent"] = 100.0 * (row[key] / swinging[key] - 1.0)
    _draw(rows, request.plot)
    about = (
        f"{'a recorded walk' if measured else 'a synthetic walk'}, {motion.data.sizes['time']} frames at "
        f"{motion.rate:g} Hz, on contacts with a residual moment of up to {MAX_RESIDUAL:g} N m; clamped: shoulders, "
        "elbows and wrists fixed at their mean angles"
    )
    return Outcome(request.name, about, rows, _claims(rows, measured), (request.plot,))


def _claims(rows: Rows, measured: bool) -> list[Claim]:
    clamped = rows[1:]
    rise = np.diff([row["cost_increase_percent"] for row in clamped])
    # arms are clamped by co-contraction; the trunk of a synthetic walk does not respond to the arms
    stiff = next(row for row in clamped if row["cocontraction_nm"] >= CLAMPING)
    paper = "6.1 (Ortega 2008: 6)"
    claims = [
        above(f"arms clamped by {stiff['cocontraction_nm']:g} N m of co-contraction cost more [%]",
              stiff["cost_increase_percent"], paper, 0.0),
        above("cost rises with co-contraction: smallest rise of a level [%]", float(rise.min()), "rises", 0.0),
    ]  # fmt: skip
    if measured:
        net = clamped[0]["cost_increase_percent"]
        claims.insert(0, above("clamped arms cost more, net torque only [%]", net, paper, 0.0))
    return claims


def clamp_arms(motion: Motion) -> Motion:
    """Return the motion with the angles of shoulders, elbows and wrists fixed at their means."""
    q = motion.coordinates.copy()
    for i, coordinate in enumerate(motion.model.coordinates):
        if coordinate.name.startswith(ARMS):
            q[:, i] = np.nanmean(q[:, i])
    return with_changes(motion, q)


def _metrics(torques: SteppedTorques) -> dict[str, float]:
    time = torques.data["time"].values
    return {
        "torque_time_integral_nms": torque_time_integral(torques, EDGE_DURATION, float(np.ptp(time)) - EDGE_DURATION),
        "positive_work_j": positive_work(torques),
        "residual_moment_rms_nm": torques.residual_moment_rms,
        "root_deviation_m": root_deviation(torques),
    }


def _draw(rows: Rows, path: Path) -> None:
    labels = "time integral of torque [N m s]", "cost above swinging arms [%]"
    with figure(path, *labels, size=(8.0, 3.6), xlabel="") as (costs, increases):
        swinging, clamped = rows[:2]
        both = [row["torque_time_integral_nms"] for row in (swinging, clamped)]
        costs.bar([swinging["arms"], clamped["arms"]], both, color=[BLUE, ORANGE])
        costs.set(title=f"clamped: {clamped['cost_increase_percent']:+.1f} %; paper +6.1 %")
        levels = [row["cocontraction_nm"] for row in rows[1:]]
        increases.plot(levels, [row["cost_increase_percent"] for row in rows[1:]], "o-", color=ORANGE)
        increases.set(xlabel="co-contraction in the arms [N m]")
