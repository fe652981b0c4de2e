"""Steps too long for traditional PD: one step, the stability limit, and that impulse-based PD has none.

After Weinstein, Guendelman and Fedkiw, Fig. 2 and 4: a single coordinate, stiffness 25 and critical damping. Fig. 2 is
one step from the same start: along the tangent (explicit torques, here with the velocity that semi-implicit steps take)
and along the secant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from xarray import Dataset

from borelli.control.pd_step_responses import StableResponse, TraditionalResponse
from borelli.control.response import Response, coefficients
from borelli.control.stability import spectral_radius
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.pd_convergence import GAINS, analytic_error, errors_in_time
from borelli.experiments.control.planks import COLORS, IMPULSE, STABLE, TRADITIONAL, Array, rotated_plank
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, below, near, within_fraction
from borelli.view.plot_style import BLUE, INK, RED

RESPONSES: dict[str, Response] = {
    IMPULSE: GAINS,
    TRADITIONAL: TraditionalResponse(GAINS),
    STABLE: StableResponse(GAINS),
}
RATE = float(np.sqrt(GAINS.stiffness))
"""[1/s]: a step of 1 / RATE is as long as the response."""
MEDIUM, LARGE, HUGE = 0.5 / RATE, 1.0 / RATE, 20.0 / RATE
"""[s]: visible errors; traditional PD unstable; far longer than the response."""
COUNT = 40
"""Number of steps after which errors are compared."""
STABILITY_LIMIT = 2.0 * 2.0**0.5 - 2.0
"""Largest stable RATE times step of traditional PD with critical damping."""


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    rows: list[dict[str, Any]] = []
    for name, response in RESPONSES.items():
        request.log(name)
        for step in (MEDIUM, LARGE, HUGE):
            _, error = errors_in_time(response, step, COUNT * step)
            rows.append({
                "method": name, "step_s": step, "step_per_response": RATE * step, "after_one_step": float(error[1]),
                "after_two_steps": float(error[2]), "largest_later": float(np.abs(error[1:]).max()),
                "after_forty_steps": float(error[-1]),
            })  # fmt: skip
    _draw(request.plot)
    runs = {"specified": _rotated(*_exact(3.0))}
    for name, response in RESPONSES.items():
        runs[f"{name}, {LARGE:g} s"] = _rotated(*errors_in_time(response, LARGE, 3.0))
    files = draw_runs(request, runs, (0.0, 0.2, 0.4, 1.0, 2.0, 3.0), speed=0.5)
    about = (
        f"a single coordinate, stiffness {GAINS.stiffness:g} 1/s^2, critical damping, an error of 1 released at rest; "
        f"{COUNT} steps of {MEDIUM:g}, {LARGE:g} and {HUGE:g} s"
    )
    return Outcome(request.name, about, rows, _claims(rows), (request.plot, *files))


def _claims(rows: Rows) -> list[Claim]:
    by_step = {(row["method"], row["step_s"]): row for row in rows}
    unstable = abs(by_step[TRADITIONAL, LARGE]["after_forty_steps"])
    impulse, huge = abs(by_step[IMPULSE, LARGE]["after_forty_steps"]), by_step[IMPULSE, HUGE]
    limit = _last_stable_step() * RATE
    lengths = np.logspace(-4, 4, 4001)
    growth = float(spectral_radius(*coefficients(2.0, 4.0, lengths), lengths).max())
    of_20 = "steps of 20 response times"
    return [
        near(
            "traditional PD: longest stable step, per response time", limit, NOT_GIVEN, STABILITY_LIMIT, 1e-3, "0.828"
        ),
        within_fraction(
            "traditional PD: error after 40 steps of one response time", unstable, "unstable", 6.3e7, 0.02, "6.3e7"
        ),
        below("impulse-based PD: the same", impulse, "stable", 2e-15, "1.6e-15"),
        within_fraction(f"{of_20}: error after one", huge["after_one_step"], NOT_GIVEN, 9.9e-6, 0.01, "9.9e-6"),
        within_fraction(f"{of_20}: error after two", huge["after_two_steps"], NOT_GIVEN, -1.4e-7, 0.05, "-1.4e-7"),
        below("impulse-based PD: growth in a step of any length", growth, "stable", 1.0, "below 1"),
    ]


def _last_stable_step() -> float:
    """Return the step [s] above which traditional PD diverges, found by running it."""

    def decays(step: float) -> bool:
        return abs(errors_in_time(RESPONSES[TRADITIONAL], step, 2000 * step)[1][-1]) < 1.0

    low, high = 0.5 * LARGE, LARGE
    while high - low > 1e-4 * LARGE:
        midpoint = 0.5 * (low + high)
        low, high = (midpoint, high) if decays(midpoint) else (low, midpoint)
    return 0.5 * (low + high)


def _exact(duration: float) -> tuple[Array, Array]:
    time = np.linspace(0.0, duration, 301)
    return time, analytic_error(time)


def _rotated(time: Array, error: Array) -> Dataset:
    """Return a plank that rotates from -90 degrees to level, with these relative errors."""
    return rotated_plank(time, -0.5 * np.pi * error)


def _draw(path: Path) -> None:
    fine, exact = _exact(2.0)
    start = 0.3
    at, after, soon = analytic_error(np.array([start, start + LARGE, start + 1e-6]))
    slope = (soon - at) / 1e-6
    labels = f"error; one step of {LARGE:g} s", "error", "absolute error"
    with figure(path, *labels, size=(12.0, 4.0)) as (one, medium, large):
        one.plot(fine, exact, color=INK, lw=1.0, label="specified")
        for end, color, label in (
            (at + LARGE * slope, RED, "along the tangent"),
            (after, BLUE, "along the secant (impulse-based)"),
        ):
            arrow = {"color": color, "width": 1.5, "headwidth": 8}
            one.annotate("", (start + LARGE, float(end)), (start, float(at)), arrowprops=arrow)
            one.plot([], [], color=color, label=label)
        one.set(xlim=(0.0, 1.0))
        medium.plot(fine, exact, color=INK, lw=1.0, label="specified")
        for name, color in COLORS.items():
            time, error = errors_in_time(RESPONSES[name], MEDIUM, 2.0)
            medium.plot(time, error, "o-", ms=3, color=color, label=f"{name}, {MEDIUM:g} s")
            time, error = errors_in_time(RESPONSES[name], LARGE, COUNT * LARGE)
            error[error == 0.0] = np.nan  # has no logarithm
            large.semilogy(time, np.abs(error), "o-", ms=2.5, color=color, label=f"{name}, {LARGE:g} s")
        last = errors_in_time(GAINS, HUGE, HUGE)[1][1]
        medium.plot([0.0, HUGE], [1.0, last], ":", color=BLUE, label=f"{IMPULSE}, {HUGE:g} s")
        medium.set(xlim=(0.0, 2.0))
