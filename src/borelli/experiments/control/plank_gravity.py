"""One plank that is to turn level: with gravity, traditional PD leaves it drooping; impulse-based PD does not notice.

After Weinstein, Guendelman and Fedkiw, Fig. 5 and 6. The plank is 1 m long and hangs from a hinge; it is to turn level
within 4 s, with stiffness 25 and critical damping, and with 10 and 100 beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.control.response import PD, error_after
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.pd_convergence import errors_in_time
from borelli.experiments.control.planks import GRAVITY, METHODS, OURS, STABLE, TRADITIONAL, held_at, planks
from borelli.experiments.movement.stepped_common import BLUE, GREEN, INK, RED, tidy

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

STIFFNESS = (10.0, 25.0, 100.0)
"""[1/s^2]"""
SHOWN = 25.0
"""Of them, the one that is drawn."""
SECONDS, STEP, LENGTH = 4.0, 1 / 240, 1.0
QUARTER = -0.5 * np.pi
REACHED = {10.0: 7.0e-5, 25.0: 7.2e-8, 100.0: 3e-16}
"""Checked figures [rad]: what impulse-based PD leaves after 4 s, with gravity and without."""
DROOP = {10.0: 51.92, 25.0: 29.35, 100.0: 8.33}
"""[degrees] of traditional PD: the root of stiffness * E = 3 g / (2 length) cos E."""
LONG_STEPS = (-0.101, -9.9e-4, 3.2e-4, 2.5e-5, 5.3e-7)
"""[rad] after steps of 1 s, stiffness 25."""


def plank_run(method: str, stiffness: float, gravity: float, step: float, seconds: float) -> Dataset:
    """A plank let go hanging that is to turn level."""
    model = planks(1, LENGTH, gravity=gravity)
    controls = held_at(model, {"joint_1": 0.0}, PD(stiffness))
    return track_targets(model, controls, duration=seconds, step=step, method=method, start={"joint_1": QUARTER})


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    runs: dict[tuple[str, float, float], Dataset] = {}
    rows: list[dict[str, Any]] = []
    for name, method in METHODS.items():
        for stiffness in (SHOWN,) if quick else STIFFNESS:
            for gravity in (0.0, GRAVITY):
                say(f"{name}, stiffness {stiffness:g}, gravity {gravity:g}")
                data = plank_run(method, stiffness, gravity, STEP, SECONDS)
                runs[name, stiffness, gravity] = data
                rows.append({
                    "method": name, "stiffness_per_s2": stiffness, "gravity_m_s2": gravity, **_figures(data, stiffness)
                })  # fmt: skip
    long_steps = plank_run("impulse", SHOWN, GRAVITY, 1.0, float(len(LONG_STEPS)))["coordinate_value"].values[1:, 0]
    claims = [*_claims(rows), *_long_claims(long_steps)]
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "plank-gravity.png"
    _draw({(name, gravity): data for (name, k, gravity), data in runs.items() if k == SHOWN}, plot)
    say("drawing")
    shown = {
        f"{name}, {'gravity' if gravity else 'no gravity'}": runs[name, SHOWN, gravity]
        for gravity in (0.0, GRAVITY)
        for name in (OURS, TRADITIONAL)
    }
    files = draw_runs(shown, out, "plank-gravity", (0.0, 0.25, 0.5, 1.0, 4.0), quick=quick)
    about = (
        f"a plank of {LENGTH:g} m hangs from a hinge and is to turn level, {SECONDS:g} s in steps of 1/240 s, critical "
        f"damping, gravity 0 and {GRAVITY:g} m/s^2"
    )
    return write_outcome(Outcome("plank-gravity", about, rows, claims, (plot, *files)), out)


def _figures(data: Dataset, stiffness: float) -> dict[str, float]:
    angle, time = data["coordinate_value"].values[:, 0], data["time"].values
    alone = QUARTER * errors_in_time(PD(stiffness), STEP, SECONDS)[1]
    return {
        "angle_at_end_rad": float(angle[-1]),
        "droop_deg": float(-np.degrees(angle[-1])),
        "from_impulse_based_alone_rad": float(np.abs(angle - alone).max()),
        "from_analytic_rad": float(np.abs(angle - _analytic(time, stiffness)).max()),
        "largest_torque_nm": float(np.abs(data["torque"].values[1:, 0]).max()),
    }


def _analytic(time: Array, stiffness: float) -> Array:
    gains = PD(stiffness)
    return QUARTER * error_after(gains.stiffness, gains.damping, time, 1.0, 0.0)[0]


def _claims(rows: Sequence[Mapping[str, Any]]) -> list[Claim]:
    claims = []
    for row in rows:
        k, left = row["stiffness_per_s2"], row["angle_at_end_rad"]
        where = f"stiffness {k:g}, {'gravity' if row['gravity_m_s2'] else 'no gravity'}"
        if row["method"] == OURS:
            figure = REACHED[k]
            claims += [
                Claim(f"ours, {where}: left after 4 s [rad]", left, f"{-figure:g}",
                      bool(abs(left) < 1e-15 if k == 100.0 else abs(left / -figure - 1.0) < 0.02)),
                Claim(f"ours, {where}: from the response of one coordinate alone [rad]",
                      row["from_impulse_based_alone_rad"], "4.4e-16, at 1/60 s",
                      row["from_impulse_based_alone_rad"] < 1e-12),
            ]  # fmt: skip
        elif row["gravity_m_s2"]:
            claims.append(
                Claim(f"{row['method']}, {where}: droop [deg]", row["droop_deg"], f"{DROOP[k]:g}",
                      abs(row["droop_deg"] - DROOP[k]) < 0.015)
            )  # fmt: skip
    return claims


def _long_claims(angles: Array) -> list[Claim]:
    return [
        Claim(f"ours, {k + 1} steps of 1 s with gravity [rad]", float(found), f"{figure:g}",
              bool(abs(found / figure - 1.0) < 0.02))
        for k, (found, figure) in enumerate(zip(angles, LONG_STEPS, strict=True))
    ]  # fmt: skip


def _draw(runs: Mapping[tuple[str, float], Dataset], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    angles, torques = figure.subplots(1, 2)
    for (name, gravity), data in runs.items():
        color = {OURS: BLUE, TRADITIONAL: RED, STABLE: GREEN}[name]
        style = "-" if gravity else "--"
        label = f"{name}, {'gravity' if gravity else 'no gravity'}"
        time = data["time"].values
        angles.plot(time, np.degrees(data["coordinate_value"].values[:, 0]), style, color=color, label=label)
        torques.plot(time[1:], data["torque"].values[1:, 0], style, color=color, label=label)
    marks = np.linspace(0.0, SECONDS, 33)
    angles.plot(marks, np.degrees(_analytic(marks, SHOWN)), "x", color=INK, ms=4, label="analytic")
    angles.set(xlabel="time [s]", ylabel="angle from level [deg]")
    torques.set(xlabel="time [s]", ylabel="torque of the hinge [N m]")
    angles.legend(frameon=False, fontsize=8)
    tidy([angles, torques])
    figure.savefig(path, dpi=130)
