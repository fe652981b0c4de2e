"""Jump and landing in phases with 3, 4, 6 and 4 degrees of freedom (Park et al. 1992, sections 1 and 7).

Heel and toe on the ground, flight, impact of the toe, and landing on a soft heel until rest, as one problem by joint
torques with the torque-velocity law. Required: each phase survives a simulation from its own start, the flight is that
of a body under gravity alone, and the impact conserves angular momentum about the toe. Landing is unstable without
feedback, so its one-step defects are checked instead of its whole simulation.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np

from borelli.experiments.control.filming import draw_runs
from borelli.experiments.experiment import Request
from borelli.experiments.optimal.jump_torque import draw_torques, final_rise, posed_phases, simulate_phases
from borelli.experiments.optimal.resimulation import angle_error
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, below
from borelli.optimal import CertificateLimits, Solution, solve
from borelli.optimal.planar_jumper.jumper_model import JOINTS, ROOT, jumper_table
from borelli.optimal.planar_jumper.torque_jump import FREE, impact_momentum, phase_jump, torque_jump
from borelli.view.panels import View

TOLERANCE = 1e-6
COARSE = {"air": (13, 1), "land": (31, 1)}
"""Nodes and elements of the mesh that is solved first."""
LANDING_WINDOW = 0.05
"""[s] after which re-simulation restarts from the solution."""
LIMITS = CertificateLimits(defect=1e-3, window=LANDING_WINDOW)
MAX_ANGLE_ERROR = 2e-3
"""[rad] of heel, toe and flight."""
VIEW = View(width=240, height=420, azimuth=-80.0, elevation=4.0)


def impulse(solution: Solution) -> np.ndarray:
    """Return the change of generalized momentum at the impact: impulse [N s] on the toe, then zeros."""
    names = (*ROOT[:2], *FREE)
    q = [float(solution.value(name, "air")[-1]) for name in names]
    before = [float(solution.value(f"{name}_speed", "air")[-1]) for name in names]
    after = [float(solution.value(f"{name}_speed", "land")[0]) if name in FREE else 0.0 for name in names]
    return np.array(impact_momentum()(q, np.subtract(after, before))).ravel()


def flight_error(solution: Solution) -> float:
    """Return the largest difference [m] of the center of mass in flight from the parabola of its start."""
    time = solution.phase("air")["time"].values
    time = time - time[0]
    error = []
    for axis, gravity in (("x", 0.0), ("y", jumper_table()["gravity"])):
        place = solution.value(f"center_of_mass_{axis}", "air")
        speed = solution.value(f"center_of_mass_velocity_{axis}", "air")[0]
        error.append(np.abs(place - (place[0] + speed * time - 0.5 * gravity * time**2)).max())
    return float(max(error))


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    sizes = (6, 11, 9, 13) if request.quick else (11, 41, 31, 91)
    begin = process_time()
    request.log("heel and toe")
    ground = solve(torque_jump(*sizes[:2]), tolerance=TOLERANCE)
    request.log("heel, toe, air and landing")
    problem = phase_jump(*sizes)
    coarse = [] if request.quick else [COARSE]
    solution = solve(problem, warm_start=ground, coarse=coarse, tolerance=TOLERANCE, limits=LIMITS)
    seconds = process_time() - begin
    runs = simulate_phases(problem, solution)
    at_impact = impulse(solution)
    rows = [
        {
            "phase": name, "duration_s": float(run.time[-1]), "angle_error_rad": angle_error(run),
            "rise_m": final_rise(solution, "toe"), "impulse_n_s": float(at_impact[1]),
            "iterations": solution.iterations, "cpu_s": seconds, "solved": solution.solved,
        }
        for name, run in runs.items()
    ]  # fmt: skip
    draw_torques(solution, request.plot)
    posed = {"jump and landing": posed_phases(solution, runs)}
    times = np.linspace(0.0, solution.duration, 8).tolist()
    files = draw_runs(request, posed, times, speed=0.4, view=VIEW)
    about = "a jump for height and its landing by joint torques, in phases of 3, 4, 6 and 4 degrees of freedom"
    claims = _claims(solution, rows, at_impact, request.quick)
    return Outcome(request.name, about, rows, claims, (request.plot, *files))


def _claims(solution: Solution, rows: list[dict[str, Any]], at_impact: np.ndarray, quick: bool) -> list[Claim]:
    speeds = [float(solution.value(f"{name}_speed", "land")[-1]) for name in JOINTS]
    claims = [
        below("impact: impulse on free coordinates [N m s]", float(np.abs(at_impact[2:]).max()), NOT_GIVEN, 1e-3, "0"),
        Claim(
            "impact: vertical impulse on the toe [N s]",
            float(at_impact[1]),
            NOT_GIVEN,
            "above 0: upward",
            at_impact[1] > 0.0,
        ),
        below("landing: largest joint speed at its end [rad/s]", float(np.abs(speeds).max()), NOT_GIVEN, 1e-4, "0"),
    ]
    if quick:
        return claims
    stable = max(row["angle_error_rad"] for row in rows if row["phase"] != "land")
    return [
        *claims,
        Claim("solved", float(solution.solved), NOT_GIVEN, "1: solved", solution.solved),
        below(
            "flight: distance of the center of mass from a parabola [m]", flight_error(solution), NOT_GIVEN, 1e-3, "0"
        ),
        below("re-simulated angles on heel, toe and in the air [rad]", stable, NOT_GIVEN, MAX_ANGLE_ERROR),
    ]
