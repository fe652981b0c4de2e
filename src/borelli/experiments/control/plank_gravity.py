"""One plank that rotates to level: with gravity, traditional PD lets it droop; impulse-based PD is unaffected.

After Weinstein, Guendelman and Fedkiw, Fig. 5 and 6. The plank is 1 m long and hangs from a hinge; its target is level,
for 4 s, with stiffness 10, 25 and 100 and critical damping.
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
from borelli.experiments.control.pd_convergence import errors_in_time
from borelli.experiments.control.planks import GRAVITY, IMPULSE, METHODS, STABLE, TRADITIONAL, constant_controls, planks
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.view.plot_style import BLUE, GREEN, INK, RED, style_axes

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

STIFFNESS = (10.0, 25.0, 100.0)
"""[1/s^2]"""
DRAWN_STIFFNESS = 25.0
"""Stiffness of the run that is drawn."""
SECONDS, STEP, LENGTH = 4.0, 1 / 240, 1.0
QUARTER = -0.5 * np.pi
FINAL_ERROR = {10.0: 7.0e-5, 25.0: 7.2e-8, 100.0: 3e-16}
"""Verified errors of impulse-based PD after 4 s [rad], with gravity and without, by stiffness."""
DROOP = {10.0: 51.92, 25.0: 29.35, 100.0: 8.33}
"""Droop of traditional PD [degrees]: the root of stiffness * E = 3 g / (2 length) cos E."""
LONG_STEPS = (-0.101, -9.9e-4, 3.2e-4, 2.5e-5, 5.3e-7)
"""Angles after steps of 1 s with stiffness 25 [rad]."""


def plank_run(method: str, stiffness: float, gravity: float, step: float, seconds: float) -> Dataset:
    """Simulate a plank, released hanging, whose target is level."""
    model = planks(1, LENGTH, gravity=gravity)
    controls = constant_controls(model, {"joint_1": 0.0}, PD(stiffness))
    return track_targets(
        model, controls, duration=seconds, step=step, method=method, initial_coordinates={"joint_1": QUARTER}
    )


def run(out: Path, *, recording: Path | None, quick: bool, log: Callable[[str], None]) -> Outcome:
    """Run the experiment as listed in the catalog."""
    runs: dict[tuple[str, float, float], Dataset] = {}
    rows: list[dict[str, Any]] = []
    for name, method in METHODS.items():
        for stiffness in (DRAWN_STIFFNESS,) if quick else STIFFNESS:
            for gravity in (0.0, GRAVITY):
                log(f"{name}, stiffness {stiffness:g}, gravity {gravity:g}")
                data = plank_run(method, stiffness, gravity, STEP, SECONDS)
                runs[name, stiffness, gravity] = data
                rows.append({
                    "method": name, "stiffness_per_s2": stiffness, "gravity_m_s2": gravity, **_metrics(data, stiffness)
                })  # fmt: skip
    long_steps = plank_run("impulse", DRAWN_STIFFNESS, GRAVITY, 1.0, float(len(LONG_STEPS)))["coordinate_value"].values[
        1:, 0
    ]
    claims = [*_claims(rows), *_long_claims(long_steps)]
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "plank-gravity.png"
    _draw({(name, gravity): data for (name, k, gravity), data in runs.items() if k == DRAWN_STIFFNESS}, plot)
    log("drawing")
    shown = {
        f"{name}, {'gravity' if gravity else 'no gravity'}": runs[name, DRAWN_STIFFNESS, gravity]
        for gravity in (0.0, GRAVITY)
        for name in (IMPULSE, TRADITIONAL)
    }
    files = draw_runs(shown, out, "plank-gravity", (0.0, 0.25, 0.5, 1.0, 4.0), quick=quick)
    about = (
        f"a plank of {LENGTH:g} m rotates from hanging to level, {SECONDS:g} s in steps of 1/240 s, critical "
        f"damping, gravity 0 and {GRAVITY:g} m/s^2"
    )
    return write_outcome(Outcome("plank-gravity", about, rows, claims, (plot, *files)), out)


def _metrics(data: Dataset, stiffness: float) -> dict[str, float]:
    angle, time = data["coordinate_value"].values[:, 0], data["time"].values
    single = QUARTER * errors_in_time(PD(stiffness), STEP, SECONDS)[1]
    return {
        "angle_at_end_rad": float(angle[-1]),
        "droop_deg": float(-np.degrees(angle[-1])),
        "from_single_joint_rad": float(np.abs(angle - single).max()),
        "from_analytic_rad": float(np.abs(angle - _analytic(time, stiffness)).max()),
        "largest_torque_nm": float(np.abs(data["torque"].values[1:, 0]).max()),
    }


def _analytic(time: Array, stiffness: float) -> Array:
    gains = PD(stiffness)
    return QUARTER * error_after(gains.stiffness, gains.damping, time, 1.0, 0.0)[0]


def _claims(rows: Sequence[Mapping[str, Any]]) -> list[Claim]:
    claims = []
    for row in rows:
        k, angle = row["stiffness_per_s2"], row["angle_at_end_rad"]
        where = f"stiffness {k:g}, {'gravity' if row['gravity_m_s2'] else 'no gravity'}"
        if row["method"] == IMPULSE:
            expected = FINAL_ERROR[k]
            claims += [
                Claim(f"{IMPULSE}, {where}: angle after 4 s [rad]", angle, f"{-expected:g}",
                      bool(abs(angle) < 1e-15 if k == 100.0 else abs(angle / -expected - 1.0) < 0.02)),
                Claim(f"{IMPULSE}, {where}: difference from a single coordinate [rad]",
                      row["from_single_joint_rad"], "4.4e-16, at 1/60 s",
                      row["from_single_joint_rad"] < 1e-12),
            ]  # fmt: skip
        elif row["gravity_m_s2"]:
            claims.append(
                Claim(f"{row['method']}, {where}: droop [deg]", row["droop_deg"], f"{DROOP[k]:g}",
                      abs(row["droop_deg"] - DROOP[k]) < 0.015)
            )  # fmt: skip
    return claims


def _long_claims(angles: Array) -> list[Claim]:
    return [
        Claim(f"{IMPULSE}, {k + 1} steps of 1 s with gravity [rad]", float(angle), f"{expected:g}",
              bool(abs(angle / expected - 1.0) < 0.02))
        for k, (angle, expected) in enumerate(zip(angles, LONG_STEPS, strict=True))
    ]  # fmt: skip


def _draw(runs: Mapping[tuple[str, float], Dataset], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    angles, torques = figure.subplots(1, 2)
    for (name, gravity), data in runs.items():
        color = {IMPULSE: BLUE, TRADITIONAL: RED, STABLE: GREEN}[name]
        style = "-" if gravity else "--"
        label = f"{name}, {'gravity' if gravity else 'no gravity'}"
        time = data["time"].values
        angles.plot(time, np.degrees(data["coordinate_value"].values[:, 0]), style, color=color, label=label)
        torques.plot(time[1:], data["torque"].values[1:, 0], style, color=color, label=label)
    marks = np.linspace(0.0, SECONDS, 33)
    angles.plot(marks, np.degrees(_analytic(marks, DRAWN_STIFFNESS)), "x", color=INK, ms=4, label="analytic")
    angles.set(xlabel="time [s]", ylabel="angle from level [deg]")
    torques.set(xlabel="time [s]", ylabel="torque of the hinge [N m]")
    angles.legend(frameon=False, fontsize=8)
    style_axes([angles, torques])
    figure.savefig(path, dpi=130)
