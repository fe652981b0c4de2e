"""Jump of an old person: the muscle jump with slower activation (Park et al. 1992, section 5).

The report states that activation is slower in old people and changes their motion, without numbers. Here only the time
constant of activation grows, in steps of a factor of two; strength stays. Required: the slower, the lower the jump.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np

from borelli.experiments.control.filming import draw_runs
from borelli.experiments.experiment import Request, figure
from borelli.experiments.optimal.jump_muscle import LIMITS, ORDER, TOLERANCE, VIEW, claimed_rise, jump_row, posed_jump
from borelli.experiments.optimal.resimulation import simulate_phase
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome
from borelli.optimal import Solution, solve
from borelli.optimal.planar_jumper.jump_problems import muscle_jump
from borelli.view.plot_style import BLUE, GREEN, ORANGE

ACTIVATION_TIMES = (0.020, 0.040, 0.080)
"""[s]; the first is of the young (Pandy et al. 1990), the others are a choice."""
NODES = 11
COLORS = (BLUE, GREEN, ORANGE)


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    nodes = 6 if request.quick else NODES
    rows, runs, solutions = [], {}, {}
    solution: Solution | None = None
    for seconds in ACTIVATION_TIMES[::2] if request.quick else ACTIVATION_TIMES:
        name = f"{1e3 * seconds:.0f} ms"
        request.log(f"activation in {name}")
        problem = muscle_jump(nodes=nodes, elements=1 if request.quick else 2, activation_time=seconds)
        begin = process_time()
        solution = solve(problem, warm_start=solution, order=ORDER, tolerance=TOLERANCE, limits=LIMITS)
        again = simulate_phase(solution, problem.phases[0].system, "push")
        row = jump_row(name, nodes, solution, again, process_time() - begin)
        rows.append({"activation_time_s": seconds} | row)
        runs[name], solutions[name] = posed_jump(again), solution
    _draw(solutions, request.plot)
    names = list(runs)
    shown = {name: runs[name] for name in (names[0], names[-1])}
    times = np.linspace(0.0, max(s.duration for s in solutions.values()), 5).tolist()
    files = draw_runs(request, shown, times, speed=0.2, view=VIEW)
    heights = [claimed_rise(s) for s in solutions.values()]
    falls = bool(np.all(np.diff(heights) < 0.0))
    claims = [
        Claim(
            "loss of height by the slowest activation [m]",
            heights[0] - heights[-1],
            NOT_GIVEN,
            "falls from each speed to the next slower",
            falls,
        )
    ]
    if not request.quick:
        solved = sum(s.solved for s in solutions.values())
        claims.append(Claim("jumps solved", solved, NOT_GIVEN, f"all {len(solutions)}", solved == len(solutions)))
    about = f"jumps for height by eight muscles with slower and slower activation, {nodes} nodes"
    return Outcome(request.name, about, rows, claims, (request.plot, *files))


def _draw(solutions: dict[str, Solution], path: Path) -> None:
    labels = "activation of vasti", "ground force [N]", "height of the center of mass [m]"
    with figure(path, *labels, size=(12.0, 3.6)) as (activation, force, height):
        for (name, solution), color in zip(solutions.items(), COLORS, strict=False):
            time = solution.dataset["time"].values
            activation.plot(time, solution.value("VAS_activation"), color=color, label=name)
            force.plot(time, solution.value("toe_y_reaction"), color=color, label=name)
            height.plot(time, solution.value("center_of_mass_y"), color=color, label=name)
