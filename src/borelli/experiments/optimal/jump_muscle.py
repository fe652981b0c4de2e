"""Jump for height by eight muscles with neural excitations at nodes as unknowns (Park et al. 1992, sections 4 to 7).

The toe is on the ground and the heel on a soft spring; the jump starts from a static squat and ends as the ground's
force becomes zero. Required: the solution survives a simulation under its own excitations, few nodes are close to
many, and the height is human. Published heights are of other models: Pandy, Zajac, Sim and Levine (1990) and Anderson
and Pandy (1993) report 0.33 to 0.38 m.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from xarray import Dataset

from borelli.experiments.control.filming import draw_runs
from borelli.experiments.experiment import Request, figure
from borelli.experiments.optimal.resimulation import PhaseRun, angle_error, posed_dataset, simulate_phase
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, below
from borelli.optimal import CertificateLimits, Problem, Solution, solve
from borelli.optimal.planar_jumper.jump_problems import muscle_jump
from borelli.optimal.planar_jumper.jumper_model import JOINTS, jumper_model, jumper_table
from borelli.optimal.planar_jumper.jumper_systems import standing_height
from borelli.view.panels import View
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE

COARSE = ((11, 1),)
"""Mesh (nodes, elements) solved first."""
NODES, MANY_NODES = 21, 41
TOLERANCE = 1e-6
ORDER = 4
"""Points per element: with three, the stiff heel needs twice the elements."""
LIMITS = CertificateLimits(defect=2e-3)
"""One-step defects up to 10 mrad/s, in the foot's speed on its stiff heel, where they do not accumulate: the whole
re-simulation keeps the default limit."""
MAX_ANGLE_ERROR = 1e-3
"""[rad] of the re-simulation."""
MAX_HEIGHT_ERROR = 1e-3
"""[m]"""
HUMAN_HEIGHTS = (0.30, 0.45)
"""[m] usual vertical jumps of adults, rise of the center of mass above standing."""
VIEW = View(width=240, height=340, azimuth=-80.0, elevation=4.0)


def solve_jump(problem: Problem, *, quick: bool = False) -> Solution:
    """Solve a muscle jump from coarse to fine."""
    return solve(problem, coarse=() if quick else COARSE, order=ORDER, tolerance=TOLERANCE, limits=LIMITS)


def rise(outputs: dict[str, float]) -> float:
    """Return the rise [m] of the center of mass above standing, to the apex, from outputs at take-off."""
    flight = outputs["center_of_mass_velocity_y"] ** 2 / (2.0 * jumper_table()["gravity"])
    return outputs["center_of_mass_y"] + flight - standing_height()


def claimed_rise(solution: Solution) -> float:
    """Return the rise [m] that the solution states."""
    names = ("center_of_mass_y", "center_of_mass_velocity_y")
    return rise({name: float(solution.value(name)[-1]) for name in names})


def jump_row(name: str, nodes: int, solution: Solution, again: PhaseRun, seconds: float) -> dict[str, Any]:
    """Return the row of a jump in the table."""
    return {
        "jump": name, "nodes": nodes, "rise_m": claimed_rise(solution), "resimulated_rise_m": rise(again.end),
        "largest_angle_error_rad": angle_error(again), "push_s": solution.duration,
        "iterations": solution.iterations, "cpu_s": seconds, "solved": solution.solved,
        "verdict": solution.certificate.verdict,
    }  # fmt: skip


def posed_jump(again: PhaseRun) -> Dataset:
    """Return the re-simulated jump for pictures."""
    model = jumper_model()
    rows = slice(None, None, 20)
    state = {name: values[rows] for name, values in again.state.items()}
    activation = {m.name: state[f"{m.name}_activation"] for m in model.muscles}
    return posed_dataset(model, again.time[rows], state, activation)


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    nodes = 6 if request.quick else NODES
    problem = muscle_jump(nodes=nodes)
    system = problem.phases[0].system
    request.log(f"{nodes} nodes")
    begin = process_time()
    solution = solve_jump(problem, quick=request.quick)
    seconds = process_time() - begin
    again = simulate_phase(solution, system, "push")
    rows = [jump_row("few nodes", nodes, solution, again, seconds)]
    if not request.quick:
        request.log(f"{MANY_NODES} nodes")
        begin = process_time()
        fine = replace(problem, phases=[replace(problem.phases[0], nodes=MANY_NODES)])
        many = solve(fine, warm_start=solution, order=3, tolerance=TOLERANCE, limits=LIMITS)
        fine_run = simulate_phase(many, system, "push")
        rows.append(jump_row("many nodes", MANY_NODES, many, fine_run, process_time() - begin))
    _draw(solution, request.plot)
    runs = {f"{nodes} nodes": posed_jump(again)}
    times = np.linspace(0.0, solution.duration, 6).tolist()
    files = draw_runs(request, runs, times, speed=0.2, view=VIEW)
    about = f"a jump for height from a squat by eight muscles, {nodes} nodes of excitation"
    return Outcome(request.name, about, rows, _claims(rows, request.quick), (request.plot, *files))


def _claims(rows: list[dict[str, Any]], quick: bool) -> list[Claim]:
    few, many = rows[0], rows[-1]
    low, high = HUMAN_HEIGHTS
    error, angles = abs(few["rise_m"] - few["resimulated_rise_m"]), few["largest_angle_error_rad"]
    height = Claim(
        "rise of the center of mass [m]",
        few["rise_m"],
        "0.33 to 0.38 (other models)",
        f"{low:g} to {high:g} (people)",
        low < few["rise_m"] < high,
    )
    if quick:
        return [height]
    return [
        height,
        Claim("solved", float(few["solved"]), NOT_GIVEN, "1: solved", few["solved"]),
        below("re-simulated rise: difference [m]", error, NOT_GIVEN, MAX_HEIGHT_ERROR),
        below("re-simulated angles: largest difference [rad]", angles, NOT_GIVEN, MAX_ANGLE_ERROR),
        below("loss of height against many nodes", 1.0 - few["rise_m"] / many["rise_m"], NOT_GIVEN, 0.03),
    ]  # fmt: skip


def _draw(solution: Solution, path: Path) -> None:
    labels = "joint angles [deg]", "ground force [N]", "activation of extensors", "activation of other muscles"
    with figure(path, *labels, size=(14.0, 3.6)) as (angles, force, extensors, others):
        time = solution.dataset["time"].values
        for name, color in zip(JOINTS, (BLUE, GREEN, ORANGE), strict=True):
            angles.plot(time, np.degrees(solution.value(name)), color=color, label=name.replace("_", " "))
        force.plot(time, solution.value("toe_y_reaction"), color=BLUE, label="vertical")
        force.plot(time, solution.value("toe_x_reaction"), color=ORANGE, label="forward")
        for panel, muscles in ((extensors, ("GMAX", "VAS", "SOL", "OPF")), (others, ("HAMS", "RF", "GAS", "TA"))):
            for muscle, color in zip(muscles, (BLUE, GREEN, ORANGE, INK), strict=True):
                panel.plot(time, solution.value(f"{muscle}_activation"), color=color, label=muscle)
                panel.plot(time, solution.value(f"{muscle}_excitation"), ":", color=color, lw=0.8)
