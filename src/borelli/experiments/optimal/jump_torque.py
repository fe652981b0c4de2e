"""Jump for height by joint torques, over phases with 3 and 4 degrees of freedom (Park et al. 1992, section 7).

Torques fall with joint speed (Hill's law as a straight line). The stress test has constant limits instead, which give
jumps of more than 1 m and joint speeds of 40 rad/s; collocation and single shooting get identical bounds there.
Required: every phase survives a simulation under its own torques, and the two methods agree.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset

from borelli.experiments.control.filming import draw_runs
from borelli.experiments.experiment import Request, figure
from borelli.experiments.optimal.jump_muscle import VIEW, rise
from borelli.experiments.optimal.resimulation import PhaseRun, angle_error, posed_dataset, simulate_phase
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, above, below
from borelli.optimal import CertificateLimits, Problem, Solution, solve
from borelli.optimal.planar_jumper.jumper_model import JOINTS, jumper_model
from borelli.optimal.planar_jumper.torque_jump import constant_limit_jump, torque_jump
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE

Array = NDArray[np.float64]

TOLERANCE = 1e-6
MAX_ANGLE_ERROR = 1e-3
"""[rad] of the re-simulation."""
STRESS_MESHES = ((21, 1), (21, 2), (21, 4))
"""Nodes and elements before the last mesh, which has STRESS_ELEMENTS: one unresolved element at take-off is enough for
heights that no simulation reproduces."""
STRESS_ELEMENTS = 8
STRESS_ITERATIONS = 250
STRESS_TIME = 240.0
"""[s]"""
SHOOTING_TIME = 120.0
"""[s]"""


def final_rise(solution: Solution, phase: str) -> float:
    """Return the rise [m] that a solution states at the end of a phase."""
    names = ("center_of_mass_y", "center_of_mass_velocity_y")
    return rise({name: float(solution.value(name, phase)[-1]) for name in names})


def simulate_phases(problem: Problem, solution: Solution) -> dict[str, PhaseRun]:
    """Simulate every phase from its own start."""
    return {phase.name: simulate_phase(solution, phase.system, phase.name) for phase in problem.phases}


def posed_phases(solution: Solution, runs: dict[str, PhaseRun]) -> Dataset:
    """Return the simulated phases one after another, for pictures."""
    time: list[Array] = []
    columns: dict[str, list[Array]] = {}
    for name, run in runs.items():
        start = float(solution.phase(name)["time"].values[0])
        rows = slice(0 if not time else 20, None, 20)
        time.append(start + run.time[rows])
        for c in jumper_model(muscles=False).coordinates:
            values = run.state.get(c.name, np.zeros(len(run.time)))
            columns.setdefault(c.name, []).append(values[rows])
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    return posed_dataset(jumper_model(muscles=False), np.concatenate(time), joined)


def law_row(solution: Solution, runs: dict[str, PhaseRun], seconds: float) -> dict[str, Any]:
    """Return the row of the jump with the torque-velocity law."""
    return {
        "limits": "torque-velocity law", "method": "radau", "rise_m": final_rise(solution, "toe"),
        "resimulated_rise_m": rise(runs["toe"].end),
        "largest_angle_error_rad": max(angle_error(run) for run in runs.values()),
        "iterations": solution.iterations, "cpu_s": seconds, "solved": solution.solved,
    }  # fmt: skip


def stress_rows(log: Any) -> list[dict[str, Any]]:
    """Return rows of the jump with constant limits, by collocation and by single shooting from its solution."""
    problem = constant_limit_jump(elements=STRESS_ELEMENTS)
    limits = CertificateLimits(defect=2e-3)
    rows, solution = [], None
    for method in ("radau", "single-shooting"):
        log(f"constant limits by {method}")
        begin = process_time()
        if method == "radau":
            solution = solve(problem, coarse=STRESS_MESHES, tolerance=TOLERANCE, max_iterations=STRESS_ITERATIONS,
                             time_limit=STRESS_TIME, limits=limits)  # fmt: skip
        else:
            solution = solve(problem, method=method, steps=4, warm_start=solution, tolerance=TOLERANCE,
                             time_limit=SHOOTING_TIME, limits=limits)  # fmt: skip
        again = simulate_phase(solution, problem.phases[0].system, "push")
        rows.append({
            "limits": "constant", "method": method, "rise_m": final_rise(solution, "push"),
            "resimulated_rise_m": rise(again.end), "largest_angle_error_rad": angle_error(again),
            "iterations": solution.iterations, "cpu_s": process_time() - begin, "solved": solution.solved,
        })  # fmt: skip
    return rows


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    problem = torque_jump(6, 11) if request.quick else torque_jump()
    request.log("torque-velocity law")
    begin = process_time()
    solution = solve(problem, tolerance=TOLERANCE)
    seconds = process_time() - begin
    runs = simulate_phases(problem, solution)
    rows = [law_row(solution, runs, seconds)]
    if not request.quick:
        rows += stress_rows(request.log)
    draw_torques(solution, request.plot)
    times = np.linspace(0.0, solution.duration, 6).tolist()
    posed = {"torque-velocity law": posed_phases(solution, runs)}
    files = draw_runs(request, posed, times, speed=0.2, view=VIEW)
    about = "a jump for height from a squat by joint torques, heel and toe on the ground in turn"
    return Outcome(request.name, about, rows, _claims(solution, rows, request.quick), (request.plot, *files))


def _claims(solution: Solution, rows: list[dict[str, Any]], quick: bool) -> list[Claim]:
    law = rows[0]
    # constraints hold at collocation points, which the start is not
    heel, force = -solution.value("foot_pitch_reaction", "heel")[1:], solution.value("toe_y_reaction")[1:]
    claims = [
        above("moment of the ground under the heel: least [N m]", float(heel.min()), NOT_GIVEN, -1e-3),
        above("vertical force of the ground: least [N]", float(force.min()), NOT_GIVEN, -1e-3),
    ]  # fmt: skip
    if quick:
        return claims
    radau, shooting = rows[1:]
    difference, angles = abs(law["rise_m"] - law["resimulated_rise_m"]), law["largest_angle_error_rad"]
    between = abs(radau["rise_m"] / shooting["rise_m"] - 1.0)
    return [
        *claims,
        Claim("solved", float(law["solved"]), NOT_GIVEN, "1: solved", law["solved"]),
        below("re-simulated angles: largest difference [rad]", angles, NOT_GIVEN, MAX_ANGLE_ERROR),
        below("re-simulated rise: difference [m]", difference, NOT_GIVEN, 1e-3),
        below("constant limits: difference of the methods", between, NOT_GIVEN, 0.03),
        below("constant limits, collocation: relative difference of the re-simulated rise",
              abs(radau["resimulated_rise_m"] / radau["rise_m"] - 1.0), NOT_GIVEN, 5e-3),
    ]  # fmt: skip


def draw_torques(solution: Solution, path: Path) -> None:
    """Draw angles, torques, forces of the ground and the height of the center of mass of a jump."""
    labels = "joint angles [deg]", "joint torques [N m]", "ground force [N]", "height of the center of mass [m]"
    with figure(path, *labels, size=(14.0, 3.6)) as (angles, torques, force, height):
        time = solution.dataset["time"].values
        for name, color in zip(JOINTS, (BLUE, GREEN, ORANGE), strict=True):
            angles.plot(time, np.degrees(solution.value(name)), color=color, label=name.replace("_", " "))
            torques.plot(time, solution.value(f"{name}_torque"), color=color, label=name.replace("_", " "))
        force.plot(time, solution.value("toe_y_reaction"), color=BLUE, label="vertical")
        force.plot(time, solution.value("toe_x_reaction"), color=ORANGE, label="forward")
        height.plot(time, solution.value("center_of_mass_y"), color=INK)
        ends = np.cumsum(solution.dataset["phase_duration"].values)[:-1]
        for panel in (angles, torques, force, height):
            for end in ends:
                panel.axvline(end, color="0.8", lw=0.8)
