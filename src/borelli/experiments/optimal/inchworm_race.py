"""Race of inchworms (the film of Park et al. 1992, section 7): inverse dynamics against spacetime constraints.

Two worms are planned in extended generalized coordinates, one with its shape and one with its head only; one is
animated by spacetime constraints. Required: planned worms follow their plans under simulated torques, and the optimum
of spacetime constraints is nearly a motion, the more the finer it is.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.experiments.control.filming import draw_runs
from borelli.experiments.experiment import Request, figure
from borelli.experiments.optimal.resimulation import posed_dataset
from borelli.experiments.optimal.worm_model import LINKS, link_ends, worm_model
from borelli.experiments.optimal.worm_race import STRETCH_TIME, Stretch, extend, planned_stretch, race_motion
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, below
from borelli.view.panels import View
from borelli.view.plot_style import BLUE, GREEN, ORANGE

INTERVALS = (20, 40, 80)
STRIDES = 3
FRAME_RATE = 25.0
"""[1/s]"""
MAX_PLAN_ERROR = 2e-3
"""[m or rad] of planned worms."""
MAX_DEFECT = 0.02
"""[rad] at the most intervals."""
MAX_SECONDS = 5.0
"""[s] CPU time of a solution."""
VIEW = View(width=560, height=260, azimuth=-60.0, elevation=18.0)
COLORS = (BLUE, GREEN, ORANGE)


def planned_row(name: str, *, shape: bool) -> tuple[dict[str, Any], Stretch]:
    """Return the row and the stretch of a planned worm."""
    begin = process_time()
    run, coordinates, plan = planned_stretch(shape=shape)
    seconds = process_time() - begin
    attained = np.array([coordinates.values(x[:LINKS]) for x in run.state[::20]])
    error = np.abs(attained - [plan(t)[0] for t in run.time[::20]]).max()
    cost = float((run.control**2).sum() * STRETCH_TIME / len(run.control))
    row = {
        "worm": name,
        "intervals": len(run.control),
        "error": float(error),
        "squared_torques": cost,
        "cpu_s": seconds,
    }
    return row, Stretch(run.time, run.state[:, :LINKS])


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    request.log("planned worms")
    rows, stretches = [], {}
    for name, shape in (("head and shape planned", True), ("head planned", False)):
        row, stretches[name] = planned_row(name, shape=shape)
        rows.append(row)
    for intervals in INTERVALS[:2] if request.quick else INTERVALS:
        request.log(f"spacetime constraints, {intervals} intervals")
        begin = process_time()
        found = extend(intervals)
        rows.append({
            "worm": "spacetime constraints", "intervals": intervals, "error": float(np.abs(found.defect).max()),
            "squared_torques": found.cost, "cpu_s": process_time() - begin,
        })  # fmt: skip
    stretches["spacetime constraints"] = Stretch(found.time, found.position)
    _draw(stretches, rows, request.plot)
    time = np.arange(0.0, 2.0 * STRETCH_TIME * STRIDES, 1.0 / FRAME_RATE)
    race = posed_dataset(worm_model(len(stretches), clamped=False), time, race_motion(list(stretches.values()), time))
    shown = [0.0, STRETCH_TIME / 2, STRETCH_TIME, 1.5 * STRETCH_TIME, float(time[-1])]
    files = draw_runs(request, {"inchworm race": race}, shown, view=VIEW)
    about = "inchworms by inverse dynamics in extended coordinates, and by spacetime constraints"
    return Outcome(request.name, about, rows, _claims(rows, request.quick), (request.plot, *files))


def _claims(rows: list[dict[str, Any]], quick: bool) -> list[Claim]:
    planned = [row for row in rows if row["worm"].endswith("planned")]
    optimal = [row for row in rows if row["worm"] == "spacetime constraints"]
    defects = [row["error"] for row in optimal]
    plan, falls = max(row["error"] for row in planned), bool(np.all(np.diff(defects) < 0.0))
    claims = [
        below("planned worms: largest error of the plan [m or rad]", plan, NOT_GIVEN, MAX_PLAN_ERROR, "0"),
        Claim("spacetime: one-step defect of the finest [rad]", defects[-1], NOT_GIVEN, "falls with intervals", falls),
        below("spacetime: CPU time of the finest [s]", optimal[-1]["cpu_s"], NOT_GIVEN, MAX_SECONDS),
    ]  # fmt: skip
    limit = below("spacetime: one-step defect with 80 intervals [rad]", defects[-1], NOT_GIVEN, MAX_DEFECT)
    return claims if quick else [*claims, limit]


def head_height(stretch: Stretch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the path (x, y) [m] of the head."""
    ends = link_ends(stretch.angles)[:, -1]
    return ends[:, 0], ends[:, 1]


def _draw(stretches: dict[str, Stretch], rows: list[dict[str, Any]], path: Path) -> None:
    labels = "height of the head [m]", "angle of the first hinge [deg]", "one-step defect [rad]"
    with figure(path, *labels, size=(12.0, 3.6)) as (heads, angles, defects):
        for (name, stretch), color in zip(stretches.items(), COLORS, strict=True):
            heads.plot(*head_height(stretch), color=color, label=name)
            angles.plot(stretch.time, np.degrees(stretch.angles[:, 0]), color=color, label=name)
        optimal = [row for row in rows if row["worm"] == "spacetime constraints"]
        steps = [STRETCH_TIME / row["intervals"] for row in optimal]
        defects.loglog(steps, [row["error"] for row in optimal], "o-", color=ORANGE)
        defects.set_xticks(steps, [f"{1e3 * step:.0f}" for step in steps])
        defects.set_xticks([], minor=True)
        heads.set(xlabel="position [m]")
        defects.set(xlabel="interval [ms]")
