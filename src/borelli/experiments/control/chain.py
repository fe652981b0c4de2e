"""Chains that are to stretch out level, or to curl: joints that do not fight each other, whatever hangs on them.

After Weinstein, Guendelman and Fedkiw, Fig. 7. Every joint has the same stiffness, 25, and critical damping. The level
chain is let go hanging. Springs have their gains scaled by the inertia outboard of each joint, which impulse-based PD
does without; even so the chain sags, and torques of the step's start need steps of a two-thousandth of a second.
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
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.pd_convergence import errors_in_time
from borelli.experiments.control.planks import GRAVITY, METHODS, OURS, STABLE, TRADITIONAL, held_at, planks, tip_heights
from borelli.experiments.movement.stepped_common import BLUE, GREEN, RED, tidy

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

GAINS = PD(25.0)
LENGTH = 0.5
"""Of a plank [m]."""
COUNT, LONG = 5, 20
"""Planks of the chain that all ways move, and of the long one."""
SECONDS = 6.0
STEPS = {OURS: 1 / 60, TRADITIONAL: 1 / 2040, STABLE: 1 / 240}
"""[s]: torques of the step's start chatter at 1/1500 s, and eight planks at 1/6000 s."""
SHORTER = 4.0
"""By how much the steps of traditional PD must be shorter for the planks that curl."""
CURLED, CURL, CURL_SECONDS = 8, np.radians(40.0), 5.0
"""Planks that curl, by how much each [rad], in what time [s]."""


def level_run(method: str, count: int, step: float, seconds: float) -> Dataset:
    """A hanging chain that is to stretch out level."""
    model = planks(count, LENGTH)
    return track_targets(
        model,
        held_at(model, {c.name: 0.0 for c in model.coordinates}, GAINS),
        duration=seconds,
        step=step,
        method=method,
        start={"joint_1": -0.5 * np.pi},
        every=max(1, round(1 / 60 / step)),
    )


def curl_run(method: str, step: float, seconds: float) -> Dataset:
    """A level chain that is to curl up."""
    model = planks(CURLED, LENGTH)
    return track_targets(
        model,
        held_at(model, {c.name: CURL for c in model.coordinates}, GAINS),
        duration=seconds,
        step=step,
        method=method,
        start={},
        every=max(1, round(1 / 60 / step)),
    )


def sagging(count: int, stiffness: float = GAINS.stiffness) -> Array:
    """Angles [rad] at which springs scaled by outboard inertia carry a chain of planks: moments in balance."""
    beyond = np.arange(count, 0, -1)
    inertia = beyond * (beyond * LENGTH) ** 2 / 3.0

    def imbalance(droop: Array) -> Array:
        reach = LENGTH * np.cos(np.cumsum(droop))
        ends = np.cumsum(reach)
        middles = ends - 0.5 * reach
        starts = np.concatenate([[0.0], ends[:-1]])
        moments = np.array([GRAVITY * (middles[i:] - starts[i]).sum() for i in range(count)])
        return np.asarray(stiffness * inertia * droop - moments)

    found: Array = fsolve(imbalance, np.full(count, 0.3), xtol=1e-12)
    return -found


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    seconds = {"level": 2.0 if quick else SECONDS, "curl": 2.0 if quick else CURL_SECONDS}
    level, curled, rows = {}, {}, []
    for name, method in METHODS.items():
        say(f"{COUNT} planks to level, {name}")
        level[name] = level_run(method, COUNT, STEPS[name], seconds["level"])
        rows.append(_row("level", name, level[name], COUNT, np.zeros(COUNT)))
        if name != TRADITIONAL or not quick:
            say(f"{CURLED} planks curl, {name}")
            shorter = SHORTER if name == TRADITIONAL else 1.0
            curled[name] = curl_run(method, STEPS[name] / shorter, seconds["curl"])
            rows.append(_row("curl", name, curled[name], CURLED, np.full(CURLED, CURL)))
    say(f"{LONG} planks to level, {OURS}")
    long = level_run("impulse", LONG, STEPS[OURS], seconds["level"])
    rows.append(_row("level", OURS, long, LONG, np.zeros(LONG)))
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "chain.png"
    _draw(level, curled, plot)
    say("drawing")
    files = [
        *draw_runs(level, out, "chain", (0.0, 0.3, 0.6, 1.2, 6.0), quick=quick),
        *draw_runs(curled, out, "chain-curl", (0.0, 0.3, 0.6, 1.2, 5.0), quick=quick),
    ]
    about = (
        f"{COUNT} and {LONG} planks of {LENGTH:g} m that hang and are to stretch out level, {CURLED} that are to curl; "
        f"stiffness {GAINS.stiffness:g} 1/s^2 at every hinge, critical damping, gravity {GRAVITY:g} m/s^2"
    )
    return write_outcome(Outcome("chain", about, rows, _claims(rows, seconds), (plot, *files)), out)


