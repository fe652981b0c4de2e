"""Chains that stretch out level, or curl: joints do not disturb each other, whatever their load.

After Weinstein, Guendelman and Fedkiw, Fig. 7. Every joint has the same stiffness, 25, and critical damping. The level
chain is released hanging. Spring gains are scaled by the inertia outboard of each joint, which impulse-based PD does
not need; even so the chain sags, and explicit torques need steps of 1/2000 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fsolve

from borelli.control.response import PD
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.pd_convergence import errors_in_time
from borelli.experiments.control.planks import (
    GRAVITY,
    IMPULSE,
    METHODS,
    STABLE,
    TRADITIONAL,
    constant_controls,
    planks,
    tip_heights,
)
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.view.plot_style import BLUE, GREEN, RED, style_axes

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

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


def level_run(method: str, count: int, step: float, seconds: float) -> Dataset:
    """Simulate a hanging chain whose target is level."""
    model = planks(count, LENGTH)
    return track_targets(
        model,
        constant_controls(model, {c.name: 0.0 for c in model.coordinates}, GAINS),
        duration=seconds,
        step=step,
        method=method,
        initial_coordinates={"joint_1": -0.5 * np.pi},
        record_every=max(1, round(1 / 60 / step)),
    )


def curl_run(method: str, step: float, seconds: float) -> Dataset:
    """Simulate a level chain whose target is curled up."""
    model = planks(CURLED, LENGTH)
    return track_targets(
        model,
        constant_controls(model, {c.name: CURL for c in model.coordinates}, GAINS),
        duration=seconds,
        step=step,
        method=method,
        initial_coordinates={},
        record_every=max(1, round(1 / 60 / step)),
    )


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


def run(out: Path, *, recording: Path | None, quick: bool, log: Callable[[str], None]) -> Outcome:
    """Run the experiment as listed in the catalog."""
    seconds = {"level": 2.0 if quick else SECONDS, "curl": 2.0 if quick else CURL_SECONDS}
    level, curled, rows = {}, {}, []
    for name, method in METHODS.items():
        log(f"{COUNT} planks to level, {name}")
        level[name] = level_run(method, COUNT, STEPS[name], seconds["level"])
        rows.append(_row("level", name, level[name], COUNT, np.zeros(COUNT)))
        if name != TRADITIONAL or not quick:
            log(f"{CURLED} planks curl, {name}")
            ratio = CURL_STEP_RATIO if name == TRADITIONAL else 1.0
            curled[name] = curl_run(method, STEPS[name] / ratio, seconds["curl"])
            rows.append(_row("curl", name, curled[name], CURLED, np.full(CURLED, CURL)))
    log(f"{LONG} planks to level, {IMPULSE}")
    long = level_run("impulse", LONG, STEPS[IMPULSE], seconds["level"])
    rows.append(_row("level", IMPULSE, long, LONG, np.zeros(LONG)))
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "chain.png"
    _draw(level, curled, plot)
    log("drawing")
    files = [
        *draw_runs(level, out, "chain", (0.0, 0.3, 0.6, 1.2, 6.0), quick=quick),
        *draw_runs(curled, out, "chain-curl", (0.0, 0.3, 0.6, 1.2, 5.0), quick=quick),
    ]
    about = (
        f"{COUNT} and {LONG} planks of {LENGTH:g} m that stretch out level from hanging, {CURLED} that curl; "
        f"stiffness {GAINS.stiffness:g} 1/s^2 at every hinge, critical damping, gravity {GRAVITY:g} m/s^2"
    )
    return write_outcome(Outcome("chain", about, rows, _claims(rows, seconds), (plot, *files)), out)


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


def _claims(rows: Sequence[Mapping[str, Any]], seconds: Mapping[str, float]) -> list[Claim]:
    by_run = {(row["task"], row["method"], row["planks"]): row for row in rows}
    short, long = by_run["level", IMPULSE, COUNT], by_run["level", IMPULSE, LONG]
    curl = by_run["curl", IMPULSE, CURLED]
    claims = [
        Claim("impulse-based PD, 5 planks: difference from the response of a single joint [rad]",
              short["from_single_joint_rad"], "1.8e-14",
              short["from_single_joint_rad"] < 1e-11),
        Claim("impulse-based PD, 20 planks: the same [rad]", long["from_single_joint_rad"], "8.5e-13",
              long["from_single_joint_rad"] < 1e-11),
    ]  # fmt: skip
    if seconds["level"] < SECONDS:
        return claims
    claims += [
        Claim("impulse-based PD, 20 planks: height of the tip after 6 s [m]", long["tip_height_m"], "-6e-11",
              abs(long["tip_height_m"]) < 1e-9),
        Claim("impulse-based PD, curl: largest error after 5 s [deg]", curl["largest_error_deg"], "2.0e-6",
              curl["largest_error_deg"] < 2.1e-6),
    ]  # fmt: skip
    rest = equilibrium_angles(COUNT)
    depth = float(LENGTH * np.sin(np.cumsum(rest)).sum())
    for name in (TRADITIONAL, STABLE):
        row = by_run["level", name, COUNT]
        tip = row["tip_height_m"]
        claims.append(
            Claim(f"{name}: height of the tip [m]", tip, f"{depth:.3f}, static equilibrium", abs(tip - depth) < 0.01)
        )
    return claims


def _draw(level: Mapping[str, Dataset], curled: Mapping[str, Dataset], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 4.0), layout="constrained")
    axes = figure.subplots(1, 3)
    colors = {IMPULSE: BLUE, TRADITIONAL: RED, STABLE: GREEN}
    for name, data in level.items():
        time = data["time"].values
        axes[0].plot(time, tip_heights(data, COUNT, LENGTH), color=colors[name], label=name)
        for k, angle in enumerate(np.degrees(data["coordinate_value"].values.T)):
            axes[1].plot(time, angle, color=colors[name], lw=0.9, label=name if k == 0 else None)
    for name, data in curled.items():
        error = np.abs(data["coordinate_value"].values - CURL).max(axis=1)
        axes[2].semilogy(data["time"].values, np.degrees(error), color=colors[name], label=name)
    axes[0].set(xlabel="time [s]", ylabel=f"height of the tip, {COUNT} planks to level [m]")
    axes[1].set(xlabel="time [s]", ylabel="hinge angles [deg]")
    axes[2].set(xlabel="time [s]", ylabel=f"largest error, {CURLED} planks curl [deg]")
    for ax in axes:
        ax.legend(frameon=False, fontsize=8)
    style_axes(axes)
    figure.savefig(path, dpi=130)
