"""Steps too long for traditional PD: what one step does, where it bursts, and that impulse-based PD never does.

After Weinstein, Guendelman and Fedkiw, Fig. 2 and 4: one coordinate alone, stiffness 25 and critical damping. Fig. 2 is
one step from the same start: along the tangent (explicit torques, here with the velocity that semi-implicit steps take)
and along the secant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.control.pd_step_responses import StableResponse, TraditionalResponse
from borelli.control.response import Response, coefficients
from borelli.control.stability import spectral_radius
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.pd_convergence import GAINS, asked, errors_in_time
from borelli.experiments.control.planks import OURS, STABLE, TRADITIONAL, turned_plank
from borelli.experiments.movement.stepped_common import BLUE, GREEN, INK, RED, tidy

Array = NDArray[np.float64]

RESPONSES: dict[str, Response] = {
    OURS: GAINS,
    TRADITIONAL: TraditionalResponse(GAINS),
    STABLE: StableResponse(GAINS),
}
RATE = float(np.sqrt(GAINS.stiffness))
"""[1/s]: a step of 1 / RATE is as long as the response."""
MEDIUM, LARGE, HUGE = 0.5 / RATE, 1.0 / RATE, 20.0 / RATE
"""[s]: errors can be seen; traditional PD bursts; far longer than the response."""
COUNT = 40
"""Steps after which errors are looked at."""
LIMIT = 2.0 * 2.0**0.5 - 2.0
"""Of RATE times the step, for traditional PD with critical damping."""


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    rows: list[dict[str, Any]] = []
    for name, response in RESPONSES.items():
        say(name)
        for step in (MEDIUM, LARGE, HUGE):
            _, error = errors_in_time(response, step, COUNT * step)
            rows.append({
                "method": name, "step_s": step, "step_per_response": RATE * step, "after_one_step": float(error[1]),
                "after_two_steps": float(error[2]), "largest_later": float(np.abs(error[1:]).max()),
                "after_forty_steps": float(error[-1]),
            })  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "pd-large-step.png"
    _draw(plot)
    say("drawing")
    runs = {"as asked for": _turned(*_exact(3.0)), **_planks()}
    files = draw_runs(runs, out, "pd-large-step", (0.0, 0.2, 0.4, 1.0, 2.0, 3.0), quick=quick, speed=0.5)
    about = (
        f"one coordinate alone, stiffness {GAINS.stiffness:g} 1/s^2, critical damping, an error of 1 released at rest; "
        f"{COUNT} steps of {MEDIUM:g}, {LARGE:g} and {HUGE:g} s"
    )
    return write_outcome(Outcome("pd-large-step", about, rows, _claims(rows), (plot, *files)), out)


def _claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    found = {(row["method"], row["step_s"]): row for row in rows}
    burst = abs(found[TRADITIONAL, LARGE]["after_forty_steps"])
    ours, huge = found[OURS, LARGE]["after_forty_steps"], found[OURS, HUGE]
    limit = _last_stable_step() * RATE
    lengths = np.logspace(-4, 4, 4001)
    growth = float(spectral_radius(*coefficients(2.0, 4.0, lengths), lengths).max())
    return [
        Claim("traditional PD: longest stable step, per response", limit, "0.828", abs(limit - LIMIT) < 1e-3),
        Claim("traditional PD: error after 40 steps of one response", burst, "6.3e7", abs(burst / 6.3e7 - 1.0) < 0.02),
        Claim("impulse-based PD: the same", abs(ours), "1.6e-15", abs(ours) < 2e-15),
        Claim("20 responses a step: error after one", huge["after_one_step"], "9.9e-6",
              abs(huge["after_one_step"] / 9.9e-6 - 1.0) < 0.01),
        Claim("20 responses a step: error after two", huge["after_two_steps"], "-1.4e-7",
              abs(huge["after_two_steps"] / -1.4e-7 - 1.0) < 0.05),
        Claim("impulse-based PD: growth in a step of any length", growth, "below 1", growth < 1.0),
    ]  # fmt: skip


def _last_stable_step() -> float:
    """The step [s] from which traditional PD grows, found by running it."""

    def dies_away(step: float) -> bool:
        return abs(errors_in_time(RESPONSES[TRADITIONAL], step, 2000 * step)[1][-1]) < 1.0

    low, high = 0.5 * LARGE, LARGE
    while high - low > 1e-4 * LARGE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if dies_away(middle) else (low, middle)
    return 0.5 * (low + high)


def _exact(duration: float) -> tuple[Array, Array]:
    time = np.linspace(0.0, duration, 301)
    return time, asked(time)


def _turned(time: Array, error: Array) -> Any:
    """A plank that is to turn from -90 degrees to level, with these errors of what it has to turn."""
    return turned_plank(time, -0.5 * np.pi * error)


def _planks() -> dict[str, Any]:
    return {
        f"{name}, {LARGE:g} s": _turned(*errors_in_time(response, LARGE, 3.0)) for name, response in RESPONSES.items()
    }


def _draw(path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 4.0), layout="constrained")
    one, medium, burst = figure.subplots(1, 3)
    fine, error = _exact(2.0)
    start = 0.3
    at, after = asked(np.array([start])), asked(np.array([start + LARGE]))
    slope = (asked(np.array([start + 1e-6])) - at) / 1e-6
    one.plot(fine, error, color=INK, lw=1.0, label="as asked for")
    for end, color, label in ((at + LARGE * slope, RED, "along the tangent"), (after, BLUE, "along the secant: ours")):
        one.annotate(
            "",
            (start + LARGE, float(end[0])),
            (start, float(at[0])),
            arrowprops={"color": color, "width": 1.5, "headwidth": 8},
        )
        one.plot([], [], color=color, label=label)
    one.set(xlabel="time [s]", ylabel=f"error; one step of {LARGE:g} s", xlim=(0.0, 1.0))
    medium.plot(fine, error, color=INK, lw=1.0, label="as asked for")
    for name, color in ((OURS, BLUE), (TRADITIONAL, RED), (STABLE, GREEN)):
        time, found = errors_in_time(RESPONSES[name], MEDIUM, 2.0)
        medium.plot(time, found, "o-", ms=3, color=color, label=f"{name}, {MEDIUM:g} s")
        time, found = errors_in_time(RESPONSES[name], LARGE, COUNT * LARGE)
        found[found == 0.0] = np.nan  # crossed, not reached
        burst.semilogy(time, np.abs(found), "o-", ms=2.5, color=color, label=f"{name}, {LARGE:g} s")
    medium.plot(
        [0.0, HUGE], [1.0, errors_in_time(GAINS, HUGE, HUGE)[1][1]], ":", color=BLUE, label=f"{OURS}, {HUGE:g} s"
    )
    medium.set(xlabel="time [s]", ylabel="error", xlim=(0.0, 2.0))
    burst.set(xlabel="time [s]", ylabel="absolute error")
    for ax in (one, medium, burst):
        ax.legend(frameon=False, fontsize=8)
    tidy([one, medium, burst])
    figure.savefig(path, dpi=130)
