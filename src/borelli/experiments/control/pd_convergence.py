"""Convergence of impulse-based PD: with doubled gains to the response asked for, with single ones to half of them.

After Weinstein, Guendelman and Fedkiw, Fig. 3: one coordinate alone, stiffness 25 and critical damping, an error of 1.
Traditional and stable PD go beside it, which the paper's figure leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.control.pd_step_responses import StableResponse, TraditionalResponse
from borelli.control.response import PD, Response, error_after, next_velocity
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.planks import OURS, STABLE, TRADITIONAL, turned_plank
from borelli.experiments.movement.stepped_common import BLUE, GREEN, INK, ORANGE, RED, tidy

Array = NDArray[np.float64]

GAINS = PD(25.0)
SECONDS = 2.0
STEPS = (0.04, 0.02, 0.01, 0.005)
"""[s]"""
SINGLE = "impulse-based PD, gains not doubled"
PUBLISHED = {
    (OURS, 0.005): 3.28e-3,
    (SINGLE, 0.005): 2.93e-3,
    (TRADITIONAL, 0.005): 7.81e-3,
}
"""Checked figures, to three digits: largest difference from what each tends to, at the shortest step."""


@dataclass(frozen=True)
class SingleGains:
    """PD whose closed form is taken with the gains as they are: it then obeys half of them."""

    gains: PD

    def after(self, error: Array, rate: Array, step: float, time: float = 0.0) -> Array:
        """The error a step later; see `Response`."""
        return error_after(self.gains.stiffness, self.gains.damping, step, error, rate)[0]


RESPONSES: dict[str, tuple[Response, float]] = {
    OURS: (GAINS, 1.0),
    SINGLE: (SingleGains(GAINS), 0.5),
    TRADITIONAL: (TraditionalResponse(GAINS), 1.0),
    STABLE: (StableResponse(GAINS), 1.0),
}
"""Each with the share of the gains that it tends to obey."""


def errors_in_time(response: Response, step: float, duration: float) -> tuple[Array, Array]:
    """Times [s] and errors of a coordinate that is let go at rest with an error of 1; the target stands still."""
    x, v, errors = 1.0, 0.0, [1.0]
    for k in range(round(duration / step)):
        v = float(next_velocity(response, x, v, (0.0, 0.0, 0.0), step, k * step))
        x += step * v
        errors.append(x)
    return step * np.arange(len(errors), dtype=np.float64), np.array(errors)


def asked(time: Array, share: float = 1.0) -> Array:
    """The error at these times [s] under a share of the gains."""
    return error_after(share * GAINS.stiffness, share * GAINS.damping, time, 1.0, 0.0)[0]


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    rows: list[dict[str, Any]] = []
    for name, (response, share) in RESPONSES.items():
        say(name)
        for step in STEPS:
            time, error = errors_in_time(response, step, SECONDS)
            rows.append({
                "method": name, "step_s": step, "gains_obeyed": share,
                "largest_difference": float(np.abs(error - asked(time, share)).max()),
                "from_full_gains": float(np.abs(error - asked(time)).max()),
            })  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "pd-convergence.png"
    _draw(rows, plot)
    say("drawing")
    files = draw_runs(
        _planks(STEPS[0]), out, "pd-convergence", (0.0, 0.2, 0.4, 0.8, 1.6), quick=quick, speed=0.5, columns=3
    )
    about = (
        f"one coordinate alone, stiffness {GAINS.stiffness:g} 1/s^2, damping {GAINS.damping:g} 1/s, an error of 1 "
        f"released at rest, {SECONDS:g} s; differences are the largest over time"
    )
    return write_outcome(Outcome("pd-convergence", about, rows, _claims(rows), (plot, *files)), out)


def _claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    found = {(row["method"], row["step_s"]): row["largest_difference"] for row in rows}
    claims = []
    for (name, step), figure in PUBLISHED.items():
        ours = found[name, step]
        claims.append(
            Claim(f"{name}: difference at {step:g} s", ours, f"{figure:g}", bool(abs(ours / figure - 1.0) < 5e-3))
        )
    for name in RESPONSES:
        order = float(np.log2(found[name, STEPS[-2]] / found[name, STEPS[-1]]))
        claims.append(Claim(f"{name}: order of convergence", order, "1", abs(order - 1.0) < 0.1))
    full = next(r["from_full_gains"] for r in rows if r["method"] == SINGLE and r["step_s"] == STEPS[-1])
    claims.append(
        Claim("gains not doubled: difference from the full gains", full, "0.110 for ever", abs(full - 0.110) < 0.005)
    )
    return claims


def _planks(step: float) -> dict[str, Any]:
    """A plank for each way that turns from -90 degrees to level, beside one that does as asked."""
    fine = np.linspace(0.0, SECONDS, 201)
    quarter = -0.5 * np.pi
    runs = {"as asked for": turned_plank(fine, quarter * asked(fine))}
    for name, (response, _) in RESPONSES.items():
        time, error = errors_in_time(response, step, SECONDS)
        runs[name] = turned_plank(time, quarter * error)
    return runs


def _draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    curves, orders = figure.subplots(1, 2)
    fine, marks = np.linspace(0.0, SECONDS, 401), np.linspace(0.0, SECONDS, 21)
    colors = {OURS: BLUE, SINGLE: ORANGE, TRADITIONAL: RED, STABLE: GREEN}
    for name in (SINGLE, OURS):
        time, error = errors_in_time(RESPONSES[name][0], STEPS[-1], SECONDS)
        curves.plot(time, error, color=colors[name], label=name)
    curves.plot(marks, asked(marks, 0.5), "o", color=INK, ms=4, mfc="none", label="analytic, half the gains")
    curves.plot(marks, asked(marks), "x", color=INK, ms=5, label="analytic, the gains asked for")
    curves.axhline(0.0, color=INK, lw=0.6)
    curves.plot(fine, asked(fine), color=INK, lw=0.4)
    curves.set(xlabel="time [s]", ylabel=f"error, steps of {1e3 * STEPS[-1]:g} ms")
    for name, color in colors.items():
        own = [row for row in rows if row["method"] == name]
        orders.loglog([r["step_s"] for r in own], [r["largest_difference"] for r in own], "o-", color=color, label=name)
        if name == SINGLE:
            orders.loglog(
                [r["step_s"] for r in own], [r["from_full_gains"] for r in own], "o--", color=color,
                label="the same, from the full gains",
            )  # fmt: skip
    orders.set(xlabel="step [s]", ylabel="largest difference from analytic", xticks=STEPS)
    orders.set_xticklabels([f"{step:g}" for step in STEPS])
    orders.minorticks_off()
    for ax in (curves, orders):
        ax.legend(frameon=False, fontsize=8)
    tidy([curves, orders])
    figure.savefig(path, dpi=130)
