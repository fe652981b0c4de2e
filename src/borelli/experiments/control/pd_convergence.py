"""Convergence of impulse-based PD: with doubled gains to the specified response, with single gains to half of them.

After Weinstein, Guendelman and Fedkiw, Fig. 3: a single coordinate, stiffness 25 and critical damping, an error of 1.
Traditional and stable PD are added, which the paper's figure omits.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xarray import Dataset

from borelli.control.pd_step_responses import StableResponse, TraditionalResponse
from borelli.control.response import PD, Response, error_after, next_velocity
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.planks import COLORS, IMPULSE, STABLE, TRADITIONAL, Array, rotated_plank
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, near, within_fraction
from borelli.view.plot_style import INK, ORANGE

GAINS = PD(25.0)
SECONDS = 2.0
STEPS = (0.04, 0.02, 0.01, 0.005)
"""[s]"""
SINGLE = "impulse-based PD, gains not doubled"
DERIVED = {(IMPULSE, 0.005): 3.28e-3, (SINGLE, 0.005): 2.93e-3, (TRADITIONAL, 0.005): 7.81e-3}
"""Values of a study of this project: largest difference from the limit of each method, at the shortest step."""


@dataclass(frozen=True)
class SingleGains:
    """PD whose closed form uses the gains undoubled: its response is that of half the gains."""

    gains: PD

    def after(self, error: Array, rate: Array, step: float, time: float = 0.0) -> Array:
        """Return the error a step later; see `Response`."""
        return error_after(self.gains.stiffness, self.gains.damping, step, error, rate)[0]


RESPONSES: dict[str, tuple[Response, float]] = {
    IMPULSE: (GAINS, 1.0),
    SINGLE: (SingleGains(GAINS), 0.5),
    TRADITIONAL: (TraditionalResponse(GAINS), 1.0),
    STABLE: (StableResponse(GAINS), 1.0),
}
"""Each with the fraction of the gains whose response it tends to."""


def errors_in_time(response: Response, step: float, duration: float) -> tuple[Array, Array]:
    """Return times [s] and errors of a coordinate released at rest with an error of 1 from a constant target."""
    x, v, errors = 1.0, 0.0, [1.0]
    for k in range(round(duration / step)):
        v = float(next_velocity(response, x, v, (0.0, 0.0, 0.0), step, k * step))
        x += step * v
        errors.append(x)
    return step * np.arange(len(errors), dtype=np.float64), np.array(errors)


def analytic_error(time: Array, fraction: float = 1.0) -> Array:
    """Return the analytic error at these times [s] for a fraction of the gains."""
    return error_after(fraction * GAINS.stiffness, fraction * GAINS.damping, time, 1.0, 0.0)[0]


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    rows: list[dict[str, Any]] = []
    for name, (response, fraction) in RESPONSES.items():
        request.log(name)
        for step in STEPS:
            time, error = errors_in_time(response, step, SECONDS)
            rows.append({
                "method": name, "step_s": step, "gains_fraction": fraction,
                "largest_difference": float(np.abs(error - analytic_error(time, fraction)).max()),
                "from_full_gains": float(np.abs(error - analytic_error(time)).max()),
            })  # fmt: skip
    _draw(rows, request.plot)
    files = draw_runs(request, _planks(STEPS[0]), (0.0, 0.2, 0.4, 0.8, 1.6), speed=0.5, columns=3)
    about = (
        f"a single coordinate, stiffness {GAINS.stiffness:g} 1/s^2, damping {GAINS.damping:g} 1/s, an error of 1 "
        f"released at rest, {SECONDS:g} s; differences are the largest over time"
    )
    return Outcome(request.name, about, rows, _claims(rows), (request.plot, *files))


def _claims(rows: Rows) -> list[Claim]:
    differences = {(row["method"], row["step_s"]): row["largest_difference"] for row in rows}
    claims = [
        within_fraction(
            f"{name}: difference at {step:g} s", differences[name, step], NOT_GIVEN, known, 5e-3, f"{known:g}"
        )
        for (name, step), known in DERIVED.items()
    ]
    for name in RESPONSES:
        order = float(np.log2(differences[name, STEPS[-2]] / differences[name, STEPS[-1]]))
        claims.append(near(f"{name}: order of convergence", order, "first order", 1.0, 0.1))
    full = next(r["from_full_gains"] for r in rows if r["method"] == SINGLE and r["step_s"] == STEPS[-1])
    claims.append(
        near("gains not doubled: difference from the full gains", full, NOT_GIVEN, 0.110, 0.005, "0.110 at any step")
    )
    return claims


def _planks(step: float) -> dict[str, Dataset]:
    """Return a plank for each method that rotates from -90 degrees to level, and one with the specified response."""
    fine = np.linspace(0.0, SECONDS, 201)
    quarter = -0.5 * np.pi
    runs = {"specified": rotated_plank(fine, quarter * analytic_error(fine))}
    for name, (response, _) in RESPONSES.items():
        time, error = errors_in_time(response, step, SECONDS)
        runs[name] = rotated_plank(time, quarter * error)
    return runs


def _draw(rows: Rows, path: Path) -> None:
    fine, marks = np.linspace(0.0, SECONDS, 401), np.linspace(0.0, SECONDS, 21)
    colors = {IMPULSE: COLORS[IMPULSE], SINGLE: ORANGE} | COLORS
    labels = f"error, steps of {1e3 * STEPS[-1]:g} ms", "largest difference from analytic"
    with figure(path, *labels, size=(11.0, 4.2)) as (curves, orders):
        for name in (SINGLE, IMPULSE):
            time, error = errors_in_time(RESPONSES[name][0], STEPS[-1], SECONDS)
            curves.plot(time, error, color=colors[name], label=name)
        half = analytic_error(marks, 0.5)
        curves.plot(marks, half, "o", color=INK, ms=4, mfc="none", label="analytic, half the gains")
        curves.plot(marks, analytic_error(marks), "x", color=INK, ms=5, label="analytic, full gains")
        curves.axhline(0.0, color=INK, lw=0.6)
        curves.plot(fine, analytic_error(fine), color=INK, lw=0.4)
        for name, color in colors.items():
            own = [row for row in rows if row["method"] == name]
            orders.loglog(STEPS, [row["largest_difference"] for row in own], "o-", color=color, label=name)
            if name == SINGLE:
                full = [row["from_full_gains"] for row in own]
                orders.loglog(STEPS, full, "o--", color=color, label="the same, from the full gains")
        orders.set(xlabel="step [s]", xticks=STEPS)
        orders.set_xticklabels([f"{step:g}" for step in STEPS])
        orders.minorticks_off()
