"""Several starts: one problem from varied first values, with the same result for any number of processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from borelli.errors import SettingsError
from borelli.optimal.solution import Solution

_job: Callable[[int], Solution] | None = None
"""What the processes run: functions of users cannot be sent to them, so they inherit it."""


def solve_starts(job: Callable[[int], Solution], starts: int, workers: int) -> list[Solution]:
    """Return the solutions of all starts in order.

    Raises:
        SettingsError: `workers` is above 1 on a system whose processes cannot be copied.
    """
    global _job
    if starts < 1 or workers < 1:
        raise SettingsError(f"{starts} starts and {workers} workers: Give positive numbers.")
    if workers == 1 or starts == 1:
        solutions: list[Solution] = []
        for start in range(starts):
            solutions.append(job(start))
            if solutions[-1].certificate.status == "cancelled":
                break
        return solutions
    if "fork" not in multiprocessing.get_all_start_methods():
        raise SettingsError(f"{workers} workers: This system cannot copy processes. Use workers=1.")
    _job = job
    try:
        with ProcessPoolExecutor(min(workers, starts), multiprocessing.get_context("fork")) as pool:
            return list(pool.map(_run, range(starts)))
    finally:
        _job = None


def _run(start: int) -> Solution:
    assert _job is not None
    return _job(start)


def choose_best(solutions: Sequence[Solution]) -> Solution:
    """Return the solved solution of least objective, else the one nearest to feasible; of equal ones the first.

    Its dataset has the outcomes of all starts.
    """

    def rank(solution: Solution) -> tuple[bool, float, float]:
        violation = solution.certificate.check("feasibility").value
        return not solution.solved, 0.0 if solution.solved else violation, solution.objective

    best = min(solutions, key=rank)
    dataset = best.dataset.copy()
    dataset["start_objective"] = ("start_number", [solution.objective for solution in solutions], {"units": "1"})
    dataset["start_solved"] = ("start_number", np.array([s.solved for s in solutions], np.int8), {"units": "1"})
    return Solution(dataset, best.certificate)
