"""Solution of optimal control problems: meshes from coarse to fine, refinement, several starts, and the certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError
from borelli.optimal.certificate.certify import CertificateLimits, certify
from borelli.optimal.dataset import add_defects, make_dataset
from borelli.optimal.first_values import FirstValuesError, check_first_values, vary_guess
from borelli.optimal.levels import Level, inaccurate_intervals, refine_intervals, with_elements, with_mesh
from borelli.optimal.multi_start import choose_best, solve_starts
from borelli.optimal.nlp_solvers.checkpoint import CheckpointWriter, check_matches, read_checkpoint
from borelli.optimal.nlp_solvers.ipopt import solve_ipopt
from borelli.optimal.nlp_solvers.slsqp import solve_slsqp
from borelli.optimal.nlp_solvers.solver_result import Iterate, SolverResult
from borelli.optimal.nlp_solvers.watching import Supervisor, show_progress
from borelli.optimal.problem import Problem
from borelli.optimal.solution import Solution, guess_from_dataset
from borelli.optimal.transcription.guess import Guess, default_guess
from borelli.optimal.transcription.nlp import Nlp
from borelli.optimal.transcription.trajectory import read_trajectories
from borelli.optimal.transcription.transcribe import transcribe

Array = NDArray[np.float64]

VARIATIONS = 6
"""Attempts to vary the first values, each by half of the one before, until costs and constraints are finite."""
ENDED = ("cancelled", "time limit")
"""Statuses after which no further mesh is solved."""


@dataclass(frozen=True)
class SolverOptions:
    """Transcription, solver and their limits."""

    method: str = "radau"
    order: int = 3
    steps: int = 4
    tolerance: float = 1e-8
    max_iterations: int = 3000
    gradients: str = "exact"
    linear_solver: str = "mumps"
    threads: int = 1


def solve(
    problem: Problem,
    *,
    method: str = "radau",
    order: int = 3,
    steps: int = 4,
    tolerance: float = 1e-8,
    max_iterations: int = 3000,
    time_limit: float = 600.0,
    gradients: str = "exact",
    linear_solver: str = "mumps",
    threads: int = 1,
    warm_start: Solution | None = None,
    coarse: Sequence[Level] = (),
    refine: int = 0,
    starts: int = 1,
    workers: int = 1,
    spread: float = 0.3,
    seed: int = 0,
    checkpoint: str | PathLike[str] | None = None,
    progress: bool | Callable[[Iterate], None] = False,
    limits: CertificateLimits | None = None,
) -> Solution:
    """Solve a problem and check the solution.

    Args:
        problem: The problem.
        method: "radau", "hermite-simpson", "multiple-shooting" or "single-shooting".
        order: Points per element of Radau collocation, 1 to 4.
        steps: Runge-Kutta steps per element of shooting.
        tolerance: Of the solver.
        max_iterations: Of the solver, on each mesh.
        time_limit: Wall time [s] of each start, for all its meshes.
        gradients: Of single shooting: "exact", or "perturbed" (one simulation per unknown).
        linear_solver: Of IPOPT: "mumps" or "spral".
        threads: Threads that evaluate elements.
        warm_start: Solution of a similar problem to start from. Default: the guess of the problem.
        coarse: Meshes to solve first, each from the solution of the one before: (nodes, elements per interval), or by
            phase. The problem's own mesh is the last.
        refine: Rounds of refinement at most: intervals whose one-step defect exceeds the limit get twice the elements.
        starts: Number of starts; all but the first vary the first values at random. The best solved one is returned.
        workers: Processes that share the starts. The result does not depend on their number.
        spread: Standard deviation of the variations, in typical sizes of the variables.
        seed: Of the random variations.
        checkpoint: File for the last iterate. If it exists, the solution resumes from it.
        progress: Show iterations in the terminal, or call a function with each.
        limits: Limits of the certificate. Default: `CertificateLimits()`.

    Returns:
        The solution; `solution.solved` states whether it passed all checks, `solution.certificate` why not.

    Raises:
        SettingsError: An argument, a name or an expression of the problem is wrong.
    """
    options = SolverOptions(method, order, steps, tolerance, max_iterations, gradients, linear_solver, threads)
    if checkpoint is not None and starts > 1:
        raise SettingsError(f"{starts} starts: A checkpoint belongs to one start. Omit `checkpoint`, or use starts=1.")
    guess = default_guess(problem) if warm_start is None else guess_from_dataset(warm_start.dataset, problem)
    with ExitStack() as stack:
        report = None
        if callable(progress):
            callback = progress
            report = lambda _level, iterate: callback(iterate)  # noqa: E731
        elif progress and workers == 1:
            report = stack.enter_context(show_progress(problem.name))

        def solve_start(start: int) -> Solution:
            supervisor = Supervisor(time_limit, report)
            search = Search(
                problem, options, supervisor, tuple(coarse), refine, checkpoint, limits or CertificateLimits()
            )
            with supervisor.catch_interrupt():
                if start == 0:
                    return solve_levels(search, guess, warm=warm_start is not None)
                return _solve_varied(search, guess, start, seed, spread)

        solutions = solve_starts(solve_start, starts, workers)
    return solutions[0] if starts == 1 else choose_best(solutions)


@dataclass(frozen=True)
class Search:
    """What one start solves, and how."""

    problem: Problem
    options: SolverOptions
    supervisor: Supervisor
    coarse: tuple[Level, ...]
    refine: int
    checkpoint: str | PathLike[str] | None
    limits: CertificateLimits


def _solve_varied(search: Search, guess: Guess, start: int, seed: int, spread: float) -> Solution:
    """Solve from varied first values; halve the variation until costs and constraints are finite there."""
    for attempt in range(VARIATIONS):
        varied = vary_guess(search.problem, guess, start, seed, spread / 2**attempt)
        try:
            return solve_levels(search, varied, warm=False)
        except FirstValuesError:
            continue
    return solve_levels(search, guess, warm=False)


def solve_levels(search: Search, guess: Guess, *, warm: bool) -> Solution:
    """Solve on every mesh from coarse to fine, then refine."""
    problem, options, supervisor = search.problem, search.options, search.supervisor
    coarse, checkpoint = search.coarse, search.checkpoint
    meshes = [with_mesh(problem, level) for level in coarse] + [problem]
    stored = read_checkpoint(checkpoint) if checkpoint is not None else None
    level, iterations, runtime = 0, 0, 0.0
    if stored is not None:
        level = stored.level
        meshes += [meshes[-1]] * (level + 1 - len(meshes))
        meshes[level] = with_elements(meshes[level], stored.elements)
    while True:
        supervisor.level = f" (mesh {level + 1})" if len(meshes) > 1 else ""
        nlp = _transcribe(meshes[level], guess, options)
        first = nlp.first
        if stored is not None:
            check_matches(stored, nlp, checkpoint or "")
            first, warm, stored = stored.w, True, None
        writer = None if checkpoint is None else CheckpointWriter(checkpoint, level, nlp)
        result = _run_solver(nlp, first, options, supervisor, writer, warm=warm)
        warm, iterations, runtime = True, iterations + result.iterations, runtime + result.runtime
        solution = None
        if level + 1 >= len(meshes) or result.status in ENDED:
            solution, intervals = _finish(nlp, result, iterations, runtime, options, search.limits)
            rounds = level - len(coarse)
            if not intervals or rounds >= search.refine or result.status in ENDED or supervisor.remaining == 0.0:
                return solution
            meshes.append(refine_intervals(meshes[level], intervals))
        dataset = make_dataset(meshes[level], read_trajectories(nlp, result.w))
        guess = guess_from_dataset(dataset, meshes[level + 1])
        level += 1


def _transcribe(problem: Problem, guess: Guess, options: SolverOptions) -> Nlp:
    return transcribe(
        problem, guess, method=options.method, order=options.order, steps=options.steps, threads=options.threads
    )


def _run_solver(
    nlp: Nlp,
    first: Array,
    options: SolverOptions,
    supervisor: Supervisor,
    writer: CheckpointWriter | None,
    *,
    warm: bool,
) -> SolverResult:
    """Run the solver of a method on one mesh; write its last iterate."""
    check_first_values(nlp, first)
    supervisor.save = writer
    limits = {
        "watch": supervisor,
        "tolerance": options.tolerance,
        "max_iterations": options.max_iterations,
        "time_limit": supervisor.remaining,
    }
    if options.method == "single-shooting":
        result = solve_slsqp(nlp, first, gradients=options.gradients, **limits)  # type: ignore[arg-type]
    else:
        result = solve_ipopt(nlp, first, linear_solver=options.linear_solver, warm=warm, **limits)  # type: ignore[arg-type]
    if writer is not None:
        writer.write(result.w)
    return result


def _finish(
    nlp: Nlp, result: SolverResult, iterations: int, runtime: float, options: SolverOptions, limits: CertificateLimits
) -> tuple[Solution, dict[str, list[int]]]:
    """Return the certified solution, and by phase the intervals between nodes whose defects are too large."""
    import borelli

    trajectories = read_trajectories(nlp, result.w)
    certificate, resimulations = certify(nlp, result, trajectories, limits)
    dataset = make_dataset(nlp.problem, trajectories)
    intervals = inaccurate_intervals(trajectories, resimulations, certificate) if resimulations else {}
    dataset = add_defects(dataset, trajectories, resimulations)
    dataset["cost"] = ("cost_name", np.array(nlp.costs(result.w)).ravel(), {"units": "1"})
    dataset = dataset.assign_coords(cost_name=list(nlp.cost_names))
    dataset.attrs = {
        "problem": nlp.problem.name,
        "method": options.method,
        "order": options.order,
        "objective": result.objective,
        "iterations": iterations,
        "runtime_s": runtime,
        "status": result.status,
        "version": borelli.__version__,
    }
    return Solution(dataset, certificate), intervals