def _row(what: str, name: str, data: Dataset, count: int, target: Array) -> dict[str, Any]:
    angle = data["coordinate_value"].values
    start = angle[0] - target
    errors = errors_in_time(GAINS, STEPS[OURS], float(data["time"].values[-1]))[1]
    alone = target + np.outer(errors, start) if name == OURS else np.full_like(angle, np.nan)
    return {
        "task": what, "method": name, "planks": count, "step_s": float(data.attrs["step_s"]),
        "largest_error_deg": float(np.degrees(np.abs(angle[-1] - target).max())),
        "from_alone_rad": float(np.abs(angle - alone).max()),
        "tip_height_m": float(tip_heights(data, count, LENGTH)[-1]),
        "angles_deg": " ".join(f"{a:.2f}" for a in np.degrees(angle[-1])),
    }  # fmt: skip


def _claims(rows: Sequence[Mapping[str, Any]], seconds: Mapping[str, float]) -> list[Claim]:
    found = {(row["task"], row["method"], row["planks"]): row for row in rows}
    short, long = found["level", OURS, COUNT], found["level", OURS, LONG]
    curl = found["curl", OURS, CURLED]
    claims = [
        Claim("ours, 5 planks: each joint from its response alone [rad]", short["from_alone_rad"], "1.8e-14",
              short["from_alone_rad"] < 1e-11),
        Claim("ours, 20 planks: the same [rad]", long["from_alone_rad"], "8.5e-13", long["from_alone_rad"] < 1e-11),
    ]  # fmt: skip
    if seconds["level"] < SECONDS:
        return claims
    claims += [
        Claim("ours, 20 planks: height of the tip after 6 s [m]", long["tip_height_m"], "-6e-11",
              abs(long["tip_height_m"]) < 1e-9),
        Claim("ours, curl: largest error after 5 s [deg]", curl["largest_error_deg"], "2.0e-6",
              curl["largest_error_deg"] < 2.1e-6),
    ]  # fmt: skip
    rest = sagging(COUNT)
    depth = float(LENGTH * np.sin(np.cumsum(rest)).sum())
    for name in (TRADITIONAL, STABLE):
        row = found["level", name, COUNT]
        tip = row["tip_height_m"]
        claims.append(
            Claim(f"{name}: height of the tip [m]", tip, f"{depth:.3f}, springs in balance", abs(tip - depth) < 0.01)
        )
    return claims


def _draw(level: Mapping[str, Dataset], curled: Mapping[str, Dataset], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 4.0), layout="constrained")
    axes = figure.subplots(1, 3)
    colors = {OURS: BLUE, TRADITIONAL: RED, STABLE: GREEN}
    for name, data in level.items():
        time = data["time"].values
        axes[0].plot(time, tip_heights(data, COUNT, LENGTH), color=colors[name], label=name)
        for k, angle in enumerate(np.degrees(data["coordinate_value"].values.T)):
            axes[1].plot(time, angle, color=colors[name], lw=0.9, label=name if k == 0 else None)
    for name, data in curled.items():
        error = np.abs(data["coordinate_value"].values - CURL).max(axis=1)
        axes[2].semilogy(data["time"].values, np.degrees(error), color=colors[name], label=name)
    axes[0].set(xlabel="time [s]", ylabel=f"height of the tip, {COUNT} planks to level [m]")
    axes[1].set(xlabel="time [s]", ylabel="angles of the hinges [deg]")
    axes[2].set(xlabel="time [s]", ylabel=f"largest error, {CURLED} planks curl [deg]")
    for ax in axes:
        ax.legend(frameon=False, fontsize=8)
    tidy(axes)
    figure.savefig(path, dpi=130)
