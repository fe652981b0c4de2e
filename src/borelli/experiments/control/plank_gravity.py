"""One plank that rotates to level: with gravity, traditional PD lets it droop; impulse-based PD is unaffected.

After Weinstein, Guendelman and Fedkiw, Fig. 5 and 6. The plank is 1 m long and hangs from a hinge; its target is level,
for 4 s, with stiffness 10, 25 and 100 and critical damping.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from xarray import Dataset

from borelli.control.response import PD, error_after
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.pd_convergence import errors_in_time
from borelli.experiments.control.planks import (
    COLORS,
    GRAVITY,
    IMPULSE,
    METHODS,
    TRADITIONAL,
    Array,
    planks,
    track_angles,
)
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, below, near, within_fraction
from borelli.view.plot_style import INK

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
    return track_angles(
        planks(1, LENGTH, gravity=gravity), 0.0, PD(stiffness),
        duration=seconds, step=step, method=method, initial_coordinates={"joint_1": QUARTER},
    )  # fmt: skip


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    runs: dict[tuple[str, float], Dataset] = {}
    rows: list[dict[str, Any]] = []
    for name, method in METHODS.items():
        for stiffness in (DRAWN_STIFFNESS,) if request.quick else STIFFNESS:
            for gravity in (0.0, GRAVITY):
                request.log(f"{name}, stiffness {stiffness:g}, gravity {gravity:g}")
                data = plank_run(method, stiffness, gravity, STEP, SECONDS)
                if stiffness == DRAWN_STIFFNESS:
                    runs[name, gravity] = data
                rows.append({
                    "method": name, "stiffness_per_s2": stiffness, "gravity_m_s2": gravity, **_metrics(data, stiffness)
                })  # fmt: skip
    long_steps = plank_run("impulse", DRAWN_STIFFNESS, GRAVITY, 1.0, float(len(LONG_STEPS)))
    claims = [*_claims(rows), *_long_claims(long_steps["coordinate_value"].values[1:, 0])]
    _draw(runs, request.plot)
    shown = {
        f"{name}, {_gravity(gravity)}": runs[name, gravity]
        for gravity in (0.0, GRAVITY)
        for name in (IMPULSE, TRADITIONAL)
    }
    files = draw_runs(request, shown, (0.0, 0.25, 0.5, 1.0, 4.0))
    about = (
        f"a plank of {LENGTH:g} m rotates from hanging to level, {SECONDS:g} s in steps of 1/240 s, critical "
        f"damping, gravity 0 and {GRAVITY:g} m/s^2"
    )
    return Outcome(request.name, about, rows, claims, (request.plot, *files))


def _gravity(gravity: float) -> str:
    return "gravity" if gravity else "no gravity"


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


def _claims(rows: Rows) -> list[Claim]:
    claims = []
    for row in rows:
        k, angle = row["stiffness_per_s2"], row["angle_at_end_rad"]
        case = f"{row['method']}, stiffness {k:g}, {_gravity(row['gravity_m_s2'])}"
        if row["method"] == IMPULSE:
            expected = FINAL_ERROR[k]
            passed = abs(angle) < 1e-15 if k == 100.0 else abs(angle / -expected - 1.0) < 0.02
            required = "size below 1e-15" if k == 100.0 else f"{-expected:g} to within 2 %"
            claims += [
                Claim(f"{case}: angle after 4 s [rad]", angle, NOT_GIVEN, required, passed, f"{-expected:g}"),
                below(f"{case}: difference from a single coordinate [rad]", row["from_single_joint_rad"],
                      NOT_GIVEN, 1e-12, "4.4e-16, at 1/60 s"),
            ]  # fmt: skip
        elif row["gravity_m_s2"]:
            claims.append(near(f"{case}: droop [deg]", row["droop_deg"], "droops", DROOP[k], 0.015, f"{DROOP[k]:g}"))
    return claims


def _long_claims(angles: Array) -> list[Claim]:
    return [
        within_fraction(f"{IMPULSE}, {k + 1} steps of 1 s with gravity [rad]", float(angle), NOT_GIVEN,
                        expected, 0.02, f"{expected:g}")
        for k, (angle, expected) in enumerate(zip(angles, LONG_STEPS, strict=True))
    ]  # fmt: skip


def _draw(runs: Mapping[tuple[str, float], Dataset], path: Path) -> None:
    with figure(path, "angle from level [deg]", "torque of the hinge [N m]") as (angles, torques):
        for (name, gravity), data in runs.items():
            color, style = COLORS[name], "-" if gravity else "--"
            time, angle = data["time"].values, np.degrees(data["coordinate_value"].values[:, 0])
            angles.plot(time, angle, style, color=color, label=f"{name}, {_gravity(gravity)}")
            torques.plot(time[1:], data["torque"].values[1:, 0], style, color=color)
        marks = np.linspace(0.0, SECONDS, 33)
        angles.plot(marks, np.degrees(_analytic(marks, DRAWN_STIFFNESS)), "x", color=INK, ms=4, label="analytic")
