"""Chains that stretch out level, or curl: joints do not disturb each other, whatever their load.

After Weinstein, Guendelman and Fedkiw, Fig. 7. Every joint has the same stiffness, 25, and critical damping. The level
chain is released hanging. Spring gains are scaled by the inertia outboard of each joint, which impulse-based PD does
not need; even so the chain sags, and explicit torques need steps of 1/2000 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import fsolve
from xarray import Dataset

from borelli.control.response import PD
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.pd_convergence import errors_in_time
from borelli.experiments.control.planks import (
    COLORS,
    GRAVITY,
    IMPULSE,
    METHODS,
    STABLE,
    TRADITIONAL,
    Array,
    planks,
    tip_heights,
    track_angles,
)
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, below, near

GAINS = PD(25.0)
LENGTH = 0.5
"""Length of a plank [m]."""
COUNT, LONG = 5, 20
"""Number of planks of the chain for all methods, and of the long chain."""
SECONDS = 6.0
STEPS = {IMPULSE: 1 / 60, TRADITIONAL: 1 / 2040, STABLE: 1 / 240}
"""[s]. Explicit torques chatter at 1/1500 s, and with eight planks at 1/6000 s."""
CURL_STEP_RATIO = 4.0
"""Factor by which the steps of traditional PD must be shorter for the curling chain."""
CURLED, CURL, CURL_SECONDS = 8, np.radians(40.0), 5.0
"""Number of planks of the curling chain, target angle of each hinge [rad], duration [s]."""


def chain_run(
    method: str, count: int, target: float, step: float, seconds: float, start: Mapping[str, float]
) -> Dataset:
    """Simulate a chain of planks with the same target [rad] for every hinge, from a pose at rest."""
    every = max(1, round(1 / 60 / step))
    return track_angles(
        planks(count, LENGTH), target, GAINS,
        duration=seconds, step=step, method=method, initial_coordinates=start, record_every=every,
    )  # fmt: skip


def equilibrium_angles(count: int, stiffness: float = GAINS.stiffness) -> Array:
    """Return the angles [rad] of static equilibrium of a chain with springs scaled by outboard inertia."""
    distal = np.arange(count, 0, -1)
    inertia = distal * (distal * LENGTH) ** 2 / 3.0

    def imbalance(droop: Array) -> Array:
        extent = LENGTH * np.cos(np.cumsum(droop))
        ends = np.cumsum(extent)
        midpoints = ends - 0.5 * extent
        starts = np.concatenate([[0.0], ends[:-1]])
        moments = np.array([GRAVITY * (midpoints[i:] - starts[i]).sum() for i in range(count)])
        return np.asarray(stiffness * inertia * droop - moments)

    droop: Array = fsolve(imbalance, np.full(count, 0.3), xtol=1e-12)
    return -droop


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    seconds = 2.0 if request.quick else SECONDS
    hanging = {"joint_1": -0.5 * np.pi}
    level, curled, rows = {}, {}, []
    for name, method in METHODS.items():
        request.log(f"{COUNT} planks to level, {name}")
        level[name] = chain_run(method, COUNT, 0.0, STEPS[name], seconds, hanging)
        rows.append(_row("level", name, level[name], COUNT, np.zeros(COUNT)))
        if name != TRADITIONAL or not request.quick:
            request.log(f"{CURLED} planks curl, {name}")
            step = STEPS[name] / (CURL_STEP_RATIO if name == TRADITIONAL else 1.0)
            curled[name] = chain_run(method, CURLED, CURL, step, 2.0 if request.quick else CURL_SECONDS, {})
            rows.append(_row("curl", name, curled[name], CURLED, np.full(CURLED, CURL)))
    request.log(f"{LONG} planks to level, {IMPULSE}")
    long = chain_run("impulse", LONG, 0.0, STEPS[IMPULSE], seconds, hanging)
    rows.append(_row("level", IMPULSE, long, LONG, np.zeros(LONG)))
    _draw(level, curled, request.plot)
    files = [
        *draw_runs(request, level, (0.0, 0.3, 0.6, 1.2, 6.0)),
        *draw_runs(request, curled, (0.0, 0.3, 0.6, 1.2, 5.0), suffix="-curl"),
    ]
    about = (
        f"{COUNT} and {LONG} planks of {LENGTH:g} m that stretch out level from hanging, {CURLED} that curl; "
        f"stiffness {GAINS.stiffness:g} 1/s^2 at every hinge, critical damping, gravity {GRAVITY:g} m/s^2"
    )
    return Outcome(request.name, about, rows, _claims(rows, request.quick), (request.plot, *files))


def _row(task: str, name: str, data: Dataset, count: int, target: Array) -> dict[str, Any]:
    angle = data["coordinate_value"].values
    start = angle[0] - target
    errors = errors_in_time(GAINS, STEPS[IMPULSE], float(data["time"].values[-1]))[1]
    single = target + np.outer(errors, start) if name == IMPULSE else np.full_like(angle, np.nan)
    return {
        "task": task, "method": name, "planks": count, "step_s": float(data.attrs["step_s"]),
        "largest_error_deg": float(np.degrees(np.abs(angle[-1] - target).max())),
        "from_single_joint_rad": float(np.abs(angle - single).max()),
        "tip_height_m": float(tip_heights(data, count, LENGTH)[-1]),
        "angles_deg": " ".join(f"{a:.2f}" for a in np.degrees(angle[-1])),
    }  # fmt: skip


def _claims(rows: Rows, quick: bool) -> list[Claim]:
    by_run = {(row["task"], row["method"], row["planks"]): row for row in rows}
    short, long = by_run["level", IMPULSE, COUNT], by_run["level", IMPULSE, LONG]
    curl = by_run["curl", IMPULSE, CURLED]
    claims = [
        below("impulse-based PD, 5 planks: difference from the response of a single joint [rad]",
              short["from_single_joint_rad"], "as a single joint", 1e-11, "1.8e-14"),
        below("impulse-based PD, 20 planks: the same [rad]", long["from_single_joint_rad"], "as a single joint",
              1e-11, "8.5e-13"),
    ]  # fmt: skip
    if quick:
        return claims
    depth = float(LENGTH * np.sin(np.cumsum(equilibrium_angles(COUNT))).sum())
    return [
        *claims,
        near("impulse-based PD, 20 planks: height of the tip after 6 s [m]", long["tip_height_m"], "level", 0.0, 1e-9,
             "-6e-11"),
        below("impulse-based PD, curl: largest error after 5 s [deg]", curl["largest_error_deg"], NOT_GIVEN, 2.1e-6,
              "2.0e-6"),
        *(
            near(f"{name}: height of the tip [m]", by_run["level", name, COUNT]["tip_height_m"],
                 "sags", depth, 0.01, f"{depth:.3f}, static equilibrium")
            for name in (TRADITIONAL, STABLE)
        ),
    ]  # fmt: skip


def _draw(level: Mapping[str, Dataset], curled: Mapping[str, Dataset], path: Path) -> None:
    labels = (
        f"height of the tip, {COUNT} planks to level [m]",
        "hinge angles [deg]",
        f"largest error, {CURLED} planks curl [deg]",
    )
    with figure(path, *labels, size=(12.0, 4.0)) as (heights, angles, errors):
        for name, data in level.items():
            time = data["time"].values
            heights.plot(time, tip_heights(data, COUNT, LENGTH), color=COLORS[name], label=name)
            for k, angle in enumerate(np.degrees(data["coordinate_value"].values.T)):
                angles.plot(time, angle, color=COLORS[name], lw=0.9, label=name if k == 0 else None)
        for name, data in curled.items():
            error = np.abs(data["coordinate_value"].values - CURL).max(axis=1)
            errors.semilogy(data["time"].values, np.degrees(error), color=COLORS[name], label=name)
